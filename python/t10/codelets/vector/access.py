"""Loads and stores of a nest's operands, as instructions on symbolic pointers.

`%p0`, `%stride0`, `%scratch`, `%pool`, ... stand for integer registers that are pinned later. Pointers step as they are
used, so parts of an operand are loaded in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.codelets.body.code import Code
from t10.codelets.body.select import Form, Selector, Unselectable
from t10.codelets.body.virtual import Fusion, Instruction, Slice
from t10.codelets.vector.nest import DOUBLE_BYTES, WORD_BYTES, RowNest, Walk

MOST_WORD_CONSTANTS = 6
"""With more constants than this they lie behind the code instead of in the vertex."""

LANE_LOADS = {"i8": "lds8", "ui8": "ldz8", "i1": "ldz8", "i16": "lds16", "ui16": "ldz16", "i32": "ld32", "ui32": "ld32",
              "i64": "ld32", "ui64": "ld32", "index": "ld32"}  # fmt: skip
WIDE = frozenset({"i64", "ui64", "index"})
ONE_PER_BYTE = 0x01010101


def pointer(number: int) -> str:
    """Return the name of the pointer of a walk."""
    return f"%p{number}"


def pointer_field(nest: RowNest, number: int) -> str:
    """Return the name of the field with a walk's address; the output read before it is written has one field."""
    return "out" if nest.walks[number].operand == nest.output.operand else f"in{number}"


def stride(number: int) -> str:
    """Return the name of the register that holds a strided walk's element stride."""
    return f"%stride{number}"


@dataclass(slots=True)
class Constants:
    """Constant words of a codelet in the order in which they were first wanted."""

    bits: list[int] = field(default_factory=list[int])
    in_pool: bool = False

    def number(self, bits: int) -> int:
        """Return the number of a word."""
        if bits not in self.bits:
            self.bits.append(bits)
        return self.bits.index(bits)

    def load(self, code: Code, bits: int, target: Slice) -> None:
        """Load a word into a single register."""
        if bits == 0:
            code.add("zero {}", "o", target, is_main=target.register.file == "m")
            return
        base = "%pool" if self.in_pool else "$mvertex_base"
        code.add(f"ld32 {{}}, {base}, $mzero, %c{self.number(bits)}%", "o", target, is_main=True)


