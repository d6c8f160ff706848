"""Numbers and words of a chip that are changed one by one, each by its path.

`sram_bytes`, `memory.channels`, `levels.chip.latency_cycles`, `matrix_units.f16-f32.row_cycles`; `execution`,
`levels.chip.topology`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from operator import getitem
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from t10.chip.levels import Level
from t10.chip.off_chip import BANDWIDTH_KEY, MEMORY_KEY
from t10.chip.spec import ChipSpec

LEVELS_KEY, UNITS_KEY = "levels", "matrix_units"
PARTS = (MEMORY_KEY, "energy", "floor_plan")
RATES = ("link_bytes_per_cycle", "link_bytes_per_second")
"""Of both a level has one: giving one takes the other away."""


def _parts(of: Any, get: Callable[[Any, str], Any]) -> dict[str, Any]:
    """Return a chip and its parts that have numbers, by what goes before their names; `get` gives a field of each."""
    parts = {"": of, **{f"{name}.": get(of, name) for name in PARTS}}
    parts |= {f"{LEVELS_KEY}.{get(each, 'name')}.": each for each in get(of, LEVELS_KEY)}
    parts |= {f"{UNITS_KEY}.{get(u, 'in_dtype')}-{get(u, 'acc_dtype')}.": u for u in get(of, UNITS_KEY)}
    return {before: part for before, part in parts.items() if part is not None}


def numbers_of(chip: ChipSpec) -> dict[str, int | float]:
    """Return the numbers of a chip by path; an exchange has no links.

    `hbm_bandwidth` is that of all its off-chip memory, 0 where it has none.
    """
    memory = chip.memory
    records: dict[str, BaseModel] = _parts(chip, getattr)
    numbers = {
        f"{before}{name}": field.annotation(getattr(record, name))
        for before, record in records.items()
        for name, field in type(record).model_fields.items()
        if field.annotation is int or field.annotation is float
        if not (isinstance(record, Level) and record.topology == "exchange") or name == "count"
    }
    return numbers | {BANDWIDTH_KEY: 0.0 if memory is None else memory.channels * memory.bytes_per_second}


def words_of(chip: ChipSpec) -> dict[str, tuple[str, ...]]:
    """Return by path the fields of a chip that take one of a few words, with these words."""
    words = _words_in(ChipSpec)
    for level in chip.levels:
        words |= {f"{LEVELS_KEY}.{level.name}.{name}": known for name, known in _words_in(Level).items()}
    return words


def _words_in(record: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Return the fields of a record that take one of a few words, with these words."""
    found: dict[str, tuple[str, ...]] = {}
    for name, field in record.model_fields.items():
        if field.annotation is bool:
            found[name] = ("true", "false")
        elif get_origin(field.annotation) is Literal:
            found[name] = tuple(map(str, get_args(field.annotation)))
    return found


def put(fields: dict[str, Any], path: str, value: str) -> None:
    """Set what is at a path that `numbers_of` or `words_of` knows."""
    before, dot, name = path.rpartition(".")
    part = _parts(fields, getitem)[before + dot]
    part[name] = value
    if name in RATES and before.startswith(f"{LEVELS_KEY}."):
        part[RATES[1 - RATES.index(name)]] = 0


def meant_field(field: str, known: Collection[str]) -> str:
    """Return the field that a misspelt one probably is, "" if none; a memory as a whole means its bandwidth.

    A field of a part may be given without the part, as `topology` for `levels.chip.topology`.
    """
    is_memory = field.partition(".")[0] == MEMORY_KEY
    among = [name for name in known if name.startswith(f"{MEMORY_KEY}.") or not is_memory]
    near = [] if field == MEMORY_KEY else get_close_matches(field, among, n=1)
    if not near and not is_memory:
        # Of several levels the outermost: its links are those that are short.
        by_name = {name.rpartition(".")[2]: name for name in among}
        near = [by_name[name] for name in get_close_matches(field, by_name, n=1)]
    return near[0] if near else BANDWIDTH_KEY if is_memory else ""


def listed(known: Iterable[str]) -> str:
    """Return fields as one line, of every part the first one."""
    first: dict[str, str] = {}
    for name in known:
        first.setdefault(name.rpartition(".")[0] or name, name)
    return ", ".join(first.values())
