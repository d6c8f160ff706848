"""The arguments of `t10 compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from t10.cli.shared_arguments import DEFAULT_CHIP, DEFAULT_COST_MODEL, add_shapes


def add_compare(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command."""
    compare = commands.add_parser(
        "compare",
        parents=[common],
        help="plan a model as several systems do, on the same chip under the same prices",
    )
    compare.add_argument("model", type=Path, help="ONNX model, text of onnx-mlir, or linalg on tensors")
    compare.add_argument(
        "--chip",
        dest="chips",
        action="append",
        help=f"bundled chip or chip file; repeatable (default: {DEFAULT_CHIP})",
    )
    compare.add_argument(
        "--only",
        default="",
        metavar="SYSTEMS",
        help="systems to compare, separated by semicolons, or `all` (default: ours, T10 as published, Roller without "
        "and with split sums, PopART)",
    )
    compare.add_argument(
        "--partials",
        default="f16",
        metavar="TYPES",
        help="types in which sums of f16 are kept, separated by commas: f32, mixed, f16, auto (default: %(default)s)",
    )
    compare.add_argument(
        "--batch",
        dest="varied",
        action="append",
        metavar="NAME=VALUES",
        help="a symbolic dim of the model and its extents: NAME=1,2,4",
    )
    compare.add_argument(
        "--cost-model",
        default=DEFAULT_COST_MODEL,
        metavar="NAME",
        help="where cycles come from: ipu, t10-paper, or FILE.py[:FUNCTION] (default: %(default)s)",
    )
    add_shapes(compare)
    compare.add_argument(
        "-o", dest="output", type=Path, metavar="FILE.csv", help="write the table there, too"
    )
