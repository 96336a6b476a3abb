//! Gradients at ties, bounds, zeros, infinities and NaN, eager, traced and decomposed. The numbers are PyTorch's.

use fx_nn::passes::{Decompositions, verify_core};
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

type Of = fn(&[Tensor]) -> Result<Tensor>;

fn parameter(values: &[f64], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), shape)?.into_parameter()
}

fn gradients(y: &Tensor, of: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let inputs: Vec<&Tensor> = of.iter().collect();
    let found = y.sum(..)?.grad(&inputs)?;
    found.iter().map(Tensor::to_vec).collect()
}

fn same(found: &[Vec<f64>], want: &[&[f64]], how: &str) {
    let near =
        |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * b.abs();
    let agree = found.len() == want.len()
        && found.iter().zip(want).all(|(found, want)| {
            found.len() == want.len() && found.iter().zip(*want).all(|(a, b)| near(a, b))
        });
    assert!(agree, "{how}: {found:?}, expected {want:?}");
}

/// Compares the gradients of the sum of `of` in three ways with the wanted ones.
fn held(shape: &[usize], inputs: &[&[f64]], want: &[&[f64]], of: Of) -> Result<()> {
    let xs: Vec<Tensor> = inputs
        .iter()
        .map(|values| parameter(values, shape))
        .collect::<Result<_>>()?;
    same(&gradients(&of(&xs)?, &xs)?, want, "eager");
    let holes = fx_nn::args![xs.clone()];
    let gm = Trace::new(traced!(move |xs: Vec<Tensor>| of(&xs)));
    let gm = gm
        .concrete("xs", Value::List(vec![PH.into_value(); xs.len()].into()))
        .graph_module()?;
    let traced: Tensor = gm.forward(holes.clone())?;
    same(&gradients(&traced, &xs)?, want, "traced");
    let mut core = gm.opened()?;
    core.propagate_shapes(holes.clone())?;
    core.apply(&Decompositions::core()?)?;
    verify_core(&core)?;
    let decomposed: Tensor = core.forward(holes)?;
    same(&gradients(&decomposed, &xs)?, want, "decomposed");
    Ok(())
}

#[test]
fn defect_t3_g1_a_probability_of_0_or_1_has_a_gradient() -> Result<()> {
    let of: Of = |x| ops::binary_cross_entropy(&x[0], &x[1], None, "sum");
    held(
        &[3],
        &[&[0.0, 1.0, 0.5], &[0.0, 1.0, 1.0]],
        &[&[0.0, 0.0, -2.0], &[INF, -INF, 0.0]],
        of,
    )?;
    let far = 1.0 / f64::from(1e-12f32);
    held(
        &[4],
        &[&[0.0, 1.0, 0.0, 1.0], &[1.0, 0.0, 0.3, 0.3]],
        &[&[-far, far, -0.3 * far, 0.7 * far], &[INF, -INF, INF, -INF]],
        of,
    )?;
    // One saturated sample leaves the others' share of a weight as it is.
    let weight = parameter(&[100.0], &[1])?;
    let x = Tensor::from_vec(vec![1.0f64, -1.0, 0.01], 3)?;
    let p = ops::sigmoid(&(&x * &weight)?)?;
    let target = Tensor::from_vec(vec![1.0f64, 0.0, 1.0], 3)?;
    let loss = nn::BCELoss::default().forward(&p, &target)?;
    let found = gradients(&loss, &[weight])?;
    assert!((found[0][0] + 0.0009).abs() < 1e-4, "{found:?}");
    // A target that is a parameter has the gradient of the logarithms.
    let odds = 3f64.ln();
    held(
        &[2],
        &[&[0.25, 0.0], &[0.5, 0.5]],
        &[&[-4.0 / 3.0, -0.5 * far], &[odds, INF]],
        of,
    )
}

#[test]
fn defect_t3_g2_decompositions_keep_the_gradients_of_losses() -> Result<()> {
    let of: Of = |x| {
        let target = Tensor::from_vec(vec![0.0f64, 1.0, 0.5, 0.25], 4)?;
        ops::binary_cross_entropy_with_logits(&x[0], &target, None, "sum", None)
    };
    held(&[4], &[&[0.0; 4]], &[&[0.5, -0.5, 0.0, 0.25]], of)?;
    let of: Of = |x| ops::logsigmoid(&x[0]);
    held(
        &[6],
        &[&[0.0, -0.0, INF, -INF, 800.0, -800.0]],
        &[&[0.5, 0.5, 0.0, 1.0, 0.0, 1.0]],
        of,
    )
}

