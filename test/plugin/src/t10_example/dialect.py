"""The dialect `example`: one operation, `example.note`, in IRDL."""

from __future__ import annotations

from t10.dialect.mlir import dialect, ir

TEXT = """
irdl.dialect @example {
  irdl.operation @note {
    %text = irdl.any
    irdl.attributes { "text" = %text }
  }
}
"""


def load() -> None:
    """Load the dialect into the current context."""
    dialect("irdl").load_dialects(ir.Module.parse(TEXT))
