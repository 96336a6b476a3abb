//! Compiled code of layers whose weights are blocks of GGUF files: numbers of the blocks as they are.

use fx_kernels::matrix::PackedMatrix;
use fx_nn::cpu::{BlockKind, Cpu, Level, WeightKind};
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::{allclose, no_grad};

use crate::compiled_halves::{error, runs_compiled};

/// The kinds with a kernel.
const KINDS: [&str; 11] = [
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4K", "Q5K", "Q6K", "F16", "BF16", "F32",
];

/// A model of three layers, and the same with each layer in blocks, and with the numbers of these as floats.
fn models(quantization: &str) -> Result<[GraphModule; 3]> {
    fx_nn::manual_seed(3);
    let sizes = [(256, 512), (512, 256), (256, 40)];
    let mut float = nn::Sequential::new();
    let mut blocks = nn::Sequential::new();
    let mut wide = nn::Sequential::new();
    for (at, (inputs, outputs)) in sizes.into_iter().enumerate() {
        let mut layer = nn::Linear::new(inputs, outputs)?.bias(at != 1);
        nn::set_requires_grad(&mut layer, false)?;
        let small = nn::QuantizedLinear::from_linear(&layer, quantization)?;
        wide = wide.push(small.dequantized()?).push(nn::SiLU::default());
        blocks = blocks.push(small).push(nn::SiLU::default());
        float = float.push(layer).push(nn::SiLU::default());
    }
    Ok([
        symbolic_trace(&float)?,
        symbolic_trace(&blocks)?,
        symbolic_trace(&wide)?,
    ])
}

/// Whether inputs of products with blocks are rounded to bytes on this machine.
fn is_rounded(quantization: &str, level: Level) -> bool {
    let packed = PackedMatrix::from_blocks(BlockKind::Q8_0, &[0; 34], 32, 1);
    quantization.starts_with('Q') && packed.is_ok_and(|packed| packed.rounds_rows(level))
}

#[test]
fn products_have_the_numbers_of_the_blocks() -> Result<()> {
    for quantization in KINDS {
        let [_, blocks, wide] = models(quantization)?;
        for level in Level::available() {
            let fast = blocks.compile(Compile::new(Cpu::new().level(level)))?;
            for rows in [1, 2, 5, 30] {
                fx_nn::manual_seed(rows as u64);
                let x = Tensor::randn((1, rows, 256))?;
                no_grad(|| {
                    let found: Tensor = fast.forward(&x)?;
                    let expected: Tensor = wide.forward(&x)?;
                    let off = error(&found, &expected)?;
                    let most = if is_rounded(quantization, level) {
                        0.02
                    } else {
                        // Codes count from zero, so that a sum of them is less near than one of elements.
                        1e-5
                    };
                    assert!(off <= most, "{quantization} {level:?} {rows}: {off:.2e}");
                    if rows <= 5 || most > 0.01 {
                        let first: Tensor = fast.forward(&x.i((.., 0..1))?)?;
                        assert_eq!(first.to_vec()?, found.i((.., 0..1))?.to_vec()?);
                    }
                    Ok::<(), Error>(())
                })?;
            }
            runs_compiled(&fast)?;
        }
    }
    Ok(())
}

#[test]
fn inputs_of_16_bits_give_16_bits() -> Result<()> {
    let [_, blocks, wide] = models("Q4_0")?;
    for half in [DType::BF16, DType::F16] {
        let mut blocks = blocks.clone();
        nn::to_dtype(&mut blocks, half)?;
        let fast = blocks.compile(Compile::new(Cpu::new()))?;
        let x = Tensor::randn((3, 256))?.to_dtype(half)?;
        no_grad(|| {
            let found: Tensor = fast.forward(&x)?;
            assert_eq!(found.dtype()?, half);
            let expected: Tensor = wide.forward(&x.to_dtype(DType::F32)?)?;
            let off = error(&found, &expected.to_dtype(half)?)?;
            assert!(off < 0.02, "{half} {off:.2e}");
            runs_compiled(&fast)
        })?;
    }
    let fast = blocks.compile(Compile::new(Cpu::new()))?;
    // Other types are computed by the graph, and the code says so.
    let x = Tensor::randn((3, 256))?.to_dtype(DType::F64)?;
    let (found, expected): (Tensor, Tensor) = (fast.forward(&x)?, blocks.forward(&x)?);
    assert_eq!(found.to_vec()?, expected.to_vec()?);
    Ok(())
}

