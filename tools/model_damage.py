"""Damaged models and damaged text, reproducible from a number and a seed: structure first, then perhaps bytes."""

from __future__ import annotations

import contextlib
import importlib
import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx as untyped_onnx
from google.protobuf.message import DecodeError, EncodeError

onnx: Any = untyped_onnx
EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "models"

EXTREMES = (
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    65_536,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**31),
    -5,
)
NAMES = ("", "x", "y", "a\0b", "\n", "%0", '"', "../x", "é", "n" * 5000, "t10.weight")
TYPES = (*range(30), 77, -1, 10_000)
LOCATIONS = ("/etc/passwd", "../up.bin", "model.onnx", ".", "", "a/../../b", "C:\\x", "gone.bin", "x\0y")
TESTS = EXAMPLES.parent.parent / "test"
MAX_SEED_BYTES = 60_000
MAX_NESTED_BYTES = 80_000
SEPARATOR = re.compile(rb"^// -----.*\n", re.MULTILINE)
WORD = re.compile(rb'"[^"\n]*"|[%@#!^][\w.$-]*|[A-Za-z_][\w.]*|\d+|[^\w\s]')
RUN = re.compile(rb"RUN: (?:not )?t10-opt ((?:(?!\|).)*?)%s")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Models to start from, and the operators there are."""

    models: tuple[bytes, ...]
    operators: tuple[Any, ...]
    texts: tuple[bytes, ...]
    """Models as text: of onnx-mlir, StableHLO and linalg."""
    pieces: tuple[bytes, ...]
    """IR at every stage, from the tests of the passes; the first line holds the flags of `t10-opt` it is made for."""

    @classmethod
    def load(cls, *, with_tests: bool = False) -> Corpus:
        """Return the small bundled models; `with_tests` adds those of ONNX's own tests of operators, in ten seconds."""
        models = [file.read_bytes() for file in sorted(EXAMPLES.glob("*.onnx")) if "broken" not in file.name]
        if with_tests:
            loader = importlib.import_module("onnx.backend.test.loader")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                models += [case.model.SerializeToString() for case in loader.load_model_tests(kind="node")]
        small = tuple(data for data in models if len(data) < MAX_SEED_BYTES)
        schemas = sorted(onnx.defs.get_all_schemas(), key=lambda schema: (schema.domain, schema.name))
        texts = [file.read_bytes() for file in sorted((TESTS / "passes").glob("import*.mlir"))]
        texts += [file.read_bytes() for file in sorted((TESTS / "passes").glob("fuse*.mlir"))]
        texts += SEPARATOR.split((TESTS / "passes" / "Inputs" / "stablehlo.mlir").read_bytes())
        pieces = [
            piece
            for folder in ("dialect", "opt", "passes")
            for file in sorted((TESTS / folder).glob("*.mlir"))
            for piece in _pieces(file.read_bytes())
        ]
        return cls(small, tuple(schemas), tuple(texts), tuple(pieces))


@dataclass(frozen=True, slots=True)
class Damage:
    """What a change works with: dice and what there is to choose from."""

    dice: random.Random
    corpus: Corpus

    def extreme(self) -> int:
        """Return a number that is likely to be wrong."""
        return self.dice.choice(EXTREMES)

    def name(self, model: Any) -> str:
        """Return a name of the model, or one that is likely to be wrong."""
        known = [name for node in model.graph.node for name in (*node.input, *node.output)]
        return self.dice.choice(known) if known and self.dice.random() < 0.6 else self.dice.choice(NAMES)

    def node(self, model: Any) -> Any:
        """Return some node, a new one if there is none."""
        return (
            self.dice.choice(model.graph.node) if model.graph.node else model.graph.node.add(op_type="Relu")
        )

    def value(self, model: Any) -> Any:
        """Return the type of some input, output or inner value."""
        values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
        return self.dice.choice(values) if values else model.graph.input.add(name="x")

    def tensor(self, model: Any) -> Any:
        """Return some constant."""
        tensors = list(model.graph.initializer)
        tensors += [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
        return self.dice.choice(tensors) if tensors else model.graph.initializer.add(name="w", data_type=1)


Change = Callable[[Damage, Any], None]


def damaged(number: int, seed: int, corpus: Corpus) -> bytes:
    """Return the bytes of case `number`."""
    dice = random.Random(f"{seed}.{number}")
    damage = Damage(dice, corpus)
    data = dice.choice(corpus.models)
    if dice.random() < 0.85:
        model = onnx.ModelProto.FromString(data)
        for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 5))):
            # Protocol buffers refuse some of it, as a graph deeper than they read: then the model stays as it is.
            with contextlib.suppress(DecodeError, EncodeError, ValueError, TypeError):
                dice.choice(CHANGES)(damage, model)
        data = model.SerializeToString()
    return damaged_bytes(dice, data) if dice.random() < 0.2 else data


