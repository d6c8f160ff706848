"""Users' own codelets: assembly or C++ with a declaration of the tasks it computes."""

from __future__ import annotations

from t10.codelets.user.load import code_of_declarations, cost_files, load_families, unused_codelets

__all__ = ["code_of_declarations", "cost_files", "load_families", "unused_codelets"]
