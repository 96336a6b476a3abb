//! Decoders of GGUF files are the models that the files were made from, as floats and with their blocks.

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value as Entry};
use candle_core::quantized::{GgmlDType, QTensor};
use fx_nn::cpu::Cpu;
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config, FeedForward};
use fx_nn::models::hf::gguf::Gguf;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;
use fx_nn::{allclose, no_grad};

use crate::checkpoints::Scratch;
use crate::compiled_halves::{error, runs_compiled};

/// A small model of an architecture.
fn model(architecture: &str, is_tied: bool) -> Result<CausalLM> {
    fx_nn::manual_seed(2);
    let architecture = if architecture == "gemma3" {
        "gemma3_text"
    } else {
        architecture
    };
    let config = Config::from_json(&format!(
        r#"{{
            "model_type": "{architecture}", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 5000.0,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": {is_tied},
            "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 5
        }}"#
    ))?;
    let mut model = CausalLM::new(&config)?;
    nn::set_requires_grad(&mut model, false)?;
    // Norms that do something.
    for layer in &mut model.model.layers {
        let norms = [
            &mut layer.self_attn.q_norm,
            &mut layer.self_attn.k_norm,
            &mut layer.post_feedforward_layernorm,
        ];
        for norm in norms.into_iter().flatten() {
            let weight = Tensor::rand(norm.weight.dims()?.to_vec())?;
            norm.weight = (weight + 0.5)?;
        }
    }
    Ok(model)
}

/// The keys of such a model.
fn keys(architecture: &str) -> Vec<(String, Entry)> {
    let of = |name: &str, value: Entry| (format!("{architecture}.{name}"), value);
    let window = match architecture {
        "gemma2" | "gemma3" | "phi3" => vec![of("attention.sliding_window", Entry::U32(5))],
        _ => Vec::new(),
    };
    let all = vec![
        (
            "general.architecture".to_string(),
            Entry::String(architecture.to_string()),
        ),
        of("embedding_length", Entry::U32(64)),
        of("feed_forward_length", Entry::U32(96)),
        of("block_count", Entry::U32(2)),
        of("attention.head_count", Entry::U32(4)),
        of("attention.head_count_kv", Entry::U32(2)),
        of("attention.layer_norm_rms_epsilon", Entry::F32(1e-5)),
        of("rope.freq_base", Entry::F32(5000.0)),
        of("context_length", Entry::U32(64)),
    ];
    [all, window].concat()
}

/// A tensor with its name in the file.
type Named = (String, QTensor);

/// The rows of each head in llama.cpp's order: those of a pair side by side.
fn paired(x: &Tensor, heads: i64) -> Result<Tensor> {
    let dims = x.dims()?.to_vec();
    let width = dims[0] as i64 / heads;
    let rest: Vec<i64> = dims[1..].iter().map(|size| *size as i64).collect();
    let mut shape = vec![heads, 2, width / 2];
    shape.extend(&rest);
    let turned = x.reshape(shape)?.transpose(1, 2)?.contiguous()?;
    turned.reshape(dims.iter().map(|size| *size as i64).collect::<Vec<_>>())
}

