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
from t10.codelets.gather.generator import KEPT_REGISTERS, ORIGIN, LookupGenerator
from t10.codelets.gather.rows import RowLookup, row_lookup
from t10.core.codelet import Compiled
from t10.core.task import Task
from t10.errors import T10Error

COMPILED_LOOKUPS = 4096


@dataclass(frozen=True, slots=True)
class GatherFamily:
    """Look-ups of whole rows of words."""

    name: str = "Gather"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as a look-up, None where it is something else."""
        if len(task.selectors) != 1:
            return None
        compiled = _compiled(self.name, replace(task, origin=()))
        if compiled is None or not task.origin:
            return compiled
        # Cores differ in where their part of the table begins: that is one word.
        place = [field.name for field in compiled.codelet.fields].index(ORIGIN)
        first = task.origin[task.selectors[0].axis]
        return replace(compiled, words=(*compiled.words[:place], first, *compiled.words[place + 1 :]))


@lru_cache(maxsize=COMPILED_LOOKUPS)
def _compiled(prefix: str, task: Task) -> Compiled | None:
    """Return a look-up in a table that begins at 0."""
    lookup = row_lookup(task)
    if lookup is None:
        return None
    for kept in KEPT_REGISTERS:
        try:
            generator = LookupGenerator(lookup, kept)
            assembly = generator.generate()
        except (Unselectable, T10Error):
            continue
        return _written(prefix, lookup, generator, assembly)
    return None


def _written(prefix: str, lookup: RowLookup, generator: LookupGenerator, assembly: Assembly) -> Compiled:
    task = lookup.task
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
    return Compiled(codelet, generator.state.words, generator.scratch_bytes)
