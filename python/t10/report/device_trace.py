"""Tracks of single tiles for the timeline of a device run: which codelet or exchange each of them was busy with."""

from __future__ import annotations

from t10.chip import ChipSpec
from t10.report.trace import Event, microseconds
from t10.sim.device.result import DeviceResult

PROCESS = 2


def tile_tracks(result: DeviceResult, chip: ChipSpec) -> list[Event]:
    """Return the events of a sample of tiles, one track each: a stretch per phase in which the tile works.

    They go beside those of `t10.report.trace.simulated_trace`; what is left of a phase, the tile waits for others.
    """
    sample = result.sample
    events: list[Event] = [_name("process_name", 0, f"{chip.name}: some tiles (modelled)")]
    events += [_name("thread_name", track, f"tile {tile}") for track, tile in enumerate(sample.tiles)]
    for phase, busy in zip(result.timeline, sample.busy_cycles.tolist(), strict=True):
        codelets = sample.codelets.get(phase.step, ())
        for track, cycles in enumerate(busy):
            if not cycles:
                continue
            events.append(
                {
                    "ph": "X",
                    "pid": PROCESS,
                    "tid": track,
                    "name": codelets[track] if codelets else phase.kind,
                    "ts": microseconds(chip, phase.start_cycle),
                    "dur": microseconds(chip, cycles),
                    "args": {"step": phase.step, "operator": phase.operator, "cycles": cycles},
                }
            )
    return events


def _name(kind: str, track: int, name: str) -> Event:
    return {"ph": "M", "pid": PROCESS, "tid": track, "name": kind, "args": {"name": name}}
