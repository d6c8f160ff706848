"""The code that looks up rows; see `t10.codelets.gather.family`."""

from __future__ import annotations

from t10.codelets.assembly import Assembly
from t10.codelets.body.expand import expand
from t10.codelets.body.select import Unselectable
from t10.codelets.gather.rows import DOUBLE, RowLookup
from t10.codelets.loops.memory import LOADS
from t10.codelets.loops.scalar import emit_function
from t10.codelets.loops.virtual import Bank, Value, VirtualCode, allocate
from t10.codelets.loops.wide import low
from t10.codelets.reduce.control import END, Control
from t10.codelets.reduce.layout import RegisterLayout
from t10.codelets.reduce.numbers import Numbers
from t10.core.codelet import FieldKind, Pointer
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import N_WORKERS

KEPT_REGISTERS = (0, 3)
"""Registers left, besides $m0..$m2, to the index function: none where those do, the others hold what rows share."""
ORIGIN = "origin"
"""The field with the index of the first row that is here."""
MISS, DONE = ".LMiss", ".LDone"
FLOATS = tuple(f"$a{n}" for n in range(8))


def numbers(lookup: RowLookup, first: int) -> Numbers:
    """Return the numbers of a look-up in a part of a table that begins with row `first`."""
    task, axis = lookup.task, lookup.selector.axis
    row_bytes = task.inputs[lookup.table].strides[axis] * size_bytes(task.output.dtype)
    own = {ORIGIN: first, "extent": task.extents[axis], "stride": row_bytes}
    return Numbers(lookup.words, lookup.shape, has_working=True, own=own)


class LookupRegisterLayout(RegisterLayout):
    """Homes of a look-up: pointers keep the types of the task, whatever they are copied as."""

    wished = (ORIGIN, "stride", "extent")

    def __init__(self, lookup: RowLookup, kept: int) -> None:
        """Choose homes; raises `Unselectable` where there are too many variables."""
        self.lookup = lookup
        super().__init__(lookup.words, lookup.shape, kept, has_working=True)

    def alignment(self, number: int) -> int:
        """Return what the code relies on, in bytes."""
        task = self.lookup.task
        if number in (self.lookup.table, len(task.inputs)):
            return self.lookup.access_bytes
        return min(4, size_bytes(task.inputs[number].dtype))

    def add_pointers(self) -> None:
        """Add the pointers to the state."""
        task = self.lookup.task
        for i, operand in enumerate(task.inputs):
            self.state.pointer(f"in{i}", "in", Pointer(i), operand.dtype, self.alignment(i))
        kind: FieldKind = "inout" if self.lookup.is_added else "out"
        self.state.pointer("out", kind, Pointer(self.out), task.output.dtype, self.alignment(self.out))


