"""The planner: search of operators, choice for a model, allocation, checker. Hot code is native (`*.cpp`).

In data-flow order: `options`, `movement` (what is fetched between layouts), `memory` (buffers and addresses), `search`
(one operator), `assemble` (a schedule of choices), `fronts` (all operators of a model), then a choice for the whole
model by `joint` (everything together, with a bound) or `greedy` (Algorithm 1), `fit` (why a model does not fit),
`schedule` and `pinned_schedule` (a whole model). `verify` is the independent checker: it shares no arithmetic with the
others.
"""

from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.schedule import plan_module, schedule_module
from t10.plan.search.alignment import Pace, align_pace
from t10.plan.search.listed import align, pareto_front, placed
from t10.plan.search.operator import plan_operator
from t10.plan.search.placement import place

__all__ = [
    "ForcedPartition",
    "Pace",
    "PlanOptions",
    "align",
    "align_pace",
    "operator_fronts",
    "pareto_front",
    "place",
    "placed",
    "plan_module",
    "plan_operator",
    "schedule_module",
]
