"""Rows through the matrix engine as bundles: loads, steps and stores of several rows in flight.

Step t of the engine (phase t mod P) takes word t of the rows' input and the partial sum t + P, and gives result t - P:
partials enter a row ahead, results leave a row behind. Before the first row P steps push its partials, after the last
row P steps bring out its results. The bundle of step t loads what the next steps need, stores what the last ones gave:

```
load input(t + 1), load partial(t + lead + P), store result(t - lag - P) ; step t
```

How many of the three accesses share a bundle depends on where the operands lie (`Access`). All loads are exact: nothing
is read beyond the rows, so that no access strays into another memory element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from t10.codelets.matrix.code import Bundle, Item, WorkerCode
from t10.codelets.matrix.engine import BLOCK_WORDS, WORD_BYTES, Engine

Access = Literal["triple", "packed", "pair", "cross", "single", "word"]
"""Which accesses share a bundle.

- `triple`: all three. The input lies apart from the output; partial and result fall in different banks of the
  interleaved output (an odd number of words apart).
- `packed`: partial and result of an interleaved output; the input by itself, wherever it lies.
- `pair`: input and partial, or input and result: the input lies apart from the output.
- `cross`: input and result (no partials): both interleaved, never in the same bank at once.
- `single`: none.
- `word`: none, and the output is accessed by 32-bit words: its rows are no multiples of 8 bytes.
"""
STEPPING: frozenset[Access] = frozenset(("single", "word"))
"""Accesses through plain pointers only."""


JUMP_INPUT, JUMP_OUTPUT, STAY = 1, 2, 3
JUMP_BACK = STAY
"""Selectors of a pace: fields of the stride register (0 is one word on).

Where sums begin with a row of partials, the last field goes back to its first word, and nothing stays.
"""

LOOPS = 1024
WIDE_PARTIALS = 4
"""Partials that a wide start loads."""

LAGS: dict[Access, int] = {"triple": 2, "packed": 1, "pair": 1, "cross": 2, "single": 1, "word": 1}
LEADS: dict[Access, int] = {"triple": 1, "packed": 2, "pair": 1, "cross": 1, "single": 1, "word": 1}


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of the row loops: pointers that step, their jumps to the next row in words, packed addresses, count."""

    input: str
    input_jump: str
    partial: str
    output: str
    output_jump: str
    packed: str
    pace: str
    count: str


