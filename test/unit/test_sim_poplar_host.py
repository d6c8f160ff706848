"""Emitted programs compiled with g++ against the host's Poplar subset: they compute, and breaking a rule stops them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.device_programs import CASES, Case, pattern, reduction, ring, with_codelet

import t10.sim.poplar_host
from t10.codelets.compile import compile_task
from t10.core.codelet import Field
from t10.core.device import DeviceProgram, HostPiece, HostTensor, Reference
from t10.core.scalar import identity
from t10.core.task import Task, TaskOperand
from t10.core.tile import TileMemory
from t10.emit.poplar.write import write_program
from t10.errors import InputError, SimTrap
from t10.frontend.half import half_array
from t10.sim.poplar_host import PoplarHostResult, run_poplar_host, run_program
from t10.sim.poplar_host.build import VertexCode, build
from t10.sim.poplar_host.popc import registry_text, vertex_classes

PAIRS = """\
.section .text.ENTRY, "ax"
.globl ENTRY
.type ENTRY, @function
.align 8
.worker
ENTRY:
  get $m8, $WSR
  and $m8, $m8, 7
  brnz $m8, .L_pairs_end
  ld32 $m0, $mvertex_base, $mzero, 0
  ld32 $m1, $mvertex_base, $mzero, 1
  ld32 $m2, $mvertex_base, $mzero, 2
  ld32 $m3, $mvertex_base, $mzero, 3
  tapack $m4:5, $m0, $m1, $mzero
  shr $m6, $m3, 1
.L_pairs_loop:
  brz $m6, .L_pairs_end
  ld2x64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0
  f32v2mul $a0:1, $a0:1, $a2:3
  ld64 $a4:5, $m2, $mzero, 0
  f32v2add $a4:5, $a4:5, $a0:1
  st64step $a4:5, $mzero, $m2+=, 1
  add $m6, $m6, -1
  bri .L_pairs_loop
.L_pairs_end:
  exitz $mzero
