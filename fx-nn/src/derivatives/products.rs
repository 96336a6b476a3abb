//! Derivatives of products of matrices and of tensors.

use fx_core::value::Int;
use fx_core::{Error, Result};

use super::{derivatives, operators, turned};
use crate::func::{Pullback, known};
use crate::ops;
use crate::tensor::Tensor;

operators! {
    matmul => |call| matmul(call, "a", "b");
}

derivatives! {
    ops::matmul => |call| matmul(call, "x", "other");
    ops::linear => |call| {
        let (x, weight): (Tensor, Tensor) = (call.arg("x")?, call.arg("weight")?);
        call.give("x", |call| match known::rank(&weight)? {
            // One row of weights.
            1 => ops::unsqueeze(&call.grad()?, -1)? * &weight,
            _ => ops::matmul(&call.grad()?, &weight),
        })?;
        call.give("weight", |call| {
            let (grad, width) = (call.grad()?, known::size(&x, -1)?);
            let rows = ops::reshape(&x, vec![Int::from(-1), width])?;
            match known::rank(&weight)? {
                1 => ops::matmul(&ops::reshape(&grad, [-1])?, &rows),
                _ => {
                    let grads = ops::reshape(&grad, vec![Int::from(-1), known::size(&grad, -1)?])?;
                    ops::matmul(&ops::transpose(&grads, 0, 1)?, &rows)
                }
            }
        })?;
        call.give("bias", Pullback::grad)
    };
    ops::einsum => |call| {
        let (equation, operands): (String, Vec<Tensor>) = (call.arg("equation")?, known::items(&call.arg("operands")?)?);
        call.give_items("operands", |call| einsum(&call.grad()?, &equation, &operands))
    };
    ops::tensordot => |call| {
        let count: usize = call.arg("dims")?;
        let (a, _): (Tensor, Tensor) = (call.arg("a")?, call.arg("b")?);
        let rank = known::rank(&a)?;
        let of_a: Vec<usize> = (rank - count..rank).collect();
        tensordot(call, &of_a, &(0..count).collect::<Vec<_>>())
    };
    ops::tensordot_dims => |call| {
        let (a, b): (Tensor, Tensor) = (call.arg("a")?, call.arg("b")?);
        let of_a = known::places(call.arg("dims_a")?, known::rank(&a)?)?;
        let of_b = known::places(call.arg("dims_b")?, known::rank(&b)?)?;
        tensordot(call, &of_a, &of_b)
    };
    ops::kron => |call| {
        let (a, b): (Tensor, Tensor) = (call.arg("x")?, call.arg("other")?);
        let rank = known::rank(&a)?.max(known::rank(&b)?);
        let padded = |x: &Tensor| -> Result<Vec<Int>> {
            let mut sizes = known::sizes(x)?;
            while sizes.len() < rank {
                sizes.insert(0, Int::from(1));
            }
            Ok(sizes)
        };
        // Blocks: a dim of the one and a dim of the other in turns.
        let (of_a, of_b) = (padded(&a)?, padded(&b)?);
        let blocks: Vec<Int> = of_a.iter().zip(&of_b).flat_map(|(a, b)| [*a, *b]).collect();
        let apart = |sizes: &[Int], first: bool| -> Vec<Int> {
            sizes.iter().flat_map(|size| match first {
                true => [*size, Int::from(1)],
                false => [Int::from(1), *size],
            }).collect()
        };
        let part = |call: &Pullback<'_>, other: &Tensor, sizes: &[Int], first: bool, own: &Tensor| {
            let grad = ops::reshape(&call.grad()?, blocks.clone())?;
            let product = (grad * ops::reshape(other, apart(sizes, first))?)?;
            let dims: Vec<i64> = (0..rank).map(|at| (2 * at + usize::from(!first)) as i64).collect();
            let sum = if dims.is_empty() { product } else { ops::sum(&product, dims, false)? };
            ops::reshape(&sum, known::sizes(own)?)
        };
        call.give("x", |call| part(call, &b, &of_b, false, &a))?;
        call.give("other", |call| part(call, &a, &of_a, true, &b))
    };
}

fn matmul(call: &mut Pullback<'_>, a_name: &str, b_name: &str) -> Result<()> {
    let (a, b): (Tensor, Tensor) = (call.arg(a_name)?, call.arg(b_name)?);
    let (of_a, of_b) = (known::rank(&a)?, known::rank(&b)?);
    call.give(a_name, |call| {
        let grad = call.grad()?;
        match (of_a, of_b) {
            (1, 1) => grad * &b,
            (1, _) => summed_product(&b, &grad),
            (_, 1) => ops::unsqueeze(&grad, -1)? * &b,
            _ => ops::matmul(&grad, &turned(&b)?),
        }
    })?;
    call.give(b_name, |call| {
        let grad = call.grad()?;
        match (of_a, of_b) {
            (1, 1) => grad * &a,
            (1, _) => ops::unsqueeze(&a, -1)? * ops::unsqueeze(&grad, -2)?,
            (_, 1) => summed_product(&turned(&a)?, &grad),
            // A batch on the left alone is one long matrix.
            (_, 2) if of_a > 2 => {
                let flat = |x: &Tensor| ops::reshape(x, vec![Int::from(-1), known::size(x, -1)?]);
                ops::matmul(&turned(&flat(&a)?)?, &flat(&grad)?)
            }
            _ => ops::matmul(&turned(&a)?, &grad),
        }
    })
}

