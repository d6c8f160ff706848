"""Cost models by name and from files, users' functions over them, and what goes wrong with those."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import specs

from t10.chip import ChipSpec, load_chip
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost import (
    CustomCostModel,
    IpuCostModel,
    UserCost,
    cost_model,
    cost_model_names,
    given,
    paper_cost_model,
    register_cost,
    register_cost_model,
    registry,
)
from t10.cost.formula import Formula
from t10.cost.program import cost_program
from t10.errors import InputError

CHIP = load_chip("ipu-mk2")
MATMUL, MAP = specs.matmul(64, 48, 80), specs.map_unary((32, 64))
BASE = IpuCostModel(CHIP)


@pytest.fixture(autouse=True)
def _leaves_nothing_registered() -> Generator[None]:
    with registry.registering():
        yield


def thirds(spec: OperatorSpec, boxes: Any) -> Any:
    """Return cycles with fractions."""
    del spec
    return 300 + boxes.prod(axis=1) / 3


def test_bundled_models_have_names() -> None:
    assert cost_model_names() == ("ipu", "t10-paper")
    assert cost_model("ipu", CHIP) == BASE
    assert cost_model("t10-paper", CHIP) == paper_cost_model(CHIP)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"unknown cost model 'gpu' \(expected one of ipu, t10-paper, or FILE"
    ):
        cost_model("gpu", CHIP)


def test_a_model_of_ones_own_can_be_registered_once() -> None:
    register_cost_model("mine", IpuCostModel)
    assert cost_model("mine", CHIP) == BASE
    for name in ("mine", "ipu", "x.py", ""):
        with pytest.raises(InputError, match="cannot be registered"):
            register_cost_model(name, IpuCostModel)


def test_what_is_no_cost_model_is_refused() -> None:
    def nothing(_: ChipSpec) -> Any:
        return 5

    register_cost_model("nothing", nothing)
    with pytest.raises(InputError, match="'nothing' made int without name, fingerprint"):
        cost_model("nothing", CHIP)


def test_a_registered_function_prices_its_kind_and_nothing_else() -> None:
    register_cost("elementwise", thirds)
    cost = cost_model("ipu", CHIP)
    assert cost.name == "ipu+thirds"
    assert cost.sub_task_cycles(MAP, (5, 5)) == 309
    assert cost.sub_task_cycles(MATMUL, (5, 5, 5)) == BASE.sub_task_cycles(MATMUL, (5, 5, 5))
    assert cost.epilogue_cycles(MATMUL, 100, 100) == BASE.epilogue_cycles(MATMUL, 100, 100)
    assert cost.shift_cycles(1000) == BASE.shift_cycles(1000)
    assert cost.reduce_cycles(MATMUL, 4, 100) == BASE.reduce_cycles(MATMUL, 4, 100)
    assert cost.exchange_cycles(9, 2, neighbour=True) == BASE.exchange_cycles(9, 2, neighbour=True)
    assert cost.copy_cycles(9) == BASE.copy_cycles(9)


def test_the_last_that_applies_counts_and_may_price_the_epilogue() -> None:
    cost = CustomCostModel(
        BASE,
        (
            UserCost("seven", "contraction", lambda _, __: 7, epilogue=lambda _, n: n * 2),
            UserCost("eight", lambda spec: len(spec.axes) == 9, lambda _, __: 8),
        ),
    )
    assert cost.sub_task_cycles(MATMUL, (5, 5, 5)) == 7
    assert cost.epilogue_cycles(MATMUL, 100, 100) == 200
    over = CustomCostModel(
        BASE, (*cost.costs, UserCost("nine", lambda spec: spec is MATMUL, lambda _, __: 9))
    )
    assert over.sub_task_cycles(MATMUL, (5, 5, 5)) == 9


def by_rows(spec: OperatorSpec, n: Any, run: Any) -> Any:
    """Return what an epilogue takes that begins anew in every row."""
    return 30 + -(-n // run) * (7 + run)


def ours(chip: ChipSpec) -> Any:
    """Return a model of the time when epilogues were priced by the number of elements alone."""

    @dataclass(frozen=True)
    class Before(IpuCostModel):
        def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # the old form, still taken
            return 11 * n_slots

    return Before(chip)


def test_an_epilogues_function_is_told_the_run_if_it_asks_for_it() -> None:
    biased = specs.linear_relu(24, 40, 36)
    cost = CustomCostModel(BASE, (UserCost("rows", "contraction", lambda _, __: 7, epilogue=by_rows),))
    assert cost.epilogue_cycles(biased, 100, 10) == 30 + 10 * 17
    many = cost.epilogue_cycles_many(biased, np.array([100, 60]), np.array([100, 20]))
    assert many.tolist() == [137, 30 + 3 * 27]
    assert isinstance(cost_program(cost, biased).epilogue, Formula)


def test_functions_and_models_that_know_no_runs_still_count() -> None:
    def scaled(spec: OperatorSpec, n: Any, factor: int = 2) -> Any:
        return n * factor

    biased = specs.linear_relu(24, 40, 36)
    cost = CustomCostModel(BASE, (UserCost("old", "contraction", lambda _, __: 7, epilogue=scaled),))
    assert cost.epilogue_cycles(biased, 100, 10) == 200
    register_cost_model("before", ours)
    model = cost_model("before", CHIP)
    assert model.name == "ipu"
    assert model.epilogue_cycles(biased, 100, 10) == 1100
    assert isinstance(cost_program(model, biased).epilogue, Formula)


def test_a_wrong_epilogue_names_elements_and_run() -> None:
    wrong = UserCost("rows", "contraction", lambda _, __: 7, epilogue=lambda _, n, run: run - n)
    cost = CustomCostModel(BASE, (wrong,))
    with pytest.raises(InputError, match=r"'rows' gave -90\.0 cycles for 100 with a run of 10"):
        cost.epilogue_cycles(specs.linear_relu(24, 40, 36), 100, 10)


def test_native_search_gets_a_users_function_as_a_formula() -> None:
    cost = CustomCostModel(BASE, (UserCost("thirds", "elementwise", thirds),))
    assert isinstance(cost_program(cost, MAP).sub_task, Formula)


WRONG: tuple[tuple[Callable[[Any, Any], Any], str], ...] = (
    (lambda _, boxes: boxes, r"'mine' gave int64 of shape \(2, 2\), expected .* shape \(2,\)"),
    (lambda _, boxes: 3 - boxes[:, 0], r"'mine' gave -1.0 cycles for \[4, 1\]"),
    (lambda _, boxes: boxes[:, 0] / 0.0, r"'mine' gave inf cycles"),
    (lambda _, boxes: boxes[:, 0] * float("nan"), r"'mine' gave nan cycles"),
    (lambda _, boxes: ["a", "b"], r"'mine' gave <U1 of shape"),
    (lambda spec, boxes: spec.no_such_field, r"'mine' failed: AttributeError: .*no_such_field"),
)


@pytest.mark.parametrize(("function", "message"), WRONG)
@pytest.mark.filterwarnings("error")
def test_wrong_answers_name_the_function_and_the_operator(function: Any, message: str) -> None:
    cost = CustomCostModel(BASE, (UserCost("mine", "elementwise", function),))
    with pytest.raises(InputError, match=message) as caught:
        cost.sub_task_cycles_many(MAP, np.array([[4, 1], [2, 2]]))
    assert caught.value.operator == MAP.name


@pytest.mark.parametrize("constant", [float("nan"), float("inf"), -1.0])
@pytest.mark.filterwarnings("error")
def test_a_constant_that_is_no_number_of_cycles_is_one_error_of_the_search(constant: float) -> None:
    functions: tuple[Callable[[Any, Any], Any], ...] = (
        lambda _, __: constant,
        lambda _, boxes: boxes[:, 0] * 0 + constant,
    )
    for function in functions:
        cost = CustomCostModel(BASE, (UserCost("mine", "elementwise", function),))
        with pytest.raises(InputError, match=rf"'mine' gave {constant} cycles") as caught:
            cost_program(cost, MAP).sub_task.evaluate(np.array([[4, 1], [2, 2]]))
        assert caught.value.operator == MAP.name


def test_a_wrong_function_is_found_before_the_search() -> None:
    cost = CustomCostModel(BASE, (UserCost("mine", "elementwise", lambda _, boxes: 3 - boxes[:, 0]),))
    with pytest.raises(InputError, match="'mine' gave -"):
        cost_program(cost, MAP)


def test_kinds_and_functions_are_checked_when_registered() -> None:
    with pytest.raises(InputError, match="kind 'matmul', expected one of contraction"):
        register_cost("matmul", thirds)  # pyright: ignore[reportArgumentType]  # the mistake under test
    with pytest.raises(InputError, match="expected a function"):
        register_cost("gather", 5, name="five")  # pyright: ignore[reportArgumentType]  # the mistake under test


def test_fingerprints_tell_models_chips_and_versions_apart() -> None:
    faster = CHIP.model_copy(update={"exchange_bytes_per_cycle": 8})
    renamed = CHIP.model_copy(update={"name": "other"})

    def versioned(version: str | None) -> str | None:
        return CustomCostModel(BASE, (UserCost("thirds", "gather", thirds, version=version),)).fingerprint()

    different = {
        BASE.fingerprint(),
        IpuCostModel(faster).fingerprint(),
        paper_cost_model(CHIP).fingerprint(),
        paper_cost_model(CHIP, hides_arithmetic=False).fingerprint(),
        versioned("1"),
        versioned("2"),
    }
    assert len(different) == 6
    assert IpuCostModel(renamed).fingerprint() == BASE.fingerprint()
    assert versioned(None) is None


# --- files ---------------------------------------------------------------------------------------------------------

FILE = """
from t10.cost import cost_model as model, register_cost

