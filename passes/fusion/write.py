"""A `FusionGraph` written back: linalg.generic where one is enough, `rtensor.operator` where an epilogue follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t10.core.expression import AffineDim
from t10.core.scalar import ScalarOp
from t10.dialect import build
from t10.dialect.mlir import captured, dialect, ir, walk
from t10.dialect.rtensor import COPY, FORCED
from t10.passes.bridge.affine import ZERO, axis_dim, compose
from t10.passes.bridge.tree import (
    Accumulated,
    Constant,
    Extract,
    Read,
    Scalar,
    function_of,
    rewrite,
    substitute_axes,
    visit,
)
from t10.passes.bridge.write_generic import generic, write_body, write_operation
from t10.passes.fusion.graph import PARALLEL, TRANSPOSE, FusionGraph, Nest, Opaque, Reshape, kind_of
from t10.passes.fusion.names import operator_names
from t10.passes.fusion.reorder import reorder_dims


def write_function(function: Any, graph: FusionGraph) -> None:
    """Replace the body of a function by the graph that was read from it and rewritten."""
    block = function.regions[0].blocks[0]
    old = [op.operation for op in block.operations]
    writer = _Writer(graph, old[-1], operator_names(graph))
    for number, argument in enumerate(block.arguments):
        writer.made[number] = argument
    writer.write_all()
    for i, value in enumerate(graph.outputs):
        old[-1].operands[i] = writer.made[value]
    for op in reversed(old[:-1]):
        op.erase()


def _is_resized(result: Any, shape: Sequence[int]) -> bool:
    """Return whether a result's type has another shape than its value has by now."""
    return isinstance(result.type, ir.RankedTensorType) and list(result.type.shape) != list(shape)


