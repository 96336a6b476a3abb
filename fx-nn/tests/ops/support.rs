//! Gradients compared with central differences, eager and through a traced module.

use fx_nn::prelude::*;

/// Operations through which no gradient runs, and why.
pub const NO_GRADIENT: &[(&str, &str)] = &[
    ("all", "gives truth values"),
    ("allclose", "gives truth values"),
    ("any", "gives truth values"),
    ("arange", "has no tensor among its arguments"),
    ("argmax", "gives places"),
    ("argmin", "gives places"),
    ("argsort", "gives places"),
    ("argwhere", "gives places"),
    ("bincount", "counts integers"),
    ("bucketize", "gives places"),
    ("isfinite", "gives truth values"),
    ("isin", "gives truth values"),
    ("isnan", "gives truth values"),
    ("nonzero", "gives places"),
    ("bernoulli", "draws truth values"),
    ("bitwise_and", "takes and gives integers"),
    ("bitwise_left_shift", "takes and gives integers"),
    ("bitwise_not", "takes and gives integers"),
    ("bitwise_or", "takes and gives integers"),
    ("bitwise_right_shift", "takes and gives integers"),
    ("bitwise_xor", "takes and gives integers"),
    ("ceil", "is flat"),
    ("count_nonzero", "gives numbers of elements"),
    ("empty", "has no tensor among its arguments"),
    ("empty_like", "depends on the shape alone"),
    ("equal", "gives truth values"),
    ("eye", "has no tensor among its arguments"),
    ("fix", "is flat"),
    ("floor", "is flat"),
    ("floor_divide", "is flat"),
    ("full", "has no tensor among its arguments"),
    ("full_like", "depends on the shape alone"),
    ("gcd", "takes and gives integers"),
    ("heaviside", "is flat"),
    ("histc", "gives numbers of elements"),
    ("isclose", "gives truth values"),
    ("isinf", "gives truth values"),
    ("isneginf", "gives truth values"),
    ("isposinf", "gives truth values"),
    ("lcm", "takes and gives integers"),
    ("linspace", "has no tensor among its arguments"),
    ("logical_and", "gives truth values"),
    ("logical_not", "gives truth values"),
    ("logical_or", "gives truth values"),
    ("logical_xor", "gives truth values"),
    ("logspace", "has no tensor among its arguments"),
    ("multinomial", "gives places"),
    ("new_empty", "depends on the shape alone"),
    ("new_full", "depends on the shape alone"),
    ("new_ones", "depends on the shape alone"),
    ("new_zeros", "depends on the shape alone"),
    ("normal", "has no tensor among its arguments"),
    ("one_hot", "takes and gives integers"),
    ("ones", "has no tensor among its arguments"),
    ("ones_like", "depends on the shape alone"),
    ("rand", "has no tensor among its arguments"),
    ("rand_like", "depends on the shape alone"),
    ("randint", "has no tensor among its arguments"),
    ("randint_like", "depends on the shape alone"),
    ("randn", "has no tensor among its arguments"),
    ("randn_like", "depends on the shape alone"),
    ("searchsorted", "gives places"),
    ("randperm", "has no tensor among its arguments"),
    ("round", "is flat"),
    ("sgn", "is flat"),
    ("sign", "is flat"),
    ("signbit", "gives truth values"),
    ("size", "gives a number"),
    ("tril_indices", "has no tensor among its arguments"),
    ("triu_indices", "has no tensor among its arguments"),
    ("trunc", "is flat"),
    ("zeros", "has no tensor among its arguments"),
    ("zeros_like", "depends on the shape alone"),
];

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
