"""The compiler as a library: `compile` a model into an `Executable`, run it, report on it, save and load it.

    executable = t10.compile("model.onnx", chip="ipu-mk2")
    outputs = executable.run({"x": x})
    executable.save("out")

A saved folder holds module.mlir (the compiled module at the compute-shift level: what runs), plan.json and report.json
(projections of it), if the model had them, weights.npz, and manifest.json: what the folder is, and a digest per file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from t10.arrays import Arrays, read_arrays, write_arrays
from t10.artefact import CodeRecord, Description, Folder, written
from t10.artefact.code import check_named_again, code_records
from t10.chip import ChipSpec, load_chip
from t10.core.document import read_document, write_document
from t10.core.dtypes import in_numpys_types, numpy_dtype
from t10.core.graph import Graph, TensorValue
from t10.core.partials import Partials
from t10.core.schedule import ModulePlan
from t10.core.stored import as_stored
from t10.core.trust.arguments import array_of, check_given, check_mapping, check_type, paths_of
from t10.cost import CostModel, registry
from t10.errors import InputError, VerifyError
from t10.report import Report, build_report, write_report

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from t10.emit.link import Parts
    from t10.frontend.imported import ImportedModel
    from t10.plan.fronts.cache import PlanCache
    from t10.plan.options import PlanOptions
    from t10.sim.plan_level import SimResult

MODULE_FILE = "module.mlir"
PLAN_FILE = "plan.json"
REPORT_FILE = "report.json"
WEIGHTS_FILE = "weights.npz"

MOST_NAMED = 3

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, steps done and steps in all."""

