"""The arguments of every command as one frozen value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t10.cli.asm_arguments import add_asm
from t10.cli.compare_arguments import add_compare
from t10.cli.parsing import new_parser
from t10.cli.reading_arguments import add_reading
from t10.cli.shared_arguments import (
    DEFAULT_CHIP,
    DEFAULT_COST_MODEL,
    DEFAULT_SEED,
    MOST_COUNT,
    add_codelets_again,
    add_operator,
    add_prove,
    add_seed,
    add_shapes,
    add_stages,
    naming,
    planning,
    searching,
    whole_number,
)
from t10.core.tile import IPU_MEMORY

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - unnamed in public

LISTS = (
    "shapes", "varied", "constants", "bounds", "defines", "include_paths", "codelets", "models", "chips", "sources",
    "entries",
)  # fmt: skip
"""Options that may be given several times."""
MOST_JOBS = 1024
EXIT_CODES = (
    "exit codes: 0 done, 1 verification failed, 2 bad input, 3 unsupported operator, 4 does not fit, "
    "5 wrong plan or IR, 6 simulation stopped, 70 defect of T10, 130 interrupted"
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the user asked for; fields that a command does not have keep their defaults."""

    command: str
    debug: bool = False
    quiet: bool = False
    model: Path = Path()
    folder: Path = Path()
    other: Path | None = None
    chip: str = DEFAULT_CHIP
    shapes: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    dtype: str | None = None
    keep_f64: bool = False
    partials: str | None = None
    as_published: bool = False
    partials_tolerance: float | None = None
    frontend: str = "t10"
    frontend_flags: str = ""
    constants: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    parallelism: float | None = None
    padding: float | None = None
    exhaustive: bool = False
    reconcile: str | None = None
    reading: str | None = None
    gap: float | None = None
    time_limit: float | None = None
    cost_model: str = DEFAULT_COST_MODEL
    plan: Path | None = None
    cache: Path | None = None
    use_cache: bool = True
    action: str = ""
    inputs: Path | None = None
    reference: Path | None = None
    outputs: Path | None = None
    trace: Path | None = None
    tolerance: float | None = None
    seed: int = DEFAULT_SEED
    seeds: int = 3
    specials: bool = False
    layers: bool = False
    bisect: Path | None = None
    prove: bool = False
    operator: str | None = None
    plot: Path | None = None
    graph: Path | None = None
    stats: bool = False
    exchange: bool = False
    check: bool = False
    as_json: bool = False
    rows: int | None = None
    plots: bool = True
    sources: tuple[Path, ...] = ()
    entries: tuple[str, ...] = ()
    objects: bool = False
    base_address: int = IPU_MEMORY.base
    defines: tuple[str, ...] = ()
    include_paths: tuple[Path, ...] = ()
    engine: str = "plan"
    models: tuple[Path, ...] = ()
    output: Path | None = None
    samples: int | None = None
    shift_buffer_bytes: int | None = None
    hbm_bandwidth: str | None = None
    program: bool = True
    stages: str = ""
    stage_level: str = ""
    codelets: tuple[Path, ...] = ()
    only: str = ""
    evaluations: int | None = None
    jobs: int = 1
    summary: bool = False
    expectations: Path | None = None
    update: bool = False


