//! Operators of linear algebra: systems, decompositions, and what is made of them.
//!
//! Invariant: of an operator that gives its intermediate results too, those that fx does not compute are `None`.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, same, same_function};
use crate::call::Call;

/// The names of matrices.
const NAMES: [(&str, &str); 4] = [("A", "a"), ("self", "a"), ("B", "b"), ("UPLO", "uplo")];

fn of_a(function: fx_nn::ir::Function, call: &Call<'_>) -> Result<Value> {
    let is_known = |(name, _): &&(&str, Value)| {
        !["driver", "check_errors", "compute_uv", "compute_v"].contains(name)
    };
    let args = call.args.iter().filter(is_known).cloned().collect();
    same_function(function, &NAMES, &call.with_args(args))
}

/// The first results of an operator, with as many others that are not computed.
fn with_others(value: Value, own: i64, others: usize) -> Result<Value> {
    let mut all = match own {
        1 => vec![value],
        own => {
            let part = |at: i64| operator::getitem.call_as((value.clone(), at));
            (0..own).map(part).collect::<Result<Vec<Value>>>()?
        }
    };
    all.extend(std::iter::repeat_n(Value::None, others));
    Ok(Value::Tuple(all.into()))
}

/// The determinant, of a matrix that is named `x` in fx.
fn det(call: &Call<'_>) -> Result<Value> {
    Ok(Value::object(ops::linalg::det(&call.own()?)?))
}

fn logdet(call: &Call<'_>) -> Result<Value> {
    Ok(Value::object(ops::log(&ops::linalg::det(&call.own()?)?)?))
}

fn slogdet(call: &Call<'_>) -> Result<Value> {
    function!(ops::linalg::slogdet).call_as((call.own()?,))
}

/// Singular values, with vectors where they are asked for.
fn svd(call: &Call<'_>) -> Result<Value> {
    if call.or("compute_uv", true)? {
        return of_a(function!(ops::linalg::svd), call);
    }
    let values = ops::linalg::svdvals(&call.own()?)?;
    Ok(Value::Tuple(
        vec![Value::None, Value::object(values), Value::None].into(),
    ))
}

fn eigh(call: &Call<'_>) -> Result<Value> {
    match call.or("compute_v", true)? {
        true => of_a(function!(ops::linalg::eigh), call),
        false => with_others(of_a(function!(ops::linalg::eigvalsh), call)?, 1, 1),
    }
}

/// The vector product along the last dim, unless another one is named.
fn cross(call: &Call<'_>) -> Result<Value> {
    let (other, dim) = (call.of::<Tensor>("other")?, call.or::<i64>("dim", -1)?);
    Ok(Value::object(ops::cross(&call.own()?, &other, dim)?))
}

/// Both triangles in one matrix, with pivots; a singular one is refused.
fn lu_factor(call: &Call<'_>) -> Result<Value> {
    of_a(function!(ops::linalg::lu_factor), call)
}

/// The permutation and the triangles; of those that are not asked for there is none.
fn lu_unpack(call: &Call<'_>) -> Result<Value> {
    let all = function!(ops::linalg::lu_unpack).call_as((
        call.of::<Tensor>("LU_data")?,
        call.of::<Tensor>("LU_pivots")?,
    ))?;
    let data = call.or("unpack_data", true)?;
    let asked = [call.or("unpack_pivots", true)?, data, data];
    let part = |(at, asked)| match asked {
        true => operator::getitem.call_as((Value::clone(&all), at)),
        false => Ok(Value::None),
    };
    let parts = (0i64..).zip(asked).map(part);
    Ok(Value::Tuple(parts.collect::<Result<Vec<Value>>>()?.into()))
}

/// A rank by tolerances that are numbers.
fn matrix_rank(call: &Call<'_>) -> Result<Value> {
    of_a(function!(ops::linalg::matrix_rank), call)
}

/// A condition number; without an order, that of 2.
fn cond(call: &Call<'_>) -> Result<Value> {
    let args =
        (call.args.iter()).filter(|(name, value)| *name != "p" || !matches!(value, Value::None));
    let args = args.cloned().collect();
    same_function(
        function!(ops::linalg::cond),
        &[("self", "a")],
        &call.with_args(args),
    )
}

/// The diagonal of the last two dims, unless others are named.
fn diagonal(call: &Call<'_>) -> Result<Value> {
    let at = |name: &str, otherwise: i64| call.or::<i64>(name, otherwise);
    let (offset, dim1, dim2) = (at("offset", 0)?, at("dim1", -2)?, at("dim2", -1)?);
    Ok(Value::object(ops::diagonal(
        &call.own()?,
        offset,
        dim1,
        dim2,
    )?))
}

fn tensordot(call: &Call<'_>) -> Result<Value> {
    function!(ops::tensordot_dims).call_as((
        call.own()?,
        call.value("other")?.clone(),
        call.value("dims_self")?.clone(),
        call.value("dims_other")?.clone(),
    ))
}

/// The product of three tensors, each with dims of one that are put in, summed along some dims.
fn trilinear(call: &Call<'_>) -> Result<Value> {
    let expanded = |tensor: &str, dims: &str| -> Result<Tensor> {
        let mut dims = call.of::<Vec<i64>>(dims)?.into_iter();
        dims.try_fold(call.of(tensor)?, |x, dim| ops::unsqueeze(&x, dim))
    };
    let both = (expanded("i1", "expand1")? * expanded("i2", "expand2")?)?;
    let product = (both * expanded("i3", "expand3")?)?;
    match call.of::<Vec<i64>>("sumdim")? {
        dims if dims.is_empty() => Ok(Value::object(product)),
        dims => Ok(Value::object(product.sum(dims)?)),
    }
}