ShapeOverride = Sequence[int] | int
TorchProgram = Any
"""A `torch.export.ExportedProgram`; PyTorch is optional, so that its types are not known here."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A model compiled for a chip.

    `module` is what is executed, as MLIR text at the compute-shift level; `plan` is what it says, as values, with costs
    and fronts; `weights` their values by name, as they are stored (dims in the order that fusing chose), fewer than the
    model has where it came without them; `cost_model` names where its cycles come from, as `t10.cost.registry` takes
    it; `planner_seconds` is wall time by stage.
    """

    plan: ModulePlan
    chip: ChipSpec
    module: str = field(repr=False)
    weights: Mapping[str, NDArray[Any]] = field(repr=False)
    source: str = ""
    cost_model: str = registry.DEFAULT_COST_MODEL
    codelets: tuple[str, ...] = ()
    """Files that declare users' own codelets (docs/codelets.md)."""
    cost_file: registry.CodeFile | str | None = None
    """The file of the cost model, where this process was given it; `cost_model` alone never has one run."""
    code: tuple[CodeRecord, ...] = field(default=(), repr=False)
    """Digests of the files of the cost model and of the codelets."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    planner_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    measured: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Cycles of every statement as the device simulator times it, by operator, beside those of `plan`, which are its
    price; see `with_measured_steps`."""
    folder: str = field(default="", compare=False)
    """The folder that it was loaded from."""
    parts: Parts | None = field(default=None, repr=False)
    """The plan, lowered, where the model was planned beside its program; see `t10.backend.lowered`."""

    def __repr__(self) -> str:
        """Return in a line what was compiled, for what, and what it takes."""
        plan = self.plan
        cycles = sum(scheduled.active.cycles.total for scheduled in plan.operators)
        memory = f"{plan.peak_bytes:,} of {plan.capacity_bytes:,} bytes per core"
        name = f"{plan.graph.name}{', ' * bool(self.source)}{self.source}"
        return (
            f"<t10.Executable {name}: {len(plan.operators)} operators "
            f"on {self.chip.name}, {cycles:,} cycles (modelled, {self.cost_model}), {memory}"
            f"{', from ' * bool(self.folder)}{self.folder}>"
        )

    @property
    def timed_cycles(self) -> int | None:
        """Return what the emitted program takes on the device simulator, None where its statements were not timed."""
        return sum(map(sum, self.measured.values())) if self.measured else None

    @property
    def inputs(self) -> tuple[TensorValue, ...]:
        """Return name, shape and element type of every input of the model."""
        return self.plan.graph.signature[0]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the names of the model's outputs."""
        return tuple(output.name for output in self.plan.graph.outputs)

    def run(self, inputs: Mapping[str, ArrayLike], *, progress: Progress | None = None) -> Arrays:
        """Return the outputs by name, computed core by core on the plan simulator.

        Raises `InputError` for inputs that are missing, unknown or of a wrong shape or type, and when the model was
        compiled without the values of its weights.
        """
        return dict(self.execute(inputs, progress=progress).outputs)

    def execute(self, inputs: Mapping[str, ArrayLike], *, progress: Progress | None = None) -> SimResult:
        """Return everything the plan simulator saw: outputs, modelled cycles, traffic and a timeline."""
        from t10.sim.plan_level import simulate

        arrays = checked_inputs(self.inputs, inputs)
        self.check_weights()

        def step(done: int, total: int, operator: str) -> None:
            del operator
            if progress:
                progress("run", done, total)

        if progress:
            progress("run", 0, 1)
        stored = as_stored(arrays, self.plan.graph.inputs)
        return simulate(self.plan, self.chip, self.costs(), self.weights, stored, progress=step)

    def report(self) -> Report:
        """Return what the model costs: modelled cycles, bytes per core, traffic, planner times."""
        return build_report(
            self.plan,
            self.chip,
            source=self.source,
            cost_model=self.cost_model,
            planner_seconds=self.planner_seconds,
            timed_cycles=self.timed_cycles,
        )

    def costs(self) -> CostModel:
        """Return the cost model that the model was planned under; raises `InputError` where its file is not there."""
        try:
            with registry.using_cost_files(_cost_files(self.codelets)):
                return registry.cost_model(self.cost_file or self.cost_model, self.chip)
        except InputError as error:
            raise InputError(
                f"the model was planned under cost model {self.cost_model}: {error.message}",
                hint=error.hint or "go where its file is, or compile again under another one (--cost-model)",
            ) from None

    def with_measured_steps(self, progress: Progress | None = None) -> Executable:
        """Return the executable with its statements timed as they run on the device simulator, where they lie.

        The plan and its price stay: what is timed is a check of the price. A model that was planned under other costs
        than fits to that simulator stays as it is. Raises what `backend.lowered` raises.
        """
        from t10.backend import lowered_parts, users_codelets
        from t10.profile.steps import timed

        if not getattr(self.costs(), "is_counted", False):
            return self
        with users_codelets(self):
            parts = self.parts or lowered_parts(self)
            return replace(self, measured=timed(parts, self.plan, self.chip, progress), parts=parts)

    def save(self, folder: str | Path) -> None:
        """Write the executable to a folder; the folder that was written there before is replaced as a whole.

        Raises `InputError` for a folder that holds files and no manifest, and where it cannot be written.
        """
        with self.saving(folder):
            pass

    @contextmanager
    def saving(self, folder: str | Path) -> Generator[Path]:
        """Yield a new folder with the executable's files, for others beside them, that replaces `folder` at the end."""
        about = Description(
            source=self.source,
            chip=self.chip,
            cost_model=self.cost_model,
            code=self.code,
            options=dict(self.options),
            measured=dict(self.measured),
            planner_seconds=dict(self.planner_seconds),
        )
        with written(folder, about) as into:
            (into / MODULE_FILE).write_text(self.module, encoding="utf-8")
            write_document(into / PLAN_FILE, self.plan)
            write_report(into / REPORT_FILE, self.report())
            if self.weights or not self.plan.graph.weights:
                write_arrays(into / WEIGHTS_FILE, self.weights)
            yield into

    @classmethod
    def load(
        cls,
        folder: str | Path | Folder,
        *,
        cost_model: str = "",
        codelets: Sequence[str | Path] = (),
    ) -> Executable:
        """Return the executable of a folder that `save` or `t10 compile` wrote.

        What runs is read from module.mlir; plan.json, which must say the same, adds costs and fronts. A cost model or
        codelets of the user's that the folder was made with run only if they are given here again. Raises `InputError`
        for a missing folder or file, one that is not as the manifest says, and users' files that are not those that the
        folder states; `VerifyError` for a module that is not valid, or one that plan.json contradicts.
        """
        opened = folder if isinstance(folder, Folder) else Folder.open(folder)
        about = opened.manifest.about
        code = code_records(cost_model, codelets)
        check_named_again(about.code, code, opened.path)
        has_cost_file = registry.file_of(about.cost_model) is not None
        if cost_model and not has_cost_file and cost_model != about.cost_model:
            raise InputError(f"{opened.path} was made under cost model {about.cost_model}, not {cost_model}")
        plan = read_document(opened.checked(PLAN_FILE))
        loaded = cls(
            plan=plan,
            chip=about.chip,
            module=opened.text(MODULE_FILE),
            weights=_stored(opened, plan.graph) if opened.has(WEIGHTS_FILE) else {},
            source=about.source,
            folder=str(opened.path),
            cost_model=about.cost_model,
            codelets=tuple(str(path) for path in codelets),
            cost_file=registry.given(cost_model) if has_cost_file else None,
            code=about.code,
            options=about.options,
            planner_seconds=about.planner_seconds,
            measured=dict(about.measured),
        )
        stated = loaded.of_module(opened.path / MODULE_FILE)
        _check_agreement(stated.plan, plan, opened.path)
        return stated

    def of_module(self, source: str | Path) -> Executable:
        """Return the executable with the plan and the constants that `module` says; errors name `source`.

        Costs and fronts are those of `plan` if that is known about it. Where the module does something else, arrivals
        and operators are costed anew.
        """
        from t10.passes.pipeline import read_module_plan
        from t10.plan.prefetch.fetching import with_waits
        from t10.plan.schedule import as_placed, costed_arrivals, with_costs

        stated, constants = read_module_plan(self.module, self.chip, self.cost_model, str(source))
        plan = with_costs(stated, self.plan)
        if plan is None:
            costs = self.costs()
            plan = as_placed(costed_arrivals(stated, self.chip, costs), self.chip, costs)
        plan = with_waits(plan, self.chip)
        return replace(self, plan=plan, weights={**self.weights, **constants})

    @property
    def missing_weights(self) -> tuple[str, ...]:
        """Return the names of the weights without values; the model can only be run if there are none."""
        used = {layout.value for layout in self.plan.weight_layouts}
        return tuple(w.name for w in self.plan.graph.weights if w.name in used and w.name not in self.weights)

    def check_weights(self) -> None:
        """Raise `InputError` unless all weights have values."""
        missing = self.missing_weights
        if missing:
            names = ", ".join(missing[:MOST_NAMED]) + (", ..." if len(missing) > MOST_NAMED else "")
            raise InputError(
                f"{len(missing)} weights have no values: {names}",
                hint="the model was compiled without its external data; put that beside it and compile again",
            )


