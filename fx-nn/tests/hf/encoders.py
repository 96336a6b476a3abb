"""BERT, ViT, DINOv2 and CLIP: texts and images, and what is known of them.

`+` in a name parts a family from its variant.
"""

import torch
import transformers

from common import Family, spread

SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
WIDE = {**SIZES, "intermediate_size": 112}
END = 95


def states(model, inputs):
    outputs = model(**inputs)
    return {"last_hidden_state": outputs.last_hidden_state, "pooler_output": outputs.pooler_output}


def logits(model, inputs):
    return {"logits": model(**inputs).logits}


def texts():
    """Three texts in each row, the second row shorter than the first."""
    mask = torch.ones(2, 14, dtype=torch.long)
    mask[1, 9:] = 0
    return {
        "input_ids": torch.randint(3, 96, (2, 14)) * mask,
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, 3, (2, 14)),
    }


def bert_config():
    return transformers.BertConfig(
        vocab_size=96, max_position_embeddings=32, type_vocab_size=3, hidden_act="gelu_new", **WIDE
    )


def bert():
    model = spread(transformers.BertModel(bert_config()))
    with torch.no_grad():
        # With unit weights the hyperbolic tangent is 1 nearly everywhere.
        model.pooler.dense.weight.mul_(0.5)
    return Family(model, texts(), states)


def bert_head():
    """With a head that scores words, and no state for the whole text."""
    model = spread(transformers.BertForMaskedLM(bert_config()))

    def inner(model, inputs):
        return {"last_hidden_state": model.bert(**inputs).last_hidden_state}

    return Family(model, texts(), inner)


def images(config):
    height, width = (config.image_size, config.image_size) if isinstance(config.image_size, int) else config.image_size
    return torch.randn(2, config.num_channels, height, width)


def vit():
    """Images and patches that are no squares, queries without a bias."""
    labels = {str(at): f"label {at}" for at in range(5)}
    config = transformers.ViTConfig(
        image_size=[24, 16], patch_size=[8, 4], qkv_bias=False, hidden_act="gelu_pytorch_tanh", id2label=labels, **WIDE
    )
    model = spread(transformers.ViTForImageClassification(config))
    return Family(model, {"pixel_values": images(config)}, logits)


def vit_model():
    """Without a head: with a state for the whole image, of its own width."""
    config = transformers.ViTConfig(
        image_size=20, patch_size=5, num_channels=1, pooler_output_size=24, pooler_act="relu", **WIDE
    )
    return Family(spread(transformers.ViTModel(config)), {"pixel_values": images(config)}, states)


def dinov2(size=28, **options):
    """Images of `size`, for a model of 28 pixels a side."""
    config = transformers.Dinov2Config(image_size=28, patch_size=7, layerscale_value=0.5, **options, **SIZES)
    model = spread(transformers.Dinov2Model(config))
    config.image_size = size
    inputs = {"pixel_values": images(config)}
    config.image_size = 28
    return Family(model, inputs, states)


def scores(model, inputs):
    outputs = model(**inputs)
    names = ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"]
    return {name: outputs[name] for name in names}


def clip(end):
    """Parts of two widths, texts that end at several places."""
    text = {"vocab_size": 96, "max_position_embeddings": 16, "bos_token_id": 94, "eos_token_id": end, "pad_token_id": end}
    vision = {"image_size": 24, "patch_size": 8, "hidden_size": 48, "num_attention_heads": 3}
    config = transformers.CLIPConfig(
        text_config={**WIDE, **text},
        vision_config={**WIDE, **vision, "hidden_act": "gelu"},
        projection_dim=40,
    )
    words = torch.randint(3, 94, (3, 12))
    mask = torch.ones_like(words)
    for row, length in enumerate((12, 7, 4)):
        words[row, 0] = 94
        words[row, length - 1 :] = END
        mask[row, length:] = 0
    inputs = {"input_ids": words, "pixel_values": images(config.vision_config), "attention_mask": mask}
    return Family(spread(transformers.CLIPModel(config)), inputs, scores)


FAMILIES = {
    "bert": bert,
    "bert.head": bert_head,
    "vit": vit,
    "vit.model": vit_model,
    "dinov2": lambda: dinov2(mlp_ratio=2, qkv_bias=False),
    "dinov2.swiglu": lambda: dinov2(use_swiglu_ffn=True, use_mask_token=False),
    "dinov2.resized": lambda: dinov2(size=[22, 42], mlp_ratio=2),
    "clip": lambda: clip(END),
    "clip.old": lambda: clip(2),
}
