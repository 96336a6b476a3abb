//! Values that differed from PyTorch's: signs of zero, views of one element, numbers out of a type's range, refusals.

use fx_nn::cpu::Cpu;
use fx_nn::passes::Decompositions;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

const INF: f64 = f64::INFINITY;

fn of(values: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), values.len())?.to_dtype(dtype)
}

/// Equal to the bit of the sign.
fn exact(x: &Tensor, want: &[f64], what: &str) -> Result<()> {
    let found = x.to_vec()?;
    let same = |a: &f64, b: &f64| {
        (a == b && a.is_sign_negative() == b.is_sign_negative()) || (a.is_nan() && b.is_nan())
    };
    let agree = found.len() == want.len() && found.iter().zip(want).all(|(a, b)| same(a, b));
    assert!(agree, "{what}: {found:?}, expected {want:?}");
    Ok(())
}

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];

#[test]
fn defect_t3_v2_a_product_with_a_number_keeps_the_sign_of_zero() -> Result<()> {
    for dtype in FLOATS {
        let x = &of(&[-0.0, 0.0, -1.0], dtype)?;
        exact(&(x * 1.0)?, &[-0.0, 0.0, -1.0], "x * 1.0")?;
        exact(&(x * 2)?, &[-0.0, 0.0, -2.0], "x * 2")?;
        exact(&(x * -1.0)?, &[0.0, -0.0, 1.0], "x * -1.0")?;
        exact(&(x * 0.0)?, &[-0.0, 0.0, -0.0], "x * 0.0")?;
        exact(&(1.0 * x)?, &[-0.0, 0.0, -1.0], "1.0 * x")?;
        exact(&(2 * x)?, &[-0.0, 0.0, -2.0], "2 * x")?;
        exact(&(x / 2.0)?, &[-0.0, 0.0, -0.5], "x / 2.0")?;
        exact(&(x / -2)?, &[0.0, -0.0, 0.5], "x / -2")?;
        exact(&(x / INF)?, &[-0.0, 0.0, -0.0], "x / inf")?;
        exact(&(x - 0.0)?, &[-0.0, 0.0, -1.0], "x - 0.0")?;
        exact(&(x + 0.0)?, &[0.0, 0.0, -1.0], "x + 0.0")?;
        exact(&(x + -0.0)?, &[-0.0, 0.0, -1.0], "x + -0.0")?;
        exact(&(1.0 / (x * 1.0)?)?, &[-INF, INF, -1.0], "1 / (x * 1.0)")?;
        exact(&ops::leaky_relu(x, 0.5)?, &[-0.0, 0.0, -0.5], "leaky_relu")?;
        exact(&ops::deg2rad(&(x * 0.0)?)?, &[-0.0, 0.0, -0.0], "deg2rad")?;
        let gm = symbolic_trace(traced!(|x: &Tensor| x * 1.0))?;
        let traced: Tensor = gm.forward(x)?;
        exact(&traced, &[-0.0, 0.0, -1.0], "traced")?;
    }
    Ok(())
}

#[test]
fn defect_t3_v3_a_target_beyond_a_probability_is_refused_when_decomposed() -> Result<()> {
    let gm = symbolic_trace(traced!(|p: &Tensor, t: &Tensor| {
        ops::binary_cross_entropy(p, t, None, "mean")
    }))?;
    let p = Tensor::full(2, 0.5, DType::F32)?;
    let mut core = gm.clone();
    core.propagate_shapes((&p, &p))?;
    core.apply(&Decompositions::core()?)?;
    for gm in [gm, core] {
        for (p, t) in [(0.5, 2.0), (0.5, -0.1), (1.5, 0.5), (f64::NAN, 0.5)] {
            let (p, t) = (
                Tensor::full(2, p, DType::F32)?,
                Tensor::full(2, t, DType::F32)?,
            );
            let text = refused(gm.forward::<Tensor>((&p, &t)));
            assert!(text.contains("is not in [0, 1]"), "{text}");
        }
    }
    Ok(())
}

