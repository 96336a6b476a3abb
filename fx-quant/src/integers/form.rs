//! What a call is in a graph of integers, by the calls around it.
//!
//! Invariant: a call that has a form has all that its step needs as constants.

use std::borrow::Cow;

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::value::DType;
use fx_core::{function, operator};
use fx_kernels::integer::{IntegerSpec, Windows};
use fx_nn::ops;

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// Floats as integers.
    Quantize,
    /// Integers as floats.
    Dequantize,
    /// The integers of a weight as floats.
    Weight,
    /// A product with a weight, of rows or of images.
    Linear,
    Conv(Steps),
    /// A sum of two.
    Add,
    /// What holds a value between two bounds.
    Bound(f64, f64),
    MaxPool(Windows),
    /// A mean of windows, and whether what is beside the image counts.
    AveragePool(Windows, bool),
    /// A mean of all pixels.
    Mean,
    /// The same elements in another shape.
    View,
}

/// The steps of a convolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steps {
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

impl Steps {
    /// With the sizes of a weight `[out, in / groups, rows, pixels]`.
    pub fn spec(&self, dims: &[usize]) -> Option<IntegerSpec> {
        let &[out_channels, own, rows, pixels] = dims else {
            return None;
        };
        let spec = IntegerSpec {
            in_channels: own * self.groups,
            out_channels,
            kernel: [rows, pixels],
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
        };
        spec.is_supported().then_some(spec)
    }
}

type Found<T> = std::result::Result<T, Cow<'static, str>>;

fn input<'g>(node: NodeRef<'g>, name: &str) -> Found<NodeRef<'g>> {
    match node.argument(name) {
        Ok(Argument::Node(id)) => node
            .graph()
            .node(id)
            .map_err(|error| error.to_string().into()),
        _ => Err(format!("`{name}` is not one tensor").into()),
    }
}

fn is_call(node: NodeRef<'_>, function: fx_core::ir::Function) -> bool {
    node.function() == Some(function)
}

/// Whether a node's floats are what integers of the graph stand for.
fn is_of_bytes(node: NodeRef<'_>) -> bool {
    is_call(node, function!(ops::dequantize_affine))
        && input(node, "x")
            .is_ok_and(|x| is_call(x, function!(ops::quantize_affine)) && scale_of(x).is_some())
}

/// The scale and zero point of a pair's half, if they are numbers.
pub(super) fn scale_of(node: NodeRef<'_>) -> Option<(f64, i64)> {
    let scale = match node.argument("scale").ok()? {
        Argument::Float(scale) => scale,
        _ => return None,
    };
    let zero_point = match node.argument("zero_point").ok()? {
        Argument::Int(zero_point) => zero_point,
        _ => return None,
    };
    Some((scale, zero_point))
}

/// The integers of a quantization: the type, the least and the largest one.
pub(super) fn range_of(node: NodeRef<'_>) -> Option<(DType, i64, i64)> {
    let whole = |name: &str| match node.argument(name).ok()? {
        Argument::Int(whole) => Some(whole),
        _ => None,
    };
    match node.argument("dtype").ok()? {
        Argument::DType(dtype @ (DType::U8 | DType::I8)) => {
            Some((dtype, whole("quant_min")?, whole("quant_max")?))
        }
        _ => None,
    }
}

fn two(node: NodeRef<'_>, name: &str) -> Found<[usize; 2]> {
    let argument = node.argument(name).map_err(|error| error.to_string())?;
    let one = |argument: &Argument| match argument {
        Argument::Int(size) => usize::try_from(*size).ok(),
        _ => None,
    };
    let found = match &argument {
        Argument::Int(_) => one(&argument).map(|size| [size; 2]),
        Argument::Tuple(items) | Argument::List(items) => match &items[..] {
            [size] => one(size).map(|size| [size; 2]),
            [a, b] => one(a).zip(one(b)).map(|(a, b)| [a, b]),
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| format!("`{name}` is not of two known sizes").into())
}

fn number(node: NodeRef<'_>, name: &str) -> Found<f64> {
    match node.argument(name) {
        Ok(Argument::Float(number)) => Ok(number),
        Ok(Argument::Int(number)) => Ok(number as f64),
        _ => Err(format!("`{name}` is not a known number").into()),
    }
}

fn whole(node: NodeRef<'_>, name: &str) -> Found<usize> {
    match node.argument(name) {
        Ok(Argument::Int(number)) => {
            usize::try_from(number).map_err(|error| error.to_string().into())
        }
        _ => Err(format!("`{name}` is not a known number").into()),
    }
}

fn only_reader(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    match node.num_users() {
        1 => node.users().next(),
        _ => None,
    }
}

/// Whether what a product or a sum gives is rounded: by its only reader, or by the only reader of a bound behind it.
fn is_rounded(node: NodeRef<'_>) -> bool {
    let Some(reader) = only_reader(node) else {
        return false;
    };
    let rounds = |node: NodeRef<'_>| {
        is_call(node, function!(ops::quantize_affine))
            && range_of(node).is_some()
            && scale_of(node).is_some()
    };
    if rounds(reader) {
        return true;
    }
    bounds(reader).is_some() && only_reader(reader).is_some_and(rounds)
}

fn bounds(node: NodeRef<'_>) -> Option<(f64, f64)> {
    let function = node.function()?;
    if function == function!(ops::relu) {
        return Some((0.0, f64::INFINITY));
    }
    if function == function!(ops::relu6) {
        return Some((0.0, 6.0));
    }
    if function == function!(ops::clamp) {
        let end = |name: &str, none: f64| match node.argument(name) {
            Ok(Argument::None) => Some(none),
            _ => number(node, name).ok(),
        };
        return Some((end("min", f64::NEG_INFINITY)?, end("max", f64::INFINITY)?));
    }
    if function == function!(ops::hardtanh) {
        return Some((number(node, "min_val").ok()?, number(node, "max_val").ok()?));
    }
    None
}

