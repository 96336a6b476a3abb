"""PyTorch models with random weights, small where a family lets one choose its sizes: what `exports.py` exports.

`MODELS` has, by name, a function that makes `(module, inputs, open_dims)`: inputs by the name of the argument, and the dims of each
that stay open.
"""

import torch

BATCH, LENGTH = "batch", "length"
MODELS = {}
# Torchvision's classifiers, each with the size of picture that it takes.
PICTURES = {
    "alexnet": 96, "squeezenet1_1": 96, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64,
    "densenet121": 64, "googlenet": 96, "inception_v3": 160, "shufflenet_v2_x1_0": 64, "mobilenet_v2": 64,
    "mobilenet_v3_small": 64, "mobilenet_v3_large": 64, "mnasnet0_5": 64, "efficientnet_b0": 64, "efficientnet_v2_s": 64,
    "regnet_y_400mf": 64, "regnet_x_400mf": 64, "convnext_tiny": 64, "vit_b_16": 224, "swin_t": 64, "swin_v2_t": 64,
    "maxvit_t": 224,
}


def pictures(name, size):
    def make():
        import torchvision

        module = getattr(torchvision.models, name)(weights=None)
        return module, {"x": torch.rand(2, 3, size, size)}, {"x": {0: BATCH}}

    MODELS[f"tv_{name}"] = make


for _name, _size in PICTURES.items():
    pictures(_name, _size)


def segmentation(name):
    def make():
        import torchvision

        module = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)

        class Scores(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.module = module

            def forward(self, x):
                return self.module(x)["out"]

        return Scores(), {"x": torch.rand(2, 3, 64, 64)}, {"x": {0: BATCH}}

    MODELS[f"tv_{name}"] = make


for _name in ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]:
    segmentation(_name)


def video(name, frames, size):
    def make():
        import torchvision

        module = getattr(torchvision.models.video, name)(weights=None)
        return module, {"x": torch.rand(1, 3, frames, size, size)}, {"x": {0: BATCH}}

    MODELS[f"tv_{name}"] = make


video("r3d_18", 4, 32)
video("mc3_18", 4, 32)
video("s3d", 14, 64)

SIZES = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
TEXT = dict(SIZES, vocab_size=100, max_position_embeddings=1024)
MARKS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(TEXT, num_key_value_heads=2, **MARKS)
GPT2 = dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=1024)


class Kept(torch.nn.Module):
    """The first tensor of what a model of Hugging Face's gives, by the names of its inputs."""

    def __init__(self, model, names, out):
        super().__init__()
        self.model, self.names, self.out = model, names, out

    def forward(self, *inputs):
        given = dict(zip(self.names, inputs, strict=True))
        return getattr(self.model(**given, return_dict=True), self.out)


def hugging(name, kind, config, out, inputs, open_dims, **options):
    def make():
        import transformers

        made = getattr(transformers, config)(**options)
        if hasattr(made, "use_cache"):
            made.use_cache = False
        made._attn_implementation = "eager"
        return Kept(getattr(transformers, kind)(made), list(inputs), out), inputs, open_dims

    MODELS[f"hf_{name}"] = make