#[test]
fn defect_t3_v4_a_broadcast_dim_of_one_element_is_reduced() -> Result<()> {
    let dtypes = [FLOATS.as_slice(), &[DType::I64, DType::I32, DType::U8]].concat();
    for dtype in dtypes {
        for shape in [vec![1], vec![1, 1], vec![1, 3], vec![3, 1], vec![2, 1, 1]] {
            let x = &Tensor::ones(())?.to_dtype(dtype)?.expand(shape.clone())?;
            for dim in 0..shape.len() as i64 {
                let each: usize = shape.iter().product::<usize>() / shape[dim as usize];
                let ones = vec![1.0; each];
                exact(&ops::max(x, dim, false)?.0, &ones, "max")?;
                exact(&ops::min(x, dim, false)?.0, &ones, "min")?;
                exact(&ops::amax(x, dim, false)?, &ones, "amax")?;
                exact(&ops::amin(x, dim, false)?, &ones, "amin")?;
                exact(&ops::prod(x, Some(dim), false)?, &ones, "prod")?;
                let zeros = vec![0.0; each];
                exact(&ops::argmax(x, dim, false)?, &zeros, "argmax")?;
                exact(&ops::argmin(x, dim, false)?, &zeros, "argmin")?;
                let size = shape[dim as usize] as f64;
                exact(&ops::sum(x, dim, false)?, &vec![size; each], "sum")?;
                let all = vec![1.0; each * shape[dim as usize]];
                exact(&ops::sort(x, dim, false)?.0, &all, "sort")?;
                exact(&ops::cummax(x, dim)?.0, &all, "cummax")?;
                exact(&ops::topk(x, 1, dim, true, true)?.0, &ones, "topk")?;
                exact(&ops::any(x, dim, false)?, &ones, "any")?;
                ops::cumsum(x, dim)?;
                ops::median(x, dim, false)?;
                ops::mode(x, dim, false)?;
                ops::kthvalue(x, 1, dim, false)?;
                if dtype.is_floating_point() {
                    let share = 1.0 / size;
                    let near = |x: Tensor, want: f64| -> Result<()> {
                        let found = x.to_vec()?;
                        assert!(found.iter().all(|y| (y - want).abs() < 1e-2), "{found:?}");
                        Ok(())
                    };
                    near(ops::softmax(x, dim)?, share)?;
                    near(ops::log_softmax(x, dim)?, share.ln())?;
                    near(ops::softmin(x, dim)?, share)?;
                    near(ops::logsumexp(x, dim, false)?, 1.0 + size.ln())?;
                    near(ops::mean(x, dim, false)?, 1.0)?;
                    near(ops::norm(x, INF, dim, false)?, 1.0)?;
                    if matches!(dtype, DType::F32 | DType::F64) {
                        ops::quantile(x, 0.5, Some(dim), false, "linear")?;
                    }
                }
            }
            assert!(fx_nn::allclose(x, x, 1e-5, 1e-8)?.close);
        }
    }
    Ok(())
}

fn refused<T>(found: Result<T>) -> String {
    found.map_or_else(|e| e.to_string(), |_| "not refused".to_string())
}

#[test]
fn defect_t3_v6_a_number_beyond_half_precision_times_a_tensor_is_not_infinite() -> Result<()> {
    let x = &of(&[0.0, -0.0, 1.0, INF], DType::F16)?;
    exact(&(i64::MIN * x)?, &[-0.0, 0.0, -INF, -INF], "i64::MIN * x")?;
    exact(&(x * i64::MIN)?, &[-0.0, 0.0, -INF, -INF], "x * i64::MIN")?;
    exact(&(1e5 * x)?, &[0.0, -0.0, INF, INF], "1e5 * x")?;
    exact(&(i64::MIN / x)?, &[-INF, INF, -INF, -0.0], "i64::MIN / x")?;
    let large = &of(&[6e4], DType::F16)?;
    exact(&(1e-9 * large)?, &[6.002_187_728_881_836e-5], "1e-9 * x")
}

