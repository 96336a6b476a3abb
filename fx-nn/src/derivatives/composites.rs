//! Functions that are differentiated by what other functions give for the same arguments.
//!
//! Invariant: a composite has the numbers of its function, and the gradients that PyTorch gives.

use fx_core::passes::DecomposedCall;
use fx_core::value::{DType, Int, IntoValue, Value};
use fx_core::{Error, Result, function};

use super::derivatives;
use crate::func::{Derivative, args_of, known};
use crate::ops::{self, linalg};
use crate::tensor::{Dims, NormOrder, Tensor, TensorOrNumber};

/// The function with the parameters that its composite reads, the call where it needs more, and a result of them.
macro_rules! composites {
    ($($($function:ident)::+ ($($param:ident: $ty:ty),* $(,)?) $(|$asked:ident|)? => $result:expr;)*) => {$(
        fx_core::function_table! { Derivative {
            function!($($function)::+) => Derivative::Composite(|call| {
                $(let $asked = call;)?
                $(let $param: $ty = call.arg(stringify!($param))?;)*
                let result: Result<_> = $result;
                result.map(IntoValue::into_value)
            })
        } }
    )*};
}

composites! {
    ops::prelu(x: Tensor, weight: Tensor) => {
        let weight = match known::rank(&x)? {
            0 | 1 => weight,
            rank => {
                let mut shape = vec![Int::from(1); rank];
                shape[1] = Int::from(-1);
                ops::reshape(&weight, shape)?
            }
        };
        let weight = if known::rank(&x)? == 0 { ops::reshape(&weight, Vec::<i64>::new())? } else { weight };
        ops::r#where(&x.gt(0)?, &x, &(&x * weight)?)
    };
    ops::mask_scores(scores: Tensor, mask: Tensor) => match known::dtype(&mask)? {
        DType::Bool => ops::masked_fill(&scores, &mask, f64::NEG_INFINITY),
        _ => &scores + mask,
    };
    ops::column_stack(tensors: Vec<Tensor>) => {
        let columns = tensors.iter().map(|x| match known::rank(x)? {
            0 | 1 => ops::reshape(x, vec![-1i64, 1]),
            _ => Ok(x.clone()),
        }).collect::<Result<Vec<_>>>()?;
        ops::cat(&columns, 1)
    };
    ops::hstack(tensors: Vec<Tensor>) => {
        let tensors = tensors.iter().map(ops::atleast_1d).collect::<Result<Vec<_>>>()?;
        let dim = match tensors.first().map(known::rank).transpose()? {
            Some(1) => 0,
            _ => 1,
        };
        ops::cat(&tensors, dim)
    };
    ops::cartesian_prod(tensors: Vec<Tensor>) => match tensors.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let grids = ops::meshgrid(many, "ij")?;
            let columns = known::items(&grids.into_value())?;
            let columns = columns.iter().map(|x| ops::reshape(x, [-1])).collect::<Result<Vec<_>>>()?;
            ops::stack(&columns, 1)
        }
    };
    ops::cov(x: Tensor, correction: i64) => covariance(&x, correction);
    ops::corrcoef(x: Tensor) => {
        let found = covariance(&x, 1)?;
        match known::rank(&found)? {
            0 => {
                let variance = found.clone();
                found / variance
            }
            _ => {
                let deviations = ops::sqrt(&ops::diagonal(&found, 0, 0, 1)?)?;
                let found = (found / ops::unsqueeze(&deviations, 1)?)?;
                ops::clamp(&(found / ops::unsqueeze(&deviations, 0)?)?, -1.0, 1.0)
            }
        }
    };
    ops::cdist(x1: Tensor, x2: Tensor, p: f64) => {
        let apart = (ops::unsqueeze(&x1, -2)? - ops::unsqueeze(&x2, -3)?)?;
        if known::dims(&apart)?.last().is_some_and(|dim| dim.as_known() == Some(0)) {
            return ops::sum(&apart, -1, false).map(IntoValue::into_value);
        }
        ops::vector_norm(&apart, p, Dims::One(-1), false)
    };
    ops::vander(x: Tensor, n: Option<usize>, increasing: bool) => {
        let count = match n {
            Some(n) => n as i64,
            None => known::shape(&x, "`vander`")?[0] as i64,
        };
        let ones = ops::ones_like(&ops::unsqueeze(&x, 1)?, None)?;
        let powers = match count {
            0 => ops::narrow(&ones, 1, 0, 0)?,
            1 => ones,
            _ => {
                let size = known::size(&x, 0)?;
                let row = ops::expand(&ops::unsqueeze(&x, 1)?, vec![size, Int::from(count - 1)])?;
                ops::cumprod(&ops::cat(&[ones, row], 1)?, 1)?
            }
        };
        if increasing { Ok(powers) } else { ops::flip(&powers, 1) }
    };
    ops::linalg::matrix_power(x: Tensor, n: i64) => {
        let mut base = if n < 0 { linalg::inv(&x)? } else { x.clone() };
        let mut left = n.unsigned_abs();
        let mut found: Option<Tensor> = None;
        while left > 0 {
            if left % 2 == 1 {
                found = Some(match found {
                    Some(found) => ops::matmul(&found, &base)?,
                    None => base.clone(),
                });
            }
            left /= 2;
            if left > 0 {
                base = ops::matmul(&base, &base)?;
            }
        }
        match found {
            Some(found) => Ok(found),
            None => {
                let eye = ops::eye(known::size(&x, -1)?, None, Some(known::dtype(&x)?))?;
                ops::expand(&eye, known::sizes(&x)?)
            }
        }
    };
    ops::linalg::cond(a: Tensor, p: NormOrder) => {
        // That of no elements is 0, as their sum.
        let is_empty = known::dims(&a)?.iter().any(|dim| dim.as_known() == Some(0));
        match is_empty {
            true => ops::sum(&a, Dims::Many(vec![-2, -1]), false),
            false => linalg::composed_cond(&a, p, linalg::inv),
        }
    };
    ops::linalg::householder_product(a: Tensor, tau: Tensor) => {
        let (of_a, of_tau) = (known::shape(&a, "`householder_product`")?, known::shape(&tau, "`householder_product`")?);
        match (of_a.as_slice(), of_tau.last()) {
            ([.., m, n], Some(k)) => linalg::reflected(&a, &tau, [*m, *n, *k], known::dtype(&a)?),
            _ => Err(Error::msg("`householder_product` is of matrices")),
        }
    };
    ops::linalg::tensorinv(a: Tensor, ind: i64) => {
        let at = usize::try_from(ind).map_err(Error::other)?;
        linalg::inverse_of(&a, &known::shape(&a, "`tensorinv`")?, at)
    };
    ops::linalg::tensorsolve(a: Tensor, b: Tensor, dims: Dims) => {
        let (of_a, of_b) = (known::shape(&a, "`tensorsolve`")?, known::shape(&b, "`tensorsolve`")?);
        linalg::solution_of((&a, &of_a), (&b, &of_b), &dims)
    };
    ops::fft::rfftn(x: Tensor) |call| => ops::fft::real_of(call, Some(known::rank(&x)?));
    ops::fft::irfftn(x: Tensor) |call| => ops::fft::to_real_of(call, Some(known::rank(&x)? - 1));
    ops::fft::hfftn(x: Tensor) |call| => ops::fft::hermitian_many_of(call, Some(known::rank(&x)? - 1));
    ops::fft::ihfftn(x: Tensor) |call| => ops::fft::to_hermitian_many_of(call, Some(known::rank(&x)?));
    ops::stft(x: Tensor) |call| => ops::composed_stft((&x, known::rank(&x)?, known::dtype(&x)?), call);
    ops::istft(x: Tensor, window: Option<Tensor>, n_fft: usize, onesided: Option<bool>, length: Option<usize>) |call| => {
        let shape = known::shape(&x, "`istft`")?;
        let frequencies = shape.len().checked_sub(3).map(|at| shape[at]);
        let of = ops::Frames::of("istft", call, onesided.unwrap_or(frequencies != Some(n_fft)))?;
        ops::composed_istft((&x, &shape, known::dtype(&x)?), window.as_ref(), of, length)
    };
    ops::linalg::matrix_norm(a: Tensor, ord: NormOrder, dim: Dims, keepdim: bool, dtype: Option<DType>) => {
        let a = match dtype {
            Some(dtype) => ops::to_dtype(&a, dtype)?,
            None => a,
        };
        let rank = known::rank(&a)?;
        let [row, column] = match dim {
            Dims::All => [rank - 2, rank - 1],
            Dims::Many(dims) => match dims.as_slice() {
                [row, column] => [known::place(*row, rank)?, known::place(*column, rank)?],
                _ => return Err(Error::msg("a matrix has two dims")),
            },
            Dims::One(_) => return Err(Error::msg("a matrix has two dims")),
        };
        // The matrix last.
        let mut order: Vec<i64> = (0..rank).filter(|at| *at != row && *at != column).map(|at| at as i64).collect();
        order.extend([row as i64, column as i64]);
        let a = ops::permute(&a, order)?;
        let found = match ord {
            NormOrder::Number(p) if p.abs() == 1.0 || p.is_infinite() => {
                let along = if p.is_infinite() { -1 } else { -2 };
                let sums = ops::sum(&a.abs()?, along, false)?;
                if p > 0.0 { ops::amax(&sums, -1, false)? } else { ops::amin(&sums, -1, false)? }
            }
            NormOrder::Number(p) => {
                let values = linalg::svdvals(&a)?;
                if p > 0.0 { ops::amax(&values, -1, false)? } else { ops::amin(&values, -1, false)? }
            }
            NormOrder::Named(name) if name == "nuc" => ops::sum(&linalg::svdvals(&a)?, -1, false)?,
            NormOrder::Named(_) => ops::vector_norm(&a, 2.0, [-2, -1], false)?,
        };
        match keepdim {
            false => Ok(found),
            true => {
                let (first, last) = (row.min(column), row.max(column));
                ops::unsqueeze(&ops::unsqueeze(&found, first as i64)?, last as i64)
            }
        }
    };
    ops::gaussian_nll_loss(x: Tensor, target: Tensor, var: TensorOrNumber, full: bool, eps: f64, reduction: String) => {
        let var = match var {
            TensorOrNumber::Tensor(var) => {
                let (own, dims) = (known::dims(&var)?, known::dims(&x)?);
                match own != dims && own.len() + 1 == dims.len() {
                    true => ops::unsqueeze(&var, -1)?,
                    false => var,
                }
            }
            TensorOrNumber::Number(var) => ops::full_like(&x, var, None)?,
        };
        // The bound itself is no way for the gradient.
        let var = (&var + stopped(&(ops::clamp(&var, eps, None)? - &var)?)?)?;
        let apart = (&x - target)?;
        let mut losses = ((ops::log(&var)? + ((&apart * &apart)? / &var)?)? * 0.5)?;
        if full {
            losses = (losses + 0.5 * (2.0 * std::f64::consts::PI).ln())?;
        }
        reduced(losses, &reduction)
    };
    ops::nll_loss(x: Tensor, target: Tensor, weight: Option<Tensor>, ignore_index: i64, reduction: String) =>
        nll(&x, &target, weight.as_ref(), ignore_index, &reduction);
    ops::cross_entropy(x: Tensor, target: Tensor, weight: Option<Tensor>, ignore_index: i64, reduction: String, label_smoothing: f64) =>
        cross_entropy(&x, &target, weight.as_ref(), ignore_index, &reduction, label_smoothing);
    ops::multi_margin_loss(x: Tensor, target: Tensor, p: i64, margin: f64, weight: Option<Tensor>, reduction: String) => {
        let rank = known::rank(&x)?;
        let rows = ops::reshape(&x, vec![Int::from(-1), known::size(&x, -1)?])?;
        let target = ops::reshape(&target, vec![-1i64, 1])?;
        let own = ops::gather(&rows, 1, &target)?;
        let mut losses = ops::relu(&((&rows - own)? + margin)?)?;
        if p == 2 {
            losses = (&losses * &losses)?;
        }
        if let Some(weight) = weight {
            let weights = ops::index_select(&weight, 0, &ops::reshape(&target, [-1])?)?;
            losses = (losses * ops::unsqueeze(&weights, 1)?)?;
        }
        // The target itself is no loss.
        losses = ops::scatter_value(&losses, 1, &target, 0)?;
        let losses = ops::mean(&losses, 1, false)?;
        match (rank, reduction.as_str()) {
            (2, "none") => Ok(losses),
            (_, "none") => ops::reshape(&losses, Vec::<i64>::new()),
            _ => reduced(losses, &reduction),
        }
    };
    ops::multilabel_margin_loss(x: Tensor, target: Tensor, reduction: String) => {
        let (rank, classes) = (known::rank(&x)?, known::size(&x, -1)?);
        let flat = |x: &Tensor| ops::reshape(x, vec![Int::from(-1), classes]);
        let (rows, target) = (flat(&x)?, flat(&target)?);
        // Targets end at the first negative one.
        let counts = ops::cumprod(&ops::to_dtype(&target.ge(0)?, DType::I64)?, 1)?.eq(1)?;
        let place = ops::r#where(&counts, &target, 0)?;
        let own = ops::gather(&rows, 1, &place)?;
        let zeros = ops::zeros_like(&rows, None)?;
        let is_target = ops::scatter_add(&zeros, 1, &place, &ops::type_as(&counts, &rows)?)?.gt(0)?;
        let gap = ((1.0 - ops::unsqueeze(&own, 2)?)? + ops::unsqueeze(&rows, 1)?)?;
        let pairs = ops::logical_and(&ops::unsqueeze(&counts, 2)?, &ops::logical_not(&ops::unsqueeze(&is_target, 1)?)?)?;
        let losses = ops::r#where(&pairs, &ops::relu(&gap)?, 0)?;
        let losses = (ops::sum(&losses, [1, 2], false)? / count_of(&classes, &rows)?)?;
        match (rank, reduction.as_str()) {
            (2, "none") => Ok(losses),
            (_, "none") => ops::reshape(&losses, Vec::<i64>::new()),
            _ => reduced(losses, &reduction),
        }
    };
    ops::instance_norm(x: Tensor, running_mean: Option<Tensor>, running_var: Option<Tensor>, weight: Option<Tensor>, bias: Option<Tensor>, use_input_stats: bool, eps: f64) => {
        let rank = known::rank(&x)?;
        let mut along = vec![Int::from(1); rank];
        along[1] = known::size(&x, 1)?;
        let wide = |x: &Tensor| ops::reshape(x, along.clone());
        let (mean, var) = match (use_input_stats, running_mean, running_var) {
            (false, Some(mean), Some(var)) => (wide(&mean)?, wide(&var)?),
            _ => {
                let dims: Vec<i64> = (2..rank as i64).collect();
                let mean = ops::mean(&x, dims.clone(), true)?;
                let apart = (&x - &mean)?;
                (mean, ops::mean(&(&apart * &apart)?, dims, true)?)
            }
        };
        let mut y = ((&x - mean)? * ops::rsqrt(&(var + eps)?)?)?;
        if let Some(weight) = weight {
            y = (y * wide(&weight)?)?;
        }
        match bias {
            Some(bias) => y + wide(&bias)?,
            None => Ok(y),
        }
    };
    ops::local_response_norm(x: Tensor, size: usize, alpha: f64, beta: f64, k: f64) => {
        let shape = known::sizes(&x)?;
        let squares = ops::reshape(&(&x * &x)?, vec![shape[0], Int::from(1), shape[1], Int::from(-1)])?;
        let before = (size / 2) as i64;
        let padded = ops::pad(&squares, vec![0, 0, before, size as i64 - 1 - before], "constant", None)?;
        let means = ops::avg_pool2d(&padded, (size, 1), (1, 1), (0, 0), false, true)?;
        let scale = ((ops::reshape(&means, shape)? * alpha)? + k)?;
        &x / scale.pow(beta)?
    };
    ops::lp_pool1d(x: Tensor, norm_type: f64, kernel_size: usize, stride: usize, ceil_mode: bool) => {
        let sums = (ops::avg_pool1d(&x.pow(norm_type)?, kernel_size, stride, 0, ceil_mode, true)? * kernel_size as f64)?;
        rooted(sums, norm_type)
    };
    ops::lp_pool2d(x: Tensor, norm_type: f64, ceil_mode: bool) |call| => {
        let powers = x.pow(norm_type)?;
        let args = vec![powers.into_value(), value(call, "kernel_size")?, value(call, "stride")?, Value::Int(0), Value::Bool(ceil_mode), Value::Bool(true)];
        let means: Tensor = function!(ops::avg_pool2d).call_as(args_of(args))?;
        let kernel = value(call, "kernel_size")?;
        let count = match &kernel {
            Value::Int(n) => (n * n) as f64,
            Value::Tuple(all) | Value::List(all) => all.iter().filter_map(|n| if let Value::Int(n) = n { Some(*n as f64) } else { None }).product(),
            _ => return Err(Error::msg("`kernel_size` is no number")),
        };
        rooted((means * count)?, norm_type)
    };
    ops::quantile(x: Tensor, q: TensorOrNumber, dim: Option<i64>, keepdim: bool, interpolation: String) =>
        quantile(&x, q, dim, keepdim, &interpolation, false);
    ops::nanquantile(x: Tensor, q: TensorOrNumber, dim: Option<i64>, keepdim: bool, interpolation: String) =>
        quantile(&x, q, dim, keepdim, &interpolation, true);
    ops::affine_grid(theta: Tensor, size: Value, align_corners: bool) => {
        let size = known::ints(size)?;
        let dtype = known::dtype(&theta)?;
        let over = &size[2..];
        let dims = over.len();
        // Each dim from -1 to 1, x first.
        let mut points = Vec::with_capacity(dims + 1);
        for at in (0..dims).rev() {
            let n = known::number(&over[at]).ok_or_else(|| Error::msg("`affine_grid` needs sizes that are numbers"))?;
            let edge = if align_corners { 1.0 } else { (n - 1) as f64 / n as f64 };
            let line: Vec<f64> = (0..n).map(|i| if n == 1 { 0.0 } else { -edge + 2.0 * edge * i as f64 / (n - 1) as f64 }).collect();
            let mut shape = vec![1i64; dims];
            shape[at] = n;
            let line = ops::reshape(&Tensor::from_vec(line, n as usize)?, shape)?;
            points.push(ops::expand(&line, over.to_vec())?);
        }
        points.push(ops::ones_like(&points[0], None)?);
        let points = ops::stack(&points, -1)?;
        let flat = ops::reshape(&ops::to_dtype(&points, dtype)?, vec![-1i64, dims as i64 + 1])?;
        let grid = ops::matmul(&flat, &ops::transpose(&theta, 1, 2)?)?;
        let mut shape = vec![size[0]];
        shape.extend(over.iter().copied());
        shape.push(Int::from(dims as i64));
        ops::reshape(&grid, shape)
    };
    ops::lstm() |call| => network(call, Unit::Lstm);
    ops::gru() |call| => network(call, Unit::Gru);
    ops::rnn_tanh() |call| => network(call, Unit::Tanh);
    ops::rnn_relu() |call| => network(call, Unit::Relu);
}

