"""Passes over MLIR, one per file: each reads values from the IR, calls the planner on them and writes back."""