.size ENTRY, . - ENTRY
DEF_STACK_USAGE 0, ENTRY
""".replace("ENTRY", "__runCodelet_t10__Test_multiply_add")
"""acc += x * w, both loaded at once: that is a conflict where they lie in one memory element."""


def run(
    case: Case,
    folder: Path,
    objects: Path,
    program: DeviceProgram | None = None,
    vertices: VertexCode = "cpp",
) -> PoplarHostResult:
    write_program(program or case.program, folder, case.weights)
    return run_program(folder, case.inputs, vertices=vertices, build_folder=objects)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("vertices", ["cpp", "assembly"])
@pytest.mark.parametrize("name", CASES)
def test_emitted_programs_compute_what_numpy_does(
    name: str, vertices: VertexCode, tmp_path: Path, objects: Path
) -> None:
    case = CASES[name]()
    result = run(case, tmp_path, objects, vertices=vertices)
    assert set(result.outputs) == set(case.outputs)
    for key, due in case.outputs.items():
        assert result.outputs[key].dtype == due.dtype
        np.testing.assert_array_equal(result.outputs[key], due)


def test_cycles_are_the_longest_estimates_of_all_compute_sets(tmp_path: Path, objects: Path) -> None:
    assert run(ring(), tmp_path, objects).cycles == 100 * (1 + 4 + 1)


def test_cycles_of_assembly_are_those_of_the_simulator(tmp_path: Path, objects: Path) -> None:
    # Two elements per worker: instructions before, twice those of the loop, then three; 6 cycles each, 12 to launch.
    fill, multiply, scale = (6 * (before + 2 * loop + 3) + 12 for before, loop in ((5, 6), (6, 10), (6, 8)))
    assert run(ring(), tmp_path, objects, vertices="assembly").cycles == fill + 4 * multiply + scale


@pytest.mark.slow
def test_operands_that_are_to_lie_apart_do(tmp_path: Path, objects: Path) -> None:
    case = ring()
    multiply = next(c for c in case.program.codelets if c.name == "Test_multiply_add")
    fields = tuple(replace(field, align_bytes=8) if field.dtype else field for field in multiply.fields)
    together = with_codelet(case.program, replace(multiply, fields=fields, assembly=PAIRS))
    with pytest.raises(
        SimTrap, match=r"t10::Test_multiply_add on tile 0, worker 0, .* line \d+ of codelets.S: .*bank"
    ):
        run(case, tmp_path / "together", objects, together, "assembly")
    apart = with_codelet(case.program, replace(multiply, fields=fields, assembly=PAIRS, apart=(("x", "w"),)))
    result = run(case, tmp_path / "apart", objects, apart, "assembly")
    np.testing.assert_array_equal(result.outputs["y"], case.outputs["y"])


def test_tiles_have_the_memory_of_their_chip(tmp_path: Path, objects: Path) -> None:
    case = ring()
    multiply = next(c for c in case.program.codelets if c.name == "Test_multiply_add")
    fields = tuple(replace(field, align_bytes=8) if field.dtype else field for field in multiply.fields)
    apart = replace(multiply, fields=fields, assembly=PAIRS, apart=(("x", "w"),))
    write_program(with_codelet(case.program, apart), tmp_path, case.weights)
    memory = TileMemory(base=0x10000, interleaved_base=0x50000, end=0xA0000, element_bytes=0x10000)
    result = run_program(tmp_path, case.inputs, vertices="assembly", build_folder=objects, memory=memory)
    np.testing.assert_array_equal(result.outputs["y"], case.outputs["y"])


def test_an_interleaved_operand_lies_where_sixteen_bytes_can_be_loaded(tmp_path: Path, objects: Path) -> None:
    case = ring(4, 12)
    multiply = next(c for c in case.program.codelets if c.name == "Test_multiply_add")
    first = replace(multiply.fields[0], align_bytes=16, is_interleaved=True)
    loads = PAIRS.replace("  shr $m6", "  ld128 $a0:3, $m0, $mzero, 0\n  shr $m6")
    program = with_codelet(
        case.program,
        replace(multiply, fields=(first, *multiply.fields[1:]), assembly=loads, apart=(("x", "w"),)),
    )
    result = run(case, tmp_path, objects, program, "assembly")
    np.testing.assert_array_equal(result.outputs["y"], case.outputs["y"])


def test_the_number_of_tiles_changes_numbers_only(tmp_path: Path, objects: Path) -> None:
    case = ring(23)
    np.testing.assert_array_equal(run(case, tmp_path, objects).outputs["y"], case.outputs["y"])


def test_weights_can_be_replaced_without_compiling(tmp_path: Path, objects: Path) -> None:
    case = ring()
    write_program(case.program, tmp_path, case.weights)
    zeros = {"w": np.zeros((4, 10), np.float32)}
    result = run_program(tmp_path, case.inputs, weights=zeros, build_folder=objects)
    assert not result.outputs["y"].any()


def test_names_of_tensors_may_be_anything(tmp_path: Path, objects: Path) -> None:
    case = reduction()
    name = 'é/"y"\\:0'
    program = replace(case.program, outputs=(replace(case.program.outputs[0], name=name),))
    np.testing.assert_array_equal(run(case, tmp_path, objects, program).outputs[name], case.outputs["y"])


def test_an_output_may_have_the_name_of_an_input(tmp_path: Path, objects: Path) -> None:
    case = reduction()
    name = case.program.inputs[0].name
    program = replace(case.program, outputs=(replace(case.program.outputs[0], name=name),))
    np.testing.assert_array_equal(run(case, tmp_path, objects, program).outputs[name], case.outputs["y"])


def test_constant_parts_of_outputs_come_without_a_variable(tmp_path: Path, objects: Path) -> None:
    case = reduction()
    kept = case.program.outputs[0].pieces[0]
    elements = np.where(kept.elements == 3, -1, kept.elements).astype(np.int32)
    pieces = (replace(kept, elements=elements), HostPiece("", np.array([[3]], np.int32), "2.5"))
    program = replace(case.program, outputs=(HostTensor("y", "f32", (15,), pieces),))
    due = case.outputs["y"].copy()
    due[3] = 2.5
    np.testing.assert_array_equal(run(case, tmp_path, objects, program).outputs["y"], due)


def test_an_input_that_is_missing_or_of_another_shape_is_named(tmp_path: Path, objects: Path) -> None:
    case = ring()
    write_program(case.program, tmp_path, case.weights)
    with pytest.raises(SimTrap, match="input x has no values"):
        run_poplar_host(tmp_path, {}, build_folder=objects)
    with pytest.raises(SimTrap, match="input x has another type or shape"):
        run_poplar_host(tmp_path, {"x": np.zeros((4, 9), np.float32)}, build_folder=objects)


def test_a_copy_that_reads_what_it_writes_stops(tmp_path: Path, objects: Path) -> None:
    case = ring()
    rotate = pattern([(0, (t + 1) % 4, 0, t, 0, 40, 1, 0, 0) for t in range(4)])
    copies = tuple(
        replace(c, sources=(c.target,), pattern=rotate.key) if c.kind == "copy_out" else c
        for c in case.program.copies
    )
    with pytest.raises(SimTrap, match="copy copy_out:mix:1 reads an element that it writes"):
        run(case, tmp_path, objects, replace(case.program, copies=copies))


def test_a_copy_that_writes_an_element_twice_stops(tmp_path: Path, objects: Path) -> None:
    case = ring()
    twice = pattern([(0, t, 0, t // 2, 0, 40, 1, 0, 0) for t in range(4)])
    copies = tuple(replace(c, pattern=twice.key) if c.kind == "shift" else c for c in case.program.copies)
    program = replace(case.program, copies=copies, patterns=(*case.program.patterns, twice))
    with pytest.raises(SimTrap, match="copy shift:mix:1 writes an element twice"):
        run(case, tmp_path, objects, program)


def test_two_vertices_that_write_the_same_words_stop(tmp_path: Path, objects: Path) -> None:
    case = ring()
    sets = tuple(
        replace(s, groups=(*s.groups, replace(s.groups[0], tiles=(2,)))) if s.kind == "fill" else s
        for s in case.program.compute_sets
    )
    with pytest.raises(SimTrap, match=r"Test_fill\.out on tile 2 and .* touch the same words"):
        run(case, tmp_path, objects, replace(case.program, compute_sets=sets))


def test_a_pointer_off_its_alignment_stops(tmp_path: Path, objects: Path) -> None:
    case = ring()
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    program = with_codelet(
        case.program, replace(fill, fields=(Field("out", "out", "f32", 8), *fill.fields[1:]))
    )
    first, *others = [s for s in program.compute_sets if s.kind == "fill"]
    words = (Reference("accumulator:mix", 4), 0, 1)
    moved = replace(first, groups=(replace(first.groups[0], words=words),))
    sets = tuple(moved if s.name == first.name else s for s in (*program.compute_sets, *others))
    with pytest.raises(SimTrap, match=r"Test_fill\.out on tile 0 is not aligned to 8 bytes"):
        run(case, tmp_path, objects, replace(program, compute_sets=sets))


def test_rows_are_aligned_as_they_were_planned(tmp_path: Path, objects: Path) -> None:
    case = ring(4, 12)
    multiply = next(c for c in case.program.codelets if c.name == "Test_multiply_add")
    fields = (replace(multiply.fields[0], align_bytes=16), *multiply.fields[1:])
    program = with_codelet(case.program, replace(multiply, fields=fields))
    # Eight bytes before a multiple of 16, and vertices begin at the third element: at a multiple of 16.
    moved = tuple(replace(v, address_bytes=v.address_bytes - 8) for v in program.variables)
    words = tuple(
        Reference(w.variable, 8) if isinstance(w, Reference) else w
        for w in program.compute_sets[0].groups[0].words
    )
    groups = (replace(program.compute_sets[0].groups[0], words=(*words[:-1], 10)),)
    sets = tuple(replace(s, groups=groups) if s.kind == "sub_task" else s for s in program.compute_sets)
    result = run(case, tmp_path, objects, replace(program, variables=moved, compute_sets=sets))
    np.testing.assert_array_equal(result.outputs["y"][:, 2:], case.outputs["y"][:, 2:])
    assert not result.outputs["y"][:, :2].any()


def test_a_vertex_that_writes_beside_its_variable_stops(tmp_path: Path, objects: Path) -> None:
    case = ring()
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    wild = replace(fill, cpp_reference="for (unsigned i = worker; i < n + 1; i += 6) out[i] = value;")
    with pytest.raises(SimTrap, match="fill:mix: a vertex on tile 0 wrote beside what it is connected to"):
        run(case, tmp_path, objects, with_codelet(case.program, wild))


def test_a_folder_without_a_program_and_code_that_does_not_compile_are_clear_errors(
    tmp_path: Path, objects: Path
) -> None:
    with pytest.raises(
        InputError, match=r"holds no emitted program: program.cpp, t10_runtime.cpp, codelets.cpp, tables.bin"
    ):
        build(tmp_path, objects)
    case = ring()
    fill = next(c for c in case.program.codelets if c.name == "Test_fill")
    program = with_codelet(case.program, replace(fill, cpp_reference="undefined_name = 1;"))
    with pytest.raises(
        InputError, match=r"compiling codelets.cpp with g\+\+ failed: .*/codelets.cpp:\d+:\d+: error: "
    ) as caught:
        run(case, tmp_path / "p", objects, program)
    assert any("undefined_name" in line for line in caught.value.details)


def test_without_a_compiler_there_is_a_hint(
    tmp_path: Path, objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ring()
    write_program(case.program, tmp_path, case.weights)

    def found_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", found_nothing)
    with pytest.raises(InputError, match=r"g\+\+ is not on the path \(install a C\+\+17 compiler"):
        build(tmp_path, objects)


NARROW = """\
#include <poplar/HalfFloat.hpp>
extern "C" void narrow(const float *from, unsigned short *to, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    const poplar::half made(from[i]);
    std::memcpy(&to[i], &made, sizeof made);
  }
}
"""


def test_half_clips_what_is_finite_and_rounds_to_nearest_even(tmp_path: Path) -> None:
    (tmp_path / "narrow.cpp").write_text(NARROW)
    include = Path(t10.sim.poplar_host.__file__).parent / "include"
    library = tmp_path / "narrow.so"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{include}", str(tmp_path / "narrow.cpp"), "-o"]
    subprocess.run([*command, str(library)], check=True)
    rng = np.random.default_rng(0)
    edges = [0, 65504, 65519.996, 65520, 1e5, 3e38, np.inf, 2**-24, 2**-25, 2**-25 * 1.0001, 6.1e-5]
    of_halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    random = rng.integers(0, 0x7F800001, 100_000, np.uint32).view(np.float32)
    values = np.concatenate([np.array(edges, np.float32), of_halves, random])
    values = np.concatenate([values, -values])
    found = np.zeros(len(values), np.uint16)
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (values, found))
    ctypes.CDLL(str(library)).narrow(*pointers, ctypes.c_uint(len(values)))
    np.testing.assert_array_equal(found, half_array(values).view(np.uint16))


def test_vertex_classes_are_found_with_their_fields() -> None:
    text = """\
