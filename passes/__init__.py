"""Passes over MLIR, one per file. Each reads values from the IR, calls the planner, and writes back."""
