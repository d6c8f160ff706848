"""Plans written by hand after the paper's figures, for tests that must not depend on the planner."""

from __future__ import annotations

from support import specs
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan, PhaseTerm


def cannon(size: int = 3) -> tuple[OperatorSpec, OperatorPlan]:
    """Return Cannon's algorithm: a and b rotate along k around rows and columns of a square of cores."""
    extent = 2 * size
    plan = OperatorPlan(
        f_op=(size, size, 1),
        lengths=(2, 2, extent),
        ft=((1, 1, size), (1, 1, size), (1, 1, 1)),
        rp=(0, 0, 2),
        steps=(1, 1, size),
        loop_order=(2,),
        phases=((), (), (PhaseTerm((0,), 1, size, 2), PhaseTerm((1,), 1, size, 2))),
        core_order=(0, 1, 2),
    )
    return specs.matmul(extent, extent, extent, "i32"), plan


def three_against_two() -> tuple[OperatorSpec, OperatorPlan]:
    """Return T10 §4.2's example: a is cut 3x in time along k and b 2x, so windows wrap around and rp = 2."""
    plan = OperatorPlan(
        f_op=(2, 3, 1),
        lengths=(2, 2, 6),
        ft=((1, 1, 3), (1, 1, 2), (1, 1, 1)),
        rp=(0, 0, 2),
        steps=(1, 1, 3),
        loop_order=(2,),
        phases=((), (), (PhaseTerm((0,), 1, 2, 3), PhaseTerm((1,), 1, 3, 2))),
        core_order=(0, 1, 2),
    )
    return specs.matmul(4, 6, 6, "i32"), plan


def two_loops() -> tuple[OperatorSpec, OperatorPlan]:
    """Return a matmul whose b rotates along n inside a rotation of a along m: serpentine, no reduction is split."""
    plan = OperatorPlan(
        f_op=(2, 2, 1),
        lengths=(4, 4, 3),
        ft=((2, 1, 1), (1, 2, 1), (1, 1, 1)),
        rp=(2, 2, 0),
        steps=(2, 2, 1),
        loop_order=(0, 1),
        phases=((PhaseTerm((1,), 1, 2, 2),), (PhaseTerm((0,), 1, 2, 2),), ()),
        core_order=(0, 1, 2),
    )
    return specs.matmul(8, 8, 3, "i32"), plan


def rotating_output() -> tuple[OperatorSpec, OperatorPlan]:
    """Return a matmul split along k whose partial sums rotate along m: nothing is left to reduce."""
    plan = OperatorPlan(
        f_op=(1, 2, 3),
        lengths=(6, 2, 2),
        ft=((1, 1, 1), (1, 1, 1), (3, 1, 1)),
        rp=(2, 0, 0),
        steps=(3, 1, 1),
        loop_order=(0,),
        phases=((PhaseTerm((2,), 1, 3, 2),), (), ()),
        core_order=(1, 2, 0),
    )
    return specs.matmul(6, 4, 6, "i32"), plan


def split_sum() -> tuple[OperatorSpec, OperatorPlan]:
    """Return a matmul split along k without rotation: three cores hold partial sums of each part of c."""
    plan = OperatorPlan(
        f_op=(2, 1, 3),
        lengths=(3, 5, 2),
        ft=((1, 1, 1),) * 3,
        rp=(0, 0, 0),
        steps=(1, 1, 1),
        loop_order=(),
        phases=((), (), ()),
        core_order=(0, 1, 2),
        reduce="scatter",
    )
    return specs.matmul(5, 5, 6, "i32"), plan


def block_convolution() -> tuple[OperatorSpec, OperatorPlan]:
    """Return a padded convolution whose image rotates along h in whole blocks with their halo."""
    plan = OperatorPlan(
        f_op=(1, 2, 1, 1, 1, 1, 1),
        lengths=(1, 2, 4, 4, 3, 3, 3),
        ft=((1, 1, 2, 1, 1, 1, 1), (1,) * 7, (1,) * 7),
        rp=(0, 0, 2, 0, 0, 0, 0),
        steps=(1, 1, 2, 1, 1, 1, 1),
        loop_order=(2,),
        phases=((), (), (PhaseTerm((1,), 1, 2, 2),), (), (), (), ()),
        core_order=(0, 1, 2, 3, 4, 5, 6),
    )
    return specs.conv2d(1, 4, 4, 4, 3, 3, 3, "i32", pad=1), plan


PAPER_PLANS = {
    function.__name__: function
    for function in (cannon, three_against_two, two_loops, rotating_output, split_sum, block_convolution)
}
"""The builders by name."""
