"""The assembler and linker: C preprocessor, macros, expressions, bundles, and checks of the machine's rules."""

from __future__ import annotations

from t10.isa.assembler.assembler import FlatStatement
from t10.isa.assembler.generated import assembled_code
from t10.isa.assembler.lines import AssemblyError, Diagnostic
from t10.isa.assembler.link import FlatFile, Source, assemble, flattened, link
from t10.isa.assembler.objects import ObjectFile, object_files

__all__ = [
    "AssemblyError",
    "Diagnostic",
    "FlatFile",
    "FlatStatement",
    "ObjectFile",
    "Source",
    "assemble",
    "assembled_code",
    "flattened",
    "link",
    "object_files",
]
