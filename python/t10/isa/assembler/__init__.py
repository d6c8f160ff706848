"""Assembly text to images: C preprocessor, macros, expressions, bundles, and the rules of the machine checked."""

from __future__ import annotations

from t10.isa.assembler.assembler import assemble
from t10.isa.assembler.lines import AssemblyError, Diagnostic

__all__ = ["AssemblyError", "Diagnostic", "assemble"]
