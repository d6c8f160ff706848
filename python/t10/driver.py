"""The compiler as a library: `compile` a model into an `Executable`, run it, report on it, save and load it.

    executable = t10.compile("model.onnx", chip="ipu-mk2")
    outputs = executable.run({"x": x})
    executable.save("out")

A saved folder holds module.mlir (the compiled module at the compute-shift level: what runs), plan.json and report.json
(projections of it), and, if the model had them, weights.npz.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from t10.arrays import Arrays, read_arrays, write_arrays
from t10.chip import ChipSpec, load_chip
from t10.core.atomic import filled_folder, write_text
from t10.core.document import load_document, write_document
from t10.core.dtypes import numpy_dtype
from t10.core.graph import TensorValue
from t10.core.orders import stored_weights
from t10.core.schedule import ModulePlan
from t10.cost import CostModel, registry
from t10.cost.ipu import IpuCostModel
from t10.cost.measured import MeasuredCostModel, StepCycles, recosted
from t10.errors import InputError
from t10.report import Report, build_report, read_report, write_report
from t10.unsigned import as_declared, as_planned, declared

if TYPE_CHECKING:
    from concurrent.futures import Executor

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
    cost_file: registry.CodeFile | None = None
    """The Python file of the cost model, where this process was given it; `cost_model` alone never runs one."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    planner_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    measured: Mapping[str, StepCycles] = field(default_factory=dict[str, StepCycles])
    """Compute steps as they ran on the instruction-set simulator, by operator; see `with_measured_steps`."""
    unsigned: tuple[str, ...] = ()
    """Inputs and outputs that the model declares as unsigned; the plan's integers have no sign."""

    @property
    def inputs(self) -> tuple[TensorValue, ...]:
        """Return name, shape and element type of every input of the model."""
        return tuple(declared(value, self.unsigned) for value in self.plan.graph.inputs)

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

        arrays = self.planned_inputs(inputs)
        self.check_weights()

        def step(done: int, total: int, operator: str) -> None:
            del operator
            if progress:
                progress("run", done, total)

        if progress:
            progress("run", 0, 1)
        result = simulate(self.plan, self.chip, self.costs(), self.weights, arrays, progress=step)
        return replace(result, outputs=as_declared(result.outputs, self.unsigned))

    def planned_inputs(self, given: Mapping[str, ArrayLike]) -> Arrays:
        """Return the inputs as the plan holds them, checked; raises what `checked_inputs` raises."""
        return as_planned(checked_inputs(self.inputs, given), self.unsigned)

    def report(self) -> Report:
        """Return what the model costs: modelled cycles, bytes per core, traffic, planner times."""
        return build_report(
            self.plan,
            self.chip,
            source=self.source,
            cost_model=self.cost_model,
            planner_seconds=self.planner_seconds,
        )

    def costs(self) -> CostModel:
        """Return the cost model that the model was planned under; raises `InputError` where its file is not there."""
        try:
            with registry.using_cost_files(_cost_files(self.codelets)):
                base = registry.cost_model(self.cost_file or self.cost_model, self.chip)
        except InputError as error:
            raise InputError(
                f"the model was planned under cost model {self.cost_model}: {error.message}",
                hint=error.hint or "go where its file is, or compile again under another one (--cost-model)",
            ) from None
        return (
            cast("CostModel", MeasuredCostModel(cast("IpuCostModel", base), self.measured))
            if self.measured
            else base
        )

    def with_measured_steps(self, progress: Progress | None = None) -> Executable:
        """Return the executable with its compute steps priced as they run on the instruction-set simulator.

        The plan stays; its cycles, and those the plan simulator counts, are then those of the code that is emitted.
        Steps that were not priced by fits to that simulator are left as they are.
        """
        from t10.profile.steps import measured_steps

        base = self.costs()
        if not getattr(base, "is_fitted", False):
            return self
        steps = measured_steps(self.plan, self.chip, progress)
        made = replace(self, measured=steps)
        return replace(made, plan=recosted(self.plan, made.costs()))

    def save(self, folder: str | Path) -> None:
        """Write the executable to a folder; files of the same names in it are replaced."""
        extra: dict[str, Any] = {
            "measured": {name: [each.sub_task, each.epilogue] for name, each in self.measured.items()},
            "source": self.source,
            "unsigned": list(self.unsigned),
            "cost_model": self.cost_model,
            "options": dict(self.options),
            "chip": self.chip.model_dump(mode="json"),
        }
        if self.codelets:
            extra["codelets"] = list(self.codelets)
        with filled_folder(folder) as temporary:
            write_text(temporary / MODULE_FILE, self.module)
            write_document(temporary / PLAN_FILE, self.plan, extra)
            write_report(temporary / REPORT_FILE, self.report())
            if self.weights or not self.plan.graph.weights:
                write_arrays(temporary / WEIGHTS_FILE, self.weights)
        if not self.weights and self.plan.graph.weights:
            (Path(folder) / WEIGHTS_FILE).unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: str | Path) -> Executable:
        """Return the executable of a folder that `save` or `t10 compile` wrote.

        What runs is read from module.mlir; plan.json only adds what is known about it. Raises `InputError` for a
        missing folder or file or one that does not hold what it should, `VerifyError` for a module that is not valid.
        """
        where = Path(folder)
        if not where.is_dir():
            raise InputError(f"{where} is not a folder", hint="make one with `t10 compile MODEL -o FOLDER`")
        known, extra = load_document(where / PLAN_FILE)
        report = read_report(where / REPORT_FILE)
        has_weights = (where / WEIGHTS_FILE).exists()
        chip = _saved_chip(known, extra, where / PLAN_FILE)
        module = _module_text(where / MODULE_FILE)
        loaded = cls(
            plan=known,
            chip=chip,
            module=module,
            weights=read_arrays(where / WEIGHTS_FILE) if has_weights else {},
            source=str(extra.get("source", "")),
            unsigned=tuple(extra.get("unsigned", ())),
            cost_model=str(extra.get("cost_model", registry.DEFAULT_COST_MODEL)),
            codelets=tuple(extra.get("codelets", ())),
            options=extra.get("options", {}),
            planner_seconds=report.planner_seconds,
            measured={name: StepCycles(*each) for name, each in extra.get("measured", {}).items()},
        )
        return loaded.of_module(where / MODULE_FILE)

    def of_module(self, source: str | Path) -> Executable:
        """Return the executable with the plan and the constants that `module` says; errors name `source`.

        Costs and fronts are those of `plan` if that is known about it. Where the module does something else, arrivals
        and operators are costed anew.
        """
        from t10.passes.pipeline import read_module_plan
        from t10.plan.schedule import costed_arrivals, with_costs

        stated, constants = read_module_plan(self.module, self.chip, str(source))
        plan = with_costs(stated, self.plan) or costed_arrivals(stated, self.chip, self.costs())
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
    frontend: str = "t10",
    executor: Executor | None = None,
    cache: PlanCache | str | Path | None = None,
) -> Executable:
    """Return a model compiled for a chip.

    `model` is a file (ONNX, text of onnx-mlir, StableHLO or linalg), a program of `torch.export`, or an imported model.
    `chip` is a bundled chip's name, a chip file or a `ChipSpec`; `shapes` gives extents by input name or dim parameter
    for dims that the model leaves open; `options` are the planner's; `cost_model` is ipu, t10-paper or FILE.py;
    `codelets` are files that declare codelets of the user's, whose costs count and whose code is used; `plan` is a
    plan.json or a file of pins whose plans are kept; `dtype` fp16 turns f32, f64 and bf16 into f16; `constants` fixes
    inputs at compile time; `frontend` onnx-mlir has that read the model first (docs/onnx-mlir.md); `executor` searches
    operators instead of this process's threads; `cache` is a folder that keeps what was found for other models and runs
    (`t10.cache_folder` knows the user's).

    Raises `InputError`, `UnsupportedOpError` and `InfeasiblePlanError`, each with its cause.
    """
    from t10.passes.pipeline import compile_module
    from t10.plan.fronts.cache import PlanCache
    from t10.plan.fronts.pins import read_pins
    from t10.plan.options import PlanOptions as Options

    spec = chip if isinstance(chip, ChipSpec) else load_chip(chip)
    chosen, pins = options or Options(), None if plan is None else read_pins(plan)
    kept = PlanCache(Path(cache)) if isinstance(cache, (str, Path)) else cache
    costs = registry.given(cost_model)
    clock = _Stopwatch(progress)
    clock.report("import", 0, 1)
    imported = _imported(model, frontend, shapes, dtype, constants)
    with registry.using_cost_files(_cost_files(codelets)):
        compiled = compile_module(
            imported.module, spec, chosen, clock.report,
            cost_model=costs, pins=pins, executor=executor, cache=kept,
        )  # fmt: skip
    clock.stop()
    return Executable(
        plan=compiled.plan,
        chip=spec,
        module=compiled.text,
        weights={**stored_weights(imported.weights, compiled.orders), **compiled.constants},
        source=Path(imported.source).name,
        cost_model=cost_model,
        cost_file=costs if isinstance(costs, registry.CodeFile) else None,
        codelets=tuple(str(path) for path in codelets),
        options=_as_json(chosen),
        planner_seconds=clock.seconds,
        unsigned=imported.unsigned,
    )


