"""The cores' memories: buffers live and die, and every access that real memory would not survive is a trap."""

import numpy as np
import pytest

from t10.core.schedule import Buffer
from t10.errors import SimTrap
from t10.sim.memory import CoreMemory


@pytest.fixture
def memory() -> CoreMemory:
    memory = CoreMemory(n_cores=4, sram_bytes=128, reserved_bytes=16)
    memory.begin(Buffer("x", 16, 32, 0, 0))
    return memory


def test_new_buffers_hold_poison(memory: CoreMemory) -> None:
    assert np.isnan(memory.slots("x", "f32", 4, 8)).all()
    assert (memory.slots("x", "i32", 4, 8) == -1).all()


def test_a_dead_buffers_bytes_are_poisoned(memory: CoreMemory) -> None:
    slots = memory.slots("x", "f32", 4, 8)
    slots[:] = 1
    memory.end("x")
    assert np.isnan(slots).all()


def test_a_new_buffer_is_poisoned_whatever_lay_there(memory: CoreMemory) -> None:
    memory.flat(np.dtype(np.float32))[:] = 1
    memory.begin(Buffer("y", 48, 32, 0, 0))
    assert np.isnan(memory.slots("y", "f32", 4, 8)).all()
    assert (memory.slots("x", "f32", 4, 8) == 1).all()


@pytest.mark.parametrize("address", [0, 8, 112])
def test_a_buffer_outside_the_memory_is_a_trap(memory: CoreMemory, address: int) -> None:
    with pytest.raises(SimTrap, match="lies outside the memory"):
        memory.begin(Buffer("y", address, 32, 0, 0))


def test_an_unaligned_buffer_is_a_trap(memory: CoreMemory) -> None:
    with pytest.raises(SimTrap, match="not aligned to 16 bytes"):
        memory.begin(Buffer("y", 56, 8, 0, 0))


def test_overlapping_live_buffers_are_a_trap(memory: CoreMemory) -> None:
    with pytest.raises(SimTrap, match="overlaps live buffer x"):
        memory.begin(Buffer("y", 32, 8, 0, 0))


def test_access_to_a_dead_buffer_is_a_trap(memory: CoreMemory) -> None:
    memory.end("x")
    with pytest.raises(SimTrap, match="x, which is not live"):
        memory.slots("x", "f32", 4, 8)


def test_access_past_the_end_is_a_trap(memory: CoreMemory) -> None:
    with pytest.raises(SimTrap, match="holds 32 bytes, 36 are accessed"):
        memory.slots("x", "f32", 4, 9)


def test_access_on_cores_the_chip_lacks_is_a_trap(memory: CoreMemory) -> None:
    with pytest.raises(SimTrap, match="5 cores of a chip with 4"):
        memory.slots("x", "f32", 5, 1)


def test_reading_what_nobody_wrote_is_a_trap_that_names_core_and_address(memory: CoreMemory) -> None:
    memory.mark_written("x", 2, 32)
    memory.mark_written("x", 3, 8)
    memory.check_written("x", 3, 8)
    with pytest.raises(SimTrap, match="poisoned bytes in buffer x at core 2, address 0x18"):
        memory.check_written("x", 3, 32)


def test_what_was_written_stays_written_to_the_byte(memory: CoreMemory) -> None:
    memory.mark_written("x", 4, 31)
    memory.mark_written("x", 4, 8)
    memory.check_written("x", 4, 31)
    with pytest.raises(SimTrap, match="poisoned bytes in buffer x at core 0, address 0x2f"):
        memory.check_written("x", 4, 32)


@pytest.mark.parametrize("y", [Buffer("y", 16, 16, 0, 1), Buffer("y", 16, 48, 0, 1)])
def test_only_the_same_bytes_are_taken_over(memory: CoreMemory, y: Buffer) -> None:
    with pytest.raises(SimTrap, match="takes over other bytes than those of x"):
        memory.begin(y, takes_over="x")


def test_peak_is_the_most_bytes_in_use_at_once(memory: CoreMemory) -> None:
    memory.begin(Buffer("y", 96, 8, 0, 0))
    memory.end("y")
    memory.begin(Buffer("z", 64, 4, 0, 0))
    assert memory.peak_bytes == 16 + 32 + 8


def test_bytes_that_a_buffer_takes_over_count_once(memory: CoreMemory) -> None:
    memory.begin(Buffer("y", 16, 32, 0, 1), takes_over="x")
    memory.end("x")
    memory.begin(Buffer("z", 48, 16, 1, 1))
    assert memory.peak_bytes == 16 + 32 + 16
    memory.end("y")
    memory.end("z")
    memory.begin(Buffer("w", 16, 48, 2, 2))
    assert memory.peak_bytes == 16 + 48
