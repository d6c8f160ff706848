#!/usr/bin/env python3
"""Feed damaged models to T10: each must be taken, or refused with one clear error, in bounded time and memory.

    python tools/fuzz_models.py --count 100000 --tests       # each inspected and read, some go further
    python tools/fuzz_models.py --count 2000 --level import  # all to linalg; plan: all to a plan for test-4
    python tools/fuzz_models.py --count 2000 --level text    # models as text of onnx-mlir, StableHLO and linalg
    python tools/fuzz_models.py --count 2000 --level ir      # IR of every stage through t10-opt
    python tools/fuzz_models.py --only 4711 --save bad.onnx  # one case again

A model is always inspected and read (parsed, checked, inferred, expanded, folded). Where it goes from there is told by
`--level`, or, as it is by default, by its number: every tenth is lowered to linalg, every hundredth planned for test-4.

Cases are numbered: a number and a seed give the same bytes on every machine that has the same `onnx`. Models are
damaged in structure (names, types, extents, attributes, opsets, graphs, functions, external data) and in bytes. Each
batch runs in a child process under a memory limit; a child that dies, by a signal or by the time limit, names the case
it died of.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import shlex
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from fuzz_runner import ENDED, Verdict, case_options, judged
from model_damage import Corpus, damaged, damaged_piece, damaged_text

from t10.driver import compile
from t10.errors import EXIT_INTERNAL, InfeasiblePlanError, InputError, T10Error, UnsupportedOpError
from t10.frontend.importer import import_model
from t10.frontend.onnx_file import load_onnx
from t10.inspect import model_facts, statistics
from t10.inspect.tree import tree_lines
from t10.opt.main import main as t10_opt

EXPECTED = (InputError, UnsupportedOpError, InfeasiblePlanError)
LEVELS = ("mixed", "read", "import", "plan", "text", "ir")
MEMORY_BYTES = 8 << 30
BATCH = 250
MAX_MESSAGE = 4000


def case(number: int, seed: int, corpus: Corpus, level: str) -> bytes:
    """Return the bytes of a case."""
    made = {"text": damaged_text, "ir": damaged_piece}.get(level, damaged)
    return made(number, seed, corpus)


def level_of(number: int, level: str) -> str:
    """Return how far a case goes: `mixed` is decided by its number."""
    if level != "mixed":
        return level
    return "plan" if number % 100 == 0 else "import" if number % 10 == 0 else "read"


def judge(data: bytes, folder: Path, level: str) -> Verdict:
    """Return what T10 does with the bytes of a model, written to a file in `folder`."""
    path = folder / ("model.mlir" if level in ("text", "ir") else "model.onnx")
    path.write_bytes(data)
    try:
        if level == "ir":
            return judge_ir(data, path)
        with contextlib.suppress(InputError):
            facts = model_facts(path)
            statistics(facts)
            list(tree_lines(facts, max_nodes=50))
        if level == "plan":
            compile(path, "test-4")
        elif level in ("import", "text"):
            import_model(path)
        else:
            load_onnx(path)
    except EXPECTED as error:
        text = "\n".join((str(error), *error.details))
        long = len(text) > MAX_MESSAGE * (1 + len(error.details))
        return Verdict("defect" if long or not error.message else "refused", text[:MAX_MESSAGE])
    except T10Error as error:
        return Verdict("defect", f"{type(error).__name__}: {error}")
    except Exception:
        return Verdict("defect", traceback.format_exc(limit=-8))
    return Verdict("taken", "")


def judge_ir(data: bytes, path: Path) -> Verdict:
    """Return what `t10-opt` does with IR, under the flags that its first line states."""
    flags = shlex.split(data.partition(b"\n")[0].decode().removeprefix("//"))
    errors, results = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(results):
        code = t10_opt([*flags, str(path)])
    text = errors.getvalue()
    if code == 0:
        return Verdict("taken", "")
    is_told = code != EXIT_INTERNAL and ("error:" in text or "t10-opt: try" in text)
    return Verdict("refused" if is_told or "--verify-diagnostics" in flags else "defect", text[-MAX_MESSAGE:])


def run_batch(
    numbers: range, seed: int, corpus: Corpus, folder: Path, level: str
) -> list[tuple[int, Verdict]]:
    """Return the verdicts of a batch, judged in a child process; a case that ends the child is a defect."""

    def one(number: int) -> Verdict:
        return judge(case(number, seed, corpus, level), folder, level_of(number, level))

    return judged(numbers, one, memory_bytes=MEMORY_BYTES, is_stopped_told=level in ("text", "ir"))


def main() -> int:
    """Run the cases; return 1 if any is a defect."""
    parser = case_options(__doc__)
    parser.add_argument("--tests", action="store_true", help="damage the models of ONNX's own tests too")
    parser.add_argument(
        "--level", choices=LEVELS, default="mixed", help="how far a model goes (default: %(default)s)"
    )
    given = parser.parse_args()
    corpus = Corpus.load(with_tests=given.tests)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.only is not None:
            data = case(given.only, given.seed, corpus, given.level)
            if given.save:
                given.save.write_bytes(data)
            verdict = judge(data, folder, level_of(given.only, given.level))
            print(f"{verdict.kind}: {verdict.text}")
            return int(verdict.kind == "defect")
        return _run_all(given, corpus, folder)


def _run_all(given: argparse.Namespace, corpus: Corpus, folder: Path) -> int:
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    started = time.monotonic()
    end = given.start + given.count
    for first in range(given.start, end, BATCH):
        for number, verdict in run_batch(
            range(first, min(end, first + BATCH)), given.seed, corpus, folder, given.level
        ):
            counts[verdict.kind] += 1
            if verdict.kind == "defect":
                cause = verdict.text.strip().splitlines()[-1][:150]
                causes[cause] += 1
                if causes[cause] == 1 or cause.startswith(ENDED):
                    print(f"case {number}: {verdict.text}\n", flush=True)
    seconds = time.monotonic() - started
    print(
        f"{given.count} cases in {seconds:.0f} s: "
        + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    )
    for cause, n in causes.most_common():
        print(f"  {n} x {cause}")
    return int(counts["defect"] > 0)


if __name__ == "__main__":
    random.seed(0)
    sys.exit(main())
