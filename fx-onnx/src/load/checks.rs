//! What operators ask of their inputs and attributes, before a rule reads them.
//!
//! Invariant: a rule finds the dims and the numbers that its operator has by onnx's definition.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;

use super::node::NodeCx;
use super::value::V;

/// The largest number of an attribute: two of them have a product.
const LARGEST: i64 = 1 << 31;

/// Refuses a node whose inputs or attributes are not those of its operator.
pub(super) fn check(cx: &NodeCx<'_>) -> Result<()> {
    let op = &*cx.node.op_type;
    if !matches!(op, "Slice" | "Constant" | "ConstantOfShape") {
        for attribute in &cx.node.attribute {
            let numbers = attribute.ints.iter().chain(&attribute.i);
            if let Some(number) = numbers.copied().find(|n| !(-LARGEST..=LARGEST).contains(n)) {
                return Err(Error::msg(format_args!(
                    "the attribute `{}` is {number}",
                    attribute.name
                )));
            }
        }
    }
    match op {
        "Conv" | "ConvInteger" | "QLinearConv" | "DeformConv" | "ConvTranspose" => {
            let weight = if op == "QLinearConv" { 3 } else { 1 };
            windows(cx)?;
            if let (Ok(x), Ok(w)) = (cx.rank(0), cx.rank(weight))
                && (x != w || x < 3)
            {
                return Err(Error::msg(format_args!(
                    "an input of {x} dims and a weight of {w}"
                )));
            }
            at_least(cx, "group", 1)
        }
        "MaxPool" | "AveragePool" | "LpPool" | "MaxUnpool" => {
            if cx
                .ints("kernel_shape")
                .is_none_or(|kernel| kernel.is_empty())
            {
                return Err(Error::msg("`kernel_shape` is missing"));
            }
            windows(cx)
        }
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" | "InstanceNormalization" => {
            rank(cx, 0, 3..)
        }
        "BatchNormalization" | "SoftmaxCrossEntropyLoss" => rank(cx, 0, 2..),
        "LRN" => {
            pieces(cx, Some(1))?;
            rank(cx, 0, 2..)
        }
        "GroupNormalization" => {
            at_least(cx, "num_groups", 1)?;
            rank(cx, 0, 3..)
        }
        "NegativeLogLikelihoodLoss" => rank(cx, 0, 2..),
        "LSTM" | "GRU" | "RNN" => {
            pieces(cx, None)?;
            (0..3).try_for_each(|at| rank(cx, at, 3..4))
        }
        "DepthToSpace" | "SpaceToDepth" => {
            at_least(cx, "blocksize", 1)?;
            rank(cx, 0, 4..5)
        }
        // Places are made one by one.
        "OneHot" | "Pad" => {
            let numbers = cx.input(1).known_ints().unwrap_or_default();
            let most = numbers.iter().map(|n| n.unsigned_abs()).max().unwrap_or(0);
            match most > cx.reader.limits.constant_bytes as u64 / 8 {
                true => Err(too_large(most.saturating_mul(8))),
                false => Ok(()),
            }
        }
        "Split" => {
            let outputs = cx.node.output.len() as i64;
            match cx.int("num_outputs", outputs) == outputs {
                true => Ok(()),
                false => Err(Error::msg("other pieces than outputs")),
            }
        }
        "SplitToSequence" => pieces(cx, None),
        "GatherND" | "ScatterND" => {
            let batch = cx.int("batch_dims", 0);
            let (x, places) = (cx.known_shape(0)?, cx.known_shape(1)?);
            let depth = places.last().copied().unwrap_or(usize::MAX);
            let fits = usize::try_from(batch).ok().and_then(|batch| {
                let dims = batch.checked_add(depth)?;
                (dims <= x.len() && batch < places.len()).then_some(())
            });
            fits.ok_or_else(|| {
                Error::msg(format_args!(
                    "places {places:?} of {x:?}, of which {batch} dims are the batch"
                ))
            })
        }
        _ => Ok(()),
    }
}

/// Refuses an input of which each step or channel would be calls of its own, if these are too many.
fn pieces(cx: &NodeCx<'_>, dim: Option<usize>) -> Result<()> {
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

fn at_least(cx: &NodeCx<'_>, name: &str, least: i64) -> Result<()> {
    match cx.int(name, least) >= least {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "`{name}` is {}",
            cx.int(name, least)
        ))),
    }
}

/// Refuses an input that is known to have another number of dims.
fn rank(cx: &NodeCx<'_>, at: usize, range: impl std::ops::RangeBounds<usize>) -> Result<()> {
    match cx.rank(at) {
        Ok(rank) if !range.contains(&rank) => {
            Err(Error::msg(format_args!("input {at} has {rank} dims")))
        }
        _ => Ok(()),
    }
}

