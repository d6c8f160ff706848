"""A model cut into stages, one per group of cores: where, and how good that is known to be."""
