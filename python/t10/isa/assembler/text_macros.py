"""Macros of the assembler (`.macro`): parameters, arguments, and substitution in their bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from t10.isa.assembler.lines import Line, Problem

_PARAMETER: Final = re.compile(
    r'\s*,?\s*([A-Za-z_][\w$]*)(?:\s*:\s*(req|vararg))?(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^,\s]*))?'
)
_NAME: Final = re.compile(r"\s*([A-Za-z_.][\w.$]*)")
_REFERENCE: Final = re.compile(r"\\(?:([A-Za-z_][\w$]*)|(@)|\(\))")
_KEYWORD: Final = re.compile(r"\s*([A-Za-z_][\w$]*)\s*=(?!=)")
_OPERATORS: Final = frozenset("+-*/%&|^~<>=!")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default, and whether it must be given or takes all that is left."""

    name: str
    default: str = ""
    is_required: bool = False
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class TextMacro:
    """A macro of the assembler and the lines of its body."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Line, ...]


def parse_header(text: str, column: int) -> tuple[str, tuple[Parameter, ...]]:
    """Return name and parameters of a macro from what stands behind `.macro`. Raises Problem."""
    match = _NAME.match(text)
    if match is None:
        raise Problem(".macro needs a name", column)
    name, position = match[1], match.end()
    parameters: list[Parameter] = []
    while text[position:].strip(" ,\t"):
        found = _PARAMETER.match(text, position)
        if found is None:
            raise Problem(f"parameter of macro '{name}' is not understood", column + position)
        if parameters and parameters[-1].is_rest:
            raise Problem(f"parameter '{parameters[-1].name}' of macro '{name}' must be the last", column)
        qualifier, default = found[2] or "", found[3] or ""
        parameters.append(Parameter(found[1], _unquoted(default), qualifier == "req", qualifier == "vararg"))
        position = found.end()
    names = [parameter.name for parameter in parameters]
    if len(set(names)) != len(names):
        raise Problem(f"macro '{name}' has two parameters of one name", column)
    return name, tuple(parameters)


def bound_arguments(macro: TextMacro, text: str, column: int) -> dict[str, str]:
    """Return the text of every parameter for a call with these arguments. Raises Problem."""
    values = {parameter.name: parameter.default for parameter in macro.parameters}
    given: set[str] = set()
    position = index = 0
    while position < len(text):
        keyword = _KEYWORD.match(text, position)
        if keyword is not None and keyword[1] in values:
            value, position = _argument(text, keyword.end())
            name = keyword[1]
        else:
            if index >= len(macro.parameters):
                raise Problem(
                    f"macro '{macro.name}' takes at most {len(macro.parameters)} arguments", column + position
                )
            parameter = macro.parameters[index]
            name = parameter.name
            index += 1
            if parameter.is_rest:
                value, position = text[position:].strip(), len(text)
            else:
                value, position = _argument(text, position)
        if value:
            values[name] = value
            given.add(name)
    for parameter in macro.parameters:
        if parameter.is_required and parameter.name not in given:
            raise Problem(f"argument '{parameter.name}' of macro '{macro.name}' is missing", column)
    return values


def substituted(text: str, values: dict[str, str], serial: int) -> str:
    r"""Return a line of a body with `\name`, `\@` (a number per expansion) and `\()` (nothing) put in."""
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        if match[2]:
            return str(serial)
        name = match[1]
        return match[0] if name and name not in values else values.get(name or "", "")

    return _REFERENCE.sub(replace, text)


def split_values(text: str) -> list[str]:
    """Return the values of `.irp`, separated by commas or spaces."""
    values: list[str] = []
    position = 0
    while position < len(text):
        value, position = _argument(text, position)
        values.append(value)
    return values


def _argument(text: str, position: int) -> tuple[str, int]:
    """Return one argument and where the next begins: it ends at a comma, or at a space with no operator beside it."""
    while position < len(text) and text[position].isspace():
        position += 1
    start, depth, index = position, 0, position
    while index < len(text):
        char = text[index]
        if char == '"':
            end = text.find('"', index + 1)
            index = len(text) if end < 0 else end + 1
            continue
        depth += (char == "(") - (char == ")")
        if depth <= 0 and char == ",":
            return _unquoted(text[start:index].strip()), index + 1
        if depth <= 0 and char.isspace():
            after = len(text) - len(text[index:].lstrip())
            following = text[after : after + 1]
            if following in ("", ","):
                return _unquoted(text[start:index].strip()), after + 1
            if following not in _OPERATORS and text[index - 1] not in _OPERATORS:
                return _unquoted(text[start:index]), after
            index = after
            continue
        index += 1
    return _unquoted(text[start:].strip()), len(text)


def _unquoted(text: str) -> str:
    """Return a string's content, other text as it is."""
    if len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        return text[1:-1]
    return text
