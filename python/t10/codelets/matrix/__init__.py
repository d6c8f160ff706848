"""Sums of products of two operands on the matrix engine (AMP)."""
