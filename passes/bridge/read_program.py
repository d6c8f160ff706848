"""A module at the compute-shift level, read one to one: the model and the program of every operator.

Expressions come from the linalg operations of sub-tasks, plans from the types of what they read, programs from the
operations of the regions, addresses from `rtensor.place`. Nothing is taken from anywhere else.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.laid_out import seen_operand, with_operand
from t10.core.legal import PlanRows, breaches, expression_of
from t10.core.neutral import neutral_value
from t10.core.operator_body import loop_statements
from t10.core.overlap import second_name
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, final_positions
from t10.core.plan import Reduce as ReduceKind
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement
from t10.core.scalar import constant_text
from t10.core.schedule import Arrival, ArrivalKind, Fetch, ScheduledOperator, ValueLayout
from t10.dialect.layout import LinearLayout
from t10.dialect.layout_attr import layout_of
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.dialect.region import MOVES, ComputeShiftRegion, RootOperand, is_expanded, read_region
from t10.errors import InputError, VerifyError
from t10.passes.bridge.assemble import Chain, Padding, extend_chain, finish_chain, start_chain
from t10.passes.bridge.fetches import fetches_of
from t10.passes.bridge.layouts import accumulator_layout, rest_layout
from t10.passes.bridge.root import Known, Root, read_root, tensor_type
from t10.passes.bridge.tree import Apply, Constant, Index, Scalar
from t10.passes.bridge.views import is_pure_move
from t10.passes.read_graph import NAME, GraphReader, ReadModule, function_of
from t10.plan.memory.buffers import has_accumulator, last_moments

RUNNING = "\0running"
IN_PLACE = {"rtensor.resident", "rtensor.operator"}


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """What a module at the compute-shift level says.

    `owners` are the operations that own memory, by the name of their buffer (see `core.schedule.Buffer`): two where an
    epilogue replaces what is accumulated in its place.
    """

    model: ReadModule
    operators: tuple[ScheduledOperator, ...]
    weight_layouts: tuple[ValueLayout, ...]
    input_layouts: tuple[ValueLayout, ...]
    owners: dict[str, tuple[Any, ...]]
    fetches: tuple[Fetch, ...] = ()

    @property
    def graph(self) -> Graph:
        """Return the model."""
        return self.model.graph


def read_program(module: Any) -> ReadProgram:
    """Return what a module at the compute-shift level says.

    Raises `VerifyError` where operations and types do not fit together, naming the operator and its place.
    """
    return _ProgramReader(function_of(module)).program()


@dataclass(frozen=True, slots=True)
class _Resident:
    """Where a value from outside rests; `buffer` is the name of its memory."""

    op: Any
    buffer: str


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor that an operator reads: what it is, and how it arrives in which buffer."""

    known: Known
    kind: ArrivalKind
    buffer: str
    padding: Padding | None


