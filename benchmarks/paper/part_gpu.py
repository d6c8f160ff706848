"""Figures 22 and 23: beside an A100, by published measurements of BERT-large and by its memory for language models."""

from __future__ import annotations

from typing import Any

from paper.claims import CHIP, CLOCK_HZ, COST, OURS, Claim, Known, mean
from paper.part_data import MODELLED, Say, shown, table
from paper.results import read_operators, read_rows
from paper.sweep import LAYERS
from paper.systems import Row
from t10.report.plots import new_figure

TENSORRT_MS = {1: 1.64, 2: 2.05, 4: 2.97, 8: 4.51, 16: 7.75, 32: 13.85}
"""BERT-large, 128 tokens, f16, A100 with 40 GB: measured milliseconds by batch (NVIDIA, TensorRT's BERT demo)."""
A100_BYTES_PER_SECOND = 1.94e12
"""Off-chip memory of an A100 with 80 GB (T10 §2)."""
BERT = "bert-large"
PAPER_UP_TO, PAPER_MEAN = 16.38, 3.10
PICTURES = "figure-22-bert", "figure-23-layers"


def plan(say: Say) -> None:
    """Do nothing: the rows are those of the models."""
    del say


def _known() -> Known:
    return Known(read_rows(), read_operators())


def _berts(known: Known) -> list[tuple[int, float]]:
    """Return batches of BERT-large and our milliseconds."""
    rows = [(batch, known.row(BERT, batch, OURS)) for batch in TENSORRT_MS]
    return [(batch, _milliseconds(row)) for batch, row in rows if row is not None]


def _milliseconds(row: Row) -> float:
    return 1e3 * row.cycles / CLOCK_HZ


def _layers(known: Known) -> list[tuple[Row, float]]:
    """Return rows of a language model's layer, and the milliseconds in which an A100 reads the weights at best."""
    found = [
        row
        for model, batch in known.points()
        if model in (*LAYERS, "retnet-1.3b") and (row := known.row(model, batch, OURS)) is not None
    ]
    return [(row, 1e3 * row.weight_bytes / A100_BYTES_PER_SECOND) for row in found if row.weight_bytes]


def pictures() -> dict[str, Any]:
    """Return both figures, as far as there are rows."""
    known, result = _known(), dict[str, Any]()
    berts, layers = _berts(known), _layers(known)
    if berts:
        figure = new_figure(6, 3.2)
        axes = figure.add_subplot()
        axes.plot(*zip(*TENSORRT_MS.items(), strict=True), "o-", color="#666666", label="A100, measured")
        axes.plot(*zip(*berts, strict=True), "o-", color="#3a923a", label=f"ours, {CHIP} (modelled)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("batch")
        axes.set_ylabel("milliseconds")
        axes.set_title("BERT-large, 128 tokens, f16", loc="left")
        axes.legend(frameon=False)
        result[PICTURES[0]] = figure
    if layers:
        figure = new_figure(9, 3.4)
        axes = figure.add_subplot()
        at = range(len(layers))
        axes.bar(
            [x - 0.2 for x in at], [least for _, least in layers], 0.4, color="#666666", label="A100 at least"
        )
        axes.bar(
            [x + 0.2 for x in at],
            [_milliseconds(row) for row, _ in layers],
            0.4,
            color="#3a923a",
            label="ours",
        )
        axes.set_xticks(at, [f"{row.model}\nbatch {row.batch}" for row, _ in layers], fontsize=7)
        axes.set_ylabel("milliseconds")
        axes.set_title(f"a layer, 512 tokens in sight ({MODELLED})", loc="left")
        axes.legend(frameon=False)
        result[PICTURES[1]] = figure
    return result


def claims() -> list[Claim]:
    """Return what the paper says of both figures."""
    known, found = _known(), list[Claim]()
    berts, layers = _berts(known), _layers(known)
    if berts:
        ratios = {batch: TENSORRT_MS[batch] / ours for batch, ours in berts}
        text = ", ".join(f"batch {batch} {ratio:.2f}x" for batch, ratio in ratios.items())
        found.append(
            Claim(
                "BERT-large beside an A100 with TensorRT, figure 22",
                "faster at small batches, up to 2.44x over all models; slower at large ones",
                text,
                ratios[min(ratios)] > 1 and ratios[max(ratios)] < 1,
                "ours moves and reduces for two fifths of its time; the table of the A100 is newer than the paper's",
            )
        )
    if layers:
        gains = [least / _milliseconds(row) for row, least in layers]
        found.append(
            Claim(
                "layers of language models beside an A100, figure 23",
                f"up to {PAPER_UP_TO}x, {PAPER_MEAN}x on average",
                f"up to {max(gains):.2f}x, {mean(gains):.2f}x on average over {len(gains)}",
                PAPER_MEAN / 1.5 <= mean(gains) <= PAPER_MEAN * 1.5,
                "ours is beside the least time that an A100's memory allows, the paper beside a measured one",
            )
        )
    return found


def section() -> str:
    """Return the part of the page."""
    known = _known()
    berts = [
        (str(batch), f"{TENSORRT_MS[batch]:.2f}", f"{ours:.2f}", f"{TENSORRT_MS[batch] / ours:.2f}x")
        for batch, ours in _berts(known)
    ]
    layers = [
        (row.model, str(row.batch), f"{row.weight_bytes / 1e6:.0f}", f"{1e3 * least:.0f}",
         f"{1e3 * _milliseconds(row):.0f}", f"{least / _milliseconds(row):.2f}x")
        for row, least in _layers(known)
    ]  # fmt: skip
    drawn = pictures()
    return f"""## Beside an A100

The A100's times of BERT-large are NVIDIA's published measurements of TensorRT; ours are modelled ({CHIP},
{COST}, sums of f16). Of language models the A100's time is a bound: what reading the weights once takes at
{A100_BYTES_PER_SECOND / 1e12} TB/s. No library reaches it, so that our ratios are smaller than the paper's.

{shown(PICTURES[0]) if PICTURES[0] in drawn else ""}

{table(("batch", "A100, ms (measured)", "ours, ms (modelled)", "faster"), berts)}

{shown(PICTURES[1]) if PICTURES[1] in drawn else ""}

{table(("layer", "batch", "MB of weights", "A100 at least, µs", "ours, µs (modelled)", "faster"), layers)}
"""
