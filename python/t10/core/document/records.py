"""The form of plan.json as validated records; its published JSON Schema is generated from them.

What several places share is stored once: `functions`, `plans`, `fronts` and `layouts` are tables, and every field named
`body`, `plan`, `pareto`, `layout` ... is a row number of one of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from t10.core.expression import AxisKind, Combine, OperatorKind, Role
from t10.core.graph import ViewKind
from t10.core.plan import Reduce
from t10.core.schedule import ArrivalKind, LayoutKind, Phase
from t10.core.trust.schema import Count, Integer, Size

FORMAT: Literal["t10-plan"] = "t10-plan"
VERSION: Literal[2] = 2
MODELLED = "Cycles are modelled from published figures of the chip; none was measured on hardware."

Row = Annotated[Size, Field(description="row number of the table the field's description names")]
PerAxis = Annotated[tuple[Integer, ...], Field(description="one number per axis, in the order of `axes`")]
ByAxis = Annotated[
    dict[str, Integer], Field(description="numbers by axis name; an axis left out has the default")
]


class Record(BaseModel):
    """A JSON object: immutable, no unknown keys, no conversions between JSON types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ScalarOpRecord(Record):
    """One scalar operation: an MLIR operation name, or `const` or `index` with their value in `attribute`."""

    opcode: str
    operands: Annotated[tuple[Size, ...], Field(description="inputs are numbered first, then operations")]
    dtype: str
    attribute: str = ""


class FunctionRecord(Record):
    """A straight-line scalar function that returns value number `result`."""

    n_inputs: Size
    ops: tuple[ScalarOpRecord, ...] = ()
    result: Size


class PhaseRecord(Record):
    """A digit of a core's position: `stride * ((sigma // divisor) % modulus)`, sigma counts along `sharer_axes`."""

    sharer_axes: Annotated[tuple[Size, ...], Field(description="axis numbers, slowest first")]
    divisor: Count
    modulus: Count
    stride: Size
    is_folded: Annotated[bool, Field(description="whether digits count 0, 2, 4 ... 5, 3, 1")] = False


class PlanRecord(Record):
    """A compute-shift plan; axes are numbers into the `axes` of the operators that use it."""

    f_op: PerAxis
    lengths: Annotated[PerAxis, Field(description="elements of one part per axis, temporal padding included")]
    ft: Annotated[tuple[PerAxis, ...], Field(description="one row per input in order, then the output")]
    rp: Annotated[PerAxis, Field(description="elements per shift, 0 where nothing rotates")]
    steps: Annotated[PerAxis, Field(description="sub-tasks along the axis")]
    loop_order: Annotated[tuple[Size, ...], Field(description="rotating axes, outermost first")]
    phases: tuple[tuple[PhaseRecord, ...], ...]
    core_order: Annotated[
        PerAxis, Field(description="axes slowest first: core = row-major number of coordinates")
    ]
    reduce: Reduce = "none"


class CyclesRecord(Record):
    """Modelled elapsed cycles by kind."""

    compute: Size = 0
    shift: Size = 0
    reduce: Size = 0
    relayout: Size = 0
    setup: Size = 0
    wait: Size = 0
    total: Size


class CostedRecord(Record):
    """A plan and its price."""

    plan: Annotated[Row, Field(description="row of `plans`")]
    cycles: CyclesRecord
    weight_bytes: Annotated[Size, Field(description="bytes per core of weight partitions")]
    active_bytes: Annotated[Size, Field(description="bytes per core of everything the operator holds")]


class DimRecord(Record):
    """The index of one dim of a tensor: the sum over axes of coefficient times axis, plus offset."""

    terms: Annotated[dict[str, Count], Field(description="coefficient by axis name")]
    offset: Integer = 0


