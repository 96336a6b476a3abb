"""Models of transformers that hear, and those of series of numbers."""

import torch
import transformers as t

from models.common import OPEN, Program, floats, indices
from models.language import SPECIAL, VOCABULARY, WIDE, ids

PROGRAMS = {}
WAVES = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16), conv_kernel=(5, 3),
    conv_stride=(3, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, vocab_size=32,
    num_codevectors_per_group=8, tdnn_dim=(16, 16), tdnn_kernel=(3, 3), tdnn_dilation=(1, 2), xvector_output_dim=8,
)


def waves(name, kind, config, *, key="input_values", shape=lambda n, m: (n, m), sizes=((2, 400), (1, 520)), open_at=1, **options):
    def inputs(n, m):
        return {key: floats(*shape(n, m))}

    PROGRAMS[name] = Program(
        lambda: getattr(t, kind)(getattr(t, config)(**options)), inputs, {key: {0: OPEN, open_at: OPEN} if open_at else {0: OPEN}}, list(sizes)
    )


for name, stem in dict(
    wav2vec2="Wav2Vec2", hubert="Hubert", wavlm="WavLM", unispeech="UniSpeech", unispeech_sat="UniSpeechSat",
    data2vec_audio="Data2VecAudio",
).items():
    waves(name, f"{stem}ForCTC", f"{stem}Config", **WAVES)
waves("wav2vec2_layer_norms", "Wav2Vec2Model", "Wav2Vec2Config", **WAVES, do_stable_layer_norm=True, feat_extract_norm="layer")
waves("wav2vec2_conformer", "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", **WAVES)
waves("sew", "SEWForCTC", "SEWConfig", **WAVES, squeeze_factor=2)
waves("sew_d", "SEWDForCTC", "SEWDConfig", **WAVES, squeeze_factor=2, position_buckets=8)
waves(
    "wav2vec2_bert", "Wav2Vec2BertModel", "Wav2Vec2BertConfig", key="input_features", shape=lambda n, m: (n, m, 16), hidden_size=32,
    num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, feature_projection_input_dim=16, vocab_size=32, sizes=((2, 30), (1, 41)),
)
waves(
    "audio_spectrogram_transformer", "ASTModel", "ASTConfig", shape=lambda n, m: (n, m, 32), sizes=((2, 64), (1, 64)), open_at=None,
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_length=64, num_mel_bins=32,
)
waves(
    "encodec", "EncodecModel", "EncodecConfig", shape=lambda n, m: (n, 1, m), sizes=((2, 640), (1, 640)), open_at=None, num_filters=4,
    hidden_size=16, upsampling_ratios=[4, 2], codebook_size=1024, codebook_dim=16, target_bandwidths=[30.0], kernel_size=3,
)
waves(
    "dac", "DacModel", "DacConfig", shape=lambda n, m: (n, 1, m), sizes=((2, 640), (1, 640)), open_at=None, encoder_hidden_size=8,
    downsampling_ratios=[4, 2], decoder_hidden_size=32, n_codebooks=2, codebook_size=16, codebook_dim=4,
)
waves(
    "hifi_gan", "SpeechT5HifiGan", "SpeechT5HifiGanConfig", key="spectrogram", shape=lambda n, m: (n, m, 8), sizes=((2, 12), (1, 17)),
    model_in_dim=8, upsample_initial_channel=16, upsample_rates=[2, 2], upsample_kernel_sizes=[4, 4], resblock_kernel_sizes=[3],
    resblock_dilation_sizes=[[1, 3]],
)


def spoken(name, kind, make, inputs, dims, sizes):
    def module():
        config = make()
        config.use_cache = False
        return getattr(t, kind)(config)

    PROGRAMS[name] = Program(module, inputs, dims, sizes)


