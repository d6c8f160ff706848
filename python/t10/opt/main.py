"""`t10-opt`: from a command line to an exit code."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from t10.core.atomic import check_writable
from t10.core.guard import ended_clearly
from t10.core.streams import exit_code_of_output, hold_closed_streams
from t10.dialect.mlir import ir, new_context
from t10.dialect.read_back import names_own_dialects, read_back
from t10.dialect.verify import verify_layouts
from t10.errors import EXIT_INTERNAL, InputError, T10Error
from t10.opt import expected, output, source
from t10.opt.diagnostics import Diagnostics
from t10.opt.options import Settings, UsageError, parse
from t10.opt.pipeline import Step, pipeline_text, steps_of_flags, steps_of_text, with_import_options
from t10.opt.printing import asm, prints_everything
from t10.opt.report import Timing
from t10.opt.reproducer import Reproducer, split
from t10.opt.runner import (
    OUTWARD_BUILTIN_PASSES,
    RunFailed,
    Runner,
    check_printed,
    check_steps,
    innermost,
    named_cost_models,
)
from t10.opt.stages import stage_of, steps_to

EXIT_USAGE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `t10-opt` on a command line (without the program's name) and return its exit code; see `--help` for those."""
    hold_closed_streams()
    try:
        with ended_clearly("t10-opt"):
            return _main(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        print(f"t10-opt: error: {error}\nt10-opt: try 't10-opt --help'", file=sys.stderr)
        return EXIT_USAGE
    except T10Error as error:
        print(f"t10-opt: error: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        code = exit_code_of_output(error, "t10-opt")
        if code is not None:
            return code
        print(
            f"t10-opt: internal error: {type(error).__name__}: {error} (at {innermost(error)})",
            file=sys.stderr,
        )
        return EXIT_INTERNAL


def _main(arguments: Sequence[str]) -> int:
    """Answer questions about the tool itself, or process the input."""
    settings = parse(arguments)
    information = _information(settings)
    if information is not None:
        output.write(settings.output, information)
        return 0
    data = source.read(settings.input)
    text_steps = steps_of_flags(settings.passes)
    if settings.pass_pipeline is not None:
        text_steps = steps_of_text(settings.pass_pipeline)
    if settings.compile_to is not None:
        text_steps = (*text_steps, *steps_to(*stage_of(settings.compile_to)))
    if settings.run_reproducer:
        if text_steps:
            raise UsageError("--run-reproducer runs the pipeline in the input: give no other passes")
        if not isinstance(data, str):
            raise InputError(
                f"{source.display_name(settings.input)} is bytecode, expected the text of a reproducer"
            )
        data, pipeline, verify_each = split(data)
        text_steps = _steps_of_data(pipeline)
        settings = replace(settings, verify_each=verify_each and settings.verify_each)
    text_steps = with_import_options(text_steps, settings.import_options)
    with new_context():
        steps = check_steps(text_steps)
    check_printed((*settings.print_before, *settings.print_after), steps)
    if settings.dump_pass_pipeline:
        print(f"Pass Manager with {len(steps)} passes:\n{pipeline_text(steps)}", file=sys.stderr)
    with _giving(settings, steps):
        return _saving_weights(settings, steps, data)


def _saving_weights(settings: Settings, steps: tuple[Step, ...], data: str | bytes) -> int:
    """Process the input; where that succeeds, write the values of weights if asked for."""
    if settings.save_weights is None:
        return _process_pieces(settings, steps, data)
    if settings.split_input_file is not None:
        raise UsageError("--save-weights is for one module: it cannot be used with --split-input-file")
    check_writable(Path(settings.save_weights))
    from t10.arrays import write_arrays
    from t10.passes.weight_values import collecting

    with collecting() as weights:
        code = _process_pieces(settings, steps, data)
    if code == 0:
        write_arrays(settings.save_weights, weights)
    return code


def _steps_of_data(pipeline: str) -> tuple[Step, ...]:
    """Return the steps of a reproducer's pipeline; raises `InputError`: the command line is not what is wrong."""
    try:
        with new_context():
            return check_steps(steps_of_text(pipeline))
    except UsageError as error:
        raise InputError(f"the reproducer's pipeline is wrong: {error}") from None


def _giving(settings: Settings, steps: tuple[Step, ...]) -> AbstractContextManager[None]:
    """Return a context in which the input may name the cost model files that the command line gives.

    Raises `InputError` for the pipeline of a reproducer, which is read and gives nothing, where it names another one or
    has passes that write files or run tools.
    """
    if settings.run_reproducer:
        for step in steps:
            if step.name in OUTWARD_BUILTIN_PASSES:
                raise InputError(
                    f"the reproducer's pipeline runs {step.name}, which writes files or runs tools that it names",
                    hint=f"if you trust it, give it: --pass-pipeline='{pipeline_text(steps)}'",
                )
            if ".npy" in step.options and not settings.constant:
                raise InputError(
                    f"the reproducer's pipeline has {step.name} read a file that it names: {step.text[:200]}",
                    hint="if you trust it, take that out of the pipeline and give --constant",
                )
    names = named_cost_models(steps)
    if not names and not settings.cost_models:
        return nullcontext()
    from t10.cost import registry  # needs numpy, which takes long to start

    def code_files(names: Iterable[str]) -> tuple[registry.CodeFile, ...]:
        return tuple(file for file in map(registry.given, names) if isinstance(file, registry.CodeFile))

    allowed, named = code_files(settings.cost_models), code_files(names)
    if not settings.run_reproducer:
        return registry.giving((*allowed, *named))
    for file in named:
        if not any((each.path, each.function) == (file.path, file.function) for each in allowed):
            raise InputError(
                f"the reproducer's pipeline names cost model '{file.name}', which runs only where it is given",
                hint=f"if you trust it: --allow-cost-model={file.name}",
            )
    return registry.giving(allowed)


def _information(settings: Settings) -> str | None:
    """Return the answer to --help, --version, --list-passes, --show-dialects or --dump-irdl, if asked for."""
    if settings.version:
        from t10 import __version__

        return f"t10-opt {__version__}\n"
    if settings.dump_irdl is not None:
        from t10.dialect.irdl import irdl_text

        return irdl_text(settings.dump_irdl)
    if not (settings.help or settings.list_passes or settings.show_dialects):
        return None
    from t10.opt import help as texts

    if settings.help:
        return texts.help_text()
    if settings.list_passes:
        return texts.passes_text()
    with new_context():
        return texts.dialects_text()


def _process_pieces(settings: Settings, steps: tuple[Step, ...], data: str | bytes) -> int:
    """Process the input piece by piece, write what came out, and return the first exit code that is not 0."""
    if settings.emit_bytecode and output.is_terminal(settings.output) and not settings.force:
        raise UsageError("bytecode would go to a terminal: use -o FILE, a pipe, or -f")
    pieces = source.pieces(data, settings.input, settings.split_input_file)
    if settings.run_reproducer:
        pieces = [replace(piece, path=None) for piece in pieces]
    if settings.emit_bytecode and len(pieces) > 1:
        raise UsageError("--emit-bytecode writes one module: it cannot be used with --split-input-file")
    timing = Timing()
    results = [_process(settings, steps, piece, timing) for piece in pieces]
    written = [result for _, result in results if result is not None]
    if settings.timing:
        timing.show()
    if settings.emit_bytecode and written:
        output.write(settings.output, written[0])
    elif written:
        output.write(settings.output, "// -----\n".join(str(result) for result in written))
    return next((code for code, _ in results if code), 0)


def _process(
    settings: Settings, steps: tuple[Step, ...], piece: source.InputPart, timing: Timing
) -> tuple[int, str | bytes | None]:
    """Return the exit code and the output (None after an error) of one piece; diagnostics are shown or compared."""
    name = source.display_name(settings.input)
    diagnostics = Diagnostics(name, piece.text)
    context = new_context(allow_unregistered=settings.allow_unregistered_dialect)
    context.emit_error_diagnostics = False
    with context, ir.Location.unknown():
        handler = context.attach_diagnostic_handler(diagnostics.add)
        try:
            code, result = _run(settings, steps, piece, diagnostics, timing)
        finally:
            handler.detach()
    if settings.verify_diagnostics is None:
        diagnostics.show()
        return code, result
    only_expected = settings.verify_diagnostics == "only-expected"
    problems = expected.compare(piece.text or "", name, diagnostics.items, only_expected=only_expected)
    for problem in problems:
        print(problem, file=sys.stderr)
    return (EXIT_USAGE if problems else 0), result


def _run(
    settings: Settings,
    steps: tuple[Step, ...],
    piece: source.InputPart,
    diagnostics: Diagnostics,
    timing: Timing,
) -> tuple[int, str | bytes | None]:
    """Parse, run and print one piece in the current context; what goes wrong is added to `diagnostics`."""
    try:
        with timing.step("Parser"):
            module = source.parse(piece)
    except ir.MLIRError as error:
        diagnostics.add_exception(error)
        return InputError.exit_code, None
    except T10Error as error:
        diagnostics.add_error(error)
        return error.exit_code, None
    if not verify_layouts(module):
        return InputError.exit_code, None
    if settings.verify_roundtrip and not _roundtrips(module, diagnostics):
        return EXIT_INTERNAL, None
    runner = Runner(settings, diagnostics, timing, verify_each=settings.verify_each)
    reproducer = _reproducer(settings, steps, module)
    try:
        runner.run(steps, module)
    except RunFailed as failure:
        return failure.exit_code, None
    if reproducer is not None:
        reproducer.discard()
    try:
        with timing.step("Output"):
            return 0, _printed(settings, module)
    except T10Error as error:
        diagnostics.add_error(error)
        return error.exit_code, None


def _printed(settings: Settings, module: Any) -> str | bytes:
    """Return a module as the output options want it; one of ours is read back, if verified and whole."""
    printed = _bytecode(module) if settings.emit_bytecode else asm(module, settings)
    is_whole = settings.emit_bytecode or prints_everything(settings)
    if settings.verify_each and is_whole and names_own_dialects(printed):
        read_back(printed)
    return printed


def _bytecode(module: Any) -> bytes:
    """Return a module as bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _reproducer(settings: Settings, steps: tuple[Step, ...], module: Any) -> Reproducer | None:
    """Return the reproducer to keep if a step fails, where one is asked for."""
    if settings.crash_reproducer is None:
        return None
    text = str(module.operation.get_asm(assume_verified=True))
    return Reproducer(settings.crash_reproducer, text, pipeline_text(steps), verify_each=settings.verify_each)


def _roundtrips(module: Any, diagnostics: Diagnostics) -> bool:
    """Return whether a module reads back equal from its text and from its bytecode."""
    text = str(module.operation.get_asm(print_generic_op_form=True))
    for form, data in (("text", str(module)), ("generic text", text), ("bytecode", _bytecode(module))):
        back = str(ir.Module.parse(data).operation.get_asm(print_generic_op_form=True))
        if back != text:
            diagnostics.add_error(T10Error(f"the module does not read back equal from its {form}"))
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
