"""Times and registers for a draft, and what the loop along a row costs then."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t10.codelets.assembly import LARGEST_REPEAT_BODY
from t10.codelets.body.code import Code
from t10.codelets.body.far import FAR_MARK
from t10.codelets.body.pipeline import Pipeline, least_interval, pipelined, straight
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction
from t10.codelets.vector.access import pointer
from t10.codelets.vector.draft import Draft
from t10.codelets.vector.layout import WordLayout, in_pack, layout
from t10.codelets.vector.nest import Effort, RowNest, slots_of
from t10.codelets.vector.registers import Pins, pin

MOST_STAGES, MOST_STAGES_DRAINED = 3, 2
"""Iterations under way: loads run at most two of them past a row's end; or none, and the last is drained."""
Bundles = tuple[tuple[str, str], ...]
"""Main and aux instructions that issue together."""


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A draft with times and registers. `slots` are the issue slots of one turn of the loop along a row."""

    draft: Draft
    pins: Pins
    pipeline: Pipeline
    slots: int
    over_points: dict[int, int]
    once: Bundles
    per_row: Bundles
    single: Bundles

    def layout(self) -> WordLayout:
        """Return the fields and words of a vertex."""
        return layout(self.draft, {} if self.draft.steps_back else self.over_bytes())

    def over_bytes(self) -> dict[int, int]:
        """Return how many bytes every walk's pointer has run past the row when the loop ends."""
        walks = self.draft.prepared.nest.walks
        return {n: points * walks[n].inner * walks[n].size_bytes for n, points in self.over_points.items()}

    def over_indices(self) -> dict[int, int]:
        """Return how far the index of every axis along the row has run past the row when the loop ends."""
        if self.draft.is_drained:
            return {}
        axes = (axis for axis, _ in self.draft.prepared.nest.axes)
        found = {axis: _points_over(self.draft, self.pipeline, f"%index{axis}") for axis in axes}
        return {axis: points for axis, points in found.items() if points}

    def slots_of(self) -> float:
        """Return about how many issue slots the busiest worker takes."""
        return slots_of(self.draft.prepared.nest, Effort(self.cost, self.slots_per_row))

    def applied(self, nest: RowNest) -> Scheduled:
        """Return the same instructions for another nest of the same skeleton."""
        prepared = replace(self.draft.prepared, nest=nest)
        return replace(self, draft=replace(self.draft, prepared=prepared))

    @property
    def cost(self) -> float:
        """Return issue slots per point."""
        return self.slots / self.draft.lanes

    @property
    def slots_per_row(self) -> int:
        """Return about how many issue slots a row takes beside its points: the pipeline's start, pointers, a rest."""
        nest = self.draft.prepared.nest
        left = nest.inner % self.draft.points_per_turn
        tail = 6 + left * (len(self.single) + 1) if left else 0
        steps = sum(any(walk.outer) for walk in nest.walks)
        return 3 + (self.pipeline.n_stages - 1) * self.pipeline.interval + len(self.per_row) + steps + tail


def schedule(draft: Draft) -> Scheduled:
    """Return a draft with times and registers; raises `Unselectable` where registers do not suffice."""
    pins = pin(draft)
    instructions = draft.main.instructions
    extra = max(8, len(instructions) // 2)
    # Turns beyond a row's end read what is not theirs: far or not, it takes the same time.
    is_store = [i in draft.stores or i.text.startswith(FAR_MARK) for i in instructions]
    stages = MOST_STAGES_DRAINED if draft.is_drained else MOST_STAGES
    pipeline = pipelined(instructions, draft.fusions, is_store, pins.free, pins.placement, extra, stages)
    if pipeline is None or pipeline.interval > LARGEST_REPEAT_BODY:
        raise Unselectable("too many values at once")
    slots = pipeline.interval + _longer(draft)
    slots += draft.far_frame is not None
    once, per_row, single = (_straight(code, pins) for code in (draft.once, draft.per_row, draft.tail))
    return Scheduled(draft, pins, pipeline, slots, _over_points(draft, pipeline), once, per_row, single)


def least_cost(draft: Draft) -> float:
    """Return issue slots per point that no schedule of a draft goes below."""
    return (least_interval(draft.main.instructions, draft.fusions) + _longer(draft)) / draft.lanes


def _longer(draft: Draft) -> int:
    """Return by how many issue slots the instructions of a turn are longer than a bundle each."""
    return sum(i.slots - 1 for i in draft.main.instructions)


def _straight(code: Code | None, pins: Pins) -> Bundles:
    """Return code that runs once as bundles."""
    if code is None or not code.instructions:
        return ()
    found = straight(code.instructions, pins.free, pins.placement)
    if found is None:
        raise Unselectable("too many values at once")
    return tuple(found)


def _over_points(draft: Draft, pipeline: Pipeline) -> dict[int, int]:
    """Return how many points every walk's pointer has run past the row when the loop ends."""
    result: dict[int, int] = {}
    if draft.is_drained:
        return result
    for number in range(len(draft.prepared.nest.walks)):
        if in_pack(draft, number):
            continue
        points = _points_over(draft, pipeline, pointer(number))
        if points:
            result[number] = points
    return result


def _points_over(draft: Draft, pipeline: Pipeline, name: str) -> int:
    """Return by how many points the steps of a register run ahead of the last turn."""
    steps = [i for i in pipeline.instructions if _is_step(i, name)]
    turns = sum(pipeline.n_stages - 1 - pipeline.stage(i) for i in steps)
    return turns * draft.points_per_turn // max(1, len(steps))


def _is_step(instruction: Instruction, name: str) -> bool:
    """Return whether an instruction moves a pointer; all that do move it equally far."""
    return name in instruction.streams and (
        f"{name}+=" in instruction.text or f"add {name}," in instruction.text
    )
