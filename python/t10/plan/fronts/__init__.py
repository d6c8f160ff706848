"""The Pareto fronts of all operators of a model: searched once per kind of operator, or found where they were kept.

In data-flow order: `pins` and `pinned` (plans that the user chose), `canonical` (operators up to names), `front_cache`
(fronts found before: `stored_fronts` in a `cache` on disk), `parallel_map` (over threads, `helper` processes or an
executor) and `operator_fronts` (all of it).
"""
