"""Arguments that several commands have: how a model is planned, what a folder needs again, seeds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from t10.core import plugins
from t10.core.partials import DEFAULT_TOLERANCE, KINDS

DEFAULT_CHIP = "ipu-mk2"
DEFAULT_COST_MODEL = "ipu"
DEFAULT_SEED = 0
MOST_SEED = (1 << 63) - 1
MOST_COUNT = 1_000_000
PARALLELISM = "least share of the usable cores that must work (less where no tensor rotates)"
PADDING = "least real share of every padded axis (without rotation, or one element of padding)"


def codelets_file(text: str) -> Path:
    """Return the file of codelets that a path names, or a name under which an installed package has some."""
    path = Path(text)
    if path.suffix or path.exists() or text not in plugins.names(plugins.CODELETS):
        return path
    return plugins.file(plugins.CODELETS, text)


def add_shapes(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage] - unnamed in public
    """Add the extents that a model leaves open."""
    parser.add_argument(
        "--shape",
        dest="shapes",
        action="append",
        metavar="NAME=1x128",
        help="shape of an input, or extent of a symbolic dim (NAME=8), that the model leaves open; repeatable",
    )


def naming() -> argparse.ArgumentParser:
    """Return what names users' files again, which a folder never has run by itself."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--cost-model",
        default="",
        metavar="FILE.py[:FUNCTION]",
        help="file of the cost model that the folder was made with",
    )
    add_codelets_again(parser)
    return parser


def add_codelets_again(parser: argparse.ArgumentParser) -> None:
    """Add the declarations of codelets that a folder was made with."""
    parser.add_argument(
        "--codelets",
        action="append",
        type=codelets_file,
        metavar="FILE.yaml",
        help="declarations of codelets that the folder was made with; repeatable",
    )


def add_operator(parser: argparse.ArgumentParser) -> None:
    """Add which operator, and where the answer goes."""
    parser.add_argument("--op", dest="operator", metavar="NAME", help="the operator (default: list them all)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw it, as .png or .svg")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of text")


def add_stages(parser: argparse.ArgumentParser) -> None:
    """Add how many groups of cores a model runs on, one after the other."""
    parser.add_argument(
        "--stages",
        default="",
        metavar="N|auto",
        help="cut the model into N stages, each on a group of cores of its own (a chip of pod16), or into as many as "
        "are fastest; no program is emitted",
    )
    parser.add_argument(
        "--stage-level",
        default="",
        metavar="LEVEL",
        help="level of the chip of which a stage has one: chip, pair (default: the innermost above cores)",
    )


def add_prove(parser: argparse.ArgumentParser, *, default: bool) -> None:
    """Add `--prove` and `--no-prove`."""
    parser.add_argument(
        "--prove",
        action=argparse.BooleanOptionalAction,
        default=default,
        help=f"prove the plan with the independent checker (default: {'on' if default else 'off'})",
    )


class _Bf16(argparse.Action):
    """`--bf16 f32` as the value of `dtype` that says it."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option: object = None
    ) -> None:
        """Keep the value."""
        del parser, option
        setattr(namespace, self.dest, f"bf16={values}")


def _add_floats(parser: argparse.ArgumentParser) -> None:
    """Add what says in which type floats are computed."""
    floats = parser.add_mutually_exclusive_group()
    floats.add_argument(
        "--dtype",
        choices=("fp16",),
        help="convert f32, f64 and bf16 of the model, inputs and outputs included, to f16",
    )
    floats.add_argument(
        "--bf16",
        dest="dtype",
        action=_Bf16,
        choices=("f32", "f16"),
        help="convert bf16 of the model, inputs and outputs included, to f32 or f16: the chip has no bf16",
    )


def searching(*, of_folder: bool = False) -> argparse.ArgumentParser:
    """Return what a search is for and what bounds it; `of_folder`: a folder's chip and costs come before defaults."""
    parser = argparse.ArgumentParser(add_help=False)
    first = "that of a folder, else " if of_folder else ""
    parser.add_argument(
        "--chip",
        default="" if of_folder else DEFAULT_CHIP,
        help=f"bundled chip or chip file (default: {first}{DEFAULT_CHIP})",
    )
    parser.add_argument(
        "--cost-model",
        default="" if of_folder else DEFAULT_COST_MODEL,
        metavar="NAME",
        help="where cycles come from: ipu, t10-paper, or FILE.py[:FUNCTION] "
        f"(default: {first}{DEFAULT_COST_MODEL})",
    )
    add_shapes(parser)
    parser.add_argument(
        "--constant",
        dest="constants",
        action="append",
        metavar="NAME=VALUES",
        help="fix an input when the model is compiled: NAME=1,2 or NAME=FILE.npy; for shapes and axes that are inputs; "
        "repeatable",
    )
    parser.add_argument(
        "--bound",
        dest="bounds",
        action="append",
        metavar="NAME=N",
        help="rows of a result with a data-dependent shape (of NonZero, Compress, NonMaxSuppression, Unique, TopK), or "
        "the most steps of a Loop, by name of the operator or of its result; the output NAME.count counts the valid "
        "rows, or steps; repeatable",
    )
    _add_floats(parser)
    parser.add_argument(
        "--keep-f64",
        action="store_true",
        help="keep f64 between f32 or f16 values, instead of computing it in f32; no program is emitted",
    )
    parser.add_argument(
        "--partials",
        choices=KINDS,
        help="type of partial sums of f16: f32; f16 (products at twice the rate); mixed (products and "
        "convolutions: f32 on a core, f16 between cores); auto (f16 for faster products with an error bound within the "
        "tolerance); what takes longer in f16 on the chip stays f32 (default: f32)",
    )
    parser.add_argument(
        "--partials-tolerance",
        type=float,
        metavar="ERROR",
        help="largest error bound that --partials auto accepts for a sum of n products: sqrt(n) 2^-11, relative to "
        f"|sum| + root of the sum of squares (default: {DEFAULT_TOLERANCE})",
    )
    for name, of in (("parallelism", PARALLELISM), ("padding", PADDING)):
        parser.add_argument(f"--{name}", type=float, help=f"{of}; default: 0.9")
    parser.add_argument(
        "--exhaustive", action="store_true", help="search without --parallelism and --padding"
    )
    return parser


