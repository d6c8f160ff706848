"""A module read as a `Graph`: every linalg operation or `rtensor.operator` an operator, everything else a view."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import numpy_dtype
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, GraphOutput, Parts, TensorValue, View
from t10.core.orders import Order
from t10.core.scalar import parse_constant
from t10.dialect.elements import elements
from t10.dialect.functions import only_function
from t10.dialect.location import location_name, source_text
from t10.dialect.mlir import ir, signature_attributes
from t10.errors import InputError, T10Error, UnsupportedOpError
from t10.passes.bridge.assemble import Chain, Padding, extend_chain, finish_chain, start_chain
from t10.passes.bridge.root import Known, read_root, tensor_type
from t10.passes.bridge.scalars import constant_of, constant_value
from t10.passes.bridge.views import VIEW_OPS, is_pure_move, move_as_views, read_view

NAME = "t10.name"
TYPE = "t10.type"
WEIGHT = "t10.weight"
ORDER = "t10.order"
"""Of an argument: the order of the dims that it came with in which it is stored, see `t10.core.orders`."""
SPLIT = "t10.split"
"""Of a weight: a dim that it came with, and a size: in the order, that dim is two, of blocks and of what is in one."""
PADDED = "t10.padded"
"""Of an argument: how many zeros the host appends to each dim that it came with, before it splits and orders them."""
PARTS = "t10.parts"
"""Of a weight that is made of several: their names, and the dim along which they stand, in the order they came with."""
OPERATOR_NAME = "op_name"
RUNNING = "\0running"
"""Name of the value that an operator has computed so far; no name from a module can be it."""


@dataclass(frozen=True, slots=True)
class ReadModule:
    """A graph and where it came from.

    `operations` by operator name; `constants` are values of constants that became weights; `names` are the graph's
    names of SSA values, `sources` of padded values those of what they pad; `function` is the operation.
    """

    graph: Graph
    operations: dict[str, Any]
    constants: dict[str, NDArray[Any]]
    names: dict[Any, str]
    sources: dict[str, str]
    function: Any


def read_graph(module: Any) -> ReadModule:
    """Return the model of a module with one public function of linalg operations on static tensors.

    Raises `InputError` without exactly one such function, `UnsupportedOpError` for operations without a meaning here.
    """
    return GraphReader(function_of(module)).read()


def function_of(module: Any) -> Any:
    """Return the one function of a module that has a body; raises `InputError` without exactly one."""
    kinds = {op.operation.name for op in module.body.operations}
    if "ipu.graph" in kinds and "func.func" not in kinds:
        raise InputError(
            "module is lowered to the ipu dialect, which holds no operators and no plans",
            hint="take the module as it was before --t10-lower-ipu",
        )
    return only_function(module, "module")


@dataclass
class _Group:
    """The operations of one `rtensor.operator` while it is read: its chain so far and the value that is its end."""

    chain: Chain | None = None
    end: Any = None


@dataclass
class GraphReader:
    """Reads the function of a module, operation by operation."""

    function: Any
    known: dict[Any, Known] = field(default_factory=dict[Any, Known])
    operators: list[OperatorSpec] = field(default_factory=list[OperatorSpec])
    views: list[View] = field(default_factory=list[View])
    weights: list[TensorValue] = field(default_factory=list[TensorValue])
    constants: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    operations: dict[str, Any] = field(default_factory=dict[str, Any])
    paddings: dict[str, Padding] = field(default_factory=dict[str, Padding])
    names: set[str] = field(default_factory=set[str])

    def read(self) -> ReadModule:
        """Return the model that the function is."""
        block = self.function.regions[0].blocks[0]
        results: list[Any] = []
        with _at(self.function):
            inputs = self._arguments(block)
        for op in block.operations:
            operation = op.operation
            if operation.name == "func.return":
                results = list(operation.operands)
                continue
            with _at(operation):
                self.read_operation(operation)
        with _at(self.function):
            outputs = self._outputs(results)
        graph = Graph(
            name=ir.StringAttr(self.function.attributes["sym_name"]).value,
            inputs=inputs,
            weights=tuple(self.weights),
            operators=tuple(self.operators),
            views=_reachable(self.views, self.operators, outputs),
            outputs=outputs,
        )
        names = {value: known.name for value, known in self.known.items() if known.name}
        sources = {name: padding.source.name for name, padding in self.paddings.items()}
        return ReadModule(graph, self.operations, self.constants, names, sources, self.function)

    def read_operation(self, op: Any) -> None:
        """Read one operation of the function."""
        self._operation(op, None)

    def _arguments(self, block: Any) -> tuple[TensorValue, ...]:
        attributes = signature_attributes(self.function, "arg_attrs", len(block.arguments))
        inputs: list[TensorValue] = []
        for i, argument in enumerate(block.arguments):
            if not isinstance(argument.type, ir.RankedTensorType):
                raise UnsupportedOpError(f"argument {i} is {argument.type} (expected a ranked tensor)")
            shape, dtype = tensor_type(argument)
            numpy_dtype(dtype)
            name = self.unique(_text(attributes[i], NAME) or f"arg{i}")
            is_weight = WEIGHT in attributes[i]
            declared = _declared(attributes[i], dtype, f"argument {i}")
            order = _order(attributes[i][ORDER], len(shape)) if ORDER in attributes[i] else ()
            parts = _parts(attributes[i][PARTS], len(shape)) if PARTS in attributes[i] else None
            split = _split(attributes[i][SPLIT], order, shape) if SPLIT in attributes[i] else ()
            value = TensorValue(name, shape, dtype, declared, order, parts, split)
            if PADDED in attributes[i]:
                value = replace(value, padding=_padding(attributes[i][PADDED], value.padded_shape))
            (self.weights if is_weight else inputs).append(value)
            self.known[argument] = Known(name, shape, dtype, "weight" if is_weight else "activation")
        return tuple(inputs)

    def _outputs(self, results: list[Any]) -> tuple[GraphOutput, ...]:
        attributes = signature_attributes(self.function, "res_attrs", len(results))
        outputs: list[GraphOutput] = []
        for i, value in enumerate(results):
            known = self.lookup(value)
            if known.fill:
                known = self._materialized(known)
            if not known.name:
                raise UnsupportedOpError(f"result {i} of the function is an uninitialised tensor")
            declared = _declared(attributes[i], known.dtype, f"result {i}")
            outputs.append(GraphOutput(_text(attributes[i], NAME) or f"result{i}", known.name, declared))
        return tuple(outputs)

    def _operation(self, op: Any, group: _Group | None) -> None:
        """Read one operation of the function, or of the region of an operator (`group`)."""
        if op.name == "arith.constant":
            self._constant(op)
        elif op.name == "tensor.empty":
            shape, dtype = tensor_type(op.results[0])
            self.known[op.results[0]] = Known("", shape, dtype)
        elif op.name == "linalg.fill":
            self._fill(op)
        elif op.name in VIEW_OPS:
            self._view(op)
        elif op.name == "linalg.generic":
            self._generic(op, group)
        elif op.name == "rtensor.operator" and group is None:
            self._region(op)
        elif op.name == "tensor.cast":
            self.known[op.results[0]] = self.lookup(op.operands[0])
        elif op.name != "rtensor.yield":
            is_named = op.name.startswith("linalg.")
            raise UnsupportedOpError(
                f"{op.name} cannot be planned (expected linalg.generic, rtensor.operator or a tensor view)",
                location=source_text(op),
                hint="run --t10-fuse first; it generalizes named linalg operations" if is_named else None,
            )

    def _constant(self, op: Any) -> None:
        value = op.results[0]
        shape, dtype = tensor_type(value)
        attribute = op.attributes["value"]
        text = constant_of(attribute)
        if text is not None:
            self.known[value] = Known("", shape, dtype, fill=text)
            return
        name = self.unique("constant")
        array = _dense(attribute, dtype, source_text(op))
        self.constants[name] = array
        self.weights.append(TensorValue(name, shape, dtype))
        self.known[value] = Known(name, shape, dtype, "weight")

    def _fill(self, op: Any) -> None:
        shape, dtype = tensor_type(op.results[0])
        text = constant_value(op.operands[0])
        if text is None:
            raise UnsupportedOpError("linalg.fill with a computed value", location=source_text(op))
        self.known[op.results[0]] = Known("", shape, dtype, fill=text)

    def _view(self, op: Any) -> None:
        sources = [
            self.lookup(operand) for operand in op.operands if isinstance(operand.type, ir.RankedTensorType)
        ]
        shape, dtype = tensor_type(op.results[0])
        if (
            all(source.fill for source in sources)
            and len({s.fill for s in sources}) == 1
            and op.name != "tensor.pad"
        ):
            self.known[op.results[0]] = Known("", shape, dtype, fill=sources[0].fill)
            return
        sources = [self._materialized(source) if source.fill else source for source in sources]
        if any(not source.name for source in sources):
            self.known[op.results[0]] = Known("", shape, dtype)
            return
        made = read_view(op, sources, self.unique)
        self.views.extend(made)
        role = "weight" if all(source.role == "weight" for source in sources) else "activation"
        self.known[op.results[0]] = Known(made[-1].name, shape, dtype, role)
        if made[-1].kind == "pad":
            self.paddings[made[-1].name] = Padding(sources[0], made[-1].low, made[-1].value)

    def _generic(self, op: Any, group: _Group | None) -> None:
        result = op.results[0] if len(op.results) == 1 else None
        if result is not None and (text := self._constant_body(op)) is not None:
            shape, dtype = tensor_type(result)
            self.known[result] = Known("", shape, dtype, fill=text)
            return
        if result is not None and is_pure_move(op):
            source = self.lookup(op.operands[0])
            if source.name and not (group is not None and group.end == op.operands[0]):
                made = move_as_views(op, source, self.unique)
                self.views.extend(made)
                shape, dtype = tensor_type(result)
                self.known[result] = Known(made[-1].name if made else source.name, shape, dtype, source.role)
                return
        if group is None:
            self._finish(start_chain(read_root(op, self.lookup)), op, result, op)
        else:
            self._grow(op, group)

    def _grow(self, op: Any, group: _Group) -> None:
        """Add a linalg operation to an operator: its root, or an elementwise step after it."""
        if group.chain is None:
            group.chain = start_chain(read_root(op, self.lookup))
        else:
            self.known[group.end] = Known(RUNNING, group.chain.shape, group.chain.dtype)
            after = read_root(op, self.lookup)
            numbers = tuple(i for i, operand in after.operands.items() if operand.name == RUNNING)
            if not numbers:
                raise UnsupportedOpError(
                    "operations of an operator must follow one another", location=source_text(op)
                )
            group.chain = extend_chain(group.chain, after, numbers)
            # Only the newest value of the chain can be read: an older one is not kept anywhere.
            del self.known[group.end]
        group.end = op.results[0]

    def _region(self, op: Any) -> None:
        """Read the region of an operator."""
        group = _Group()
        block = op.regions[0].blocks[0]
        for inner in block.operations:
            self._operation(inner.operation, group)
        if group.chain is None:
            raise UnsupportedOpError(f"{op.name} without a linalg operation", location=source_text(op))
        if list(block.operations)[-1].operation.operands[0] != group.end:
            raise UnsupportedOpError(
                f"{op.name} yields another value than that of its last linalg operation",
                location=source_text(op),
            )
        self._finish(group.chain, op, op.results[0], op)

    def _finish(self, chain: Chain, op: Any, result: Any, owner: Any) -> None:
        name = self.unique(
            _text(owner.attributes, OPERATOR_NAME) or location_name(owner.location) or "operator"
        )
        spec = finish_chain(
            chain,
            name=name,
            result=self.unique(f"{name}:0"),
            location=source_text(op),
            paddings=self.paddings,
        )
        self.operators.append(spec)
        self.operations[name] = owner
        self.known[result] = Known(spec.output.name, spec.output.shape, spec.output.dtype)

    def _constant_body(self, op: Any) -> str | None:
        """Return the constant a generic writes everywhere, None if its body computes."""
        terminator = list(op.regions[0].blocks[0].operations)[-1].operation
        if len(terminator.operands) != 1:
            return None
        owner = terminator.operands[0].owner
        if isinstance(owner, ir.Block):
            index = list(owner.arguments).index(terminator.operands[0])
            known = self.lookup(op.operands[index])
            return known.fill or None
        return constant_value(terminator.operands[0])

    def lookup(self, value: Any) -> Known:
        """Return what a value is; raises `UnsupportedOpError` for one that cannot be read."""
        known = self.known.get(value)
        if known is None:
            owner = value.owner
            raise UnsupportedOpError(
                f"a value of type {value.type} cannot be read here (expected a ranked tensor, and inside an operator "
                "a value from outside it or the result of the linalg operation before)",
                location=None if isinstance(owner, ir.Block) else source_text(owner.operation),
            )
        return known

    def _materialized(self, known: Known) -> Known:
        """Return a constant as a value: a pad of nothing around nothing has no source, so it is a small weight."""
        name = self.unique("constant")
        self.constants[name] = np.full((1,), parse_constant(known.fill), numpy_dtype(known.dtype))
        self.weights.append(TensorValue(name, (1,), known.dtype))
        shape = known.shape
        if shape == (1,):
            return Known(name, shape, known.dtype, "weight")
        view = View(self.unique("fill"), "broadcast", (name,), (*shape, 1), known.dtype, dims=(len(shape),))
        flat = View(self.unique("fill"), "reshape", (view.name,), shape, known.dtype)
        self.views.extend((view, flat))
        return Known(flat.name, shape, known.dtype, "weight")

    def unique(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        name, number = stem, 1
        while name in self.names:
            name, number = f"{stem}_{number}", number + 1
        self.names.add(name)
        return name


@contextmanager
def _at(op: Any) -> Generator[None]:
    """Give errors without a place the place of an operation."""
    try:
        yield
    except T10Error as error:
        error.location = error.location or source_text(op) or None
        raise


def _reachable(
    views: list[View], operators: list[OperatorSpec], outputs: tuple[GraphOutput, ...]
) -> tuple[View, ...]:
    """Return the views that some operator or output reads, directly or through others, in their order."""
    needed = {operand.name for op in operators for operand in op.operands} | {out.value for out in outputs}
    kept: list[View] = []
    for view in reversed(views):
        if view.name in needed:
            needed.update(view.sources)
            kept.append(view)
    return tuple(reversed(kept))


def _dense(attribute: Any, dtype: str, location: str) -> NDArray[Any]:
    try:
        values = elements(attribute, dtype)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UnsupportedOpError(
            f"constant of element type {dtype} cannot be read", location=location
        ) from error
    if values is None:
        raise UnsupportedOpError(
            "constants of this form cannot be read",
            location=location,
            hint="pass the tensor as a function argument",
        )
    return values


def _declared(attributes: Mapping[str, Any], dtype: str, what: str) -> str:
    """Return the type without sign that an argument or result is declared of, empty where it is none."""
    if TYPE not in attributes:
        return ""
    found = (
        str(attributes[TYPE].value) if isinstance(attributes[TYPE], ir.TypeAttr) else str(attributes[TYPE])
    )
    if found != f"u{dtype}":
        raise InputError(
            f"{what} is declared of type {found} (expected u{dtype}: the tensor's own without sign)"
        )
    return found


def _order(attribute: Any, rank: int) -> Order:
    """Return the order of dims in which an argument is stored; raises `InputError` unless it names every dim once."""
    found = attribute.maybe_downcast()
    order = tuple(found) if isinstance(found, ir.DenseI64ArrayAttr) else ()
    if sorted(order) != list(range(rank)):
        raise InputError(
            f"{ORDER} is {attribute}, expected array<i64: ...> that names each of {rank} dims once"
        )
    return order


def _split(attribute: Any, order: Order, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return which dim of the host's is split in blocks, and their size; raises `InputError` if that cannot be."""
    found = attribute.maybe_downcast()
    split = list(found) if isinstance(found, ir.DenseI64ArrayAttr) else list[int]()
    is_pair = len(split) == 2 and 0 <= split[0] < len(order) - 1
    if not is_pair or shape[order.index(split[0] + 1)] != split[1]:
        raise InputError(
            f"{SPLIT} is {attribute}, expected array<i64: dim, size> of a dim that {ORDER} splits"
        )
    return tuple(split)