#[test]
fn defect_t3_v6_a_label_twice_in_an_operand_has_one_size() -> Result<()> {
    for (equation, shape) in [
        ("jj->", vec![1usize, 3]),
        ("jj->", vec![3, 1]),
        ("iij->j", vec![1, 2, 2]),
        ("...ii->...", vec![2, 3, 1]),
    ] {
        let x = Tensor::ones(shape)?;
        let text = refused(ops::einsum(equation, std::slice::from_ref(&x)));
        assert!(text.contains("in one operand"), "{text}");
        let gm = symbolic_trace(traced!(move |x: &Tensor| ops::einsum(
            equation,
            std::slice::from_ref(x)
        )))?;
        let text = refused(gm.clone().infer_shapes(&[Spec::of(&x)]));
        assert!(text.contains("in one operand"), "{text}");
    }
    // Labels of two operands still broadcast, as PyTorch's do.
    let y = ops::einsum("j,j->j", &[Tensor::ones(1)?, Tensor::ones(3)?])?;
    assert_eq!(y.to_vec()?, [1.0; 3]);
    Ok(())
}

#[test]
fn defect_t3_v6_shares_of_classes_have_none_to_ignore() -> Result<()> {
    let x = Tensor::zeros((2, 3))?;
    let shares = Tensor::full((2, 3), 1.0 / 3.0, DType::F32)?;
    let loss = |ignored| ops::cross_entropy(&x, &shares, None, ignored, "mean", 0.0);
    for ignored in [0, 1, 5] {
        let text = refused(loss(ignored));
        assert!(text.contains("no class to ignore"), "{text}");
    }
    for ignored in [-100, -1] {
        assert!((loss(ignored)?.item()? - 3f64.ln()).abs() < 1e-6);
    }
    let specs = [Spec::of(&x), fx_nn::shapes::Spec::of(&shares)];
    let mut gm = symbolic_trace(traced!(|x: &Tensor, t: &Tensor| {
        ops::cross_entropy(x, t, None, 1, "mean", 0.0)
    }))?;
    let text = refused(gm.infer_shapes(&specs));
    assert!(text.contains("no class to ignore"), "{text}");
    Ok(())
}

#[test]
fn defect_t3_v6_softplus_above_its_threshold_is_a_line_for_any_beta() -> Result<()> {
    for dtype in FLOATS {
        let x = &of(&[-1.0, 0.0, 1.0], dtype)?;
        exact(&ops::softplus(x, 0.0, -2.0)?, &[-1.0, 0.0, 1.0], "beta 0")?;
        exact(&ops::softplus(x, 0.0, 2.0)?, &[INF; 3], "beta 0, below")?;
    }
    let x = of(&[-5.0, 0.0, 5.0], DType::F64)?;
    let found = ops::softplus(&x, -1.0, 2.0)?.to_vec()?;
    let want = [-5.0, -std::f64::consts::LN_2, -0.006_715_348_489_118_068];
    for (found, want) in found.iter().zip(want) {
        assert!((found - want).abs() < 1e-12, "{found} {want}");
    }
    Ok(())
}

#[test]
fn defect_t3_v6_correlations_of_nothing_have_the_inferred_shape() -> Result<()> {
    for shape in [
        vec![0usize],
        vec![0, 3],
        vec![3, 0],
        vec![0, 0],
        vec![1, 0],
        vec![1, 3],
        vec![],
    ] {
        let x = &Tensor::zeros(shape.clone())?;
        for of in [
            (|x| ops::corrcoef(x)) as fn(&Tensor) -> Result<Tensor>,
            |x| ops::cov(x, 1),
        ] {
            let found = of(x)?.dims()?.to_vec();
            let mut gm = symbolic_trace(traced!(move |x: &Tensor| of(x)))?;
            gm.infer_shapes(&[fx_nn::shapes::Spec::of(x)])?;
            let y: Tensor = gm.forward(x)?;
            assert_eq!(y.dims()?, found);
            let node = gm.graph().nodes().find(|node| node.op().is_call());
            let meta = node.and_then(|node| node.meta::<fx_nn::ir::ValueMeta>().cloned());
            let text = meta.map(|meta| meta.to_string()).unwrap_or_default();
            assert!(
                text.ends_with(&format!("{found:?}")),
                "{shape:?}: {found:?} and {text}"
            );
        }
    }
    Ok(())
}

