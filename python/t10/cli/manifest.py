"""`t10 manifest OUT`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.artefact import MANIFEST_FILE, Description, FileRecord, Manifest, remade
from t10.artefact.code import code_records
from t10.artefact.manifest import read_manifest
from t10.chip import load_chip
from t10.cli.arguments import Arguments
from t10.cli.terminal import say, stdout
from t10.core.trust.files import MODEL_BYTES, read_text
from t10.cost.registry import file_of
from t10.driver import MODULE_FILE
from t10.errors import InputError
from t10.report.stages import STAGES_FILE
from t10.report.table import count_text

ANEW = "to make one anew give --chip CHIP, and the files of --cost-model and --codelets that the folder was made with"


def run_manifest(arguments: Arguments) -> int:
    """Write a folder's manifest for the files that lie there, and say what is not as the former one said."""
    folder = arguments.folder
    if (folder / STAGES_FILE).is_file():
        raise InputError(
            f"{folder} holds stages, whose manifest is not made anew", hint="compile the model again"
        )
    if not (folder / MODULE_FILE).is_file():
        raise InputError(f"{folder} has no {MODULE_FILE}: it is no folder that `t10 compile` wrote")
    former = _former(arguments)
    files = remade(folder, _named(arguments, former.about if former else _of_module(arguments)))
    console = stdout(quiet=arguments.quiet)
    for change in _changes(former.files, files) if former else ():
        say(console, change)
    say(console, f"wrote {folder / MANIFEST_FILE}: {count_text(len(files), 'file')}")
    return 0


def _former(arguments: Arguments) -> Manifest | None:
    """Return the manifest that is there, None where `--chip` makes up for one that is missing or unreadable."""
    try:
        return read_manifest(arguments.folder, check_seal=False)
    except InputError as error:
        if arguments.chip:
            return None
        raise InputError(error.message, hint=ANEW) from None


def _of_module(arguments: Arguments) -> Description:
    """Return the description of a folder without a manifest, as far as its module states it."""
    from t10.passes.pipeline import stated_target

    path, chip = arguments.folder / MODULE_FILE, load_chip(arguments.chip)
    stated_chip, cost_model = stated_target(read_text(path, MODEL_BYTES), str(path))
    if stated_chip != chip.name:
        raise InputError(f"{path} is planned for the chip {stated_chip}, not for {chip.name}")
    return Description(
        source="", chip=chip, cost_model=cost_model, code=(), options={}, measured={}, planner_seconds={}
    )  # fmt: skip


def _named(arguments: Arguments, about: Description) -> Description:
    """Return a description with the chip and the users' files that the command line names."""
    named = code_records(arguments.cost_model, arguments.codelets)
    kinds = {record.kind for record in named}
    code = (*named, *(record for record in about.code if record.kind not in kinds))
    has_cost_file = any(record.kind == "cost model" for record in code)
    if has_cost_file != (file_of(about.cost_model) is not None):
        raise InputError(
            f"{arguments.folder} is planned under cost model {about.cost_model}"
            + (
                f", not {arguments.cost_model}"
                if has_cost_file
                else f": name it with --cost-model {about.cost_model}"
            )
        )
    chip = load_chip(arguments.chip) if arguments.chip else about.chip
    return about.model_copy(update={"chip": chip, "code": code})


def _changes(former: Mapping[str, FileRecord], files: Mapping[str, FileRecord]) -> Iterator[str]:
    """Yield what became of files, one line each."""
    for name in sorted({*former, *files}):
        if name not in former:
            yield f"added: {name}"
        elif name not in files:
            yield f"gone: {name}"
        elif former[name] != files[name]:
            yield f"changed: {name}"