/// The tensors of a model; matrices in blocks. The model gets the numbers of the blocks.
fn tensors(model: &mut CausalLM, architecture: &str, dtype: GgmlDType) -> Result<Vec<Named>> {
    let (has_pairs, is_gemma) = (architecture == "llama", architecture.starts_with("gemma"));
    let mut all: Vec<Named> = Vec::new();
    let mut add = |name: String, x: &mut Tensor, heads: Option<i64>| -> Result<()> {
        let heads = heads.filter(|_| has_pairs);
        let dtype = if x.dims()?.len() == 2 {
            dtype
        } else {
            GgmlDType::F32
        };
        let quantized = QTensor::quantize(x.detach()?.candle()?, dtype).map_err(Error::other)?;
        *x = Tensor::from(
            quantized
                .dequantize(&candle_core::Device::Cpu)
                .map_err(Error::other)?,
        );
        let kept = match heads {
            Some(heads) => paired(x, heads)?,
            // The files have the factors themselves.
            None if is_gemma && name.contains("norm") => (&*x + 1.0)?,
            None => x.clone(),
        };
        // The numbers of blocks become the same blocks again.
        let kept = QTensor::quantize(kept.candle()?, dtype).map_err(Error::other)?;
        all.push((name, kept));
        Ok(())
    };
    add(
        "token_embd.weight".into(),
        &mut model.model.embed_tokens.weight,
        None,
    )?;
    add(
        "output_norm.weight".into(),
        &mut model.model.norm.weight,
        None,
    )?;
    if let Some(head) = &mut model.lm_head {
        add("output.weight".into(), &mut head.weight, None)?;
    }
    for (at, layer) in model.model.layers.iter_mut().enumerate() {
        let attention = &mut layer.self_attn;
        let FeedForward::Mlp(mlp) = &mut layer.mlp else {
            return Err(Error::msg("a layer has experts"));
        };
        for (name, linear, heads) in [
            ("attn_q", Some(&mut attention.q_proj), Some(4)),
            ("attn_k", Some(&mut attention.k_proj), Some(2)),
            ("attn_v", Some(&mut attention.v_proj), None),
            ("attn_output", Some(&mut attention.o_proj), None),
            ("ffn_gate", mlp.gate_proj.as_mut(), None),
            ("ffn_up", Some(&mut mlp.up_proj), None),
            ("ffn_down", Some(&mut mlp.down_proj), None),
        ] {
            let Some(linear) = linear else { continue };
            add(format!("blk.{at}.{name}.weight"), &mut linear.weight, heads)?;
            if let Some(bias) = &mut linear.bias {
                add(format!("blk.{at}.{name}.bias"), bias, heads)?;
            }
        }
        let [second, third] = match is_gemma {
            true => ["post_attention_norm", "ffn_norm"],
            false => ["ffn_norm", "no_norm"],
        };
        for (name, norm) in [
            ("attn_norm", layer.input_layernorm.as_mut()),
            (second, Some(&mut layer.post_attention_layernorm)),
            (third, layer.pre_feedforward_layernorm.as_mut()),
            ("post_ffw_norm", layer.post_feedforward_layernorm.as_mut()),
            ("attn_q_norm", attention.q_norm.as_mut()),
            ("attn_k_norm", attention.k_norm.as_mut()),
        ] {
            let Some(norm) = norm else { continue };
            add(format!("blk.{at}.{name}.weight"), &mut norm.weight, None)?;
        }
    }
    match architecture {
        "phi3" => fused(all),
        _ => Ok(all),
    }
}

/// Phi-3's files have queries, keys and values as one matrix, and gates and what they gate as another.
fn fused(all: Vec<Named>) -> Result<Vec<Named>> {
    let mut fused: Vec<Named> = Vec::new();
    for (name, x) in all {
        let (behind, into) = match &name {
            name if name.contains("attn_k") || name.contains("attn_v") => (true, name.clone()),
            name if name.contains("ffn_up") => (true, name.clone()),
            name => (
                false,
                name.replace("attn_q.", "attn_qkv.")
                    .replace("ffn_gate", "ffn_up"),
            ),
        };
        match fused.last_mut() {
            Some((_, last)) if behind => {
                let floats = |x: &QTensor| x.dequantize(&candle_core::Device::Cpu);
                let both = candle_core::Tensor::cat(
                    &[
                        floats(last).map_err(Error::other)?,
                        floats(&x).map_err(Error::other)?,
                    ],
                    0,
                );
                let both = both.and_then(|both| QTensor::quantize(&both, x.dtype()));
                *last = both.map_err(Error::other)?;
            }
            _ => fused.push((into, x)),
        }
    }
    Ok(fused)
}

fn write(path: &Path, keys: &[(String, Entry)], tensors: &[Named]) -> Result<()> {
    let keys: Vec<(&str, &Entry)> = keys.iter().map(|(key, value)| (&**key, value)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, x)| (&**name, x)).collect();
    let mut file = File::create(path).map_err(Error::other)?;
    gguf_file::write(&mut file, &keys, &tensors).map_err(Error::other)
}

type Step = (Tensor, Vec<Cache>);

/// The scores of a text that is read in three parts.
fn scores(gm: &GraphModule, mut caches: Vec<Cache>) -> Result<Tensor> {
    let mut all = Vec::new();
    for (first, count) in [(0, 7), (7, 1), (8, 3)] {
        let words = (first..first + count).map(|at: i64| at * 11 % 64).collect();
        let words = Tensor::from_vec(words, (1, count as usize))?;
        let (scores, next): Step = gm.forward((&words, caches))?;
        all.push(scores);
        caches = next;
    }
    fx_nn::ops::cat(&all, 1)
}

