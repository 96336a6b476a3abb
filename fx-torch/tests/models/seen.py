"""Models of transformers that see, from tiny configurations, and those that see and read."""

import torch
import transformers as t

from models.common import OPEN, Program, floats, indices, padded
from models.language import BASE, SPECIAL, VOCABULARY, ids

PROGRAMS = {}
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
STAGES = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])


def pixels(name, kind, config, *, size=64, second=None, others=None, silent=(), **options):
    """A model of images; with a second size both are open."""

    def inputs(n, s):
        return {"pixel_values": floats(n, 3, s, s)} | (others(n) if others else {})

    dims = {"pixel_values": {0: OPEN, 2: OPEN, 3: OPEN} if second else {0: OPEN}}
    dims |= {key: {0: OPEN} for key in (others(1) if others else {})}

    def make():
        own = getattr(t, config)(**{key: value() if callable(value) else value for key, value in options.items()})
        if hasattr(own, "use_cache"):
            own.use_cache = False
        return getattr(t, kind)(own)

    PROGRAMS[name] = Program(make, inputs, dims, [(2, size), (1, second or size)], silent)


PATCHES = SMALL | dict(image_size=64, patch_size=16)
pixels("vit", "ViTForImageClassification", "ViTConfig", **PATCHES)
pixels("deit", "DeiTForImageClassification", "DeiTConfig", **PATCHES)
pixels("beit", "BeitModel", "BeitConfig", **PATCHES, use_relative_position_bias=True)
pixels("data2vec_vision", "Data2VecVisionModel", "Data2VecVisionConfig", **PATCHES)
pixels("dinov2", "Dinov2Model", "Dinov2Config", **PATCHES)
pixels("dinov2_with_registers", "Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", **PATCHES)
pixels("dinov3_vit", "DINOv3ViTModel", "DINOv3ViTConfig", **PATCHES)
pixels("dinov3_convnext", "DINOv3ConvNextModel", "DINOv3ConvNextConfig", **STAGES, second=96)
pixels("ijepa", "IJepaModel", "IJepaConfig", **PATCHES)
pixels("vit_msn", "ViTMSNModel", "ViTMSNConfig", **PATCHES)
pixels("vit_mae", "ViTMAEModel", "ViTMAEConfig", **PATCHES, mask_ratio=0.0, others=lambda n: {"noise": floats(n, 16)})
pixels("yolos", "YolosForObjectDetection", "YolosConfig", **PATCHES | dict(image_size=[64, 64]), num_detection_tokens=5)
pixels(
    "dpt", "DPTForDepthEstimation", "DPTConfig", **PATCHES | dict(num_hidden_layers=4), backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16],
    fusion_hidden_size=16,
)
pixels(
    "depth_anything", "DepthAnythingForDepthEstimation", "DepthAnythingConfig",
    backbone_config=lambda: t.Dinov2Config(**PATCHES | dict(num_hidden_layers=4), out_indices=[1, 2, 3, 4], apply_layernorm=False, reshape_hidden_states=False),
    reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, head_hidden_size=8, patch_size=16,
)
pixels("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig", **PATCHES)
pixels("clip_vision", "CLIPVisionModelWithProjection", "CLIPVisionConfig", **PATCHES, projection_dim=16)
pixels("aimv2_vision", "Aimv2VisionModel", "Aimv2VisionConfig", **PATCHES)
pixels("vitdet", "VitDetModel", "VitDetConfig", **{**SMALL, "image_size": 64, "patch_size": 16})
pixels("hiera", "HieraModel", "HieraConfig", image_size=[64, 64], embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2])
WINDOWS = dict(image_size=64, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4)
pixels("swin", "SwinForImageClassification", "SwinConfig", **WINDOWS)
pixels("swinv2", "Swinv2ForImageClassification", "Swinv2Config", **WINDOWS)
pixels("donut_swin", "DonutSwinModel", "DonutSwinConfig", **WINDOWS)
pixels("maskformer_swin", "MaskFormerSwinModel", "MaskFormerSwinConfig", **WINDOWS)
pixels(
    "swin2sr", "Swin2SRForImageSuperResolution", "Swin2SRConfig", image_size=32, size=32, embed_dim=16, depths=[1, 1],
    num_heads=[2, 2], window_size=4, upscale=2,
)
pixels(
    "segformer", "SegformerForSemanticSegmentation", "SegformerConfig", **STAGES, num_attention_heads=[1, 2, 2, 4],
    decoder_hidden_size=16, second=96,
)
pixels("glpn", "GLPNForDepthEstimation", "GLPNConfig", **STAGES, num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16)
pixels("pvt", "PvtModel", "PvtConfig", **STAGES, image_size=64, num_attention_heads=[1, 2, 2, 4], sequence_reduction_ratios=[4, 2, 1, 1])
pixels("pvt_v2", "PvtV2Model", "PvtV2Config", **STAGES, num_attention_heads=[1, 2, 2, 4], image_size=64)
pixels("convnext", "ConvNextForImageClassification", "ConvNextConfig", **STAGES, second=96)
pixels("convnextv2", "ConvNextV2Model", "ConvNextV2Config", **STAGES, second=96)
pixels("poolformer", "PoolFormerModel", "PoolFormerConfig", **STAGES, second=96)
pixels("resnet", "ResNetModel", "ResNetConfig", **STAGES, embedding_size=8, second=96)
pixels("regnet", "RegNetModel", "RegNetConfig", **STAGES, embedding_size=8, groups_width=8, second=96)
pixels("bit", "BitModel", "BitConfig", **STAGES | dict(hidden_sizes=[32, 32, 64, 64]), embedding_size=32, num_groups=8)
pixels("van_like_focalnet", "FocalNetModel", "FocalNetConfig", image_size=64, embed_dim=16, depths=[1, 1, 1, 1])
pixels("efficientnet", "EfficientNetModel", "EfficientNetConfig", image_size=64, width_coefficient=0.5, depth_coefficient=0.3, hidden_dim=640)
pixels("mobilenet_v1", "MobileNetV1Model", "MobileNetV1Config", depth_multiplier=0.25, min_depth=8)
pixels("mobilenet_v2_model", "MobileNetV2Model", "MobileNetV2Config", depth_multiplier=0.25)
pixels(
    "mobilevit", "MobileViTModel", "MobileViTConfig", size=128, image_size=128, hidden_sizes=[16, 24, 32],
    neck_hidden_sizes=[8, 8, 16, 16, 16, 24, 32],
)
pixels("mobilevitv2", "MobileViTV2Model", "MobileViTV2Config", image_size=64, width_multiplier=0.25)
pixels(
    "levit", "LevitModel", "LevitConfig", image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 2],
    depths=[1, 1, 1], key_dim=[8, 8, 8],
)
pixels(
    "cvt", "CvtModel", "CvtConfig", embed_dim=[8, 16, 32], num_heads=[1, 2, 2], depth=[1, 1, 2],
)
# Its attention normalizes one number: the sign is left.
pixels("swiftformer", "SwiftFormerModel", "SwiftFormerConfig", silent=(".attn.",), size=128, image_size=128, depths=[1, 1, 1, 1], embed_dims=[8, 16, 24, 32])
pixels("hgnet_v2", "HGNetV2Backbone", "HGNetV2Config", second=96)
pixels("textnet", "TextNetModel", "TextNetConfig", second=96)
pixels("superpoint", "SuperPointForKeypointDetection", "SuperPointConfig")


