"""The code of scalar loops; see `t10.codelets.loops.family` for what it computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from t10.codelets.assembly import Assembly
from t10.codelets.body.expand import expand
from t10.codelets.body.far import TABLE, write_table
from t10.codelets.loops import combining, memory
from t10.codelets.loops.floats import TRANSFER_WORDS, rounded
from t10.codelets.loops.picking import picks_one
from t10.codelets.loops.scalar import emit_function
from t10.codelets.loops.virtual import Bank, Value, VirtualCode, allocate
from t10.codelets.loops.wide import FRAME_WORDS, Word, low, saturated
from t10.codelets.nest import WORD_BYTES, Level, Split
from t10.codelets.workers import take_share, worker_number
from t10.core.intervals import WIDE_DTYPES, wide_values
from t10.core.scalar import ScalarFunction
from t10.core.task import Task

FRAME = "$m11"
INNER_COUNTER = "$m10"
POINTER_REGISTERS = ("$m9", "$m8", "$m7")
POOLS: dict[Bank, tuple[str, ...]] = {
    "m": ("$m0", "$m1", "$m2", "$m3", "$m4", "$m5"),
    "a": ("$a0", "$a1", "$a2", "$a3", "$a4", "$a5", "$a6"),
}
END = ".LEnd"


def pick_stride(operand: int, axis: int) -> str:
    """Return the field with an input's byte stride along a picked axis."""
    return f"pick_stride{operand}_{axis}"


def _same(value: Value) -> Value:
    return value