spoken(
    "whisper", "WhisperForConditionalGeneration",
    lambda: t.WhisperConfig(**WIDE | dict(decoder_start_token_id=1), num_mel_bins=16, max_source_positions=20, max_target_positions=32),
    lambda n, k: {"input_features": floats(n, 16, 40), "decoder_input_ids": ids(n, k)},
    {"input_features": {0: OPEN}, "decoder_input_ids": {0: OPEN, 1: OPEN}}, [(2, 5), (1, 7)],
)
spoken(
    "speech_to_text", "Speech2TextModel",
    lambda: t.Speech2TextConfig(**WIDE, input_feat_per_channel=16, conv_channels=16, conv_kernel_sizes=(3, 3), max_source_positions=100, max_target_positions=32),
    lambda n, m, k: {"input_features": floats(n, m, 16), "decoder_input_ids": ids(n, k)},
    {"input_features": {0: OPEN, 1: OPEN}, "decoder_input_ids": {0: OPEN, 1: OPEN}}, [(2, 24, 5), (1, 32, 7)],
)
spoken(
    "moonshine", "MoonshineModel",
    lambda: t.MoonshineConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
        encoder_num_attention_heads=4, decoder_num_attention_heads=4, **SPECIAL),
    lambda n, m, k: {"input_values": floats(n, m), "decoder_input_ids": ids(n, k)},
    {"input_values": {0: OPEN, 1: OPEN}, "decoder_input_ids": {0: OPEN, 1: OPEN}}, [(2, 2000, 5), (1, 2500, 7)],
)
spoken(
    "clap_audio", "ClapAudioModelWithProjection",
    lambda: t.ClapAudioConfig(spec_size=64, num_mel_bins=16, window_size=4, patch_size=4, patch_stride=[4, 4], hidden_size=16, patch_embeds_hidden_size=8,
        depths=[1, 1], num_attention_heads=[2, 2], num_hidden_layers=2, projection_dim=16, enable_fusion=False),
    lambda n: {"input_features": floats(n, 1, 256, 16)}, {"input_features": {0: OPEN}}, [(2,), (1,)],
)

# Series.
SERIES = dict(context_length=32, num_input_channels=3, d_model=16, num_hidden_layers=2)
for name, kind, config, options in [
    ("patchtst", "PatchTSTForPrediction", "PatchTSTConfig", dict(patch_length=8, patch_stride=8, num_attention_heads=4, ffn_dim=32, prediction_length=6, scaling="std")),
    ("patchtsmixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", dict(patch_length=8, patch_stride=8, num_layers=2, prediction_length=6)),
]:
    spoken(
        name, kind, lambda config=config, options=options: getattr(t, config)(**SERIES | options), lambda n: {"past_values": floats(n, 32, 3)},
        {"past_values": {0: OPEN}}, [(2,), (1,)],
    )
FORECAST = dict(prediction_length=4, context_length=8, lags_sequence=[1, 2], num_time_features=2, d_model=16, encoder_layers=1, decoder_layers=1,
    encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32)
for name, stem in dict(time_series_transformer="TimeSeriesTransformer", informer="Informer", autoformer="Autoformer").items():
    spoken(
        name, f"{stem}Model", lambda stem=stem: getattr(t, f"{stem}Config")(**FORECAST | (dict(label_length=4, moving_average=3) if stem == "Autoformer" else {})),
        lambda n: {
            "past_values": floats(n, 10), "past_time_features": floats(n, 10, 2), "past_observed_mask": torch.ones(n, 10),
            "future_values": floats(n, 4), "future_time_features": floats(n, 4, 2),
        },
        {key: {0: OPEN} for key in ["past_values", "past_time_features", "past_observed_mask", "future_values", "future_time_features"]}, [(2,), (1,)],
    )
spoken(
    "decision_transformer", "DecisionTransformerModel",
    lambda: t.DecisionTransformerConfig(state_dim=3, act_dim=2, hidden_size=32, n_layer=2, n_head=4, max_ep_len=50, n_positions=64),
    lambda n, m: {
        "states": floats(n, m, 3), "actions": floats(n, m, 2), "rewards": floats(n, m, 1), "returns_to_go": floats(n, m, 1) + 1,
        "timesteps": indices(50, n, m), "attention_mask": torch.ones(n, m, dtype=torch.long),
    },
    {key: {0: OPEN, 1: OPEN} for key in ["states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask"]}, [(2, 5), (1, 7)],
)
spoken(
    "univnet", "UnivNetModel",
    lambda: t.UnivNetConfig(num_mel_bins=8, model_in_channels=8, model_hidden_channels=8, resblock_kernel_sizes=[3, 3], resblock_stride_sizes=[4, 4],
        resblock_dilation_sizes=[[1, 3], [1, 3]], kernel_predictor_hidden_channels=8),
    lambda n: {"input_features": floats(n, 12, 8), "noise_sequence": floats(n, 12, 8) + 0.1}, {"input_features": {0: OPEN}, "noise_sequence": {0: OPEN}}, [(2,), (1,)],
)
