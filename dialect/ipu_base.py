"""The `ipu` dialect itself and its type, and how operations of it are made."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from t10.dialect.attributes import to_attr
from t10.dialect.mlir import ir
from t10.dialect.ods import Dialect, Invalid


class Ipu(Dialect, name="ipu"):
    """Allocations, vertices, compute sets, copies and programs of an inter-core connected chip."""


class TensorType(Ipu.Type, name="tensor"):
    """A handle of an allocation: the variable that vertices and copies name.

    ```mlir
    func.func private @f(!ipu.tensor)
    ```
    """


def create(
    name: str,
    fields: dict[str, Any],
    *,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    **rest: Any,
) -> Any:
    """Return a new operation at the current insertion point."""
    attributes = {key: to_attr(value) for key, value in fields.items()}
    location = ir.Location.current or ir.Location.unknown()
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location, **rest
    )


def inner(op: Any) -> list[Any]:
    """Return the operations directly inside an operation's region."""
    return [inside.operation for block in op.regions[0].blocks for inside in block.operations]


def checked_range(value: Any, least: int, what: str) -> None:
    """Raise `Invalid` unless an integer is at least `least`."""
    if value < least:
        raise Invalid(f"{what} = {value}, expected at least {least}")


def array_of(op: Any, name: str) -> Any:
    """Return an operation's dense attribute of 32-bit integers as an array; raises `Invalid` where it has none.

    IRDL has no constraint for such attributes: they are checked here.
    """
    if name not in op.attributes:
        raise Invalid(f"has no '{name}', expected dense<...> : tensor<...xi32>")
    found = op.attributes[name].maybe_downcast()
    if not isinstance(found, ir.DenseIntElementsAttr):
        raise Invalid(f"{name} is {found}, expected dense<...> : tensor<...xi32>")
    return np.asarray(found, dtype=np.int32)
