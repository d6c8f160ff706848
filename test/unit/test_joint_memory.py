"""Less and less memory: what Algorithm 1 fits the exact way fits too, within a core, and never for fewer cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import pytest
from support import specs
from support.joint_graphs import gram_graph, joined_graph, residual_graph, squared_graph
from support.simulation import executed, random_values

from t10.chip import ChipSpec, load_chip
from t10.core.graph import Graph
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan
from t10.core.tile import ALIGNMENT_BYTES, OVERREAD_BYTES
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan import ForcedPartition, PlanOptions, plan_module
from t10.plan.context import context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.fronts.pinned import idle_levels
from t10.plan.greedy.algorithm1 import base_bytes, reconciled, tables_of
from t10.plan.joint.choose import JointChoice, JointPlanner
from t10.plan.joint.states import PLAIN, Breadth, states_of
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.options import Method
from t10.plan.schedule import as_placed, schedule_module, sum_of_cycles
from t10.plan.search.pareto import Front
from t10.plan.verify import verify_module

CHIP = load_chip("test-16")
BASE_BYTES = CHIP.reserved_bytes + CHIP.shift_buffer_bytes
NO_DATA_BYTES = BASE_BYTES + OVERREAD_BYTES
PERCENT = (100, 95, 70, 45, 25, 12, 2)
GRAPHS = (
    specs.mlp_graph(128, (256,) * 4),
    specs.mlp_graph(4, (192, 256, 128), "f32"),
    specs.layer_norm_graph(64, 96),
    specs.softmax_graph(64, 48),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
    residual_graph(),
    squared_graph(),
    gram_graph(),
    joined_graph(),
)


class _HighAtFirst(DataRoom):
    """A room in which the first plan ends too high, as where packing wastes memory."""

    n_placed = 0

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        placed = super().__call__(plan)
        type(self).n_placed += 1
        if self.n_placed > 1:
            return placed
        far = CHIP.data_end_bytes
        return replace(placed, buffers=tuple(replace(each, address_bytes=far) for each in placed.buffers))


def test_a_bound_that_is_proved_again_is_of_the_whole_room(monkeypatch: pytest.MonkeyPatch) -> None:
    best, closer, rooms, proved = JointPlanner.best, JointPlanner.closer_bound, list[int](), list[int]()

    def loosely(self: JointPlanner, room_bytes: int) -> JointChoice | None:
        rooms.append(room_bytes)
        found = best(self, room_bytes)
        return None if found is None else replace(found, bound_cycles=1)

    def noted(self: JointPlanner, room_bytes: int, cycles: int) -> int:
        proved.append(room_bytes)
        return closer(self, room_bytes, cycles)

    monkeypatch.setattr(JointPlanner, "best", loosely)
    monkeypatch.setattr(JointPlanner, "closer_bound", noted)
    graph, options, cost = specs.mlp_graph(32, (64, 128, 64)), PlanOptions(), IpuCostModel(CHIP)
    fronts = operator_fronts(graph, CHIP, cost, options)
    plan = schedule_module(graph, CHIP, cost, fronts, options, room=_HighAtFirst(CHIP, Wishes(cost)))
    assert rooms[0] > rooms[-1]
    assert proved == rooms[:1]
    assert plan.optimality is not None
    assert 1 < plan.optimality.bound_cycles <= plan.optimality.cycles


def test_algorithm_1_is_compared_in_the_memory_from_which_the_plan_was_chosen() -> None:
    """With less memory than its choice needs, Algorithm 1 has no cycles to compare: they would look like fewer."""
    graph, options, cost = specs.mlp_graph(4, (192, 256, 128), "f32"), PlanOptions(), IpuCostModel(CHIP)
    context, fronts = context_of(graph, CHIP, cost), operator_fronts(graph, CHIP, cost, options)
    greedy = reconciled(context, fronts, tables_of(context, fronts), "literal", 0)
    planner = JointPlanner(context, fronts, options, {"literal": greedy})
    n_compared: list[int] = []
    for part in (1, 2, 4, 8, 16):
        found = planner.best((CHIP.capacity_bytes - base_bytes(context)) // part)
        if found is not None:
            n_compared.append(len(found.greedy_cycles))
            assert all(found.cycles <= cycles for cycles in found.greedy_cycles.values())
    assert n_compared[0] == 1
    assert n_compared[-1] == 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Plans of one graph by the part of the memory that its fastest plan takes; None where nothing fits."""

    graph: Graph
    chips: tuple[ChipSpec, ...]
    exact: tuple[ModulePlan | None, ...]
    greedy: tuple[ModulePlan | None, ...]


