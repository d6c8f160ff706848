"""`--t10-flatten`: calls and structured control flow as functions of straight code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.passes.registry import Pass, option


@dataclass(frozen=True, slots=True)
class Flatten(Pass):
    """Inline calls, unroll `scf.for` with constant bounds, and take the branch of `scf.if` with a constant condition.

    Functions that others call are gone afterwards, and so are private ones that nothing calls. Loops and branches that
    are decided when the model runs are refused.
    """

    name: ClassVar[str] = "t10-flatten"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-import",)
    reads: ClassVar[str] = "linalg on tensors, in any number of functions"
    leaves: ClassVar[str] = "functions of straight code"

    entry: str = option("", help="function to keep, the others go; empty: all that no other calls")

    def apply(self, module: Any) -> None:
        """Rewrite the module; raises `UnsupportedOpError` for what cannot be decided, at its place."""
        from t10.frontend.flatten import flatten

        flatten(module, self.entry)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether the functions of the module are straight code."""
        from t10.frontend.flatten import is_flat

        return is_flat(module)