/// The norm of a difference.
fn dist(call: &Call<'_>) -> Result<Value> {
    let difference = (call.own()? - call.of::<Tensor>("other")?)?;
    function!(ops::vector_norm).call_as((difference, call.or::<f64>("p", 2.0)?))
}

/// The area under values that are as far apart as `dx`.
fn trapezoid(call: &Call<'_>) -> Result<Value> {
    let (y, dim) = (call.own()?, call.or::<i64>("dim", -1)?);
    if call.get("x").is_some() {
        return Err(Error::msg(
            "places that are not as far apart: multiply by `torch.diff` of them",
        ));
    }
    let ends = (ops::select(&y, dim, 0)? + ops::select(&y, dim, -1)?)?;
    let sum = (y.sum(dim)? - (ends * 0.5)?)?;
    Ok(Value::object((sum * call.or::<f64>("dx", 1.0)?)?))
}

/// An operator with an effect, behind the token that orders it. A check of a decomposition is made where it is computed.
fn with_effects(call: &Call<'_>) -> Result<Value> {
    match call.at(1)? {
        Value::Str(name) if name.contains("aten._linalg_check_errors") => {
            Ok(Value::Tuple(vec![Value::None, Value::None].into()))
        }
        other => Err(Error::msg(format_args!(
            "an effect of {}",
            other.describe()
        ))),
    }
}

pub(crate) const RULES: &[Entry] = by! {
    "higher_order.with_effects" => with_effects,
    "aten.dist" => dist,
    "aten.linalg_cholesky" => |call| of_a(function!(ops::linalg::cholesky), call),
    "aten.linalg_cholesky_ex" => |call| with_others(of_a(function!(ops::linalg::cholesky), call)?, 1, 1),
    "aten.linalg_cross" => cross,
    "aten.linalg_diagonal" => diagonal,
    "aten.linalg_eigh" => eigh,
    "aten.linalg_eigvalsh" => |call| of_a(function!(ops::linalg::eigvalsh), call),
    "aten.linalg_inv_ex" => |call| with_others(of_a(function!(ops::linalg::inv), call)?, 1, 1),
    "aten.linalg_qr" => |call| of_a(function!(ops::linalg::qr), call),
    "aten.linalg_slogdet" => slogdet,
    "aten.linalg_solve" => |call| of_a(function!(ops::linalg::solve), call),
    "aten.linalg_solve_ex" => |call| with_others(of_a(function!(ops::linalg::solve), call)?, 1, 1),
    "aten.linalg_svd" => svd,
    "aten.linalg_svdvals" => |call| of_a(function!(ops::linalg::svdvals), call),
    "aten.linalg_cond" => cond,
    "aten.linalg_lu" => |call| of_a(function!(ops::linalg::lu), call),
    "aten.linalg_lu_factor" => lu_factor,
    "aten.linalg_lu_factor_ex" => |call| with_others(lu_factor(call)?, 2, 1),
    "aten.linalg_matrix_rank" => matrix_rank,
    "aten.lu_unpack" => lu_unpack,
    "aten.logdet" => logdet,
    "aten.slogdet" => slogdet,
    "aten.tensordot" => tensordot,
    "aten.trapezoid" => trapezoid,
    "aten._trilinear" => trilinear,
    "aten._linalg_det" => |call| with_others(det(call)?, 1, 2),
    "aten._linalg_eigh" => eigh,
    "aten._linalg_slogdet" => |call| with_others(slogdet(call)?, 2, 2),
    "aten._linalg_solve_ex" => |call| with_others(of_a(function!(ops::linalg::solve), call)?, 1, 3),
    "aten._linalg_svd" => svd,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.bilinear" => ops::bilinear,
    "aten.chain_matmul" => ops::chain_matmul,
    "aten.linalg_multi_dot" => ops::chain_matmul["tensors" => "matrices"],
    "aten.cosine_similarity" => ops::cosine_similarity,
    "aten.cov" => ops::cov,
    "aten.det" => ops::linalg::det,
    "aten.linalg_det" => ops::linalg::det["A" => "x"],
    "aten.linalg_inv" => ops::linalg::inv["A" => "a"],
    "aten.cross" => ops::cross,
    "aten.ger" => ops::ger,
    "aten.inverse" => ops::linalg::inverse,
    "aten.linalg_householder_product" => ops::linalg::householder_product["input" => "a"],
    "aten.linalg_lu_solve" => ops::linalg::lu_solve["LU" => "lu", "B" => "b"],
    "aten.linalg_matrix_exp" => ops::linalg::matrix_exp,
    "aten.linalg_solve_triangular" => ops::linalg::solve_triangular["self" => "a", "B" => "b"],
    "aten.linalg_tensorinv" => ops::linalg::tensorinv["self" => "a"],
    "aten.linalg_tensorsolve" => ops::linalg::tensorsolve["self" => "a", "other" => "b"],
    "aten.linalg_vecdot" => ops::linalg::vecdot,
    "aten.orgqr" => ops::linalg::householder_product["self" => "a", "input2" => "tau"],
    "aten.matrix_power" => ops::linalg::matrix_power,
    "aten.linalg_matrix_power" => ops::linalg::matrix_power["A" => "x"],
    "aten.linalg_pinv" => ops::linalg::pinv["self" => "a", "rcond" => "rtol"],
    "aten.pairwise_distance" => ops::pairwise_distance,
    "aten.pinverse" => ops::linalg::pinverse,
    "aten.quantile" => ops::quantile,
    "aten.nanquantile" => ops::nanquantile,
};