#[test]
fn kinds_without_a_kernel_stay_in_the_graph() -> Result<()> {
    let [_, blocks, _] = models("Q2K")?;
    let x = Tensor::randn((2, 256))?;
    let fast = blocks.compile(Compile::new(Cpu::new()).like(&x))?;
    let report = fast.meta::<LowerReport>().map(LowerReport::to_string);
    let report = report.ok_or_else(|| Error::msg("the report stays with the module"))?;
    assert!(
        report.contains("there is no kernel for blocks of Q2K"),
        "{report}"
    );
    let (found, expected): (Tensor, Tensor) = (fast.forward(&x)?, blocks.forward(&x)?);
    assert!(allclose(&found, &expected, 1e-5, 1e-5)?.close);
    Ok(())
}

#[test]
fn weights_are_rounded_to_blocks_where_asked_for() -> Result<()> {
    let [float, ..] = models("Q8_0")?;
    let x = Tensor::randn((4, 256))?;
    let expected: Tensor = no_grad(|| float.forward(&x))?;
    for (kind, tolerance) in [
        (BlockKind::Q8_0, 0.01),
        (BlockKind::Q6K, 0.03),
        (BlockKind::Q4K, 0.1),
    ] {
        let cpu = Cpu::new().weights(WeightKind::Blocks(kind));
        let fast = float.compile(Compile::new(cpu).like(&x))?;
        let found: Tensor = no_grad(|| fast.forward(&x))?;
        let close = allclose(&found, &expected, 0.0, tolerance)?;
        assert!(
            close.close && found.to_vec()? != expected.to_vec()?,
            "{kind:?}: {close}"
        );
    }
    // Rows that blocks do not divide keep their type.
    let mut layer = nn::Linear::new(48, 7)?;
    nn::set_requires_grad(&mut layer, false)?;
    let gm = symbolic_trace(&nn::Sequential::new().push(layer))?;
    let x = Tensor::randn((4, 48))?;
    let cpu = Cpu::new().weights(WeightKind::Blocks(BlockKind::Q4_0));
    let (plain, fast) = (
        gm.compile(Compile::new(Cpu::new()))?,
        gm.compile(Compile::new(cpu))?,
    );
    let (found, expected): (Tensor, Tensor) = (fast.forward(&x)?, plain.forward(&x)?);
    assert_eq!(found.to_vec()?, expected.to_vec()?);
    Ok(())
}

#[test]
fn a_decoder_of_blocks_is_one_program() -> Result<()> {
    fx_nn::manual_seed(1);
    let config = Config::from_json(
        r#"{
            "model_type": "qwen2", "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128
        }"#,
    )?;
    let mut model = CausalLM::new(&config)?;
    nn::set_requires_grad(&mut model, false)?;
    let (mut blocks, mut wide) = (model.trace()?, model.trace()?);
    let small = |linear: &nn::Linear| nn::QuantizedLinear::from_linear(linear, "Q4_0");
    blocks.replace_modules("**", |_, linear: &nn::Linear| small(linear))?;
    wide.replace_modules("**", |_, linear: &nn::Linear| small(linear)?.dequantized())?;
    let fast = blocks.compile(Compile::new(Cpu::new()))?;
    let report = fast.meta::<LowerReport>().map(|report| report.parts.len());
    assert_eq!(report, Some(1));
    no_grad(|| {
        let words = |first: i64, count: usize| {
            Tensor::from_vec(
                (0..count as i64).map(|at| (first + at) * 7 % 96).collect(),
                (1, count),
            )
        };
        let (mut caches, mut expected) = (model.caches(1)?, model.caches(1)?);
        for (first, count) in [(0, 9), (9, 1), (10, 1), (11, 1)] {
            let words = words(first, count)?;
            let (a, next): (Tensor, Vec<Cache>) = fast.forward((&words, caches))?;
            let (b, same): (Tensor, Vec<Cache>) = wide.forward((&words, expected))?;
            let off = error(&a, &b)?;
            assert!(off < 0.03, "behind {first}: {off:.2e}");
            (caches, expected) = (next, same);
        }
        runs_compiled(&fast)?;

        // The scores of the last word alone have the same bits.
        let mut last = blocks.clone();
        CausalLM::keep_last_scores(&mut last)?;
        let last = last.compile(Compile::new(Cpu::new()))?;
        let words = words(0, 9)?;
        let (all, _): (Tensor, Vec<Cache>) = fast.forward((&words, model.caches(1)?))?;
        let (one, _): (Tensor, Vec<Cache>) = last.forward((&words, model.caches(1)?))?;
        assert_eq!(one.dims()?, [1, 1, 96]);
        assert_eq!(one.to_vec()?, all.i((.., 8..))?.to_vec()?);
        runs_compiled(&last)
    })
}
