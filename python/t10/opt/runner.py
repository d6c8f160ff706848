"""Runs the steps of a pipeline on a module: built-in passes through MLIR, ours directly, each verified when done."""

from __future__ import annotations

import re
import sys
import traceback
from typing import Any

from t10.core.trust.files import UNDECODABLE
from t10.dialect.mlir import ir, passmanager
from t10.dialect.read_back import names_own_dialects
from t10.dialect.verify import verify_layouts
from t10.errors import EXIT_INTERNAL, InputError, T10Error, UnsupportedOpError, VerifyError
from t10.opt.diagnostics import Diagnostics
from t10.opt.options import Settings, UsageError, did_you_mean
from t10.opt.pipeline import Step
from t10.opt.printing import Printer
from t10.opt.report import Timing, operation_counts, show_statistics
from t10.opt.stages import StageWriter
from t10.passes import registry
from t10.passes.diagnostic import Sink, reporting_to, without_repeats

_RESTRICTED = re.compile(r"restricted to '([\w.]+)'")

COMMON_BUILTIN_PASSES = (
    ("canonicalize", "simplify by folding and canonical patterns"),
    ("cse", "merge equal operations"),
    ("sccp", "propagate constants"),
    ("symbol-dce", "remove unused symbols"),
    ("inline", "inline function calls"),
    ("remove-dead-values", "remove values that nothing needs"),
    ("loop-invariant-code-motion", "move invariant operations out of loops"),
    ("linalg-generalize-named-ops", "turn named linalg operations into linalg.generic"),
    ("linalg-fuse-elementwise-ops", "fuse elementwise linalg operations"),
    ("linalg-fold-unit-extent-dims", "drop dims of extent 1"),
    ("linalg-specialize-generic-ops", "turn linalg.generic into named operations"),
    ("convert-elementwise-to-linalg", "turn elementwise arith on tensors into linalg"),
    ("one-shot-bufferize", "turn tensors into memory"),
    ("strip-debuginfo", "remove locations"),
    ("print-ir", "print the operation to standard error"),
    ("view-op-graph", "print a graph in dot form"),
)
"""Built-in passes worth naming in the help, out of all that the bindings register."""

OUTWARD_BUILTIN_PASSES = ("gpu-module-to-binary", "snapshot-op-locations", "transform-interpreter")
"""Built-in passes that write files or run tools which their options, or operations of the module, name."""


CHECKS = "t10-verify-"
"""What the names of passes begin with that change nothing."""
NOT_AS_WRITTEN = "T10 writes no such module; if it wrote this one, please report it"


class RunFailed(Exception):
    """A step failed; its diagnostics are reported. Carries the exit code."""

    def __init__(self, exit_code: int) -> None:
        """Keep the exit code."""
        super().__init__(exit_code)
        self.exit_code = exit_code


def check_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps with implicit nesting resolved; raises `UsageError` for unknown passes and options.

    Needs a current context.
    """
    return tuple(_checked(step) for step in steps)


def check_printed(names: tuple[str, ...], steps: tuple[Step, ...]) -> None:
    """Raise `UsageError` for a pass to print around that cannot run: neither one of ours nor among the steps."""
    for name in names:
        if not registry.is_registered(name) and name not in {step.name for step in steps}:
            others = [step.name for step in steps]
            raise UsageError(
                f"cannot print around pass '{name}': it does not run.{did_you_mean(name, others)}"
            )


def named_cost_models(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Return the cost models that options of our passes name."""
    passes = (registry.make(step.name, step.options) for step in steps if step.is_ours)
    return tuple(name for each in passes if (name := getattr(each, "cost_model", "")))


def _checked(step: Step) -> Step:
    """Return one step, known to exist and to have such options."""
    if step.is_ours:
        try:
            registry.make(step.name, step.options)
        except registry.PassOptionError as error:
            raise UsageError(str(error)) from None
        return step
    try:
        passmanager.PassManager.parse(f"builtin.module({step.text})")
    except ValueError as error:
        anchor = _RESTRICTED.search(str(error))
        if step.implicit and anchor is not None:
            return _checked(Step(step.name, step.options, (anchor[1],)))
        raise UsageError(_unknown(step, str(error))) from None
    return step


def _unknown(step: Step, message: str) -> str:
    """Return what is wrong with a built-in step."""
    if "does not refer to a registered pass" not in message:
        return f"{step.text}: {' '.join(message.split())}"
    suggestion = did_you_mean(step.name, [name for name, _ in COMMON_BUILTIN_PASSES])
    if step.implicit:
        return f"unknown option or pass '--{step.name}'.{suggestion}"
    return f"unknown pass '{step.name}' in the pipeline.{suggestion}"


