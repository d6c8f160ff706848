#!/usr/bin/env python3
"""Feed damaged files to every door of T10's commands but the model's own, which `fuzz_models.py` looks after.

    python tools/fuzz_doors.py --count 100000
    python tools/fuzz_doors.py --count 200 --door chip
    python tools/fuzz_doors.py --only 4711 --save bad.yaml

A door is a command and the file that it reads: chips, plans, pins, declarations of codelets, arrays, assembly, IR as
text and as bytecode, reproducers, cached plans, lists, and every file of an output folder. A case is a number; with a
seed it gives the same bytes on every machine. It is refused with one line and an exit code that says so, or taken: a
traceback, exit code 70, a signal, 20 seconds of processor time or 4 GB are a defect.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import onnx
import yaml
from file_damage import damaged_json, damaged_npy, damaged_npz, damaged_source, damaged_yaml
from fuzz_runner import ENDED, Verdict, case_options, judged
from model_damage import damaged_bytes

from t10.artefact.manifest import MANIFEST_FILE, digest_of, manifest_text, read_manifest
from t10.cli import main as t10
from t10.cli.verify import EXIT_DIFFERS
from t10.errors import EXIT_INTERNAL
from t10.opt.main import main as t10_opt
from t10.translate import main as t10_translate

ROOT = Path(__file__).resolve().parents[1]
MEMORY_BYTES = 4 << 30
BATCH = 200
MAX_MESSAGE = 3000
CHIP = "test-4"
MLP = ROOT / "examples" / "models" / "mlp.onnx"
STAGED = ("--chip", "test-2x4", "--stages", "2", "--stage-level", "chip")
VARIED = ("--chip", CHIP, "--vary", "n_cores=2,4")
FOLDERS = ("out", "staged", "swept")
"""Folders of the material whose files are damaged one at a time, the others as they were written."""
PRODUCT = """
func.func @m(%x: tensor<4x8xf32> {t10.name = "x"}, %w: tensor<8x4xf32> {t10.name = "w", t10.weight})
    -> (tensor<4x4xf32> {t10.name = "z"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
"""
SAME_IN_ONNX = """
<ir_version: 8, opset_import: ["": 17]> g (float[4,8] x, float[8,4] w) => (float[4,4] z) { z = MatMul(x, w) }
"""
PINS = {
    "format": "t10-pins",
    "version": 1,
    "operators": [
        {"name": "v0", "f_op": {"d0": 2}, "ft": [[1, 1, 1], [1, 1, 1], [1, 1, 1]], "idle_level": 1}
    ],
}
Maker = Callable[[random.Random], bytes]
Code = int


@dataclass(frozen=True, slots=True)
class Door:
    """A command that reads a file: its name in the folder of the case, how it is damaged, and the command lines."""

    name: str
    file: str
    made: Maker
    commands: tuple[Callable[[], Code], ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What cases start from, in a folder: a model, its output folder `out`, IR of every stage, a cache."""

    folder: Path

    @classmethod
    def build(cls, folder: Path) -> Material:
        """Compile a product and keep what comes of it; beside it a model in two stages, and a sweep."""
        made = cls(folder)
        (folder / "m.mlir").write_text(PRODUCT, encoding="utf-8")
        (folder / "v.mlir").write_text(PRODUCT.replace(", t10.weight", ""), encoding="utf-8")
        (folder / "v.onnx").write_bytes(onnx.parser.parse_model(SAME_IN_ONNX).SerializeToString())
        cache = ("--cache", str(folder / "cache"))
        with _silent():
            codes = [
                t10(["compile", str(folder / "m.mlir"), "--chip", CHIP, "-o", str(folder / "out"), *cache]),
                t10_opt([str(folder / "out" / "module.mlir"), "--t10-lower-ipu", "-o", str(folder / "ipu.mlir")]),
                t10_opt([str(folder / "m.mlir"), "--emit-bytecode", "-o", str(folder / "m.mlirbc")]),
                t10_opt([str(folder / "ipu.mlir"), "--emit-bytecode", "-o", str(folder / "ipu.mlirbc")]),
                t10_opt([str(folder / "m.mlir"), "--t10-partition=chip=test-4", "--t10-place",
                         "-o", str(folder / "placed.mlir")]),
                t10(["compile", str(MLP), *STAGED, "--no-program", "-o", str(folder / "staged"), *cache]),
                t10(["sweep", str(folder / "m.mlir"), *VARIED, "-o", str(folder / "swept"), *cache]),
            ]  # fmt: skip
        if any(codes):
            raise RuntimeError(f"the material could not be made: {codes}")
        return made

    def data(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return (self.folder / name).read_bytes()


Command = Callable[[], Code]


def doors(material: Material, at: Path) -> tuple[Door, ...]:
    """Return every door; files of a case lie in `at`."""
    return (
        *_folder_doors(material, at),
        *_planning_doors(material, at),
        *_ir_doors(material, at),
        *_other_doors(material, at),
    )


def _cli(*words: str) -> Command:
    return lambda: t10(list(words))


def _compared(*words: str) -> Command:
    """Return a command whose exit code may also say that results differ."""
    return lambda: code if (code := t10(list(words))) != EXIT_DIFFERS else 0


def _opt(*words: str) -> Command:
    return lambda: t10_opt(list(words))


def _translate(*words: str) -> Command:
    return lambda: t10_translate(list(words))


def _text(material: Material, name: str) -> Maker:
    return lambda dice: damaged_source(dice, material.data(name))


def _json(material: Material, name: str) -> Maker:
    return lambda dice: damaged_json(dice, json.loads(material.data(name)))


def _bytes(material: Material, name: str) -> Maker:
    return lambda dice: damaged_bytes(dice, material.data(name))


def _arrays(shapes: dict[str, str]) -> Maker:
    return lambda dice: damaged_npz(dice, shapes)


def _folder_doors(material: Material, at: Path) -> Iterator[Door]:
    """Yield every file of an output folder, the folder taken as it is and then run, reported or explained."""
    out = str(at / "out")
    taken, run = _cli("manifest", out, "--quiet"), _cli("run", out, "--quiet")
    iss = _cli("run", out, "--engine", "iss", "--quiet")
    shown = (_cli("report", out, "--no-plots"), _cli("explain", out, "--op", "v0"))
    for name, made, commands in (
        ("plan.json", _json(material, "out/plan.json"), (taken, run, *shown)),
        ("report.json", _json(material, "out/report.json"), (taken, *shown)),
        ("module.mlir", _text(material, "out/module.mlir"), (taken, run, *shown)),
        ("weights.npz", _arrays({"w": "(8, 4)"}), (taken, run)),
        ("manifest.json", _json(material, "out/manifest.json"), (run, taken)),
        ("program/program.json", _json(material, "out/program/program.json"), (taken, iss)),
        ("program/weights.json", _json(material, "out/program/weights.json"), (taken, iss)),
        ("program/tables.bin", _bytes(material, "out/program/tables.bin"), (taken, iss)),
        ("program/weights.bin", _bytes(material, "out/program/weights.bin"), (taken, iss)),
        ("program/codelets.S", _text(material, "out/program/codelets.S"), (taken, iss)),
    ):
        yield Door(f"out/{name}", f"out/{name}", made, commands)


def _planning_doors(material: Material, at: Path) -> Iterator[Door]:
    """Yield what `t10` reads beside a model or a folder."""
    model, made = str(material.folder / "m.mlir"), ("--no-program", "-o", str(at / "made"))
    planned = ("compile", model, "--chip", CHIP, *made, "--no-cache")
    chip = _loaded("python/t10/chip/data/ipu-mk2.yaml")
    declared = _loaded("examples/codelets/codelets.yaml")
    yield Door("chip", "x.yaml", lambda dice: damaged_yaml(dice, {**chip, "n_cores": 4}),
               (_cli("compile", model, "--chip", str(at / "x.yaml"), *made, "--no-cache"),))  # fmt: skip
    yield Door(
        "pins",
        "x.json",
        lambda dice: damaged_json(dice, PINS),
        (_cli(*planned, "--plan", str(at / "x.json")),),
    )
    yield Door(
        "plan", "x.json", _json(material, "out/plan.json"), (_cli(*planned, "--plan", str(at / "x.json")),)
    )
    yield Door("codelets", "codelets/codelets.yaml", lambda dice: damaged_yaml(dice, declared),
               (_cli(*planned, "--codelets", str(at / "codelets/codelets.yaml")),))  # fmt: skip
    yield Door("inputs", "x.npz", _arrays({"x": "(4, 8)"}),
               (_cli("run", str(material.folder / "out"), "--inputs", str(at / "x.npz"), "--quiet"),))  # fmt: skip
    yield Door("constant", "x.npy", damaged_npy,
               (_cli("pareto", str(ROOT / "examples/models/mlp.onnx"), "--constant", f"x={at}/x.npy"),))  # fmt: skip
    yield Door("asm", "x.S", _text(material, "out/program/codelets.S"),
               (_cli("asm", str(at / "x.S"), "-D", "T10_SIMULATOR=1", "--quiet"),))  # fmt: skip
    yield Door("list", "x.txt", lambda dice: damaged_source(dice, b"# onnx 1.17\ntest_a [Abs-13]: pass\n"),
               (_cli("conformance", "--only", "light/nothing", "--list", str(at / "x.txt")),))  # fmt: skip
    yield Door("cache", "cache", lambda dice: _damaged_entry(dice, material),
               (_cli("compile", model, "--chip", CHIP, *made, "--cache", str(at / "kept")),))  # fmt: skip


def _ir_doors(material: Material, at: Path) -> Iterator[Door]:
    """Yield IR of T10's own dialects as text and as bytecode, and reproducers."""
    path, binary, result = str(at / "x.mlir"), str(at / "x.mlirbc"), ("-o", str(at / "y"))
    lowered = ("--t10-verify-plan", "--t10-expand", "--t10-lower-ipu", *result)
    targets = ("--ipu-to-poplar", "--ipu-to-asm", "--ipu-to-codelets")
    of_ipu, of_module = _text(material, "ipu.mlir"), _text(material, "out/module.mlir")
    yield Door(
        "translate",
        "x.mlir",
        of_ipu,
        (
            _translate(targets[0], path, "-o", f"{at}/y{targets[0]}", "--no-weights"),
            *(_translate(target, path, "-o", f"{at}/y{target}") for target in targets[1:]),
        ),
    )
    yield Door("translate-bytecode", "x.mlirbc", _bytes(material, "ipu.mlirbc"),
               (_translate("--ipu-to-poplar", binary, "-o", str(at / "y.cpp")),))  # fmt: skip
    yield Door("model-bytecode", "x.mlirbc", _bytes(material, "m.mlirbc"),
               (_cli("inspect", binary), _cli("compile", binary, "--chip", CHIP, "-o", str(at / "made"))))  # fmt: skip
    yield Door("opt-bytecode", "x.mlirbc", _bytes(material, "ipu.mlirbc"), (_opt(binary, *result),))
    yield Door(
        "opt-ipu", "x.mlir", of_ipu, (_opt(path, *result), _opt(path, "--canonicalize", "--cse", *result))
    )
    yield Door("opt-placed", "x.mlir", _text(material, "placed.mlir"), (_opt(path, *lowered),))
    yield Door("opt-module", "x.mlir", of_module, (_opt(path, *lowered),))
    yield Door("reproducer", "x.mlir", lambda dice: damaged_source(dice, PRODUCT.encode() + _reproducer(dice)),
               (_opt(path, "--run-reproducer", *result),))  # fmt: skip


def _other_doors(material: Material, at: Path) -> Iterator[Door]:
    """Yield stages, points of a sweep, and what `t10 verify` compares with."""
    model, staged = str(material.folder / "m.mlir"), str(at / "staged")
    yield Door(
        "staged/stages.json",
        "staged/stages.json",
        _json(material, "staged/stages.json"),
        (
            _cli("manifest", staged, "--quiet"),
            _cli("run", staged, "--quiet"),
            _cli("report", staged, "--no-plots"),
        ),
    )
    yield Door("swept/points.jsonl", "swept/points.jsonl", lambda dice: _damaged_lines(dice, material),
               (_cli("sweep", model, *VARIED, "-o", str(at / "swept"), "--no-cache", "--quiet"),))  # fmt: skip
    verified = ("verify", str(material.folder / "v.mlir"), "--chip", CHIP, "--seeds", "1", "--quiet")
    yield Door("references", "x.npz", _arrays({"in.x": "(4, 8)", "in.w": "(8, 4)", "ref.z": "(4, 4)"}),
               (_compared(*verified, "--inputs", str(at / "x.npz")),))  # fmt: skip
    yield Door("reference-model", "x.onnx", _bytes(material, "v.onnx"),
               (_compared(*verified, "--reference", str(at / "x.onnx")),))  # fmt: skip


def _damaged_lines(dice: random.Random, material: Material) -> bytes:
    """Return a file of points of which one line is damaged, as JSON or as text."""
    lines = material.data("swept/points.jsonl").splitlines()
    at = dice.randrange(len(lines))
    lines[at] = damaged_json(dice, json.loads(lines[at]))
    data = b"\n".join((*lines, b""))
    return damaged_source(dice, data) if dice.random() < 0.2 else data


@cache
def _loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _reproducer(dice: random.Random) -> bytes:
    passes = dice.choice(
        ("t10-fuse", "canonicalize", "t10-partition{chip=test-4}", "t10-place", "x{y=1", "a,,b", "")
    )
    return f'{{-# external_resources: {{ mlir_reproducer: {{ pipeline: "builtin.module({passes})" }} }} #-}}\n'.encode()


def _damaged_entry(dice: random.Random, material: Material) -> bytes:
    entries = sorted(path for path in (material.folder / "cache").rglob("*") if path.is_file())
    data = dice.choice(entries).read_bytes()
    return damaged_bytes(dice, data) if dice.random() < 0.5 else _sealed(damaged_source(dice, data), data)


def _sealed(damaged: bytes, whole: bytes) -> bytes:
    """Return a damaged entry under a header that is right for it."""
    payload = damaged.partition(b"\n")[2]
    parts = whole.partition(b"\n")[0].split(b" ")
    parts[-2:] = [sha256(payload).hexdigest().encode(), str(len(payload)).encode()]
    return b" ".join(parts) + b"\n" + payload


def prepared(number: int, seed: int, material: Material, at: Path, only: str) -> Door:
    """Lay the files of a case into the empty folder `at` and return its door."""
    dice = random.Random(f"{seed}.{number}.door")
    every = [door for door in doors(material, at) if only in ("", door.name)]
    if not every:
        known = ", ".join(door.name for door in doors(material, at))
        raise SystemExit(f"no door '{only}' (expected one of {known})")
    door = every[number % len(every)]
    folder = Path(door.file).parts[0]
    if folder in FOLDERS and folder != door.file:
        shutil.copytree(material.folder / folder, at / folder)
    if door.file.startswith("codelets/"):
        shutil.copytree(ROOT / "examples" / "codelets", at / "codelets")
    data = door.made(dice)
    path = at / door.file
    kind = dice.randrange(40)
    path.unlink(missing_ok=True)
    if door.name == "cache":
        shutil.copytree(material.folder / "cache", at / "kept")
        entries = sorted(each for each in (at / "kept").rglob("*") if each.is_file())
        dice.choice(entries).write_bytes(data)
    elif kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(dice.choice(("/dev/zero", "/dev/null", "/etc/passwd", "nowhere", str(path))))
    elif kind == 2:
        path.write_bytes(dice.choice((b"", b"\0", b"\xff\xfe", dice.randbytes(300), b"\xef\xbb\xbf" + data)))
    elif kind > 3:
        path.write_bytes(data)
    if folder == "staged" and path.is_file() and not path.is_symlink():
        _seal(at / folder, path.name)
    return door


def _seal(folder: Path, name: str) -> None:
    """Write a manifest that says of a file what is in it: `t10 manifest` makes none of a model in stages."""
    made = read_manifest(folder)
    files = {**made.files, name: digest_of(folder / name)}
    (folder / MANIFEST_FILE).write_text(manifest_text(made.about, files), encoding="utf-8")


def judge(number: int, seed: int, material: Material, only: str = "") -> Verdict:
    """Return what T10 does with a case."""
    with tempfile.TemporaryDirectory() as name:
        door = prepared(number, seed, material, Path(name), only)
        is_refused = False
        for command in door.commands:
            with _silent() as told:
                try:
                    code = command()
                except SystemExit as stop:
                    code = int(stop.code or 0)
            text = f"{door.name}: exit {code}: {told.getvalue()}"
            if code == EXIT_INTERNAL or "Traceback" in text or "internal error" in text:
                return Verdict("defect", text[-MAX_MESSAGE:])
            if code and ": error:" not in text and "usage" not in text:
                return Verdict("defect", f"{text[-MAX_MESSAGE:]} (no error told)")
            is_refused = is_refused or code != 0
        return Verdict("refused" if is_refused else "taken", "")


@contextlib.contextmanager
def _silent() -> Generator[io.StringIO]:
    """Keep what is printed; yield what goes to standard error."""
    errors, results = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(results):
        yield errors


def run_batch(numbers: range, seed: int, material: Material, only: str = "") -> list[tuple[int, Verdict]]:
    """Return the verdicts of a batch, judged in child processes.

    Bytecode has one of its own for every case: MLIR's reader may damage memory, and another case would end of it.
    """
    every = [door.file for door in doors(material, material.folder) if only in ("", door.name)]
    found: list[tuple[int, Verdict]] = []
    for group in _groups(numbers, [file.endswith(".mlirbc") for file in every]):
        found += judged(
            group,
            lambda number: judge(number, seed, material, only),
            memory_bytes=MEMORY_BYTES,
            is_stopped_told=True,
        )
    return found


def _groups(numbers: range, is_alone: Sequence[bool]) -> Iterator[range]:
    """Yield a batch in order, cut so that a number whose door is alone is in a group of its own."""
    start = numbers.start
    for number in numbers:
        if is_alone and is_alone[number % len(is_alone)]:
            yield from (group for group in (range(start, number), range(number, number + 1)) if group)
            start = number + 1
    if start < numbers.stop:
        yield range(start, numbers.stop)


def main() -> int:
    """Run the cases; return 1 if any is a defect."""
    parser = case_options(__doc__)
    parser.add_argument("--door", default="", help="only this one (default: all, in turn)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        material = Material.build(Path(name))
        if given.only is not None:
            if given.save:
                at = Path(name) / "case"
                at.mkdir()
                shutil.copy(at / prepared(given.only, given.seed, material, at, given.door).file, given.save)
            verdict = judge(given.only, given.seed, material, given.door)
            print(f"{verdict.kind}: {verdict.text}")
            return int(verdict.kind == "defect")
        return _run_all(given, material)


def _cause(text: str) -> str:
    """Return the line of an error that says what it is, without the names of the case's own folder."""
    lines = text.strip().splitlines()
    told = next((line for line in lines if "error:" in line), lines[-1])
    return re.sub(r"/tmp/\S+|\d+", "#", told)[:200]


def _run_all(given: argparse.Namespace, material: Material) -> int:
    """Run the cases until they end or the run is interrupted; say how many there were."""
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    started = time.monotonic()
    end = given.start + given.count
    try:
        for first in range(given.start, end, BATCH):
            numbers = range(first, min(end, first + BATCH))
            for number, verdict in run_batch(numbers, given.seed, material, given.door):
                _count(number, verdict, counts, causes)
    except KeyboardInterrupt:
        print(f"interrupted; go on with --start {given.start + counts.total()}")
    seconds = time.monotonic() - started
    tally = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    print(f"{counts.total()} cases in {seconds:.0f} s: {tally}")
    for cause, n in causes.most_common():
        print(f"  {n} x {cause}")
    return int(counts["defect"] > 0)


def _count(number: int, verdict: Verdict, counts: Counter[str], causes: Counter[str]) -> None:
    """Count a case; print a defect of a cause that was not seen before."""
    counts[verdict.kind] += 1
    if verdict.kind == "defect":
        cause = _cause(verdict.text)
        causes[cause] += 1
        if causes[cause] == 1 or cause.startswith(ENDED):
            print(f"case {number}: {verdict.text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
