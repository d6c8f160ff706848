"""`Report`: the contents of report.json, and its published JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from t10.core.document.records import MODELLED, Count, CyclesRecord, Record, Size
from t10.core.expression import OperatorKind
from t10.core.partials import Kept
from t10.cost.registry import DEFAULT_COST_MODEL
from t10.report.rates import mean_rate

FORMAT: Literal["t10-report"] = "t10-report"
VERSION: Literal[1] = 1


class ChipSummary(Record):
    """The chip a model was compiled for."""

    name: str
    n_cores: Count
    clock_hz: float
    sram_bytes: Size


class Traffic(Record):
    """Bytes that the busiest core receives, by the reason they move."""

    relayout: Annotated[Size, Field(description="activations, from where their producer left them")] = 0
    setup: Annotated[Size, Field(description="weights, from their idle layout to the active one")] = 0
    shift: Annotated[Size, Field(description="partitions that rotate while the operator runs")] = 0
    reduce: Annotated[Size, Field(description="partial results of a split reduction axis")] = 0

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.relayout + self.setup + self.shift + self.reduce


class EnergyReport(Record):
    """Modelled joules, by purpose."""

    compute: Annotated[float, Field(description="elements that are computed")]
    exchange: Annotated[float, Field(description="bytes that cores take from others")]
    off_chip: Annotated[float, Field(description="bytes from off-chip memory")]
    static: Annotated[float, Field(description="the chip itself, while it runs")]

    @property
    def total(self) -> float:
        """Return all of them."""
        return self.compute + self.exchange + self.off_chip + self.static

    @classmethod
    def added(cls, parts: Iterable[EnergyReport | None]) -> EnergyReport | None:
        """Return the sum over operators; None where the chip file has no energies."""
        known = [each for each in parts if each is not None]
        kinds = cls.model_fields
        return cls(**{kind: sum(getattr(each, kind) for each in known) for kind in kinds}) if known else None


UTILISATION = (
    "part of the matrix engines' fastest rate that its products come to, over all of its time; null without products "
    "or engines"
)


class OperatorReport(Record):
    """One operator of the program."""

    name: str
    kind: OperatorKind
    location: str = ""
    same_as: Annotated[str, Field(description="first operator of the same kind: only names differ")] = ""
    n_points: Annotated[Size, Field(description="points of the iteration space")]
    n_cores: Annotated[Count, Field(description="cores that work")]
    n_sub_tasks: Annotated[Count, Field(description="compute steps of every core")]
    n_plans: Annotated[Size, Field(description="plans on its time x memory front")]
    cycles: Annotated[CyclesRecord, Field(description="modelled")]
    milliseconds: Annotated[float, Field(description="modelled")]
    share: Annotated[float, Field(description="of the whole model's modelled cycles")]
    active_bytes: Annotated[Size, Field(description="bytes per core the operator holds while it runs")]
    idle_bytes: Annotated[Size, Field(description="bytes per core its weights take while they are at rest")]
    peak_bytes: Annotated[Size, Field(description="bytes per core in use while it runs, everything counted")]
    traffic_bytes: Traffic
    energy: Annotated[
        EnergyReport | None, Field(description="modelled, where the chip file has energies")
    ] = None
    utilisation: Annotated[float | None, Field(ge=0, description=UTILISATION)] = None
    partials: Annotated[
        Kept,
        Field(description="type in which its sums of f16 are kept; empty: it has none"),
    ] = ""
    partials_error: Annotated[
        float,
        Field(description="bound on the error of sums in f16, as a part of |sum| + root of squares; 0: f32"),
    ] = 0.0

    @property
    def mean_rate(self) -> float:
        """Return GB/s into its busiest core, over all of its time."""
        return mean_rate(self.traffic_bytes.total, self.milliseconds / 1e3)


class OptimalityReport(Record):
    """How good the plan of the whole model is known to be; cycles are modelled."""

    method: Annotated[
        Literal["exact", "fetched", "greedy", "pinned"],
        Field(
            description="chosen together with a bound, with fetches from off-chip memory, by Algorithm 1, or by the "
            "user, who left no choice of plans"
        ),
    ]
    cycles: Annotated[Size, Field(description="of the plan")]
    bound_cycles: Annotated[Size, Field(description="no choice considered takes fewer; 0: no bound")]
    gap: Annotated[
        float | None, Field(description="part of the cycles that a better choice could save at most")
    ]
    literal_cycles: Annotated[
        Size,
        Field(
            description="of Algorithm 1, 'fastest' by execution, before placement; 0: none fits, or not tried"
        ),
    ]
    aware_cycles: Annotated[
        Size,
        Field(
            description="of Algorithm 1, 'fastest' with set-up, before placement; 0: none fits, or not tried"
        ),
    ]
    n_choices: Annotated[
        int,
        Field(
            ge=1,
            description="choices of the whole model that were placed until one fitted with few bank conflicts",
        ),
    ] = 1
    n_states: Annotated[
        Size, Field(description="plans and layouts of all operators that the bound ranges over")
    ] = 0
    priced_cycles: Annotated[
        Size, Field(description="of the plan before placement, to compare with Algorithm 1's; 0: not known")
    ] = 0


class Report(Record):
    """What a compiled model costs. `str()` of it is a table for the terminal."""

    format: Literal["t10-report"]
    version: Annotated[Literal[1], Field(description="raised when a reader of the old form would go wrong")]
    generator: str
    modelled: Annotated[Literal[True], Field(description=MODELLED)]
    statement: str = MODELLED
    model: str
    source: str = ""
    chip: ChipSummary
    cost_model: Annotated[str, Field(description="where cycles come from")] = DEFAULT_COST_MODEL
    optimality: Annotated[
        OptimalityReport | None,
        Field(description="how good the plan is known to be, where that was computed"),
    ] = None
    total_cycles: Annotated[Size, Field(description="modelled")]
    timed_cycles: Annotated[
        Size | None,
        Field(description="what the emitted program takes on the device simulator: a check of total_cycles"),
    ] = None
    n_timed_on_data: Annotated[
        Size,
        Field(description="operators whose code branches on data: timed_cycles are those of made-up values"),
    ] = 0
    total_milliseconds: Annotated[float, Field(description="modelled")]
    cycles: Annotated[CyclesRecord, Field(description="modelled, by kind")]
    utilisation: Annotated[float | None, Field(ge=0, description=UTILISATION)] = None
    peak_bytes: Annotated[
        Size, Field(description="most bytes of a core in use at once, reserved ones included")
    ]
    peak_operator: Annotated[str, Field(description="where that is")] = ""
    capacity_bytes: Size
    weight_bytes: Annotated[Size, Field(description="bytes of all weights of the model, once")]
    idle_bytes: Annotated[
        Size,
        Field(
            description="most bytes per core of weights at rest at once; those from off-chip memory rest from their "
            "fetch to their use"
        ),
    ]
    traffic_bytes: Annotated[Traffic, Field(description="sum over the operators")]
    energy: Annotated[EnergyReport | None, Field(description="sum over the operators, modelled")] = None
    planner_seconds: Annotated[
        dict[str, float], Field(description="wall time of the compiler, by stage, on the machine it ran on")
    ]
    operators: tuple[OperatorReport, ...]

    @property
    def mean_rate(self) -> float:
        """Return GB/s into the busiest core of every operator, over all of the time."""
        return mean_rate(self.traffic_bytes.total, self.total_milliseconds / 1e3)

    def __str__(self) -> str:
        """Return the summary and the table of operators as plain text."""
        from t10.report.table import report_text

        return report_text(self)


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of report.json."""
    schema = Report.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "report.json of T10",
        **schema,
    }
