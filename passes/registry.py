"""The passes by name, and what a pass is.

To add one: (1) write `passes/my_thing.py` with a frozen dataclass derived from `Pass`: `name = "t10-my-thing"`, fields
made with `option(default, help=..., unit=...)`, and `apply(module)`; its docstring's first line is its help. (2) Add
`("t10-my-thing", "t10.passes.my_thing:MyThing")` to `PASSES`. (3) If it needs others, list them in `prerequisites` and
give those an `is_done(module)`: they then run first where missing, with options of the same name handed down.
(4) Refuse input with `raise PassFailure(op, "found ..., expected ...")` or another `T10Error`. (5) Test it with lit.
A pass of another package needs no line in `PASSES`: an entry point of group `t10.passes` (docs/your-first-pass.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from t10.core import plugins
from t10.dialect.location import location_text
from t10.errors import InputError, T10Error, UnsupportedOpError

PASSES: tuple[tuple[str, str], ...] = (
    ("t10-import", "t10.passes.import_onnx:ImportOnnx"),
    ("t10-flatten", "t10.passes.flatten:Flatten"),
    ("t10-outline-constants", "t10.passes.outline_constants:OutlineConstants"),
    ("t10-fuse", "t10.passes.fuse:Fuse"),
    ("t10-partition", "t10.passes.partition:PartitionOperators"),
    ("t10-align-pace", "t10.passes.align_pace:AlignPace"),
    ("t10-pareto", "t10.passes.pareto:Pareto"),
    ("t10-reconcile", "t10.passes.reconcile:Reconcile"),
    ("t10-expand", "t10.passes.expand:Expand"),
    ("t10-canonicalize", "t10.passes.canonicalize:Canonicalize"),
    ("t10-place", "t10.passes.place:Place"),
    ("t10-lower-ipu", "t10.passes.lower_ipu:LowerIpu"),
    ("t10-verify-layouts", "t10.passes.verify_layouts:VerifyLayouts"),
    ("t10-verify-plan", "t10.passes.verify_plan:VerifyPlan"),
)
"""Flag and `module:Class` of every pass, in pipeline order; a module is imported when its pass is first used."""


_OWN = tuple(name for name, _ in PASSES)


class PassFailure(UnsupportedOpError):
    """A pass cannot handle an operation; shown at the operation's location."""

    def __init__(self, op: Any, message: str, *, hint: str | None = None) -> None:
        """Keep the message and the operation's location (not the operation: it may be gone when this is shown)."""
        op = op.operation
        super().__init__(f"'{op.name}' op {message}", location=location_text(op.location), hint=hint)


