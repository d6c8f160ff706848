"""Typed words for defining a dialect in Python: operands, results, regions and attribute kinds of an operation.

A definition reads `source: Operand[Any]`. At run time the words are those of the bindings (`dialects.ext`), which read
the annotations of a class to make its IRDL form; type checkers see the small classes below instead, because the
bindings carry no types. A module that defines operations must not postpone the evaluation of its annotations.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from t10.dialect.mlir import dialect, ir

if TYPE_CHECKING:
    from collections.abc import Callable

ext: Any = dialect("ext")

Pure: Any = ext.Pure
IsTerminator: Any = ir.IsTerminatorTrait
IsIsolatedFromAbove: Any = ir.IsIsolatedFromAboveTrait
NoTerminator: Any = ir.NoTerminatorTrait

if TYPE_CHECKING:
    T = TypeVar("T")

    class Operand(Generic[T]):
        """An SSA operand."""

        type: Any

    class Result(Generic[T]):
        """An SSA result."""

        type: Any

    class Region:
        """A region of one block."""

        blocks: Any

    class ArrayAttr:
        """An array of attributes."""

    class DictAttr:
        """A dictionary of attributes."""

    class IntegerAttr:
        """An integer with its type."""

        value: int

    class StringAttr:
        """A string."""

        value: str

    class TypeAttr:
        """A type as an attribute."""

        value: Any
else:
    Operand = ext.Operand
    Result = ext.Result
    Region = ext.Region
    ArrayAttr = ir.ArrayAttr
    DictAttr = ir.DictAttr
    IntegerAttr = ir.IntegerAttr
    StringAttr = ir.StringAttr
    TypeAttr = ir.TypeAttr


class Invalid(Exception):  # noqa: N818 - an internal signal between a check and the verifier that reports it
    """A rule of the dialect is broken; the message says what was found and what was expected."""


def verifier(check: Callable[[Any], None]) -> Callable[[Any], bool]:
    """Turn a check that raises `Invalid` into an operation's verifier that reports at the operation's location.

    Python verifiers run before the structural checks of IRDL, and no exception may cross the C++ frames: a missing
    attribute or operand is left for IRDL to report.
    """

    @functools.wraps(check)
    def verify(op: Any) -> bool:
        try:
            check(op)
        except (KeyError, IndexError, TypeError, AttributeError):
            return True
        except Invalid as error:
            op.location.emit_error(f"'{op.operation.name}' op {error}")
            return False
        return True

    return verify
