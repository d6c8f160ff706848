"""C++ names from the names of a model, and text that is safe inside C++."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from t10.core.codelet import CPP_WORDS
from t10.errors import printable

COMMENT_WIDTH = 116
KEPT_NAMES = 1 << 14
PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""Printable characters but for quotes and backslashes."""
# Names that the text of a program uses itself.
HELPERS = """
Builder Bits ComputeSet Copy Engine Execute Field Fills Graph HostPiece HostTensor Memory Model Options
Operator PerTile Program Programs Repeat Sequence Span Tables Target Tensor Tiles Transfers Type WriteUndef absent
FloatingPointBehaviour add_host_tensors add_memory b build edge edge_as f32 floating_point i32 m main o poplar program
run steps std t10 tiles u32 v
BOOL CHAR FLOAT HALF INT SHORT SIGNED_CHAR UNSIGNED_CHAR UNSIGNED_INT UNSIGNED_SHORT
"""


class Names:
    """Gives every name of the model its own C++ identifier; the same name gets the same one."""

    def __init__(self) -> None:
        """Begin with the words that must not be given."""
        self.taken = {*CPP_WORDS, *HELPERS.split()}
        self.given: dict[str, str] = {}

    def identifier(self, text: str, name: str = "") -> str:
        """Return the identifier of a name: letters and digits of `text`, with a number where two would be equal.

        `name` is what it stands for where that is not `text`.
        """
        name = name or text
        known = self.given.get(name)
        if known is not None:
            return known
        stem = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", text)).strip("_") or "unnamed"
        stem = f"n{stem}" if stem[0].isdigit() else stem
        found, number = stem, 1
        while found in self.taken:
            number += 1
            found = f"{stem}_{number}"
        self.taken.add(found)
        self.given[name] = found
        return found


@lru_cache(maxsize=KEPT_NAMES)
def quoted(text: str) -> str:
    """Return a C++ string literal."""
    if PLAIN.fullmatch(text):
        return f'"{text}"'
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}
    return (
        '"' + "".join(escapes.get(c, chr(c) if 32 <= c < 127 else f"\\{c:03o}") for c in text.encode()) + '"'
    )


def comment(text: str, indent: str = "") -> str:
    """Return text as `//` lines, broken where they get too long; it may hold names of the model."""
    line, width = printable(" ".join(text.split())), COMMENT_WIDTH - len(indent) - 3
    lines = (
        textwrap.wrap(line, width, break_on_hyphens=False) if len(line) > width else [line] if line else []
    )
    return "".join(f"{indent}// {line.rstrip(chr(92))}\n" for line in lines)


def wrapped(head: str, items: list[str], tail: str, indent: str) -> str:
    """Return `head`, items with commas between, and `tail`, on as many lines as they need."""
    lines: list[str] = []
    line = head
    for number, item in enumerate(items):
        text = item + ("," if number + 1 < len(items) else tail)
        if len(line) + 1 + len(text) > COMMENT_WIDTH and line.strip() and line != head:
            lines.append(line)
            line = indent + text
        else:
            line += text if line == head else f" {text}"
    return "\n".join([*lines, line if items else head + tail]) + "\n"
