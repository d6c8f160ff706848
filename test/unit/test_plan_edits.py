"""A plan.json or a file of pins that was edited by hand is read, or refused with one clear error; it never crashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

import pytest
from support import models
from support.plans import two_operator_plan

import t10
from t10.core.document import decode, read_document, write_document
from t10.driver import Executable
from t10.errors import InputError, T10Error
from t10.explain import explain_operator
from t10.plan.schedule import with_costs

Path_ = tuple[str | int, ...]
Result = TypeVar("Result")
SAMPLE = 23
"""Of the edits that can be read, one in so many is compiled with."""


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every value of a document below its root, objects and arrays included."""
    if path:
        yield path, value
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[Any]", value))
    for key, child in items:
        yield from leaves(child, (*path, key))


def edits(value: Any) -> list[Any]:
    """Return what a value may be replaced by: out of range, of another type, repeated, missing, more than there is."""
    if isinstance(value, bool) or value is None:
        return [not value, "x", None, 3]
    if isinstance(value, int):
        return [value + 1, value - 1, -1, 0, 999, 2**31, 10**12, 2**70, 1.5, "x", None, [value]]
    if isinstance(value, str):
        return ["", "nonsense", value + value, 7, None]
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [[], items + items[:1], items[:-1], items[::-1], [0, *items], "x", None, {}]
    fields = cast("dict[str, Any]", value)
    fewer = [{key: each for key, each in fields.items() if key != left} for left in fields]
    return [{}, [], None, {**fields, "extra": 1}, *fewer]


def edited(document: Any, path: Path_, new: Any) -> Any:
    """Return a copy of a document with another value at a path."""
    result = deepcopy(document)
    place = result
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = new
    return result


def sampled_edits(document: Any, n_each: int) -> list[tuple[Path_, Any, Any]]:
    """Return edits, `n_each` of every field wherever it stands: where, by what, and the document that they give."""
    by_field: dict[Path_, list[tuple[Path_, Any]]] = {}
    for path, value in leaves(document):
        field = tuple("*" if isinstance(step, int) else step for step in path)
        by_field.setdefault(field, []).extend((path, new) for new in edits(value) if new != value)
    random = Random(0)
    chosen = [each for found in by_field.values() for each in random.sample(found, min(n_each, len(found)))]
    return [(path, new, edited(document, path, new)) for path, new in chosen]


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    folder = tmp_path_factory.mktemp("edits")
    return t10.compile(models.mlp(folder / "mlp.onnx"), chip="test-16", plan=rotating(folder / "pins.json"))


def rotating(path: Path) -> Path:
    """Write a pin with a loop, so that its plan has phases."""
    pin = {"name": "first", "f_op": [2, 3, 1], "ft": [[1, 1, 3], [1, 1, 2], [1, 1, 1]]}
    path.write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": [pin]}))
    return path


@pytest.mark.slow
def test_no_edit_of_a_plan_crashes(executable: Executable, tmp_path: Path) -> None:
    """Every edit is read, or is an input error; plans that are read can be explained and compiled with."""
    path, model = tmp_path / "plan.json", models.mlp(tmp_path / "mlp.onnx")
    write_document(path, executable.plan)
    n_refused, n_read = 0, 0
    for where, new, document in sampled_edits(json.loads(path.read_text()), 3):
        path.write_text(json.dumps(document))
        what = f"{where} = {new!r}"
        plan = result_of(what, lambda: read_document(path))
        n_refused += plan is None
        if plan is None:
            continue
        n_read += 1
        known = with_costs(executable.plan, plan)
        if known is not None:
            explain_operator(known, "first", executable.costs(), executable.cost_model)
        if n_read % SAMPLE == 0:
            result_of(what, lambda: t10.compile(model, chip="test-16", plan=path))
    assert n_refused > 250
    assert n_read > 30


def test_steps_that_are_not_those_of_the_plan_are_refused_before_they_are_written_out(
    executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written_out(*arguments: object, **named: object) -> None:
        pytest.fail("the program of a plan that is none was written out")

    path = tmp_path / "plan.json"
    write_document(path, executable.plan)
    document = json.loads(path.read_text())
    used = document["operators"][0]["active"]["plan"]
    document["plans"][used]["steps"][0] = 10**12
    path.write_text(json.dumps(document))
    monkeypatch.setattr(decode, "scheduled_operator", written_out)
    with pytest.raises(InputError, match=r"operators\[0\].active.plan"):
        read_document(path)


def test_no_edit_of_pins_crashes(tmp_path: Path) -> None:
    path, model = rotating(tmp_path / "pins.json"), models.mlp(tmp_path / "mlp.onnx")
    for where, new, document in sampled_edits(json.loads(path.read_text()), 3):
        path.write_text(json.dumps(document))
        result_of(f"{where} = {new!r}", lambda: t10.compile(model, chip="test-16", plan=path))


def result_of(what: str, make: Callable[[], Result]) -> Result | None:
    """Return what is made, None where it is refused with an error of the input or of the plan."""
    try:
        return make()
    except T10Error as error:
        if error.exit_code not in (2, 4, 5):
            raise AssertionError(what) from error
        return None
    except Exception as error:
        raise AssertionError(what) from error


@pytest.mark.parametrize(
    ("where", "new", "message"),
    [
        (("plans", 0, "core_order"), [999, 1, 2], r"core_order = \[999, 1, 2\], expected a permutation of the 3 axes"),
        (("plans", 0, "core_order"), [0, 0, 2], r"core_order = \[0, 0, 2\], expected a permutation of the 3 axes"),
        (("plans", 0, "phases", 2, 0, "sharer_axes"), [9], r"phases\[2\] names axes \[9\], expected axes of the grid"),
        (("plans", 0, "phases", 2, 0, "sharer_axes"), [1, 1], r"names axes \[1, 1\], expected each axis once"),
        (("plans", 0, "phases", 2, 0, "modulus"), 99, r"takes the digit .* mod 99 of 2 cores, expected a modulus"),
        (("plans", 0, "loop_order"), [1], r"loop_order = \[1\], expected every rotating axis once, here \[2\]"),
        (("plans", 0, "steps"), [1, 1, 2], r"steps\[2\] = 2, expected 3"),
        (("layouts", 2, "operand"), 99, r"layouts\[2\].operand: found 99, expected at most 1"),
        (("operators", 0, "arrivals", 0, "operand"), 7, r"operators\[0\].arrivals: found operands \[7, 1\]"),
        (("operators", 0, "arrivals", 0, "buffer"), "none", r"arrivals\[0\].buffer: found 'none'"),
        (("buffers", 0, "last"), 99, r"buffers\[0\].last: found step 99"),
    ],
)  # fmt: skip
def test_an_edit_is_refused_with_operator_field_found_and_expected(
    tmp_path: Path, where: Path_, new: Any, message: str
) -> None:
    path = tmp_path / "plan.json"
    write_document(path, two_operator_plan())
    document = json.loads(path.read_text())
    path.write_text(json.dumps(edited(document, where, new)))
    with pytest.raises(InputError, match=message) as caught:
        read_document(path)
    if where[0] != "buffers":
        assert caught.value.operator in ("matmul", "relu")
