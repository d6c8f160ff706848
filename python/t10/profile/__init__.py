"""Costs checked: random sub-tasks counted and run, exchanges fitted and simulated, statements of plans timed."""
