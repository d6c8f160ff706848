"""Decompositions: one file per family of operators, a rule per operator, applied to a fixed point."""
