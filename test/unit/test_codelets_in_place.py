"""Codelets whose output lies where an input does: one field for both, the same results, the same cycles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.vector_tasks import RandomTask, elementwise

from t10.codelets.compile import compile_task
from t10.codelets.in_place import in_place
from t10.codelets.loops.family import LoopFamily
from t10.codelets.state_words import is_read_by_word, renumbered
from t10.core.codelet import POINTERS, Compiled
from t10.core.task import Task

N_SEEDS = 250


def pointers(compiled: Compiled) -> list[tuple[str, object]]:
    """The kinds of a codelet's pointers with their words."""
    fields = zip(compiled.codelet.fields, compiled.words, strict=True)
    return [(field.kind, word) for field, word in fields if field.kind in POINTERS]


def check(task: Task, compiled: Compiled, number: int) -> None:
    made = in_place(compiled, (number,), len(task.inputs))
    words = [word for _, word in pointers(made)]
    assert len(set(words)) == len(words) == len(pointers(compiled)) - 1
    assert len(made.words) == len(compiled.words)
    before, after = (run_task(task, each, in_place=number) for each in (compiled, made))
    np.testing.assert_array_equal(after.found, before.found)
    assert (after.cycles, after.touched) == (before.cycles, ())


def random_task(seed: int) -> tuple[Task, int] | None:
    """A task that may run in place, and the input that lies where the output does; None where the draw has none."""
    task = RandomTask(seed).task()
    numbers = [n for n, one in enumerate(task.inputs) if one.dtype == task.output.dtype]
    if task.combine != "none" or not numbers:
        return None
    number = numbers[0]
    inputs = list(task.inputs)
    inputs[number] = task.output
    apart = frozenset(pair for pair in task.apart if pair != (number, len(inputs)))
    return replace(task, inputs=tuple(inputs), apart=apart), number


def test_random_tasks_in_place_have_one_field_and_the_same_results() -> None:
    drawn = [found for seed in range(N_SEEDS) if (found := random_task(seed)) is not None]
    assert len(drawn) > 50
    for task, number in drawn:
        check(task, compile_task(task), number)


def test_scalar_loops_in_place() -> None:
    for seed in range(40):
        found = random_task(seed)
        compiled = None if found is None else LoopFamily().compile(found[0])
        if found is not None and compiled is not None:
            check(found[0], compiled, found[1])


def test_two_inputs_in_place_and_constraints_between_fields() -> None:
    task = elementwise("arith.addf", ["f32"] * 3, 24)
    compiled = compile_task(replace(task, apart=frozenset({(0, 1), (0, 2), (1, 2)})))
    assert compiled.codelet.apart
    one, both = in_place(compiled, (1,), 2).codelet, in_place(compiled, (0, 1), 2).codelet
    assert len({compiled.codelet.name, one.name, both.name}) == 3
    assert all(a != b and "in1" not in (a, b) for a, b in one.apart)
    assert both.apart == ()
    assert [field.kind for field in both.fields if field.kind in POINTERS] == ["inout"]
    assert compiled.codelet.name + "," not in both.assembly


def test_code_that_finds_its_fields_in_another_way_is_left_alone() -> None:
    compiled = compile_task(elementwise("arith.addf", ["f32"] * 3, 24))
    odd = replace(compiled.codelet, assembly=compiled.codelet.assembly + "  mov $m0, $mvertex_base\n")
    for codelet in (odd, replace(compiled.codelet, kind="supervisor")):
        kept = replace(compiled, codelet=codelet)
        assert in_place(kept, (0,), 2) is kept
    assert in_place(compiled, (), 2) is compiled


def test_the_cpp_reference_finds_the_input_at_the_output() -> None:
    task = elementwise("arith.mulf", ["f32"] * 3, 24)
    made = in_place(compile_task(task), (0,), 2)
    assert made.codelet.cpp_reference.startswith("const auto *const in0 = out;\n")


@pytest.mark.parametrize("form", ["ld32 $m1, $mvertex_base, $mzero, {}", "ld32 $m1, $mvertex_base, {}"])
def test_words_are_renumbered_however_they_are_loaded(form: str) -> None:
    code = "\n".join(f"  {form.format(word)}  // {word}" for word in ("0", "0x10", "2", "20"))
    due = "\n".join(
        f"  {form.format(word)}  // {old}" for word, old in ((2, "0"), (3, "0x10"), (2, "2"), (20, "20"))
    )
    assert renumbered(code, {0: 2, 16: 3}) == due
    assert is_read_by_word(code)
    assert not is_read_by_word(code + "\n  ld64 $a0:1, $mvertex_base, $mzero, 1")
