"""What one run of the benchmark is about."""

from __future__ import annotations

from dataclasses import dataclass

CHIP = "ipu-mk2"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is measured, and with what.

    `models`: names of those to plan; `max_batch`: no batch above it is tried; `exhaustive`: search without constraints,
    too; `seconds`: time limit of one reconciliation.
    """

    chip: str = CHIP
    cost_model: str = "ipu"
    models: tuple[str, ...] = ()
    max_batch: int = 4096
    exhaustive: bool = True
    seconds: float = 60.0
