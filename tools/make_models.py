#!/usr/bin/env python3
"""Make the small models of `examples/models`, each with its inputs (`in.<name>` in an .npz beside it).

    python tools/make_models.py                        # rewrite examples/models
    python tools/make_models.py --full-resnet18 DIR    # ResNet-18, 224x224, random weights (47 MB), in DIR

Everything is drawn from fixed seeds: the same files on every machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import external_data_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bundled import small, transformers, vision
from bundled.builder import Builder

ARCHITECTURES = {
    "bert": transformers.bert,
    "vit": vision.vit,
    "resnet18": vision.resnet18,
    "nerf": vision.nerf,
    "opt": transformers.opt,
    "llama2": transformers.llama2,
    "retnet": transformers.retnet,
}
DTYPES = {"fp32": "float32", "fp16": "float16"}
SMALL = (
    small.mlp, small.conv, small.depthwise, small.gather, small.softmax, small.symbolic, small.functions,
    small.unsupported,
)  # fmt: skip
FULL_WIDTHS = (64, 128, 256, 512)


def save(model: Any, samples: dict[str, Any], folder: Path, stem: str) -> None:
    """Write a model, and its inputs if there are any."""
    (folder / f"{stem}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    if samples:
        np.savez(folder / f"{stem}.npz", **{f"in.{name}": value for name, value in samples.items()})


def make_bundled(folder: Path) -> None:
    """Write every model that is kept in the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in ARCHITECTURES.items():
        for suffix, dtype in DTYPES.items():
            made = build(dtype)
            save(made.model(), made.samples, folder, f"{name}_{suffix}")
    for build_small in SMALL:
        made = build_small()
        save(made.model(), made.samples, folder, made.name)
    save(
        small.local_function(),
        {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)},
        folder,
        "local_function",
    )
    make_external(small.mlp(), folder)
    small.write_broken(folder, (folder / "mlp.onnx").read_bytes())


def make_external(made: Builder, folder: Path) -> None:
    """Write a model whose weights lie in a file of their own, and one whose weights are absent."""
    model = made.model()
    for stem, location in (("external", "external.bin"), ("weight_free", "absent.bin")):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        data = bytearray()
        for tensor in copy.graph.initializer:
            raw = tensor.raw_data
            external_data_helper.set_external_data(tensor, location, offset=len(data), length=len(raw))
            data += raw
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
        save(copy, made.samples, folder, stem)
        if stem == "external":
            (folder / location).write_bytes(bytes(data))


def make_full_resnet18(folder: Path) -> None:
    """Write ResNet-18 in full size, fp32 and fp16."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, dtype in DTYPES.items():
        made = vision.resnet18(dtype, picture=224, widths=FULL_WIDTHS, classes=1000)
        save(made.model(), made.samples, folder, f"resnet18_224_{suffix}")


def main() -> int:
    """Read the command line and make the models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    default = Path(__file__).resolve().parent.parent / "examples" / "models"
    parser.add_argument(
        "--output", type=Path, default=default, help="folder of the bundled models (default: %(default)s)"
    )
    parser.add_argument(
        "--full-resnet18", type=Path, metavar="DIR", help="make only ResNet-18 in full size, in DIR"
    )
    arguments = parser.parse_args()
    if arguments.full_resnet18 is not None:
        make_full_resnet18(arguments.full_resnet18)
    else:
        make_bundled(arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
