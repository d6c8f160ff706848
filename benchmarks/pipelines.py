"""Plan language models as pipelines over several chips: tokens per second, memory, links.

    python benchmarks/pipelines.py [--layers 40] [--chip pod64] [--stages auto] [--batch 1] [--json FILE]

Llama2-13B in f16, a decoding step from the last token to the scores of the next; weights stay on the chips. Every stage
works on a batch of its own: as many batches are under way as there are stages. Times are modelled.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from bundled.transformers import Sizes, llama2_whole
from rich.console import Console

from t10.frontend.importer import import_proto
from t10.report.stages import stages_summary, stages_table
from t10.staged import compile_stages

WIDTH, HEADS, INNER, WORDS = 5120, 40, 13824, 32000
"""Of Llama2-13B."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--chip", default="pod64")
    parser.add_argument("--stages", default="auto")
    parser.add_argument("--level", default="")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=512, help="tokens in sight")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = Sizes(options.batch, options.context, WIDTH, HEADS, INNER, options.layers, WORDS)
    made = llama2_whole("float16", sizes, weight_free=True)
    begin = time.process_time()
    imported = import_proto(made.model(), source=made.name)
    staged = compile_stages(imported, options.chip, stages=options.stages, level=options.level)
    report = staged.report()
    console = Console(width=120)
    console.print(stages_table(report), stages_summary(report))
    plan = staged.staged
    latency = plan.latency_cycles / plan.clock_hz
    rates = {
        "tokens per second of a request": 1 / latency,
        "tokens per second of all": options.batch * plan.results_per_second,
        "requests under way": options.batch * len(plan.stages),
        "chips": len(plan.stages),
        "fullest core": max(stage.peak_bytes for stage in plan.stages) / report.capacity_bytes,
        "busiest link": max(stage.link_share for stage in report.stages),
    }
    for name, value in rates.items():
        is_share = name in ("fullest core", "busiest link")
        print(f"{name:32} {value:>12.1%}" if is_share else f"{name:32} {value:>12,.1f}")
    print(f"{time.process_time() - begin:.0f} s of CPU")
    if options.json:
        options.json.write_text(json.dumps({**rates, **report.model_dump(mode="json")}, indent=1) + "\n")


if __name__ == "__main__":
    main()
