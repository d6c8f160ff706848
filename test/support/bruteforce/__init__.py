"""Execution of a planned model element by element in plain dictionaries: slow, small, and without the planner's help.

Every core's memory maps a byte address to (value, number of the byte, size of the element), so that an element that
was overwritten in part, never written, or whose buffer has died cannot be read. Values are Python integers, and what
operators compute is a hash of exactly what they should read (`mixed`), so that results are equal only if every
element took part as often as it should. Anything a wrong plan can cause ends in `BrokenPlan` or a wrong result.
"""

from support.bruteforce.run import Run
from support.bruteforce.symbols import BrokenPlan, Index, boxes, expected, mixed

__all__ = ["BrokenPlan", "Index", "Run", "boxes", "expected", "mixed"]
