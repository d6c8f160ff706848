"""The grid of operator x element type x engine: what it tries, what it calls right, and that it finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from t10.conformance.grid import choices, judge
from t10.conformance.grid.cases import GridCase, build, inputs_of, load_grid, newest_schemas, packs
from t10.conformance.grid.choices import choice_for, read_choices
from t10.conformance.grid.decided import decided
from t10.conformance.grid.due import narrowed, near
from t10.conformance.grid.summary import Defect, by_case, defects, rows
from t10.conformance.grid.undefined import undefined
from t10.conformance.grid.values import specials
from t10.conformance.known import Known, read_known, stale, unknown
from t10.conformance.verdict import Verdict
from t10.errors import InputError
from t10.tolerances import TOLERANCES, Tolerance

HOLDERS_AND_RANDOM = {
    *(
        "ConcatFromSequence",
        "If",
        "Loop",
        "MaxRoiPool",
        "Multinomial",
        "Optional",
        "RandomNormal",
        "Scan",
        "SequenceAt",
    ),
    *(
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
    ),
    *("SequenceInsert", "SequenceLength", "SequenceMap"),
}
"""Operators without a case: of sequences, of other operators, of chance, or without a node test of tensors."""


def case_of(name: str) -> GridCase:
    return next(case for case in load_grid() if case.name == f"grid/{name}")


def value_of(case: GridCase, attribute: str) -> Any:
    """Return the value of an attribute, or its default."""
    default = newest_schemas()[case.structure.operator].attributes[attribute].default_value
    value = case.structure.attributes.get(attribute, helper.get_attribute_value(default))
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.slow
def test_every_operator_of_the_schemas_has_cases_or_is_known_to_have_none() -> None:
    covered = {case.structure.operator for case in load_grid()}
    assert set(newest_schemas()) - covered == HOLDERS_AND_RANDOM


@pytest.mark.slow
def test_every_type_of_a_schema_is_tried() -> None:
    for operator, variable in (
        ("Add", "T"),
        ("Exp", "T"),
        ("MaxPool", "T"),
        ("QuantizeLinear", "T1"),
        ("Pow", "T1"),
    ):
        constraints = newest_schemas()[operator].type_constraints
        allowed = next(set(c.allowed_type_strs) for c in constraints if c.type_param_str == variable)
        tried = {case.types[variable] for case in load_grid() if case.structure.operator == operator}
        assert {f"tensor({name})" for name in tried} == allowed


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("operator", "attribute", "values"),
    [
        ("DepthToSpace", "mode", {"DCR", "CRD"}),
        ("Pad", "mode", {"constant", "reflect", "edge", "wrap"}),
        ("GridSample", "padding_mode", {"zeros", "border", "reflection"}),
        ("Resize", "mode", {"nearest", "linear", "cubic"}),
        ("Resize", "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}),
        ("RNN", "direction", {"forward", "reverse", "bidirectional"}),
        ("MaxPool", "storage_order", {0, 1}),
        ("ReduceMax", "noop_with_empty_axes", {0, 1}),
        ("CumSum", "exclusive", {0, 1}),
        ("ArgMax", "axis", {0, 1, -1, -2}),
    ],
)
def test_every_value_of_an_attribute_is_tried(operator: str, attribute: str, values: set[str | int]) -> None:
    tried = {value_of(case, attribute) for case in load_grid() if case.structure.operator == operator}
    assert tried >= values


def test_two_attributes_are_varied_together() -> None:
    tried = {
        (value_of(case, "mode"), value_of(case, "padding_mode"))
        for case in load_grid()
        if case.name.startswith("grid/GridSample/float/")
    }
    modes, paddings = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    assert tried >= {(mode, padding) for mode in modes for padding in paddings}


def test_a_variation_is_tried_with_few_types_and_small_numbers() -> None:
    found = [case for case in load_grid() if case.structure.is_variation]
    assert 300 < len(found) <= 600
    assert all(list(judge.value_classes(case, EXACT)) == ["small"] for case in found)
    labels = [case.name.rpartition("/") for case in found if case.structure.operator == "TopK"]
    assert {head.rpartition("/")[2] for head, _, _ in labels} == {"float", "int32"}


def test_rows_of_the_tolerances_are_operators() -> None:
    assert set(TOLERANCES) <= {*newest_schemas(), "Scatter"}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64])
def test_extremes_are_there_and_every_pair_of_them_meets(kind: Any) -> None:
    values = specials(np.dtype(kind))
    names = {np.float16: "float16", np.float32: "float", np.float64: "double"}
    x = inputs_of(case_of(f"Add/{names.get(kind, np.dtype(kind).name)}/61x61"), "extreme")
    size = f"u{np.dtype(kind).itemsize}"
    pairs = set(zip(x["x0"].view(size).ravel().tolist(), x["x1"].view(size).ravel().tolist(), strict=True))
    assert len(pairs) == len(values) ** 2
    if np.dtype(kind).kind == "f":
        info = np.finfo(kind)
        assert {info.max, info.min, info.tiny, info.smallest_subnormal, np.inf, -np.inf} <= set(
            values.tolist()
        )
        assert np.isnan(values).any()
        assert set(np.signbit(values[values == 0]).tolist()) == {False, True}
    else:
        assert {np.iinfo(kind).min, np.iinfo(kind).max, 0, 1} <= set(values.tolist())


def test_numbers_are_the_same_every_time() -> None:
    first, again = (inputs_of(case_of("Exp/float/13"), "full") for _ in range(2))
    assert first["x0"].tobytes() == again["x0"].tobytes()


F32 = np.dtype(np.float32)
EXACT, ROUNDED = Tolerance("exact"), Tolerance("rounded", 2, 1)


@pytest.mark.parametrize(
    ("y", "due", "tolerance", "slack", "is_right"),
    [
        (1.0, 1.0, EXACT, 0.0, True),
        (np.nan, np.nan, EXACT, 0.0, True),
        (np.nan, 1.0, ROUNDED, 1.0, False),
        (1.0, np.nan, ROUNDED, 1.0, False),
        (-0.0, 0.0, EXACT, 0.0, False),
        (-0.0, 0.0, ROUNDED, 1e-3, False),
        (-0.0, 0.0, Tolerance("summed", 1, 1), 1e-3, True),
        (np.inf, -np.inf, EXACT, 0.0, False),
        (1.0 + 2**-23, 1.0, EXACT, 0.0, False),
        (1.0 + 2**-23, 1.0, ROUNDED, 2**-22, True),
        (1.0 + 2**-21, 1.0, ROUNDED, 2**-22, False),
        (np.inf, 3.4028236e38, ROUNDED, 2**105, True),
        (np.inf, 1e38, ROUNDED, 2**105, False),
    ],
)
def test_what_is_near(y: float, due: float, tolerance: Tolerance, slack: float, is_right: bool) -> None:
    found = near(np.array([y], np.float32), np.array([due]), F32, tolerance, np.array([slack]))
    assert found.tolist() == [is_right]


def test_f16_is_clipped_where_f32_is_finite() -> None:
    values = np.array([65519.0, 65520.0, -1e30, 1e39, np.inf, np.nan, -0.0])
    found = narrowed(values, np.dtype(np.float16))
    assert np.array_equal(
        found, np.array([65504, 65504, -65504, np.inf, np.inf, np.nan, 0], np.float16), equal_nan=True
    )
    assert np.signbit(found[-1])
    due = np.array([70000.0])
    for y, is_right in ((65504.0, True), (np.inf, False)):
        f16 = np.array([y], np.float16)
        assert near(f16, due, f16.dtype, EXACT, np.zeros(1)).tolist() == [is_right]


def test_what_onnx_leaves_undefined() -> None:
    cast = case_of("Cast/float-int8/61x61")
    x = np.array([127.9, 128.0, -128.9, -129.0, np.nan, np.inf], np.float32)
    found = undefined(cast, {"x0": x})
    assert found is not None
    assert found.tolist() == [False, True, False, True, True, True]
    # Integers of a few bits are kept in bytes, and have their own range.
    few = undefined(case_of("Cast/float16-uint2/61x61"), {"x0": np.array([3.9, 4, -0.9, -1], np.float16)})
    assert few is not None
    assert few.tolist() == [False, True, False, True]
    least = np.array([-128, -128, 5], np.int8)
    quotient = undefined(case_of("Div/int8/61x61"), {"x0": least, "x1": np.array([-1, 1, 0], np.int8)})
    assert quotient is not None
    assert quotient.tolist() == [True, False, True]
    assert undefined(case_of("Add/int8/61x61"), {"x0": least, "x1": least}) is None


def test_what_is_decided_is_computed_apart_from_both_references() -> None:
    inf, nan, most = np.inf, np.nan, np.iinfo(np.int64).max

    def of(name: str, *inputs: Any, shape: tuple[int, ...]) -> Any:
        found = decided(case_of(name), {f"x{i}": np.asarray(x) for i, x in enumerate(inputs)}, shape)
        assert found is not None
        return found["y0"]

    def same(found: Any, due: Any) -> None:
        np.testing.assert_array_equal(found, due)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(due))

    x = np.array([-0.0, 0.0, inf, -3, 7], np.float32)
    same(of("Clip/float/sweep0", x, np.float32(0), np.float32(5), shape=(5,)), [0.0, 0.0, 5, 0, 5])
    same(
        of("Clip/float/sweep0", x, np.float32(-5), np.float32(-0.0), shape=(5,)), [-0.0, -0.0, -0.0, -3, -0.0]
    )
    window = np.array([[[1, nan, 2, -0.0, 0.0]]], np.float32)
    found = of("MaxPool/float/maxpool_1d_default", window, shape=(1, 1, 4))
    np.testing.assert_array_equal(found, [[[nan, nan, 2, 0]]])
    assert not np.signbit(found[0, 0, 3])
    whole = np.array([[[most], [most], [-5]], [[-3], [-3], [-2]], [[1], [2], [5]]])
    same(of("ReduceMean/int64/sweep0", whole, shape=(3, 1)), [[-2], [-2], [2]])
    rows = np.array([[2**30, 2**30]], np.int32)
    same(
        of("Gemm/int32/sweep1", rows, np.array([[2], [2]], np.int32), np.array([7], np.int32), shape=(1, 1)),
        [[7]],
    )
    same(of("PRelu/float/61x61", x, np.float32(-0.0), shape=(5,)), [-0.0, 0.0, inf, 0.0, 7])
    channels = np.array([[[1.0], [2.0], [inf], [1.0], [3.0]]])
    found = of("LRN/float/lrn", channels, shape=(1, 5, 1))[0, :, 0]
    np.testing.assert_allclose(
        found[[0, 4]], [1 / (2 + 2e-4 / 3 * 5) ** 0.5, 3 / (2 + 2e-4 / 3 * 10) ** 0.5], rtol=1e-6
    )
    np.testing.assert_array_equal(found[1:4], [0, nan, 0])


def test_choices_are_read_and_a_line_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "choices.txt"
    path.write_text("# why\nMax/*float*/* extreme: runtime: NaN wins\n", encoding="utf-8")
    (choice,) = read_choices(path)
    assert choice.fits("Max/float16/13", "extreme")
    assert not choice.fits("Max/int8/13", "extreme")
    path.write_text("Max extreme runtime\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"choices.txt:1: expected"):
        read_choices.__wrapped__(path)


def test_every_choice_is_of_a_case() -> None:
    names = [case.name.partition("/")[2] for case in load_grid()]
    for choice in read_choices():
        assert any(
            choice.fits(name, kind) for name in names for kind in ("extreme", "full", "small", "sparse")
        ), choice


def wrong_by(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return an engine for tiles that changes what the plan simulator computes."""

    def run(executable: Any, inputs: Mapping[str, Any]) -> Any:
        return SimpleNamespace(outputs={name: change(y) for name, y in executable.run(inputs).items()})

    return run


