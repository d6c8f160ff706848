"""The file that declares users' codelets: which tasks, which code, which words.

```yaml
format: t10-codelets
version: 1
codelets:
  - name: VectorAddFloat
    assembly: vector_add_float.S
    axes: [n]
    inputs: {x: {dtype: f32, strides: {n: 1}, align_bytes: 8}, y: {dtype: f32, strides: {n: 1}, align_bytes: 8}}
    output: {dtype: f32, strides: {n: 1}, align_bytes: 8}
    body: arith.addf(x, y)
    apart: [[x, y], [x, out], [y, out]]
    fields: [{name: a, pointer: x}, {name: b, pointer: y}, {name: c, pointer: out}, {name: n, value: n}]
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from t10.core.codelet import why_no_field
from t10.core.dtypes import NUMPY_BY_DTYPE
from t10.core.expression import Combine
from t10.core.trust.schema import Integer, validated
from t10.core.trust.tree import read_yaml
from t10.errors import InputError

FORMAT: Literal["t10-codelets"] = "t10-codelets"
OUTPUT = "out"
"""The name of the output in strides, fields and conditions."""
HINT = "docs/codelets.md lists every field"

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Formula = Annotated[str, Field(max_length=500)]
Body = Annotated[str, Field(max_length=4000)]
Expression = Annotated[
    Integer | Formula, Field(description="an integer expression of extents, strides and constants")
]


class OperandDeclaration(BaseModel):
    """How the code walks an operand: its type, and element strides by axis (0 for axes that are left out)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: str
    strides: Annotated[
        dict[Name, Expression],
        Field(description="by axis: an expression, or `any`, which `x.axis` then names"),
    ] = {}
    align_bytes: Annotated[
        Literal[1, 2, 4, 8, 16] | None,
        Field(description="what must divide the first element's address (default: its size, at most 4)"),
    ] = None
    is_interleaved: Annotated[
        bool, Field(description="it must lie in interleaved memory (16-byte loads)")
    ] = False

    @field_validator("dtype")
    @classmethod
    def _known(cls, dtype: str) -> str:
        if dtype not in NUMPY_BY_DTYPE:
            raise ValueError(f"found {dtype}, expected one of {', '.join(NUMPY_BY_DTYPE)}")
        return dtype


class FieldDeclaration(BaseModel):
    """One word of the vertex: the address of an operand or of scratch memory, or a number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    pointer: Annotated[Name | None, Field(description="an operand: its first element's address")] = None
    scratch: Annotated[Expression | None, Field(description="byte offset into the scratch memory")] = None
    value: Annotated[Expression | None, Field(description="a number")] = None
    type: Annotated[Literal["u32", "i32", "f32"], Field(description="of a number")] = "u32"

    @field_validator("name")
    @classmethod
    def _usable(cls, name: str) -> str:
        if reason := why_no_field(name):
            raise ValueError(f"found {name}: {reason}")
        return name

    @model_validator(mode="after")
    def _one(self) -> FieldDeclaration:
        given = [each for each in (self.pointer, self.scratch, self.value) if each is not None]
        if len(given) != 1:
            raise ValueError(
                f"field '{self.name}' has {len(given)} of pointer, scratch and value, expected one"
            )
        return self


class CodeletDeclaration(BaseModel):
    """One codelet; see docs/codelets.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    summary: str = ""
    kind: Literal["multi", "supervisor"] = "multi"
    assembly: Annotated[
        str | Annotated[tuple[str, ...], Field(min_length=1)] | None,
        Field(description="assembly file, beside the declaration; several are linked"),
    ] = None
    include_paths: Annotated[
        tuple[str, ...], Field(description="folders that are searched for the includes of assembly")
    ] = ()
    entry: Annotated[str | None, Field(description="symbol of its first instruction")] = None
    defines: Annotated[dict[Name, str], Field(description="C preprocessor macros for it")] = {}
    cpp: Annotated[str | None, Field(description="C++ file: the body of `bool compute(unsigned worker)`")] = (
        None
    )
    axes: Annotated[tuple[Name, ...], Field(description="parallel axes")]
    reduction_axes: tuple[Name, ...] = ()
    inputs: dict[Name, OperandDeclaration]
    output: OperandDeclaration
    combine: Combine = "none"
    initial: Annotated[
        bool, Field(description="reductions: the output is set, not added to what is there")
    ] = True
    body: Annotated[
        Body | Annotated[tuple[Body, ...], Field(min_length=1)],
        Field(description="what is computed for a point; several: any of them"),
    ]
    where: Annotated[tuple[Formula, ...], Field(description="conditions that must hold")] = ()
    apart: Annotated[
        tuple[tuple[Name, Name], ...],
        Field(description="operands that must lie in different memory elements"),
    ] = ()
    fields: tuple[FieldDeclaration, ...]
    scratch_bytes: Expression = 0
    cost: Annotated[str | None, Field(description="Python file that calls t10.cost.register_cost")] = None

    @model_validator(mode="after")
    def _consistent(self) -> CodeletDeclaration:
        if self.assembly is None and self.cpp is None:
            raise ValueError(f"codelet '{self.name}' has neither assembly nor cpp")
        if self.assembly is None and self.kind == "supervisor":
            raise ValueError(f"codelet '{self.name}' of the supervisor needs assembly")
        if OUTPUT in self.inputs:
            raise ValueError(f"'{OUTPUT}' is the name of the output, no input can have it")
        axes = (*self.axes, *self.reduction_axes)
        operands = (*self.inputs, OUTPUT)
        for names, what in (
            (axes, "axes"),
            ([field.name for field in self.fields], "fields"),
            ((*axes, *operands), "axes and operands"),
        ):
            twice = sorted({name for name in names if list(names).count(name) > 1})
            if twice:
                raise ValueError(f"two {what} are named '{twice[0]}'")
        for name, operand in (*self.inputs.items(), (OUTPUT, self.output)):
            allowed = self.axes if name == OUTPUT else axes
            unknown = [axis for axis in operand.strides if axis not in allowed]
            if unknown:
                raise ValueError(
                    f"strides of '{name}' name axis '{unknown[0]}', expected one of {', '.join(allowed)}"
                )
        pointed = [field.pointer for field in self.fields if field.pointer is not None]
        for name in (*pointed, *(name for pair in self.apart for name in pair)):
            if name not in operands:
                raise ValueError(f"there is no operand '{name}', expected one of {', '.join(operands)}")
        if (self.combine == "none") != (not self.reduction_axes) and self.initial:
            raise ValueError("a codelet that sets its output combines if and only if it has a reduction axis")
        return self

    @property
    def assembly_files(self) -> tuple[str, ...]:
        """Return the names of the assembly files."""
        if self.assembly is None:
            return ()
        return (self.assembly,) if isinstance(self.assembly, str) else self.assembly

    @property
    def bodies(self) -> tuple[str, ...]:
        """Return the body and its alternatives."""
        return (self.body,) if isinstance(self.body, str) else self.body


class CodeletsDocument(BaseModel):
    """A file of declarations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["t10-codelets"]
    version: Literal[1]
    codelets: tuple[CodeletDeclaration, ...]


def read_declarations(path: Path) -> tuple[CodeletDeclaration, ...]:
    """Return what a YAML or JSON file declares; raises `InputError` with the path of what is wrong in it."""
    fields = read_yaml(path, what="codelets", hint=HINT)
    document = validated(CodeletsDocument, fields, str(path), hint=HINT)
    names = [codelet.name for codelet in document.codelets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path} declares codelet '{name}' twice")
    return document.codelets


def codelets_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file of declarations."""
    schema = CodeletsDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "codelets of T10"}
