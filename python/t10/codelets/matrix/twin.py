"""One column of f32, two rows at a time: the output word that both rows share is loaded and stored in one go.

Both units of a word hold the same weights, and both get both rows' partial sums `(p, q)`: the first row gives
`(p + x, q + x)`, of which the first half counts, the second one `(p + y, q + y)`, of which the second does.

```
step 8q + 4         gives what the first row of pair q sums to, 8q + 8 what the second one does; then
mov                 joins the halves, beside no access to memory
step 8q + 9         stores them
```

Nine bundles take two rows, where single accesses by 32 bits take twelve. Steps and phases are those of `stream`.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.code import Bundle, WorkerCode
from t10.codelets.matrix.engine import BLOCK_WORDS, Engine
from t10.codelets.matrix.stream import JUMP_INPUT, STAY, Access, Registers

PERIOD = 2 * BLOCK_WORDS
"""Steps of two rows."""
RESULT = PERIOD + 1
"""The step, from a pair's first one on, that stores what the pair sums to."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The loop over pairs of rows: `accumulates` adds to the output, else it begins from zero."""

    engine: Engine
    accumulates: bool
    registers: Registers
    access: Access = "pair"

    @property
    def least_rows(self) -> int:
        """Return the fewest pairs that the loop can do."""
        return 2

    def write(self, code: WorkerCode) -> None:
        """Add the loop: it does `least_rows` pairs and as many more as the count register says."""
        pairs = self.least_rows
        for t in range(-BLOCK_WORDS - 1 if self.accumulates else -1, RESULT):
            code.bundles(self._bundles(t, pairs))
        many = 1 << 20
        code.repeat(
            self.registers.count, [b for t in range(RESULT, RESULT + PERIOD) for b in self._bundles(t, many)]
        )
        for t in range(RESULT, PERIOD * pairs + 2):
            code.bundles(self._bundles(t, pairs))

    def _bundles(self, t: int, pairs: int) -> list[Bundle]:
        """Return the bundles of step t of so many pairs."""
        bundles = [(self._access(t, pairs), self._step(t, pairs))]
        if t > 0 and t % PERIOD == 0:
            bundles.append(("nop", "mov $a5, $a7"))
        return bundles

    def _step(self, t: int, pairs: int) -> str:
        """Return the engine's step t; "" before the first and after the last one that matters."""
        steps = self.engine.phases
        if t < (-steps if self.accumulates else 0):
            return "uput $FP_CLR, $a7" if not self.accumulates and t == -1 else ""
        if t > PERIOD * pairs:
            return ""
        value = "$a0:1" if 0 <= t < PERIOD * pairs else "$azeros"
        has_partial = self.accumulates and t % steps == 0 and t + steps < PERIOD * pairs
        result = "$a4:5" if t % PERIOD == steps else "$a6:7"
        return self.engine.step(result, value, "$a2:3" if has_partial else "$azeros", t % steps)

    def _access(self, t: int, pairs: int) -> str:
        """Return the memory instruction of step t: the next step's input, a pair's partial sums, or its results."""
        r = self.registers
        tail = f"{r.packed}+=, {r.pace}"
        has_input = 0 <= t + 1 < PERIOD * pairs
        ahead = JUMP_INPUT if (t + 1) % BLOCK_WORDS == BLOCK_WORDS - 1 else 0
        partial, is_partial = divmod(t + BLOCK_WORDS + 1, PERIOD)
        if self.accumulates and is_partial == 0 and partial < pairs:
            value, first = ("$a0:1", ahead) if has_input else ("$azeros", STAY)
            return f"ld2x64pace {value}, $a2:3, {tail}, {first}"
        has_result = t >= RESULT and t % PERIOD == RESULT % PERIOD
        if has_result:
            return f"ldst64pace $a0:1, $a4:5, {tail}, {ahead}" if has_input else f"st64pace $a4:5, {tail}, 0"
        return f"ld2x64pace $a0:1, $azeros, {tail}, {ahead | STAY << 2}" if has_input else ""
