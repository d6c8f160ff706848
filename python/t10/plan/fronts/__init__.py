"""Pareto fronts of all operators, searched in parallel and cached; pins of users.

In data-flow order: `pins` and `pinned` (plans that the user chose), `canonical` (operators up to names), `front_cache`
(fronts found before: `stored_fronts` in a `cache` on disk), `parallel_map` (over threads, `helper` processes or an
executor) and `operator_fronts` (all of it).
"""
