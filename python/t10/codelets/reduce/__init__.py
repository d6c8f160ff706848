"""Reductions: sums, products and extremes of bodies, vectorised along the reduction or across it."""
