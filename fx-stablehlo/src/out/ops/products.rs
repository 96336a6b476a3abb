//! Products: of matrices, by layers, by equations.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;

use super::rules;
use crate::out::cx::{Array, Cx};

rules! {
    matmul => |cx, call| matmul(cx, call, "x", "other"),
    linear => |cx, call| {
        let (x, weight) = (cx.tensor(call, "x")?, cx.tensor(call, "weight")?);
        let summed = [[x.rank() as i64 - 1, weight.rank() as i64 - 1]];
        let y = cx.dot(&x, &weight, &[], &summed);
        Ok(match cx.optional(call, "bias")? {
            Some(bias) => {
                let bias = cx.expand(&bias, &y.shape)?;
                cx.binary("add", &y, &bias)
            }
            None => y,
        }.into())
    },
    einsum => |cx, call| {
        let mut operands = cx.tensors(call, "operands")?;
        let (dtype, _) = cx.result(call)?;
        for operand in &mut operands {
            *operand = cx.convert(operand, dtype);
        }
        einsum(cx, &call.text("equation")?, operands).map(Val::from)
    },
    tensordot => |cx, call| {
        let (a, b) = (cx.tensor(call, "a")?, cx.tensor(call, "b")?);
        let count = call.int("dims")?;
        let first = a.rank() as i64 - count;
        let pairs: Vec<[i64; 2]> = (0..count).map(|at| [first + at, at]).collect();
        Ok(cx.dot(&a, &b, &[], &pairs).into())
    },
    tensordot_dims => |cx, call| {
        let (a, b) = (cx.tensor(call, "a")?, cx.tensor(call, "b")?);
        let (left, right) = (call.places("dims_a", a.rank())?, call.places("dims_b", b.rank())?);
        let pairs: Vec<[i64; 2]> = left.into_iter().zip(right).map(|(l, r)| [l, r]).collect();
        Ok(cx.dot(&a, &b, &[], &pairs).into())
    },
    kron => |cx, call| {
        let (a, b) = (cx.widened_of(call, "x")?, cx.widened_of(call, "other")?);
        let rank = a.rank().max(b.rank());
        let lifted = |of: &Array| [vec![1; rank - of.rank()], of.shape.clone()].concat();
        let (left, right) = (lifted(&a), lifted(&b));
        let spread = |sizes: &[i64], first: bool| -> Vec<i64> {
            sizes.iter().flat_map(|size| if first { [*size, 1] } else { [1, *size] }).collect()
        };
        let whole: Vec<i64> = left.iter().zip(&right).flat_map(|(l, r)| [*l, *r]).collect();
        let (a, b) = (cx.reshape(&a, &spread(&left, true)), cx.reshape(&b, &spread(&right, false)));
        let (a, b) = (cx.expand(&a, &whole)?, cx.expand(&b, &whole)?);
        let product = cx.binary("multiply", &a, &b);
        let (_, shape) = cx.result(call)?;
        Ok(cx.reshape(&product, &shape).into())
    },
    linalg::matrix_power => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let Ok(times) = u32::try_from(call.int("n")?) else {
            return Err(Error::not_in_format("a negative power needs an inverse, which StableHLO does not have"));
        };
        let rank = x.rank() as i64;
        let batch: Vec<[i64; 2]> = (0..rank - 2).map(|dim| [dim, dim]).collect();
        if times == 0 {
            let (row, column) = (cx.iota(rank as usize - 2, DType::I32, &x.shape), cx.iota(rank as usize - 1, DType::I32, &x.shape));
            let is_diagonal = cx.compare("EQ", &row, &column);
            return Ok(cx.convert(&is_diagonal, x.dtype).into());
        }
        // By squares.
        let (mut power, mut square) = (None, x);
        let mut left = times;
        loop {
            if left & 1 == 1 {
                power = Some(match power {
                    Some(power) => cx.dot(&power, &square, &batch, &[[rank - 1, rank - 2]]),
                    None => square.clone(),
                });
            }
            left >>= 1;
            if left == 0 { break; }
            square = cx.dot(&square, &square, &batch, &[[rank - 1, rank - 2]]);
        }
        Ok(power.unwrap_or(square).into())
    },
}

