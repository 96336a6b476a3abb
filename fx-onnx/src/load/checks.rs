//! What entries of the table ask of inputs and attributes, before a rule reads them, and how much may be made of constants.
//!
//! Invariant: a rule finds the dims and the numbers that its operator has by onnx's definition.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;

use super::node::NodeCx;
use super::value::V;

/// The largest number of an attribute: two of them have a product.
const LARGEST: i64 = 1 << 31;

/// Refuses attributes that are no sizes.
pub(super) fn numbers(cx: &NodeCx<'_>) -> Result<()> {
    for attribute in &cx.node.attribute {
        let numbers = attribute.ints.iter().chain(&attribute.i);
        if let Some(number) = numbers.copied().find(|n| !(-LARGEST..=LARGEST).contains(n)) {
            return Err(Error::msg(format_args!(
                "the attribute `{}` is {number}",
                attribute.name
            )));
        }
    }
    Ok(())
}

/// Refuses places that are made one by one and are too many, by the numbers of an input.
pub(super) fn places(cx: &NodeCx<'_>, at: usize) -> Result<()> {
    let numbers = cx.input(at).known_ints().unwrap_or_default();
    let most = numbers.iter().map(|n| n.unsigned_abs()).max().unwrap_or(0);
    match most > cx.reader.limits.constant_bytes as u64 / 8 {
        true => Err(too_large(most.saturating_mul(8))),
        false => Ok(()),
    }
}

/// Refuses an input of which each step or channel would be calls of its own, if these are too many.
pub(super) fn pieces(cx: &NodeCx<'_>, dim: Option<usize>) -> Result<()> {
    let shape = cx.shape(0).unwrap_or_default();
    let known = shape
        .iter()
        .enumerate()
        .filter(|(at, _)| dim.is_none_or(|dim| dim == *at));
    let most = known.filter_map(|(_, size)| size.as_number()).max();
    match most {
        Some(most) if most > 1 << 14 => Err(Error::msg(format_args!(
            "{most} steps, each of which would be calls of its own"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn at_least(cx: &NodeCx<'_>, name: &str, least: i64) -> Result<()> {
    match cx.int(name, least) >= least {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "`{name}` is {}",
            cx.int(name, least)
        ))),
    }
}

/// Refuses an input that is known to have another number of dims.
pub(super) fn rank(
    cx: &NodeCx<'_>,
    at: usize,
    range: impl std::ops::RangeBounds<usize>,
) -> Result<()> {
    match cx.rank(at) {
        Ok(rank) if !range.contains(&rank) => {
            Err(Error::msg(format_args!("input {at} has {rank} dims")))
        }
        _ => Ok(()),
    }
}

/// Attributes of windows: one number a dim, two for margins.
pub(super) fn windows(cx: &NodeCx<'_>) -> Result<()> {
    rank(cx, 0, 3..)?;
    let Ok(dims) = cx.rank(0).map(|rank| rank - 2) else {
        return Ok(());
    };
    let each = [
        ("kernel_shape", dims, 1),
        ("strides", dims, 1),
        ("dilations", dims, 1),
        ("pads", 2 * dims, 0),
        ("output_padding", dims, 0),
    ];
    for (name, count, least) in each {
        let Some(numbers) = cx.ints(name) else {
            continue;
        };
        if !numbers.is_empty() && numbers.len() != count || numbers.iter().any(|n| *n < least) {
            return Err(Error::msg(format_args!(
                "`{name}` is {numbers:?} for {dims} dims"
            )));
        }
    }
    match cx.ints("output_shape") {
        Some(shape) if shape.len() < dims || shape.iter().any(|n| *n < 0) => Err(Error::msg(
            format_args!("`output_shape` is {shape:?} for {dims} dims"),
        )),
        _ => Ok(()),
    }
}

/// The elements of a shape.
fn count(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|size| *size as u64);
    sizes.fold(1, u64::saturating_mul)
}

/// A node whose inputs are all constants: its rule computes the result at once.
pub(super) struct Constants<'c> {
    cx: &'c NodeCx<'c>,
    shapes: Vec<Vec<usize>>,
}

impl<'c> Constants<'c> {
    fn of(cx: &'c NodeCx<'c>) -> Option<Self> {
        let given = cx.inputs.iter().filter(|v| !v.is_absent());
        let shapes = given.map(|v| match v {
            V::Tensor(tensor, _) if Object::proxy(tensor).is_none() => {
                tensor.dims().ok().map(<[usize]>::to_vec)
            }
            V::Ints(items, _) => Some(vec![items.len()]),
            _ => None,
        });
        let shapes = shapes.collect::<Option<_>>()?;
        Some(Constants { cx, shapes })
    }

