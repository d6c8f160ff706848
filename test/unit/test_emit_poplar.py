"""Poplar programs as text: short whatever the number of tiles, equal tables once, and tables that can be read back."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.device_programs import CASES, Case, reduction, relayout, ring, with_codelet

from t10.core.codelet import Codelet, Field
from t10.core.device import HostPiece, HostTensor, Reference, Variable
from t10.emit.poplar.codelets_text import assembly_text, codelets_text
from t10.emit.poplar.names import Names, comment, quoted
from t10.emit.poplar.slots import slot_table
from t10.emit.poplar.tables import Tables
from t10.emit.poplar.types import constant_bits, poplar_type
from t10.emit.poplar.write import write_program
from t10.errors import InputError, T10Error, UnsupportedOpError

FILES = {
    "program.cpp",
    "codelets.cpp",
    "codelets.S",
    "tables.bin",
    "weights.bin",
    "weights.json",
    "CMakeLists.txt",
}


def written(case: Case, folder: Path) -> str:
    write_program(case.program, folder, case.weights)
    return (folder / "program.cpp").read_text()


def read_tables(path: Path) -> list[NDArray[np.int32]]:
    data = path.read_bytes()
    assert data[:8] == b"T10TABLE"
    (count,) = struct.unpack_from("<Q", data, 8)
    starts = np.frombuffer(data, "<u8", count + 1, 16).astype(np.int64)
    values = np.frombuffer(data, "<i4", offset=16 + 8 * (count + 1))
    return [values[a:b] for a, b in pairwise(starts.tolist())]


def expanded(table: NDArray[np.int32], n_slots: int) -> NDArray[np.int32]:
    """Read a slot table as t10_slots.hpp does."""
    found = np.full(n_slots, -1, np.int32)
    if table[0] == 0:
        return table[1:]
    for row in table[7:].reshape(-1, 5).tolist():
        for k in range(row[4]):
            for j in range(row[3]):
                for i in range(row[2]):
                    slot = row[0] + i * table[1] + j * table[2] + k * table[3]
                    assert found[slot] == -1
                    found[slot] = row[1] + i * table[4] + j * table[5] + k * table[6]
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_program_folder_is_complete_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    digests: list[dict[str, str]] = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        write_program(case.program, folder, case.weights)
        digests.append({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()})
    assert digests[0] == digests[1]
    assert set(digests[0]) > FILES


def test_text_does_not_grow_with_tiles(tmp_path: Path) -> None:
    few, many = written(ring(16), tmp_path / "few"), written(ring(512), tmp_path / "many")
    assert len(few.splitlines()) == len(many.splitlines())
    assert len(many) < len(few) + 100


def test_every_variable_says_what_it_is_and_every_step_whose(tmp_path: Path) -> None:
    case = ring()
    text = written(case, tmp_path)
    for variable in case.program.variables:
        assert variable.comment in text
        assert f'"{variable.name}"' in text
    for part in (*case.program.compute_sets, *case.program.copies):
        assert f'"{part.name}"' in text
    assert "// Operator mix" in text
    assert "Repeat(3, Sequence({Execute(sub_task), shift_1, copy_out_1}))" in text


def test_what_a_vertex_first_writes_is_undefined_before_and_what_the_host_filled_is_not(
    tmp_path: Path,
) -> None:
    text = written(ring(), tmp_path)
    assert "WriteUndef(m.accumulator_mix)" in text
    assert "WriteUndef(m.input_x)" not in text
    assert "WriteUndef(m.idle_w)" not in text


def test_a_row_that_begins_off_sixteen_bytes_has_unused_elements_before(tmp_path: Path) -> None:
    case = ring()
    moved = tuple(
        replace(v, address_bytes=v.address_bytes + 8) if v.name == "shift" else v
        for v in case.program.variables
    )
    text = written(replace(case, program=replace(case.program, variables=moved)), tmp_path)
    assert 'm.shift = b.variable("shift", FLOAT, 4, 10, 2);' in text
    assert 'm.input_x = b.variable("input:x", FLOAT, 4, 10);' in text


def test_equal_patterns_share_a_table(tmp_path: Path) -> None:
    written(ring(), tmp_path)
    tables = read_tables(tmp_path / "tables.bin")
    assert len({t.tobytes() for t in tables}) == len(tables)
    n_setup_and_copy_out = sum(t.size == 9 * 4 and (t[1::9] == t[3::9]).all() for t in tables)
    assert n_setup_and_copy_out == 1


def test_weights_are_written_in_row_major_order_and_found_by_their_offset(tmp_path: Path) -> None:
    case = ring()
    text = written(case, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == case.weights["w"].tobytes()
    assert 'HostTensor::weight, "w", "<f4", {4, 10}, 0,' in text


def test_a_weight_without_values_is_asked_for_later(tmp_path: Path) -> None:
    write_program(ring().program, tmp_path, {})
    assert 'HostTensor::weight, "w", "<f4", {4, 10}, absent,' in (tmp_path / "program.cpp").read_text()


def test_a_weight_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weight w has shape \(3,\) \(expected \(4, 10\)"):
        write_program(ring().program, tmp_path / "p", {"w": np.zeros(3, np.float32)})
    assert not (tmp_path / "p").exists()


def test_constants_of_a_fill_are_bits_of_the_copied_type(tmp_path: Path) -> None:
    assert "{{0x3fc00000}}" in written(reduction(), tmp_path / "f32")
    assert "{{0x3c00}}" in written(relayout(), tmp_path / "f16")
    assert "{{0x1, 0x0}}" in written(relayout("i64", 8), tmp_path / "i64")


def test_an_output_may_be_partly_constant(tmp_path: Path) -> None:
    case = reduction()
    constant = HostPiece("", np.array([[0, 1]], np.int32), "2.5")
    outputs = (HostTensor("y", "f32", (15,), (*case.program.outputs[0].pieces, constant)),)
    text = written(replace(case, program=replace(case.program, outputs=outputs)), tmp_path)
    assert "{Tensor(), b.table(" in text


@given(arrays(np.int32, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=st.integers(-1, 30)))
def test_slot_tables_of_anything_can_be_read_back(elements: NDArray[np.int32]) -> None:
    np.testing.assert_array_equal(expanded(slot_table(elements), elements.size), elements.reshape(-1))


@given(arrays(np.int32, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=st.integers(-1, 9)))
def test_slot_tables_of_outputs_name_the_first_slot_of_every_element(elements: NDArray[np.int32]) -> None:
    flat = elements.reshape(-1)
    due = np.array([e if e >= 0 and e not in flat[:i] else -1 for i, e in enumerate(flat)], np.int32)
    np.testing.assert_array_equal(expanded(slot_table(elements, is_output=True), flat.size), due)


def test_slots_that_a_table_leaves_out_hold_nothing() -> None:
    """A table of the IR may be narrower than its variable: rows of slots are as long as those of the variable."""
    elements = np.array([[0, 1], [2, 3]], np.int32)
    wide = np.array([0, 1, -1, -1, 2, 3, -1, -1], np.int32)
    np.testing.assert_array_equal(expanded(slot_table(elements, n_slots=4), 8), wide)
    np.testing.assert_array_equal(expanded(slot_table(elements, n_slots=4, is_output=True), 8), wide)


def test_slot_tables_of_tiled_matrices_are_short() -> None:
    # A 256 x 512 matrix cut into 16 x 32 tiles of 16 x 16, each transposed and padded to 17 columns.
    tiles = np.arange(256 * 512, dtype=np.int32).reshape(16, 16, 32, 16).transpose(0, 2, 3, 1)
    elements = np.pad(tiles.reshape(512, 16, 16), ((0, 0), (0, 0), (0, 1)), constant_values=-1).reshape(
        512, -1
    )
    table = slot_table(np.ascontiguousarray(elements))
    assert table.size < 200
    np.testing.assert_array_equal(expanded(table, elements.size), elements.reshape(-1))


def test_numbers_per_tile_are_as_short_as_they_can_be() -> None:
    tables = Tables()
    assert tables.per_tile(7) == "7"
    assert tables.per_tile((7,) * 100) == "7"
    assert tables.per_tile(tuple(range(0, 400, 4))) == "steps(0, 4)"
    assert tables.per_tile((1, 5, 2)) == "{1, 5, 2}"
    assert tables.per_tile((0xFFFFFFFF, 0, 0)) == "{0xffffffff, 0, 0}"
    scattered = tuple(i * i for i in range(100))
    assert tables.per_tile(scattered) == tables.per_tile(tuple(scattered)) == "b.table(0)"
    assert tables.tiles((3, 4, 5)) == "tiles(3, 3)"
    assert tables.tiles((0, 8, 16)) == "tiles(0, 3, 8)"
    assert tables.tiles((0, 1, 5)) == "tiles({0, 1, 5})"


def test_names_become_distinct_identifiers_that_mean_nothing_else() -> None:
    names = Names()
    given_names = ("a:b", "a/b", "a_b", "class", "steps", "3x", "", "ä", "__x")
    made = [names.identifier(name) for name in given_names]
    assert len(set(made)) == len(made)
    assert all(name.isascii() and name.isidentifier() and "__" not in name for name in made)
    assert not {"class", "steps"} & set(made)
    assert names.identifier("a/b") == made[1]


def test_text_of_the_model_cannot_leave_its_comment_or_string() -> None:
    assert comment("a\nb */ c\\") == "// a b */ c\n"
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
    assert quoted("é1") == '"\\303\\2511"'


@pytest.mark.parametrize(
    ("text", "dtype", "bits"),
    [
        ("1", "f32", 0x3F800000),
        ("-inf", "f16", 0xFC00),
        ("True", "i1", 1),
        ("-1", "i64", (1 << 64) - 1),
        ("-2", "i8", 0xFE),
        ("3", "f16", 0x4200),
    ],
)
def test_constants_become_bits(text: str, dtype: str, bits: int) -> None:
    assert constant_bits(text, dtype) == bits


def test_types_without_a_place_on_tiles_are_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="f64"):
        poplar_type("f64")


def codelet(**changes: Any) -> Codelet:
    fields = (
        Field("x", "in", "f16", 8, True),
        Field("y", "out", "f32", 8),
        Field("space", "scratch", align_bytes=8),
        Field("table", "in", "i64", 8),
        Field("n", "u32"),
        Field("k", "i32"),
        Field("a", "f32"),
    )
    made = Codelet("Test", "supervisor", fields, "code", "y[0] = x[0];", "y = x", apart=(("x", "y"),))
    return replace(made, **changes)


def test_a_vertex_class_has_one_word_per_field_in_order() -> None:
    text = codelets_text((codelet(),))
    assert (
        'class [[poplar::constraint("elem(*x) != elem(*y)")]] Test : public SupervisorIf<T10_IN_ASSEMBLY> {'
        in text
    )
    fields = text[text.index("isExternalCodelet") : text.index("#if T10_IN_ASSEMBLY\n")].splitlines()[1:-1]
    assert [line.strip() for line in fields] == [
        "Input<Vector<half, VectorLayout::ONE_PTR, 8, true>> x;",
        "InOut<Vector<float, VectorLayout::ONE_PTR, 8>> y;",
        "Output<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> space;",
        "Input<Vector<int, VectorLayout::ONE_PTR, 8>> table;",
        "unsigned n;",
        "int k;",
        "float a;",
    ]
    assert "const long long *table = view<const long long>(&this->table[0]);" in text


def test_a_supervisor_has_no_cpp_body_and_workers_run_it_where_there_is_no_assembly() -> None:
    text = codelets_text((codelet(),))
    head, in_assembly, elsewhere = text[text.index("class [[") :].split("bool compute(")
    assert head.endswith('#if T10_IN_ASSEMBLY\n  __attribute__((target("supervisor"))) ')
    assert in_assembly.startswith(") { return true; }")
    assert in_assembly.endswith("#else\n  ")
    assert elsewhere.startswith("unsigned worker) {")
    assert "for (unsigned part = worker; part < 1; ++part)\n      one_share(part);" in elsewhere


@pytest.mark.parametrize(
    ("dtype", "is_cpp", "loop"),
    [
        ("f32", False, "for (unsigned part = worker; part < 6; part += numWorkers())"),
        ("f16", True, "for (unsigned part = worker; part < 6; part += numWorkers())"),
        ("f16", False, "for (unsigned part = 0; worker == 0 && part < 6; ++part)"),
        ("i1", False, "for (unsigned part = 0; worker == 0 && part < 6; ++part)"),
    ],
)
def test_workers_do_not_store_into_one_word(dtype: str, is_cpp: bool, loop: str) -> None:
    fields = (Field("x", "in", "f16", 8), Field("y", "out", dtype, 8), Field("n", "u32"))
    assert loop in codelets_text((codelet(kind="multi", fields=fields, apart=(), is_cpp=is_cpp),))


def test_codelets_of_one_name_must_be_equal() -> None:
    assert assembly_text((codelet(), codelet())).count("code\n") == 1
    with pytest.raises(T10Error, match="two codelets are named Test but differ"):
        assembly_text((codelet(), codelet(assembly="other")))


def test_a_field_of_another_size_than_its_variable_is_refused(tmp_path: Path) -> None:
    case = ring()
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    wrong = replace(fill, fields=(Field("out", "out", "f16", 4), *fill.fields[1:]))
    with pytest.raises(
        T10Error, match="field out of Test_fill points to f16 but variable accumulator:mix holds f32"
    ):
        write_program(with_codelet(case.program, wrong), tmp_path, case.weights)


def test_a_field_of_another_type_of_the_same_size_is_connected_as_such(tmp_path: Path) -> None:
    case = ring()
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    other = replace(fill, fields=(Field("out", "out", "i32", 4), *fill.fields[1:]))
    text = written(replace(case, program=with_codelet(case.program, other)), tmp_path)
    assert 'edge_as("out", INT, m.accumulator_mix)' in text


def test_scratch_memory_of_a_field_ends_where_that_of_the_next_begins(tmp_path: Path) -> None:
    case = ring()
    space = Variable("scratch", "scratch", "ui8", (64,), 4, 0x90000)
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    added = tuple(Field(name, "scratch", align_bytes=8) for name in ("s", "t", "u"))
    program = with_codelet(case.program, replace(fill, fields=(*fill.fields, *added)))
    words = tuple(Reference("scratch", at) for at in ((8, 8, 8, 16), 32, 0))
    sets = tuple(
        replace(s, groups=tuple(replace(g, words=(*g.words, *words)) for g in s.groups))
        if s.kind == "fill"
        else s
        for s in program.compute_sets
    )
    program = replace(program, compute_sets=sets, variables=(*program.variables, space))
    text = written(replace(case, program=program), tmp_path)
    assert 'edge("s", m.scratch, {8, 8, 8, 16}, 32)' in text
    assert 'edge("t", m.scratch, 32)' in text
    assert 'edge("u", m.scratch, 0, {8, 8, 8, 16})' in text


def test_a_vertex_with_too_few_words_is_refused(tmp_path: Path) -> None:
    case = ring()
    first, *others = case.program.compute_sets
    group = replace(first.groups[0], words=(Reference("shift", 0),))
    program = replace(case.program, compute_sets=(replace(first, groups=(group,)), *others))
    with pytest.raises(T10Error, match="1 words for a vertex of"):
        write_program(program, tmp_path, case.weights)
