"""Operators written with other operators: one file per family, a rule per operator, applied until none is left."""
