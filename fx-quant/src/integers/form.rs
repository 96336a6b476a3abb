//! What a call is in a graph of integers, by the calls around it.
//!
//! Invariant: a call that has a form has all that its step needs as constants.

use std::borrow::Cow;

use fx_core::ir::{Argument, Function, NodeRef, Op, ValueMeta};
use fx_core::module::Attributes;
use fx_core::value::DType;
use fx_core::{function, operator};
use fx_kernels::integer::{IntegerSpec, Windows};
use fx_nn::{OpKind, ops};

use super::affine::{Weight, constant, integers_of};
use super::read::{
    Found, bounds, input, is_call, is_matmul, is_off, is_rounding, kind_of, number, only_input,
    only_reader, operands, range_of, scale_of, two, two_nodes, whole, wholes,
};

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// Floats as integers.
    Quantize,
    /// The same by a scale and a zero point that a run decides.
    QuantizeOfRun,
    /// Integers as floats.
    Dequantize,
    /// The same by a scale or a zero point that a run decides, for a product.
    DequantizeOfRun,
    /// Integers of the module as floats: a weight, a bias, or a value beside others.
    Constant,
    /// A product of rows with a weight.
    Linear,
    Conv(IntegerSpec),
    /// A constant that is added to what a product gives.
    Bias,
    /// A number of a run that is multiplied with a product in floats.
    Scale,
    /// A constant that is added to that.
    BiasOfScaled,
    /// A sum of two.
    Add,
    /// A product of two, element by element.
    Mul,
    /// Several behind each other along a dim.
    Cat(i64),
    /// What holds a value between two bounds.
    Bound(f64, f64),
    /// A function of each element by itself.
    Each,
    MaxPool(Windows),
    /// Zeros around an image: above, below, left, right.
    Pad([usize; 4]),
    /// A mean of windows, and whether what is beside the image counts.
    AveragePool(Windows, bool),
    /// A mean of all pixels.
    Mean,
    /// The same elements in another shape or order.
    View,
}

const NO_FORM: Cow<'static, str> = Cow::Borrowed("it has no form of integers");
const IN_FLOATS: Cow<'static, str> = Cow::Borrowed("its input is in floats");
const NOT_ROUNDED: Cow<'static, str> = Cow::Borrowed("its result stays in floats");

/// The forms of the calls of a graph.
#[derive(Clone, Copy)]
pub(super) struct Forms<'g> {
    pub attributes: &'g Attributes,
}

