"""The parts of the evaluation: a page, claims and pictures from few rows, and rows that are worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from types import ModuleType

import pytest
from paper import (
    part_accuracy,
    part_batches,
    part_constraints,
    part_data,
    part_fronts,
    part_idle,
    part_regions,
    part_seconds,
    part_spaces,
    part_trajectory,
)
from paper.part_data import NOT_PLANNED, Data, fill, read, svg
from paper.space_sizes import divisors, factorisations, legal_plans, plans_on_any_number_of_cores
from support import specs

from t10.core.expression import OperatorSpec
from t10.core.legal import PlanRows, breaches, expression_of

FRONT_LINES = tuple(
    f"{model},1,/op,{system}"
    for model in ("bert-large", "opt-13b")
    for system in ("T10,0,1024,900,4", "T10,0,4096,100,1", '"Roller, split sums",512,8192,300,2',
                   "Roller,512,8192,400,2", "Ansor,512,8192,300,2", "PopART 0.6,0,4096,100,1")
)  # fmt: skip
SPACE_LINES = (
    "resnet18,128,/conv,Conv,7,1000,17000000000000000000,500,40,9,3",
    "bert-large,1,/gather,Gather,3,1000,0,200,30,9,60",
)
SECONDS = "model,batch,what,cpu_seconds_as_measured"
TINY: dict[ModuleType, dict[str, tuple[str, ...]]] = {
    part_fronts: {part_fronts.FILE: (",".join(part_fronts.FIELDS), *FRONT_LINES)},
    part_spaces: {
        part_spaces.FILE: (",".join(part_spaces.FIELDS), *SPACE_LINES),
        part_spaces.SECONDS: (SECONDS, "resnet18,128,/conv,2.5"),
    },
    part_constraints: {
        part_constraints.FILE: (
            ",".join(part_constraints.FIELDS),
            *(f"nerf,1,{each},100,100" for each in part_constraints.CONSTRAINTS),
        ),
        part_constraints.SECONDS: (SECONDS, *(f"nerf,1,{each},5.0" for each in part_constraints.CONSTRAINTS)),
    },
    part_trajectory: {
        part_trajectory.FILE: (
            ",".join(part_trajectory.FIELDS),
            "resnet18,64,chosen,by execution,0,1000,900,-1,2",
            "resnet18,64,chosen,with set-up,0,1000,800,-1,2",
            "resnet18,64,chosen,with set-up,1,9000,700,-1,2",
            "resnet18,64,chosen,chosen,0,9000,700,2,2",
            'resnet18,64,"Roller, split sums","Roller, split sums",0,1000,1900,1,2',
        ),
    },
    part_idle: {
        part_idle.FILE: (
            ",".join(part_idle.FIELDS),
            "bert-large,1,/op,0,0,900,100,50,400",
            "bert-large,1,/op,0,1,900,300,0,400",
        ),
    },
    part_accuracy: {
        part_accuracy.FILE: (
            ",".join(part_accuracy.FIELDS),
            "contraction,one,100,100,150",
            "contraction,one,300,300,",
            "gather,two,50,,51",
        ),
    },
    part_regions: {
        part_regions.FILE: (
            ",".join(part_regions.FIELDS),
            "nerf-frame,1,MatMul,/op,48,360648,188672",
            "opt-13b,1,MatMul,/op,292216,142512,58304",
        ),
    },
    part_batches: {
        part_batches.FILE: (
            ",".join(part_batches.FIELDS),
            *(f'opt-13b,"{each}",8,planned,500,too large' for each in
              ("any", "ours", "T10 as published", "Roller", "Roller, split sums")),
            "opt-13b,PopART 0.6,0,planned,0,too large",
        ),
    },
    part_seconds: {part_seconds.FILE: (SECONDS, "nerf-frame,1,ours,4.0", "nerf-frame,1,Roller,9.0")},
}  # fmt: skip
PARTS = tuple(TINY)


def _name(part: ModuleType) -> str:
    return part.__name__.removeprefix("paper.part_")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Data, "folder", tmp_path)
    return tmp_path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", PARTS, ids=_name)
def test_a_part_of_few_rows_has_claims_pictures_and_a_table(part: ModuleType, folder: Path) -> None:
    for name, lines in TINY[part].items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    claims, pictures, text = part.claims(), part.pictures(), part.section()
    drawn = {name: svg(each) for name, each in pictures.items()}
    assert claims
    assert [each.what for each in claims if each.agrees is None or (not each.agrees and not each.why)] == []
    assert all(f"![{name}](" in text for name in drawn)
    assert len(drawn) == 1
    assert drawn == {name: svg(each) for name, each in part.pictures().items()}
    assert text.startswith("## ")
    assert "modelled" in text or "measured" in text
    assert NOT_PLANNED not in text


@pytest.mark.parametrize("part", PARTS, ids=_name)
def test_a_part_without_rows_says_so(part: ModuleType, folder: Path) -> None:
    assert not any(folder.iterdir())
    assert part.claims() == []
    assert part.pictures() == {}
    assert NOT_PLANNED in part.section()


@pytest.mark.parametrize("part", PARTS, ids=_name)
def test_claims_of_the_rows_that_are_kept_have_reasons(part: ModuleType) -> None:
    claims = part.claims()
    assert claims
    assert [each.what for each in claims if each.agrees is None or (not each.agrees and not each.why)] == []


def test_only_what_lacks_is_worked_out(folder: Path) -> None:
    made: list[str] = []

    def make(name: str) -> Iterator[Sequence[object]]:
        made.append(name)
        yield (len(name),)
        yield (0,)

    fill("x.csv", ("name", "n"), [("b",), ("aa",)], make, print)
    whole = (folder / "x.csv").read_bytes()
    assert whole == b"name,n\nb,1\nb,0\naa,2\naa,0\n"
    (folder / "x.csv").write_bytes(b"name,n\naa,2\naa,0\n")
    fill("x.csv", ("name", "n"), [("b",), ("aa",)], make, print)
    assert made == ["b", "aa", "b"]
    assert (folder / "x.csv").read_bytes() == whole
    assert read("x.csv")[0] == {"name": "b", "n": "1"}


def test_seconds_replace_those_of_an_earlier_run(folder: Path) -> None:
    assert not any(folder.iterdir())
    part_data.note_seconds("s.csv", ("m", "1", "x"), 2.04)
    part_data.note_seconds("s.csv", ("m", "1", "x"), 3.0)
    assert part_data.noted_seconds("s.csv") == {("m", "1", "x"): 3.0}


SMALL = {
    "product": (specs.matmul(4, 3, 5), 8),
    "batched": (specs.bmm(2, 2, 3, 2), 6),
    "gather": (specs.gather(4, 3, 5), 6),
    "convolution": (specs.conv2d(1, 2, 4, 2, 3, 2, 1), 6),
    "pooling": (specs.max_pool2d(2, 2, 4, 2, 2), 8),
    "reduction": (specs.row_reduce(6, 4, "sum"), 8),
}


@pytest.mark.parametrize("name", SMALL)
def test_plans_are_counted_as_listing_them_counts(name: str) -> None:
    spec, n_cores = SMALL[name]
    assert legal_plans(spec, n_cores) == _listed(spec, n_cores)


def _listed(spec: OperatorSpec, n_cores: int) -> int:
    """Return how many plans there are that `t10.core.legal` finds no fault with."""
    expression = expression_of(spec)
    total = 0
    for f_op in product(*(range(1, n + 1) for n in spec.extents)):
        if prod(f_op) > n_cores:
            continue
        per_tensor = [
            list(
                product(
                    *(
                        divisors(expression.n_sharers(number, f_op)) if axis in uses else (1,)
                        for axis in range(len(f_op))
                    )
                )
            )
            for number, uses in enumerate(expression.uses)
        ]
        total += sum(
            not any(breaches(PlanRows(f_op, ft), expression, n_cores)) for ft in product(*per_tensor)
        )
    return total


def test_windows_couple_the_rings_of_tensors() -> None:
    """Along the rows of a picture, picture and result rotate alike or one rests: a 2 and a 3 do not go together."""
    spec = specs.conv2d(1, 2, 6, 1, 3, 2, 1)
    fewer = legal_plans(spec, 6)
    independent = plans_on_any_number_of_cores(spec, 6)
    assert independent is not None
    assert fewer < independent


@pytest.mark.parametrize(("number", "n"), [(1, 3), (12, 0), (12, 2), (49, 3), (360, 2)])
def test_rows_of_factors_are_counted(number: int, n: int) -> None:
    rows = product(divisors(number), repeat=n)
    assert factorisations(number, n) == sum(number % prod(row) == 0 for row in rows)


def test_what_tensors_share_is_not_counted_without_cores() -> None:
    assert plans_on_any_number_of_cores(specs.matmul(2, 2, 2), 2) == 4**3
    assert plans_on_any_number_of_cores(specs.gather(4, 3, 5), 8) is None
