"""What a codelet family is: it says which tasks it can compile and compiles them."""

from __future__ import annotations

from typing import Protocol

from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction
from t10.core.task import Task


class CodeletFamily(Protocol):
    """A way to compute a class of tasks.

    Code depends on the structure of a task only; extents, strides and addresses are words of the vertex wherever that
    costs little, so that tasks of one structure share one codelet (same name, same text).
    """

    @property
    def name(self) -> str:
        """Return the family's name, the first part of its codelets' names."""
        ...

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as code, None where the family cannot compute it."""
        ...


class OwnFamily(CodeletFamily, Protocol):
    """A family that somebody puts in front of the bundled ones."""

    @property
    def digest(self) -> str:
        """Return a text that differs whenever tasks or their code do."""
        ...

    def may_compute(self, body: ScalarFunction) -> bool:
        """Return False only where no task of such a body is computed."""
        ...
