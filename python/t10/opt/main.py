"""`t10-opt`: from a command line to an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t10.core.guard import ended_clearly
from t10.dialect.mlir import ir, new_context
from t10.dialect.read_back import names_own_dialects, read_back
from t10.dialect.verify import verify_layouts
from t10.errors import EXIT_INTERNAL, InputError, T10Error
from t10.opt import expected, output, source
from t10.opt.diagnostics import Diagnostics
from t10.opt.options import Settings, UsageError, parse
from t10.opt.pipeline import Step, pipeline_text, steps_of_flags, steps_of_text
from t10.opt.printing import asm, prints_everything
from t10.opt.report import Timing
from t10.opt.reproducer import Reproducer, split
from t10.opt.runner import RunFailed, Runner, check_printed, check_steps, innermost

EXIT_USAGE = 1
_EXIT_BROKEN_PIPE = 141
"""What a shell reports for a process that a closed pipe ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `t10-opt` on a command line (without the program's name) and return its exit code; see `--help` for those."""
    try:
        with ended_clearly("t10-opt"):
            return _main(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        print(f"t10-opt: {error}\nt10-opt: try 't10-opt --help'", file=sys.stderr)
        return EXIT_USAGE
    except T10Error as error:
        print(f"t10-opt: error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Python flushes standard output once more at exit: give it something that is open.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return 130
    except Exception as error:
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
    if settings.run_reproducer:
        if text_steps or not isinstance(data, str):
            raise UsageError(
                "--run-reproducer runs the pipeline in the input, which must be text: give no other passes"
            )
        data, pipeline, verify_each = split(data)
        text_steps = steps_of_text(pipeline)
        settings = replace(settings, verify_each=verify_each and settings.verify_each)
    with new_context():
        steps = check_steps(text_steps)
    check_printed((*settings.print_before, *settings.print_after), steps)
    if settings.dump_pass_pipeline:
        print(f"Pass Manager with {len(steps)} passes:\n{pipeline_text(steps)}", file=sys.stderr)
    return _process_pieces(settings, steps, data)


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
    """Return a module as the output options want it; one of ours is read back, if it is written in full."""
    printed = _bytecode(module) if settings.emit_bytecode else asm(module, settings)
    if names_own_dialects(printed) and (settings.emit_bytecode or prints_everything(settings)):
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
