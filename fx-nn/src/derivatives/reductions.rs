//! Derivatives of reductions: sums, products, and elements that are chosen.

use fx_core::trace::FromValue;
use fx_core::value::Int;
use fx_core::{Result, function};

use super::derivatives;
use crate::func::{Pullback, known};
use crate::ops;
use crate::tensor::{Dims, Tensor};

derivatives! {
    ops::sum => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| spread(&kept(call, call.grad()?, &x)?, &x))
    };
    ops::mean => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| spread(&kept(call, (call.grad()? / counted(call, &x)?)?, &x)?, &x))
    };
    ops::amax => |call| extreme(call);
    ops::amin => |call| extreme(call);
    ops::logsumexp => |call| {
        let x: Tensor = call.arg("x")?;
        call.give("x", |call| {
            let (grad, y) = (kept(call, call.grad()?, &x)?, kept(call, call.result()?, &x)?);
            // Of infinities alone no element counts.
            let y = ops::r#where(&ops::isfinite(&y)?, &y, 0)?;
            grad * ops::exp(&(&x - y)?)?
        })
    };
    ops::vector_norm => |call| norm(call, "ord");
    ops::norm => |call| norm(call, "p");
    ops::softmax => |call| {
        let dim: i64 = call.arg("dim")?;
        call.give("x", |call| {
            let (grad, y): (Tensor, Tensor) = (call.grad()?, call.result()?);
            let sum = ops::sum(&(&grad * &y)?, dim, true)?;
            (grad - sum)? * y
        })
    };
    ops::log_softmax => |call| {
        let dim: i64 = call.arg("dim")?;
        call.give("x", |call| {
            let (grad, y): (Tensor, Tensor) = (call.grad()?, call.result()?);
            let all = |grad: &Tensor| ops::exp(&y)? * ops::sum(grad, dim, true)?;
            match added_to_zeros(&grad, dim)? {
                // Of a few elements, as that of a loss by classes is: no array of zeros besides.
                Some([index, src]) => ops::scatter_add(&super::minus(all(&src))?, dim, &index, &src),
                None => &grad - all(&grad)?,
            }
        })
    };
    ops::max => |call| chosen(call);
    ops::min => |call| chosen(call);
    ops::median => |call| chosen(call);
    ops::nanmedian => |call| chosen(call);
    ops::mode => |call| chosen(call);
    ops::kthvalue => |call| chosen(call);
    ops::topk => |call| sorted(call);
    ops::sort => |call| sorted(call);
    ops::prod => |call| {
        let (x, dim): (Tensor, Option<i64>) = (call.arg("x")?, call.arg("dim")?);
        call.give("x", |call| {
            let grad = call.grad()?;
            let Some(dim) = dim else {
                let flat = ops::reshape(&x, [-1])?;
                return ops::reshape(&(grad * others(&flat, 0)?)?, known::sizes(&x)?);
            };
            let is_kept: bool = call.arg("keepdim")?;
            let grad = if is_kept || known::rank(&x)? == 0 { grad } else { ops::unsqueeze(&grad, dim)? };
            if known::rank(&x)? == 0 {
                return Ok(grad);
            }
            grad * others(&x, dim)?
        })
    };
}

/// Which dims are reduced.
fn dims(call: &Pullback<'_>, x: &Tensor) -> Result<Vec<i64>> {
    let given = match call.arg("dim")? {
        Dims::Many(dims) if dims.is_empty() => Dims::All,
        given => given,
    };
    let places = known::places(given, known::rank(x)?)?;
    Ok(places.into_iter().map(|at| at as i64).collect())
}

/// What belongs to the result, with the reduced dims as dims of size 1.
fn kept(call: &Pullback<'_>, y: Tensor, x: &Tensor) -> Result<Tensor> {
    let rank = known::rank(x)?;
    if rank == 0 || call.arg("keepdim")? {
        return Ok(y);
    }
    let dims = dims(call, x)?;
    if dims.len() == rank {
        return ops::reshape(&y, vec![1i64; rank]);
    }
    let mut sizes = known::sizes(x)?;
    for dim in dims {
        sizes[dim as usize] = Int::from(1);
    }
    ops::reshape(&y, sizes)
}

/// A gradient for each element of `x` that it is of.
fn spread(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    ops::expand(grad, known::sizes(x)?)
}

/// How many elements become one, as a number.
fn counted(call: &Pullback<'_>, x: &Tensor) -> Result<Int> {
    let sizes = known::sizes(x)?;
    let mut count = Int::from(1);
    for dim in dims(call, x)? {
        if let Some(size) = sizes.get(dim as usize) {
            count = (count * *size)?;
        }
    }
    Ok(count)
}

/// The largest or smallest along dims: equal ones share the gradient.
fn extreme(call: &mut Pullback<'_>) -> Result<()> {
    let x: Tensor = call.arg("x")?;
    call.give("x", |call| {
        let (grad, y) = (
            kept(call, call.grad()?, &x)?,
            kept(call, call.result()?, &x)?,
        );
        let is_it = ops::type_as(&ops::logical_or(&x.eq(&y)?, &ops::isnan(&x)?)?, &grad)?;
        let all = known::rank(&x)?;
        let count = match all {
            0 => is_it.clone(),
            _ => ops::sum(&is_it, dims(call, &x)?, true)?,
        };
        (grad / count)? * is_it
    })
}

