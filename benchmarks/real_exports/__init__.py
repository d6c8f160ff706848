"""Networks as libraries define them, small and with random weights, exported, compiled and compared."""
