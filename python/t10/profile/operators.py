"""Operators made in code, of every kind, type and arrangement that models have: whose steps `t10 profile` draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.core.expression import Combine, OperatorKind, OperatorSpec
from t10.core.fused_ends import may_fuse
from t10.cost.combine import combine_operator
from t10.profile.compute_step import ComputeStep
from t10.profile.notation import operator

EXTENTS: Mapping[str, int] = {
    "b": 64, "c": 512, "d": 128, "f": 512, "g": 64, "h": 56, "i": 3, "j": 3, "k": 4096, "l": 256, "m": 1024, "n": 1024,
    "p": 7, "q": 7, "t": 16, "u": 20480, "v": 4096, "w": 56, "x": 4, "y": 2,
}  # fmt: skip
"""The largest boxes by axis: t are tokens of a decoder, u what it sums; i, j, p, q walk windows; y is picked."""
FLOATS = ("f16", "f32")
RELU = "c0.0 maximumf"
SIGMOID = "negf exp c1.0 addf c1.0 divf"
GELU = "0 c1.4142 divf erf c1.0 addf mulf c0.5 mulf"

CONTRACTIONS = (
    "m k, n k -> m n",
    "m k, k n -> m n",
    "k m, k n -> m n",
    "m k, n k -> n m",
    "b m k, b n k -> b m n",
    "b m k, b k n -> b m n",
    "m b d, n b d -> b m n",
    "b m n, n b d -> m b d",
    "b g m k, b n k -> b g m n",
    "t u, n u -> t n",
    "t u, u n -> t n",
    "t b d, b n d -> t b n",
    "t b n, b n d -> t b d",
    "m u, u -> m",
)
CONVOLUTIONS = (
    "x h w c, f c -> x h w f",
    "x c h w, f c -> x f h w",
    "x h+i w+j c, f i j c -> x h w f",
    "x c h+i w+j, f c i j -> x f h w",
    "x 2h+i 2w+j c, f i j c -> x h w f",
    "x c 2h+p 2w+q, f c p q -> x f h w",
    "x h+2i w+2j c, f i j c -> x h w f",
    "x l+i c, f i c -> x l f",
    "x h+i w+j c, i j c -> x h w c",
    "x c h+i w+j, c i j -> x c h w",
    "x 2h+i 2w+j c, i j c -> x h w c",
    "x h+i w+j g c, g f i j c -> x h w g f",
    "x g c h+i w+j, g f c i j -> x g f h w",
)
REDUCTIONS = ("m k -> m", "k n -> n", "m l n -> m n", "k m l -> m", "b m l -> b m", "k ->")
POOLS = ("x h+i w+j c -> x h w c", "x 2h+i 2w+j c -> x h w c", "x c 2h+i 2w+j -> x c h w")
MAPS = (
    ("m n -> m n", "0 negf"),
    ("m n -> m n", "0 exp"),
    ("m n -> m n", "0 tanh"),
    ("m n -> m n", f"0 {SIGMOID}"),
    ("m n -> m n", f"0 {GELU}"),
    ("m n -> m n", "0 absf sqrt"),
    ("m n -> m n", "0 log"),
    ("m n -> m n", "0 sin"),
    ("m n, m n -> m n", "0 1 addf"),
    ("m n, n -> m n", "0 1 mulf"),
    ("m n, m -> m n", "0 1 subf exp"),
    ("m n,  -> m n", "0 1 divf"),
    ("b m n, b n -> b m n", "0 1 addf"),
    ("b m n, m -> b m n", "0 1 mulf"),
    ("m n, n m -> m n", "0 1 addf"),
    ("m n, m n, m n -> m n", "0 1 2 addf mulf"),
    ("m n, m n -> m n", "0 1 cmpf:ogt 0 1 select"),
)
COPIES = (
    "m n -> m n",
    "m n -> n m",
    "b m d -> m b d",
    "b m d -> b d m",
    "x c h w -> x h w c",
    "m 2n -> m n",
    "2m n -> m n",
    "n -> m n",
    "m -> m n",
)
CASTS = (
    ("f16", "extf>f32"), ("f32", "truncf>f16"), ("i32", "sitofp>f32"), ("f32", "fptosi>i32"), ("i64", "trunci>i32"),
    ("i32", "extsi>i64"), ("i8", "extsi>i32"), ("i1", "uitofp>f32"), ("f16", "fptosi>i32"), ("i32", "sitofp>f16"),
)  # fmt: skip
MIXED = (
    ("", "-> m n", "c0.5>f16"),
    ("", "-> m n", "c0.5>f32"),
    ("", "-> m n", "c7>i32"),
    ("f16 f32 f16", "m n, m, n -> m n", "0 extf>f32 1 mulf truncf>f16 2 mulf"),
    ("i32 i32", "m n, m n -> m n", "0 1 addi"),
    ("i32 i32", "m n, n -> m n", "0 1 muli"),
    ("i64 i64", "m n, m n -> m n", "0 1 addi"),
    ("i8 i8", "m n, m n -> m n", "0 1 addi"),
    ("i32 i32", "m n, m -> m n", "0 1 cmpi:slt"),
    ("i1 i1", "m n, m n -> m n", "0 1 andi"),
    ("i1 f32 f32", "m n, m n, n -> m n", "0 1 2 select"),
    ("i1 f16", "n, m n -> m n", "0 1 1 negf select"),
)
LOOK_UPS = ("n, v d -> n d", "b n, v d -> b n d", "n, v -> n", "n, d v -> n d")
EPILOGUES = (
    ("m k, n k -> m n", ""),
    ("m k, n k -> m n", "0 c0.125 mulf"),
    ("m k, n k -> m n; n", "0 1 addf"),
    ("m k, n k -> m n; m", "0 1 addf"),
    ("m k, n k -> m n; n, m n", "0 1 addf 2 addf"),
    ("m k, n k -> m n; n", f"0 1 addf {RELU}"),
    ("t u, n u -> t n; n, t n", f"0 1 addf {RELU} 2 addf"),
    ("m k, n k -> m n; m n", f"0 0 {SIGMOID} mulf 1 mulf"),
    ("b m k, b n k -> b m n; m n", "0 c0.125 mulf 1 addf"),
    ("b m k, b n k -> b m n; b n", "0 1 addf"),
    ("b m k, b n k -> b m n; b m", "0 1 divf exp"),
    ("x c h+i w+j, f c i j -> x f h w; f", f"0 1 addf {RELU}"),
    ("x c h+i w+j, f c i j -> x f h w; f, x f h w", "0 1 addf 2 addf"),
    ("x h+i w+j c, f i j c -> x h w f; f, f", "0 1 mulf 2 addf"),
    ("m k, n k -> m n", "@n @m cmpi:sle 0 c0.0 select"),
    ("b m k, b n k -> b m n; m n", "@n @m cmpi:sle 0 c0.125 mulf 1 addf c0.0 select"),
    ("x c h+i w+j, f c i j -> x f h w; f", "@h @w cmpi:ne 0 1 addf 0 select"),
)


def made_steps() -> tuple[ComputeStep, ...]:
    """Return the compute steps of the operators that are made here."""
    combined = [
        combine_operator(dtype, combine)
        for dtype in (*FLOATS, "i32")
        for combine in _combines("sum", "max", "min", "prod", *(("maxnum",) if dtype != "i32" else ()))
    ]
    return (
        *map(ComputeStep, (*_products(), *_reductions(), *_maps(), *_look_ups())),
        *(ComputeStep(spec, "epilogue") for spec in _with_epilogues()),
        *(ComputeStep(spec, "fused end") for spec in _with_epilogues() if may_fuse(spec)),
        *(ComputeStep(spec, "combine") for spec in combined),
    )


def _combines(*names: Combine) -> tuple[Combine, ...]:
    return names


def _products() -> Iterator[OperatorSpec]:
    kinds: tuple[tuple[OperatorKind, tuple[str, ...]], ...] = (
        ("contraction", CONTRACTIONS),
        ("convolution", CONVOLUTIONS),
    )
    for kind, texts in kinds:
        for text in texts:
            yield _product(kind, text, "f16")
            yield _product(kind, text, "f32")
    for text in CONTRACTIONS[::5]:
        yield operator("contraction", text, "f16 f16", "0 1 mulf", "sum", EXTENTS)


def _product(kind: OperatorKind, text: str, dtype: str, epilogue: str = "") -> OperatorSpec:
    """Return a product with sums in f32."""
    body = "0 extf>f32 1 extf>f32 mulf" if dtype == "f16" else "0 1 mulf"
    narrow = dtype == "f16"
    return operator(kind, text, f"{dtype} {dtype}", body, "sum", EXTENTS, epilogue=epilogue, narrow=narrow)


def _reductions() -> Iterator[OperatorSpec]:
    rows: tuple[tuple[int, Combine, str, str], ...] = (
        (6, "sum", "f16", "0 extf>f32"), (6, "sum", "f32", "0"), (6, "max", "f16", "0"),
        (3, "max", "f32", "0"), (3, "sum", "f32", "0 0 mulf"), (3, "sum", "i32", "0"),
        (2, "sum", "f16", "0"), (2, "min", "f32", "0"), (2, "prod", "f32", "0"), (2, "max", "i32", "0"),
        (1, "or", "i1", "0"), (3, "maxnum", "f16", "0"), (2, "maxnum", "f32", "0"),
    )  # fmt: skip
    for n, combine, types, body in rows:
        for text in REDUCTIONS[:n]:
            yield operator("reduction", text, types, body, combine, EXTENTS)
    yield operator("reduction", "m k, m -> m", "f16 f32", "0 extf>f32 1 subf exp", "sum", EXTENTS)
    yield operator("reduction", "m k, m k, k -> m", "f32 f32 f32", "0 1 addf 2 mulf", "sum", EXTENTS)
    square = "@y c0 cmpi:eq 0 extf>f32 0 extf>f32 0 extf>f32 mulf select"
    for text in ("m k -> m y", "b m l -> b m y", "k m -> y m", "m l n -> y m n"):
        yield operator("reduction", text, "f16", square, "sum", EXTENTS)
    for n in (5, 7):
        added = " ".join(["0", *(f"{i} addf" for i in range(1, n))])
        yield operator(
            "reduction", ", ".join(["k n"] * n) + " -> n", " ".join(["f16"] * n), added, "max", EXTENTS
        )
    for text in POOLS:
        for dtype in FLOATS:
            yield operator("pooling", text, dtype, "0", "max", EXTENTS)
    yield operator("pooling", POOLS[1], "f16", "0 extf>f32", "sum", EXTENTS)
    yield operator("pooling", POOLS[2], "f32", "0", "sum", EXTENTS)


def _maps() -> Iterator[OperatorSpec]:
    for text, body in MAPS:
        for dtype in FLOATS:
            types = " ".join([dtype] * (1 + text.count(",")))
            yield operator("elementwise", text, types, body, "none", EXTENTS)
    for text in COPIES:
        for dtype in FLOATS:
            yield operator("elementwise", text, dtype, "0", "none", EXTENTS)
    for dtype in ("i1", "i8", "i32"):
        yield operator("elementwise", COPIES[1], dtype, "0", "none", EXTENTS)
    for types, cast in CASTS:
        yield operator("elementwise", COPIES[0], types, f"0 {cast}", "none", EXTENTS)
    for types, text, body in MIXED:
        yield operator("elementwise", text, types, body, "none", EXTENTS)


def _look_ups() -> Iterator[OperatorSpec]:
    for text in LOOK_UPS:
        for types in ("i64 f16", "i32 f32"):
            yield operator("gather", text, types, "1", "sum", EXTENTS, selected="v")


def _with_epilogues() -> Iterator[OperatorSpec]:
    for text, epilogue in EPILOGUES:
        for dtype in FLOATS:
            yield _product("contraction", text, dtype, epilogue)