@dataclass
class _ProgramReader(GraphReader):
    """Reads a function; `buffers` are those in which values lie, by name of the value."""

    residents: dict[str, _Resident] = field(default_factory=dict[str, _Resident])
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    readers: dict[str, list[tuple[OperatorSpec, OperatorPlan, int]]] = field(
        default_factory=dict[str, list[tuple[OperatorSpec, OperatorPlan, int]]]
    )
    scheduled: list[ScheduledOperator] = field(default_factory=list[ScheduledOperator])
    owners: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])

    def program(self) -> ReadProgram:
        """Return all that the function says."""
        model = self.read()
        weights = {value.name for value in model.graph.weights}
        is_read = last_moments(model.graph, self.scheduled)
        for name, each in self.residents.items():
            if name not in is_read:
                with _located(each.op, ""):
                    raise Invalid(f"{name} rests, but nothing reads it")
        for scheduled, spec in zip(self.scheduled, model.graph.operators, strict=True):
            for number, operand in enumerate(spec.operands):
                for source in model.graph.sources_of(operand.name):
                    reader = spec, scheduled.active.plan, number
                    self.readers.setdefault(source, []).append(reader)
        layouts = {name: self._rest_layout(model.graph, name, each) for name, each in self.residents.items()}
        return ReadProgram(
            model,
            tuple(self.scheduled),
            tuple(layouts[value.name] for value in model.graph.weights if value.name in layouts),
            tuple(layout for name, layout in layouts.items() if name not in weights),
            self.owners,
            fetches_of(model.graph, [self.operations[spec.name] for spec in model.graph.operators]),
        )

    def read_operation(self, op: Any) -> None:
        """Read one operation of the function."""
        if op.name == "rtensor.resident":
            with _located(op, ""):
                self._resident(op)
        elif is_expanded(op):
            with _located(op, _text(op, "op_name")):
                self._operator(op)
        elif op.name == "rtensor.operator" or (op.name == "linalg.generic" and "op_name" in op.attributes):
            raise InputError(
                "is not expanded, but other operators are",
                operator=_text(op, "op_name"),
                location=source_text(op),
                hint="run --t10-expand on the whole module",
            )
        else:
            if op.name == "linalg.generic" and is_pure_move(op):
                with _located(op, ""):
                    _check_destination(op)
            super().read_operation(op)

    def _finish(self, chain: Chain, op: Any, result: Any, owner: Any) -> None:
        """Refuse what computes outside the operators at the compute-shift level."""
        raise InputError(
            f"{op.name} computes, but is no part of an operator at the compute-shift level",
            location=source_text(op),
            hint="run --t10-expand on the whole module",
        )

    def _resident(self, op: Any) -> None:
        """Read where a value from outside rests."""
        known = self.lookup(op.operands[0])
        name = _text(op, NAME) or self._unshaped(op.operands[0])
        if name in self.residents:
            raise Invalid(f"{name} rests at two places")
        prefix = "idle" if known.role == "weight" or known.fill else "input"
        self.residents[name] = _Resident(op, f"{prefix}:{name}")
        self.buffers[name] = f"{prefix}:{name}"
        self.owners[f"{prefix}:{name}"] = (op,)
        self.known[op.results[0]] = known

    def _unshaped(self, value: Any) -> str:
        """Return the name of the value from outside that a value is, perhaps reshaped."""
        while not isinstance(value.owner, ir.Block):
            op = value.owner.operation
            if op.name not in ("tensor.expand_shape", "tensor.collapse_shape", *IN_PLACE):
                break
            if op.name == "rtensor.operator":
                break
            value = op.operands[0]
        return self.lookup(value).name

    def _operator(self, op: Any) -> None:
        """Read one operator at the compute-shift level."""
        region = read_region(op)
        tensors = self._tensors(op, region)
        spec, numbers = self._expression(op, region, tensors)
        arrived = [tensors[number] for number in numbers]
        reduce: ReduceKind = "none"
        if region.reduced is not None:
            reduce = "all" if region.reduced.scatter == 1 else "scatter"
        ft = (*(read.layout.ft for read in region.reads), region.accumulated.ft)
        plan = region.grid.plan(ft, reduce)
        self._check(spec, plan, region)
        arrivals = self._arrivals(spec, region, arrived)
        body = _body(spec, plan, region, arrivals, [*range(len(region.reads))])
        _check_rests(spec, plan, region, arrivals)
        layout = ValueLayout(
            "operand", spec.output.name, plan.n_cores, spec.output.dtype, spec.name, len(spec.operands), plan,
            region.output.scatter,
        )  # fmt: skip
        self.operators.append(spec)
        self.operations[spec.name] = op
        self.known[op.results[0]] = Known(spec.output.name, spec.output.shape, spec.output.dtype)
        self.buffers[spec.output.name] = f"value:{spec.output.name}"
        self.owners[second_name(spec.name)] = (op,)
        memory = (region.result,)
        if has_accumulator(spec, plan):
            self.owners[f"accumulator:{spec.name}"] = (region.accumulator,)
        elif region.accumulator != region.result:
            memory = (region.accumulator, region.result)
        self.owners[f"value:{spec.output.name}"] = memory
        self.scheduled.append(
            ScheduledOperator(spec.name, CostedPlan(plan, Cycles(), 0, 0), arrivals, layout, body)
        )

    def _tensors(self, op: Any, region: ComputeShiftRegion) -> dict[int, _Tensor]:
        """Return what the sub-tasks read, numbered: inputs, then epilogue inputs."""
        moves = {move.results[0]: move for move in region.moves}
        reads: tuple[RootOperand, ...] = (*region.reads, *region.epilogue_reads)
        unread = [move.name for value, move in moves.items() if all(read.origin != value for read in reads)]
        if unread:
            raise Invalid(f"{unread[0]} brings a tensor that no sub-task reads")
        found: dict[int, _Tensor] = {}
        for number, read in enumerate(reads):
            move = moves.get(read.origin)
            source = read.origin if move is None else move.operands[0]
            padding = self._padding(source)
            known = self.lookup(source) if padding is None else padding.source
            if not known.name:
                raise Invalid("a sub-task reads a tensor that nothing has written")
            temporary = replace(known, name=f"\0{number}")
            if padding is not None:
                outer = self.lookup(source)
                padding = Padding(temporary, padding.low, padding.value)
                temporary = replace(temporary, name=f"\0{number}", shape=outer.shape)
            kind: ArrivalKind = "in_place" if move is None else MOVES[move.name]
            self._check_lies(source)
            if move is None or kind == "in_place":
                buffer = self.buffers.get(self._unshaped(source), "")
                if not buffer:
                    raise Invalid(f"reads {known.name} where it lies, but it lies nowhere")
            else:
                buffer = ""
            if kind == "setup" and known.role != "weight":
                raise Invalid(f"rtensor.setup of {known.name}, which is no weight")
            if kind == "relayout" and known.role == "weight":
                raise Invalid(f"rtensor.relayout of the weight {known.name}, expected rtensor.setup")
            found[number] = _Tensor(temporary, kind, buffer, padding)
            self._names[number] = known.name
            self._moves[number] = move
        return found

    _names: dict[int, str] = field(default_factory=dict[int, str])
    _moves: dict[int, Any] = field(default_factory=dict[int, Any])

    def _check_lies(self, value: Any) -> None:
        """Check that what a value is a view of lies on cores, or is a constant that lies nowhere."""
        pending = [value]
        while pending:
            value = pending.pop()
            if layout_of(value.type) is None:
                if isinstance(value.owner, ir.Block):
                    name = self.lookup(value).name
                    if name in self.residents and self.residents[name].op.operands[0] != value:
                        # It rests as another operator reads it, reshaped.
                        continue
                    raise Invalid(f"reads {name}, which lies on no core: rtensor.resident is missing")
                pending.extend(each for each in value.owner.operation.operands if each in self.known)

    def _padding(self, source: Any) -> Padding | None:
        """Return how a value is padded, None if it is not."""
        if isinstance(source.owner, ir.Block) or source.owner.operation.name != "tensor.pad":
            return None
        return self.paddings.get(self.lookup(source).name)

    def _expression(
        self, op: Any, region: ComputeShiftRegion, tensors: dict[int, _Tensor]
    ) -> tuple[OperatorSpec, list[int]]:
        """Return the operator's expression, and which tensor each of its operands is."""
        by_value = {read.value: tensors[number].known for number, read in enumerate(region.reads)}
        accumulator = region.root.operands[len(region.root.operands) - 1]
        shape, dtype = tensor_type(accumulator)
        fill = ""
        if region.accumulator.name == "rtensor.fill":
            fill = constant_text(neutral_value(region.accumulator.attributes["combine"].value, dtype))
        by_value[accumulator] = Known("", shape, dtype, fill=fill)
        root = read_root(region.root, lambda value: by_value.get(value) or _shape_only(value), in_order=True)
        if _text(op, "kind") == "gather":
            root = _selecting(root, fill)
        chain = start_chain(root)
        if region.epilogue is not None:
            first = len(region.reads)
            others = {read.value: tensors[first + i].known for i, read in enumerate(region.epilogue_reads)}
            running = Known(RUNNING, chain.shape, chain.dtype)
            outs = region.epilogue.operands[len(region.epilogue.operands) - 1]
            others[outs] = Known("", *tensor_type(outs))
            after = read_root(region.epilogue, lambda value: others.get(value, running), in_order=True)
            numbers = tuple(i for i, operand in after.operands.items() if operand.name == RUNNING)
            if not numbers:
                raise Invalid("the epilogue makes its result without what is accumulated")
            chain = extend_chain(chain, after, numbers)
        paddings = {t.known.name: t.padding for t in tensors.values() if t.padding is not None}
        name = self.unique(_text(op, "op_name"))
        spec = finish_chain(
            chain, name=name, result=self.unique(f"{name}:0"), location=source_text(op), paddings=paddings
        )
        if spec.kind != _text(op, "kind"):
            raise Invalid(f'kind is "{_text(op, "kind")}", but the root is a {spec.kind}')
        found = [int(operand.name[1:]) for operand in spec.operands]
        if found != sorted(tensors):
            raise Invalid("arrivals bring tensors that the expression does not read, or in another order")
        named = [replace(o, name=self._names[n]) for o, n in zip(spec.operands, found, strict=True)]
        n_inputs = len(spec.inputs)
        spec = replace(spec, inputs=tuple(named[:n_inputs]), epilogue_inputs=tuple(named[n_inputs:]))
        return spec, found

    def _check(self, spec: OperatorSpec, plan: OperatorPlan, region: ComputeShiftRegion) -> None:
        """Check that the plan is legal, and that what is accumulated is what the root combines."""
        breach = next(breaches(PlanRows.of(plan), expression_of(spec)), None)
        if breach is not None:
            raise Invalid(str(breach))
        combine = "none"
        if region.accumulator.name == "rtensor.fill":
            combine = region.accumulator.attributes["combine"].value
        if combine != spec.combine:
            raise Invalid(f"accumulators start for {combine}, but the root combines by {spec.combine}")
        expected = accumulator_layout(spec, plan)
        if region.accumulated != expected:
            raise Invalid(
                f'accumulators are partial = "{region.accumulated.partial}", expected "{expected.partial}"'
            )

    def _arrivals(
        self, spec: OperatorSpec, region: ComputeShiftRegion, tensors: list[_Tensor]
    ) -> tuple[Arrival, ...]:
        arrivals: list[Arrival] = []
        for number, tensor in enumerate(tensors):
            buffer = tensor.buffer
            if tensor.kind != "in_place":
                buffer = f"operand:{spec.name}:{number}"
                self.owners[buffer] = (self._moves[number],)
            arrivals.append(Arrival(number, tensor.kind, buffer))
        return tuple(arrivals)

    def _rest_layout(self, graph: Graph, name: str, resident: _Resident) -> ValueLayout:
        """Return the layout in which a value from outside rests: linear, or as an operator reads it."""
        with _located(resident.op, ""):
            shape, dtype = tensor_type(resident.op.results[0])
            found = layout_of(resident.op.results[0].type)
            if isinstance(found, LinearLayout):
                return ValueLayout("linear", name, found.n_cores, dtype)
            assert found is not None
            for spec, plan, number in self.readers.get(name, ()):
                seen = seen_operand(graph, spec.operands[number], name)
                if seen is None or seen.shape != shape:
                    continue
                # Without `scatter`, which is of one reader: others may hold fewer copies of a window.
                laid_out = rest_layout(with_operand(spec, number, seen), plan, number)
                if laid_out == replace(found, scatter=1):
                    scatter = found.scatter
                    return ValueLayout("operand", name, plan.n_cores, dtype, spec.name, number, plan, scatter)
            raise Invalid(f"{name} rests in a layout in which no operator reads it")


