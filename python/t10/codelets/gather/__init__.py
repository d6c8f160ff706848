"""Look-ups: rows of a table chosen by indices."""
