"""Models that do not fit: the error says what is held, its numbers add up, and its remedies do what they promise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import specs

import t10
from t10.chip import ChipSpec, load_chip
from t10.chip.off_chip import OffChipMemory
from t10.core.graph import Graph
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan import PlanOptions, plan_module
from t10.plan.fit import explain_fit
from t10.plan.fit.explain_fit import explain, explaining
from t10.plan.fit.model_bound import least_plans, model_bound
from t10.plan.fit.remedies import Case, Remedy, batch_of, narrowed
from t10.plan.search.listed import too_large

CHIP = load_chip("test-16")
LAYERS = specs.mlp_graph(64, (1024,) * 5)
MODELS = {
    "mlp": LAYERS,
    "softmax": specs.softmax_graph(512, 1024),
    "layer norm": specs.layer_norm_graph(512, 1024),
    "conv": specs.one_operator_graph(specs.conv2d(4, 16, 8, 8, 32, 3, 3, pad=1)),
}


TWO_PRODUCTS = """
func.func @main(%x: tensor<64x128xf16>, %w: tensor<128x128xf16> {t10.weight}, %v: tensor<128x128xf16> {t10.weight})
    -> tensor<64x128xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<64x128xf16>
  %a0 = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x128xf16>) -> tensor<64x128xf16>
  %a = linalg.matmul ins(%x, %w : tensor<64x128xf16>, tensor<128x128xf16>)
    outs(%a0 : tensor<64x128xf16>) -> tensor<64x128xf16>
  %b0 = linalg.fill ins(%zero : f16) outs(%empty : tensor<64x128xf16>) -> tensor<64x128xf16>
  %b = linalg.matmul ins(%a, %v : tensor<64x128xf16>, tensor<128x128xf16>)
    outs(%b0 : tensor<64x128xf16>) -> tensor<64x128xf16>
  return %b : tensor<64x128xf16>
}
"""


def chip_with(n_bytes: int) -> ChipSpec:
    return CHIP.model_copy(update={"sram_bytes": n_bytes})


def least_bytes(graph: Graph) -> int:
    cost = IpuCostModel(CHIP)
    return model_bound(graph, CHIP, cost, least_plans(graph, CHIP, cost, PlanOptions())).n_bytes


def explained(graph: Graph, chip: ChipSpec) -> InfeasiblePlanError:
    error = explain(graph, chip, IpuCostModel(chip), PlanOptions())
    assert error is not None
    return error


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_fits_in_what_it_is_said_to_need(name: str) -> None:
    graph = MODELS[name]
    plans = least_plans(graph, CHIP, IpuCostModel(CHIP), PlanOptions())
    # An operator is searched on its own, as if nothing it reads lay in place.
    alone = max(plan.active_bytes for plan in plans) + CHIP.shift_buffer_bytes + CHIP.reserved_bytes
    plan = plan_module(graph, chip_with(max(alone, -(-least_bytes(graph) * 101 // 100 // 8) * 8)))
    assert plan.peak_bytes <= plan.capacity_bytes


@pytest.mark.slow
def test_weights_in_off_chip_memory_are_not_held_while_other_operators_run() -> None:
    """Four weights of 2 MiB at rest are 512 KiB per core; one of them at a time is a quarter of that."""
    graph, chip = LAYERS, chip_with(96 * 1024)
    fetching = chip.model_copy(update={"memory": OffChipMemory(bytes_per_second=1e12)})
    without, with_memory = explained(graph, chip), explained(graph, fetching)
    needed, less = (number(re.findall(r"about ([\d,]+) bytes", e.message)[0]) for e in (without, with_memory))
    assert needed - less > 3 * 1024 * 1024 * 2 // chip.n_cores - 1024
    plan_module(graph, fetching.model_copy(update={"sram_bytes": less + 32 * 1024}))


def test_what_is_needed_counts_a_weight_once_where_it_may_be_used_as_it_rests() -> None:
    """Most of the memory is one weight: with a copy of it a core would need twice as much."""
    graph = specs.one_operator_graph(specs.matmul(16, 1024, 1024))
    share = 2 * 1024 * 1024 // CHIP.n_cores
    error = explained(graph, chip_with(share + 8 * 1024))
    need = number(re.findall(r"needs about ([\d,]+) bytes", error.message)[0])
    assert share < need < 1.3 * share
    plan = plan_module(graph, chip_with(need + 4 * 1024))
    assert plan.peak_bytes <= need + 4 * 1024


def test_what_is_held_adds_up_to_what_is_needed() -> None:
    error = explained(LAYERS, chip_with(200_000))
    need = number(
        re.findall(r"needs about ([\d,]+) bytes per core while .*, test-16 has 200,000", error.message)[0]
    )
    head, *lines = error.details[: error.details.index("tried:")]
    assert head == f"every core then holds {need:,} bytes, {need - 200_000:,} too many:"
    assert sum(number(line.split()[0]) for line in lines) == need
    assert any("weights at rest" in line for line in lines)
    assert any("code and stacks" in line for line in lines)
    assert error.operator in {spec.name for spec in LAYERS.operators}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_is_said_to_be_needed_does_not_depend_on_the_end_of_the_memory(name: str) -> None:
    """Memory that is no whole number of 16 bytes holds no more data; what is lost so is not lacking."""
    graph = MODELS[name]
    errors = [explained(graph, chip_with(30_000 + more)) for more in (0, 1, 8, 15)]
    needs = {number(re.findall(r"needs about ([\d,]+) bytes", error.message)[0]) for error in errors}
    assert len(needs) == 1
    # What is held fits in exactly that, and in no less.
    need = needs.pop()
    assert explain(graph, chip_with(need), IpuCostModel(chip_with(need)), PlanOptions()) is None
    assert explained(graph, chip_with(need - 1)).message.endswith(f"test-16 has {need - 1:,}")


def test_a_lever_that_is_said_to_fit_does() -> None:
    chip = chip_with(320_000)
    error = explained(LAYERS, chip)
    found = [re.match(r"  (\d) x the cores \(\d+\): [\d,]+ bytes, fits", line) for line in error.details]
    factor = next(int(match[1]) for match in found if match)
    plan = plan_module(LAYERS, chip.model_copy(update={"n_cores": factor * chip.n_cores}))
    assert plan.peak_bytes <= 320_000


def test_the_smallest_plan_and_a_smaller_batch_are_tried() -> None:
    error = explained(LAYERS, chip_with(200_000))
    tried = error.details[error.details.index("tried:") :]
    assert any(
        re.search(r"on its smallest plan, .* ft up to \d+: [\d,]+ bytes, its fastest", t) for t in tried
    )
    assert any("a batch of" in line and "instead of 64" in line for line in tried)
    assert any("a shift buffer of 1,024" in line for line in tried)


def test_other_chips_are_listed_with_the_memory_that_they_have() -> None:
    own = chip_with(200_000)
    lines = explained(LAYERS, own).details
    chips = [line for line in lines if line.startswith("  --chip ")]
    assert 0 < len(chips) <= 3
    assert all(line.endswith(" fits") for line in chips)
    for line in chips:
        name = line.split()[1].removesuffix(":")
        assert f" of {load_chip(name).sram_bytes:,} bytes, " in line
    assert not any(" of 200,000" in line for line in lines)
    # Chips for tests help those alone that use one, and the nearest chips come first.
    assert chips[0].startswith("  --chip test-")
    others = explained(LAYERS, own.model_copy(update={"name": "mine"})).details
    names = [line.split()[1].removesuffix(":") for line in others if line.startswith("  --chip ")]
    assert names
    assert not any(name.startswith("test-") for name in names)
    totals = [load_chip(name).n_cores * load_chip(name).capacity_bytes for name in names]
    assert totals == sorted(totals)


@pytest.mark.slow
def test_wide_floats_are_a_lever_where_there_are_any() -> None:
    wide = specs.mlp_graph(64, (1024,) * 5, "f32")
    lines = [line for line in explained(wide, chip_with(200_000)).details if "fp16" in line]
    assert len(lines) == 1
    narrow = least_bytes(specs.mlp_graph(64, (1024,) * 5))
    assert abs(number(lines[0].split()[5]) - narrow) <= 0.02 * narrow
    assert not any("fp16 instead" in line for line in explained(LAYERS, chip_with(200_000)).details)


def no_remedies(case: Case) -> Iterator[Remedy]:
    del case
    return iter(())


@pytest.mark.parametrize(("dtype", "is_wide"), [("f16", False), ("f32", True)])
def test_fp16_is_only_advised_where_a_tensor_is_wider(
    dtype: str, is_wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain_fit, "remedies", no_remedies)
    graph = specs.mlp_graph(1, (4096,) * 3, dtype)
    assert ("fp16" in (explained(graph, chip_with(100_000)).hint or "")) == is_wide
    assert ("fp16" in (too_large(graph.operators[0], CHIP, 10**9).hint or "")) == is_wide


def test_a_narrowed_graph_has_no_wide_floats_but_sums() -> None:
    graph = narrowed(specs.softmax_graph(8, 8, "f32"))
    assert {tensor.dtype for tensor in (*graph.inputs, *graph.weights)} == {"f16"}
    assert {operand.dtype for spec in graph.operators for operand in (*spec.operands, spec.output)} == {"f16"}


def test_a_batch_is_the_first_extent_of_all_inputs_and_outputs() -> None:
    assert batch_of(LAYERS) == 64
    assert batch_of(specs.mlp_graph(1, (8, 8))) is None
    two = specs.chain_graph("two", (specs.elementwise((4, 8), b_axes=(1,)),))
    assert batch_of(two) is None


def test_what_memory_is_no_help_for_stays_as_it_was() -> None:
    assert (
        explain(LAYERS, CHIP.model_copy(update={"sram_bytes": 1 << 30}), IpuCostModel(CHIP), PlanOptions())
        is None
    )
    own = InfeasiblePlanError("f_op needs more cores")
    roomy = CHIP.model_copy(update={"sram_bytes": 1 << 30})
    with (
        pytest.raises(InfeasiblePlanError) as caught,
        explaining(LAYERS, roomy, IpuCostModel(roomy), PlanOptions()),
    ):
        raise own
    assert caught.value is own


def test_planning_raises_the_explanation() -> None:
    with pytest.raises(InfeasiblePlanError, match=r"\(it fits with .*\)$") as caught:
        plan_module(replace(LAYERS, name="large"), chip_with(320_000))
    assert caught.value.details[0].startswith("every core then holds")


@pytest.mark.slow
def test_pins_of_one_chip_that_do_not_fit_say_so_whatever_other_chips_take(tmp_path: Path) -> None:
    """Remedies try chips with fewer cores, for which the pinned plans are none."""
    module = tmp_path / "model.mlir"
    module.write_text(TWO_PRODUCTS, encoding="utf-8")
    t10.compile(module, "test-16:sram_bytes=40960").save(tmp_path / "out")
    with pytest.raises(InfeasiblePlanError, match="bytes per core"):
        t10.compile(module, "test-16:sram_bytes=30720", plan=tmp_path / "out" / "plan.json")
