"""The arguments of `t10 asm`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from t10.cli.shared_arguments import address
from t10.core.tile import IPU_MEMORY

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - unnamed in public


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([^()]*\))?")
"""The name of a macro, perhaps with parameters."""


def _macro(text: str) -> str:
    """Return the definition of a macro as it was given; refuses one whose name is no identifier."""
    name = text.partition("=")[0]
    if _NAME.fullmatch(name) is None:
        raise argparse.ArgumentTypeError(f"found the name {name!r:.60}, expected letters, digits and '_'")
    return text


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
        "-D",
        dest="defines",
        action="append",
        type=_macro,
        metavar="NAME[=TEXT]",
        help="define a macro, as 1 without a text; repeatable",
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
