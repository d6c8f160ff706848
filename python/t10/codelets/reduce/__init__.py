"""Reductions, vectorised along the reduction or across it."""
