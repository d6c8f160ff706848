"""A `FusionGraph` written back: linalg.generic where one is enough, `rtensor.operator` where an epilogue follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t10.core.expression import AffineDim
from t10.dialect import build
from t10.dialect.mlir import captured, dialect, ir, walk
from t10.dialect.rtensor import FORCED
from t10.passes.fusion.affine import ZERO, axis_dim, compose
from t10.passes.fusion.graph import PARALLEL, TRANSPOSE, FusionGraph, Nest, Opaque, Reshape, kind_of
from t10.passes.fusion.names import operator_names
from t10.passes.fusion.reorder import reorder_dims
from t10.passes.fusion.scalar import (
    Accumulated,
    Apply,
    Constant,
    Extract,
    Index,
    Read,
    Scalar,
    rewrite,
    substitute_axes,
    visit,
)

_ITERATORS = {"parallel": "#linalg.iterator_type<parallel>", "reduction": "#linalg.iterator_type<reduction>"}


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
            if node.order:
                result.set_type(self._type(value))
            self.made[value] = result

    def _type(self, value: int) -> Any:
        return ir.RankedTensorType.get(list(self.graph.shapes[value]), self.graph.types[value])

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
        if isinstance(nest.body, Read) and not nest.combine and nest.epilogue is None:
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
            results=[ir.RankedTensorType.get(sizes, self.graph.types[read.value])],
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
        kind = ir.RankedTensorType.get(list(self.graph.shapes[nest.result]), nest.acc_type)
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

    def _filled(self, constant: Constant, value: int, element_type: Any, location: Any, point: Any) -> Any:
        with point, location:
            scalar = _constant(constant, location, point)
            kind = ir.RankedTensorType.get(list(self.graph.shapes[value]), element_type)
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
        window = self._window(nest, [*maps, nest.out_dims], point)
        if window is not None:
            tensors.append(window[0])
            maps.append(window[1])
        op = ir.Operation.create(
            "linalg.generic",
            results=[out.type],
            operands=[*tensors, out],
            attributes={
                "indexing_maps": _map_array([*maps, nest.out_dims], len(nest.extents)),
                "iterator_types": ir.ArrayAttr.get(
                    [ir.Attribute.parse(_ITERATORS[kind]) for kind in nest.kinds]
                ),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(tensors), 1]),
            },
            regions=1,
            loc=nest.location,
            ip=point,
        )
        element_types = [ir.RankedTensorType(tensor.type).element_type for tensor in (*tensors, out)]
        block = op.regions[0].blocks.append(*element_types, arg_locs=[nest.location] * len(element_types))
        arguments = list(block.arguments)
        body = _BodyWriter(self.made, inputs, arguments, ir.InsertionPoint(block), nest.location)
        value = body.value(nest.body)
        if nest.combine:
            value = body.apply(nest.combine, [arguments[-1], value], nest.acc_type, None)
        ir.Operation.create("linalg.yield", operands=[value], loc=nest.location, ip=ir.InsertionPoint(block))
        return op.results[0]

    def _window(self, nest: Nest, maps: list[tuple[AffineDim, ...]], point: Any) -> Any:
        """Return an empty tensor and its index that give loops their extent which no operand dim gives (pooling)."""
        known = {dim.terms[0].axis for dims in maps for dim in dims if dim.is_simple}
        missing = [axis for axis in range(len(nest.extents)) if axis not in known]
        if not missing:
            return None
        kind = ir.RankedTensorType.get([nest.extents[axis] for axis in missing], nest.acc_type)
        empty = ir.Operation.create("tensor.empty", results=[kind], loc=nest.location, ip=point)
        return empty.results[0], tuple(axis_dim(axis) for axis in missing)


class _BodyWriter:
    """Writes scalars into the block of a linalg.generic, each once."""

    def __init__(
        self,
        tensors: dict[int, Any],
        inputs: dict[tuple[int, tuple[AffineDim, ...]], int],
        arguments: list[Any],
        point: Any,
        location: Any,
    ) -> None:
        self.tensors = tensors
        self.inputs = inputs
        self.arguments = arguments
        self.point = point
        self.location = location
        self.known: dict[int, Any] = {}

    def value(self, scalar: Scalar) -> Any:
        """Return the SSA value of a scalar, writing what it needs."""
        for node in visit(scalar):
            if id(node) not in self.known:
                self.known[id(node)] = self._write(node)
        return self.known[id(scalar)]

    def _write(self, node: Scalar) -> Any:
        if isinstance(node, Read):
            return self.arguments[self.inputs[node.value, node.dims]]
        if isinstance(node, Constant):
            return _constant(node, self.location, self.point)
        if isinstance(node, Index):
            return self._index(node.form)
        if isinstance(node, Extract):
            table = self.tensors[node.table]
            indices = [self.known[id(index)] for index in node.indices]
            element_type = ir.RankedTensorType(table.type).element_type
            return self.apply("tensor.extract", [table, *indices], element_type, None)
        assert isinstance(node, Apply)
        operands = [self.known[id(operand)] for operand in node.operands]
        return self.apply(node.opcode, operands, node.type, node.template)

    def apply(self, opcode: str, operands: Sequence[Any], kind: Any, template: Any) -> Any:
        """Write one scalar operation, with the attributes of `template`."""
        if template is None:
            op = ir.Operation.create(
                opcode, results=[kind], operands=list(operands), loc=self.location, ip=self.point
            )
            return op.results[0]
        op = template.clone(ip=self.point).operation
        for i, operand in enumerate(operands):
            op.operands[i] = operand
        return op.results[0]

    def _index(self, form: AffineDim) -> Any:
        index = ir.IndexType.get()
        total: Any = None
        for term in form.terms:
            axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), term.axis)
            part = ir.Operation.create(
                "linalg.index", results=[index], attributes={"dim": axis}, loc=self.location, ip=self.point
            ).results[0]
            if term.coefficient != 1:
                part = self.apply("arith.muli", [part, self._number(term.coefficient)], index, None)
            total = part if total is None else self.apply("arith.addi", [total, part], index, None)
        if total is None or form.offset:
            offset = self._number(form.offset)
            total = offset if total is None else self.apply("arith.addi", [total, offset], index, None)
        return total

    def _number(self, value: int) -> Any:
        return _constant(Constant(ir.IntegerAttr.get(ir.IndexType.get(), value)), self.location, self.point)


def _constant(constant: Constant, location: Any, point: Any) -> Any:
    attribute = constant.attribute
    kind = ir.IntegerType.get_signless(1) if isinstance(attribute, ir.BoolAttr) else attribute.type
    op = ir.Operation.create(
        "arith.constant", results=[kind], attributes={"value": attribute}, loc=location, ip=point
    )
    return op.results[0]


def _map_array(maps: Sequence[tuple[AffineDim, ...]], n_axes: int) -> Any:
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(_affine_map(dims, n_axes)) for dims in maps])


def _affine_map(dims: tuple[AffineDim, ...], n_axes: int) -> Any:
    return ir.AffineMap.get(n_axes, 0, [_affine_expression(dim) for dim in dims])


def _affine_expression(dim: AffineDim) -> Any:
    total: Any = None
    for term in dim.terms:
        part = ir.AffineDimExpr.get(term.axis)
        part = part if term.coefficient == 1 else part * term.coefficient
        total = part if total is None else total + part
    if total is None:
        return ir.AffineConstantExpr.get(dim.offset)
    return total + dim.offset if dim.offset else total
