"""The complete search of one operator (`_search.cpp`).

In data-flow order: `space` and `temporal` (partitions), `alignment` (pace), `placement` (phases), `evaluate` (cycles
and bytes), `pareto` (what no other plan beats), `task` (what native search is told), `exact` (prices where
costs are slow) and `operator` (all of it).
`alternatives` are plans that only pay in a model, `producer_layouts` those that lie as a producer leaves a value.
"""