impl Cx {
    /// A tensor among the arguments in the element type of the result, in its own shape.
    fn widened_of(&mut self, call: &OpCall<'_>, name: &str) -> Result<Array> {
        let (dtype, _) = self.result(call)?;
        let x = self.tensor(call, name)?;
        Ok(self.convert(&x, dtype))
    }
}

/// A product of matrices with batches that broadcast.
pub(super) fn matmul(cx: &mut Cx, call: &OpCall<'_>, a: &str, b: &str) -> Result<Val> {
    let (a, b) = (cx.widened_of(call, a)?, cx.widened_of(call, b)?);
    let (_, shape) = cx.result(call)?;
    if a.rank() == 0 || b.rank() == 0 {
        return Err(Error::msg(
            "a product of matrices takes tensors of at least one dim",
        ));
    }
    if b.rank() <= 2 {
        // A matrix on the right has no batch of its own.
        let product = cx.dot(
            &a,
            &b,
            &[],
            &[[a.rank() as i64 - 1, 0.max(b.rank() as i64 - 2)]],
        );
        return Ok(product.into());
    }
    let batch = match a.rank() {
        1 => shape[..shape.len() - 1].to_vec(),
        _ => shape[..shape.len() - 2].to_vec(),
    };
    let rows = if a.rank() == 1 {
        vec![1, a.shape[0]]
    } else {
        a.shape[a.rank() - 2..].to_vec()
    };
    let left = if a.rank() == 1 {
        cx.reshape(&a, &rows)
    } else {
        a
    };
    let left = cx.expand(&left, &[batch.clone(), rows].concat())?;
    let right = cx.expand(
        &b,
        &[batch.clone(), b.shape[b.rank() - 2..].to_vec()].concat(),
    )?;
    let count = batch.len() as i64;
    let pairs: Vec<[i64; 2]> = (0..count).map(|dim| [dim, dim]).collect();
    let product = cx.dot(&left, &right, &pairs, &[[count + 1, count]]);
    Ok(cx.reshape(&product, &shape).into())
}

/// Products by an equation, two operands at a time from the left.
fn einsum(cx: &mut Cx, equation: &str, operands: Vec<Array>) -> Result<Array> {
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&*text, None),
    };
    // Dims of an ellipsis are letters of their own, from the back.
    let dots: Vec<u32> = (0..16).map(|at| u32::from('\u{e000}') + at).collect();
    let mut terms = Vec::new();
    let mut ellipsis = 0;
    for (term, operand) in inputs.split(',').zip(&operands) {
        let named = term.replace("...", "").chars().count();
        let extra = operand.rank().saturating_sub(named);
        let has_dots = term.contains("...");
        if named > operand.rank() || (extra > 0 && !has_dots) || extra > dots.len() {
            return Err(Error::msg(format_args!(
                "`{term}` of `{equation}` has not the {} dims of its operand",
                operand.rank()
            )));
        }
        ellipsis = ellipsis.max(if has_dots { extra } else { 0 });
        terms.push(expanded(term, extra, &dots));
    }
    if terms.len() != operands.len() || terms.is_empty() {
        return Err(Error::msg(format_args!(
            "`{equation}` is not for {} operands",
            operands.len()
        )));
    }
    let output = match output {
        Some(output) => expanded(output, ellipsis, &dots),
        None => {
            let all: Vec<u32> = terms.iter().flatten().copied().collect();
            let once = |letter: &&u32| all.iter().filter(|other| other == letter).count() == 1;
            let mut free: Vec<u32> = all
                .iter()
                .filter(|l| **l < 0xe000)
                .filter(once)
                .copied()
                .collect();
            free.sort_unstable();
            let dots = (0..ellipsis).rev().map(|at| dots[at]);
            dots.chain(free).collect()
        }
    };
    let mut parts = Vec::new();
    for (term, operand) in terms.into_iter().zip(operands) {
        parts.push(diagonals(cx, term, operand));
    }
    let mut parts = parts.into_iter();
    let mut whole = parts.next().expect("an equation has an operand");
    let rest: Vec<(Vec<u32>, Array)> = parts.collect();
    for at in 0..rest.len() {
        let later: Vec<u32> = rest[at + 1..]
            .iter()
            .flat_map(|(term, _)| term.clone())
            .chain(output.clone())
            .collect();
        whole = product(cx, whole, rest[at].clone(), &later);
    }
    let (mut term, mut x) = whole;
    let summed: Vec<i64> = (0..term.len())
        .filter(|at| !output.contains(&term[*at]))
        .map(|at| at as i64)
        .collect();
    x = cx.reduce("add", &x, 0.0, &summed);
    term.retain(|letter| output.contains(letter));
    let order: Vec<i64> = output
        .iter()
        .filter_map(|letter| term.iter().position(|l| l == letter))
        .map(|at| at as i64)
        .collect();
    Ok(cx.transpose(&x, &order))
}

