"""Reductions as vector code: the inner loop is a software-pipelined repeat block.

Six workers share the outputs, or pieces of few long ones, which a second launch brings together. Each output (or vector
of outputs) starts from the neutral element, takes its contributions, is folded, rounded, combined with what was there
unless the task is initial, and stored.

Maxima and minima keep NaNs, which the instructions drop (see `accumulators`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.body.select import Unselectable
from t10.codelets.body.words import is_in_words
from t10.codelets.counter import least_counted
from t10.codelets.digest import named_codelet
from t10.codelets.nest import levels
from t10.codelets.reduce.cpp_reference import reduction_reference
from t10.codelets.reduce.generator import Generator, slots_of_step
from t10.codelets.reduce.numbers import Numbers
from t10.codelets.reduce.parts import parts
from t10.codelets.reduce.picked import as_parts, at_places, in_pieces, picking_axis
from t10.codelets.reduce.pieces import Pieces, is_counted, pieces
from t10.codelets.reduce.shape import NEAR, Shape, estimated_slots, shapes, wide_shapes
from t10.codelets.reduce.state import Pattern
from t10.codelets.reduce.structure import Structure, structure
from t10.codelets.sequence import Then, in_sequence, moved_inputs, one_after_another
from t10.core.codelet import Compiled
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.errors import UnsupportedOpError

COMPUTED = frozenset({"f16", "f32", "i32", "i16", "i8", "i1", "ui8", "ui16"})

PATTERNS = 4096
KEPT_TASKS = 8
MOST_SHAPES = 2
MOST_REPEATED = 0xFFFF
"""How often a repeat block goes round at most: its count has 16 bits."""


@dataclass(frozen=True, slots=True)
class ReduceFamily:
    """Reductions without selectors, of any body that the vector selector knows."""

    name: str = "Reduce"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as vector code, None where it reduces nothing or is left to scalar loops."""
        return _compiled(self, task)

    def compile_any(self, task: Task) -> Compiled | None:
        """Do what `compile` does, each time anew."""
        if task.selectors or task.combine == "none" or not any(level.is_reduction for level in levels(task)):
            return None
        if any(operand.dtype not in COMPUTED for operand in task.operands) or not is_in_words(task):
            return None
        axis = picking_axis(task)
        if axis is not None:
            return self.picked(task, axis)
        found = shapes(task)
        in_pieces = self.in_pieces(task, found) if task.epilogue is None else []
        if in_pieces and not is_counted(task):
            return in_pieces[0]
        at_once = (*self.at_once(task, found), *(parts(task) or self.at_once(task, wide_shapes(task))))
        return least_counted(task, (*at_once, *in_pieces))

    def at_once(self, task: Task, shapes: tuple[Shape, ...], most: int = MOST_SHAPES) -> list[Compiled]:
        """Return the task as one launch of the workers, in at most so many shapes, about as good as the best."""
        found: list[Compiled] = []
        least = 0
        for shape in shapes:
            if shape.steps > MOST_REPEATED:
                continue
            slots = estimated_slots(shape, task)
            if len(found) == most or (found and slots > NEAR * least):
                break
            try:
                pattern = _pattern(self.name, structure(task, shape, slots_of_step))
            except Unselectable:
                continue
            if pattern is not None:
                least = least or slots
                found.append(pattern.compiled(Numbers(task, shape)))
        return found

    def picked(self, task: Task, axis: int) -> Compiled | None:
        """Return a task that picks what it combines by its place along an axis, None where it has no such code."""
        prefix = f"{self.name}_picked_{'_'.join(operand.dtype for operand in task.operands)}_{task.combine}"
        summary = f"reductions one after another, combine {task.combine}"
        n_inputs, step = len(task.inputs), task.output.strides[axis]
        parts = at_places(task, axis)
        whole = self.in_parts(
            as_parts(parts, step * size_bytes(task.output.dtype)), n_inputs, prefix, summary
        )
        ways = [] if whole is None else [whole]
        cut = in_pieces(parts, step)
        pieces = None if cut is None else self.in_parts(cut.partials, n_inputs, prefix, summary)
        if cut is not None and pieces is not None:
            ways += [
                in_sequence(prefix, pieces, final, n_inputs, cut.n_bytes, summary)
                for final in self.at_once(cut.final, shapes(cut.final), 1)
            ]
        return least_counted(task, ways)

    def in_pieces(self, task: Task, found: tuple[Shape, ...]) -> list[Compiled]:
        """Return the task as two launches of the workers, one for pieces of rows; none where that is not better."""
        cut = pieces(task, found)
        if cut is None:
            return []
        prefix = f"{self.name}_pieces_{'_'.join(operand.dtype for operand in task.operands)}_{task.combine}"
        summary = f"reduction of pieces, then of their results, combine {task.combine}"
        partial = self.in_parts(cut.partials, len(task.inputs), prefix, summary)
        return [
            in_sequence(prefix, partial, final, len(task.inputs), cut.n_bytes, summary)
            for final in self.at_once(cut.final, shapes(cut.final), 1)
            if partial is not None
        ]

    def in_parts(self, parts: Sequence[Pieces], n_inputs: int, prefix: str, summary: str) -> Compiled | None:
        """Return parts of a reduction as one launch, None where one of them cannot be computed."""
        result: Compiled | None = None
        for part in parts:
            one = least_counted(part.task, self.at_once(part.task, shapes(part.task)))
            if one is None:
                return None
            one, then = moved_inputs(one, part.begins), Then(part.first_worker, part.n_bytes)
            if result is not None:
                one = one_after_another(prefix, result, one, n_inputs, then, summary)
            result = one
        return result


@lru_cache(maxsize=KEPT_TASKS)
def _compiled(family: ReduceFamily, task: Task) -> Compiled | None:
    """Return what `compile` does: products are tried on the vector unit before they are left to it."""
    return family.compile_any(task)


@lru_cache(maxsize=PATTERNS)
def _pattern(prefix: str, structure: Structure) -> Pattern | None:
    """Return the code of a structure, None where registers or instructions do not suffice."""
    task, shape = structure.example()
    try:
        generator = Generator(task, shape)
        assembly = generator.generate()
        cpp_reference = reduction_reference(
            task, shape, generator.state, generator.steps, walks_outer=generator.walks_outer
        )
    except (Unselectable, UnsupportedOpError):
        return None
    types = "_".join(operand.dtype for operand in task.operands)
    then = "" if task.epilogue is None else "_then"
    prefix = f"{prefix}_{shape.mode}_{types}_{task.combine}{then}"
    summary = f"reduction by {shape.mode}, {shape.lanes} lanes, combine {task.combine}"
    summary += "" if task.epilogue is None else ", then an epilogue"
    codelet = named_codelet(prefix, "multi", generator.state.fields, assembly, cpp_reference, summary)
    return Pattern(codelet, generator.state.words, generator.scratch_bytes)
