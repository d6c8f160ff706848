"""Planned modules to tamper with, and what becomes of an edit of one (see `support.tampering`)."""

from __future__ import annotations

import hashlib
import re
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.linalg_numpy import run_module
from support.tampering import Edit, edits
from t10.chip import ChipSpec, load_chip
from t10.codelets.image import assembled
from t10.core.device import DeviceProgram, HostPiece, HostTensor
from t10.core.dtypes import numpy_dtype
from t10.core.schedule import ModulePlan
from t10.core.stored import as_stored
from t10.cost import CostModel
from t10.dialect.aliases import with_aliases
from t10.dialect.mlir import ir, new_context
from t10.dialect.verify import verify_layouts
from t10.emit.poplar.write import write_program
from t10.errors import InputError, SimTrap, T10Error
from t10.passes.bridge.annotate import CHIP
from t10.passes.bridge.read_program import read_program
from t10.passes.device.read import find_graph
from t10.passes.device.read import read_graph as read_device
from t10.passes.lower_ipu import LowerIpu, lower_module
from t10.passes.place import program_plan
from t10.passes.read_graph import ReadModule
from t10.passes.registry import make, run
from t10.plan.schedule import costed_arrivals
from t10.plan.verify import verify_module, verify_operator
from t10.sim.device import run_device
from t10.sim.plan_level import simulate

Array = NDArray[Any]
SOURCES = Path(__file__).parent / "tamper_modules.mlir"
_PARTITION = re.compile(r'--t10-partition="([^"]*)"')
_REPLACED = re.compile(r"^// REPLACE (.*?) by ?(.*)$", re.MULTILINE)
N_PER_CONTEXT = 2000
"""Modules parsed in one context before a new one is made: contexts keep every attribute they have seen."""

N_INPUTS = 3
"""Inputs that numbers are compared for."""

REFUSED, CHECKER, NUMBERS, EQUAL, NO_EFFECT, CRASH = (
    "refused", "caught by the checker", "caught by the numbers", "equal numbers", "no effect", "crash",
)  # fmt: skip
EQUIVALENT, WITHOUT_EFFECT = "equivalent", "without effect"
OUTCOMES = (REFUSED, CHECKER, NUMBERS, EQUIVALENT, WITHOUT_EFFECT, CRASH)
"""What trials end with: equal numbers and the same program are equivalent by name, or a defect."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A module at the compute-shift level, placed: its name, chip, text in MLIR's generic form, and source."""

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
        stated = module.operation.attributes
        assert CHIP in stated
        generic = module.operation.get_asm(assume_verified=True, print_generic_op_form=True)
        return Planned(name, stated[CHIP].value, with_aliases(str(generic)), source)


