"""What a rule stumbles over in a node becomes an error of the model that names the node."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from t10.errors import InputError
from t10.frontend.unsupported import title_of

_STUMBLES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError)


@contextmanager
def reading(node: Any) -> Generator[None]:
    """Give what goes wrong while attributes and constants of a node are read as `InputError`.

    Types and numbers of attributes, inputs and outputs are right by then; their values may still make no sense: an axis
    beyond the rank, a mode that there is not, a repeated dim. Who reads a node need not expect each of these.
    """
    try:
        yield
    except _STUMBLES as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"attributes or constants of this {node.op_type} node make no sense together ({text})",
            operator=title_of(node),
        ) from error
