"""From a draft to assembly: shares of workers, loops over rows, pipelined loops along them, remainders."""

from __future__ import annotations

from t10.codelets.assembly import Assembly
from t10.codelets.body.far import FAR_MARK, write_table
from t10.codelets.body.pipeline import Pipeline
from t10.codelets.body.virtual import Instruction, printed
from t10.codelets.vector.access import pointer, stride
from t10.codelets.vector.layout import gap_levels, in_pack, is_moved
from t10.codelets.vector.schedule import Bundles
from t10.codelets.vector.start import POOL, Start
from t10.codelets.vector.writer import EXIT


class Emitter(Start):
    """Writes one codelet."""

    def run(self) -> Assembly:
        """Write everything."""
        self.share()
        self.pointers()
        self.straight(self.scheduled.once)
        self._rows()
        self.assembly.label(EXIT)
        self.op("exitz $mzero")
        if self.draft.far_frame is not None:
            for line in self.far.lines(self.pins.names["%scratch"], self.draft.far_frame):
                self.assembly.lines.append(line)
            write_table(self.assembly)
        if self.draft.constants.in_pool:
            self.assembly.align()
            self.assembly.label(POOL)
            for bits in self.draft.constants.bits:
                self.op(f".int 0x{bits:08x}")
        return self.assembly

    def _rows(self) -> None:
        """Add the loops over outer axes."""
        if self.nest.split == "flat":
            self._flat_rows()
            return
        if self.nest.split == "alone":
            self._written_out()
            return
        if self.nest.split == "parts":
            self._row()
            return
        n_outer = len(self.nest.outer)
        for j in range(n_outer):
            if j > 0 or self.nest.split == "columns":
                self.set_counter(j)
            if j > 0:
                self._begin_indices(j)
            self.assembly.label(f".Lrow{j}")
        if n_outer:
            self._begin_indices(n_outer)
        self._row()
        for j in reversed(range(n_outer)):
            self._advance(j)
            self._repeat_rows(j)

    def _written_out(self) -> None:
        """Add all points one after the other, without loops."""
        pipeline, draft = self.scheduled.pipeline, self.draft
        self.straight(self.scheduled.per_row)
        n_turns, n_left = divmod(self.nest.inner, draft.points_per_turn)
        self._pack()
        for _ in range(n_turns):
            for stage in range(pipeline.n_stages):
                self.straight(turn(pipeline, stage, stage))
        if n_left:
            for number, walk in enumerate(self.nest.walks):
                if in_pack(draft, number):
                    n_bytes = n_turns * draft.lanes * walk.size_bytes
                    self.op(f"add {pointer(number)}, {pointer(number)}, {n_bytes}")
        for _ in range(n_left):
            self.straight(self.scheduled.single)

    def _row(self) -> None:
        self.straight(self.scheduled.per_row)
        self._along_row()

    def _flat_rows(self) -> None:
        """Add the loop over rows of a worker that may begin and end within one."""
        last = len(self.nest.outer) - 1
        self.assembly.label(".Lrow")
        first, second = self.temporaries[:2]
        self.op(f"min {first}, %todo, %room")
        self.op(f"sub %todo, %todo, {first}")
        if self.nest.padded != self.nest.inner:
            self.load_word(second, "pad")
            self.op(f"sub {second}, %room, {second}")
            self.op(f"min {first}, {first}, {second}", "the end of a row is not there")
        if self.draft.tail is not None:
            self.op(f"and %left, {first}, {self.draft.lanes - 1}")
        self.op(f"shr %n, {first}, {self.draft.lanes.bit_length() - 1}")
        self.count_drained()
        self._row()
        self.load_word("%room", "padded")
        if last > 0:
            self.op(f"brz %todo, {EXIT}")
        for j in reversed(range(last + 1)):
            self._advance(j)
            if j > 0:
                self._repeat_rows(j, ".Lrow")
                self.set_counter(j)
        self.op("brnz %todo, .Lrow" if last == 0 else "bri .Lrow")

    def _repeat_rows(self, level: int, label: str = "") -> None:
        """Add the end of the loop over an outer axis."""
        word = self.draft.parked.counters.get(level)
        label = label or f".Lrow{level}"
        if word is None:
            self.op(f"brnzdec %count{level}, {label}")
            return
        count, less = self.temporaries[:2]
        self.op(f"ld32 {count}, %scratch, $mzero, {word}")
        self.op(f"add {less}, {count}, -1")
        self.op(f"st32 {less}, %scratch, $mzero, {word}")
        self.op(f"brnz {count}, {label}")

    def _begin_indices(self, level: int) -> None:
        """Set the index of an outer axis, or of the inner one, to where the loop over it begins."""
        for axis, position in self.nest.axes:
            if position == level:
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
        if self.draft.has_head:
            self._head()
        self._pack()
        pipeline = self.scheduled.pipeline
        last_stage = pipeline.n_stages - 1
        if self.draft.is_drained:
            self.op("brneg %n, .Lskip", "no turn at all")
        for block in range(last_stage):
            self.straight(turn(pipeline, 0, block))
        self._repeat(turn(pipeline, 0, last_stage))
        if self.draft.is_drained:
            self.straight(turn(pipeline, last_stage, last_stage))
            self.assembly.label(".Lskip")
        self._after_loop()

    def _pack(self) -> None:
        """Pack the addresses of operands that are accessed together."""
        pack, last = self.draft.pack, len(self.nest.walks) - 1
        if pack is not None:
            second = pack.second if pack.second is not None else last
            self.op(f"tapack %pack, {pointer(pack.first)}, {pointer(second)}, {pointer(last)}")

    def _repeat(self, body: Bundles) -> None:
        if any(main.startswith(FAR_MARK) for main, _ in body):
            self._repeat_with_branches(body)
            return
        resolved = [(self.resolved(main), self.resolved(aux)) for main, aux in body]
        if self._is_aligned():
            self.assembly.bundle(self.resolved(f"rpt %n, {len(body) - 1}"), "fnop")
        else:
            self.op(f"rpt %n, {len(body) - 1}")
        for main, aux in resolved:
            self.assembly.bundle(main, aux)

    def _repeat_with_branches(self, body: Bundles) -> None:
        """Add a loop that may branch to the slow path, which `rpt` may not."""
        top, end = self.assembly.new_label("Lturn"), self.assembly.new_label("Lturned")
        self.op(f"brz %n, {end}")
        self.op("add %turns, %n, -1")
        self.assembly.label(top)
        self.straight(body)
        self.op(f"brnzdec %turns, {top}")
        self.assembly.label(end)

    def _is_aligned(self) -> bool:
        """Return whether the next instruction lies at a multiple of eight bytes: bundles are two words, others one."""
        return sum(1 for line in self.assembly.lines if line.startswith("  ") and "{" not in line) % 2 == 0

    def _after_loop(self) -> None:
        """Bring pointers to where the loop's points end, and add the loop over single points."""
        nest, tail = self.nest, self.draft.tail
        over = self.scheduled.over_bytes()
        for number, n_bytes in over.items():
            if self.draft.steps_back:
                self._step_back(number, n_bytes)
        for number, walk in enumerate(nest.walks):
            if in_pack(self.draft, number) and is_moved(self.draft, number):
                temporary = self.temporaries[0]
                shift = (self.draft.lanes * walk.size_bytes).bit_length() - 1
                self.op(f"shl {temporary}, %n, {shift}")
                self.op(f"add {pointer(number)}, {pointer(number)}, {temporary}")
        if tail is None:
            return
        for axis, n_points in self.scheduled.over_indices().items():
            self.op(f"add %index{axis}, %index{axis}, {-n_points}")
        if nest.outer and nest.split == "columns" and not self.draft.has_head:
            self.op("mov %left, %rem")
        elif nest.split == "rows" and not self.draft.has_head:
            self.load_word("%left", "rest")
        self._single_points("tail")

    def _single_points(self, name: str) -> None:
        """Add the loop over `%left` points, one at a time."""
        self.op(f"brz %left, .Lafter_{name}")
        self.op("add %left, %left, -1")
        self.assembly.label(f".L{name}")
        self.straight(self.scheduled.single)
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
        self.count_drained()

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


def turn(pipeline: Pipeline, first: int, last: int) -> Bundles:
    """Return the bundles of a turn of a loop: the instructions of some stages."""
    partner = {f.load: f for f in pipeline.fusions} | {f.store: f for f in pipeline.fusions}
    rows: list[list[list[Instruction]]] = [[[], []] for _ in range(pipeline.interval)]
    for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
        if first <= time // pipeline.interval <= last:
            rows[time % pipeline.interval][not instruction.is_main].append(instruction)

    def text(found: list[Instruction]) -> str:
        if len(found) == 2:
            fusion = partner[found[0]]
            operands = (*fusion.load.operands, *fusion.store.operands)
            return printed(fusion.text, operands, pipeline.placement)
        return printed(found[0].text, found[0].operands, pipeline.placement) if found else ""

    return tuple((text(main), text(aux)) for main, aux in rows)
