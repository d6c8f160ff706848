"""The arguments of `t10 compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from t10.cli.shared_arguments import DEFAULT_CHIP, DEFAULT_COST_MODEL, MOST_COUNT, add_shapes, whole_number

DEFAULT_EVALUATIONS = 64
"""As `t10.baselines.ansor` has it, which is not loaded for a help text."""

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - unnamed in public


def add_compare(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the command."""
    compare = commands.add_parser(
        "compare",
        parents=[common],
        help="plan a model as several systems do, or show what changed between two compiled models",
    )
    compare.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="ONNX model, text of onnx-mlir, or linalg on tensors; or a folder A that `t10 compile` wrote",
    )
    compare.add_argument("other", type=Path, nargs="?", metavar="B", help="another folder, of the same model")
    compare.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="FILE",
        help="write a .csv file, too; of two folders a .csv file or a page with a sortable table (.html)",
    )
    folders = compare.add_argument_group("of two folders")
    folders.add_argument(
        "--rows", type=whole_number(0, MOST_COUNT), metavar="N", help="operators in the table (default: all)"
    )
    folders.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of text")
    _add_systems(compare)


def _add_systems(compare: argparse.ArgumentParser) -> None:
    """Add what is said of systems that plan a model."""
    systems = compare.add_argument_group("of a model")
    systems.add_argument(
        "--chip",
        dest="chips",
        action="append",
        help=f"bundled chip or chip file; repeatable (default: {DEFAULT_CHIP})",
    )
    systems.add_argument(
        "--only",
        default="",
        metavar="SYSTEMS",
        help="systems to compare, separated by semicolons, or `all` (default: ours, T10 as published, Roller without "
        "and with split sums, Ansor, PopART)",
    )
    systems.add_argument(
        "--evaluations",
        type=whole_number(1, MOST_COUNT),
        metavar="N",
        help=f"tilings that Ansor's search measures per operator at most (default: {DEFAULT_EVALUATIONS})",
    )
    systems.add_argument(
        "--partials",
        default="",
        metavar="TYPES",
        help="types in which sums of f16 are kept, separated by commas: f32, mixed, f16, auto (default: f16)",
    )
    systems.add_argument(
        "--batch",
        dest="varied",
        action="append",
        metavar="NAME=VALUES",
        help="a symbolic dim of the model and its extents: NAME=1,2,4",
    )
    systems.add_argument(
        "--cost-model",
        default=DEFAULT_COST_MODEL,
        metavar="NAME",
        help="where cycles come from: ipu, t10-paper, or FILE.py[:FUNCTION] (default: %(default)s)",
    )
    add_shapes(systems)
