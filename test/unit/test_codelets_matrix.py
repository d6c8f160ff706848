"""Products on the matrix engine: random shapes, layouts and places of operands, executed and compared with numpy."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.codelet_runs import run_task

from t10.codelets.compile import compile_task
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.matrix.dots import dots
from t10.codelets.matrix.engine import ENGINES, Engine, engine_for
from t10.codelets.matrix.family import MatrixFamily, compiled, ways
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream
from t10.codelets.reduce.family import ReduceFamily
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

TYPES = tuple((engine.in_dtype, engine.out_dtype) for engine in ENGINES)
EVERYWHERE_APART = frozenset({(0, 1), (0, 2), (1, 2)})
FAMILY = MatrixFamily()
PEAK: tuple[tuple[bool, Access], ...] = ((False, "pair"), (False, "cross"), (True, "triple"))
"""Row loops that issue a step of the engine in every bundle: whether they add, and what shares a bundle."""


def product(in_dtype: str, out_dtype: str) -> ScalarFunction:
    casts = () if in_dtype == out_dtype else tuple(ScalarOp("arith.extf", (i,), out_dtype) for i in (0, 1))
    factors = (0, 1) if in_dtype == out_dtype else (2, 3)
    return ScalarFunction(2, (*casts, ScalarOp("arith.mulf", factors, out_dtype)), 2 + len(casts))


def matmul(m: int, n: int, k: int, in_dtype: str, out_dtype: str, *, is_apart: bool = True) -> Task:
    """C[m, n] = A[m, k] B[n, k], interleaved."""
    operands = [
        TaskOperand(dtype, strides, 16, True)
        for dtype, strides in ((in_dtype, (k, 0, 1)), (in_dtype, (0, k, 1)), (out_dtype, (n, 1, 0)))
    ]
    apart = EVERYWHERE_APART if is_apart else frozenset[tuple[int, int]]()
    body = product(in_dtype, out_dtype)
    return Task((m, n, k), (operands[0], operands[1]), operands[2], "sum", body, (2,), apart=apart)


def convolution(
    h: int, w: int, f: int, kh: int, kw: int, c: int, types: tuple[str, str], *, stride: int, dilation: int, groups: int
) -> Task:  # fmt: skip
    """O[g, h, w, f] = sum X[stride h + dilation kh, stride w + dilation kw, g, c] W[g, f, kh, kw, c]."""
    width = (w - 1) * stride + (kw - 1) * dilation + 1
    channels, features = c * groups, f * groups
    line = width * channels
    x = (c, stride * line, stride * channels, 0, dilation * line, dilation * channels, 1)
    weights = (f * kh * kw * c, 0, 0, kh * kw * c, kw * c, c, 1)
    out = (f, w * features, features, 1, 0, 0, 0)
    body = product(*types)
    inputs = (TaskOperand(types[0], x, 16, True), TaskOperand(types[0], weights, 16, True))
    extents = (groups, h, w, f, kh, kw, c)
    output = TaskOperand(types[1], out, 16, True)
    return Task(extents, inputs, output, "sum", body, (4, 5, 6), apart=EVERYWHERE_APART)


def placed(task: Task, rng: Random) -> Task:
    """Return the task with operands in other places: less aligned, not interleaved, not apart, and begun or not."""
    operands = [
        replace(o, is_interleaved=rng.random() < 0.5, align_bytes=rng.choice((16, 16, 8)))
        for o in task.operands
    ]
    apart = frozenset(pair for pair in EVERYWHERE_APART if rng.random() < 0.5)
    initial = rng.random() < 0.5
    return replace(task, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart, initial=initial)


def check(task: Task, compiled: Compiled | None, seed: int = 0) -> int:
    assert compiled is not None
    run = run_task(task, compiled, seed=seed)
    is_half = task.output.dtype == "f16"
    run.check(rtol=2e-2 if is_half else 1e-4, atol=1e-1 if is_half else 1e-3)
    return run.cycles


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("seed", range(8))
def test_products_of_aligned_lines(types: tuple[str, str], seed: int) -> None:
    rng = Random(seed)
    engine = engine_for(*types)
    assert engine is not None
    task = matmul(
        rng.randint(1, 40),
        engine.store_columns * rng.randint(1, 20),
        engine.word_elements * rng.randint(1, 20),
        *types,
    )
    task = placed(task, rng)
    compiled = FAMILY.compile(task)
    if compiled is not None:
        check(task, compiled, seed)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("seed", range(10))
def test_convolutions(types: tuple[str, str], seed: int) -> None:
    rng = Random(seed)
    task = convolution(
        rng.choice((1, 3, 5)), rng.choice((1, 4, 9)), rng.choice((5, 8, 12, 16, 24)), rng.choice((1, 3)),
        rng.choice((1, 2, 3)), rng.choice((3, 4, 7, 8, 16, 24)), types,
        stride=rng.choice((1, 2)), dilation=rng.choice((1, 2)), groups=rng.choice((1, 2)),
    )  # fmt: skip
    task = placed(task, rng)
    compiled = FAMILY.compile(task)
    if compiled is not None:
        check(task, compiled, seed)


@pytest.mark.parametrize("types", [("f16", "f32"), ("f32", "f32")])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(17, 9, 5), (30, 33, 17), (9, 21, 63), (16, 7, 79), (25, 14, 66), (40, 3, 31), (12, 17, 1)],
)
def test_lines_that_begin_anywhere(types: tuple[str, str], m: int, n: int, k: int) -> None:
    task = matmul(m, n, k, *types)
    size = task.inputs[0].align_bytes if types[0] == "f32" else 2
    inputs = tuple(replace(operand, align_bytes=min(size, 4)) for operand in task.inputs)
    for one in (
        task,
        replace(task, inputs=inputs, output=replace(task.output, align_bytes=4), initial=False),
    ):
        check(one, FAMILY.compile(one))


@pytest.mark.parametrize("n_inner", [5, 16, 33])
def test_no_more_is_demanded_of_inputs_than_their_places_give(n_inner: int) -> None:
    """A block of weights of ResNet-18 began in the middle of a word; its codelet demanded a whole one."""
    task = matmul(40, 16, n_inner, "f16", "f32")
    task = replace(task, inputs=tuple(replace(operand, align_bytes=2) for operand in task.inputs))
    compiled = FAMILY.compile(task)
    assert compiled is not None
    demands = [field.align_bytes for field in compiled.codelet.fields if field.name in ("x", "w")]
    assert demands == [2, 2]


@pytest.mark.parametrize("types", TYPES)
def test_transposed_inputs(types: tuple[str, str]) -> None:
    m, n, k = 24, 32, 40
    task = matmul(m, n, k, *types)
    a, b = task.inputs
    for inputs in ((replace(a, strides=(1, 0, m)), b), (a, replace(b, strides=(0, 1, n))),
                   (replace(a, strides=(1, 0, m)), replace(b, strides=(0, 1, n)))):  # fmt: skip
        one = replace(task, inputs=inputs)
        check(one, FAMILY.compile(one))


def test_three_channels_are_filled_up_to_words() -> None:
    # The first layer of an image network: 7 x 7 windows of 3 channels, two rows and columns apart.
    task = convolution(4, 9, 16, 7, 7, 3, ("f16", "f32"), stride=2, dilation=1, groups=1)
    check(task, FAMILY.compile(task))


def test_both_inputs_are_filled_up_where_a_position_is_no_whole_word() -> None:
    # Two positions of 7 channels are 14 elements, whole words; one by one they are not.
    task = convolution(3, 7, 16, 1, 2, 7, ("f32", "f32"), stride=1, dilation=1, groups=1)
    task = replace(task, output=replace(task.output, align_bytes=4), initial=False)
    check(task, FAMILY.compile(task))


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("rows", range(1, 20))
def test_any_number_of_rows(types: tuple[str, str], rows: int) -> None:
    task = replace(matmul(rows, 32, 48, *types), initial=False)
    compiled = FAMILY.compile(task)
    if compiled is not None:
        check(task, compiled)


@pytest.mark.parametrize("types", TYPES)
def test_rows_further_apart_than_a_stride_reaches(types: tuple[str, str]) -> None:
    # The jump from one row of 520 words to the next does not fit ten bits.
    engine = engine_for(*types)
    assert engine is not None
    task = matmul(30, 16, 520 * engine.word_elements, *types)
    compiled = FAMILY.compile(task)
    assert compiled is not None
    # Sums of 2,080 products that are kept in f16 between blocks are off by some of its roundings.
    run_task(task, compiled, seed=1).check(rtol=2e-2, atol=0.5)


def test_infinite_weights_stay_in_their_column() -> None:
    task = matmul(13, 16, 24, "f16", "f32")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(13 * 24), rng.standard_normal((16, 24))
    b[3] = np.inf
    compiled = FAMILY.compile(task)
    assert compiled is not None
    run = run_task(task, compiled, inputs=(np.abs(a), b.reshape(-1)))
    run.check(rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("terms", [24, 32])
def test_an_infinite_input_is_no_number_in_its_row_and_stays_there(terms: int) -> None:
    # The last block of 24 terms begins at the ninth: those from there to the 16th are multiplied by 0 in it.
    task = matmul(13, 16, terms, "f16", "f32")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((13, terms)), np.abs(rng.standard_normal((16, terms)))
    a[5, 10] = np.inf
    compiled = FAMILY.compile(task)
    assert compiled is not None
    found = run_task(task, compiled, inputs=(a.reshape(-1), b.reshape(-1))).found.reshape(13, 16)
    assert not np.isfinite(found[5]).any()
    assert np.isnan(found[5]).all() == (terms == 24)
    assert np.isfinite(np.delete(found, 5, axis=0)).all()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_inner_loops_keep_the_engine_busy(engine: Engine) -> None:
    # One bundle per step of the engine where input and output lie apart and the output is interleaved: its peak.
    kit = Kit(4, engine.phases)
    registers = Registers("$m6", "$m10", "$m4", "$m1", "$m7", "$m4:5", "$m3", "$m11")
    bundles = [Stream(engine, kit, adds, access, registers).row_bundles for adds, access in PEAK]
    assert bundles == [engine.phases] * 3


@pytest.mark.parametrize(
    ("types", "shape", "most"),
    [(TYPES[0], (64, 64, 64), 14_100), (TYPES[0], (64, 64, 128), 27_900), (TYPES[0], (24, 128, 32), 8_300),
     (TYPES[1], (64, 64, 64), 7_866), (TYPES[1], (64, 64, 128), 15_667), (TYPES[1], (24, 128, 32), 4_600),
     (TYPES[2], (64, 64, 64), 25_900), (TYPES[2], (64, 64, 128), 51_017), (TYPES[2], (24, 128, 32), 14_900)],
)  # fmt: skip
def test_blocks_take_few_cycles(types: tuple[str, str], shape: tuple[int, int, int], most: int) -> None:
    """Most within 10 % of poplibs' estimates, which count weights that lie block by block: docs/matrix-codelets.md."""
    task = matmul(*shape, *types)
    assert check(task, FAMILY.compile(task)) <= most


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("align", [8, 16])
def test_wide_starts_need_an_aligned_output(align: int, types: tuple[str, str]) -> None:
    """Partials are loaded 16 bytes at a time where the output is known to allow it, and only there."""
    for m, n, k in ((18, 16, 32), (19, 48, 64), (40, 32, 16), (25, 80, 80)):
        for initial in (True, False):
            task = replace(matmul(m, n, k, *types), initial=initial)
            task = replace(task, output=replace(task.output, align_bytes=align))
            compiled = FAMILY.compile(task)
            check(task, compiled)
            assert compiled is not None
            is_wide = "wide" in compiled.codelet.name
            assert is_wide == (
                align == 16 and "add_" in compiled.codelet.name and "few" not in compiled.codelet.name
            )


