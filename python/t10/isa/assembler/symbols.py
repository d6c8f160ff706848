"""Symbols of one file: labels, local labels, values that were set; and what other files export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from difflib import get_close_matches

from t10.isa.assembler.expressions import Node, Relative, Unknown, Value, bind, evaluate
from t10.isa.assembler.lines import Line, Problem

MOST_CHAIN = 50
"""Symbols set to symbols set to symbols ..."""


class Symbols:
    """Values by name. Before sections are placed, labels are `Relative`; afterwards everything is a number.

    `redefines` tells whether one of the architecture's constants has another value here.
    """

    def __init__(self, constants: Mapping[str, int]) -> None:
        """Begin with nothing defined but the architecture's constants."""
        self._constants = constants
        self.values: dict[str, Value | Node] = {}
        self.labels: dict[str, Line] = {}
        self.locals: dict[int, list[Relative]] = {}
        self.here = Relative(0, 0)
        self.redefines = False
        self._bases: Sequence[int] | None = None
        self._owners: Mapping[str, Symbols] = {}
        self._weak: Set[str] = frozenset()
        self._hidden: Mapping[str, str] = {}
        self._chain = 0

    def define_label(self, name: str, place: Relative, line: Line, column: int) -> None:
        """Define a label. Raises Problem where there is one of this name already."""
        if name.isdigit():
            self.locals.setdefault(int(name), []).append(place)
            return
        if name in self.labels:
            before = self.labels[name]
            raise Problem(f"label '{name}' is defined before, at {before.file}:{before.number}", column)
        if name in self.values:
            raise Problem(f"'{name}' is set before, it cannot be a label", column)
        self.redefines = self.redefines or name in self._constants
        self.labels[name] = line
        self.values[name] = place

    def assign(self, name: str, node: Node, column: int) -> None:
        """Set a symbol to an expression, to its value where that is known. Raises Problem."""
        if name in self.labels:
            raise Problem(f"'{name}' is a label, it cannot be set", column)
        self.redefines = self.redefines or name in self._constants
        try:
            self.values[name] = evaluate(node, self.lookup)
        except Unknown:
            self.values[name] = self.bound(node)

    def is_defined(self, name: str) -> bool:
        """Return whether a symbol has a value or a label so far."""
        return name in self.values or name in self._constants

    def lookup(self, node: Node) -> Value:
        """Return the value of a leaf of an expression; raises Unknown."""
        if node.kind == "symbol":
            value = self.values.get(node.name)
            if value is None or node.name in self._weak:
                owner = self.owner(node.name)
                if owner is not None and owner is not self:
                    return owner.lookup(node)
            return self._otherwise(node) if value is None else self._settled(value, node)
        if node.kind == ".":
            return self._placed(self.here)
        if node.kind == "place":
            return self._placed(Relative(int(node.name), node.value))
        return self._local(node)

    def bound(self, node: Node) -> Node:
        """Return an expression for later, in which local labels and `.` keep meaning what they mean here."""
        return bind(node, self._fixed)

    def connect(self, owners: Mapping[str, Symbols], weak: Set[str], hidden: Mapping[str, str]) -> None:
        """From now on see what all files export: the symbols of the file that defines it, by name.

        Those in `weak` yield to another file's, and are 0 where no file defines them. `hidden` says by name where a
        file defines what it does not export.
        """
        self._owners, self._weak, self._hidden = owners, weak, hidden

    def owner(self, name: str) -> Symbols | None:
        """Return the symbols of the file whose definition of a name counts here, None where no file has one."""
        if name in self.values:
            return self._owners.get(name, self) if name in self._weak else self
        return None if name in self._constants else self._owners.get(name)

    def places(self) -> dict[str, Relative]:
        """Return where labels are, by name."""
        values = ((name, self.values[name]) for name in self.labels)
        return {name: value for name, value in values if isinstance(value, Relative)}

    def place_sections(self, bases: Sequence[int]) -> None:
        """From now on all addresses are numbers; `bases` are those of the sections."""
        self._bases = bases

    def final(self, node: Node) -> int:
        """Return an expression's value once sections are placed. Raises Problem for what is not defined."""
        self._chain = 0
        try:
            value = evaluate(node, self.lookup)
        except Unknown as unknown:
            raise Problem(self.unknown_message(unknown.name), unknown.column) from None
        if isinstance(value, Relative):
            raise Problem("this address has no value here", node.column)
        return value

    def number(self, node: Node, what: str) -> int:
        """Return a value that must be known here, for `what`. Raises Problem."""
        try:
            value = evaluate(node, self.lookup)
        except Unknown as unknown:
            name = "an address" if unknown.name == "address" else f"'{unknown.name}'"
            raise Problem(f"{what} must be known here, but {name} is not yet", unknown.column) from None
        if isinstance(value, Relative):
            raise Problem(f"{what} must be a number, found an address", node.column)
        return value

    def unknown_message(self, name: str) -> str:
        """Return the error for a symbol without value."""
        if name == "address":
            return "addresses can only be added to numbers and subtracted in one section"
        if name[0].isdigit():
            return f"local label '{name}' is not defined {'below' if name.endswith('f') else 'above'}"
        if name in self._hidden:
            return f"undefined symbol '{name}'; {self._hidden[name]}"
        known = dict.fromkeys((*self.values, *self._owners, *self._constants))
        near = get_close_matches(name, list(known), n=1, cutoff=0.75)
        return f"undefined symbol '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")

    def _settled(self, value: Value | Node, at: Node) -> Value:
        """Return a symbol's value; one set to an expression is evaluated now."""
        if not isinstance(value, Node):
            return self._placed(value) if isinstance(value, Relative) else value
        self._chain += 1
        if self._chain > MOST_CHAIN:
            raise Problem(f"'{at.name}' is set to itself, or over too many symbols", at.column)
        try:
            return evaluate(value, self.lookup)
        finally:
            self._chain -= 1

    def _otherwise(self, node: Node) -> int:
        """Return the value of a symbol that no file defines: a constant's, or 0 for a weak one. Raises Unknown."""
        constant = self._constants.get(node.name)
        if constant is not None:
            return constant
        if node.name in self._weak:
            return 0
        raise Unknown(node.name, node.column)

    def _placed(self, place: Relative) -> Value:
        return place if self._bases is None else self._bases[place.section] + place.offset

    def _local(self, node: Node) -> Value:
        """Return a local label: `1b`, the last one above; `1f`, once bound to its number, the next one below."""
        places = self.locals.get(node.value, [])
        spelled = f"{node.value}{node.name[0]}"
        if node.kind == "instance":
            index = int(node.name[1:])
        elif node.name == "b":
            index = len(places) - 1
        else:
            index = len(places)
        if not 0 <= index < len(places):
            raise Unknown(spelled, node.column)
        return self._placed(places[index])

    def _fixed(self, node: Node) -> Node:
        if node.kind == ".":
            return Node("place", self.here.offset, str(self.here.section), node.column)
        count = len(self.locals.get(node.value, []))
        return Node("instance", node.value, f"{node.name}{count - (node.name == 'b')}", node.column)