def mine(spec, boxes):
    return 40 + boxes[:, 0]

def on_paper(chip):
    return model("t10-paper", chip)

register_cost("elementwise", mine)
"""


def written(folder: Path, text: str) -> str:
    """Return the path of a file with that text."""
    path = folder / "own costs.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_lays_what_it_registers_over_the_default_model(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    cost = cost_model(given(path), CHIP)
    assert cost.name == path
    assert cost.sub_task_cycles(MAP, (2, 9)) == 42
    assert cost.sub_task_cycles(MATMUL, (8, 8, 8)) == BASE.sub_task_cycles(MATMUL, (8, 8, 8))
    assert cost_model("ipu", CHIP) == BASE


def test_a_named_function_of_a_file_chooses_the_base(tmp_path: Path) -> None:
    cost = cost_model(given(written(tmp_path, FILE) + ":on_paper"), CHIP)
    assert cost.sub_task_cycles(MAP, (2, 9)) == 42
    assert cost.shift_cycles(99) == paper_cost_model(CHIP).shift_cycles(99)


def test_a_file_with_a_function_cost_model_needs_no_name(tmp_path: Path) -> None:
    text = "from t10.cost import IpuCostModel as cost_model\n"
    assert cost_model(given(written(tmp_path, text)), CHIP).copy_cycles(800) == BASE.copy_cycles(800)


def test_a_model_of_a_file_goes_to_another_process_as_the_file_it_came_from(tmp_path: Path) -> None:
    cost = cost_model(given(written(tmp_path, FILE) + ":on_paper"), CHIP)
    again = pickle.loads(pickle.dumps(cost))
    assert again.sub_task_cycles(MAP, (2, 9)) == 42
    assert again.copy_cycles(800) == cost.copy_cycles(800)


@pytest.mark.parametrize(
    ("text", "function", "message"),
    [
        (FILE, ":no_such", r"has no function 'no_such' \(its functions: .*mine, .*on_paper"),
        ("x = 1\n", "", r"neither calls register_cost nor has a function cost_model"),
        ("def f(:\n", "", r"failed: SyntaxError"),
        ("import no_such_package_here\n", "", r"failed: ModuleNotFoundError"),
        ("def f(chip):\n  return chip.no_field\n", ":f", r"failed: AttributeError"),
        ("def f(chip):\n  return chip\n", ":f", r"made ChipSpec without fingerprint"),
    ],
)
def test_mistakes_in_a_file_are_input_errors(tmp_path: Path, text: str, function: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cost_model(given(written(tmp_path, text) + function), CHIP)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match=r"cost model file no/such\.py does not exist"):
        given("no/such.py:f")


def test_the_example_prices_sums_of_exponentials_over_either_model() -> None:
    path = str(Path(__file__).resolve().parents[2] / "examples" / "own_costs.py")
    exponentials = replace(
        specs.row_reduce(32, 64, "sum", "f32"),
        body=ScalarFunction(1, (ScalarOp("math.exp", (0,), "f32"),), 1),
    )
    for name in (path, f"{path}:on_paper"):
        cost = cost_model(given(name), CHIP)
        assert cost.sub_task_cycles(exponentials, (3, 64)) == 90 + 3 * (12 + 32)
        assert isinstance(cost_program(cost, exponentials).sub_task, Formula)
        assert cost.fingerprint() is not None
