//! Defects once found in reductions, each by its number: none may come back. The numbers are
//! PyTorch's.

use fx_nn::prelude::*;

const HALVES: [DType; 2] = [DType::BF16, DType::F16];
const INF: f64 = f64::INFINITY;

fn floats(values: &[f64]) -> fx_nn::Result<Tensor> {
    Tensor::from_vec(values.to_vec(), values.len())?.to_dtype(DType::F32)
}

fn close(x: &Tensor, want: &[f64], within: f64) -> fx_nn::Result<()> {
    let got = x.to_vec()?;
    assert_eq!(got.len(), want.len(), "{got:?} against {want:?}");
    for (g, w) in got.iter().zip(want) {
        let same =
            g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= within * (1.0 + w.abs());
        assert!(same, "{got:?} against {want:?}");
    }
    Ok(())
}

fn exact(x: &Tensor, want: &[f64]) -> fx_nn::Result<()> {
    close(x, want, 0.0)
}

#[test]
fn defect_r01_half_precision_sums_are_rounded_once() -> fx_nn::Result<()> {
    for half in HALVES {
        let ones = |n: usize| Tensor::ones(n)?.to_dtype(half);
        exact(&ones(1000)?.sum(..)?, &[1000.])?;
        exact(&ones(1000)?.mean(..)?, &[1.])?;
        exact(
            &Tensor::ones((4096, 2))?.to_dtype(half)?.sum(0)?,
            &[4096.; 2],
        )?;
        assert_eq!(ones(8)?.sum(..)?.dtype()?, half);
        let x = Tensor::arange(0, 2048)?.to_dtype(half)?;
        let variance = x.to_dtype(DType::F64)?.var(.., true)?.item()?;
        close(&x.to_dtype(half)?.std(.., true)?, &[variance.sqrt()], 4e-3)?;
        let sums = ones(300)?.cumsum(0)?.to_dtype(DType::F64)?;
        exact(&sums.i(255)?, &[256.])?;
        exact(&sums.i(299)?, &[300.])?;
    }
    let large = floats(&[40000.; 2])?.to_dtype(DType::F16)?;
    exact(&large.mean(..)?, &[40000.])?;
    let bf16 = (Tensor::rand((1000, 3))? + 4.0)?.to_dtype(DType::BF16)?;
    let want = bf16.to_dtype(DType::F64)?.var(0, true)?.to_vec()?;
    close(&bf16.var(0, true)?, &want, 4e-3)
}

#[test]
fn defect_r01_softmax_and_norms_compute_half_precision_in_f32() -> fx_nn::Result<()> {
    for half in HALVES {
        let zeros = Tensor::zeros(2048)?.to_dtype(half)?;
        exact(&ops::softmax(&zeros, 0)?.i(0)?, &[1. / 2048.])?;
        close(
            &ops::log_softmax(&zeros, 0)?.i(7)?,
            &[-(2048f64.ln())],
            4e-3,
        )?;
        let x = Tensor::arange(0, 2048)?.to_dtype(half)?;
        let exactly = x.to_dtype(DType::F64)?;
        let check = |got: Tensor, want: Tensor| close(&got, &want.to_vec()?, 8e-3);
        check(
            ops::layer_norm(&x, 2048, None, None, 1e-5)?,
            ops::layer_norm(&exactly, 2048, None, None, 1e-5)?,
        )?;
        check(
            ops::rms_norm(&x, 2048, None, 1e-5)?,
            ops::rms_norm(&exactly, 2048, None, 1e-5)?,
        )?;
        let (rows, exact_rows) = (x.reshape((1024, 2))?, exactly.reshape((1024, 2))?);
        let of = |x: &Tensor| ops::batch_norm(x, None, None, None, None, true, 0.1, 1e-5);
        check(of(&rows)?, of(&exact_rows)?)?;
        let of = |x: &Tensor| ops::group_norm(&x.reshape((1, 2, 1024))?, 2, None, None, 1e-5);
        check(of(&x)?, of(&exactly)?)?;
    }
    let root = floats(&[300., 300.])?.to_dtype(DType::F16)?;
    exact(&ops::rms_norm(&root, 2, None, 1e-6)?, &[1., 1.])
}