def _padding(attribute: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many zeros end each of the host's dims; raises `InputError` unless all dims begin with something."""
    found = attribute.maybe_downcast()
    padding = tuple(found) if isinstance(found, ir.DenseI64ArrayAttr) else ()
    if len(padding) != len(shape) or not all(0 <= more < n for more, n in zip(padding, shape, strict=True)):
        raise InputError(
            f"{PADDED} is {attribute}, expected array<i64: ...> of zeros that are part of {list(shape)}"
        )
    return padding


def _parts(attribute: Any, rank: int) -> Parts:
    """Return what a weight is made of; raises `InputError` unless it has an axis and at least two names."""
    table = attribute.maybe_downcast()
    found: dict[str, Any] = {}
    if isinstance(table, ir.DictAttr):
        found = {each.name: each.attr.maybe_downcast() for each in table}
    axis: Any = found.get("axis")
    names: Any = found.get("names")
    listed = [each.maybe_downcast() for each in names] if isinstance(names, ir.ArrayAttr) else []
    texts = tuple(each.value for each in listed if isinstance(each, ir.StringAttr))
    number = int(axis.value) if isinstance(axis, ir.IntegerAttr) else -1
    if not 0 <= number < rank or len(texts) < 2 or len(texts) < len(listed):
        raise InputError(
            f'{PARTS} is {attribute}, expected {{axis = 0 to {rank - 1}, names = ["...", "..."]}}'
        )
    return Parts(number, texts)


def _text(attributes: Any, key: str) -> str:
    """Return a string attribute, empty where there is none; raises `InputError` for another attribute."""
    if key not in attributes:
        return ""
    found = attributes[key].maybe_downcast()
    if not isinstance(found, ir.StringAttr):
        raise InputError(f"{key} is {found}, expected a string")
    return found.value
