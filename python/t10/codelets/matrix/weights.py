"""How the supervisor loads a block of weights: channel by channel, each to the unit that computes its column."""

from __future__ import annotations

from t10.codelets.matrix.engine import BLOCK_WORDS, Engine
from t10.codelets.matrix.shape import Load
from t10.codelets.matrix.stream import Kit

INSTRUCTION_BYTES = 4


WAIT_CYCLES = 5
"""Cycles between setting an address and the first load from it, in which the supervisor may do something else."""


def channel_loads(engine: Engine, kit: Kit, load: Load, address: str) -> list[list[str]]:
    """Return the instructions of every channel of a block.

    `$CCCSLOAD` and $m2 hold the first one's address; where it is set anew for every channel, $m7 is the distance and
    `address` the register it is in, $m2 itself or another.
    """
    n = kit.columns(engine)
    channels: list[list[str]] = []
    for column in range(n):
        lines: list[str] = []
        if load.skip_words is None:
            lines += [f"put $CCCSLOAD, {address}"] if column else []
            lines += [f"add {address}, {address if column else '$m2'}, $m7"] if column < n - 1 else []
        target = BLOCK_WORDS * engine.unit(column) + load.first
        lines += _words(target, 0, load.n_words, load)
        if load.skip_words and column < n - 1:
            # Loaded where the next channel's words come, which overwrite them; words that must be zero stay so.
            target = BLOCK_WORDS * engine.unit(column + 1) + load.first
            lines += _words(target, load.n_words, load.n_words + load.skip_words, load)
        channels.append(lines)
    return channels


def _words(target: int, begin: int, end: int, load: Load) -> list[str]:
    """Return the loads of words `begin` to `end` after the channel's address, two at once where they lie evenly.

    Words that are kept go one after another from `target` on, skipped ones all to `target`.
    """
    lines: list[str] = []
    word = begin
    while word < end:
        # The number of a pair is even, and so is the place of its first word.
        number = target + (word if begin == 0 else 0)
        pairs = load.width_bytes == 16 and load.n_words > 1
        wide = pairs and word % 2 == 0 and word + 1 < end and number % 2 == 0
        lines.append(f"{'ld128putcs' if wide else 'ld64putcs'} {number}")
        word += 2 if wide else 1
    return lines


def loads_among(channels: list[list[str]], moves: list[str]) -> list[str]:
    """Return the loads of a block whose addresses lie evenly, with `moves` among them, each of which needs the last.

    What is loaded is there after five further instructions.
    """
    lines: list[str] = []
    todo = list(moves)
    for number, line in enumerate(line for channel in channels for line in channel):
        lines.append(line)
        if number % WAIT_CYCLES == 0:
            # An addition and the next load.
            n_moves = 2 if number else 1
            lines, todo = [*lines, *todo[:n_moves]], todo[n_moves:]
    return [*lines, *todo]


def loads_while_waiting(channels: list[list[str]], moves: list[str]) -> list[str]:
    """Return the loads of a block by new addresses in $m2, with `moves` in cycles that loads wait for them.

    The second address is there already. The last of `moves` moves $m2, once all addresses have been set.
    """
    first, *further, end = channels
    lines = first[1:]
    todo, n_moves = moves[:-1], 1
    for setting, adding, *loads in further:
        # An addition and the next load.
        lines += [setting, adding, *todo[:n_moves], *loads]
        todo, n_moves = todo[n_moves:], 2
    setting, *loads = end
    return [*lines, setting, *todo, moves[-1], *loads]


def load_bytes(engine: Engine, kit: Kit, load: Load, channel: int) -> int:
    """Return the bytes of the instructions before those of a channel."""
    return INSTRUCTION_BYTES * sum(len(lines) for lines in channel_loads(engine, kit, load, "$m6")[:channel])
