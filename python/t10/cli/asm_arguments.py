"""The arguments of `t10 asm`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from t10.cli.shared_arguments import address
from t10.core.tile import IPU_MEMORY

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - unnamed in public


def add_asm(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Add the command."""
    asm = commands.add_parser(
        "asm", parents=[common], help="assemble and link files of codelets, and list what came out"
    )
    asm.add_argument(
        "sources",
        type=Path,
        nargs="+",
        metavar="FILE.S",
        help="assembly text, with C preprocessor directives; several files are linked",
    )
    asm.add_argument(
        "--entry",
        dest="entries",
        action="append",
        metavar="SYMBOL",
        help="keep only the sections that this symbol needs; repeatable",
    )
    asm.add_argument(
        "--objects",
        action="store_true",
        help="do not link: list sections and symbols of every file, and which symbols it needs of others",
    )
    asm.add_argument(
        "-D", dest="defines", action="append", metavar="NAME=TEXT", help="define a macro; repeatable"
    )
    asm.add_argument(
        "-I",
        dest="include_paths",
        action="append",
        type=Path,
        metavar="DIR",
        help="search includes there; repeatable",
    )
    asm.add_argument(
        "--base",
        dest="base_address",
        type=address,
        default=IPU_MEMORY.base,
        metavar="ADDRESS",
        help=f"address of the first word (default: {IPU_MEMORY.base:#x})",
    )
