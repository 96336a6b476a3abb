//! Models that take texts of any length up to their largest.

use fx_nn::allclose;
use fx_nn::cpu::Cpu;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;

fn model() -> Result<Gpt2> {
    let mut model = Gpt2::new(&Config {
        vocab_size: 50,
        block_size: 32,
        n_layer: 2,
        n_head: 2,
        n_embd: 16,
        dropout: 0.1,
    })?;
    model.eval();
    Ok(model)
}

fn words(rows: usize, length: usize) -> Result<Tensor> {
    let words = (0..rows * length).map(|at| (at * 7 % 50) as i64);
    Tensor::from_vec(words.collect::<Vec<i64>>(), (rows, length))
}

fn same(found: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!(found.dims()?, expected.dims()?);
    let close = allclose(found, expected, 2e-5, 2e-5)?;
    assert!(close.close, "{close}");
    Ok(())
}

#[test]
fn defect_t3_w2_a_gpt2_takes_texts_of_any_length_up_to_its_block() -> Result<()> {
    let model = model()?;
    let text = words(2, 32)?;
    let whole = model.forward(&text)?;
    let gm = symbolic_trace(&model)?;
    let named = Trace::new(&model)
        .inputs(vec![spec!["batch", "time"; I64]])
        .graph_module()?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&words(4, 16)?))?;
    for length in [1, 5, 16, 31, 32] {
        // A position sees those before it alone: the rest of the text changes nothing.
        let start = text.narrow(1, 0, length)?;
        let expected = whole.narrow(1, 0, length)?;
        same(&model.forward(&start)?, &expected)?;
        for traced in [&gm, &named, &fast] {
            let found: Tensor = fx_nn::no_grad(|| traced.forward(&start))?;
            same(&found, &expected)?;
        }
    }
    Ok(())
}

#[test]
fn defect_t3_w2_a_longer_text_is_refused_by_its_length() -> Result<()> {
    let model = model()?;
    let problem = model
        .forward(&words(1, 33)?)
        .map(drop)
        .map_err(|e| e.to_string());
    let problem = problem.err().unwrap_or_default();
    assert!(
        problem.contains("narrow") && problem.contains("33"),
        "{problem}"
    );
    let mut gm = symbolic_trace(&model)?;
    let env = gm.infer_shapes(&[spec!["batch", "time"; I64]])?;
    let guards: Vec<String> = env.guards().iter().map(ToString::to_string).collect();
    assert!(
        guards.len() == 1 && guards[0].contains("time") && guards[0].contains("32   ("),
        "{guards:?}"
    );
    Ok(())
}
