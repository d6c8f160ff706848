"""Where a reduction's numbers live: words of the state, registers and the frame."""

from __future__ import annotations

from t10.codelets.body.select import Unselectable
from t10.codelets.nest import WORD_BYTES
from t10.codelets.reduce.homes import MOST_FIXED, RegisterHomes
from t10.codelets.reduce.shape import PER_LANE, Shape
from t10.codelets.reduce.sources import access
from t10.codelets.reduce.state import State
from t10.core.codelet import FieldKind, Pointer
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import WIDE_BYTES

OUT_PACE = "out_pace"
"""The field, and its register, by which the last store of a vector of outputs moves the output's pointer."""
INTEGER_TEMPORARIES = 3
"""Registers left to the instructions of integer reductions."""


class RegisterLayout:
    """The state and homes of one reduction's loops.

    `moving` are the inputs that move within an output. Their pointers `p` move with them; where `has_working`, those
    stay and working pointers `w` move. `paces` gives the register (or immediate) by which an input steps in the inner
    loop. `ends_early`: after the last point of the outermost reduction no pointer moves. `wished` are further numbers
    that go to registers while there are any.
    """

    wished: tuple[str, ...] = ()

    def __init__(
        self, task: Task, shape: Shape, kept: int | None = None, *, has_working: bool = False
    ) -> None:
        """Choose; `kept` registers are left to integer instructions.

        Raises `Unselectable` where there are too many variables or a stride suits no access.
        """
        self.task, self.shape, self.state = task, shape, State()
        self.has_working, self.ends_early = has_working, False
        is_float = task.output.dtype in ("f16", "f32")
        self.kept = kept if kept is not None else 0 if is_float else INTEGER_TEMPORARIES
        self.inputs = range(len(task.inputs))
        self.operands = range(len(task.operands))
        self.out = len(task.inputs)
        self.sizes = [size_bytes(operand.dtype) for operand in task.operands]
        self.moving = [i for i in self.inputs if shape.moves(i)]
        self.pace_values = {i: self._pace(i) for i in self.moving}
        self.pace_names = self._pace_names()
        self.add_pointers()
        self.homes = self._homes()
        register = self.homes.register
        self.paces = {
            i: "1" if pace == 1 else register[self.pace_names[i]]
            for i, pace in self.pace_values.items()
            if pace
        }
        self.inner_pointers = {i: register[self.pointer(i)] for i in self.inputs}
        self.still_pointers = {i: register[f"p{i}"] for i in self.inputs if i not in self.moving}

    def pointer(self, number: int) -> str:
        """Return the variable with an input's address in the inner loop."""
        return f"w{number}" if self.has_working and number in self.moving else f"p{number}"

    @property
    def out_register(self) -> str:
        """Return the register of the output's pointer while an output is finished."""
        return self.homes.register.get("out", "$m2")

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of one worker's frame."""
        return -(-len(self.homes.slot) * WORD_BYTES // 8) * 8

    def _pace(self, number: int) -> int:
        """Return the stride of the inner loop in accesses, 0 where an input stands still in it."""
        how = access(self.task, self.shape, number)
        if self.shape.mode == "rows":
            return int(self.shape.inner.strides[number] != 0)
        stride = self.shape.inner.strides[number] * self.sizes[number]
        if stride % how.n_bytes:
            raise Unselectable("a stride that is no multiple of what is loaded at once")
        pace = stride // how.n_bytes
        if pace == 1 and how.n_parts > 1:
            raise Unselectable("overlapping vectors of several parts")
        return pace

    def _pace_names(self) -> dict[int, str]:
        """Return the variable of every pace but 0 and 1: equal ones are one where there is no register for each.

        Which are equal is part of the structure then (`Structure.paces`).
        """
        many = {i: pace for i, pace in self.pace_values.items() if pace not in (0, 1)}
        if self.has_working or len(self.inputs) + len(many) <= MOST_FIXED:
            return {i: f"pace{i}" for i in many}
        first: dict[int, int] = {}
        return {i: f"pace{first.setdefault(pace, i)}" for i, pace in many.items()}

    def add_pointers(self) -> None:
        """Add the pointers to the state."""
        task = self.task
        for i, operand in enumerate(task.inputs):
            word, is_wide = Pointer(i), self.shape.is_wide and i < task.n_read
            self.state.pointer(f"in{i}", "in", word, operand.dtype, self.alignment(i), is_interleaved=is_wide)
        kind: FieldKind = "out" if task.initial else "inout"
        self.state.pointer("out", kind, Pointer(self.out), task.output.dtype, self.alignment(self.out))

    def alignment(self, number: int) -> int:
        """Return what the code relies on, in bytes."""
        size = self.sizes[number]
        is_vector = self.shape.lanes > 1 and (
            self.shape.mode == "columns"
            if number == self.out
            else self.shape.level_of_input(number) == PER_LANE
        )
        most = WIDE_BYTES if self.shape.is_wide and number < self.task.n_read else 8
        return min(most, size * self.shape.lanes) if is_vector else min(size, WORD_BYTES)

    def _homes(self) -> RegisterHomes:
        shape = self.shape
        fixed = [self.pointer(i) for i in self.inputs]
        fixed += dict.fromkeys(self.pace_names.values())
        others = ["out", *(f"p{i}" for i in self.moving if self.has_working)]
        others += [f"c{k}" for k in reversed(range(len(shape.parallel))) if not shape.is_once]
        others += ["rest"] if shape.mode == "columns" and shape.tail else []
        others += [f"r{k}" for k in reversed(range(len(shape.outer)))]
        try:
            homes = RegisterHomes(fixed, others)
            if homes.frame:
                return homes
            k = len(shape.parallel) - 1
            wished = [self._step_name(i, k) for i in self.operands if self.is_stepped(i, k)]
            wished.insert(1, "count")
            wished += self.wished
            spare = max(0, len(homes.free) - self.kept)
            return RegisterHomes(fixed, [*others, *wished[:spare]])
        except ValueError as error:
            raise Unselectable(str(error)) from error

    def is_stepped(self, operand: int, k: int) -> bool:
        """Return whether an operand's pointer may move after one point of parallel level `k`."""
        if k < 0 or self.shape.is_once:
            return False
        returns = k == len(self.shape.parallel) - 1 and operand in self.moving and not self.has_working
        return returns or any(level.strides[operand] for level in self.shape.parallel[k:])

    @property
    def steps_out(self) -> bool:
        """Return whether stores of whole vectors of outputs move the output's pointer, if that has a register."""
        k = len(self.shape.parallel) - 1
        return self.shape.mode == "columns" and not self.shape.tail and self.is_stepped(self.out, k)

    def _step_name(self, operand: int, k: int) -> str:
        return OUT_PACE if operand == self.out and self.steps_out else f"step{operand}_{k}"

    def out_pace(self, n_parts: int, n_bytes: int) -> str:
        """Return the field with how far the last of an output's `n_parts` stores moves, in stores of `n_bytes`."""
        k = len(self.shape.parallel) - 1
        out, ends_early = self.out, self.ends_early
        self.state.number(
            OUT_PACE, lambda n: n.step(out, k, ends_early=ends_early) // n_bytes - (n_parts - 1), "i32"
        )
        return OUT_PACE

    def step(self, operand: int, k: int) -> str:
        """Return the field with the bytes an operand's pointer moves after one point of a parallel level."""
        name = f"step{operand}_{k}"
        ends_early = self.ends_early
        self.state.number(name, lambda n: n.step(operand, k, ends_early=ends_early), "i32")
        return name

    def outer_step(self, operand: int, k: int) -> str:
        """Return the field with the bytes a working pointer moves after one point of an outer reduction."""
        name = f"move{operand}_{k}"
        self.state.number(name, lambda n: n.outer_step(operand, k), "i32")
        return name
