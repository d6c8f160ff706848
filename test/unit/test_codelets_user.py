"""Users' own codelets: declarations, what they cover, the words they give, and their code on the simulator."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references
from support.specs import elementwise

from t10.chip import load_chip
from t10.codelets.compile import compile_task, using_families
from t10.codelets.count import cycles_of
from t10.codelets.user import cost_files, load_families
from t10.codelets.user.arithmetic import evaluated
from t10.codelets.user.pattern import matches, parse_body
from t10.core.codelet import Compiled, Pointer
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.cost.ipu import IpuCostModel
from t10.cost.work import sub_task
from t10.emit.poplar.codelets_text import SIMULATOR, assembly_text, codelets_text
from t10.errors import InputError
from t10.isa.assembler import assemble

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "codelets" / "codelets.yaml"
F32 = TaskOperand("f32", (1,))
ADD = ScalarFunction(2, (ScalarOp("arith.addf", (0, 1), "f32"),), 2)
ALL_APART = frozenset({(0, 1), (0, 2), (1, 2)})


def add_task(n: int, **changes: Any) -> Task:
    """Return the sum of two arrays."""
    return replace(Task((n,), (F32, F32), F32, "none", ADD, apart=ALL_APART), **changes)


def column_sums(n_rows: int, n_columns: int) -> Task:
    rows = TaskOperand("f32", (1, n_columns), 16, is_interleaved=True)
    body = ScalarFunction(1, (), 0)
    return Task((n_columns, n_rows), (rows,), TaskOperand("f32", (1, 0)), "sum", body, (1,))


def leaky_relu(n: int, stride: int, slope: float) -> Task:
    ops = (
        ScalarOp("const", (), "f32", "0.0"),
        ScalarOp("arith.cmpf", (0, 1), "i1", "oge"),
        ScalarOp("const", (), "f32", repr(slope)),
        ScalarOp("arith.mulf", (3, 0), "f32"),
        ScalarOp("arith.select", (2, 0, 4), "f32"),
    )
    return Task((n,), (TaskOperand("f32", (stride,)),), F32, "none", ScalarFunction(1, ops, 5))


def compiled_by_example(task: Task) -> Compiled:
    """Return the task compiled with the example's codelets in front."""
    with using_families(load_families([EXAMPLES])):
        return compile_task(task)


def write(folder: Path, **changes: Any) -> Path:
    """Write a declaration of an elementwise sum with some fields changed; None leaves a field out."""
    (folder / "code.S").write_text(
        ".globl code\ncode: ld32 $m0, $mvertex_base, 0\n.Lend: exitz $mzero\n", encoding="utf-8"
    )
    operand = {"dtype": "f32", "strides": {"i": 1}}
    codelet: dict[str, Any] = {
        "name": "Mine",
        "assembly": "code.S",
        "axes": ["i"],
        "inputs": {"x": operand, "y": operand},
        "output": operand,
        "body": "arith.addf(x, y)",
        "fields": [{"name": "a", "pointer": "x"}, {"name": "n", "value": "i"}],
        **changes,
    }
    codelet = {key: value for key, value in codelet.items() if value is not None}
    path = folder / "mine.yaml"
    path.write_text(
        yaml.safe_dump({"format": "t10-codelets", "version": 1, "codelets": [codelet]}), encoding="utf-8"
    )
    return path


# --- the examples ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1001])
def test_the_assembly_of_a_user_computes_a_task(n: int) -> None:
    task = add_task(n)
    compiled = compiled_by_example(task)
    assert compiled.codelet.name.startswith("User_VectorAddFloat")
    run_task(task, compiled).check()


def test_steps_are_priced_by_the_codelet_that_is_used():
    """Prices, bounds and what is kept for later are of one codelet, and of the bundled ones again without it."""
    spec = elementwise((4096,), dtype="f32")
    boxes = np.array([[n] for n in (1, 7, 100, 1001)])
    model = IpuCostModel(load_chip("ipu-mk2"))
    bundled, fingerprint = model.sub_task_cycles_many(spec, boxes), model.fingerprint()
    with using_families(load_families([EXAMPLES])):
        own = model.sub_task_cycles_many(spec, boxes)
        counted = [cycles_of(sub_task(spec, (n,))) for (n,) in boxes.tolist()]
        assert (own - load_chip("ipu-mk2").launch_cycles).tolist() == counted
        assert (own != bundled).any()
        assert (model.least.sub_task_cycles_many(spec, boxes) <= own).all()
        assert model.fingerprint() != fingerprint
    assert model.sub_task_cycles_many(spec, boxes).tolist() == bundled.tolist()
    assert model.fingerprint() == fingerprint


