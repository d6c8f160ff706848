"""`--mlir-print-ir-*`: what the module looks like around a pass, on standard error or in a directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from t10.core.atomic import write_text
from t10.dialect.aliases import with_aliases
from t10.errors import InputError
from t10.opt.options import Settings


def print_flags(settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments of `Operation.get_asm` for the output options."""
    return {
        "print_generic_op_form": settings.print_generic,
        "enable_debug_info": settings.print_debuginfo,
        "use_local_scope": settings.print_local_scope,
        "use_name_loc_as_prefix": settings.print_name_locations,
        "skip_regions": settings.skip_regions,
        "large_elements_limit": settings.elide_elements,
        "large_resource_limit": settings.elide_resources,
    }


def prints_everything(settings: Settings) -> bool:
    """Return whether the output options leave nothing of a module out."""
    return not settings.skip_regions and settings.elide_elements is None and settings.elide_resources is None


def asm(module: Any, settings: Settings) -> str:
    """Return the text of a verified module under the output options, ending in one line break."""
    return _text(module, settings, print_flags(settings) | {"assume_verified": True})


def _text(module: Any, settings: Settings, flags: dict[str, Any]) -> str:
    text = str(module.operation.get_asm(**flags)).rstrip("\n") + "\n"
    return text if settings.print_local_scope else with_aliases(text)


class Printer:
    """Prints the module before and after passes as the settings say; counts passes for the file names of a tree."""

    def __init__(self, settings: Settings) -> None:
        """Print nothing yet."""
        self._settings = settings
        self._text_before: str | None = None
        self._n_passes = 0

    def wants_before(self, name: str) -> bool:
        """Return whether to print before a pass."""
        return self._settings.print_before_all or name in self._settings.print_before

    def wants_after(self, name: str) -> bool:
        """Return whether to print after a pass (if it changed something, where only changes count)."""
        settings = self._settings
        # As in mlir-opt, a tree directory or after-change alone prints after every pass.
        alone = settings.print_tree_dir is not None or settings.print_after_change
        named = settings.print_before or settings.print_after or settings.print_before_all
        return settings.print_after_all or name in settings.print_after or (alone and not named)

    def before(self, title: str, name: str, module: Any) -> None:
        """Print before a pass, and remember the text where only changes count."""
        self._n_passes += 1
        if self.wants_before(name):
            self._dump("Before", title, name, module)
        if self._settings.print_after_change and self.wants_after(name):
            self._text_before = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)

    def after(self, title: str, name: str, module: Any) -> None:
        """Print after a pass."""
        if not self.wants_after(name):
            return
        if self._settings.print_after_change:
            text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
            if text == self._text_before:
                return
        self._dump("After", title, name, module)

    def after_failure(self, title: str, name: str, module: Any) -> None:
        """Print what a failed pass left behind; generically, since it may be invalid."""
        if self._settings.print_after_failure or self.wants_after(name):
            self._dump("After", title, name, module, failed=True)

    def _dump(self, when: str, title: str, name: str, module: Any, *, failed: bool = False) -> None:
        """Write one dump."""
        suffix = " Failed" if failed else ""
        header = f"// -----// IR Dump {when} {title}{suffix} //----- //\n"
        flags = print_flags(self._settings)
        if failed:
            flags["print_generic_op_form"] = True
        text = _text(module, self._settings, flags)
        if self._settings.print_tree_dir is None:
            print(f"{header}{text}", file=sys.stderr)
            return
        folder = Path(self._settings.print_tree_dir) / f"builtin_module_{_symbol_name(module)}"
        which = ("_before" if when == "Before" else "") + ("_failed" if failed else "")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write into {folder}: {error.strerror}") from None
        write_text(folder / f"{self._n_passes - 1}_{name}{which}.mlir", header + text)


def _symbol_name(module: Any) -> str:
    """Return a module's symbol name, or mlir-opt's word for having none."""
    attributes = module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "no-symbol-name"
