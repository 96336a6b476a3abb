"""T5 and Whisper: a text or sounds, and the scores of the words that a decoder writes for them."""

import torch
import transformers

from common import Family, spread

T5 = {
    "vocab_size": 96,
    "d_model": 64,
    "d_kv": 24,
    "d_ff": 80,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
    "decoder_start_token_id": 0,
}
WHISPER = transformers.WhisperConfig(
    vocab_size=96,
    num_mel_bins=12,
    d_model=64,
    encoder_layers=2,
    encoder_attention_heads=4,
    encoder_ffn_dim=80,
    decoder_layers=3,
    decoder_attention_heads=2,
    decoder_ffn_dim=96,
    max_source_positions=20,
    max_target_positions=16,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
    suppress_tokens=[],
    begin_suppress_tokens=[],
)


def t5_scores(model, inputs):
    return {"expected": model(**inputs).logits}


def t5(feed_forward, is_tied):
    """The first version has tied weights and scaled results; the second a gate and a head of its own."""
    config = transformers.T5Config(feed_forward_proj=feed_forward, tie_word_embeddings=is_tied, **T5)
    model = transformers.T5ForConditionalGeneration(config)
    if not is_tied:
        # The configuration ties all the same.
        model.lm_head.weight = torch.nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        model.config.tie_word_embeddings = False
    spread(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("Attention.q.weight"):
                # Scores are not divided by the root of the heads' width: trained queries are as much smaller.
                parameter.mul_(config.d_kv**-0.5)
        # Nor are embeddings small: results are divided by the root of the width where their weights are the head's.
        model.shared.weight.mul_(config.d_model**0.5)
    mask = torch.ones(2, 17, dtype=torch.int64)
    # The second text is shorter.
    mask[1, 11:] = 0
    inputs = {
        "input_ids": torch.randint(3, 96, (2, 17)),
        "attention_mask": mask,
        "decoder_input_ids": torch.randint(3, 96, (2, 14)),
    }
    return Family(model, inputs, t5_scores)


def whisper_scores(model, inputs):
    outputs = model(inputs["input_features"], decoder_input_ids=inputs["decoder_input_ids"])
    return {"expected": outputs.logits}


def whisper():
    model = transformers.WhisperForConditionalGeneration(WHISPER)
    positions = model.model.encoder.embed_positions.weight.clone()
    spread(model)
    with torch.no_grad():
        model.model.encoder.embed_positions.weight.copy_(positions)
    inputs = {
        "input_features": torch.randn(2, 12, 40),
        "decoder_input_ids": torch.randint(3, 96, (2, 14)),
    }
    return Family(model, inputs, whisper_scores)


FAMILIES = {
    "t5": lambda: t5("gated-gelu", is_tied=False),
    "t5.first": lambda: t5("relu", is_tied=True),
    "whisper": whisper,
}