@pytest.mark.parametrize(("n_rows", "n_columns"), [(2, 4), (3, 28), (17, 100)])
def test_code_of_the_supervisor_computes_a_task(n_rows: int, n_columns: int) -> None:
    task = column_sums(n_rows, n_columns)
    compiled = compiled_by_example(task)
    assert compiled.codelet.kind == "supervisor"
    assert compiled.codelet.stack_bytes == 24
    run_task(task, compiled).check(rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("n", "stride"), [(1, 1), (50, 3)])
def test_code_in_cpp_runs_on_the_simulator_by_assembly_of_ours(n: int, stride: int) -> None:
    task = leaky_relu(n, stride, 0.125)
    compiled = compiled_by_example(task)
    assert compiled.codelet.name.startswith("User_LeakyReluFloat")
    run_task(task, compiled).check()


def test_cpp_references_compute_the_tasks_whether_written_or_made_up(tmp_path: Path) -> None:
    tasks = (add_task(7), add_task(100), column_sums(2, 4), column_sums(9, 28), leaky_relu(50, 3, 0.125))
    check_cpp_references([(task, compiled_by_example(task)) for task in tasks], tmp_path)


def test_a_constant_of_the_model_becomes_a_word() -> None:
    compiled = compiled_by_example(leaky_relu(50, 3, 0.125))
    words = dict(zip((field.name for field in compiled.codelet.fields), compiled.words, strict=True))
    assert words["slope"] == 0.125
    assert (words["rows"], words["columns"], words["from_column"]) == (1, 50, 3)


def test_code_in_cpp_is_cpp_on_the_chip_too() -> None:
    in_cpp = compiled_by_example(leaky_relu(8, 1, 0.5)).codelet
    in_assembly = compiled_by_example(add_task(8)).codelet
    text = codelets_text((in_cpp, in_assembly))
    assert text.count("isExternalCodelet = false") == 1
    assert text.count("isExternalCodelet = T10_IN_ASSEMBLY") == 1
    assembly = assembly_text((in_cpp, in_assembly))
    assert set(assemble(assembly).symbols) == {in_assembly.entry}
    assert set(assemble(assembly, defines={SIMULATOR: ""}).symbols) == {in_assembly.entry, in_cpp.entry}


def test_codelets_of_users_stand_in_one_text_with_each_other() -> None:
    codelets = [
        compiled_by_example(task).codelet for task in (add_task(8), column_sums(3, 8), leaky_relu(8, 1, 0.5))
    ]
    image = assemble("\n".join(codelet.assembly for codelet in codelets))
    assert {codelet.entry for codelet in codelets} <= set(image.symbols)
    # Only entries are known outside: labels of the files are their own.
    assert len(image.symbols) == len(codelets)
    assert image.stack_bytes[codelets[1].entry] == 24


def test_a_pointer_that_both_halves_use_is_one_field() -> None:
    codelet = compiled_by_example(add_task(8)).codelet
    pointers = [field.name for field in codelet.fields if field.kind in ("in", "out")]
    assert pointers == ["a", "b", "c"]
    assert "auto *const in0 = a;" in codelet.cpp_reference


SPLIT = {
    "entry.S": (
        '#include "sizes.h"\n.section .text.add\n.globl add\n.align 8\n.worker\nadd:\n'
        "  call $m11, load\n  mov $m4, $m2\nagain:\n  get $m5, $WSR\n  and $m5, $m5, WORKER_MASK\n"
        "  brnz $m5, done\n  call $m11, sums\ndone:\n  exitz $mzero\n"
        ".section .text.unused\n.globl unused\nunused: bri missing\nDEF_STACK_SIZE_OWN 8 add\n"
    ),
    "parts.S": (
        '#include "sizes.h"\n.weak sums\n.section .text.weak_sums\nsums: bri sums\n'
        ".section .text.load\n.globl load\n.align 8\n.worker\nload:\n  ld32 $m0, $mvertex_base, 0\n"
        "  ld32 $m1, $mvertex_base, 1\n  ld32 $m2, $mvertex_base, 2\n  ld32 $m3, $mvertex_base, N_FIELD\n  br $m11\n"
        "DEF_STACK_USAGE 16 load\n"
    ),
    "sums.S": (
        ".section .text.sums\n.globl sums\n.align 8\n.worker\nsums: brz $m3, done\n  add $m3, $m3, -1\n"
        "again:\n  ld32step $a0, $mzero, $m0+=, 1\n  ld32step $a1, $mzero, $m1+=, 1\n  f32add $a0, $a0, $a1\n"
        "  st32step $a0, $mzero, $m4+=, 1\n  brnzdec $m3, again\ndone:\n  br $m11\n"
    ),
}


