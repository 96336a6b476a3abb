//! Gradients compared with central differences, eager and through a traced module.

use fx_nn::prelude::*;

/// Distinct `f64` values in (-1, 1), in a scrambled order; another `seed` gives others.
pub fn varied(shape: &[usize], seed: u32) -> Result<Tensor> {
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|i| {
        let turn = (i as f64 + 1.0 + 31.0 * f64::from(seed)) * 0.618_033_988_749;
        turn.fract() * 2.0 - 1.0
    });
    Tensor::from_vec(values.collect::<Vec<f64>>(), shape)
}

/// A sum of all elements, each with a weight of its own.
fn loss(y: &Tensor) -> Result<Tensor> {
    (y * varied(y.dims()?, 7)?)?.sum(..)
}

/// The gradient of the loss of `y` for each of `of`; zeros where none arrives.
fn gradients(y: &Tensor, of: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let store = loss(y)?.candle()?.backward().map_err(Error::other)?;
    of.iter()
        .map(|t| match store.get(t.candle()?) {
            Some(gradient) => Tensor::from(gradient.clone()).to_vec(),
            None => Ok(vec![0.0; t.to_vec()?.len()]),
        })
        .collect()
}

/// Compares the gradients of `eager` for `of` with central differences, and those of `traced` with
/// both.
pub fn check(
    name: &str,
    of: &[Tensor],
    eager: impl Fn() -> Result<Tensor>,
    traced: impl Fn() -> Result<Tensor>,
) -> Result<()> {
    let found = gradients(&eager()?, of)?;
    assert_eq!(
        found,
        gradients(&traced()?, of)?,
        "{name}: through the graph"
    );
    let mut arrived = false;
    for (at, tensor) in of.iter().enumerate() {
        let base = tensor.to_vec()?;
        let shape = tensor.dims()?.to_vec();
        for i in 0..base.len() {
            let side = |step: f64| -> Result<f64> {
                let mut moved = base.clone();
                moved[i] += step;
                tensor
                    .clone()
                    .copy_from(&Tensor::from_vec(moved, shape.as_slice())?)?;
                loss(&eager()?)?.item()
            };
            let expected = (side(1e-5)? - side(-1e-5)?) / 2e-5;
            tensor
                .clone()
                .copy_from(&Tensor::from_vec(base.clone(), shape.as_slice())?)?;
            let got = found[at][i];
            arrived |= got != 0.0;
            assert!(
                (got - expected).abs() < 2e-6 * (1.0 + expected.abs()),
                "{name}: tensor {at}, element {i}: {got}, and by differences {expected}"
            );
        }
    }
    assert!(arrived, "{name}: no gradient arrives at all");
    Ok(())
}
