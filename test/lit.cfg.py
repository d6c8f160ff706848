"""The lit suite: RUN lines of the .mlir and .test files below this folder.

Works from the source tree (`lit test`, with Python, FileCheck and mlir-opt taken from PATH) and from a CMake build,
whose lit.site.cfg.py has set the paths before it loads this file.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]

from t10_lit import ForkingShTest  # noqa: E402 - found through the line above

LEAST_LLVM = 20  # test/unit/test_irdl.py holds it against what the dialects state


def configured(name, *candidates):
    """Return the path CMake found, else the first candidate on PATH, else an empty string."""
    chosen = getattr(config, name, "")
    if chosen and not chosen.endswith("NOTFOUND"):
        return chosen
    return next((path for path in map(shutil.which, candidates) if path), "")


def llvm_version(program):
    """Return the major version of LLVM that an mlir-opt states, 0 if it states none."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"LLVM version (\d+)", text)
    return int(found[1]) if found else 0


filecheck = configured("t10_filecheck", "FileCheck", *(f"FileCheck-{v}" for v in range(24, 17, -1)))
mlir_opt = configured("t10_mlir_opt", "mlir-opt", *(f"mlir-opt-{v}" for v in range(24, 18, -1)))
torch_mlir_opt = shutil.which("torch-mlir-opt", path=os.path.dirname(sys.executable)) or ""

config.name = "T10"
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output", "unit", "e2e", "support"]
config.test_source_root = HERE
config.test_exec_root = getattr(config, "t10_exec_root", os.path.join(ROOT, "build", "test"))
config.pipefail = True
config.maxIndividualTestTime = 120

config.environment["PYTHONPATH"] = os.path.join(ROOT, "python")
config.environment["PATH"] = os.pathsep.join(
    [os.path.dirname(sys.executable), os.path.join(ROOT, "tools"), os.environ.get("PATH", "")]
)
config.environment["COLUMNS"] = "120"
config.environment["NO_COLOR"] = "1"
# Plans are kept in the build folder, not in the user's.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")

programs = {}
if mlir_opt:
    config.available_features.add("mlir-opt")
    # The bound that --dump-irdl states is held on both sides: what is newer must load it, what is older refuse it.
    side = "mlir-opt-irdl" if llvm_version(mlir_opt) >= LEAST_LLVM else "mlir-opt-before-irdl"
    config.available_features.add(side)
    programs["mlir-opt"] = mlir_opt
if torch_mlir_opt:
    config.available_features.add("torch-mlir-opt")
    programs["torch-mlir-opt"] = torch_mlir_opt
if filecheck:
    config.available_features.add("llvm-filecheck")

# For lines that go to lit's shell; a name counts as a command only where a command can stand.
config.substitutions += [
    ("%root", ROOT),
    ("%models", os.path.join(ROOT, "examples", "models")),
    (r"(?:^|(?<=[|;&] )|(?<=not ))filecheck(?= )", filecheck or "filecheck"),
]
if mlir_opt:
    config.substitutions.append((r"(?:^|(?<=[|;&] )|(?<=not ))mlir-opt(?= )", mlir_opt))

config.test_format = ForkingShTest(llvm_filecheck=filecheck, programs=programs)
