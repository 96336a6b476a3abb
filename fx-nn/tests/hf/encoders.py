"""BERT, XLM-RoBERTa, RoBERTa, ModernBERT, ViT, DINOv2 and CLIP: texts and images, and what is known of them.

`+` in a name parts a family from its variant.
"""

import torch
import transformers

from common import Family, spread

SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
WIDE = {**SIZES, "intermediate_size": 112}
END = 95
MODERN = {
    **WIDE,
    "vocab_size": 96,
    "num_hidden_layers": 4,
    "local_attention": 8,
    "max_position_embeddings": 64,
    "bos_token_id": 2,
    "eos_token_id": 0,
    "cls_token_id": 2,
    "sep_token_id": 0,
    "pad_token_id": 1,
}


def states(model, inputs):
    outputs = model(**inputs)
    return {"last_hidden_state": outputs.last_hidden_state, "pooler_output": outputs.pooler_output}


def logits(model, inputs):
    return {"logits": model(**inputs).logits}


def texts(types=3):
    """Three texts in each row, the second row shorter than the first."""
    mask = torch.ones(2, 14, dtype=torch.long)
    mask[1, 9:] = 0
    return {
        "input_ids": torch.randint(3, 96, (2, 14)) * mask,
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, types, (2, 14)),
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


def padded(types, length=14):
    """Texts with padding after the second and before the third, whose words are no padding elsewhere."""
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, 9:] = 0
    mask[2, :4] = 0
    return {
        "input_ids": torch.where(mask == 1, torch.randint(3, 96, (3, length)), 1),
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, types, (3, length)),
    }


def roberta(kind, types=1, length=14, **options):
    """Positions count the words that are no padding."""
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=96, max_position_embeddings=40, type_vocab_size=types, layer_norm_eps=1e-5, **options, **WIDE
    )
    model = spread(getattr(transformers, f"{kind}Model")(config))
    with torch.no_grad():
        model.pooler.dense.weight.mul_(0.5)
    return Family(model, padded(types, length), states)


def roberta_head():
    """Inside a model that scores words, with another number for padding."""
    config = transformers.XLMRobertaConfig(vocab_size=96, max_position_embeddings=32, pad_token_id=0, **WIDE)
    model = spread(transformers.XLMRobertaForMaskedLM(config))

    def inner(model, inputs):
        return {"last_hidden_state": model.roberta(**inputs).last_hidden_state}

    return Family(model, texts(2), inner)


def last_state(model, inputs):
    return {"last_hidden_state": model(**inputs).last_hidden_state}


def modernbert(length=23, **options):
    """Texts longer than the window of most layers."""
    config = transformers.ModernBertConfig(**{**MODERN, **options})
    inputs = padded(1, length)
    del inputs["token_type_ids"]
    return Family(spread(transformers.ModernBertModel(config)), inputs, last_state)


def modernbert_head():
    """Inside a model that scores words, every second layer of which sees everything."""
    family = modernbert(length=31, global_attn_every_n_layers=2)
    model = spread(transformers.ModernBertForMaskedLM(family.model.config))
    return Family(model, family.inputs, lambda model, inputs: last_state(model.model, inputs))


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
    "xlm-roberta": lambda: roberta("XLMRoberta"),
    "xlm-roberta.types": lambda: roberta("XLMRoberta", types=2, length=29, hidden_act="gelu_new"),
    "xlm-roberta.head": roberta_head,
    "roberta": lambda: roberta("Roberta", types=2, hidden_act="relu"),
    "modernbert": lambda: modernbert(num_hidden_layers=3, intermediate_size=80),
    # Layers in another order, and biases wherever there can be.
    "modernbert.listed": lambda: modernbert(
        length=40,
        layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention"],
        local_attention=5,
        attention_bias=True,
        mlp_bias=True,
        norm_bias=True,
        hidden_activation="silu",
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
        },
    ),
    "modernbert.head": modernbert_head,
    "vit": vit,
    "vit.model": vit_model,
    "dinov2": lambda: dinov2(mlp_ratio=2, qkv_bias=False),
    "dinov2.swiglu": lambda: dinov2(use_swiglu_ffn=True, use_mask_token=False),
    "dinov2.resized": lambda: dinov2(size=[22, 42], mlp_ratio=2),
    "clip": lambda: clip(END),
    "clip.old": lambda: clip(2),
}
