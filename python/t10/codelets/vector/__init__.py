"""Elementwise tasks: vector loops over rows on six workers."""