@dataclass
class Judge:
    """Says what becomes of edits of one module."""

    module: Planned
    given: list[dict[str, Array]] = field(init=False)
    expected: list[dict[str, Array]] = field(init=False)
    digest: str = field(init=False)
    context: Any = None
    n_parsed: int = 0

    def __post_init__(self) -> None:
        read = self.read(self.module.text)
        self.given = [_values(read, seed) for seed in range(N_INPUTS)]
        self.expected = [self._run(read, given) for given in self.given]
        self.digest = self.lower(read)

    def reference(self) -> dict[str, Array]:
        """Return what numpy makes of the module before it was planned."""
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(self.module.source)
            run(make("t10-fuse"), module)
            function = next(iter(module.body.operations)).operation
            kind = function.attributes["function_type"].value
            for key, stem, types in (
                ("arg_attrs", "arg", kind.inputs),
                ("res_attrs", "result", kind.results),
            ):
                named = (f'{{t10.name = "{stem}{i}"}}' for i in range(len(types)))
                function.attributes[key] = ir.Attribute.parse(f"[{', '.join(named)}]")
            return run_module(module, stored(self.read(self.module.text), self.given[0]))

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
            read = self.read(text)
        except _Refused as refused:
            return Verdict(REFUSED, str(refused))
        operators = zip(read.plan.graph.operators, read.plan.operators, strict=True)
        problems = [
            violation
            for spec, each in operators
            for violation in verify_operator(spec, each.active.plan, read.chip.n_cores)
        ]
        if not problems:
            problems = verify_module(costed_arrivals(read.plan, read.chip, read.cost), read.chip)
        if problems:
            return Verdict(CHECKER, str(problems[0]))
        difference = self._difference(read)
        try:
            digest = self.lower(read)
        except T10Error as error:
            return Verdict(REFUSED, f"when lowered: {error}")
        if digest == self.digest:
            if difference:
                return Verdict(CRASH, f"the program is the same, but {difference}")
            return Verdict(NO_EFFECT, "", digest)
        return Verdict(NUMBERS if difference else EQUAL, difference, digest)

    def read(self, text: str) -> _Read:
        """Return what a text says; raises `_Refused`."""
        if self.context is None or self.n_parsed % N_PER_CONTEXT == 0:
            self.context = new_context()
        self.n_parsed += 1
        messages: list[str] = []

        def keep(diagnostic: Any) -> bool:
            messages.append(f"{diagnostic.location}: {diagnostic.message}")
            return True

        with self.context, ir.Location.unknown():
            handler = self.context.attach_diagnostic_handler(keep)
            try:
                module = ir.Module.parse(text)
                if not verify_layouts(module):
                    raise _Refused(messages[0])
            except (ir.MLIRError, ValueError) as error:
                raise _Refused(_first(error)) from None
            finally:
                handler.detach()
            assert not messages, f"accepted in spite of {messages[0]}"
            try:
                chip, cost = LowerIpu().target(module)
                program = read_program(module)
                return _Read(module, program.model, program_plan(program, chip), chip, cost)
            except T10Error as error:
                raise _Refused(str(error)) from None

    def _difference(self, read: _Read) -> str:
        """Return how the outputs differ from those of the module as it was; nothing if they are the same."""
        for given, expected in zip(self.given, self.expected, strict=True):
            try:
                found = self._run(read, given)
            except (InputError, SimTrap) as error:
                return f"{type(error).__name__}: {error}"
            if difference := difference_of(found, expected):
                return difference
        return ""

    def _run(self, read: _Read, values: Mapping[str, Array]) -> dict[str, Array]:
        given = stored(read, values)
        return dict(simulate(read.plan, read.chip, read.cost, given, given).outputs)

    def lower(self, read: _Read) -> str:
        """Lower a module and return the digest of the program, and of what lies beside it."""
        with self.context, ir.Location.unknown():
            lower_module(read.module, read.chip, read.cost)
            text = str(read.module.operation.get_asm(assume_verified=True))
        digest = hashlib.blake2b(
            f"{text}{read.model.graph.inputs}{read.model.graph.weights}".encode(), digest_size=16
        )
        for name, array in read.model.constants.items():
            digest.update(f"{name} {array.shape} {array.dtype}".encode() + array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Read:
    """A parsed module, what it says, and the chip it says that for."""

    module: Any
    model: ReadModule
    plan: ModulePlan
    chip: ChipSpec
    cost: CostModel


def stored(read: _Read, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return inputs, constants, and weights as the module stores them."""
    return {**as_stored(given, (*read.model.graph.inputs, *read.model.graph.weights)), **read.model.constants}


def _values(read: _Read, seed: int) -> dict[str, Array]:
    """Return small random integers for inputs and for weights, those in the order of dims in which they came."""
    rng = np.random.default_rng(seed)
    values: dict[str, Array] = {}
    for value in sorted((*read.plan.graph.inputs, *read.plan.graph.weights), key=lambda each: each.name):
        low, high = (0, 5) if value.dtype == "i64" else (-15, 16) if value.dtype[0] == "f" else (-4, 5)
        values[value.name] = rng.integers(low, high, value.host_shape).astype(numpy_dtype(value.dtype))
    return values


class _Refused(Exception):
    """A text is not accepted; the message says why."""


def _first(error: Exception) -> str:
    diagnostics = getattr(error, "error_diagnostics", None)
    if diagnostics:
        return f"{diagnostics[0].location}: {diagnostics[0].message}"
    return str(error)


def difference_of(found: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
    if list(found) != list(expected):
        return f"outputs {list(found)}, expected {list(expected)}"
    for name, array in expected.items():
        if found[name].shape != array.shape or found[name].dtype != array.dtype:
            return f"{name} is {found[name].dtype}{found[name].shape}, expected {array.dtype}{array.shape}"
        if not np.array_equal(found[name], array, equal_nan=array.dtype.kind == "f"):
            return f"{name} differs"
    return ""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Edits that change nothing that matters, by kind and description, and why that is so."""

    name: str
    kinds: str
    what: str
    proof: str

    def covers(self, edit: Edit) -> bool:
        """Return whether an edit is one of these."""
        return bool(re.fullmatch(self.kinds, edit.kind) and re.search(self.what, edit.what))


EQUIVALENCES = (
    Equivalence("names", "string (op_name|sym_name)", "", "names of operators and of the function: reports say them"),
    Equivalence(
        "label of a view", "string kind|without kind", r'"transpose"|without kind',
        "fusing labels moves; their maps say what they are",
    ),
    Equivalence(
        "one-hot product", "string kind", '"gather" -> "(contraction|reduction)"',
        "a gather is a sum over its axis of what its index selects; as a contraction it is computed like that",
    ),
    Equivalence(
        "repeated value", "duplicate", r": .*= (arith|math|tensor|linalg)\.",
        "a value that is made again, or a move that is undone and done again, is the same value",
    ),
    Equivalence(
        "repeated operator", "duplicate", r": .*= rtensor\.operator used",
        "the second one computes the same from the same operands; the first one's result is not used",
    ),
    Equivalence(
        "copying epilogue", "delete", r"= linalg\.generic, %\d+ instead", "without a root it copies accumulators"
    ),
    Equivalence("equal constant", "delete", r"= arith\.constant, ", "another constant of the same value is used"),
    Equivalence("order of text", "move", "", "operands name what they need: SSA dominance still holds"),
    Equivalence(
        "order of operands", "operand order", r"= arith\.(add|mul|max|min)|cmpi", "the operation is commutative"
    ),
    Equivalence(
        "exchanged operands of a root", "operand order|argument order", r"linalg\.generic|exchanged",
        "both are read in the same way, by operations that commute",
    ),
    Equivalence("inverse", "list indexing_maps", "0 and 1 exchanged", "an exchange of two dims is its own inverse"),
    Equivalence(
        "permission", "keyword|without (fastmath|overflowFlags)", "none|fastmath|overflowFlags",
        "flags permit other roundings and overflows; nothing makes use of that",
    ),
    Equivalence("free place", "number address", "", "the checker proves that nothing else lies there meanwhile"),
    Equivalence("places anew", "without rtensor.shift_buffer", "", "a module without shift buffer is placed again"),
    Equivalence("prices", "without t10.cost_model", "", "the default prices, which it had; programs hold no prices"),
    Equivalence("numbering of cores", "list core_order", "exchanged", "cores change places, and so do the exchanges"),
    Equivalence(
        "other start", "number phases", "", "windows still tile every ring: the checker moves them step by step"
    ),
    Equivalence("other chunks", "number cores", "", "the elements lie in chunks of another size, or of the same one"),
    Equivalence(
        "padding", "number (lengths|cores)", "", "more points than the tensor has: neutral where there is none"
    ),
    Equivalence(
        "all for a part", "number scatter|without scatter|every layout", "", "every core keeps all, not a part"
    ),
    Equivalence(
        "weight as input", r"t10\.weight|without arg_attrs", "", "the host hands over the same values at another time"
    ),
)  # fmt: skip


DEVICE_EQUIVALENCES = (
    Equivalence("names", "string (op_name|sym_name|summary|comment|chip|t10.chip|t10.cost_model)|without comment", "",
                "said in comments and reports"),
    Equivalence("without t10 attributes", r"without t10\.(chip|cost_model)", "", "the graph names its chip itself"),
    Equivalence(
        "sides of a field", "string (kind|dtype|name)|number align", "",
        "what the C++ class declares; its reference is compiled by the Poplar build, not by the tiles",
    ),
    Equivalence("what a variable is for", "string role", "", "said in comments and reports"),
    Equivalence("what a step is for", "string kind", "", "said in comments, reports and prices"),
    Equivalence("modelled time", "number cycles", "", "reports add it up; nothing else reads it"),
    Equivalence(
        "step not taken", "(number|list) words", "", "the distance behind the last iteration, or in a loop of one"
    ),
    Equivalence("spare memory", "(number|list) (shape|mapping)", "", "bytes that nothing writes or reads"),
    Equivalence(
        "other copy", "(number|list) elements", "", "an output is read from the first slot that holds an element"
    ),
    Equivalence(
        "free place", r"number (address|state|memory_\w+|stack_bytes|code|scratch|stack|exchange|free|data)",
        "", "Poplar places variables, vertices and stacks; at the other place of the simulator nothing lies",
    ),
    Equivalence("pairs", "list apart", "exchanged", "two fields that must lie apart, in either order"),
    Equivalence("idle tiles", "number tiles", "", "tiles that no vertex runs on and no exchange names"),
    Equivalence("order of text", "move", "", "definitions come before uses; steps that change places use other bytes"),
    Equivalence(
        "done again", "duplicate", r"ipu\.(copy|execute|sequence|alloc|table|pattern|compute_set|codelet)",
        "an exchange or a fill writes the same bytes again; a definition is not used",
    ),
    Equivalence(
        "same bytes elsewhere", "operand|delete|(number|list) (runs|fills)|number operand|operand order", "",
        "another variable, or another tile, holds the same values at that time",
    ),
    Equivalence("element of equal size", "type", "", "the variable's bytes are those of the codelet's fields"),
)  # fmt: skip


def named(edit: Edit, among: tuple[Equivalence, ...] = EQUIVALENCES) -> str:
    """Return the equivalence that an edit without effect is an example of; nothing for a defect."""
    return next((each.name for each in among if each.covers(edit)), "")


@dataclass
class DeviceJudge:
    """Says what becomes of edits of the `ipu.graph` that a module is lowered to; `text` is that graph's."""

    module: Planned
    text: str = field(init=False)
    given: list[dict[str, Array]] = field(init=False)
    expected: list[dict[str, Array]] = field(init=False)
    digest: str = field(init=False)
    chip: ChipSpec = field(init=False)
    context: Any = None
    n_parsed: int = 0

    def __post_init__(self) -> None:
        judge = Judge(self.module)
        self.chip = load_chip(self.module.chip)
        read = judge.read(self.module.text)
        # The host puts inputs in order.
        inputs = [tensor.name for tensor in read.plan.graph.inputs]
        self.given = [stored(read, each) | {name: each[name] for name in inputs} for each in judge.given]
        judge.lower(read)
        generic = read.module.operation.get_asm(assume_verified=True, print_generic_op_form=True)
        self.text = with_aliases(str(generic))
        program = self._read(self.text)
        self.digest = _written(program)
        self.expected = [self._run(program, given) for given in self.given]
        for found, expected in zip(self.expected, judge.expected, strict=False):
            outputs = {name: found[name] for name in expected}
            assert not difference_of(outputs, expected), "the device computes something else than the plan"

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
            program = self._read(text)
            digest = _written(program)
        except (_Refused, T10Error) as refused:
            return Verdict(REFUSED, str(refused))
        if digest == self.digest:
            return Verdict(NO_EFFECT, "", digest)
        for given, expected in zip(self.given, self.expected, strict=True):
            try:
                found = self._run(program, given)
            except T10Error as error:
                return Verdict(NUMBERS, f"{type(error).__name__}: {error}", digest)
            if difference := difference_of(found, expected):
                return Verdict(NUMBERS, difference, digest)
        return Verdict(EQUAL, "", digest)

    def _read(self, text: str) -> DeviceProgram:
        if self.context is None or self.n_parsed % N_PER_CONTEXT == 0:
            self.context = new_context()
        self.n_parsed += 1
        with self.context, ir.Location.unknown():
            try:
                module = ir.Module.parse(text)
                return read_device(find_graph(module))
            except (ir.MLIRError, ValueError) as error:
                raise _Refused(_first(error)) from None

    def _run(self, program: DeviceProgram, given: Mapping[str, Array]) -> dict[str, Array]:
        image = assembled(program.codelets, self.chip.tile_memory)
        rests = tuple(_at_rest(weight) for weight in program.weights)
        seen = replace(program, outputs=(*program.outputs, *rests))
        return dict(run_device(seen, self.chip, image, given, given).outputs)


def _at_rest(weight: HostTensor) -> HostTensor:
    """Return every slot of a weight as an output: the next run finds there what this one left."""
    piece = weight.pieces[0]
    is_held = piece.elements >= 0
    numbers = np.where(is_held, np.cumsum(is_held).reshape(is_held.shape) - 1, -1).astype(np.int32)
    shape = (int(is_held.sum()),)
    return HostTensor(f"{weight.name} at rest", weight.dtype, shape, (HostPiece(piece.variable, numbers),))


def _written(program: DeviceProgram) -> str:
    """Return the digest of the folder that a device program is written as."""
    digest = hashlib.blake2b(digest_size=16)
    with tempfile.TemporaryDirectory() as folder:
        write_program(program, folder, {})
        for name in ("program.cpp", "codelets.S", "codelets.cpp", "tables.bin"):
            digest.update((Path(folder) / name).read_bytes())
    return digest.hexdigest()


def trials(name: str, level: str, part: float) -> Iterator[tuple[Edit, Verdict]]:
    """Yield edits of a module at a level (rtensor or ipu), and what became of them; `part` of all are tried."""
    module = planned(name)
    judge = DeviceJudge(module) if level == "ipu" else Judge(module)
    text = judge.text if isinstance(judge, DeviceJudge) else module.text
    among = DEVICE_EQUIVALENCES if level == "ipu" else EQUIVALENCES
    for edit in edits(text):
        if edit.chance(name) >= part:
            continue
        verdict = judge.judge(edit.text)
        if verdict.outcome in (EQUAL, NO_EFFECT):
            found = named(edit, among)
            reason = f"{found} ({verdict.outcome})" if found else verdict.outcome
            verdict = Verdict(EQUIVALENT if found else WITHOUT_EFFECT, reason, verdict.digest)
        yield edit, verdict
