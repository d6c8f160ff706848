"""Users' own codelets: assembly or C++ with a declaration of the tasks it computes, put before the bundled families."""

from __future__ import annotations

from t10.codelets.user.load import cost_files, files_of_declarations, load_families

__all__ = ["cost_files", "files_of_declarations", "load_families"]
