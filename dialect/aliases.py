"""Short names for layouts and plans in printed IR, as MLIR itself gives to affine maps.

    #layout = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>
    func.func @f(%arg0: tensor<6x8xf16, #layout>) ...

Attributes defined in Python cannot ask MLIR's printer for an alias, so this rewrites its text; the result is the same
module when it is read back.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|#rtensor\.(layout|plan)<\{(?:[^{}<>"]|\{[^{}<>"]*\}|"[^"]*")*\}>')


def with_aliases(text: str) -> str:
    """Return a module's text with every layout that occurs twice, and every plan, named above the module.

    Names are `#layout`, `#layout1`, ... and `#plan`, `#plan1`, ... in the order of first use.
    """
    counts: dict[str, int] = {}
    for match in _TOKEN.finditer(text):
        if match[1]:
            counts[match[0]] = counts.get(match[0], 0) + 1
    name_by_text: dict[str, str] = {}
    n_by_kind = {"layout": 0, "plan": 0}
    for attribute, count in counts.items():
        kind = "layout" if attribute.startswith("#rtensor.layout") else "plan"
        if kind == "layout" and count < 2:
            continue
        name_by_text[attribute] = f"#{kind}{n_by_kind[kind] or ''}"
        n_by_kind[kind] += 1
    definitions = "".join(f"{name} = {attribute}\n" for attribute, name in name_by_text.items())
    return definitions + _TOKEN.sub(lambda match: name_by_text.get(match[0], match[0]), text)
