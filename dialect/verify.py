"""Checks of layouts and plans wherever they stand.

The bindings do not verify an encoding on a function argument or on a value of another dialect's operation, nor an
attribute on a linalg op; `verify_layouts` walks a module and does, after parsing and after every pass of ours.
"""

from __future__ import annotations

from typing import Any

from t10.dialect.attributes import to_python
from t10.dialect.expression import expression_of, root_of
from t10.dialect.layout_attr import layout_of
from t10.dialect.mlir import ir, walk
from t10.dialect.ods import Invalid
from t10.dialect.plan import Expression, check_plan
from t10.dialect.rtensor import CANDIDATES, PLAN, PlanAttr


def verify_layouts(module: Any) -> bool:
    """Return whether every layout and every plan of `module` satisfies its rules; emits located errors where not."""
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
        self._problem_by_plan: dict[tuple[Any, Expression | None], str | None] = {}

    def check(self, op: Any) -> None:
        """Check all types and attributes of one operation."""
        self._check_types(op)
        if op.name == "func.func":
            self._check_function(op)
        if PLAN in op.attributes:
            self._report(op, self._plan_problem(op.attributes[PLAN], _expression(op), PLAN))
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
            self._report(op, self._plan_problem(plan, expression, f"{CANDIDATES}[{i}]"))

    def _plan_problem(self, attr: Any, expression: Expression | None, name: str) -> str | None:
        """Return what is wrong with a plan attribute, or None; layers repeat, and so do their plans."""
        key = (attr, expression)
        if key not in self._problem_by_plan:
            self._problem_by_plan[key] = _plan_problem(attr, expression)
        problem = self._problem_by_plan[key]
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
    attr = attr.maybe_downcast()
    if not isinstance(attr, PlanAttr):
        return f" is {attr}, expected #rtensor.plan<{{...}}>"
    try:
        check_plan(to_python(attr.fields), expression)
    except Invalid as problem:
        return f": {problem}"
    return None


def _expression(op: Any) -> Expression | None:
    """Return the expression of an operator's root, if it has one that can be read."""
    root = root_of(op)
    return None if root is None else expression_of(root)
