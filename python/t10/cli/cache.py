"""The plan cache on the command line: which one a command uses, and `t10 cache info|clear`."""

from __future__ import annotations

import sys
from pathlib import Path

from t10.cache_folder import default_cache_folder
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, say, stdout
from t10.errors import InputError
from t10.plan.fronts.cache import PlanCache
from t10.report.table import count_text

KIB = 1 << 10
MIB = 1 << 20


def cache_of(arguments: Arguments) -> PlanCache | None:
    """Return the cache that a command keeps plans in, None with `--no-cache`; its warnings go to standard error."""
    if not arguments.use_cache:
        return None
    folder = _folder(arguments)
    if folder is None:
        return None
    return PlanCache(folder, warn=lambda message: print(f"t10: warning: {message}", file=sys.stderr))


def run_cache(arguments: Arguments) -> int:
    """Say what is in the plan cache, or empty it."""
    folder = _folder(arguments)
    if folder is None:
        raise InputError("there is no home folder to keep plans in", hint="give one with --cache DIR")
    cache = PlanCache(folder)
    console = stdout(quiet=arguments.quiet)
    if arguments.action == "clear":
        say(console, f"deleted {count_text(cache.clear(), 'file')} of {folder}")
        return 0
    info = cache.info()
    entries = f"{info.n_entries:,} {'entry' if info.n_entries == 1 else 'entries'}"
    sizes = f"{info.n_bytes / MIB:.1f} of {info.max_bytes / MIB:.0f} MiB"
    say(console, f"{folder}: {entries}, {sizes}")
    if info.n_entries:
        table = new_table("kind", "entries", "KiB")
        for kind, n_entries in info.entries_by_kind.items():
            table.add_row(kind, str(n_entries), f"{info.bytes_by_kind[kind] / KIB:,.0f}")
        console.print(table)
    return 0


def _folder(arguments: Arguments) -> Path | None:
    return arguments.cache if arguments.cache is not None else default_cache_folder()
