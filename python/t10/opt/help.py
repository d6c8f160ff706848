"""What `--help`, `--list-passes` and `--show-dialects` print."""

from __future__ import annotations

import re
import textwrap
from dataclasses import fields
from typing import Any, cast

from t10.dialect.mlir import ir
from t10.errors import InputError
from t10.opt.options import BY_FLAG, spelled
from t10.opt.runner import COMMON_BUILTIN_PASSES
from t10.passes import registry

_WIDTH = 110
_INDENT = 44

_HEAD = """t10-opt: run compiler passes on MLIR text or bytecode, as mlir-opt does, with the dialects rtensor and ipu

usage: t10-opt [options] [--<pass>[="key=value ..."]]... [FILE]

FILE is MLIR text, bytecode or onnx-mlir's --EmitONNXIR text (- or nothing: standard input). Passes run in the order
given; built-in passes mix with those of t10, which run the passes they need where those have not run yet.
"""

_TAIL = """Exit codes:
  0 success   1 wrong command line, or --verify-diagnostics found a difference   2 input cannot be read or is invalid
  3 unsupported operation or form   4 does not fit the chip   5 a check failed   70 a defect of t10-opt itself
  130 interrupted
"""


def help_text() -> str:
    """Return the text of `--help`: every option and every pass with its options, defaults and units."""
    groups: dict[str, list[str]] = {}
    for known in BY_FLAG.values():
        groups.setdefault(known.metadata["group"], []).append(_entry(spelled(known), _described(known)))
    parts = [_HEAD]
    parts += [f"{name} options:\n" + "".join(entries) for name, entries in groups.items()]
    parts.append("Passes of t10:\n" + "".join(_pass_entry(name) for name, _ in registry.PASSES))
    if registry.added():
        parts.append("Passes of other packages:\n" + "".join(map(_pass_entry, registry.added())))
    listed = "".join(_entry(f"--{name}", f"{text}.") for name, text in COMMON_BUILTIN_PASSES)
    parts.append("Built-in passes (some of those that MLIR registers; all can be used by name):\n" + listed)
    parts.append(_TAIL)
    return "\n".join(parts)


def passes_text() -> str:
    """Return one line per pass of ours."""
    return "".join(f"{name:<26}{_summary(name)}\n" for name in (*dict(registry.PASSES), *registry.added()))


def _summary(name: str) -> str:
    """Return the first line about a pass; why one of another package cannot be loaded."""
    try:
        return registry.load(name).summary()
    except InputError as error:
        return f"({error.message})"


def dialects_text() -> str:
    """Return the names of all dialects that can be used, as mlir-opt lists them. Needs a current context."""
    # The bindings have no list; the parser names them all when it meets a dialect that does not exist.
    try:
        ir.Module.parse("t10_no_such_dialect.op")
    except ir.MLIRError as error:
        found = re.search(r"Available dialects: (.*?) \(\* corresponding", str(error))
        if found is not None:
            names = sorted(name.removesuffix(" (*)") for name in found[1].split(", "))
            return f"Available Dialects: {','.join(names)}\n"
    return "Available Dialects: (this version of MLIR's bindings does not list them)\n"


def _pass_entry(name: str) -> str:
    """Return the help of one pass and of its options."""
    try:
        cls = registry.load(name)
    except InputError as error:
        return _entry(f"--{name}", f"({error.message})")
    entry = _entry(f"--{name}", cls.summary())
    if cls.prerequisites:
        entry += _entry("", f"Runs first where missing: {', '.join(cls.prerequisites)}.")
    for known in fields(cls):
        unit = f", unit: {known.metadata['unit']}" if known.metadata.get("unit") else ""
        described = f"{known.metadata.get('help', '')} (default: {_default(known.default)}{unit})"
        entry += _entry(f"    {known.name.replace('_', '-')}=<{known.type}>", described)
    return entry


def _described(known: Any) -> str:
    """Return an option's help with its default."""
    implied = f", without a value: {known.metadata['implied']}" if known.metadata["implied"] else ""
    return f"{known.metadata['help']} (default: {_default(known.default)}{implied})"


def _default(value: Any) -> str:
    """Return a default as a user would write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value in ((), ""):
        return "none"
    if isinstance(value, tuple):
        return ",".join(str(element) for element in cast("tuple[Any, ...]", value))
    return str(value)


def _entry(left: str, text: str) -> str:
    """Return one entry in two columns."""
    lines = textwrap.wrap(text, _WIDTH - _INDENT) or [""]
    head = f"  {left}"
    if len(head) >= _INDENT:
        first = f"{head}\n{' ' * _INDENT}{lines[0]}\n"
    else:
        first = f"{head:<{_INDENT}}{lines[0]}\n"
    return first + "".join(f"{' ' * _INDENT}{line}\n" for line in lines[1:])
