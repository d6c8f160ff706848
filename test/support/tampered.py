"""Planned modules to tamper with, and what becomes of an edit of one (see `support.tampering`)."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.linalg_numpy import run_module
from t10.chip import ChipSpec, load_chip
from t10.core.dtypes import numpy_dtype
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.cost.registry import cost_model
from t10.dialect.aliases import with_aliases
from t10.dialect.layout_attr import forget_decoded
from t10.dialect.mlir import ir, new_context
from t10.dialect.verify import verify_layouts
from t10.errors import InputError, SimTrap, T10Error
from t10.passes.bridge.annotate import CHIP
from t10.passes.bridge.read_program import read_program
from t10.passes.lower_ipu import lower_module
from t10.passes.place import program_plan
from t10.passes.registry import make, run
from t10.plan.schedule import priced_arrivals
from t10.plan.verify import verify_module, verify_operator
from t10.sim.plan_level import simulate

Array = NDArray[Any]
SOURCES = Path(__file__).parent / "tamper_modules.mlir"
_PARTITION = re.compile(r'--t10-partition="([^"]*)"')
_REPLACED = re.compile(r"^// REPLACE (.*?) by ?(.*)$", re.MULTILINE)
N_PER_CONTEXT = 2000
"""Modules parsed in one context before a new one is made: contexts keep every attribute they have seen."""

REFUSED, CHECKER, NUMBERS, EQUAL, NO_EFFECT, CRASH = OUTCOMES = (
    "refused", "caught by the checker", "caught by the numbers", "equal numbers", "no effect", "crash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """A module at the compute-shift level, placed, in MLIR's generic form: its name, chip and text, and its source's."""

    name: str
    chip: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an edit, and the message or the difference that says so; `digest` is that of the program."""

    outcome: str
    reason: str = ""
    digest: str = ""


