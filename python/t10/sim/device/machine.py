"""`TileMachine`: what executes vertices. `t10.isa.tile.Machine` does so instruction by instruction."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import CodeletKind


class TileMachine(Protocol):
    """Tiles with memories of their own that run one vertex each."""

    def memory(self, tile: int) -> NDArray[np.uint8]:
        """Return the memory of a tile, writable: the same bytes on every call."""
        ...

    def run_vertices(
        self,
        tiles: NDArray[np.int32],
        entries: NDArray[Any],
        states: NDArray[Any],
        kind: CodeletKind,
    ) -> NDArray[np.int64]:
        """Run one vertex per tile from its entry address with its state's address; return the cycles of each.

        Raises `SimTrap` where an instruction cannot be executed.
        """
        ...
