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

    class Dialect:
        """A dialect; its operations, attributes and types derive from the nested classes."""

        class Operation:
            """An operation; its fields are annotations."""

            operation: Any
            location: Any
            attributes: Any

            def __init_subclass__(cls, *, name: str = "", traits: list[Any] | None = None) -> None: ...

        class Attribute:
            """An attribute; its parameters are annotations."""

            def __init_subclass__(cls, *, name: str) -> None: ...

            @classmethod
            def get(cls, *parameters: Any) -> Any:
                """Return the attribute with these parameters."""

        class Type:
            """A type; its parameters are annotations."""

            def __init_subclass__(cls, *, name: str) -> None: ...

            @classmethod
            def get(cls, *parameters: Any) -> Any:
                """Return the type with these parameters."""

        def __init_subclass__(cls, *, name: str) -> None: ...

        @classmethod
        def load(cls) -> None:
            """Register the dialect with the current context."""

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
    Dialect = ext.Dialect
    Operand = ext.Operand
    Result = ext.Result
    Region = ext.Region
    ArrayAttr = ir.ArrayAttr
    DictAttr = ir.DictAttr
    IntegerAttr = ir.IntegerAttr
    StringAttr = ir.StringAttr
    TypeAttr = ir.TypeAttr


class Invalid(Exception):
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