derivatives! {
    ops::binary_cross_entropy => |call| {
        let (p, target): (Tensor, Tensor) = (call.arg("x")?, call.arg("target")?);
        let weight: Option<Tensor> = call.arg("weight")?;
        let reduction: String = call.arg("reduction")?;
        let mut grad = call.grad()?;
        if reduction == "mean" {
            grad = (grad / count_in(&p)?)?;
        }
        if let Some(weight) = &weight {
            grad = (grad * weight)?;
        }
        call.give("x", |_| {
            let spread = ops::clamp(&((1.0 - &p)? * &p)?, f64::from(1e-12f32), None)?;
            (&grad * (&p - &target)?)? / spread
        })?;
        call.give("target", |_| &grad * (ops::log1p(&(-&p)?)? - ops::log(&p)?)?)?;
        call.give("weight", |call| {
            let losses: Tensor = call.with(&[("weight", Value::None), ("reduction", "none".into_value())])?;
            let grad = if reduction == "mean" { (call.grad()? / count_in(&p)?)? } else { call.grad()? };
            grad * losses
        })
    };
}

/// A plain argument.
fn value(call: &DecomposedCall<'_>, name: &str) -> Result<Value> {
    call.arg::<Value>(name)
}

/// A tensor through which no gradient runs: a number plus its distance from it.
fn stopped(x: &Tensor) -> Result<Tensor> {
    ops::detach(x)
}

