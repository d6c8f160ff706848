"""`t10 verify MODEL`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from t10.arrays import Arrays, read_arrays, write_arrays
from t10.attack.bounded import Due, bounded
from t10.attack.engines import Engines, engine_names, prepared
from t10.attack.judging import Judge
from t10.attack.partials import Allowance
from t10.attack.ranges import Trial, trials
from t10.backend import Engine
from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.options import bounds_of, chip_of, constants_of, partials_of, plan_options_of, shapes_of
from t10.cli.prove import PROVED, prove
from t10.cli.run import planned_line
from t10.cli.search import search
from t10.cli.stages import Compiled, check_stages, compiled_stages, errors_of, graph_of, prove_stages
from t10.cli.terminal import new_table, progress_bar, say, say_folded, stdout
from t10.core.atomic import check_writable
from t10.driver import Executable, Progress, checked_inputs, compile
from t10.errors import InputError
from t10.frontend.declared import use_declared_shapes
from t10.frontend.fixed_inputs import empty_inputs
from t10.random_inputs import Reach, random_inputs
from t10.reference import (
    Comparison,
    OnnxRuntime,
    compare,
    default_tolerance,
    load_onnx,
    read_given,
)
from t10.report.columns import Column
from t10.report.table import milliseconds_text, partials_text

EXIT_DIFFERS = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One output of an engine on some inputs against ONNX Runtime, or against another engine."""

    trial: Trial
    engine: str
    comparison: Comparison


def run_verify(arguments: Arguments) -> int:
    """Compile, execute, compare; return 1 when an output differs by more than its tolerance."""
    check_writable(arguments.outputs, arguments.bisect)
    _check(arguments)
    if arguments.inputs is not None:
        read_arrays(arguments.inputs, names=())  # that it is there is known before the model is compiled
    names = engine_names(arguments.engine)
    console = stdout(quiet=arguments.quiet)
    with progress_bar(quiet=arguments.quiet) as progress:
        executable = _proved(arguments, progress)
        tolerance = tolerance_of(arguments, executable)
        allowance = _allowance(arguments, executable)
        judge, all_due = _cases(arguments, executable, tolerance, allowance)
        cases = [(trial, due.outputs) for trial, due in all_due]
        with prepared(executable, names) as engines:
            findings, cycles = _executed(arguments, engines, cases, tolerance, judge, allowance, progress)
        show_comparisons(console, *_worst(findings))
        _tell(console, arguments, executable, cycles, [trial for trial, _ in cases])
        _tell_notes(console, findings)
        wrong = [each for each in findings if not each.comparison.is_within]
        _tell_depthwise(console, executable, wrong)
        _tell_sensitive(console, judge, wrong, tolerance)
        layer = ""
        if arguments.layers or arguments.bisect is not None:
            trial = wrong[0].trial if wrong else cases[0][0]
            blamed = {each.engine for each in wrong}
            failed: tuple[Engine, ...] = tuple([name for name in names if name in blamed])

            def compiled(path: Path) -> Executable:
                return _compiled(arguments, path, progress, is_part=True)

            layer = search(
                console, arguments, trial.inputs, failed or names, compiled, tolerance, is_wrong=bool(wrong)
            )
    failures = [_verdict(wrong, layer)] if wrong or layer else []
    failures += filter(None, [_cut_off(arguments, all_due)])
    failure = "; ".join(failures)
    console.print(f"[red]FAILED[/]: {escape(failure)}" if failure else "[green]verified[/]", soft_wrap=True)
    return EXIT_DIFFERS if failure else 0


def show_comparisons(
    console: Console, comparisons: Sequence[Comparison], engines: Sequence[str] = ()
) -> None:
    """Print one row per output and, where there are several, engine."""
    table = new_table(
        *((Column("engine", is_folded=True, is_number=False),) if len(set(engines)) > 1 else ()),
        Column("output", is_folded=True, is_number=False),
        Column("shape", rank=2, is_number=False),
        Column("type", rank=3, is_number=False),
        Column("max|y-ref| / max|ref|"),
        Column("tolerance", rank=1),
        Column("", is_number=False),
    )
    for number, each in enumerate(comparisons):
        verdict = Text("ok", "green") if each.is_within else Text("differs", "red")
        shape = "x".join(map(str, each.shape)) or "scalar"
        engine = (engines[number],) if len(set(engines)) > 1 else ()
        table.add_row(
            *engine, each.name, shape, each.dtype, f"{each.error:.2e}", _limit(each.tolerance), verdict
        )  # fmt: skip
    console.print(table)