impl Forms<'_> {
    /// The form of a call, or why it has none.
    pub fn of(self, node: NodeRef<'_>) -> Found<Form> {
        let function = node.function().ok_or(NO_FORM)?;
        if function == function!(ops::quantize_affine) {
            return match (is_rounding(node), range_of(node)) {
                (true, _) => Ok(Form::Quantize),
                (_, Some(_)) if is_of_one_scale(node) => Ok(Form::QuantizeOfRun),
                (_, Some(_)) => Err("it has several scales".into()),
                _ => Err("its integers have more than 8 bits".into()),
            };
        }
        if function == function!(ops::dequantize_affine) {
            return self.dequantize(node);
        }
        if function == function!(ops::linear) || is_matmul(node) {
            self.product(node)?;
            return Ok(Form::Linear);
        }
        if function == function!(ops::conv2d) || function == function!(ops::conv1d) {
            let spec = self.conv(node)?;
            // Groups of one channel each have no kernel that gives floats.
            let is_depthwise = spec.groups > 1 && spec.groups == spec.in_channels;
            return match self.is_rounded(node) || !is_depthwise {
                true => Ok(Form::Conv(spec)),
                false => Err(NOT_ROUNDED),
            };
        }
        if function == operator::add && self.product_of_sum(node).is_some() {
            return Ok(Form::Bias);
        }
        if self.scaled(node).is_some() {
            return Ok(Form::Scale);
        }
        if self.sum_of_scaled(node).is_some() {
            return Ok(Form::BiasOfScaled);
        }
        if let Some((low, high)) = bounds(node) {
            let x = input(node, "x")?;
            if self.is_pending(x) && self.is_rounded(x)
                || self.is_of_bytes(x) && only_reader(node).is_some_and(is_rounding)
            {
                return Ok(Form::Bound(low, high));
            }
        }
        if is_of_each(node) && self.begins_with_bytes(node) {
            return match is_rounded_behind_each(node) {
                true => Ok(Form::Each),
                false => Err(NOT_ROUNDED),
            };
        }
        let form = self.of_bytes(node, function)?;
        let is_exact = matches!(form, Form::View | Form::MaxPool(_) | Form::Pad(_));
        match is_exact || self.is_rounded(node) {
            true => Ok(form),
            false => Err(NOT_ROUNDED),
        }
    }

    fn dequantize(self, node: NodeRef<'_>) -> Found<Form> {
        if self.is_of_integers(node) {
            return Ok(Form::Dequantize);
        }
        let x = input(node, "x")?;
        if self.is_of_run(node) {
            let is_read = |user| self.product(user).is_ok() || self.conv(user).is_ok();
            return match node.users().any(is_read) {
                true => Ok(Form::DequantizeOfRun),
                false => Err("what reads it is in floats".into()),
            };
        }
        if !matches!(x.op(), Op::GetAttr(_)) {
            return Err("its integers have more than 8 bits".into());
        }
        let is_read = |user| {
            matches!(
                self.of(user),
                Ok(Form::Linear
                    | Form::Conv(_)
                    | Form::Bias
                    | Form::Add
                    | Form::Mul
                    | Form::Cat(_))
            )
        };
        match node.users().any(is_read) {
            true => Ok(Form::Constant),
            false => Err("what reads it is in floats".into()),
        }
    }

    /// What is computed of integers alone, and gives elements of its inputs or is rounded.
    fn of_bytes(self, node: NodeRef<'_>, function: Function) -> Found<Form> {
        if function == operator::add || function == operator::mul {
            let two = two_nodes(node).filter(|all| all.iter().all(|x| self.is_side(*x)));
            if two.is_some() {
                return Ok(match function == operator::add {
                    true => Form::Add,
                    false => Form::Mul,
                });
            }
        }
        if function == function!(ops::cat) {
            let are_sides = node.all_input_nodes().all(|x| self.is_side(x));
            let is_list = matches!(
                node.argument("tensors"),
                Ok(Argument::List(_) | Argument::Tuple(_))
            );
            return match are_sides && is_list {
                true => Ok(Form::Cat(whole(node, "dim")?)),
                false => Err(IN_FLOATS),
            };
        }
        let x = only_input(node).ok_or(IN_FLOATS)?;
        if kind_of(node) == Some(OpKind::View) && (self.is_integers(x) || self.is_of_bytes(x)) {
            return Ok(Form::View);
        }
        if !self.is_of_bytes(x) {
            return Err(IN_FLOATS);
        }
        windowed(node, function)
    }

    /// Whether a node's floats are what integers of the graph stand for.
    pub fn is_of_bytes(self, node: NodeRef<'_>) -> bool {
        let mut node = node;
        // What gives elements of its input keeps their scale.
        loop {
            if self.is_of_integers(node) {
                return true;
            }
            let Some(function) = node.function() else {
                return false;
            };
            let is_exact = kind_of(node) == Some(OpKind::View)
                || matches!(
                    windowed(node, function),
                    Ok(Form::MaxPool(_) | Form::Pad(_))
                );
            match only_input(node).filter(|_| is_exact) {
                Some(x) => node = x,
                None => return false,
            }
        }
    }

    /// Whether it gives the floats of integers, by numbers.
    fn is_of_integers(self, node: NodeRef<'_>) -> bool {
        is_call(node, function!(ops::dequantize_affine))
            && scale_of(node).is_some()
            && input(node, "x").is_ok_and(|x| self.is_integers(x))
    }

    /// Whether it gives the floats of integers, by a scale or a zero point that a run decides.
    fn is_of_run(self, node: NodeRef<'_>) -> bool {
        is_call(node, function!(ops::dequantize_affine))
            && scale_of(node).is_none()
            && is_of_one_scale(node)
            && input(node, "x").is_ok_and(|x| self.is_integers(x))
    }

    /// Whether a call is a product of what a run decides the scale of.
    pub fn is_product_of_run(self, node: NodeRef<'_>) -> bool {
        operands(node).is_ok_and(|(x, _)| self.is_of_run(x))
    }

    /// Whether a node gives integers of 8 bits, which are no constants.
    fn is_integers(self, node: NodeRef<'_>) -> bool {
        if is_call(node, function!(ops::quantize_affine)) {
            return range_of(node).is_some() && is_of_one_scale(node);
        }
        let meta: Option<&ValueMeta> = node.meta();
        let dtype = meta.and_then(|meta| meta.tensor()?.dtype);
        !matches!(node.op(), Op::GetAttr(_)) && matches!(dtype, Some(DType::U8 | DType::I8))
    }

    /// Whether it is of bytes, or a constant of them with one scale.
    fn is_side(self, node: NodeRef<'_>) -> bool {
        self.is_of_bytes(node)
            || is_call(node, function!(ops::dequantize_affine))
                && scale_of(node).is_some()
                && Weight::of(node, self.attributes).is_ok()
    }

    /// Whether it is a product or a sum that is not rounded yet.
    fn is_pending(self, node: NodeRef<'_>) -> bool {
        let is_sum = node.function().is_some_and(|function| {
            matches!(self.of_bytes(node, function), Ok(Form::Add | Form::Mul))
        });
        is_sum
            || self.product(node).is_ok()
            || self.conv(node).is_ok()
            || self.product_of_sum(node).is_some()
    }

    /// Whether what a call gives is rounded: by its only reader, or by the only reader behind a bias and a bound.
    pub fn is_rounded(self, node: NodeRef<'_>) -> bool {
        let Some(mut reader) = only_reader(node) else {
            return false;
        };
        if self.is_product_of_run(node) {
            return false;
        }
        if self.is_sum_with_bias(reader, node) {
            match only_reader(reader) {
                Some(next) => reader = next,
                None => return false,
            }
        }
        is_rounding(reader)
            || bounds(reader).is_some() && only_reader(reader).is_some_and(is_rounding)
    }

    /// Whether a call of each element is computed of bytes, behind others such.
    fn begins_with_bytes(self, node: NodeRef<'_>) -> bool {
        let mut node = node;
        while let Some(x) = node.all_input_nodes().next() {
            if self.is_of_bytes(x) {
                return true;
            }
            if !is_of_each(x) || x.num_users() != 1 {
                return false;
            }
            node = x;
        }
        false
    }

    /// Whether a node adds a constant vector to a product of rows.
    fn is_sum_with_bias(self, node: NodeRef<'_>, product: NodeRef<'_>) -> bool {
        let two = two_nodes(node).filter(|_| node.function() == Some(operator::add));
        let mut others = two
            .into_iter()
            .flatten()
            .filter(|one| one.id() != product.id());
        others
            .next()
            .is_some_and(|other| self.is_bias_of(other, product))
    }

    /// The product whose sum with a bias a node is.
    pub fn product_of_sum<'g>(self, node: NodeRef<'g>) -> Option<(NodeRef<'g>, NodeRef<'g>)> {
        let [a, b] = two_nodes(node)?;
        [(a, b), (b, a)].into_iter().find(|(product, bias)| {
            product.num_users() == 1
                && self.is_bias_of(*bias, *product)
                && self.is_rounded(*product)
        })
    }

    /// The product of rows that a node multiplies with one number of a run, and the number.
    pub fn scaled<'g>(self, node: NodeRef<'g>) -> Option<(NodeRef<'g>, NodeRef<'g>)> {
        let [a, b] = two_nodes(node).filter(|_| node.function() == Some(operator::mul))?;
        [(a, b), (b, a)].into_iter().find(|(product, scale)| {
            product.num_users() == 1
                && self.is_product_of_run(*product)
                && self.product(*product).is_ok_and(|_| !has_bias(*product))
                && is_one_float(*scale)
        })
    }

    /// The product that a node adds a bias to, behind its scale, and the bias.
    pub fn sum_of_scaled<'g>(self, node: NodeRef<'g>) -> Option<(NodeRef<'g>, NodeRef<'g>)> {
        let [a, b] = two_nodes(node).filter(|_| node.function() == Some(operator::add))?;
        [(a, b), (b, a)].into_iter().find(|(scaled, bias)| {
            let product = self.scaled(*scaled).filter(|_| scaled.num_users() == 1);
            product.is_some_and(|(product, _)| {
                let weight = self.product(product);
                let channels = weight.map(|weight| match is_matmul(product) {
                    true => weight.dims[1],
                    false => weight.dims[0],
                });
                channels.is_ok_and(|channels| self.is_bias(*bias, channels))
            })
        })
    }

    /// Whether a node gives a bias for a product of rows that has none.
    fn is_bias_of(self, node: NodeRef<'_>, product: NodeRef<'_>) -> bool {
        is_matmul(product)
            && (self.product(product)).is_ok_and(|weight| self.is_bias(node, weight.dims[1]))
    }

    /// Whether a node gives a bias for so many channels: a vector of the module, or the integers of one.
    fn is_bias(self, node: NodeRef<'_>, channels: usize) -> bool {
        let own = constant(node, self.attributes);
        let tensor = own.or_else(|| integers_of(node, self.attributes));
        tensor.is_some_and(|tensor| tensor.dims().is_ok_and(|dims| *dims == [channels]))
    }

    /// The weight of a product of rows, if it is one of integers.
    pub fn product(self, node: NodeRef<'_>) -> Found<Weight> {
        let is_linear = is_call(node, function!(ops::linear));
        if !is_linear && !is_matmul(node) {
            return Err(NO_FORM);
        }
        let (x, weight) = operands(node)?;
        if !self.is_of_bytes(x) && !self.is_of_run(x) {
            return Err(IN_FLOATS);
        }
        let weight = Weight::of(weight, self.attributes)?;
        if weight.dims.len() != 2 {
            return Err("its weight is no matrix".into());
        }
        if is_linear {
            self.bias(node, weight.dims[0])?;
            weight.along(0)?;
            return Ok(weight);
        }
        weight.along(1)?;
        Ok(weight)
    }

    fn bias(self, node: NodeRef<'_>, channels: usize) -> Found<()> {
        match node.argument("bias") {
            Ok(Argument::None) => Ok(()),
            Ok(Argument::Node(_)) if self.is_bias(input(node, "bias")?, channels) => Ok(()),
            _ => Err("its bias is computed by the graph".into()),
        }
    }

    /// The sizes and steps of a convolution with a weight of integers, of images or of rows.
    fn conv(self, node: NodeRef<'_>) -> Found<IntegerSpec> {
        let is_conv =
            is_call(node, function!(ops::conv2d)) || is_call(node, function!(ops::conv1d));
        if !is_conv {
            return Err(NO_FORM);
        }
        let (x, weight) = operands(node)?;
        if !self.is_of_bytes(x) && !self.is_of_run(x) {
            return Err(IN_FLOATS);
        }
        let weight = Weight::of(weight, self.attributes)?;
        weight.along(0)?;
        is_batch(x, weight.dims.len())?;
        self.bias(node, weight.dims.first().copied().unwrap_or(0))?;
        let groups = usize::try_from(whole(node, "groups")?).map_err(|error| error.to_string())?;
        let spec = match weight.dims[..] {
            [out_channels, own, rows, pixels] => IntegerSpec {
                in_channels: own * groups,
                out_channels,
                kernel: [rows, pixels],
                stride: two(node, "stride")?,
                padding: two(node, "padding")?,
                dilation: two(node, "dilation")?,
                groups,
            },
            // A row is an image of height 1.
            [out_channels, own, pixels] => IntegerSpec {
                in_channels: own * groups,
                out_channels,
                kernel: [1, pixels],
                stride: [1, two(node, "stride")?[1]],
                padding: [0, two(node, "padding")?[1]],
                dilation: [1, two(node, "dilation")?[1]],
                groups,
            },
            _ => return Err("its weight is none of images or rows".into()),
        };
        match spec.is_supported() {
            true => Ok(spec),
            false => Err("its groups have no kernel of integers".into()),
        }
    }
}

