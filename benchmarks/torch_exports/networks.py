"""Networks on rows and words: perceptrons, attention, recurrences, normalisations, activations."""

from __future__ import annotations

from typing import Any

from torch_exports.sample import F16, Built, Computed, integers, numbers, sample, torch

nn: Any = torch.nn
F: Any = torch.nn.functional


@sample(open_axes={0: 0})
def mlp() -> Built:
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10)), (numbers(4, 32),)


@sample()
def normalisations() -> Built:
    def forward(m: Any, x: Any) -> Any:
        y = m.instance(m.group(x))
        return m.layer(y), F.local_response_norm(y, 3), F.normalize(y, dim=1)

    return Computed(
        forward,
        group=nn.GroupNorm(2, 8),
        instance=nn.InstanceNorm2d(8, affine=True),
        layer=nn.LayerNorm((6, 6)),
    ), (numbers(2, 8, 6, 6),)


@sample()
def root_mean_square_norm() -> Built:
    return nn.Sequential(nn.RMSNorm(12, eps=1e-6), nn.Linear(12, 4)), (numbers(2, 3, 12),)


@sample()
def activations() -> Built:
    def forward(m: Any, x: Any) -> Any:
        simple = (F.elu, F.selu, F.silu, F.softplus, F.softsign, F.logsigmoid, F.relu6)
        y = torch.stack([each(x) for each in simple])
        rest = (F.gelu(x), m.prelu(x), F.leaky_relu(x), F.hardtanh(x), F.tanhshrink(x))
        shrunk = F.softshrink(x), F.hardshrink(x), F.threshold(x, 0.0, 0.0)
        return y, torch.stack([*rest, *shrunk]), F.glu(x, -1)

    return Computed(forward, prelu=nn.PReLU()), (numbers(3, 8) * 2,)


@sample()
def newer_activations() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return F.celu(x), F.mish(x), F.gelu(x, approximate="tanh"), F.hardswish(x), F.hardsigmoid(x)

    return Computed(forward), (numbers(3, 8) * 2,)


@sample()
def classifier_heads() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return F.softmax(x, 1), F.log_softmax(x, -1), torch.logsumexp(x, 2), F.softmin(x, 0), x.argmax(-1)

    return Computed(forward), (numbers(3, 4, 10),)


@sample()
def masked_attention() -> Built:
    def forward(m: Any, x: Any, padding: Any) -> Any:
        return m.attention(x, x, x, key_padding_mask=padding, need_weights=True)

    mask = torch.arange(6)[None] >= torch.tensor([[4], [6]])
    return Computed(forward, attention=nn.MultiheadAttention(16, 2, batch_first=True)), (
        numbers(2, 6, 16),
        mask,
    )


@sample()
def scaled_dot_products() -> Built:
    def forward(_: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        sdpa = F.scaled_dot_product_attention
        return sdpa(q, k, v, is_causal=True), sdpa(q, k, v, attn_mask=mask), sdpa(q, k, v, scale=0.3)

    heads = (numbers(1, 2, 5, 8), numbers(1, 2, 5, 8), numbers(1, 2, 5, 8))
    return Computed(forward), (*heads, torch.ones(5, 5, dtype=torch.bool).tril(1))


@sample()
def transformer_encoder() -> Built:
    layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), (numbers(2, 6, 16),)


@sample()
def transformer_decoder() -> Built:
    def forward(m: Any, x: Any, memory: Any) -> Any:
        return m.layer(x, memory, tgt_mask=m.mask)

    return Computed(
        forward,
        layer=nn.TransformerDecoderLayer(16, 2, 32, batch_first=True, norm_first=True),
        mask=nn.Buffer(nn.Transformer.generate_square_subsequent_mask(5)),
    ), (numbers(1, 5, 16), numbers(1, 7, 16))


