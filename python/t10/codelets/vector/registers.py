"""Which integer registers a vector codelet pins, and where values that outlive their code lie."""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import N_REGISTERS, File, Placement, Register
from t10.codelets.vector.access import Parked, Scratch, pointer
from t10.codelets.vector.draft import ONCE, Draft, Prepared, parked_in
from t10.codelets.vector.layout import gap_levels
from t10.codelets.vector.nest import RowNest

PACK_REGISTERS = 2
LEAST_FREE = 3
"""Integer registers that addressing needs for a moment."""


@dataclass(slots=True)
class Pins:
    """Physical integer registers by symbol (`%p0`), and the float and integer registers of invariants."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    placement: Placement = field(default_factory=dict[Register, int])
    free: dict[File, tuple[int, ...]] = field(default_factory=dict[File, tuple[int, ...]])

    def resolve(self, text: str) -> str:
        """Return an instruction with registers instead of symbols; `%pack` is a pair."""
        if "%" not in text:
            return text
        for name in sorted(self.names, key=len, reverse=True):
            first = self.names[name]
            text = text.replace(name, f"$m{first}:{first + 1}" if name == "%pack" else f"$m{first}")
        return text


def pin(draft: Draft) -> Pins:
    """Return a draft's pins; raises `Unselectable` where registers do not suffice."""
    free: dict[File, list[int]] = {file: list(range(n)) for file, n in N_REGISTERS.items()}
    pins = Pins()
    if draft.pack is not None:
        pins.names["%pack"] = 0
        free["m"] = free["m"][PACK_REGISTERS:]
    for symbol in symbols(draft):
        if not free["m"]:
            raise Unselectable("too many pointers")
        pins.names[symbol] = free["m"].pop(0)
    # From the top, widest first, so that pairs stay aligned.
    for register in sorted(draft.invariants, key=lambda r: (-r.width, r.number)):
        cells = free[register.file]
        first = next(
            (c for c in reversed(cells) if c % register.width == 0
             and all(c + i in cells for i in range(register.width))), None,
        )  # fmt: skip
        if first is None:
            raise Unselectable("too many values that do not change")
        for i in range(register.width):
            cells.remove(first + i)
        pins.placement[register] = first
    if len(free["m"]) < LEAST_FREE:
        raise Unselectable("too many pointers")
    _pin_gaps(draft, pins, free["m"])
    pins.free = {file: tuple(cells) for file, cells in free.items()}
    return pins


def symbols(draft: Draft) -> list[str]:
    """Return the symbols that live through the loops."""
    nest = draft.prepared.nest
    result = _pointers(draft.prepared, draft.parked)
    if draft.far_frame is not None:
        result.append("%turns")
    if draft.tail is not None and nest.split != "alone":
        result += (
            ["%left", "%rem"] if nest.outer and nest.split == "columns" and not draft.has_head else ["%left"]
        )
    result += _counters(nest, draft.parked)
    if draft.scratch.n_words:
        result.append("%scratch")
    if draft.constants.in_pool:
        result.append("%pool")
    return result


def least_left(prepared: Prepared, *, is_frugal: bool) -> int:
    """Return the integer registers that are left at most beside what every draft of a nest keeps in some."""
    parked = parked_in(prepared, Scratch()) if is_frugal else Parked({}, {})
    kept = [*_pointers(prepared, parked), *_counters(prepared.nest, parked)]
    return N_REGISTERS["m"] - LEAST_FREE - len(kept)


def _pointers(prepared: Prepared, parked: Parked) -> list[str]:
    """Return pointers and the count of turns."""
    nest = prepared.nest
    last = len(nest.walks) - 1
    result = [
        pointer(i) for i in range(len(nest.walks))
        if i == last or (prepared.levels[i] != ONCE and i not in parked.pointers)
    ]  # fmt: skip
    return result if nest.split == "alone" else [*result, "%n"]


def _counters(nest: RowNest, parked: Parked) -> list[str]:
    """Return what counts rows, and how far pointers and indices step."""
    counted = () if nest.split == "parts" else range(1 if nest.split == "flat" else 0, len(nest.outer))
    result = [f"%count{j}" for j in counted if j not in parked.counters]
    if nest.split == "flat":
        result += ["%todo", "%room"]
    if nest.outer and nest.split == "columns":
        result.append("%mine")
    result += [f"%stride{i}" for i, walk in enumerate(nest.walks) if walk.inner not in (0, 1)]
    return result + [f"%index{axis}" for axis, _ in nest.axes]


def _pin_gaps(draft: Draft, pins: Pins, free: list[int]) -> None:
    """Keep the steps from row to row in registers as far as some are left."""
    nest = draft.prepared.nest
    needed = LEAST_FREE + _most_integer_values(draft)
    for number in range(len(nest.walks)):
        if nest.outer and len(nest.outer) - 1 in gap_levels(draft, number) and len(free) > needed:
            pins.names[f"%gap{number}"] = free.pop(0)


def _most_integer_values(draft: Draft) -> int:
    """Return a bound on the integer registers that bodies need: all they write."""
    codes = [draft.once, draft.per_row, draft.main, *([draft.tail] if draft.tail else [])]
    written = {
        s.register for code in codes for i in code.instructions for s in i.writes if s.register.file == "m"
    }
    return min(len(written - set(draft.invariants)), 8)
