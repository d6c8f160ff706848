"""Models read by onnx-mlir: its tools turn a file into text of the onnx dialect, which T10 then imports.

with readable(Path("model.onnx"), "onnx-mlir") as (text, source):
    imported = import_model(text, source=source)
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from t10.errors import InputError

_IMPORTER = "onnx-mlir"
_OPTIMIZER = "onnx-mlir-opt"
_PASSES = ("--decompose-onnx", "--shape-inference", "--canonicalize", "--constprop-onnx", "--shape-inference")
_MOST_LINES = 3


@contextmanager
def readable(model: Path, frontend: str, flags: str | Sequence[str] = ()) -> Generator[tuple[Path, str]]:
    """Yield the file to import and what errors call it: the model itself, or what `frontend` onnx-mlir makes of it.

    A model is read by onnx-mlir (`--EmitONNXIR`); text of the onnx dialect also by onnx-mlir-opt, where that is all
    there is. `flags` are for the tool; one text is split as a shell would. The file is gone afterwards.
    Raises `InputError` if neither is on the path, and if the tool refuses the model or writes nothing.
    """
    words = _words(flags)
    if frontend == "t10":
        if words:
            raise InputError(
                f"--frontend-flags is {' '.join(words)!r}, but T10 reads the model itself",
                hint=f"flags are for --frontend={_IMPORTER}",
            )
        yield model, str(model)
        return
    if frontend != _IMPORTER:
        raise InputError(f"--frontend is {frontend!r} (expected t10 or {_IMPORTER})")
    if not model.is_file():
        raise InputError(f"model file {model} does not exist (expected a file for {_IMPORTER})")
    with TemporaryDirectory(prefix="t10-onnx-mlir-") as folder:
        yield _emitted(model, Path(folder), words), f"{model} as {_IMPORTER} gives it"


def _words(flags: str | Sequence[str]) -> list[str]:
    """Return flags word by word; raises `InputError` for text that a shell would not split."""
    if not isinstance(flags, str):
        return list(flags)
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise InputError(f"--frontend-flags is {flags!r}: {error}") from error


def _emitted(model: Path, folder: Path, flags: list[str]) -> Path:
    importer, optimizer = shutil.which(_IMPORTER), shutil.which(_OPTIMIZER)
    if importer:
        _run(
            _IMPORTER,
            [importer, "--EmitONNXIR", *flags, str(model.resolve()), "-o", str(folder / model.stem)],
            folder,
        )
    elif optimizer and model.suffix == ".mlir":
        target = folder / f"{model.stem}.onnx.mlir"
        _run(_OPTIMIZER, [optimizer, *_PASSES, *flags, str(model.resolve()), "-o", str(target)], folder)
    else:
        found = (
            f"only {_OPTIMIZER} is, which does not read {model.suffix} files"
            if optimizer
            else "nor onnx-mlir-opt"
        )
        raise InputError(
            f"onnx-mlir is not on the path ({found})",
            hint="build it (https://github.com/onnx/onnx-mlir), or leave --frontend away: T10 reads ONNX by itself",
        )
    written = sorted(folder.glob("*.mlir"))
    if not written:
        raise InputError(
            f"onnx-mlir wrote no .mlir file for {model}", hint="does `onnx-mlir --EmitONNXIR` work alone?"
        )
    return written[0]


def _run(name: str, command: list[str], folder: Path) -> None:
    """Run a tool; raises `InputError` with the last lines it wrote if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise InputError(f"{name} cannot be started: {error.strerror}") from error
    if done.returncode == 0:
        return
    how = f"exit code {done.returncode}"
    if done.returncode < 0:
        how = f"signal {signal.Signals(-done.returncode).name}"
    lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    told = "; ".join(lines[-_MOST_LINES:]).replace(f"{folder}{os.sep}", "") or "it wrote nothing"
    raise InputError(
        f"{name} refuses the model ({how}): {told}", hint="T10 may read it by itself, without --frontend"
    )
