"""Rewrite patterns, one per file: each docstring shows the IR before and after."""
