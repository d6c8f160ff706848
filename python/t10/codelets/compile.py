"""From a task to code: the first family that can compute it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache

from t10.codelets.family import CodeletFamily, OwnFamily
from t10.codelets.gather.family import GatherFamily
from t10.codelets.loops.family import LoopFamily
from t10.codelets.matrix.family import MatrixFamily
from t10.codelets.nest import copied_as_words, simplified
from t10.codelets.reduce.family import ReduceFamily
from t10.codelets.room import beside_room, has_room, without_room
from t10.codelets.vector.family import VectorFamily
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction
from t10.core.task import Task
from t10.errors import UnsupportedOpError

COMPILED_TASKS = 65536

_own: list[OwnFamily] = []


def families() -> tuple[CodeletFamily, ...]:
    """Return all families, the best for what it can do first."""
    return (*_own, GatherFamily(), MatrixFamily(), VectorFamily(), ReduceFamily(), LoopFamily())


def own_digest() -> str:
    """Return a text that differs whenever the families in front of the bundled ones do, empty where none are."""
    return " ".join(family.digest for family in _own)


def may_be_own(body: ScalarFunction) -> bool:
    """Return whether a family in front of the bundled ones may compute tasks of such a body."""
    return any(family.may_compute(body) for family in _own)


@contextmanager
def using_families(added: Iterable[OwnFamily]) -> Generator[None]:
    """Put families in front of all others while inside; the first of `added` comes first."""
    before, first = list(_own), tuple(added)
    _use((*first, *before))
    try:
        yield
    finally:
        _use(before)


def _use(families: Sequence[OwnFamily]) -> None:
    if list(families) != _own:
        _own[:] = families
        compile_task.cache_clear()


@lru_cache(maxsize=COMPILED_TASKS)
def compile_task(task: Task) -> Compiled:
    """Return a task as code; raises `UnsupportedOpError` where no family can compute it."""
    task = copied_as_words(simplified(task))
    if has_room(task):
        compiled = _first(task, (*_own, MatrixFamily()))
        return compiled or beside_room(compile_task(without_room(task)))
    compiled = _first(task, _families(task))
    if compiled is not None:
        return compiled
    if "f64" in {each.dtype for each in (*task.operands, *task.body.ops)}:
        raise UnsupportedOpError(
            f"no codelet computes {_opcodes(task)} on f64, which the chip has no arithmetic for",
            hint="cast to f32 or f16 before and after it, with constants that f32 holds, compile with --dtype fp16, or "
            "plan alone with --no-program; --keep-f64 keeps f64 that f32 could replace",
        )
    types = ", ".join(operand.dtype for operand in task.operands)
    raise UnsupportedOpError(
        f"no codelet computes {_opcodes(task)} on {types} with strides {[o.strides for o in task.operands]}"
    )


def _families(task: Task) -> tuple[CodeletFamily, ...]:
    """Return the families that may compute a task."""
    if task.epilogue is not None:
        return (ReduceFamily(),)
    return families() if task.first is None else (MatrixFamily(),)


def _first(task: Task, families: Iterable[CodeletFamily]) -> Compiled | None:
    """Return a task as the code of the first family that can compute it, None where none can."""
    return next((found for found in (family.compile(task) for family in families) if found is not None), None)


def _opcodes(task: Task) -> str:
    return ", ".join(sorted({op.opcode for op in task.body.ops})) or "a copy"
