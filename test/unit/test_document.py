"""plan.json: what is written is read back, what is wrong is refused with its place."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support import specs
from support.plans import two_operator_plan

from t10.core.document import plan_schema, read_document, write_document
from t10.core.document.text import json_text
from t10.core.expression import OperatorSpec
from t10.core.graph import View
from t10.core.operator_body import scheduled_operator
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import ModulePlan, ValueLayout
from t10.errors import InputError


def written(folder: Path, module: ModulePlan | None = None) -> dict[str, Any]:
    write_document(folder / "plan.json", module or two_operator_plan())
    return json.loads((folder / "plan.json").read_text())


def edited(folder: Path, path: tuple[str | int, ...], value: Any) -> Path:
    document = written(folder)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    (folder / "plan.json").write_text(json.dumps(document))
    return folder / "plan.json"


def test_round_trip_keeps_every_field(tmp_path: Path) -> None:
    module = two_operator_plan()
    write_document(tmp_path / "plan.json", module)
    assert read_document(tmp_path / "plan.json") == module


def test_same_plan_gives_same_bytes(tmp_path: Path) -> None:
    write_document(tmp_path / "one.json", two_operator_plan())
    write_document(tmp_path / "two.json", two_operator_plan())
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_file_follows_the_published_schema(tmp_path: Path) -> None:
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(written(tmp_path), schema)


def test_derived_fields_say_how_tensors_are_cut_and_rotate(tmp_path: Path) -> None:
    matmul = written(tmp_path)["operators"][0]
    a, b, c = matmul["tensors"]
    assert (a["fs"], a["ft"], a["sharers"], a["rings"], a["replicas"]) == ([2, 1], {"k": 3}, 3, 2, 1)
    assert (b["fs"], b["ft"], b["sharers"], b["rings"], b["replicas"]) == ([1, 3], {"k": 2}, 2, 3, 1)
    assert (a["partition"], b["partition"], c["partition"]) == ([2, 2], [3, 2], [2, 2])
    assert a["bytes_per_core"] == 2 * 2 * 4
    assert a["dims"] == [{"terms": {"m": 1}}, {"terms": {"k": 1}}]
    assert matmul["active"]["loop_order"] == ["k"]
    assert (matmul["active"]["rp"], matmul["active"]["steps"]) == ({"k": 2}, {"k": 3})
    assert matmul["active"]["cycles"]["total"] == 240 + 90 + 30
    assert matmul["idle"] == {"bytes_per_core": 24, "is_active": False}


def test_compound_dims_keep_coefficients_offset_and_padding(tmp_path: Path) -> None:
    conv = specs.conv2d(1, 2, 3, 3, 2, 3, 3, "f32", stride=2, pad=1)
    plan = one_core_plan(conv)
    x = written(tmp_path, plan)["operators"][0]["tensors"][0]
    assert x["dims"][2] == {"terms": {"h": 2, "kh": 1}, "offset": -1}
    assert x["pad_value"] == "0.0"
    assert read_document(tmp_path / "plan.json") == plan


def test_selectors_and_views_of_every_kind_survive(tmp_path: Path) -> None:
    plan = one_core_plan(specs.gather(2, 3, 5, "f32"))
    views = (
        View("v0", "slice", ("o",), (1, 2), "f32", offsets=(1, 0), strides=(1, 2)),
        View("v1", "transpose", ("v0",), (2, 1), "f32", permutation=(1, 0)),
        View("v2", "broadcast", ("v1",), (2, 1, 4), "f32", dims=(0, 1)),
        View("v3", "concat", ("v2", "v2"), (2, 1, 8), "f32", axis=2),
        View("v4", "pad", ("v3",), (2, 2, 8), "f32", low=(0, 1, 0), value="-inf"),
    )
    plan = replace(plan, graph=replace(plan.graph, views=views))
    write_document(tmp_path / "plan.json", plan)
    assert read_document(tmp_path / "plan.json") == plan


def test_a_shared_plan_is_stored_once(tmp_path: Path) -> None:
    document = written(tmp_path)
    assert len(document["plans"]) == 3
    assert document["operators"][0]["active"]["plan"] == document["fronts"][0][0]["plan"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 1, "version: found 1, expected 2"),
        (("format",), "other", "format: found 'other'"),
        (("buffers",), ..., "buffers: expected a value, found none"),
        (
            ("operators", 0, "active", "cycles"),
            ...,
            r"operators\[0\].active.cycles: expected a value, found none",
        ),
        (("surprise",), 1, "surprise: unknown field"),
        (
            ("operators", 0, "axes", 0, "extent"),
            "4",
            r"operators\[0\].axes\[0\].extent: expected a whole number",
        ),
        (("operators", 0, "active", "plan"), 99, r"operators\[0\].active.plan: found row 99"),
        (
            ("operators", 0, "tensors", 0, "dims", 0, "terms"),
            {"q": 1},
            r"tensors\[0\].dims\[0\].terms: found axis 'q'",
        ),
        (("operators", 0, "tensors", 0, "fs"), [1, 2], r"tensors\[0\].fs\[0\]: found 1, expected 2"),
        (("operators", 1, "name"), "other", r"layouts\[2\].operator: found 'relu'"),
        (("cycles", "total"), 1, "cycles.total: found 1, expected 410"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(
    tmp_path: Path, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_document(edited(tmp_path, path, value))


@pytest.mark.parametrize(("content", "message"), [("{", "not JSON"), ("[]", "expected an object")])
def test_a_file_that_is_no_document_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_document(tmp_path / "plan.json")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_document(tmp_path / "none.json")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        write_document(tmp_path / "plan.json", two_operator_plan())
    assert json.loads((tmp_path / "plan.json").read_text()) == before
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_json_text_breaks_only_what_does_not_fit_a_line() -> None:
    value = {"short": [1, 2], "long": list(range(100))}
    text = json_text(value)
    assert json.loads(text) == value
    assert ' "short": [1, 2],\n' in text
    assert max(map(len, text.splitlines())) < 150


def one_core_plan(spec: OperatorSpec) -> ModulePlan:
    ones = (1,) * len(spec.axes)
    zeros = (0,) * len(spec.axes)
    plan = OperatorPlan(
        ones,
        spec.extents,
        (ones,) * len(spec.rotatable),
        zeros,
        ones,
        (),
        ((),) * len(ones),
        tuple(range(len(ones))),
    )
    costed = CostedPlan(plan, Cycles(compute=1), 0, 0)
    number = len(spec.operands)
    layout = ValueLayout("operand", spec.output.name, 1, spec.output.dtype, spec.name, number, plan)
    return ModulePlan(
        "test-4",
        specs.one_operator_graph(spec),
        (scheduled_operator(spec, costed, (), layout),),
        (),
        (),
        (),
        0,
        1,
    )
