"""Is the program of an operator right under its plan? Statements are read in order, and windows move as they say.

Nothing here knows the order in which the planner writes loops: every order of sub-tasks is right in which the windows
stand where each sub-task reads them. That windows *can* move from position to position is proven of the plan
(`rotation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod

from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement, SubTask
from t10.core.schedule import ScheduledOperator
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import last_positions, output_replicas

Body = tuple[Statement, ...]
MOST_SUB_TASKS = 1 << 22
"""No program is longer; a plan that implies more is not walked."""


def body_violations(spec: OperatorSpec, scheduled: ScheduledOperator) -> list[Violation]:
    """Return what is wrong with an operator's program; expects that its plan is right."""
    plan, body = scheduled.active.plan, scheduled.body
    found = [
        *_arrive_rules(spec, scheduled),
        *_sub_task_rules(spec, plan, body),
        *_once_rules(spec, plan, body),
        *_order_rules(spec, body),
    ]
    return found or list(_window_rules(spec, scheduled))


def ends_at(spec: OperatorSpec, body: Body) -> list[list[int]]:
    """Return the positions of every rotatable operand's windows after a program, per axis."""
    positions = [[0] * len(spec.axes) for _ in spec.rotatable]
    for statement in body:
        if isinstance(statement, Shift):
            for number in statement.operands:
                positions[number][statement.axis] = statement.stop
    return positions


def _arrive_rules(spec: OperatorSpec, scheduled: ScheduledOperator) -> Iterator[Violation]:
    """Each operand that is copied to its cores arrives once, and no other."""
    found = sorted(s.operand for s in scheduled.body if isinstance(s, Arrive))
    due = sorted(arrival.operand for arrival in scheduled.arrivals if arrival.kind != "in_place")
    if found != due:
        yield Violation(spec.name, "arrive", f"operands {found} are copied to their cores", f"{due}")


def _sub_task_rules(spec: OperatorSpec, plan: OperatorPlan, body: Body) -> Iterator[Violation]:
    """Sub-tasks are all positions of the loops, each once."""
    if prod(plan.steps) > MOST_SUB_TASKS:
        yield Violation(spec.name, "sub-tasks", f"{prod(plan.steps)} positions", f"at most {MOST_SUB_TASKS}")
        return
    found = Counter(s.positions for s in body if isinstance(s, SubTask))
    due = Counter(product(*(range(n) for n in plan.steps)))
    if found != due:
        missing, extra = list((due - found).elements()), list((found - due).elements())
        text = f"{sum(found.values())} sub-tasks"
        text += f", none at {list(missing[0])}" if missing else ""
        text += f", one too many at {list(extra[0])}" if extra else ""
        yield Violation(spec.name, "sub-tasks", text, f"{sum(due.values())}, each box once")


def _once_rules(spec: OperatorSpec, plan: OperatorPlan, body: Body) -> Iterator[Violation]:
    """Accumulators are filled, partial results combined and the epilogue run where needed, and then once."""
    is_combined = spec.combine != "none" and output_replicas(spec, plan) > 1
    needed = (
        ("fill", Fill, spec.combine != "none"),
        ("reduce", Reduce, is_combined),
        ("epilogue", Epilogue, spec.epilogue is not None or is_combined),
    )
    for rule, kind, is_needed in needed:
        found = sum(isinstance(statement, kind) for statement in body)
        if found != is_needed:
            yield Violation(spec.name, rule, f"{found} statements", f"{int(is_needed)}")
    for statement in body:
        if isinstance(statement, Reduce) and statement.mode != plan.reduce:
            yield Violation(spec.name, "reduce", f"mode '{statement.mode}'", f"'{plan.reduce}'")


def _order_rules(spec: OperatorSpec, body: Body) -> Iterator[Violation]:
    """Operands arrive first; accumulators are filled, added to, moved, then combined; the epilogue is last."""
    n_inputs = len(spec.inputs)
    stages: list[int] = []
    for statement in body:
        match statement:
            case Arrive():
                stages.append(0)
            case Fill():
                stages.append(1)
            case SubTask():
                stages.append(2)
            case Shift(operands):
                # Inputs may move whenever they lie there; an accumulator moves between being filled and combined.
                is_free = n_inputs not in operands and stages and stages[-1] > 0
                stages.append(stages[-1] if is_free and stages[-1] < 4 else 2)
            case Reduce():
                stages.append(3)
            case Epilogue():
                stages.append(4)
    if stages != sorted(stages):
        late = next(i for i in range(1, len(stages)) if stages[i] < stages[i - 1])
        found = f"{type(body[late]).__name__} after {type(body[late - 1]).__name__}"
        yield Violation(
            spec.name, "order", found, "arrivals, fill, sub-tasks and shifts, reduction, epilogue"
        )


def _window_rules(spec: OperatorSpec, scheduled: ScheduledOperator) -> Iterator[Violation]:
    """Windows stand where shifts begin and sub-tasks read, and end where the result and resident weights are due."""
    plan, body = scheduled.active.plan, scheduled.body
    positions = [[0] * len(spec.axes) for _ in spec.rotatable]
    rotating = [[axis for axis, t in enumerate(row) if t > 1] for row in plan.ft]

    def away(number: int, due: AxisSizes) -> str:
        """Return where windows stand otherwise than at `due`, "" where they do not."""
        now = positions[number]
        return next(
            (
                f"{spec.rotatable[number].name} at position {now[axis]} of {spec.axes[axis].name}"
                for axis in rotating[number]
                if now[axis] != due[axis]
            ),
            "",
        )

    for statement in body:
        if isinstance(statement, SubTask):
            wrong = next(filter(None, (away(n, statement.positions) for n in range(len(positions)))), "")
            if wrong:
                yield Violation(spec.name, "residence", wrong, f"the sub-task at {list(statement.positions)}")
                return
        if isinstance(statement, Shift):
            wrong = _wrong_shift(plan, statement, rotating)
            wrong = wrong or next(
                filter(None, (away(n, statement.positions) for n in statement.operands)), ""
            )
            if wrong:
                yield Violation(spec.name, "shift", wrong, "one position on from where the windows stand")
                return
            for number in statement.operands:
                positions[number][statement.axis] = statement.stop
    wrong = away(len(spec.inputs), last_positions(plan))
    if wrong:
        yield Violation(spec.name, "result", wrong, "where the output's layout has it")
    for arrival in scheduled.arrivals:
        is_input = arrival.operand < len(spec.inputs)
        if arrival.is_resident and is_input and any(positions[arrival.operand]):
            found = f"{spec.inputs[arrival.operand].name} ends at {positions[arrival.operand]}"
            yield Violation(spec.name, "home", found, f"where it rests in {arrival.buffer}")


def _wrong_shift(plan: OperatorPlan, shift: Shift, rotating: list[list[int]]) -> str:
    """Return what no shift can be: of no operand or one twice, along an axis it does not rotate on, or too far."""
    if not shift.operands or len(set(shift.operands)) != len(shift.operands):
        return f"a shift of operands {list(shift.operands)}"
    if any(not 0 <= n < len(rotating) or shift.axis not in rotating[n] for n in shift.operands):
        return f"operands {list(shift.operands)} along axis {shift.axis}, where one does not rotate"
    if len(shift.positions) != len(plan.steps):
        return f"a shift from {list(shift.positions)}"
    here, n_steps = shift.positions[shift.axis], plan.steps[shift.axis]
    if (shift.stop - here) % n_steps not in (1, n_steps - 1) or not 0 <= shift.stop < n_steps:
        return f"a shift from position {here} to {shift.stop} of {n_steps}"
    return ""
