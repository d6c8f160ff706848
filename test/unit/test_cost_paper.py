"""`t10-paper` by hand-computed values: every formula of docs/cost-model.md once, at small numbers."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from support import specs

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost import paper_cost_model
from t10.cost.paper_constants import published_constants

CHIP = load_chip("ipu-mk2:shift_buffer_bytes=8192")
"""With the shift buffer of T10, section 4.2."""
COST = paper_cost_model(CHIP)
STRICT = paper_cost_model(CHIP, hides_arithmetic=False)
SYNC = 118


def with_epilogue(*ops: ScalarOp, result: int) -> OperatorSpec:
    """Return a product whose f32 accumulator goes through `ops` and ends in f16."""
    return replace(specs.matmul(64, 48, 80), epilogue=ScalarFunction(1, ops, result))


TRUNCATED = ScalarOp("arith.truncf", (0,), "f16")
ZERO = ScalarOp("const", (), "f16", "0.0")
GREATER = ScalarOp("arith.cmpf", (1, 2), "i1", "ugt")


def test_a_product_streams_the_longer_side_over_blocks_of_weights() -> None:
    # NeRF's products are 1409 x 64 x 64 per core: ceil(1409 / 6) = 235 row groups, 4 x 4 blocks of weights.
    by_hand = 173 + 4 * (113 + 4 * (514 + 24 * 235))
    assert by_hand == 99_089
    tall, wide = specs.matmul(1409, 64, 64), specs.matmul(64, 1409, 64)
    assert COST.sub_task_cycles(tall, (1409, 64, 64)) == by_hand
    assert COST.sub_task_cycles(wide, (64, 1409, 64)) == by_hand


def test_of_two_short_sides_the_longer_one_stays() -> None:
    spec = specs.matmul(16, 16, 16)
    assert COST.sub_task_cycles(spec, (5, 16, 16)) == 173 + 113 + 514 + 24 * ceil(5 / 6)
    assert COST.sub_task_cycles(spec, (5, 17, 16)) == 173 + 113 + 514 + 24 * ceil(17 / 6)


def test_groups_are_products_one_after_the_other_and_f32_has_a_quarter_of_the_rate() -> None:
    batched, single = specs.bmm(4, 32, 32, 16), specs.matmul(32, 32, 16)
    one = COST.sub_task_cycles(single, (32, 32, 16))
    assert COST.sub_task_cycles(batched, (3, 32, 32, 16)) == 3 * one
    f32 = specs.matmul(32, 32, 16, "f32")
    assert COST.sub_task_cycles(f32, (32, 32, 16)) == 173 + 2 * (113 + 2 * 514 + 4 * 24 * ceil(32 / 6))


def test_elementwise_operators_take_their_accesses() -> None:
    assert COST.sub_task_cycles(specs.elementwise((8, 100)), (8, 100)) == 300 + 600
    assert COST.sub_task_cycles(specs.map_unary((8, 100)), (8, 100)) == 200 + 400
    assert COST.sub_task_cycles(specs.elementwise((8, 100), dtype="f32"), (8, 100)) == 300 + 1200


def test_a_cast_or_copy_is_a_unary_operator() -> None:
    assert COST.copy_cycles(2 * 800) == 200 + 400
    assert COST.copy_cycles(0) == 0


@pytest.mark.parametrize(
    ("rows", "padded"), [(1, 1), (3, 4), (5, 8), (13, 16), (17, 24), (49, 96), (100, 192)]
)
def test_reductions_pad_their_outputs(rows: int, padded: int) -> None:
    spec = specs.row_reduce(128, 64, "sum")
    assert COST.sub_task_cycles(spec, (rows, 64)) == 175 + padded * 16


def test_convolutions_and_pooling_go_through_the_published_points() -> None:
    conv = specs.conv2d(1, 32, 14, 14, 16, 3, 3, pad=1)
    sizes = {axis.name: axis.extent for axis in conv.axes}
    outputs = conv.n_points // (sizes["f"] * sizes["c"] * 9)
    macs = outputs * 9 * 16 * ceil(sizes["c"] / 16) * 16 * ceil(sizes["f"] / 16)
    assert COST.sub_task_cycles(conv, conv.extents) == 2030 + ceil(macs / 20)
    pool = specs.max_pool2d(1, 4, 160, 160, 7, pad=3)
    for image, window, published in ((8, 3, 4_200), (160, 7, 3_650_000)):
        box = (1, 4, image, image, window, window)
        assert len(box) == len(pool.axes)
        assert COST.sub_task_cycles(pool, box) == pytest.approx(published, rel=0.001)


def test_a_convolution_without_window_is_a_product() -> None:
    conv = specs.conv2d(1, 64, 28, 28, 64, 1, 1)
    product = specs.matmul(784, 64, 64)
    assert COST.sub_task_cycles(conv, conv.extents) == COST.sub_task_cycles(product, (784, 64, 64))


def test_a_gather_reads_every_index_and_copies_the_slices_it_holds() -> None:
    spec = specs.gather(16, 64, 100)
    assert [axis.extent for axis in spec.axes] == [16, 64, 100]
    index_cycles = 16 * 8 // 8
    assert COST.sub_task_cycles(spec, (16, 64, 100)) == 300 + index_cycles + 16 * 64 // 2
    assert COST.sub_task_cycles(spec, (16, 64, 25)) == 300 + index_cycles + 4 * 64 // 2


def test_a_shift_pays_two_synchronisations_per_round_of_the_buffer() -> None:
    assert COST.shift_cycles(8192) == 2 * SYNC + 2294
    assert COST.shift_cycles(8193) == 4 * SYNC + 2295
    assert COST.shift_cycles(0) == 0


def test_an_exchange_pays_one_and_more_chips_are_slower() -> None:
    assert COST.exchange_cycles(1000, 7, neighbour=False) == SYNC + 280
    assert COST.exchange_cycles(0, 0, neighbour=False) == 0
    two = paper_cost_model(CHIP.model_copy(update={"n_cores": 2944}))
    assert two.exchange_cycles(1000, 7, neighbour=False) == ceil((SYNC + 280) * 1.25)
    assert two.shift_cycles(1000) == ceil((2 * SYNC + 280) * 1.25)


def test_a_reduction_among_cores_moves_and_adds_chunks() -> None:
    spec = specs.matmul(64, 48, 80)
    # Windows of twice a prime have the shortest chunks. Three of 4,000 bytes: two fit the buffer at once, so two
    # phases; 1,000 f32 additions per chunk.
    by_hand = 2 * (2 * SYNC + 300) + 3360 + 3 * 1000 * 12 // 8
    assert COST.reduce_cycles(spec, 4, 3998) == by_hand
    assert COST.reduce_cycles(spec, 1, 1000) == 0
    # Three chunks of 10,000 bytes: each passes through the buffer of 8,192 in two phases.
    assert COST.reduce_cycles(spec, 4, 9_998) == 6 * (2 * SYNC + 300) + 8400 + 3 * 2500 * 12 // 8


def test_an_epilogue_of_one_operation_hides_behind_the_store() -> None:
    relu = with_epilogue(TRUNCATED, ZERO, GREATER, ScalarOp("arith.select", (3, 1, 2), "f16"), result=4)
    assert COST.epilogue_cycles(specs.matmul(64, 48, 80), 1000, 1000) == 0
    assert COST.epilogue_cycles(relu, 1000, 1000) == 0
    assert STRICT.epilogue_cycles(relu, 1000, 1000) == 250


def test_a_further_operand_is_loaded_and_further_arithmetic_takes_its_slots() -> None:
    biased = replace(
        specs.linear_relu(64, 48, 80),
        epilogue=ScalarFunction(
            2, (ScalarOp("arith.truncf", (0,), "f16"), ScalarOp("arith.addf", (1, 2), "f16")), 3
        ),
    )
    assert COST.epilogue_cycles(biased, 1000, 1000) == 100 + 250
    assert STRICT.epilogue_cycles(biased, 1000, 1000) == 100 + 250 + 250
    # 1 / (1 + exp(-x)): negation 1, exponential 2, addition 1, division 3 slots; one hides beside the store.
    one = ScalarOp("const", (), "f16", "1.0")
    sigmoid = with_epilogue(
        TRUNCATED,
        one,
        ScalarOp("arith.negf", (1,), "f16"),
        ScalarOp("math.exp", (3,), "f16"),
        ScalarOp("arith.addf", (4, 2), "f16"),
        ScalarOp("arith.divf", (2, 5), "f16"),
        result=6,
    )
    assert COST.epilogue_cycles(sigmoid, 1000, 1000) == 6 * 250
    assert STRICT.epilogue_cycles(sigmoid, 1000, 1000) == 7 * 250


def test_a_comparison_that_serves_anything_else_is_an_operation() -> None:
    chosen = ScalarOp("arith.select", (3, 2, 1), "f16")
    other = ScalarOp("arith.select", (3, 1, 4), "f16")
    assert (
        STRICT.epilogue_cycles(with_epilogue(TRUNCATED, ZERO, GREATER, chosen, result=4), 1000, 1000) == 250
    )
    both = with_epilogue(TRUNCATED, ZERO, GREATER, chosen, other, result=5)
    assert STRICT.epilogue_cycles(both, 1000, 1000) == 750


def test_nothing_is_free() -> None:
    for spec in (specs.map_unary((4, 4)), specs.row_reduce(4, 4, "max"), specs.gather(4, 4, 4)):
        assert COST.sub_task_cycles(spec, (1,) * len(spec.axes)) > 0
    assert COST.copy_cycles(1) > 200


def test_constants_are_those_of_the_record() -> None:
    constants = published_constants()
    assert COST.constants is constants
    assert constants.sync_cycles == SYNC
    assert constants.exchange_millicycles_per_byte == 280
