"""The architectures of the paper on a GPU: `python benchmarks/gpu` times them."""