@pytest.mark.parametrize("name", ["class", "float", "worker", "compute", "view", "a__b", "é", "1a", ""])
def test_a_field_has_a_name_that_cpp_takes(name: str, tmp_path: Path) -> None:
    for file in EXAMPLES.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = EXAMPLES.read_text()
    assert "{name: a, pointer: x}" in text
    (tmp_path / EXAMPLES.name).write_text(
        text.replace("{name: a, pointer: x}", f'{{name: "{name}", pointer: x}}', 1)
    )
    with pytest.raises(InputError, match=r"fields\[\d\].name"):
        load_families([tmp_path / EXAMPLES.name])


@pytest.mark.parametrize("n", [1, 50])
def test_the_assembly_of_a_user_may_be_split_over_files(tmp_path: Path, n: int) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "sizes.h").write_text("#define N_FIELD 3\n#define WORKER_MASK 7\n")
    for name, text in SPLIT.items():
        (tmp_path / name).write_text(text)
    path = write(
        tmp_path,
        assembly=list(SPLIT),
        include_paths=["inc"],
        entry="add",
        fields=[
            *({"name": name, "pointer": operand} for name, operand in (("a", "x"), ("b", "y"), ("c", "out"))),
            {"name": "n", "value": "i"},
        ],
    )
    task = add_task(n)
    with using_families(load_families([path])):
        compiled = compile_task(task)
    assert compiled.codelet.name.startswith("User_Mine")
    assert compiled.codelet.stack_bytes == 24
    # Sections that the entry does not need, and weak code that another file replaces, are left out.
    assert "unused" not in compiled.codelet.assembly
    assert "weak" not in compiled.codelet.assembly
    run_task(task, compiled).check()


def test_cost_functions_are_found_beside_the_declaration() -> None:
    assert cost_files([EXAMPLES]) == (EXAMPLES.parent / "leaky_relu_cost.py",)