def _limit(tolerance: float) -> str:
    """Return a tolerance: one digit where that is all of it."""
    return f"{tolerance:.0e}" if float(f"{tolerance:.0e}") == tolerance else f"{tolerance:.2e}"


def _check(arguments: Arguments) -> None:
    """Raise `InputError` for values of options that mean nothing."""
    check_stages(arguments, is_program_wanted=engine_names(arguments.engine) != ("plan",))
    if arguments.tolerance is not None and not 0 <= arguments.tolerance < inf:
        raise InputError(f"--tolerance is {arguments.tolerance}, expected a finite number of at least 0")
    if arguments.seeds < 1:
        raise InputError(f"--seeds is {arguments.seeds}, expected at least 1")
    part = arguments.bisect
    if part is not None and (part.suffix != ".onnx" or part.resolve() == arguments.model.resolve()):
        raise InputError(f"--bisect is {part}, expected a file .onnx other than the model")
    if arguments.bounds and (arguments.layers or part is not None):
        raise InputError(
            "--bound does not go with --layers and --bisect: inner values have other shapes with it"
        )


def tolerance_of(arguments: Arguments, executable: Compiled) -> float:
    """Return the tolerance that was given, or that of the model's types."""
    return default_tolerance(graph_of(executable)) if arguments.tolerance is None else arguments.tolerance


def _proved(arguments: Arguments, progress: Progress) -> Compiled:
    """Return the model, compiled in stages or as one, and proved if that is asked for."""
    if arguments.stages:
        staged = compiled_stages(arguments, arguments.model, progress)
        if arguments.prove:
            prove_stages(staged, progress)
        return staged
    executable = _compiled(arguments, arguments.model, progress)
    if arguments.prove:
        prove(executable, progress)
    return executable


def _compiled(arguments: Arguments, model: Path, progress: Progress, *, is_part: bool = False) -> Executable:
    """Return a model compiled as the command says; what the command says of inputs and plans is not for its parts."""
    return compile(
        model, chip_of(arguments), {} if is_part else shapes_of(arguments), plan_options_of(arguments), progress,
        cost_model=arguments.cost_model, codelets=arguments.codelets,
        plan=None if is_part else arguments.plan, dtype=arguments.dtype,
        constants={} if is_part else constants_of(arguments), bounds=bounds_of(arguments),
        keep_f64=arguments.keep_f64, partials=partials_of(arguments),
        frontend="t10" if is_part else arguments.frontend,
        frontend_flags="" if is_part else arguments.frontend_flags, cache=cache_of(arguments),
        program=engine_names(arguments.engine) != ("plan",),
    )  # fmt: skip


def _allowance(arguments: Arguments, executable: Compiled) -> Allowance | None:
    """Return what sums in f16 allow outputs to be off by; None where there are none, or a tolerance is given.

    None as well where references are given for what is no ONNX model: nothing says how its errors grow.
    """
    errors = errors_of(executable)
    if arguments.tolerance is not None or not any(error for _, error in errors):
        return None
    try:
        model = load_onnx(_reference(arguments))
    except InputError:
        if arguments.inputs is None:
            raise
        return None
    if arguments.inputs is None:
        use_declared_shapes(model)
    return Allowance(_runtime(arguments, model), errors)


def _cases(
    arguments: Arguments,
    executable: Compiled,
    tolerance: float,
    allowance: Allowance | None,
) -> tuple[Judge | None, list[tuple[Trial, Due]]]:
    """Return inputs with their references, and who judges by these; nobody does where references are given."""
    if arguments.inputs is not None:
        found, references = read_given(arguments.inputs, executable.inputs, executable.output_names)
        inputs = checked_inputs(executable.inputs, found, str(arguments.inputs))
        if references:
            return None, [(Trial(0, None, inputs), Due(references))]
        model = _runtime(arguments, _loaded(arguments, executable))
        return Judge(model, tolerance), [(Trial(0, None, inputs), _due(arguments, executable, model, inputs))]
    declared = _loaded(arguments, executable)
    use_declared_shapes(declared)  # random shapes and axes would not be those that the model was compiled for
    model = _runtime(arguments, declared)

    def draw(seed: int, reach: Reach, specials: bool) -> Arrays:
        graph, weights = graph_of(executable), executable.weights
        return model.held(random_inputs(graph, seed, reach, specials=specials, weights=weights))

    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    tried = trials(draw, seeds, model, tolerance, specials=arguments.specials, allowance=allowance)
    due = [(trial, _due(arguments, executable, model, trial.inputs)) for trial in tried]
    return Judge(model, tolerance), due


