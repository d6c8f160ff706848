"""Memory of a core: live ranges, idle levels, buffers, storage orders, addresses.

`placement` gives every buffer its address, by the `wishes` of what accesses it, in a `room` beside the program.
`allocation` is the closest packing: `blocks` are rectangles, `packing` orders them, `packing_repair` packs parts of
them anew and `packing_solver` exactly. `operator_bound` is the least an operator takes. `storage` and `storage_choice`
are the orders in which the elements of a tensor are stored.
"""
