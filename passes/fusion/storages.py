"""How tensors may be stored on a chip with links: a few ways, of which that with the fastest plan is taken.

Orders are counted for products on cores of one exchange. Where links are slow, plans use fewer cores or move less: the
best orders may be those of a chip of fewer cores, or of more, where fewer rows are left for each; or those as given.
Each way is planned in brief (`plan.quick_choice`), with what moves between operators priced by links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from t10.chip import ChipSpec
from t10.cost import IpuCostModel
from t10.errors import InputError, UnsupportedOpError
from t10.passes.read_graph import read_graph
from t10.plan.fronts.helper import kept_helpers
from t10.plan.quick_choice import quick_cycles

MOST_OPERATORS = 64
"""Models of more operators are stored as products alone are fastest."""
PART = 4
"""Orders are counted for so many times the cores there are, for such a part of them, such a part of that, and so on."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A way to store tensors: in orders counted for `n_cores` cores, 0 as given; weights in blocks or not."""

    n_cores: int
    has_blocks: bool = True

    def target(self, chip: ChipSpec) -> ChipSpec:
        """Return the chip that orders are counted for."""
        changes = {"n_cores": self.n_cores, "levels": ()}
        return chip if self.n_cores == chip.n_cores else chip.model_copy(update=changes)


AS_STORED = Storage(0, has_blocks=False)
"""What leaves tensors as they are."""


@kept_helpers()
def best_storage(module: Any, chip: ChipSpec, fuse: Callable[[Any, Storage], None]) -> Storage:
    """Return the way to store a module's tensors with which its plan is fastest; `fuse` fuses a copy for one.

    On a chip without links the orders counted for its cores, as of a module that holds no model or a large one.
    Of ways that are equally fast the first is taken.
    """
    best = Storage(chip.n_cores)
    if chip.links is None:
        return best
    compared = _Compared(module, chip, fuse)
    for n_cores in _core_counts(chip.n_cores):
        best = compared.better(best, Storage(n_cores))
    return compared.better(best, replace(best, has_blocks=False))


def _core_counts(n_cores: int) -> tuple[int, ...]:
    """Return the numbers of cores that orders are counted for, those there are first, as given last."""
    counts = [n_cores, PART * n_cores]
    while (n_cores := n_cores // PART) > 1:
        counts.append(n_cores)
    return (*counts, 0)


@dataclass
class _Compared:
    """Ways to store a module's tensors and what the plan of each takes; copies that are alike are planned once."""

    module: Any
    chip: ChipSpec
    fuse: Callable[[Any, Storage], None]
    by_storage: dict[Storage, float] = field(default_factory=dict[Storage, float])
    by_text: dict[str, float] = field(default_factory=dict[str, float])
    is_small: bool = True

    def better(self, one: Storage, other: Storage) -> Storage:
        """Return the way with the faster plan, the first of two that are equally fast."""
        return one if self._cycles(one) <= self._cycles(other) else other

    def _cycles(self, storage: Storage) -> float:
        if storage not in self.by_storage:
            self.by_storage[storage] = self._planned(storage) if self.is_small else inf
        return self.by_storage[storage]

    def _planned(self, storage: Storage) -> float:
        """Return the cycles of a plan in brief, infinitely many where none fits, or none is made."""
        copy = self.module.operation.clone()
        self.fuse(copy, storage)
        text = str(copy)
        if text not in self.by_text:
            try:
                graph = read_graph(copy).graph
            except (InputError, UnsupportedOpError):
                graph = None
            self.is_small = graph is not None and len(graph.operators) <= MOST_OPERATORS
            found = (
                quick_cycles(graph, self.chip, IpuCostModel(self.chip)) if graph and self.is_small else None
            )
            self.by_text[text] = inf if found is None else found
        return self.by_text[text]