def damaged_text(number: int, seed: int, corpus: Corpus) -> bytes:
    """Return the text of a model, words of it changed, moved or gone; perhaps bytes."""
    dice = random.Random(f"{seed}.{number}.text")
    return damaged_words(dice, dice.choice(corpus.texts))


def damaged_piece(number: int, seed: int, corpus: Corpus) -> bytes:
    """Return IR that is damaged likewise, below a line of flags that is not."""
    dice = random.Random(f"{seed}.{number}.ir")
    flags, _, text = dice.choice(corpus.pieces).partition(b"\n")
    return flags + b"\n" + damaged_words(dice, text)


def damaged_words(dice: random.Random, text: bytes) -> bytes:
    """Return text with words replaced: mostly by others of their kind, so that it still parses, else by anything."""
    by_kind: dict[bytes, list[bytes]] = {}
    for match in WORD.finditer(text):
        by_kind.setdefault(_kind(match.group()), []).append(match.group())
    everything = [word for words in by_kind.values() for word in words]
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        places = [match.span() for match in WORD.finditer(text)]
        if not places:
            break
        start, end = dice.choice(places)
        found = text[start:end]
        extreme = str(dice.choice(EXTREMES)).encode()
        if dice.random() < 0.7:
            kind = _kind(found)
            word = (
                extreme if kind == b"0" and dice.random() < 0.4 else dice.choice(by_kind.get(kind, [found]))
            )
        else:
            word = dice.choice((b"", dice.choice(everything), found * 2, extreme))
        text = text[:start] + word + text[end:]
    return damaged_bytes(dice, text) if dice.random() < 0.1 else text


def _kind(word: bytes) -> bytes:
    """Return what a word of MLIR is: a number, a string, a value, a symbol, a name, or a sign itself."""
    first = word[:1]
    return b"0" if first.isdigit() else b"a" if first.isalpha() else first if first in b'"%@#!^' else word


def _pieces(data: bytes) -> list[bytes]:
    """Return the pieces of a lit test, comments left out, below the flags of each of its commands."""
    flags = [match.strip() for match in dict.fromkeys(RUN.findall(data)) if b"/" not in match]
    flags = [each for each in flags if b"%" not in each] or [b""]
    bare = [re.sub(rb"^ *//.*\n", b"", piece, flags=re.MULTILINE) for piece in SEPARATOR.split(data)]
    return [b"// " + each + b"\n" + text for each in flags for text in bare if text.strip()]


