"""Worker code as a list of instructions, written out with every `rpt` where its body falls on a multiple of 8 bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from t10.codelets.assembly import Assembly

Bundle = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """A label, a solo instruction, a bundle, or a repeat (whose `main` is the count and `aux` the body's length)."""

    kind: str
    main: str
    aux: str = ""


@dataclass(slots=True)
class WorkerCode:
    """Instructions in order; `write` puts them into an `Assembly` at a multiple of eight bytes."""

    items: list[Item] = field(default_factory=list[Item])

    def label(self, name: str) -> None:
        """Define a label here."""
        self.items.append(Item("label", name))

    def op(self, text: str) -> None:
        """Add one instruction by itself."""
        self.items.append(Item("op", text))

    def bundles(self, bundles: Iterable[Bundle]) -> None:
        """Add bundles; a bundle with one empty half becomes a solo instruction."""
        for main, aux in bundles:
            if main and aux:
                self.items.append(Item("bundle", main, aux))
            elif main or aux:
                self.items.append(Item("op", main or aux))

    def repeat(self, count: str, body: Iterable[Bundle]) -> None:
        """Repeat bundles `count` times, 0 times included."""
        body = list(body)
        self.items.append(Item("repeat", count, str(len(body))))
        self.items += [Item("bundle", main, aux) for main, aux in body]

    def write(self, assembly: Assembly) -> None:
        """Write the code; a `rpt` stands alone or with an empty half, whichever aligns its body without a slot."""
        assembly.align()
        position = 0
        for item in self.items:
            if item.kind == "label":
                assembly.label(item.main)
                continue
            if item.kind == "repeat":
                text = f"rpt {item.main}, {int(item.aux) - 1}"
                if position % 8:
                    assembly.op(text)
                    position += 4
                else:
                    assembly.bundle(text, "fnop")
                    position += 8
            elif item.kind == "bundle":
                assembly.bundle(item.main, item.aux)
                position += 8
            else:
                assembly.op(item.main)
                position += 4