def _check_destination(op: Any) -> None:
    """Check that a move says nothing about what lay where it writes, which it does not read."""
    into = op.operands[1].owner
    if isinstance(into, ir.Block) or into.operation.name != "tensor.empty":
        raise Invalid("a move writes into something else than a tensor.empty")


def _body(
    spec: OperatorSpec,
    plan: OperatorPlan,
    region: ComputeShiftRegion,
    arrivals: tuple[Arrival, ...],
    inputs: list[int],
) -> tuple[Statement, ...]:
    """Return the program that the region's operations are."""
    body: list[Statement] = [Arrive(a.operand) for a in arrivals if a.kind != "in_place"]
    if region.accumulator.name == "rtensor.fill":
        body.append(Fill())
    rotating = tuple(
        tuple(sorted(shift.operand for shift in region.shifts if shift.axis == axis))
        for axis in range(len(plan.f_op))
    )
    body.extend(loop_statements(plan.loop_order, plan.steps, rotating))
    slot = {read.origin: number for number, read in enumerate(region.reads)}
    positions = list(final_positions(plan))
    for axis in plan.loop_order:
        moving = tuple(sorted(slot[each.origin] for each in region.home if each.axis == axis))
        if moving:
            body.append(Shift(moving, axis, tuple(positions), 0))
            positions[axis] = 0
    if region.reduced is not None:
        body.append(Reduce("all" if region.reduced.scatter == 1 else "scatter"))
    if region.result != region.accumulator:
        body.append(Epilogue())
    return tuple(body)


