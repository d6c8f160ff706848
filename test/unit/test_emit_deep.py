"""Programs of deep models: what a further equal layer adds to a tile's memory, besides its data."""

from __future__ import annotations

import re

from support import specs

from t10.chip import load_chip
from t10.core.device import DeviceProgram
from t10.cost import CostModel, IpuCostModel
from t10.cost.paper import paper_cost_model
from t10.emit.exchange_code import PHASE_BYTES
from t10.emit.lower import lower
from t10.emit.poplar.program_text import program_text
from t10.emit.poplar.tables import Tables
from t10.plan.schedule import plan_module

CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)


def program(n_layers: int, cost: CostModel = COST) -> DeviceProgram:
    """Return the program of equal layers, each with weights of its own."""
    graph = specs.mlp_graph(32, (64,) * (n_layers + 1))
    return lower(plan_module(graph, CHIP, cost=cost), CHIP, cost)


def sizes(program: DeviceProgram) -> dict[str, int]:
    return {name: n_bytes for name, _, n_bytes in program.memory.regions}


def state_bytes(program: DeviceProgram) -> int:
    """Return the bytes of the vertex that has most words."""
    most = max(len(group.words) for one in program.compute_sets for group in one.groups)
    return -(-most // 2) * 8


def test_a_further_layer_adds_words_of_its_vertices_and_calls_but_no_rows() -> None:
    few, many = program(6), program(12)
    assert sizes(many)["code"] == sizes(few)["code"]
    assert len(many.patterns) == len(few.patterns)
    n_phases = len(many.copies) - len(few.copies)
    assert sizes(many)["exchange"] - sizes(few)["exchange"] <= n_phases * PHASE_BYTES
    n_sets = len(many.compute_sets) - len(few.compute_sets)
    assert sizes(many)["state"] - sizes(few)["state"] <= n_sets * state_bytes(many)


def test_vertices_of_one_state_have_the_same_words() -> None:
    # A cost model that leaves additions apart: to accumulators, which all layers have at one place.
    made = program(12, paper_cost_model(CHIP))
    addresses = {variable.name: variable.address_bytes for variable in made.variables}
    words_by_state: dict[int, object] = {}
    for one in made.compute_sets:
        words = [
            (
                group.tiles,
                [
                    w if isinstance(w, (int, tuple)) else (addresses[w.variable], w.offset_bytes)
                    for w in group.words
                ],
            )
            for group in one.groups
        ]
        for state in {group.state_address_bytes for group in one.groups}:
            assert words_by_state.setdefault(state, words) == words
    assert len(words_by_state) < len(made.compute_sets)


def test_equal_layers_are_one_function_called_with_what_differs() -> None:
    """Of 12 layers the first is alone: its input has another layout. A further equal layer adds one call."""
    few, many = (program_text(program(n), Tables(), {}) for n in (6, 12))
    functions = re.findall(r"^Sequence (\w+)\(Builder &b, const (\w+) &\w\)", many, re.MULTILINE)
    assert functions == [("linear0", "Memory"), ("linear1", "Operator")]
    calls = re.findall(r"model\.add\(linear1\(b, \{\"(\w+)\",\s+\{(.*?)\}", many, re.DOTALL)
    assert [name for name, _ in calls] == [f"linear{n}" for n in range(1, 12)]
    assert len({given for _, given in calls}) == 11
    assert len(re.findall(r"b\.vertices", many)) == len(re.findall(r"b\.vertices", few))
    assert 'b.compute_set(o.label("sub_task:"))' in many


def test_a_program_of_shared_functions_is_written_alike_every_time() -> None:
    assert program_text(program(6), Tables(), {}) == program_text(program(6), Tables(), {})
