"""Networks written here, as their publications describe them: detectors, diffusion, steps of decoders with caches."""

from __future__ import annotations

from typing import Any

from torch_exports.sample import Built, Computed

from real_exports.language import GPT2, KV
from real_exports.network import image, library, network, numbers, tokens, torch

nn: Any = torch.nn
F: Any = torch.nn.functional


def _conv(n: int, m: int, kernel: int = 3, stride: int = 1) -> Any:
    """Return a convolution with a normalisation and SiLU behind it, as YOLO has them."""
    return nn.Sequential(
        nn.Conv2d(n, m, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(m), nn.SiLU()
    )


class _Split(nn.Module):
    """A block of YOLO v8: half of the channels go through a bottleneck, all of them are joined."""

    def __init__(self, n: int, m: int) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.first, self.last = _conv(n, m, 1), _conv(m + m // 2, m, 1)
        self.inner = nn.Sequential(_conv(m // 2, m // 2), _conv(m // 2, m // 2))

    def forward(self, x: Any) -> Any:
        a, b = self.first(x).chunk(2, 1)
        return self.last(torch.cat([a, b, b + self.inner(b)], 1))


class _Yolo(nn.Module):
    """Two scales, boxes as distributions over distances, scores of three classes."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.stem = nn.Sequential(_conv(3, 8, 3, 2), _conv(8, 16, 3, 2), _Split(16, 16))
        self.deep = nn.Sequential(_conv(16, 16, 3, 2), _Split(16, 16))
        self.pool, self.spread = nn.MaxPool2d(5, 1, 2), _conv(32, 16, 1)
        self.up, self.join = nn.Upsample(scale_factor=2), _Split(32, 16)
        self.boxes = nn.ModuleList([nn.Conv2d(16, 16, 1) for _ in range(2)])
        self.scores = nn.ModuleList([nn.Conv2d(16, 3, 1) for _ in range(2)])
        self.levels = nn.Buffer(torch.arange(4).float()[None, None, :, None])

    def forward(self, x: Any) -> Any:
        near = self.stem(x)
        far = self.deep(near)
        far = self.spread(torch.cat([far, self.pool(far)], 1))
        near = self.join(torch.cat([self.up(far), near], 1))
        boxes, scores, places, strides = list[Any](), list[Any](), list[Any](), list[Any]()
        for i, (level, stride) in enumerate(((near, 4.0), (far, 8.0))):
            h, w = level.shape[2:]
            boxes.append(self.boxes[i](level).flatten(2))
            scores.append(self.scores[i](level).flatten(2))
            y, x = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            places.append(torch.stack([x.flatten(), y.flatten()]))
            strides.append(torch.full((h * w,), stride))
        distances = torch.cat(boxes, 2).view(1, 4, 4, -1).softmax(2).mul(self.levels).sum(2)
        low, high = distances.chunk(2, 1)
        at, stride = torch.cat(places, 1)[None], torch.cat(strides)
        corners = torch.cat([at - low, at + high], 1) * stride
        return corners, torch.cat(scores, 2).sigmoid()


def _yolo() -> Built:
    return _Yolo(), (image(32),)


def _yolo_with_nms() -> Built:
    nms = library("torchvision.ops").nms

    def forward(m: Any, x: Any) -> Any:
        boxes, scores = m.yolo(x)
        best, kind = scores[0].max(0)
        kept = nms(boxes[0].t(), best, 0.5)
        return boxes[0].t()[kept], best[kept], kind[kept]

    return Computed(forward, yolo=_Yolo()), (image(32),)


class _Residual(nn.Module):
    """A block of a U-Net of diffusion: two convolutions, the time added between them."""

    def __init__(self, n: int, m: int, time: int = 0) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.before, self.first = nn.GroupNorm(2, n), nn.Conv2d(n, m, 3, padding=1)
        self.after, self.second = nn.GroupNorm(2, m), nn.Conv2d(m, m, 3, padding=1)
        self.time = nn.Linear(time, m) if time else None
        self.beside = nn.Conv2d(n, m, 1) if n != m else nn.Identity()

    def forward(self, x: Any, time: Any = None) -> Any:
        y = self.first(F.silu(self.before(x)))
        if self.time is not None:
            y = y + self.time(F.silu(time))[:, :, None, None]
        return self.beside(x) + self.second(F.silu(self.after(y)))


class _Across(nn.Module):
    """Attention of pixels to each other and to words."""

    def __init__(self, n: int, words: int) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.norm = nn.GroupNorm(2, n)
        self.own = nn.MultiheadAttention(n, 2, batch_first=True)
        self.other = nn.MultiheadAttention(n, 2, kdim=words, vdim=words, batch_first=True)

    def forward(self, x: Any, words: Any) -> Any:
        y = self.norm(x).flatten(2).transpose(1, 2)
        y = y + self.own(y, y, y, need_weights=False)[0]
        y = y + self.other(y, words, words, need_weights=False)[0]
        return x + y.transpose(1, 2).reshape(x.shape)


def _u_net() -> Built:
    def forward(m: Any, x: Any, step: Any, words: Any) -> Any:
        angles = step[:, None].float() * torch.exp(-torch.arange(4) * 2.0)
        time = m.time(torch.cat([angles.cos(), angles.sin()], 1))
        kept = m.down(m.enter(x), time)
        y = m.across(m.middle(F.avg_pool2d(kept, 2), time), words)
        y = torch.cat([F.interpolate(y, scale_factor=2.0, mode="nearest"), kept], 1)
        return m.leave(F.silu(m.up(y, time)))

    parts = {
        "time": nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16)),
        "enter": nn.Conv2d(4, 8, 3, padding=1),
        "down": _Residual(8, 8, 16),
        "middle": _Residual(8, 16, 16),
        "across": _Across(16, 12),
        "up": _Residual(24, 8, 16),
        "leave": nn.Conv2d(8, 4, 3, padding=1),
    }
    return Computed(forward, **parts), (numbers(1, 4, 8, 8), torch.tensor([7]), numbers(1, 5, 12))


def _vae_decoder() -> Built:
    def forward(m: Any, z: Any) -> Any:
        y = m.middle(m.enter(z))
        b, c, h, w = y.shape
        q, k, v = m.qkv(m.norm(y)).flatten(2).chunk(3, 1)
        y = y + ((q.transpose(1, 2) @ k / c**0.5).softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(
            b, c, h, w
        )
        y = m.last(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return torch.tanh(F.pixel_shuffle(m.leave(F.silu(y)), 1))

    parts = {
        "enter": nn.Conv2d(4, 16, 3, padding=1),
        "middle": _Residual(16, 16),
        "norm": nn.GroupNorm(2, 16),
        "qkv": nn.Conv2d(16, 48, 1),
        "last": _Residual(16, 8),
        "leave": nn.Conv2d(8, 3, 3, padding=1),
    }
    return Computed(forward, **parts), (numbers(1, 4, 6, 6),)


def _super_resolution() -> Built:
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)
    )
    return layers, (numbers(1, 1, 10, 10),)


def _expert_loop() -> Built:
    """Return a mixture of experts as it is trained: a loop over experts, each with the tokens that chose it."""

    def forward(m: Any, x: Any) -> Any:
        weights, chosen = m.gate(x).softmax(-1).topk(2)
        y = torch.zeros_like(x)
        for i, expert in enumerate(m.experts):
            rows, nth = torch.where(chosen == i)
            y.index_add_(0, rows, expert(x[rows]) * weights[rows, nth, None])
        return y

    experts = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
    return Computed(forward, gate=nn.Linear(16, 3), experts=experts), (numbers(5, 16),)


def _step(model: Any, key: Any, value: Any) -> Built:
    """Return one step of a decoder of one layer behind some tokens, whose cache grows."""
    cache = library("transformers").cache_utils.DynamicCache

    def forward(m: Any, word: Any, key: Any, value: Any) -> Any:
        kept = cache()
        kept.update(key, value, 0)
        made = m.model(input_ids=word, past_key_values=kept, use_cache=True)
        layer = made.past_key_values.layers[0]
        return made.logits, layer.keys, layer.values

    return Computed(forward, model=model), (tokens(1), key, value)


def _gpt2_step() -> Built:
    transformers = library("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**GPT2, "n_layer": 1}))
    return _step(model, numbers(1, 2, 5, 16), numbers(1, 2, 5, 16))


def _llama_step() -> Built:
    transformers = library("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**KV))
    return _step(model, numbers(1, 1, 5, 16), numbers(1, 1, 5, 16))


def _fixed_cache() -> Built:
    """Return a step of a decoder layer whose cache has room for 8 tokens, written where `place` says."""

    def forward(m: Any, x: Any, place: Any, keys: Any, values: Any) -> Any:
        q, k, v = (each.view(1, 1, 2, 16).transpose(1, 2) for each in m.qkv(m.norm(x)).chunk(3, -1))
        keys, values = keys.index_copy(2, place, k), values.index_copy(2, place, v)
        seen = torch.arange(8)[None, None, None] <= place
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return x + m.out(y.transpose(1, 2).flatten(2)), keys, values

    parts = {"norm": nn.LayerNorm(32), "qkv": nn.Linear(32, 96), "out": nn.Linear(32, 32)}
    cache = numbers(1, 2, 8, 16)
    return Computed(forward, **parts), (numbers(1, 1, 32), torch.tensor([5]), cache, cache.clone())


network("yolo_v8", _yolo)
network("yolo_v8_nms", _yolo_with_nms, "torchvision")
network("u_net", _u_net)
network("vae_decoder", _vae_decoder)
network("super_resolution", _super_resolution)
network("expert_loop", _expert_loop)
network("gpt2_step", _gpt2_step, "transformers")
network("llama_step", _llama_step, "transformers")
network("fixed_cache_step", _fixed_cache)
