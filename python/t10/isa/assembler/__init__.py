"""The assembler and linker: C preprocessor, macros, expressions, bundles, and checks of the machine's rules."""

from __future__ import annotations

from t10.isa.assembler.assembler import FlatStatement
from t10.isa.assembler.generated import assembled_code
from t10.isa.assembler.lines import AssemblyError, Diagnostic
from t10.isa.assembler.link import FlatFile, Source, assemble, flattened, link

__all__ = [
    "AssemblyError",
    "Diagnostic",
    "FlatFile",
    "FlatStatement",
    "Source",
    "assemble",
    "assembled_code",
    "flattened",
    "link",
]
