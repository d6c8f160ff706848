"""The bound of products on the matrix engine: below the count of every way to compute them there, and near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

import numpy as np
import pytest
from support import specs
from support.random_products import Dims, handed_on_rounded, product_of, random_box, random_product
from support.specs import dim

from t10.codelets.compile import using_families
from t10.codelets.count import cycles_of
from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.direct import Direct
from t10.codelets.matrix.engine import BLOCK_WORDS, ENGINES, WORD_BYTES, Engine
from t10.codelets.matrix.family import compiled, ways
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream
from t10.codelets.nest import simplified
from t10.core.codelet import Compiled
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.scalar import ScalarFunction
from t10.core.task import Task
from t10.cost.bound import product
from t10.cost.bound.product import IMPOSSIBLE, product_bound
from t10.cost.bound.rows import BEGIN, NEXT, WIDE, Rows, launches
from t10.cost.bound.walks import WalkLoop
from t10.cost.trace import trace_table
from t10.cost.work import sub_task

SPECS, BOXES = 220, 2
MOST_OPERATIONS = 1000
"""Both inputs as weights, one after the other."""


@dataclass(frozen=True, slots=True)
class _OneWay:
    """A family that computes a product in one way."""

    way: Direct
    name: str = "OneWay"
    digest: str = ""

    def may_compute(self, body: ScalarFunction) -> bool:
        return bool(body.ops)

    def compile(self, task: Task) -> Compiled | None:
        del task
        return compiled(self.way)


def counts(spec: OperatorSpec, box: AxisSizes) -> Iterator[int]:
    """Yield the counted cycles of every way to compute a box on the engine."""
    task = sub_task(spec, box)
    for way in ways(simplified(task)):
        with using_families([_OneWay(way)]):
            cycles = cycles_of(task)
        if cycles is not None:
            yield cycles


def shares(spec: OperatorSpec, boxes: list[AxisSizes]) -> list[float]:
    """Return the bound as a share of the least count of every box that the engine can compute; never more than 1."""
    bounds = product_bound(spec, np.array(boxes))
    assert bounds is not None
    result: list[float] = []
    for box, bound in zip(boxes, bounds.tolist(), strict=True):
        least = min(counts(spec, box), default=None)
        if least is not None:
            assert bound <= least, f"{box} of {spec.inputs} -> {spec.output}: {bound} > {least}"
            result.append(bound / least)
    return result


def test_no_way_takes_less_than_the_bound() -> None:
    rng = Random(14)
    found: list[float] = []
    for _ in range(SPECS):
        spec = random_product(rng)
        found += shares(spec, [random_box(rng, spec) for _ in range(BOXES)])
    assert len(found) > SPECS * BOXES / 2
    tenth, median = np.quantile(found, (0.1, 0.5))
    assert tenth >= 0.48
    assert median >= 0.88


@pytest.mark.parametrize(
    ("has_windows", "least_tenth", "least_median"), [(False, 0.48, 0.88), (True, 0.3, 0.7)]
)
def test_no_way_that_rounds_its_last_block_takes_less_than_the_bound(
    least_tenth: float, least_median: float, *, has_windows: bool
) -> None:
    rng = Random(5)
    found: list[float] = []
    every = iter(lambda: random_product(rng), None)
    wide = (
        spec
        for spec in every
        if spec.body.ops[0].opcode == "arith.extf" and bool(spec.window_positions) == has_windows
    )
    for spec in islice(wide, SPECS):
        found += shares(handed_on_rounded(spec), [random_box(rng, spec) for _ in range(BOXES)])
    # What is no whole number of words is left to the vector unit.
    assert len(found) > SPECS * BOXES / 4
    tenth, median = np.quantile(found, (0.1, 0.5))
    assert tenth >= least_tenth
    assert median >= least_median


def of_axes(*axes: int) -> Dims:
    return [dim((axis, 1)) for axis in axes]


LINEAR = (of_axes(0, 2), of_axes(1, 2), of_axes(0, 1)), {2}
HEADS = (of_axes(0, 1, 3), of_axes(0, 2, 3), of_axes(1, 0, 2)), {3}
VALUES = (of_axes(0, 1, 3), of_axes(0, 3, 2), of_axes(1, 0, 2)), {3}
DEPTHWISE = (
    ([dim((1, 1), (3, 1)), dim((2, 1), (4, 1)), *of_axes(0)], of_axes(0, 3, 4), of_axes(1, 2, 0)),
    {3, 4},
)


def image(stride: int) -> tuple[tuple[Dims, Dims, Dims], set[int]]:
    """Return a convolution: features, two places, channels, two positions of the window."""
    pixels = [dim((1, stride), (4, 1)), dim((2, stride), (5, 1))]
    return ([*pixels, *of_axes(3)], of_axes(0, 4, 5, 3), of_axes(1, 2, 0)), {3, 4, 5}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of products: operands, how boxes are drawn, and what tenth and median of the shares are at least."""

    operands: tuple[Dims, Dims, Dims]
    reduced: set[int]
    draw: Callable[[Random], AxisSizes]
    tenth: float
    median: float