namespace t10 {
// A
class [[poplar::constraint("elem(*a) != elem(*b)")]] A : public MultiVertex {
public:
  static const bool isExternalCodelet = T10_IN_ASSEMBLY;
  Input<Vector<half, VectorLayout::ONE_PTR, 8, true>> a;
  Output<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> b;
  unsigned n;
  float f;

  bool compute(unsigned worker) {
    unsigned local;
  int odd;
    return true;
  }
};

class B : public SupervisorIf<T10_IN_ASSEMBLY> {
public:
  int k;

#if T10_IN_ASSEMBLY
  __attribute__((target("supervisor"))) bool compute() { return true; }
#else
  bool compute(unsigned worker) {
    return worker > 0.5f;
  }
#endif
};
} // namespace t10
"""
    a, b = vertex_classes(text)
    assert (a.name, a.fields, a.apart, a.is_supervisor) == (
        "t10::A",
        ("a", "b", "n", "f"),
        (("a", "b"),),
        False,
    )
    assert (b.name, b.fields, b.apart, b.is_supervisor) == ("t10::B", ("k",), (), True)
    assert 'poplar_host::field("n", &t10::A::n)' in registry_text(text)


@pytest.mark.parametrize("flags", [("-D__IPU__",), ("-D__IPU__", "-DT10_NO_ASSEMBLY"), ()])
def test_vertex_classes_compile_for_all_that_popc_makes_of_them(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    # A supervisor of g++'s machine is any function: no attribute of its own says that there is none.
    task = Task(
        (1, 512), (TaskOperand("f32", (512, 1)),), TaskOperand("f32", (1, 0)), "sum", identity(), (1,)
    )
    pieces = compile_task(task).codelet
    assert pieces.kind == "supervisor"
    case = ring()
    program = replace(case.program, codelets=(*case.program.codelets, pieces))
    write_program(program, tmp_path, case.weights)
    (tmp_path / "classes.cpp").write_text(
        '#include "codelets.cpp"\n#include <type_traits>\n'
        f"constexpr bool is_supervisor = std::is_base_of_v<poplar::SupervisorVertex, t10::{pieces.name}>;\n"
        f"static_assert(is_supervisor == {str(flags == ('-D__IPU__',)).lower()});\n"
        f"static_assert(t10::{pieces.name}::isExternalCodelet == is_supervisor);\n"
    )
    include = Path(t10.sim.poplar_host.__file__).parent / "include"
    command = ["g++", "-std=c++17", "-fsyntax-only", "-DT10_WORKERS=6", *flags, "-Dtarget(x)=unused"]
    command += [f"-I{include}", "-iquote", str(tmp_path), str(tmp_path / "classes.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("base", "compute", "message"),
    [
        ("SupervisorVertex", "bool compute() {", r"compute lacks __attribute__\(\(target\(\"supervisor"),
        ("SupervisorIf<T10_IN_ASSEMBLY>", "bool compute(unsigned) {", r"compute lacks __attribute__"),
        (
            "SupervisorVertex",
            '__attribute__((target("supervisor"))) bool compute() { out[0] = 2.5 * x;',
            r"vertex class A: compute runs on the supervisor, .* names 2\.5",
        ),
        ("SupervisorVertex", '__attribute__((target("supervisor"))) bool compute() { half y;', "names half"),
        ("SupervisorVertex", '__attribute__((target("supervisor"))) bool compute() {', "a host has no super"),
        (
            "MultiVertex",
            '__attribute__((target("supervisor"))) bool compute(unsigned) {',
            "is no supervisor's but has",
        ),
        ("Codelet", "bool compute() {", "derives from Codelet"),
        ("Vertex", "bool calculate() {", "has no method compute"),
    ],
)
def test_vertex_classes_that_popc_would_refuse_are_refused(base: str, compute: str, message: str) -> None:
    text = f"class A : public {base} {{\npublic:\n  int n;\n\n  {compute}\n    return true;\n  }}\n}};\n"
    with pytest.raises(InputError, match=message):
        vertex_classes(text)
