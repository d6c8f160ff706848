"""Short names for grids, layouts and plans in printed IR, as MLIR itself gives to affine maps.

    #grid = #rtensor.grid<{f_op = [2, 2, 1], ...}>
    #layout = #rtensor.layout<#grid, {map = #map, fs = [2, 1], ft = [1, 2], rp = [0, 2]}>
    func.func @f(%arg0: tensor<6x8xf16, #layout>) ...

Attributes defined in Python cannot ask MLIR's printer for an alias, so this rewrites its text; the result is the same
module when it is read back. Tables of more than 100 integers, which MLIR prints as the digits of their bytes, are
numbers up to 1,024.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import prod

_KINDS = ("grid", "linear", "layout", "plan")
"""Each only names those before it."""
_BODY = r'\{(?:[^{}<>"]+|\{[^{}<>"]*\}|<[^{}<>"]*>|"[^"]*")*\}'
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_GRID = rf"#rtensor\.grid<{_BODY}>"
_TOKEN = re.compile(
    rf"{_STRING}|(rtensor\.plan = )?(#rtensor\.(grid|linear|layout|plan)<(?:({_GRID}), )?{_BODY}>)"
)
_PLAN = re.compile(rf"#rtensor\.plan<{_BODY}>")
_ALIAS = re.compile(r"#\w+ = .*\n")
_DIGITS = re.compile(r'dense<"0x([0-9A-F]+)"> : tensor<((?:\d+x)+)i(8|16|32|64)>')
_MOST_NUMBERS = 1024


def with_aliases(text: str) -> str:
    """Return a module's text with every grid, layout and chosen plan named above the module.

    Names are `#grid`, `#grid1`, ..., `#layout`, ... in the order of first use; they stand behind MLIR's own. Candidates
    are plans that stand where they are, but for those of repeated layers.
    """
    text = _DIGITS.sub(_numbers, text)
    names = _Names(Counter(_PLAN.findall(text)))
    text = _TOKEN.sub(names.named, text)
    # MLIR's own aliases come first: layouts name affine maps.
    end = 0
    while (match := _ALIAS.match(text, end)) is not None:
        end = match.end()
    return text[:end] + "".join(line for kind in _KINDS for line in names.definitions[kind]) + text[end:]


def _numbers(match: re.Match[str]) -> str:
    """Return a table of integers as numbers, a long one as it is."""
    digits, extents, n_bits = match.groups()
    shape = [int(extent) for extent in extents.split("x")[:-1]]
    if prod(shape) > _MOST_NUMBERS or prod(shape) * int(n_bits) != 4 * len(digits):
        return match[0]
    import numpy as np  # starting needs none

    values = np.frombuffer(bytes.fromhex(digits), f"<i{int(n_bits) // 8}").reshape(shape)
    return f"dense<{values.tolist()}> : tensor<{extents}i{n_bits}>"


@dataclass
class _Names:
    """Names given so far, by attribute, and their definitions, by kind."""

    n_by_plan: Counter[str]
    by_attribute: dict[str, str] = field(default_factory=dict[str, str])
    n_by_kind: Counter[str] = field(default_factory=Counter[str])
    definitions: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def named(self, match: re.Match[str]) -> str:
        """Return what stands in the text instead of a match."""
        before, attribute, kind, grid = match.groups()
        if attribute is None or (kind == "plan" and not before and self.n_by_plan[attribute] == 1):
            return match[0]
        name = self.by_attribute.get(attribute)
        if name is None:
            spelled = (
                attribute if grid is None else attribute.replace(grid, self._name(grid, grid, "grid"), 1)
            )
            name = self._name(attribute, spelled, kind)
        return (before or "") + name

    def _name(self, attribute: str, spelled: str, kind: str) -> str:
        name = self.by_attribute.get(attribute)
        if name is None:
            name = f"#{kind}{self.n_by_kind[kind] or ''}"
            self.n_by_kind[kind] += 1
            self.by_attribute[attribute] = name
            self.definitions[kind].append(f"{name} = {spelled}\n")
        return name