@pytest.mark.parametrize("types", TYPES)
def test_the_way_taken_is_the_least_counted(types: tuple[str, str]) -> None:
    for m, n, k in ((1, 16, 64), (3, 40, 30), (8, 8, 8), (16, 64, 16), (12, 24, 48), (7, 5, 90)):
        task = matmul(m, n, k, *types)
        every = [compiled(way) for way in ways(task)]
        every += [*dots(task), *(way for way in [ReduceFamily().compile(task)] if way is not None)]
        taken = compile_task(task)
        assert cycles_where_it_lies(task, taken) == min(cycles_where_it_lies(task, way) for way in every)
        assert cycles_where_it_lies(task, taken) == run_task(task, taken).cycles


def test_one_text_for_all_sizes() -> None:
    first, second = (
        FAMILY.compile(matmul(m, n, k, "f16", "f32")) for m, n, k in ((64, 64, 128), (96, 32, 256))
    )
    assert first is not None
    assert second is not None
    assert first.codelet == second.codelet
    assert first.words != second.words


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("n", [24, 26, 30, 62, 100, 148])
@pytest.mark.parametrize("depth", [16, 48, 160])
def test_one_column_goes_two_rows_at_a_time(n: int, depth: int, initial: bool) -> None:
    task = replace(matmul(1, n, depth, "f16", "f32"), initial=initial)
    found = [compiled(way) for way in ways(task) if way.structure.kit.is_twin]
    assert len(found) == 1
    taken = FAMILY.compile(task)
    assert taken is None or cycles_where_it_lies(task, taken) <= check(task, found[0], seed=n)


