"""How a simulation stops: what went wrong, on which core, at which step and address."""

from __future__ import annotations

from t10.errors import SimTrap


def trap(
    cause: str,
    *,
    operator: str | None = None,
    core: int | None = None,
    step: int | None = None,
    address: int | None = None,
) -> SimTrap:
    """Return the trap to raise; the parts that are known are appended to the cause."""
    where: list[str] = []
    if core is not None:
        where.append(f"core {core}")
    if step is not None:
        where.append(f"step {step}")
    if address is not None:
        where.append(f"address {address:#x}")
    text = f"{cause} at {', '.join(where)}" if where else cause
    return SimTrap(text, operator=operator)
