"""Text models of transformers from tiny configurations: encoders, decoders, and both together."""

import torch
import transformers as t

from models.common import OPEN, Program, indices, padded

PROGRAMS = {}
VOCABULARY = 100
SIZES = [(2, 7), (1, 11)]
BASE = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=64,
)
SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPS = dict(num_key_value_heads=2)
DECODER = BASE | GROUPS | SPECIAL


def made(kind, config, options):
    config = getattr(t, config)(**options)
    for each in [config, *(getattr(config, name, None) for name in ("text_config", "decoder", "encoder"))]:
        if hasattr(each, "use_cache"):
            each.use_cache = False
    return getattr(t, kind)(config)


def ids(n, m):
    return indices(VOCABULARY - 10, n, m) + 3


def text(name, kind, config, *, mask=True, sizes=SIZES, **options):
    """A model of token ids, and which of them are there."""

    def inputs(n, m):
        own = {"input_ids": ids(n, m)}
        return own | {"attention_mask": padded(n, m)} if mask else own

    dims = {key: {0: OPEN, 1: OPEN} for key in inputs(1, 2)}
    PROGRAMS[name] = Program(lambda: made(kind, config, options), inputs, dims, sizes)


def both(name, kind, config, *, sizes=((2, 7, 5), (1, 11, 6)), **options):
    """An encoder with a decoder."""

    def inputs(n, m, k):
        return {"input_ids": ids(n, m), "attention_mask": padded(n, m), "decoder_input_ids": ids(n, k)}

    dims = {key: {0: OPEN, 1: OPEN} for key in inputs(1, 2, 3)}
    PROGRAMS[name] = Program(lambda: made(kind, config, options), inputs, dims, list(sizes))


for name, stem in dict(
    bert="Bert", big_bird="BigBird", camembert="Camembert", convbert="ConvBert", electra="Electra", ernie="Ernie", esm="Esm",
    ibert="IBert", layoutlm="LayoutLM", lilt="Lilt", luke="Luke", megatron_bert="MegatronBert",
    mpnet="MPNet", nystromformer="Nystromformer", rembert="RemBert", roberta="Roberta",
    roberta_prelayernorm="RobertaPreLayerNorm", roc_bert="RoCBert", roformer="RoFormer", splinter="Splinter",
    xlm_roberta="XLMRoberta", xlm_roberta_xl="XLMRobertaXL", xmod="Xmod", yoso="Yoso", data2vec_text="Data2VecText",
    bert_generation="BertGeneration", nomic_bert="NomicBert", eurobert="EuroBert", visual_bert="VisualBert",
).items():
    options = dict(
        big_bird=dict(attention_type="original_full"), lilt=dict(channel_shrink_ratio=4, hidden_size=48), esm=dict(pad_token_id=1, mask_token_id=4),
        xmod=dict(default_language="en_XX"), roc_bert=dict(enable_pronunciation=False, enable_shape=False),
        rembert=dict(input_embedding_size=16), electra=dict(embedding_size=16), luke=dict(entity_vocab_size=20, entity_emb_size=16),
        eurobert=SPECIAL | GROUPS,
    )
    kind = "BertGenerationEncoder" if name == "bert_generation" else f"{stem}Model"
    text(name, kind, f"{stem}Config", **BASE | options.get(name, {}))