def draw(*largest: int) -> Callable[[Random], AxisSizes]:
    """Return what draws extents up to the given ones."""
    return lambda rng: tuple(rng.randint(1, extent) for extent in largest)


def windows(*largest: int) -> Callable[[Random], AxisSizes]:
    """Return the same for an image, with windows of 3 x 3."""
    return lambda rng: (*draw(*largest)(rng), 3, 3)


KINDS = {
    "decode": Kind(*LINEAR, lambda rng: (*draw(16, 200)(rng), 16 * rng.randint(1, 60)), 0.93, 0.96),
    "odd lines": Kind(*LINEAR, draw(60, 60, 400), 0.9, 0.96),
    "long lines": Kind(*LINEAR, lambda rng: (*draw(12, 12)(rng), rng.randint(999, 6000)), 0.96, 0.98),
    "heads": Kind(*HEADS, lambda rng: (*draw(12, 64, 64)(rng), 16 * rng.randint(1, 6)), 0.82, 0.92),
    "values": Kind(*VALUES, draw(6, 32, 64, 99), 0.7, 0.9),
    "image": Kind(*image(1), windows(64, 14, 14, 48), 0.7, 0.82),
    "strided image": Kind(*image(2), windows(64, 14, 14, 48), 0.7, 0.82),
    "depthwise": Kind(*DEPTHWISE, windows(16, 14, 14), 0.5, 0.55),
}
N_SHARES, N_CORNERS = 30, 16


@pytest.mark.parametrize("types", [("f16", "f32"), ("f32", "f32")], ids="-".join)
@pytest.mark.parametrize("name", KINDS)
def test_the_bound_is_near_the_count_of_what_models_do(name: str, types: tuple[str, str]) -> None:
    kind, rng = KINDS[name], Random(name)
    found = shares(product_of(kind.operands, kind.reduced, types), [kind.draw(rng) for _ in range(N_SHARES)])
    assert len(found) > N_SHARES / 3
    tenth, median = np.quantile(found, (0.1, 0.5))
    assert tenth >= kind.tenth
    assert median >= kind.median


STRIDED = (([dim((1, 2)), *of_axes(2)], of_axes(0, 2), of_axes(1, 0)), {2})
SPLIT = ((of_axes(1, 3), [*of_axes(0), dim((2, 1), (3, 1)), *of_axes(1)], of_axes(0, 2, 1)), {3})
APART = ((of_axes(3, 1, 2), of_axes(0, 3, 2), of_axes(1, 0)), {2, 3})
INSIDE = ((of_axes(3, 2, 1), of_axes(0, 3, 2), of_axes(1, 0)), {2, 3})
DILATED = (([dim((1, 1), (3, 2)), *of_axes(2)], of_axes(0, 3, 2), of_axes(1, 0)), {2, 3})
WINDOW_LAST = (([*of_axes(3), dim((1, 1), (2, 1))], of_axes(0, 3, 2), of_axes(0, 1)), {2, 3})
THREE_LOOPS = ((of_axes(0, 1, 2, 4), of_axes(3, 4), of_axes(2, 0, 1, 3)), {4})
CORNERS = {
    "rows that skip elements": (*STRIDED, draw(8, 8, 2300)),
    "lines cut by elements": (*SPLIT, draw(12, 2, 200, 9)),
    "sums with rows between": (*APART, draw(9, 20, 16, 5)),
    "rows inside of sums": (*INSIDE, draw(9, 20, 16, 5)),
    "dilated": (*DILATED, draw(9, 20, 16, 5)),
    "windows last": (*WINDOW_LAST, draw(20, 40, 9, 16)),
    "three loops of rows": (*THREE_LOOPS, draw(6, 6, 6, 17, 70)),
}


@pytest.mark.parametrize("name", CORNERS)
def test_no_way_takes_less_in_odd_corners(name: str) -> None:
    operands, reduced, boxes = CORNERS[name]
    rng = Random(name)
    assert shares(product_of(operands, reduced), [boxes(rng) for _ in range(N_CORNERS)])


def test_columns_along_two_dims_share_lines_of_weights() -> None:
    # Both windows of the weights have columns and positions: 40 lines are copied, and not 16 x 7.
    weights = [*of_axes(0, 2), dim((3, 1), (5, 1)), dim((4, 1), (6, 1))]
    spec = product_of((of_axes(1, 5, 6, 2), weights, of_axes(0, 1, 3, 4)), {2, 5, 6}, ("f32", "f32"))
    assert shares(spec, [(19, 4, 4, 4, 4, 7, 1), (3, 4, 8, 4, 4, 7, 2)])


