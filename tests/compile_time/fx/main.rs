//! Builds, traces and runs the four models; prints how far traced is from eager, and a sum to compare with candle's.

#[cfg(feature = "load")]
mod load;
mod mamba;
mod qwen2;
mod sam_image_encoder;
mod whisper_encoder;

use fx_nn::prelude::*;

/// Small numbers that follow from a name; candle's program makes the same.
fn numbers(name: &str, len: usize) -> Vec<f32> {
    let seed: usize = name.bytes().map(usize::from).sum();
    (0..len)
        .map(|i| ((i * 7 + seed) % 13) as f32 / 40.0 - 0.15)
        .collect()
}

fn fill(model: &dyn Module) -> Result<()> {
    for (name, value) in model.named_parameters() {
        let mut tensor = Tensor::from_value(value)?;
        let dims = tensor.dims()?.to_vec();
        let len = dims.iter().product();
        tensor.copy_from(&Tensor::from_vec(numbers(&name, len), dims)?)?;
    }
    Ok(())
}

fn report(name: &str, eager: &Tensor, traced: &Tensor) -> Result<()> {
    let difference = (eager - traced)?.abs()?.amax(..)?.item()?;
    let sum = eager.abs()?.sum(..)?.item()?;
    println!("{name}: max difference {difference:e}, sum {sum:.6}");
    Ok(())
}

fn qwen2() -> Result<()> {
    let cfg = qwen2::Config {
        vocab_size: 64,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        max_position_embeddings: 16,
        sliding_window: 3,
        max_window_layers: 2,
        tie_word_embeddings: true,
        rope_theta: 10000.0,
        rms_norm_eps: 1e-6,
        use_sliding_window: false,
        hidden_act: "silu".into(),
    };
    let model = qwen2::ModelForCausalLM::new(&cfg)?;
    fill(&model)?;
    let caches = vec![tree!((PH, PH)); cfg.num_hidden_layers];
    let gm = Trace::new(&model)
        .concrete("kv_caches", caches)
        .graph_module()?;
    let (mut seen, mut eager_caches) = (0i64, model.empty_kv_caches(1)?);
    let mut traced_caches = model.empty_kv_caches(1)?;
    for ids in [vec![3i64, 14, 15, 9, 26], vec![5], vec![35]] {
        let len = ids.len();
        let ids = Tensor::from_vec(ids, (1, len))?;
        let (eager, next) = model.forward(&ids, seen.into(), eager_caches)?;
        eager_caches = next;
        let traced: Tensor;
        (traced, traced_caches) = gm.forward((&ids, seen, traced_caches))?;
        report("qwen2", &eager, &traced)?;
        seen += len as i64;
    }
    Ok(())
}

fn whisper_encoder() -> Result<()> {
    let cfg = whisper_encoder::Config {
        num_mel_bins: 8,
        max_source_positions: 12,
        d_model: 16,
        encoder_attention_heads: 2,
        encoder_layers: 2,
        vocab_size: 32,
        max_target_positions: 8,
        decoder_attention_heads: 2,
        decoder_layers: 2,
        suppress_tokens: vec![],
    };
    let model = whisper_encoder::AudioEncoder::new(&cfg)?;
    fill(&model)?;
    let gm = symbolic_trace(&model)?;
    let mel = Tensor::from_vec(numbers("mel", 8 * 20), (1, 8, 20))?;
    report("whisper_encoder", &model.forward(&mel)?, &gm.forward(&mel)?)
}

fn sam_image_encoder() -> Result<()> {
    let model =
        sam_image_encoder::ImageEncoderViT::new(16, 4, 3, 16, 2, 2, 8, true, true, true, 3, &[1])?;
    fill(&model)?;
    let gm = symbolic_trace(&model)?;
    let image = Tensor::from_vec(numbers("image", 3 * 16 * 16), (1, 3, 16, 16))?;
    let (eager, traced) = (model.forward(&image)?, gm.forward(&image)?);
    report("sam_image_encoder", &eager, &traced)
}

fn mamba() -> Result<()> {
    let cfg = mamba::Config {
        d_model: 32,
        n_layer: 2,
        vocab_size: 60,
        pad_vocab_size_multiple: 8,
    };
    let model = mamba::Model::new(&cfg)?;
    fill(&model)?;
    let state = tree!({
        "hs": [PH, PH],
        "prev_xs": [[PH, PH, PH, PH], [PH, PH, PH, PH]],
        "pos": PH
    });
    let gm = Trace::new(&model).concrete("state", state).graph_module()?;
    let mut eager_state = mamba::State::new(1, &cfg, model.dtype()?)?;
    let mut traced_state = eager_state.clone();
    for id in [3i64, 14, 15, 9, 26, 5] {
        let id = Tensor::from_vec(vec![id], 1)?;
        let (eager, next) = model.forward(&id, eager_state)?;
        eager_state = next;
        let traced: Tensor;
        (traced, traced_state) = gm.forward((&id, traced_state))?;
        report("mamba", &eager, &traced)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    qwen2()?;
    whisper_encoder()?;
    sam_image_encoder()?;
    mamba()?;
    #[cfg(feature = "load")]
    load::saved_and_loaded()?;
    Ok(())
}