def sources() -> dict[str, str]:
    """Return the sections of the file of sources by name."""
    _, *sections = re.split(r"^// (\w+): (?=--)", SOURCES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def planned(name: str) -> Planned:
    """Return a module planned and placed by the passes that its header names."""
    section = sources()[name]
    header, _, body = section.partition("\n")
    source = body.replace("// -----", "")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        for options in _PARTITION.findall(header):
            run(make("t10-partition", options), module)
        run(make("t10-reconcile"), module)
        text = str(module)
        for old, new in _REPLACED.findall(body):
            assert old in text, f"{name}: {old} is not in the module"
            text = text.replace(old, new)
        module = ir.Module.parse(text)
        run(make("t10-place"), module)
        assert module.operation.verify()
        chip = module.operation.attributes[CHIP].value
        generic = module.operation.get_asm(assume_verified=True, print_generic_op_form=True)
        made = Planned(name, chip, with_aliases(str(generic)), source)
    forget_decoded()
    return made


@dataclass
class Judge:
    """Says what becomes of edits of one module."""

    module: Planned
    seed: int = 0
    chip: ChipSpec = field(init=False)
    cost: CostModel = field(init=False)
    given: Mapping[str, Array] = field(init=False)
    expected: dict[str, Array] = field(init=False)
    digest: str = field(init=False)
    context: Any = None
    n_parsed: int = 0

    def __post_init__(self) -> None:
        self.chip = load_chip(self.module.chip)
        self.cost = cost_model("ipu", self.chip)
        self.given = {}
        plan, constants = self._plan(self.module.text)
        self.given = {**_values(plan, self.seed), **constants}
        self.expected = self._run(plan)
        self.digest = self._digest(constants)

    def reference(self) -> dict[str, Array]:
        """Return what numpy makes of the module before it was planned."""
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(self.module.source)
            run(make("t10-fuse"), module)
            function = next(iter(module.body.operations)).operation
            kind = function.attributes["function_type"].value
            for key, stem, types in (("arg_attrs", "arg", kind.inputs), ("res_attrs", "result", kind.results)):
                named = (f'{{t10.name = "{stem}{i}"}}' for i in range(len(types)))
                function.attributes[key] = ir.Attribute.parse(f"[{', '.join(named)}]")
            return run_module(module, self.given)

    def judge(self, text: str) -> Verdict:
        """Return what becomes of a text."""
        try:
            return self._judged(text)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return Verdict(CRASH, f"{type(error).__name__}: {error} at {where}")

    def _judged(self, text: str) -> Verdict:
        try:
            plan, constants = self._plan(text)
        except _Refused as refused:
            return Verdict(REFUSED, str(refused))
        plan_problem = next(
            (
                str(violation)
                for spec, each in zip(plan.graph.operators, plan.operators, strict=True)
                for violation in verify_operator(spec, each.active.plan, self.chip.n_cores)
            ),
            "",
        )
        if not plan_problem:
            plan = priced_arrivals(plan, self.chip, self.cost)
            plan_problem = next((str(violation) for violation in verify_module(plan, self.chip)), "")
        if plan_problem:
            return Verdict(CHECKER, plan_problem)
        try:
            outputs = self._run(plan, constants)
            difference = _difference(outputs, self.expected)
        except (InputError, SimTrap) as error:
            difference = f"{type(error).__name__}: {error}"
        try:
            digest = self._digest(constants)
        except T10Error as error:
            return Verdict(REFUSED, f"when lowered: {error}")
        if digest == self.digest:
            if difference:
                return Verdict(CRASH, f"the program is the same, but {difference}")
            return Verdict(NO_EFFECT, "", digest)
        return Verdict(NUMBERS if difference else EQUAL, difference, digest)

    def _plan(self, text: str) -> tuple[ModulePlan, Mapping[str, Array]]:
        """Return what a text does, priced where it is right, and the values of its constants."""
        if self.context is None or self.n_parsed % N_PER_CONTEXT == 0:
            forget_decoded()
            self.context = new_context()
        self.n_parsed += 1
        messages: list[str] = []

        def keep(diagnostic: Any) -> bool:
            messages.append(f"{diagnostic.location}: {diagnostic.message}")
            return True

        with self.context, ir.Location.unknown():
            handler = self.context.attach_diagnostic_handler(keep)
            try:
                self.parsed = ir.Module.parse(text)
                if not verify_layouts(self.parsed):
                    raise _Refused(messages[0])
            except (ir.MLIRError, ValueError) as error:
                raise _Refused(_first(error)) from None
            finally:
                handler.detach()
            _located(messages)
            try:
                program = read_program(self.parsed)
                plan = program_plan(program, self.chip)
            except T10Error as error:
                raise _Refused(str(error)) from None
        return plan, program.model.constants

    def _run(self, plan: ModulePlan, constants: Mapping[str, Array] | None = None) -> dict[str, Array]:
        given = {**self.given, **(constants or {})}
        return dict(simulate(plan, self.chip, self.cost, given, given).outputs)

    def _digest(self, constants: Mapping[str, Array]) -> str:
        """Return the digest of the program that the last text is lowered to, and of the constants beside it."""
        with self.context, ir.Location.unknown():
            lower_module(self.parsed, self.chip, self.cost)
            text = str(self.parsed.operation.get_asm(assume_verified=True))
        digest = hashlib.blake2b(text.encode(), digest_size=16)
        for name, array in constants.items():
            digest.update(f"{name} {array.shape} {array.dtype}".encode() + array.tobytes())
        return digest.hexdigest()


class _Refused(Exception):
    """A text is not accepted; the message says why."""


def _first(error: Exception) -> str:
    diagnostics = getattr(error, "error_diagnostics", None)
    if diagnostics:
        return f"{diagnostics[0].location}: {diagnostics[0].message}"
    return str(error)


def _located(messages: list[str]) -> None:
    if messages:
        raise AssertionError(f"accepted in spite of {messages[0]}")


def _values(plan: ModulePlan, seed: int) -> dict[str, Array]:
    """Return small random integers for inputs and weights."""
    rng = np.random.default_rng(seed)
    values = {}
    for value in sorted((*plan.graph.inputs, *plan.graph.weights), key=lambda each: each.name):
        low = 0 if value.dtype == "i64" else -4
        values[value.name] = rng.integers(low, 5, value.shape).astype(numpy_dtype(value.dtype))
    return values


def _difference(found: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
    if list(found) != list(expected):
        return f"outputs {list(found)}, expected {list(expected)}"
    for name, array in expected.items():
        if found[name].shape != array.shape or found[name].dtype != array.dtype:
            return f"{name} is {found[name].dtype}{found[name].shape}, expected {array.dtype}{array.shape}"
        if not np.array_equal(found[name], array, equal_nan=array.dtype.kind == "f"):
            return f"{name} differs"
    return ""
