"""Other systems on the same chip under the same costs: load-compute-store (Roller, Ansor), PopART's plans.

`vgm` is load-compute-store over a virtual global memory, with aligned tiles (`space`) that `roller` ranks and `ansor`
searches; `poplin` has one mapping per tensor for life. Both are executed (`execute`) before their times are used.
"""
