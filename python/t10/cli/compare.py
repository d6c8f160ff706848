"""`t10 compare`: a model as several systems plan it, or two compiled models."""

from __future__ import annotations

from collections.abc import Mapping

from t10.cli.arguments import Arguments
from t10.cli.compare_runs import compare_runs
from t10.errors import InputError


def run_compare(arguments: Arguments) -> int:
    """Compare what was asked for. Raises `InputError` for a single folder, and for options of the other form."""
    if arguments.other is not None:
        chosen = {
            "--chip": arguments.chips,
            "--only": arguments.only,
            "--evaluations": arguments.evaluations,
            "--partials": arguments.partials,
            "--batch": arguments.varied,
            "--shape": arguments.shapes,
        }
        _refuse(chosen, "two folders")
        return compare_runs(arguments)
    if arguments.model.is_dir():
        raise InputError(
            f"{arguments.model} is one folder (expected a model, or two folders that `t10 compile` wrote)"
        )
    _refuse({"--rows": arguments.rows is not None, "--json": arguments.as_json}, "a model")
    from t10.cli.compare_systems import compare_systems

    return compare_systems(arguments)


def _refuse(chosen: Mapping[str, object], what: str) -> None:
    """Raise `InputError` for an option that was given and does not apply."""
    for option, value in chosen.items():
        if value:
            raise InputError(
                f"{option} does not apply where {what} {'are' if what[0] == 't' else 'is'} compared"
            )