@dataclass(slots=True)
class Scratch:
    """Words of a worker's scratch memory."""

    n_words: int = 0

    def take(self, n_words: int) -> tuple[str, int]:
        """Return the base register and the number of the first of new words, an even one."""
        first = -(-self.n_words // 2) * 2
        self.n_words = first + n_words
        return "%scratch", first


@dataclass(frozen=True, slots=True)
class Pack:
    """Walks whose accesses share instructions: up to two inputs and the output, in different memory elements.

    `first` and `second` are loaded together; `stores` tells whether the output takes part.
    """

    first: int
    second: int | None
    stores: bool


@dataclass(frozen=True, slots=True)
class Parked:
    """Pointers (by walk) and counters (by outer axis) that lie in words of the worker's scratch memory."""

    pointers: dict[int, int]
    counters: dict[int, int]


class RowSources:
    """Values that are the same along a row: each is loaded once, from where its pointer stands."""

    def __init__(self, nest: RowNest, constants: Constants, scratch: Scratch, parked: Parked) -> None:
        """Take what the other sources of the codelet share."""
        self.parked = parked
        self.nest = nest
        self.constants = constants
        self.scratch_words = scratch

    def constant(self, code: Code, bits: int, target: Slice) -> None:
        """Load a constant word into a single register."""
        self.constants.load(code, bits, target)

    def scratch(self, n_words: int) -> tuple[str, int]:
        """Return the base register and the number of the first of new words of the worker's scratch memory."""
        return self.scratch_words.take(n_words)

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Return the global index of an outer axis, whose counter is pinned."""
        target = code.new("m")
        code.add(f"mov {{}}, %index{axis}", "o", target, is_main=True)
        return target

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return an input."""
        walk = self.nest.inputs[number]
        target = code.new("m" if form == "m" else "a")
        mnemonic = "ldb8" if walk.dtype == "i1" else "ldb16" if walk.size_bytes == 2 else "ld32"
        if form == "m":
            mnemonic = LANE_LOADS[walk.dtype]
        if any(walk.outer) and number not in self.parked.pointers:
            code.add(f"{mnemonic} {{}}, $mzero, {pointer(number)}, 0", "o", target, is_main=True)
        else:
            at = code.new("m")
            word = self.parked.pointers.get(number)
            field = f"%f:{pointer_field(self.nest, number)}:"
            place = f"$mvertex_base, $mzero, {field}" if word is None else f"%scratch, $mzero, {word}"
            code.add(f"ld32 {{}}, {place}", "o", at, is_main=True)
            code.add(f"{mnemonic} {{}}, $mzero, {{}}, 0", "oi", target, at, is_main=True)
        if form == "m":
            return target
        return code.aux("f32cmpne", code.new("a"), target, "$azero") if walk.dtype == "i1" else target


class VectorSources(RowSources):
    """Values along a row, `lanes` points at a time; pointers step."""

    def __init__(
        self, nest: RowNest, constants: Constants, scratch: Scratch, lanes: int, pack: Pack | None
    ) -> None:
        """`pack` tells which operands are accessed together."""
        super().__init__(nest, constants, scratch, Parked({}, {}))
        self.lanes = lanes
        self.pack = pack
        self.loaded: dict[tuple[int, Form], list[Slice]] = {}
        self.pack_loads: list[Instruction] = []
        self.pack_quads: list[Slice | None] = []

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Return the global index of an axis."""
        if dict(self.nest.axes)[axis] != len(self.nest.outer):
            return super().index(code, axis, lane)
        target = code.new("m")
        stream = f"%index{axis}"
        code.add(f"add {{}}, %index{axis}, {lane}", "o", target, is_main=True, streams=(stream,))
        if lane == self.lanes - 1:
            code.add(f"add %index{axis}, %index{axis}, {self.lanes}", "", is_main=True, streams=(stream,))
        return target

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of an input, loading the parts before it first."""
        parts = self.loaded.setdefault((number, form), [])
        while len(parts) <= part:
            if any(n == number and f != form for n, f in self.loaded):
                raise Unselectable("an input wanted in two forms")
            if self.pack is not None and number in (self.pack.first, self.pack.second):
                self._load_pack(code, len(parts), form)
            elif self.nest.inputs[number].dtype == "i1" and form != "m":
                parts.append(self._mask(code, number, form))
            else:
                parts.append(self._plain(code, number, form))
        return parts[part]

    def _step(self, code: Code, mnemonic: str, number: int, target: Slice, count: int = 1) -> None:
        walk = self.nest.inputs[number]
        step = str(count) if walk.inner == 1 else stride(number)
        text = f"{mnemonic}step {{}}, $mzero, {pointer(number)}+=, {step}"
        code.add(text, "o", target, is_main=True, streams=(pointer(number),))

    def _plain(self, code: Code, number: int, form: Form) -> Slice:
        walk = self.nest.inputs[number]
        if form == "m":
            target = code.new("m")
            self._step(code, LANE_LOADS[walk.dtype], number, target, 2 if walk.dtype in WIDE else 1)
            return target
        if form == "h":
            return self._halves(code, number, walk)
        target = code.new("a", min(self.lanes, 2))
        if target.width == 2 and walk.inner == 1 and walk.align_bytes % DOUBLE_BYTES == 0:
            self._step(code, "ld64", number, target)
            return target
        for i in range(target.width):
            self._step(code, "ld32", number, target.part(i))
        return target

    def _halves(self, code: Code, number: int, walk: Walk) -> Slice:
        n_bytes = self.lanes * walk.size_bytes
        target = code.new("a", max(1, self.lanes // 2))
        if walk.inner == 1 and n_bytes == DOUBLE_BYTES and walk.align_bytes % DOUBLE_BYTES == 0:
            self._step(code, "ld64", number, target)
            return target
        if walk.inner == 1 and n_bytes >= WORD_BYTES and walk.align_bytes % WORD_BYTES == 0:
            for i in range(target.width):
                self._step(code, "ld32", number, target.part(i))
            return target
        if self.lanes == 1:
            self._step(code, "ldb16", number, target)
            return target
        for i in range(target.width):
            low, high = code.new("a"), code.new("a")
            self._step(code, "ldb16", number, low)
            self._step(code, "ldb16", number, high)
            code.aux("sort4x16lo", target.part(i), low, high)
        return target

    def _mask(self, code: Code, number: int, form: Form) -> Slice:
        """Return truth values as a mask; the bytes of a lane are a number of f32 that is not 0."""
        if form == "h":
            words = [self._mask_words(code, number) for _ in range(max(1, self.lanes // 2))]
            if self.lanes == 1:
                return words[0]
            target = code.new("a", len(words))
            for i, pair in enumerate(words):
                code.aux("sort4x16lo", target.part(i), pair.part(0), pair.part(1))
            return target
        return self._mask_words(code, number)

    def _mask_words(self, code: Code, number: int) -> Slice:
        walk = self.nest.inputs[number]
        stream, at = pointer(number), pointer(number)
        raw = code.new("a", min(self.lanes, 2))
        for i in range(raw.width):
            code.add(f"ldb8 {{}}, $mzero, {at}, 0", "o", raw.part(i), is_main=True, streams=(stream,))
            step = stride(number) if walk.inner != 1 else "1"
            code.add(f"add {at}, {at}, {step}", "", is_main=True, streams=(stream,))
        family, zero = ("f32v2", "$azeros") if raw.width == 2 else ("f32", "$azero")
        return code.aux(f"{family}cmpne", code.new("a", raw.width), raw, zero)

    def _load_pack(self, code: Code, part: int, form: Form) -> None:
        """Load a part of one input and the same of the other, or of what there is."""
        assert self.pack is not None
        first, second = self.pack.first, self.pack.second
        streams = ("pack in",)
        if second is None:
            target = code.new("a", 2)
            text = "ld2x64pace {0}, $azeros, %pack+=, $mzero, 0b0100"
            load = code.add(text, "o", target, is_main=True, streams=streams)
            self.loaded.setdefault((first, form), []).append(target)
            self.pack_quads.append(None)
        else:
            quad = code.new("a", 4)
            text = "ld2x64pace {0}, {1}, %pack+=, $mzero, 0b0000"
            load = code.add(
                text, "ooo", quad.part(0, 2), quad.part(2, 2), quad, is_main=True, streams=streams
            )
            self.loaded.setdefault((first, form), []).append(quad.part(0, 2))
            self.loaded.setdefault((second, form), []).append(quad.part(2, 2))
            self.pack_quads.append(quad)
        self.pack_loads.append(load)

    def fusions(self, stores: list[Instruction]) -> tuple[Fusion, ...]:
        """Return which loads and stores through the pack become one instruction."""
        result: list[Fusion] = []
        if self.pack is None or not self.pack.stores:
            return ()
        for load, store, quad in zip(self.pack_loads, stores, self.pack_quads, strict=False):
            text = (
                "ldst64pace {0}, {1}, %pack+=, $mzero, 0b0000"
                if quad is None
                else "ld2xst64pace {2}, {3}, %pack+=, $mzero, 0b000000"
            )
            result.append(Fusion(load, store, text))
        return tuple(result)


class HeldSources(RowSources):
    """Points that stay where they are while rows run across them."""

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of a point."""
        target = code.new("a", 2)
        word = self.parked.pointers.get(number)
        at: Slice | str = pointer(number)
        if word is not None:
            at = code.new("m")
            code.add(f"ld32 {{}}, %scratch, $mzero, {word}", "o", at, is_main=True)
        code.add(f"ld64 {{}}, $mzero, {{}}, {part}", "oi", target, at, is_main=True)
        return target


class AcrossSources(VectorSources):
    """Points of several elements, from one to the next by a stride."""

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of a point, loading the parts before it first."""
        parts = self.loaded.setdefault((number, form), [])
        while len(parts) <= part:
            target = code.new("a", 2)
            code.add(f"ld64step {{}}, {self._step_to(number, len(parts))}", "o", target, is_main=True,
                     streams=(pointer(number),))  # fmt: skip
            parts.append(target)
        return parts[part]

    def _step_to(self, number: int, part: int) -> str:
        """Return the address of a part and the step to the next one: within the point, then to the next point."""
        at = pointer(number)
        is_last = part == point_parts(self.nest, number) - 1
        return f"$mzero, {at}+=, {stride(number) if is_last else 1}"

    def store_part(self, code: Code, part: int, source: Slice) -> None:
        """Add the store of a part."""
        number = len(self.nest.walks) - 1
        text = f"st64step {{}}, {self._step_to(number, part)}"
        code.add(text, "i", source, is_main=True, streams=(pointer(number),))


def point_parts(nest: RowNest, number: int) -> int:
    """Return in how many accesses of eight bytes a point of several elements is read or written."""
    return nest.across * nest.walks[number].size_bytes // DOUBLE_BYTES


def store(s: Selector, sources: VectorSources, value: int, dtype: str) -> list[Instruction]:
    """Add the stores of a function's result, and return them."""
    output = sources.nest.output
    number = len(sources.nest.walks) - 1
    before = len(s.code.instructions)
    form = s.form(value)
    if dtype in ("f16", "f32") or (dtype in ("i32", "ui32") and form == "w"):
        _store_floats(s, sources, value, "h" if dtype == "f16" else "w")
    elif output.inner != 1:
        _store_strided_integers(s, sources, value, dtype, number)
    elif output.size_bytes >= WORD_BYTES:
        for lane in range(s.lanes):
            _store_word(s, s.get(value, "m", lane), number)
            if output.size_bytes == DOUBLE_BYTES:
                high = s.code.main("shrs", s.new("m"), s.get(value, "m", lane), "31")
                _store_word(s, high, number)
    else:
        _store_narrow(s, value, form, number, output)
    made = s.code.instructions[before:]
    return [i for i in made if i.text.startswith("st") and "%scratch" not in i.text]


def _store_word(s: Selector, register: Slice, number: int) -> None:
    text = f"st32step {{}}, $mzero, {pointer(number)}+=, 1"
    s.code.add(text, "i", register, is_main=True, streams=(pointer(number),))


def _store_floats(s: Selector, sources: VectorSources, value: int, form: Form) -> None:
    output = sources.nest.output
    number = len(sources.nest.walks) - 1
    at = pointer(number)
    for part in range(s.n_parts(form)):
        source = s.get(value, form, part)
        if isinstance(sources, AcrossSources):
            sources.store_part(s.code, part, source)
        elif sources.pack is not None and sources.pack.stores:
            s.code.add(
                "st64pace {0}, %pack+=, $mzero, 0b00", "i", source, is_main=True, streams=("pack out",)
            )
        elif form == "h" and s.lanes == 1:
            _store_half(s, s.code.main("mov", s.new("m"), source), at)
        elif source.width == 2 and output.inner == 1 and output.align_bytes % DOUBLE_BYTES == 0:
            s.code.add(f"st64step {{}}, $mzero, {at}+=, 1", "i", source, is_main=True, streams=(at,))
        elif output.align_bytes % WORD_BYTES:
            raise Unselectable("less than a word at a time")
        else:
            step = "1" if output.inner == 1 else stride(number)
            for i in range(source.width):
                text = f"st32step {{}}, $mzero, {at}+=, {step}"
                s.code.add(text, "i", source.part(i), is_main=True, streams=(at,))


def _store_strided_integers(s: Selector, sources: VectorSources, value: int, dtype: str, number: int) -> None:
    if sources.nest.output.size_bytes != WORD_BYTES:
        raise Unselectable(f"strided {dtype}")
    for lane in range(s.lanes):
        text = f"stm32step {{}}, {pointer(number)}+=, {stride(number)}"
        s.code.add(text, "i", s.get(value, "m", lane), is_main=True, streams=(pointer(number),))


def _store_narrow(s: Selector, value: int, form: Form, number: int, output: Walk) -> None:
    """Add the store of 8- or 16-bit integers: whole words, or one element into its word."""
    at = pointer(number)
    if s.lanes == 1:
        register = s.get(value, "m", 0)
        if output.size_bytes == 1:
            _store_byte(s, register, at)
        else:
            _store_half(s, register, at)
        return
    if s.lanes * output.size_bytes < WORD_BYTES or output.align_bytes % WORD_BYTES:
        raise Unselectable("less than a word at a time")
    if output.size_bytes == 1 and form == "h" and s.lanes == 4:
        halves = s.get(value, "h", 0)
        low, high = (s.code.main("mov", s.new("m"), halves.part(i)) for i in range(2))
        both = s.code.main("sort8x8lo", s.new("m"), low, high)
        packed = s.code.main("and", s.new("m"), both, s.word(ONE_PER_BYTE, "m"))
        _store_word(s, packed, number)
        return
    per_word = WORD_BYTES // output.size_bytes
    for first in range(0, s.lanes, per_word):
        lanes = [s.get(value, "m", first + i) for i in range(per_word)]
        pairs = [s.code.main("sort4x16lo", s.new("m"), *lanes[i : i + 2]) for i in range(0, per_word, 2)]
        packed = pairs[0] if per_word == 2 else s.code.main("sort8x8lo", s.new("m"), *pairs)
        _store_word(s, packed, number)


def _store_half(s: Selector, register: Slice, at: str) -> None:
    """Add the store of the low half of a register: the other half of the word in memory stays."""
    code, stream = s.code, (at,)
    odd, base, old = (s.new("m") for _ in range(3))
    code.add(f"and {{}}, {at}, 2", "o", odd, is_main=True, streams=stream)
    code.add(f"sub {{}}, {at}, {{}}", "oi", base, odd, is_main=True, streams=stream)
    code.add("ld32 {}, {}, $mzero, 0", "oi", old, base, is_main=True, streams=stream)
    upper = code.main("sort4x16lo", s.new("m"), old, register)
    swapped = code.main("swap16", s.new("m"), old)
    word = code.main("sort4x16lo", s.new("m"), register, swapped)
    code.add("movnz {}, {}, {}", "bii", word, odd, upper, is_main=True)
    code.add("st32 {}, {}, $mzero, 0", "ii", word, base, is_main=True, streams=stream)
    code.add(f"add {at}, {at}, 2", "", is_main=True, streams=stream)


def _store_byte(s: Selector, register: Slice, at: str) -> None:
    """Add the store of the low byte of a register: the other bytes of the word in memory stay."""
    code, stream = s.code, (at,)
    inside, base, old = (s.new("m") for _ in range(3))
    code.add(f"and {{}}, {at}, 3", "o", inside, is_main=True, streams=stream)
    code.add(f"sub {{}}, {at}, {{}}", "oi", base, inside, is_main=True, streams=stream)
    code.add("ld32 {}, {}, $mzero, 0", "oi", old, base, is_main=True, streams=stream)
    shift = code.main("shl", s.new("m"), inside, "3")
    hole = s.new("m")
    code.add("setzi {}, 255", "o", hole, is_main=True)
    mask = code.main("shl", s.new("m"), hole, shift)
    mask = code.main("xnor", s.new("m"), mask, "$mzero")
    kept = code.main("and", s.new("m"), old, mask)
    byte = code.main("and", s.new("m"), register, "255")
    moved = code.main("shl", s.new("m"), byte, shift)
    word = code.main("or", s.new("m"), kept, moved)
    code.add("st32 {}, {}, $mzero, 0", "ii", word, base, is_main=True, streams=stream)
    code.add(f"add {at}, {at}, 1", "", is_main=True, streams=stream)
