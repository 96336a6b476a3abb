//! Products and factors of matrices, for many examples at once.

use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result, operator};

use super::batching;
use crate::func::{BatchCall, Batching, aligned, known};
use crate::ops::{self, linalg};
use crate::tensor::Tensor;

batching! {
    ops::matmul => |call| matmul(call, "x", "other");
    ops::linear => |call| {
        let (x, weight) = (call.arg::<Tensor>("x")?, call.arg::<Tensor>("weight")?);
        if !call.is_batched("weight") && !call.is_batched("bias") && call.rank("x")? >= 1 {
            return ops::linear(&x, &weight, call.arg::<Option<Tensor>>("bias")?.as_ref()).map(IntoValue::into_value);
        }
        // Vectors as rows, all with the examples first.
        let rank = call.rank("x")?;
        let rows = match rank {
            1 => ops::unsqueeze(&call.tensor("x")?, 1)?,
            _ => call.tensor("x")?,
        };
        let weight = if call.is_batched("weight") { weight } else { call.tensor("weight")? };
        let is_row = call.rank("weight")? == 1;
        let weight = if is_row { ops::unsqueeze(&weight, 1)? } else { weight };
        let turned = aligned(&ops::transpose(&weight, 1, 2)?, rank.max(2))?;
        let mut y = ops::matmul(&rows, &turned)?;
        if let Some(bias) = call.optional("bias")? {
            y = (y + aligned(&bias, rank.max(2))?)?;
        }
        if is_row {
            y = ops::squeeze(&y, -1)?;
        }
        if rank == 1 { ops::squeeze(&y, 1) } else { Ok(y) }
    };
    ops::einsum => |call| {
        let equation: String = call.arg("equation")?;
        let whole: Value = call.arg("operands")?;
        let operands = known::items(&whole)?;
        let letters = ('a'..='z').chain('A'..='Z');
        let own = letters.into_iter().find(|c| !equation.contains(*c));
        let own = own.ok_or_else(|| Error::msg("einsum: every letter is taken"))?;
        let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match equation.split_once("->") {
            Some((inputs, output)) => (inputs.to_string(), output.to_string()),
            None => {
                let mut once: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
                once.sort_unstable();
                let single: String = once.iter().filter(|c| once.iter().filter(|d| d == c).count() == 1).collect();
                let dots = if equation.contains("...") { "..." } else { "" };
                (equation.clone(), format!("{dots}{single}"))
            }
        };
        let texts = inputs.split(',').zip(&operands).map(|(text, operand)| {
            match call.is_item_batched(&whole, operand) {
                true => format!("{own}{text}"),
                false => text.to_string(),
            }
        });
        let texts: Vec<String> = texts.collect();
        ops::einsum(&format!("{}->{own}{output}", texts.join(",")), &operands)
    };
    ops::linalg::inv => |call| call.with(&[]);
    ops::linalg::inverse => |call| call.with(&[]);
    ops::linalg::det => |call| call.with(&[]);
    ops::linalg::slogdet => |call| call.with(&[]);
    ops::linalg::cholesky => |call| call.with(&[]);
    ops::linalg::eigh => |call| call.with(&[]);
    ops::linalg::eigvalsh => |call| call.with(&[]);
    ops::linalg::svd => |call| call.with(&[]);
    ops::linalg::svdvals => |call| call.with(&[]);
    ops::linalg::qr => |call| match call.arg::<String>("mode")?.as_str() {
        // Q has no elements, and no examples.
        "r" => call.one_by_one(),
        _ => call.with(&[]),
    };
    ops::linalg::pinv => |call| call.with(&[]);
    ops::linalg::pinverse => |call| call.with(&[]);
    ops::linalg::matrix_power => |call| call.with(&[]);
    ops::linalg::solve => |call| {
        let (of_a, of_b) = (call.sizes("a")?, call.sizes("b")?);
        let same = |a: &Int, b: &Int| known::number(a) == known::number(b);
        let is_vector = of_b.len() == 1
            || (of_b.len() + 1 == of_a.len() && of_b.iter().zip(&of_a).all(|(b, a)| same(a, b)));
        let rank = of_a.len().max(of_b.len() + usize::from(is_vector));
        let b = call.tensor("b")?;
        let b = if is_vector { ops::unsqueeze(&b, -1)? } else { b };
        let y = linalg::solve(&aligned(&call.tensor("a")?, rank)?, &aligned(&b, rank)?, call.arg("left")?)?;
        if is_vector { ops::squeeze(&y, -1) } else { Ok(y) }
    };
}

fx_core::function_table! { Batching {
    operator::matmul => Batching(|call| matmul(call, "a", "b").map(IntoValue::into_value)),
} }

/// Vectors as rows and columns, and the dims of the examples aligned.
fn matmul(call: &BatchCall<'_>, a_name: &str, b_name: &str) -> Result<Tensor> {
    let (of_a, of_b) = (call.rank(a_name)?, call.rank(b_name)?);
    let (a, b): (Tensor, Tensor) = (call.arg(a_name)?, call.arg(b_name)?);
    // Rows of all examples times one matrix.
    if !call.is_batched(b_name) && of_b == 2 && of_a >= 1 {
        return ops::matmul(&a, &b);
    }
    let rank = of_a.max(of_b).max(2);
    let prepared = |x: Tensor, is_batched: bool, own: usize, dim: i64| {
        let x = if own == 1 {
            ops::unsqueeze(&x, dim)?
        } else {
            x
        };
        if is_batched { aligned(&x, rank) } else { Ok(x) }
    };
    let a = prepared(a, call.is_batched(a_name), of_a, -2)?;
    let b = prepared(b, call.is_batched(b_name), of_b, -1)?;
    let mut y = ops::matmul(&a, &b)?;
    if of_b == 1 {
        y = ops::squeeze(&y, -1)?;
    }
    if of_a == 1 {
        y = ops::squeeze(&y, if of_b == 1 { -1 } else { -2 })?;
    }
    Ok(y)
}