@pytest.mark.parametrize("n", [22, 23, 25, 63])
def test_odd_and_few_rows_of_one_column_go_one_at_a_time(n: int) -> None:
    assert not [way for way in ways(matmul(1, n, 64, "f16", "f32")) if way.structure.kit.is_twin]


def test_products_with_a_vector_stream_their_weights() -> None:
    task = matmul(1, 452, 160, "f16", "f32")
    taken = FAMILY.compile(task)
    assert taken is not None
    # 3.3 weights a cycle.
    assert check(task, taken) <= 21_700


def test_vectors_are_left_to_the_vector_unit() -> None:
    taken = FAMILY.compile(matmul(1, 16, 256, "f16", "f32"))
    assert taken is not None
    assert "dots" in taken.codelet.name
    assert FAMILY.compile(matmul(1, 16, 256, "f32", "f32")) is None


REFERENCE_MAIN = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <type_traits>
using half = _Float16;
template <typename To, typename From> To *view(From *p) {{
  return reinterpret_cast<To *>(const_cast<std::remove_const_t<From> *>(p));
}}
struct Vertex {{
  {fields}
  bool compute() {{
{cpp_reference}
    return true;
  }}
}};
int main() {{
  static {in_type} x[{x_size}], w[{w_size}];
  static {out_type} out[{out_size}];
  static unsigned char scratch[1 << 16];
  for (int i = 0; i < {x_size}; ++i) x[i] = {in_type}(i % 7 - 3);
  for (int i = 0; i < {w_size}; ++i) w[i] = {in_type}(i % 5 - 2);
  Vertex v{{{values}}};
  v.compute();
  for (int i = 0; i < {out_size}; ++i) std::printf("%g\\n", double(out[i]));
}}
"""


@pytest.mark.parametrize(
    "task",
    [
        matmul(17, 20, 24, "f16", "f32"),
        matmul(9, 21, 35, "f16", "f32"),
        matmul(13, 18, 15, "f32", "f32"),
        # Together, inputs are no dot products.
        replace(matmul(1, 128, 96, "f16", "f32"), apart=EVERYWHERE_APART - {(0, 1)}),
        convolution(3, 5, 8, 3, 3, 3, ("f16", "f32"), stride=2, dilation=1, groups=1),
    ],
    ids=("aligned", "copied", "floats", "twin", "convolution"),
)
def test_cpp_references_compute_the_same(task: Task, tmp_path: Path) -> None:
    compiled = FAMILY.compile(task)
    assert compiled is not None
    cpp = {"f16": "half", "f32": "float"}
    sizes = [
        1 + sum((e - 1) * s for e, s in zip(task.extents, o.strides, strict=True)) for o in task.operands
    ]
    kinds = {"in": f"const {cpp[task.inputs[0].dtype]} *", "inout": f"{cpp[task.output.dtype]} *",
             "scratch": "unsigned char *", "i32": "int "}  # fmt: skip
    fields = compiled.codelet.fields
    which = compiled.words[0]
    flats = [np.array([i % 7 - 3 for i in range(sizes[0])]), np.array([i % 5 - 2 for i in range(sizes[1])])]
    is_swapped = getattr(which, "operand", 0) == 1
    if is_swapped:
        flats = [
            np.array([i % 5 - 2 for i in range(sizes[0])]),
            np.array([i % 7 - 3 for i in range(sizes[1])]),
        ]
    pointers = {"x": "x", "w": "w", "out": "out", "scratch": "scratch"}
    text = REFERENCE_MAIN.format(
        fields="\n  ".join(f"{kinds[field.kind]}{field.name};" for field in fields),
        cpp_reference=compiled.codelet.cpp_reference,
        in_type=cpp[task.inputs[0].dtype],
        out_type=cpp[task.output.dtype],
        x_size=sizes[1] if is_swapped else sizes[0],
        w_size=sizes[0] if is_swapped else sizes[1],
        out_size=sizes[2],
        values=", ".join(
            pointers.get(f.name, str(word)) for f, word in zip(fields, compiled.words, strict=True)
        ),
    )
    source = tmp_path / "reference.cpp"
    source.write_text(text, encoding="utf-8")
    subprocess.run(["g++", "-std=c++20", "-O0", "-o", tmp_path / "reference", source], check=True)
    printed = subprocess.run([tmp_path / "reference"], check=True, capture_output=True, text=True).stdout
    run = run_task(task, compiled, inputs=flats)
    run.check(rtol=1e-6)
    np.testing.assert_allclose(np.array(printed.split(), np.float64), run.found.reshape(-1), rtol=1e-6)
