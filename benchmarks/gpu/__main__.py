"""Measure the architectures of the paper on a GPU: milliseconds per run in f16.

    python benchmarks/gpu                                     # every model, batches 1 to 128
    python benchmarks/gpu --models bert-large,opt-13b --batches 1,8 --json gpu.json

Needs PyTorch and a GPU that it sees, nothing else of this repository: without them a line says so and nothing is run.
Shapes are those of `planner.models`, weights are random. Every model runs operator by operator (`eager`), compiled by
PyTorch (`compiled`), and by TensorRT where `torch_tensorrt` is installed, each replayed as one CUDA graph so that no
launch is waited for. A time is the median of runs after warm-up. Before it is printed, the outputs are compared with
those of the same model in f32.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--models", help="names, separated by commas (default: all)")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)), help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all timings here")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("skipped: torch is not installed")
        return 0
    torch: Any = importlib.import_module("torch")
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return 0
    from gpu.networks import BUILDERS
    from gpu.timing import Timing, timed

    names = arguments.models.split(",") if arguments.models else list(BUILDERS)
    unknown = [name for name in names if name not in BUILDERS]
    if unknown:
        parser.error(f"no model {unknown[0]!r}; there are {', '.join(BUILDERS)}")
    ways = ["eager", "compiled"]
    if importlib.util.find_spec("torch_tensorrt") is None:
        print("skipped: torch_tensorrt is not installed, nothing is timed with TensorRT")
    else:
        ways.append("tensorrt")
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, CUDA {torch.version.cuda}; measured, f16", flush=True)
    timings: list[Timing] = []
    with torch.inference_mode():
        for name in names:
            for batch in map(int, arguments.batches.split(",")):
                timings += timed(name, batch, ways)
    if arguments.json:
        found = {"device": device, "torch": torch.__version__, "timings": [asdict(each) for each in timings]}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
