"""Make the source distribution and a wheel of the commit that is checked out, in dist/.

The build sees the files of the commit alone: what tutorials and experiments left in the checkout is not packed. The
name of the commit goes with them, so that `t10 --version` of a wheel that is built from the source distribution says
it.

    python tools/make_dist.py
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMIT_FILE = "python/t10/commit.txt"


def main() -> int:
    """Build both; returns the exit code of the build."""
    command = [sys.executable, "-m", "build", "--outdir", str(ROOT / "dist")]
    if not (ROOT / ".git").exists():
        # An unpacked source distribution: nothing else is there, and the commit is.
        return subprocess.run([*command, str(ROOT)], check=False).returncode
    if _git(ROOT, "status", "--porcelain", "--untracked-files=no"):
        print("changes that are not committed are left out", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        export_commit(ROOT, Path(folder))
        return subprocess.run([*command, folder], check=False).returncode


def export_commit(checkout: Path, folder: Path) -> None:
    """Write the files of the commit that is checked out to a folder, and a file that names the commit."""
    with tarfile.open(fileobj=io.BytesIO(_git(checkout, "archive", "HEAD"))) as archive:
        archive.extractall(folder)
    commit = _git(checkout, "rev-parse", "--short=12", "HEAD").decode().strip()
    (folder / COMMIT_FILE).write_text(f"{commit}\n", encoding="utf-8")


def _git(checkout: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(checkout), *arguments], check=True, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main())
