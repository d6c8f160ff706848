"""Refusals of fields that do not suit each other, which say in which fields: an error then names their line."""

from __future__ import annotations

from typing import LiteralString, cast

from pydantic_core import PydanticCustomError

from t10.core.trust.schema import FIELDS


def unsuitable(reason: str, *fields: str) -> PydanticCustomError:
    """Return the error of a record whose fields do not suit each other; `reason` names them, and what was found."""
    return PydanticCustomError(
        cast("LiteralString", FIELDS), cast("LiteralString", "{reason}"), {"reason": reason, FIELDS: fields}
    )
