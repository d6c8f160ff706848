"""The arguments of commands that read what `t10 compile` wrote: report, manifest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from t10.cli.shared_arguments import MOST_COUNT, naming, whole_number

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - unnamed in public

FOLDER = "folder that `t10 compile` wrote"


def add_reading(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the commands that show a compiled model."""
    report = commands.add_parser(
        "report", parents=[common, naming()], help="tables, plots, a page and a timeline"
    )
    report.add_argument("folder", type=Path, metavar="OUT", help=FOLDER)
    report.add_argument(
        "--rows", type=whole_number(0, MOST_COUNT), metavar="N", help="operators in the table (default: all)"
    )
    report.add_argument("--no-plots", dest="plots", action="store_false", help="tables only, write nothing")

    manifest = commands.add_parser(
        "manifest", parents=[common, naming()], help="take a folder's files as they are, after edits by hand"
    )
    manifest.add_argument("folder", type=Path, metavar="OUT", help=FOLDER)
    manifest.add_argument("--chip", default="", help="chip of the folder (default: that of the manifest)")