def small_resnet():
    return t.ResNetConfig(**STAGES, embedding_size=8, layer_type="basic", out_features=["stage1", "stage2", "stage3", "stage4"])


# Queries begin as zeros: the first attention among them is a mean of the same.
DETR = dict(
    silent=("decoder.layers.0.self_attn.",),
    use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, backbone_config=small_resnet, d_model=32, num_queries=6,
    encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
)
pixels("detr", "DetrForObjectDetection", "DetrConfig", **DETR)
pixels("conditional_detr", "ConditionalDetrForObjectDetection", "ConditionalDetrConfig", **DETR)
pixels("deformable_detr", "DeformableDetrForObjectDetection", "DeformableDetrConfig", **DETR, encoder_n_points=2, decoder_n_points=2)
pixels("table_transformer", "TableTransformerForObjectDetection", "TableTransformerConfig", **DETR)
pixels("dab_detr", "DabDetrForObjectDetection", "DabDetrConfig", **{k: v for k, v in DETR.items() if k != "d_model"}, hidden_size=32)
pixels(
    "upernet", "UperNetForSemanticSegmentation", "UperNetConfig", hidden_size=16, pool_scales=[1, 2], auxiliary_in_channels=24,
    auxiliary_channels=8,
    backbone_config=lambda: t.ConvNextConfig(**STAGES, out_features=["stage1", "stage2", "stage3", "stage4"]),
)
pixels(
    "rt_detr", "RTDetrForObjectDetection", "RTDetrConfig", d_model=32, num_queries=6, encoder_hidden_dim=32, encoder_layers=1,
    decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
    encoder_in_channels=[16, 24, 32], decoder_in_channels=[32, 32, 32], feat_strides=[8, 16, 32], num_labels=5, decoder_n_points=2,
    backbone_config=lambda: t.RTDetrResNetConfig(**STAGES, embedding_size=8, layer_type="basic", out_features=["stage2", "stage3", "stage4"]),
)

# Videos.
FILMS = dict(image_size=32, patch_size=16, **SMALL)