#[test]
fn files_are_the_models_that_they_were_made_from() -> Result<()> {
    let scratch = Scratch::new("gguf_models")?;
    for (architecture, is_tied, dtype) in [
        ("qwen2", true, GgmlDType::Q8_0),
        ("llama", false, GgmlDType::Q4_0),
        ("llama", true, GgmlDType::BF16),
        ("qwen2", false, GgmlDType::F32),
        ("qwen3", false, GgmlDType::Q8_0),
        ("gemma2", true, GgmlDType::Q8_0),
        ("gemma3", true, GgmlDType::Q4_0),
        ("phi3", false, GgmlDType::Q8_0),
    ] {
        let mut model = model(architecture, is_tied)?;
        let path = scratch.file("model.gguf");
        let tensors = tensors(&mut model, architecture, dtype)?;
        write(&path, &keys(architecture), &tensors)?;
        let file = Gguf::open(&path)?;
        no_grad(|| {
            let expected = scores(&model.trace()?, model.caches(1)?)?;
            let loaded = file.load()?;
            let found = scores(&loaded.trace()?, file.caches(1)?)?;
            assert_eq!(
                found.to_vec()?,
                expected.to_vec()?,
                "{architecture} {dtype:?}"
            );
            let gm = file.trace()?;
            let fast = gm.compile(Compile::new(Cpu::new()))?;
            let found = scores(&fast, file.caches(1)?)?;
            // Inputs of products with blocks may be rounded to bytes.
            let off = error(&found, &expected)?;
            let most = if dtype.block_size() > 1 { 0.03 } else { 1e-5 };
            assert!(off < most, "{architecture} {dtype:?} {off:.2e}");
            runs_compiled(&fast)?;
            // The graph itself rounds them, and so does one that was saved.
            let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
            let (a, b) = (
                scores(&gm, file.caches(1)?)?,
                scores(&again, file.caches(1)?)?,
            );
            assert_eq!(a.to_vec()?, b.to_vec()?);
            let off = error(&a, &expected)?;
            assert!(off < 0.05, "{architecture} {dtype:?} {off:.3}");
            Ok::<(), Error>(())
        })?;
        let half = Gguf::open(&path)?.dtype(DType::F16);
        no_grad(|| {
            let expected = scores(&model.trace()?, model.caches(1)?)?;
            let fast = half.trace()?.compile(Compile::new(Cpu::new()))?;
            let found = scores(&fast, half.caches(1)?)?;
            assert_eq!(found.dtype()?, DType::F16);
            let off = error(&found.to_dtype(DType::F32)?, &expected)?;
            assert!(off < 0.03, "{architecture} {dtype:?} {off:.2e}");
            runs_compiled(&fast)
        })?;
    }
    Ok(())
}

#[test]
fn frequencies_are_divided_by_the_factors_of_a_file() -> Result<()> {
    let scratch = Scratch::new("gguf_factors")?;
    let [path, other] = ["plain.gguf", "divided.gguf"].map(|name| scratch.file(name));
    let mut model = model("llama", true)?;
    let mut tensors = tensors(&mut model, "llama", GgmlDType::F32)?;
    let factors: Vec<f32> = (0..8).map(|at| 1.0 + at as f32).collect();
    let factors = Tensor::from_vec(factors, 8)?;
    let factors = QTensor::quantize(factors.candle()?, GgmlDType::F32).map_err(Error::other)?;
    write(&path, &keys("llama"), &tensors)?;
    let plain = Gguf::open(&path)?;
    tensors.push(("rope_freqs.weight".to_string(), factors));
    write(&other, &keys("llama"), &tensors)?;
    let divided = Gguf::open(&other)?;
    let expected = (1..=8).map(f64::from).collect::<Vec<_>>();
    assert_eq!(divided.config().rope_factors.as_ref(), Some(&expected));
    no_grad(|| {
        let (a, b) = (plain.load()?, divided.load()?);
        let (a, b) = (
            scores(&a.trace()?, plain.caches(1)?)?,
            scores(&b.trace()?, divided.caches(1)?)?,
        );
        // Only the first word has no angle.
        assert!(allclose(&a.i((.., 0))?, &b.i((.., 0))?, 1e-5, 1e-5)?.close);
        assert!(!allclose(&a.i((.., 6))?, &b.i((.., 6))?, 1e-3, 1e-3)?.close);
        Ok(())
    })
}

