"""What every Python test shares: the hypothesis profiles, a plan cache that is not the user's, and the cores."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from hypothesis import HealthCheck, settings
from support.draw import drawn

from t10.cache_folder import default_cache_folder
from t10.plan.fronts import parallel_map

# `ci` is reproducible: the same tree gives the same cases. `explore` looks for new ones, and `soak` does so for long:
# pytest --hypothesis-profile=soak test/unit/test_x.py
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "soak", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")

# A shell that runs tests in the background has them ignore SIGINT, and with them all programs that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and current_thread() is main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


ONE_SLOW_OF, MOST_CASES = 40, 3
"""With --draw-slow one slow test of so many runs, and of any other test so many cases."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `make pytest` asks for."""
    parser.addoption(
        "--draw-slow",
        action="store_true",
        help="of slow tests run one of forty, of others three cases, or n where marked sampled(n); drawn by the commit",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of the slow tests, and of others the cases beyond so many, where a part of them is asked for."""
    if not config.getoption("--draw-slow"):
        return
    groups: dict[str, tuple[list[pytest.Item], int]] = {}
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if item.get_closest_marker("slow"):
            groups.setdefault("slow", ([], 0))[0].append(item)
        else:
            n_cases = sampled.args[0] if sampled else MOST_CASES
            groups.setdefault(item.nodeid.split("[")[0], ([], n_cases))[0].append(item)
    left_out: set[str] = set()
    for cases, n in groups.values():
        kept = drawn(cases, n or -(-len(cases) // ONE_SLOW_OF), name=lambda item: item.nodeid)
        left_out.update({item.nodeid for item in cases} - {item.nodeid for item in kept})
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among the tests: it took a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of this run: the workers of pytest-xdist have theirs in it."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def _plan_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep plans in a folder of the run, which its workers share; matplotlib goes on using its own."""
    with pytest.MonkeyPatch.context() as patch:
        own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        patch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR") or str(own / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(_shared_folder(tmp_path_factory) / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _cores_of_its_own() -> Iterator[None]:
    """Share the cores among the workers: a search that starts processes of its own takes them from the others."""
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    n_cores = max(1, parallel_map.usable_cores() // n_workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_map, "usable_cores", lambda: n_cores)
        yield


@pytest.fixture(scope="session")
def objects() -> Path:
    """Return a folder for object files: what programs share is compiled once in a run."""
    folder = default_cache_folder()
    assert folder is not None
    return folder / "poplar-host"


@pytest.fixture(autouse=True)
def no_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe: workers of pytest-xdist inherit a width that no terminal has."""
    monkeypatch.delenv("COLUMNS", raising=False)
