"""The cases of the grid: an operator, element types for the type variables of its schema, and a structure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from t10.conformance.grid.structure import Input, Structure, formals_of
from t10.conformance.grid.structures import structures_by_operator
from t10.conformance.grid.values import POSITIVE, ValueClass, draw, positive

GRID = "grid"
IR_VERSION = 10

NUMERIC = (
    "float16", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Types that are tried with every structure; all others, which are refused as a whole, with one."""

_FED = frozenset(
    {"indices", "batch_indices", "sequence_lens", "position_ids", "labels", "target", "write_indices"}
)
"""Structural inputs that a model is fed with all the same; all others are constants of the model."""
_BY_ATTRIBUTE = {"Cast": "to", "BitCast": "to"}
"""Attributes that give the element type of the result."""
_PAIRED = frozenset({"Cast", "CastLike", "BitCast"})
"""Operators of which every pair of types is tried."""

_FLOATS = ("float16", "float")
_EVERY = 3
"""Every structure is tried with these floats, and with one in three of all other types; the first with all types."""

_MOST_PACKED = 8
HOST_EVERY = 20
"""One pack in so many runs on `poplar-host` as well."""

_onnx: Any = onnx


@dataclass(frozen=True, slots=True)
class GridCase:
    """One model: `types` gives an element type, as ONNX writes it, by type variable; `result` that of a cast."""

    name: str
    structure: Structure = field(repr=False)
    types: Mapping[str, str]
    result: str = ""
    version: int = 0

    @property
    def kind(self) -> str:
        """Return `grid`."""
        return GRID

    @property
    def operator(self) -> str:
        """Return the operator and the version of its definition, like `Add-14`."""
        return f"{self.structure.operator}-{self.version}"

    @property
    def type_label(self) -> str:
        """Return the types as they stand in the name."""
        return self.name.split("/")[2]

    @property
    def seed(self) -> int:
        """Return a number of the name, the same on every machine."""
        return crc32(self.name.encode())


@dataclass(frozen=True, slots=True)
class GridPack:
    """Cases of one operator and the same types, which make one model."""

    cases: tuple[GridCase, ...]
    is_on_host: bool = False
    """Whether it is built with g++ too, which takes seconds."""

    @property
    def kind(self) -> str:
        """Return the kind of its cases."""
        return GRID

    @property
    def operator(self) -> str:
        """Return the operator of its cases."""
        return self.cases[0].operator

    @property
    def name(self) -> str:
        """Return the name of its cases without their shapes; that of the first tells packs apart."""
        return self.cases[0].name

    def on_host(self) -> GridPack:
        """Return the same, for every engine."""
        return GridPack(self.cases, is_on_host=True)


