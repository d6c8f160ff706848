"""Every form the simulator executes against a model of it in Python and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from support import isa_float_models, isa_integer_models, isa_matrix_models, isa_memory_models
from support.isa_forms import MEMORY, SIZES, Form, Inputs, Model, broadcast, is_register, words

from t10.core.tile import IPU_MEMORY
from t10.isa import INSTRUCTIONS
from t10.isa.constants import FLAGS
from t10.isa.generate import operations_text
from t10.isa.record import Instruction, OperandRecord

MODELS: dict[str, Model] = {
    **isa_integer_models.MODELS,
    **isa_float_models.MODELS,
    **isa_memory_models.MODELS,
    **isa_matrix_models.MODELS,
    "zero": lambda i: {"d": np.zeros_like(i.words["d"])},
}
IN_PROGRAMS = frozenset(
    (
        *("br", "bri", "brz", "brnz", "brneg", "brpos", "brnzdec", "call", "rpt"),
        *("exitz", "exitnz", "exitneg", "exitpos", "get", "put", "uget", "uput", "trap"),
        *("runall", "sync", "ld64putcs", "ld128putcs"),
        *("f16v4istacc", "f16v4stacc", "urand32", "urand64"),
    )
)
"""Tested as parts of programs in test_isa_simulator_programs.py."""

N_SAMPLES = 12
EXECUTED = [number for number, record in enumerate(INSTRUCTIONS) if record.code]
MODELLED = [number for number in EXECUTED if INSTRUCTIONS[number].mnemonic not in IN_PROGRAMS]
SPECIAL16 = np.array(
    [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00], np.uint16
)
SPECIAL32 = np.array(
    [
        0,
        1 << 31,
        1,
        0x7FFFFF,
        0x800000,
        0x3F800000,
        0x7F7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x477FF000,
    ],
    np.uint32,
)


def identity(number: int) -> str:
    record = INSTRUCTIONS[number]
    return f"{number}-{record.mnemonic}-" + "-".join(operand.kind for operand in record.operands)


def values(random: np.random.Generator, record: Instruction, operand: OperandRecord) -> np.ndarray:
    """Return random registers: uniform bits, numbers of moderate size, or special ones, as fits the instruction."""
    n = SIZES.get(operand.kind, 1)
    bits = random.integers(0, 1 << 32, n, np.uint32)
    choice = random.integers(4)
    if not record.mnemonic.startswith("f") or choice == 0:
        return bits
    if choice == 1 and record.group not in ("matrix", "slic"):
        is_half = "f16" in record.mnemonic.split("v")[0]
        return random.choice(SPECIAL16, 2 * n).view(np.uint32) if is_half else random.choice(SPECIAL32, n)
    if record.mnemonic.startswith(("f16", "f32v4tof16")) and operand.name not in ("pin", "s"):
        return random.normal(0, 8, 2 * n).astype(np.float16).view(np.uint32)
    return random.normal(0, 8, n).astype(np.float32).view(np.uint32)


def immediates(random: np.random.Generator, record: Instruction) -> dict[str, int]:
    """Return random values of the immediates."""
    found: dict[str, int] = {}
    for operand in record.operands:
        if is_register(operand):
            continue
        kind = operand.kind
        if kind == "flags":
            engine = "TAMP_F32" if record.mnemonic.startswith("f32") else "TAMP_F16V4"
            names = [name for name in FLAGS if name.startswith("TSLIC" if record.group == "slic" else engine)]
            if engine == "TAMP_F32":
                names = [name for name in names if int(name[-1]) < 2 * int(name[name.index("E") + 1])]
            if engine == "TAMP_F16V4" and record.group == "matrix":
                names = [name for name in names if int(name[-1]) < int(name[name.index("E") + 1])]
            found[operand.name] = FLAGS[str(random.choice(names))]
        elif kind == "immz12":
            found[operand.name] = int(random.integers(4096)) << 20
        elif kind == "imm32":
            found[operand.name] = int(random.integers(1 << 32)) - (1 << 31)
        elif operand.name == "rnd":
            found[operand.name] = int(random.integers(2, 4))
        elif record.mnemonic.endswith("gina"):
            found[operand.name] = int(random.integers(2))
        else:
            n_bits = int(kind[4:])
            low = -(1 << (n_bits - 1)) if kind[0] == "s" else 0
            found[operand.name] = int(random.integers(low, low + (1 << n_bits)))
    return found


def addresses(random: np.random.Generator, record: Instruction, inputs: dict[str, np.ndarray]) -> None:
    """Put addresses, offsets and strides that stay inside the memory in the place of random bits."""
    name = record.mnemonic
    size = isa_memory_models.SIZES.get(name.removesuffix("step"), 8)
    if "pace" in name:
        places = [0x50000, 0x60000, 0x70000]
        inputs["tri"] = isa_memory_models.packed([at + 8 * int(random.integers(1024)) for at in places])
        return
    registers = {operand.name for operand in record.operands if is_register(operand)}
    if "base" in registers:
        inputs["base"] = words(IPU_MEMORY.interleaved_base + 16 * int(random.integers(256)))
    if "delta" in registers:
        inputs["delta"] = words(
            size * int(random.integers(-256 if "16a" not in name else 0, 256)) % (1 << 32)
        )
        if size == 16:
            inputs["delta"] = words(size * int(random.integers(256)))
    if "addr" in registers:
        inputs["addr"] = words(0x60000 + 2 * int(random.integers(256)))
    if "off" in registers:
        inputs["off"] = words(int(random.integers(0, 256)))


def sample(random: np.random.Generator, record: Instruction, fixed: dict[str, int]) -> Inputs:
    found = {
        operand.name: values(random, record, operand) if is_register(operand) else words(fixed[operand.name])
        for operand in record.operands
    }
    inputs = Inputs(found)
    if record.group.startswith(("load", "store", "pace")):
        addresses(random, record, inputs.words)
        inputs.memory = random.integers(0, 256, MEMORY.size_bytes, np.uint8)
        inputs.memory[:64] = 0
    kinds = {operand.name: operand.kind for operand in record.operands}
    if "y" in kinds and kinds["x"] == kinds["y"] and random.integers(3) == 0:
        found["y"] = found["x"].copy()
    if "q" in kinds and random.integers(2) == 0:
        found["q"] = words(0)
    if record.group in ("accumulate", "matrix", "slic"):
        inputs.acc = random.normal(0, 8, 32).astype(np.float32)
        inputs.tas = int(random.normal(0, 1, 2).astype(np.float16).view(np.uint32)[0])
    if record.group in ("matrix", "slic"):
        inputs.weights = random.normal(0, 1, 256).astype(np.float16).view(np.uint8)
        if record.mnemonic.startswith("f32"):
            inputs.weights = random.normal(0, 1, 128).astype(np.float32).view(np.uint8)
        for name in ("x", "pin"):
            wide = record.mnemonic.startswith("f32") or (name == "pin" and record.mnemonic[5:7] == "si")
            count = len(found[name]) * (1 if wide else 2)
            numbers = random.normal(0, 1, count).astype(np.float32 if wide else np.float16)
            found[name] = numbers.view(np.uint32)
    return inputs


def test_every_executed_instruction_has_a_model_or_a_program() -> None:
    names = {INSTRUCTIONS[number].mnemonic for number in EXECUTED}
    assert names == (set(MODELS) & names) | IN_PROGRAMS
    assert not set(MODELS) & IN_PROGRAMS


@pytest.mark.parametrize("number", MODELLED, ids=identity)
def test_a_form_does_what_its_model_says(number: int) -> None:
    record = INSTRUCTIONS[number]
    random = np.random.default_rng(number)
    for round_ in range(3):
        form = Form(number, immediates(random, record), in_place=round_ == 1)
        for _ in range(N_SAMPLES // 3):
            inputs = sample(random, record, form.immediates)
            seen = broadcast(record, inputs)
            with np.errstate(all="ignore"):
                expected = MODELS[record.mnemonic](seen)
            written, accumulators = form.run(inputs)
            for name, value in expected.items():
                assert written[name].tolist() == value.tolist(), (record.syntax, name, inputs)
            if record.group in ("accumulate", "matrix", "slic"):
                assert accumulators.tobytes() == seen.acc.tobytes() or np.array_equal(
                    accumulators, seen.acc, equal_nan=True
                )
            if record.group.startswith(("load", "store", "pace")):
                assert np.array_equal(form.machine.memory(0), seen.memory)


@pytest.mark.parametrize("number", MODELLED, ids=identity)
def test_registers_without_storage_take_no_writes(number: int) -> None:
    record = INSTRUCTIONS[number]
    outputs = [operand for operand in record.operands if operand.role == "out"]
    if not outputs:
        return
    random = np.random.default_rng(number)
    form = Form(number, immediates(random, record))
    inputs = sample(random, record, form.immediates)
    before = {0: form.machine.registers(0, 0)}
    form.run(inputs)
    found = form.machine.registers(0, 0)
    assert found.m[14:] == (0, 0)
    assert found.a[8:] == before[0].a[8:] == (0,) * 8
    assert found.m[13] == IPU_MEMORY.base


def test_operands_fit_the_entries_of_the_simulator() -> None:
    most = {"main": 5, "aux": 4}
    for record in INSTRUCTIONS:
        assert len(record.operands) <= most[record.pipe], record.syntax
        results = [operand for operand in record.operands if operand.role != "in"]
        assert record.pipe == "main" or (
            len(results) <= 1 and all(one.kind != "areg_quad" for one in results)
        )


def test_generated_operations_are_the_same_every_time() -> None:
    text = operations_text()
    assert text == operations_text()
    assert text.count("void op_") == len(EXECUTED)
