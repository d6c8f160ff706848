"""From linalg to a program for the chip: the passes of `t10-opt`, run in process by the drivers.

`compile_module` leaves exactly what `--t10-fuse --t10-partition --t10-align-pace --t10-pareto --t10-reconcile
--t10-expand --t10-place` leave for the same chip. Nobody looks before the choice, so native search takes the place of
the three passes that find the fronts, and these stay values. From the choice on, every stage reads the module that the
stage before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.garbage import rare_collections
from t10.core.guard import reading
from t10.core.partials import Partials
from t10.core.schedule import ModulePlan
from t10.core.trust.files import decoding
from t10.cost import CostModel, registry
from t10.cost.counts import kept_between_runs
from t10.dialect.aliases import with_aliases
from t10.dialect.mlir import ir, new_context
from t10.dialect.read_back import read_back
from t10.dialect.verify import verify_layouts
from t10.emit.link import Parts
from t10.emit.lower import lowered_parts
from t10.errors import T10Error, VerifyError
from t10.passes.bridge.annotate import CHIP, COST_MODEL, annotate, state_cost_model
from t10.passes.bridge.read_program import ReadProgram, read_program
from t10.passes.expand import expand_module
from t10.passes.forced import forced_by_attributes
from t10.passes.fuse import Fuse
from t10.passes.place import check_places, program_plan, write_places
from t10.passes.planning import locating
from t10.passes.program_room import ProgramRoom
from t10.passes.read_graph import ReadModule, read_graph
from t10.passes.registry import with_prerequisites
from t10.plan.fit.explain_fit import explaining
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.helper import kept_helpers
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.fronts.pinned import check_names
from t10.plan.fronts.pins import Pins
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.options import PlanOptions
from t10.plan.pinned_schedule import as_written, pinned_schedule
from t10.plan.schedule import as_placed, costed_arrivals, schedule_module, with_costs

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """A module at the compute-shift level, placed: `text`, and `plan`, what it says with what was found about it.

    `constants` are values of the module that became weights, by name.
    """

    text: str
    plan: ModulePlan
    constants: dict[str, NDArray[Any]]
    parts: Parts | None = None
    """The plan, lowered, where the model was planned beside its program."""


@rare_collections()
@kept_helpers()
def compile_module(
    module: Any,
    chip: ChipSpec,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    *,
    cost_model: str | registry.CodeFile = registry.DEFAULT_COST_MODEL,
    pins: Pins | None = None,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
    program: bool = False,
    partials: Partials | None = None,
) -> CompiledModule:
    """Fuse, plan, expand and place a linalg module for a chip under a cost model; the module is changed.

    Plans pinned by attributes of operators, by `pins` and by `options` are kept; of two for one operator, the last of
    these. Operators are searched on `executor` and kept in `cache`. Raises `UnsupportedOpError` for operations that
    cannot be planned, `InfeasiblePlanError` if it does not fit, and what `pinned_front` raises for pins that are wrong.
    """
    with kept_between_runs(cache), module.context, ir.Location.unknown():
        joins = options is None or not options.as_published
        read = fused(module, chip, progress, partials, joins=joins)
        pinned = with_pins(read, options or PlanOptions(), pins)
        cost = registry.cost_model(cost_model, chip)
        with locating(read.graph.operators), explaining(read.graph, chip, cost, pinned):
            return compile_fused(
                module, read, chip, pinned, progress,
                cost_model=cost_model, pins=pins, executor=executor, cache=cache, program=program,
            )  # fmt: skip


def compile_fused(
    module: Any,
    read: ReadModule,
    chip: ChipSpec,
    options: PlanOptions,
    progress: Progress | None = None,
    *,
    cost_model: str | registry.CodeFile = registry.DEFAULT_COST_MODEL,
    pins: Pins | None = None,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
    program: bool = False,
) -> CompiledModule:
    """Plan, expand and place a fused module, read as `read`, with the pins of `options`; the module is changed.

    Needs a current context and location. Raises what `compile_module` raises, lack of memory not explained.
    """
    cost = registry.cost_model(cost_model, chip)
    fronts = operator_fronts(read.graph, chip, cost, options, progress, executor=executor, cache=cache)
    room = ProgramRoom(chip, cost) if program else DataRoom(chip, Wishes(cost))
    fetches = None if pins is None or pins.whole is None else pins.whole.fetches
    chosen = pinned_schedule(read.graph, chip, cost, fronts, options, room, fetches)
    if chosen is None:
        chosen = schedule_module(read.graph, chip, cost, fronts, options, progress, room)
    lying = as_placed(chosen, chip, cost)
    if pins is not None:
        lying = as_written(lying, pins.whole)
    state_cost_model(module, cost_model)
    module.operation.attributes[CHIP] = ir.StringAttr.get(chip.name)
    annotate(module, read, chosen)
    expand_module(module, chip, cost, read)
    written = read_program(module)
    write_places(written, lying)
    plan = with_costs(_checked_plan(written, chip, registry.name_of(cost_model)), lying)
    if plan is None:
        raise T10Error("the module says something else than what was planned")
    text = written_text(module)
    parts = room.parts(plan) if isinstance(room, ProgramRoom) else None
    return CompiledModule(text, plan, read.constants, parts)


def module_text(module: Any) -> str:
    """Return a verified module as `t10-opt` prints it."""
    return with_aliases(str(module.operation.get_asm(assume_verified=True)).rstrip("\n") + "\n")


def written_text(module: Any) -> str:
    """Return the text of a module that is about to be written, read back: it is valid and says the same again.

    Raises `T10Error` where it does not. It is read in a context of its own, in which names of constants are not taken.
    """
    text = module_text(module)
    with new_context(), ir.Location.unknown():
        if module_text(read_back(text)) != text:
            raise T10Error("the module reads back as another one")
    return text


def read_module_plan(
    text: str, chip: ChipSpec, cost_model: str, source: str
) -> tuple[ModulePlan, dict[str, NDArray[Any]]]:
    """Return what the text of a placed module at the compute-shift level says, and the values of its constants by name.

    Cycles and fronts are left out. Raises `T10Error`, naming `source`, for text that is no such module, and for one
    that is planned for another chip or under another cost model.
    """
    with parsed_module(text, source) as module:
        try:
            with decoding(source, hint="compile the model again"):
                program = read_program(module)
                return _checked_plan(program, chip, cost_model), program.model.constants
        except T10Error as error:
            # Locations of text that was parsed from memory begin with "-".
            error.location = f"{source}{(error.location or '-').removeprefix('-')}"
            raise


@rare_collections()
def device_parts(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> Parts:
    """Return what a placed module says, lowered: linked, it is the `ipu.graph` that `--t10-lower-ipu` leaves of it."""
    check_places(plan, chip)
    return lowered_parts(as_placed(costed_arrivals(plan, chip, cost), chip, cost), chip, cost)


@contextmanager
def parsed_module(text: str, source: str) -> Generator[Any]:
    """Make a context current in which a module's text is parsed and verified; raises `VerifyError` naming `source`."""
    with new_context(), ir.Location.unknown():
        try:
            with reading(source):
                module = ir.Module.parse(text)
        except (ir.MLIRError, ValueError) as error:
            lines = str(error).replace('error: "-":', "line ").strip().splitlines()
            raise VerifyError(
                f"{source} is no module at the compute-shift level: {' '.join(lines[1:2] or lines)}",
                hint="compile the model again",
            ) from None
        if not verify_layouts(module):
            raise VerifyError(f"{source} holds layouts that break the dialect's rules")
        yield module


