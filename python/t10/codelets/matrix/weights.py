"""How the supervisor loads a block of weights: channel by channel, each to the unit that computes its column."""

from __future__ import annotations

from t10.codelets.matrix.engine import BLOCK_WORDS, Engine
from t10.codelets.matrix.shape import Load
from t10.codelets.matrix.stream import Kit

INSTRUCTION_BYTES = 4


def channel_loads(engine: Engine, kit: Kit, load: Load) -> list[list[str]]:
    """Return the instructions of every channel of a block.

    `$CCCSLOAD` and $m2 hold the first one's address; where it is set anew for every channel, $m7 is the distance.
    """
    n = kit.columns(engine)
    channels: list[list[str]] = []
    for column in range(n):
        lines: list[str] = []
        if load.skip_words is None:
            lines += ["put $CCCSLOAD, $m6"] if column else []
            lines += [f"add $m6, {'$m6' if column else '$m2'}, $m7"] if column < n - 1 else []
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


def load_bytes(engine: Engine, kit: Kit, load: Load, channel: int) -> int:
    """Return the bytes of the instructions before those of a channel."""
    return INSTRUCTION_BYTES * sum(len(lines) for lines in channel_loads(engine, kit, load)[:channel])


def load_cycles(engine: Engine, kit: Kit, load: Load, address_cycles: int) -> int:
    """Return the cycles of a load: one per instruction, and the wait for every new address."""
    channels = channel_loads(engine, kit, load)
    waits = (len(channels) - 1) * (address_cycles - 2) if load.skip_words is None else 0
    return sum(len(lines) for lines in channels) + waits
