"""Crash reproducers: a module and, in its resources, the pipeline that fails on it; the format is mlir-opt's."""

from __future__ import annotations

import re
from pathlib import Path

from t10.core.atomic import write_text
from t10.errors import InputError

_SECTION = re.compile(
    r"\{-#\s*external_resources:\s*\{\s*mlir_reproducer:\s*\{(.*?)\}\s*\}\s*#-\}\s*", re.DOTALL
)
_PIPELINE = re.compile(r'pipeline:\s*"([^"\\]*(?:\\.[^"\\]*)*)"')
_VERIFY_EACH = re.compile(r"verify_each:\s*(true|false)")


class Reproducer:
    """A reproducer on disk while a pipeline runs: written first, so that a crash leaves it, removed on success."""

    def __init__(self, path: str, module_text: str, pipeline: str, *, verify_each: bool) -> None:
        """Write the file; raises `InputError` if that is not possible."""
        self._path = Path(path)
        escaped = pipeline.replace("\\", "\\\\").replace('"', '\\"')
        text = (
            f"{module_text.rstrip()}\n\n{{-#\n  external_resources: {{\n    mlir_reproducer: {{\n"
            f'      pipeline: "{escaped}",\n      disable_threading: true,\n'
            f"      verify_each: {str(verify_each).lower()}\n    }}\n  }}\n#-}}\n"
        )
        write_text(path, text)

    def discard(self) -> None:
        """Remove the file: nothing failed. A device, a FIFO or a link stays."""
        if self._path.is_file():
            self._path.resolve().unlink()


def split(text: str) -> tuple[str, str, bool]:
    """Return the module's text, the pipeline and verify-each of a reproducer; raises `InputError` if it is none.

    The section becomes empty lines' worth of nothing at the end of the module, so line numbers stay.
    """
    section = _SECTION.search(text)
    pipeline = _PIPELINE.search(section[1]) if section else None
    if section is None or pipeline is None:
        raise InputError(
            "--run-reproducer: the input holds no {-# external_resources: { mlir_reproducer: { pipeline: ... #-}"
        )
    verify = _VERIFY_EACH.search(section[1])
    unescaped = re.sub(r"\\(.)", r"\1", pipeline[1])
    return text[: section.start()] + text[section.end() :], unescaped, verify is None or verify[1] == "true"
