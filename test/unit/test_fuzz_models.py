"""A slice of the fuzzer of model files, in child processes; all of it is `tools/fuzz_models.py --count 100000`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from fuzz_models import Verdict, judge, level_of, run_batch
from model_damage import Corpus, damaged


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.load()


def _defects(found: list[tuple[int, Verdict]]) -> list[str]:
    return [f"case {number}: {verdict.text}" for number, verdict in found if verdict.kind == "defect"]


def test_damaged_models_are_taken_or_refused(corpus: Corpus, tmp_path: Path) -> None:
    found = run_batch(range(400), 20, corpus, tmp_path, "read")
    assert [number for number, _ in found] == list(range(400))
    assert _defects(found) == []
    assert {verdict.kind for _, verdict in found} == {"taken", "refused"}


def test_damaged_models_are_lowered_or_refused(corpus: Corpus, tmp_path: Path) -> None:
    assert _defects(run_batch(range(1000, 1040), 20, corpus, tmp_path, "import")) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", ["text", "ir"])
def test_damaged_text_is_taken_or_refused(level: str, corpus: Corpus, tmp_path: Path) -> None:
    found = run_batch(range(30), 20, corpus, tmp_path, level)
    assert len(found) == 30
    assert _defects(found) == []


def test_how_far_a_case_goes_is_told_by_its_number() -> None:
    assert [level_of(n, "mixed") for n in (100, 110, 111)] == ["plan", "import", "read"]
    assert level_of(111, "import") == "import"


def test_a_number_and_a_seed_give_the_same_bytes(corpus: Corpus) -> None:
    assert [damaged(n, 3, corpus) for n in range(30)] == [damaged(n, 3, corpus) for n in range(30)]
    assert damaged(0, 3, corpus) != damaged(0, 4, corpus)


def test_a_case_that_ends_the_process_is_a_defect(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(data: bytes, folder: Path, level: str) -> Verdict:
        if data == damaged(1, 0, corpus):
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(data, folder, level)

    monkeypatch.setattr("fuzz_models.judge", end)
    found = run_batch(range(3), 0, corpus, tmp_path, "read")
    assert [number for number, _ in found] == [0, 1, 2]
    assert found[1][1] == Verdict("defect", "the process ended: SIGKILL")
