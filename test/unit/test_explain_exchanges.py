"""Exchanges of a device program as text: ranges of tiles, repetitions, constants, and how often each happens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from t10.cli import main
from t10.core.device import Copy, DeviceProgram, Exchange, MemoryMap, OperatorProgram, Pattern, Repeat
from t10.explain.exchanges import MOST_LINES, exchange_lines

MODEL = Path(__file__).resolve().parents[2] / "examples" / "models" / "mlp.onnx"


def program(runs: list[list[int]], fills: list[list[int]] | None = None) -> DeviceProgram:
    """Return a program that does one exchange twice in a loop of three."""
    pattern = Pattern(
        "p",
        np.array(runs, np.int32).reshape(-1, 9),
        np.array(fills or [], np.int32).reshape(-1, 5),
        np.zeros(len(fills or []), np.int32),
        ("1.0",),
    )
    copy = Copy("shift:x", "mix", "shift", ("a", "b"), "buffer", "f16", "p", 32, 500)
    steps = (Repeat(3, (Exchange("shift:x"), Exchange("shift:x"))),)
    return DeviceProgram(
        "m", "test-16", 16, MemoryMap(*range(9)), (), (), (), (pattern,), (copy,),
        (OperatorProgram("mix", steps),), (), (), (),
    )  # fmt: skip


def run(target: int, source: int, n_bytes: int = 32, count: int = 1) -> list[int]:
    return [1, source, 8, target, 0, n_bytes, count, 64 if count > 1 else 0, n_bytes if count > 1 else 0]


@pytest.mark.parametrize(
    ("runs", "lines"),
    [
        ([run(t, t + 1) for t in range(3)], ["tiles 0..2 from tiles 1..3: 32 bytes, b + 8 -> 0"]),
        ([run(t, 7) for t in range(3)], ["tiles 0..2 from tile 7: 32 bytes, b + 8 -> 0"]),
        ([run(t, t) for t in range(3)], ["tiles 0..2 from themselves: 32 bytes, b + 8 -> 0"]),
        ([run(4, 4)], ["tile 4 from itself: 32 bytes, b + 8 -> 0"]),
        (
            [run(0, 1), run(1, 0), run(2, 3)],
            [f"tile {t} from tile {s}: 32 bytes, b + 8 -> 0" for t, s in ((0, 1), (1, 0), (2, 3))],
        ),
        ([run(0, 1, 4, 8)], ["tile 0 from tile 1: 8 x 4 bytes, b + 8 -> 0 (every 64 -> every 4)"]),
    ],
)
def test_pieces_that_differ_in_their_tiles_share_a_line(runs: list[list[int]], lines: list[str]) -> None:
    assert list(exchange_lines(program(runs)))[4:] == [f"  {line}" for line in lines]


def test_constants_are_named() -> None:
    fills = [[t, 16, 2, 4, 8] for t in range(2)]
    assert list(exchange_lines(program([], fills)))[-1] == (
        "  tiles 0..1 filled with 1.0: 4 x 2 bytes every 8 -> 16"
    )


def test_an_exchange_says_how_often_it_happens_and_what_it_takes() -> None:
    assert list(exchange_lines(program([run(0, 1)])))[2:4] == [
        "shift:x: shift of mix, 6 times, 500 modelled cycles each; a tile receives 32 bytes at most",
        "  a, b -> buffer, f16",
    ]


def test_only_one_operator_is_shown_with_every_line() -> None:
    many = program([run(t, t ^ 1) for t in range(16)])
    lines = list(exchange_lines(many))
    assert lines[-1] == f"  ... {16 - MOST_LINES} more lines: --op mix"
    assert len(list(exchange_lines(many, "mix"))) == 4 + 16
    assert list(exchange_lines(many, "other")) == ["other has no exchanges."]
    one_more = program([run(t, t ^ 1) for t in range(MOST_LINES)] + [run(20, 31)])
    assert list(exchange_lines(one_more))[-1] == "  ... 1 more line: --op mix"


def test_a_copy_inside_tiles_says_what_it_copies_and_where_its_cycles_are() -> None:
    made = program([run(t, t, 32, 2) for t in range(3)])
    copied = replace(made.copies[0], name="out", kind="copy_out", received_bytes=0, cycles=0)
    assert _lines_of_both(made, copied)[-3] == (
        "out: copy_out of mix, once, cycles counted with shift:x; a tile copies 64 bytes of its own at most"
    )


def _lines_of_both(made: DeviceProgram, second: Copy) -> list[str]:
    """Return the lines of a program that makes its exchange, and then another one."""
    steps = (*made.operators[0].steps, Exchange(second.name))
    both = replace(made, copies=(*made.copies, second), operators=(OperatorProgram("mix", steps),))
    return list(exchange_lines(both))


@pytest.mark.parametrize(
    ("kind", "said"),
    [("reduce", "cycles counted with first"), ("relayout", "0 modelled cycles each")],
)
def test_an_exchange_that_shares_the_time_of_an_earlier_one_names_it(kind: str, said: str) -> None:
    made = program([run(0, 1)])
    first = replace(made.copies[0], name="first", kind=kind)
    once = replace(made, copies=(first,), operators=(OperatorProgram("mix", (Exchange("first"),)),))
    lines = _lines_of_both(once, replace(first, name="second", cycles=0))
    assert lines[-3] == f"second: {kind} of mix, once, {said}; a tile receives 32 bytes at most"
    alone = replace(once, copies=(replace(first, cycles=0),))
    assert ", 0 modelled cycles each;" in list(exchange_lines(alone))[2]


def test_the_command_takes_neither_a_picture_nor_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(MODEL), "--chip", "test-16", "-o", str(out), "--quiet"]) == 0
    assert main(["explain", str(out), "--exchange", "--op", "/fc1/MatMul"]) == 0
    assert "reduce:/fc1/MatMul: reduce of /fc1/MatMul, once" in capsys.readouterr().out
    assert main(["explain", str(out), "--exchange", "--json"]) == 2
    assert "--plot and --json do not go with it" in capsys.readouterr().err
    assert main(["explain", str(out), "--exchange", "--op", "/fc1/MatMull"]) == 2
    capsys.readouterr()
    words = ["--chip", "test-16", "-o", str(tmp_path / "bare"), "--quiet", "--no-program"]
    assert main(["compile", str(MODEL), *words]) == 0
    assert main(["explain", str(tmp_path / "bare"), "--exchange"]) == 2
    error = capsys.readouterr().err
    assert "without --no-program" in error
    assert "--engine" not in error
