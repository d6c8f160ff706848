"""Runs a model that just fits on every engine: what compiles must run, alike, where the plan says and as fast.

finding: one of KINDS and a text. A model that is refused has none; see `Outcome.refusal`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_fits import FitCase
from t10.backend import Lowered, lowered, write_program
from t10.cache_folder import default_cache_folder
from t10.chip import ChipSpec
from t10.core.atomic import replaced_file
from t10.core.schedule import ModulePlan
from t10.core.tile import ALIGNMENT_BYTES, OVERREAD_BYTES, TileMemory
from t10.driver import Executable, compile
from t10.errors import InfeasiblePlanError, SimTrap, UnsupportedOpError
from t10.reference import compare, default_tolerance, run_onnx_runtime
from t10.sim.device import run_device
from t10.sim.device.machine import TileMachine, instruction_machine
from t10.sim.device.memory import variable_bytes
from t10.sim.poplar_host import VertexCode, run_program

KINDS = (
    "crash",
    "trap",
    "stray",
    "reference",
    "numbers",
    "host",
    "peak",
    "addresses",
    "cycles",
    "price",
    "bound",
)
"""What goes wrong: an error that is no refusal; a trap; a store to bytes of no variable; plan against ONNX Runtime;
tiles against plan; `poplar-host` against plan; bytes and addresses of plan and device; cycles of tiles against those
timed, those timed against those planned; a plan that takes less than what is said that no choice does."""

CHIP_FIELDS = (
    "n_cores",
    "sram_bytes",
    "reserved_bytes",
    "shift_buffer_bytes",
    "element_bytes",
    "interleaved_base",
)
MOST_RATIO = 1.05
LEAST_LOOK_UP = 0.5
REFERENCE_SLACK = 4
"""Roundings of f16 between operators count against ONNX Runtime, which computes in f32 throughout."""

MOST_STEPS = 10
GROWTH = 1.15
SHIFT_BUFFER = "shift"
SHARED_OBJECTS = ("host-", "t10_runtime-")
VERTICES: tuple[VertexCode, ...] = ("cpp", "assembly")
MARK = 0xA5
STATED_BYTES = re.compile(r"needs about ([\d,]+) bytes")

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a case: its kind, and what was found and expected."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: why it was refused, or what was found, on which chip, and cycles run by cycles timed."""

    name: str
    chip: ChipSpec
    refusal: str = ""
    findings: tuple[Finding, ...] = ()
    ratio: float = 1.0
    peak_bytes: int = 0
    on_host: bool = False


def compile_case(model: Path, chip: ChipSpec) -> tuple[Executable, Lowered]:
    """Return a model compiled for a chip with its device program, as `t10 compile` does."""
    executable = compile(model, chip, program=True).with_measured_steps()
    return executable, lowered(executable)


def run_case(case: FitCase, *, on_host: bool, sram_bytes: int = 0) -> Outcome:
    """Return what became of a case; `sram_bytes` stands for the memory that it would draw."""
    chip = _with_memory(case.chip, sram_bytes) if sram_bytes else case.chip
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = folder / "model.onnx"
        model.write_bytes(case.model)
        try:
            chip, executable, made = _fitted(case, model, chip, is_fixed=bool(sram_bytes))
        except (InfeasiblePlanError, UnsupportedOpError) as error:
            return Outcome(case.name, chip, refusal=f"{type(error).__name__}: {error}")
        except Exception:
            return Outcome(case.name, chip, findings=(Finding("crash", traceback.format_exc(limit=-6)),))
        run = _Run(case, model, executable, made, folder)
        try:
            findings = tuple(run.findings(on_host=on_host))
        except Exception:
            findings = (Finding("crash", traceback.format_exc(limit=-6)),)
        return Outcome(
            case.name,
            chip,
            findings=findings,
            ratio=run.ratio,
            peak_bytes=executable.plan.peak_bytes,
            on_host=on_host,
        )


def chip_of(case: FitCase, model: Path, sram_bytes: int = 0) -> ChipSpec:
    """Return the chip of a case with the memory that it draws, or with `sram_bytes`."""
    if sram_bytes:
        return _with_memory(case.chip, sram_bytes)
    return _fitted(case, model, case.chip, is_fixed=False)[0]