def _due(arguments: Arguments, executable: Compiled, model: OnnxRuntime, inputs: Arrays) -> Due:
    """Return what the outputs must be; those with a bound have its extent, and zeros behind the valid rows."""
    bounds = bounds_of(arguments)
    return bounded(model, inputs, bounds, graph_of(executable)) if bounds else Due(model.outputs(inputs))


def _reference(arguments: Arguments) -> Path:
    """Return the file that ONNX Runtime runs."""
    return arguments.reference or arguments.model


def _loaded(arguments: Arguments, executable: Compiled) -> Any:
    """Return the model that ONNX Runtime runs; raises `InputError` where it has not the inputs of the one compiled."""
    model = load_onnx(_reference(arguments))
    known = {value.name for value in model.graph.input}
    missing = [value.name for value in executable.inputs if value.name not in known]
    if missing:
        raise InputError(
            f"--reference {arguments.reference} has no input {missing[0]!r} (inputs: {', '.join(sorted(known))})"
        )
    return model


def _runtime(arguments: Arguments, model: Any) -> OnnxRuntime:
    """Return ONNX Runtime with a model whose inputs are fixed as the command says."""
    fixed = empty_inputs(model, shapes_of(arguments)) | constants_of(arguments)
    return OnnxRuntime(model, _reference(arguments), fixed)


def _executed(
    arguments: Arguments, engines: Engines, cases: Sequence[tuple[Trial, Arrays]], tolerance: float,
    judge: Judge | None, allowance: Allowance | None, progress: Progress,
) -> tuple[list[Finding], int | None]:  # fmt: skip
    """Return how all engines compare on all inputs, and the cycles of the first run."""
    findings: list[Finding] = []
    first: int | None = None
    for number, (trial, references) in enumerate(cases):
        outputs, cycles = engines.run(trial.inputs, progress)
        if number == 0:
            first = cycles
            if arguments.outputs is not None:
                write_arrays(arguments.outputs, next(iter(outputs.values())))
        more = None if allowance is None else allowance.of(trial.inputs)
        for engine, found in outputs.items():
            compared = (
                judge.compared(found, references, trial.inputs, more)
                if judge is not None
                else compare(found, references, tolerance, more)
            )
            findings += [Finding(trial, engine, each) for each in compared]
        findings += [Finding(trial, *each) for each in _against_each_other(outputs, tolerance, more)]
    return findings, first


def _against_each_other(
    outputs: Mapping[Engine, Arrays], tolerance: float, more: Mapping[str, float] | None
) -> Iterator[tuple[str, Comparison]]:
    """Yield every other engine against the first one."""
    first, *others = outputs
    for engine in others:
        for each in compare(outputs[engine], outputs[first], tolerance, more):
            yield f"{engine} against {first}", each


def _worst(findings: Sequence[Finding]) -> tuple[list[Comparison], list[str]]:
    """Return the worst comparison of every output and engine over all inputs, and the engines."""
    worst: dict[tuple[str, str], Comparison] = {}
    for finding in findings:
        key, found = (finding.engine, finding.comparison.name), finding.comparison
        # Where sums are kept in f16, inputs have tolerances of their own.
        if key not in worst or (not found.is_within, found.error) > (
            not worst[key].is_within,
            worst[key].error,
        ):
            worst[key] = found
    return list(worst.values()), [engine for engine, _ in worst]


