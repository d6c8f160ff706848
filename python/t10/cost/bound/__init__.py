"""Lower bounds of the cycles of steps, as formulas over boxes: the search prunes by them.

A price is counted from code (`t10.codelets.count`); these formulas are never above it.
"""