fn reduced(losses: Tensor, reduction: &str) -> Result<Tensor> {
    match reduction {
        "mean" => ops::mean(&losses, Dims::All, false),
        "sum" => ops::sum(&losses, Dims::All, false),
        _ => Ok(losses),
    }
}

/// A size as a divisor.
fn count_of(size: &Int, _: &Tensor) -> Result<f64> {
    known::number(size)
        .map(|n| n as f64)
        .ok_or_else(|| Error::msg("the derivative needs sizes that are numbers"))
}

/// How many elements a tensor has.
fn count_in(x: &Tensor) -> Result<f64> {
    let shape = known::shape(x, "the derivative of a mean")?;
    Ok(shape.iter().product::<usize>() as f64)
}

fn covariance(x: &Tensor, correction: i64) -> Result<Tensor> {
    let rank = known::rank(x)?;
    let rows = match rank {
        2 => x.clone(),
        _ => ops::reshape(x, vec![1i64, -1])?,
    };
    let count = known::shape(&rows, "the derivative of `cov`")?[1] as i64;
    let apart = (&rows - ops::mean(&rows, 1, true)?)?;
    let found = (ops::matmul(&apart, &ops::transpose(&apart, 0, 1)?)?
        / (count - correction).max(0) as f64)?;
    match rank {
        2 if known::shape(&found, "")?[0] != 1 => Ok(found),
        _ => ops::reshape(&found, Vec::<i64>::new()),
    }
}