class PassOptionError(InputError):
    """A pass option that does not exist or whose value cannot be read."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A step that rewrites a module in place. Fields are its options (see `option`); needs a current context.

    `prerequisites` are names of passes that must have run; `is_done` of those says whether they have. They run with
    this pass's options of the same names, and with those that it `hands_down`. `reads` and `leaves` say for the
    reference page what a module must hold before and holds after the pass.
    """

    name: ClassVar[str] = ""
    prerequisites: ClassVar[tuple[str, ...]] = ()
    hands_down: ClassVar[Mapping[str, Any]] = {}
    reads: ClassVar[str] = ""
    leaves: ClassVar[str] = ""

    def apply(self, module: Any) -> None:
        """Rewrite `module`; raises `PassFailure` or another `T10Error` and leaves valid IR behind otherwise."""
        raise T10Error(f"pass {self.name} does not say what it does")

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether `module` already is what this pass leaves behind; asked only of prerequisites."""
        del module
        return False

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]


def option(default: Any, *, help: str, unit: str = "") -> Any:
    """Return a dataclass field that is a pass option: its default, what it does and its unit.

    The type of the field is one of int, float, bool, str, tuple[int, ...] and tuple[str, ...] (elements separated by
    commas on the command line).
    """
    return field(default=default, metadata={"help": help, "unit": unit})


def load(name: str) -> type[Pass]:
    """Return the class of a pass by its name; raises `InputError` for a name that is not registered."""
    path = dict(PASSES).get(name)
    if path is not None:
        module, _, attribute = path.partition(":")
        own: type[Pass] = getattr(importlib.import_module(module), attribute)
        return own
    if name not in added():
        raise InputError(f"no pass named {name} (expected one of {', '.join((*dict(PASSES), *added()))})")
    found = plugins.load(plugins.PASSES, name, _OWN)
    if not (isinstance(found, type) and issubclass(found, Pass) and found.name == name):
        raise InputError(
            f"t10.passes: {name} is {added()[name]}, expected a class derived from t10.passes.registry.Pass with name "
            f"= {name!r}"
        )
    return found


def added() -> dict[str, str]:
    """Return `module:Class` by name of the passes that other installed packages add."""
    return plugins.names(plugins.PASSES, _OWN)


def is_registered(name: str) -> bool:
    """Return whether a name is one of ours, or of a pass that another package adds."""
    return name in dict(PASSES) or name in added()


def make(name: str, options: str = "") -> Pass:
    """Return a pass with options read from text such as `chip=test-64 f-op=2,3,1`; raises `PassOptionError`."""
    cls = load(name)
    values: dict[str, Any] = {}
    declared = {known.name: known for known in fields(cls)}
    for key, text in _assignments(name, options):
        known = declared.get(key.replace("-", "_"))
        if known is None:
            expected = ", ".join(each.replace("_", "-") for each in declared) or "none"
            raise PassOptionError(f"pass {name} has no option '{key}' (expected one of: {expected})")
        if known.name in values:
            raise PassOptionError(f"pass {name} has option '{key}' twice (expected once)")
        values[known.name] = _value(name, known, text)
    return cls(**values)


def with_prerequisites(pass_: Pass, module: Any, readers: tuple[str, ...] = ()) -> Iterator[Pass]:
    """Yield the passes to run so that `pass_` can, missing prerequisites first and `pass_` last.

    Lazy: what is missing is decided when the next pass is asked for, so run each before taking the next. `readers` are
    the passes that need it. Raises `InputError` for a pass that needs itself.
    """
    readers = (*readers, pass_.name)
    for name in pass_.prerequisites:
        cls = load(name)
        if cls.is_done(module):
            continue
        if name in readers:
            raise InputError(f"pass {name} has itself as a prerequisite: {' needs '.join((*readers, name))}")
        yield from with_prerequisites(_derived(cls, pass_), module, readers)
    yield pass_


def run(pass_: Pass, module: Any) -> None:
    """Run a pass on a module after its missing prerequisites. Needs a current context."""
    for each in with_prerequisites(pass_, module):
        each.apply(module)


def _derived(cls: type[Pass], pass_: Pass) -> Pass:
    """Return a pass with the options it shares, by name, with the pass that needs it."""
    given = {known.name: getattr(pass_, known.name) for known in fields(pass_)} | dict(pass_.hands_down)
    return cls(**{known.name: given[known.name] for known in fields(cls) if known.name in given})


def _assignments(name: str, options: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of every `key=value`, separated by white space; quotes or braces keep white space."""
    import re

    word = re.compile(r"""\s*([\w-]+)(?:=("[^"]*"|'[^']*'|\{[^}]*\}|\S*))?(?=\s|$)|\s*(\S+)""")
    for match in word.finditer(options):
        key, value, junk = match.groups()
        if junk is not None:
            raise PassOptionError(
                f"cannot read '{junk}' in the options of pass {name} (expected key=value ...)"
            )
        if value is None:
            value = "true"
        elif value[:1] in ('"', "'", "{"):
            value = value[1:-1]
        yield key, value


def _value(name: str, known: Field[Any], text: str) -> Any:
    """Return the value of an option's text by the declared type of the field."""
    declared = str(known.type).removesuffix(" | None")
    try:
        if declared == "bool":
            return {"1": True, "true": True, "0": False, "false": False}[text.lower()]
        if declared in ("int", "float"):
            return int(text) if declared == "int" else float(text)
        if declared.startswith("tuple["):
            convert = int if "int" in declared else str
            return tuple(convert(part) for part in text.split(",") if part)
    except (KeyError, ValueError):
        raise PassOptionError(
            f"option {known.name.replace('_', '-')} of pass {name} is '{text}', expected {declared}"
        ) from None
    return text
