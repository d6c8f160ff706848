"""Run random models in random small memories on every engine; compare numbers, addresses, peak and cycles.

    python benchmarks/fits.py --count 200                       cases 0 to 199
    python benchmarks/fits.py --only 4711                       one case again
    python benchmarks/fits.py --only 4711 --sram 40960          the same with that much memory
    python benchmarks/fits.py --only 4711 --save FOLDER         its model and inputs, and the command to compile it
    python benchmarks/fits.py --named                           shapes whose operands fill the memory

Prints every case that failed, by kind, and exits with 1 if there was one, or if too many models were refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test")]

if TYPE_CHECKING:
    from support.fit_runs import Outcome

MOST_REFUSED = 0.3
HOST_EVERY = 1 << 16


def run_seed(seed: int, host_share: float, sram_bytes: int) -> Outcome:
    """Return what became of the case of a seed; a share of them also runs as C++ programs."""
    from support.fit_runs import run_case
    from support.random_fits import random_case

    on_host = np.random.default_rng((seed, HOST_EVERY)).random() < host_share
    return run_case(random_case(seed), on_host=bool(on_host), sram_bytes=sram_bytes)


def run_named(seed: int, host_share: float, sram_bytes: int) -> Outcome:
    """Return what became of a named case by its number."""
    from support.fit_runs import run_case
    from support.random_fits import named_cases

    return run_case(named_cases()[seed], on_host=host_share > 0, sram_bytes=sram_bytes)


def report(outcome: Outcome, again: str) -> str:
    """Return what is wrong with a case, and how to run it again."""
    chip = outcome.chip
    lines = [
        f"case {outcome.name}: {chip.n_cores} cores of {chip.sram_bytes:,} bytes, {chip.reserved_bytes:,} reserved, "
        f"shift buffer {chip.shift_buffer_bytes:,}, elements of {chip.element_bytes:,}, "
        f"interleaved from {chip.interleaved_base - chip.memory_base:,} on"
    ]
    lines += [f"    {each.kind}: {each.text}" for each in outcome.findings]
    return "\n".join([*lines, f"    python benchmarks/fits.py {again}"])


def outcomes(options: argparse.Namespace) -> Iterator[tuple[str, Outcome]]:
    """Yield what became of every case as it ends, and the arguments that run it again."""
    from support.random_fits import named_cases

    work, numbers = run_seed, range(options.seed, options.seed + options.count)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    if options.named:
        work, numbers = run_named, range(len(named_cases()))
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(work, n, options.poplar_host, options.sram): n for n in numbers}
        try:
            for future in as_completed(futures):
                outcome = future.result()
                again = f"--only {futures[future]} --sram {outcome.chip.sram_bytes}"
                yield "--named" if options.named else again, outcome
        except KeyboardInterrupt:
            print("interrupted: what ended is reported", flush=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def save(seed: int, sram_bytes: int, folder: Path) -> None:
    """Write the model and the inputs of a case, and print the command that compiles it."""
    from support.fit_runs import CHIP_FIELDS, chip_of
    from support.random_fits import random_case

    from t10.arrays import write_arrays

    case = random_case(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model)
    write_arrays(folder / "inputs.npz", case.inputs)
    chip = chip_of(case, folder / "model.onnx", sram_bytes)
    fields = ",".join(f"{field}={getattr(chip, field)}" for field in CHIP_FIELDS)
    print(f"t10 compile {folder / 'model.onnx'} --chip test-16:{fields} -o {folder / 'out'}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="how many cases (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--named", action="store_true", help="named shapes instead of random models")
    parser.add_argument("--sram", type=int, default=0, help="bytes of memory instead of those that are drawn")
    parser.add_argument(
        "--poplar-host", type=float, default=0.0, metavar="SHARE", help="share built with g++"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--ignore", action="append", default=[], metavar="KIND", help="a kind not to count")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the case of --only, run nothing")
    options = parser.parse_args()
    if options.save is not None:
        save(options.only or 0, options.sram, options.save)
        return 0
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Run the cases, print failures and a summary; return the exit status."""
    from support.fit_runs import KINDS

    began = time.monotonic()
    found: list[Outcome] = []
    n_failed: Counter[str] = Counter()
    for again, outcome in outcomes(options):
        found.append(outcome)
        kinds = {each.kind for each in outcome.findings} - set(options.ignore)
        n_failed.update(kinds)
        if kinds:
            print(report(outcome, again), flush=True)
        elif options.named or options.only is not None:
            print(
                f"case {outcome.name}: {outcome.refusal or f'tiles / plan {outcome.ratio:.3f}'}", flush=True
            )
        if sys.stderr.isatty():
            print(f"\r{len(found)} cases", end="", file=sys.stderr, flush=True)
    refused = [outcome for outcome in found if outcome.refusal]
    ran = [outcome for outcome in found if not outcome.refusal]
    too_many = len(refused) > MOST_REFUSED * len(found)
    reasons = Counter(outcome.refusal.partition(":")[0] for outcome in refused)
    print(
        f"{len(found):,} cases, {len(refused):,} refused ({dict(reasons)}), "
        f"{sum(outcome.on_host for outcome in ran):,} on poplar-host, "
        f"{sum(outcome.peak_bytes == outcome.chip.data_end_bytes for outcome in ran):,} fill their memory; "
        f"failed: {', '.join(f'{n_failed[kind]} {kind}' for kind in KINDS if n_failed[kind]) or 'none'}; "
        f"tiles / plan {min((o.ratio for o in ran), default=1):.3f} to {max((o.ratio for o in ran), default=1):.3f}; "
        f"{time.monotonic() - began:.0f} s"
    )
    if too_many:
        print(f"more than {MOST_REFUSED:.0%} were refused: this shows nothing")
    return 1 if n_failed or too_many or not found else 0


if __name__ == "__main__":
    sys.exit(main())
