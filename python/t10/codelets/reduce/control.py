"""The loops around a reduction's straight code: shares of workers, counters, pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from t10.codelets.assembly import Assembly
from t10.codelets.reduce.layout import OUT_PACE, RegisterLayout
from t10.codelets.reduce.numbers import Numbers
from t10.codelets.reduce.schedule import Bundle
from t10.codelets.reduce.sources import access
from t10.codelets.reduce.state import Number
from t10.codelets.workers import deal, has_output, take_share, worker_number
from t10.core.codelet import Scratch
from t10.core.tile import N_WORKERS

END = ".LEnd"
CLEARING = ("setzi $a0, 8", "uput $FP_CLR, $a0")
"""Sets the accumulators to zero."""


class Control:
    """Writes loops into `text`."""

    def __init__(self, layout: RegisterLayout, text: Assembly) -> None:
        """Write for a layout. Pointers of operands in `advanced` are moved by the straight code of an output."""
        self.layout, self.text = layout, text
        self.task, self.shape, self.state, self.homes = layout.task, layout.shape, layout.state, layout.homes
        self.advanced: frozenset[int] = frozenset()

    def field(self, register: str, name: str) -> None:
        """Write the load of a field."""
        self.state.load(self.text, register, name)

    def emit(self, bundles: Iterable[Bundle]) -> None:
        """Write bundles; a half that stands alone needs none."""
        for main, aux in bundles:
            if main and aux:
                self.text.bundle(main, aux)
            elif main or aux:
                self.text.op(main or aux)

    def prologue(self, constants: Iterable[Bundle], *, clears: bool) -> None:
        """Write: share, pointers, what stays the same for all outputs; `clears`: accumulators become zero."""
        text, homes, share = self.text, self.homes, self.shape.share
        worker_number(text)
        if homes.frame:
            self.state.pointer("frame", "scratch", Scratch(), align_bytes=8)
            text.op(f"mul $m1, $m0, {self.layout.frame_bytes}")
            self.field(homes.frame, "frame")
            text.op(f"add {homes.frame}, {homes.frame}, $m1")
        if share.level is None:
            text.op(f"brnz $m0, {END}", "one worker does all of it")
        elif self.shape.is_once:
            self._last()
            has_output(text, self.field, "$m2", END)
        elif self.shape.is_dealt:
            self._deal()
        else:
            self._take_share()
        begin = len(text.lines)
        # The number of the first point of the shared level.
        first = "$m0" if self.shape.is_dealt else "$m1"
        names = {i: "out" if i == self.layout.out else f"p{i}" for i in self.layout.operands}
        # Those that go to the frame take $m3 on their way, which is a pointer's home.
        for i, name in sorted(names.items(), key=lambda item: item[1] in homes.register):
            register = homes.register.get(name, "$m2")
            self.field(register, "out" if i == self.layout.out else f"in{i}")
            if share.level is not None and self.shape.parallel[0].strides[i]:
                self.state.number(f"stride{i}", partial(Numbers.stride, operand=i), "i32")
                self.field("$m3" if register == "$m2" else "$m2", f"stride{i}")
                other = "$m3" if register == "$m2" else "$m2"
                text.op(f"mul {other}, {other}, {first}")
                text.op(f"add {register}, {register}, {other}")
            homes.write(text, name, register)
        self._variables()
        # Nothing of these is an address.
        alone = [*CLEARING] if clears else []
        rest = list(constants)
        while rest and not rest[0][0]:
            alone.append(rest.pop(0)[1])
        text.beside(begin, alone)
        self.emit(rest)

    def _deal(self) -> None:
        """Write: every sixth point of the shared level, from the worker's number on."""
        text, shape = self.text, self.shape
        self._last()
        has_rest = shape.column == 0 and bool(shape.tail)
        register = self.homes.register.get("c0", "$m2")
        deal(text, self.field, register, END, keep="$m1" if has_rest else "")
        self.homes.write(text, "c0", register)
        if has_rest:
            self.state.number("rest", lambda n: n.shape.tail)
            text.op(f"mul $m2, {register}, {N_WORKERS}")
            text.op("cmpeq $m1, $m2, $m1", "the last vector is mine")
            self.field("$m2", "rest")
            text.op("mul $m2, $m2, $m1")
            self.homes.write(text, "rest", "$m2")

    def _last(self) -> None:
        self.state.number("last", lambda n: n.shape.parallel[0].extent - 1)

    def _take_share(self) -> None:
        """Write: a stretch of the shared level, in units that share no word."""
        self.state.number("share", lambda n: n.share)
        self.state.number("extent0", lambda n: n.shape.parallel[0].extent)
        take_share(self.text, self.field, "extent0", END)
        self.homes.write(self.text, "c0", "$m2")

    def _variables(self) -> None:
        """Write: what stays the same for all outputs."""
        text, homes, shape = self.text, self.homes, self.shape
        for i, pace in self.layout.pace_values.items():
            if pace not in (0, 1):
                n_bytes = access(self.task, shape, i).n_bytes
                self.state.number(f"pace{i}", partial(Numbers.pace, operand=i, n_bytes=n_bytes), "i32")
                if self.layout.pace_names[i] == f"pace{i}":
                    self.field(homes.register[f"pace{i}"], f"pace{i}")
        if (
            shape.mode == "columns"
            and shape.tail
            and not (shape.share.level is not None and shape.column == 0)
        ):
            self.state.number("rest", lambda n: n.shape.tail)
            homes.set(text, "rest", lambda register: self.field(register, "rest"))
        k = len(shape.parallel) - 1
        for i in self.layout.operands:
            if f"step{i}_{k}" in homes.register:
                self.field(homes.register[f"step{i}_{k}"], self.layout.step(i, k))
        if OUT_PACE in homes.register:
            self.field(homes.register[OUT_PACE], OUT_PACE)
        if "count" in homes.register and self.state.has("count"):
            self.field(homes.register["count"], "count")

    @property
    def is_simple(self) -> bool:
        """Return whether one counter in a register, which workers share, is all that goes round outputs.

        Pointers are moved by the straight code of an output then.
        """
        is_counted = len(self.shape.parallel) == 1 and self.shape.share.level is not None
        moves = {i for i in self.layout.operands if self.layout.is_stepped(i, 0)}
        return is_counted and "c0" in self.homes.register and moves <= self.advanced

    def two_by_two(self, one: Callable[[], None], two: Callable[[], None]) -> None:
        """Write the loop over outputs, two in a turn; where their number is odd, one comes first. See `is_simple`."""
        text, counter = self.text, self.homes.register["c0"]
        even, top = text.new_label(), ".LOut0"
        text.op(f"and $m0, {counter}, 1")
        text.op(f"brnz $m0, {even}", "one less than the outputs")
        one()
        text.op(f"brz {counter}, {END}")
        text.op(f"add {counter}, {counter}, -1")
        text.label(even)
        text.op(f"shr {counter}, {counter}, 1", "turns after the first")
        text.label(top)
        two()
        text.op(f"brnzdec {counter}, {top}")

    def parallel(self, k: int, output: Callable[[], None]) -> None:
        """Write the loops over outputs from level `k` inwards."""
        if k == len(self.shape.parallel):
            output()
            return
        text, name = self.text, f"c{k}"
        if not (k == 0 and self.shape.share.level is not None):
            self._count(name, f"extent{k}", lambda n: n.shape.parallel[k].extent)
        top = f".LOut{k}"
        text.label(top)
        self.parallel(k + 1, output)
        if self.shape.is_once:
            return
        for i in self.layout.operands:
            is_done = i in self.advanced and k == len(self.shape.parallel) - 1
            if self.layout.is_stepped(i, k) and not is_done:
                self._advance(
                    "out" if i == self.layout.out else f"p{i}",
                    f"step{i}_{k}",
                    partial(self.layout.step, i, k),
                )
        self._again(name, top)

    def _count(self, name: str, field: str, extent: Number) -> None:
        """Write: a counter begins at its extent less one."""
        self.state.number(field, extent)

        def load(register: str) -> None:
            self.field(register, field)
            self.text.op(f"add {register}, {register}, -1")

        self.homes.set(self.text, name, load)

    def _advance(self, name: str, step: str, field: Callable[[], str]) -> None:
        """Write: a pointer moves by a field's bytes (in a register, where it has one)."""
        text, homes = self.text, self.homes
        register = homes.read(text, name, "$m0")
        if step in homes.register:
            text.op(f"add {register}, {register}, {homes.register[step]}")
        else:
            self.field("$m1", field())
            text.op(f"add {register}, {register}, $m1")
        homes.write(text, name, register)

    def _again(self, name: str, top: str) -> None:
        """Write: count down and go on at `top` until done."""
        if name in self.homes.register:
            self.text.op(f"brnzdec {self.homes.register[name]}, {top}")
            return
        done = self.text.new_label()
        self.homes.read(self.text, name, "$m0")
        self.text.op(f"brz $m0, {done}")
        self.text.op("add $m0, $m0, -1")
        self.homes.write(self.text, name, "$m0")
        self.text.op(f"bri {top}")
        self.text.label(done)

    def reduce(self, k: int, inner: Callable[[], None]) -> None:
        """Write the reduction of one output from outer level `k` inwards."""
        if k == len(self.shape.outer):
            inner()
            return
        name = f"r{k}"
        self._count(name, f"outer{k}", lambda n: n.shape.outer[k].extent)
        top = f".LReduce{k}"
        self.text.label(top)
        self.reduce(k + 1, inner)
        for i in self.layout.moving:
            self._advance(self.layout.pointer(i), "", partial(self.layout.outer_step, i, k))
        self._again(name, top)
