//! Einstein's summation: products of tensors whose dimensions are named by letters.

use std::fmt;

use candle_core::{Result, Tensor, bail};

use super::expand;
use super::matmul::matmul;
use super::reduce;
use super::widen::{is_half, widened};
use crate::room;

/// A dimension's name: a letter, or one of those that an ellipsis stands for, counted from the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// Written in the equation.
    Letter(char),
    /// So many dims from the last one of the ellipsis.
    Ellipsis(usize),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Letter(letter) => write!(f, "`{letter}`"),
            Label::Ellipsis(_) => f.write_str("`...`"),
        }
    }
}

/// `equation` over `xs`, as `torch.einsum`: `"bij,bjk->bik"`; a label of size 1 broadcasts.
///
/// # Errors
/// Returns an error if the equation is malformed, or does not fit the shapes.
pub fn einsum(equation: &str, xs: &[Tensor]) -> Result<Tensor> {
    if let Some(first) = xs.first()
        && is_half(first.dtype())
        && xs.iter().all(|x| x.dtype() == first.dtype())
    {
        return widened(first, xs, |xs| einsum(equation, &xs));
    }
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (text.as_str(), None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != xs.len() {
        bail!(
            "einsum: `{equation}` names {} operands and {} are given",
            inputs.len(),
            xs.len()
        )
    }
    let mut terms = Vec::with_capacity(xs.len());
    for (term, x) in inputs.iter().zip(xs) {
        terms.push(labels(equation, term, Some(x.dims()))?);
    }
    let output = match output {
        Some(output) => {
            let dots = terms.iter().flatten().filter_map(|label| match label {
                Label::Ellipsis(at) => Some(at + 1),
                Label::Letter(_) => None,
            });
            expand_output(equation, output, dots.max().unwrap_or(0))?
        }
        None => implicit_output(&terms),
    };
    if let Some(label) = output
        .iter()
        .find(|l| !terms.iter().flatten().any(|t| t == *l))
    {
        bail!("einsum: `{equation}` has {label} in its result, which no operand has")
    }
    let sizes = sizes(equation, &terms, xs)?;
    let size_of = |label: &Label| {
        sizes
            .iter()
            .find(|(l, _)| l == label)
            .map_or(1, |(_, n)| *n)
    };

    // Each operand alone: repeated labels become diagonals, sizes broadcast, labels that nothing
    // else has are summed.
    let mut held: Option<(Vec<Label>, Tensor)> = None;
    for (at, (term, x)) in terms.iter().zip(xs).enumerate() {
        let (mut own, mut x) = diagonals(term, x)?;
        let wanted: Vec<usize> = own.iter().map(size_of).collect();
        if wanted != x.dims() {
            x = expand::to(&x, &wanted)?;
        }
        let later = &terms[at + 1..];
        let needed =
            |label: &Label| output.contains(label) || later.iter().any(|term| term.contains(label));
        let alone = |label: &Label| {
            !needed(label) && held.as_ref().is_none_or(|(all, _)| !all.contains(label))
        };
        let dims: Vec<usize> = (0..own.len()).filter(|&i| alone(&own[i])).collect();
        x = reduce::sum(&x, &dims, false)?;
        own.retain(|label| !alone(label));
        held = Some(match held.take() {
            None => (own, x),
            Some((all, y)) => product((&all, &y), (&own, &x), needed, size_of)?,
        });
    }
    let Some((labels, y)) = held else {
        bail!("einsum: there are no operands")
    };
    let order = output
        .iter()
        .filter_map(|label| labels.iter().position(|l| l == label))
        .collect::<Vec<_>>();
    if order.len() != output.len() || order.len() != labels.len() {
        bail!("einsum: `{equation}` names a dimension of its result twice")
    }
    y.permute(order)?.contiguous()
}

/// Whether a dim of an operand is summed over: it is not in the result.
pub fn sums(equation: &str) -> bool {
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let letters = || inputs.chars().filter(char::is_ascii_alphabetic);
    match output {
        Some(output) => {
            letters().any(|c| !output.contains(c))
                || (inputs.contains("...") && !output.contains("..."))
        }
        None => letters().any(|c| inputs.matches(c).count() > 1),
    }
}

/// The labels of one operand; an ellipsis stands for as many dims as its letters leave.
fn labels(equation: &str, term: &str, dims: Option<&[usize]>) -> Result<Vec<Label>> {
    let rank = dims.map_or(0, <[usize]>::len);
    let letters = term.replacen("...", "", 1);
    if let Some(other) = letters.chars().find(|c| !c.is_ascii_alphabetic()) {
        bail!("einsum: `{other}` in `{equation}` is neither a letter nor `...`")
    }
    let Some((before, after)) = term.split_once("...") else {
        if term.len() != rank {
            bail!(
                "einsum: `{term}` of `{equation}` names {} dims, and the operand has shape {:?}",
                term.len(),
                dims.unwrap_or_default()
            )
        }
        return Ok(term.chars().map(Label::Letter).collect());
    };
    let Some(dots) = rank.checked_sub(letters.len()) else {
        bail!(
            "einsum: `{term}` of `{equation}` names {} dims, and the operand has shape {:?}",
            letters.len(),
            dims.unwrap_or_default()
        )
    };
    Ok(before
        .chars()
        .map(Label::Letter)
        .chain((0..dots).rev().map(Label::Ellipsis))
        .chain(after.chars().map(Label::Letter))
        .collect())
}

fn expand_output(equation: &str, output: &str, dots: usize) -> Result<Vec<Label>> {
    let letters = output.replacen("...", "", 1).len();
    let rank = letters + if output.contains("...") { dots } else { 0 };
    labels(equation, output, Some(&vec![1; rank]))
}

/// Without `->`: the dims of the ellipsis, then the letters that occur once, in alphabetical order.
fn implicit_output(terms: &[Vec<Label>]) -> Vec<Label> {
    let all: Vec<Label> = terms.iter().flatten().copied().collect();
    let mut letters: Vec<char> = Vec::new();
    let mut dots = 0;
    for label in &all {
        match label {
            Label::Ellipsis(at) => dots = dots.max(at + 1),
            Label::Letter(c) if all.iter().filter(|l| *l == label).count() == 1 => {
                letters.push(*c);
            }
            Label::Letter(_) => {}
        }
    }
    letters.sort_unstable();
    let dots = (0..dots).rev().map(Label::Ellipsis);
    dots.chain(letters.into_iter().map(Label::Letter)).collect()
}

/// The size of every label.
fn sizes(equation: &str, terms: &[Vec<Label>], xs: &[Tensor]) -> Result<Vec<(Label, usize)>> {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for (term, x) in terms.iter().zip(xs) {
        for (at, (label, &size)) in term.iter().zip(x.dims()).enumerate() {
            // A diagonal does not broadcast.
            let before = term[..at].iter().position(|own| own == label);
            if let Some(before) = before.filter(|before| x.dims()[*before] != size) {
                let own = x.dims()[before];
                bail!(
                    "einsum: {label} of `{equation}` is {own} and {size} in one operand {:?}",
                    x.dims()
                )
            }
            match sizes.iter_mut().find(|(l, _)| l == label) {
                None => sizes.push((*label, size)),
                Some((_, known)) if *known == 1 => *known = size,
                Some((_, known)) if size == 1 || *known == size => {}
                Some((_, known)) => {
                    let shapes: Vec<_> = xs.iter().map(Tensor::dims).collect();
                    bail!(
                        "einsum: {label} of `{equation}` is {known} and {size} in shapes {shapes:?}"
                    )
                }
            }
        }
    }
    Ok(sizes)
}

/// An operand with each label once: of two dims of one label the diagonal.
fn diagonals(term: &[Label], x: &Tensor) -> Result<(Vec<Label>, Tensor)> {
    let (mut term, mut x) = (term.to_vec(), x.clone());
    loop {
        let twice = (0..term.len()).find_map(|i| {
            (i + 1..term.len())
                .find(|&j| term[j] == term[i])
                .map(|j| (i, j))
        });
        let Some((i, j)) = twice else {
            return Ok((term, x));
        };
        let size = x.dims()[i].min(x.dims()[j]);
        // Both dims to the front, as one, of which every (n + 1)-th element is on the diagonal.
        let rest = (0..x.rank()).filter(|&d| d != i && d != j);
        let order: Vec<usize> = [i, j].into_iter().chain(rest).collect();
        let moved = x.permute(order)?.contiguous()?;
        let (rows, columns) = (moved.dims()[0], moved.dims()[1]);
        let mut shape = moved.dims()[2..].to_vec();
        shape.insert(0, rows * columns);
        let step = columns + 1;
        let at: Vec<u32> = (0..size).map(|k| (k * step) as u32).collect();
        let at = Tensor::from_vec(at, size, x.device())?;
        x = moved.reshape(shape)?.index_select(&at, 0)?;
        let label = term[i];
        term.remove(j);
        term.remove(i);
        term.insert(0, label);
    }
}

/// The batched matrix product of two operands.
fn product(
    (a_labels, a): (&[Label], &Tensor),
    (b_labels, b): (&[Label], &Tensor),
    needed: impl Fn(&Label) -> bool,
    size_of: impl Fn(&Label) -> usize,
) -> Result<(Vec<Label>, Tensor)> {
    let shared = |l: &&Label| b_labels.contains(l);
    let batch: Vec<Label> = a_labels
        .iter()
        .filter(shared)
        .filter(|l| needed(l))
        .copied()
        .collect();
    let inner: Vec<Label> = a_labels
        .iter()
        .filter(shared)
        .filter(|l| !needed(l))
        .copied()
        .collect();
    let left: Vec<Label> = a_labels.iter().filter(|l| !shared(l)).copied().collect();
    let right: Vec<Label> = b_labels
        .iter()
        .filter(|l| !a_labels.contains(l))
        .copied()
        .collect();
    let labels: Vec<Label> = [batch.as_slice(), &left, &right].concat();
    let shape: Vec<usize> = labels.iter().map(&size_of).collect();
    room::of("einsum", &shape, a.dtype())?;
    let count = |labels: &[Label]| labels.iter().map(&size_of).product::<usize>();
    let arranged = |own: &[Label], x: &Tensor, groups: [&[Label]; 3]| -> Result<Tensor> {
        let order: Vec<usize> = groups
            .iter()
            .flat_map(|group| group.iter())
            .filter_map(|label| own.iter().position(|l| l == label))
            .collect();
        x.permute(order)?.contiguous()?.reshape((
            count(groups[0]),
            count(groups[1]),
            count(groups[2]),
        ))
    };
    let y = matmul(
        &arranged(a_labels, a, [&batch, &left, &inner])?,
        &arranged(b_labels, b, [&batch, &inner, &right])?,
    )?;
    Ok((labels, y.reshape(shape)?))
}