def planned(graph: Graph, chip: ChipSpec, method: Method) -> ModulePlan | None:
    """Return what `plan_module` chooses, at the price it is chosen by; without an explanation where there is none."""
    options, cost = PlanOptions(reconcile=method), IpuCostModel(chip)
    try:
        return schedule_module(graph, chip, cost, operator_fronts(graph, chip, cost, options), options)
    except InfeasiblePlanError:
        return None


@cache
def swept(number: int) -> Sweep:
    graph = GRAPHS[number]
    needed = plan_module(graph, CHIP).peak_bytes - BASE_BYTES
    chips = tuple(
        CHIP.model_copy(update={"sram_bytes": NO_DATA_BYTES + max(16, needed * percent // 1600 * 16)})
        for percent in PERCENT
    )
    chips = (CHIP.model_copy(update={"sram_bytes": NO_DATA_BYTES + needed}), *chips[1:])
    exact = tuple(planned(graph, chip, "exact") for chip in chips)
    return Sweep(graph, chips, exact, tuple(planned(graph, chip, "greedy") for chip in chips))


@pytest.fixture(params=range(len(GRAPHS)), ids=[f"{graph.name}{len(graph.operators)}" for graph in GRAPHS])
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return swept(request.param)


@pytest.mark.slow
def test_no_plan_goes_beyond_a_core(sweep: Sweep) -> None:
    for chip, *plans in zip(sweep.chips, sweep.exact, sweep.greedy, strict=True):
        for plan in plans:
            assert plan is None or plan.peak_bytes <= plan.capacity_bytes == chip.sram_bytes


@pytest.mark.slow
def test_a_plan_fits_in_the_memory_it_takes(sweep: Sweep) -> None:
    """Given just what it took with plenty, a model takes no longer than that plan does there."""
    plan, chip = sweep.exact[0], sweep.chips[0]
    assert plan is not None
    assert plan.optimality is not None
    plenty = plan_module(sweep.graph, CHIP)
    cost = IpuCostModel(chip)
    squeezed = sum_of_cycles(as_placed(DataRoom(chip, Wishes(cost))(plenty), chip, cost))
    # Where memory ends below the interleaved region, the plan takes longer there than with plenty.
    assert plan.optimality.bound_cycles <= squeezed
    assert sum_of_cycles(as_placed(plan, chip, cost)) <= squeezed


@pytest.mark.sampled(1)
def test_the_exact_way_fits_whenever_the_greedy_one_does_and_is_no_slower(sweep: Sweep) -> None:
    """As they lie: of plans that take about as long elsewhere, one is chosen that lies well."""
    for chip, exact, greedy in zip(sweep.chips, sweep.exact, sweep.greedy, strict=True):
        assert exact is not None or greedy is None
        if exact is not None and greedy is not None:
            took = [sum_of_cycles(as_placed(each, chip, IpuCostModel(chip))) for each in (exact, greedy)]
            assert took[0] <= took[1]


@pytest.mark.sampled(1)
def test_what_fits_no_core_fits_no_smaller_one(sweep: Sweep) -> None:
    fits = [plan is not None for plan in sweep.exact]
    assert fits == sorted(fits, reverse=True)


@pytest.mark.slow
def test_less_memory_never_takes_fewer_cycles_than_the_bound_with_more(sweep: Sweep) -> None:
    plans = [plan for plan in sweep.exact if plan is not None]
    for number, more in enumerate(plans):
        assert more.optimality is not None
        for less in plans[number + 1 :]:
            assert sum_of_cycles(less) >= more.optimality.bound_cycles


def test_tight_plans_are_legal_and_run_as_predicted(sweep: Sweep) -> None:
    tightest = [(chip, plan) for chip, plan in zip(sweep.chips, sweep.exact, strict=True) if plan is not None]
    for chip, chosen in tightest[-2:]:
        plan = as_placed(chosen, chip, IpuCostModel(chip))
        assert verify_module(plan, chip) == []
        result = executed(plan, chip, random_values((*plan.graph.inputs, *plan.graph.weights)))
        assert result.cycles == sum_of_cycles(plan)
        assert result.peak_bytes == plan.peak_bytes


def test_tight_plans_are_pinned_and_found_again(sweep: Sweep) -> None:
    chip, plan = [
        (chip, plan) for chip, plan in zip(sweep.chips, sweep.exact, strict=True) if plan is not None
    ][-1]
    plan = as_placed(plan, chip, IpuCostModel(chip))
    levels = idle_levels(plan)
    forced = tuple(
        ForcedPartition(
            s.name, s.active.plan.f_op, s.active.plan.ft, plan=s.active.plan, idle_level=levels[s.name]
        )
        for s in plan.operators
    )
    again = plan_module(sweep.graph, chip, PlanOptions(forced=forced))
    assert [s.active for s in again.operators] == [s.active for s in plan.operators]
    assert again.peak_bytes == plan.peak_bytes


@pytest.mark.slow
def test_the_sweep_reaches_models_that_do_not_fit() -> None:
    sweeps = [swept(number) for number in range(len(GRAPHS))]
    assert all(sweep.exact[-1] is None for sweep in sweeps)
    assert sum(plan is not None for sweep in sweeps for plan in sweep.exact) > 2 * len(sweeps)


@dataclass(frozen=True, slots=True)
class Crowded:
    """A room in which programs leave half of the memory to plans that are all `small`, and nothing to others."""

    chip: ChipSpec
    small: frozenset[OperatorPlan]

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return what the chip reserves."""
        del plan
        return self.chip.reserved_bytes

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers in their places, too high where its program is large."""
        is_small = all(scheduled.active.plan in self.small for scheduled in plan.operators)
        end = self.chip.data_end_bytes
        most = end - self.chip.shift_buffer_bytes - ALIGNMENT_BYTES  # what still is a chip
        chip = self.chip.model_copy(update={"reserved_bytes": end // 2 if is_small else most})
        return DataRoom(chip, Wishes(IpuCostModel(chip)))(plan)


def test_where_programs_leave_no_room_plans_of_smaller_programs_are_chosen() -> None:
    graph, options, cost = specs.mlp_graph(4, (256, 192, 128), "f32"), PlanOptions(), IpuCostModel(CHIP)
    context, fronts = context_of(graph, CHIP, cost), operator_fronts(graph, CHIP, cost, options)
    few = states_of(context, fronts, options, (), PLAIN)
    room = Crowded(CHIP, frozenset(state.plan for states in few for state in states))
    plan = schedule_module(graph, CHIP, cost, fronts, options, room=room)
    assert plan.end_bytes <= CHIP.data_end_bytes
    assert plan.optimality is not None
    assert plan.optimality.method == "exact"
    assert plan.optimality.n_choices > 1


def test_the_two_fastest_plans_of_a_long_front_are_states_and_so_is_its_smallest() -> None:
    graph, options, cost = specs.mlp_graph(128, (512, 512)), PlanOptions(), IpuCostModel(CHIP)
    context, fronts = context_of(graph, CHIP, cost), operator_fronts(graph, CHIP, cost, options)
    few = Breadth(of_front=3, of_candidates=0, following=0, leading=0)
    for front, states in zip(fronts, states_of(context, fronts, options, (), few), strict=True):
        assert len(front) > few.of_front + 1
        assert {front[0].plan, front[-2].plan, front[-1].plan} <= {state.plan for state in states}


@dataclass(frozen=True, slots=True)
class Dreaded:
    """A room whose programs are believed to leave no memory to data, and take none."""

    chip: ChipSpec

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return all that the chip has."""
        del plan
        return self.chip.data_end_bytes

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers in their places."""
        return DataRoom(self.chip, Wishes(IpuCostModel(self.chip)))(plan)


def test_where_algorithm_1_has_too_large_a_program_plans_are_chosen_together_all_the_same() -> None:
    graph, options = GRAPHS[1], PlanOptions()
    whole = schedule_module(graph, CHIP, IpuCostModel(CHIP), fronts_of(graph, CHIP), options)
    chip = CHIP.model_copy(update={"sram_bytes": whole.peak_bytes * 9 // 8})
    plan = schedule_module(
        graph, chip, IpuCostModel(chip), fronts_of(graph, chip), options, room=Dreaded(chip)
    )
    assert plan.optimality is not None
    assert plan.optimality.method == "exact"


def fronts_of(graph: Graph, chip: ChipSpec) -> tuple[Front, ...]:
    return operator_fronts(graph, chip, IpuCostModel(chip), PlanOptions())
