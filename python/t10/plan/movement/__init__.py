"""Traffic between layouts, counted exactly (`_moves.cpp`).

Counting is native (`_moves`): `partition_cells.h` says which elements a core holds, `element_locator.h` who has an
element, `moves_count.h` what is fetched from whom. `fetch` is the estimate where the layouts around are not known yet.
"""
