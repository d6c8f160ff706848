"""The value of `#rtensor.grid`: how the points of one operator lie on the cores and in time.

```
#rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1],
               phases = [[], [], [[3, 1, 2, 0], [2, 1, 3, 1]]]}>
```

is the grid of `C[m, n] += A[m, k] * B[k, n]` on 2 * 3 cores that run three sub-tasks along k, 6 / 3 = 2 points each:

```
for every core s = (s_m, s_n, s_k):            # s_a < f_op[a]; numbered row-major over core_order
  for p_k in range(steps[k]):                  # the position along k
    compute m in [s_m, + 1), n in [s_n, + 1), k in [phase_k(s) + 2 * p_k, + 2) mod 6
```

Source: compute-shift model §2 to §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from t10.core.expression import AxisSizes
from t10.core.legal import Breach, phase_breaches, row_breaches
from t10.core.plan import OperatorPlan, PhaseTerm, Reduce
from t10.dialect.attributes import Decoded, entries_of, int_tuple, refuse_unknown, required, spelled
from t10.dialect.ods import Invalid

KEYS = ("f_op", "lengths", "steps", "loop_order", "core_order", "phases")


@dataclass(frozen=True, slots=True)
class Grid:
    """How the points of an operator lie on the cores and in time; see the module's docstring.

    Per axis: `f_op` parts, `lengths` indices of one part, `steps` sub-tasks along it, `phases` terms whose sum modulo
    the length is where a core starts. `loop_order` names the axes of several steps, outermost first; `core_order` those
    of several parts, slowest first.
    """

    f_op: AxisSizes
    lengths: AxisSizes
    steps: AxisSizes
    loop_order: AxisSizes
    core_order: AxisSizes
    phases: tuple[tuple[PhaseTerm, ...], ...]

    def __post_init__(self) -> None:
        """Check the rules; raises `Invalid`."""
        n_axes = len(self.f_op)
        rows = {"f_op": self.f_op, "lengths": self.lengths, "steps": self.steps}
        _require(row_breaches(rows, n_axes))
        for axis, (length, steps) in enumerate(zip(self.lengths, self.steps, strict=True)):
            if length % steps:
                raise Invalid(f"grid steps[{axis}] = {steps} does not divide lengths[{axis}] = {length}")
        _check_order("loop_order", self.loop_order, [a for a in range(n_axes) if self.steps[a] > 1])
        _check_order("core_order", self.core_order, [a for a in range(n_axes) if self.f_op[a] > 1])
        _require(phase_breaches(self.phases, self.f_op, self.lengths, self.steps))

    @property
    def n_cores(self) -> int:
        """Return the number of cores that work."""
        return prod(self.f_op)

    @property
    def n_steps(self) -> int:
        """Return the number of sub-tasks of every core."""
        return prod(self.steps)

    def pace(self, axis: int) -> int:
        """Return rp, the indices by which what rotates along an axis moves; 0 where nothing does."""
        return self.lengths[axis] // self.steps[axis] if self.steps[axis] > 1 else 0

    def plan(self, ft: tuple[AxisSizes, ...], reduce: Reduce = "none") -> OperatorPlan:
        """Return the plan of an operator on this grid; `ft` are the temporal factors of its inputs and its output."""
        still = tuple(axis for axis, parts in enumerate(self.f_op) if parts == 1)
        return OperatorPlan(
            f_op=self.f_op,
            lengths=self.lengths,
            ft=ft,
            rp=tuple(self.pace(axis) for axis in range(len(self.f_op))),
            steps=self.steps,
            loop_order=self.loop_order,
            phases=self.phases,
            core_order=(*still, *self.core_order),
            reduce=reduce,
        )


def grid_of(plan: OperatorPlan) -> Grid:
    """Return the grid of a plan."""
    return Grid(
        f_op=plan.f_op,
        lengths=plan.lengths,
        steps=plan.steps,
        loop_order=plan.loop_order,
        core_order=plan.cut_order,
        phases=plan.phases,
    )


def grid_fields(grid: Grid) -> dict[str, object]:
    """Return the fields of `#rtensor.grid`; `read_grid` reads them back."""
    return {
        "f_op": grid.f_op,
        "lengths": grid.lengths,
        "steps": grid.steps,
        "loop_order": grid.loop_order,
        "core_order": grid.core_order,
        "phases": tuple(tuple(_flat(term) for term in terms) for terms in grid.phases),
    }


def read_grid(fields: Mapping[str, Decoded]) -> Grid:
    """Return the grid spelled by a decoded attribute; raises `Invalid`."""
    refuse_unknown(fields, KEYS, "grid")
    rows = {key: int_tuple(required(fields, key, "grid"), key) for key in KEYS if key != "phases"}
    phases = required(fields, "phases", "grid")
    axes = entries_of(phases)
    if axes is None:
        raise Invalid(f"grid phases is {spelled(phases)}, expected one array of terms per axis")
    return Grid(**rows, phases=tuple(_terms(axis, terms) for axis, terms in enumerate(axes)))


def _terms(axis: int, terms: Decoded) -> tuple[PhaseTerm, ...]:
    rows = entries_of(terms)
    if rows is None:
        raise Invalid(f"grid phases[{axis}] is {spelled(terms)}, expected an array of terms")
    return tuple(_term(int_tuple(row, f"phases[{axis}]")) for row in rows)


def _term(row: tuple[int, ...]) -> PhaseTerm:
    """Return the phase term spelled by a row."""
    if len(row) < 3:
        raise Invalid(f"phase term {list(row)}, expected [stride, divisor, modulus, sharer axes ...]")
    return PhaseTerm(row[3:], divisor=row[1], modulus=abs(row[2]), stride=row[0], is_folded=row[2] < 0)


def _flat(term: PhaseTerm) -> tuple[int, ...]:
    """Return the spelling of a phase term: [stride, divisor, modulus, sharer axes ...]."""
    modulus = -term.modulus if term.is_folded else term.modulus
    return (term.stride, term.divisor, modulus, *term.sharer_axes)


def _require(found: Iterator[Breach]) -> None:
    breach = next(found, None)
    if breach is not None:
        raise Invalid(f"grid {breach}")


def _check_order(name: str, found: AxisSizes, expected: list[int]) -> None:
    if sorted(found) != expected:
        which = "several steps" if name == "loop_order" else "several parts"
        raise Invalid(f"grid {name} = {list(found)}, expected every axis of {which} once, here {expected}")
