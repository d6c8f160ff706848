"""The assembler: C preprocessor, macros, expressions, bundles, and checks of the machine's rules."""

from __future__ import annotations

from t10.isa.assembler.assembler import FlatStatement, assemble, flattened
from t10.isa.assembler.generated import assembled_code
from t10.isa.assembler.lines import AssemblyError, Diagnostic

__all__ = ["AssemblyError", "Diagnostic", "FlatStatement", "assemble", "assembled_code", "flattened"]
