"""Operators on tensors of all types: arithmetic, places, shapes, reductions."""

from __future__ import annotations

from typing import Any

from torch_exports.sample import Built, Computed, integers, numbers, sample, torch

F: Any = torch.nn.functional


@sample()
def einsums() -> Built:
    def forward(_: Any, x: Any, y: Any, w: Any) -> Any:
        return (
            torch.einsum("bik,bkj->bij", x, y),
            torch.einsum("bik,bjk->bij", x, w),
            torch.einsum("bik->kb", x),
            torch.einsum("bik,bjk->bijk", x, w),
        )

    return Computed(forward), (numbers(2, 3, 4), numbers(2, 4, 5), numbers(2, 5, 4))


@sample()
def float_arithmetic() -> Built:
    def forward(_: Any, x: Any, y: Any) -> Any:
        p = x.abs() + 0.5
        roots = torch.stack([p.sqrt(), p.rsqrt(), p.log(), p.log2(), x.exp(), p**1.7, x.tanh()])
        waves = torch.stack(
            [x.sin(), x.cos(), torch.tan(x), x.tanh(), torch.atan(x), x.erf(), x.neg(), x.sigmoid()]
        )
        steps = torch.stack(
            [x.floor(), x.ceil(), (x * 2).round(), torch.trunc(x), torch.frac(x), x.sign(), x.neg()]
        )
        bounded = torch.stack(
            [x.clamp(-0.5, 0.7), torch.minimum(x, y), torch.maximum(x, y), x.clamp(min=0.1)]
        )
        ratios = torch.stack(
            [x / p, torch.fmod(x, p), torch.remainder(x, p), torch.atan2(x, y), p.reciprocal()]
        )
        return roots, waves, steps, bounded, ratios, torch.lerp(x, y, 0.3), torch.addcmul(x, y, p, value=0.5)

    return Computed(forward), (numbers(3, 5), numbers(3, 5))


@sample()
def float_functions() -> Built:
    def forward(_: Any, x: Any) -> Any:
        p = x.abs() + 0.5
        return (
            torch.log1p(p),
            torch.expm1(x),
            torch.log10(p),
            torch.sinh(x),
            torch.cosh(x),
            torch.exp2(x),
            torch.square(x),
        )

    return Computed(forward), (numbers(3, 5),)


@sample()
def reductions() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return (
            x.sum(1),
            x.mean((0, 2), keepdim=True),
            x.amax(-1),
            x.amin((1, 2)),
            x.prod(1),
            x.std(2),
            x.var((0, 1), unbiased=False),
            x.norm(dim=1),
            x.abs().sum(),
            x.max(1).values,
            torch.linalg.vector_norm(x, 1, 2),
        )

    return Computed(forward), (numbers(2, 3, 4),)


@sample()
def running_sums() -> Built:
    def forward(_: Any, x: Any, n: Any) -> Any:
        return x.cumsum(1), n.cumsum(-1), x.flip(0).cumsum(0)

    return Computed(forward), (numbers(3, 7), integers(-5, 6, 2, 6))


@sample()
def shapes() -> Built:
    def forward(_: Any, x: Any) -> Any:
        a, b, c = x.split((1, 2, 1), 1)
        moved = torch.cat([b.squeeze(0), torch.stack([a[0, 0], c[0, 0]], 0)], 0)
        return (
            moved.permute(2, 1, 0).reshape(-1, 3),
            x.expand(3, 4, 5, 6)[..., ::2],
            x[:, 1:-1, -3:].unsqueeze(-1).repeat(1, 1, 1, 1, 2),
            torch.roll(x, 2, -1).flip(2),
            x.unfold(3, 3, 2),
            x.movedim(1, -1).flatten(1).unflatten(1, (10, 12)),
            torch.tile(x.select(2, 1), (1, 2, 1)),
        )

    return Computed(forward), (numbers(1, 4, 5, 6),)


@sample()
def padding() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return (
            F.pad(x, (1, 2, 0, 1), value=1.5),
            F.pad(x, (2, 1, 1, 1), mode="reflect"),
            F.pad(x, (1, 0, 2, 3), mode="replicate"),
            F.pad(x, (-1, 1)),
        )

    return Computed(forward), (numbers(1, 2, 4, 5),)


@sample()
def gathering() -> Built:
    def forward(_: Any, x: Any, places: Any, rows: Any) -> Any:
        return (
            x.gather(1, places),
            x.index_select(0, rows),
            x[rows],
            x[rows, rows],
            x[:, rows],
            F.one_hot(rows, 4),
            torch.where(places > 1, x[:, :3], -x[:, :3]),
        )

    return Computed(forward), (numbers(4, 5), integers(0, 4, 4, 3), integers(0, 4, 3))


