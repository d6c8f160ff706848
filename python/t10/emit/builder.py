"""What a device program is built from: variables, jobs, copies and patterns, each kept once by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from t10.core.device import (
    Copy,
    CopyKind,
    Exchange,
    Execute,
    Pattern,
    Variable,
    VariableRole,
    VertexKind,
)
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.task import TaskOperand
from t10.core.vertex_nest import VertexNest, Work
from t10.emit.device_interface import DeviceInterface
from t10.emit.kept import Kept
from t10.emit.patterns import received_bytes

T = TypeVar("T")

SHIFT_BUFFER = "shift"


@dataclass(frozen=True, slots=True)
class Job:
    """A compute set before it is compiled: `number` is that of its nest and work (`emit.compiled_sets`).

    `names` are the variables that stand for the nest's operands; `cycles` are modelled.
    """

    operator: str
    kind: VertexKind
    number: int
    names: tuple[str, ...]
    cycles: int
    comment: str


@dataclass(slots=True)
class Builder(DeviceInterface):
    """The `DeviceInterface` of an IPU: collects a device program that does not say yet where anything lies.

    `sizes` are bytes of buffers by name; addresses of variables are 0, and compute sets are jobs: `emit.link` compiles
    them for where their operands are put.
    """

    n_tiles: int
    sizes: dict[str, int]
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    patterns: dict[str, Pattern] = field(default_factory=dict[str, Pattern])
    copies: dict[str, Copy] = field(default_factory=dict[str, Copy])
    kept: Kept = field(default_factory=Kept)
    _kind_by_name: dict[str, int] = field(default_factory=dict[str, int])
    _job_by_content: dict[tuple[str, str, int, tuple[str, ...]], str] = field(
        default_factory=dict[tuple[str, str, int, tuple[str, ...]], str]
    )
    _copy_by_content: dict[tuple[str, str, str, tuple[str, ...], str], str] = field(
        default_factory=dict[tuple[str, str, str, tuple[str, ...], str], str]
    )

    def variable(
        self,
        name: str,
        role: VariableRole,
        dtype: str,
        shape: tuple[int, ...],
        n_tiles: int,
        comment: str = "",
    ) -> str:
        """Add a variable unless it is there, and return its name."""
        if name not in self.variables:
            self.variables[name] = Variable(name, role, dtype, shape, n_tiles, 0, comment)
        return name

    def kind_of(self, spec: OperatorSpec) -> int:
        """Return a number that equal operators share: names do not count."""
        number = self._kind_by_name.get(spec.name)
        if number is None:
            number = self._kind_by_name[spec.name] = self.kept.kind_of(spec)
        return number

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return what `make` returned for an equal key before, else make it now."""
        return self.kept.once(key, make)

    def shift_buffer(self, dtype: str) -> str:
        """Return the variable that shows the shift buffer as elements of `dtype`; all share its bytes."""
        name = f"{SHIFT_BUFFER}:{dtype}"
        shape = (self.sizes[SHIFT_BUFFER] // size_bytes(dtype),)
        return self.variable(
            name, "buffer", dtype, shape, self.n_tiles, "receive buffer of shifts and reductions"
        )

    def execute(
        self, operator: str, kind: VertexKind, nest: VertexNest, work: Work, cycles: int, comment: str = ""
    ) -> Execute:
        """Add a job unless the operator has an equal one, and return its execution."""
        names = tuple(variable for variable, _ in nest.operands)
        content = (operator, kind, self.kept.compiled.number_of(nest, work), names)
        name = self._job_by_content.get(content)
        if name is None:
            name = self._job_by_content[content] = _fresh(f"{kind}:{operator}", self.jobs)
            self.jobs[name] = Job(operator, kind, content[2], names, cycles, comment)
        return Execute(name)

    def exchange(
        self,
        operator: str,
        kind: CopyKind,
        what: str,
        sources: tuple[str, ...],
        target: str,
        pattern: Pattern,
        cycles: int,
        comment: str = "",
    ) -> Exchange:
        """Add a copy unless the operator has an equal one, and return its step."""
        self.patterns.setdefault(pattern.key, pattern)
        content = (operator, kind + what, pattern.key, sources, target)
        name = self._copy_by_content.get(content)
        if name is None:
            name = _fresh(f"{kind}:{operator}{what}", self.copies)
            self._copy_by_content[content] = name
            most = self.kept.received_bytes.get(pattern.key)
            if most is None:
                most = self.kept.received_bytes[pattern.key] = received_bytes(pattern.runs, self.n_tiles)
            dtype = self.variables[target].dtype
            self.copies[name] = Copy(
                name, operator, kind, sources, target, dtype, pattern.key, most, cycles, comment
            )
        return Exchange(name)


def _fresh(name: str, taken: Mapping[str, object]) -> str:
    """Return `name`, numbered where it is taken."""
    if name not in taken:
        return name
    number = 1
    while f"{name}.{number}" in taken:
        number += 1
    return f"{name}.{number}"


def flat_operand(dtype: str) -> TaskOperand:
    """Return an operand walked slot by slot along the only axis."""
    return TaskOperand(dtype, (1,))
