#!/usr/bin/env python3
"""The compiler as a library: compile a model for a chip of one's own, run it, and look at the plans.

python examples/compile_and_run.py
"""

from __future__ import annotations

from pathlib import Path

import t10
from t10.random_inputs import random_inputs

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Compile, show what rotates, run."""
    executable = t10.compile(HERE / "models" / "resnet18_fp16.onnx", chip=HERE / "small-memory.yaml")

    # Every value is frozen and has units in its name: plans can be compared, hashed and searched.
    for spec, scheduled in zip(executable.plan.graph.operators, executable.plan.operators, strict=True):
        plan = scheduled.active.plan
        if not plan.loop_order:
            continue
        print(f"{spec.name}: {plan.n_sub_tasks} steps on {plan.n_cores} cores")
        for axis in plan.loop_order:
            name, pace, steps = spec.axes[axis].name, plan.rp[axis], plan.steps[axis]
            print(f"  along {name}: {steps} steps, {pace} elements handed on after each")
        for operand, ft in zip(spec.rotatable, plan.ft, strict=True):
            if max(ft) > 1:
                print(f"  {operand.name} ({operand.role}) rotates, ft = {list(ft)}")

    outputs = executable.run(random_inputs(executable.plan.graph, seed=0))
    for name, array in outputs.items():
        print(f"{name}: {array.dtype} {array.shape}, first numbers {array.ravel()[:3]}")
    report = executable.report()
    print(
        f"{report.total_cycles:,} cycles (modelled), {report.peak_bytes:,} of {report.capacity_bytes:,} bytes per core"
    )


if __name__ == "__main__":
    main()
