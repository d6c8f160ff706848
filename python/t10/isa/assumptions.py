"""What the simulator assumes beyond single instructions, where public sources are silent."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.tile import IPU_MEMORY


@dataclass(frozen=True, slots=True)
class Assumption:
    """A topic, what is assumed of it, and what public sources do say."""

    topic: str
    assumed: str
    known: str


ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "worker timing",
        "A worker issues every 6 clocks whatever the others do. A taken branch costs its slot only.",
        "Six slots in turn; results are there for the next bundle. Stalls by contention are not public.",
    ),
    Assumption(
        "functions of several slots",
        "As many slots as the worst case of published estimates; a bundle takes as long as its longer half.",
        "Estimates name ranges for some (`f32div` 3 to 4, `f16v2tanh` 1 to 2).",
    ),
    Assumption(
        "supervisor timing",
        "One instruction a clock; an operand is there 6 clocks after its maker was issued; a taken branch takes 6. It "
        "stands still from `runall` until the first worker ends, and then runs as if alone.",
        "It gets the slots that workers leave; figures of 6 for each of these are published.",
    ),
    Assumption(
        "launch",
        "Six clocks from `runall` to the first slots, six from the last exit to `sync`'s end: 12 around the longest "
        "worker, which is also the price of a vertex that runs on all workers without supervisor code.",
        "`runall` 6; `sync` resumes 6 or more clocks after the last exit.",
    ),
    Assumption(
        "order of workers",
        "Workers run one after another to their ends, or in turns, a bundle each, on request. Neither order is the "
        "hardware's: code must not depend on it.",
        "No order is promised. Two workers writing into one word can be made a trap (`watch_writes`).",
    ),
    Assumption(
        "memory banks",
        "Accesses of one instruction conflict in one bank even at the same address; those of different workers never "
        "do, nor with instruction fetch or the exchange. A misaligned access is an INVALID_ADDR.",
        f"An access per bank and clock; banks of {IPU_MEMORY.element_bytes // 1024} KiB below "
        f"{IPU_MEMORY.interleaved_base:#x}, pairs of them above, told apart by bit 3.",
    ),
    Assumption(
        "initial state",
        "Registers, accumulators and weights hold NaN patterns until written; all keep their values from one "
        "vertex to the next. Registers without storage read as zero.",
        "Registers are not cleared at launch; accumulators must be taken to be stale.",
    ),
    Assumption(
        "control of floating point",
        "FP_ICTL begins as zero, the mode that program.cpp sets: no exceptions, nearest even, no stochastic rounding, "
        "f16 saturates. Only NANOO may be changed; FP_STS reads as zero.",
        "Fields and their places are public, the reset value is not.",
    ),
    Assumption(
        "accumulators of the matrix engine",
        "Sums in progress are AACC[16s + 2m], the queue AACC[16s + 2m + 1], for unit m of set s.",
        "Both live in the accumulators; which is where is derived from code that drains them.",
    ),
    Assumption(
        "order of products",
        "Within a step products are added to the sum one after another, lane 0 first, every sum rounded to f32.",
        "Products are kept exact and added in one wide adder; where it rounds is not public.",
    ),
    Assumption(
        "exit status",
        "Has no effect.",
        "It goes into a consensus of the workers by a rule that is not public.",
    ),
)
