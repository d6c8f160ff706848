"""From a planned model to a device program: variables on tiles, vertices, compute sets, copies and their order."""
