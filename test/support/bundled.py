"""The models that come with the repository, as far as they compile without further options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.dialect.mlir import ir
from t10.frontend.importer import import_model
from t10.passes.pipeline import fused
from t10.plan.fronts.canonical import searched_as

ROOT = Path(__file__).parents[2]
FOLDERS = ("examples/models", "test/e2e/Inputs/onnx_mlir", "test/e2e/Inputs/torch_exports")
REFUSED = frozenset(
    {"broken_cut", "broken_empty", "broken_text", "symbolic", "unsupported", "cnn_legacy", "mlp_dynamo"}
    | {"x_const_kinds", "x_custom_ms", "x_custom_op", "x_loop_if", "x_seq_io", "mlp_torchscript_7"}
    | {"patch_tokens_dynamo_20", "residual_cnn_torchscript_9", "unet_torchscript_20"}
)
"""Models that show how something is refused, or whose shapes an option must give."""


def bundled_models() -> tuple[Path, ...]:
    """Return the files of all models that compile."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.onnx"))]
    return tuple(path for path in files if path.stem not in REFUSED)


def operators_of(path: Path) -> tuple[OperatorSpec, ...]:
    """Return the operators of a model, fused as they are planned."""
    module = import_model(path).module
    with module.context, ir.Location.unknown():
        return fused(module, load_chip("ipu-mk2")).graph.operators


def bundled_kinds(cost: CostModel, models: tuple[Path, ...]) -> Iterator[tuple[Path, OperatorSpec]]:
    """Yield every operator that differs from those before by more than names, with the model it is of."""
    seen: set[OperatorSpec] = set()
    for path in models:
        for spec in operators_of(path):
            kind = searched_as(spec, cost)
            if kind not in seen:
                seen.add(kind)
                yield path, kind
