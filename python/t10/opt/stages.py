"""Stages on the way from a model to a program: where `--compile-to` stops, and what `--dump-stages` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t10.core.atomic import write_text
from t10.errors import InputError
from t10.opt.options import STAGES, Settings, UsageError
from t10.opt.pipeline import Step, steps_of_text
from t10.opt.printing import asm

_BY_PASS = {name: stage for stage, name in STAGES.items()}


def steps_to(stage: str, options: str) -> tuple[Step, ...]:
    """Return the step that leads to a stage, after those that it needs: its pass with options as text."""
    name = STAGES[stage]
    return steps_of_text(f"builtin.module({name}{{{options}}})" if options else f"builtin.module({name})")


def stage_of(text: str) -> tuple[str, str]:
    """Return name and options of `STAGE` or `STAGE:key=value ...`; raises `UsageError` for no stage of ours."""
    stage, _, options = text.partition(":")
    if stage not in STAGES:
        raise UsageError(f"option --compile-to is '{stage}', expected one of {', '.join(STAGES)}")
    return stage, options


class StageWriter:
    """Writes the module after the pass that completes a stage, numbered in the order in which stages come."""

    def __init__(self, settings: Settings) -> None:
        """Write nothing where no folder is given."""
        self._settings = settings
        self._folder = None if settings.dump_stages is None else Path(settings.dump_stages)

    def after(self, name: str, module: Any) -> None:
        """Write the module if a pass of this name completes a stage; raises `InputError` where that is not possible."""
        if self._folder is None or name not in _BY_PASS:
            return
        stage = _BY_PASS[name]
        number = list(STAGES).index(stage)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write into {self._folder}: {error.strerror}") from None
        write_text(self._folder / f"{number}-{stage}.mlir", asm(module, self._settings))