    /// The numbers of a short input.
    fn numbers(&self, at: usize) -> Vec<i64> {
        let is_short = self.shapes.get(at).is_some_and(|shape| count(shape) <= 64);
        match is_short {
            true => self.cx.input(at).known_ints().unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// The sizes of the first input.
    pub fn sizes(&self) -> &[usize] {
        self.shapes.first().map_or(&[], Vec::as_slice)
    }

    /// The elements of the first input.
    pub fn first(&self) -> u64 {
        self.shapes.first().map_or(1, |shape| count(shape))
    }

    /// The product of the numbers of an input.
    pub fn product(&self, at: usize) -> u64 {
        product(&self.numbers(at))
    }

    /// The product of the numbers of an attribute.
    pub fn attribute(&self, name: &str) -> u64 {
        product(&self.cx.ints(name).unwrap_or_default())
    }

    /// The largest of the numbers of an input and of an attribute.
    pub fn largest(&self, at: usize, name: &str) -> u64 {
        let given = self.numbers(at).into_iter();
        let all = given.chain(self.cx.ints(name).into_iter().flatten());
        all.map(i64::unsigned_abs).max().unwrap_or(0)
    }

    /// Sizes that broadcast.
    fn wide(&self) -> u64 {
        wide(&self.shapes.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The rows of matrices by the columns of others.
    pub fn matrices(&self) -> u64 {
        let [a, b, ..] = &*self.shapes else {
            return self.first();
        };
        let (left, a) = a.split_at(a.len().saturating_sub(2));
        let (right, b) = b.split_at(b.len().saturating_sub(2));
        let rows = if a.len() == 2 { a[0] } else { 1 };
        let columns = if b.len() == 2 { b[1] } else { 1 };
        wide(&[left, right]).saturating_mul(count(&[rows, columns]))
    }

    /// Rows by columns, or elements for each index.
    pub fn products(&self) -> u64 {
        if self.shapes.len() < 2 {
            return self.first();
        }
        let each = self.shapes.iter().map(|shape| count(shape));
        let wide = self.wide();
        each.fold(1, u64::saturating_mul)
            .min(wide.saturating_mul(wide))
    }
}

/// The elements of shapes that are broadcast.
fn wide(shapes: &[&[usize]]) -> u64 {
    let most = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let wide = (0..most).map(|at| {
        let sizes = shapes.iter().filter_map(|shape| shape.iter().rev().nth(at));
        sizes.max().copied().unwrap_or(1)
    });
    count(&wide.collect::<Vec<usize>>())
}

fn product(all: &[i64]) -> u64 {
    let sizes = all.iter().map(|size| size.unsigned_abs());
    sizes.fold(1, u64::saturating_mul)
}

/// Refuses a constant that would be made of numbers of the file and be larger than the limit.
pub(super) fn room(cx: &NodeCx<'_>, made: Option<fn(&Constants<'_>) -> u64>) -> Result<()> {
    let Some(constants) = Constants::of(cx) else {
        return Ok(());
    };
    let made = match made {
        Some(made) => made(&constants),
        None if constants.shapes.len() > 1 => constants.wide(),
        None => constants.first(),
    };
    let given: u64 = constants.shapes.iter().map(|shape| count(shape)).sum();
    let limit = cx.reader.limits.constant_bytes as u64 / 8;
    match made > limit.max(given.saturating_mul(2)) {
        true => Err(too_large(made.saturating_mul(8))),
        false => Ok(()),
    }
}

fn too_large(bytes: u64) -> Error {
    Error::msg(format_args!(
        "constants that would take {bytes} bytes are made of numbers of the file: raise `Limits::constant_bytes` if that is meant"
    ))
}

/// Counts the bytes of constants, sizes and sequences that nodes make, other than views; those of the file may be made into others of a few
/// times the size.
pub(super) fn spent(cx: &NodeCx<'_>, given: &[V]) -> Result<()> {
    let mut bytes = cx.reader.spent.get();
    for v in given {
        let own = match v {
            V::Tensor(tensor, _) if Object::proxy(tensor).is_none() => {
                let width = v.dtype().map_or(8, DType::size_in_bytes) as u64;
                tensor.dims().map_or(1, count).saturating_mul(width)
            }
            V::Ints(items, _) => (items.len() * size_of::<Int>()) as u64,
            V::Seq(items) => (items.len() * size_of::<V>()) as u64,
            V::Texts(texts) => {
                let items = texts.items().unwrap_or_default();
                let letters = items.iter().map(|text| text.len() as u64);
                letters.fold(size_of_val(items) as u64, u64::saturating_add)
            }
            V::Tensor(..) | V::Sizes(_) | V::List(..) | V::Host(_) | V::Absent => 0,
        };
        bytes = bytes.saturating_add(own);
    }
    cx.reader.spent.set(bytes);
    let limit = cx.reader.limits.constant_bytes as u64;
    match bytes > limit.saturating_add(cx.reader.file_bytes.saturating_mul(4)) {
        true => Err(too_large(bytes)),
        false => Ok(()),
    }
}