/// Matrices times vectors, summed over what is before them.
fn summed_product(matrix: &Tensor, vector: &Tensor) -> Result<Tensor> {
    let product = ops::matmul(matrix, &ops::unsqueeze(vector, -1)?)?;
    ops::squeeze(&product, -1)
}

/// A letter for each label.
fn letter(at: usize) -> Result<char> {
    let letters = ('a'..='z').chain('A'..='Z');
    letters
        .into_iter()
        .nth(at)
        .ok_or_else(|| Error::msg("there are more than 52 dims"))
}

/// The gradients of the operands of an `einsum`.
fn einsum(grad: &Tensor, equation: &str, operands: &[Tensor]) -> Result<Vec<Tensor>> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    // Each dim has a number; those of an ellipsis from the right.
    let mut names: Vec<char> = Vec::new();
    let mut number = |c: char| match names.iter().position(|name| *name == c) {
        Some(at) => at,
        None => {
            names.push(c);
            names.len() - 1
        }
    };
    let dots = |at: usize| char::from_u32(0xE000 + at as u32).unwrap_or('?');
    let mut labels: Vec<Vec<usize>> = Vec::new();
    let mut most = 0;
    for (text, operand) in inputs.iter().zip(operands) {
        let rank = known::rank(operand)?;
        let named = text.chars().filter(|c| *c != '.').count();
        let dotted = rank.saturating_sub(named);
        most = most.max(if text.contains("...") { dotted } else { 0 });
        let mut own = Vec::with_capacity(rank);
        let text = text.replace("...", "\u{2026}");
        for c in text.chars() {
            match c {
                '\u{2026}' => own.extend((0..dotted).rev().map(|at| number(dots(at)))),
                c => own.push(number(c)),
            }
        }
        labels.push(own);
    }
    let of_result: Vec<usize> = match output {
        Some(text) => {
            let text = text.replace("...", "\u{2026}");
            let mut own = Vec::new();
            for c in text.chars() {
                match c {
                    '\u{2026}' => own.extend((0..most).rev().map(|at| number(dots(at)))),
                    c => own.push(number(c)),
                }
            }
            own
        }
        None => {
            let mut own: Vec<usize> = (0..most).rev().map(|at| number(dots(at))).collect();
            let mut once: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
            once.sort_unstable();
            let single = once
                .iter()
                .filter(|c| once.iter().filter(|d| d == c).count() == 1);
            own.extend(single.map(|c| number(*c)));
            own
        }
    };
    let count = names.len();
    let text = |labels: &[usize]| {
        labels
            .iter()
            .map(|at| letter(*at))
            .collect::<Result<String>>()
    };
    let mut grads = Vec::with_capacity(operands.len());
    for (own, operand) in operands.iter().enumerate() {
        let mut tensors = vec![grad.clone()];
        let mut terms = vec![text(&of_result)?];
        for (other, tensor) in operands
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != own)
        {
            tensors.push(tensor.clone());
            terms.push(text(&labels[other])?);
        }
        // A label that comes again in one operand is a diagonal.
        let mut fresh = count;
        let mut wanted: Vec<usize> = Vec::new();
        for (at, label) in labels[own].iter().enumerate() {
            if !wanted.contains(label) {
                wanted.push(*label);
                continue;
            }
            let eye = ops::eye(
                known::size(operand, at as i64)?,
                None,
                Some(known::dtype(grad)?),
            )?;
            tensors.push(eye);
            terms.push(text(&[*label, fresh])?);
            wanted.push(fresh);
            fresh += 1;
        }
        // A label of this operand alone is summed: each element has the gradient.
        let is_there =
            |label: &usize| letter(*label).is_ok_and(|c| terms.iter().any(|term| term.contains(c)));
        let (there, _): (Vec<usize>, Vec<usize>) = wanted.iter().copied().partition(is_there);
        let mut given = ops::einsum(&format!("{}->{}", terms.join(","), text(&there)?), &tensors)?;
        for (at, label) in wanted.iter().enumerate() {
            if !there.contains(label) {
                given = ops::unsqueeze(&given, at as i64)?;
            }
        }
        // Sizes of 1 that an ellipsis broadcasts are summed by who asks.
        let sizes = known::sizes(operand)?;
        let mut full = known::sizes(&given)?;
        for (at, label) in wanted.iter().enumerate() {
            if !there.contains(label) {
                full[at] = sizes[at];
            }
        }
        grads.push(ops::expand(&given, full)?);
    }
    Ok(grads)
}

fn tensordot(call: &mut Pullback<'_>, of_a: &[usize], of_b: &[usize]) -> Result<()> {
    let (a, b): (Tensor, Tensor) = (call.arg("a")?, call.arg("b")?);
    let (rank_a, rank_b) = (known::rank(&a)?, known::rank(&b)?);
    let left: Vec<usize> = (0..rank_a).collect();
    let mut right: Vec<usize> = (rank_a..rank_a + rank_b).collect();
    for (at_a, at_b) in of_a.iter().zip(of_b) {
        right[*at_b] = *at_a;
    }
    let result = left
        .iter()
        .filter(|at| !of_a.contains(at))
        .chain(right.iter().filter(|at| **at >= rank_a));
    let text = |labels: Vec<usize>| labels.into_iter().map(letter).collect::<Result<String>>();
    let result = text(result.copied().collect())?;
    let equation = format!("{},{}->{result}", text(left)?, text(right)?);
    let operands = [a, b];
    let both = |call: &Pullback<'_>| einsum(&call.grad()?, &equation, &operands);
    call.give("a", |call| Ok(both(call)?.swap_remove(0)))?;
    call.give("b", |call| Ok(both(call)?.swap_remove(1)))
}
