"""`t10-translate`: out of MLIR, as mlir-translate does. Emission is not part of this version: it says so."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t10.errors import UnsupportedOpError

_TARGETS = {
    "--ipu-to-poplar": "a Poplar program in C++",
    "--ipu-to-asm": "IPU tile assembly",
}

_HELP = """t10-translate: turn a module of the ipu dialect into text for the chip

usage: t10-translate --ipu-to-poplar|--ipu-to-asm [FILE]

  --ipu-to-poplar   write a Poplar program in C++    (not in this version: exit code 3)
  --ipu-to-asm      write IPU tile assembly          (not in this version: exit code 3)
  --help            print this text and exit

This version ends in the ipu dialect, printed as MLIR: t10-opt --t10-lower-ipu model.mlir

Exit codes: 0 success   1 wrong command line   3 not supported
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `t10-translate` on a command line (without the program's name) and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if "--help" in words or "-h" in words:
        print(_HELP, end="")
        return 0
    target = next((word for word in words if word in _TARGETS), None)
    if target is None:
        print(
            "t10-translate: expected --ipu-to-poplar or --ipu-to-asm; try 't10-translate --help'",
            file=sys.stderr,
        )
        return 1
    error = UnsupportedOpError(
        f"{target}: emitting {_TARGETS[target]} is not supported by this version",
        hint="t10-opt --t10-lower-ipu prints the module as text of the ipu dialect, where this version ends",
    )
    print(f"t10-translate: error: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