def packs(cases: Iterable[GridCase]) -> tuple[GridPack, ...]:
    """Return cases by operator and types, at most `_MOST_PACKED` in each, ordered by a hash of their names."""
    groups: dict[tuple[str, bool], list[GridCase]] = {}
    for case in cases:
        groups.setdefault((case.name.rpartition("/")[0], case.structure.is_variation), []).append(case)
    found = [
        GridPack(tuple(group[i : i + _MOST_PACKED]), is_on_host=group[i].seed // 8 % HOST_EVERY == 0)
        for group in groups.values()
        for i in range(0, len(group), _MOST_PACKED)
    ]
    return tuple(sorted(found, key=lambda pack: pack.cases[0].seed))


@cache
def newest_schemas() -> Mapping[str, Any]:
    """Return the newest definition of every operator of ONNX's own domain that is not deprecated."""
    newest: dict[str, Any] = {}
    for schema in _onnx.defs.get_all_schemas_with_history():
        if schema.domain or schema.deprecated:
            continue
        if schema.name not in newest or schema.since_version > newest[schema.name].since_version:
            newest[schema.name] = schema
    return dict(sorted(newest.items()))


@cache
def load_grid() -> tuple[GridCase, ...]:
    """Return all cases, ordered by operator, types and structure."""
    schemas = newest_schemas()
    found = structures_by_operator(schemas)
    return tuple(
        case for operator, schema in schemas.items() for case in _of_operator(schema, found[operator])
    )


def operators_without_cases() -> tuple[str, ...]:
    """Return the operators of the schemas that no structure is known of."""
    covered = {case.structure.operator for case in load_grid()}
    return tuple(name for name in newest_schemas() if name not in covered)


def _of_operator(schema: Any, structures: list[Structure]) -> Iterator[GridCase]:
    tried_once: set[str] = set()
    for structure in structures:
        assignments = _assignments(schema, structure)
        for types, result in _few(assignments) if structure.is_variation else assignments:
            label = _label([*types.values(), *([result] if result else [])])
            others = {*types.values(), *([result] if result else [])} - set(NUMERIC)
            if others:
                if others <= tried_once:
                    continue
                tried_once |= others
            name = f"{GRID}/{schema.name}/{label}/{structure.label}"
            case = GridCase(name, structure, types, result, schema.since_version)
            is_first = structure is structures[0] or structure.is_variation or not types
            if is_first or label in _FLOATS or case.seed % _EVERY == 0:
                yield case


def _few(assignments: Iterable[tuple[dict[str, str], str]]) -> list[tuple[dict[str, str], str]]:
    """Return the first types with `float` and the first with `int32`; of others the very first."""
    every = list(assignments)
    found = [next((each for each in every if kind in each[0].values()), None) for kind in ("float", "int32")]
    return [each for each in found if each is not None] or every[:1]


def _label(types: list[str]) -> str:
    return "-".join(types if len(set(types)) > 1 or len(types) == 1 else types[:1]) or "fixed"


def _assignments(schema: Any, structure: Structure) -> Iterator[tuple[dict[str, str], str]]:
    """Yield types by variable: all alike where they can be, then each on its own beside the default of the others."""
    allowed: dict[str, list[str]] = {}
    formals = formals_of(schema, len(structure.inputs))
    for given, formal in zip(structure.inputs, formals, strict=True):
        if given is not None and given.value is None:
            names = [_plain(text) for text in sorted(formal.types)]
            allowed[formal.type_str] = sorted((n for n in names if n), key=_order)
    if schema.name in _BY_ATTRIBUTE:
        results = [_plain(text) for text in sorted(schema.outputs[0].types)]
        for source in allowed[schema.inputs[0].type_str]:
            for result in sorted((r for r in results if r), key=_order):
                yield {schema.inputs[0].type_str: source}, result
        return
    default = {v: "float" if "float" in names else names[0] for v, names in allowed.items() if names}
    every = sorted({name for names in allowed.values() for name in names}, key=_order)
    together = [{v: t if t in allowed[v] else default[v] for v in default} for t in every]
    alone = [{**default, v: t} for v in default for t in allowed[v] if len(default) > 1]
    if schema.name in _PAIRED and len(default) == 2:
        first, second = default
        alone = [{first: a, second: b} for a in allowed[first] for b in allowed[second]]
    seen: list[dict[str, str]] = []
    for types in (*together, *alone) or ({},):
        if types not in seen:
            seen.append(types)
            yield types, ""


def _plain(text: str) -> str:
    """Return `float16` of `tensor(float16)`; nothing of sequences and optionals."""
    return text[len("tensor(") : -1] if text.startswith("tensor(") else ""


def _order(name: str) -> int:
    return NUMERIC.index(name) if name in NUMERIC else len(NUMERIC)


def proto_type(name: str) -> int:
    """Return ONNX's number of an element type."""
    return int(TensorProto.DataType.Value("FLOAT" if name == "float" else name.upper()))


def numpy_type(name: str) -> np.dtype[Any]:
    """Return numpy's type, or that of ml_dtypes, of an element type."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(proto_type(name)))


def inputs_of(case: GridCase, kind: ValueClass) -> dict[str, NDArray[Any]]:
    """Return what a model is fed, of a class of values; without what is a constant of the model."""
    found: dict[str, NDArray[Any]] = {}
    for number, given in enumerate(case.structure.inputs):
        if given is None or is_constant(given):
            continue
        if given.value is not None:
            found[f"x{number}"] = _kept(case, given)
            continue
        values = draw(numpy_type(type_of(case, given)), given.shape, kind, (case.seed,), number)
        found[f"x{number}"] = positive(values) if given.formal in POSITIVE else values
    return found


def is_constant(given: Input) -> bool:
    """Return whether an input is a constant of the model."""
    return given.value is not None and given.formal not in _FED


def type_of(case: GridCase, given: Input) -> str:
    """Return the element type of an input."""
    name = case.types.get(given.type_name)
    if name is not None:
        return name
    if given.value is not None:
        return _of_array(given.value)
    return _plain(given.type_name)


def _of_array(array: NDArray[Any]) -> str:
    name = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(array.dtype)).lower()
    return str(name)


def _kept(case: GridCase, given: Input) -> NDArray[Any]:
    assert given.value is not None
    kind = type_of(case, given)
    return given.value if kind == "string" else np.asarray(given.value).astype(numpy_type(kind))


def build(case: GridCase, *, promoted: bool = False) -> Any:
    """Return the model, its outputs without types; where it is promoted, all floating-point types are double."""
    schema = newest_schemas()[case.structure.operator]
    names: list[str] = []
    infos: list[Any] = []
    constants: list[Any] = []
    for number, given in enumerate(case.structure.inputs):
        names.append("" if given is None else f"x{number}")
        if given is None:
            continue
        kind = type_of(case, given)
        is_widened = promoted and given.type_name in case.types and kind in ("float16", "float", "bfloat16")
        if is_constant(given):
            array = _kept(case, given)
            constants.append(
                numpy_helper.from_array(array.astype(np.float64) if is_widened else array, names[-1])
            )
        else:
            proto = TensorProto.DOUBLE if is_widened else proto_type(kind)
            infos.append(helper.make_tensor_value_info(names[-1], proto, given.shape))
    attributes = dict(case.structure.attributes)
    if case.result:
        attributes[_BY_ATTRIBUTE[case.structure.operator]] = proto_type(case.result)
    outputs = [f"y{i}" for i in range(case.structure.n_outputs)]
    node = helper.make_node(case.structure.operator, names, outputs, name="node", **attributes)
    graph = helper.make_graph(
        [node], "grid", infos, [helper.make_empty_tensor_value_info(name) for name in outputs], constants
    )
    opset = helper.make_opsetid("", max(_onnx.defs.onnx_opset_version(), schema.since_version))
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def with_outputs(model: Any, outputs: Mapping[str, NDArray[Any]] | None) -> Any:
    """Return a model whose outputs have the types of arrays, or without arrays those that ONNX infers.

    Raises `ValueError` where it infers none.
    """
    found = _onnx.ModelProto()
    if outputs is None:
        found.CopyFrom(_onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True))
        for value in found.graph.output:
            kind = value.type.tensor_type
            if (
                not kind.elem_type
                or not kind.HasField("shape")
                or any(not d.HasField("dim_value") for d in kind.shape.dim)
            ):
                raise ValueError(f"no static type of {value.name}")
        return found
    found.CopyFrom(model)
    for value in found.graph.output:
        array = outputs[value.name]
        value.CopyFrom(
            helper.make_tensor_value_info(
                value.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
        )
    return found


def merged(models: Sequence[Any]) -> Any:
    """Return one model of several: every name of the n-th begins with `cn_`."""
    nodes: list[Any] = []
    infos: list[Any] = []
    outputs: list[Any] = []
    constants: list[Any] = []
    for number, model in enumerate(models):
        renamed = _onnx.compose.add_prefix(model, prefix(number))
        nodes += renamed.graph.node
        infos += renamed.graph.input
        outputs += renamed.graph.output
        constants += renamed.graph.initializer
    graph = helper.make_graph(nodes, "grid", infos, outputs, constants)
    return helper.make_model(graph, opset_imports=models[0].opset_import, ir_version=IR_VERSION)


def prefix(number: int) -> str:
    """Return what the names of the n-th model of a merged one begin with."""
    return f"c{number}_"