def text(name, kind, config=None, out=None, **options):
    ids = torch.randint(3, 90, (2, 11), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(2, 11, dtype=torch.int64)
    dims = {0: BATCH, 1: LENGTH}
    inputs, open_dims = {"input_ids": ids, "attention_mask": mask}, {"input_ids": dims, "attention_mask": dims}
    config = config or kind.replace("ForCausalLM", "").replace("Model", "") + "Config"
    out = out or ("logits" if "LM" in kind else "last_hidden_state")
    hugging(name, kind, config, out, inputs, open_dims, **options)


for _name, _stem in dict(
    bert="Bert", roberta="Roberta", electra="Electra", xlm_roberta="XLMRoberta", camembert="Camembert", ernie="Ernie",
    mpnet="MPNet", rembert="RemBert", mobilebert="MobileBert", layoutlm="LayoutLM", esm="Esm", ibert="IBert",
    nystromformer="Nystromformer", splinter="Splinter", convbert="ConvBert",
).items():
    text(_name, f"{_stem}Model", **TEXT)
text("albert", "AlbertModel", **TEXT, embedding_size=16)
text("distilbert", "DistilBertModel", vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
text("deberta_v2", "DebertaV2Model", **TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8,
     norm_rel_ebd="layer_norm", share_att_key=True)
text("modernbert", "ModernBertModel", **TEXT, local_attention=4, global_attn_every_n_layers=2, **MARKS, cls_token_id=1,
     sep_token_id=2)
text("gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT2)
text("gptj", "GPTJForCausalLM", **GPT2, rotary_dim=4)
text("gpt_neo", "GPTNeoForCausalLM", vocab_size=100, hidden_size=32, num_layers=2, num_heads=4, window_size=4,
     attention_types=[[["global", "local"], 1]], max_position_embeddings=1024)
text("bloom", "BloomForCausalLM", vocab_size=100, hidden_size=32, n_layer=2, n_head=4)
text("mpt", "MptForCausalLM", vocab_size=100, d_model=32, n_layers=2, n_heads=4, max_seq_len=1024)
text("opt", "OPTForCausalLM", vocab_size=100, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
     word_embed_proj_dim=32, max_position_embeddings=1024)
for _name, _stem in dict(
    gpt_neox="GPTNeoX", phi="Phi", starcoder2="Starcoder2", stablelm="StableLm", falcon="Falcon", codegen="CodeGen",
    persimmon="Persimmon", biogpt="BioGpt",
).items():
    text(_name, f"{_stem}ForCausalLM", **TEXT)
for _name, _stem in dict(
    llama="Llama", mistral="Mistral", qwen2="Qwen2", olmo="Olmo", olmo2="Olmo2", granite="Granite", cohere="Cohere",
    phi3="Phi3", nemotron="Nemotron", smollm3="SmolLM3", helium="Helium", glm="Glm", exaone4="Exaone4",
).items():
    text(_name, f"{_stem}ForCausalLM", **GROUPED)
for _name, _stem, _config in [("qwen3", "Qwen3", None), ("gemma", "Gemma", None), ("gemma2", "Gemma2", None),
                              ("gemma3", "Gemma3", "Gemma3TextConfig")]:
    text(_name, f"{_stem}ForCausalLM", _config, **GROUPED, head_dim=8)
text("mamba", "MambaForCausalLM", vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2)


def seq2seq(name, kind, config, **options):
    ids = torch.randint(3, 90, (2, 11), generator=torch.Generator().manual_seed(1))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids[:, :5].clone()}
    dims = {0: BATCH, 1: LENGTH}
    open_dims = {"input_ids": dims, "attention_mask": dims, "decoder_input_ids": {0: BATCH, 1: "decoded"}}
    out = "logits" if "Generation" in kind else "last_hidden_state"
    hugging(name, kind, config, out, inputs, open_dims, **options)


seq2seq("t5", "T5ForConditionalGeneration", "T5Config", vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
seq2seq("mt5", "MT5ForConditionalGeneration", "MT5Config", vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2,
        num_heads=4)
CODERS = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=100)
for _name, _stem in dict(bart="Bart", mbart="MBart", pegasus="Pegasus", marian="Marian", m2m_100="M2M100").items():
    seq2seq(_name, f"{_stem}Model", f"{_stem}Config", **CODERS, max_position_embeddings=1024, **MARKS)


def eyes(name, kind, config, out, size=64, **options):
    pixels = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    hugging(name, kind, config, out, {"pixel_values": pixels}, {"pixel_values": {0: BATCH}}, **options)


PATCHES = dict(SIZES, image_size=64, patch_size=16)
STAGES = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
WINDOWS = dict(image_size=64, patch_size=4, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4)
eyes("vit", "ViTForImageClassification", "ViTConfig", "logits", **PATCHES)
eyes("deit", "DeiTForImageClassification", "DeiTConfig", "logits", **PATCHES)
eyes("beit", "BeitModel", "BeitConfig", "last_hidden_state", **PATCHES)
eyes("dinov2", "Dinov2Model", "Dinov2Config", "last_hidden_state", 56, image_size=56, patch_size=14, hidden_size=32,
     num_hidden_layers=2, num_attention_heads=4)
eyes("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig", "last_hidden_state", **PATCHES)
eyes("swin", "SwinForImageClassification", "SwinConfig", "logits", **WINDOWS)
eyes("swinv2", "Swinv2ForImageClassification", "Swinv2Config", "logits", **WINDOWS)
eyes("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", "logits", hidden_sizes=[8, 16, 24, 32],
     num_attention_heads=[1, 2, 2, 4], depths=[1, 1, 1, 1], decoder_hidden_size=16)
eyes("convnextv2", "ConvNextV2Model", "ConvNextV2Config", "last_hidden_state", **STAGES)
eyes("poolformer", "PoolFormerModel", "PoolFormerConfig", "last_hidden_state", **STAGES)
eyes("resnet", "ResNetModel", "ResNetConfig", "last_hidden_state", embedding_size=8, **STAGES)
eyes("mobilevit", "MobileViTModel", "MobileViTConfig", "last_hidden_state", image_size=64, hidden_sizes=[16, 24, 32],
     neck_hidden_sizes=[8, 8, 16, 16, 16, 24, 32])
eyes("levit", "LevitModel", "LevitConfig", "last_hidden_state", image_size=64, hidden_sizes=[16, 24, 32],
     num_attention_heads=[2, 2, 2], depths=[1, 1, 1], key_dim=[8, 8, 8])
eyes("dpt", "DPTForDepthEstimation", "DPTConfig", "predicted_depth", **PATCHES, backbone_out_indices=[0, 0, 1, 1],
     neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16)
eyes("yolos", "YolosForObjectDetection", "YolosConfig", "logits", **dict(PATCHES, image_size=[64, 64]), num_detection_tokens=5)

EARS = dict(SIZES, conv_dim=(16, 16), conv_kernel=(5, 3), conv_stride=(3, 2), num_feat_extract_layers=2,
            num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, vocab_size=32)
for _name, _stem in dict(wav2vec2="Wav2Vec2", hubert="Hubert", wavlm="WavLM", unispeech="UniSpeech").items():
    _sound = torch.rand(2, 400, generator=torch.Generator().manual_seed(1))
    hugging(_name, f"{_stem}ForCTC", f"{_stem}Config", "logits", {"input_values": _sound},
            {"input_values": {0: BATCH, 1: "samples"}}, **EARS)


class Whisper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        import transformers

        config = transformers.WhisperConfig(**CODERS, num_mel_bins=16, max_source_positions=20, max_target_positions=64,
                                            decoder_start_token_id=1, **MARKS)
        config.use_cache, config._attn_implementation = False, "eager"
        self.model = transformers.WhisperForConditionalGeneration(config)

    def forward(self, features, decoder_input_ids):
        return self.model(input_features=features, decoder_input_ids=decoder_input_ids).logits


MODELS["hf_whisper"] = lambda: (
    Whisper(),
    {"features": torch.rand(2, 16, 40), "decoder_input_ids": torch.randint(3, 90, (2, 5))},
    {"features": {0: BATCH}, "decoder_input_ids": {0: BATCH, 1: "decoded"}},
)


class Recurrent(torch.nn.Module):
    """A tagger: an embedding, a recurrent layer in both directions, a score for each tag."""

    def __init__(self, kind):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 16)
        self.layer = getattr(torch.nn, kind)(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.score = torch.nn.Linear(48, 7)

    def forward(self, input_ids):
        return self.score(self.layer(self.embedding(input_ids))[0])


for _kind in ["LSTM", "GRU", "RNN"]:
    MODELS[f"tagger_{_kind.lower()}"] = lambda kind=_kind: (
        Recurrent(kind), {"input_ids": torch.randint(0, 90, (2, 11))}, {"input_ids": {0: BATCH, 1: LENGTH}})