/// Whether a call computes each element of one tensor by itself, in floats.
fn is_of_each(node: NodeRef<'_>) -> bool {
    let Some(function) = node.function() else {
        return false;
    };
    let is_operator = [
        operator::add,
        operator::sub,
        operator::mul,
        operator::truediv,
        operator::neg,
    ];
    let meta: Option<&ValueMeta> = node.meta();
    let dtype = meta.and_then(|meta| meta.tensor()?.dtype);
    (matches!(kind_of(node), Some(OpKind::Unary | OpKind::Binary))
        || is_operator.contains(&function))
        && node.all_input_nodes().count() == 1
        && dtype.is_none_or(|dtype| dtype == DType::F32)
}

/// Whether what a call of each element gives is rounded, behind others such.
fn is_rounded_behind_each(node: NodeRef<'_>) -> bool {
    let mut node = node;
    while let Some(reader) = only_reader(node) {
        if is_rounding(reader) {
            return true;
        }
        if !is_of_each(reader) {
            return false;
        }
        node = reader;
    }
    false
}

/// What is computed of windows, or of all pixels.
fn windowed(node: NodeRef<'_>, function: Function) -> Found<Form> {
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
            ceil: !is_off(node, "ceil_mode"),
        })
    };
    let of_images = [
        function!(ops::max_pool2d),
        function!(ops::avg_pool2d),
        function!(ops::adaptive_avg_pool2d),
    ];
    if of_images.contains(&function) {
        is_batch(input(node, "x")?, 4)?;
    }
    if function == function!(ops::max_pool2d) {
        return match two(node, "dilation") == Ok([1, 1]) {
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
        return match is_plain && is_off(node, "ceil_mode") {
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
    if function == function!(ops::mean) {
        let x = input(node, "x")?;
        return match (&wholes(node, "dim")?[..], rank_of(x)) {
            ([2, 3] | [-2, -1], Some(4)) | ([2] | [-1], Some(3)) => Ok(Form::Mean),
            _ => Err("its mean is not of all pixels".into()),
        };
    }
    if function == function!(ops::pad) {
        let is_zero = number(node, "value") == Ok(0.0);
        let mode = node.argument("mode");
        let is_constant = matches!(&mode, Ok(Argument::Str(mode)) if &**mode == "constant");
        let sizes: Option<Vec<usize>> = (wholes(node, "pad")?.into_iter())
            .map(|size| usize::try_from(size).ok())
            .collect();
        return match (sizes.as_deref(), rank_of(node)) {
            (Some(&[left, right, above, below]), Some(4)) if is_zero && is_constant => {
                Ok(Form::Pad([above, below, left, right]))
            }
            _ => Err("it pads with something else than zeros around an image".into()),
        };
    }
    Err(NO_FORM)
}

/// Whether a product has a bias of its own.
fn has_bias(product: NodeRef<'_>) -> bool {
    matches!(product.argument("bias"), Ok(Argument::Node(_)))
}

/// Whether a value is one `float32`, which adds no dim to what it is multiplied with.
fn is_one_float(node: NodeRef<'_>) -> bool {
    let meta: Option<&ValueMeta> = node.meta();
    meta.and_then(ValueMeta::tensor).is_some_and(|meta| {
        meta.dtype == Some(DType::F32)
            && meta.shape.len() <= 1
            && meta.shape.iter().all(|size| size.as_known() == Some(1))
    })
}

/// Whether a scale and a zero point are one each: numbers, or values of one element.
fn is_of_one_scale(node: NodeRef<'_>) -> bool {
    let is_one = |name: &str| match node.argument(name) {
        Ok(Argument::Float(_) | Argument::Int(_)) => true,
        Ok(Argument::Node(id)) => {
            let meta = node.graph().node(id).ok();
            let meta = meta.and_then(|node| node.meta::<ValueMeta>()?.tensor().cloned());
            meta.is_some_and(|meta| meta.shape.iter().all(|size| size.as_known() == Some(1)))
        }
        _ => false,
    };
    is_one("scale") && is_one("zero_point")
}

/// Returns an error if a value is known not to have the dims of a batch.
fn is_batch(x: NodeRef<'_>, rank: usize) -> Found<()> {
    match rank_of(x).is_none_or(|own| own == rank) {
        true => Ok(()),
        false => Err("its input is no batch".into()),
    }
}

/// The dims of a node's result, if they are known.
fn rank_of(node: NodeRef<'_>) -> Option<usize> {
    let meta: Option<&ValueMeta> = node.meta();
    Some(meta?.tensor()?.shape.len())
}
