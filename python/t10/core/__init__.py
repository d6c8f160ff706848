"""Frozen values that all stages share: expressions, plans, graphs, geometry, schedules.

In data-flow order: `dtypes` and `scalar` (what an element is and how one is computed), `expression` (an operator as
a tensor expression), `graph` (a whole model), `plan` (how one operator is cut, placed and rotated), `geometry`
(which element lies where, as arrays over cores), `movement` (who must send what to whom), `schedule` (a whole
model's plans, layouts and addresses), `document` (the plan.json file).
"""