class Runner:
    """Runs steps on one module. Failures are added to `diagnostics` and raised as `RunFailed`.

    The context must hold errors back (`emit_error_diagnostics` off, its default): they travel with `MLIRError`, so that
    a pass may try something and catch the error.
    """

    def __init__(
        self, settings: Settings, diagnostics: Diagnostics, timing: Timing, *, verify_each: bool
    ) -> None:
        """Keep what all steps share."""
        self._settings = settings
        self._diagnostics = diagnostics
        self._timing = timing
        self._verify_each = verify_each
        self._printer = Printer(settings)
        self._stages = StageWriter(settings)
        self._is_as_given = False

    def run(self, steps: tuple[Step, ...], module: Any) -> None:
        """Run all steps in order, our passes' missing prerequisites before them.

        What a pass finds wrong with IR of our dialects is the fault of who gave it, as long as no pass has changed it.
        """
        self._is_as_given = names_own_dialects(
            str(
                module.operation.get_asm(large_elements_limit=1, large_resource_limit=1, assume_verified=True)
            )
        )
        for step in steps:
            if not step.is_ours:
                self._builtin(step, module)
                continue
            sink = without_repeats(self._diagnostics.add_message)
            try:
                for pass_ in registry.with_prerequisites(registry.make(step.name, step.options), module):
                    self._ours(pass_, module, sink)
            except T10Error as error:
                self._diagnostics.add_error(error)
                raise RunFailed(error.exit_code) from None

    def _builtin(self, step: Step, module: Any) -> None:
        """Run a built-in pass."""
        self._is_as_given = False
        pm = passmanager.PassManager.parse(f"builtin.module({step.text})")
        pm.enable_verifier(self._verify_each)
        title = step.text
        use_own_printer = self._settings.print_tree_dir is not None or not step.nest
        if use_own_printer:
            self._printer.before(title, step.name, module)
        else:
            self._print_natively(pm, step.name)
        counts = operation_counts(module) if self._settings.statistics else None
        sys.stderr.flush()
        try:
            with self._timing.step(title):
                pm.run(module.operation)
        except ir.MLIRError as error:
            if step.implicit and not step.nest and "unable to schedule pass" in str(error):
                self._builtin(Step(step.name, step.options, ("func.func",)), module)
                return
            self._diagnostics.add_exception(error)
            if use_own_printer:
                self._printer.after_failure(title, step.name, module)
            raise RunFailed(UnsupportedOpError.exit_code) from None
        if counts is not None:
            show_statistics(step.name, counts, operation_counts(module))
        if use_own_printer:
            self._printer.after(title, step.name, module)

    def _print_natively(self, pm: Any, name: str) -> None:
        """Let MLIR print around a nested pass: it prints just the nested operations."""
        settings = self._settings
        after = self._printer.wants_after(name)
        if not (after or self._printer.wants_before(name) or settings.print_after_failure):
            return
        pm.enable_ir_printing(
            print_before_all=self._printer.wants_before(name),
            print_after_all=after,
            print_after_change=after and settings.print_after_change,
            print_after_failure=settings.print_after_failure,
            print_module_scope=settings.print_module_scope,
            large_elements_limit=settings.elide_elements,
            large_resource_limit=settings.elide_resources,
            enable_debug_info=settings.print_debuginfo,
            print_generic_op_form=settings.print_generic,
        )

    def _ours(self, pass_: registry.Pass, module: Any, sink: Sink) -> None:
        """Run one of our passes, its warnings to `sink`, and verify what it leaves behind."""
        title = f"{type(pass_).__name__}: {pass_.name}"
        self._printer.before(title, pass_.name, module)
        counts = operation_counts(module) if self._settings.statistics else None
        try:
            with self._timing.step(pass_.name), reporting_to(sink, self._diagnostics.name):
                pass_.apply(module)
            if self._verify_each:
                self._verify(pass_.name, module)
        except T10Error as error:
            self._printer.after_failure(title, pass_.name, module)
            if error.exit_code == EXIT_INTERNAL and self._is_as_given:
                hint = error.hint or NOT_AS_WRITTEN
                raise InputError(
                    error.message, operator=error.operator, location=error.location, hint=hint
                ) from None
            raise
        except ir.MLIRError as error:
            self._diagnostics.add_exception(error)
            self._printer.after_failure(title, pass_.name, module)
            raise T10Error(
                f"internal error in pass {pass_.name}: MLIR refuses what it makes (see above)",
                hint="a pass of another package: report it there; one of ours: please report it",
            ) from None
        except (Exception, SystemExit) as error:
            self._printer.after_failure(title, pass_.name, module)
            if isinstance(error, UNDECODABLE) and self._is_as_given:
                raise InputError(
                    f"pass {pass_.name} cannot read the module: {type(error).__name__}: {str(error)[:200]} "
                    f"(at {innermost(error)})",
                    hint=NOT_AS_WRITTEN,
                ) from None
            raise T10Error(
                f"internal error in pass {pass_.name}: {type(error).__name__}: {error} (at {innermost(error)})",
                hint="please report this with the file that --mlir-pass-pipeline-crash-reproducer=FILE leaves",
            ) from None
        self._is_as_given = self._is_as_given and pass_.name.startswith(CHECKS)
        if counts is not None:
            show_statistics(pass_.name, counts, operation_counts(module))
        self._printer.after(title, pass_.name, module)
        self._stages.after(pass_.name, module)

    def _verify(self, name: str, module: Any) -> None:
        """Verify a module after a pass of ours."""
        module.operation.verify()
        if name != "t10-verify-layouts" and not verify_layouts(module):
            raise VerifyError(f"pass {name} left layouts or plans behind that break the rules stated above")


def innermost(error: BaseException) -> str:
    """Return file and line where an exception was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