def last_changed(y: Any) -> Any:
    found = y.copy()
    found.flat[-1:] = -found.flat[-1:] if y.dtype.kind == "f" else found.flat[-1:] + 1
    return found


@pytest.mark.parametrize(
    "name",
    ["Add/float/13", "Reshape/int8/sweep0", "Exp/float16/13", "Identity/int4/61x61", "Squeeze/uint2/squeeze"],
)
def test_one_wrong_element_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "run_on_tiles", wrong_by(lambda y: y))
    (findings,) = judge.judge_cases([case_of(name)])
    assert {each.outcome for each in findings} == {"pass"}
    monkeypatch.setattr(judge, "run_on_tiles", wrong_by(last_changed))
    (findings,) = judge.judge_cases([case_of(name)])
    assert {each.outcome for each in findings if each.engine == "plan"} == {"pass"}
    assert "wrong" in {each.outcome for each in findings if each.engine == "iss"}


def test_an_attribute_that_is_ignored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule for DepthToSpace once left the order of its blocks to a lowering that knew one mode."""
    crd, dcr = (case_of(f"DepthToSpace/float/sweep{i}") for i in (0, 1))

    def ignoring(case: GridCase) -> Any:
        return build(dcr if case is crd else case)

    monkeypatch.setattr(judge, "build", ignoring)
    (findings,) = judge.judge_cases([crd])
    assert {(each.engine, each.outcome) for each in findings} >= {("plan", "wrong"), ("iss", "wrong")}


def test_cases_together_give_what_they_give_alone() -> None:
    cases = [case for case in load_grid() if case.name.startswith("grid/Sub/int8/")]
    assert len(cases) > 2
    assert judge.judge_cases(cases) == [judge.judge_cases([case])[0] for case in cases]


def test_references_that_disagree_need_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "read_choices", lambda: ())
    assert choice_for("Where/bool-float/61x61", "extreme") is None
    (findings,) = judge.judge_cases([case_of("Where/bool-float/61x61")])
    told = {each.outcome: each.text for each in findings}
    assert "the references disagree" in told["undecided"]


def test_packs_hold_every_case_once() -> None:
    found = [case.name for pack in packs(load_grid()) for case in pack.cases]
    assert sorted(found) == sorted(case.name for case in load_grid())
    assert len(set(found)) == len(found)


def test_known_differences_cover_theirs_and_go_when_they_are_gone(tmp_path: Path) -> None:
    found = [
        Defect("grid/Neg/int8/13", "iss", "wrong", "1 for 2"),
        Defect("grid/Neg/int8/13", "plan", "wrong", ""),
    ]
    line = Known("grid/Neg/*", "iss", "why")
    assert unknown(found, [line]) == (found[1],)
    assert stale(found, [line, Known("Abs/*", "*", "why")]) == (Known("Abs/*", "*", "why"),)
    path = tmp_path / "known.txt"
    path.write_text("# more\ngrid/Neg/* iss: why\n", encoding="utf-8")
    assert read_known(path) == (line,)
    path.write_text("Neg\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"known.txt:1"):
        read_known(path)


def test_a_row_counts_by_engine_and_names_a_refusal() -> None:
    parts = (
        Verdict("grid/Add/int8/13", "Add-14", "pass", tiles="pass", host="pass"),
        Verdict("grid/Add/int8/1", "Add-14", "pass", tiles="wrong", tiles_reason="1 for 2"),
        Verdict(
            "grid/Add/int4/1", "Add-14", "unsupported", "no int4", tiles="unsupported", tiles_reason="no int4"
        ),
    )
    verdicts = by_case([Verdict("grid/Add", "Add-14", "pass", parts=parts)])
    assert [(r.types, r.n, r.plan, r.iss, r.host, r.n_host) for r in rows(verdicts)] == [
        ("int4", 1, 0, 0, 0, 0),
        ("int8", 2, 2, 1, 1, 1),
    ]
    assert [str(each) for each in defects(verdicts)] == ["grid/Add/int8/1 on iss: wrong: 1 for 2"]
