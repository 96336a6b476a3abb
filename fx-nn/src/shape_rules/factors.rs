//! Matrices in the last two dims: their factors, inverses and norms, and systems of equations.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim, Value};

use super::reductions::without;
use super::{
    Elements, are_equal, at_least, named, require, require_one_type, rules, tensor, word, wrong,
};
use crate::ops::linalg;

rules! {
    |call| square(call, "a", 0) => linalg::inv, linalg::cholesky;
    |call| square(call, "x", 0) => linalg::inverse;
    |call| square(call, "x", 2) => linalg::det;
    eigenvalues => linalg::eigvalsh;
    eigh => linalg::eigh;
    slogdet => linalg::slogdet;
    power => linalg::matrix_power;
    qr => linalg::qr;
    svd => linalg::svd;
    svdvals => linalg::svdvals;
    pinv => linalg::pinv;
    |call| turned(call, "x") => linalg::pinverse;
    solve => linalg::solve;
    lstsq => linalg::lstsq;
    matrix_norm => linalg::matrix_norm;
    solve_triangular => linalg::solve_triangular;
    lu => linalg::lu;
    lu_factor => linalg::lu_factor;
    lu_unpack => linalg::lu_unpack;
    lu_solve => linalg::lu_solve;
    |call| square(call, "x", 0) => linalg::matrix_exp;
    matrix_rank => linalg::matrix_rank;
    cond => linalg::cond;
    vecdot => linalg::vecdot;
    householder_product => linalg::householder_product;
    tensorinv => linalg::tensorinv;
    tensorsolve => linalg::tensorsolve;
}

/// The sizes before a matrix, its rows and its columns.
type Parts<'m> = (&'m [Dim], &'m Dim, &'m Dim);

fn parts<'m>(call: &RuleCall<'_>, shape: &'m [Dim]) -> Result<Parts<'m>> {
    match shape {
        [lead @ .., rows, columns] => Ok((lead, rows, columns)),
        other => Err(wrong(
            call,
            format_args!("{other:?} is no matrix, which has two dims at least"),
        )),
    }
}

/// The same of a tensor of `float32` or `float64`.
fn matrix<'c>(call: &RuleCall<'c>, param: &str) -> Result<(&'c TensorMeta, Parts<'c>)> {
    let meta = call.tensor(param)?;
    require(call, meta, Elements::Single)?;
    Ok((meta, parts(call, &meta.shape)?))
}

fn require_square(call: &mut RuleCall<'_>, (_, rows, columns): Parts<'_>) -> Result<()> {
    call.same(rows, columns, || "the matrix is not square".to_string())
}

/// The sizes of a batch, and those of one of it.
fn batch<const N: usize>(lead: &[Dim], sizes: [&Dim; N]) -> Vec<Dim> {
    lead.iter().chain(sizes).cloned().collect()
}

/// A square matrix, or batches of them, without some of the last dims.
fn square(call: &mut RuleCall<'_>, param: &str, without: usize) -> Result<ValueMeta> {
    let (meta, of) = matrix(call, param)?;
    require_square(call, of)?;
    let kept = meta.shape.len().saturating_sub(without);
    let shape = meta.shape.iter().take(kept);
    Ok(tensor(shape.cloned().collect(), meta.dtype))
}

fn eigenvalues(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    word(call, "uplo", &["L", "U", "l", "u"])?;
    square(call, "a", 1)
}

fn eigh(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    Ok(ValueMeta::Tuple(vec![
        eigenvalues(call)?,
        square(call, "a", 0)?,
    ]))
}

fn slogdet(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let one = square(call, "x", 2)?;
    Ok(ValueMeta::Tuple(vec![one.clone(), one]))
}

/// An inverse is of floats, a product of any numbers.
fn power(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = call.tensor("x")?;
    let of = parts(call, &x.shape)?;
    require(
        call,
        x,
        match call.int("n")? {
            0.. => Elements::Numbers,
            _ => Elements::Single,
        },
    )?;
    require_square(call, of)?;
    Ok(tensor(x.shape.clone(), x.dtype))
}

fn qr(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, (lead, m, n)) = matrix(call, "a")?;
    let k = &m.min(n)?;
    let (q, r) = match word(call, "mode", &["reduced", "complete", "r"])? {
        "complete" => (batch(lead, [m, m]), batch(lead, [m, n])),
        "r" => (vec![Dim::known(0)], batch(lead, [k, n])),
        _ => (batch(lead, [m, k]), batch(lead, [k, n])),
    };
    Ok(ValueMeta::Tuple(vec![
        tensor(q, a.dtype),
        tensor(r, a.dtype),
    ]))
}