#[test]
fn defect_t3_v6_weights_that_blocks_cannot_hold_are_refused() -> Result<()> {
    for (bad, name) in [
        (f32::INFINITY, "inf"),
        (f32::NAN, "NaN"),
        (1e30, "too large"),
    ] {
        for quantization in ["Q8_0", "Q4_0", "Q5_1"] {
            let mut weight = vec![1.0f32; 64];
            weight[37] = bad;
            let linear = nn::Linear {
                weight: Tensor::from_vec(weight, (2, 32))?,
                bias: None,
            };
            let text = refused(nn::QuantizedLinear::from_linear(&linear, quantization));
            assert!(text.contains(name), "{text}");
            assert!(text.contains("[1, "), "{text}");
        }
    }
    Ok(())
}

#[test]
fn defect_t3_v6_batch_norm_moves_statistics_that_are_views() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 6.0], (2, 2))?;
    let stats = Tensor::from_vec(vec![0.0f32, 1.0, 0.0, 1.0], (2, 2))?;
    let column = |at: i64| stats.i((.., at));
    ops::batch_norm(
        &x,
        Some(&column(0)?),
        Some(&column(1)?),
        None,
        None,
        true,
        0.5,
        1e-5,
    )?;
    assert_eq!(stats.to_vec()?, [1.0, 1.5, 2.0, 4.5]);
    let wide = Tensor::zeros(1)?.expand(2)?;
    let var = Tensor::ones(2)?;
    let text = refused(ops::batch_norm(
        &x,
        Some(&wide),
        Some(&var),
        None,
        None,
        true,
        0.5,
        1e-5,
    ));
    assert!(
        text.contains("batch_norm") && text.contains("is expanded"),
        "{text}"
    );
    assert_eq!(var.to_vec()?, [1.0; 2]);
    Ok(())
}

/// What random programs found: a decomposition has the values of its function, in halves and of broadcast shapes too.
#[test]
fn decompositions_give_the_values_of_their_functions() -> Result<()> {
    let both = |gm: GraphModule, x: &Tensor, want: &[f64]| -> Result<()> {
        exact(&gm.forward::<Tensor>(x)?, want, "traced")?;
        let mut core = gm;
        core.infer_shapes(&[Spec::of(x)])?;
        core.apply(&Decompositions::core()?)?;
        exact(&core.forward::<Tensor>(x)?, want, "decomposed")
    };
    let end = of(&[0.0], DType::F64)?;
    let lerp = traced!(move |x: &Tensor| ops::lerp(x, &end, 2.0));
    both(symbolic_trace(lerp)?, &of(&[-INF], DType::F64)?, &[INF])?;
    let target = Tensor::ones((3, 1))?.to_dtype(DType::F64)?;
    let divergence = traced!(move |x: &Tensor| ops::kl_div(x, &target, "batchmean", false));
    both(
        symbolic_trace(divergence)?,
        &of(&[1.0, 2.0], DType::F64)?,
        &[-4.5],
    )?;
    let softplus = traced!(|x: &Tensor| ops::softplus(x, 0.5, 30.0));
    both(
        symbolic_trace(softplus)?,
        &of(&[36.0], DType::F16)?,
        &[36.0],
    )?;
    let norm = traced!(|x: &Tensor| ops::vector_norm(x, 3.0, .., false));
    both(symbolic_trace(norm)?, &of(&[-44.0], DType::F16)?, &[44.0])?;
    // PyTorch computes this one step by step.
    let margin = traced!(|x: &Tensor| ops::soft_margin_loss(x, &((x * 0.0)? - 1.0)?, "none"));
    both(symbolic_trace(margin)?, &of(&[800.0], DType::F64)?, &[INF])
}

