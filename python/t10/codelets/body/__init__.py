"""Bodies of tasks as instructions."""