fn svd(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, (lead, m, n)) = matrix(call, "a")?;
    let k = &m.min(n)?;
    let (u, vh) = match call.flag("full_matrices")? {
        true => (batch(lead, [m, m]), batch(lead, [n, n])),
        false => (batch(lead, [m, k]), batch(lead, [k, n])),
    };
    let all = [u, batch(lead, [k]), vh];
    Ok(ValueMeta::Tuple(
        all.map(|shape| tensor(shape, a.dtype)).to_vec(),
    ))
}

fn svdvals(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, (lead, m, n)) = matrix(call, "a")?;
    Ok(tensor(batch(lead, [&m.min(n)?]), a.dtype))
}

fn pinv(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    if call.flag("hermitian")? {
        let (_, of) = matrix(call, "a")?;
        require_square(call, of)?;
    }
    turned(call, "a")
}

/// Columns for rows.
fn turned(call: &mut RuleCall<'_>, param: &str) -> Result<ValueMeta> {
    let (a, (lead, m, n)) = matrix(call, param)?;
    Ok(tensor(batch(lead, [n, m]), a.dtype))
}

/// The sizes of a vector as those of a matrix of a column.
fn column(shape: &[Dim], is_vector: bool) -> Vec<Dim> {
    let one = is_vector.then(|| Dim::known(1));
    shape.iter().cloned().chain(one).collect()
}

/// `X` of `a X = b`; `b` is a vector if it has one dim, or all sizes of `a` but the last.
fn solve(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, of_a) = matrix(call, "a")?;
    let b = call.tensor("b")?;
    require_one_type(call, a, b)?;
    require_square(call, of_a)?;
    let (lead, n, _) = of_a;
    let left = call.flag("left")?;
    let is_vector = b.shape.len() == 1 || are_equal(call, &batch(lead, [n]), &b.shape)?;
    if is_vector && !left {
        return Err(wrong(
            call,
            "a vector is right of its matrix: without `left`, give a row",
        ));
    }
    let b = column(&b.shape, is_vector);
    let (of_b, rows, columns) = parts(call, &b)?;
    call.same(n, if left { rows } else { columns }, || {
        format!("the shapes {:?} and {b:?} do not fit", a.shape)
    })?;
    let mut shape = call.broadcast(&[lead, of_b])?;
    shape.push(rows.clone());
    if !is_vector {
        shape.push(columns.clone());
    }
    Ok(tensor(shape, a.dtype))
}

/// The matrices are taken to be of full rank, which decides whether there are sums of squares.
fn lstsq(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let words = ["gelsy", "gels", "gelsd", "gelss"];
    let (sums, ranks, values) = match word(call, "driver", &words)? {
        "gelsy" => (false, true, false),
        "gels" => (true, false, false),
        _ => (true, true, true),
    };
    let (a, (lead, m, n)) = matrix(call, "a")?;
    let b = call.tensor("b")?;
    require_one_type(call, a, b)?;
    let is_vector = match a.shape.len().checked_sub(b.shape.len()) {
        Some(0) => false,
        Some(1) => b.shape.len() == 1 || are_equal(call, &batch(lead, [m]), &b.shape)?,
        _ => {
            return Err(wrong(
                call,
                format_args!(
                    "the right sides {:?} have as many dims as {:?}, or one less",
                    b.shape, a.shape
                ),
            ));
        }
    };
    let b = column(&b.shape, is_vector);
    let (of_b, rows, columns) = parts(call, &b)?;
    call.same(m, rows, || {
        format!("the shapes {:?} and {b:?} do not fit", a.shape)
    })?;
    let lead = call.broadcast(&[lead, of_b])?;
    let solution = match is_vector {
        true => batch(&lead, [n]),
        false => batch(&lead, [n, columns]),
    };
    let is_tall = sums && call.env().at_least(&(m - n)?, 1)?;
    let or_empty = |is_there: bool, shape: Vec<Dim>, dtype: Option<DType>| match is_there {
        true => tensor(shape, dtype),
        false => tensor(vec![Dim::known(0)], dtype),
    };
    Ok(ValueMeta::Tuple(vec![
        tensor(solution, a.dtype),
        or_empty(is_tall, batch(&lead, [columns]), a.dtype),
        or_empty(ranks, lead.clone(), Some(DType::I64)),
        or_empty(values, batch(&lead, [&m.min(n)?]), a.dtype),
    ]))
}

