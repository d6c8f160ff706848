"""From a draft to assembly: shares of workers, loops over rows, pipelined loops along them, remainders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t10.codelets.assembly import LARGEST_REPEAT_BODY, Assembly
from t10.codelets.body.code import Code
from t10.codelets.body.pipeline import Pipeline, pipelined, straight
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction, printed
from t10.codelets.vector.access import pointer, pointer_field, stride
from t10.codelets.vector.draft import Draft
from t10.codelets.vector.layout import (
    Layout,
    gap_levels,
    in_pack,
    is_moved,
    layout,
    scratch_bytes_per_worker,
)
from t10.codelets.vector.registers import Pins, pin

Bundles = tuple[tuple[str, str], ...]
"""Main and aux instructions that issue together."""
POOL = ".Lpool"
EXIT = ".Lexit"


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A draft with times and registers. `slots` are the issue slots of one turn of the loop along a row."""

    draft: Draft
    pins: Pins
    pipeline: Pipeline
    slots: int
    over_bytes: dict[int, int]
    once: Bundles
    per_row: Bundles
    single: Bundles

    @property
    def cost(self) -> float:
        """Return issue slots per point."""
        return self.slots / self.draft.lanes


def schedule(draft: Draft) -> Scheduled:
    """Return a draft with times and registers; raises `Unselectable` where registers do not suffice."""
    pins = pin(draft)
    instructions = draft.main.instructions
    extra = max(8, len(instructions) // 2)
    is_store = [i in draft.stores for i in instructions]
    pipeline = pipelined(instructions, draft.fusions, is_store, pins.free, pins.placement, extra)
    if pipeline is None or pipeline.interval > LARGEST_REPEAT_BODY:
        raise Unselectable("too many values at once")
    slots = pipeline.interval + sum(i.slots - 1 for i in instructions)
    once, per_row, single = (_straight(code, pins) for code in (draft.once, draft.per_row, draft.tail))
    return Scheduled(draft, pins, pipeline, slots, _over_bytes(draft, pipeline), once, per_row, single)


def _straight(code: Code | None, pins: Pins) -> Bundles:
    """Return code that runs once as bundles."""
    if code is None or not code.instructions:
        return ()
    found = straight(code.instructions, pins.free, pins.placement)
    if found is None:
        raise Unselectable("too many values at once")
    return tuple(found)


def _over_bytes(draft: Draft, pipeline: Pipeline) -> dict[int, int]:
    """Return how far every walk's pointer has run past the row when the loop ends."""
    nest = draft.prepared.nest
    result: dict[int, int] = {}
    for number, walk in enumerate(nest.walks):
        if in_pack(draft, number):
            continue
        steps = [i for i in pipeline.instructions if _is_step(i, pointer(number))]
        ahead = sum(pipeline.n_stages - 1 - pipeline.stage(i) for i in steps)
        if ahead:
            result[number] = ahead * draft.lanes * walk.inner * walk.size_bytes // len(steps)
    return result


def _is_step(instruction: Instruction, name: str) -> bool:
    """Return whether an instruction moves a pointer; all that do move it equally far."""
    return name in instruction.streams and (
        f"{name}+=" in instruction.text or f"add {name}," in instruction.text
    )


class Emitter:
    """Writes one codelet."""

    def __init__(self, scheduled: Scheduled) -> None:
        """Lay the words out."""
        self.scheduled = scheduled
        self.draft = scheduled.draft
        self.nest = scheduled.draft.prepared.nest
        self.pins = scheduled.pins
        self.layout: Layout = layout(self.draft, {} if self._steps_back() else scheduled.over_bytes)
        self.assembly = Assembly()
        self.temporaries = [f"$m{i}" for i in self.pins.free["m"]]

    def run(self) -> Assembly:
        """Write everything."""
        self._share()
        self._pointers()
        self._straight(self.scheduled.once)
        self._rows()
        self.assembly.label(EXIT)
        self.op("exitz $mzero")
        if self.draft.constants.in_pool:
            self.assembly.align()
            self.assembly.label(POOL)
            for bits in self.draft.constants.bits:
                self.op(f".int 0x{bits:08x}")
        return self.assembly

    # --- text ----------------------------------------------------------------------------------------------------

    def op(self, text: str, comment: str = "") -> None:
        """Add an instruction by itself."""
        self.assembly.op(self._resolved(text), comment)

    def load_word(self, target: str, field: str) -> None:
        """Add the load of a field."""
        self.op(f"ld32 {target}, $mvertex_base, $mzero, {self.layout.number(field)}", field)

    def _resolved(self, text: str) -> str:
        while "%c" in text and "%count" not in text:
            start = text.index("%c")
            end = text.index("%", start + 1)
            number = int(text[start + 2 : end])
            at = number if self.draft.constants.in_pool else self.layout.number(f"c{number}")
            text = text[:start] + str(at) + text[end + 1 :]
        while "%f:" in text:
            start = text.index("%f:")
            end = text.index(":", start + 3)
            text = text[:start] + str(self.layout.number(text[start + 3 : end])) + text[end + 1 :]
        return self.pins.resolve(text)

    def _bundle(self, main: str, aux: str) -> None:
        if main and aux:
            self.assembly.bundle(self._resolved(main), self._resolved(aux))
        elif main or aux:
            self.op(main or aux)

    def _straight(self, bundles: Bundles) -> None:
        """Add code that runs once."""
        for main, aux in bundles:
            self._bundle(main, aux)

    # --- before the loops ----------------------------------------------------------------------------------------

    def _share(self) -> None:
        """Compute this worker's share: `%n` points of a row (or `%count0` rows) from the one in temporary 0 on."""
        first, second, third = self.temporaries[:3]
        self.op(f"get {first}, $WSR")
        self.op(f"and {first}, {first}, 7", "number of the worker")
        if self.draft.scratch.n_words:
            self.load_word(second, "scratch")
            self.op(f"mul {third}, {first}, {scratch_bytes_per_worker(self.draft)}")
            self.op(f"add %scratch, {second}, {third}")
        is_rows = self.nest.split == "rows"
        word = self.draft.parked.counters.get(0)
        target = ("%count0" if word is None else second) if is_rows else "%n"
        self.load_word(second, "per_worker")
        self.op(f"mul {first}, {first}, {second}", "first " + ("row" if is_rows else "column"))
        self.load_word(third, "n_rows" if is_rows else "n")
        self.op(f"sub {third}, {third}, {first}")
        self.op(f"min {target}, {second}, {third}")
        if is_rows:
            self.op(f"add {target}, {target}, -1")
        self.op(f"brneg {target}, {EXIT}", "nothing to do")
        if self.draft.has_head and not is_rows:
            self.op(f"brz {target}, {EXIT}")
        if is_rows and word is not None:
            self.op(f"st32 {target}, %scratch, $mzero, {word}")
        if is_rows:
            self.load_word("%n", "n")

    def _pointers(self) -> None:
        """Set pointers, strides and counts."""
        first = self.temporaries[0]
        strided = [n for n, walk in enumerate(self.nest.walks) if walk.inner not in (0, 1)]
        for number in strided:
            self.load_word(stride(number), f"stride{number}")
        shifted = {1: first}
        for number in range(len(self.nest.walks)):
            if pointer(number) in self.pins.names:
                self._pointer(number, shifted)
        for number, word in self.draft.parked.pointers.items():
            self._parked_pointer(number, word)
        self._indices(first)
        for number in strided:
            if self.nest.walks[number].size_bytes == 8:
                self.op(f"shl {stride(number)}, {stride(number)}, 1", "in words")
        self._counts()
        if self.draft.constants.in_pool:
            self.op(f"setzi %pool, {POOL}")
        for number in range(len(self.nest.walks)):
            if f"%gap{number}" in self.pins.names:
                self.load_word(f"%gap{number}", f"gap{number}_{len(self.nest.outer) - 1}")

    def _pointer(self, number: int, shifted: dict[int, str]) -> None:
        """Set a pointer to this worker's first row or column; `shifted` holds the latter in bytes by element size."""
        first, second, third = self.temporaries[:3]
        walk, at = self.nest.walks[number], pointer(number)
        self.load_word(at, pointer_field(self.nest, number))
        if self.nest.split == "rows":
            if walk.outer[0]:
                self.load_word(second, f"row{number}")
                self.op(f"mul {second}, {second}, {first}")
                self.op(f"add {at}, {at}, {second}")
        elif walk.inner == 1:
            size = walk.size_bytes
            if size not in shifted:
                for other in [s for s in shifted if s != 1]:
                    del shifted[other]
                shifted[size] = second
                self.op(f"shl {second}, {first}, {size.bit_length() - 1}")
            self.op(f"add {at}, {at}, {shifted[size]}")
        elif walk.inner:
            self.op(f"mul {third}, {stride(number)}, {first}")
            if walk.size_bytes > 1:
                self.op(f"shl {third}, {third}, {walk.size_bytes.bit_length() - 1}")
            self.op(f"add {at}, {at}, {third}")

    def _parked_pointer(self, number: int, word: int) -> None:
        """Set a pointer that lies in scratch memory."""
        first, second, third = self.temporaries[:3]
        self.load_word(third, pointer_field(self.nest, number))
        if self.nest.split == "rows" and self.nest.walks[number].outer[0]:
            self.load_word(second, f"row{number}")
            self.op(f"mul {second}, {second}, {first}")
            self.op(f"add {third}, {third}, {second}")
        self.op(f"st32 {third}, %scratch, $mzero, {word}")

    def _counts(self) -> None:
        """Part the points of a row in turns of the loop and what is left."""
        if "%mine" in self.pins.names:
            self.op("mov %mine, %n")
        if self.draft.has_head:
            return
        if self.draft.tail is not None and not (self.nest.outer and self.nest.split == "rows"):
            self.op(f"and {'%rem' if self.nest.outer else '%left'}, %n, {self.draft.lanes - 1}")
        if self.draft.lanes > 1:
            self.op(f"shr %n, %n, {self.draft.lanes.bit_length() - 1}")

    def _indices(self, first: str) -> None:
        """Set the indices of axes: where the tensor's part begins, plus where this worker's share does."""
        shared = 0 if self.nest.split == "rows" else len(self.nest.outer)
        for axis, position in self.nest.axes:
            self.load_word(f"%index{axis}", f"origin{axis}")
            if position == shared:
                self.op(f"add %index{axis}, %index{axis}, {first}")

    # --- loops ---------------------------------------------------------------------------------------------------

    def _rows(self) -> None:
        """Add the loops over outer axes."""
        n_outer = len(self.nest.outer)
        for j in range(n_outer):
            word = self.draft.parked.counters.get(j)
            target = f"%count{j}" if word is None else self.temporaries[0]
            if j > 0 or self.nest.split == "columns":
                self.load_word(target, f"last{j}")
                if word is not None:
                    self.op(f"st32 {target}, %scratch, $mzero, {word}")
            self.assembly.label(f".Lrow{j}")
        self._inner_indices()
        self._straight(self.scheduled.per_row)
        self._along_row()
        for j in reversed(range(n_outer)):
            self._advance(j)
            self._repeat_rows(j)

    def _repeat_rows(self, level: int) -> None:
        """Add the end of the loop over an outer axis."""
        word = self.draft.parked.counters.get(level)
        if word is None:
            self.op(f"brnzdec %count{level}, .Lrow{level}")
            return
        count, less = self.temporaries[:2]
        self.op(f"ld32 {count}, %scratch, $mzero, {word}")
        self.op(f"add {less}, {count}, -1")
        self.op(f"st32 {less}, %scratch, $mzero, {word}")
        self.op(f"brnz {count}, .Lrow{level}")

    def _inner_indices(self) -> None:
        if not self.nest.outer:
            return
        for axis, position in self.nest.axes:
            if position == len(self.nest.outer):
                self.load_word(f"%index{axis}", f"origin{axis}")

    def _advance(self, level: int) -> None:
        """Add the steps of pointers at the end of a point of an outer axis."""
        temporary = self.temporaries[0]
        is_last = level == len(self.nest.outer) - 1
        for number, walk in enumerate(self.nest.walks):
            at = pointer(number)
            if number in self.draft.parked.pointers and level in gap_levels(self.draft, number):
                self._advance_parked(number, level)
            if at not in self.pins.names:
                continue
            if is_last and self.nest.split == "columns" and is_moved(self.draft, number):
                self._move_back(number, walk.size_bytes, walk.inner)
            if level not in gap_levels(self.draft, number):
                continue
            if is_last and f"%gap{number}" in self.pins.names:
                self.op(f"add {at}, {at}, %gap{number}")
            else:
                self.load_word(temporary, f"gap{number}_{level}")
                self.op(f"add {at}, {at}, {temporary}")
        for axis, position in self.nest.axes:
            if position == level:
                self.op(f"add %index{axis}, %index{axis}, 1")

    def _advance_parked(self, number: int, level: int) -> None:
        first, second = self.temporaries[:2]
        word = self.draft.parked.pointers[number]
        self.op(f"ld32 {first}, %scratch, $mzero, {word}")
        self.load_word(second, f"gap{number}_{level}")
        self.op(f"add {first}, {first}, {second}")
        self.op(f"st32 {first}, %scratch, $mzero, {word}")

    def _move_back(self, number: int, size_bytes: int, inner: int) -> None:
        """Add the step of a pointer from the end of this worker's part of a row to its beginning."""
        temporary = self.temporaries[0]
        source = "%mine"
        if inner != 1:
            # The stride register counts words of elements of eight bytes.
            self.op(f"mul {temporary}, %mine, {stride(number)}")
            source, size_bytes = temporary, min(size_bytes, 4)
        self.op(f"shl {temporary}, {source}, {size_bytes.bit_length() - 1}")
        self.op(f"sub {pointer(number)}, {pointer(number)}, {temporary}")

    def _along_row(self) -> None:
        """Add the pipelined loop along a row and what is left after it."""
        pack = self.draft.pack
        last = len(self.nest.walks) - 1
        if self.draft.has_head:
            self._head()
        if pack is not None:
            second = pack.second if pack.second is not None else last
            self.op(f"tapack %pack, {pointer(pack.first)}, {pointer(second)}, {pointer(last)}")
        pipeline = self.scheduled.pipeline
        bundles = turns(pipeline)
        for block in range(pipeline.n_stages - 1):
            for main, aux in bundles(block):
                self._bundle(main, aux)
        self._repeat(list(bundles(pipeline.n_stages - 1)))
        self._after_loop()

    def _repeat(self, body: Sequence[tuple[str, str]]) -> None:
        resolved = [(self._resolved(main), self._resolved(aux)) for main, aux in body]
        if self._is_aligned():
            self.assembly.bundle(self._resolved(f"rpt %n, {len(body) - 1}"), "fnop")
        else:
            self.op(f"rpt %n, {len(body) - 1}")
        for main, aux in resolved:
            self.assembly.bundle(main, aux)

    def _is_aligned(self) -> bool:
        """Return whether the next instruction lies at a multiple of eight bytes: bundles are two words, others one."""
        return sum(1 for line in self.assembly.lines if line.startswith("  ") and "{" not in line) % 2 == 0

    def _after_loop(self) -> None:
        """Bring pointers to where the loop's points end, and add the loop over single points."""
        nest, tail = self.nest, self.draft.tail
        over = self.scheduled.over_bytes
        for number, n_bytes in over.items():
            if self._steps_back():
                self._step_back(number, n_bytes)
        if tail is None:
            return
        for number, walk in enumerate(nest.walks):
            if in_pack(self.draft, number):
                temporary = self.temporaries[0]
                shift = (self.draft.lanes * walk.size_bytes).bit_length() - 1
                self.op(f"shl {temporary}, %n, {shift}")
                self.op(f"add {pointer(number)}, {pointer(number)}, {temporary}")
        if nest.outer and nest.split == "columns" and not self.draft.has_head:
            self.op("mov %left, %rem")
        elif nest.outer and not self.draft.has_head:
            self.load_word("%left", "n")
            self.op(f"and %left, %left, {self.draft.lanes - 1}")
        self._single_points("tail")

    def _single_points(self, name: str) -> None:
        """Add the loop over `%left` points, one at a time."""
        self.op(f"brz %left, .Lafter_{name}")
        self.op("add %left, %left, -1")
        self.assembly.label(f".L{name}")
        self._straight(self.scheduled.single)
        self.op(f"brnzdec %left, .L{name}")
        self.assembly.label(f".Lafter_{name}")

    def _head(self) -> None:
        """Add the row's first point by itself where it lies in the upper half of a word; count what follows it."""
        last = len(self.nest.walks) - 1
        self.load_word("%n", "n")
        self.op(f"and %left, {pointer(last)}, 2")
        self.op("shr %left, %left, 1")
        self.op("sub %n, %n, %left")
        self._single_points("head")
        self.op(f"and %left, %n, {self.draft.lanes - 1}")
        self.op(f"shr %n, %n, {self.draft.lanes.bit_length() - 1}")

    def _steps_back(self) -> bool:
        """Return whether pointers that ran ahead are brought back after the loop; else the words of gaps do it."""
        return self.draft.tail is not None or bool(self.nest.outer and self.nest.split == "columns")

    def _step_back(self, number: int, n_bytes: int) -> None:
        walk = self.nest.walks[number]
        at = pointer(number)
        if walk.inner == 1:
            self.op(f"add {at}, {at}, {-n_bytes}")
            return
        temporary = self.temporaries[0]
        unit = min(walk.size_bytes, 4)
        turns_bytes = n_bytes // (walk.inner * walk.size_bytes) * unit
        self.op(f"mul {temporary}, {stride(number)}, {-turns_bytes}")
        self.op(f"add {at}, {at}, {temporary}")


def turns(pipeline: Pipeline) -> Callable[[int], list[tuple[str, str]]]:
    """Return a function that gives the bundles of turn `block` of a loop: the instructions of stages up to it."""
    partner = {f.load: f for f in pipeline.fusions} | {f.store: f for f in pipeline.fusions}

    def bundles(block: int) -> list[tuple[str, str]]:
        rows: list[list[list[Instruction]]] = [[[], []] for _ in range(pipeline.interval)]
        for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
            if time // pipeline.interval <= block:
                rows[time % pipeline.interval][not instruction.is_main].append(instruction)
        return [(_main(row[0]), _aux(row[1])) for row in rows]

    def _main(found: list[Instruction]) -> str:
        if len(found) == 2:
            fusion = partner[found[0]]
            operands = (*fusion.load.operands, *fusion.store.operands)
            return printed(fusion.text, operands, pipeline.placement)
        return _aux(found)

    def _aux(found: list[Instruction]) -> str:
        return printed(found[0].text, found[0].operands, pipeline.placement) if found else ""

    return bundles
