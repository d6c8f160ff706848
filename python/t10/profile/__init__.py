"""Costs checked: random sub-tasks counted and run, exchanges simulated, statements of plans timed."""