class TensorRecord(Record):
    """A tensor of an operator and how the active plan cuts it."""

    name: str
    use: Literal["input", "epilogue", "output"]
    role: Role
    dtype: str
    shape: tuple[Size, ...]
    dims: tuple[DimRecord, ...]
    pad_value: Annotated[str, Field(description="what indices outside the shape read; empty: 0")] = ""
    fs: Annotated[tuple[Count, ...], Field(description="spatial pieces per dim")]
    ft: Annotated[ByAxis, Field(description="temporal pieces by axis; 1 where left out")]
    sharers: Annotated[Count, Field(description="P_T: cores that need the same sub-tensor")]
    ring_length: Annotated[Count, Field(description="cores of one rotation ring: the product of ft")]
    rings: Annotated[Count, Field(description="rotation rings on the whole chip")]
    replicas: Annotated[Count, Field(description="rings, hence copies, per sub-tensor")]
    partition: Annotated[tuple[Count, ...], Field(description="extents held by one core per dim, with halo")]
    bytes_per_core: Size
    idle_layout: Annotated[Row | None, Field(description="row of `layouts`: a weight's idle layout")] = None
    idle_bytes_per_core: Annotated[Size | None, Field(description="bytes of a weight's idle layout")] = None


class AxisRecord(Record):
    """A loop of the tensor expression."""

    name: str
    extent: Count
    kind: AxisKind
    is_splittable: bool = True


class SelectorRecord(Record):
    """Only the point of `axis` that equals the index function counts (a gather)."""

    axis: str
    index: Annotated[Row, Field(description="row of `functions`")]


class ActiveRecord(CostedRecord):
    """The plan an operator executes, axes by name."""

    n_cores: Count
    n_sub_tasks: Count
    f_op: ByAxis
    lengths: ByAxis
    rp: Annotated[ByAxis, Field(description="elements per shift; 0 where left out")]
    steps: Annotated[ByAxis, Field(description="sub-tasks per axis; 1 where left out")]
    loop_order: Annotated[tuple[str, ...], Field(description="rotating axes, outermost first")]
    reduce: Reduce = "none"


class IdleRecord(Record):
    """What the operator's weights take while other operators run."""

    bytes_per_core: Size
    is_active: Annotated[
        bool, Field(description="every weight is used from where it lies idle: nothing to set up")
    ]


class ArrivalRecord(Record):
    """How an operand gets to its cores before the operator runs."""

    operand: Size
    kind: ArrivalKind
    buffer: str
    received_bytes: Annotated[Size, Field(description="most any core receives")] = 0
    sent_bytes: Annotated[Size, Field(description="most any core sends")] = 0
    fragments: Size = 0
    cycles: Size = 0


class OperatorRecord(Record):
    """One operator: its tensor expression, the plan it executes, where its weights lie idle, and its alternatives."""

    name: str
    kind: OperatorKind
    location: str = ""
    axes: tuple[AxisRecord, ...]
    tensors: tuple[TensorRecord, ...]
    combine: Combine
    body: Annotated[Row, Field(description="row of `functions`")]
    acc_dtype: str
    epilogue: Annotated[Row | None, Field(description="row of `functions`")] = None
    selectors: tuple[SelectorRecord, ...] = ()
    active: ActiveRecord
    idle: IdleRecord
    arrivals: tuple[ArrivalRecord, ...]
    output_layout: Annotated[Row, Field(description="row of `layouts`")]
    pareto: Annotated[
        Row,
        Field(description="row of `fronts`: time x memory front, fastest last, costs without bank conflicts"),
    ]


Declared = Annotated[
    Literal["", "ui8", "ui16", "ui32", "ui64"],
    Field(description="type of the host's elements where it has no sign"),
]


class PartsRecord(Record):
    """Weights that stand one behind another along an axis."""

    axis: Size
    names: tuple[str, ...]


class ValueRecord(Record):
    """A tensor from outside."""

    name: str
    shape: tuple[Size, ...]
    dtype: str
    declared: Declared = ""
    order: Annotated[
        tuple[int, ...],
        Field(description="of every dim, the number that it has in what the host gives, where those differ"),
    ] = ()
    parts: Annotated[
        PartsRecord | None,
        Field(description="what the host makes a weight of, where it is several of the model's"),
    ] = None
    split: Annotated[
        tuple[int, ...],
        Field(
            description="a dim of what the host gives and a size: `order` numbers its blocks and what is in one"
        ),
    ] = ()
    padding: Annotated[
        tuple[int, ...],
        Field(description="of every dim of what the host gives, how many zeros it appends before all else"),
    ] = ()


class ViewRecord(Record):
    """A value that renames elements of others; parameters by kind as in the page on plan.json."""

    name: str
    kind: ViewKind
    sources: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str
    offsets: tuple[Integer, ...] = ()
    strides: tuple[Integer, ...] = ()
    permutation: tuple[Integer, ...] = ()
    dims: tuple[Integer, ...] = ()
    axis: Integer = 0
    low: tuple[Integer, ...] = ()
    value: str = ""


