"""The family that computes sums of products of two operands on the matrix engine (AMP)."""
