"""Where a reduction's body takes its inputs from: working pointers that step, or pointers that stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.codelets.body.code import Code
from t10.codelets.body.select import Form, Unselectable
from t10.codelets.body.virtual import Slice
from t10.codelets.loops.memory import LOADS
from t10.codelets.reduce.accumulators import set_constant
from t10.codelets.reduce.shape import PER_LANE, Shape
from t10.core.dtypes import size_bytes
from t10.core.task import Task


@dataclass(frozen=True, slots=True)
class Access:
    """How one vector of an input is loaded: mnemonic, bytes it takes, registers per load, and loads per vector."""

    mnemonic: str
    n_bytes: int
    file_is_main: bool
    width: int
    n_parts: int


def access(task: Task, shape: Shape, number: int) -> Access:
    """Return how an input is loaded in its loop; raises `Unselectable` for types that are not."""
    dtype = task.inputs[number].dtype
    lanes = shape.lanes if shape.level_of_input(number) == PER_LANE else 1
    if shape.is_wide:
        return Access("ld128", 16, False, 4, 1)
    if dtype == "f32":
        return Access("ld64", 8, False, 2, lanes // 2) if lanes > 1 else Access("ld32", 4, False, 1, 1)
    if dtype == "f16":
        if lanes == 1:
            return Access("ldb16", 2, False, 1, 1)
        return Access("ld64", 8, False, 2, lanes // 4) if lanes >= 4 else Access("ld32", 4, False, 1, 1)
    if dtype not in LOADS:
        raise Unselectable(f"{dtype} in a reduction")
    return Access(LOADS[dtype], size_bytes(dtype), True, 1, 1)


@dataclass(slots=True)
class Sources:
    """Loads for one selector chain; `pointers` are registers by input, `paces` those with strides of the inner loop.

    An input is stepped where it has a pace (`"1"`: the next vector).
    """

    task: Task
    shape: Shape
    pointers: dict[int, str]
    paces: dict[int, str]
    loaded: dict[int, list[Slice]] = field(default_factory=dict[int, "list[Slice]"])

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of an input, loading all parts the first time."""
        if number not in self.loaded:
            self.loaded[number] = self._load(code, number)
        return self.loaded[number][0].register.whole() if form == "h" else self.loaded[number][part]

    def _load(self, code: Code, number: int) -> list[Slice]:
        how = access(self.task, self.shape, number)
        pointer, pace = self.pointers[number], self.paces.get(number, "")
        parts = [code.new("m" if how.file_is_main else "a", how.width) for _ in range(how.n_parts)]
        if self.task.inputs[number].dtype == "f16" and how.n_parts > 1:
            # Halves are used all at once.
            whole = code.new("a", how.width * how.n_parts)
            parts = [whole.part(part * how.width, how.width) for part in range(how.n_parts)]
        streams = (f"in{number}",)
        is_next = pace == "1"
        # Neighbours are stepped over one by one; else the first part, loaded last, makes the step.
        for part in range(how.n_parts) if is_next or not pace else reversed(range(how.n_parts)):
            if is_next or (pace and part == 0):
                text = f"{how.mnemonic}step {{}}, $mzero, {pointer}+=, {pace}"
            else:
                text = f"{how.mnemonic} {{}}, {pointer}, $mzero, {part}"
            code.add(text, "o", parts[part], is_main=True, streams=streams)
        return parts

    def constant(self, code: Code, bits: int, target: Slice) -> None:
        """Load a constant word."""
        set_constant(code, target, bits)

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Raise `Unselectable`: reductions of indices are left to scalar loops."""
        raise Unselectable("an index in a reduction")

    def scratch(self, n_words: int) -> tuple[str, int]:
        """Raise `Unselectable`: nothing goes through memory here."""
        raise Unselectable("a transfer between register files in a reduction")
