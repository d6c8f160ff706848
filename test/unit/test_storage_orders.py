"""Storage orders: permutations, what relations cost, and what is chosen; nothing here knows MLIR."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from t10.core.graph import Parts, TensorValue
from t10.core.orders import (
    composed,
    given_order,
    moved_last,
    permuted,
    relative,
    significant,
)
from t10.core.stored import as_stored
from t10.plan.memory.storage import (
    REORDERED,
    SCATTERED,
    TRANSPOSED,
    TURNED,
    AsGiven,
    Axes,
    Follow,
    Joined,
    Product,
    ProductOrders,
    Regroup,
    Relation,
    RowRule,
    Stored,
    total_cost,
)
from t10.plan.memory.storage_choice import choose_orders


def tensor(*extents: int, is_fixed: bool = False) -> Stored:
    return Stored(extents, int(np.prod(extents)) * 2, is_fixed)


NONE: frozenset[int] = frozenset()
SLOW = 1 << 20
"""What a product is more that no engine computes as it is stored."""


def product(x: int, w: int, y: int, x_axes: Axes, w_axes: Axes, y_axes: Axes, *inner: int) -> Product:
    """Return a product that is fast where one summed axis is innermost in both operands."""
    rows = frozenset(axis for axis in y_axes if axis is not None)

    def price(orders: ProductOrders, turned: tuple[bool, bool]) -> int:
        last = {axes[order[-1]] for axes, order in zip((x_axes, w_axes), orders, strict=False)}
        return (0 if len(last) == 1 and last <= set(inner) else SLOW) + 1000 * sum(turned)

    return Product((x, w, y), (x_axes, w_axes, y_axes), inner, rows, price)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_permuting_extents_is_transposing(order: tuple[int, ...]) -> None:
    array = np.arange(24).reshape(2, 3, 4)
    assert permuted(array.shape, order) == array.transpose(order).shape
    for wanted in permutations(range(3)):
        again = array.transpose(order).transpose(relative(order, wanted))
        np.testing.assert_array_equal(again, array.transpose(wanted))
        np.testing.assert_array_equal(
            array.transpose(order).transpose(wanted), array.transpose(composed(order, wanted))
        )


def test_dims_are_moved_to_the_end_in_the_sequence_named() -> None:
    assert moved_last(given_order(4), (1,)) == (0, 2, 3, 1)
    assert moved_last(given_order(4), (2, 0)) == (1, 3, 2, 0)
    assert significant((2, 0, 1, 3), (4, 1, 5, 1)) == (2, 0)


def test_weights_with_an_order_are_transposed_and_lie_in_a_row() -> None:
    weights = {"w": np.arange(6).reshape(2, 3), "b": np.arange(3)}
    stored = as_stored(weights, [TensorValue("w", (3, 2), "f16", order=(1, 0))])
    np.testing.assert_array_equal(stored["w"], weights["w"].T)
    assert stored["w"].flags.c_contiguous
    assert stored["b"] is weights["b"]


def test_weights_are_put_behind_one_another_and_then_in_order() -> None:
    given = {"a": np.arange(6).reshape(2, 3), "b": np.arange(8).reshape(2, 4), "c": np.arange(3)}
    made = TensorValue("a (+1)", (7, 2), "f16", order=(1, 0), parts=Parts(1, ("a", "b")))
    stored = as_stored(given, [made])
    assert made.host_shape == (2, 7)
    assert sorted(stored) == ["a (+1)", "c"]
    np.testing.assert_array_equal(stored["a (+1)"], np.hstack([given["a"], given["b"]]).T)


def test_a_weight_takes_the_summed_axis_to_its_end() -> None:
    tensors = {0: tensor(4, 8, is_fixed=True), 1: tensor(8, 6), 2: tensor(4, 6)}
    assert choose_orders(tensors, [product(0, 1, 2, (0, 2), (2, 1), (0, 1), 2)])[1] == (1, 0)


def test_of_several_summed_axes_all_stand_at_the_end_and_one_is_last_in_both() -> None:
    result = tensor(4, 6)
    tensors = {0: tensor(4, 3, 8, is_fixed=True), 1: tensor(3, 8, 6), 2: result}
    relations = [product(0, 1, 2, (0, 2, 3), (2, 3, 1), (0, 1), 2, 3)]
    assert choose_orders(tensors, relations)[1] == (2, 0, 1)
    backwards = [product(0, 1, 2, (0, 3, 2), (2, 3, 1), (0, 1), 2, 3)]
    tensors = {0: tensor(4, 8, 3, is_fixed=True), 1: tensor(3, 8, 6), 2: result}
    assert choose_orders(tensors, backwards)[1] == (2, 1, 0)


def test_a_result_takes_the_order_in_which_it_is_counted_fastest() -> None:
    tensors = {0: tensor(4, 8, is_fixed=True), 1: tensor(6, 8, is_fixed=True), 2: tensor(4, 6)}

    def price(orders: ProductOrders, turned: tuple[bool, bool]) -> int:
        del turned
        return 1000 if orders[2] == (0, 1) else 700

    relation = Product((0, 1, 2), ((0, 2), (1, 2), (0, 1)), (2,), frozenset({0, 1}), price)
    assert choose_orders(tensors, [relation])[2] == (1, 0)


def test_of_many_rows_one_summed_axis_is_innermost_in_both_and_results_come_in_rows() -> None:
    tensors = (tensor(4, 8), tensor(6, 8), tensor(4, 6))
    rule = RowRule(((0, 2), (1, 2), (0, 1)), tensors, frozenset({2}), frozenset({1}), (NONE, NONE))
    given, turned = (0, 1), (1, 0)
    n_bytes = [each.n_bytes for each in tensors]
    assert rule((given, given, given), (False, False)) == 0
    assert rule((given, given, given), (False, True)) == TURNED * n_bytes[1]
    assert rule((turned, given, given), (False, False)) == SCATTERED * n_bytes[0]
    assert rule((given, given, turned), (False, False)) == SCATTERED * n_bytes[2]
    two_sums = (tensor(4, 3, 8), tensor(6, 3, 8), tensor(4, 6))
    rule = RowRule(((0, 2, 3), (1, 2, 3), (0, 1)), two_sums, frozenset({2, 3}), frozenset({1}), (NONE, NONE))
    assert rule(((0, 1, 2), (0, 1, 2), given), (False, False)) == 0
    assert rule(((0, 1, 2), (0, 2, 1), given), (False, False)) == SCATTERED * two_sums[0].n_bytes


def test_what_comes_from_outside_stays_and_is_read_through_a_transpose() -> None:
    tensors = {0: tensor(4, 8), 1: tensor(8, 6, is_fixed=True), 2: tensor(4, 6)}
    relation = product(0, 1, 2, (0, 2), (2, 1), (0, 1), 2)
    orders = choose_orders(tensors, [relation])
    assert orders == {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    assert relation.read_orders(orders, tensors) == ((0, 1), (1, 0))
    assert relation.cost(orders, tensors) == 1000


def convolutions(n_between: int) -> tuple[dict[int, Stored], list[Relation]]:
    """Return a chain: the result of a convolution, what is computed of it, and the operand of the next one."""
    extents = (2, 16, 8, 8)
    tensors = {number: tensor(*extents) for number in range(n_between + 2)}
    tensors[100] = tensor(32, 16, 3, 3)
    tensors[101] = tensor(2, 32, 6, 6)
    axes = (0, 1, 2, 3)
    relations: list[Relation] = [Follow(i + 1, i, axes, axes) for i in range(n_between)]
    relations.append(Follow(n_between + 1, n_between, axes, axes, is_view=True))
    relations.append(
        product(n_between + 1, 100, 101, (0, 4, None, None), (1, 4, None, None), (0, 1, 2, 3), 4)
    )
    return tensors, relations


@pytest.mark.parametrize("n_between", [0, 1, 7])
def test_channels_go_last_through_everything_between_two_convolutions(n_between: int) -> None:
    tensors, relations = convolutions(n_between)
    orders = choose_orders(tensors, relations)
    assert {orders[number] for number in range(n_between + 2)} == {(0, 2, 3, 1)}
    assert orders[100] == (0, 2, 3, 1)
    assert total_cost(relations, orders, tensors) == 0


def test_two_given_ends_keep_the_small_tensors_between_them() -> None:
    axes = (0, 1)
    tensors = {0: tensor(4, 6, is_fixed=True), 1: tensor(4, 6), 2: tensor(4, 6)}
    relations: list[Relation] = [Follow(1, 0, axes, axes), Follow(2, 1, axes, axes), AsGiven(2)]
    assert set(choose_orders(tensors, relations).values()) == {(0, 1)}


def test_an_elementwise_reader_of_a_transposed_input_follows_it() -> None:
    tensors = {0: tensor(6, 4, is_fixed=True), 1: tensor(6, 4, is_fixed=True), 2: tensor(4, 6)}
    relations = [Follow(2, source, (0, 1), (1, 0)) for source in (0, 1)]
    assert choose_orders(tensors, relations)[2] == (1, 0)


def test_a_reshape_carries_an_order_on_while_groups_stay_together() -> None:
    tensors = {0: tensor(2, 12, 5), 1: tensor(2, 3, 4, 5)}
    relation = Regroup(1, 0, ((0,), (1, 2), (3,)))
    orders = {0: (0, 2, 1), 1: given_order(4)}
    assert relation.induced(0, orders, tensors) == (0, 3, 1, 2)
    assert relation.induced(1, {1: (3, 1, 2, 0)}, tensors) == (2, 1, 0)
    assert relation.induced(1, {1: (0, 2, 1, 3)}, tensors) is None
    assert relation.cost({0: (0, 2, 1), 1: (0, 3, 1, 2)}, tensors) == 0
    assert relation.cost({0: (0, 1, 2), 1: (0, 3, 1, 2)}, tensors) == TRANSPOSED * tensors[1].n_bytes


def test_dims_of_extent_one_cost_nothing_but_break_ties() -> None:
    tensors = {0: tensor(2, 1, 5), 1: tensor(2, 1, 5)}
    view = Follow(0, 1, (0, 1, 2), (0, 1, 2), is_view=True)
    assert view.cost({0: (0, 1, 2), 1: (1, 0, 2)}, tensors) == 1
    assert Follow(0, 1, (0, 1, 2), (0, 1, 2)).cost({0: (0, 1, 2), 1: (1, 0, 2)}, tensors) == 0


def test_choices_are_at_most_as_dear_as_what_is_given_and_stable() -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        tensors = {
            n: tensor(*rng.integers(1, 9, 3).tolist(), is_fixed=bool(rng.random() < 0.2)) for n in range(6)
        }
        relations: list[Relation] = []
        for _ in range(8):
            a, b = (int(n) for n in rng.choice(6, 2, replace=False))
            axes = [tuple(int(axis) for axis in rng.permutation(3)) for _ in range(2)]
            if rng.random() < 0.5:
                relations.append(Follow(a, b, axes[0], axes[1]))
            else:
                relations.append(
                    product(a, b, (a + b) % 6, axes[0], axes[1], (0, 1, 2), int(rng.integers(3)))
                )
        orders = choose_orders(tensors, relations)
        given = {number: each.given for number, each in tensors.items()}
        assert total_cost(relations, orders, tensors) <= total_cost(relations, given, tensors)
        assert all(orders[n] == given[n] for n, each in tensors.items() if each.is_fixed)
        assert choose_orders(tensors, relations) == orders


def test_what_relations_cost_is_weighted_bytes() -> None:
    square = {0: tensor(4, 6, 8), 1: tensor(4, 6, 8)}
    given, turned, mixed = (0, 1, 2), (0, 2, 1), (1, 0, 2)
    follow = Follow(0, 1, (0, 1, 2), (0, 1, 2))
    n_bytes = square[1].n_bytes
    assert follow.cost({0: given, 1: given}, square) == 0
    assert follow.cost({0: given, 1: mixed}, square) == REORDERED * n_bytes
    assert follow.cost({0: given, 1: turned}, square) == TRANSPOSED * n_bytes


def test_only_dims_with_extent_are_worth_their_bytes_to_the_host() -> None:
    one = {0: tensor(1, 6, 8)}
    assert AsGiven(0).cost({0: (0, 1, 2)}, one) == 0
    assert AsGiven(0).cost({0: (1, 0, 2)}, one) == 1
    assert AsGiven(0).cost({0: (0, 2, 1)}, one) == TRANSPOSED * one[0].n_bytes


def test_joining_along_the_innermost_dim_puts_rows_together_once() -> None:
    tensors = {0: Stored((64, 128), 64 * 128 * 2)}
    joined = Joined(0, 1)
    assert joined.cost({0: (0, 1)}, tensors) == TURNED * tensors[0].n_bytes < TRANSPOSED * tensors[0].n_bytes
    assert joined.cost({0: (1, 0)}, tensors) == 0
