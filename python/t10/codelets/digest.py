"""Codelets named after their text: one name, one text."""

from __future__ import annotations

import hashlib

from t10.codelets.assembly import Assembly
from t10.core.codelet import Codelet, CodeletKind, Field

DIGEST_CHARACTERS = 10


def named(prefix: str, fields: tuple[Field, ...], *texts: str) -> str:
    """Return `prefix` and a digest of a codelet's fields and texts (written without its name)."""
    content = "\0".join((repr(fields), *texts)).encode()
    return f"{prefix}_{hashlib.sha1(content, usedforsecurity=False).hexdigest()[:DIGEST_CHARACTERS]}"


def named_codelet(
    prefix: str,
    kind: CodeletKind,
    fields: tuple[Field, ...],
    assembly: Assembly,
    cpp_reference: str,
    summary: str,
    apart: tuple[tuple[str, str], ...] = (),
) -> Codelet:
    """Return a codelet whose name is `prefix` and a digest."""
    name = named(prefix, fields, "\n".join(assembly.lines), cpp_reference)
    return Codelet(name, kind, fields, assembly.text(name, kind), cpp_reference, summary, apart=apart)
