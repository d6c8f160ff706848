"""JSON and YAML as plain values: bounded in size, depth and members; no name twice, no NaN, no value in itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import yaml

from t10.core.trust.files import DOCUMENT_BYTES, read_text
from t10.errors import InputError

YAML_BYTES = 1 << 20
YAML_DEPTH = 32
YAML_MEMBERS = 50_000
"""Values of a YAML file, those that aliases repeat counted as often as they stand there."""
YAML_DIGITS = 100
"""Characters of a number: YAML has numbers of base 60, `1:1:1`, which PyYAML takes long over."""
JSON_MEMBERS = 16_000_000
JSON_SUFFIX = ".json"
MAX_SHOWN = 200
Place = tuple[str | int, ...]
"""Keys and numbers of items that lead to a value."""
_OCTAL = re.compile(r"[+-]?0[0-7_]+")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_json(path: Path | str, *, hint: str | None = None) -> dict[str, Any]:
    """Return the object in a JSON file; raises `InputError` where there is none."""
    loaded = read_json_value(path, hint=hint)
    return _mapping(loaded, f"{path}: found a JSON {type(loaded).__name__}, expected an object", hint)


def read_json_value(path: Path | str, *, hint: str | None = None) -> object:
    """Return the value in a JSON file; raises `InputError` where there is none."""
    text = read_text(path, DOCUMENT_BYTES, hint=hint)
    members = text.count(",") + text.count("[") + text.count("{")
    if members > JSON_MEMBERS:
        raise InputError(f"{path}: found {members:,} values, expected at most {JSON_MEMBERS:,}", hint=hint)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise InputError(f"cannot read {path}: lists and objects are nested too deep", hint=hint) from None
    except ValueError as error:
        reason = str(error)[:MAX_SHOWN]
        raise InputError(f"cannot read {path}: it is not JSON: {reason}", hint=hint) from None


def read_yaml(path: Path | str, *, what: str = "", hint: str | None = None) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file; raises `InputError` where there is none. `what` as in `read_text`."""
    source = " ".join(filter(None, (what, str(path))))
    return parse_yaml(read_text(path, YAML_BYTES, what=what, hint=hint), source, hint=hint)


def parse_yaml(text: str, source: str, *, hint: str | None = None) -> dict[str, Any]:
    """Return the mapping in YAML text; raises `InputError` that names its source where there is none."""
    try:
        loaded: object = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        reason = " ".join(str(error).split()).replace('in "<unicode string>", line', "at line")[:MAX_SHOWN]
        raise InputError(f"{source} is not YAML: {reason}", hint=hint) from None
    return _mapping(loaded, f"{source}: expected a mapping of fields, found {type(loaded).__name__}", hint)


def yaml_lines(text: str) -> dict[Place, int]:
    """Return the line of every key and item of YAML text that `parse_yaml` takes, by its path."""
    loader: Any = _Loader(text)  # PyYAML's own methods have no types
    try:
        root: Any = loader.get_single_node()
    finally:
        loader.dispose()
    found: dict[Place, int] = {}
    seen: set[int] = set()
    waiting: list[tuple[Place, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                place = (*path, str(key.value))
                found[place] = key.start_mark.line + 1
                waiting.append((place, value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                place = (*path, number)
                found[place] = value.start_mark.line + 1
                waiting.append((place, value))
    return found


def _mapping(loaded: object, message: str, hint: str | None) -> dict[str, Any]:
    if not isinstance(loaded, dict):
        raise InputError(message, hint=hint)
    return {str(key): value for key, value in cast("dict[object, Any]", loaded).items()}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"found {twice[:MAX_SHOWN]!r} twice in one object, expected it once")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"found {text}, expected a number")


class _Loader(yaml.SafeLoader):
    """PyYAML's loader of plain values, with budgets: it counts values as they are composed, before they are made."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._members = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; raises `YAMLError` where it is beyond a budget or holds itself."""
        parser: Any = self  # PyYAML's own methods have no types
        is_alias: bool = parser.check_event(yaml.AliasEvent)
        mark: Any = parser.peek_event().start_mark
        before = self._members
        self._depth += 1
        if self._depth > YAML_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {YAML_DEPTH}", problem_mark=mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if is_alias and id(node) not in self._sizes:
            raise yaml.MarkedYAMLError(problem="a value holds itself", problem_mark=mark)
        self._members += self._sizes[id(node)] if is_alias else 1
        if self._members > YAML_MEMBERS:
            raise yaml.MarkedYAMLError(problem=f"more than {YAML_MEMBERS:,} values", problem_mark=mark)
        self._sizes[id(node)] = self._members - before
        if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and len(node.value) > YAML_DIGITS:
            raise yaml.MarkedYAMLError(
                problem=f"a number of {len(node.value):,} characters", problem_mark=mark
            )
        if isinstance(node, yaml.MappingNode) and not is_alias:
            self._check_names(node)
        return node

    @staticmethod
    def _check_names(node: yaml.MappingNode) -> None:
        names: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name = (key.tag, key.value)
                if name in names:
                    raise yaml.MarkedYAMLError(
                        problem=f"found '{key.value}' twice, expected it once", problem_mark=key.start_mark
                    )
                names.add(name)


def _number_or_text(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a constructor of numbers that leaves `1:30` and `020` as text: YAML 1.1 takes them for 90 and 16."""
    return lambda loader, node: node.value if _is_unclear(node.value) else make(loader, node)


def _is_unclear(text: str) -> bool:
    """Return whether YAML 1.1 and 1.2 read a number differently: of base 60, or octal."""
    return ":" in text or _OCTAL.fullmatch(text) is not None


for _kind in ("int", "float"):
    _make = getattr(yaml.SafeLoader, f"construct_yaml_{_kind}")
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number_or_text(_make))
