"""Networks on pictures: convolutions, pools, resampling."""

from __future__ import annotations

from typing import Any

from torch_exports.sample import F16, Built, Computed, numbers, sample, torch

nn: Any = torch.nn
F: Any = torch.nn.functional


@sample(open_axes={0: 0})
def residual_cnn() -> Built:
    def forward(m: Any, x: Any) -> Any:
        stem = F.max_pool2d(F.relu(m.norm(m.stem(x))), 3, 2, 1)
        block = F.relu(m.first_norm(m.first(stem)))
        joined = F.relu(m.second_norm(m.second(block)) + m.short(stem))
        return m.head(torch.flatten(F.adaptive_avg_pool2d(joined, 1), 1))

    return Computed(
        forward,
        stem=nn.Conv2d(3, 8, 5, 2, 2, bias=False),
        norm=nn.BatchNorm2d(8),
        first=nn.Conv2d(8, 16, 3, 2, 1, bias=False),
        first_norm=nn.BatchNorm2d(16),
        second=nn.Conv2d(16, 16, 3, 1, 1, bias=False),
        second_norm=nn.BatchNorm2d(16),
        short=nn.Conv2d(8, 16, 1, 2, bias=False),
        head=nn.Linear(16, 10),
    ), (numbers(2, 3, 16, 16),)


@sample()
def mobile_cnn() -> Built:
    return nn.Sequential(
        nn.Conv2d(4, 8, 1),
        nn.Hardswish(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.ReLU6(),
        nn.Conv2d(8, 12, 3, stride=2, groups=4, padding="valid"),
        nn.Hardsigmoid(),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        nn.AvgPool2d(2, 1, 1),
    ), (numbers(1, 4, 11, 11),)


@sample()
def transposed_convolutions() -> Built:
    def forward(m: Any, x: Any) -> Any:
        return F.pixel_shuffle(m.second(F.leaky_relu(m.first(x), 0.2)), 2), m.grouped(x)

    return Computed(
        forward,
        first=nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1),
        second=nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1, bias=False),
        grouped=nn.ConvTranspose2d(4, 4, 3, groups=2, dilation=2),
    ), (numbers(1, 4, 4, 4),)


@sample(open_axes={0: 0})
def unet() -> Built:
    def forward(m: Any, x: Any) -> Any:
        down = F.relu(m.down(x))
        low = F.relu(m.low(F.max_pool2d(down, 2)))
        up = F.interpolate(low, scale_factor=2.0, mode="nearest")
        return torch.sigmoid(m.up(torch.cat([up, down], 1)))

    return Computed(
        forward, down=nn.Conv2d(2, 6, 3, padding=1), low=nn.Conv2d(6, 8, 3, padding=1), up=nn.Conv2d(14, 2, 1)
    ), (numbers(1, 2, 8, 8),)


@sample()
def one_and_three_dims() -> Built:
    def forward(m: Any, x: Any, y: Any) -> Any:
        row = F.max_pool1d(F.relu(m.row(x)), 2, ceil_mode=True)
        volume = F.avg_pool3d(m.volume(y), 2)
        return row, F.adaptive_max_pool1d(row, 1), volume

    return Computed(forward, row=nn.Conv1d(4, 6, 3, dilation=2), volume=nn.Conv3d(2, 3, 3, padding=1)), (
        numbers(2, 4, 15),
        numbers(1, 2, 4, 4, 4),
    )


@sample()
def resizing() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return (
            F.interpolate(x, size=(7, 9), mode="nearest"),
            F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
        )

    return Computed(forward), (numbers(1, 2, 5, 6),)


@sample()
def smooth_resizing() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return (
            F.interpolate(x, size=(3, 10), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False),
        )

    return Computed(forward), (numbers(1, 2, 6, 6),)


@sample()
def detection_head() -> Built:
    def forward(m: Any, x: Any) -> Any:
        y = m.conv(x).view(1, 2, 7, 4, 4).permute(0, 1, 3, 4, 2).sigmoid()
        places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"), -1).float()
        xy, wh, scores = y.split((2, 2, 3), -1)
        boxes = torch.cat([(xy * 2 - 0.5 + places) * 8, (wh * 2) ** 2 * m.anchors, scores], -1)
        return boxes.view(1, -1, 7)

    return Computed(forward, conv=nn.Conv2d(6, 14, 1), anchors=nn.Buffer(numbers(1, 2, 1, 1, 2).abs())), (
        numbers(1, 6, 4, 4),
    )


@sample()
def sampling_grids() -> Built:
    def forward(_: Any, x: Any, theta: Any) -> Any:
        grid = F.affine_grid(theta, (1, 2, 5, 5), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False), F.grid_sample(
            x, grid, mode="nearest", align_corners=True
        )

    theta = torch.tensor([[[0.9, 0.13, 0.07], [-0.11, 0.83, 0.21]]])
    return Computed(forward), (numbers(1, 2, 6, 6), theta)


@sample(tolerance=F16)
def half_cnn() -> Built:
    module = nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1)
    )
    return module.half(), (numbers(1, 4, 6, 6).half(),)


@sample()
def squeeze_and_excite() -> Built:
    def forward(m: Any, x: Any) -> Any:
        gate = torch.sigmoid(m.up(F.silu(m.down(x.mean((2, 3), keepdim=True)))))
        y = m.norm((x * gate).permute(0, 2, 3, 1))
        return x + (m.scale * m.mix(F.gelu(y))).permute(0, 3, 1, 2)

    return Computed(
        forward,
        down=nn.Conv2d(8, 2, 1),
        up=nn.Conv2d(2, 8, 1),
        norm=nn.LayerNorm(8),
        mix=nn.Linear(8, 8),
        scale=nn.Parameter(numbers(8)),
    ), (numbers(1, 8, 5, 5),)


@sample(open_axes={0: 0})
def patch_tokens() -> Built:
    def forward(m: Any, x: Any) -> Any:
        patches = m.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([m.token.expand(x.shape[0], -1, -1), patches], 1) + m.places
        return m.head(m.norm(tokens)[:, 0])

    return Computed(
        forward,
        patches=nn.Conv2d(3, 8, 4, 4),
        token=nn.Parameter(numbers(1, 1, 8)),
        places=nn.Parameter(numbers(1, 5, 8)),
        norm=nn.LayerNorm(8),
        head=nn.Linear(8, 6),
    ), (numbers(2, 3, 8, 8),)


@sample()
def windows() -> Built:
    def forward(_: Any, x: Any) -> Any:
        cut = (
            torch.roll(x, (-1, -1), (1, 2)).view(1, 2, 3, 2, 3, 4).permute(0, 1, 3, 2, 4, 5).reshape(-1, 9, 4)
        )
        back = cut.view(1, 2, 2, 3, 3, 4).permute(0, 1, 3, 2, 4, 5).reshape(1, 6, 6, 4)
        return cut.mean(1), torch.roll(back, (1, 1), (1, 2))

    return Computed(forward), (numbers(1, 6, 6, 4),)


@sample()
def columns_of_pictures() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return (
            F.unfold(x, 3, padding=1, stride=2),
            F.pixel_unshuffle(x, 2),
            *F.max_pool2d(x, 2, return_indices=True),
        )

    return Computed(forward), (numbers(1, 2, 6, 6),)
