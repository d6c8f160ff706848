"""One operator on all cores: its compute-shift program, statement by statement."""

from __future__ import annotations

from typing import assert_never

from t10.core.overlap import second_name
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement, SubTask
from t10.core.schedule import PHASES, Home, Phase
from t10.errors import SimTrap
from t10.sim import statements
from t10.sim.execution import Execution
from t10.sim.lifetimes import check_taken_over
from t10.sim.traps import trap


def run_operator(run: Execution) -> Home:
    """Execute an operator and return where its result lies. Raises `SimTrap` naming the operator."""
    try:
        return _run(run)
    except SimTrap as error:
        if error.operator is None:
            error.operator = run.spec.name
        raise


def _run(run: Execution) -> Home:
    n_cores, present = run.plan.n_cores, run.machine.memory.n_cores
    if n_cores > present:
        raise trap(f"the plan uses {n_cores} cores of a chip with {present}")
    for number, operand in enumerate(run.spec.operands):
        if number not in run.arrivals:
            raise trap(f"operand {operand.name} never arrives")
    for arrival in run.scheduled.arrivals:
        if arrival.kind == "in_place":
            statements.take_in_place(run, arrival)
    for statement in run.scheduled.body:
        _enter(run, _phase_of(statement))
        _execute(run, statement)
    _enter(run, "finish")
    _leave_inputs(run)
    return run.result


def _phase_of(statement: Statement) -> Phase:
    """Return the phase of an operator step in which a statement runs."""
    match statement:
        case Arrive():
            return "arrive"
        case Fill() | SubTask() | Shift() | Reduce():
            return "nest"
        case Epilogue():
            return "finish"
        case _:
            assert_never(statement)


def _execute(run: Execution, statement: Statement) -> None:
    if run.is_finished:
        raise run.trap("a statement after the epilogue")
    match statement:
        case Arrive():
            statements.arrive(run, statement)
        case Fill():
            statements.fill(run, statement)
        case SubTask():
            statements.sub_task(run, statement)
        case Shift():
            statements.shift_windows(run, statement)
        case Reduce():
            statements.reduce(run, statement)
        case Epilogue():
            statements.epilogue(run)
        case _:
            assert_never(statement)


def _enter(run: Execution, phase: Phase) -> None:
    """Enter the phases up to `phase`; time does not go back."""
    now, then = PHASES.index(run.phase), PHASES.index(phase)
    if then < now:
        raise run.trap(f"a statement of phase '{phase}' in phase '{run.phase}'")
    for number in range(now + 1, then + 1):
        run.phase = PHASES[number]
        _begin_phase(run)


def _begin_phase(run: Execution) -> None:
    """Let buffers live and die, and check that those exist which the phase uses."""
    machine, spec, arrivals = run.machine, run.spec, run.scheduled.arrivals
    taken = machine.lifetimes.enter(run.number, run.phase)
    is_combined = any(isinstance(statement, Reduce) for statement in run.scheduled.body)
    check_taken_over(spec, run.plan, arrivals, run.phase, taken, is_combined=is_combined)
    if run.phase == "nest":
        for number, operand in enumerate(spec.operands):
            if number not in run.operands:
                raise run.trap(f"operand {operand.name} never arrives")
        machine.memory.check_live(arrival.buffer for arrival in arrivals)
        statements.make_accumulator(run)
        statements.make_second_windows(run)
        return
    buffers = [arrival.buffer for arrival in arrivals if arrival.operand >= run.output_slot]
    machine.memory.check_live((run.accumulator_buffer, *buffers))


def _leave_inputs(run: Execution) -> None:
    """Check that weights lie where the next run expects them; drop the record of where rotated activations lie."""
    for number, operand in enumerate(run.spec.inputs):
        arrival = run.arrivals[number]
        if arrival.is_resident and number in run.in_second:
            raise run.trap(
                f"weight {operand.name} ends in {second_name(run.spec.name)}, not in {arrival.buffer}"
            )
        if arrival.kind != "in_place" or not any(run.positions[number]):
            continue
        if arrival.is_resident:
            raise run.trap(f"weight {operand.name} does not return to where it rests in {arrival.buffer}")
        run.machine.mover.forget(operand.name)
