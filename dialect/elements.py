"""Elements of tensor constants: how many the text holds, and how resources are read.

```
%c = arith.constant dense<[1, 2, 3]> : tensor<3xi64>                 up to `MAX_INLINE` elements
%d = arith.constant dense_resource<constant> : tensor<64xi64>        more: their bytes stand at the end of the text
```
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import numpy_dtype
from t10.dialect.mlir import ir

MAX_INLINE = 16
"""Most elements of a constant that stand inside the text of the operation; a splat is one."""
_BLOB = re.compile(r': "0x([0-9A-F]+)"\s*\}\s*\}\s*#-\}\s*$')
_ALIGNMENT_BYTES = 4
"""What a printed resource begins with: its alignment."""


def is_long(op: Any) -> bool:
    """Return whether an operation is a constant whose elements take too much of the text."""
    if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and len(value) > MAX_INLINE and not value.is_splat


def elements(attribute: Any, dtype: str) -> NDArray[Any] | None:
    """Return the elements of a dense attribute or a resource, of an element type; None where they are not there.

    Raises `TypeError`, `ValueError` or `RuntimeError` for elements that numpy cannot hold.
    """
    shape = tuple(ir.RankedTensorType(attribute.type).shape)
    if isinstance(attribute, ir.DenseElementsAttr):
        return np.array(ir.DenseElementsAttr(attribute)).astype(numpy_dtype(dtype)).reshape(shape)
    data = resource_bytes(attribute)
    return None if data is None else np.frombuffer(data, numpy_dtype(dtype)).reshape(shape).copy()


def resource_bytes(attribute: Any) -> bytes | None:
    """Return the bytes of a resource, None for other attributes and for a resource that the text did not hold."""
    try:
        ir.DenseResourceElementsAttr(attribute)
    except ValueError:
        return None
    # The bindings read no resources, but a module's text holds those that it names.
    module = ir.Module.create(ir.Location.unknown(attribute.context))
    module.operation.attributes["t10.elements"] = attribute
    blob = _BLOB.search(str(module.operation.get_asm(assume_verified=True)))
    return None if blob is None else bytes.fromhex(blob[1])[_ALIGNMENT_BYTES:]


def as_constant(values: NDArray[Any], type_: Any) -> Any:
    """Return the value of a constant: `dense` up to `MAX_INLINE` elements, else a resource."""
    return (
        ir.DenseElementsAttr.get(np.ascontiguousarray(values))
        if values.size <= MAX_INLINE
        else as_resource(values, type_)
    )


def as_resource(values: NDArray[Any], type_: Any) -> Any:
    """Return a resource that holds the elements of a constant."""
    held = np.ascontiguousarray(values)
    data = held.view(np.uint8) if held.dtype == np.bool_ else held
    return ir.DenseResourceElementsAttr.get_from_buffer(data, "constant", type_)
