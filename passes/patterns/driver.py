"""Runs rewrite patterns on MLIR's greedy driver until none matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from t10.dialect import mlir

MOST_ROUNDS = 1 << 12
"""Of rewriting until nothing changes: a long chain of operations that turn out to be constant takes one for each."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A local rewrite of operations named `root`.

    `rewrite` takes such an operation and the rewriter, which makes every edit; returns whether it changed anything.
    """

    root: str
    rewrite: Callable[[Any, Any], bool]


def apply_patterns(op: Any, patterns: Iterable[Pattern], *, fold: bool = False) -> None:
    """Rewrite what is inside `op` (a function or module); operations without use and effect are erased.

    With `fold`, operations on constants are folded too, and equal constants become one; without, nothing else changes.
    Needs a current context.
    """
    found = mlir.rewrite.RewritePatternSet()
    for pattern in patterns:
        found.add(pattern.root, _callback(pattern))
    config = mlir.rewrite.GreedyRewriteConfig()
    config.enable_folding = fold
    config.enable_constant_cse = fold
    config.max_iterations = MOST_ROUNDS
    config.region_simplification_level = mlir.rewrite.GreedySimplifyRegionLevel.DISABLED
    mlir.rewrite.apply_patterns_and_fold_greedily(op.operation, found.freeze(), config)


def replace(rewriter: Any, op: Any, operands: list[Any]) -> None:
    """Replace an operation by one of the same name, attributes and result types that reads other operands."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    types = [result.type for result in op.results]
    with op.location, rewriter.ip:
        made = mlir.ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
    rewriter.replace_op(op, made)


def maker(value: Any, *names: str) -> Any:
    """Return the operation that makes a value if it has one of the names, else None."""
    owner = value.owner
    if isinstance(owner, mlir.ir.Block) or owner.operation.name not in names:
        return None
    return owner.operation


def _callback(pattern: Pattern) -> Callable[[Any, Any], bool]:
    """Return a callback of the bindings: it returns true where nothing matched."""
    return lambda op, rewriter: not pattern.rewrite(op.operation, rewriter)
