"""`--t10-canonicalize`: clean-ups of the compute-shift level that are local rewrites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.passes.patterns.chained_moves import CHAINED_MOVES
from t10.passes.patterns.driver import Pattern, apply_patterns
from t10.passes.patterns.repeated_shift import REPEATED_SHIFT
from t10.passes.patterns.same_cast import SAME_CAST
from t10.passes.patterns.same_relayout import SAME_RELAYOUT
from t10.passes.patterns.undone_reshapes import UNDONE_RESHAPES
from t10.passes.registry import Pass

PATTERNS: tuple[Pattern, ...] = (
    SAME_CAST,
    SAME_RELAYOUT,
    REPEATED_SHIFT,
    *CHAINED_MOVES,
    *UNDONE_RESHAPES,
)


@dataclass(frozen=True, slots=True)
class Canonicalize(Pass):
    """Apply the rewrite patterns of `rtensor` until none matches, and erase what nothing uses.

    Casts and relayouts to the layout of their source, moves of moved values, shifts to where a tensor stands and moves
    of values that were reshaped to and fro. What `--t10-expand` leaves stays as it is.
    """

    name: ClassVar[str] = "t10-canonicalize"
    reads: ClassVar[str] = "any module"
    leaves: ClassVar[str] = "the module with fewer casts, relayouts, set-ups and shifts"

    def apply(self, module: Any) -> None:
        """Apply the patterns to the module."""
        apply_patterns(module, PATTERNS)