#[test]
fn defect_t3_g2_decompositions_keep_the_gradients_of_zeros() -> Result<()> {
    let rows = &[2, 2];
    held(
        rows,
        &[&[1.0, 1.0, 3.0, 4.0]],
        &[&[0.0, 0.0, -0.5f64.sqrt(), 0.5f64.sqrt()]],
        |x| ops::std(&x[0], 1, true, false),
    )?;
    held(
        rows,
        &[&[1.0, 1.0, 3.0, 4.0]],
        &[&[0.5, 0.5, 0.5 - 0.5f64.sqrt(), 0.5 + 0.5f64.sqrt()]],
        |x| {
            let (std, mean) = ops::std_mean(&x[0], 1, true, false)?;
            std + mean
        },
    )?;
    held(
        rows,
        &[&[0.0, 0.0, 3.0, 4.0]],
        &[&[0.0, 0.0, 0.6, 0.8]],
        |x| ops::norm(&x[0], 2.0, 1, false),
    )?;
    held(
        rows,
        &[&[0.0, 0.0, 0.0, 4.0]],
        &[&[0.0, 0.0, 0.0, 1.0]],
        |x| ops::norm(&x[0], 3.0, 1, false),
    )?;
    held(
        rows,
        &[&[0.0, 0.0, 0.0, 4.0]],
        &[&[0.0, 0.0, 0.0, 1.0]],
        |x| ops::vector_norm(&x[0], 0.5, 1, false),
    )?;
    held(
        rows,
        &[&[0.0, 0.0, 3.0, 4.0]],
        &[&[1e12, 1e12, 0.032, -0.024]],
        |x| ops::normalize(&x[0], 2.0, 1, 1e-12),
    )?;
    let (a, b) = (0.2f64.sqrt() * 1e8, 0.8f64.sqrt() * 1e8);
    held(
        rows,
        &[&[0.0, 0.0, 3.0, 4.0], &[1.0, 2.0, 0.0, 0.0]],
        &[&[a, b, 0.0, 0.0], &[0.0, 0.0, 6e7, 8e7]],
        |x| ops::cosine_similarity(&x[0], &x[1], 1, 1e-8),
    )?;
    held(
        rows,
        &[&[0.0, 0.0, 3.0, 4.0], &[0.0; 4]],
        &[&[0.0, 0.0, 0.6, 0.8], &[0.0, 0.0, -0.6, -0.8]],
        |x| ops::pairwise_distance(&x[0], &x[1], 2.0, 0.0, false),
    )
}

#[test]
fn defect_t3_g2_decompositions_keep_the_gradients_of_bounds() -> Result<()> {
    let x: &[f64] = &[-INF, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, INF, NAN];
    let held = |want: &[f64], of: Of| held(&[9], &[x], &[want], of);
    held(&[0., 0., 0., 0., 1., 1., 0., 0., 1.], |x| ops::relu6(&x[0]))?;
    held(&[0., 0., 0., 1., 0., 0., 0., 0., 1.], |x| {
        ops::hardtanh(&x[0], -1.0, 1.0)
    })?;
    let sixth = 1.0 / 6.0;
    held(&[0., 0., sixth, sixth, sixth, 0., 0., 0., 0.], |x| {
        ops::hardsigmoid(&x[0])
    })?;
    held(&[0., 0., sixth, 0.5, 5.0 / 6.0, 1., 1., 1., 1.], |x| {
        ops::hardswish(&x[0])
    })?;
    // An exponential that is not used has no slope.
    let far: &[f64] = &[800.0, -800.0, INF, -INF, 0.0, NAN];
    let held = |want: &[f64], of: Of| super::trust_gradients::held(&[6], &[far], &[want], of);
    held(&[1., 0., 1., 0., 1., 1.], |x| ops::elu(&x[0], 1.0))?;
    held(&[1., 0., 1., 0., 1., 1.], |x| ops::celu(&x[0], 1.0))?;
    held(&[1., 0., 1., 0., 0.5, NAN], |x| {
        ops::softplus(&x[0], 1.0, 20.0)
    })
}

#[test]
fn defect_t3_g3_bounds_of_a_clamp_are_flat() -> Result<()> {
    let x: &[f64] = &[-1.0, 1.0, 0.5, 2.0, NAN, -INF];
    let held = |want: &[f64], of: Of| held(&[6], &[x], &[want], of);
    held(&[0., 0., 1., 0., 0., 0.], |x| x[0].clamp(-1.0, 1.0))?;
    held(&[0., 1., 1., 1., 0., 0.], |x| x[0].clamp(-1.0, None))?;
    held(&[1., 0., 1., 0., 0., 1.], |x| x[0].clamp(None, 1.0))?;
    held(&[0., 0., 1., 0., 0., 0.], |x| x[0].clip(-1.0, 1.0))?;
    held(&[0.; 6], |x| x[0].clamp(1, 1))?;
    held(&[0.; 6], |x| x[0].clamp(2.0, 1.0))
}

