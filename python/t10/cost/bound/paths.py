"""The least issue slots that code takes from one place to another, whatever branches depend on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from t10.core.codelet import Codelet

LAUNCH_CYCLES, SLOT_CYCLES = 12, 6
"""Cycles around the longest worker, and of one of its issue slots."""


def least_slots(lines: Sequence[str], first: int, last: int, *never: str) -> int:
    """Return the least slots from line `first` of a codelet to line `last`.

    Bodies of `rpt` are left out, other loops run once; branches to labels `never` are not taken. Raises `ValueError`
    where no way leads there.
    """
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    least = {first: 0}
    todo = deque([first])
    while todo:
        here = todo.popleft()
        if here == last:
            continue
        for following, slots in _following(lines, here, labels, never):
            if least[here] + slots < least.get(following, len(lines) + 1):
                least[following] = least[here] + slots
                todo.append(following)
    if last not in least:
        raise ValueError(f"line {last} is not reached from line {first}")
    return least[last]


def _following(
    lines: Sequence[str], here: int, labels: dict[str, int], never: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the lines that may follow one, and the slots that it takes."""
    words = lines[here].split("//")[0].replace(",", " ").split()
    if not lines[here].startswith("  ") or not words or words[0].startswith("."):
        return [(here + 1, 0)]
    if "rpt" in words:
        n_bundles = int(words[words.index("rpt") + 2]) + 1
        bodies = [i for i in range(here + 1, len(lines)) if _is_code(lines[i])]
        return [(bodies[n_bundles - 1] + 1, 1)]
    found = [] if words[0] == "bri" else [(here + 1, 1)]
    targets = [word for word in words if word in labels and word not in never]
    if words[0].startswith("br"):
        found += [(labels[target], 1) for target in targets]
    return found


def _is_code(line: str) -> bool:
    return line.startswith("  ") and not line.lstrip().startswith((".", "//"))


def own_lines(codelet: Codelet) -> list[str]:
    """Return the lines of a codelet, labels as its generator wrote them."""
    return [line.replace(f"_{codelet.name}_", "") for line in codelet.assembly.splitlines()]


def loop(lines: Sequence[str], label: str) -> tuple[int, int]:
    """Return the first line of a loop that begins at a label, and the line after the last one."""
    first = lines.index(f"{label}:")
    last = max(i for i, line in enumerate(lines) if line.split("//")[0].rstrip().endswith(f" {label}"))
    return first, last + 1
