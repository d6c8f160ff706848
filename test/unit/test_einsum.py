"""Einsum against numpy: orders of letters, implicit outputs, an ellipsis, dims of extent 1, many operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.linalg_numpy import run_module

import t10
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

RANDOM = np.random.default_rng(5)
helper: Any = onnx.helper  # some of its functions are typed in part only


def product(equation: str, shapes: list[tuple[int, ...]]) -> tuple[Any, dict[str, Any]]:
    """Return a model of one Einsum and inputs for it."""
    inputs = {f"x{i}": RANDOM.standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(inputs), ["y"], equation=equation)
    given = [helper.make_tensor_value_info(name, 1, x.shape) for name, x in inputs.items()]
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), inputs


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        (" ba , ac ", [(2, 3), (3, 4)]),
        ("abc,cd", [(2, 3, 4), (4, 5)]),
        ("zA,Ab", [(2, 3), (3, 4)]),
        ("...a,ab", [(2, 3, 4), (4, 5)]),
        ("b...,ba", [(4, 2, 3), (4, 5)]),
        ("ba", [(2, 3)]),
        ("a...", [(2, 3, 4)]),
        ("i,i", [(3,), (3,)]),
        ("sn,s,sp->pn", [(6, 3), (6,), (6, 4)]),
        ("bhlm,bhmk,hkd->bld", [(2, 3, 4, 5), (2, 3, 5, 6), (3, 6, 7)]),
        ("bln,bsn,bhls,bshp->blhp", [(2, 4, 3), (2, 5, 3), (2, 6, 4, 5), (2, 5, 6, 3)]),
        ("s,s,s->", [(6,)] * 3),
        ("...a,ab,bc", [(2, 3, 4), (4, 5), (5, 2)]),
        ("abcd,abed->abce", [(2, 3, 4, 1), (2, 3, 5, 6)]),
        ("ab,b,cb->ca", [(2, 3), (1,), (4, 1)]),
        ("i,,->", [(3,), (), ()]),
        ("c,->c", [(3,), ()]),
        ("c,->", [(3,), ()]),
        ("a,a->", [(2,), (1,)]),
        ("a,a,b->b", [(2,), (1,), (3,)]),
    ],
)
def test_an_equation_may_have_many_operands_and_no_output(
    equation: str, shapes: list[tuple[int, ...]]
) -> None:
    model, inputs = product(equation, shapes)
    imported = import_proto(model, source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        found = run_module(imported.module, {**inputs, **imported.weights})["y"]
    np.testing.assert_allclose(found, np.einsum(equation, *inputs.values()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip", ["test-16", "test-2x16"])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(1, 3, 4, 5), (2, 1, 5, 6)]),
        ("b...i,i...->b...", [(2, 1, 5), (5, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("a...,...b,...->...ba", [(2, 3, 1), (4, 2), (3, 4)]),
    ],
)
def test_an_ellipsis_broadcasts_its_dims(
    equation: str, shapes: list[tuple[int, ...]], chip: str, tmp_path: Path
) -> None:
    """In the first, what is left of a transposed operand without its dim of extent 1 is a reshape that plans follow.

    Of the third only the diagonal is read: its input does not lie as it is read.
    """
    model, inputs = product(equation, shapes)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    found = t10.compile(path, chip, program=False).run(inputs)["y"]
    np.testing.assert_allclose(found, np.einsum(equation, *inputs.values()), rtol=1e-5, atol=1e-5)
