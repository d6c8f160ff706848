"""Files that PyTorch's two exporters wrote are compiled and compute what PyTorch computed."""

from __future__ import annotations

from pathlib import Path

import pytest

import t10
from t10.arrays import read_arrays
from t10.plan.options import PlanOptions
from t10.reference import compare, default_tolerance, split_reference

EXPORTS = Path(__file__).parent / "Inputs" / "torch_exports"
FILES = sorted(EXPORTS.glob("*.onnx"))
QUICKLY = PlanOptions(reconcile="greedy", max_front=8)


def test_both_exporters_and_old_and_new_opsets_are_there() -> None:
    exporters = {path.stem.rsplit("_", 2)[1] for path in FILES}
    opsets = {int(path.stem.rsplit("_", 1)[1]) for path in FILES}
    assert exporters == {"torchscript", "dynamo"}
    assert min(opsets) == 7
    assert max(opsets) >= 23


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_export_computes_what_pytorch_computes(path: Path) -> None:
    inputs, references = split_reference(read_arrays(path.with_suffix(".npz")))
    shapes = {name: array.shape for name, array in inputs.items()}
    executable = t10.compile(path, "test-16", shapes=shapes, options=QUICKLY)
    comparisons = compare(executable.run(inputs), references, default_tolerance(executable.plan.graph))
    assert {each.name for each in comparisons} == set(references)
    assert [each for each in comparisons if not each.is_within] == []
    for each in comparisons:
        assert each.dtype == str(references[each.name].dtype)
