//! Einstein's summation, of tensors whose dims are named by letters.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{promoted, rules, tensor, wrong};
use crate::kernels::einsum::{Label, sums};
use crate::ops;

rules! {
    einsum => ops::einsum;
}

fn einsum(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let equation = call.text("equation")?;
    let operands = call.tensors("operands")?;
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&*text, None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != operands.len() {
        return Err(wrong(
            call,
            format_args!(
                "`{equation}` names {} operands, and {} are given",
                inputs.len(),
                operands.len()
            ),
        ));
    }
    let mut sizes: Vec<(Label, Dim)> = Vec::new();
    let mut all = Vec::new();
    for (term, meta) in inputs.iter().zip(&operands) {
        let labels = labels(call, equation, term, meta.shape.len())?;
        for (at, (label, size)) in labels.iter().zip(&meta.shape).enumerate() {
            // A diagonal does not broadcast.
            if let Some(before) = labels.iter().take(at).position(|own| own == label) {
                let says = || format!("the sizes of {label} in one operand");
                call.same(&meta.shape[before], size, says)?;
            }
            join(call, equation, &mut sizes, *label, size)?;
        }
        all.extend(labels);
    }
    let output = match output {
        Some(output) => {
            let letters = output.replacen("...", "", 1).len();
            let rank = letters
                + if output.contains("...") {
                    dots(&all)
                } else {
                    0
                };
            labels(call, equation, output, rank)?
        }
        None => implicit(&all),
    };
    let mut shape = Vec::with_capacity(output.len());
    for (at, label) in output.iter().enumerate() {
        let size = sizes.iter().find(|(known, _)| known == label);
        match size {
            Some((_, size)) if !output.iter().take(at).any(|before| before == label) => {
                shape.push(size.clone());
            }
            found => {
                let why = match found {
                    None => "which no operand has",
                    Some(_) => "more than once",
                };
                return Err(wrong(
                    call,
                    format_args!("`{equation}` has {label} in its result, {why}"),
                ));
            }
        }
    }
    Ok(tensor(shape, dtype_of(call, equation, &operands)?))
}

/// A sum of one operand has the type that `sum` gives it.
fn dtype_of(
    call: &RuleCall<'_>,
    equation: &str,
    operands: &[&TensorMeta],
) -> Result<Option<DType>> {
    let common = promoted(operands);
    match (common, sums(equation), operands.len()) {
        (Some(dtype), true, 1) if !dtype.is_floating_point() => Ok(Some(DType::I64)),
        (Some(DType::Bool), true, 2..) => Err(wrong(
            call,
            "products of booleans have no sum: convert them with `to_dtype`",
        )),
        _ => Ok(common),
    }
}

/// How many dims an ellipsis stands for.
fn dots(labels: &[Label]) -> usize {
    let dots = labels.iter().filter_map(|label| match label {
        Label::Ellipsis(at) => Some(at + 1),
        Label::Letter(_) => None,
    });
    dots.max().unwrap_or(0)
}

/// The dims of the ellipsis, then the letters that occur once, in alphabetical order.
fn implicit(all: &[Label]) -> Vec<Label> {
    let is_once = |label: &&Label| all.iter().filter(|other| other == label).count() == 1;
    let mut letters: Vec<char> = all
        .iter()
        .filter(is_once)
        .filter_map(|label| match label {
            Label::Letter(letter) => Some(*letter),
            Label::Ellipsis(_) => None,
        })
        .collect();
    letters.sort_unstable();
    let dots = (0..dots(all)).rev().map(Label::Ellipsis);
    dots.chain(letters.into_iter().map(Label::Letter)).collect()
}

/// The labels of an operand of so many dims.
fn labels(call: &RuleCall<'_>, equation: &str, term: &str, rank: usize) -> Result<Vec<Label>> {
    let letters = term.replacen("...", "", 1);
    if let Some(other) = letters.chars().find(|c| !c.is_ascii_alphabetic()) {
        return Err(wrong(
            call,
            format_args!("`{other}` in `{equation}` is neither a letter nor `...`"),
        ));
    }
    let dots = rank.checked_sub(letters.len());
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    match dots {
        Some(dots) if dots == 0 || term.contains("...") => {
            let dots = (0..dots).rev().map(Label::Ellipsis);
            let before = before.chars().map(Label::Letter);
            let after = after.chars().map(Label::Letter);
            Ok(before.chain(dots).chain(after).collect())
        }
        _ => Err(wrong(
            call,
            format_args!(
                "`{term}` of `{equation}` names {} dims, and there are {rank}",
                letters.len()
            ),
        )),
    }
}

/// Adds a size to those of the labels; a size of 1 takes the other's.
fn join(
    call: &mut RuleCall<'_>,
    equation: &str,
    sizes: &mut Vec<(Label, Dim)>,
    label: Label,
    size: &Dim,
) -> Result<()> {
    match sizes.iter_mut().find(|(known, _)| *known == label) {
        None => sizes.push((label, size.clone())),
        Some((_, known)) if *known == 1 => *known = size.clone(),
        Some(_) if *size == 1 => {}
        Some((_, known)) => call.same(known, size, || format!("{label} of `{equation}`"))?,
    }
    Ok(())
}
