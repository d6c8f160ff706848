"""Look-ups: rows of a table selected by indices."""
