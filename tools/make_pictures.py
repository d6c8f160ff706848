#!/usr/bin/env python3
"""Draw docs/images/plan.png: a product on six cores of little memory, as `t10 explain --plot` shows its plan.

python tools/make_pictures.py [PICTURE.png]      # `make pictures` renews those of the report, too
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from t10.cli import main as t10

ROOT = Path(__file__).resolve().parents[1]

MODULE = """\
func.func @main(%a: tensor<24x96xf32> {t10.name = "A"}, %b: tensor<96x48xf32> {t10.name = "B", t10.weight})
    -> (tensor<24x48xf32> {t10.name = "C"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<24x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<24x48xf32>) -> tensor<24x48xf32>
  %c = linalg.matmul ins(%a, %b : tensor<24x96xf32>, tensor<96x48xf32>) outs(%init : tensor<24x48xf32>)
    -> tensor<24x48xf32> loc("product")
  return %c : tensor<24x48xf32>
}
"""
PINS = {"format": "t10-pins", "version": 1, "operators": [{"name": "product", "f_op": [2, 3, 1]}]}
CHIP = """\
based_on: test-16
name: six cores of 17 KiB
n_cores: 6
sram_bytes: 17 KiB
reserved_bytes: 8 KiB
shift_buffer_bytes: 512
"""
"""Memory is tight, so that A rotates."""


def main() -> int:
    """Compile the example and draw its operator."""
    picture = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "docs" / "images" / "plan.png")
    with tempfile.TemporaryDirectory() as folder:
        files = {"product.mlir": MODULE, "pins.json": json.dumps(PINS), "chip.yaml": CHIP}
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        module, pins, chip, out = (str(Path(folder) / name) for name in (*files, "out"))
        options = ["--plan", pins, "--chip", chip, "--no-cache", "--no-program", "--quiet"]
        code = t10(["compile", module, "-o", out, *options])
        return code or t10(["explain", out, "--op", "product", "--plot", picture, "--quiet"])


if __name__ == "__main__":
    sys.exit(main())
