//! Tests of `lstm`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{Result, Tensor};
use fx_candle_kernels::lstm::*;

fn weights(v: &[Tensor]) -> Weights<'_> {
    Weights {
        of_input: &v[0],
        of_hidden: &v[1],
        bias: Some((&v[2], &v[3])),
    }
}

fn inputs() -> Result<Vec<Tensor>> {
    Ok(vec![
        varied(&[8, 3])?,
        varied(&[8, 2])?.affine(0.5, 0.1)?,
        varied(&[8])?,
        varied(&[8])?.affine(-0.3, 0.0)?,
        varied(&[4, 2, 3])?,
        varied(&[2, 2])?,
        varied(&[2, 2])?.affine(0.4, 0.0)?,
    ])
}

#[test]
fn one_step_is_the_formula() -> Result<()> {
    let v = inputs()?;
    let x = v[4].narrow(0, 0, 1)?;
    let (states, h, c) = layer(&x, weights(&v), &v[5], &v[6], false)?;
    let s = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (w, u) = (f64s(&v[0])?, f64s(&v[1])?);
    let (a, b) = (f64s(&v[2])?, f64s(&v[3])?);
    let (x, h0, c0) = (f64s(&x)?, f64s(&v[5])?, f64s(&v[6])?);
    let (mut hs, mut cs) = (vec![], vec![]);
    for n in 0..2 {
        for k in 0..2 {
            let gate = |g: usize| {
                let r = g * 2 + k;
                let own: f64 = (0..3).map(|i| w[r * 3 + i] * x[n * 3 + i]).sum();
                let old: f64 = (0..2).map(|i| u[r * 2 + i] * h0[n * 2 + i]).sum();
                own + old + a[r] + b[r]
            };
            let c = s(gate(1)) * c0[n * 2 + k] + s(gate(0)) * gate(2).tanh();
            cs.push(c);
            hs.push(s(gate(3)) * c.tanh());
        }
    }
    near(&c, &cs)?;
    near(&h, &hs)?;
    near(&states, &hs)
}

#[test]
fn reverse_is_the_reversed_sequence() -> Result<()> {
    let v = inputs()?;
    let order = Tensor::new(&[3u32, 2, 1, 0], v[4].device())?;
    let (states, h, _) = layer(&v[4], weights(&v), &v[5], &v[6], true)?;
    let turned = v[4].index_select(&order, 0)?;
    let (other, last, _) = layer(&turned, weights(&v), &v[5], &v[6], false)?;
    near(&h, &f64s(&last)?)?;
    near(&states, &f64s(&other.index_select(&order, 0)?)?)
}

#[test]
fn gradients_match() -> Result<()> {
    check(&inputs()?, |v| {
        let (states, _, c) = layer(&v[4], weights(v), &v[5], &v[6], true)?;
        Tensor::cat(&[&states, &c.unsqueeze(0)?], 0)
    })
}

#[test]
fn errors() -> Result<()> {
    let v = inputs()?;
    assert!(layer(&v[4], weights(&v), &varied(&[1, 2])?, &v[6], false).is_err());
    let wrong = varied(&[4, 2, 4])?;
    let text = layer(&wrong, weights(&v), &v[5], &v[6], false);
    let text = text.unwrap_err().to_string();
    assert!(text.contains("lstm: weights [8, 3]"), "{text}");
    Ok(())
}
