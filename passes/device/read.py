"""An `ipu.graph` read back as a device program: what `t10-translate` emits."""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.core.codelet import Codelet, Field
from t10.core.device import (
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    HostPiece,
    HostTensor,
    MemoryMap,
    OperatorProgram,
    Pattern,
    PerTile,
    Reference,
    Repeat,
    Step,
    Variable,
    VertexGroup,
)
from t10.dialect.attributes import to_python
from t10.dialect.ipu_base import array_of, inner
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.errors import InputError
from t10.passes.device.write import IS_CPP, MEMORY_FIELDS


def find_graph(module: Any) -> Any:
    """Return the only `ipu.graph` of a module; raises `InputError` where there is none or several."""
    graphs = [op.operation for op in module.body.operations if op.operation.name == "ipu.graph"]
    if len(graphs) != 1:
        raise InputError(
            f"the module holds {len(graphs)} ipu.graph, expected one",
            hint="t10-opt --t10-lower-ipu makes one of a function",
        )
    return graphs[0]


def read_graph(op: Any) -> DeviceProgram:
    """Return the device program that a verified `ipu.graph` stands for.

    Raises `InputError` where it was written without the memory regions that lowering records.
    """
    return _Reader(op).program()


class _Reader:
    """Reads one graph; `names` are variables by handle."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.by_kind: dict[str, list[Any]] = {}
        for each in inner(op):
            self.by_kind.setdefault(each.name, []).append(each)
        if "memory_base" not in op.attributes or "regions" not in op.attributes:
            raise InputError(
                "the ipu.graph has no memory_base and regions, expected the result of --t10-lower-ipu"
            )
        self.base = op.attributes["memory_base"].value
        self.names: dict[Any, str] = {}
        self.copies: dict[str, Copy] = {}

    def program(self) -> DeviceProgram:
        """Return the whole program."""
        variables = tuple(self._variable(each) for each in self._of("ipu.alloc"))
        self.dtypes = {variable.name: variable.dtype for variable in variables}
        tables = {_text(t, "sym_name"): array_of(t, "elements") for t in self._of("ipu.table")}
        hosts = [(_text(h, "direction"), self._host(h, tables)) for h in self._of("ipu.host")]
        operators = tuple(
            OperatorProgram(_text(s, "op_name"), self._steps(s)) for s in inner(self._of("ipu.sequence")[0])
        )
        attributes = self.op.attributes
        return DeviceProgram(
            name=_text(self.op, "sym_name"),
            chip=_text(self.op, "chip"),
            n_tiles=attributes["tiles"].value,
            memory=self._memory(),
            variables=variables,
            codelets=tuple(_codelet(each) for each in self._of("ipu.codelet")),
            compute_sets=tuple(self._compute_set(each) for each in self._of("ipu.compute_set")),
            patterns=tuple(_pattern(each) for each in self._of("ipu.pattern")),
            copies=tuple(self.copies.values()),
            operators=operators,
            weights=tuple(tensor for kind, tensor in hosts if kind == "weight"),
            inputs=tuple(tensor for kind, tensor in hosts if kind == "input"),
            outputs=tuple(tensor for kind, tensor in hosts if kind == "output"),
        )

    def _of(self, kind: str) -> list[Any]:
        return self.by_kind.get(kind, [])

    def _memory(self) -> MemoryMap:
        regions = to_python(self.op.attributes["regions"])
        missing = [name for name in MEMORY_FIELDS if name not in regions]
        if missing:
            raise InputError(f"the ipu.graph's regions have no '{missing[0]}'")
        starts = {name: self.base + regions[name] for name in MEMORY_FIELDS}
        end = self.base + self.op.attributes["memory_bytes"].value
        return MemoryMap(base=self.base, end=end, **starts)

    def _variable(self, op: Any) -> Variable:
        name = _text(op, "sym_name")
        self.names[op.results[0]] = name
        ranges = to_python(op.attributes["mapping"])
        if len(ranges) != 1 or ranges[0][0]:
            raise InputError(
                f"allocation '{name}' is mapped to {[list(each) for each in ranges]}, expected tiles from 0 on, as "
                "lowering maps all",
                location=source_text(op) or None,
            )
        return Variable(
            name,
            _text(op, "role"),  # pyright: ignore[reportArgumentType] -- the verifier knows the roles
            str(op.attributes["element"].value),
            to_python(op.attributes["shape"]),
            ranges[-1][1] + 1,
            op.attributes["address"].value + self.base,
            _comment(op),
        )

    def _compute_set(self, op: Any) -> ComputeSet:
        return ComputeSet(
            _text(op, "sym_name"),
            _text(op, "op_name"),
            _text(op, "kind"),  # pyright: ignore[reportArgumentType] -- written by lowering
            tuple(self._group(vertex) for vertex in inner(op)),
            _number(op, "cycles"),
            _comment(op),
        )

    def _group(self, op: Any) -> VertexGroup:
        tiles = [t for first, last in to_python(op.attributes["mapping"]) for t in range(first, last + 1)]
        return VertexGroup(
            _text(op, "codelet"),
            tuple(tiles),
            tuple(self._word(word.maybe_downcast(), op) for word in op.attributes["words"]),
            op.attributes["state"].value + self.base,
            op.attributes["cycles"].value,
        )

    def _word(self, word: Any, op: Any) -> PerTile | Reference:
        if isinstance(word, ir.DictAttr):
            variable = self.names[op.operands[word["operand"].value]]
            return Reference(variable, _per_tile(word["offset"].maybe_downcast()))
        return _per_tile(word)

    def _host(self, op: Any, tables: dict[str, Any]) -> HostTensor:
        handles: list[str] = [self.names[operand] for operand in op.operands]
        pieces_read: tuple[dict[str, Any], ...] = to_python(op.attributes["pieces"])
        pieces = tuple(
            HostPiece(
                handles[int(piece["operand"])] if piece["operand"] >= 0 else "",
                tables[piece["table"]],
                piece["fill"],
            )
            for piece in pieces_read
        )
        shape = to_python(op.attributes["shape"])
        return HostTensor(_text(op, "name"), str(op.attributes["element"].value), shape, pieces)

    def _steps(self, op: Any) -> tuple[Step, ...]:
        steps: list[Step] = []
        for each in inner(op):
            if each.name == "ipu.execute":
                steps.append(Execute(_text(each, "compute_set")))
            elif each.name == "ipu.copy":
                steps.append(self._copy(each))
            elif each.name == "ipu.repeat":
                steps.append(Repeat(each.attributes["count"].value, self._steps(each)))
            else:
                steps.extend(self._steps(each))
        return tuple(steps)

    def _copy(self, op: Any) -> Exchange:
        name = _text(op, "sym_name")
        *sources, target = (self.names[operand] for operand in op.operands)
        copy = Copy(
            name,
            _text(op, "op_name"),
            _text(op, "kind"),  # pyright: ignore[reportArgumentType] -- the verifier knows the kinds
            tuple(sources),
            target,
            self.dtypes[target],
            _text(op, "pattern"),
            op.attributes["bytes"].value,
            op.attributes["cycles"].value,
            _comment(op),
        )
        if self.copies.setdefault(name, copy) != copy:
            raise InputError(f"two different copies are named '{name}'", location=source_text(op) or None)
        return Exchange(name)


def _text(op: Any, name: str) -> str:
    if name not in op.attributes:
        raise InputError(
            f"{op.name} has no '{name}', expected the result of --t10-lower-ipu",
            location=source_text(op) or None,
        )
    return str(op.attributes[name].value)


def _number(op: Any, name: str) -> int:
    if name not in op.attributes:
        raise InputError(
            f"{op.name} has no '{name}', expected the result of --t10-lower-ipu",
            location=source_text(op) or None,
        )
    return int(op.attributes[name].value)


def _comment(op: Any) -> str:
    return _text(op, "comment") if "comment" in op.attributes else ""


def _per_tile(value: Any) -> PerTile:
    return value.value if isinstance(value, ir.IntegerAttr) else tuple(int(v) for v in value)


def _codelet(op: Any) -> Codelet:
    fields = tuple(
        Field(f["name"], f["kind"], f["dtype"], f["align"], f["interleaved"])
        for f in to_python(op.attributes["fields"])
    )
    return Codelet(
        _text(op, "sym_name"),
        _text(op, "kind"),  # pyright: ignore[reportArgumentType] -- the verifier knows the kinds
        fields,
        _text(op, "assembly"),
        _text(op, "cpp_reference"),
        _text(op, "summary"),
        op.attributes["stack_bytes"].value,
        to_python(op.attributes["apart"]),
        IS_CPP in op.attributes,
    )


def _pattern(op: Any) -> Pattern:
    runs, fills, values = (
        np.array(array_of(op, name), np.int32) for name in ("runs", "fills", "fill_values")
    )
    return Pattern(_text(op, "sym_name"), runs, fills, values, to_python(op.attributes["constants"]))
