"""The family that computes anything: scalar loops over strided operands, slow but right."""
