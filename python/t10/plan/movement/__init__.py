"""What moves between cores: how operands lie (`partition_cells`), and what bringing them elsewhere costs (`arrivals`).

Counting is native (`_moves`): `partition_cells.h` says which elements a core holds, `element_locator.h` who has an
element, `moves_count.h` what is fetched from whom. `fetch` is the estimate where the layouts around are not known yet.
"""