class Generator:
    """Writes the loops of one task; `word` gives the number of a field's word by its name.

    Axes of `picked` are not walked: their selectors' indices say where they stand.
    """

    def __init__(
        self,
        task: Task,
        nest: tuple[Level, ...],
        picked: tuple[int, ...],
        share: Split,
        word: dict[str, int],
        limit: int,
    ) -> None:
        """Lay out the frame: words for transfers, counters, pointers without register, indices, spilled values.

        No index exceeds `limit`.
        """
        self.task, self.nest, self.share, self.word = task, nest, share, word
        self.picked = picked
        self.out = len(task.inputs)
        self.text = Assembly()
        self.dtypes = tuple(operand.dtype for operand in task.inputs)
        in_registers = len(task.operands) <= len(POINTER_REGISTERS)
        self.pointer_register = (
            dict(enumerate(POINTER_REGISTERS[: len(task.operands)])) if in_registers else {}
        )
        self.limit = limit
        n_slots = FRAME_WORDS if self._has_wide() else TRANSFER_WORDS
        self.counter_slot = {k: n_slots + k for k in range(len(nest))}
        n_slots += len(nest)
        self.pointer_slot = {} if in_registers else {i: n_slots + i for i in range(len(task.operands))}
        n_slots += len(self.pointer_slot)
        self.index_slot = {k: n_slots + k for k in range(len(nest))}
        n_slots += len(nest)
        self.first_spill, self.n_spills, self.n_sections = n_slots, 0, 0
        self.level_of_axis = {level.axis: k for k, level in enumerate(nest)}
        self.indexed = self._indexed()

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of one worker's frame, a multiple of eight."""
        return -(-(self.first_spill + self.n_spills) * WORD_BYTES // 8) * 8

    def generate(self) -> Assembly:
        """Return the code; raises `UnsupportedOpError` where an operation or a type is not known."""
        points = self._body()
        start, finish = self._before_reduction(), self._after_reduction()
        self._prologue()
        n_parallel = sum(not level.is_reduction for level in self.nest)

        def reduce() -> None:
            self.text.lines += start
            self._loops(n_parallel, len(self.nest), lambda: self.text.lines.extend(points))
            self.text.lines += finish

        self._loops(0, n_parallel, reduce)
        self.text.label(END)
        self.text.op("exitz $mzero")
        if any(TABLE in line for line in self.text.lines):
            write_table(self.text)
        return self.text

    def _indexed(self) -> frozenset[int]:
        functions: list[ScalarFunction] = [self.task.body, *(s.index for s in self.task.selectors)]
        axes = {int(op.attribute) for f in functions for op in f.ops if op.opcode == "index"}
        axes |= {selector.axis for selector in self.task.selectors}
        return frozenset(self.level_of_axis[axis] for axis in axes if axis in self.level_of_axis)

    def _field(self, register: str, name: str) -> None:
        self.text.op(f"ld32 {register}, $mvertex_base, $mzero, {self.word[name]}", name)

    def _prologue(self) -> None:
        """Write: the frame's address, the worker's share, pointers to its first point."""
        text = self.text
        worker_number(text)
        if self.share.level is None:
            text.op(f"brnz $m0, {END}", "one worker does all of it")
        self._field(FRAME, "frame")
        text.op(f"setzi $m1, {self.frame_bytes}")
        text.op("mul $m1, $m0, $m1")
        text.op(f"add {FRAME}, {FRAME}, $m1")
        if self.share.level is not None:
            self._share()
        for i in range(len(self.task.operands)):
            self._field("$m3", "out" if i == self.out else f"in{i}")
            if self.share.level is not None:
                self._field("$m4", f"stride{i}")
                text.op("mul $m4, $m4, $m1")
                text.op("add $m3, $m3, $m4")
            self._set_pointer(i, "$m3")

    def _share(self) -> None:
        """Write: first point into $m1 (kept as that level's index), number of points into its counter; none: end."""
        text = self.text
        take_share(text, self._field, "extent0", END)
        text.op("add $m2, $m2, 1")
        text.op(f"st32 $m2, {FRAME}, $mzero, {self.counter_slot[0]}")
        if 0 in self.indexed:
            self._field("$m2", "origin0")
            text.op("add $m2, $m2, $m1")
            text.op(f"st32 $m2, {FRAME}, $mzero, {self.index_slot[0]}")

    def _set_pointer(self, operand: int, register: str) -> None:
        if operand in self.pointer_register:
            self.text.op(f"mov {self.pointer_register[operand]}, {register}")
        else:
            self.text.op(f"st32 {register}, {FRAME}, $mzero, {self.pointer_slot[operand]}")

    def _loops(self, first: int, last: int, inside: Callable[[], None]) -> None:
        """Write levels `first` to `last - 1` around `inside`."""
        if first == last:
            inside()
            return
        text, k = self.text, first
        is_innermost = k == len(self.nest) - 1
        is_shared = self.share.level == k
        if is_innermost and is_shared:
            text.op(f"ld32 {INNER_COUNTER}, {FRAME}, $mzero, {self.counter_slot[k]}")
        elif not is_shared:
            self._field(INNER_COUNTER if is_innermost else "$m0", f"extent{k}")
        if is_innermost:
            text.op(f"add {INNER_COUNTER}, {INNER_COUNTER}, -1")
        elif not is_shared:
            text.op(f"st32 $m0, {FRAME}, $mzero, {self.counter_slot[k]}")
        if k in self.indexed and not is_shared:
            self._field("$m0", f"origin{k}")
            text.op(f"st32 $m0, {FRAME}, $mzero, {self.index_slot[k]}")
        top = f".LLevel{k}"
        text.label(top)
        self._loops(k + 1, last, inside)
        self._advance(k)
        if is_innermost:
            text.op(f"brnzdec {INNER_COUNTER}, {top}")
            return
        text.op(f"ld32 $m0, {FRAME}, $mzero, {self.counter_slot[k]}")
        text.op("add $m0, $m0, -1")
        text.op(f"st32 $m0, {FRAME}, $mzero, {self.counter_slot[k]}")
        text.op(f"brnz $m0, {top}")

    def _advance(self, k: int) -> None:
        """Write: every pointer, and the level's index, one point on."""
        for i in range(len(self.task.operands)):
            if f"step{i}_{k}" not in self.word:
                continue
            self._field("$m0", f"step{i}_{k}")
            register = self.pointer_register.get(i, "$m1")
            if i in self.pointer_slot:
                self.text.op(f"ld32 $m1, {FRAME}, $mzero, {self.pointer_slot[i]}")
            self.text.op(f"add {register}, {register}, $m0")
            if i in self.pointer_slot:
                self.text.op(f"st32 $m1, {FRAME}, $mzero, {self.pointer_slot[i]}")
        if k in self.indexed:
            self.text.op(f"ld32 $m0, {FRAME}, $mzero, {self.index_slot[k]}")
            self.text.op("add $m0, $m0, 1")
            self.text.op(f"st32 $m0, {FRAME}, $mzero, {self.index_slot[k]}")

    def _pointer(self, code: VirtualCode, operand: int) -> Value | str:
        if operand in self.pointer_register:
            return self.pointer_register[operand]
        return code.m(f"ld32 {{d}}, {FRAME}, $mzero, {self.pointer_slot[operand]}")

    def _index(self, code: VirtualCode, axis: int) -> Callable[[], Value]:
        slot = self.index_slot[self.level_of_axis[axis]]
        return lambda: code.m(f"ld32 {{d}}, {FRAME}, $mzero, {slot}")

    def _body(self) -> list[str]:
        """Return one point: selectors, body, and its accumulation or store."""
        task, code = self.task, VirtualCode()
        loaded: dict[int, Word] = {}
        local: dict[int, Value] = {}

        def load(i: int) -> Word:
            if i not in loaded:
                pointer = self._pointer(code, i)
                for axis in self.picked:
                    if axis in local and task.inputs[i].strides[axis]:
                        pointer = self._moved(code, pointer, local[axis], pick_stride(i, axis))
                loaded[i] = memory.load(code, self.dtypes[i], pointer)
            return loaded[i]

        index = {axis: self._index(code, axis) for axis in self.level_of_axis}
        skip = ".LSkip"
        for selector in task.selectors:
            chosen = saturated(code, self._emitted(code, selector.index, load, index))
            if selector.axis in self.picked:
                local[selector.axis] = self._picked(code, chosen, selector.axis, skip)
                index[selector.axis] = partial(_same, chosen)
                continue
            holds = code.m("cmpeq {d}, {x}, {y}", x=chosen, y=index[selector.axis]())
            code.effect(f"brz {{c}}, {skip}", c=holds)
        value = self._emitted(code, task.body, load, index)
        if task.combine == "none":
            memory.store(code, task.output.dtype, value, self._pointer(code, self.out))
        elif picks_one(task):
            combining.set_accumulator(code, value, task.output.dtype)
        else:
            combining.accumulate(code, task.combine, value, task.output.dtype)
        lines = self._allocated(code)
        return [*lines, f"{skip}:"] if task.selectors else lines

    def _emitted(
        self,
        code: VirtualCode,
        function: ScalarFunction,
        load: Callable[[int], Word],
        index: dict[int, Callable[[], Value]],
    ) -> Word:
        """Add a function; values that are not proved to fit in a word take two."""
        function = expand(function, self.dtypes)
        return emit_function(
            code, function, self.dtypes, load, index, wide_values(function, self.dtypes, self.limit)
        )

    def _has_wide(self) -> bool:
        functions = (self.task.body, *(selector.index for selector in self.task.selectors))
        is_wide = any(wide_values(expand(f, self.dtypes), self.dtypes, self.limit) for f in functions)
        return is_wide or (self.task.combine != "none" and self.task.output.dtype in WIDE_DTYPES)

    def _picked(self, code: VirtualCode, chosen: Value, axis: int, skip: str) -> Value:
        """Add the test that an index lies in this part of an axis; return where, counted from the first point."""
        word = "$mvertex_base, $mzero"
        origin = code.m(f"ld32 {{d}}, {word}, {self.word[f'pick_origin{axis}']}")
        extent = code.m(f"ld32 {{d}}, {word}, {self.word[f'pick_extent{axis}']}")
        local = code.m("sub {d}, {x}, {o}", x=chosen, o=origin)
        holds = code.m("cmpult {d}, {x}, {e}", x=local, e=extent)
        code.effect(f"brz {{c}}, {skip}", c=holds)
        return local

    def _moved(self, code: VirtualCode, pointer: Value | str, points: Value, stride: str) -> Value:
        """Add a pointer moved by a number of points of a stride that is a word."""
        step = code.m(f"ld32 {{d}}, $mvertex_base, $mzero, {self.word[stride]}")
        bytes_ = code.m("mul {d}, {x}, {y}", x=points, y=step)
        if isinstance(pointer, str):
            return code.m(f"add {{d}}, {pointer}, {{x}}", x=bytes_)
        return code.m("add {d}, {p}, {x}", p=pointer, x=bytes_)

    def _before_reduction(self) -> list[str]:
        task, code = self.task, VirtualCode()
        if task.combine == "none":
            return []
        if task.initial or self._adds_late:
            combining.set_neutral(code, task.combine, task.output.dtype)
        else:
            old = memory.load(code, task.output.dtype, self._pointer(code, self.out))
            combining.set_accumulator(code, old, task.output.dtype)
        return self._allocated(code)

    @property
    def _adds_late(self) -> bool:
        """Return whether a sum is rounded by itself before it meets the old value: sums of f16."""
        return self.task.combine == "sum" and self.task.output.dtype == "f16" and not self.task.initial

    def _after_reduction(self) -> list[str]:
        task, code = self.task, VirtualCode()
        if task.combine == "none":
            return []
        dtype = task.output.dtype
        value = combining.accumulated(code, dtype)
        if self._adds_late:
            old = memory.load(code, dtype, self._pointer(code, self.out))
            value = code.a("f32add {d}, {x}, {y}", x=rounded(code, low(value), dtype), y=low(old))
        memory.store(code, dtype, value, self._pointer(code, self.out))
        return self._allocated(code)

    def _allocated(self, code: VirtualCode) -> list[str]:
        """Return code with registers, indented as instructions are."""
        self.n_sections += 1
        done = allocate(code, POOLS, FRAME, self.first_spill, f".LS{self.n_sections}_")
        self.n_spills = max(self.n_spills, done.n_slots)
        return [line if line.endswith(":") else f"  {line}" for line in done.lines]