#[test]
fn files_that_are_not_understood_are_refused() -> Result<()> {
    let scratch = Scratch::new("gguf_refused")?;
    let path = scratch.file("model.gguf");
    let mut model = model("qwen2", true)?;
    let all = tensors(&mut model, "qwen2", GgmlDType::Q8_0)?;
    let refused = |keys: &[(String, Entry)], tensors: &[Named]| -> Result<String> {
        write(&path, keys, tensors)?;
        let made = Gguf::open(&path).and_then(|file| file.trace());
        Ok(made.map_or_else(|error| error.to_string(), |gm| gm.to_string()))
    };
    let with = |name: &str, value: Entry| {
        let mut keys = keys("qwen2");
        keys.retain(|(key, _)| *key != format!("qwen2.{name}"));
        keys.push((format!("qwen2.{name}"), value));
        keys
    };
    let text = refused(&keys("mamba"), &all)?;
    assert!(text.contains("its architecture is `mamba`"), "{text}");
    let text = refused(&keys("qwen2")[..3], &all)?;
    for key in ["block_count", "attention.head_count", "context_length"] {
        assert!(
            text.contains(&format!("`qwen2.{key}` is missing")),
            "{text}"
        );
    }
    let text = refused(&with("block_count", Entry::U32(0)), &all)?;
    assert!(text.contains("`qwen2.block_count` is 0"), "{text}");
    let text = refused(
        &with("rope.scaling.type", Entry::String("dynamic".into())),
        &all,
    )?;
    assert!(text.contains("the rotary scaling is `dynamic`"), "{text}");
    let text = refused(&with("block_count", Entry::U32(3)), &all)?;
    assert!(
        text.contains("model.layers.2.self_attn.q_proj.weight"),
        "{text}"
    );
    let text = refused(&with("block_count", Entry::U32(1)), &all)?;
    assert!(text.contains("model.layers.1."), "{text}");
    let text = refused(&with("feed_forward_length", Entry::U32(128)), &all)?;
    assert!(
        text.contains("has shape [96, 64]") && text.contains("[128, 64]"),
        "{text}"
    );
    let mut more = tensors_again(&all)?;
    more.push(("blk.0.ffn_gate_exps.weight".into(), copy(&all[0].1)?));
    let text = refused(&keys("qwen2"), &more)?;
    assert!(
        text.contains("`blk.0.ffn_gate_exps.weight` is no tensor"),
        "{text}"
    );
    Ok(())
}

fn copy(x: &QTensor) -> Result<QTensor> {
    let floats = x
        .dequantize(&candle_core::Device::Cpu)
        .map_err(Error::other)?;
    QTensor::quantize(&floats, x.dtype()).map_err(Error::other)
}

fn tensors_again(all: &[Named]) -> Result<Vec<Named>> {
    all.iter()
        .map(|(name, x)| Ok((name.clone(), copy(x)?)))
        .collect()
}

/// The root of the mean square of the difference, over that of the expected numbers.
fn rms_error(found: &Tensor, expected: &Tensor) -> Result<f64> {
    let rms = |x: &Tensor| (x * x)?.mean(..)?.sqrt()?.item();
    Ok(rms(&(found - expected)?)? / rms(expected)?)
}

#[test]
fn scores_are_those_of_llama_cpp() -> Result<()> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gguf/recorded");
    let names = [
        "gemma2",
        "gemma3",
        "llama",
        "llama3",
        "phi3",
        "qwen2",
        "qwen3",
        "qwen3_yarn",
    ];
    let mut wrong = Vec::new();
    for name in names {
        let file = Gguf::open(recorded.join(format!("{name}.gguf")))?;
        let io = Checkpoint::open(recorded.join(format!("{name}.safetensors")))?;
        let (tokens, expected) = (io.tensor("tokens")?, io.tensor("expected")?);
        no_grad(|| {
            let (found, _) = file.load()?.forward(&tokens, file.caches(1)?)?;
            let fast = file.trace()?.compile(Compile::new(Cpu::new()))?;
            let (compiled, _): Step = fast.forward((&tokens, file.caches(1)?))?;
            // llama.cpp computes GELU by a table of halves.
            let most = if name.starts_with("gemma") {
                1e-3
            } else {
                1e-5
            };
            let errors = (
                rms_error(&found, &expected)?,
                rms_error(&compiled, &expected)?,
            );
            if !(errors.0 <= most && errors.1 <= most) {
                wrong.push(format!("{name} {:.1e} {:.1e}", errors.0, errors.1));
            }
            Ok::<(), Error>(())
        })?;
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}