#[test]
fn defect_r01_losses_pools_products_and_attention_too() -> fx_nn::Result<()> {
    for half in HALVES {
        let zeros = Tensor::zeros((1, 1024))?.to_dtype(half)?;
        let class = Tensor::from_vec(vec![0i64], 1)?;
        let loss = ops::cross_entropy(&zeros, &class, None, -100, "mean", 0.0)?;
        close(&loss, &[1024f64.ln()], 4e-3)?;
        let ones = |shape: (usize, usize)| Tensor::ones(shape)?.to_dtype(half);
        let many = ones((1, 5000))?;
        exact(
            &ops::mse_loss(&many, &Tensor::zeros((1, 5000))?.to_dtype(half)?, "mean")?,
            &[1.],
        )?;
        exact(
            &ops::l1_loss(&many, &Tensor::zeros((1, 5000))?.to_dtype(half)?, "mean")?,
            &[1.],
        )?;
        close(&ops::cosine_similarity(&many, &many, 1, 1e-8)?, &[1.], 4e-3)?;
        let image = Tensor::ones((1, 64, 64))?.to_dtype(half)?;
        exact(&ops::adaptive_avg_pool2d(&image, 1)?, &[1.])?;
        exact(&ops::avg_pool2d(&image, 64, 64, 0, false, true)?, &[1.])?;
        exact(&ones((1, 4096))?.matmul(&ones((4096, 1))?)?, &[4096.])?;
        exact(
            &ops::linear(&ones((1, 4096))?, &ones((1, 4096))?, None)?,
            &[4096.],
        )?;
        let (q, k) = (ones((1, 4))?, ones((2000, 4))?);
        let y = ops::scaled_dot_product_attention(&q, &k, &k, None, 0.0, false, None, false)?;
        exact(&y, &[1.; 4])?;
    }
    Ok(())
}

