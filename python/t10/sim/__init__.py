"""The plan simulator: executes a planned model on every core and every step, from the cores' own memories.

In data-flow order: `traps` (how a simulation stops), `memory` (the cores' SRAM and its buffers), `special` and
`scalar_eval` (scalar functions on arrays), `combine` (how contributions add up), `partition` (one operand's part on
every core, addressed by axis), `product` (sums of products as matrix products), `compute` (one sub-task on all cores),
`nest` (their order), `shift`, `reduce`, `epilogue`, `exchange` and `relayout` (what moves, what follows), `costs`
(what time is asked for), `operator` (one operator from arrival to result), `plan_level` (the whole model), `result`.
"""
