"""A host implementation of the part of Poplar that emitted programs use: it compiles and runs them unchanged."""