def compile(
    model: str | Path | ImportedModel | TorchProgram,
    chip: str | Path | ChipSpec = "ipu-mk2",
    shapes: Mapping[str, ShapeOverride] | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    *,
    cost_model: str = registry.DEFAULT_COST_MODEL,
    codelets: Sequence[str | Path] = (),
    plan: str | Path | None = None,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
    keep_f64: bool = False,
    frontend: str = "t10",
    frontend_flags: str | Sequence[str] = (),
    partials: Partials | str = "f32",
    executor: Executor | None = None,
    cache: PlanCache | str | Path | None = None,
    program: bool = False,
) -> Executable:
    """Return a model compiled for a chip.

    `model` is a file (ONNX, text of onnx-mlir, StableHLO or linalg), a program of `torch.export`, or an imported model.
    `chip` is a bundled chip's name, a chip file or a `ChipSpec`; `shapes` gives extents by input name or dim parameter;
    `options` are the planner's; `cost_model` is ipu, t10-paper or FILE.py; `codelets` are files that declare codelets
    of yours; `plan` is a plan.json or a file of pins whose plans are kept; `dtype` fp16 turns f32, f64 and bf16 into
    f16, bf16=f32 and bf16=f16 bf16 alone; `constants` fixes inputs; `bounds` gives results of which data decide the
    extent one (docs/import-and-fuse.md); `keep_f64` leaves islands of f64 alone; `frontend` onnx-mlir has that, with
    `frontend_flags`, read the model first; `partials` is the type of sums of f16 (f32, f16, auto); `executor` searches
    operators, not this process's threads; `program` counts the program's bytes; `cache` is a folder. Raises `T10Error`.
    """
    from t10.passes.pipeline import compile_module
    from t10.plan.fronts.pins import read_pins
    from t10.plan.options import PlanOptions as Options

    spec, codelets = chip if isinstance(chip, ChipSpec) else load_chip(chip), paths_of(codelets)
    asked = Partials(partials) if isinstance(partials, str) else partials
    chosen, pins = options or Options(), None if plan is None else read_pins(plan)
    check_given(shapes, constants, bounds)
    check_type("options", chosen, Options)
    code, costs = code_records(cost_model, codelets), registry.given(cost_model)
    clock = Stopwatch(progress, "import")
    imported = imported_model(model, frontend, frontend_flags, shapes, dtype, constants, bounds, keep_f64)
    with _using(codelets):
        compiled = compile_module(
            imported.module, spec, chosen, clock.report,
            cost_model=costs, pins=pins, executor=executor, cache=opened_cache(cache), program=program, partials=asked,
        )  # fmt: skip
    clock.stop()
    return Executable(
        plan=compiled.plan, chip=spec, module=compiled.text,
        weights={**as_stored(imported.weights, compiled.plan.graph.weights), **compiled.constants},
        source=Path(imported.source).name,
        cost_model=registry.name_of(costs),
        cost_file=costs if isinstance(costs, registry.CodeFile) else None,
        codelets=tuple(str(path) for path in codelets), code=code,
        options={**as_json(chosen), **asked.as_options()},
        planner_seconds=clock.seconds, parts=compiled.parts,
    )  # fmt: skip


