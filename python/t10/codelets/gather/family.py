"""Look-ups of rows: an index, a test that its row is on this core, and a copy of eight bytes at a time.

Six workers share the rows (or pieces of them where there are few). An index outside the part of the table that is here
leaves zeros, or the output as it was where rows are added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.body.select import Unselectable
from t10.codelets.digest import named_codelet
from t10.codelets.gather.cpp_reference import lookup_reference
from t10.codelets.gather.generator import KEPT_REGISTERS, LookupGenerator, numbers
from t10.codelets.gather.rows import row_lookup
from t10.codelets.gather.structure import LookupStructure, structure
from t10.codelets.reduce.state import Pattern
from t10.core.codelet import Compiled
from t10.core.task import Task
from t10.errors import T10Error

LOOKUPS = 4096


@dataclass(frozen=True, slots=True)
class GatherFamily:
    """Look-ups of whole rows of words."""

    name: str = "Gather"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as a look-up, None where it is something else."""
        if len(task.selectors) != 1:
            return None
        # Cores differ in where their part of the table begins: that is one word.
        lookup = _lookup(replace(task, origin=()))
        pattern = None if lookup is None else _pattern(self.name, structure(lookup))
        if lookup is None or pattern is None:
            return None
        first = task.origin[lookup.selector.axis] if task.origin else 0
        return pattern.compiled(numbers(lookup, first))


_lookup = lru_cache(maxsize=LOOKUPS)(row_lookup)


@lru_cache(maxsize=LOOKUPS)
def _pattern(prefix: str, structure: LookupStructure) -> Pattern | None:
    """Return the code of a structure, None where its index function takes too many registers."""
    for kept in KEPT_REGISTERS:
        try:
            generator = LookupGenerator(structure.example(), kept)
            assembly = generator.generate()
        except (Unselectable, T10Error):
            continue
        return _written(prefix, generator, assembly)
    return None


def _written(prefix: str, generator: LookupGenerator, assembly: Assembly) -> Pattern:
    lookup, task = generator.lookup, generator.task
    types = "_".join(operand.dtype for operand in task.operands)
    summary = "rows of a table " + ("added" if lookup.is_added else "copied")
    apart = ((f"in{lookup.table}", "out"),) if generator.is_paced else ()
    codelet = named_codelet(
        f"{prefix}_{types}",
        "multi",
        generator.state.fields,
        assembly,
        lookup_reference(generator),
        summary,
        apart,
    )
    return Pattern(codelet, generator.state.words, generator.scratch_bytes)
