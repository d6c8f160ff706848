"""The dialects `rtensor` and `ipu`, and the only import of MLIR's Python bindings (`mlir.py`)."""