/// Attributes of windows: one number a dim, two for margins.
fn windows(cx: &NodeCx<'_>) -> Result<()> {
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

/// Operators whose results share the elements of their input.
const VIEWS: [&str; 10] = [
    "Expand",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
    "Dropout",
];

/// The elements of a shape.
fn count(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|size| *size as u64);
    sizes.fold(1, u64::saturating_mul)
}

/// The shapes of the inputs, if all of them are constants: then a rule computes its result at once.
fn constants(cx: &NodeCx<'_>) -> Option<Vec<Vec<usize>>> {
    let given = cx.inputs.iter().filter(|v| !v.is_absent());
    let shapes = given.map(|v| match v {
        V::Tensor(tensor, _) if Object::proxy(tensor).is_none() => {
            tensor.dims().ok().map(<[usize]>::to_vec)
        }
        V::Ints(items, _) => Some(vec![items.len()]),
        _ => None,
    });
    shapes.collect()
}

/// Refuses a constant that would be made of numbers of the file and be larger than the limit.
pub(super) fn room(cx: &NodeCx<'_>) -> Result<()> {
    let op = &*cx.node.op_type;
    let Some(shapes) = constants(cx) else {
        return Ok(());
    };
    let numbers = |at: usize| -> Vec<i64> {
        let is_short = shapes.get(at).is_some_and(|shape| count(shape) <= 64);
        match is_short {
            true => cx.input(at).known_ints().unwrap_or_default(),
            false => Vec::new(),
        }
    };
    let product = |all: &[i64]| {
        all.iter()
            .fold(1u64, |n, size| n.saturating_mul(size.unsigned_abs()))
    };
    let first = shapes.first().map_or(1, |shape| count(shape));
    let made = match op {
        "Pad" => {
            let pads = numbers(1);
            let most = pads
                .iter()
                .chain(cx.ints("pads").iter().flatten())
                .map(|n| n.unsigned_abs())
                .max();
            let most = most.unwrap_or(0).saturating_mul(2);
            let sizes = shapes.first().map_or(&[][..], Vec::as_slice).iter();
            sizes.fold(1u64, |n, size| {
                n.saturating_mul(most.saturating_add(*size as u64))
            })
        }
        "Tile" => first.saturating_mul(product(&numbers(1))),
        "CenterCropPad" | "Expand" => product(&numbers(1)).max(first),
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => product(&numbers(0)),
        "OneHot" => first.saturating_mul(product(&numbers(1))),
        "RandomNormal" | "RandomUniform" => product(&cx.ints("shape").unwrap_or_default()),
        "MaxUnpool" | "ConvTranspose" => {
            product(&cx.ints("output_shape").unwrap_or_default()).max(product(&numbers(2)))
        }
        "Col2Im" => first.saturating_mul(product(&numbers(1))),
        "EyeLike" | "ConstantOfShape" | "Range" | "Constant" => first,
        // Sizes that broadcast, rows by columns, elements for each index.
        _ if shapes.len() > 1 => {
            let most = shapes.iter().map(Vec::len).max().unwrap_or(0);
            let wide = (0..most).map(|at| {
                let sizes = shapes.iter().filter_map(|shape| shape.iter().rev().nth(at));
                sizes.max().copied().unwrap_or(1)
            });
            let wide = count(&wide.collect::<Vec<usize>>());
            match op {
                "MatMul" | "Gemm" | "Gather" | "Einsum" | "MatMulInteger" => shapes
                    .iter()
                    .fold(1, |n, shape| count(shape).saturating_mul(n))
                    .min(wide.saturating_mul(wide)),
                _ => wide,
            }
        }
        _ => first,
    };
    let given: u64 = shapes.iter().map(|shape| count(shape)).sum();
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

/// Counts the bytes of constants, sizes and sequences that nodes make; those of the file may be made into others of a few
/// times the size.
pub(super) fn spent(cx: &NodeCx<'_>, given: &[V]) -> Result<()> {
    if VIEWS.contains(&&*cx.node.op_type) {
        return Ok(());
    }
    let mut bytes = cx.reader.spent.get();
    for v in given {
        let own = match v {
            V::Tensor(tensor, _) if Object::proxy(tensor).is_none() => {
                let width = v.dtype().map_or(8, DType::size_in_bytes) as u64;
                tensor.dims().map_or(1, count).saturating_mul(width)
            }
            V::Ints(items, _) => (items.len() * size_of::<Int>()) as u64,
            V::Seq(items) => (items.len() * size_of::<V>()) as u64,
            V::Tensor(..) | V::Absent => 0,
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
