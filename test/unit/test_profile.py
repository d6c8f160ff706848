"""Fitted costs: classes, regimes and fits of compute steps, tables as files, and steps measured as they are lowered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import specs
from support.random_fits import random_case

from t10.backend import lowered
from t10.chip import ChipSpec, load_chip
from t10.codelets.count import cycles_of
from t10.core.expression import Combine, OperatorSpec
from t10.cost.classes import class_of
from t10.cost.combine import combine_operator
from t10.cost.fitted import bundled_table, read_table
from t10.cost.ipu import IpuCostModel
from t10.cost.kernel_variants import KernelVariant
from t10.cost.work import sub_task
from t10.driver import Executable, compile
from t10.errors import InputError
from t10.profile.boxes import further_boxes, random_boxes
from t10.profile.fit import fit, nonnegative_least_squares
from t10.profile.fit_variants import fit_variants, predicted
from t10.profile.model import profile
from t10.profile.shape_classes import shape_classes
from t10.profile.table import classes_of_table, write_fits
from t10.random_inputs import random_inputs
from t10.sim.device import run_device

MODELS = Path(__file__).parents[2] / "examples" / "models"


def test_least_squares_find_what_made_the_data_and_never_a_negative() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((40, 4))
    truth = np.array([2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(nonnegative_least_squares(table, table @ truth), truth, atol=1e-9)
    against = nonnegative_least_squares(table, table @ np.array([1.0, -1.0, 1.0, 1.0]))
    assert (against >= 0).all()
    assert against[1] == 0


def test_what_a_model_cannot_tell_apart_it_does_not_price_at_the_cheaper() -> None:
    # One feature, 1 and 4 cycles for the same box: least squares of relative errors would say 1.18.
    one = np.ones(40)
    cycles = np.where(np.arange(40) % 2, 1.0, 4.0)
    assert 1.5 < fit({"one": one}, cycles)["one"] < 2.5


def test_extents_and_names_do_not_make_classes() -> None:
    small, large = specs.matmul(8, 8, 8), specs.matmul(128, 64, 256)
    assert class_of(small, "sub_task").key == class_of(large, "sub_task").key
    assert class_of(small, "sub_task").key != class_of(specs.matmul(8, 8, 8, "f32"), "sub_task").key


def test_every_stratum_gets_boxes_to_be_fitted_on() -> None:
    one = class_of(specs.matmul(64, 64, 64), "sub_task")
    boxes = random_boxes(one, 0, 30)
    assert boxes == random_boxes(one, 0, 30)
    conditions = [np.asarray(c) for _, c in shape_classes(one, np.array(boxes, np.int64))]
    first = np.argmax(np.stack(conditions), axis=0)
    assert (np.bincount(first, minlength=len(conditions)) >= 5).sum() >= 7


def test_further_boxes_are_others_and_of_ways_that_few_can_be_taken_for() -> None:
    one = class_of(combine_operator("f32", "sum"), "combine")
    known, further = random_boxes(one, 0, 30), further_boxes(one, 0, 30)
    assert further == further_boxes(one, 0, 30)
    assert not set(known) & set(further)
    counts = [sum(2 <= box[0] <= 4 for box in boxes) for boxes in (known, further)]
    assert sum(counts) >= 30


def test_the_fastest_of_several_ways_is_fitted() -> None:
    # By rows or by points, whatever is less; five in six boxes of each are not enough to tell by a single line.
    rng = np.random.default_rng(0)
    rows, points = rng.integers(1, 50, 200).astype(float), rng.integers(1, 2000, 200).astype(float)
    cycles = np.minimum(100 + 30 * rows, 60 + 2 * points)
    one = np.ones(200)
    variants = [
        KernelVariant(
            "rows", lambda: one > 0, lambda: {"one": one, "rows": rows}, {"one": 90.0, "rows": 20.0}
        ),
        KernelVariant(
            "points", lambda: one > 0, lambda: {"one": one, "points": points}, {"one": 50.0, "points": 3.0}
        ),
    ]
    taken = ["rows" if r < p else "points" for r, p in zip(100 + 30 * rows, 60 + 2 * points, strict=True)]
    model = fit_variants(variants, cycles, taken)
    np.testing.assert_allclose(predicted(variants, model, 200), cycles, rtol=1e-6)
    assert model["rows"] == pytest.approx({"one": 100, "rows": 30})


@pytest.mark.parametrize(("dtype", "combine"), [("f32", "sum"), ("f16", "max")])
def test_combining_whole_lines_is_modelled_to_the_cycle(dtype: str, combine: Combine) -> None:
    made = profile(class_of(combine_operator(dtype, combine), "combine"), 60)
    assert made is not None
    whole = (made.boxes[:, 1] % 4 == 0) & made.is_test
    assert made.is_test.sum() >= 15
    assert np.median(np.abs(made.errors[whole])) < 0.005
    assert np.quantile(np.abs(made.errors[whole]), 0.9) < 0.05


def test_products_are_modelled_within_a_few_percent() -> None:
    # Rows of inputs and weights along the inner axis, as linear layers have them.
    one = next(c for c in classes_of_table() if c.title == "product f16 to f32" and len(c.spec.axes) == 3)
    made = profile(one, 60)
    assert made is not None
    whole = (made.boxes[:, 1:] % 4 == 0).all(axis=1) & made.is_test
    assert whole.sum() >= 30
    assert np.median(np.abs(made.errors[whole])) < 0.025
    assert np.quantile(np.abs(made.errors[whole]), 0.9) < 0.12


def test_a_table_reads_as_it_was_written_and_prices_what_it_knows(tmp_path: Path) -> None:
    spec = specs.matmul(64, 64, 64)
    made = profile(class_of(spec, "sub_task"), 40)
    assert made is not None
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for path in paths:
        write_fits(path, [made], 0, 40)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    table = read_table(paths[0])
    prices = IpuCostModel(load_chip("ipu-mk2"), table)
    launch = prices.chip.launch_cycles
    expected = [max(int(np.ceil(c - 0.01)), 1) + launch for c in made.modelled[:20]]
    found = prices.sub_task_cycles_many(spec, made.boxes[:20])
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2)
    # Of other classes it says nothing: they cost what the formulas say.
    unknown = specs.matmul(64, 64, 64, "f32")
    assert table.predicted(unknown, "sub_task", made.boxes) is None
    assert (prices.sub_task_cycles_many(unknown, made.boxes) > launch).all()


@pytest.mark.parametrize("text", ["", "[]", '{"classes": {"a": 1}}', '{"version": 1}'])
def test_a_file_that_is_no_table_is_told_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"wrong\.json"):
        read_table(path)


def test_cores_that_compute_otherwise_are_priced_by_formulas() -> None:
    mk2, other = load_chip("ipu-mk2"), load_chip("ipu-mk2:n_workers=4")
    assert IpuCostModel(mk2).is_fitted
    assert not IpuCostModel(other).is_fitted
    assert bundled_table().digest in IpuCostModel(mk2).fingerprint()
    assert bundled_table().digest not in IpuCostModel(other).fingerprint()


def test_classes_of_the_bundled_table_are_found_again() -> None:
    graph = compile(MODELS / "bert_fp16.onnx", "test-16").plan.graph
    known = {one.key for one in classes_of_table()}
    assert known == set(bundled_table().classes)
    keys = [class_of(spec, "sub_task").key for spec in graph.operators]
    assert sum(key in known for key in keys) >= 0.9 * len(keys)


def test_a_box_takes_what_its_task_takes() -> None:
    spec: OperatorSpec = specs.matmul(32, 32, 32)
    first = cycles_of(sub_task(spec, (32, 32, 32)))
    assert first == cycles_of(sub_task(spec, (32, 32, 32)))
    assert first is not None
    smaller = cycles_of(sub_task(spec, (16, 16, 16)))
    assert smaller is not None
    assert smaller < first


def test_codelets_with_more_scratch_than_lies_below_their_stacks_are_measured() -> None:
    """Rows of 101 elements are copied to be read by 8 bytes: 48,672 of them."""
    odd, even = (cycles_of(sub_task(specs.matmul(n, n, n, "f32"), (n, n, n))) for n in (101, 104))
    assert odd is not None
    assert even is not None
    assert even < odd < 4 * even


@pytest.mark.parametrize("model", ["mlp", "softmax"])
def test_measured_steps_are_those_that_run(model: str) -> None:
    planned = compile(MODELS / f"{model}.onnx", "test-16")
    measured = planned.with_measured_steps()
    assert measured.plan.operators[0].active.plan == planned.plan.operators[0].active.plan
    made = lowered(measured)
    inputs = random_inputs(measured.plan.graph, 0)
    ran = run_device(made.program, measured.chip, made.image, measured.weights, inputs)
    result = measured.execute(inputs)
    for one, other in zip(ran.operators, result.operators, strict=True):
        assert one.cycles.compute == pytest.approx(other.cycles.compute, rel=0.1)
    assert ran.cycles == pytest.approx(result.cycles, rel=0.1)


@pytest.mark.parametrize(
    ("seed", "sram_bytes"),
    [(2, 33424), (15, 32392), (20, 22688), (21, 28896), (57, 24880), (81, 29872), (94, 20640), (1121, 35472)],
    ids=["in place", "copies", "adding", "fills", "two types", "seams", "parts of words", "offsets"],
)
def test_plans_cost_what_they_take(seed: int, sram_bytes: int, tmp_path: Path) -> None:
    """Planned for a small memory and executed in a large one, where all operands lie in elements of their own."""
    case = random_case(seed)
    (tmp_path / "model.onnx").write_bytes(case.model)
    small, large = (
        ChipSpec.model_validate({**case.chip.model_dump(), "sram_bytes": size})
        for size in (sram_bytes, load_chip("test-16").sram_bytes)
    )
    model, plan = tmp_path / "model.onnx", tmp_path / "small" / "plan.json"
    compile(model, small).save(plan.parent)
    planned = compile(model, large, plan=plan, program=True).with_measured_steps()
    made = lowered(planned)
    ran = run_device(made.program, large, made.image, planned.weights, case.inputs)
    result = planned.execute(case.inputs)
    assert result.cycles == planned.report().total_cycles
    if b"Gather" in case.model:
        # A look-up branches on its indices: it takes what made-up ones do, or less.
        assert 0.9 * result.cycles <= ran.cycles <= result.cycles
    else:
        assert ran.cycles == result.cycles


def test_measured_steps_are_kept_with_the_plan(tmp_path: Path) -> None:
    measured = compile(MODELS / "mlp.onnx", "test-16").with_measured_steps()
    measured.save(tmp_path)
    again = Executable.load(tmp_path)
    assert dict(again.measured) == dict(measured.measured)
    assert again.report().total_cycles == measured.report().total_cycles
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "plan.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
