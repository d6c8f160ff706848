"""`CustomCostModel`: somebody's own cost functions for some operators, laid over a model that answers the rest.

```python
from t10.cost import register_cost

def depthwise(spec, boxes):                # boxes: int64 (candidates, axes); returns cycles (candidates,)
    return 300 + boxes.prod(axis=1) / 3

register_cost(lambda spec: "depthwise" in spec.name, depthwise, name="depthwise")
```

T10 §4.3.1: the costs of special operators and of custom kernels are functions of their shapes that users give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from math import inf
from typing import Any, cast, get_args

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.costs import (
    FirstCosts,
    FusedCosts,
    GroupCosts,
    PartCosts,
    WindowCosts,
    crossing_cycles,
    links_of,
    overlaps,
    sees_shifts,
)
from t10.core.expression import AxisSizes, OperatorKind, OperatorSpec
from t10.core.links import Links
from t10.core.loads import Loads, MoveRates
from t10.core.movement import LoadCosts
from t10.core.placed_costs import PlacedCosts, StepLies
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.cost.counted import slots_and_runs
from t10.cost.model import ChunkCosts, CostModel, PlainForms, WholeCosts, least_costs
from t10.cost.overlap import waiting_cycles
from t10.cost.trace import Row, Table
from t10.errors import InputError, T10Error

SubTaskFunction = Callable[[OperatorSpec, Any], Any]
"""(spec, boxes of shape (n, axes)) -> cycles of one compute step, shape (n,)."""
EpilogueFunction = Callable[[OperatorSpec, Any], Any] | Callable[[OperatorSpec, Any, Any], Any]
"""(spec, accumulated elements of a core, and if wanted how many of them are a run; (n,) each) -> cycles, (n,)."""
Condition = OperatorKind | Callable[[OperatorSpec], bool]
"""A kind of operators, or a predicate of an operator."""

RUN_NAMES = ("run", "runs")
LARGEST_CYCLES = 2.0**52
"""Beyond this a double is not exact any more."""


@dataclass(frozen=True, slots=True)
class UserCost:
    """A cost function and the operators it is for.

    `function` prices compute steps and, if given, `epilogue` what follows them; without it the model underneath does.
    Fractions are rounded up. A `version` says that the numbers are those of this version, whatever process computes
    them; plans are kept in the plan cache only then.
    """

    name: str
    applies_to: Condition
    function: SubTaskFunction
    epilogue: EpilogueFunction | None = None
    version: str | None = None
    epilogue_takes_runs: bool = field(init=False, compare=False, default=False)

    def __post_init__(self) -> None:
        """Refuse what is no function and kinds that do not exist."""
        kinds = get_args(OperatorKind)
        if isinstance(self.applies_to, str) and self.applies_to not in kinds:
            raise InputError(
                f"cost function '{self.name}' is for operators of kind '{self.applies_to}', "
                f"expected one of {', '.join(kinds)}, or a predicate of an operator"
            )
        for given in (self.function, self.epilogue):
            if given is not None and not callable(given):
                raise InputError(f"cost function '{self.name}' is {given!r}, expected a function")
        if self.epilogue is not None:
            object.__setattr__(self, "epilogue_takes_runs", takes_runs(self.epilogue))

    def applies(self, spec: OperatorSpec) -> bool:
        """Return whether it prices an operator."""
        if isinstance(self.applies_to, str):
            return spec.kind == self.applies_to
        return bool(_called(self, spec, self.applies_to, spec))

    def sub_task_cycles(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of every row of `boxes`. Raises InputError where the function gives anything else."""
        return _cycles(self, spec, self.function, boxes)

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue, where `epilogue` is given."""
        shapes = (n_slots, runs) if self.epilogue_takes_runs else (n_slots,)
        return _cycles(self, spec, cast("EpilogueFunction", self.epilogue), *shapes)


@dataclass(frozen=True, slots=True)
class CustomCostModel(PlainForms):
    """A `CostModel` whose `costs` price the operators they apply to; the last that applies counts.

    Everything else is the model `base`'s. `label` is what reports call the model, if it is not base and costs; `remake`
    a function and arguments that make it again in another process, for functions that do not pickle.
    """

    base: CostModel
    costs: tuple[UserCost, ...]
    label: str = ""
    remake: tuple[Callable[..., CostModel], tuple[object, ...]] | None = field(default=None, compare=False)
    base_takes_runs: bool = field(init=False, compare=False, default=True)

    def __post_init__(self) -> None:
        """Find out whether the base, perhaps somebody's own, prices epilogues by their runs."""
        object.__setattr__(self, "base_takes_runs", takes_runs(self.base.epilogue_cycles_many))

    def __reduce__(self) -> tuple[Callable[..., CostModel], tuple[object, ...]]:
        return self.remake or (CustomCostModel, (self.base, self.costs, self.label))

    @property
    def name(self) -> str:
        """Return what reports call the model: the base and what is laid over it."""
        return self.label or "+".join((self.base.name, *(cost.name for cost in self.costs)))

    def fingerprint(self) -> str | None:
        """Return a text that differs whenever any number may differ; None where a function states no version."""
        base = self.base.fingerprint()
        if base is None or any(cost.version is None for cost in self.costs):
            return None
        return " ".join((base, *(f"{cost.name!r}={cost.version!r}" for cost in self.costs)))

    @property
    def least(self) -> CostModel:
        """Return the same functions laid over what bounds the base from below; itself where the base is quick."""
        base = least_costs(self.base)
        return self if base is self.base else CustomCostModel(base, self.costs, self.label)

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        own = self.own_cost(spec)
        return (
            self.base.sub_task_cycles_many(spec, boxes) if own is None else own.sub_task_cycles(spec, boxes)
        )

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate."""
        own = self.own_cost(spec)
        if spec.epilogue is not None and own is not None and own.epilogue is not None:
            return own.epilogue_cycles(spec, n_slots, runs)
        if self.base_takes_runs:
            return self.base.epilogue_cycles_many(spec, n_slots, runs)
        before_runs = cast("Callable[[OperatorSpec, Ints], Ints]", self.base.epilogue_cycles_many)
        return before_runs(spec, n_slots)

    def sees_windows(self, spec: OperatorSpec) -> bool:
        """Return whether the base, which steps are left to, says more of some; see `t10.cost.model.WholeCosts`."""
        is_base = isinstance(self.base, WholeCosts) and self.base.sees_windows(spec)
        return is_base and self.own_cost(spec) is None

    def whole_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of steps whose operands are as large as the box."""
        assert isinstance(self.base, WholeCosts)
        return self.base.whole_cycles_many(spec, boxes)

    def chunk_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.cost.model.ChunkCosts`."""
        is_base = self.base_takes_runs and not self._has_own_epilogue(spec)
        if isinstance(self.base, ChunkCosts) and is_base:
            return self.base.chunk_cycles_many(spec, n_slots, runs, n_members)
        return self.epilogue_cycles_many(spec, n_slots, runs)

    def _has_own_epilogue(self, spec: OperatorSpec) -> bool:
        own = self.own_cost(spec)
        return spec.epilogue is not None and own is not None and own.epilogue is not None

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        """Return the cycles of compute steps; see `t10.core.costs.WindowCosts`."""
        if isinstance(self.base, WindowCosts) and self.own_cost(spec) is None:
            return self.base.step_cycles_many(spec, boxes, windows, adds)
        return self.sub_task_cycles_many(spec, boxes)

    def part_cycles(
        self, spec: OperatorSpec, plan: OperatorPlan
    ) -> Mapping[AxisSizes, tuple[int, ...]] | None:
        """Return by loop positions the cycles of a sub-task's parts, where steps are left to the base."""
        if isinstance(self.base, PartCosts) and self.own_cost(spec) is None:
            return self.base.part_cycles(spec, plan)
        return None

    def takes_first(self, spec: OperatorSpec) -> bool:
        """Return whether sums begin with a bias where they can, where operators are left to the base."""
        return (
            isinstance(self.base, FirstCosts) and self.own_cost(spec) is None and self.base.takes_first(spec)
        )

    def fills(self, spec: OperatorSpec, plan: OperatorPlan) -> bool:
        """Return whether some core's accumulators are filled before the first step, where the base says."""
        return isinstance(self.base, PartCosts) and self.base.fills(spec, plan)

    def wrapped_end_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles of an epilogue that is cut where windows wrap, where epilogues are left to the base."""
        if isinstance(self.base, PartCosts) and not self._has_own_epilogue(spec):
            return self.base.wrapped_end_cycles(spec, plan)
        return None

    def fill_cycles_many(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        """Return the cycles in which a core fills so many accumulators, 0 where the base does not say."""
        if isinstance(self.base, WindowCosts):
            return self.base.fill_cycles_many(spec, n_slots)
        return np.zeros_like(n_slots)

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.core.costs.WindowCosts`."""
        if isinstance(self.base, WindowCosts) and not self._has_own_epilogue(spec):
            return self.base.end_cycles_many(spec, windows, n_members)
        return self.epilogue_cycles_many(spec, *slots_and_runs(spec, windows, n_members))

    def fused_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles that reductions take less because ends do their last additions, where the base says."""
        if isinstance(self.base, FusedCosts) and not self._has_own_epilogue(spec):
            return self.base.fused_cycles_many(spec, windows, n_members)
        return np.zeros_like(n_members)

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase; see `CostModel`."""
        return self.base.exchange_cycles(max_bytes, fragments, neighbour=neighbour)

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory."""
        return self.base.copy_cycles(n_bytes)

    def lying(self, lies: StepLies) -> CustomCostModel:
        """Return the model of steps whose operands lie so, where the base looks at that."""
        return replace(self, base=self.base.lying(lies)) if isinstance(self.base, PlacedCosts) else self

    @property
    def move_rates(self) -> MoveRates | None:
        """Return the rates at which loads are counted, None where the base model does not ask for loads."""
        return self.base.move_rates if isinstance(self.base, LoadCosts) else None

    def move_cycles(self, loads: Loads, *, is_joined: bool = False) -> int:
        """Return the cycles of a relayout or set-up with these loads, by a base model that has `move_rates`."""
        assert isinstance(self.base, LoadCosts)
        return self.base.move_cycles(loads, is_joined=is_joined)

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate."""
        return self.base.shift_cycles_many(n_bytes)

    @property
    def sees_shifts(self) -> bool:
        """Return whether the base model looks at what shifts move; see `t10.core.costs.ShiftCosts`."""
        return sees_shifts(self.base)

    def round_cycles(self, spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> tuple[int, ...]:
        """Return the cycles of a shift by round, by a base model that looks at it."""
        assert sees_shifts(self.base)
        return self.base.round_cycles(spec, plan, statement)

    def nest_shift_cycles(self, spec: OperatorSpec, plan: OperatorPlan, most: float = inf) -> int:
        """Return the cycles of all shifts of a plan's loops, by a base model that looks at them."""
        assert sees_shifts(self.base)
        if not self.overlaps:
            return self.base.nest_shift_cycles(spec, plan, most)
        return waiting_cycles(self, spec, plan, is_apart=False)

    def least_shift_cycles_many(self, spec: OperatorSpec, n_bytes: Ints) -> Ints:
        """Return the least cycles of shifts, by a base model that looks at them."""
        assert sees_shifts(self.base)
        return self.base.least_shift_cycles_many(spec, n_bytes)

    @property
    def overlaps(self) -> bool:
        """Return whether the base model hides shifts behind steps; see `t10.core.costs.OverlapCosts`."""
        return overlaps(self.base)

    @property
    def links(self) -> Links | None:
        """Return the links that the base model looks at; see `t10.core.costs.LinkCosts`."""
        return links_of(self.base)

    def crossing_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int:
        """Return what combining partial sums takes because parts pass links, by the base model."""
        return crossing_cycles(self.base, spec, plan)

    def reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate."""
        return self.base.reduce_cycles_many(spec, n_members, n_slots)

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate."""
        return self.base.all_reduce_cycles_many(spec, n_members, n_slots)

    def combine_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles in which a plan's cores combine partial sums, where the base looks at them."""
        return self.base.combine_cycles(spec, plan) if isinstance(self.base, GroupCosts) else None

    def own_cost(self, spec: OperatorSpec) -> UserCost | None:
        """Return the cost function that prices an operator, None where the model `base` does."""
        return next((cost for cost in reversed(self.costs) if cost.applies(spec)), None)


