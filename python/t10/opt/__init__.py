"""`t10-opt`: MLIR's `mlir-opt` with our dialects and passes.

In data-flow order: `options` (the command line), `pipeline` (which steps), `source` (reading and splitting the input),
`runner` (running the steps, with `printing`, `report` and `reproducer` beside it), `diagnostics` and `expected` (what
went wrong, and whether it should have), `output`, and `main` on top.
"""
