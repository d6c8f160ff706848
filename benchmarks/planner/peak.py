"""Memory: the compiler's peak against the simulator's, and the packing of buffers against what liveness needs."""

from __future__ import annotations

from pathlib import Path

from planner.bars import Bar, number, table_lines
from planner.memory import liveness_bytes
from planner.planned import Request, in_own_process
from planner.settings import Settings
from t10.arrays import read_arrays
from t10.chip import load_chip
from t10.driver import compile
from t10.reference import split_reference

BUNDLED = Path(__file__).resolve().parent.parent.parent / "examples" / "models"
ARCHITECTURES = "*_fp16.onnx"
RUN_CHIP = "test-64"
MOST_WASTE = 1.01


def run(settings: Settings) -> list[Bar]:
    """Print a row per model and return the bars."""
    executed = [_executed(path) for path in sorted(BUNDLED.glob(ARCHITECTURES))]
    print(f"\nmemory of models executed on {RUN_CHIP}, bytes per core")
    print(
        "\n".join(
            table_lines(("model", "compiled", "simulated", "by liveness", "ratio"), [r for r, _ in executed])
        )
    )
    rows, ratios = _planned(settings)
    print(f"\nmemory of models planned on {settings.chip}, bytes per core")
    print("\n".join(table_lines(("model", "peak", "by liveness", "ratio"), rows)), flush=True)
    wrong = max(difference for _, difference in executed)
    bars = [Bar("peak", "compiled peak - simulated peak, largest", wrong, "bytes", 0, "<=", "computed")]
    worst = max(ratios.values(), default=None)
    note = max(ratios, key=lambda name: ratios[name]) if ratios else "nothing fits"
    return [*bars, Bar("peak", "packing / liveness, worst", worst, "", MOST_WASTE, "<=", "computed", note)]


def _executed(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the row of a bundled model and how far the two peaks differ."""
    executable = compile(path, RUN_CHIP)
    inputs, _ = split_reference(read_arrays(path.with_suffix(".npz")))
    simulated = executable.execute(inputs).peak_bytes
    plan = executable.plan
    reserved = executable.chip.reserved_bytes
    least = liveness_bytes(plan, reserved)
    ratio = (plan.end_bytes - reserved) / (least - reserved)
    row = (path.stem, number(plan.end_bytes), number(simulated), number(least), f"{ratio:.4f}")
    return row, abs(plan.peak_bytes - simulated)


def _planned(settings: Settings) -> tuple[list[tuple[str, ...]], dict[str, float]]:
    """Return rows and ratios of the models in full size."""
    rows: list[tuple[str, ...]] = []
    ratios: dict[str, float] = {}
    reserved = load_chip(settings.chip).reserved_bytes
    for name in settings.models:
        outcome = in_own_process(Request(name, chip=settings.chip, cost_model=settings.cost_model))
        if outcome.status != "planned":
            rows.append((name, outcome.status, "-", "-"))
            continue
        used, least = outcome.peak_bytes - reserved, outcome.liveness_bytes - reserved
        ratios[name] = used / least
        rows.append((name, number(outcome.peak_bytes), number(outcome.liveness_bytes), f"{ratios[name]:.4f}"))
    return rows, ratios