def test_a_traced_bound_gives_the_same_numbers() -> None:
    rng = Random(15)
    for _ in range(40):
        spec = random_product(rng)
        boxes = np.array([random_box(rng, spec) for _ in range(20)])
        bounds, formula = (
            product_bound(spec, boxes),
            trace_table(partial(product_bound, spec), len(spec.axes)),
        )
        assert bounds is not None
        assert formula.evaluate(boxes).tolist() == bounds.tolist()
        assert len(formula.instructions) < MOST_OPERATIONS


@pytest.mark.parametrize(
    "spec", [specs.row_reduce(8, 8, "sum"), specs.matmul(8, 8, 8, "i32")], ids=lambda spec: spec.name
)
def test_what_never_goes_to_the_engine_has_no_bound(spec: OperatorSpec) -> None:
    assert product_bound(spec, np.ones((1, len(spec.axes)), np.int64)) is None


@pytest.mark.parametrize(
    ("operands", "types", "box", "is_possible"),
    [
        (LINEAR, ("f16", "f32"), (3, 5, 7), True),
        (LINEAR, ("f16", "f32"), (3, 5, 1), False),  # no sum
        (LINEAR, ("f16", "f16"), (3, 5, 8), False),  # an output row of 5 f16
        (LINEAR, ("f16", "f16"), (3, 8, 8), True),
        (LINEAR, ("f16", "f32"), (400, 8, 101), False),  # more to copy than there is scratch memory
    ],
)
def test_boxes_that_no_way_computes(
    operands: tuple[tuple[Dims, Dims, Dims], set[int]],
    types: tuple[str, str],
    box: AxisSizes,
    *,
    is_possible: bool,
) -> None:
    spec = product_of(*operands, types)
    bounds = product_bound(spec, np.array([box]))
    assert bounds is not None
    assert (bounds[0] < IMPOSSIBLE) == is_possible
    assert any(counts(spec, box)) == is_possible


# --- what constants are made of ------------------------------------------------------------------------------------

ACCESSES: dict[bool, tuple[Access, ...]] = {
    False: ("pair", "cross", "single", "word"),
    True: ("triple", "pair", "packed", "single", "word"),
}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("accumulates", [False, True], ids=["begins", "adds"])
def test_no_loop_over_rows_takes_less(engine: Engine, *, accumulates: bool) -> None:
    mode = product.ENGINES[engine.in_dtype, engine.out_dtype]
    assert (mode.phases, mode.columns) == (engine.phases, engine.columns)
    assert (mode.per_word, mode.per_store) == (engine.word_elements, engine.store_columns)
    n_exact = 0
    for words in range(1, BLOCK_WORDS + 1):
        for columns in range(1, engine.columns + 1):
            stores, half = divmod(columns, engine.store_columns)
            for access in ACCESSES[accumulates]:
                kit = Kit(words, stores + (half > 0), half > 0)
                if not _is_possible(engine, kit, columns, access):
                    continue
                stream = Stream(engine, kit, accumulates, access, Registers(*["$m0"] * 8))
                for rows in range(stream.least_rows, 12):
                    found, bound = _slots(stream, rows), _bound(stream, columns, rows)
                    assert bound <= found, f"{access} {kit} {rows} rows"
                    n_exact += bound == found
    assert n_exact > 0


def _is_possible(engine: Engine, kit: Kit, columns: int, access: Access) -> bool:
    """Return whether the access can be chosen for so many columns; see `t10.codelets.matrix.direct`."""
    if access == "packed" and kit.stores < engine.phases:
        return False
    if engine.out_bytes < WORD_BYTES // 2:
        return access != "word" and columns % engine.store_columns == 0
    return (columns % engine.store_columns != 0) == (access == "word")


def _slots(stream: Stream, rows: int) -> int:
    """Return the slots of a worker's loop."""
    code = WorkerCode()
    stream.write(code)
    return len(code.items) + (rows - stream.least_rows - 1) * stream.row_bundles


def _bound(stream: Stream, columns: int, rows: int) -> int:
    """Return the bound of a worker's loop whose rows lie as the access needs them."""
    mode = product.ENGINES[stream.engine.in_dtype, stream.engine.out_dtype]
    x_step = 1 << 20 if stream.access in ("packed", "single") else 0
    is_banked = stream.access in ("triple", "packed", "cross")
    out_step = np.array([(2 if is_banked else 1) * mode.per_store])
    row = WalkLoop(np.array([6 * rows]), (np.array([x_step]), out_step))
    columns_of, kit = np.array([columns]), np.array([stream.kit.words])
    slots = launches(mode, Rows(row.extent, [row]), columns_of, kit, np.array([stream.accumulates]))
    ends = (
        NEXT - (WIDE if is_banked and stream.kit.stores == mode.phases else 0)
        if stream.accumulates
        else BEGIN
    )
    return int((slots.add if stream.accumulates else slots.begin)[0]) - ends