const IN_FLOATS: Cow<'static, str> = Cow::Borrowed("its input is in floats");
const NOT_ROUNDED: Cow<'static, str> = Cow::Borrowed("its result stays in floats");

impl Form {
    /// The form of a call, or why it has none.
    pub fn of(node: NodeRef<'_>) -> Found<Form> {
        let Some(function) = node.function() else {
            return Err("it has no form of integers".into());
        };
        if function == function!(ops::quantize_affine) {
            return match (range_of(node), scale_of(node)) {
                (Some(_), Some(_)) => Ok(Form::Quantize),
                _ => {
                    Err("its integers have more than 8 bits, or a scale that a run decides".into())
                }
            };
        }
        if function == function!(ops::dequantize_affine) {
            if is_of_bytes(node) {
                return Ok(Form::Dequantize);
            }
            let is_weight = input(node, "x").is_ok_and(|x| matches!(x.op(), Op::GetAttr(_)));
            let is_read = node
                .users()
                .all(|user| matches!(Form::of(user), Ok(Form::Linear | Form::Conv(_))));
            return match is_weight && is_read {
                true => Ok(Form::Weight),
                false => Err("what reads it is in floats".into()),
            };
        }
        if function == function!(ops::linear) {
            Form::weighted(node)?;
            return Ok(Form::Linear);
        }
        if function == function!(ops::conv2d) {
            Form::weighted(node)?;
            if !is_rounded(node) {
                return Err(NOT_ROUNDED);
            }
            return Ok(Form::Conv(Steps {
                stride: two(node, "stride")?,
                padding: two(node, "padding")?,
                dilation: two(node, "dilation")?,
                groups: whole(node, "groups")?,
            }));
        }
        if function == operator::add {
            let mut inputs = node.all_input_nodes();
            let are_two = node
                .args()
                .iter()
                .all(|arg| matches!(arg, Argument::Node(_)));
            return match are_two && inputs.all(is_of_bytes) {
                false => Err(IN_FLOATS),
                true if is_rounded(node) => Ok(Form::Add),
                true => Err(NOT_ROUNDED),
            };
        }
        if let Some((low, high)) = bounds(node) {
            let x = input(node, "x")?;
            let of_pending = matches!(Form::of(x), Ok(Form::Linear | Form::Conv(_) | Form::Add))
                && is_rounded(x);
            return match of_pending || is_of_bytes(x) && is_rounded(node) {
                true => Ok(Form::Bound(low, high)),
                false => Err(IN_FLOATS),
            };
        }
        let form = Form::shared(node, function)?;
        if !is_of_bytes(input(node, "x")?) {
            return Err(IN_FLOATS);
        }
        match is_rounded(node) {
            true => Ok(form),
            false => Err(NOT_ROUNDED),
        }
    }

    /// What gives elements of its input, or means of them.
    fn shared(node: NodeRef<'_>, function: fx_core::ir::Function) -> Found<Form> {
        let windows = || -> Found<Windows> {
            let kernel = two(node, "kernel_size")?;
            let stride = match node.argument("stride") {
                Ok(Argument::None) => kernel,
                _ => two(node, "stride")?,
            };
            let padding = two(node, "padding")?;
            Ok(Windows {
                kernel,
                stride,
                padding,
            })
        };
        let is_off = |name: &str| matches!(node.argument(name), Ok(Argument::Bool(false)) | Err(_));
        if function == function!(ops::max_pool2d) {
            return match two(node, "dilation") == Ok([1, 1]) && is_off("ceil_mode") {
                true => Ok(Form::MaxPool(windows()?)),
                false => Err("its windows are apart inside".into()),
            };
        }
        if function == function!(ops::avg_pool2d) {
            let counts = matches!(node.argument("count_include_pad"), Ok(Argument::Bool(true)));
            let is_plain = matches!(
                node.argument("divisor_override"),
                Ok(Argument::None) | Err(_)
            );
            return match is_plain && is_off("ceil_mode") {
                true => Ok(Form::AveragePool(windows()?, counts)),
                false => Err("its windows go beyond the image".into()),
            };
        }
        if function == function!(ops::adaptive_avg_pool2d) {
            return match two(node, "output_size")? {
                [1, 1] => Ok(Form::Mean),
                _ => Err("its result has more than one pixel".into()),
            };
        }
        if function == function!(ops::flatten) {
            return Ok(Form::View);
        }
        Err("it has no form of integers".into())
    }

    /// Whether a product has a weight of integers, and an input of them.
    fn weighted(node: NodeRef<'_>) -> Found<()> {
        if !is_of_bytes(input(node, "x")?) {
            return Err(IN_FLOATS);
        }
        let weight = input(node, "weight")?;
        let of = |node: NodeRef<'_>| matches!(node.op(), Op::GetAttr(_));
        let is_of_integers = is_call(weight, function!(ops::dequantize_affine))
            && input(weight, "x").is_ok_and(of)
            && matches!(weight.argument("zero_point"), Ok(Argument::Int(0)))
            && matches!(
                weight.argument("axis"),
                Ok(Argument::None | Argument::Int(0))
            )
            && (matches!(weight.argument("scale"), Ok(Argument::Float(_)))
                || input(weight, "scale").is_ok_and(of));
        if !is_of_integers {
            return Err("its weight is not of integers with a scale for each channel".into());
        }
        match node.argument("bias") {
            Ok(Argument::None) => Ok(()),
            Ok(Argument::Node(_)) if of(input(node, "bias")?) => Ok(()),
            _ => Err("its bias is computed by the graph".into()),
        }
    }
}
