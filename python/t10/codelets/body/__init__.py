"""Expressions of a point as instructions."""
