"""What other installed packages add, found by their entry points; nothing of them is imported before it is asked for.

[project.entry-points."t10.passes"]      name of a pass = module:class derived from t10.passes.registry.Pass
[project.entry-points."t10.dialects"]    name of a dialect = module:function that loads it into the current context
[project.entry-points."t10.chips"]       name of a chip = module:function that returns the path of a chip file
[project.entry-points."t10.codelets"]    name = module:function that returns the path of a file of codelets
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from t10.errors import InputError

PASSES, DIALECTS, CHIPS, CODELETS = GROUPS = ("t10.passes", "t10.dialects", "t10.chips", "t10.codelets")


@cache
def names(group: str, own: Collection[str] = ()) -> dict[str, str]:
    """Return `module:object` by name of what packages add to a group, in order of name.

    Raises `InputError` for a name that two packages have, or a package and T10 itself (`own`).
    """
    from importlib.metadata import entry_points

    found: dict[str, str] = {}
    makers: dict[str, str] = dict.fromkeys(own, "t10")
    for each in sorted(entry_points(group=group), key=lambda each: (each.name, each.value)):
        maker = each.dist.name if each.dist is not None else each.value
        if makers.get(each.name, maker) != maker or found.get(each.name, each.value) != each.value:
            raise InputError(
                f"{group}: {each.name} is added by {maker}, but {makers[each.name]} has it already",
                hint="uninstall one of them",
            )
        found[each.name], makers[each.name] = each.value, maker
    return found


def load(group: str, name: str, own: Collection[str] = ()) -> Any:
    """Return the object that a package adds by a name; raises `InputError` where it cannot be imported."""
    value = names(group, own)[name]
    module, _, attribute = value.partition(":")
    try:
        import importlib

        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever a package does when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{group}: {name} is {value}, which cannot be loaded: {reason}") from error


def file(group: str, name: str, own: Collection[str] = ()) -> Path:
    """Return the file that a package adds by a name."""
    return Path(load(group, name, own)())
