"""What PyTorch's exporters write, in ONNX's text: imported, it computes what ONNX Runtime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from support.linalg_numpy import run_module

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
RANDOM = np.random.default_rng(11)


def model(text: str, opset: int = 18) -> Any:
    """Return the model of a graph in ONNX's text."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n{text}')


def agree(of: Any, *values: Array) -> None:
    """Compare the imported and fused model, interpreted, with ONNX Runtime; `values` are in the order of its inputs."""
    session: Any = onnxruntime.InferenceSession(of.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {value.name: array for value, array in zip(session.get_inputs(), values, strict=True)}
    names: list[str] = [value.name for value in session.get_outputs()]
    expected: list[Array] = session.run(names, inputs)
    found = computed(of, inputs)
    for name, reference in zip(names, expected, strict=True):
        np.testing.assert_allclose(found[name], reference, rtol=1e-5, atol=1e-6, err_msg=name)


def computed(of: Any, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return what the imported and fused model, interpreted, makes of inputs."""
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return run_module(imported.module, {**inputs, **imported.weights})


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_loop_whose_condition_is_a_constant_outside(opset: int) -> None:
    agree(
        model(
            """g (float[3] x) => (float[n] y) {
                go = Constant <value: tensor = bool {1}> ()
                count = Constant <value: tensor = int64 {4}> ()
                y = Loop (count, go, x) <body: graph = step (int64 i, bool cond, float[3] before)
                        => (bool on, float[n] after) {
                    place = Cast <to: int = 1> (i)
                    wave = Tanh (before)
                    after = Add (wave, place)
                    on = Identity (go)
                }>
            }""",
            opset,
        ),
        floats(3),
    )


@pytest.mark.parametrize("opset", [11, 18])
def test_loop_that_carries_on_and_collects_the_same_value(opset: int) -> None:
    agree(
        model(
            """g (float[3] x) => (float[n] last, float[k, n] all) {
                go = Constant <value: tensor = bool {1}> ()
                count = Constant <value: tensor = int64 {3}> ()
                last, all = Loop (count, go, x) <body: graph = step (int64 i, bool cond, float[3] before)
                        => (bool on, float[n] after, float[n] after) {
                    after = Tanh (before)
                    on = Identity (cond)
                }>
            }""",
            opset,
        ),
        floats(3),
    )


@pytest.mark.parametrize(
    ("count", "makes"),
    [
        ("count", "on = Less (i, three)"),
        ("", "on = Less (i, three)"),
        ("count", "on = Greater (three, count)"),
        ("count", "most = Sub (count, i)  met = Equal (most, three)  on = Not (met)"),
        ("", "more = Less (next, count)  on = And (more, cond)"),
    ],
    ids=["number", "no-count", "constants", "computed", "counter"],
)
def test_loop_that_ends_itself_by_what_no_data_decide(count: str, makes: str) -> None:
    """What a step makes of a carried counter counts, too."""
    agree(
        model(
            f"""g (float[3] x) => (float[n] last, float[k, n] all) {{
                go = Constant <value: tensor = bool {{1}}> ()
                count = Constant <value: tensor = int64 {{7}}> ()
                three = Constant <value: tensor = int64 {{3}}> ()
                last, end, all = Loop ({count}, go, x, three) <
                    body: graph = step (int64 i, bool cond, float[3] before, int64 counter)
                            => (bool on, float[n] after, int64 next, float[n] after) {{
                        after = Tanh (before)
                        one = Constant <value: tensor = int64 {{1}}> ()
                        next = Add (counter, one)
                        {makes}
                    }}
                >
            }}""",
            18,
        ),
        floats(3),
    )


def test_loop_that_data_end_is_refused() -> None:
    of = model(
        """g (float x) => (float last) {
            go = Constant <value: tensor = bool {1}> ()
            last = Loop (, go, x) <
                body: graph = step (int64 i, bool cond, float before) => (bool on, float after) {
                    after = Tanh (before)
                    on = Less (after, x)
                }
            >
        }""",
        18,
    )
    with pytest.raises(UnsupportedOpError, match="ends when its body says so"):
        import_proto(of, source="m")


@pytest.mark.parametrize("opset", [13, 18])
def test_list_that_a_loop_collects_is_stacked(opset: int) -> None:
    agree(
        model(
            """g (float[4, 2] x) => (float[a, b] y, float[c] last) {
                go = Constant <value: tensor = bool {1}> ()
                count = Constant <value: tensor = int64 {4}> ()
                zero = Constant <value: tensor = int64 {0}> ()
                start = Gather <axis: int = 0> (x, zero)
                none = SequenceEmpty <dtype: int = 1> ()
                last, rows = Loop (count, go, start, none) <
                    body: graph = step (int64 i, bool cond, float[2] before, seq(float[?]) list)
                            => (bool on, float[c] after, seq(float[?]) longer) {
                        row = Gather <axis: int = 0> (x, i)
                        sum = Add (row, before)
                        after = Tanh (sum)
                        longer = SequenceInsert (list, after)
                        on = Identity (go)
                    }
                >
                y = ConcatFromSequence <axis: int = 0, new_axis: int = 1> (rows)
            }""",
            opset,
        ),
        floats(4, 2),
    )


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize(
    "split",
    ["SplitToSequence <axis: int = 1> (x, sizes)", "SplitToSequence <axis: int = 1, keepdims: int = 0> (x)"],
)
def test_tensors_of_a_split_list(split: str, opset: int) -> None:
    agree(
        model(
            f"""g (float[2, 5] x) => (float first, float last, float[] joined, int64 n) {{
                sizes = Constant <value: tensor = int64[2] {{2, 3}}> ()
                zero = Constant <value: tensor = int64 {{0}}> ()
                end = Constant <value: tensor = int64 {{-1}}> ()
                parts = {split}
                head = SequenceAt (parts, zero)
                tail = SequenceAt (parts, end)
                first = ReduceSum <keepdims: int = 0> (head)
                last = ReduceSum <keepdims: int = 0> (tail)
                turned = SequenceInsert (parts, tail, zero)
                shorter = SequenceErase (turned)
                pair = SequenceConstruct (head, head)
                joined = ConcatFromSequence <axis: int = 0> (pair)
                n = SequenceLength (shorter)
            }}""",
            opset,
        ),
        floats(2, 5),
    )


def test_split_into_pieces_of_one_size_leaves_a_smaller_last_one() -> None:
    agree(
        model(
            """g (float[5, 2] x) => (float[n, 2] y) {
                size = Constant <value: tensor = int64 {2}> ()
                last = Constant <value: tensor = int64 {2}> ()
                parts = SplitToSequence <axis: int = 0> (x, size)
                y = SequenceAt (parts, last)
            }"""
        ),
        floats(5, 2),
    )


def test_list_read_at_a_computed_place_is_refused_by_name() -> None:
    of = model(
        """g (float[4, 2] x, int64 i) => (float[1, 2] y, float[1, 2] z) {
            one = Constant <value: tensor = int64 {1}> ()
            size = Constant <value: tensor = int64 {1}> ()
            parts = SplitToSequence <axis: int = 0> (x, size)
            y = SequenceAt (parts, i)
            z = SequenceAt (parts, one)
        }"""
    )
    with pytest.raises(UnsupportedOpError, match="SequenceAt needs constants for its position"):
        import_proto(of, source="m")


@pytest.mark.parametrize("pads", ["0, -1, 0, 1", "0, -1, 0, -2", "1, 2, -1, -1", "-1, -1, 0, 0"])
def test_padding_by_negative_counts_cuts(pads: str) -> None:
    agree(
        model(
            f"""g (float[4, 5] x) => (float[a, b] y, float[a, b] z) {{
                pads = Constant <value: tensor = int64[4] {{{pads}}}> ()
                filler = Constant <value: tensor = float {{1.5}}> ()
                y = Pad (x, pads)
                z = Pad (x, pads, filler)
            }}"""
        ),
        floats(4, 5),
    )


def test_axis_of_a_running_sum_may_be_a_list_of_one() -> None:
    agree(
        model(
            """g (float[4, 3] x) => (float[4, 3] y, int64[5] z) {
                axis = Constant <value: tensor = int64[1] {0}> ()
                extent = Constant <value: tensor = int64[1] {5}> ()
                ones = ConstantOfShape <value: tensor = int64[1] {1}> (extent)
                y = CumSum <exclusive: int = 1> (x, axis)
                z = CumSum (ones, axis)
            }"""
        ),
        floats(4, 3),
    )


@pytest.mark.parametrize(
    ("opset", "operator"),
    [(9, "Upsample"), (10, "Resize"), (7, "Upsample")],
    ids=["upsample-9", "resize-10", "upsample-7"],
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["1, 1, 1.4, 1.5", "1, 1, 2, 3", "1, 1, 0.6, 0.5"])
def test_old_resizing_reads_without_half_pixels(opset: int, operator: str, mode: str, scales: str) -> None:
    if operator == "Upsample" and "0." in scales:
        scales = scales.replace("0.6", "1.2").replace("0.5", "1.7")
    if opset == 7:
        text = f'y = Upsample <mode: string = "{mode}", scales: floats = [{scales}]> (x)'
    else:
        text = f"""scales = Constant <value: tensor = float[4] {{{scales}}}> ()
            y = {operator} <mode: string = "{mode}"> (x, scales)"""
    factors = np.array(scales.split(","), np.float32)
    shape = ", ".join(str(int(extent)) for extent in np.floor(np.array([1, 2, 5, 6], np.float32) * factors))
    agree(model(f"g (float[1, 2, 5, 6] x) => (float[{shape}] y) {{ {text} }}", opset), floats(1, 2, 5, 6))


@pytest.mark.parametrize("opset", [7, 9, 10])
def test_old_resizing_inside_a_network_reads_without_half_pixels(opset: int) -> None:
    """ONNX's converter renames every result that is not an output of the model."""
    scales = "scales = Constant <value: tensor = float[4] {1, 1, 2, 3}> ()"
    near, far = (
        f'Upsample <mode: string = "{mode}", scales: floats = [1.0, 1.0, 2.0, 3.0]> ('
        if opset == 7
        else f'{"Upsample" if opset == 9 else "Resize"} <mode: string = "{mode}"> ('
        for mode in ("nearest", "linear")
    )
    end = ")" if opset == 7 else ", scales)"
    text = f"""g (float[1, 2, 3, 4] x) => (float[1, 2, 12, 36] y) {{
        {"" if opset == 7 else scales}
        a = {far}x{end}
        b = Sigmoid (a)
        c = {near}b{end}
        y = Neg (c)
    }}"""
    agree(model(text, opset), floats(1, 2, 3, 4))


@pytest.mark.parametrize(
    ("opset", "mode"),
    [(opset, mode) for opset in (10, 11, 12) for mode in ("nearest", "linear", "cubic")[: opset - 8]],
)
def test_resizing_that_does_not_say_how_it_reads(opset: int, mode: str) -> None:
    """With half pixels from opset 11 on. Opset 10 has no cubic."""
    given = "x, scales" if opset == 10 else "x, roi, scales"
    text = f"""g (float[1, 1, 1, 4] x) => (float[1, 1, 1, 8] y) {{
        scales = Constant <value: tensor = float[4] {{1, 1, 1, 2}}> ()
        roi = Constant <value: tensor = float[0] {{}}> ()
        a = Resize <mode: string = "{mode}"> ({given})
        y = Neg (a)
    }}"""
    agree(model(text, opset), floats(1, 1, 1, 4))


def test_old_operators_in_branches_are_told_apart() -> None:
    """Both have the same names for other scales and types."""
    branch = """{name} = branch () => (float[a, b, c, d] out) {{
        scales = Constant <value: tensor = float[4] {{1, 1, {scale}, 1}}> ()
        wide = Resize <mode: string = "nearest"> (x, scales)
        clipped = Clip <min: float = -0.5> (wide)
        out = Neg (clipped)
    }}"""
    first, second = (branch.format(name=n, scale=s) for n, s in (("then_branch", 2), ("else_branch", 0.5)))
    text = f"""g (float[1, 1, 4, 2] x) => (float[a, b, c, d] y, float16[3] z) {{
        yes = Constant <value: tensor = bool {{{{yes}}}}> ()
        y = If (yes) <{first}, {second}>
        half = Cast <to: int = 10> (h)
        z = Clip <max: float = 0.25> (half)
    }}""".replace("x) =>", "x, float[3] h) =>")
    for yes in (0, 1):
        x, h = floats(1, 1, 4, 2), floats(3)
        found = computed(model(text.replace("{yes}", str(yes)), 10), {"x": x, "h": h})
        read = x[:, :, [0, 0, 1, 1, 2, 2, 3, 3]] if yes else x[:, :, [0, 2]]
        assert np.array_equal(found["y"], -np.maximum(read, np.float32(-0.5)))
        assert np.array_equal(found["z"], np.minimum(h.astype(np.float16), np.float16(0.25)))


@pytest.mark.parametrize("kind", ["float16", "double", "float"])
@pytest.mark.parametrize("opset", [7, 10])
def test_old_bounds_and_padding_have_the_type_of_what_they_are_for(opset: int, kind: str) -> None:
    text = f"""g ({kind}[2, 3] x) => ({kind}[4, 5] y) {{
        a = Clip <min: float = -0.5, max: float = 1.5> (x)
        b = Neg (a)
        c = Clip <max: float = 0.25> (b)
        y = Pad <pads: ints = [1, 1, 1, 1], value: float = 2.0> (c)
    }}"""
    x = floats(2, 3).astype({"float16": np.float16, "double": np.float64}.get(kind, np.float32))
    found = computed(model(text, opset), {"x": x})["y"]
    inside = np.minimum(-np.clip(x, -0.5, 1.5), np.asarray(0.25, x.dtype))
    assert np.array_equal(found, np.pad(inside, 1, constant_values=2))


def test_an_output_may_be_a_constant_of_no_stated_shape() -> None:
    text = """g (float[2, 3] x) => (float[] k, float[2, 3] y) {
        k = Constant <value: tensor = float[2] {1.5, -2}> ()
        y = Neg (x)
    }"""
    agree(model(text), floats(2, 3))


@pytest.mark.parametrize("n", [1, 40])
def test_a_long_chain_may_turn_out_to_be_constant(n: int) -> None:
    """An ArgMin over one element is known once it is lowered, and what reads it, one after the other."""
    steps = "".join(f"c{k + 1} = {'Elu' if k % 2 else 'LeakyRelu'} (c{k}) " for k in range(n))
    text = f"""g (float[4, 6, 1] x) => (float[4, 6, 1] y) {{
        a = ArgMin <axis: int = 2> (x)
        c0 = Cast <to: int = 1> (a)
        {steps}
        y = Add (c{n}, x)
    }}"""
    agree(model(text), floats(4, 6, 1))


@pytest.mark.parametrize(("a", "b"), [("3, 2, 4", "1, 4, 2"), ("1, 2, 4", "3, 4, 2"), ("1, 2, 4", "1, 4, 2")])
def test_one_matrix_is_multiplied_with_each_of_a_stack(a: str, b: str) -> None:
    """As positions of a batch with one row of frequencies."""
    stack = max(a[0], b[0])
    text = f"g (float[{a}] x, float[{b}] w) => (float[{stack}, 2, 2] y) {{ y = MatMul (x, w) }}"
    agree(model(text), *(floats(*map(int, shape.split(", "))) for shape in (a, b)))


@pytest.mark.parametrize("n_bits", [0, 1, 5, 30, 31])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_integers_shifted_as_unsigned_ones(direction: str, n_bits: int) -> None:
    agree(
        model(
            f"""g (int32[6] x) => (int32[6] y, int32[6] z) {{
                n = Constant <value: tensor = uint32 {{{n_bits}}}> ()
                high = Constant <value: tensor = uint32 {{2147483649}}> ()
                word = Cast <to: int = 12> (x)
                moved = BitShift <direction: string = "{direction}"> (word, n)
                marked = BitwiseOr (moved, high)
                y = Cast <to: int = 6> (moved)
                z = Cast <to: int = 6> (marked)
            }}"""
        ),
        np.array([0, 1, 77_777_777, -1, -(2**31), 2**31 - 1], np.int32),
    )


@pytest.mark.parametrize(
    ("inner", "declared", "calls"),
    [
        ("y = LeakyRelu <alpha: float = @slope> (x)", "slope: float = 0.1", ("", "")),
        ("y = LeakyRelu <alpha: float = @slope> (x)", "slope: float = 0.1", ("", "<slope = 0.3>")),
        ("y = Softmax <axis: int = @axis> (x)", "axis: int = 0", ("", "<axis = 1>")),
        (
            "c = Constant <value_float: float = @eps> () y = Add (x, c)",
            "eps: float = 0.5",
            ("", "<eps = 2.0>"),
        ),
    ],
)
def test_functions_declare_defaults_of_their_attributes(
    inner: str, declared: str, calls: tuple[str, str]
) -> None:
    first, second = calls
    text = f"""<ir_version: 9, opset_import: ["": 18, "own": 1]>
        g (float[3, 4] x) => (float[3, 4] y) {{ a = own.outer {first} (x) y = own.f {second} (a) }}
        <domain: "own", opset_import: ["": 18, "own": 1]> outer <given> (x) => (y) {{
            a = own.f (x) y = own.f <{declared.split(":")[0]}: {declared.split()[1]} = @given> (a) }}
        <domain: "own", opset_import: ["": 18]> f <{declared}> (x) => (y) {{ {inner} }}"""
    agree(onnx.parser.parse_model(text), floats(3, 4))


@pytest.mark.parametrize("rank", [0, 1])
def test_parts_of_one_element_lose_their_axis_as_in_onnx_runtime(rank: int) -> None:
    """PyTorch writes `unbind` so; a list of ones keeps the axis."""
    size = "int64 {1}" if rank == 0 else "int64[2] {1, 1}"
    agree(
        model(
            f"""g (float[2, 3, 5] x) => (float y) {{
                size = Constant <value: tensor = {size}> ()
                one = Constant <value: tensor = int64 {{1}}> ()
                parts = SplitToSequence <axis: int = 0, keepdims: int = 0> (x, size)
                part = SequenceAt (parts, one)
                shape = Shape (part)
                rank = Size (shape)
                wide = Cast <to: int = 1> (rank)
                sum = ReduceSum <keepdims: int = 0> (part)
                y = Mul (sum, wide)
            }}"""
        ),
        floats(2, 3, 5),
    )


def test_an_output_that_is_constant_gives_its_shape_to_its_readers() -> None:
    agree(
        model(
            """g (float[4, 6] x) => (int64[p, q] twos, float[] y) {
                shape = Shape (x)
                twos = ConstantOfShape <value: tensor = int64[1] {2}> (shape)
                wide = Cast <to: int = 1> (twos)
                y = Add (x, wide)
            }"""
        ),
        floats(4, 6),
    )