#[test]
fn defect_r01_no_intermediate_result_is_rounded() -> fx_nn::Result<()> {
    // One rounding leaves half a unit in the last place; each function is compared with its float64 result.
    let x = ((Tensor::rand(4000)? * 8.0)? - 4.0)?;
    type Function = fn(&Tensor) -> fx_nn::Result<Tensor>;
    let functions: [(&str, Function); 8] = [
        ("gelu", |x| ops::gelu(x, "none")),
        ("gelu by tanh", |x| ops::gelu(x, "tanh")),
        ("silu", ops::silu),
        ("sigmoid", ops::sigmoid),
        ("softplus", |x| ops::softplus(x, 1.0, 20.0)),
        ("elu", |x| ops::elu(x, 0.3)),
        ("rsqrt", |x| x.abs()?.rsqrt()),
        ("pow", |x| x.abs()?.pow(0.25)),
    ];
    for (half, unit) in [(DType::BF16, 2f64.powi(-8)), (DType::F16, 2f64.powi(-11))] {
        let x = x.to_dtype(half)?;
        for (name, function) in functions {
            let got = function(&x)?.to_vec()?;
            let want = function(&x.to_dtype(DType::F64)?)?.to_vec()?;
            for (g, w) in got.iter().zip(want) {
                assert!(
                    (g - w).abs() <= 1.01 * unit * w.abs() + 1e-6,
                    "{name}: {g} against {w}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn defect_r04_leading_dims_are_summed_accurately() -> fx_nn::Result<()> {
    let x = (Tensor::rand((100_000, 2))? + 1000.0)?;
    let exactly = x.to_dtype(DType::F64)?;
    close(&x.var(0, false)?, &exactly.var(0, false)?.to_vec()?, 1e-6)?;
    close(&x.mean(0)?, &exactly.mean(0)?.to_vec()?, 1e-7)?;
    close(&x.sum(0)?, &exactly.sum(0)?.to_vec()?, 1e-7)?;
    let of = |x: &Tensor| ops::batch_norm(x, None, None, None, None, true, 0.1, 1e-5)?.i(0);
    close(&of(&x)?, &of(&exactly)?.to_vec()?, 1e-5)
}

#[test]
fn defect_r04_long_sums_of_ones_are_exact() -> fx_nn::Result<()> {
    let n = (1usize << 24) + 5;
    exact(
        &Tensor::ones(n)?.sum(..)?,
        &[(n as f64 / 2.0).round_ties_even() * 2.0],
    )?;
    exact(
        &Tensor::ones((n, 1))?.sum(0)?,
        &[(n as f64 / 2.0).round_ties_even() * 2.0],
    )?;
    let x = Tensor::ones((1 << 15, 3, 40))?;
    exact(&x.sum([0, 2])?, &[(40 << 15) as f64; 3])?;
    exact(&x.transpose(0, 2)?.sum([0, 2])?, &[(40 << 15) as f64; 3])
}

#[test]
fn defect_r04_sums_of_integers_wrap_around() -> fx_nn::Result<()> {
    let x = Tensor::from_vec(vec![i64::MAX, 1], 2)?;
    let lowest = Tensor::from_vec(vec![i64::MIN], 1)?;
    exact(&x.sum_keepdim(0)?.eq(&lowest)?, &[1.])?;
    exact(&x.cumsum(0)?.i(1..)?.eq(&lowest)?, &[1.])
}

#[test]
fn defect_r11_losses() -> fx_nn::Result<()> {
    let x = floats(&[1., 2., 3.])?.reshape((1, 3))?;
    let class = |values: &[i64]| Tensor::from_vec(values.to_vec(), values.len());
    let weight = floats(&[0., 0.3, 0.5])?;
    let y = ops::cross_entropy(&x, &class(&[0])?, Some(&weight), -100, "sum", 0.1)?;
    close(&y, &[0.020_869_49], 1e-5)?;
    let y = ops::cross_entropy(&x, &class(&[0])?, Some(&weight), -100, "mean", 0.1)?;
    assert!(y.item()?.is_nan());
    let x = floats(&[0., 0., -INF, 0.])?.reshape((2, 2))?;
    let target = class(&[1, -100])?;
    for smoothing in [0.0, 0.1] {
        let y = ops::cross_entropy(&x, &target, None, -100, "mean", smoothing)?;
        close(&y, &[2f64.ln()], 1e-6)?;
        let y = ops::cross_entropy(&x, &target, None, -100, "none", smoothing)?;
        close(&y, &[2f64.ln(), 0.], 1e-6)?;
    }
    exact(&ops::nll_loss(&x, &target, None, -100, "sum")?, &[0.])?;
    // A weight of 0 does not make a row ignored.
    let weight = floats(&[0., 1.])?;
    let y = ops::nll_loss(&x, &class(&[1, 0])?, Some(&weight), -100, "none")?;
    assert!(y.to_vec()?[1].is_nan());
    Ok(())
}

#[test]
fn defect_r11_attention_of_a_row_without_keys_is_zero() -> fx_nn::Result<()> {
    let x = Tensor::ones((2, 3))?;
    let truth = floats(&[0., 0., 1., 0.])?
        .reshape((2, 2))?
        .to_dtype(DType::Bool)?;
    let numbers = floats(&[-INF, -INF, 0., -INF])?.reshape((2, 2))?;
    for mask in [truth, numbers] {
        let y =
            ops::scaled_dot_product_attention(&x, &x, &x, Some(&mask), 0.0, false, None, false)?;
        exact(&y, &[0., 0., 0., 1., 1., 1.])?;
    }
    Ok(())
}

#[test]
fn defect_r11_pools_of_integers() -> fx_nn::Result<()> {
    let threes = Tensor::from_vec(vec![3i64; 16], (1, 4, 4))?;
    exact(&ops::avg_pool2d(&threes, 2, 2, 0, false, true)?, &[3.; 4])?;
    let mixed = Tensor::from_vec(vec![-1i64, -2, -3, -1], (1, 2, 2))?;
    exact(&ops::avg_pool2d(&mixed, 2, 2, 0, false, true)?, &[-1.])?;
    assert!(ops::avg_pool2d(&threes.to_dtype(DType::I32)?, 2, 2, 0, false, true).is_err());
    for out in [1usize, 2, 4] {
        let text = ops::adaptive_avg_pool2d(&threes, out)
            .unwrap_err()
            .to_string();
        assert!(text.contains("not floating point"), "{text}");
    }
    Ok(())
}

#[test]
fn defect_r11_rests_and_quotients_at_infinities() -> fx_nn::Result<()> {
    let a = floats(&[5., -5., 5., 1e8, 0., 1.])?;
    let b = floats(&[INF, INF, -INF, 0.3, 0., -INF])?;
    let nan = f64::NAN;
    close(
        &(&a % &b)?,
        &[5., INF, -INF, 0.026_357_174, nan, -INF],
        1e-6,
    )?;
    exact(
        &a.floor_divide(&b)?,
        &[0., -1., -1., 333_333_312., nan, -1.],
    )?;
    exact(&(&floats(&[5., -5.])? % INF)?, &[5., INF])?;
    exact(&floats(&[5., -5.])?.floor_divide(-INF)?, &[-1., 0.])?;
    let of = |a: f64, b: f64| -> fx_nn::Result<(f64, f64)> {
        let a = fx_nn::value::Float::from(a);
        let number = |x: fx_nn::value::Float| x.concrete().expect("a number");
        Ok((number(a.floordiv(b)?), number((a % b)?)))
    };
    assert_eq!(of(1.0, -INF)?, (-1.0, -INF));
    assert_eq!(of(-5.0, INF)?, (-1.0, INF));
    assert_eq!(of(5.0, INF)?, (0.0, 5.0));
    assert_eq!(of(7.0, -2.0)?, (-4.0, -1.0));
    assert_eq!(of(1e8, 0.3)?.0, 333_333_333.0);
    assert!(of(-0.0, 1.0)?.0.is_sign_negative() && of(0.0, -1.0)?.1.is_sign_negative());
    Ok(())
}

#[test]
fn defect_r11_nan() -> fx_nn::Result<()> {
    let nan = f64::NAN;
    let x = floats(&[1., nan, INF, nan, -INF])?;
    exact(&x.i(..1)?.clamp(nan, None)?, &[nan])?;
    exact(&x.i(..1)?.clamp(0.0, nan)?, &[nan])?;
    let (values, at) = x.topk(5, -1, true, true)?;
    exact(&values, &[nan, nan, INF, 1., -INF])?;
    exact(&at, &[1., 3., 2., 0., 4.])?;
    exact(&x.topk(3, -1, false, true)?.1, &[4., 0., 2.])?;
    let bases = floats(&[1., nan, -1., -INF])?;
    exact(
        &bases.pow(&floats(&[nan, 0., INF, 0.5])?)?,
        &[1., 1., 1., INF],
    )?;
    exact(&bases.pow(nan)?, &[1., nan, nan, nan])
}

#[test]
fn defect_r11_cosine_similarity_of_zeros() -> fx_nn::Result<()> {
    let zeros = Tensor::zeros((2, 3))?;
    for dtype in [DType::F32, DType::BF16] {
        let x = zeros.to_dtype(dtype)?;
        exact(&ops::cosine_similarity(&x, &x, 1, 1e-8)?, &[0., 0.])?;
    }
    // 1e-8 is 0 in float16, in PyTorch too: a larger eps keeps zeros apart.
    let x = zeros.to_dtype(DType::F16)?;
    exact(&ops::cosine_similarity(&x, &x, 1, 1e-4)?, &[0., 0.])?;
    let tiny = floats(&[1e-5, 0.])?.to_dtype(DType::F16)?;
    close(&ops::cosine_similarity(&tiny, &tiny, 0, 1e-8)?, &[1.], 1e-3)?;
    let whole = zeros.to_dtype(DType::I64)?;
    assert!(ops::cosine_similarity(&whole, &whole, 1, 1e-8).is_err());
    Ok(())
}

#[test]
fn defect_r11_no_dims_are_all_dims() -> fx_nn::Result<()> {
    let x = floats(&[1., 2., 3., 4.])?.reshape((2, 2))?;
    let none: [i64; 0] = [];
    exact(&x.amax(none)?, &[4.])?;
    exact(&x.amin(none)?, &[1.])?;
    exact(&x.sum(none)?, &[10.])?;
    assert_eq!(x.mean_keepdim(none)?.dims()?, [1, 1]);
    let scalar = x.i((0, 0))?;
    exact(&scalar.sum(0)?, &[1.])?;
    exact(&scalar.amax(-1)?, &[1.])
}

#[test]
fn defect_r11_an_empty_dim_has_as_many_chunks_as_asked() -> fx_nn::Result<()> {
    let pieces = Tensor::zeros((2, 0))?.chunk(3, 1)?;
    let shapes = pieces.iter()?.map(|piece| Ok(piece.dims()?.to_vec()));
    assert_eq!(
        shapes.collect::<fx_nn::Result<Vec<_>>>()?,
        vec![vec![2, 0]; 3]
    );
    assert!(Tensor::zeros((2, 0))?.chunk(usize::MAX, 1).is_err());
    Ok(())
}

#[test]
fn defect_r11_a_tensor_without_dims_does_not_decide_the_type() -> fx_nn::Result<()> {
    let x = Tensor::ones(2)?;
    let scalar = |dtype| Tensor::ones(())?.to_dtype(dtype);
    let whole = x.to_dtype(DType::I32)?;
    let truth = x.to_dtype(DType::Bool)?;
    for (x, other, want) in [
        (&x, DType::F64, DType::F32),
        (&whole, DType::I64, DType::I32),
        (&whole, DType::F64, DType::F64),
        (&x, DType::I64, DType::F32),
    ] {
        let other = scalar(other)?;
        assert_eq!(x.maximum(&other)?.dtype()?, want);
        assert_eq!(other.minimum(x)?.dtype()?, want);
        assert_eq!(ops::r#where(&truth, x, &other)?.dtype()?, want);
    }
    Ok(())
}

#[test]
fn defect_r11_norms_of_extreme_inputs() -> fx_nn::Result<()> {
    let (max, nan) = (f64::from(f32::MAX), f64::NAN);
    let row = |values: [f64; 4]| floats(&values)?.reshape((1, 4));
    for values in [
        [max, max, 1., 2.],
        [1e20, 2e20, 1e20, 0.],
        [INF, 1., 2., 3.],
        [nan, 1., 2., 3.],
    ] {
        exact(
            &ops::layer_norm(&row(values)?, 4, None, None, 1e-5)?,
            &[nan; 4],
        )?;
    }
    let y = ops::group_norm(&row([max, 1., 2., 3.])?, 2, None, None, 0.0)?;
    close(&y, &[nan, nan, -1., 1.], 1e-6)?;
    exact(
        &ops::rms_norm(&row([max, -max, 1., 2.])?, 4, None, 1e-6)?,
        &[0.; 4],
    )?;
    exact(
        &ops::rms_norm(&row([-INF, INF, 0., 0.])?, 4, None, 1e-6)?,
        &[nan, nan, 0., 0.],
    )?;
    let batch = |values, shape: (usize, usize, usize)| {
        let x = row(values)?.reshape(shape)?;
        ops::batch_norm(&x, None, None, None, None, true, 0.1, 1e-5)
    };
    assert!(
        batch([max, max, 1., 2.], (2, 1, 2))?
            .to_vec()?
            .iter()
            .all(|y| y.is_finite())
    );
    exact(&batch([INF, 1., 2., 3.], (2, 1, 2))?, &[nan; 4])?;
    let column = row([max, max, 1., 2.])?.reshape((4, 1))?;
    exact(
        &ops::batch_norm(&column, None, None, None, None, true, 0.1, 1e-5)?,
        &[nan; 4],
    )
}

#[test]
fn defect_r11_spread_of_large_numbers() -> fx_nn::Result<()> {
    let x = floats(&[1e20, 2e20, 1e20, 0.])?;
    close(&x.std(.., true)?, &[8.164_966e19], 1e-6)?;
    exact(&x.var(.., true)?, &[INF])?;
    close(
        &floats(&[f64::from(f32::MAX), 1., 2., 3.])?.std(.., true)?,
        &[1.701_411_7e38],
        1e-6,
    )
}

#[test]
fn defect_r11_softplus_keeps_small_results() -> fx_nn::Result<()> {
    let y = ops::softplus(&floats(&[-25., 20., 20.5, 1000., -1000.])?, 1.0, 20.0)?.to_vec()?;
    assert!((y[0] / 1.388_794_4e-11 - 1.0).abs() < 1e-6, "{y:?}");
    assert_eq!(y[1..], [20., 20.5, 1000., 0.]);
    exact(&ops::elu(&floats(&[-1e-9])?, 1.0)?, &[f64::from(-1e-9f32)])
}