/// The indices along a dim and the elements that were added to zeros there, if that is what a gradient is.
fn added_to_zeros(grad: &Tensor, dim: i64) -> Result<Option<[Tensor; 2]>> {
    let scatter_add = function!(ops::scatter_add);
    let Some((_, args)) = known::call_of(grad)?.filter(|(of, _)| *of == scatter_add) else {
        return Ok(None);
    };
    let [zeros, of_dim, index, src] = &args[..] else {
        return Ok(None);
    };
    let zeros = Tensor::from_value(zeros.clone())?;
    let is_zero = known::call_of(&zeros)?.is_some_and(|(of, _)| of == function!(ops::zeros_like));
    let (shape, index) = (known::dims(&zeros)?, Tensor::from_value(index.clone())?);
    let (at, mut places) = (known::place(dim, shape.len())?, known::dims(&index)?);
    // Elsewhere the indices may be of fewer places than there are.
    let is_along = known::place(i64::from_value(of_dim.clone())?, shape.len())? == at;
    let is_whole = places.len() == shape.len() && {
        places[at] = shape[at].clone();
        places == shape
    };
    match is_zero && is_along && is_whole {
        true => Ok(Some([index, Tensor::from_value(src.clone())?])),
        false => Ok(None),
    }
}

/// The gradient of elements goes to where they were.
fn placed(x: &Tensor, dim: i64, index: &Tensor, grad: &Tensor) -> Result<Tensor> {
    ops::scatter_add(&ops::zeros_like(x, None)?, dim, index, grad)
}

/// One element along a dim, with its index.
fn chosen(call: &mut Pullback<'_>) -> Result<()> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    call.give("x", |call| {
        let grads = call.grads()?;
        let items = call.items()?;
        if known::rank(&x)? == 0 {
            return Ok(grads[0].clone());
        }
        let is_kept: bool = call.arg("keepdim")?;
        let keep = |y: &Tensor| match is_kept {
            true => Ok(y.clone()),
            false => ops::unsqueeze(y, dim),
        };
        placed(&x, dim, &keep(&items[1])?, &keep(&grads[0])?)
    })
}

/// Several elements along a dim, with their indices.
fn sorted(call: &mut Pullback<'_>) -> Result<()> {
    let (x, dim): (Tensor, i64) = (call.arg("x")?, call.arg("dim")?);
    call.give("x", |call| {
        let (grads, items) = (call.grads()?, call.items()?);
        if known::rank(&x)? == 0 {
            return ops::reshape(&grads[0], known::sizes(&x)?);
        }
        placed(&x, dim, &items[1], &grads[0])
    })
}

/// For each element along a dim the product of the others, also where elements are 0.
fn others(x: &Tensor, dim: i64) -> Result<Tensor> {
    let length = known::size(x, dim)?;
    let ones = ops::ones_like(&ops::narrow(x, dim, 0, 1)?, None)?;
    let before = |x: &Tensor| {
        let but_last = ops::narrow(x, dim, 0, (length - 1)?)?;
        ops::cumprod(&ops::cat(&[ones.clone(), but_last], dim)?, dim)
    };
    before(x)? * ops::flip(&before(&ops::flip(x, dim)?)?, dim)?
}

/// A norm of vectors: 0 has no slope.
fn norm(call: &mut Pullback<'_>, order: &str) -> Result<()> {
    let (x, p): (Tensor, f64) = (call.arg("x")?, call.arg(order)?);
    call.give("x", |call| {
        let (grad, y) = (
            kept(call, call.grad()?, &x)?,
            kept(call, call.result()?, &x)?,
        );
        let but_zero = |y: &Tensor, found: Tensor| ops::r#where(&y.eq(0)?, 0, found);
        let sign = ops::sign(&x)?;
        if p == 0.0 {
            return ops::zeros_like(&x, None);
        }
        if p.is_infinite() {
            let size = x.abs()?;
            let is_it = ops::type_as(&ops::logical_or(&size.eq(&y)?, &ops::isnan(&x)?)?, &grad)?;
            let count = match known::rank(&x)? {
                0 => is_it.clone(),
                _ => ops::sum(&is_it, dims(call, &x)?, true)?,
            };
            return ((grad / count)? * is_it)? * sign;
        }
        if p == 1.0 {
            return grad * sign;
        }
        if p == 2.0 {
            return but_zero(&y, (grad * (&x / &y)?)?);
        }
        let size = x.abs()?;
        if p < 1.0 {
            let scaled = but_zero(&x, (sign * size.pow(p - 1.0)?)?)?;
            return (scaled * grad)? * y.pow(1.0 - p)?;
        }
        let scaled = match p < 2.0 {
            true => (sign * size.pow(p - 1.0)?)?,
            false => (&x * size.pow(p - 2.0)?)?,
        };
        scaled * but_zero(&y, (grad / y.pow(p - 1.0)?)?)?
    })
}
