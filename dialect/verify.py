"""Checks of layouts, plans and spaces wherever they stand.

The bindings do not verify an encoding on a function argument or on a value of another dialect's operation, nor an
attribute on a linalg op; `verify_layouts` walks a module and does, after parsing and after every pass of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t10.core.legal import Expression
from t10.dialect.expression import expression_of, root_of
from t10.dialect.layout_attr import layout_of
from t10.dialect.mlir import ir, walk
from t10.dialect.ods import Invalid
from t10.dialect.plan import check_plan
from t10.dialect.plan_attributes import forced_of, plan_of, space_of
from t10.dialect.rtensor import CANDIDATES, FORCED, PLAN, SPACE, PlanAttr, SpaceAttr
from t10.dialect.space import check_space

AttributeCheck = Callable[[Any, Expression | None], str | None]
"""Returns what is wrong with an attribute, to follow its name, or None."""


def verify_layouts(module: Any) -> bool:
    """Return whether every layout, plan and space of `module` satisfies its rules; emits located errors where not."""
    checker = _Checker()
    for op in walk(module):
        checker.check(op.operation)
    return checker.n_errors == 0


class _Checker:
    """One walk: remembers the types it has seen, since a module has few and uses them often."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.n_errors = 0
        self._problem_by_type: dict[Any, str | None] = {}
        self._problem_by_attribute: dict[tuple[Any, Expression | None], str | None] = {}

    def check(self, op: Any) -> None:
        """Check all types and attributes of one operation."""
        self._check_types(op)
        if op.name == "func.func":
            self._check_function(op)
        for name, check in ((PLAN, _plan_problem), (SPACE, _space_problem), (FORCED, _forced_problem)):
            if name in op.attributes:
                self._report(op, self._attribute_problem(op.attributes[name], _expression(op), name, check))
        if CANDIDATES in op.attributes:
            self._check_candidates(op)

    def _check_types(self, op: Any) -> None:
        """Check the layouts of results and of block arguments (a function's are checked with its type)."""
        for i, result in enumerate(op.results):
            self._report(op, self._problem(result.type), f"result #{i}")
        if op.name == "func.func":
            return
        for region in op.regions:
            for block in region.blocks:
                for i, argument in enumerate(block.arguments):
                    self._report(op, self._problem(argument.type), f"region argument #{i}")

    def _check_function(self, op: Any) -> None:
        """Check the layouts in a function's signature."""
        type_ = op.attributes["function_type"].value
        for what, types in (("argument", type_.inputs), ("result", type_.results)):
            for i, inner in enumerate(types):
                self._report(op, self._problem(inner), f"{what} #{i}")

    def _check_candidates(self, op: Any) -> None:
        """Check an array of plans."""
        candidates = op.attributes[CANDIDATES]
        if not isinstance(candidates, ir.ArrayAttr):
            self._report(op, f"{CANDIDATES} is {candidates}, expected an array of #rtensor.plan")
            return
        expression = _expression(op)
        for i, plan in enumerate(candidates):
            self._report(op, self._attribute_problem(plan, expression, f"{CANDIDATES}[{i}]", _plan_problem))

    def _attribute_problem(
        self, attr: Any, expression: Expression | None, name: str, check: AttributeCheck
    ) -> str | None:
        """Return what is wrong with an attribute, or None; layers repeat, and so do their plans."""
        key = (attr, expression)
        if key not in self._problem_by_attribute:
            self._problem_by_attribute[key] = check(attr, expression)
        problem = self._problem_by_attribute[key]
        return None if problem is None else f"{name}{problem}"

    def _problem(self, type_: Any) -> str | None:
        """Return what is wrong with the layout of a type, or None."""
        if type_ not in self._problem_by_type:
            self._problem_by_type[type_] = _layout_problem(type_)
        return self._problem_by_type[type_]

    def _report(self, op: Any, problem: str | None, where: str = "") -> None:
        """Emit an error at an operation if there is a problem."""
        if problem is None:
            return
        self.n_errors += 1
        op.location.emit_error(f"'{op.name}' op {where}{': ' if where else ''}{problem}")


def _layout_problem(type_: Any) -> str | None:
    """Return what is wrong with the layout of a type, or None."""
    try:
        layout_of(type_)
    except Invalid as problem:
        return str(problem)
    return None


def _plan_problem(attr: Any, expression: Expression | None) -> str | None:
    """Return what is wrong with a plan attribute, to follow the attribute's name, or None."""
    if not isinstance(attr.maybe_downcast(), PlanAttr):
        return f" is {attr}, expected #rtensor.plan<{{...}}>"
    try:
        check_plan(plan_of(attr), expression)
    except Invalid as problem:
        return f": {problem}"
    return None


def _space_problem(attr: Any, expression: Expression | None) -> str | None:
    """Return what is wrong with a space attribute, to follow the attribute's name, or None."""
    if not isinstance(attr.maybe_downcast(), SpaceAttr):
        return f" is {attr}, expected #rtensor.space<{{...}}>"
    try:
        check_space(space_of(attr), expression)
    except Invalid as problem:
        return f": {problem}"
    return None


def _forced_problem(attr: Any, expression: Expression | None) -> str | None:
    """Return what is wrong with the form of what a user forces; whether an operator has such plans, planning says."""
    del expression
    try:
        check_plan(forced_of(attr).plan)
    except Invalid as problem:
        return f": {problem}"
    return None


def _expression(op: Any) -> Expression | None:
    """Return the expression of an operator's root, if it has one that can be read."""
    root = root_of(op)
    return None if root is None else expression_of(root)