class _Writer:
    def __init__(self, graph: FusionGraph, end: Any, names: dict[int, str]) -> None:
        self.graph = graph
        self.end = end
        self.names = names
        self.made: dict[int, Any] = {}

    def write_all(self) -> None:
        """Write every node after what it reads, otherwise in the order of the source."""
        for node in self.graph.nodes():
            self._write_with_sources(node)

    def _write_with_sources(self, node: Nest | Reshape | Opaque) -> None:
        stack: list[tuple[Nest | Reshape | Opaque, bool]] = [(node, False)]
        while stack:
            current, ready = stack.pop()
            if current.results[0] in self.made:
                continue
            if ready:
                self._write(current)
                continue
            stack.append((current, True))
            missing = [self.graph.owner(value) for value in current.uses if value not in self.made]
            stack.extend((owner, False) for owner in reversed(missing) if owner is not None)

    def _write(self, node: Nest | Reshape | Opaque) -> None:
        if isinstance(node, Opaque):
            self._clone(node)
        elif isinstance(node, Reshape):
            self.made[node.result] = self._reshape(node)
        else:
            self.made[node.result] = self._nest(node)

    def _clone(self, node: Opaque) -> None:
        copy = node.op.clone(ip=ir.InsertionPoint(self.end))
        outside = captured(node.op)
        direct = node.operands[: len(node.op.operands)]
        for i, value in enumerate(direct):
            if value is not None:
                copy.operation.operands[i] = self.made[value]
        new_by_old = {
            old: self.made[value]
            for old, value in zip(outside, node.operands[len(direct) :], strict=True)
            if value is not None
        }
        if new_by_old:
            for inner in walk(copy)[1:]:
                for i, operand in enumerate(inner.operation.operands):
                    if operand in new_by_old:
                        inner.operation.operands[i] = new_by_old[operand]
        if node.order:
            reorder_dims(copy.operation, node.order)
        for value, result in zip(node.results, copy.operation.results, strict=True):
            if node.order or _is_resized(result, self.graph.shapes[value]):
                result.set_type(self._type(value))
            self.made[value] = result

    def _type(self, value: int) -> Any:
        return self._tensor(self.graph.shapes[value], self.graph.types[value])

    def _tensor(self, shape: Sequence[int], dtype: str) -> Any:
        return ir.RankedTensorType.get(list(shape), ir.Type.parse(dtype))

    def _reshape(self, node: Reshape) -> Any:
        integer = ir.IntegerType.get_signless(64)
        groups = [ir.ArrayAttr.get([ir.IntegerAttr.get(integer, i) for i in group]) for group in node.groups]
        attributes: dict[str, Any] = {"reassociation": ir.ArrayAttr.get(groups)}
        if node.expands:
            attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(self.graph.shapes[node.result]))
        op = ir.Operation.create(
            "tensor.expand_shape" if node.expands else "tensor.collapse_shape",
            results=[self._type(node.result)],
            operands=[self.made[node.source]],
            attributes=attributes,
            loc=node.location,
            ip=ir.InsertionPoint(self.end),
        )
        return op.results[0]

    def _nest(self, nest: Nest) -> Any:
        outside = ir.InsertionPoint(self.end)
        if isinstance(nest.body, Constant) and not nest.combine and nest.epilogue is None:
            return self._filled(nest.body, nest.result, nest.acc_type, nest.location, outside)
        if isinstance(nest.body, Read) and nest.is_move:
            result = self._move(nest, nest.body, outside)
            if nest.is_transpose:
                result.owner.attributes["kind"] = ir.StringAttr.get(TRANSPOSE)
            return result
        if not nest.extents:
            return self._single(nest)
        if nest.epilogue is None:
            result = self._generic(nest, outside, self._init(nest, outside))
            result.owner.attributes["op_name"] = ir.StringAttr.get(self.names[nest.result])
            result.owner.attributes["kind"] = ir.StringAttr.get(kind_of(nest))
            if nest.forced is not None:
                result.owner.attributes[FORCED] = nest.forced
            if nest.is_copy:
                result.owner.attributes[COPY] = ir.UnitAttr.get()
            return result
        return self._operator(nest)

    def _single(self, nest: Nest) -> Any:
        """Write a nest without axes over one of extent 1: plans cut axes, so that every operator has one."""
        shape = self.graph.shapes[nest.result]
        value = nest.result if shape else self.graph.new_value((1,), self.graph.types[nest.result])
        self.names[value] = self.names[nest.result]
        dims = (axis_dim(0), *nest.out_dims[1:])
        made = self._nest(replace(nest, extents=(1,), kinds=(PARALLEL,), out_dims=dims, result=value))
        if shape:
            return made
        self.made[value] = made
        return self._reshape(Reshape(nest.result, value, (), expands=False, location=nest.location, rank=1))

    def _move(self, nest: Nest, read: Read, point: Any) -> Any:
        """Write a copy: dims read at one place, of several, are sliced out first, so that the rest is a pure move."""
        shape = self.graph.shapes[read.value]
        fixed = [not dim.terms and extent != 1 for dim, extent in zip(read.dims, shape, strict=True)]
        if not any(fixed):
            return self._copy(nest, read, point)
        sizes = [1 if at else extent for at, extent in zip(fixed, shape, strict=True)]
        offsets = [dim.offset if at else 0 for at, dim in zip(fixed, read.dims, strict=True)]
        static = {"static_offsets": offsets, "static_sizes": sizes, "static_strides": [1] * len(sizes)}
        attributes = {key: ir.DenseI64ArrayAttr.get(values) for key, values in static.items()}
        op = ir.Operation.create(
            "tensor.extract_slice",
            results=[self._tensor(sizes, self.graph.types[read.value])],
            operands=[self.made[read.value]],
            attributes={**attributes, "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0])},
            loc=nest.location,
            ip=point,
        )
        value = self.graph.new_value(tuple(sizes), self.graph.types[read.value])
        self.made[value] = op.results[0]
        dims = tuple(ZERO if at else dim for at, dim in zip(fixed, read.dims, strict=True))
        return self._copy(nest, Read(value, dims), point)

    def _copy(self, nest: Nest, read: Read, point: Any) -> Any:
        """Write a transpose or broadcast over all dims of its result, unit dims included: the form of a pure move."""
        shape = self.graph.shapes[nest.result]
        by_axis = [ZERO] * len(nest.extents)
        for i, form in enumerate(nest.out_dims):
            if form.terms:
                by_axis[form.terms[0].axis] = axis_dim(i)
        whole = replace(
            nest,
            extents=shape,
            kinds=(PARALLEL,) * len(shape),
            body=Read(read.value, tuple(compose(dim, by_axis) for dim in read.dims)),
            out_dims=tuple(axis_dim(i) for i in range(len(shape))),
        )
        assert isinstance(whole.body, Read)
        kept = [i for i, dim in enumerate(whole.body.dims) if dim != ZERO]
        if len(kept) < len(read.dims) and tuple(whole.body.dims[i] for i in kept) == whole.out_dims:
            # All that it does is to leave out dims of extent 1.
            ends = [*kept[1:], len(read.dims)] if kept else []
            groups = tuple(tuple(range(kept[i] if i else 0, end)) for i, end in enumerate(ends))
            return self._reshape(Reshape(nest.result, read.value, groups, False, nest.location, nest.rank))
        return self._generic(whole, point, self._empty(whole, point))

    def _operator(self, nest: Nest) -> Any:
        """Write an `rtensor.operator`: its root, then its epilogue as one elementwise generic."""
        name, kind = self.names[nest.result], kind_of(nest)
        with ir.InsertionPoint(self.end), nest.location:
            op, block = build.operator(self._type(nest.result), op_name=name, kind=kind)
        inside = ir.InsertionPoint(block)
        if nest.forced is not None:
            op.attributes[FORCED] = nest.forced
        root = self._generic(nest, inside, self._init(nest, inside))
        result = self._epilogue(nest, root, inside)
        with inside, nest.location:
            build.yield_(result)
        return op.results[0]

    def _epilogue(self, nest: Nest, root: Any, point: Any) -> Any:
        """Write the epilogue as an elementwise nest over the parallel axes that reads the root's result."""
        parallel = [axis for axis, kind in enumerate(nest.kinds) if kind == PARALLEL]
        by_axis = [axis_dim(0)] * len(nest.extents)
        for new, old in enumerate(parallel):
            by_axis[old] = axis_dim(new)
        out_dims = tuple(by_axis[dim.terms[0].axis] if dim.terms else dim for dim in nest.out_dims)
        accumulated = self.graph.new_value(self.graph.shapes[nest.result], nest.acc_type)
        self.made[accumulated] = root

        def leaf(scalar: Scalar) -> Scalar:
            return Read(accumulated, out_dims) if isinstance(scalar, Accumulated) else scalar

        assert nest.epilogue is not None
        after = replace(
            nest,
            extents=tuple(nest.extents[axis] for axis in parallel),
            kinds=(PARALLEL,) * len(parallel),
            body=rewrite(substitute_axes(nest.epilogue, by_axis), leaf),
            out_dims=out_dims,
            acc_type=self.graph.types[nest.result],
            combine="",
            init=None,
            epilogue=None,
        )
        return self._generic(after, point, self._empty(after, point))

    def _empty(self, nest: Nest, point: Any) -> Any:
        kind = self._tensor(self.graph.shapes[nest.result], nest.acc_type)
        return ir.Operation.create("tensor.empty", results=[kind], loc=nest.location, ip=point).results[0]

    def _init(self, nest: Nest, point: Any) -> Any:
        """Return the `outs` operand of a nest's generic."""
        if nest.init is None:
            return self._empty(nest, point)
        if isinstance(nest.init, Constant):
            return self._filled(nest.init, nest.result, nest.acc_type, nest.location, point)
        assert isinstance(nest.init, Read)
        if nest.init.dims == nest.out_dims:
            return self.made[nest.init.value]
        spread = replace(
            nest,
            extents=tuple(n for n, kind in zip(nest.extents, nest.kinds, strict=True) if kind == PARALLEL),
            kinds=(PARALLEL,) * nest.kinds.count(PARALLEL),
            body=nest.init,
            combine="",
            init=None,
            epilogue=None,
        )
        return self._generic(spread, point, self._empty(spread, point))

    def _filled(self, constant: Constant, value: int, element_type: str, location: Any, point: Any) -> Any:
        with point, location:
            scalar = write_operation(ScalarOp("const", (), constant.dtype, constant.text), [])
            kind = self._tensor(self.graph.shapes[value], element_type)
            empty = ir.Operation.create("tensor.empty", results=[kind]).results[0]
            return dialect("linalg").fill(scalar, outs=[empty])

    def _generic(self, nest: Nest, point: Any, out: Any) -> Any:
        """Write one linalg.generic: its reads become inputs, one per tensor and index."""
        inputs: dict[tuple[int, tuple[AffineDim, ...]], int] = {}
        for node in visit(nest.body):
            if isinstance(node, Read):
                inputs.setdefault((node.value, node.dims), len(inputs))
        tensors = [self.made[value] for value, _ in inputs]
        maps = [dims for _, dims in inputs]
        with point, nest.location:
            op, block = generic(tensors, [*maps, nest.out_dims], nest.extents, nest.kinds, out)
        with ir.InsertionPoint(block), nest.location:
            *arguments, old = block.arguments
            value = self._body(nest.body, arguments[: len(inputs)], inputs)
            if nest.combine:
                value = write_operation(ScalarOp(nest.combine, (0, 1), nest.acc_type), [old, value])
            ir.Operation.create("linalg.yield", operands=[value])
        return op.results[0]

    def _body(
        self, body: Scalar, arguments: list[Any], inputs: dict[tuple[int, tuple[AffineDim, ...]], int]
    ) -> Any:
        """Return the value of a scalar whose reads are `arguments`, numbered by `inputs`."""
        extracted: dict[int, int] = {}

        def number(node: Scalar) -> int:
            return inputs[node.value, node.dims] if isinstance(node, Read) else extracted[id(node)]

        for node in visit(body):
            if isinstance(node, Extract):
                indices = [
                    write_body(function_of(index, len(arguments), number), arguments)
                    for index in node.indices
                ]
                kind = ir.Type.parse(self.graph.types[node.table])
                made = ir.Operation.create(
                    "tensor.extract", results=[kind], operands=[self.made[node.table], *indices]
                )
                extracted[id(node)] = len(arguments)
                arguments.append(made.results[0])
        return write_body(function_of(body, len(arguments), number), arguments)
