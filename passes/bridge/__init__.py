"""Between IR and values: linalg operators read as `t10.core` expressions, plans written as attributes."""
