"""The example build runs onnx-mlir, a stand-in that writes what it wrote once, and T10 behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "test" / "e2e" / "Inputs" / "onnx_mlir"
STAND_IN = """
assert sys.argv[1] == "--EmitONNXIR" and sys.argv[2].endswith("mlp_dynamo.onnx"), sys.argv
shutil.copy({text!r}, sys.argv[sys.argv.index("-o") + 1] + ".onnx.mlir")
"""


def test_a_build_with_onnx_mlir_makes_a_program(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "onnx-mlir"
    tool.parent.mkdir()
    text = str(TEXTS / "mlp_dynamo.ir.mlir")
    tool.write_text(f"#!{sys.executable}\nimport shutil, sys\n{STAND_IN.format(text=text)}")
    tool.chmod(0o755)
    path = os.pathsep.join((str(tool.parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    cmake = shutil.which("cmake", path=path)
    assert cmake is not None
    chosen = {
        "MODEL": TEXTS / "mlp_dynamo.onnx", "SHAPES": "batch=2", "CHIP": "test-4",
        "T10": ROOT / "tools" / "t10", "T10_OPT": ROOT / "tools" / "t10-opt",
    }  # fmt: skip
    configure = ["-S", ROOT / "examples" / "onnx-mlir", "-B", tmp_path / "build", "-G", "Ninja"]
    for arguments in (
        [*configure, *(f"-D{key}={value}" for key, value in chosen.items())],
        ["--build", tmp_path / "build"],
    ):
        done = subprocess.run(
            [cmake, *arguments],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert '"ipu.graph"' in (tmp_path / "build" / "mlp_dynamo.ipu.mlir").read_text()
    assert (tmp_path / "build" / "mlp_dynamo" / "program" / "program.cpp").is_file()
