"""The region of an operator taken apart: the root, what it starts from, what follows it; and copied piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t10.core.expression import AffineDim, Combine, OperatorSpec
from t10.dialect.mlir import ir
from t10.passes.bridge.body import COMBINE_BY_OPCODE, indexing_maps
from t10.passes.bridge.root import is_neutral, tensor_type
from t10.passes.bridge.scalars import constant_value
from t10.passes.bridge.views import is_pure_move
from t10.passes.bridge.wrap import inner_operations, read_values


@dataclass(frozen=True, slots=True)
class Parts:
    """What of an operator's region is computed where.

    The sub-task ends with value `accumulated`, whose dims are `accumulated_dims` over the operator's axes; `root` is
    the operation that combines, None where nothing is combined and the whole region is the sub-task. `init` is a value
    that the combination starts from and that is not neutral, None without one. `result` is what the operator yields.
    """

    block: Any
    root: Any
    accumulated: Any
    accumulated_dims: tuple[AffineDim, ...]
    init: Any
    result: Any

    @property
    def has_epilogue(self) -> bool:
        """Return whether anything follows the sub-tasks."""
        return self.init is not None or self.result != self.accumulated

    @property
    def sub_task_values(self) -> tuple[Any, ...]:
        """Return the values that the sub-task needs."""
        if self.root is None:
            return (self.result,)
        outs = self.root.operands[len(self.root.operands) - 1]
        inputs = list(self.root.operands)[:-1]
        return tuple(value for value in read_values(self.root) if value != outs or value in inputs)

    @property
    def epilogue_values(self) -> tuple[Any, ...]:
        """Return the values that the epilogue needs."""
        return (self.result,) if self.init is None else (self.result, self.init)


class Copier:
    """Copies operations, and what they read, to the current insertion point; `made` maps old values to new ones."""

    def __init__(self, made: dict[Any, Any]) -> None:
        """Start with the values that are there already: block arguments."""
        self.made = made

    def value(self, old: Any) -> Any:
        """Return the copy of a value."""
        if old not in self.made:
            self.operation(old.owner.operation)
        return self.made[old]

    def operation(self, op: Any, outs: Any = None) -> Any:
        """Return the result of a copy of an operation, None without one; `outs` takes the place of its last operand."""
        last = len(op.operands) - 1
        skipped = [] if outs is None else [op.operands[last]]
        for value in read_values(op):
            if value not in skipped or value in list(op.operands)[:last]:
                self.value(value)
        copied = op.operation.clone().operation
        for target in (copied, *inner_operations(copied)):
            for i, value in enumerate(target.operands):
                if value in self.made:
                    target.operands[i] = self.made[value]
        if outs is not None:
            copied.operands[last] = outs
        self.made.update(zip(op.results, copied.results, strict=True))
        return copied.results[0] if len(copied.results) else None


def split_region(op: Any, spec: OperatorSpec) -> Parts:
    """Return the parts of an `rtensor.operator` that `spec` was read from."""
    block = op.regions[0].blocks[0]
    result = list(block.operations)[-1].operation.operands[0]
    if spec.combine == "none":
        return Parts(block, None, result, spec.output.dims, None, result)
    root = next(each.operation for each in block.operations if _computes(each.operation))
    starts = "reduction" in str(root.attributes["iterator_types"])
    init = root.operands[len(root.operands) - 1]
    is_needed = starts and not _is_neutral_value(init, spec.combine)
    return Parts(block, root, root.results[0], indexing_maps(root)[-1], init if is_needed else None, result)


def arguments_read(values: tuple[Any, ...], block: Any, stop: Any = None) -> tuple[int, ...]:
    """Return the numbers of the block's arguments from which values are computed, not looking behind `stop`."""
    arguments = list(block.arguments)
    found: set[int] = set()
    pending, seen = list(values), set[Any]()
    while pending:
        value = pending.pop()
        if value in seen or (stop is not None and value == stop):
            continue
        seen.add(value)
        if value in arguments:
            found.add(arguments.index(value))
        elif not isinstance(value.owner, ir.Block):
            pending.extend(read_values(value.owner.operation))
    return tuple(sorted(found))


def neutral(combine: Combine, element_type: Any) -> Any:
    """Return the attribute of the element that changes nothing when it is combined."""
    if isinstance(element_type, ir.FloatType):
        floats = {"prod": 1.0, "max": float("-inf"), "min": float("inf")}
        return ir.FloatAttr.get(element_type, floats.get(combine, 0.0))
    width = ir.IntegerType(element_type).width
    least = -(1 << (width - 1)) if width > 1 else 0
    most = (1 << (width - 1)) - 1 if width > 1 else 1
    integers = {"prod": 1, "max": least, "min": most, "and": -1 if width > 1 else 1}
    return ir.IntegerAttr.get(element_type, integers.get(combine, 0))


def combine_with(root: Any, first: Any, second: Any) -> Any:
    """Return two tensors combined by element as `root` combines, at the current insertion point."""
    opcode = _combine_opcode(root)
    shape, element = tensor_type(first)
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    identity = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join(['"parallel"'] * len(shape))
    tensor = str(first.type)
    text = f"""
      func.func @f(%a: {tensor}, %b: {tensor}) -> {tensor} {{
        %r = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}], iterator_types = [{kinds}]}}
          ins(%a, %b : {tensor}, {tensor}) outs(%a : {tensor}) {{
        ^bb0(%x: {element}, %y: {element}, %o: {element}):
          %s = {opcode} %x, %y : {element}
          linalg.yield %s : {element}
        }} -> {tensor}
        return %r : {tensor}
      }}"""
    module = ir.Module.parse(text)
    function = module.body.operations[0].operation
    block = function.regions[0].blocks[0]
    made = dict(zip(block.arguments, (first, second), strict=True))
    return Copier(made).operation(block.operations[0].operation)


def _computes(op: Any) -> bool:
    """Return whether an operation is a linalg operation that neither only moves elements nor only writes constants."""
    if op.name != "linalg.generic" or is_pure_move(op):
        return False
    terminator = list(op.regions[0].blocks[0].operations)[-1].operation
    return constant_value(terminator.operands[0]) is None


def _combine_opcode(root: Any) -> str:
    """Return the operation that the body of a root ends in."""
    terminator = list(root.regions[0].blocks[0].operations)[-1].operation
    name = str(terminator.operands[0].owner.operation.name)
    assert name in COMBINE_BY_OPCODE
    return name


def _is_neutral_value(value: Any, combine: Combine) -> bool:
    """Return whether a tensor is uninitialised or filled with the neutral element."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name == "tensor.empty":
        return True
    text = constant_value(value)
    if op.name == "linalg.fill":
        text = constant_value(op.operands[0])
    if op.name == "linalg.generic":
        terminator = list(op.regions[0].blocks[0].operations)[-1].operation
        text = constant_value(terminator.operands[0])
    return text is not None and is_neutral(combine, text, tensor_type(value)[1])
