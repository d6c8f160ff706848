"""Several chips as a pipeline: a model in stages, each compiled for a group of cores of its own.

    staged = t10.compile_stages("model.onnx", chip="pod16", stages=4)
    outputs = staged.run({"x": x})
    staged.save("out")

A saved folder holds stages.json (what runs where, and what is handed over), stages/0, stages/1 ... (every different
stage, compiled: a folder as `Executable.save` writes it), if the model had them, weights.npz, and manifest.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from t10.arrays import Arrays, read_arrays, write_arrays
from t10.artefact import Description, Folder, written
from t10.chip import ChipSpec, load_chip
from t10.chip.groups import groups_of
from t10.core.document.encode import total_cycles
from t10.core.graph import Graph, TensorValue
from t10.core.joined import joined
from t10.core.partials import Partials
from t10.core.schedule import ModulePlan
from t10.core.staged import StagedPlan
from t10.core.stored import as_stored
from t10.cost import registry
from t10.driver import (
    WEIGHTS_FILE,
    Executable,
    Progress,
    ShapeOverride,
    Stopwatch,
    TorchProgram,
    as_json,
    checked_inputs,
    imported_model,
    opened_cache,
)
from t10.errors import InputError, VerifyError
from t10.report.stages import STAGES_FILE, StagesReport, read_stages, stages_report, write_stages

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from t10.frontend.imported import ImportedModel
    from t10.plan.fronts.cache import PlanCache
    from t10.plan.options import PlanOptions
    from t10.sim.result import SimResult

AUTO = "auto"
STAGES_FOLDER = "stages"
MOST_NAMED = 3
AGAIN = "compile the model again"


@dataclass(frozen=True, slots=True)
class StagedResult:
    """A finished simulation of all stages, one after the other: `outputs` by name; `stages` as they ran.

    `cycles` are those from the request to the result, hand-overs included.
    """

    outputs: Arrays
    stages: tuple[SimResult, ...]
    cycles: int


@dataclass(frozen=True)
class StagedExecutable:
    """A model in stages. `executables` are those that differ, without weights; `weights` are the whole model's."""

    staged: StagedPlan
    chip: ChipSpec
    executables: tuple[Executable, ...]
    weights: Arrays = field(repr=False)
    source: str = ""
    cost_model: str = registry.DEFAULT_COST_MODEL
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    planner_seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @cached_property
    def graph(self) -> Graph:
        """Return the whole model."""
        return joined(self.staged.stages, self.plans)

    @property
    def plans(self) -> tuple[ModulePlan, ...]:
        """Return the plans that differ, by the number that stages give."""
        return tuple(each.plan for each in self.executables)

    @property
    def inputs(self) -> tuple[TensorValue, ...]:
        """Return name, shape and element type of every input of the model."""
        return self.graph.signature[0]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return the names of the model's outputs."""
        return tuple(output.name for output in self.graph.outputs)

    def run(self, inputs: Mapping[str, ArrayLike], *, progress: Progress | None = None) -> Arrays:
        """Return the outputs by name, computed stage by stage on the plan simulator; raises as `Executable.run`."""
        return self.execute(inputs, progress=progress).outputs

    def execute(self, inputs: Mapping[str, ArrayLike], *, progress: Progress | None = None) -> StagedResult:
        """Return what the plan simulator saw of every stage, which gets from those before only what is handed over."""
        arrays = checked_inputs(self.inputs, inputs)
        self.check_weights()
        given, handed, outputs = dict(arrays), Arrays(), Arrays()
        results: list[SimResult] = []
        cycles = 0
        for number, stage in enumerate(self.staged.stages):
            executable = self._stage(number)
            plan_inputs = zip(executable.plan.graph.inputs, stage.inputs, strict=True)
            taken = {
                value.name: handed[name] if name in handed else given[name] for value, name in plan_inputs
            }
            result = executable.execute(taken, progress=progress)
            made = {
                name: result.outputs[output.name]
                for output, name in zip(executable.plan.graph.outputs, stage.outputs, strict=True)
            }
            n_own = len(stage.outputs) - len(stage.sends)
            outputs |= {name: made[name] for name in stage.outputs[:n_own]}
            handed = {name: made[name] for name in stage.outputs[n_own:]}
            results.append(result)
            cycles += result.cycles + stage.send_cycles
        return StagedResult(outputs, tuple(results), cycles)

    def _stage(self, number: int) -> Executable:
        """Return a stage with the weights of its own."""
        stage = self.staged.stages[number]
        executable = self.executables[stage.plan]
        names = zip(executable.plan.graph.weights, stage.weights, strict=True)
        return replace(
            executable,
            weights={value.name: self.weights[name] for value, name in names if name in self.weights},
        )

    def check_weights(self) -> None:
        """Raise `InputError` unless all weights have values."""
        missing = [value.name for value in self.graph.weights if value.name not in self.weights]
        if missing:
            names = ", ".join(missing[:MOST_NAMED]) + (", ..." if len(missing) > MOST_NAMED else "")
            raise InputError(
                f"{len(missing)} weights have no values: {names}",
                hint="the model was compiled without its external data; put that beside it and compile again",
            )

    def report(self) -> StagesReport:
        """Return what the stages cost: results per second, latency, memory, hand-overs; cycles are modelled."""
        return stages_report(
            self.staged,
            self.plans,
            self.executables[0].chip,
            source=self.source,
            cost_model=self.cost_model,
        )

    def save(self, folder: str | Path) -> None:
        """Write the stages to a folder; raises as `Executable.save`."""
        about = Description(
            source=self.source,
            chip=self.chip,
            cost_model=self.cost_model,
            code=(),
            options=dict(self.options),
            measured={},
            planner_seconds=dict(self.planner_seconds),
        )
        with written(folder, about) as into:
            write_stages(into / STAGES_FILE, self.report())
            for number, executable in enumerate(self.executables):
                (into / STAGES_FOLDER).mkdir(exist_ok=True)
                executable.save(into / STAGES_FOLDER / str(number))
            if self.weights or not self.graph.weights:
                write_arrays(into / WEIGHTS_FILE, self.weights)

    @classmethod
    def load(cls, folder: str | Path | Folder) -> StagedExecutable:
        """Return the stages of a folder that `save` or `t10 compile --stages` wrote; raises as `Executable.load`."""
        opened = folder if isinstance(folder, Folder) else Folder.open(folder)
        about = opened.manifest.about
        report = read_stages(opened.checked(STAGES_FILE))
        n_plans = 1 + max(stage.plan for stage in report.stages)
        executables = tuple(
            Executable.load(opened.path / STAGES_FOLDER / str(number)) for number in range(n_plans)
        )
        found = cls(
            report.staged, about.chip, executables, {}, about.source, about.cost_model, about.options,
            about.planner_seconds,
        )  # fmt: skip
        _check(found, report, opened.path / STAGES_FILE)
        shapes = {weight.name: weight.shape for weight in found.graph.weights}
        if not opened.has(WEIGHTS_FILE):
            return found
        return replace(found, weights=read_arrays(opened.checked(WEIGHTS_FILE), shapes.get, shapes))