def _tell(
    console: Console, arguments: Arguments, executable: Compiled, cycles: int | None, tried: Sequence[Trial]
) -> None:
    """Print what it took, and which inputs there were."""
    is_emitted = engine_names(arguments.engine)[0] == "iss"
    source = "instruction-set simulator" if is_emitted else executable.cost_model
    parts = [] if cycles is None else [_time(executable, cycles, source)]
    say_folded(console, Text(f"{executable.chip.name}: {'; '.join([*parts, _source(arguments)])}"))
    if cycles is not None and is_emitted and isinstance(executable, Executable):
        say(console, f"  {planned_line(executable, cycles)}")
    for trial in tried:
        if trial.reach is not None:
            say(console, f"  {trial.story}")
    sums = partials_text(executable.report()) if isinstance(executable, Executable) else ""
    if sums not in ("", "f32"):
        say(console, f"  partials: {sums}")
    if arguments.prove:
        say(console, PROVED)
    if arguments.inputs is None and _reference(arguments).suffix in (".mlir", ".mlirbc"):
        say(
            console,
            f"  not compared: {arguments.model.name} with the model that it was made from (--reference MODEL.onnx)",
        )


def _tell_notes(console: Console, findings: Sequence[Finding]) -> None:
    """Print of every output where ONNX Runtime has another result than ONNX's reference evaluator, which is right."""
    told: set[str] = set()
    for finding in findings:
        name, note = finding.comparison.name, finding.comparison.note
        if note and name not in told:
            told.add(name)
            say(
                console, f"  as ONNX's reference evaluator has it: {note} ({finding.engine}, {finding.trial})"
            )


def _tell_depthwise(console: Console, executable: Compiled, wrong: Sequence[Finding]) -> None:
    """Print why a program may give NaN where it reads no infinity: depthwise convolutions take channels in fours."""
    is_nan = any(each.engine != "plan" and each.comparison.found != each.comparison.found for each in wrong)
    if is_nan and any(
        spec.kind == "convolution"
        and spec.inputs[0].dtype == "f16"
        and spec.inputs[0].axes & spec.inputs[1].axes & spec.output.axes
        for spec in graph_of(executable).operators
    ):
        say(
            console,
            "  programs multiply the other three of four channels of a depthwise convolution in f16 by zero: an"
            " infinity or NaN in one makes them NaN, too (docs/numerics.md)",
        )


def _tell_sensitive(
    console: Console, judge: Judge | None, wrong: Sequence[Finding], tolerance: float
) -> None:
    """Print why outputs may differ without a defect: sums that ONNX Runtime saturates, roundings of the first one."""
    if judge is None or not wrong:
        return
    saturated = judge.saturated()
    if saturated:
        say(
            console,
            f"  {saturated}: ONNX Runtime adds products of uint8 and int8 in 16 bits on this processor, so that large"
            " sums differ (give references with --inputs)",
        )
    trial, name = wrong[0].trial, wrong[0].comparison.name
    moved = judge.moved_by_roundings(trial.inputs, name)
    if moved > tolerance:
        say(
            console,
            f"  {name} on {trial}: roundings on the way move it by {moved:.2e} in the model itself, more than the"
            " tolerance: a difference need not be a defect (try --seed or --tolerance)",
        )


def _verdict(wrong: Sequence[Finding], layer: str) -> str:
    """Return what is wrong first, in one line."""
    if not wrong:
        return f"the result of an operator differs by more than the tolerance: {layer}"
    first = wrong[0]
    found = f"{first.comparison.worst_text} ({first.engine}, {first.trial})"
    return f"outputs differ by more than the tolerance: {found}"


def _cut_off(arguments: Arguments, cases: Sequence[tuple[Trial, Due]]) -> str:
    """Return for which inputs a bound is too small, in one line; empty if for none.

    Outputs may agree nevertheless: rows of the reference are cut off, too.
    """
    found = ((trial, due.cut_off(bounds_of(arguments))) for trial, due in cases)
    trial, text = next(((trial, text) for trial, text in found if text), (None, ""))
    return text and f"{text} (on {trial}; give a larger bound, or inputs that need fewer)"


def _time(executable: Compiled, cycles: int, source: str) -> str:
    time = milliseconds_text(cycles / executable.chip.clock_hz * 1000)
    return f"{cycles:,} cycles, {time} (modelled, {source})"


def _source(arguments: Arguments) -> str:
    if arguments.inputs is not None:
        return f"inputs of {arguments.inputs.name}"
    last = arguments.seed + arguments.seeds - 1
    seeds = f"seeds {arguments.seed} to {last}" if last > arguments.seed else f"seed {last}"
    return f"random inputs ({seeds}), reference ONNX Runtime in f32"
