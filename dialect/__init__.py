"""MLIR side of T10: the binding seam (`mlir`) and the dialects `rtensor` and `ipu`."""
