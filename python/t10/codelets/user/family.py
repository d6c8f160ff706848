"""A family of one user's codelet: which tasks it computes, and the words it gets for each.

What the user left out is taken from the bundled scalar loops: a C++ reference for code that is only in assembly,
assembly for our simulator where the code is only in C++. The vertex then carries the fields of both.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import permutations
from pathlib import Path

from t10.codelets.digest import named
from t10.codelets.loops.family import LoopFamily
from t10.codelets.user.arithmetic import Number, evaluated
from t10.codelets.user.declaration import OUTPUT, CodeletDeclaration, FieldDeclaration, OperandDeclaration
from t10.codelets.user.pattern import Match, Pattern, matches
from t10.codelets.user.source import UserAssembly
from t10.core.codelet import Codelet, CodeletKind, Compiled, Field, FieldKind, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.tile import ADDRESS_BITS, N_WORKERS
from t10.errors import InputError

ANY = "any"
MOST_SCRATCH_BYTES = 1 << ADDRESS_BITS
"""More than a tile has."""
WORD_BYTES = 4
SCRATCH_ALIGN = 8
_NAME = "%NAME%"
"""Stands for a codelet's name in code while the name, a digest of that code, is not known."""


@dataclass(frozen=True, slots=True)
class UserFamily:
    """The tasks that one declaration is for; see the module's docstring."""

    declaration: CodeletDeclaration
    patterns: tuple[Pattern, ...]
    assembly: UserAssembly | None
    cpp_reference: str | None
    source: Path
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Set the name, which no bundled family has."""
        object.__setattr__(self, "name", f"User_{self.declaration.name}")

    @property
    def digest(self) -> str:
        """Return a text that differs whenever the declaration or its code does."""
        assembly = "" if self.assembly is None else self.assembly.text
        parts = (self.declaration.model_dump_json(), assembly, self.cpp_reference or "")
        return sha256("\0".join(parts).encode()).hexdigest()[:16]

    def may_compute(self, body: ScalarFunction) -> bool:
        """Return whether the declaration is for such a body."""
        return any(True for pattern in self.patterns for _ in matches(pattern, body))

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as the user's codelet, None where the declaration does not cover it."""
        chosen = next(self._fits(task), None)
        if chosen is None:
            return None
        numbers, operands = chosen
        declared = self.declaration
        scratch = self._bytes(declared.scratch_bytes, numbers, "scratch_bytes", MOST_SCRATCH_BYTES)
        words = tuple(self._word(each, numbers, operands, scratch) for each in declared.fields)
        fields = tuple(self._field(each) for each in declared.fields)
        pointed = {each.pointer: each.name for each in declared.fields if each.pointer is not None}
        codelet = Codelet(
            name=self.name,
            kind=declared.kind,
            fields=fields,
            assembly=self.assembly.text if self.assembly is not None else "",
            cpp_reference=self.cpp_reference or "",
            summary=declared.summary or f"codelet of {self.source.name}",
            stack_bytes=self.assembly.stack_bytes if self.assembly is not None else 0,
            apart=tuple((pointed[a], pointed[b]) for a, b in declared.apart if a in pointed and b in pointed),
            is_cpp=self.assembly is None,
        )
        compiled = Compiled(codelet, words, scratch)
        return (
            compiled
            if self.assembly is not None and self.cpp_reference is not None
            else self._completed(compiled, task)
        )

    def _fits(self, task: Task) -> Iterator[tuple[dict[str, Number], dict[str, int]]]:
        """Yield numbers by name and operand numbers by name, for every way in which the declaration covers a task."""
        declared = self.declaration
        if (
            task.selectors
            or task.combine != declared.combine
            or len(task.inputs) != len(declared.inputs)
            or task.output.dtype != declared.output.dtype
            or (task.combine != "none" and task.initial != declared.initial)
        ):
            return
        for pattern in self.patterns:
            for match in matches(pattern, task.body):
                operands = {**dict(match.inputs), OUTPUT: len(task.inputs)}
                if not self._operands_fit(task, operands):
                    continue
                for axes in self._assignments(task):
                    numbers = self._numbers(task, operands, axes, match)
                    if self._numbers_fit(task, operands, axes, numbers):
                        yield numbers, operands

    def _declared_operands(self) -> dict[str, OperandDeclaration]:
        return {**self.declaration.inputs, OUTPUT: self.declaration.output}

    def _operands_fit(self, task: Task, operands: dict[str, int]) -> bool:
        """Return whether types, alignment and memories of a task's operands are those declared."""
        for name, declared in self._declared_operands().items():
            operand = task.operands[operands[name]]
            if (
                operand.dtype != declared.dtype
                or operand.align_bytes % _alignment(declared)
                or (declared.is_interleaved and not operand.is_interleaved)
            ):
                return False
        return all(task.are_apart(operands[a], operands[b]) for a, b in self.declaration.apart)

    def _assignments(self, task: Task) -> Iterator[dict[str, int | None]]:
        """Yield the number of a task's axis by name, None for axes the task does not have: those have extent 1."""
        declared = self.declaration
        for parallel in _placed(declared.axes, task.parallel_axes):
            for reduced in _placed(declared.reduction_axes, task.reduction_axes):
                yield {**parallel, **reduced}

    def _numbers(
        self, task: Task, operands: dict[str, int], axes: dict[str, int | None], match: Match
    ) -> dict[str, Number]:
        """Return what expressions may name."""
        numbers: dict[str, Number] = dict(match.constants)
        for axis, number in axes.items():
            numbers[axis] = 1 if number is None else task.extents[number]
            for name, operand in operands.items():
                numbers[f"{name}.{axis}"] = 0 if number is None else task.operands[operand].strides[number]
        return numbers

    def _numbers_fit(
        self, task: Task, operands: dict[str, int], axes: dict[str, int | None], numbers: dict[str, Number]
    ) -> bool:
        """Return whether strides are those declared and all conditions hold."""
        for name, declared in self._declared_operands().items():
            operand: TaskOperand = task.operands[operands[name]]
            for axis, number in axes.items():
                wanted = declared.strides.get(axis, 0)
                if number is None or wanted == ANY:
                    continue
                if operand.strides[number] != self._number(wanted, numbers, f"stride {name}.{axis}"):
                    return False
        return all(bool(self._number(text, numbers, "where")) for text in self.declaration.where)

    def _number(self, text: int | str, numbers: dict[str, Number], what: str) -> Number:
        return evaluated(text, numbers, f"{self.source}: codelet {self.declaration.name}: {what}")

    def _bytes(self, text: int | str, numbers: dict[str, Number], what: str, most: int) -> int:
        """Return a number of bytes; raises `InputError` for one that is none or too large."""
        found = self._number(text, numbers, what)
        if not 0 <= found <= most or int(found) != found:
            where = f"{self.source}: codelet {self.declaration.name}"
            raise InputError(f"{where}: {what} is {found} (expected whole bytes, 0 to {most:,})")
        return int(found)

    def _word(
        self, declared: FieldDeclaration, numbers: dict[str, Number], operands: dict[str, int], scratch: int
    ) -> Word:
        """Return the word of a field; offsets are into `scratch` bytes."""
        if declared.pointer is not None:
            return Pointer(operands[declared.pointer])
        what = f"field {declared.name}"
        if declared.scratch is not None:
            return Scratch(self._bytes(declared.scratch, numbers, what, scratch))
        value = self._number(declared.value or 0, numbers, what)
        if declared.type == "f32":
            return float(value)
        least, most = (0, 1 << 32) if declared.type == "u32" else (-(1 << 31), 1 << 31)
        if not isinstance(value, int) or not least <= value < most:
            raise InputError(
                f"{self.source}: codelet {self.declaration.name}: {what} is {value}, which is no {declared.type}"
            )
        return int(value)

    def _field(self, declared: FieldDeclaration) -> Field:
        """Return the field as the vertex declares it."""
        if declared.pointer is None:
            kind: FieldKind = "scratch" if declared.scratch is not None else declared.type
            return Field(declared.name, kind, align_bytes=SCRATCH_ALIGN if kind == "scratch" else WORD_BYTES)
        operand = self._declared_operands()[declared.pointer]
        is_read = self.declaration.combine != "none" and not self.declaration.initial
        kind = "in" if declared.pointer != OUTPUT else "inout" if is_read else "out"
        return Field(declared.name, kind, operand.dtype, _alignment(operand), operand.is_interleaved)

    def _completed(self, compiled: Compiled, task: Task) -> Compiled | None:
        """Return the codelet with what the user did not give taken from scalar loops; None where they cannot be had.

        Assembly finds its fields by number, so those of the assembly come first; C++ finds them by name.
        """
        loops = LoopFamily().compile(task)
        if loops is None:
            if self.assembly is None:
                return None
            what = ", ".join(operand.dtype for operand in task.operands)
            raise InputError(f"{self.source}: codelet {self.declaration.name} needs cpp for a task on {what}")
        own, theirs = compiled.codelet, loops.codelet
        offset = -(-compiled.scratch_bytes // SCRATCH_ALIGN) * SCRATCH_ALIGN
        moved = tuple(Scratch(w.offset_bytes + offset) if isinstance(w, Scratch) else w for w in loops.words)
        by_number = list(zip(own.fields, compiled.words, strict=True))
        by_name = list(zip(theirs.fields, moved, strict=True))
        if self.assembly is None:
            by_number, by_name = by_name, by_number
        rows, aliases = self._joined(by_number, by_name)
        fields, words = tuple(each for each, _ in rows), tuple(word for _, word in rows)
        cpp_reference = aliases + (
            _reference_of(theirs, own.kind) if self.assembly is not None else own.cpp_reference
        )
        given = own if self.assembly is not None else theirs
        code = given.assembly.replace(given.name, _NAME)
        name = named(self.name, fields, code, cpp_reference)
        codelet = replace(
            own, name=name, fields=fields, assembly=code.replace(_NAME, name), cpp_reference=cpp_reference
        )
        return Compiled(codelet, words, offset + loops.scratch_bytes)

    def _joined(
        self, by_number: list[tuple[Field, Word]], by_name: list[tuple[Field, Word]]
    ) -> tuple[list[tuple[Field, Word]], str]:
        """Return the fields of both with their words, pointers to one operand once, and C++ names for the others."""
        rows = list(by_number)
        aliases: list[str] = []
        for each, word in by_name:
            same = next(
                (
                    i
                    for i, (known, at) in enumerate(rows)
                    if at == word and known.dtype == each.dtype and each.dtype
                ),
                None,
            )
            if same is not None:
                known, _ = rows[same]
                align = max(known.align_bytes, each.align_bytes)
                interleaved = known.is_interleaved or each.is_interleaved
                rows[same] = (replace(known, align_bytes=align, is_interleaved=interleaved), word)
                aliases += [f"auto *const {each.name} = {known.name};\n"] if each.name != known.name else []
                continue
            if any(each.name == known.name for known, _ in rows):
                raise InputError(
                    f"{self.source}: codelet {self.declaration.name}: field '{each.name}' needs another name where "
                    f"only one of assembly and cpp is given"
                )
            rows.append((each, word))
        return rows, "".join(aliases)


def _reference_of(loops: Codelet, kind: CodeletKind) -> str:
    """Return the C++ body of scalar loops, which six workers share, for a vertex of a kind."""
    if loops.kind == kind:
        return loops.cpp_reference
    body = textwrap.indent(loops.cpp_reference.strip(), "  ")
    return (
        f"const auto share_of_worker = [&](unsigned worker) -> bool {{\n{body}\n}};\n"
        f"for (unsigned each = 0; each < {N_WORKERS}; ++each) share_of_worker(each);\n"
        "return true;\n"
    )


def _alignment(declared: OperandDeclaration) -> int:
    return declared.align_bytes or min(size_bytes(declared.dtype), WORD_BYTES)


def _placed(names: tuple[str, ...], axes: AxisSizes) -> Iterator[dict[str, int | None]]:
    """Yield every way to give a task's axes names; the task's own order comes first."""
    if len(axes) > len(names):
        return
    missing: tuple[int | None, ...] = (None,) * (len(names) - len(axes))
    seen: set[tuple[int | None, ...]] = set()
    for order in permutations((*missing, *axes)):
        if order not in seen:
            seen.add(order)
            yield dict(zip(names, order, strict=True))