def _check(found: StagedExecutable, report: StagesReport, path: Path) -> None:
    """Raise `VerifyError` where stages.json says something else of stages than their plans do."""
    for number, stage in enumerate(found.staged.stages):
        plan = found.plans[stage.plan]
        if (stage.run_cycles, stage.peak_bytes) != (total_cycles(plan).total, plan.peak_bytes):
            raise VerifyError(f"{path}: stage {number} takes other cycles or bytes than its plan", hint=AGAIN)
    if found.report().model_copy(update={"generator": report.generator}) != report:
        raise VerifyError(f"{path}: the totals are not those of its stages", hint=AGAIN)


def is_staged(folder: Folder) -> bool:
    """Return whether a folder holds stages."""
    return folder.has(STAGES_FILE)


def compile_stages(
    model: str | Path | ImportedModel | TorchProgram,
    chip: str | Path | ChipSpec = "pod16",
    shapes: Mapping[str, ShapeOverride] | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    *,
    stages: int | str = AUTO,
    level: str = "",
    cost_model: str = registry.DEFAULT_COST_MODEL,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
    keep_f64: bool = False,
    frontend: str = "t10",
    frontend_flags: str | Sequence[str] = (),
    partials: Partials | str = "f32",
    executor: Executor | None = None,
    cache: PlanCache | str | Path | None = None,
) -> StagedExecutable:
    """Return a model compiled in stages, each for a group of cores of a level of the chip.

    `stages` is how many, or `auto` for as many as are fastest; `level` names what each has one of, the innermost with
    groups of cores if it is empty. The rest is as for `t10.compile`. Raises `T10Error`.
    """
    from t10.passes.staged import compile_staged
    from t10.plan.options import PlanOptions as Options

    n_stages = number_of(stages)
    groups = groups_of(chip if isinstance(chip, ChipSpec) else load_chip(chip), level)
    asked = Partials(partials) if isinstance(partials, str) else partials
    chosen, costs = options or Options(), registry.given(cost_model)
    clock = Stopwatch(progress, "import")
    imported = imported_model(model, frontend, frontend_flags, shapes, dtype, constants, bounds, keep_f64)
    made = compile_staged(
        imported.module, groups, n_stages, chosen, clock.report,
        cost_model=costs, executor=executor, cache=opened_cache(cache), partials=asked,
    )  # fmt: skip
    clock.stop()
    source, as_options = Path(imported.source).name, {**as_json(chosen), **asked.as_options()}
    return StagedExecutable(
        staged=made.staged,
        chip=groups.whole,
        executables=tuple(
            Executable(
                plan=each.plan, chip=groups.chip, module=each.text, weights={}, source=source,
                cost_model=registry.name_of(costs), options=as_options,
            )
            for each in made.compiled
        ),
        weights={**as_stored(imported.weights, made.weights), **made.constants},
        source=source,
        cost_model=registry.name_of(costs),
        options=as_options,
        planner_seconds=clock.seconds,
    )  # fmt: skip


def number_of(stages: int | str) -> int | None:
    """Return how many stages are asked for, None for as many as are fastest; raises `InputError` for none."""
    if stages == AUTO:
        return None
    text = str(stages)
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1 << 20:
        raise InputError(f"found {text!r:.40} stages, expected a number from 1 on, or auto")
    return int(text)
