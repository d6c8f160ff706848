"""One operator as a C++ function: its compute sets, its exchanges, and the sequence it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from t10.core.codelet import POINTERS, Codelet
from t10.core.device import (
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    OperatorProgram,
    Pattern,
    PerTile,
    Reference,
    Repeat,
    Step,
    Variable,
    VertexGroup,
)
from t10.core.dtypes import size_bytes
from t10.emit.poplar.names import Names, comment, quoted, wrapped
from t10.emit.poplar.tables import Tables, table
from t10.emit.poplar.types import SCRATCH, constant_bits, poplar_type
from t10.errors import T10Error

END_OF_ROW = -1
"""As in t10_runtime.hpp."""


@dataclass(frozen=True)
class Context:
    """The program by name, and what all functions share."""

    variables: Mapping[str, Variable]
    codelets: Mapping[str, Codelet]
    compute_sets: Mapping[str, ComputeSet]
    copies: Mapping[str, Copy]
    patterns: Mapping[str, Pattern]
    members: Names
    tables: Tables
    touched: set[str] = field(default_factory=set[str])

    @staticmethod
    def of(program: DeviceProgram, tables: Tables, members: Names) -> Context:
        """Return the context of a program; what the host fills holds values from the beginning."""
        filled = {p.variable for tensor in (*program.weights, *program.inputs) for p in tensor.pieces}
        return Context(
            {v.name: v for v in program.variables},
            {c.name: c for c in program.codelets},
            {s.name: s for s in program.compute_sets},
            {c.name: c for c in program.copies},
            {p.key: p for p in program.patterns},
            members,
            tables,
            filled,
        )


def operator_text(context: Context, operator: OperatorProgram, function: str) -> str:
    """Return the definition of `Sequence function(Builder &b, const Memory &m)`."""
    return _Function(context, operator.operator).text(operator, function)


@dataclass
class _Function:
    context: Context
    operator: str
    names: Names = field(default_factory=Names)
    lines: list[str] = field(default_factory=list[str])
    defined: set[str] = field(default_factory=set[str])

    def text(self, operator: OperatorProgram, function: str) -> str:
        """Return the function's definition."""
        begun: list[str] = []
        for step in _flat(operator.steps):
            begun.extend(self._define(step))
        lines = [f"Sequence {function}(Builder &b, const Memory &m) {{\n", *self.lines, "  Sequence steps;\n"]
        # What is first written here holds nothing before: Poplar may use its memory until now.
        lines.extend(f"  steps.add(WriteUndef({self._member(name)}));\n" for name in dict.fromkeys(begun))
        lines.extend(f"  steps.add({self._step(step)});\n" for step in operator.steps)
        lines.append("  return steps;\n}\n")
        return comment(f"Operator {operator.operator}") + "".join(lines)

    def _local(self, name: str) -> str:
        """Return the C++ name of a compute set or copy: inside its operator's function the operator goes unsaid."""
        return self.names.identifier(name.replace(f":{self.operator}", ""), name)

    def _member(self, variable: str) -> str:
        return f"m.{self.context.members.identifier(variable)}"

    def _step(self, step: Step) -> str:
        """Return a step as a C++ expression of type Program."""
        if isinstance(step, Execute):
            return f"Execute({self._local(step.compute_set)})"
        if isinstance(step, Exchange):
            return self._local(step.copy)
        body = ", ".join(self._step(inner) for inner in step.body)
        return f"Repeat({step.count}, Sequence({{{body}}}))"

    def _define(self, step: Execute | Exchange) -> Iterator[str]:
        """Add what a step needs, once, and yield the variables that hold nothing before it."""
        name = step.compute_set if isinstance(step, Execute) else step.copy
        if name in self.defined:
            return
        self.defined.add(name)
        if isinstance(step, Execute):
            written = self._compute_set(self.context.compute_sets[name])
        else:
            written = self._copy(self.context.copies[name])
        for variable in written:
            if variable not in self.context.touched:
                self.context.touched.add(variable)
                yield variable

    def _copy(self, copy: Copy) -> tuple[str, ...]:
        """Add an exchange and return the variable it writes."""
        pattern = self.context.patterns[copy.pattern]
        name = self._local(copy.name)
        sources = ", ".join(map(self._member, copy.sources))
        arguments = [quoted(copy.name), f"{{{sources}}}", self._member(copy.target)]
        self.lines.append(comment(f"{copy.kind}: {copy.comment}" if copy.comment else copy.kind, "  "))
        arguments.append(table(self.context.tables.shared(pattern.runs)) if len(pattern.runs) else "{}")
        if len(pattern.fills):
            arguments.append(self._fills(pattern, copy.dtype))
        self.lines.append(wrapped(f"  const Program {name} = b.exchange(", arguments, ");", " " * 6))
        return (copy.target,)

    def _fills(self, pattern: Pattern, dtype: str) -> str:
        parts = poplar_type(dtype).parts
        values: list[str] = []
        for text in pattern.constants:
            bits = constant_bits(text, dtype)
            values.append(f"{{{', '.join(f'{bits >> 32 * i & 0xFFFFFFFF:#x}' for i in range(parts))}}}")
        rows, choice = (
            table(self.context.tables.shared(each)) for each in (pattern.fills, pattern.fill_values)
        )
        return f"{{{rows}, {choice}, {{{', '.join(values)}}}}}"

    def _compute_set(self, compute_set: ComputeSet) -> tuple[str, ...]:
        """Add a compute set with its vertices and return the variables they write."""
        name = self._local(compute_set.name)
        summaries = dict.fromkeys(
            self.context.codelets[group.codelet].summary for group in compute_set.groups
        )
        what = f"{compute_set.kind.replace('_', '-')}: {compute_set.comment or '; '.join(summaries)}"
        self.lines.append(comment(what, "  "))
        self.lines.append(f"  const ComputeSet {name} = b.compute_set({quoted(compute_set.name)});\n")
        written: list[str] = []
        for group in compute_set.groups:
            codelet = self.context.codelets[group.codelet]
            fields = [self._field(codelet, i, group) for i in range(len(codelet.fields))]
            tiles = self.context.tables.tiles(group.tiles)
            self.lines.append(f"  b.vertices({name}, {quoted(codelet.name)}, {tiles}, {group.cycles},\n")
            self.lines.append(wrapped("             {", fields, "});", " " * 14))
            written.extend(_written(codelet, group))
        return tuple(written)

    def _field(self, codelet: Codelet, number: int, group: VertexGroup) -> str:
        """Return the C++ expression of one field of a group's vertices."""
        if len(group.words) != len(codelet.fields):
            raise T10Error(
                f"{len(group.words)} words for a vertex of {codelet.name}"
                f" (expected one per field: {len(codelet.fields)})"
            )
        declared, value = codelet.fields[number], group.words[number]
        if not isinstance(value, Reference):
            if declared.kind in POINTERS:
                raise T10Error(f"field {declared.name} of {codelet.name} is a pointer but is given a number")
            number_text = self.context.tables.per_tile(value, declared.kind == "f32")
            return f"{declared.kind}({quoted(declared.name)}, {number_text})"
        offset = self.context.tables.per_tile(value.offset_bytes)
        tail = "" if offset == "0" else f", {offset}"
        variable = self.context.variables[value.variable]
        end = _scratch_end(codelet, number, group) if declared.kind == "scratch" else None
        if end is not None:
            tail = f", {offset}, {self.context.tables.per_tile(end)}"
        wanted = SCRATCH if declared.kind == "scratch" else poplar_type(declared.dtype)
        found = poplar_type(variable.dtype)
        member = self._member(value.variable)
        if wanted.poplar == found.poplar:
            return f"edge({quoted(declared.name)}, {member}{tail})"
        if wanted.size_bytes // wanted.parts != found.size_bytes // found.parts:
            raise T10Error(
                f"field {declared.name} of {codelet.name} points to {declared.dtype} but variable {variable.name}"
                f" holds {variable.dtype} (expected elements of {size_bytes(variable.dtype)} bytes)"
            )
        return f"edge_as({quoted(declared.name)}, {wanted.poplar}, {member}{tail})"


