"""Code that T10 writes, assembled line by line from lines seen before, is what the assembler makes of it."""

from __future__ import annotations

from itertools import islice
from random import Random

import numpy as np
import pytest

from t10.codelets.compile import compile_task
from t10.core.tile import IPU_MEMORY
from t10.isa.assembler import assemble, assembled_code
from t10.profile.boxes import random_boxes
from t10.profile.operators import made_steps

BOXES = 2


@pytest.mark.parametrize("kind", sorted({one.kind for one in made_steps()}))
def test_generated_code_is_assembled_as_by_the_assembler(kind: str) -> None:
    rng = Random(3)
    steps = [one for one in made_steps() if one.kind == kind]
    texts = {
        compile_task(one.task(box)).codelet.assembly
        for one in steps
        for box in islice(random_boxes(one, rng), BOXES)
    }
    assert texts
    for text in texts:
        image, whole = assembled_code(text, IPU_MEMORY), assemble(text, memory=IPU_MEMORY)
        assert image is not None
        assert np.array_equal(image.words, whole.words)
        assert (image.base_address, image.symbols) == (whole.base_address, whole.symbols)


def test_words_of_two_words_and_of_data_are_as_long_as_they_are() -> None:
    text = ".worker\nbegin:\n  ldconst $m0, 0x12345678\n  brz $m0, .Lend\n  .int 0xfffffffe\n.Lend:\n  exitz $mzero\n"
    image, whole = assembled_code(text, IPU_MEMORY), assemble(text, memory=IPU_MEMORY)
    assert image is not None
    assert np.array_equal(image.words, whole.words)


@pytest.mark.parametrize(
    "line",
    [
        "  rpt $m0, 0\n  { nop ; fnop }",
        "  bri .Lnowhere",
        "  .short 1",
        "before: nop",
        "  bri .Lend + .Lend",
        "  setzi $m0, 0x100000",
        "  nothing $m0",
    ],
)
def test_what_has_to_be_looked_at_is_left_to_the_assembler(line: str) -> None:
    assert assembled_code(f".worker\nbegin:\n{line}\n.Lend:\n  nop\n", IPU_MEMORY) is None