@dataclass(frozen=True, slots=True)
class Kit:
    """What of a block counts: `words` of its input words, `stores` of its output words (all where it is whole).

    `ends_half` where only the first half of the last output word counts. In a twin the two columns of one word are the
    same, and rows go by twos: the word holds a column of both (see `twin`).
    """

    words: int
    stores: int
    ends_half: bool = False
    is_twin: bool = False

    def columns(self, engine: Engine) -> int:
        """Return the output columns that count."""
        return self.stores * engine.store_columns - (engine.store_columns // 2 if self.ends_half else 0)

    @property
    def name(self) -> str:
        """Return the kit as a part of names."""
        return f"{self.words}{self.stores}{'h' if self.ends_half else ''}{'t' if self.is_twin else ''}"


@dataclass(frozen=True, slots=True)
class Stream:
    """The row loop of one kit: `accumulates` adds to the output, else it begins from zero.

    One that has a `first_row` begins every row with the same partials, which lie in a place of their own: its first
    row's are read through a pointer of their own. It is for whole blocks of an engine that takes a word per step.

    Of an engine that rounds sums, they lie row behind row in a place of their own: there loops begin and add. One that
    `rounds` gives results to the output instead, two steps' in a word.
    """

    engine: Engine
    kit: Kit
    accumulates: bool
    access: Access
    registers: Registers
    rounds: bool = False
    first_row: str = ""

    @property
    def is_beside(self) -> bool:
        """Return whether partials lie in a place of their own."""
        return bool(self.engine.rounding or self.first_row)

    @property
    def lag(self) -> int:
        """Return after how many steps a result is stored."""
        return 1 if self.rounds else LAGS[self.access]

    @property
    def lead(self) -> int:
        """Return how many steps ahead a partial is loaded."""
        return LEADS[self.access]

    @property
    def least_rows(self) -> int:
        """Return the fewest rows the pipelined loop can do."""
        steps = self.engine.phases
        if not self.accumulates:
            return 1 + -(-(self.lag + 2) // steps)
        return -(-(3 * steps + self.lag + self.lead + 1 - self.kit.stores) // steps)

    @property
    def row_bundles(self) -> int:
        """Return the bundles of a row in the loop's steady state: its slots."""
        return len(self._steady())

    def _steady(self) -> list[Bundle]:
        begin, many = self.engine.phases + self.lag, 1 << 20
        return [bundle for t in range(begin, begin + self.engine.phases) for bundle in self._bundles(t, many)]

    def write_wide_start(self, code: WorkerCode, row: str, meanwhile: str) -> None:
        """Add loading the first partials 16 bytes at a time, and pushing two; `row` holds the first row's address.

        `meanwhile` is a main instruction that takes no slot so. What these steps give is no result: it is written where
        partials have been read.
        """
        begin = -self.engine.phases
        code.op(f"ld128 $a4:7, {row}, $mzero, 0")
        code.bundles([(f"ld128 $a0:3, {row}, $mzero, 1", self._push(begin, "$a4:5"))])
        code.bundles([(meanwhile, self._push(begin + 1, "$a6:7"))])

    def write(self, code: WorkerCode, point: str = "") -> None:
        """Add the loop: it does `least_rows` rows and as many more as the count register says.

        After a wide start it goes on with `point`, which packs addresses: those of partials behind the first ones.
        """
        code.items += _loop(self, point)

    def loop(self, point: str) -> WorkerCode:
        """Return what `write` adds."""
        code = WorkerCode()
        steps, rows = self.engine.phases, self.least_rows
        begin = steps + self.lag
        first = -steps - self.lead if self.accumulates else -1
        if point:
            code.bundles([(point, self._push(WIDE_PARTIALS - 2 - steps, "$a0:1"))])
            first = WIDE_PARTIALS - 1 - steps
        last = steps * rows + steps + self.lag
        plain = self.access == "packed"
        for t in range(first, begin):
            code.bundles(self._bundles(t, rows, plain=plain))
        if plain:
            r = self.registers
            code.op(f"tapack {r.packed}, {r.partial}, $mzero, {r.output}")
        code.repeat(self.registers.count, self._steady())
        for t in range(begin, last):
            code.bundles(self._bundles(t, rows))
        return code

    def write_row(self, code: WorkerCode) -> None:
        """Add one row by itself; pointers step on to the next."""
        access: Access = "word" if self.access == "word" else "single"
        code.items += _row(
            Stream(
                self.engine, self.kit, self.accumulates, access, self.registers, self.rounds, self.first_row
            )
        )

    def row(self) -> WorkerCode:
        """Return one row by itself."""
        code = WorkerCode()
        first = -self.engine.phases - 1 if self.accumulates else -1
        for t in range(first, 2 * self.engine.phases + 1):
            code.bundles(self._bundles(t, 1))
        return code

    def _bundles(self, t: int, rows: int, *, plain: bool = False) -> list[Bundle]:
        """Return the bundles of step t of `rows` rows.

        The step issues with the first access, or the last store: stores still read what the step before gave, and loads
        that follow do not overwrite what the step reads.
        """
        step = self._step(t, rows)
        accesses = self._accesses(t, rows, plain=plain) or [""]
        place = max(sum(access.startswith("st32") for access in accesses) - 1, 0)
        return [(access, step if i == place else "") for i, access in enumerate(accesses)]

    def _push(self, t: int, partial: str) -> str:
        """Return a step before the first row's that takes a partial."""
        value = "$azero" if self.engine.steps_per_word == 2 else "$azeros"
        return self.engine.step(self._result(t), value, partial, t % self.engine.phases, rounds=self.rounds)

    def _step(self, t: int, rows: int) -> str:
        """Return the engine's step t; "" before the first and after the last one that matters."""
        steps, kit = self.engine.phases, self.kit
        if t < (-steps if self.accumulates else 0):
            return "uput $FP_CLR, $a7" if not self.accumulates and t == -1 else ""
        if t > steps * rows + kit.stores - 1:
            return ""
        phase = t % steps
        word, element = divmod(phase, self.engine.steps_per_word)
        has_input = 0 <= t < steps * rows and word < kit.words
        if self.engine.steps_per_word == 2:
            value = f"$a{self._input(word) + element}" if has_input else "$azero"
        else:
            value = "$a0:1" if has_input else "$azeros"
        partial = t + steps
        has_partial = self.accumulates and partial < steps * rows and partial % steps < kit.stores
        # What comes out before the first result is not stored; a load in the same bundle may write $azeros.
        return self.engine.step(
            self._result(t),
            value,
            self.partial_register(partial) if has_partial else "$azeros",
            phase,
            rounds=self.rounds,
        )

    def _input(self, word: int) -> int:
        """Return the first register of an input word."""
        return 2 if self._alternates and word % 2 else 0

    @property
    def _alternates(self) -> bool:
        """Return whether odd input words have a register of their own, and are loaded a step earlier.

        A word of f32 feeds two steps; odd words must then be loaded where the result stored is of an even word.
        """
        return self.access == "cross" and self.engine.steps_per_word == 2

    def _result(self, t: int) -> str:
        """Return the register of what step t gives."""
        if self.rounds:
            return "$a4" if t % 2 == 0 else "$a5"
        if self.lag == 2:
            return "$a4:5" if t % 2 == 0 else "$a6:7"
        return "$a6:7" if self.access == "packed" else "$a4:5"

    def partial_register(self, number: int) -> str:
        """Return the register of a partial sum."""
        if self.lead == 2:
            return "$a2:3" if number % 2 == 0 else "$a4:5"
        return "$a2:3"

    def _accesses(self, t: int, rows: int, *, plain: bool) -> list[str]:
        """Return the memory instructions of step t."""
        steps, kit = self.engine.phases, self.kit
        ahead = 2 if self._alternates and (t + 2) % 4 == 2 else 1
        word, element = divmod((t + ahead) % steps, self.engine.steps_per_word)
        in_rows = 0 <= t + ahead < steps * rows and word < kit.words
        if self._alternates and ahead == 1 and (t + 1) % 4 == 2:
            in_rows = False
        ends_row = word == kit.words - 1
        partial = t + self.lead + steps
        has_partial = self.accumulates and 0 <= partial < steps * rows and partial % steps < kit.stores
        result = t - self.lag - steps
        has_result = 0 <= result < steps * rows and result % steps < kit.stores
        if self.rounds:
            has_result = has_result and result % 2 == 1
        loads = _Loads(
            self,
            is_input=in_rows and element == 0,
            is_again=in_rows and element == 1,
            input_ends=ends_row,
            partial=partial if has_partial else None,
            partial_is_last=partial == steps * (rows - 1) + kit.stores - 1,
            result=result if has_result else None,
            result_register="$a4:5" if self.rounds else self._result(t - self.lag),
            value=f"$a{self._input(word)}:{self._input(word) + 1}",
        )
        if plain or self.access in STEPPING:
            return loads.plain()
        if self.first_row and has_partial and partial < steps:
            return [f"ld64step {self.partial_register(partial)}, $mzero, {self.first_row}+=, 1"]
        if self.access == "packed":
            return loads.output_pair()
        return loads.paced()


@lru_cache(maxsize=LOOPS)
def _loop(stream: Stream, point: str) -> tuple[Item, ...]:
    """Return what a row loop consists of: many codelets have the same."""
    return tuple(stream.loop(point).items)


@lru_cache(maxsize=LOOPS)
def _row(stream: Stream) -> tuple[Item, ...]:
    """Return what a row by itself consists of."""
    return tuple(stream.row().items)


@dataclass(frozen=True, slots=True)
class _Loads:
    """The accesses of one step, whether they end a row; `is_again` where a word of f32 is still used."""

    stream: Stream
    is_input: bool
    is_again: bool
    input_ends: bool
    partial: int | None
    partial_is_last: bool
    result: int | None
    result_register: str
    value: str

    def _ends(self, number: int | None) -> bool:
        steps, stores = self.stream.engine.phases, self.stream.kit.stores
        return number is not None and number % steps == stores - 1

    @property
    def _result_jumps(self) -> bool:
        """Return whether rows of results may lie apart."""
        return self.stream.rounds or not self.stream.engine.rounding

    def plain(self) -> list[str]:
        """Return one access per bundle, each through its own pointer: store, partial, input."""
        r = self.stream.registers
        found: list[str] = []
        if self.result is not None:
            ends = self._ends(self.result) and self._result_jumps
            found += self._output("st", self.result_register, r.output, ends=ends)
        if self.partial is not None:
            register = self.stream.partial_register(self.partial)
            ends = self._ends(self.partial) and not self.stream.is_beside
            if self._ends(self.partial) and self.stream.first_row:
                back = 1 - self.stream.kit.stores
                found.append(f"ld64step {register}, $mzero, {r.partial}+=, {back}")
            else:
                found += self._output("ld", register, r.partial, ends=ends)
        if self.is_input:
            step = r.input_jump if self.input_ends else "1"
            found.append(f"ld64step {self.value}, $mzero, {r.input}+=, {step}")
        return found

    def _output(self, what: str, register: str, pointer: str, *, ends: bool) -> list[str]:
        """Return the access to one output word, in one go or by halves."""
        jump = self.stream.registers.output_jump if ends else "1"
        if self.stream.access != "word":
            return [f"{what}64step {register}, $mzero, {pointer}+=, {jump}"]
        low, high = register.split(":")
        if ends and self.stream.kit.ends_half:
            return [f"{what}32step {low}, $mzero, {pointer}+=, {jump}"]
        return [
            f"{what}32step {low}, $mzero, {pointer}+=, 1",
            f"{what}32step $a{high}, $mzero, {pointer}+=, {jump}",
        ]

    def output_pair(self) -> list[str]:
        """Return partial and result as one access (packed addresses: partial, none, output), the input by itself."""
        r = self.stream.registers
        found: list[str] = []
        jump = JUMP_OUTPUT
        load = (STAY if self.partial_is_last else jump) if self._ends(self.partial) else 0
        store = jump if self._ends(self.result) else 0
        if self.partial is not None and self.result is not None:
            register = self.stream.partial_register(self.partial)
            selector = load | store << 2
            found.append(f"ldst64pace {register}, {self.result_register}, {r.packed}+=, {r.pace}, {selector}")
        elif self.result is not None:
            found.append(f"st64pace {self.result_register}, {r.packed}+=, {r.pace}, {store}")
        if self.is_input:
            step = r.input_jump if self.input_ends else "1"
            found.append(f"ld64step $a0:1, $mzero, {r.input}+=, {step}")
        return found

    def paced(self) -> list[str]:
        """Return accesses through packed addresses: input, partial, output."""
        r = self.stream.registers
        triple = self.stream.access == "triple"
        load_input, reload = self.is_input, self.is_again and triple
        ahead = JUMP_INPUT if self.input_ends else 0
        # In a triple the quad of input and partial is loaded as one: an f32 word stays until its second step.
        split = triple and self.stream.engine.steps_per_word == 2
        first = (STAY if split else ahead) if load_input else (ahead if reload else STAY)
        jump = JUMP_BACK if self.stream.first_row else 0 if self.stream.is_beside else JUMP_OUTPUT
        second = (STAY if self.partial_is_last else jump) if self._ends(self.partial) else 0
        third = JUMP_OUTPUT if self._ends(self.result) and self._result_jumps else 0
        tail = f"{r.packed}+=, {r.pace}"
        wants_input = load_input or reload
        value = self.value if wants_input else "$azeros"
        store = self.result_register
        if self.partial is not None and self.result is not None and triple:
            return [f"ld2xst64pace $a0:3, {store}, {tail}, {first | second << 2 | third << 4}"]
        if self.partial is not None:
            both = f"ld2x64pace {value}, $a2:3, {tail}, {first | second << 2}"
            return [f"st64pace {store}, {tail}, {third}", both] if self.result is not None else [both]
        if wants_input and self.result is not None:
            return [f"ldst64pace {value}, {store}, {tail}, {first | third << 2}"]
        if wants_input:
            return [f"ld2x64pace {value}, $azeros, {tail}, {first | STAY << 2}"]
        return [f"st64pace {store}, {tail}, {third}"] if self.result is not None else []


def pace_word(kit: Kit, input_row_bytes: int, output_row_bytes: int, words_per_store: int = 1) -> int | None:
    """Return the stride register of packed addresses: jumps from a row's last word to the next row's first, and 0.

    A word of the output holds `words_per_store` words of sums. None where a jump is no whole number of words or does
    not fit its ten bits.
    """
    if output_row_bytes % WORD_BYTES or kit.ends_half:
        return None
    jumps = jump_words(kit, input_row_bytes, output_row_bytes, words_per_store, by_words=False)
    if any(not -512 <= jump < 512 for jump in jumps):
        return None
    return (jumps[0] & 0x3FF) | (jumps[1] & 0x3FF) << 10


def back_pace(kit: Kit) -> int:
    """Return the last field of a pace where rows begin with the same partials: back to the first word of them."""
    return (1 - kit.stores & 0x3FF) << 20


def jump_words(
    kit: Kit, input_row_bytes: int, output_row_bytes: int, words_per_store: int = 1, *, by_words: bool
) -> tuple[int, int]:
    """Return the jumps of input and output in units of their accesses: 8 bytes, the output's 4 where it is by words."""
    assert 1 <= kit.words <= BLOCK_WORDS
    unit, back = output_steps(kit, words_per_store, by_words=by_words)
    return input_row_bytes // WORD_BYTES - (kit.words - 1), output_row_bytes // unit - back


def output_steps(kit: Kit, words_per_store: int = 1, *, by_words: bool) -> tuple[int, int]:
    """Return the bytes of an access to the output, and how many steps lie between a row's first and last one."""
    if not by_words:
        return WORD_BYTES, kit.stores // words_per_store - 1
    return WORD_BYTES // 2, 2 * kit.stores - 1 - kit.ends_half
