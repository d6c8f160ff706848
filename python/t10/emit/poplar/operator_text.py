"""Operators as C++ functions: compute sets, exchanges, and the sequence that each returns.

Equal operators (those of equal layers) share one function. It takes what differs as an `Operator` (t10_runtime.hpp):
a name, variables, and tables.
"""

from __future__ import annotations

import re
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
_TABLE = re.compile(r"b\.table\((\d+)\)")


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
    begun: Mapping[str, tuple[str, ...]]
    """By operator: the variables that it is the first to write, which hold nothing before."""

    @staticmethod
    def of(program: DeviceProgram, tables: Tables, members: Names) -> Context:
        """Return the context of a program; what the host fills holds values from the beginning."""
        codelets = {c.name: c for c in program.codelets}
        compute_sets = {s.name: s for s in program.compute_sets}
        copies = {c.name: c for c in program.copies}
        touched = {p.variable for tensor in (*program.weights, *program.inputs) for p in tensor.pieces}
        begun: dict[str, tuple[str, ...]] = {}
        for operator in program.operators:
            written = [
                name
                for step in _flat(operator.steps)
                for name in (
                    _written(compute_sets[step.compute_set], codelets)
                    if isinstance(step, Execute)
                    else (copies[step.copy].target,)
                )
            ]
            begun[operator.operator] = tuple(dict.fromkeys(name for name in written if name not in touched))
            touched.update(written)
        return Context(
            {v.name: v for v in program.variables},
            codelets,
            compute_sets,
            copies,
            {p.key: p for p in program.patterns},
            members,
            tables,
            begun,
        )


@dataclass(frozen=True, slots=True)
class SharedFunction:
    """An operator's function, written for all that are equal to it, and what it is called with for this one.

    Operators with one `key` (the text without comments) have one function.
    """

    body: str
    key: str
    variables: tuple[str, ...]
    tables: tuple[int, ...]


def operator_text(context: Context, operator: OperatorProgram, function: str) -> str:
    """Return the definition of `Sequence function(Builder &b, const Memory &m)`."""
    body = _Function(context, operator.operator).body(operator)
    head = comment(f"Operator {operator.operator}")
    return f"{head}Sequence {function}(Builder &b, const Memory &m) {{\n{body}}}\n"


def shared_function(context: Context, operator: OperatorProgram) -> SharedFunction:
    """Return the function of an operator in the form that equal ones share."""
    writer = _Function(context, operator.operator, is_shared=True)
    body = writer.body(operator)
    return SharedFunction(body, "".join(writer.key), tuple(writer.variables), tuple(writer.tables))


def shared_text(shared: SharedFunction, operators: tuple[str, ...], function: str) -> str:
    """Return the definition of `Sequence function(Builder &b, const Operator &o)`."""
    head = comment(f"{len(operators)} equal operators; comments are of the first: {operators[0]}")
    return (
        f"{head}Sequence {function}(Builder &b, const Operator &o) {{\n"
        f"  const std::vector<Tensor> &v = o.tensors;\n{shared.body}}}\n"
    )


def shared_call(context: Context, shared: SharedFunction, operator: str, function: str) -> str:
    """Return the call of a shared function for one of its operators."""
    tensors = ", ".join(f"m.{context.members.identifier(name)}" for name in shared.variables)
    items = [quoted(operator), *f"{{{tensors}}}".split(" "), f"{{{', '.join(map(str, shared.tables))}}}"]
    items = [item.removesuffix(",") for item in items]
    return wrapped(f"  model.add({function}(b, {{", items, "}));", " " * 6)