/// The letters of a term, with those of its ellipsis.
fn expanded(term: &str, extra: usize, dots: &[u32]) -> Vec<u32> {
    let mut letters = Vec::new();
    let mut left = term;
    while let Some(first) = left.chars().next() {
        match left.strip_prefix("...") {
            Some(rest) => {
                letters.extend((0..extra).rev().map(|at| dots[at]));
                left = rest;
            }
            None => {
                letters.push(u32::from(first));
                left = &left[first.len_utf8()..];
            }
        }
    }
    letters
}

/// A letter that stands twice in a term takes a diagonal: all else is zero before a sum.
fn diagonals(cx: &mut Cx, mut term: Vec<u32>, mut x: Array) -> (Vec<u32>, Array) {
    let mut at = 0;
    while at < term.len() {
        if let Some(first) = term[..at].iter().position(|letter| *letter == term[at]) {
            let (row, column) = (
                cx.iota(first, DType::I32, &x.shape),
                cx.iota(at, DType::I32, &x.shape),
            );
            let is_diagonal = cx.compare("EQ", &row, &column);
            let zero = cx.splat(0.0, x.dtype, &x.shape);
            x = cx.select(&is_diagonal, &x, &zero);
            x = cx.reduce("add", &x, 0.0, &[at as i64]);
            term.remove(at);
        } else {
            at += 1;
        }
    }
    (term, x)
}

/// The product of two terms, summed over letters that nothing later has. A dim of size one broadcasts.
fn product(
    cx: &mut Cx,
    (left, mut a): (Vec<u32>, Array),
    (right, mut b): (Vec<u32>, Array),
    later: &[u32],
) -> (Vec<u32>, Array) {
    let (mut batch, mut summed) = (Vec::new(), Vec::new());
    let mut term = Vec::new();
    for (at, letter) in left.iter().enumerate() {
        if let Some(other) = right.iter().position(|l| l == letter) {
            let size = a.shape[at].max(b.shape[other]);
            for (x, dim) in [(&mut a, at), (&mut b, other)] {
                if x.shape[dim] != size {
                    let mut shape = x.shape.clone();
                    shape[dim] = size;
                    let dims: Vec<i64> = (0..shape.len() as i64).collect();
                    *x = cx.broadcast(x, &dims, &shape);
                }
            }
            if later.contains(letter) {
                batch.push([at as i64, other as i64]);
                term.push(*letter);
            } else {
                summed.push([at as i64, other as i64]);
            }
        }
    }
    term.extend(left.iter().filter(|letter| !right.contains(letter)));
    term.extend(right.iter().filter(|letter| !left.contains(letter)));
    let product = cx.dot(&a, &b, &batch, &summed);
    (term, product)
}
