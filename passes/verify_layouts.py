"""`--t10-verify-layouts`: check every layout and every plan of a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.verify import verify_layouts
from t10.errors import VerifyError
from t10.passes.registry import Pass


@dataclass(frozen=True, slots=True)
class VerifyLayouts(Pass):
    """Check every #rtensor.layout and #rtensor.plan of the module."""

    name: ClassVar[str] = "t10-verify-layouts"
    reads: ClassVar[str] = "any module"
    leaves: ClassVar[str] = (
        "the module as it was; an error for every layout or plan that breaks a rule by itself"
    )

    def apply(self, module: Any) -> None:
        """Leave the module as it is; raises `VerifyError` after one located error per broken rule."""
        if not verify_layouts(module):
            raise VerifyError("layouts or plans break the rules stated above")
