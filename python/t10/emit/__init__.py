"""From a planned model to a device program: variables, vertices, exchange patterns, steps."""
