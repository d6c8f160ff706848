"""Planning of operators and models as frozen values; what is hot is native (`_search`, `_moves`, `joint._minsum`).

In data-flow order: `space` and `temporal` (partitions), `alignment` (pace), `placement` (phases), `evaluate` and
`pareto` (bytes and cycles), `search` (one operator), `pins` and `pinned` (plans that the user chose), `fronts` (all
operators, `spread` over threads or an executor, kept in the `cache`), `levels` (idle layouts), `alternatives` (plans
that only pay in a model), `following` (plans that lie as a producer leaves what they read), `arrivals` (what moves),
`joint` (all of it chosen together, with a bound), `reconcile`, `greedy` and `chain` (Algorithm 1), `buffers` and
`allocation` (addresses), `assemble`, `schedule` and `settled` (a whole model), `verify` (the independent checker).
"""

from t10.plan.alignment import Pace, align_pace
from t10.plan.fronts import operator_fronts
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.placement import place
from t10.plan.schedule import plan_module, schedule_module
from t10.plan.search import align, pareto_front, placed, plan_operator

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