def imported_model(
    model: str | Path | ImportedModel | TorchProgram,
    frontend: str,
    flags: str | Sequence[str],
    shapes: Mapping[str, ShapeOverride] | None,
    dtype: str | None,
    constants: Mapping[str, ArrayLike] | None,
    bounds: Mapping[str, int] | None,
    keep_f64: bool,
) -> ImportedModel:
    """Return a model as linalg; a file may be read by onnx-mlir before T10 reads it."""
    from t10.frontend.imported import ImportedModel
    from t10.frontend.importer import import_model
    from t10.frontend.torch_program import import_torch
    from t10.onnx_mlir import readable

    if isinstance(model, ImportedModel):
        return model
    if not isinstance(model, (str, Path)):
        if not hasattr(model, "run_decompositions"):
            raise InputError(
                f"the model is of type {type(model).__name__} (expected a file, exported program or imported model)",
                hint="save a model in memory to a file: onnx.save(model, path)",
            )
        return import_torch(model, keep_f64=keep_f64)
    with readable(Path(model), frontend, flags) as (file, source):
        imported = import_model(
            file,
            shapes=shapes,
            dtype=dtype,
            constants=constants,
            bounds=bounds,
            keep_f64=keep_f64,
            source=source,
        )
        return replace(imported, source=str(model))


def _check_agreement(stated: ModulePlan, written: ModulePlan, folder: Path) -> None:
    """Raise `VerifyError` where plan.json says something else than the module of its folder."""
    from t10.plan.agreement import disagreement

    found = disagreement(stated, written)
    if found is not None:
        what, runs, shown = found
        raise VerifyError(
            f"{folder / PLAN_FILE} and {MODULE_FILE} differ in {what}: the one has {shown}, the other {runs}",
            hint="one of them was edited: compile the model again, with --plan for plans of yours",
        )


