"""`t10 explain`: loops, rings, Pareto front, neighbours and memory of one operator.

In data-flow order: `expression` (the operator as a formula), `nest` (its loops on every core), `holdings` (who holds
what at step 0), `front` (time against memory), `choice` (why this plan), `explanation` (all of it), `table` (for the
terminal), `picture` (for the eye).
"""

from t10.explain.explanation import Explanation, explain_operator
from t10.explain.front import FrontPoint, front_points

__all__ = ["Explanation", "FrontPoint", "explain_operator", "front_points"]
