"""What every Python test shares: the hypothesis profiles."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# `ci` is reproducible: the same tree gives the same cases. `explore` looks for new ones, and `soak` does so for long:
# pytest --hypothesis-profile=soak test/unit/test_x.py
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "soak", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")