fn matrix_norm(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let a = call.tensor("a")?;
    require(call, a, Elements::Fractions)?;
    let dtype = call.dtype("dtype")?;
    if let (Some(own), Some(dtype)) = (a.dtype, dtype)
        && (own.promote(dtype) != dtype || !dtype.is_floating_point())
    {
        return Err(wrong(
            call,
            format_args!("{dtype} cannot hold the elements of {own}: convert them with `to_dtype`"),
        ));
    }
    // Of nothing there is no least sum.
    let order = super::number(call, "ord")?;
    let is_least = order.is_some_and(|order| order < 0.0);
    let by_values = match call.arg("ord")? {
        ValueMeta::Plain(Value::Str(name)) if &**name == "fro" => false,
        ValueMeta::Plain(Value::Str(name)) if &**name == "nuc" => true,
        given => match (given, order) {
            (_, Some(number)) if number.abs() == 1.0 || number.is_infinite() => false,
            (_, Some(number)) if number.abs() == 2.0 => true,
            (ValueMeta::Float(None), None) => false,
            (other, _) => {
                return Err(wrong(
                    call,
                    format_args!(
                        "`ord` is \"fro\", \"nuc\", 1, 2 or an infinity, or these below 0, and not {other}"
                    ),
                ));
            }
        },
    };
    if by_values {
        require(call, a, Elements::Single)?;
    }
    let rank = a.shape.len();
    let places = match named(call, "dim", rank)? {
        Some(places) => places,
        None => (rank.saturating_sub(2)..rank).collect(),
    };
    if places.len() != 2 {
        return Err(wrong(
            call,
            format_args!("a matrix has two dims, and {} are named", places.len()),
        ));
    }
    for (at, place) in places.iter().enumerate() {
        // The sums are of columns for 1, of rows for an infinite order.
        let is_summed = !by_values && (at == 0) == order.is_some_and(f64::is_finite);
        if let Some(size) = a.shape.get(*place).filter(|_| is_least && !is_summed) {
            at_least(call, size, 1, "a dim without elements has no least sum")?;
        }
    }
    let shape = without(&a.shape, &places, call.flag("keepdim")?);
    Ok(tensor(shape, dtype.or(a.dtype)))
}

/// `X` of `a X = b`, of matrices alone.
fn solve_triangular(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, of_a) = matrix(call, "a")?;
    let b = call.tensor("b")?;
    require_one_type(call, a, b)?;
    require_square(call, of_a)?;
    let left = call.flag("left")?;
    solution(call, (a, of_a), b, left)
}

/// The shape of what solves equations with square matrices.
fn solution(
    call: &mut RuleCall<'_>,
    (a, (lead, n, _)): (&TensorMeta, Parts<'_>),
    b: &TensorMeta,
    left: bool,
) -> Result<ValueMeta> {
    let (of_b, rows, columns) = parts(call, &b.shape)?;
    call.same(n, if left { rows } else { columns }, || {
        format!("the shapes {:?} and {:?} do not fit", a.shape, b.shape)
    })?;
    let lead = call.broadcast(&[lead, of_b])?;
    Ok(tensor(batch(&lead, [rows, columns]), a.dtype))
}

fn require_pivots(call: &RuleCall<'_>) -> Result<()> {
    match call.flag("pivot")? {
        true => Ok(()),
        false => Err(wrong(
            call,
            "rows are exchanged on the processor, as in PyTorch: `pivot` is true",
        )),
    }
}

fn lu(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_pivots(call)?;
    let (a, of) = matrix(call, "a")?;
    triangles(a, of)
}

fn triangles(a: &TensorMeta, (lead, m, n): Parts<'_>) -> Result<ValueMeta> {
    let k = &m.min(n)?;
    let sizes = [[m, m], [m, k], [k, n]];
    let of = sizes.map(|sizes| tensor(batch(lead, sizes), a.dtype));
    Ok(ValueMeta::Tuple(of.to_vec()))
}

fn lu_factor(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require_pivots(call)?;
    let (a, (lead, m, n)) = matrix(call, "a")?;
    Ok(ValueMeta::Tuple(vec![
        tensor(a.shape.clone(), a.dtype),
        tensor(batch(lead, [&m.min(n)?]), Some(DType::I32)),
    ]))
}

/// The factors, of which the pivots fit them.
fn factors<'c>(call: &mut RuleCall<'c>) -> Result<(&'c TensorMeta, Parts<'c>)> {
    let (both, of) = matrix(call, "lu")?;
    let pivots = call.tensor("pivots")?;
    if pivots.dtype.is_some_and(|dtype| dtype != DType::I32) {
        return Err(wrong(
            call,
            format_args!("the pivots are the `int32` of `lu_factor`, and not {pivots}"),
        ));
    }
    let (lead, m, n) = of;
    let expected = batch(lead, [&m.min(n)?]);
    if expected.len() != pivots.shape.len() {
        return Err(wrong(
            call,
            format_args!("the pivots of {both} are of shape {expected:?}, and not {pivots}"),
        ));
    }
    for (own, other) in expected.iter().zip(&pivots.shape) {
        call.same(own, other, || {
            format!("the pivots of {both} are of shape {expected:?}, and not {pivots}")
        })?;
    }
    Ok((both, of))
}

