"""Simulators. `plan_level` executes a planned model on every core and every step, on nothing but the cores' memories.

In data-flow order: `traps` (how a simulation stops), `memory` (the cores' SRAM and its buffers), `scalar_eval` and
`special` (scalar functions on arrays), `partition` (one operand's part on every core, addressed by axis), `product`
(sums of products as matrix products), `compute` (one sub-task on all cores), `shift`, `reduce`, `epilogue`,
`relayout` (data movement), `operator` (one operator from arrival to result), `plan_level` (the whole model), `result`.
"""
