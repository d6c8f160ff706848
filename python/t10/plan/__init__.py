"""Planning of operators and models as frozen values; the hot evaluation is the native module `_evaluate`.

In data-flow order: `space` and `temporal` (partitions), `alignment` (pace), `placement` (phases), `evaluate` and
`pareto` (bytes and cycles), `search` (one operator), `fronts` (all operators, `spread` over threads or an executor, kept
in the `cache`), `levels` and `reconcile` (Algorithm 1), `alternatives` (plans that only pay in a model),
`following` and `chain` (operators that follow a producer's layout), `arrivals` (what moves), `allocation` (addresses),
`assemble` and `schedule` (a whole model), `verify` (the independent checker).
"""

from t10.plan.alignment import Pace, align_pace
from t10.plan.fronts import operator_fronts
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.placement import place
from t10.plan.schedule import plan_module, schedule_module
from t10.plan.search import align, pareto_front, partition_candidates, placed, plan_operator

__all__ = [
    "ForcedPartition",
    "Pace",
    "PlanOptions",
    "align",
    "align_pace",
    "operator_fronts",
    "pareto_front",
    "partition_candidates",
    "place",
    "placed",
    "plan_module",
    "plan_operator",
    "schedule_module",
]
