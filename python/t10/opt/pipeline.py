"""Textual pass pipelines: `builtin.module(t10-fuse,func.func(canonicalize,cse),t10-partition{chip=test-64})`.

A pipeline becomes a flat sequence of steps, one pass each, so that passes written in Python and built-in passes mix
freely and every step can be printed, timed and verified by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from t10.opt.options import PassFlag, UsageError
from t10.passes import registry

_NAME = re.compile(r"\s*([\w.-]+)\s*")
_SEPARATOR = re.compile(r"\s*(,|$)")
_IMPORT = "t10-import"
_CLOSING = {"{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: its options as text and the operations it is nested in, inside the module, outermost first.

    `implicit` steps come from a flag: a pass that only runs on functions is then nested as needed.
    """

    name: str
    options: str = ""
    nest: tuple[str, ...] = ()
    implicit: bool = False

    @property
    def is_ours(self) -> bool:
        """Return whether the pass is one of the registry's."""
        return registry.is_registered(self.name)

    @property
    def text(self) -> str:
        """Return the step as pipeline text, without `builtin.module`."""
        text = f"{self.name}{{{self.options}}}" if self.options else self.name
        for anchor in reversed(self.nest):
            text = f"{anchor}({text})"
        return text


@dataclass(frozen=True, slots=True)
class _Element:
    """A pass with options, or an operation with nested elements."""

    name: str
    options: str
    nested: tuple[_Element, ...] | None


def steps_of_flags(passes: tuple[PassFlag, ...]) -> tuple[Step, ...]:
    """Return the steps of passes given as flags."""
    return tuple(Step(each.name, _unquoted(each.options), implicit=True) for each in passes)


def steps_of_text(text: str) -> tuple[Step, ...]:
    """Return the steps of a textual pipeline; raises `UsageError` with the column where it cannot be read."""
    elements = _parse(text, text, 0)
    if len(elements) != 1 or elements[0].name != "builtin.module" or elements[0].nested is None:
        raise UsageError(f"pipeline '{text}' must be of the form 'builtin.module(pass,...)'")
    return tuple(_flatten(elements[0].nested, ()))


def with_import_options(steps: tuple[Step, ...], options: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the steps with options for the import of a model: those of the step that imports, or of a first one.

    Raises `UsageError` where that step has one of the options already.
    """
    if not options:
        return steps
    text = " ".join(f'{name}="{value}"' for name, value in options.items())
    found = next((i for i, step in enumerate(steps) if step.name == _IMPORT), None)
    if found is None:
        return (Step(_IMPORT, text), *steps)
    step = steps[found]
    for name in options:
        if re.search(rf"(^|\s){name}=", step.options):
            raise UsageError(f"--{name} is an option of the pipeline's {_IMPORT}, too: give it once")
    return (*steps[:found], replace(step, options=f"{text} {step.options}".strip()), *steps[found + 1 :])


def pipeline_text(steps: tuple[Step, ...]) -> str:
    """Return the pipeline that `steps_of_text` turns into `steps`."""
    return f"builtin.module({','.join(step.text for step in steps)})"


def _flatten(elements: tuple[_Element, ...], nest: tuple[str, ...]) -> list[Step]:
    """Return the passes of nested elements in order."""
    steps: list[Step] = []
    for element in elements:
        if element.nested is not None:
            steps += _flatten(element.nested, (*nest, element.name))
            continue
        if nest and registry.is_registered(element.name):
            raise UsageError(f"pass {element.name} runs on builtin.module, found inside {nest[-1]}(...)")
        steps.append(Step(element.name, element.options, nest))
    return steps


def _parse(text: str, whole: str, offset: int) -> tuple[_Element, ...]:
    """Return the elements of one nesting level; `offset` is the column of `text` in the whole pipeline."""
    elements: list[_Element] = []
    position = 0
    while text[position:].strip() or elements:
        match = _NAME.match(text, position)
        if match is None:
            raise _error("expected the name of a pass or operation", whole, offset + position)
        position = match.end()
        options, nested = "", None
        if position < len(text) and text[position] in _CLOSING:
            end = _closing(text, position, whole, offset)
            inner = text[position + 1 : end]
            if text[position] == "{":
                options = inner.strip()
            else:
                nested = _parse(inner, whole, offset + position + 1)
            position = end + 1
        elements.append(_Element(match[1], options, nested))
        separator = _SEPARATOR.match(text, position)
        if separator is None:
            raise _error("expected ',' or the end", whole, offset + position)
        position = separator.end()
        if not separator[1]:
            break
    return tuple(elements)


def _closing(text: str, start: int, whole: str, offset: int) -> int:
    """Return the position of the bracket that closes the one at `start`."""
    opening, closing = text[start], _CLOSING[text[start]]
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position
    raise _error(f"unbalanced '{opening}'", whole, offset + start)


def _error(message: str, whole: str, column: int) -> UsageError:
    """Return an error with a caret under the place in the pipeline."""
    return UsageError(f"{message} at column {column + 1} of the pipeline\n  {whole}\n  {' ' * column}^")


def _unquoted(options: str) -> str:
    """Return the options of a flag without the quotes a shell may have left."""
    options = options.strip()
    if len(options) >= 2 and options[0] == options[-1] and options[0] in "'\"":
        return options[1:-1]
    return options