text("albert", "AlbertModel", "AlbertConfig", **BASE, embedding_size=16)
text("canine", "CanineModel", "CanineConfig", **BASE, num_hash_buckets=64, local_transformer_stride=16, sizes=[(2, 64), (1, 64)])
text("deberta", "DebertaModel", "DebertaConfig", **BASE, relative_attention=True, pos_att_type=["p2c", "c2p"])
text(
    "deberta_v2", "DebertaV2Model", "DebertaV2Config", **BASE, relative_attention=True, pos_att_type=["p2c", "c2p"],
    position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
)
text(
    "distilbert", "DistilBertModel", "DistilBertConfig", vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
    max_position_embeddings=64,
)
text("flaubert", "FlaubertModel", "FlaubertConfig", vocab_size=VOCABULARY, emb_dim=32, n_layers=2, n_heads=4)
text("fnet", "FNetModel", "FNetConfig", mask=False, **BASE)
text(
    "funnel", "FunnelBaseModel", "FunnelConfig", vocab_size=VOCABULARY, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8,
    d_inner=64,
)
text("longformer", "LongformerModel", "LongformerConfig", **BASE, attention_window=4, sizes=[(2, 8), (1, 12)])
text("mobilebert", "MobileBertModel", "MobileBertConfig", **BASE, embedding_size=16, intra_bottleneck_size=16)
text(
    "modernbert", "ModernBertModel", "ModernBertConfig", **BASE, local_attention=4, global_attn_every_n_layers=2, **SPECIAL,
    cls_token_id=1, sep_token_id=2,
)
text("openai_gpt", "OpenAIGPTLMHeadModel", "OpenAIGPTConfig", vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64)
text("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", **BASE, embedding_size=32)
text("t5_encoder", "T5EncoderModel", "T5Config", vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
text("tapas", "TapasModel", "TapasConfig", **BASE)
text("xlm", "XLMModel", "XLMConfig", vocab_size=VOCABULARY, emb_dim=32, n_layers=2, n_heads=4)
text("xlnet", "XLNetModel", "XLNetConfig", vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=64)

text("stablelm", "StableLmForCausalLM", "StableLmConfig", **BASE, num_key_value_heads=4)

# Decoders.
GPT = dict(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64)
text("gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT)
text("gpt_bigcode", "GPTBigCodeForCausalLM", "GPTBigCodeConfig", **GPT)
text("gptj", "GPTJForCausalLM", "GPTJConfig", **GPT, rotary_dim=4)
text("codegen", "CodeGenForCausalLM", "CodeGenConfig", **GPT, rotary_dim=4, n_ctx=64)
text("ctrl", "CTRLLMHeadModel", "CTRLConfig", vocab_size=VOCABULARY, n_embd=32, dff=64, n_layer=2, n_head=4, n_positions=64)
text(
    "gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig", vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4,
    attention_types=[[["global", "local"], 1]], max_position_embeddings=64, window_size=4,
)
text("bloom", "BloomForCausalLM", "BloomConfig", vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
text("mpt", "MptForCausalLM", "MptConfig", vocab_size=VOCABULARY, d_model=32, n_layers=2, n_heads=4, max_seq_len=64)
text(
    "opt", "OPTForCausalLM", "OPTConfig", vocab_size=VOCABULARY, hidden_size=32, ffn_dim=64, num_hidden_layers=2,
    num_attention_heads=4, word_embed_proj_dim=32, max_position_embeddings=64,
)
text(
    "xglm", "XGLMForCausalLM", "XGLMConfig", vocab_size=VOCABULARY, d_model=32, ffn_dim=64, num_layers=2, attention_heads=4,
    max_position_embeddings=64,
)
for name, stem in dict(
    gpt_neox="GPTNeoX", gpt_neox_japanese="GPTNeoXJapanese", phi="Phi", starcoder2="Starcoder2",
    falcon="Falcon", persimmon="Persimmon", biogpt="BioGpt",
).items():
    text(name, f"{stem}ForCausalLM", f"{stem}Config", **BASE)
for name, stem in dict(
    llama="Llama", mistral="Mistral", qwen2="Qwen2", olmo="Olmo", olmo2="Olmo2", olmo3="Olmo3",
    granite="Granite", cohere="Cohere", cohere2="Cohere2", phi3="Phi3", nemotron="Nemotron", smollm3="SmolLM3", helium="Helium",
    glm="Glm", glm4="Glm4", exaone4="Exaone4", ernie4_5="Ernie4_5", arcee="Arcee", apertus="Apertus", seed_oss="SeedOss",
    diffllama="DiffLlama", bitnet="BitNet", doge="Doge",
).items():
    options = dict(glm=dict(head_dim=8), glm4=dict(head_dim=8), helium=dict(head_dim=8), seed_oss=dict(head_dim=8))
    text(name, f"{stem}ForCausalLM", f"{stem}Config", **DECODER | options.get(name, {}))
for name, stem, config in [
    ("qwen3", "Qwen3", "Qwen3Config"), ("gemma", "Gemma", "GemmaConfig"), ("gemma2", "Gemma2", "Gemma2Config"),
    ("gemma3", "Gemma3", "Gemma3TextConfig"), ("hunyuan_v1_dense", "HunYuanDenseV1", "HunYuanDenseV1Config"),
    ("vaultgemma", "VaultGemma", "VaultGemmaConfig"),
]:
    text(name, f"{stem}ForCausalLM", config, **DECODER, head_dim=8)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2)
text("mixtral", "MixtralForCausalLM", "MixtralConfig", **DECODER, num_local_experts=4)
text("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", **DECODER, **EXPERTS, head_dim=8, moe_intermediate_size=16)
text("olmoe", "OlmoeForCausalLM", "OlmoeConfig", **DECODER, **EXPERTS)
text("granitemoe", "GraniteMoeForCausalLM", "GraniteMoeConfig", **DECODER, num_local_experts=4)
text("gpt_oss", "GptOssForCausalLM", "GptOssConfig", **DECODER, num_local_experts=4, num_experts_per_tok=2, head_dim=8)
text(
    "deepseek_v2", "DeepseekV2ForCausalLM", "DeepseekV2Config", **BASE, **SPECIAL, first_k_dense_replace=1, kv_lora_rank=8,
    q_lora_rank=8, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, qk_nope_head_dim=8, qk_rope_head_dim=8,
    v_head_dim=8, moe_intermediate_size=16, n_group=1, topk_group=1, head_dim=8,
)
text(
    "deepseek_v3", "DeepseekV3ForCausalLM", "DeepseekV3Config", **BASE, **SPECIAL, first_k_dense_replace=1, kv_lora_rank=8,
    q_lora_rank=8, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, qk_nope_head_dim=8, qk_rope_head_dim=8,
    v_head_dim=8, moe_intermediate_size=16, n_group=2, topk_group=1,
)
# State spaces.
text("mamba", "MambaForCausalLM", "MambaConfig", mask=False, vocab_size=VOCABULARY, hidden_size=32, state_size=8, num_hidden_layers=2)
text(
    "mamba2", "Mamba2ForCausalLM", "Mamba2Config", mask=False, vocab_size=VOCABULARY, hidden_size=32, state_size=8,
    num_hidden_layers=2, num_heads=4, head_dim=16, n_groups=1, chunk_size=8,
)
text(
    "falcon_mamba", "FalconMambaForCausalLM", "FalconMambaConfig", mask=False, vocab_size=VOCABULARY, hidden_size=32,
    state_size=8, num_hidden_layers=2,
)
text("rwkv", "RwkvForCausalLM", "RwkvConfig", mask=False, vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, context_length=64)
text(
    "recurrent_gemma", "RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", **DECODER | dict(num_hidden_layers=3), lru_width=32,
    attention_window_size=8,
)
text("lfm2", "Lfm2ForCausalLM", "Lfm2Config", **DECODER, layer_types=["conv", "full_attention"], block_multiple_of=8)

# Encoders with decoders.
T5 = dict(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
for name, stem in dict(t5="T5", mt5="MT5", umt5="UMT5").items():
    both(name, f"{stem}ForConditionalGeneration", f"{stem}Config", **T5)
both("switch_transformers", "SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", **T5, num_experts=2)
both("longt5", "LongT5ForConditionalGeneration", "LongT5Config", **T5, local_radius=3)
WIDE = dict(
    vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, **SPECIAL, decoder_start_token_id=2,
)
for name, stem in dict(
    bart="Bart", mbart="MBart", pegasus="Pegasus", marian="Marian", m2m_100="M2M100", blenderbot="Blenderbot",
    blenderbot_small="BlenderbotSmall", mvp="Mvp", plbart="PLBart", pegasus_x="PegasusX",
).items():
    options = dict(pegasus_x=dict(block_size=4, num_global_tokens=2))
    both(name, f"{stem}Model", f"{stem}Config", **WIDE | options.get(name, {}))
both(
    "led", "LEDModel", "LEDConfig", **{key: value for key, value in WIDE.items() if key != "max_position_embeddings"},
    max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, attention_window=4, sizes=((2, 8, 5), (1, 12, 6)),
)
both("bigbird_pegasus", "BigBirdPegasusModel", "BigBirdPegasusConfig", **WIDE, attention_type="original_full")
both(
    "prophetnet", "ProphetNetModel", "ProphetNetConfig", vocab_size=VOCABULARY, hidden_size=32, encoder_ffn_dim=64,
    num_encoder_layers=2, num_encoder_attention_heads=4, decoder_ffn_dim=64, num_decoder_layers=2,
    num_decoder_attention_heads=4, max_position_embeddings=64, ngram=2, num_buckets=8, relative_max_distance=16,
)
both(
    "fsmt", "FSMTModel", "FSMTConfig", langs=["en", "de"], src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY, d_model=32,
    encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
    decoder_ffn_dim=64, max_position_embeddings=64,
)
both("nllb_moe", "NllbMoeModel", "NllbMoeConfig", **WIDE, num_experts=4, encoder_sparse_step=2, decoder_sparse_step=2)
