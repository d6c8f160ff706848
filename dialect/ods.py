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

    class Index:
        """The type of positions and extents."""

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
    Index = ir.IndexType
    IntegerAttr = ir.IntegerAttr
    StringAttr = ir.StringAttr
    TypeAttr = ir.TypeAttr


class Invalid(Exception):
    """A rule of the dialect is broken; the message says what was found and what was expected."""


def verifier(check: Callable[[Any], None]) -> Callable[[Any], bool]:
    """Turn a check that raises `Invalid` into an operation's verifier that reports at the operation's location.

    Python verifiers run before the structural checks of IRDL, and no exception may cross the C++ frames. Operations
    that lack what their class declares are left to IRDL, which refuses them; the check runs on the others. Any other
    exception is an error as well, never an acceptance.
    """

    @functools.wraps(check)
    def verify(op: Any) -> bool:
        try:
            if is_complete(op):
                _check_blocks(op)
                check(op)
        except Invalid as error:
            problem = str(error)
        except Exception as error:
            problem = _wrong_kind(op) or f"cannot be verified: {type(error).__name__}: {error}"
        else:
            return True
        op.location.emit_error(f"'{op.operation.name}' op {problem}")
        return False

    return verify


def is_complete(op: Any) -> bool:
    """Return whether an operation has the operands, attributes, results and regions that its class declares."""
    operands, attributes, results, regions = _declared(op.__class__)
    if len(op.operation.regions) != len(regions) or any(
        field.name not in op.attributes for field in attributes
    ):
        return False
    for fields, found in ((operands, op.operation.operands), (results, op.operation.results)):
        n_single = sum(field.variadicity == ext.Variadicity.single for field in fields)
        if len(found) < n_single or (n_single == len(fields) and len(found) > n_single):
            return False
    return True


@functools.cache
def _declared(cls: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the operands, attributes, results and regions that an operation's class declares."""
    return ext.partition_fields(cls._fields)


def _check_blocks(op: Any) -> None:
    """Check that regions have one block, which IRDL does not say; those without a terminator may be empty."""
    least = 0 if NoTerminator in op.__class__._traits else 1
    for number, region in enumerate(op.operation.regions):
        if not least <= len(region.blocks) <= 1:
            raise Invalid(f"region #{number} has {len(region.blocks)} blocks, expected one")


def _wrong_kind(op: Any) -> str:
    """Return which attribute is not of the class that is declared, or an empty string."""
    for field in _declared(op.__class__)[1]:
        kind = field.constraint
        if not isinstance(kind, type):
            continue
        try:
            found: object = op.attributes[field.name].maybe_downcast()
        except TypeError:  # The bindings make no attribute of a location.
            found = "a location"
        if not isinstance(found, kind):
            return f"{field.name} is {found}, expected {getattr(kind, 'attr_name', kind.__name__)}"
    return ""