class OutputRecord(Record):
    """A result of the model: its public name and the value it is."""

    name: str
    value: str
    declared: Declared = ""


class LayoutRecord(Record):
    """Where the elements of a value lie, the same way on every core."""

    kind: LayoutKind
    value: str
    n_cores: Count
    dtype: str
    operator: str = ""
    operand: Size = 0
    plan: Annotated[Row | None, Field(description="row of `plans`")] = None
    scatter: Count = 1


class BufferRecord(Record):
    """Bytes of every core from phase `first_phase` of operator step `first` to the end of `last_phase` of `last`."""

    name: str
    address_bytes: Size
    size_bytes: Size
    first: Integer
    last: Integer
    first_phase: Phase = "arrive"
    last_phase: Phase = "finish"


class FetchRecord(Record):
    """The weights of an operator, brought from off-chip memory."""

    operator: str
    first: Annotated[Size, Field(description="operator step from which on their buffers live")]


class OptimalityRecord(Record):
    """How good the plan of the whole model is known to be, in modelled cycles."""

    method: Annotated[
        Literal["exact", "fetched", "greedy", "pinned"],
        Field(
            description="chosen together with a bound, with fetches from off-chip memory, by Algorithm 1, or by the "
            "user, who left no choice of plans"
        ),
    ]
    cycles: Size
    bound_cycles: Annotated[Size, Field(description="no choice considered takes fewer; 0: no bound")] = 0
    literal_cycles: Annotated[
        Size,
        Field(
            description="of Algorithm 1, 'fastest' by execution, before placement; 0: none fits, or not tried"
        ),
    ] = 0
    aware_cycles: Annotated[
        Size,
        Field(
            description="of Algorithm 1, 'fastest' with set-up, before placement; 0: none fits, or not tried"
        ),
    ] = 0
    n_choices: Annotated[
        Count,
        Field(
            description="choices of the whole model that were placed until one fitted with few bank conflicts"
        ),
    ] = 1
    n_states: Annotated[
        Size, Field(description="plans and layouts of all operators that the bound ranges over")
    ] = 0
    priced_cycles: Annotated[
        Size, Field(description="of the plan before placement, to compare with Algorithm 1's; 0: not known")
    ] = 0


class PlanDocument(Record):
    """A model, planned for a chip: what `t10 compile` found, as a projection of the module that `t10 run` executes."""

    format: Literal["t10-plan"]
    version: Annotated[Literal[2], Field(description="raised when a reader of the old form would go wrong")]
    generator: str
    modelled: Annotated[Literal[True], Field(description=MODELLED)]
    chip: str
    model: str
    capacity_bytes: Annotated[Size, Field(description="bytes of memory of one core")]
    reserved_bytes: Annotated[
        Size, Field(description="bytes at the bottom of every core for its program")
    ] = 0
    peak_bytes: Annotated[
        Size, Field(description="most bytes of a core in use at once, reserved ones included")
    ]
    cycles: Annotated[CyclesRecord, Field(description="sum over the operators")]
    optimality: Annotated[
        OptimalityRecord | None, Field(description="how far from the optimum, where that was computed")
    ] = None
    inputs: tuple[ValueRecord, ...]
    weights: tuple[ValueRecord, ...]
    outputs: tuple[OutputRecord, ...]
    operators: tuple[OperatorRecord, ...]
    views: tuple[ViewRecord, ...]
    input_layouts: Annotated[tuple[Row, ...], Field(description="rows of `layouts`")]
    weight_layouts: Annotated[tuple[Row, ...], Field(description="rows of `layouts`: idle layouts")]
    buffers: tuple[BufferRecord, ...]
    fetches: Annotated[
        tuple[FetchRecord, ...], Field(description="from off-chip memory, in the order they are made")
    ] = ()
    layouts: tuple[LayoutRecord, ...]
    functions: tuple[FunctionRecord, ...]
    fronts: tuple[tuple[CostedRecord, ...], ...]
    plans: tuple[PlanRecord, ...]


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of plan.json."""
    schema = PlanDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "plan.json of T10", **schema}