/// The root of sums of powers: of 0 without a slope.
fn rooted(sums: Tensor, norm: f64) -> Result<Tensor> {
    // The same numbers; a sum of 0 has no slope, whatever its root's.
    let size = ops::relu(&sums.abs()?)?;
    (stopped(&ops::sign(&sums)?)? * size)?.pow(1.0 / norm)
}

/// The loss of log-probabilities of classes.
fn nll(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    reduction: &str,
) -> Result<Tensor> {
    let dim = if known::rank(x)? == 1 { 0 } else { 1 };
    let counts = target.ne(ignored)?;
    let class = ops::r#where(&counts, target, 0)?;
    let picked = ops::squeeze(&ops::gather(x, dim, &ops::unsqueeze(&class, dim)?)?, dim)?;
    let weights = match weight {
        Some(weight) => {
            let flat = ops::index_select(weight, 0, &ops::reshape(&class, [-1])?)?;
            ops::reshape(&flat, known::sizes(&class)?)?
        }
        None => ops::ones_like(&picked, None)?,
    };
    let weights = ops::r#where(&counts, &weights, 0)?;
    let losses = super::minus(ops::r#where(&counts, &picked, 0)? * &weights);
    match reduction {
        "mean" => ops::sum(&losses?, Dims::All, false)? / ops::sum(&weights, Dims::All, false)?,
        other => reduced(losses?, other),
    }
}

fn cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    reduction: &str,
    smoothing: f64,
) -> Result<Tensor> {
    let rank = known::rank(x)?;
    let dim = if rank == 1 { 0 } else { 1 };
    let logs = ops::log_softmax(x, dim)?;
    let classes = count_of(&known::size(x, dim)?, x)?;
    let along = |weight: &Tensor| {
        let mut shape = vec![1i64; rank];
        shape[dim as usize] = -1;
        ops::reshape(weight, shape)
    };
    if known::dtype(target)?.is_floating_point() {
        // Shares of classes.
        let shares = match smoothing == 0.0 {
            true => target.clone(),
            false => ((target * (1.0 - smoothing))? + smoothing / classes)?,
        };
        let mut losses = (logs * shares)?;
        if let Some(weight) = weight {
            losses = (losses * along(weight)?)?;
        }
        let losses = (-ops::sum(&losses, dim, false)?)?;
        return reduced(losses, reduction);
    }
    let own = nll(&logs, target, weight, ignored, reduction)?;
    if smoothing == 0.0 {
        return Ok(own);
    }
    let counts = target.ne(ignored)?;
    let weighted = match weight {
        Some(weight) => (&logs * along(weight)?)?,
        None => logs.clone(),
    };
    let all = (-ops::sum(&weighted, dim, false)?)?;
    let all = ops::r#where(&counts, &all, 0)?;
    let all = match reduction {
        "mean" => {
            let ones = match weight {
                Some(weight) => {
                    let class = ops::reshape(&ops::r#where(&counts, target, 0)?, [-1])?;
                    ops::reshape(
                        &ops::index_select(weight, 0, &class)?,
                        known::sizes(target)?,
                    )?
                }
                None => ops::ones_like(&all, None)?,
            };
            let count = ops::sum(&ops::r#where(&counts, &ones, 0)?, Dims::All, false)?;
            (ops::sum(&all, Dims::All, false)? / count)?
        }
        other => reduced(all, other)?,
    };
    (own * (1.0 - smoothing))? + (all * (smoothing / classes))?
}

/// The elements of a rank, between two of a sorted row.
fn quantile(
    x: &Tensor,
    q: TensorOrNumber,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    skips_nan: bool,
) -> Result<Tensor> {
    let rank = known::rank(x)?;
    // The elements of a rank last.
    let rows = match dim {
        Some(dim) if rank > 0 => ops::movedim(x, dim, -1)?,
        _ => ops::reshape(x, [-1])?,
    };
    let count =
        known::shape(&rows, "the derivative of `quantile`")?[known::rank(&rows)? - 1] as i64;
    let (sorted, _) = ops::sort(&rows, -1, false)?;
    let (many, q) = match q {
        TensorOrNumber::Number(q) => (false, ops::full([1], q, Some(known::dtype(x)?))?),
        TensorOrNumber::Tensor(q) => (known::rank(&q)? == 1, ops::reshape(&q, [-1])?),
    };
    // How many count: NaN is sorted behind all.
    let nan = ops::isnan(&rows)?;
    let last = match skips_nan {
        true => {
            let numbers = ops::sum(&ops::logical_not(&nan)?, -1, true)?;
            ops::clamp(&(ops::type_as(&numbers, x)? - 1.0)?, 0.0, None)?
        }
        false => ops::full_like(&ops::narrow(&rows, -1, 0, 1)?, (count - 1) as f64, None)?,
    };
    let at = (last * q)?;
    let (low, high) = (ops::floor(&at)?, ops::ceil(&at)?);
    let pick = |at: &Tensor| ops::gather(&sorted, -1, &ops::to_dtype(&stopped(at)?, DType::I64)?);
    let mut found = match interpolation {
        "lower" => pick(&low)?,
        "higher" => pick(&high)?,
        "nearest" => pick(&ops::round(&at, 0)?)?,
        "midpoint" => ((pick(&low)? + pick(&high)?)? / 2.0)?,
        _ => {
            let (a, b) = (pick(&low)?, pick(&high)?);
            (&a + ((b - &a)? * (at - stopped(&low)?)?)?)?
        }
    };
    if !skips_nan {
        let is_nan = ops::any(&nan, -1, true)?;
        found = ops::r#where(&is_nan, f64::NAN, found)?;
    }
    // Several in front, one without a dim of its own.
    let found = ops::movedim(&found, -1, 0)?;
    let found = match many {
        true => found,
        false => ops::select(&found, 0, 0)?,
    };
    if !keepdim || rank == 0 {
        return Ok(found);
    }
    match dim {
        Some(dim) => ops::unsqueeze(&found, known::place(dim, rank)? as i64 + i64::from(many)),
        None => {
            let mut shape = if many {
                known::sizes(&found)?
            } else {
                Vec::new()
            };
            shape.extend(vec![Int::from(1); rank]);
            ops::reshape(&found, shape)
        }
    }
}

/// A unit of a network over a sequence.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// A network over a sequence, step by step.
fn network(call: &DecomposedCall<'_>, unit: Unit) -> Result<Value> {
    let x: Tensor = call.arg("x")?;
    let params: Vec<Tensor> = call.arg("params")?;
    let (biased, layers): (bool, usize) = (call.arg("has_biases")?, call.arg("num_layers")?);
    let (both_ways, batch_first): (bool, bool) =
        (call.arg("bidirectional")?, call.arg("batch_first")?);
    let (p, train): (f64, bool) = (call.arg("dropout_p")?, call.arg("train")?);
    if train && p > 0.0 && layers > 1 {
        return Err(Error::msg(
            "the derivative of a recurrent network with dropout between its layers: put dropout between networks of one layer",
        ));
    }
    let is_single = known::rank(&x)? == 2;
    let mut x = if is_single { ops::unsqueeze(&x, 1)? } else { x };
    if batch_first && !is_single {
        x = ops::transpose(&x, 0, 1)?;
    }
    let length = known::shape(&x, "the derivative of a recurrent network")?[0];
    let batch = known::size(&x, 1)?;
    let ways = if both_ways { 2 } else { 1 };
    let given = |name: &str| -> Result<Option<Tensor>> {
        let state: Option<Tensor> = call.arg(name)?;
        match state {
            Some(state) if is_single => ops::unsqueeze(&state, 1).map(Some),
            state => Ok(state),
        }
    };
    let h_0 = given("h_0")?;
    let c_0 = if unit == Unit::Lstm {
        given("c_0")?
    } else {
        None
    };
    let mut params = params.into_iter();
    let mut next = || {
        params
            .next()
            .ok_or_else(|| Error::msg("a parameter is missing"))
    };
    let (mut last_h, mut last_c) = (Vec::new(), Vec::new());
    for layer in 0..layers {
        let mut outputs = Vec::with_capacity(ways);
        for way in 0..ways {
            let (w_ih, w_hh) = (next()?, next()?);
            let (b_ih, b_hh) = match biased {
                true => (Some(next()?), Some(next()?)),
                false => (None, None),
            };
            let at = (layer * ways + way) as i64;
            let start = |given: &Option<Tensor>| match given {
                Some(all) => ops::select(all, 0, at),
                None => {
                    let sizes = vec![batch, known::size(&w_hh, 1)?];
                    ops::zeros(sizes, Some(known::dtype(&x)?))
                }
            };
            let (mut h, mut c) = (
                start(&h_0)?,
                if unit == Unit::Lstm {
                    Some(start(&c_0)?)
                } else {
                    None
                },
            );
            let mut steps = Vec::with_capacity(length);
            for step in 0..length {
                let step = if way == 1 { length - 1 - step } else { step };
                let input = ops::select(&x, 0, step as i64)?;
                let (w_ih, w_hh, b_ih, b_hh) = (&w_ih, &w_hh, b_ih.as_ref(), b_hh.as_ref());
                match unit {
                    Unit::Lstm => {
                        let (h_new, c_new) =
                            ops::lstm_cell(&input, Some(&h), c.as_ref(), w_ih, w_hh, b_ih, b_hh)?;
                        (h, c) = (h_new, Some(c_new));
                    }
                    Unit::Gru => h = ops::gru_cell(&input, Some(&h), w_ih, w_hh, b_ih, b_hh)?,
                    Unit::Tanh => h = ops::rnn_tanh_cell(&input, Some(&h), w_ih, w_hh, b_ih, b_hh)?,
                    Unit::Relu => h = ops::rnn_relu_cell(&input, Some(&h), w_ih, w_hh, b_ih, b_hh)?,
                }
                steps.push(h.clone());
            }
            if way == 1 {
                steps.reverse();
            }
            outputs.push(ops::stack(&steps, 0)?);
            last_h.push(h);
            last_c.extend(c);
        }
        x = if outputs.len() == 1 {
            outputs.swap_remove(0)
        } else {
            ops::cat(&outputs, -1)?
        };
    }
    if batch_first && !is_single {
        x = ops::transpose(&x, 0, 1)?;
    }
    let single = |x: Tensor| {
        if is_single {
            ops::squeeze(&x, 1)
        } else {
            Ok(x)
        }
    };
    let mut results = vec![
        single(x)?.into_value(),
        single(ops::stack(&last_h, 0)?)?.into_value(),
    ];
    if unit == Unit::Lstm {
        results.push(single(ops::stack(&last_c, 0)?)?.into_value());
    }
    Ok(Value::Tuple(results.into()))
}
