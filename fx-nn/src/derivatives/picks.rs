//! Derivatives of functions that pick and place elements by indices and masks.

use fx_core::{Error, Result};

use super::derivatives;
use crate::func::{Pullback, known};
use crate::ops;
use crate::tensor::{Number, Tensor};

derivatives! {
    ops::gather => |call| {
        let (x, dim, index): (Tensor, i64, Tensor) = (call.arg("x")?, call.arg("dim")?, call.arg("index")?);
        call.give("x", |call| match known::rank(&x)? {
            0 => call.grad(),
            _ => ops::scatter_add(&ops::zeros_like(&x, None)?, dim, &index, &call.grad()?),
        })
    };
    ops::index_select => |call| {
        let (x, dim, index): (Tensor, i64, Tensor) = (call.arg("x")?, call.arg("dim")?, call.arg("index")?);
        call.give("x", |call| match known::rank(&x)? {
            0 => ops::reshape(&call.grad()?, [0i64; 0].to_vec()),
            _ => ops::index_add(&ops::zeros_like(&x, None)?, dim, &index, &call.grad()?, 1),
        })
    };
    ops::embedding => |call| {
        let (x, weight): (Tensor, Tensor) = (call.arg("x")?, call.arg("weight")?);
        let padding: Option<usize> = call.arg("padding_idx")?;
        call.give("weight", |call| {
            let mut grad = call.grad()?;
            if let Some(padding) = padding {
                let is_padding = ops::unsqueeze(&x.eq(padding as i64)?, -1)?;
                grad = ops::r#where(&is_padding, 0, grad)?;
            }
            let (width, index) = (known::size(&weight, 1)?, ops::reshape(&x, [-1])?);
            let rows = ops::reshape(&grad, vec![known::size(&index, 0)?, width])?;
            ops::index_add(&ops::zeros_like(&weight, None)?, 0, &index, &rows, 1)
        })
    };
    ops::take => |call| {
        let (x, index): (Tensor, Tensor) = (call.arg("x")?, call.arg("index")?);
        call.give("x", |call| {
            let flat = ops::reshape(&ops::zeros_like(&x, None)?, [-1])?;
            let count = known::shape(&flat, "the derivative of `take`")?[0] as i64;
            let index = ops::reshape(&index, [-1])?;
            let index = ops::r#where(&index.lt(0)?, &(&index + count)?, &index)?;
            let sums = ops::scatter_add(&flat, 0, &index, &ops::reshape(&call.grad()?, [-1])?)?;
            ops::reshape(&sums, known::sizes(&x)?)
        })
    };
    ops::take_along_dim => |call| {
        let (x, index, dim): (Tensor, Tensor, Option<i64>) = (call.arg("x")?, call.arg("indices")?, call.arg("dim")?);
        call.give("x", |call| {
            let Some(dim) = dim else {
                let flat = ops::reshape(&ops::zeros_like(&x, None)?, [-1])?;
                let sums = ops::scatter_add(&flat, 0, &ops::reshape(&index, [-1])?, &ops::reshape(&call.grad()?, [-1])?)?;
                return ops::reshape(&sums, known::sizes(&x)?);
            };
            // Sizes of 1 are broadcast, but along the dim.
            let grad = call.grad()?;
            let mut sizes = known::sizes(&grad)?;
            let at = known::place(dim, sizes.len())?;
            let of_index = ops::expand(&index, sizes.clone())?;
            sizes[at] = known::size(&x, dim)?;
            let zeros = ops::expand(&ops::zeros_like(&x, None)?, sizes)?;
            ops::scatter_add(&zeros, dim, &of_index, &grad)
        })
    };
    ops::scatter => |call| {
        let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
        let src: Tensor = call.arg("src")?;
        call.give("x", |call| ops::scatter_value(&call.grad()?, dim, &index, 0))?;
        call.give("src", |call| of_source(&ops::gather(&call.grad()?, dim, &index)?, &src))
    };
    ops::scatter_value => |call| {
        let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
        call.give("x", |call| ops::scatter_value(&call.grad()?, dim, &index, 0))
    };
    ops::scatter_add => |call| {
        let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
        let src: Tensor = call.arg("src")?;
        call.give("x", Pullback::grad)?;
        call.give("src", |call| of_source(&ops::gather(&call.grad()?, dim, &index)?, &src))
    };
    ops::scatter_reduce => |call| scatter_reduce(call);
    ops::index_add => |call| {
        let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
        let (alpha, source): (Number, Tensor) = (call.arg("alpha")?, call.arg("source")?);
        call.give("x", Pullback::grad)?;
        call.give("source", |call| {
            let grad = (ops::index_select(&call.grad()?, dim, &index)? * alpha.as_f64())?;
            ops::reshape(&grad, known::sizes(&source)?)
        })
    };
    ops::index_copy => |call| {
        let (dim, index, source): (i64, Tensor, Tensor) = (call.arg("dim")?, call.arg("index")?, call.arg("source")?);
        call.give("x", |call| ops::index_fill(&call.grad()?, dim, &index, 0))?;
        call.give("source", |call| ops::reshape(&ops::index_select(&call.grad()?, dim, &index)?, known::sizes(&source)?))
    };
    ops::index_fill => |call| {
        let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
        call.give("x", |call| ops::index_fill(&call.grad()?, dim, &index, 0))
    };
    ops::index_put => |call| {
        let indices: Vec<Tensor> = known::items(&call.arg("indices")?)?;
        let (values, adds): (Tensor, bool) = (call.arg("values")?, call.arg("accumulate")?);
        call.give("x", |call| match adds {
            true => call.grad(),
            false => ops::index_put(&call.grad()?, &indices, &ops::zeros_like(&values, None)?, false),
        })?;
        call.give("values", |call| indexed(&call.grad()?, &indices))
    };
    ops::masked_select => |call| {
        let (x, mask): (Tensor, Tensor) = (call.arg("x")?, call.arg("mask")?);
        call.give("x", |call| {
            // Both are broadcast, and so is what the gradient goes to.
            let both = ops::broadcast_tensors(&[x.clone(), ops::type_as(&mask, &x)?])?;
            let [x, _] = both.unpack()?;
            ops::masked_scatter(&ops::zeros_like(&x, None)?, &mask, &call.grad()?)
        })
    };
    ops::masked_scatter => |call| {
        let (mask, source): (Tensor, Tensor) = (call.arg("mask")?, call.arg("source")?);
        call.give("x", |call| ops::r#where(&mask, 0, call.grad()?))?;
        call.give("source", |call| {
            // The n-th true place took the n-th element.
            let grad = call.grad()?;
            let mask = ops::expand(&mask, known::sizes(&grad)?)?;
            let flat = ops::reshape(&ops::to_dtype(&mask, fx_core::value::DType::I64)?, [-1])?;
            let to = ops::clamp(&(ops::cumsum(&flat, 0)? - 1)?, 0, None)?;
            let grad = ops::reshape(&ops::r#where(&mask, grad, 0)?, [-1])?;
            let zeros = ops::reshape(&ops::zeros_like(&source, None)?, [-1])?;
            ops::reshape(&ops::scatter_add(&zeros, 0, &to, &grad)?, known::sizes(&source)?)
        })
    };
    ops::select_scatter => |call| {
        let (dim, index): (i64, fx_core::value::Int) = (call.arg("dim")?, call.arg("index")?);
        let src: Tensor = call.arg("src")?;
        call.give("x", |call| ops::select_scatter(&call.grad()?, &ops::zeros_like(&src, None)?, dim, index))?;
        call.give("src", |call| ops::select(&call.grad()?, dim, index))
    };
    ops::slice_scatter => |call| {
        let src: Tensor = call.arg("src")?;
        call.give("x", |call| {
            let zeros = ops::zeros_like(&src, None)?;
            call.with(&[("x", call.grad()?.into()), ("src", zeros.into())])
        })?;
        call.give("src", |call| part(call, &src))
    };
    ops::diagonal_scatter => |call| {
        let src: Tensor = call.arg("src")?;
        let (offset, dim1, dim2): (i64, i64, i64) = (call.arg("offset")?, call.arg("dim1")?, call.arg("dim2")?);
        call.give("x", |call| ops::diagonal_scatter(&call.grad()?, &ops::zeros_like(&src, None)?, offset, dim1, dim2))?;
        call.give("src", |call| ops::diagonal(&call.grad()?, offset, dim1, dim2))
    };
    ops::unique => |call| Err(Error::msg(format_args!("`{}` has no derivative", call.function().path())));
    ops::unique_consecutive => |call| Err(Error::msg(format_args!("`{}` has no derivative", call.function().path())));
}

/// What is picked for the indices is of the first elements of the source, which may have more.
fn of_source(picked: &Tensor, source: &Tensor) -> Result<Tensor> {
    let (own, whole) = (known::dims(picked)?, known::dims(source)?);
    if own == whole {
        return Ok(picked.clone());
    }
    let sizes = known::sizes(source)?.into_iter().zip(known::sizes(picked)?);
    let mut pads = Vec::new();
    for (whole, own) in sizes.rev() {
        pads.extend([fx_core::value::Int::from(0), (whole - own)?]);
    }
    ops::pad(picked, pads, "constant", None)
}

/// The part of the gradient that a slice took.
fn part(call: &Pullback<'_>, src: &Tensor) -> Result<Tensor> {
    let grad = call.grad()?;
    let (dim, step): (i64, usize) = (call.arg("dim")?, call.arg("step")?);
    let (start, end): (Option<i64>, Option<i64>) = (call.arg("start")?, call.arg("end")?);
    let whole = known::shape(&grad, "the derivative of `slice_scatter`")?;
    let size = whole[known::place(dim, whole.len())?] as i64;
    let at = |n: i64| (if n < 0 { n + size } else { n }).clamp(0, size);
    let (start, end) = (at(start.unwrap_or(0)), at(end.unwrap_or(size)));
    let index = ops::arange(start, end.max(start), step as i64, None)?;
    ops::reshape(&ops::index_select(&grad, dim, &index)?, known::sizes(src)?)
}

/// The elements at indices of the first dims.
fn indexed(x: &Tensor, indices: &[Tensor]) -> Result<Tensor> {
    let shape = known::shape(x, "the derivative of `index_put`")?;
    let picked = indices.len();
    let mut place: Option<Tensor> = None;
    for (index, size) in indices.iter().zip(&shape) {
        if known::dtype(index)? == fx_core::value::DType::Bool {
            return Err(Error::msg(
                "the derivative of `index_put` by a mask: use `masked_scatter` or `where`",
            ));
        }
        let size = *size as i64;
        let index = ops::r#where(&index.lt(0)?, &(index + size)?, index)?;
        place = Some(match place {
            None => index,
            Some(place) => ((place * size)? + index)?,
        });
    }
    let place = place.ok_or_else(|| Error::msg("there are no indices"))?;
    let mut flat: Vec<i64> = vec![shape[..picked].iter().product::<usize>() as i64];
    flat.extend(shape[picked..].iter().map(|size| *size as i64));
    let rows = ops::index_select(&ops::reshape(x, flat)?, 0, &ops::reshape(&place, [-1])?)?;
    let mut sizes = known::sizes(&place)?;
    sizes.extend(
        shape[picked..]
            .iter()
            .map(|size| fx_core::value::Int::from(*size as i64)),
    );
    ops::reshape(&rows, sizes)
}

/// Sums, means, products and extremes of what is scattered.
fn scatter_reduce(call: &mut Pullback<'_>) -> Result<()> {
    let (dim, index): (i64, Tensor) = (call.arg("dim")?, call.arg("index")?);
    let (x, src): (Tensor, Tensor) = (call.arg("x")?, call.arg("src")?);
    let (reduce, includes): (String, bool) = (call.arg("reduce")?, call.arg("include_self")?);
    let picked = |y: &Tensor| of_source(&ops::gather(y, dim, &index)?, &src);
    // What nothing is scattered to keeps its element.
    let own = |grad: Tensor| match includes {
        true => Ok(grad),
        false => ops::scatter_value(&grad, dim, &index, 0),
    };
    let count = |like: &Tensor| {
        let ones = ops::ones_like(like, None)?;
        let start = own(ones)?;
        ops::scatter_add(&start, dim, &index, &ops::ones_like(&src, None)?)
    };
    match reduce.as_str() {
        "sum" => {
            call.give("x", |call| own(call.grad()?))?;
            call.give("src", |call| picked(&call.grad()?))
        }
        "mean" => {
            let share = |call: &Pullback<'_>| {
                let count = ops::maximum(&count(&x)?, &ops::ones_like(&x, None)?)?;
                call.grad()? / count
            };
            call.give("x", |call| own(share(call)?))?;
            call.give("src", |call| picked(&share(call)?))
        }
        "amax" | "amin" => {
            let share = |call: &Pullback<'_>| {
                let y: Tensor = call.result()?;
                let of_x = own(ops::type_as(&x.eq(&y)?, &x)?)?;
                let of_src = ops::type_as(&src.eq(&picked(&y)?)?, &src)?;
                let count = ops::scatter_add(&of_x, dim, &index, &of_src)?;
                // What nothing reached is its own.
                let count = ops::maximum(&count, &ops::ones_like(&count, None)?)?;
                Ok::<_, Error>(((call.grad()? / count)?, of_x, of_src))
            };
            call.give("x", |call| {
                let (share, of_x, _) = share(call)?;
                match includes {
                    true => share * of_x,
                    false => own(call.grad()?),
                }
            })?;
            call.give("src", |call| {
                let (share, _, of_src) = share(call)?;
                picked(&share)? * of_src
            })
        }
        _ => {
            // As PyTorch: the product divided by the element, and where one is 0 the product of the others.
            let y = |call: &Pullback<'_>| -> Result<(Tensor, Tensor)> {
                let is_zero = src.eq(0)?;
                let zeros = ops::type_as(&is_zero, &src)?;
                let filled = ops::r#where(&is_zero, 1, &src)?;
                let rest = call.with::<Tensor>(&[("src", filled.clone().into())])?;
                let count = ops::scatter_add(&ops::zeros_like(&x, None)?, dim, &index, &zeros)?;
                let single = ops::r#where(&picked(&count)?.eq(1)?, &picked(&rest)?, 0)?;
                let others =
                    ops::r#where(&is_zero, &single, &(picked(&call.result()?)? / filled)?)?;
                Ok((others, picked(&call.grad()?)?))
            };
            call.give("x", |call| {
                let ones = ops::ones_like(&x, None)?;
                let rest: Tensor = call.with(&[("x", ones.into())])?;
                own((call.grad()? * rest)?)
            })?;
            call.give("src", |call| {
                let (others, grad) = y(call)?;
                grad * others
            })
        }
    }
}