def _fitted(
    case: FitCase, model: Path, chip: ChipSpec, *, is_fixed: bool
) -> tuple[ChipSpec, Executable, Lowered]:
    """Return a chip with the memory that a case draws, and the model compiled for it."""
    if is_fixed or case.fill is None:
        return chip, *compile_case(model, chip)
    chip, executable, made = _least(model, chip)
    if case.fill > 1:
        chip = _with_memory(chip, int(chip.sram_bytes * case.fill) // 8 * 8)
        executable, made = compile_case(model, chip)
    peak = executable.plan.peak_bytes + OVERREAD_BYTES
    if case.is_full and peak < chip.sram_bytes:
        full = _with_memory(chip, peak)
        try:
            return full, *compile_case(model, full)
        except InfeasiblePlanError:
            # The program needs more where its data lie without slack.
            return chip, executable, made
    return chip, executable, made


def _least(model: Path, chip: ChipSpec) -> tuple[ChipSpec, Executable, Lowered]:
    """Return a chip with the least memory that a refusal names, and the model compiled for it."""
    needed = max(1024, chip.reserved_bytes + chip.shift_buffer_bytes + OVERREAD_BYTES + ALIGNMENT_BYTES)
    for step in range(MOST_STEPS):
        tried = _with_memory(chip, needed)
        try:
            return tried, *compile_case(model, tried)
        except InfeasiblePlanError as error:
            if step == MOST_STEPS - 1:
                raise
            stated = STATED_BYTES.search(str(error))
            least = int(stated.group(1).replace(",", "")) if stated else 0
            needed = least if least > needed else int(needed * GROWTH)
            needed = -(-needed // 8) * 8
    raise AssertionError("unreachable")


def _with_memory(chip: ChipSpec, sram_bytes: int) -> ChipSpec:
    return ChipSpec.model_validate({**chip.model_dump(), "sram_bytes": sram_bytes})


def end_of_data(plan: ModulePlan) -> int:
    """Return the end of the highest buffer but the shift buffer, which a program without shifts does not have."""
    ends = (b.address_bytes + b.size_bytes for b in plan.buffers if b.name != SHIFT_BUFFER)
    return max(ends, default=plan.reserved_bytes)


class _Run:
    """One compiled case, and what all its engines gave."""

    def __init__(
        self, case: FitCase, model: Path, executable: Executable, made: Lowered, folder: Path
    ) -> None:
        self.case, self.model, self.executable, self.made, self.folder = case, model, executable, made, folder
        self.ratio = 1.0

    def findings(self, *, on_host: bool) -> Iterator[Finding]:
        """Yield what is wrong, engine by engine."""
        executable, inputs = self.executable, dict(self.case.inputs)
        yield from self._places()
        yield from self._price()
        planned = executable.execute(inputs)
        if planned.peak_bytes != executable.plan.peak_bytes:
            yield Finding(
                "peak", f"{planned.peak_bytes:,} bytes in use, {executable.plan.peak_bytes:,} planned"
            )
        tolerance = default_tolerance(executable.plan.graph)
        due = run_onnx_runtime(self.model, inputs)
        yield from _beyond("reference", planned.outputs, due, tolerance * REFERENCE_SLACK)
        try:
            guarded = _Guarded.of(self.made, executable.chip.tile_memory)
            executed = run_device(
                self.made.program,
                executable.chip,
                self.made.image,
                executable.weights,
                inputs,
                machine=guarded.machine,
            )
        except SimTrap as error:
            yield Finding("trap", str(error))
        else:
            yield from guarded.findings()
            yield from self._unlike("numbers", executed.outputs, planned.outputs, tolerance)
            timed = executable.timed_cycles
            self.ratio = executed.cycles / timed if timed else 1.0 + executed.cycles
            # Look-ups branch on the indices they get: they take what made-up ones do, or less.
            least = LEAST_LOOK_UP if b"Gather" in self.case.model else 1 / MOST_RATIO
            if not least <= self.ratio <= MOST_RATIO:
                yield Finding(
                    "cycles",
                    f"{executed.cycles:,} on tiles, {timed:,} timed: {self.ratio:.3f}",
                )
            if on_host:
                yield from self._host(planned.outputs, executed.outputs, tolerance)

    def _host(self, planned: Arrays, executed: Arrays, tolerance: float) -> Iterator[Finding]:
        """Yield how the C++ program differs: with C++ bodies from the plan, with assembly from the tiles."""
        program = self.folder / "program"
        write_program(self.executable, self.made, program)
        try:
            # Assembly runs in the memory of an IPU Mk2: a host without liveness has to place all variables at once.
            with _build_folder(self.folder / "build") as folder:
                by_body, by_code = (
                    run_program(program, self.case.inputs, vertices=vertices, build_folder=folder).outputs
                    for vertices in VERTICES
                )
        except SimTrap as error:
            yield Finding("trap", f"poplar-host: {error}")
            return
        yield from self._unlike("host", by_body, planned, tolerance)
        yield from _unequal("host", by_code, executed)

    def _unlike(self, kind: str, outputs: Arrays, planned: Arrays, tolerance: float) -> Iterator[Finding]:
        """Yield which outputs differ: in any bit where the case is exact."""
        if self.case.is_exact:
            yield from _unequal(kind, outputs, planned)
        else:
            yield from _beyond(kind, outputs, planned, tolerance)

    def _price(self) -> Iterator[Finding]:
        """Yield how a plan is not what it is said to be: the price of its program, and no less than its bound."""
        known, timed = self.executable.plan.optimality, self.executable.timed_cycles or 0
        assert known is not None
        if timed != known.cycles:
            yield Finding("price", f"{known.cycles:,} planned, {timed:,} timed")
        if known.bound_cycles > known.cycles:
            yield Finding(
                "bound", f"{known.cycles:,} planned, no choice takes fewer than {known.bound_cycles:,}"
            )

    def _places(self) -> Iterator[Finding]:
        """Yield where variables of the device lie elsewhere than buffers of the plan."""
        plan, program = self.executable.plan, self.made.program
        buffers = {buffer.name: buffer for buffer in plan.buffers}
        moved: list[str] = []
        peak = 0
        for variable in program.variables:
            if variable.role == "scratch":
                continue
            first = variable.address_bytes - program.memory.base
            buffer = buffers[SHIFT_BUFFER if variable.name.startswith(f"{SHIFT_BUFFER}:") else variable.name]
            peak = max(peak, first + buffer.size_bytes)
            if first != buffer.address_bytes:
                moved.append(f"{buffer.name} at {first:,}, planned at {buffer.address_bytes:,}")
            if variable_bytes(variable) > buffer.size_bytes:
                yield Finding("addresses", f"{variable.name} is longer than its buffer")
        if moved:
            yield Finding("addresses", f"{len(moved)} buffers lie elsewhere: {moved[0]}")
        end = plan.end_bytes if any(SHIFT_BUFFER in v.name for v in program.variables) else end_of_data(plan)
        if peak != end:
            yield Finding("peak", f"the last byte on tiles is {peak:,}, {end:,} planned")


@dataclass(frozen=True, slots=True, eq=False)
class _Guarded:
    """Tiles whose memory is marked wherever no variable and no code lies: nothing may be written there."""

    machine: TileMachine
    n_tiles: int
    is_free: NDArray[np.bool_]

    @classmethod
    def of(cls, made: Lowered, tile: TileMemory) -> _Guarded:
        """Mark the memories of the tiles of a program."""
        program = made.program
        machine = instruction_machine(program, made.image, tile)
        is_free = np.ones(tile.size_bytes, np.bool_)
        is_free[: program.memory.program_bytes] = False
        for variable in program.variables:
            first = variable.address_bytes - tile.base
            is_free[first : first + variable_bytes(variable)] = False
        for number in range(program.n_tiles):
            machine.memory(number)[is_free] = MARK
        return cls(machine, program.n_tiles, is_free)

    def findings(self) -> Iterator[Finding]:
        """Yield where a mark is gone."""
        for number in range(self.n_tiles):
            where = np.flatnonzero(self.is_free & (self.machine.memory(number) != MARK))
            if len(where):
                yield Finding(
                    "stray", f"tile {number}: {len(where)} bytes from {where[0]:,} on belong to nothing"
                )
                return


def _beyond(kind: str, outputs: Arrays, due: Arrays, tolerance: float) -> Iterator[Finding]:
    """Yield which outputs are further away than the tolerance."""
    for each in compare(outputs, due, tolerance):
        if not each.is_within:
            yield Finding(kind, f"output {each.name}: error {each.error:.1e}, at most {each.tolerance:.0e}")


def _unequal(kind: str, outputs: Arrays, due: Arrays) -> Iterator[Finding]:
    """Yield which outputs differ in any bit."""
    for name, found in outputs.items():
        expected = np.asarray(due[name])
        n_differing = int(np.count_nonzero(~np.equal(found, expected)))
        if n_differing:
            yield Finding(kind, f"output {name}: {n_differing:,} of {expected.size:,} elements differ")


@contextmanager
def _build_folder(folder: Path) -> Generator[Path]:
    """Yield a folder to build a program in; what all programs share is kept where `t10 run` keeps it."""
    kept = (default_cache_folder() or Path(tempfile.gettempdir())) / "poplar-host"
    kept.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    for path in _shared(kept):
        shutil.copy(path, folder)
    yield folder
    for path in _shared(folder):
        if not (kept / path.name).exists():
            with replaced_file(kept / path.name) as made:
                shutil.copyfile(path, made)


def _shared(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.o") if path.name.startswith(SHARED_OBJECTS)]
