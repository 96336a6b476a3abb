//! Tests of `recurrent`.

use crate::testing::{check, f64s, near, varied};
use candle_core::{Result, Tensor};
use fx_candle_kernels::lstm::Weights;
use fx_candle_kernels::recurrent::*;

fn inputs(gates: usize) -> Result<Vec<Tensor>> {
    Ok(vec![
        varied(&[gates * 2, 3])?,
        varied(&[gates * 2, 2])?.affine(0.5, 0.1)?,
        varied(&[gates * 2])?,
        varied(&[gates * 2])?.affine(-0.3, 0.0)?,
        varied(&[4, 2, 3])?,
        varied(&[2, 2])?,
    ])
}

fn weights(v: &[Tensor]) -> Weights<'_> {
    Weights {
        of_input: &v[0],
        of_hidden: &v[1],
        bias: Some((&v[2], &v[3])),
    }
}

#[test]
fn one_step_is_the_formula() -> Result<()> {
    let v = inputs(3)?;
    let x = v[4].narrow(0, 0, 1)?;
    let (_, h) = layer("gru", Unit::Gru, &x, weights(&v), &v[5], false)?;
    let s = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (w, u, a, b) = (f64s(&v[0])?, f64s(&v[1])?, f64s(&v[2])?, f64s(&v[3])?);
    let (x, h0) = (f64s(&x)?, f64s(&v[5])?);
    let mut want = vec![];
    for n in 0..2 {
        for k in 0..2 {
            let own = |g: usize| -> f64 {
                let r = g * 2 + k;
                (0..3).map(|i| w[r * 3 + i] * x[n * 3 + i]).sum::<f64>() + a[r]
            };
            let old = |g: usize| -> f64 {
                let r = g * 2 + k;
                (0..2).map(|i| u[r * 2 + i] * h0[n * 2 + i]).sum::<f64>() + b[r]
            };
            let (reset, update) = (s(own(0) + old(0)), s(own(1) + old(1)));
            let new = (own(2) + reset * old(2)).tanh();
            want.push((1.0 - update) * new + update * h0[n * 2 + k]);
        }
    }
    near(&h, &want)
}

#[test]
fn gradients_match() -> Result<()> {
    for unit in [Unit::Gru, Unit::Tanh, Unit::Relu] {
        check(&inputs(unit.gates())?, |v| {
            Ok(layer("rnn", unit, &v[4], weights(v), &v[5], true)?.0)
        })?;
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let v = inputs(3)?;
    assert!(
        layer(
            "gru",
            Unit::Gru,
            &v[4],
            weights(&v),
            &varied(&[1, 2])?,
            false
        )
        .is_err()
    );
    assert!(
        layer(
            "rnn",
            Unit::Tanh,
            &varied(&[4, 2, 9])?,
            weights(&v),
            &v[5],
            false
        )
        .is_err()
    );
    Ok(())
}
