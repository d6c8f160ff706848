"""The plan cache: what was put comes back or nothing does, whatever other processes and accidents do to the folder."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest

from t10.errors import T10Error
from t10.plan.fronts import cache as module
from t10.plan.fronts.cache import CacheWarning, PlanCache

PAYLOAD = bytes(range(256)) * 3


def key(number: int) -> str:
    return sha256(str(number).encode()).hexdigest()


def payload(number: int, writer: int) -> bytes:
    """Return entry `number` as `writer` writes it: any of them is right, a mixture is not."""
    return f"{number} {writer} ".encode() * (500 + 100 * writer)


def entry(cache: PlanCache, number: int = 0, kind: str = "front") -> Path:
    return cache.folder / kind / key(number)[:2] / key(number)


@pytest.fixture
def cache(tmp_path: Path) -> PlanCache:
    return PlanCache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        yield


def test_what_is_put_comes_back_by_key_and_kind(cache: PlanCache) -> None:
    assert cache.get(key(1), "front") is None
    cache.put(key(1), "front", PAYLOAD)
    cache.put(key(1), "edge", b"")
    assert cache.get(key(1), "front") == PAYLOAD
    assert cache.get(key(1), "edge") == b""
    assert cache.get(key(2), "front") is None
    assert PlanCache(cache.folder).get(key(1), "front") == PAYLOAD
    assert (cache.hits, cache.misses) == (2, 2)


def test_a_second_writer_replaces_the_first(cache: PlanCache) -> None:
    cache.put(key(1), "front", b"one")
    cache.put(key(1), "front", b"two")
    assert cache.get(key(1), "front") == b"two"
    assert cache.info().n_entries == 1


@pytest.mark.parametrize("position", range(0, len(PAYLOAD) + 160, 5))
def test_a_changed_byte_is_no_entry_and_is_repaired(cache: PlanCache, position: int) -> None:
    cache.put(key(1), "front", PAYLOAD)
    whole = entry(cache, 1).read_bytes()
    changed = bytearray(whole)
    changed[position % len(whole)] ^= 1 << position % 8
    entry(cache, 1).write_bytes(changed)
    assert cache.get(key(1), "front") is None
    cache.put(key(1), "front", PAYLOAD)
    assert entry(cache, 1).read_bytes() == whole


def test_a_cut_or_longer_file_is_no_entry(cache: PlanCache) -> None:
    cache.put(key(1), "front", PAYLOAD)
    whole = entry(cache, 1).read_bytes()
    lengths = {*range(0, 200), *range(0, len(whole), 37), len(whole) - 1}
    for length in sorted(lengths - {len(whole)}):
        entry(cache, 1).write_bytes(whole[:length])
        assert cache.get(key(1), "front") is None
    entry(cache, 1).write_bytes(whole + b"\n")
    assert cache.get(key(1), "front") is None


def test_an_entry_under_another_name_is_none(cache: PlanCache) -> None:
    cache.put(key(1), "front", PAYLOAD)
    for other in (entry(cache, 2), entry(cache, 1, "edge")):
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(entry(cache, 1).read_bytes())
    assert cache.get(key(2), "front") is None
    assert cache.get(key(1), "edge") is None


def test_an_entry_of_another_version_is_none(cache: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    cache.put(key(1), "front", PAYLOAD)
    monkeypatch.undo()
    assert cache.get(key(1), "front") is None


def test_what_is_no_file_is_no_entry(cache: PlanCache) -> None:
    for number, make in enumerate((Path.mkdir, os.mkfifo)):
        entry(cache, number).parent.mkdir(parents=True, exist_ok=True)
        make(entry(cache, number))
        assert cache.get(key(number), "front") is None
    assert cache.info().n_entries == 0


def test_a_huge_file_is_not_read_and_a_huge_entry_not_written(
    cache: PlanCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(key(1), "front", PAYLOAD)
    monkeypatch.setattr(module, "MAX_ENTRY_BYTES", 100)
    assert cache.get(key(1), "front") is None
    cache.put(key(2), "front", PAYLOAD)
    assert not entry(cache, 2).exists()


def test_a_folder_that_cannot_be_used_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    cache = PlanCache(tmp_path / "file" / "cache", warn=said.append)
    for number in range(3):
        cache.put(key(number), "front", PAYLOAD)
        assert cache.get(key(number), "front") is None
    assert len(said) == 1
    assert str(cache.folder) in said[0]
    assert cache.info().n_entries == cache.clear() == cache.prune() == 0


def test_a_folder_that_cannot_be_written_is_still_read(
    cache: PlanCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(key(1), "front", PAYLOAD)
    said: list[str] = []
    reader = PlanCache(cache.folder, warn=said.append)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    reader.put(key(2), "front", PAYLOAD)
    reader.put(key(3), "front", PAYLOAD)
    assert reader.get(key(1), "front") == PAYLOAD
    assert said == [
        f"plan cache {cache.folder}: cannot write entries: Permission denied; plans are searched anew"
    ]


def test_a_warning_is_a_warning_by_default(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(CacheWarning, match="cannot write entries"):
        PlanCache(tmp_path / "file").put(key(1), "front", PAYLOAD)


@pytest.mark.parametrize(
    "wrong", [("../../up", "front"), (key(1), "../up"), (key(1)[1:], "front"), (key(1), "")]
)
def test_only_keys_and_kinds_name_files(cache: PlanCache, wrong: tuple[str, str]) -> None:
    with pytest.raises(T10Error, match="cache entry"):
        cache.get(*wrong)


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = PlanCache(tmp_path, max_bytes=10_000)
    now = time.time()
    for number in range(10):
        cache.put(key(number), "front", bytes(1000))
        os.utime(entry(cache, number), (now, now - 100_000 + number))
    assert cache.info().n_entries == 10
    assert cache.get(key(0), "front") == bytes(1000)
    assert cache.prune() > 0
    left = {number for number in range(10) if entry(cache, number).exists()}
    assert 0 in left
    assert left - {0} == set(range(11 - len(left), 10))
    assert cache.info().n_bytes <= 8_000


def test_a_cache_keeps_to_its_size_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PUTS_BETWEEN_PRUNINGS", 1)
    cache = PlanCache(tmp_path, max_bytes=10_000)
    for number in range(40):
        cache.put(key(number), "front", bytes(1000))
        assert cache.info().n_bytes <= 10_000


def test_what_killed_writers_left_goes_after_a_day(cache: PlanCache) -> None:
    cache.put(key(1), "front", PAYLOAD)
    old, new = (entry(cache, 1).parent / f".{key(1)}.{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert cache.prune() == 1
    assert not old.exists()
    assert new.exists()
    assert cache.info().n_entries == 1


def test_clear_leaves_files_of_others_alone(cache: PlanCache) -> None:
    cache.put(key(1), "front", PAYLOAD)
    (cache.folder / "notes.txt").write_text("mine")
    (cache.folder / "front" / "ab").mkdir(exist_ok=True)
    (cache.folder / "front" / "ab" / "notes.txt").write_text("mine too")
    assert cache.clear() == 1
    assert cache.get(key(1), "front") is None
    assert len(list(cache.folder.rglob("notes.txt"))) == 2


def _write_and_read(folder: Path, writer: int, seconds: float) -> int:
    """Write and read a few entries as fast as possible; return how many reads gave something that nobody wrote."""
    cache = PlanCache(folder, max_bytes=30_000)
    n_wrong = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number in range(6):
            cache.put(key(number), "front", payload(number, writer))
            found = cache.get(key(number), "front")
            n_wrong += found is not None and found not in {payload(number, w) for w in range(4)}
        cache.prune()
    return n_wrong


def test_processes_share_a_folder_without_ever_reading_half_an_entry(tmp_path: Path) -> None:
    context = get_context("spawn")
    with context.Pool(4) as pool:
        wrong = pool.starmap(_write_and_read, [(tmp_path, writer, 0.5) for writer in range(4)])
    assert wrong == [0, 0, 0, 0]
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
