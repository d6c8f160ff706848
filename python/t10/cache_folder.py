"""Where plans are kept between runs: the one place that asks the environment about it."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache_folder() -> Path | None:
    """Return `t10` in the user's folder for caches: XDG_CACHE_HOME, else ~/.cache; None if there is no home."""
    stated = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is no path.
    if os.path.isabs(stated):
        return Path(stated) / "t10"
    try:
        return Path.home() / ".cache" / "t10"
    except RuntimeError:
        return None