fn lu_unpack(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (both, of) = factors(call)?;
    triangles(both, of)
}

fn lu_solve(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (both, of) = factors(call)?;
    require_square(call, of)?;
    let b = call.tensor("b")?;
    require_one_type(call, both, b)?;
    let left = call.flag("left")?;
    solution(call, (both, of), b, left)
}

fn matrix_rank(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (_, of) = matrix(call, "a")?;
    if call.flag("hermitian")? {
        require_square(call, of)?;
    }
    let (lead, ..) = of;
    Ok(tensor(lead.to_vec(), Some(DType::I64)))
}

fn cond(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, of) = matrix(call, "a")?;
    let order = super::number(call, "p")?;
    let is_named = matches!(call.arg("p")?, ValueMeta::Plain(Value::Str(name)) if matches!(&**name, "fro" | "nuc"));
    let is_known = order.is_some_and(|p| p.abs() == 1.0 || p.abs() == 2.0 || p.is_infinite());
    if !is_named && !is_known {
        return Err(wrong(
            call,
            "`p` is 2, 1, an infinity, or these below 0, or \"fro\" or \"nuc\"",
        ));
    }
    let is_empty = a.shape.iter().any(|size| size.as_number() == Some(0));
    if order.is_none_or(|p| p.abs() != 2.0 && !is_empty) {
        require_square(call, of)?;
    }
    let (lead, ..) = of;
    Ok(tensor(lead.to_vec(), a.dtype))
}

fn vecdot(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, y) = (call.tensor("x")?, call.tensor("y")?);
    require(call, x, Elements::Fractions)?;
    require_one_type(call, x, y)?;
    let shape = call.broadcast(&[&x.shape, &y.shape])?;
    let place = super::place(call, "dim", shape.len())?;
    let places = if shape.is_empty() {
        vec![]
    } else {
        vec![place]
    };
    Ok(tensor(without(&shape, &places, false), x.dtype))
}

fn householder_product(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, (lead, m, n)) = matrix(call, "a")?;
    let tau = call.tensor("tau")?;
    require_one_type(call, a, tau)?;
    let [of_tau @ .., k] = &tau.shape[..] else {
        return Err(wrong(call, "`tau` has a number for each reflection"));
    };
    if of_tau.len() != lead.len() {
        return Err(wrong(
            call,
            format_args!("the batches of {a} and {tau} differ"),
        ));
    }
    for (own, other) in lead.iter().zip(of_tau) {
        call.same(own, other, || {
            format!("the batches of {a} and {tau} differ")
        })?;
    }
    for (large, small) in [(m, n), (n, k)] {
        at_least(
            call,
            &(large - small)?,
            0,
            format_args!("{a} is as high as wide, and has a column for each number of {tau}"),
        )?;
    }
    Ok(tensor(a.shape.clone(), a.dtype))
}

/// Dims of which the first ones have as many elements as the others.
fn require_square_parts(call: &mut RuleCall<'_>, first: &[Dim], rest: &[Dim]) -> Result<()> {
    let (rows, columns) = (Dim::product(first)?, Dim::product(rest)?);
    call.same(&rows, &columns, || {
        format!("the dims {first:?} have as many elements as {rest:?}")
    })
}

fn tensorinv(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let a = call.tensor("a")?;
    require(call, a, Elements::Single)?;
    let ind = call.int("ind")?;
    let at = usize::try_from(ind).ok().filter(|at| *at >= 1);
    let Some((first, rest)) = at.and_then(|at| a.shape.split_at_checked(at)) else {
        return Err(wrong(
            call,
            format_args!("`ind` is 1 at least, and at most the number of dims, and not {ind}"),
        ));
    };
    require_square_parts(call, first, rest)?;
    Ok(tensor([rest, first].concat(), a.dtype))
}

fn tensorsolve(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("a")?, call.tensor("b")?);
    require(call, a, Elements::Single)?;
    require_one_type(call, a, b)?;
    let moved = named(call, "dims", a.shape.len())?.unwrap_or_default();
    let kept = (0..a.shape.len()).filter(|at| !moved.contains(at));
    let shape: Vec<Dim> = kept
        .chain(moved.iter().copied())
        .map(|at| a.shape[at].clone())
        .collect();
    let Some((first, rest)) = shape.split_at_checked(b.shape.len()) else {
        return Err(wrong(
            call,
            format_args!("{a} has the dims of {b}, and others"),
        ));
    };
    require_square_parts(call, first, rest)?;
    let (of_b, size) = (Dim::product(&b.shape)?, Dim::product(rest)?);
    call.same(&of_b, &size, || {
        format!("{b} has as many elements as the matrix that {a} is has rows")
    })?;
    Ok(tensor(rest.to_vec(), a.dtype))
}
