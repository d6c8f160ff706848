"""Networks on images and sound: transformers, convolutions, detectors, two towers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch_exports.sample import Built, Computed

from real_exports.network import SMALL, WORDS, image, library, network, numbers, of_config, tokens, torch

_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}


def _pixels() -> Mapping[str, Any]:
    return {"pixel_values": image()}


def _vision(name: str, family: str, options: Mapping[str, Any], head: str = "Model") -> None:
    of_config(name, family, options, _pixels, head=head)


_vision("vit", "ViT", {**_VISION, "num_labels": 5}, "ForImageClassification")
_vision("deit", "DeiT", _VISION)
_vision("beit", "Beit", {**_VISION, "use_relative_position_bias": True})
_vision("dinov2", "Dinov2", _VISION)
_vision("siglip_vision", "SiglipVision", _VISION)
_SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 8,
    "depths": [2, 1],
    "num_heads": [1, 2],
    "window_size": 4,
}
_vision("swin", "Swin", _SWIN)
_vision("swinv2", "Swinv2", _SWIN)
_vision("convnext", "ConvNext", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2})
_vision("convnextv2", "ConvNextV2", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2})
_vision(
    "segformer",
    "Segformer",
    {
        "hidden_sizes": [8, 16],
        "depths": [1, 1],
        "num_encoder_blocks": 2,
        "sr_ratios": [4, 2],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "num_attention_heads": [1, 2],
        "mlp_ratios": [2, 2],
        "decoder_hidden_size": 16,
        "num_labels": 4,
    },
    "ForSemanticSegmentation",
)
_vision("mobilevit", "MobileViT", {**_VISION, "patch_size": 2, "hidden_sizes": [16, 16, 16],
                                   "neck_hidden_sizes": [8, 8, 8, 8, 16, 16, 32], "output_stride": 32})  # fmt: skip
_vision("poolformer", "PoolFormer", {
    "hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2, "patch_sizes": [7, 3],
    "strides": [4, 2], "padding": [2, 1]})  # fmt: skip
_vision(
    "regnet", "RegNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "groups_width": 4}
)
_vision("levit", "Levit", {
    "image_size": 32, "hidden_sizes": [16, 24, 32], "num_attention_heads": [1, 2, 2], "depths": [1, 1, 1],
    "key_dim": [8, 8, 8]})  # fmt: skip
_vision("pvt", "Pvt", {
    "image_size": 32, "hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2, "patch_sizes": [4, 2],
    "strides": [4, 2], "sequence_reduction_ratios": [2, 1], "num_attention_heads": [1, 2],
    "mlp_ratios": [2, 2]})  # fmt: skip


def _clip() -> Mapping[str, Any]:
    return {"input_ids": tokens(), "pixel_values": image()}


def _towers(name: str, family: str) -> None:
    text = {**SMALL, "projection_dim": 16}
    options = {"text_config": text, "vision_config": {**_VISION, "projection_dim": 16}, "projection_dim": 16}
    of_config(name, family, options, _clip, result=lambda made: made.logits_per_image)


_towers("clip", "CLIP")
_towers("siglip", "Siglip")
_DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "num_queries": 5,
    "num_labels": 4,
}


def _detr() -> Built:
    transformers = library("transformers")
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    model = transformers.DetrForObjectDetection(transformers.DetrConfig(backbone_config=backbone, **_DETR))

    def forward(m: Any, pixels: Any) -> Any:
        made = m.model(pixel_values=pixels)
        return made.logits, made.pred_boxes

    return Computed(forward, model=model), (image(),)


network("detr", _detr, "transformers")


def _mel() -> Mapping[str, Any]:
    mask = torch.ones(1, 4, dtype=torch.int64)
    return {
        "input_features": numbers(1, 8, 12),
        "decoder_input_ids": tokens(4),
        "decoder_attention_mask": mask,
    }


of_config(
    "whisper",
    "Whisper",
    {
        "vocab_size": WORDS,
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "num_mel_bins": 8,
        "max_source_positions": 6,
        "max_target_positions": 16,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
    },
    _mel,
    head="ForConditionalGeneration",
    call={"use_cache": False},
)
_WAVES = {
    **SMALL,
    "conv_dim": (8, 8),
    "conv_kernel": (10, 4),
    "conv_stride": (5, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}
for _name, _family in (("wav2vec2", "Wav2Vec2"), ("hubert", "Hubert")):
    of_config(_name, _family, _WAVES, lambda: {"input_values": numbers(1, 200)})
of_config(
    "audio_spectrogram",
    "AST",
    {**{k: v for k, v in _VISION.items() if k != "image_size"}, "num_mel_bins": 16, "max_length": 32,
     "frequency_stride": 8, "time_stride": 8},
    lambda: {"input_values": numbers(1, 32, 16)},
)  # fmt: skip


def _torchvision(name: str, build: Callable[[Any], Any], size: int = 32) -> None:
    def built() -> Built:
        return build(library("torchvision.models")), (image(size),)

    network(name, built, "torchvision")


def _mobile_v3(models: Any) -> Any:
    setting = library("torchvision.models.mobilenetv3").InvertedResidualConfig
    rows = [
        (8, 3, 8, 8, True, "RE", 2, 1),
        (8, 3, 24, 8, False, "RE", 1, 1),
        (8, 5, 24, 16, True, "HS", 2, 1),
    ]
    return models.MobileNetV3([setting(*row, 1.0) for row in rows], last_channel=32, num_classes=5)


def _mobile_v2(models: Any) -> Any:
    return models.MobileNetV2(5, 0.25, [[1, 8, 1, 1], [3, 12, 2, 2], [3, 16, 1, 2]])


def _efficient(models: Any) -> Any:
    setting = library("torchvision.models.efficientnet").MBConvConfig
    rows = [setting(1, 3, 1, 8, 8, 1, 1.0, 1.0), setting(4, 5, 2, 8, 16, 1, 1.0, 1.0)]
    return models.EfficientNet(rows, dropout=0.0, last_channel=32, num_classes=5)


_torchvision("mobilenet_v2", _mobile_v2)
_torchvision("mobilenet_v3", _mobile_v3)
_torchvision("efficientnet", _efficient)
_torchvision("densenet", lambda models: models.DenseNet(4, (2, 2), 8, num_classes=5))
_torchvision(
    "shufflenet_v2", lambda models: models.ShuffleNetV2([1, 1, 1], [8, 16, 24, 32, 32], num_classes=5)
)
_torchvision("mnasnet", lambda models: models.MNASNet(0.1, num_classes=5), 32)
_torchvision("squeezenet", lambda models: models.SqueezeNet("1_1", num_classes=5), 33)


def _timm(name: str, model: str, size: int = 32, **options: Any) -> None:
    def built() -> Built:
        return library("timm").create_model(model, num_classes=5, **options), (image(size),)

    network(name, built, "timm")


def _mixer() -> Built:
    mixer = library("timm.models.mlp_mixer").MlpMixer
    return mixer(num_classes=5, img_size=32, patch_size=8, num_blocks=1, embed_dim=16), (image(),)


network("mixer", _mixer, "timm")
_timm("resnet", "resnet18", channels=(8, 8, 16, 16), layers=(1, 1, 1, 1), stem_width=8)
_timm("resnet50_like", "resnet50", channels=(4, 4, 8, 8), layers=(1, 1, 1, 1), stem_width=8)
_timm("vit_rope", "vit_small_patch16_rope_224", img_size=32, patch_size=8, embed_dim=32, depth=1, num_heads=2)
_timm("edgenext", "edgenext_xx_small", dims=(8, 16, 16, 24), depths=(1, 1, 1, 1))
_timm("xcit", "xcit_nano_12_p8_224", img_size=32, embed_dim=16, depth=1, num_heads=2)