def _stored(folder: Folder, graph: Graph) -> Arrays:
    """Return the weights of a folder; raises `InputError` for one of another shape than the model's."""
    shapes = {weight.name: weight.shape for weight in graph.weights}
    return read_arrays(folder.checked(WEIGHTS_FILE), shapes.get, shapes)


@contextmanager
def _using(codelets: Sequence[str | Path]) -> Generator[None]:
    """Let what files of codelets declare be used: families, and the cost functions that come with them."""
    from t10.codelets.compile import using_families
    from t10.codelets.user import load_families

    with registry.using_cost_files(_cost_files(codelets)), using_families(load_families(codelets)):
        yield


def _cost_files(codelets: Sequence[str | Path]) -> tuple[registry.CodeFile, ...]:
    """Return the cost functions that files of codelets name, which must have been given, not read from data."""
    if not codelets:
        return ()
    from t10.codelets.user import cost_files

    return tuple(registry.given_file(path) for path in cost_files(codelets))


def opened_cache(cache: PlanCache | str | Path | None) -> PlanCache | None:
    """Return the cache in a folder, unless it is one already."""
    from t10.plan.fronts.cache import PlanCache

    opened = PlanCache(Path(cache)) if isinstance(cache, (str, Path)) else cache
    if opened is not None:
        check_type("cache", opened, PlanCache)
    return opened


def checked_inputs(
    expected: Sequence[TensorValue], given: Mapping[str, ArrayLike], source: str = ""
) -> Arrays:
    """Return the inputs as arrays of the types the model takes; errors name the file `source` that has them.

    Raises `InputError` for names that are missing or unknown, and for a shape or a type that does not fit; a type that
    holds every value of the given one is no mistake.
    """
    check_mapping("inputs", given, "{'x': array}")
    names, where = [value.name for value in expected], f"{source}: " if source else ""
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or missing:
        found = (
            f"inputs missing: {', '.join(missing)}" if missing else f"unknown inputs: {', '.join(unknown)}"
        )
        raise InputError(f"{where}{found} (the model takes {', '.join(names) or 'none'})")
    result: Arrays = {}
    for value in expected:
        given_value = given[value.name]
        wanted = numpy_dtype(value.dtype)
        array = in_numpys_types(array_of(f"{where}input {value.name}", given_value), wanted)
        if array.shape != value.shape:
            raise InputError(f"{where}input {value.name} has shape {array.shape}, expected {value.shape}")
        is_typed = isinstance(given_value, (np.ndarray, np.generic))
        if not np.can_cast(array.dtype, wanted, casting="safe" if is_typed else "same_kind"):
            raise InputError(f"{where}input {value.name} has type {array.dtype}, expected {wanted}")
        result[value.name] = np.ascontiguousarray(array, dtype=wanted).reshape(value.shape)
    return result


class Stopwatch:
    """Wall time by stage: a stage lasts until another one reports; reports are passed on."""

    def __init__(self, progress: Progress | None, stage: str) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self.stage = ""
        self.since = 0.0
        self.report(stage, 0, 1)

    def report(self, stage: str, done: int, total: int) -> None:
        """Note that a stage is running, `done` of `total` steps of it done."""
        if stage != self.stage:
            self.stop()
            self.stage, self.since = stage, time.perf_counter()
        if self.progress:
            self.progress(stage, done, total)

    def stop(self) -> None:
        """End the running stage."""
        if self.stage:
            spent = time.perf_counter() - self.since
            self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + spent
        self.stage = ""


def as_json(options: PlanOptions) -> dict[str, Any]:
    """Return the options as JSON values."""
    values = asdict(options)
    values["forced"] = [asdict(forced) for forced in options.forced]
    return values