/// An empty vector fits everything, to the rule of shapes as to the function.
#[test]
fn an_empty_vector_is_stacked_with_anything() -> Result<()> {
    let (empty, x) = (Tensor::zeros(0)?, Tensor::ones((3, 2))?);
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| ops::hstack(&[a, b])))?;
    gm.infer_shapes(&[Spec::of(&empty), Spec::of(&x)])?;
    assert_eq!(gm.forward::<Tensor>((&empty, &x))?.dims()?, [3, 2]);
    Ok(())
}

/// A zero that a bound holds keeps its sign, eager, decomposed and compiled, and has no slope.
#[test]
fn bounds_of_zero_keep_the_sign_of_zero() -> Result<()> {
    let both = |gm: GraphModule, want: &[f64]| -> Result<()> {
        for dtype in FLOATS {
            let x = of(&[-0.0, 0.0, -1.0, 7.0], dtype)?;
            exact(&gm.forward::<Tensor>(&x)?, want, "eager")?;
            let mut core = gm.clone();
            core.infer_shapes(&[Spec::of(&x)])?;
            core.apply(&Decompositions::core()?)?;
            exact(&core.forward::<Tensor>(&x)?, want, "decomposed")?;
            let compiled = gm.compile(Compile::new(Cpu::new()).like(&x))?;
            exact(&compiled.forward::<Tensor>(&x)?, want, "compiled")?;
        }
        Ok(())
    };
    both(symbolic_trace(&nn::ReLU6::new())?, &[-0.0, 0.0, 0.0, 6.0])?;
    let below = nn::Hardtanh {
        min_val: -2.0,
        max_val: 0.0,
    };
    both(symbolic_trace(&below)?, &[-0.0, 0.0, -1.0, 0.0])?;
    // PyTorch's softshrink gives zeros of both signs, by the number of elements.
    let shrunk = nn::Softshrink::default();
    both(symbolic_trace(&shrunk)?, &[0.0, 0.0, -0.5, 6.5])?;
    let x = of(&[-0.0, 0.0, 3.0], DType::F32)?.into_parameter()?;
    let slopes = ops::relu6(&x)?.sum(..)?.grad(&[&x])?;
    exact(&slopes[0], &[0.0, 0.0, 1.0], "slopes")
}

/// The pivots of numbers that are not finite, as LAPACK has them.
#[test]
fn determinants_of_infinities_are_those_of_pytorch() -> Result<()> {
    let nan = f64::NAN;
    for (all, want) in [
        ([-1.92, -0.0, INF, -0.93], nan),
        ([1.0, 2.0, 3.0, INF], INF),
        ([INF, 2.0, 3.0, 1.0], INF),
        ([-1.92, 0.5, INF, -0.93], -INF),
        ([INF; 4], nan),
        ([0.0, INF, 0.0, 1.0], 0.0),
        ([0.0, 0.0, 0.0, INF], nan),
        ([1.0, nan, 1.0, 1.0], nan),
    ] {
        let x = of(&all, DType::F64)?.reshape((2, 2))?;
        exact(&ops::linalg::det(&x)?, &[want], "det")?;
    }
    let (sign, log) =
        ops::linalg::slogdet(&of(&[1.0, 2.0, 3.0, INF], DType::F64)?.reshape((2, 2))?)?;
    exact(&sign, &[1.0], "sign")?;
    exact(&log, &[INF], "log")
}

/// PyTorch takes roots for the powers 0.5 and -0.5 of a number, but of `float16`.
#[test]
fn powers_of_a_half_are_roots_of_all_types_but_float16() -> Result<()> {
    for dtype in FLOATS {
        let x = of(&[-INF, 0.0, 4.0, -4.0], dtype)?;
        let (up, down) = match dtype {
            DType::F16 => (INF, 0.0),
            _ => (f64::NAN, f64::NAN),
        };
        exact(&x.pow(0.5)?, &[up, 0.0, 2.0, f64::NAN], "0.5")?;
        exact(&x.pow(-0.5)?, &[down, INF, 0.5, f64::NAN], "-0.5")?;
    }
    Ok(())
}
