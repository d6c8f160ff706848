"""Codelets: code for one kind of task, its vertex fields, and the words that make it compute one particular task.

A vertex is 32-bit words in the memory of its tile, one per field in order; a pointer is an absolute address. The entry
symbol of codelet `NAME` is `__runCodelet_t10__NAME`: class `t10::NAME` for the Poplar SDK.

- `multi`: the code is launched on all six workers with the same state in `$mvertex_base`; each takes its share by its
  worker number and ends with `exitz $mzero`.
- `supervisor`: called with the state's address in `$m0`; preserves `$m9`, `$m10`, `$sp`; returns with `br $lr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from t10.errors import T10Error

FieldKind = Literal["in", "out", "inout", "scratch", "u32", "i32", "f32"]
CodeletKind = Literal["multi", "supervisor"]
POINTERS: frozenset[FieldKind] = frozenset(("in", "out", "inout", "scratch"))
ENTRY_PREFIX = "__runCodelet_t10__"
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq half main
"""
CPP_WORDS = frozenset(_WORDS.split())
"""What no name in a program may be: words of C++, a type of Poplar, and `main`."""
_OF_VERTICES = frozenset(("compute", "one_share", "part", "view", "worker"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def why_no_field(name: str) -> str:
    """Return why a field of a vertex cannot have a name, nothing where it can: it becomes a member of a C++ class."""
    if not _NAME.fullmatch(name) or "__" in name:
        return "expected letters, digits and single underscores, no digit first"
    if name in CPP_WORDS:
        return "C++ or Poplar has that word"
    return "vertices use that name themselves" if name in _OF_VERTICES else ""


@dataclass(frozen=True, slots=True)
class Field:
    """One word of a vertex's state.

    Pointers (`in`, `out`, `inout`: elements of `dtype`, MLIR's name; `scratch`: bytes that belong to no tensor) demand
    alignment to `align_bytes`, and the interleaved memory region where `is_interleaved`.
    """

    name: str
    kind: FieldKind
    dtype: str = ""
    align_bytes: int = 4
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Codelet:
    """Code for one kind of task.

    `assembly` defines the entry symbol (text for `t10.isa`, a section per codelet); `cpp_reference` is the body of the
    C++ method `bool compute(unsigned worker)` that computes the same from the same fields (for machines without the
    assembly; it is called once per worker number for `multi`, once with 0 for `supervisor`, and divides the work
    accordingly).
    `apart` are pairs of field names that must lie in different memory elements.
    """

    name: str
    kind: CodeletKind
    fields: tuple[Field, ...]
    assembly: str
    cpp_reference: str
    summary: str
    stack_bytes: int = 0
    apart: tuple[tuple[str, str], ...] = ()
    is_cpp: bool = False
    """It is the code on an IPU too; `assembly` stands in for it on our simulator only."""

    def __hash__(self) -> int:
        """Hash the name, which few codelets share."""
        return hash(self.name)

    @property
    def entry(self) -> str:
        """Return the symbol of the first instruction."""
        return ENTRY_PREFIX + self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """A word: the address of a task's operand (inputs first, then the output), plus bytes."""

    operand: int
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Scratch:
    """A word: the address of the tile's scratch memory, plus bytes."""

    offset_bytes: int = 0


Word = int | float | Pointer | Scratch


@dataclass(frozen=True, slots=True)
class Compiled:
    """A task as code: the codelet, one word per field, and the scratch bytes it needs on the tile (8-byte aligned)."""

    codelet: Codelet
    words: tuple[Word, ...]
    scratch_bytes: int = 0


def by_name(codelets: Iterable[Codelet]) -> dict[str, Codelet]:
    """Return codelets by name; raises `T10Error` where two of one name differ in code or fields."""
    found: dict[str, Codelet] = {}
    for codelet in codelets:
        if found.setdefault(codelet.name, codelet) != codelet:
            raise T10Error(
                f"two codelets are named {codelet.name} but differ (expected the same fields and code)"
            )
    return found
