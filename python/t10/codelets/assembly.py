"""A writer of assembly text: labels, bundles, aligned repeats, and the header and end of a codelet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from t10.core.codelet import ENTRY_PREFIX, CodeletKind

LARGEST_REPEAT_BODY = 256


@dataclass(slots=True)
class Assembly:
    """Lines of one codelet. A bundle's halves are given as text; an empty half becomes `nop` or `fnop`."""

    lines: list[str] = field(default_factory=list[str])
    n_labels: int = 0

    def op(self, text: str, comment: str = "") -> None:
        """Add one instruction by itself."""
        self.lines.append(f"  {text}" + (f"  // {comment}" if comment else ""))

    def bundle(self, main: str, aux: str, comment: str = "") -> None:
        """Add a main and an aux instruction that issue together; alone where one is empty."""
        tail = f"  // {comment}" if comment else ""
        self.lines.append(f"  {{ {main or 'nop'} ; {aux or 'fnop'} }}{tail}")

    def beside(self, first: int, aux: Sequence[str]) -> None:
        """Let aux instructions, in their order, issue with the main ones from line `first` on; the rest follow."""
        for number, one in enumerate(aux, first):
            if number < len(self.lines):
                main, mark, comment = self.lines[number].strip().partition("  // ")
                self.lines[number] = f"  {{ {main} ; {one} }}{mark}{comment}"
            else:
                self.op(one)

    def label(self, name: str) -> None:
        """Define a label here."""
        self.lines.append(f"{name}:")

    def new_label(self, hint: str = "L") -> str:
        """Return a label name that is not used yet in this codelet (it is made unique by the codelet's name)."""
        self.n_labels += 1
        return f".{hint}{self.n_labels}"

    def comment(self, text: str) -> None:
        """Add a comment line."""
        self.lines.append(f"  // {text}")

    def align(self) -> None:
        """Go on at a multiple of eight bytes; at most one nop is executed on the way."""
        self.lines.append("  .align 8")

    def repeat(self, count: str, body: Iterable[tuple[str, str]]) -> None:
        """Repeat bundles `count` times (a register or an immediate); the body begins at a multiple of eight bytes."""
        bundles = list(body)
        self.align()
        self.bundle(f"rpt {count}, {len(bundles) - 1}", "fnop")
        for main, aux in bundles:
            self.bundle(main, aux)

    def text(self, name: str, kind: CodeletKind, stack_bytes: int = 0) -> str:
        """Return the codelet: a section of its own with its entry symbol, aligned to eight bytes."""
        entry = ENTRY_PREFIX + name
        # Labels are local to a codelet: all codelets of a program stand in one file.
        body = "\n".join(self.lines).replace(" .L", f" .L_{name}_").replace("\n.L", f"\n.L_{name}_")
        head = [
            f'.section .text.{entry}, "ax"',
            f".globl {entry}",
            f".type {entry}, @function",
            ".align 8",
            ".worker" if kind == "multi" else ".supervisor",
            f"{entry}:",
        ]
        tail = [f".size {entry}, . - {entry}", f"DEF_STACK_USAGE {stack_bytes}, {entry}"]
        return "\n".join([*head, body, *tail]) + "\n"
