"""Other systems on the same chip under the same prices, to compare with: only what a system may choose differs.

`vgm` is load-compute-store over a virtual global memory, with aligned tiles as Roller's; `poplin` has one mapping per
tensor for life. Both are executed (`execute`) before their times are believed.
"""