def _module_text(path: Path) -> str:
    """Return the text of a compiled module; raises `InputError` where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", hint="compile the model again") from None


def _imported(
    model: str | Path | ImportedModel | TorchProgram,
    frontend: str,
    shapes: Mapping[str, ShapeOverride] | None,
    dtype: str | None,
    constants: Mapping[str, ArrayLike] | None,
) -> ImportedModel:
    """Return a model as linalg; a file may be read by onnx-mlir before T10 reads it."""
    from t10.frontend.imported import ImportedModel
    from t10.frontend.importer import import_model
    from t10.frontend.torch_program import import_torch
    from t10.onnx_mlir import readable

    if isinstance(model, ImportedModel):
        return model
    if not isinstance(model, (str, Path)):
        return import_torch(model)
    with readable(Path(model), frontend) as file:
        return replace(import_model(file, shapes=shapes, dtype=dtype, constants=constants), source=str(model))


def _cost_files(codelets: Sequence[str | Path]) -> tuple[registry.CodeFile, ...]:
    """Return the cost functions that files of codelets name, which must have been given, not read from data."""
    if not codelets:
        return ()
    from t10.codelets.user import cost_files

    return tuple(registry.given_file(path) for path in cost_files(codelets))


def checked_inputs(expected: Sequence[TensorValue], given: Mapping[str, ArrayLike]) -> Arrays:
    """Return the inputs as arrays of the types the model takes.

    Raises `InputError` for names that are missing or unknown, and for a shape or a type that does not fit; a type that
    holds every value of the given one is no mistake.
    """
    names = [value.name for value in expected]
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or missing:
        found = (
            f"inputs missing: {', '.join(missing)}" if missing else f"unknown inputs: {', '.join(unknown)}"
        )
        raise InputError(f"{found} (the model takes {', '.join(names) or 'none'})")
    result: Arrays = {}
    for value in expected:
        given_value = given[value.name]
        array: NDArray[Any] = np.asarray(given_value)
        wanted = numpy_dtype(value.dtype)
        if array.shape != value.shape:
            raise InputError(f"input {value.name} has shape {array.shape}, expected {value.shape}")
        is_typed = isinstance(given_value, (np.ndarray, np.generic))
        if not np.can_cast(array.dtype, wanted, casting="safe" if is_typed else "same_kind"):
            raise InputError(f"input {value.name} has type {array.dtype}, expected {wanted}")
        result[value.name] = np.ascontiguousarray(array, dtype=wanted).reshape(value.shape)
    return result


class _Stopwatch:
    """Wall time by stage: a stage lasts until another one reports; reports are passed on."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self.stage = ""
        self.since = 0.0

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


def _as_json(options: PlanOptions) -> dict[str, Any]:
    """Return the options as JSON values."""
    values = asdict(options)
    values["forced"] = [asdict(forced) for forced in options.forced]
    return values


def _saved_chip(plan: ModulePlan, extra: Mapping[str, Any], path: Path) -> ChipSpec:
    """Return the chip a plan was made for: as saved beside it, else the bundled one of that name."""
    saved = extra.get("chip")
    if saved is None:
        return load_chip(plan.chip)
    from pydantic import ValidationError

    try:
        return ChipSpec.model_validate(saved)
    except ValidationError as error:
        raise InputError(f"{path}: extra.chip: {error.errors()[0]['msg']}") from None
