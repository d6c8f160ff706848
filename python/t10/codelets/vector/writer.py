"""Writing the instructions of one vector codelet: symbols become registers and numbers of words."""

from __future__ import annotations

from t10.codelets.assembly import Assembly
from t10.codelets.body.far import FAR_MARK, FarPath
from t10.codelets.vector.layout import WordLayout
from t10.codelets.vector.schedule import Bundles, Scheduled

EXIT = ".Lexit"


class Writer:
    """The text of a codelet as far as it is written."""

    def __init__(self, scheduled: Scheduled) -> None:
        """Lay the words out."""
        self.scheduled = scheduled
        self.draft = scheduled.draft
        self.nest = scheduled.draft.prepared.nest
        self.pins = scheduled.pins
        self.layout: WordLayout = scheduled.layout()
        self.assembly = Assembly()
        self.far = FarPath()
        self.temporaries = [f"$m{i}" for i in self.pins.free["m"]]

    def op(self, text: str, comment: str = "") -> None:
        """Add an instruction by itself."""
        self.assembly.op(self.resolved(text), comment)

    def load_word(self, target: str, field: str) -> None:
        """Add the load of a field."""
        self.op(f"ld32 {target}, $mvertex_base, $mzero, {self.layout.number(field)}", field)

    def resolved(self, text: str) -> str:
        """Return an instruction with registers and numbers of words instead of symbols."""
        while "%c" in text and "%count" not in text:
            start = text.index("%c")
            end = text.index("%", start + 1)
            number = int(text[start + 2 : end])
            at = number if self.draft.constants.in_pool else self.layout.number(f"c{number}")
            text = text[:start] + str(at) + text[end + 1 :]
        while "%f:" in text:
            start = text.index("%f:")
            end = text.index(":", start + 3)
            text = text[:start] + str(self.layout.number(text[start + 3 : end])) + text[end + 1 :]
        return self.pins.resolve(text)

    def bundle(self, main: str, aux: str) -> None:
        """Add a main and an aux instruction that issue together; either may be missing."""
        if main.startswith(FAR_MARK):
            branch, back = self.far.branch(main)
            self.bundle(branch, aux)
            self.assembly.label(back)
        elif main and aux:
            self.assembly.bundle(self.resolved(main), self.resolved(aux))
        elif main or aux:
            self.op(main or aux)

    def straight(self, bundles: Bundles) -> None:
        """Add code that runs once."""
        for main, aux in bundles:
            self.bundle(main, aux)
