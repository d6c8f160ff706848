"""Weights from off-chip memory: which stay on the chip, when each of the others is fetched, what is left for them."""
