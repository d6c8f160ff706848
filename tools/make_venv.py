"""Make the virtual environment `.venv`, or say in one line what the machine lacks.

Runs with nothing but a Python and its standard library, also with a Python too old for T10 (to say so), and on a
Debian whose `python3` comes without `ensurepip` and without pip: pip's own wheel, fetched from the package index,
can be run as it is.

    python3 tools/make_venv.py .venv
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.parse
import urllib.request

APT_LINE = "sudo apt install python3 python3-dev python3-venv g++ make"
OLDEST = (3, 10)
PIP_INDEX = "https://pypi.org/pypi/pip/json"


def main() -> int:
    """Make the environment named on the command line; returns 0, or 2 after saying what is missing."""
    folder = sys.argv[1] if len(sys.argv) > 1 else ".venv"
    missing = what_is_missing()
    if missing:
        print(f"error: {missing}", file=sys.stderr)
        return 2
    for make in (with_venv, with_virtualenv):
        shutil.rmtree(folder, ignore_errors=True)
        if make(folder):
            print(f"made {folder} with Python {sys.version.split()[0]}")
            return 0
    print(f"error: neither venv nor virtualenv works here; on Debian and Ubuntu: {APT_LINE}", file=sys.stderr)
    return 2


def what_is_missing() -> str:
    """Return a sentence about the first thing the machine lacks for building T10, or an empty string."""
    found = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info < OLDEST:
        needed = f"{OLDEST[0]}.{OLDEST[1]}"
        return f"Python {needed} or newer is needed, found {found}; choose one: make PYTHON=python3.11"
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        return f"the C headers of Python {found} are not installed; on Debian and Ubuntu: {APT_LINE}"
    compilers = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    if not any(shutil.which(name.split()[0]) for name in compilers if name):
        return (
            f"a C++17 compiler is needed, found none of c++, g++, clang++; on Debian and Ubuntu: {APT_LINE}"
        )
    return ""


def with_venv(folder: str) -> bool:
    """Try the standard library's venv; True when the environment has a pip."""
    return run(sys.executable, "-m", "venv", folder) and run(
        os.path.join(folder, "bin", "python"), "-m", "pip", "-V"
    )


def with_virtualenv(folder: str) -> bool:
    """Try virtualenv, installed into a scratch folder, so that nothing outside `folder` changes."""
    with tempfile.TemporaryDirectory() as scratch:
        # An installation to a folder of its own is allowed even where the system's packages are locked (PEP 668).
        install = ("install", "--quiet", "--target", scratch, "virtualenv")
        if not run(sys.executable, "-m", "pip", *install):
            wheel = fetch_pip(scratch)
            if not wheel or not run(sys.executable, os.path.join(wheel, "pip"), *install):
                return False
        return run(sys.executable, "-m", "virtualenv", "--quiet", folder, PYTHONPATH=scratch)


def fetch_pip(folder: str) -> str:
    """Download pip's wheel into `folder`; return its path, or an empty string when the index is out of reach."""
    try:
        with urllib.request.urlopen(PIP_INDEX, timeout=60) as answer:
            files = json.load(answer)["urls"]
        wheel = next(entry["url"] for entry in files if entry["packagetype"] == "bdist_wheel")
        url = urllib.parse.urljoin(PIP_INDEX, wheel)  # mirrors of the index give relative addresses
        path = os.path.join(folder, url.rsplit("/", 1)[-1])
        urllib.request.urlretrieve(url, path)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        print(f"pip could not be fetched: {error}", file=sys.stderr)
        return ""
    return path


def run(*command: str, **environment: str) -> bool:
    """Run a command quietly; True when it succeeded."""
    merged = {**os.environ, **environment}
    try:
        done = subprocess.run(command, env=merged, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
