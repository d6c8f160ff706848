"""Names of codelets from their text: one name, one text."""

from __future__ import annotations

import hashlib

from t10.core.codelet import Field

DIGEST_CHARACTERS = 10


def named(prefix: str, fields: tuple[Field, ...], *texts: str) -> str:
    """Return `prefix` and a digest of a codelet's fields and texts (written without its name)."""
    content = "\0".join((repr(fields), *texts)).encode()
    return f"{prefix}_{hashlib.sha1(content, usedforsecurity=False).hexdigest()[:DIGEST_CHARACTERS]}"
