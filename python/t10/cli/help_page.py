"""The options of every command as Markdown, for `docs/cli.md`."""

from __future__ import annotations

import argparse
from typing import Any

from t10.cli.arguments import parser

COMMON = frozenset({"help", "debug", "quiet"})


def command_tables() -> dict[str, str]:
    """Return a Markdown table of arguments by command; those of every command are under `common`."""
    commands = next(action for action in _actions(parser()) if action.dest == "command")
    by_name: dict[str, argparse.ArgumentParser] = dict(commands.choices)
    tables = {
        name: _table([a for a in _actions(each) if a.dest not in COMMON]) for name, each in by_name.items()
    }
    some = next(iter(by_name.values()))
    tables["common"] = _table([a for a in _actions(some) if a.dest in COMMON])
    return tables


def _actions(of: argparse.ArgumentParser) -> list[Any]:
    return list(of._actions)  # pyright: ignore[reportPrivateUsage] - argparse offers no other way to ask


def _table(actions: list[Any]) -> str:
    if not actions:
        return "No options of its own.\n"
    rows = [f"| {_name(action)} | {_help(action)} |" for action in actions]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n"


def _name(action: Any) -> str:
    value = (action.metavar or action.dest.upper()).replace("|", "\\|")
    if not action.option_strings:
        return f"`{value}`"
    spelled = ", ".join(action.option_strings)
    return f"`{spelled}`" if action.nargs == 0 else f"`{spelled} {value}`"


def _help(action: Any) -> str:
    text = str(action.help or "").replace("%(default)s", f"`{action.default}`")
    return text.replace("|", "\\|")