class LookupGenerator:
    """Writes one look-up and the state its code reads."""

    def __init__(self, lookup: RowLookup, kept: int) -> None:
        """Choose homes, `kept` registers left to the index function.

        Raises `Unselectable` where there are too many variables.
        """
        self.lookup, self.task = lookup, lookup.task
        self.layout = LookupRegisterLayout(lookup, kept)
        self.state, self.homes = self.layout.state, self.layout.homes
        self.text = Assembly()
        self.control = Control(self.layout, self.text)
        self.is_paced = self._is_paced(lookup.task)
        self.is_double = lookup.access_bytes == DOUBLE
        self.vector = "$a0:1" if self.is_double else "$a0"

    def _is_paced(self, task: Task) -> bool:
        """Return whether one bundle may load from the table and store to the output."""
        is_apart = task.are_apart(self.lookup.table, len(task.inputs))
        is_plain = not self.lookup.is_added and self.lookup.access_bytes == DOUBLE
        return is_apart and is_plain and "out" in self.homes.register

    @property
    def working(self) -> str:
        """Return the register of the pointer into the table."""
        return self.homes.register[f"w{self.lookup.table}"]

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of all workers' frames."""
        return N_WORKERS * self.layout.frame_bytes

    def generate(self) -> Assembly:
        """Return the code; raises `Unselectable` where the index function needs too many registers."""
        ahead = int(self.is_paced or self.lookup.is_added)
        self.state.number("count", lambda n: n.shape.steps - ahead)
        index = self._index()
        self.control.prologue((), clears=False)
        for name in self.layout.wished:
            if name in self.homes.register:
                self.control.field(self.homes.register[name], name)

        def row() -> None:
            self.text.lines += index
            self._hit()
            if not self.lookup.is_added:
                self.text.op(f"bri {DONE}")
            self.text.label(MISS)
            if not self.lookup.is_added:
                self._miss()
                self.text.label(DONE)

        self.control.parallel(0, row)
        self.text.label(END)
        self.text.op("exitz $mzero")
        return self.text

    def _index(self) -> list[str]:
        """Return the code that finds a row: its address in the working pointer, or a jump to `MISS`."""
        task, lookup, code = self.task, self.lookup, VirtualCode()
        dtypes = tuple(operand.dtype for operand in task.inputs)

        def load(i: int) -> Value:
            return _load_index(code, dtypes[i], self.homes.register[f"p{i}"])

        chosen = low(emit_function(code, expand(lookup.selector.index, dtypes), dtypes, load, {}))
        self.state.number(ORIGIN, lambda n: n.own[ORIGIN], "i32")
        self.state.number("extent", lambda n: n.own["extent"])
        self.state.number("stride", lambda n: n.own["stride"], "i32")

        def with_number(mnemonic: str, x: Value, name: str) -> Value:
            """Add an operation with a number of the state, in its register or loaded."""
            if name in self.homes.register:
                return code.m(f"{mnemonic} {{d}}, {{x}}, {self.homes.register[name]}", x=x)
            y = code.m(f"ld32 {{d}}, $mvertex_base, $mzero, {self.state.place(name)}")
            return code.m(f"{mnemonic} {{d}}, {{x}}, {{y}}", x=x, y=y)

        if code.has_transfers:
            raise Unselectable("an index function that moves words between register files")
        local = with_number("sub", chosen, ORIGIN)
        holds = with_number("cmpult", local, "extent")
        code.effect(f"brz {{c}}, {MISS}", c=holds)
        distance = with_number("mul", local, "stride")
        table = f"p{lookup.table}"
        if table in self.homes.register:
            code.effect(f"add {self.working}, {self.homes.register[table]}, {{x}}", x=distance)
        else:
            base = code.m(f"ld32 {{d}}, {self.homes.frame}, $mzero, {self.homes.slot[table]}")
            code.effect(f"add {self.working}, {{b}}, {{x}}", b=base, x=distance)
        integers = ("$m0", "$m1", "$m2", *(f"$m{m}" for m in self.homes.free))
        pools: dict[Bank, tuple[str, ...]] = {"m": integers, "a": FLOATS}
        done = allocate(code, pools, "", 0, ".LIndex")
        if done.n_slots:
            raise Unselectable("an index function with many values")
        return [line if line.endswith(":") else f"  {line}" for line in done.lines]

    def _count(self, register: str) -> str:
        if "count" in self.homes.register:
            return self.homes.register["count"]
        self.control.field(register, "count")
        return register

    def _hit(self) -> None:
        """Write the copy of a row, or its addition."""
        text, out = self.text, self.homes.read(self.text, "out", "$m1")
        if self.is_paced:
            self._paced_copy(out)
            return
        if out != "$m1":
            text.op(f"mov $m1, {out}")
        count = self._count("$m0")
        if self.lookup.is_added:
            self._addition(count)
        else:
            size = "64" if self.is_double else "32"
            load = f"ld{size}step {self.vector}, $mzero, {self.working}+=, 1"
            text.repeat(count, [(load, "fnop"), (f"st{size}step {self.vector}, $mzero, $m1+=, 1", "fnop")])
        self._rest("$m1")

    def _rest(self, out: str) -> None:
        """Write the copy or addition of the word after the last whole access."""
        text = self.text
        if not self.lookup.has_rest:
            return
        text.op(f"ld32 $a0, {self.working}, $mzero, 0")
        if self.lookup.is_added:
            text.op(f"ld32 $a2, {out}, $mzero, 0")
            text.op(f"{self._add(1)} $a0, $a2, $a0")
        text.op(f"st32 $a0, {out}, $mzero, 0")

    def _paced_copy(self, out: str) -> None:
        """Write a copy that loads and stores in one bundle."""
        text, pair = self.text, "$m0:1"
        text.op(f"ld64step $a0:1, $mzero, {self.working}+=, 1")
        text.op(f"tapack {pair}, {self.working}, $mzero, {out}")
        text.repeat(self._count("$m2"), [(f"ldst64pace $a0:1, $a0:1, {pair}+=, $mzero, 0", "fnop")])
        text.op(f"st64pace $a0:1, {pair}+=, $mzero, 0")
        if self.lookup.has_rest:
            # The pair's first pointer has been packed with bits of the third: count the row's bytes instead.
            rest = self.state.number("rest", lambda n: (n.shape.steps - 1) * DOUBLE)
            text.op(f"ld32 $m0, $mvertex_base, $mzero, {rest}", "rest")
            text.op(f"ld32 $a0, {self.working}, $m0, 0")
            text.op(f"add $m0, {out}, $m0")
            text.op("st32 $a0, $m0, $mzero, 2")

    def _add(self, width: int) -> str:
        if self.task.output.dtype == "f16":
            return "f16v4add" if width == 2 else "f16v2add"
        return "f32v2add" if width == 2 else "f32add"

    def _addition(self, count: str) -> None:
        """Write the addition of a row: the sum of one vector is made while the next is loaded."""
        text = self.text
        width, size = (2, "64") if self.is_double else (1, "32")
        old, new = ("$a2:3", "$a4:5") if self.is_double else ("$a2", "$a4")
        add = f"{self._add(width)} {new}, {old}, {self.vector}"
        load = f"ld{size}step {self.vector}, $mzero, {self.working}+=, 1"
        text.op(load)
        text.op(f"ld{size} {old}, $m1, $mzero, 0")
        body = [
            (load, add),
            (f"ld{size} {old}, $m1, $mzero, 1", "fnop"),
            (f"st{size}step {new}, $mzero, $m1+=, 1", "fnop"),
        ]
        text.repeat(count, body)
        text.op(add)
        text.op(f"st{size}step {new}, $mzero, $m1+=, 1")

    def _miss(self) -> None:
        """Write zeros: no point of the table is chosen."""
        text, out = self.text, self.homes.read(self.text, "out", "$m1")
        if out != "$m1":
            text.op(f"mov $m1, {out}")
        count = self._count("$m0")
        store = "st64step $azeros" if self.is_double else "st32step $azero"
        text.repeat(count, [(f"{store}, $mzero, $m1+=, 1", "fnop")])
        if self.is_paced:
            text.op(f"{store}, $mzero, $m1+=, 1")
        if self.lookup.has_rest:
            text.op("st32 $azero, $m1, $mzero, 0")


def _load_index(code: VirtualCode, dtype: str, pointer: str) -> Value:
    """Add loading an index; one that needs more than 32 bits is a miss."""
    if dtype in LOADS:
        return code.m(f"{LOADS[dtype]} {{d}}, {pointer}, $mzero, 0")
    if dtype not in ("i64", "index"):
        raise Unselectable(f"an index of type {dtype}")
    low = code.m(f"ld32 {{d}}, {pointer}, $mzero, 0")
    lines = (
        f"ld32 {{t0}}, {pointer}, $mzero, 1",
        "shrs {t1}, {x}, 31",
        "cmpne {t0}, {t0}, {t1}",
        f"brnz {{t0}}, {MISS}",
    )
    code.effect(*lines, x=low)
    return low
