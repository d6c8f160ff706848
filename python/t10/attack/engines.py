"""A compiled model on one or more engines: the same inputs, one set of outputs each."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from t10.arrays import Arrays
from t10.backend import ENGINES, Engine, lowered, run_on_host, run_on_tiles, write_program
from t10.driver import Executable, Progress
from t10.staged import StagedExecutable

ALL = "all"


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines that execute a model; `program` is the folder of its program, where one of them needs it."""

    executable: Executable | StagedExecutable
    names: tuple[Engine, ...]
    program: Path | None = None

    def run(
        self, inputs: Arrays, progress: Progress | None = None
    ) -> tuple[Mapping[Engine, Arrays], int | None]:
        """Return outputs by engine, and the cycles of the first engine that counts them."""
        outputs: dict[Engine, Arrays] = {}
        cycles: int | None = None
        for name in self.names:
            executable = self.executable
            if isinstance(executable, StagedExecutable) or name == "plan":
                result = executable.execute(inputs, progress=progress)
            elif name == "poplar-host" and self.program is not None:
                outputs[name] = run_on_host(executable, self.program, inputs)
                continue
            else:
                result = run_on_tiles(executable, inputs, self.program, progress=progress)
            outputs[name] = dict(result.outputs)
            cycles = result.cycles if cycles is None else cycles
        return outputs, cycles


def engine_names(text: str) -> tuple[Engine, ...]:
    """Return the engines that a name stands for."""
    return tuple(name for name in ENGINES if text in (name, ALL))


@contextmanager
def prepared(executable: Executable | StagedExecutable, names: tuple[Engine, ...]) -> Generator[Engines]:
    """Yield the engines of a model; its program is written to a folder that is gone afterwards."""
    if names == ("plan",) or isinstance(executable, StagedExecutable):
        yield Engines(executable, names)
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        program.mkdir()
        write_program(executable, lowered(executable), program)
        yield Engines(executable, names, program)