def planning() -> argparse.ArgumentParser:
    """Return what says how a whole model is planned, the search of operators included."""
    parser = argparse.ArgumentParser(add_help=False, parents=[searching()])
    parser.add_argument(
        "--frontend",
        choices=("t10", "onnx-mlir"),
        default="t10",
        help="reader of the model; onnx-mlir must be on the path (default: %(default)s)",
    )
    parser.add_argument(
        "--frontend-flags",
        default="",
        metavar="TEXT",
        help="flags for onnx-mlir, split as a shell would: --frontend-flags='--shapeInformation=0:1x3x224x224'",
    )
    parser.add_argument(
        "--plan",
        type=Path,
        metavar="PLAN.json",
        help="plans to use: a plan.json, or a file of pins; what it leaves out is searched",
    )
    parser.add_argument(
        "--codelets",
        action="append",
        type=codelets_file,
        metavar="FILE.yaml",
        help="declarations of your codelets, which take precedence over the bundled ones: a file, or the name that an "
        "installed package gives one; repeatable",
    )
    parser.add_argument(
        "--shift-buffer-bytes",
        type=int,
        metavar="BYTES",
        help="receive buffer of shifts and reductions on every core; short for --chip NAME:shift_buffer_bytes=BYTES",
    )
    parser.add_argument(
        "--hbm-bandwidth",
        metavar="RATE",
        help="bytes per second of off-chip memory, as '2 TB/s': weights that do not fit on the chip are fetched from "
        "it while operators run (as --chip NAME:hbm_bandwidth=RATE)",
    )
    _reconciling(parser)
    parser.add_argument(
        "--as-published",
        action="store_true",
        help="plan as T10's authors did, for comparison: no fusion, parts of one tensor divide those of the next, "
        "Algorithm 1, no layout followed, sums of f16 in f16; --cost-model t10-paper has their costs",
    )
    _caching(parser)
    return parser


def _caching(parser: argparse.ArgumentParser) -> None:
    """Add where plans of operators are kept between runs."""
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder of the plan cache (default: `t10` in XDG_CACHE_HOME or ~/.cache)",
    )
    parser.add_argument(
        "--no-cache", dest="use_cache", action="store_false", help="do not use the plan cache"
    )


def _reconciling(parser: argparse.ArgumentParser) -> None:
    """Add how the plans of all operators are chosen together."""
    parser.add_argument(
        "--reconcile",
        choices=("exact", "greedy"),
        help="choose all plans together with a proved gap, or by the paper's Algorithm 1 (default: exact)",
    )
    parser.add_argument(
        "--reading",
        choices=("literal", "aware", "best"),
        help="'fastest plan that fits' in Algorithm 1: without set-up, with set-up, or the better (default: best)",
    )
    parser.add_argument(
        "--gap", type=float, help="proved gap at which --reconcile exact stops (default: 0.001)"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="stop --reconcile exact with the best choice so far (default: none, a fixed amount of work)",
    )


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what makes an integer of an argument, a usage error where it is none or out of range."""

    def parsed(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not digits or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"found {text!r:.40}, expected an integer from {least} to {most}"
            )
        return int(text)

    return parsed


def address(text: str) -> int:
    """Return an address of 32 bits, in any base that Python's literals have."""
    found = int(text, 0)
    if not 0 <= found < 1 << 32:
        raise argparse.ArgumentTypeError(f"found {text!r:.40}, expected an address of 32 bits")
    return found


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add what random inputs follow from."""
    parser.add_argument(
        "--seed",
        type=whole_number(0, MOST_SEED),
        default=DEFAULT_SEED,
        help="seed of random inputs (default: %(default)s)",
    )
