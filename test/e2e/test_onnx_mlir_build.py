"""The example build runs onnx-mlir, a stand-in that writes what it wrote once, and T10 behind it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from t10.opt.main import main as t10_opt
from t10.translate import main as t10_translate

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "test" / "e2e" / "Inputs" / "onnx_mlir"
STAND_IN = """
assert sys.argv[1:3] == ["--EmitONNXIR", "--O1"] and sys.argv[3].endswith("mlp_dynamo.onnx"), sys.argv
shutil.copy({text!r}, sys.argv[sys.argv.index("-o") + 1] + ".onnx.mlir")
"""
CHOSEN = {
    "MODEL": TEXTS / "mlp_dynamo.onnx", "SHAPES": "batch=2", "CHIP": "test-4", "ONNX_MLIR_FLAGS": "--O1",
    "T10_FLAGS": "--padding=0.8", "T10": ROOT / "tools" / "t10", "T10_OPT": ROOT / "tools" / "t10-opt",
}  # fmt: skip


@pytest.fixture
def cmake(tmp_path: Path) -> Cmake:
    return Cmake(tmp_path)


class Cmake:
    """CMake where onnx-mlir is a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.build = folder / "build"
        tool = folder / "bin" / "onnx-mlir"
        tool.parent.mkdir()
        text = str(TEXTS / "mlp_dynamo.ir.mlir")
        tool.write_text(f"#!{sys.executable}\nimport shutil, sys\n{STAND_IN.format(text=text)}")
        tool.chmod(0o755)
        self.path = os.pathsep.join((str(tool.parent), str(Path(sys.executable).parent), os.environ["PATH"]))

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run cmake."""
        cmake = shutil.which("cmake", path=self.path)
        assert cmake is not None
        environment = {**os.environ, "PATH": self.path}
        command = [cmake, *map(str, arguments)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    def configure(self, **chosen: object) -> subprocess.CompletedProcess[str]:
        """Configure the example."""
        options = [f"-D{key}={value}" for key, value in chosen.items()]
        return self.run("-S", ROOT / "examples" / "onnx-mlir", "-B", self.build, "-G", "Ninja", *options)


@pytest.mark.slow
def test_a_build_with_onnx_mlir_makes_a_program(cmake: Cmake, tmp_path: Path) -> None:
    for done in (cmake.configure(**CHOSEN), cmake.run("--build", cmake.build)):
        assert done.returncode == 0, done.stdout + done.stderr
    lowered, program = cmake.build / "mlp_dynamo.ipu.mlir", cmake.build / "mlp_dynamo" / "program"
    assert '"ipu.graph"' in lowered.read_text()
    assert '"padding": 0.8' in (program.parent / "manifest.json").read_text()
    # Planned once: the module is the program.
    written = tmp_path / "codelets.S"
    assert t10_translate(["--ipu-to-asm", str(lowered), "-o", str(written)]) == 0
    assert written.read_bytes() == (program / "codelets.S").read_bytes()
    assert t10_opt([str(lowered), "-o", str(tmp_path / "again.mlir")]) == 0


@pytest.mark.parametrize("model", ["", "absent.onnx"])
def test_a_build_without_a_model_says_so(cmake: Cmake, model: str) -> None:
    done = cmake.configure(**{**CHOSEN, "MODEL": model})
    assert done.returncode != 0
    told = " ".join(done.stderr.split())
    assert re.search(rf"MODEL is '[^']*{re.escape(model)}' \(expected an .onnx file", told)