@dataclass
class _Function:
    context: Context
    operator: str
    is_shared: bool = False
    names: Names = field(default_factory=Names)
    lines: list[str] = field(default_factory=list[str])
    key: list[str] = field(default_factory=list[str])
    defined: set[str] = field(default_factory=set[str])
    variables: dict[str, int] = field(default_factory=dict[str, int])
    tables: dict[int, int] = field(default_factory=dict[int, int])

    def body(self, operator: OperatorProgram) -> str:
        """Return what stands in the function."""
        for step in _flat(operator.steps):
            self._define(step)
        self._add("  Sequence steps;\n")
        # What is first written here holds nothing before: Poplar may use its memory until now.
        for name in self.context.begun[operator.operator]:
            self._add(f"  steps.add(WriteUndef({self._member(name)}));\n")
        for step in operator.steps:
            self._add(f"  steps.add({self._step(step)});\n")
        self._add("  return steps;\n")
        return "".join(self.lines)

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.key.append(line)

    def _note(self, text: str) -> None:
        self.lines.append(comment(text, "  "))

    def _local(self, name: str) -> str:
        """Return the C++ name of a compute set or copy: inside its operator's function the operator goes unsaid."""
        return self.names.identifier(name.replace(f":{self.operator}", ""), name)

    def _member(self, variable: str) -> str:
        if self.is_shared:
            return f"v[{self.variables.setdefault(variable, len(self.variables))}]"
        return f"m.{self.context.members.identifier(variable)}"

    def _label(self, name: str) -> str:
        """Return the name of a compute set or copy as a C++ expression."""
        before, operator, after = name.partition(f":{self.operator}")
        if not self.is_shared or not operator:
            return quoted(name)
        return f"o.label({quoted(before + ':')}{', ' + quoted(after) if after else ''})"

    def _tables(self, text: str) -> str:
        """Return an expression of numbers with the tables that it names as the function is given them."""

        def given(match: re.Match[str]) -> str:
            return f"b.table(o.tables[{self.tables.setdefault(int(match[1]), len(self.tables))}])"

        return _TABLE.sub(given, text) if self.is_shared else text

    def _step(self, step: Step) -> str:
        """Return a step as a C++ expression of type Program."""
        if isinstance(step, Execute):
            return f"Execute({self._local(step.compute_set)})"
        if isinstance(step, Exchange):
            return self._local(step.copy)
        body = ", ".join(self._step(inner) for inner in step.body)
        return f"Repeat({step.count}, Sequence({{{body}}}))"

    def _define(self, step: Execute | Exchange) -> None:
        """Add what a step needs, once."""
        name = step.compute_set if isinstance(step, Execute) else step.copy
        if name in self.defined:
            return
        self.defined.add(name)
        if isinstance(step, Execute):
            self._compute_set(self.context.compute_sets[name])
        else:
            self._copy(self.context.copies[name])

    def _copy(self, copy: Copy) -> None:
        """Add an exchange."""
        pattern = self.context.patterns[copy.pattern]
        name = self._local(copy.name)
        sources = ", ".join(map(self._member, copy.sources))
        arguments = [self._label(copy.name), f"{{{sources}}}", self._member(copy.target)]
        self._note(f"{copy.kind}: {copy.comment}" if copy.comment else copy.kind)
        runs = table(self.context.tables.shared(pattern.runs)) if len(pattern.runs) else "{}"
        arguments.append(self._tables(runs))
        if len(pattern.fills):
            arguments.append(self._tables(self._fills(pattern, copy.dtype)))
        self._add(wrapped(f"  const Program {name} = b.exchange(", arguments, ");", " " * 6))

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

    def _compute_set(self, compute_set: ComputeSet) -> None:
        """Add a compute set with its vertices."""
        name = self._local(compute_set.name)
        summaries = dict.fromkeys(
            self.context.codelets[group.codelet].summary for group in compute_set.groups
        )
        self._note(f"{compute_set.kind.replace('_', '-')}: {compute_set.comment or '; '.join(summaries)}")
        self._add(f"  const ComputeSet {name} = b.compute_set({self._label(compute_set.name)});\n")
        for group in compute_set.groups:
            codelet = self.context.codelets[group.codelet]
            fields = [self._field(codelet, i, group) for i in range(len(codelet.fields))]
            tiles = self._tables(self.context.tables.tiles(group.tiles))
            self._add(f"  b.vertices({name}, {quoted(codelet.name)}, {tiles}, {group.cycles},\n")
            self._add(wrapped("             {", fields, "});", " " * 14))

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
            number_text = self._tables(self.context.tables.per_tile(value, declared.kind == "f32"))
            return f"{declared.kind}({quoted(declared.name)}, {number_text})"
        offset = self._tables(self.context.tables.per_tile(value.offset_bytes))
        tail = "" if offset == "0" else f", {offset}"
        variable = self.context.variables[value.variable]
        end = _scratch_end(codelet, number, group) if declared.kind == "scratch" else None
        if end is not None:
            tail = f", {offset}, {self._tables(self.context.tables.per_tile(end))}"
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


def _written(compute_set: ComputeSet, codelets: Mapping[str, Codelet]) -> Iterator[str]:
    """Yield the variables that vertices write; scratch memory is written as a whole anyway."""
    for group in compute_set.groups:
        for declared, value in zip(codelets[group.codelet].fields, group.words, strict=False):
            if isinstance(value, Reference) and declared.kind in ("out", "inout"):
                yield value.variable


def _flat(steps: tuple[Step, ...]) -> Iterator[Execute | Exchange]:
    for step in steps:
        if isinstance(step, Repeat):
            yield from _flat(step.body)
        else:
            yield step
