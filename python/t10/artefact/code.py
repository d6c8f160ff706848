"""Users' files that a folder was made with: cost models and codelets, which are code.

A folder states their names and digests and never has them run: whoever reads it names them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t10.artefact.manifest import CodeKind, CodeRecord, digest_of, digest_of_bytes
from t10.codelets.user import code_of_declarations
from t10.cost.registry import file_of
from t10.errors import InputError

FLAGS: dict[CodeKind, str] = {"cost model": "--cost-model", "codelets": "--codelets"}
DIGITS = 12
"""Of a digest, in messages."""


def code_records(cost_model: str, codelets: Sequence[str | Path]) -> tuple[CodeRecord, ...]:
    """Return what a folder states about the files that are named; bundled and registered cost models are none.

    Raises `InputError` for a file that cannot be read.
    """
    records: list[CodeRecord] = []
    file = file_of(cost_model)
    if file is not None:
        files = {file.name: digest_of(file)}
        records.append(CodeRecord(kind="cost model", name=cost_model, files=files))
    for path in map(Path, codelets):
        brought = {name: digest_of_bytes(code) for name, code in code_of_declarations(path).items()}
        files = {path.name: digest_of(path), **brought}
        records.append(CodeRecord(kind="codelets", name=str(path), files=files))
    return tuple(records)


def check_named_again(
    stated: tuple[CodeRecord, ...], named: tuple[CodeRecord, ...], folder: Path | str
) -> None:
    """Raise `InputError` unless the files that are named now are those that a folder states, in the same order."""
    for kind, flag in FLAGS.items():
        wanted = [record for record in stated if record.kind == kind]
        given = [record for record in named if record.kind == kind]
        if len(given) < len(wanted):
            missing = wanted[len(given)]
            raise InputError(
                f"{folder} was made with the {kind} {missing.name} (sha256 {missing.sha256[:DIGITS]}...), "
                "which is a file of yours: it is used only if it is named again",
                hint=f"add {flag} {missing.name}",
            )
        if len(given) > len(wanted):
            raise InputError(f"{folder} was not made with the {kind} {given[len(wanted)].name}")
        for one, other in zip(wanted, given, strict=True):
            _check_same(one, other, folder)


def _check_same(stated: CodeRecord, named: CodeRecord, folder: Path | str) -> None:
    """Raise `InputError` unless two files, and those that they name, have the same contents."""
    if _function(stated.name) != _function(named.name):
        raise InputError(f"{folder} was made with the {stated.kind} {stated.name}, not {named.name}")
    for (name, one), other in zip(stated.files.items(), named.files.values(), strict=False):
        if one != other:
            take_it = f"t10 manifest {folder} {FLAGS[stated.kind]} {named.name}"
            raise InputError(
                f"{named.name} is not the {stated.kind} file that {folder} was made with: {name} has sha256 "
                f"{other.sha256[:DIGITS]}..., expected {one.sha256[:DIGITS]}...",
                hint=f"compile again, or take it as it is with `{take_it}`",
            )


def _function(name: str) -> str:
    """Return the function of FILE.py:FUNCTION, empty where none is named."""
    return name.rpartition(".py")[2]
