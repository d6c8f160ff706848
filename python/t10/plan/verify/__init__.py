"""An independent check of plans: it shares the values of `t10.core` with the planner, and no arithmetic.

In data-flow order: `violation` (what is reported), `windows` (where cores and windows lie, from the definitions),
`shape` (numbers that fit each other), `rotation` (index sets moved step by step), `operator` (all of one operator's
plan), `body` (its program), `placed` (elements of a layout), `uses` (who reads what until when), `arrivals`,
`fetches` (from off-chip memory), `memory`, `module` (a whole model).
"""

from t10.plan.verify.module import require_valid, verify_module
from t10.plan.verify.operator import verify_operator
from t10.plan.verify.violation import Violation

__all__ = ["Violation", "require_valid", "verify_module", "verify_operator"]