def _check_rests(
    spec: OperatorSpec, plan: OperatorPlan, region: ComputeShiftRegion, arrivals: tuple[Arrival, ...]
) -> None:
    """Check that weights that rotate where they rest end there, and nothing else does."""
    rests = {number for number, read in enumerate(region.reads) if read.origin in region.rests}
    expected = {
        a.operand
        for a in arrivals
        if a.operand < len(spec.inputs) and a.is_resident and max(plan.ft[a.operand]) > 1
    }
    if rests != expected:
        wrong = spec.inputs[min(rests ^ expected)].name
        raise Invalid(f"{wrong} rotates where it rests and is not brought home, or the other way round")


def _selecting(root: Root, neutral: str) -> Root:
    """Return a gather with its one-hot selections selected: `select(axis == index, value, neutral)`."""
    body, axes = root.body, list(root.axes)
    selected: list[tuple[int, Scalar]] = []
    while (found := _selection(body)) is not None:
        axis, index, body, other = found
        if not isinstance(other, Constant) or other.text != neutral:
            raise Invalid(
                f"a gather yields {other} elsewhere than at its index, expected the constant {neutral}"
            )
        if any(axis == before for before, _ in selected):
            raise Invalid(f"a gather selects twice along axis {axis}")
        axes[axis] = replace(axes[axis], name=f"v{len(selected)}")
        selected.append((axis, index))
    return replace(root, axes=tuple(axes), body=body, selected=tuple(selected))


def _selection(body: Scalar) -> tuple[int, Scalar, Scalar, Scalar] | None:
    """Return (axis, index, value, other) of a body that selects the point of an axis, None of any other."""
    match body:
        case Apply("arith.select", (Apply("arith.cmpi", (here, index), _, "eq"), value, other)):
            if isinstance(here, Apply) and here.opcode == "arith.index_cast":
                here = here.operands[0]
            return (here.form.terms[0].axis, index, value, other) if isinstance(here, Index) else None
        case _:
            return None


def _shape_only(value: Any) -> Known:
    """Return an operand that only gives loops their extent."""
    return Known("", *tensor_type(value))


def _text(op: Any, name: str) -> str:
    return str(op.attributes[name].value) if name in op.attributes else ""


@contextmanager
def _located(op: Any, operator: str) -> Generator[None]:
    """Turn `Invalid` into an error at an operation."""
    try:
        yield
    except Invalid as problem:
        raise VerifyError(str(problem), operator=operator or None, location=source_text(op) or None) from None
