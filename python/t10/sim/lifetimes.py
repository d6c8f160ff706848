"""When buffers live: from phase to phase of the operator steps, as the plan says."""

from __future__ import annotations

from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, Buffer, ModulePlan, Phase, moment
from t10.sim.memory import CoreMemory
from t10.sim.traps import trap


class Lifetimes:
    """Lets the buffers of a plan live and die in a memory as time goes on."""

    def __init__(self, plan: ModulePlan, memory: CoreMemory) -> None:
        """Keep what begins, in order; nothing lives yet."""
        self.memory = memory
        self.names = frozenset(buffer.name for buffer in plan.buffers)
        self._coming = sorted(plan.buffers, key=lambda b: (-b.first_moment, b.name))
        self._live: list[Buffer] = []

    def enter(self, step: int, phase: Phase) -> tuple[tuple[str, str], ...]:
        """Let buffers die whose last moment is over, and those live that begin now.

        Returns (buffer, what it takes over) for those that begin on the bytes of one that ends in this phase.
        """
        now = moment(step, phase)
        for buffer in self._live:
            if buffer.last_moment < now:
                self.memory.end(buffer.name)
        self._live = [buffer for buffer in self._live if buffer.last_moment >= now]
        taken: list[tuple[str, str]] = []
        while self._coming and self._coming[-1].first_moment <= now:
            buffer = self._coming.pop()
            before = self._ending_there(buffer, now)
            self.memory.begin(buffer, before)
            self._live.append(buffer)
            if before:
                taken.append((buffer.name, before))
        return tuple(taken)

    def _ending_there(self, buffer: Buffer, now: int) -> str:
        """Return the name of a buffer that lies where one that begins now does, and ends now; "" if there is none."""
        for old in self._live:
            same = (old.address_bytes, old.size_bytes) == (buffer.address_bytes, buffer.size_bytes)
            if same and old.last_moment == now == buffer.first_moment and buffer.size_bytes:
                return old.name
        return ""


def check_taken_over(
    spec: OperatorSpec,
    plan: OperatorPlan,
    arrivals: tuple[Arrival, ...],
    phase: Phase,
    taken: tuple[tuple[str, str], ...],
    *,
    is_combined: bool,
) -> None:
    """Raise a trap unless what begins on an operand's bytes replaces every slot after it was read for the last time.

    Only the result may, where it is written from operands whose slot i goes into its slot i and nowhere else.
    """
    n_inputs = len(spec.inputs)
    for name, old in taken:
        wrong = f"buffer {name} takes over {old}"
        readers = [a for a in arrivals if a.buffer == old and (a.operand >= n_inputs) == (phase == "finish")]
        if name != f"value:{spec.output.name}" or not readers or is_combined:
            raise trap(f"{wrong}, whose slots it does not replace one by one")
        for arrival in readers:
            operand = spec.operands[arrival.operand]
            is_once = phase == "finish" or (
                spec.combine == "none" and max(*plan.ft[arrival.operand], *plan.ft[-1]) == 1
            )
            if arrival.kind != "in_place" or not is_once or operand.dims != spec.output.dims:
                raise trap(f"{wrong}, but operand {operand.name} is read there for other slots too")
