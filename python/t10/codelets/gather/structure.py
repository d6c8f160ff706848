"""The structure of a look-up of rows: everything that the text of its codelet depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t10.codelets.gather.rows import RowLookup
from t10.codelets.reduce.structure import MANY, Structure
from t10.codelets.reduce.structure import structure as loops_of
from t10.core.expression import Selector
from t10.core.scalar import ScalarFunction
from t10.core.task import TaskOperand


@dataclass(frozen=True, slots=True)
class LookupStructure:
    """A look-up without what only its vertex's words depend on; `dtypes` are the task's own."""

    loops: Structure
    dtypes: tuple[str, ...]
    index: ScalarFunction
    is_apart: bool
    table: int
    access_bytes: int
    has_rest: bool
    is_added: bool

    def example(self) -> RowLookup:
        """Return a look-up of this structure."""
        words, shape = self.loops.example()
        still = words.output.strides
        operands = tuple(TaskOperand(dtype, still) for dtype in self.dtypes)
        apart = (
            frozenset([(self.table, len(words.inputs))]) if self.is_apart else frozenset[tuple[int, int]]()
        )
        task = replace(words, inputs=operands[:-1], output=operands[-1], apart=apart)
        selector = Selector(0, self.index)
        return RowLookup(
            task, words, shape, self.table, selector, self.access_bytes, self.has_rest, self.is_added
        )


def _one(structure: Structure) -> int:
    return 1


def structure(lookup: RowLookup) -> LookupStructure:
    """Return the structure of a look-up: rows are copied in a loop, however short they are."""
    task = lookup.task
    return LookupStructure(
        loops=replace(loops_of(lookup.words, lookup.shape, _one), steps=MANY),
        dtypes=tuple(operand.dtype for operand in task.operands),
        index=lookup.selector.index,
        # A single access of a row needs no loop to load and store at once.
        is_apart=lookup.shape.steps > 1 and task.are_apart(lookup.table, len(task.inputs)),
        table=lookup.table,
        access_bytes=lookup.access_bytes,
        has_rest=lookup.has_rest,
        is_added=lookup.is_added,
    )
