"""Programs at the compute-shift level that verify, but do not fit together: refused when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.compute_shift_text import (
    COPIED,
    HEAD,
    HOME_B,
    PRODUCT,
    REDUCE,
    RESIDENT_X,
    REST_B,
    SUMS,
    Edit,
    case,
    edited,
)

from t10.chip import load_chip
from t10.dialect.mlir import ir, new_context
from t10.errors import T10Error
from t10.passes.bridge.annotate import CHIP
from t10.passes.bridge.read_program import read_program
from t10.passes.place import place_module, program_plan
from t10.plan.memory.room import DataRoom

REFUSED_BY_THE_READER = (
    case(
        "rests twice", "arg0 rests at two places", (RESIDENT_X, RESIDENT_X + RESIDENT_X.replace("%xr", "%x2"))
    ),
    case(
        "moved twice",
        "rtensor.relayout brings a tensor that no sub-task reads",
        (
            COPIED,
            COPIED.replace("%a =", "%a0 =").replace("#a>", "#a1>")
            + COPIED.replace("%xr", "%a0").replace("#rest", "#a1"),
        ),
    ),
    case(
        "lies nowhere",
        "reads arg0 where it lies, but it lies nowhere",
        (RESIDENT_X, ""),
        (COPIED, ""),
        ("%ka = %a,", "%ka = %x,"),
        ("%x: tensor<2x6xf16>", "%x: tensor<2x6xf16, #a>"),
    ),
    case(
        "set-up of an input",
        "rtensor.setup of arg0, which is no weight",
        (COPIED, COPIED.replace("relayout", "setup")),
    ),
    case(
        "relayout of a weight",
        "rtensor.relayout of the weight arg0, expected rtensor.setup",
        ("(%x: tensor<2x6xf16>,", "(%x: tensor<2x6xf16> {t10.weight},"),
    ),
    case(
        "another kind",
        'kind is "reduction", but the root is a contraction',
        ('kind = "contraction"', 'kind = "reduction"'),
    ),
    case(
        "other accumulators",
        "accumulators start for max, but the root combines by sum",
        ('combine = "sum"', 'combine = "max"'),
    ),
    case(
        "final accumulators",
        'reduce = "none" with 2 replicas of the output, expected scatter or all',
        (SUMS[SUMS.index(f"    {REDUCE}") : SUMS.index('    "rtensor.yield"(%f)')], ""),
        ("(%f)", "(%s)"),
        ("#sp>", "#sf>"),
        ("#so>", "#sf>"),
        text=SUMS,
    ),
    case(
        "rests as nobody reads it",
        "arg0 rests in a layout in which no operator reads it",
        (RESIDENT_X, RESIDENT_X.replace("#rest", "#a1")),
        (COPIED, COPIED.replace("#rest", "#a1")),
    ),
    case(
        "not brought home",
        "arg1 rotates where it rests and is not brought home, or the other way round",
        (HOME_B, ""),
        (REST_B, ""),
    ),
)


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


@pytest.mark.parametrize("text", [PRODUCT, SUMS])
def test_a_program_is_read(text: str) -> None:
    module = ir.Module.parse(HEAD + text)
    module.operation.attributes[CHIP] = ir.StringAttr.get("test-16")
    chip = load_chip("test-16")
    place_module(module, chip, DataRoom(chip))
    assert program_plan(read_program(module), chip).operators


@pytest.mark.parametrize(("text", "edits", "message"), REFUSED_BY_THE_READER)
def test_an_edit_is_refused_when_the_program_is_read(
    text: str, edits: tuple[Edit, ...], message: str
) -> None:
    module = ir.Module.parse(edited(text, edits))
    with pytest.raises(T10Error) as caught:
        read_program(module)
    assert message in str(caught.value)