@sample()
def causal_language_model() -> Built:
    def forward(m: Any, tokens: Any) -> Any:
        n = tokens.shape[1]
        x = m.words(tokens) + m.places(torch.arange(n, device=tokens.device))
        q, k, v = m.qkv(m.norm(x)).view(1, n, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(
            torch.ones(n, n).triu(1).bool(), float("-inf")
        )
        x = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(1, n, 16)
        return F.linear(x, m.words.weight)

    return Computed(
        forward,
        words=nn.Embedding(40, 16),
        places=nn.Embedding(12, 16),
        norm=nn.LayerNorm(16),
        qkv=nn.Linear(16, 48),
        mask=nn.Buffer(torch.ones(12, 12).triu(1).bool()),
    ), (integers(0, 40, 1, 7),)


@sample()
def rotary_attention() -> Built:
    def turned(x: Any) -> Any:
        angles = torch.arange(x.shape[-2]).float()[:, None] * 10_000 ** (-torch.arange(4) / 4)
        cos, sin = (torch.cat([each, each], -1) for each in (angles.cos(), angles.sin()))
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin

    def forward(m: Any, x: Any) -> Any:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * m.scale
        q = m.q(y).view(1, 6, 4, 8).transpose(1, 2)
        k, v = (each(y).view(1, 6, 2, 8).transpose(1, 2)[:, (0, 0, 1, 1)] for each in (m.k, m.v))
        scores = turned(q) @ turned(k).transpose(-1, -2) / 8**0.5 + torch.full((6, 6), -1e9).triu(1)
        y = scores.softmax(-1) @ v
        x = x + m.o(y.transpose(1, 2).flatten(2))
        return x + m.down(F.silu(m.gate(x)) * m.up(x))

    def linear(n: int, m: int) -> Any:
        return nn.Linear(n, m, bias=False)

    return Computed(
        forward,
        scale=nn.Parameter(numbers(32)),
        q=linear(32, 32),
        k=linear(32, 16),
        v=linear(32, 16),
        o=linear(32, 32),
        gate=linear(32, 24),
        up=linear(32, 24),
        down=linear(24, 32),
    ), (numbers(1, 6, 32),)


@sample()
def lstm() -> Built:
    def forward(m: Any, x: Any) -> Any:
        y, (hidden, cell) = m.cells(x)
        return y, hidden, cell

    return Computed(forward, cells=nn.LSTM(6, 8, num_layers=2, batch_first=True)), (numbers(2, 4, 6),)


@sample()
def gru() -> Built:
    def forward(m: Any, x: Any, start: Any) -> Any:
        y, last = m.cells(x, start)
        return y, last, m.plain(x)[0]

    parts = {"cells": nn.GRU(6, 8, bidirectional=True), "plain": nn.RNN(6, 5, nonlinearity="relu")}
    return Computed(forward, **parts), (numbers(4, 2, 6), numbers(2, 2, 8))


@sample()
def two_towers() -> Built:
    def forward(m: Any, text: Any, words: Any) -> Any:
        bag = m.words(words).mean(1)
        a, b = (each / each.norm(dim=-1, keepdim=True) for each in (m.text(text), bag))
        return a @ b.t() * m.scale.exp(), F.cosine_similarity(a, b, dim=1)

    return Computed(
        forward,
        text=nn.Linear(12, 8),
        words=nn.Embedding(20, 8, padding_idx=0),
        scale=nn.Parameter(torch.ones(())),
    ), (numbers(3, 12), integers(0, 20, 3, 5))


@sample(tolerance=F16)
def half_transformer() -> Built:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    return layer.half(), (numbers(1, 6, 16).half(),)


@sample(tolerance=F16)
def half_attention() -> Built:
    def forward(m: Any, x: Any) -> Any:
        q, k, v = m.qkv(m.norm(x)).chunk(3, -1)
        return x + m.out((q @ k.transpose(-1, -2) * 0.25).softmax(-1) @ v)

    parts = {"norm": nn.LayerNorm(16), "qkv": nn.Linear(16, 48), "out": nn.Linear(16, 16)}
    return Computed(forward, **parts).half(), (numbers(2, 5, 16).half(),)


@sample()
def double_mlp() -> Built:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double(), (numbers(2, 6).double(),)
