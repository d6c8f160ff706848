"""Tasks whose codelets are measured: one module per family, each with `cases()`."""