def damaged_bytes(dice: random.Random, data: bytes) -> bytes:
    """Return bytes cut, flipped, moved or repeated."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(found) + 1)
        kind = dice.randrange(5)
        if kind == 0:
            del found[at:]
        elif kind == 1 and at < len(found):
            found[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            found[at:at] = dice.randbytes(dice.choice((1, 2, 9)))
        elif kind == 3:
            del found[at : at + dice.choice((1, 3, 50))]
        else:
            found[at:at] = found[: dice.choice((5, 100))]
    return bytes(found)


def _rename(damage: Damage, model: Any) -> None:
    node = damage.node(model)
    row = damage.dice.choice((node.input, node.output))
    if row:
        row[damage.dice.randrange(len(row))] = damage.name(model)


def _wire(damage: Damage, model: Any) -> None:
    """Let a node read what some node makes: cycles, wrong order, wrong types."""
    maker, reader = damage.node(model), damage.node(model)
    if maker.output:
        reader.input.append(damage.dice.choice(maker.output))


def _reorder(damage: Damage, model: Any) -> None:
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    kind = damage.dice.randrange(4)
    if kind == 0:
        nodes.reverse()
    elif kind == 1:
        damage.dice.shuffle(nodes)
    elif kind == 2 and nodes:
        nodes.append(damage.dice.choice(nodes))
    elif nodes:
        nodes.pop(damage.dice.randrange(len(nodes)))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _operator(damage: Damage, model: Any) -> None:
    """Let a node be of another operator, of this or another domain."""
    node = damage.node(model)
    schema = damage.dice.choice(damage.corpus.operators)
    node.op_type = damage.dice.choice((schema.name, schema.name, "Mystery", "", "Relu\n"))
    node.domain = damage.dice.choice(("", schema.domain, schema.domain, "com.acme"))


def _append(damage: Damage, model: Any) -> None:
    """Add a node of some operator that reads what there is, with attributes of the right types."""
    schema = damage.dice.choice(damage.corpus.operators)
    n_inputs = min(schema.min_input + damage.dice.randrange(2), 6)
    node = model.graph.node.add(op_type=schema.name, domain=schema.domain, name="added")
    node.input.extend(damage.name(model) for _ in range(n_inputs))
    node.output.extend(f"added{i}" for i in range(max(1, min(schema.min_output, 4))))
    for name in sorted(schema.attributes):
        if damage.dice.random() < 0.5:
            _fill_attribute(damage, node.attribute.add(name=name), int(schema.attributes[name].type.value))
    model.graph.output.add(name="added0")


def _attribute(damage: Damage, model: Any) -> None:
    node = damage.node(model)
    if not node.attribute or damage.dice.random() < 0.2:
        node.attribute.add(name=damage.dice.choice(("axis", "to", "perm", "body", "value", "alpha")))
    attribute = damage.dice.choice(node.attribute)
    if damage.dice.random() < 0.2:
        node.attribute.add().CopyFrom(attribute)
        return
    name, kind = attribute.name, attribute.type
    if damage.dice.random() < 0.3:
        kind = damage.dice.choice((1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 99))
    attribute.Clear()
    attribute.name = name
    _fill_attribute(damage, attribute, kind)


def _fill_attribute(damage: Damage, attribute: Any, kind: int) -> None:
    """Write a value of a type (FLOAT 1, INT 2, STRING 3, TENSOR 4, GRAPH 5, FLOATS 6, INTS 7, STRINGS 8)."""
    dice = damage.dice
    attribute.type = kind if kind in onnx.AttributeProto.AttributeType.values() else 0
    if kind == 1:
        attribute.f = dice.choice((0.0, 1.0, -1.0, float("nan"), float("inf"), 1e30))
    elif kind == 2:
        attribute.i = damage.extreme()
    elif kind == 3:
        attribute.s = dice.choice(
            (b"", b"linear", b"ij,jk->ik", b"...", b"\xff\xfe", b"SAME_UPPER", b"a" * 3000)
        )
    elif kind == 4:
        attribute.t.data_type = dice.choice(TYPES)
        attribute.t.dims.extend(damage.extreme() for _ in range(dice.randrange(3)))
        attribute.t.raw_data = dice.randbytes(dice.choice((0, 4, 8, 40)))
    elif kind == 5:
        attribute.g.name = "body"
        attribute.g.node.add(op_type="Relu", input=["x"], output=["inner"])
        attribute.g.output.add(name="inner")
    elif kind == 6:
        attribute.floats.extend([float(damage.extreme())] * dice.choice((0, 1, 4, 1000)))
    elif kind == 7:
        attribute.ints.extend(damage.extreme() for _ in range(dice.choice((0, 1, 2, 4, 8, 1000))))
    elif kind == 8:
        attribute.strings.extend([b"t\xff"] * dice.choice((0, 1, 3)))


def _extent(damage: Damage, model: Any) -> None:
    value = damage.value(model)
    dims = value.type.tensor_type.shape.dim
    kind = damage.dice.randrange(5)
    if kind == 0 or not dims:
        dims.add(dim_value=damage.extreme())
    elif kind == 1:
        damage.dice.choice(dims).dim_param = "batch"
    elif kind == 2:
        value.type.tensor_type.ClearField("shape")
    elif kind == 3:
        for _ in range(damage.dice.choice((1, 5, 100))):
            dims.add(dim_value=damage.dice.choice((1, 2)))
    else:
        damage.dice.choice(dims).dim_value = damage.extreme()


def _type(damage: Damage, model: Any) -> None:
    value = damage.value(model)
    kind = damage.dice.randrange(4)
    if kind == 0:
        value.ClearField("type")
    elif kind == 1:
        value.type.sequence_type.elem_type.tensor_type.elem_type = 1
    elif kind == 2:
        value.type.optional_type.elem_type.tensor_type.elem_type = 1
    else:
        value.type.tensor_type.elem_type = damage.dice.choice(TYPES)


def _constant(damage: Damage, model: Any) -> None:
    """Damage type, dims, data or place of a constant."""
    tensor, dice = damage.tensor(model), damage.dice
    kind = dice.randrange(7)
    if kind == 0:
        tensor.data_type = dice.choice(TYPES)
    elif kind == 1:
        tensor.dims.append(damage.extreme())
    elif kind == 2 and tensor.dims:
        tensor.dims[dice.randrange(len(tensor.dims))] = damage.extreme()
    elif kind == 3:
        tensor.raw_data = dice.choice(
            (b"", b"\xff" * len(tensor.raw_data), tensor.raw_data[:-1], tensor.raw_data * 2)
        )
    elif kind == 4:
        tensor.data_location = 1
        for key, value in (
            ("location", dice.choice(LOCATIONS)),
            ("offset", str(damage.extreme())),
            ("length", "8"),
        ):
            if dice.random() < 0.7:
                tensor.external_data.add(key=key, value=value)
    elif kind == 5:
        tensor.ClearField("raw_data")
        dice.choice((tensor.float_data, tensor.int32_data, tensor.int64_data)).extend(
            [1] * dice.choice((0, 1, 5))
        )
    else:
        tensor.name = damage.name(model)


def _numbers(damage: Damage, model: Any) -> None:
    """Write extreme integers into a constant: shapes, sizes, axes, repeats."""
    tensor = damage.tensor(model)
    if tensor.data_type == 7 and tensor.raw_data:
        n = len(tensor.raw_data) // 8
        tensor.raw_data = b"".join(
            damage.dice.choice(EXTREMES).to_bytes(8, "little", signed=True) for _ in range(n)
        )
    else:
        _constant(damage, model)


def _opset(damage: Damage, model: Any) -> None:
    kind = damage.dice.randrange(5)
    if kind == 0:
        del model.opset_import[:]
    elif kind == 1:
        model.opset_import.add(
            domain=damage.dice.choice(("", "ai.onnx", "com.acme", "ai.onnx.ml")), version=7
        )
    elif kind == 2 and model.opset_import:
        model.opset_import[0].version = damage.dice.choice((0, 1, 6, 9, 11, 13, 17, 22, 99, -3, 2**40))
    elif kind == 3:
        model.ir_version = damage.dice.choice((0, 1, 3, 5, 99, 2**40))
    elif model.opset_import:
        model.opset_import[0].domain = damage.dice.choice(("ai.onnx", "nowhere"))


def _ports(damage: Damage, model: Any) -> None:
    graph, dice = model.graph, damage.dice
    kind = dice.randrange(6)
    if kind == 0 and graph.input:
        del graph.input[dice.randrange(len(graph.input))]
    elif kind == 1 and graph.output:
        del graph.output[dice.randrange(len(graph.output))]
    elif kind == 2:
        graph.input.add().CopyFrom(damage.value(model))
    elif kind == 3:
        graph.output.add().CopyFrom(damage.value(model))
    elif kind == 4:
        damage.value(model).name = damage.name(model)
    else:
        graph.sparse_initializer.add().dims.append(3)


def _function(damage: Damage, model: Any) -> None:
    """Add functions that call each other, many times, in a circle, or under a name that is taken."""
    dice = damage.dice
    depth, width, circle = dice.choice((1, 3, 40)), dice.choice((1, 2, 3)), dice.random() < 0.3
    for i in range(depth):
        function = model.functions.add(name=f"f{i}", domain="local", input=["a"], output=["b"])
        function.opset_import.add(domain="", version=dice.choice((17, 18, 18, 9)))
        callee = f"f{(i + 1) % depth}" if circle or i + 1 < depth else ""
        names = ["a", *(f"t{j}" for j in range(width - 1)), "b"]
        for source, target in pairwise(names):
            kind, domain = (callee, "local") if callee else ("Relu", "")
            function.node.add(op_type=kind, domain=domain, input=[source], output=[target])
    model.opset_import.add(domain="local", version=1)
    node = damage.node(model)
    model.graph.node.add(op_type="f0", domain="local", input=list(node.input[:1]), output=["called"])
    model.graph.output.add(name="called")


def _nest(damage: Damage, model: Any) -> None:
    """Put the graph into the body of control flow, a few or very many levels deep."""
    for _ in range(damage.dice.choice((1, 2, 20, 28))):
        kind = damage.dice.choice(("If", "Loop", "Scan"))
        graph = onnx.GraphProto(name="outer", input=model.graph.input, output=model.graph.output)
        node = graph.node.add(op_type=kind, input=[damage.name(model)], output=[o.name for o in graph.output])
        for name in ("then_branch", "else_branch") if kind == "If" else ("body",):
            attribute = node.attribute.add(name=name, type=5)
            attribute.g.CopyFrom(model.graph)
            if name == "else_branch":
                del attribute.g.node[1:]
        # Each level may double it: large ones say no more than small ones, and take most of the time.
        if graph.ByteSize() > MAX_NESTED_BYTES:
            return
        model.graph.CopyFrom(graph)


CHANGES: tuple[Change, ...] = (
    _rename, _wire, _reorder, _operator, _append, _append, _attribute, _attribute, _extent, _extent, _type, _constant,
    _constant, _numbers, _numbers, _opset, _ports, _function, _nest,
)  # fmt: skip
