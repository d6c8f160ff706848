"""The beginning of a vector codelet: this worker's share, pointers to its first elements, strides and counts."""

from __future__ import annotations

from t10.codelets.vector.access import pointer, pointer_field, stride
from t10.codelets.vector.layout import (
    counts_turns,
    scratch_bytes_per_worker,
    start_halves,
    start_levels,
)
from t10.codelets.vector.writer import EXIT, Writer

POOL = ".Lpool"


class Start(Writer):
    """Writes what runs once."""

    def share(self) -> None:
        """Compute this worker's share: `%n` points of a row (or `%count0` rows) from the one in temporary 0 on."""
        first, second, third = self.temporaries[:3]
        self.op(f"get {first}, $WSR")
        self.op(f"and {first}, {first}, 7", "number of the worker")
        if self.nest.split == "alone":
            self.op(f"brnz {first}, {EXIT}", "the first one does it all")
            if self.draft.scratch.n_words:
                self.load_word("%scratch", "scratch")
            return
        if self.draft.scratch.n_words:
            self.load_word(second, "scratch")
            self.op(f"mul {third}, {first}, {scratch_bytes_per_worker(self.draft)}")
            self.op(f"add %scratch, {second}, {third}")
        if self.nest.split == "flat":
            self._share_of_all()
            return
        if self.nest.split == "parts":
            self.op(f"mul {first}, {first}, {2 * start_halves(self.nest)}")
            self._load_start("%n", 0)
            self.op(f"brz %n, {EXIT}", "nothing to do")
            return
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
            self.load_word("%n", "turns" if counts_turns(self.draft) else "n")

    def _share_of_all(self) -> None:
        """Compute this worker's points `%todo`, and where its numbers begin, in temporary 0, in bytes."""
        first, second, third = self.temporaries[:3]
        self.load_word(second, "per_worker")
        self.op(f"mul {third}, {first}, {second}", "first point")
        self.load_word("%room", "total")
        self.op(f"sub %room, %room, {third}")
        self.op(f"min %todo, {second}, %room")
        self.op(f"add {second}, %todo, -1")
        self.op(f"brneg {second}, {EXIT}", "nothing to do")
        self.op(f"mul {first}, {first}, {2 * start_halves(self.nest)}")
        self._load_start("%room", len(self.nest.outer))
        self.load_word(second, "padded")
        self.op(f"sub %room, {second}, %room", "points to the end of the first row")

    def _load_start(self, target: str, number: int) -> None:
        """Load one of the numbers that say where this worker begins (`RowNest.starts`)."""
        at = 2 * self.layout.number("start0_0") + number
        self.op(f"ldz16 {target}, $mvertex_base, {self.temporaries[0]}, {at}")

    def _offset(self, number: int, target: str, work: str) -> bool:
        """Set a register to the bytes from a walk's first element to this worker's; return whether there are any."""
        nest, walk = self.nest, self.nest.walks[number]
        if nest.split == "parts":
            if number in nest.moved:
                self._load_start(target, 1 + nest.moved.index(number))
            return number in nest.moved
        first = self.temporaries[0]
        is_set = False
        for j in start_levels(nest, number):
            part = work if is_set else target
            self.load_word(part, f"row{number}_{j}")
            if nest.split == "rows":
                self.op(f"mul {part}, {part}, {first}")
            else:
                self._load_start("%n", j)
                self.op(f"mul {part}, {part}, %n")
            if is_set:
                self.op(f"add {target}, {target}, {part}")
            is_set = True
        if nest.split in ("rows", "alone") or walk.inner == 0:
            return is_set
        part = work if is_set else target
        column = first
        if nest.split == "flat":
            self._load_start(part, len(nest.outer))
            column = part
        if walk.inner != 1:
            self.op(f"mul {part}, {column}, {stride(number)}")
            column = part
        if walk.size_bytes > 1 or column != part:
            self.op(f"shl {part}, {column}, {walk.size_bytes.bit_length() - 1}")
        if is_set:
            self.op(f"add {target}, {target}, {part}")
        return True

    def pointers(self) -> None:
        """Set pointers, strides and counts."""
        first = self.temporaries[0]
        strided = [n for n, walk in enumerate(self.nest.walks) if walk.inner not in (0, 1)]
        for number in strided:
            self.load_word(stride(number), f"stride{number}")
        groups: dict[int, list[int]] = {}
        for number in range(len(self.nest.walks)):
            if pointer(number) in self.pins.names or number in self.draft.parked.pointers:
                groups.setdefault(self.nest.alike[number], []).append(number)
        for numbers in groups.values():
            self._start(numbers)
        if self.nest.split == "flat":
            for j in range(1, len(self.nest.outer)):
                self._load_start(self.temporaries[2], j)
                self.set_counter(j, self.temporaries[2])
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

    def _start(self, numbers: list[int]) -> None:
        """Set pointers that lie alike to this worker's first elements."""
        _, second, third = self.temporaries[:3]
        has_offset = self._offset(self.nest.alike[numbers[0]], second, third)
        for number in numbers:
            word = self.draft.parked.pointers.get(number)
            at = pointer(number) if word is None else third
            self.load_word(at, pointer_field(self.nest, number))
            if has_offset:
                self.op(f"add {at}, {at}, {second}")
            if word is not None:
                self.op(f"st32 {at}, %scratch, $mzero, {word}")

    def count_drained(self) -> None:
        """Count one turn less where the last one is done after the loop."""
        if self.draft.is_drained:
            self.op("add %n, %n, -1")

    def _counts(self) -> None:
        """Part the points of a row in turns of the loop and what is left."""
        if "%mine" in self.pins.names:
            self.op("mov %mine, %n")
        if self.draft.has_head or self.nest.split in ("flat", "alone"):
            return
        if self.draft.tail is not None and self.nest.split in ("columns", "parts"):
            is_kept = self.nest.split == "columns" and self.nest.outer
            self.op(f"and {'%rem' if is_kept else '%left'}, %n, {self.draft.lanes - 1}")
        if self.draft.points_per_turn > 1 and not counts_turns(self.draft):
            self.op(f"shr %n, %n, {self.draft.points_per_turn.bit_length() - 1}")
        self.count_drained()

    def _indices(self, first: str) -> None:
        """Set the indices of axes: where the tensor's part begins, plus where this worker's share does."""
        shared = 0 if self.nest.split == "rows" else len(self.nest.outer)
        for axis, position in self.nest.axes:
            self.load_word(f"%index{axis}", f"origin{axis}")
            if position == shared and self.nest.split != "alone":
                self.op(f"add %index{axis}, %index{axis}, {first}")

    def set_counter(self, level: int, start: str = "") -> None:
        """Set the counter of an outer axis to its last index, less the one in `start`."""
        word = self.draft.parked.counters.get(level)
        target = f"%count{level}" if word is None else self.temporaries[1]
        self.load_word(target, f"last{level}")
        if start:
            self.op(f"sub {target}, {target}, {start}")
        if word is not None:
            self.op(f"st32 {target}, %scratch, $mzero, {word}")
