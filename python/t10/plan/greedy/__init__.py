"""Algorithm 1 of the paper: `reconcile` (plans, idle levels), `algorithm1` (whole models), `chain` (better layouts)."""