def parse(argv: Sequence[str]) -> Arguments:
    """Return the arguments of a command line; prints help or a usage error and exits (2) where there is none."""
    found = vars(parser().parse_args(list(argv)))
    known = {field.name for field in fields(Arguments)}
    values: dict[str, Any] = {name: value for name, value in found.items() if name in known}
    values.update({name: tuple(values.get(name) or ()) for name in LISTS})
    return Arguments(**values)


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, built once in a process."""
    whole = new_parser(
        prog="t10",
        description="Compile models for inter-core connected AI chips and execute them core by core. "
        "Every cycle figure is modelled, none was measured on hardware.",
        epilog=EXIT_CODES,
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common.add_argument("--quiet", action="store_true", help="no progress, no tables: errors only")
    whole_model = planning()
    _add_compile(commands, common, whole_model)
    _add_run(commands, common)
    _add_verify(commands, common, whole_model)
    add_reading(commands, common)
    _add_inspecting(commands, common)
    _add_explaining(commands, common)
    _add_sweep(commands, common, whole_model)
    add_compare(commands, common)
    _add_others(commands, common)
    return whole


def _add_compile(
    commands: Commands, common: argparse.ArgumentParser, whole_model: argparse.ArgumentParser
) -> None:
    compile_ = commands.add_parser("compile", parents=[common, whole_model], help="plan a model for a chip")
    compile_.add_argument("model", type=Path, help="ONNX model, text of onnx-mlir, or linalg on tensors")
    compile_.add_argument(
        "-o",
        dest="folder",
        type=Path,
        required=True,
        metavar="OUT",
        help="folder to write; one that T10 wrote is replaced, any other must be new or empty",
    )
    add_prove(compile_, default=False)
    add_stages(compile_)
    compile_.add_argument(
        "--stats",
        action="store_true",
        help="print how often every operator of the model occurs, its multiply-accumulates, parameters and bytes",
    )
    compile_.add_argument(
        "--no-program",
        dest="program",
        action="store_false",
        help="plan only: no program/ folder (program.cpp, codelets.S, "
        "weights.bin), which the Poplar SDK and the engines iss and poplar-host need",
    )


def _add_verify(
    commands: Commands, common: argparse.ArgumentParser, whole_model: argparse.ArgumentParser
) -> None:
    verify = commands.add_parser(
        "verify", parents=[common, whole_model], help="compile, execute and compare with ONNX Runtime"
    )
    verify.add_argument("model", type=Path, help="ONNX model, or text of onnx-mlir")
    verify.add_argument(
        "--inputs",
        type=Path,
        metavar="IN.npz",
        help="inputs, an array NAME or in.NAME for each; and, instead of ONNX Runtime, references ref.NAME "
        "(default: random ones)",
    )
    verify.add_argument(
        "--reference",
        type=Path,
        metavar="MODEL.onnx",
        help="what ONNX Runtime runs: the model that a text of onnx-mlir came from (default: MODEL itself)",
    )
    verify.add_argument(
        "--tolerance",
        type=float,
        help="largest error, relative to the largest output (default: 1e-4 for f32, 5e-3 for f16)",
    )
    add_prove(verify, default=True)
    add_stages(verify)
    verify.add_argument(
        "--engine",
        choices=("plan", "iss", "poplar-host", "all"),
        default="plan",
        help="backend that executes the model, as in `t10 run`; all: the three, also compared with each other "
        "(default: %(default)s)",
    )
    verify.add_argument(
        "--layers",
        action="store_true",
        help="compare every value of the model, and name the first operator whose result is wrong",
    )
    verify.add_argument(
        "--bisect",
        type=Path,
        metavar="PART.onnx",
        help="write the smallest part of the model that is wrong by itself, and its inputs to PART.npz",
    )
    verify.add_argument(
        "--outputs", type=Path, metavar="OUT.npz", help="where to write the outputs of the first seed by name"
    )
    _add_random_inputs(verify)


def _add_random_inputs(parser: argparse.ArgumentParser) -> None:
    """Add what random inputs there are."""
    add_seed(parser)
    parser.add_argument(
        "--seeds",
        type=whole_number(0, MOST_COUNT),
        default=3,
        metavar="N",
        help="random inputs of N seeds: standard normal, mixed scales, large, in turn (default: %(default)s)",
    )
    parser.add_argument(
        "--specials",
        action="store_true",
        help="put NaN, infinities, -0 and denormals among random floats; the largest number, too, if nothing is summed",
    )


def _add_sweep(
    commands: Commands, common: argparse.ArgumentParser, whole_model: argparse.ArgumentParser
) -> None:
    sweep = commands.add_parser("sweep", parents=[common, whole_model], help="plan a model for several chips")
    sweep.add_argument("model", type=Path, help="ONNX model, text of onnx-mlir, or linalg on tensors")
    add_stages(sweep)
    sweep.add_argument(
        "--vary",
        dest="varied",
        action="append",
        required=True,
        metavar="FIELD=VALUES",
        help="a field of the chip and its values: A,B,C; LOW..HIGH, doubling; or LOW..HIGH:N, N values evenly apart; "
        "units as in chip files (256KiB..1MiB); or words (execution=bulk-synchronous,overlapped); repeatable, for "
        "every combination",
    )
    sweep.add_argument(
        "-j",
        "--jobs",
        type=whole_number(1, MOST_JOBS),
        default=1,
        metavar="N",
        help="chips to plan in parallel (default: %(default)s)",
    )
    sweep.add_argument(
        "--program",
        action="store_true",
        help="also emit the program of every chip, and leave room for it in memory, as `t10 compile` does; slower",
    )
    sweep.add_argument(
        "-o",
        dest="folder",
        type=Path,
        required=True,
        metavar="OUT",
        help="folder for points.jsonl, sweep.csv and sweep.svg; chips that points.jsonl has are not planned again",
    )


def _add_run(commands: Commands, common: argparse.ArgumentParser) -> None:
    run = commands.add_parser(
        "run", parents=[common, naming()], help="execute a compiled model on a simulator"
    )
    run.add_argument("folder", type=Path, metavar="OUT", help="folder that `t10 compile` wrote")
    run.add_argument(
        "--engine",
        choices=("plan", "iss", "poplar-host"),
        default="plan",
        help="plan: module.mlir in numpy; iss: program/program.json and codelets.S, instruction by instruction; "
        "poplar-host: program/program.cpp, built with g++ against a host implementation of the Poplar API "
        "(default: %(default)s)",
    )
    run.add_argument(
        "--inputs",
        type=Path,
        metavar="IN.npz",
        help="inputs, an array NAME or in.NAME for each (default: random ones)",
    )
    run.add_argument("--outputs", type=Path, metavar="OUT.npz", help="where to write the outputs by name")
    run.add_argument(
        "--trace", type=Path, metavar="TRACE.json", help="write the timeline, for ui.perfetto.dev"
    )
    add_seed(run)


def _add_others(commands: Commands, common: argparse.ArgumentParser) -> None:
    demo = commands.add_parser(
        "demo", parents=[common], help="a layer whose tensors rotate, compiled, run and compared"
    )
    demo.add_argument(
        "-o",
        dest="folder",
        type=Path,
        default=Path("t10-demo"),
        metavar="OUT",
        help="folder to write (default: %(default)s)",
    )
    demo.add_argument(
        "--chip",
        default="",
        help="bundled chip or chip file (default: 64 cores of 256 KiB, which is tight; ipu-mk2 for another model)",
    )
    demo.add_argument(
        "--model", type=Path, default=Path(), help="model to use instead of the generated layer"
    )
    add_seed(demo)

    chips = commands.add_parser(
        "chips", parents=[common], help="the chips that come with T10, or one in full"
    )
    chips.add_argument(
        "chip", nargs="?", default="", metavar="CHIP", help="bundled chip or chip file to show"
    )
    chips.add_argument("--json", dest="as_json", action="store_true", help="print the fields as JSON")

    add_asm(commands, common)
    _add_conforming(commands, common)
    _add_profile(commands, common)

    cache = commands.add_parser("cache", parents=[common], help="the plans that are kept between runs")
    cache.add_argument("action", choices=("info", "clear"), help="print what is cached, or delete it")
    cache.add_argument(
        "--cache", type=Path, metavar="DIR", help="cache folder (default: the one that commands use)"
    )


def _add_profile(commands: Commands, common: argparse.ArgumentParser) -> None:
    profile = commands.add_parser(
        "profile",
        parents=[common],
        help="count, bound and run random sub-tasks, and compare with a linear regression",
    )
    profile.add_argument(
        "models",
        type=Path,
        nargs="*",
        metavar="MODEL",
        help="models whose operators are profiled (default: generated operators of every kind and type)",
    )
    profile.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="FILE",
        help="write every sub-task with its cycles as .json or .csv",
    )
    profile.add_argument(
        "--exchange",
        action="store_true",
        help="compare modelled exchange phases with the exchange simulator instead, 40 per kind",
    )
    profile.add_argument(
        "--check",
        action="store_true",
        help="compare counts and bounds with runs, without the regression; with and without it, the command fails if "
        "a count differs from its run or a bound is above it",
    )
    profile.add_argument(
        "--samples",
        type=whole_number(1, MOST_COUNT),
        help="sub-tasks per compute step (default: 80), or phases per kind",
    )
    profile.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw counted and regressed against run cycles"
    )
    profile.add_argument(
        "--chip", default="test-16", help="chip that models are planned for (default: %(default)s)"
    )
    add_seed(profile)


def _add_inspecting(commands: Commands, common: argparse.ArgumentParser) -> None:
    inspect = commands.add_parser(
        "inspect",
        parents=[common],
        help="signature, statistics and operator graph of a model, without lowering",
    )
    inspect.add_argument("model", type=Path, help="ONNX model, text of onnx-mlir, or linalg on tensors")
    add_shapes(inspect)
    inspect.add_argument(
        "--rows",
        type=whole_number(0, MOST_COUNT),
        metavar="N",
        help="nodes of the graph to list (default: 160)",
    )
    inspect.add_argument(
        "--graph", type=Path, metavar="FILE", help="draw the operator graph, as .svg, or as .dot for Graphviz"
    )
    inspect.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of text")


def _add_explaining(commands: Commands, common: argparse.ArgumentParser) -> None:
    explain = commands.add_parser(
        "explain", parents=[common, naming()], help="why an operator runs as it does"
    )
    explain.add_argument("folder", type=Path, metavar="OUT", help="folder that `t10 compile` wrote")
    add_operator(explain)
    explain.add_argument(
        "--exchange",
        action="store_true",
        help="show the exchanges of program/ instead: which tiles send what to which; of --op with every line",
    )

    pareto = commands.add_parser(
        "pareto",
        parents=[common, searching(of_folder=True)],
        help="search one operator and show time against memory",
    )
    pareto.add_argument(
        "model", type=Path, metavar="MODEL", help="a model, or a folder that `t10 compile` wrote"
    )
    add_operator(pareto)
    add_codelets_again(pareto)


def _add_conforming(commands: Commands, common: argparse.ArgumentParser) -> None:
    conformance = commands.add_parser(
        "conformance",
        parents=[common],
        help="run the tests of the onnx package and compare with the expected results",
    )
    conformance.add_argument(
        "--only",
        default="",
        metavar="GLOB",
        help="tests whose name matches, like 'test_add*'; 'light/*' are whole networks (default: all but these)",
    )
    conformance.add_argument(
        "-j", dest="jobs", type=int, default=1, metavar="N", help="processes (default: 1)"
    )
    conformance.add_argument(
        "--list",
        dest="expectations",
        type=Path,
        metavar="FILE",
        help="list of expected results (default: test/conformance/expected.txt of the repository)",
    )
    conformance.add_argument("--summary", action="store_true", help="count expected results; run nothing")
    conformance.add_argument(
        "--update", action="store_true", help="write the results into the list of expected results"
    )