def _scratch_end(codelet: Codelet, number: int, group: VertexGroup) -> PerTile | None:
    """Return where a field's scratch memory ends: where that of the next field begins, at the row's end for None.

    Edges that a vertex writes may not overlap.
    """
    n_tiles = len(group.tiles)
    begins = [
        _each(word.offset_bytes, n_tiles)
        for field, word in zip(codelet.fields, group.words, strict=True)
        if field.kind == "scratch" and isinstance(word, Reference)
    ]
    own = group.words[number]
    assert isinstance(own, Reference)
    ends = tuple(
        min((begin for begin in row if begin > here), default=END_OF_ROW)
        for here, row in zip(_each(own.offset_bytes, n_tiles), zip(*begins, strict=True), strict=True)
    )
    if len(set(ends)) > 1:
        return ends
    return None if ends[0] == END_OF_ROW else ends[0]


def _each(values: PerTile, n_tiles: int) -> tuple[int, ...]:
    return (values,) * n_tiles if isinstance(values, int) else values


def _written(codelet: Codelet, group: VertexGroup) -> Iterator[str]:
    """Yield the variables that vertices of a group write; scratch memory is written as a whole anyway."""
    for declared, value in zip(codelet.fields, group.words, strict=True):
        if isinstance(value, Reference) and declared.kind in ("out", "inout"):
            yield value.variable


def _flat(steps: tuple[Step, ...]) -> Iterator[Execute | Exchange]:
    for step in steps:
        if isinstance(step, Repeat):
            yield from _flat(step.body)
        else:
            yield step
