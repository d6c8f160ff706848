"""Elementwise tasks: vector loops over rows, six workers."""