#[test]
fn defect_t3_g3_ties_share_and_numbers_win() -> Result<()> {
    let inputs: &[&[f64]] = &[
        &[1.0, NAN, 2.0, NAN, INF, 0.0, 3.0],
        &[1.0, 2.0, NAN, NAN, INF, -0.0, 4.0],
    ];
    let held = |want: &[&[f64]], of: Of| held(&[7], inputs, want, of);
    held(
        &[
            &[0.5, 1., 1., 1., 0.5, 0.5, 0.],
            &[0.5, 1., 1., 1., 0.5, 0.5, 1.],
        ],
        |x| ops::maximum(&x[0], &x[1]),
    )?;
    held(
        &[
            &[0.5, 1., 1., 1., 0.5, 0.5, 1.],
            &[0.5, 1., 1., 1., 0.5, 0.5, 0.],
        ],
        |x| ops::minimum(&x[0], &x[1]),
    )?;
    held(
        &[
            &[0.5, 0., 1., 1., 0.5, 0.5, 0.],
            &[0.5, 1., 0., 0., 0.5, 0.5, 1.],
        ],
        |x| ops::fmax(&x[0], &x[1]),
    )?;
    held(
        &[
            &[0.5, 0., 1., 1., 0.5, 0.5, 1.],
            &[0.5, 1., 0., 0., 0.5, 0.5, 0.],
        ],
        |x| ops::fmin(&x[0], &x[1]),
    )
}

#[test]
fn defect_t3_g4_hardswish_is_a_line_at_infinity() -> Result<()> {
    held(&[2], &[&[INF, -INF]], &[&[1.0, 0.0]], |x| {
        ops::hardswish(&x[0])
    })?;
    held(&[2], &[&[INF, -INF]], &[&[1.0, 0.0]], |x| {
        nn::Hardswish::new().forward(&x[0])
    })
}

#[test]
fn large_and_small_divisors_are_not_squared() -> Result<()> {
    held(
        &[3],
        &[&[1e200, 3.0, 1.0], &[1e200, 1e-200, 2.0]],
        &[&[1e-200, 1e200, 0.5], &[-1e-200, -INF, -0.25]],
        |x| &x[0] / &x[1],
    )?;
    held(&[3], &[&[1e200, -1.0, 0.0]], &[&[0.0, 0.25, 1.0]], |x| {
        ops::softsign(&x[0])
    })
}

#[test]
fn powers_have_the_slopes_of_their_formula() -> Result<()> {
    held(
        &[4],
        &[&[2.0, 0.0, 3.0, -2.0], &[0.0, 0.0, -0.0, 0.0]],
        &[&[0.0; 4], &[2f64.ln(), 0.0, 3f64.ln(), NAN]],
        |x| x[0].pow(&x[1]),
    )?;
    held(&[3], &[&[-INF, 4.0, 0.0]], &[&[0.0, -0.0625, -INF]], |x| {
        x[0].pow(-0.5)
    })?;
    held(
        &[3],
        &[&[-50.0, -1e-3, 2.0]],
        &[&[1.928_749_847_963_917_8e-22, (-1e-3f64).exp(), 1.0]],
        |x| ops::elu(&x[0], 1.0),
    )
}

#[test]
fn zeros_and_infinities_are_factors_as_others() -> Result<()> {
    held(
        &[5],
        &[&[2.0, 0.0, 3.0, 0.0, 5.0]],
        &[&[1.0, 8.0, 0.0, 0.0, 0.0]],
        |x| x[0].cumprod(0),
    )?;
    held(&[3], &[&[2.0, INF, 3.0]], &[&[INF, 6.0, INF]], |x| {
        ops::prod(&x[0], None, false)
    })?;
    held(&[3], &[&[INF, 1.0, INF]], &[&[0.5, 0.0, 0.5]], |x| {
        x[0].amax(..)
    })
}

#[test]
fn losses_are_added_in_pytorchs_order() -> Result<()> {
    let of: Of = |x| ops::gaussian_nll_loss(&x[0], &x[0].zeros_like()?, &x[1], false, 1e-6, "sum");
    held(
        &[2],
        &[&[1.0, 2.0], &[INF, 2.0]],
        &[&[0.0, 1.0], &[0.0, -0.25]],
        of,
    )?;
    // 1 + 0.001 - 1.001 is below 0.
    let of: Of = |x| ops::triplet_margin_loss(&x[0], &x[1], &x[2], 1.0, 1.0, 1e-3, false, "sum");
    held(
        &[1, 1],
        &[&[0.0], &[0.0], &[-1.0]],
        &[&[0.0], &[0.0], &[0.0]],
        of,
    )?;
    held(&[2], &[&[1e300, 1e300]], &[&[0.0, 0.0]], |x| {
        let target = Tensor::from_vec(vec![0i64, -1], 2)?;
        ops::multilabel_margin_loss(&x[0], &target, "mean")
    })
}

#[test]
fn what_has_no_slope_is_no_error() -> Result<()> {
    held(&[1, 2], &[&[0.0, 2.0]], &[&[NAN, 1.0]], |x| {
        let (q, r) = ops::linalg::qr(&x[0], "reduced")?;
        q.sum(..)? + r.sum(..)?
    })?;
    // Two equal labels need three steps.
    held(
        &[2, 1, 2],
        &[&[-0.5, -0.5, -1.0, -1.0]],
        &[&[NAN, NAN, 0.0, 0.0]],
        |x| {
            let target = Tensor::from_vec(vec![1i64, 1], (1, 2))?;
            ops::ctc_loss(&x[0], &target, [1i64], [2i64], 0, "sum", false)
        },
    )
}