@sample()
def scattering() -> Built:
    def forward(_: Any, x: Any, places: Any, values: Any) -> Any:
        return (
            x.scatter(1, places, values),
            x.scatter_add(1, places[:, :1], values[:, :1]),
            x.masked_fill(x > 0.5, 0.0),
        )

    places = torch.tensor([[0, 2, 4], [1, 0, 3], [4, 3, 2], [2, 1, 0]])
    return Computed(forward), (numbers(4, 5), places, numbers(4, 3))


@sample()
def writing_in_place() -> Built:
    def forward(_: Any, x: Any, rows: Any, values: Any) -> Any:
        y = x.clone()
        y[1, 1:3] = 7.0
        y[:, 0] += values
        return y, x.index_put((torch.arange(4), rows), values)

    return Computed(forward), (numbers(4, 5), integers(0, 5, 4), numbers(4))


@sample()
def places_that_data_decide() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return x.masked_scatter(x > 9, x * 2)

    return Computed(forward), (numbers(4, 5),)


@sample()
def ordering() -> Built:
    def forward(_: Any, x: Any) -> Any:
        top, places = torch.topk(x, 3, -1)
        ordered, order = torch.sort(x, 1, descending=True)
        return top, places, ordered, order, x.argmax(1), x.argmin(0, keepdim=True), x.max(-1).indices

    return Computed(forward), (numbers(3, 8),)


@sample()
def triangles() -> Built:
    def forward(_: Any, x: Any) -> Any:
        n = x.shape[-1]
        row = torch.arange(n)
        return (
            x.tril(),
            x.triu(1),
            torch.linspace(0, 1, 5) * x[:1, :5],
            (row[:, None] - row[None]).abs(),
            x.diagonal(),
        )

    return Computed(forward), (numbers(6, 6),)


@sample()
def places_and_diagonals() -> Built:
    def forward(m: Any, x: Any) -> Any:
        row = torch.arange(x.shape[-1])
        bias = m.bias[(row[:, None] - row[None]).clamp(-2, 2) + 2]
        return x.diagonal(), x + bias[..., 0], torch.eye(6) * x

    return Computed(forward, bias=torch.nn.Parameter(numbers(5, 1))), (numbers(6, 6),)


@sample()
def int64_arithmetic() -> Built:
    def forward(_: Any, a: Any, b: Any) -> Any:
        return (
            a + b * 2 - 1,
            torch.div(a, b, rounding_mode="floor"),
            torch.div(a, b, rounding_mode="trunc"),
            a % b,
            a.clamp(-3, 7),
            a.sum(1),
            torch.maximum(a, b),
            a.float() / b,
            (a == b) | (a > 3),
            -a.abs(),
        )

    return Computed(forward), (integers(-20, 20, 3, 4), integers(1, 7, 3, 4))


@sample()
def int32_arithmetic() -> Built:
    def forward(_: Any, a: Any, b: Any) -> Any:
        return (
            a + b,
            a * b - 3,
            torch.div(a, b, rounding_mode="floor"),
            a.abs(),
            a.to(torch.float32) * 0.5,
            (a < b).int(),
        )

    i32 = torch.int32
    return Computed(forward), (integers(-20, 20, 3, 4, dtype=i32), integers(1, 7, 3, 4, dtype=i32))


@sample()
def bitwise() -> Built:
    def forward(_: Any, a: Any, b: Any) -> Any:
        return a & b, a | b, a ^ b, ~a

    i32 = torch.int32
    return Computed(forward), (integers(0, 200, 3, 4, dtype=i32), integers(0, 200, 3, 4, dtype=i32))


@sample()
def bit_shifts() -> Built:
    def forward(_: Any, a: Any) -> Any:
        return a << 2, a >> 1

    return Computed(forward), (integers(0, 200, 3, 4, dtype=torch.int32),)


@sample()
def bytes_to_floats() -> Built:
    def forward(_: Any, picture: Any, delta: Any) -> Any:
        x = (picture.float() / 255 - 0.45) / 0.22
        return x, delta.float() * 0.1, (x * 20).to(torch.int8), picture.to(torch.int32) + delta

    i8 = torch.int8
    return Computed(forward), (
        integers(0, 256, 1, 3, 4, 4, dtype=torch.uint8),
        integers(-99, 99, 4, dtype=i8),
    )


@sample()
def boolean_masks() -> Built:
    def forward(_: Any, x: Any, a: Any, b: Any) -> Any:
        both = torch.logical_and(a, b) | torch.logical_xor(a, ~b)
        near = (x >= 0) & (x != 1) & torch.logical_not(x < -1)
        return (
            both,
            near,
            a.any(1),
            near.all(),
            torch.where(both, x, x * 0.5),
            a.float() @ b.float().t(),
            a.sum(-1),
        )

    a, b = integers(0, 2, 3, 4).bool(), integers(0, 2, 3, 4).bool()
    return Computed(forward), (numbers(3, 4), a, b)