def test_the_examples_and_the_documentation_follow_the_schema(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "docs" / "codelets.schema.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "codelets.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    for text in (EXAMPLES.read_text(encoding="utf-8"), shown):
        jsonschema.validate(yaml.safe_load(text), schema)
    shutil.copytree(EXAMPLES.parent, tmp_path / "codelets")
    (tmp_path / "codelets" / "shown.yaml").write_text(shown, encoding="utf-8")
    assert [family.name for family in load_families([tmp_path / "codelets" / "shown.yaml"])] == [
        "User_VectorAddFloat"
    ]


# --- what a declaration covers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"apart": frozenset({(0, 1)})},
        {"inputs": (TaskOperand("f32", (2,)), F32)},
        {"inputs": (TaskOperand("f32", (1,), 4), F32)},
        {"inputs": (TaskOperand("f16", (1,)), F32)},
        {"output": TaskOperand("f32", (2,))},
        {"body": ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f32"),), 2)},
        {"body": ScalarFunction(2, (ScalarOp("arith.addf", (0, 0), "f32"),), 2)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_task_that_is_not_declared_goes_to_other_families(changes: dict[str, Any]) -> None:
    compiled = compiled_by_example(add_task(8, **changes))
    assert not compiled.codelet.name.startswith("User_")


def test_conditions_must_hold() -> None:
    assert compiled_by_example(column_sums(3, 8)).codelet.name.startswith("User_ReduceAddFloat")
    assert not compiled_by_example(column_sums(3, 6)).codelet.name.startswith("User_")


def test_inputs_are_found_in_whichever_order_the_body_has_them(tmp_path: Path) -> None:
    path = write(tmp_path, body="arith.subf(y, x)", fields=[{"name": "a", "pointer": "x"}])
    body = ScalarFunction(2, (ScalarOp("arith.subf", (0, 1), "f32"),), 2)
    (family,) = load_families([path])
    compiled = family.compile(add_task(8, body=body))
    assert compiled is not None
    # x is what is subtracted: the second input.
    assert compiled.words[0] == Pointer(1)


def test_an_axis_that_the_task_lacks_has_one_point(tmp_path: Path) -> None:
    operand = {"dtype": "f32", "strides": {"i": "any", "j": 1}}
    path = write(
        tmp_path,
        axes=["i", "j"],
        inputs={"x": operand, "y": operand},
        output=operand,
        fields=[
            {"name": "rows", "value": "i"},
            {"name": "columns", "value": "j"},
            {"name": "pitch", "value": "x.i"},
        ],
    )
    (family,) = load_families([path])
    one = family.compile(add_task(8))
    assert one is not None
    assert one.words[:3] == (1, 8, 0)
    rows = TaskOperand("f32", (10, 1))
    two = family.compile(add_task(8, extents=(3, 8), inputs=(rows, rows), output=rows))
    assert two is not None
    assert two.words[:3] == (3, 8, 10)


def test_later_declarations_come_first_and_families_leave_with_their_context() -> None:
    families = load_families([EXAMPLES])
    assert [family.name for family in families] == [
        "User_LeakyReluFloat",
        "User_ReduceAddFloat",
        "User_VectorAddFloat",
    ]
    compiled_by_example(add_task(8))
    assert not compile_task(add_task(8)).codelet.name.startswith("User_")


# --- patterns and expressions ----------------------------------------------------------------------------------------


def function_of(*ops: ScalarOp, n_inputs: int = 2) -> ScalarFunction:
    return ScalarFunction(n_inputs, ops, n_inputs + len(ops) - 1)


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ("arith.mulf(arith.extf(x), arith.extf(y))", True),
        ('arith.mulf(arith.extf(y, dtype="f32"), arith.extf(x))', True),
        ('arith.mulf(arith.extf(x, dtype="f64"), arith.extf(y))', False),
        ("arith.addf(arith.extf(x), arith.extf(y))", False),
        ("arith.mulf(x, y)", False),
        ("arith.mulf(arith.extf(x), arith.extf(x))", False),
    ],
)
def test_a_body_fits_functions_of_its_operations(body: str, fits: bool) -> None:
    function = function_of(
        ScalarOp("arith.extf", (0,), "f32"),
        ScalarOp("arith.extf", (1,), "f32"),
        ScalarOp("arith.mulf", (2, 3), "f32"),
    )
    assert (next(matches(parse_body(body, ("x", "y"), "here"), function), None) is not None) == fits


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("arith.maximumf(x, 0.5)", ()),
        ("arith.maximumf(0.5, x)", ()),
        ("arith.maximumf(x, const(limit))", (("limit", 0.5),)),
        ("arith.maximumf(x, -0.5)", None),
        ("arith.maximumf(x, x)", None),
    ],
)
def test_constants_fit_numbers_or_get_names(
    body: str, constants: tuple[tuple[str, float], ...] | None
) -> None:
    function = function_of(
        ScalarOp("const", (), "f32", "0.5"), ScalarOp("arith.maximumf", (0, 1), "f32"), n_inputs=1
    )
    found = next(matches(parse_body(body, ("x",), "here"), function), None)
    assert (None if found is None else found.constants) == constants


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n // 4 + x.n * 2", 25 + 6),
        ("ceil_div(n, 6)", 17),
        ("min(n, 3, 5)", 3),
        ("log2(64) << 2", 24),
        ("f16_bits(1.0)", 0x3C00),
        ("f16_pair(1.0, -2)", 0xC0003C00),
        ("n % 4 == 0 and not n < 50", True),
        ("-n", -100),
        (7, 7),
    ],
)
def test_an_expression_has_the_value(text: int | str, value: int) -> None:
    assert evaluated(text, {"n": 100, "x.n": 3}, "here") == value


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assembly": None}, "neither assembly nor cpp"),
        ({"assembly": "missing.S"}, "cannot read"),
        ({"cpp": "missing.cpp"}, "cannot read"),
        ({"entry": "other"}, r"defines no symbol 'other' \(its symbols: code\)"),
        ({"assembly": None, "cpp": "x.cpp", "kind": "supervisor"}, "of the supervisor needs assembly"),
        ({"name": "two words"}, "name"),
        ({"surplus": 1}, "surplus"),
        ({"output": {"dtype": "f31"}}, "found f31, expected one of f16, f32"),
        (
            {"output": {"dtype": "f32", "strides": {"k": 1}}},
            "strides of 'out' name axis 'k', expected one of i",
        ),
        ({"fields": [{"name": "a"}]}, "has 0 of pointer, scratch and value, expected one"),
        ({"fields": [{"name": "a", "pointer": "z"}]}, "there is no operand 'z', expected one of x, y, out"),
        ({"fields": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}, "two fields are named 'a'"),
        (
            {"fields": [{"name": "a", "value": "k + 1"}]},
            "field a: 'k \\+ 1': there is no 'k', expected one of i",
        ),
        ({"fields": [{"name": "a", "value": "open(i)"}]}, "there is no function 'open'"),
        ({"fields": [{"name": "a", "value": "i +"}]}, "not an expression"),
        ({"where": ["i.j"]}, "where: 'i.j': there is no 'i.j'"),
        ({"body": "arith.addf(x, z)"}, "there is no input 'z', expected one of x, y"),
        ({"body": "numpy.add(x, y)"}, "'numpy.add' is not an operation of arith or math"),
        ({"body": "arith.adf(x, y)"}, r"'arith.adf' is not an operation .* \(did you mean arith.addf\?\)"),
        ({"body": "arith.addf(x"}, "is not an expression"),
        ({"body": "[x]"}, r"'\[x\]' is not allowed here"),
        ({"combine": "sum"}, "combines if and only if it has a reduction axis"),
        ({"axes": ["i", "x"]}, "two axes and operands are named 'x'"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_families([write(tmp_path, **changes)])


def test_assembly_that_is_wrong_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "code.S").write_text("code: nop\n  nothing\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"code\.S:2:3: error: unknown instruction"):
        load_families([path])


@pytest.mark.parametrize(
    ("text", "message"),
    [("- 1", "expected a mapping"), ("a: [", "is not YAML"), ("format: other", "format")],
)
def test_a_file_that_declares_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_families([path])


def test_two_codelets_cannot_have_one_name(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(InputError, match="codelet 'Mine' is declared in"):
        load_families([path, path])


def test_a_number_that_does_not_fit_its_field_is_refused(tmp_path: Path) -> None:
    (family,) = load_families([write(tmp_path, fields=[{"name": "a", "value": "i - 100"}])])
    with pytest.raises(InputError, match="field a is -92, which is no u32"):
        family.compile(add_task(8))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scratch_bytes": -4}, r"scratch_bytes is -4 \(expected whole bytes, 0 to"),
        ({"scratch_bytes": "4 - 100 * i"}, "scratch_bytes is -796"),
        ({"scratch_bytes": "1e400"}, "scratch_bytes is inf"),
        ({"scratch_bytes": "1e400 - 1e400"}, "scratch_bytes is nan"),
        ({"scratch_bytes": 64, "fields": [{"name": "s", "scratch": -64}]}, "field s is -64"),
        ({"scratch_bytes": 64, "fields": [{"name": "s", "scratch": 65}]}, "expected whole bytes, 0 to 64"),
    ],
)
def test_scratch_memory_is_bytes_that_there_are(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    (family,) = load_families([write(tmp_path, **changes)])
    with pytest.raises(InputError, match=message):
        family.compile(add_task(8))


def test_a_field_that_has_the_name_of_one_of_ours_is_refused(tmp_path: Path) -> None:
    (family,) = load_families([write(tmp_path, fields=[{"name": "frame", "value": "i"}])])
    with pytest.raises(InputError, match="field 'frame' needs another name"):
        family.compile(add_task(8))


def test_the_same_file_gives_the_same_codelet() -> None:
    first, second = compiled_by_example(add_task(64)), compiled_by_example(add_task(64))
    assert first == second
    assert compiled_by_example(add_task(128)).codelet == first.codelet
    assert np.array_equal(assemble(first.codelet.assembly).words, assemble(second.codelet.assembly).words)
