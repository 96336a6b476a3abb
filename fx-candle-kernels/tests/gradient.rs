//! Tests of `gradient`.

use crate::testing::{near, varied};
use candle_core::Result;
use candle_core::Var;
use fx_candle_kernels::gradient::*;

#[test]
fn the_gradient_is_the_formulas() -> Result<()> {
    let (a, b) = (
        Var::from_tensor(&varied(&[2, 3])?)?,
        Var::from_tensor(&varied(&[2, 3])?)?,
    );
    let y = of_one(
        "thrice",
        a.as_tensor(),
        |x| x.sqr(),
        |_, _, grad| grad.affine(3.0, 0.0),
    )?;
    near(&y, &crate::testing::f64s(&a.sqr()?)?)?;
    near(
        y.sum_all()?.backward()?.get(&a).expect("a gradient"),
        &[3.0; 6],
    )?;
    let y = of_two(
        "swapped",
        a.as_tensor(),
        &b.as_tensor().t()?.t()?,
        |a, b| a.mul(b),
        |[a, b], grad| Ok([grad.mul(a)?, grad.mul(b)?]),
    )?;
    let store = y.sum_all()?.backward()?;
    let own = crate::testing::f64s(a.as_tensor())?;
    near(store.get(&a).expect("a gradient"), &own)
}

#[test]
fn nothing_is_recorded_without_gradients() -> Result<()> {
    let x = varied(&[3])?;
    assert!(!of_one("twice", &x, |x| x.affine(2.0, 0.0), |_, _, g| Ok(g.clone()))?.track_op());
    Ok(())
}
