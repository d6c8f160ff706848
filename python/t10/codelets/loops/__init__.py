"""Scalar loops over strided operands: the family for every task, slow and exact."""
