"""What the planner is measured by: `python benchmarks/planner` prints every bar with its value and verdict."""
