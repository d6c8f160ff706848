"""Lower bounds of the cycles that steps of operators take, as formulas over boxes: what the search prunes by.

A price is counted from code (`t10.codelets.count`); these formulas are never above it.
"""
