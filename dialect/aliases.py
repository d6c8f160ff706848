"""Short names for grids, layouts and plans in printed IR, as MLIR itself gives to affine maps.

    #grid = #rtensor.grid<{f_op = [2, 2, 1], ...}>
    #layout = #rtensor.layout<#grid, {map = #map, fs = [2, 1], ft = [1, 2], rp = [0, 2]}>
    func.func @f(%arg0: tensor<6x8xf16, #layout>) ...

Attributes defined in Python cannot ask MLIR's printer for an alias, so this rewrites its text; the result is the same
module when it is read back.
"""

from __future__ import annotations

import re
from collections import Counter

_KINDS = ("grid", "linear", "layout", "plan")
"""Innermost first: a layout names its grid."""
_BODY = r'\{(?:[^{}<>"]|\{[^{}<>"]*\}|<[^{}<>"]*>|"[^"]*")*\}'
_STRING = r'"(?:[^"\\]|\\.)*"'
_ALIAS = re.compile(r"#\w+ = .*\n")


def with_aliases(text: str) -> str:
    """Return a module's text with every grid, layout and chosen plan named above the module.

    Names are `#grid`, `#grid1`, ..., `#layout`, ... in the order of first use; they stand behind MLIR's own.
    """
    definitions: list[str] = []
    for kind in _KINDS:
        names: dict[str, str] = {}
        token = re.compile(rf"(rtensor\.plan = )?({_STRING}|#rtensor\.{kind}<(?:#\w+, )?{_BODY}>)")
        counts = Counter(match[2] for match in token.finditer(text))

        def named(
            match: re.Match[str],
            kind: str = kind,
            names: dict[str, str] = names,
            counts: Counter[str] = counts,
        ) -> str:
            before, attribute = match[1] or "", match[2]
            # Candidates are read where they stand, but for those of repeated layers.
            is_candidate = kind == "plan" and not before and counts[attribute] == 1
            if attribute.startswith('"') or is_candidate:
                return match[0]
            return before + names.setdefault(attribute, f"#{kind}{len(names) or ''}")

        text = token.sub(named, text)
        definitions += [f"{name} = {attribute}\n" for attribute, name in names.items()]
    # MLIR's own aliases come first: layouts name affine maps.
    end = 0
    while (match := _ALIAS.match(text, end)) is not None:
        end = match.end()
    return text[:end] + "".join(definitions) + text[end:]