def takes_runs(function: Callable[..., Any]) -> bool:
    """Return whether an epilogue's cost function asks for runs: requires a third argument, or names one so.

    At first there was no such argument; functions and models of that form still count.
    """
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # no Python function
        return False
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    third = [p for p in parameters if p.kind in kinds][2:3]
    return any(p.default is Parameter.empty or p.name in RUN_NAMES for p in third)


def _called(cost: UserCost, spec: OperatorSpec, function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a user's function gives; an exception of its own becomes an `InputError` with its name."""
    try:
        with np.errstate(all="ignore"):  # what comes of it is checked, and said once
            return function(*arguments)
    except T10Error:
        raise
    except Exception as error:
        found = f"cost function '{cost.name}' failed: {type(error).__name__}: {error}"
        raise InputError(found, operator=spec.name, location=spec.location or None) from error


def _cycles(
    cost: UserCost, spec: OperatorSpec, function: Callable[..., Any], shapes: Ints, *others: Ints
) -> Ints:
    """Return a user's cycles as integers, having checked that they are cycles; `others` are further arguments."""
    if isinstance(
        shapes, (Row, Table)
    ):  # being traced: what it does matters, there are no numbers to check yet
        traced = function(spec, shapes, *others)
        if isinstance(traced, (Row, Table)):
            return np.ceil(traced).astype(np.int64)
        constant = np.asarray(traced)
        _check_cycles(cost, spec, constant, lambda row: f"every candidate ({row})")
        return np.ceil(constant).astype(np.int64)
    found = np.asarray(_called(cost, spec, function, spec, shapes, *others))
    if found.dtype.kind not in "iuf" or found.shape not in ((), (len(shapes),)):
        raise InputError(
            f"cost function '{cost.name}' gave {found.dtype} of shape {found.shape}, "
            f"expected a number of cycles per candidate, shape ({len(shapes)},)",
            operator=spec.name,
            location=spec.location or None,
        )
    cycles = np.broadcast_to(found, (len(shapes),)).astype(np.float64)
    _check_cycles(cost, spec, cycles, lambda row: _shown(row, shapes, *others))
    return np.ceil(cycles).astype(np.int64)


def _check_cycles(cost: UserCost, spec: OperatorSpec, cycles: Any, shown: Callable[[int], str]) -> None:
    """Raise `InputError` for what is no number of cycles; `shown` says what was asked for in a row."""
    numbers = np.atleast_1d(np.asarray(cycles, np.float64))
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= LARGEST_CYCLES)))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(
            f"cost function '{cost.name}' gave {numbers[first]} cycles for {shown(first)}, "
            "expected a finite number, 0 or more",
            operator=spec.name,
            location=spec.location or None,
        )


def _shown(row: int, shapes: Ints, *others: Ints) -> str:
    """Return what a function was asked in one row."""
    return " with a run of ".join(str(each[row].tolist()) for each in (shapes, *others))
