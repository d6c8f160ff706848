"""Operators that have a rule or a lowering for some of their forms only, and those that never will: refused by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from t10.frontend.contributed import READ, known_reason
from t10.frontend.read_names import names_read_by
from t10.frontend.rewrites.apply import facts_of
from t10.frontend.rewrites.matrices import MOST_ROWS
from t10.frontend.unrolled_limits import UNROLLED_HINT, why_not_unrolled
from t10.frontend.unsupported import STANDARD_DOMAINS, UnsupportedNode, unsupported

_RANDOM = "draws random numbers (expected results that inputs determine)"
_RANDOM_HINT = "make random numbers on the host and give them as an input"
_UNKNOWN_FORM = (
    "is in a form that has no rule, or of unknown shape",
    "export without the fusions of ONNX Runtime, and with weights as constants",
)
_TRAINING = "ai.onnx.preview.training"

_LIMITS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
            *("RandomUniform", "RandomUniformLike"),
        ),
        (_RANDOM, _RANDOM_HINT),
    ),
    "BitCast": (
        "takes bits for those of another kind of number (expected integers of the same size)",
        "compute with the numbers themselves, or do it on the host",
    ),
    "DeformConv": (
        "is not of images in float32 of at least two rows and columns, and static shapes",
        "compute it in float32, and export with static shapes",
    ),
    "Det": (
        f"is of matrices of more than {MOST_ROWS} rows, or of unknown shape",
        "factorize the matrix on the host",
    ),
    "Dropout": (
        "drops elements at random, as in training",
        "export the model for inference: after model.eval() in PyTorch",
    ),
    "If": ("has branches that differ in what they make", UNROLLED_HINT),
    "ImageDecoder": ("decodes compressed images", "decode images on the host and give their pixels"),
    "TfIdfVectorizer": (
        "counts n-grams of a table of words",
        "count them on the host and give the model the counts",
    ),
}
"""By operator, why a node of it that no rule has rewritten cannot be compiled, and what would help."""


_BY_SHAPE = frozenset({"DeformConv", "Det", "If", "RoiAlign", "Scan"})
"""Those that may have a rule once their types and shapes are known."""


def beyond_limits(model: Any, source: str, unknown: Collection[str] = ()) -> list[UnsupportedNode]:
    """Return the nodes whose form has no rule; called when all rules have been applied.

    Left out are those that may have one once it is known what `unknown` values are.
    """
    found: list[UnsupportedNode] = []
    facts = facts_of(model)
    for node in model.graph.node:
        is_open = node.op_type in _BY_SHAPE or (node.domain, node.op_type) in READ
        if is_open and any(name in unknown for name in names_read_by([node])):
            continue
        if node.domain == _TRAINING:
            found.append(unsupported(node, source, "is a step of training", "export the model for inference"))
        elif (node.domain, node.op_type) in READ:
            found.append(unsupported(node, source, *(known_reason(node, facts.shapes) or _UNKNOWN_FORM)))
        elif node.domain not in STANDARD_DOMAINS:
            reason = f"is of the domain {node.domain!r}, of which nothing is lowered"
            found.append(unsupported(node, source, reason))
        elif node.op_type in ("Loop", "Scan"):
            found.append(unsupported(node, source, *why_not_unrolled(node, facts)))
        elif node.op_type == "RoiAlign":
            found.append(unsupported(node, source, *_why_no_regions(node)))
        elif node.op_type in _LIMITS:
            found.append(unsupported(node, source, *_LIMITS[node.op_type]))
    return found


def _why_no_regions(node: Any) -> tuple[str, str]:
    """Return why a RoiAlign has no rule, and what helps."""
    options = {attribute.name: attribute for attribute in node.attribute}
    if "mode" in options and options["mode"].s != b"avg":
        return f"has mode {options['mode'].s.decode(errors='replace')} (expected avg)", "export with mode avg"
    if "sampling_ratio" not in options or options["sampling_ratio"].i < 1:
        return (
            "takes as many samples as a region is large: sampling_ratio is 0 (expected 1 or more)",
            "export with a fixed sampling_ratio, such as 2",
        )
    return "is not of images and regions of static shape in float32", "export with static shapes, in float32"
