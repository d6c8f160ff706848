"""The reviewed list of what every test gives: one line per test, ordered by name.

    node/test_abs [Abs-13]: pass
    node/test_slice [Slice-13]: pass with constants axes, ends, starts, steps
    node/test_range [Range-11]: pass; on tiles unsupported: no codelet computes f64
    node/test_string_concat [StringConcat-20]: unsupported: input 'x' is text (expected numbers)

A line of `pass with constants` names inputs of the model that were given as constants (`--constant`): without them the
model is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import onnx

from t10.conformance.verdict import EXPECTABLE, Status, Verdict
from t10.core.atomic import write_text
from t10.core.trust.files import SOURCE_BYTES, read_text
from t10.errors import InputError

REPOSITORY_LIST = Path(__file__).resolve().parents[3] / "test" / "conformance" / "expected.txt"
"""The list, where this code runs from a checkout: an installed package has none."""

_LINE = re.compile(
    r"(?P<name>\S+)(?: \[(?P<operator>\S+)\])?: "
    r"(?:(?P<unsupported>unsupported): (?P<reason>.+)|"
    r"pass(?: with constants (?P<constants>[^;]+))?(?:; on tiles unsupported: (?P<tiles>.+))?)"
)
_HEADER = "# What the tests of onnx {} give (t10 conformance). Written by `t10 conformance --update`, then reviewed.\n"
_VERSION = re.compile(r"# What the tests of onnx (\S+) give")


@dataclass(frozen=True, slots=True)
class Expectations:
    """Expected verdicts by test name, and the version of the onnx package whose tests they are of."""

    onnx_version: str
    verdict_by_name: Mapping[str, Verdict]

    @property
    def is_of_this_onnx(self) -> bool:
        """Return whether the installed onnx package is the one the list was made with."""
        return self.onnx_version == onnx.__version__


def list_path(path: Path | None = None) -> Path:
    """Return a path given, or that of the repository's list; raises `InputError` where neither is a file."""
    found = path or REPOSITORY_LIST
    if not found.is_file():
        raise InputError(
            f"no list of what every test is expected to give: {found}",
            hint="it is test/conformance/expected.txt of T10's repository: run there, or say --list FILE",
        )
    return found


def read_expectations(path: Path | None = None) -> Expectations:
    """Return the list of a file (default: the repository's).

    Raises `InputError` where there is none, and for malformed lines, double names and disorder.
    """
    path = list_path(path)
    lines = read_text(path, SOURCE_BYTES).splitlines()
    version = _VERSION.match(lines[0]) if lines else None
    if version is None:
        raise InputError(f"{path}:1: expected {_HEADER.format('VERSION').strip()!r}")
    found: dict[str, Verdict] = {}
    last = ""
    for number, line in enumerate(lines[1:], start=2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(
                f"{path}:{number}: expected `test [Operator-opset]: pass` or `unsupported: reason`"
            )
        name = match["name"]
        if name <= last:
            raise InputError(f"{path}:{number}: {name} stands twice or out of order")
        last = name
        status: Status = "unsupported" if match["unsupported"] else "pass"
        constants = tuple((match["constants"] or "").split(", ")) if match["constants"] else ()
        found[name] = Verdict(
            name, match["operator"] or "", status, match["reason"] or "", constants,
            tiles=_tiles_of(name, status, match["tiles"]), tiles_reason=match["tiles"] or "",
        )  # fmt: skip
    return Expectations(version[1], found)


def _tiles_of(name: str, status: Status, refusal: str | None) -> Status | Literal[""]:
    """Return what the simulator of tiles gives where nothing is listed: a pass, but networks are not tried on it."""
    if status != "pass" or name.startswith("light/"):
        return ""
    return "unsupported" if refusal else "pass"


def write_expectations(verdicts: Iterable[Verdict], path: Path) -> None:
    """Write the list of verdicts; defects are left out, as nothing but passes and refusals is ever expected."""
    listed = sorted((v for v in verdicts if v.status in EXPECTABLE), key=lambda verdict: verdict.name)
    write_text(path, _HEADER.format(onnx.__version__) + "".join(f"{line_of(each)}\n" for each in listed))


def line_of(verdict: Verdict) -> str:
    """Return a verdict as a line of the list; defects look alike, but the list does not take them."""
    operator = f" [{verdict.operator}]" if verdict.operator else ""
    constants = f" with constants {', '.join(verdict.constants)}" if verdict.constants else ""
    reason = f": {verdict.reason}" if verdict.reason else ""
    on_tiles = f"; on tiles {verdict.tiles}: {verdict.tiles_reason}" if verdict.tiles_reason else ""
    return f"{verdict.name}{operator}: {verdict.status}{constants}{reason}{on_tiles}"


def surprises(verdicts: Sequence[Verdict], expected: Expectations) -> tuple[str, ...]:
    """Return a line for every verdict that is not the expected one, in the order of the verdicts.

    The words of a reason may change; that a test passes, needs constants or is refused may not. Tests that are not
    listed count only if the list was made with the installed onnx package: later ones bring tests of their own.
    Defects always count.
    """
    lines: list[str] = []
    for found in verdicts:
        wanted = expected.verdict_by_name.get(found.name)
        is_defect = any(status and status not in EXPECTABLE for status in (found.status, found.tiles))
        if wanted is None:
            if is_defect or expected.is_of_this_onnx:
                lines.append(f"{line_of(found)} (not listed)")
        elif is_defect or _kind_of(wanted) != _kind_of(found):
            lines.append(f"{line_of(found)} (expected {line_of(wanted).partition(': ')[2]})")
    return tuple(lines)


def _kind_of(verdict: Verdict) -> tuple[str, ...]:
    return (verdict.status, verdict.tiles, *verdict.constants)


def reworded(verdicts: Sequence[Verdict], expected: Expectations) -> tuple[str, ...]:
    """Return the names of tests that are refused as expected, but in other words than the list has."""
    listed = expected.verdict_by_name
    return tuple(
        found.name
        for found in verdicts
        if found.name in listed
        and _kind_of(found) == _kind_of(listed[found.name])
        and (found.reason, found.tiles_reason) != (listed[found.name].reason, listed[found.name].tiles_reason)
    )


def merged(verdicts: Iterable[Verdict], expected: Expectations) -> tuple[Verdict, ...]:
    """Return the listed verdicts with those found put in their place."""
    return tuple({**expected.verdict_by_name, **{each.name: each for each in verdicts}}.values())