def stated_target(text: str, source: str) -> tuple[str, str]:
    """Return the names of the chip and of the cost model that the text of a planned module states."""
    with parsed_module(text, source) as module:
        return _stated(module, CHIP), _stated(module, COST_MODEL)


def _checked_plan(program: ReadProgram, chip: ChipSpec, cost_model: str) -> ModulePlan:
    plan = program_plan(program, chip)
    module = program.model.function.parent
    for name, expected in ((CHIP, chip.name), (COST_MODEL, cost_model)):
        found = _stated(module, name)
        if found != expected:
            raise VerifyError(f"the module states {name} = '{found}', expected '{expected}'")
    check_places(plan, chip)
    if plan.fetches and chip.memory is None:
        raise VerifyError(
            f"weights are fetched, expected none: {chip.name} has no off-chip memory",
            operator=plan.fetches[0].operator,
        )
    return plan


def _stated(module: Any, name: str) -> str:
    """Return a text that a module states about itself; raises `VerifyError` where it does not."""
    attributes = module.operation.attributes
    if name not in attributes or not isinstance(attributes[name], ir.StringAttr):
        raise VerifyError(f"the module does not state {name} as a string")
    return attributes[name].value


def fused(
    module: Any,
    chip: ChipSpec,
    progress: Progress | None = None,
    partials: Partials | None = None,
    *,
    joins: bool = True,
) -> ReadModule:
    """Fuse a linalg module for a chip and return the model it holds; `partials` are f32 if not given.

    Without `joins` operators stay apart (`--t10-fuse=join=false`).

    Needs a current context and location.
    """
    if progress:
        progress("fuse", 0, 1)
    asked = partials or Partials()
    fuse = Fuse(partials=asked.kind, partials_tolerance=asked.tolerance, join=joins)
    for each in with_prerequisites(fuse, module):
        if each is fuse:
            fuse.fuse(module, chip)
        else:
            each.apply(module)
    return read_graph(module)


def with_pins(read: ReadModule, options: PlanOptions, pins: Pins | None) -> PlanOptions:
    """Return the options with everything that is pinned; raises `InputError` for what the model does not have."""
    check_names((forced.operator for forced in options.forced), read.graph)
    forced = forced_by_attributes(read)
    with locating(read.graph.operators):
        of_file = pins.forced(read.graph) if pins is not None else ()
    for each in (*of_file, *options.forced):
        forced[each.operator] = each
    return replace(options, forced=tuple(forced.values()))