def film(name, kind, config, frames=4, size=32, key="pixel_values", **options):
    PROGRAMS[name] = Program(
        lambda: getattr(t, kind)(getattr(t, config)(**options)), lambda n: {key: floats(n, frames, 3, size, size)},
        {key: {0: OPEN}}, [(2,), (1,)],
    )


film("timesformer", "TimesformerModel", "TimesformerConfig", **FILMS, num_frames=4)
film("videomae", "VideoMAEForVideoClassification", "VideoMAEConfig", **FILMS, num_frames=4)
film("vivit", "VivitModel", "VivitConfig", **FILMS, num_frames=4, tubelet_size=[2, 16, 16])
film(
    "vjepa2", "VJEPA2Model", "VJEPA2Config", key="pixel_values_videos", crop_size=32, frames_per_clip=4, hidden_size=36,
    num_attention_heads=2, num_hidden_layers=2, mlp_ratio=2, pred_hidden_size=24, pred_num_attention_heads=2,
    pred_num_hidden_layers=2, pred_num_mask_tokens=2,
)


# Images and text.
def seen_and_read(name, kind, make, size=64, texts=None, others=None, sizes=((2, 7), (1, 11)), mask=True):
    def inputs(n, m):
        own = {"input_ids": ids(texts or n, m), "pixel_values": floats(n, 3, size, size)}
        if mask:
            own["attention_mask"] = padded(texts or n, m)
        return own | (others(n, m) if others else {})

    def dims():
        own = {key: {0: OPEN, 1: OPEN} for key in inputs(1, 2)}
        own["pixel_values"] = {0: OPEN}
        if texts:
            own["input_ids"] = own["attention_mask"] = {1: OPEN}
        return own

    PROGRAMS[name] = Program(lambda: getattr(t, kind)(make()), inputs, dims(), list(sizes))


TEXTS = dict(BASE, **SPECIAL)
IMAGES = dict(PATCHES)
seen_and_read("clip", "CLIPModel", lambda: t.CLIPConfig(text_config=TEXTS, vision_config=IMAGES, projection_dim=16))
seen_and_read("siglip", "SiglipModel", lambda: t.SiglipConfig(text_config=TEXTS | dict(projection_size=32), vision_config=IMAGES))
seen_and_read("chinese_clip", "ChineseCLIPModel", lambda: t.ChineseCLIPConfig(text_config=TEXTS, vision_config=IMAGES, projection_dim=16))
seen_and_read("altclip", "AltCLIPModel", lambda: t.AltCLIPConfig(text_config=TEXTS | dict(project_dim=16), vision_config=IMAGES, projection_dim=16))
seen_and_read(
    "align", "AlignModel",
    lambda: t.AlignConfig(text_config=TEXTS, vision_config=dict(image_size=64, width_coefficient=0.5, depth_coefficient=0.3, hidden_dim=640), projection_dim=32),
)
seen_and_read("blip", "BlipModel", lambda: t.BlipConfig(text_config=TEXTS | dict(encoder_hidden_size=32), vision_config=IMAGES, projection_dim=16))
seen_and_read(
    "clipseg", "CLIPSegForImageSegmentation",
    lambda: t.CLIPSegConfig(text_config=TEXTS, vision_config=IMAGES, projection_dim=16, extract_layers=[0, 1], reduce_dim=16, decoder_num_attention_heads=2, decoder_intermediate_size=32),
)
seen_and_read("owlvit", "OwlViTModel", lambda: t.OwlViTConfig(text_config=TEXTS, vision_config=IMAGES, projection_dim=16))
seen_and_read("groupvit", "GroupViTModel", lambda: t.GroupViTConfig(
    text_config=TEXTS, vision_config=dict(image_size=64, patch_size=16, hidden_size=32, intermediate_size=64, depths=[1, 1, 1], num_hidden_layers=3,
    num_group_tokens=[8, 4, 0], num_output_groups=[8, 4, 0], num_attention_heads=4), projection_dim=16, projection_intermediate_dim=32))
seen_and_read("vilt", "ViltModel", lambda: t.ViltConfig(**BASE, image_size=64, patch_size=16), others=lambda n, m: {"token_type_ids": indices(2, n, m)})
seen_and_read("git", "GitModel", lambda: t.GitConfig(**TEXTS, vision_config=IMAGES, use_cache=False))
seen_and_read("flava", "FlavaModel", lambda: t.FlavaConfig(
    text_config=TEXTS, image_config=IMAGES, multimodal_config=dict(SMALL), hidden_size=32, projection_dim=16))
seen_and_read("bridgetower", "BridgeTowerModel", lambda: t.BridgeTowerConfig(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, text_config=TEXTS | dict(hidden_size=64),
    vision_config=dict(hidden_size=64, num_hidden_layers=4, image_size=64, patch_size=16)))
