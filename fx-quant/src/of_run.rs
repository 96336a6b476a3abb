//! Scales and zero points that a run decides, as calls of a graph.
//!
//! Invariant: they are those that [`Scheme::params`] gives for the least and the largest number of the run.

use fx_core::ir::{Argument, InsertionPoint, TensorMeta, ValueMeta};
use fx_core::value::{DType, NodeId};
use fx_core::{GraphModule, Result, function, operator};
use fx_nn::ops;

use crate::scheme::Scheme;

/// The scale and the zero point of a value, computed of it by each run.
pub(crate) fn params(
    at: &mut InsertionPoint<'_>,
    x: NodeId,
    scheme: Scheme,
) -> Result<[Argument; 2]> {
    let name = at.node(x)?.name().to_string();
    let low = at.call_function(function!(ops::amin), (x,), ())?;
    let high = at.call_function(function!(ops::amax), (x,), ())?;
    // 0 is always among them.
    let low = at.call_function(function!(ops::clamp), (low, Argument::None, 0.0), ())?;
    let high = at.call_function(function!(ops::clamp), (high, 0.0), ())?;
    let width = (scheme.quant_max - scheme.quant_min) as f64;
    let least = f64::from(f32::EPSILON);
    let (range, steps) = match scheme.symmetric {
        false => (at.call_function(operator::sub, (high, low), ())?, width),
        true => {
            let low = at.call_function(operator::neg, (low,), ())?;
            let most = at.call_function(function!(ops::maximum), (low, high), ())?;
            (most, width / 2.0)
        }
    };
    let scale = at.call_function(operator::truediv, (range, steps), ())?;
    let scale = at.call_function(function!(ops::clamp), (scale, least), ())?;
    at.node_mut(scale)?.rename(&format!("{name}_scale"));
    if scheme.symmetric {
        let zero_point = scheme.params(0.0, 0.0)?.zero_point;
        return Ok([scale.into(), Argument::Int(zero_point)]);
    }
    let below = at.call_function(operator::truediv, (low, scale), ())?;
    let below = at.call_function(function!(ops::round), (below,), ())?;
    let (first, last) = (scheme.quant_min as f64, scheme.quant_max as f64);
    let zero = at.call_function(operator::sub, (first, below), ())?;
    let zero = at.call_function(function!(ops::clamp), (zero, first, last), ())?;
    let whole = Argument::DType(scheme.dtype);
    let zero = at.call_function(function!(ops::to_dtype), (zero, whole), ())?;
    at.node_mut(zero)?.rename(&format!("{name}_zero_point"));
    Ok([scale.into(), zero.into()])
}

/// Says of the scales and zero points of a graph that they are one element each, of values of floats of a type.
pub(crate) fn are_of_one_element(gm: &mut GraphModule, dtype: DType) -> Result<()> {
    let mut known = Vec::new();
    for node in gm.graph().nodes() {
        if node.function() != Some(function!(ops::quantize_affine)) {
            continue;
        }
        if let (Argument::Node(scale), Argument::Node(zero), Argument::DType(of)) = (
            node.argument("scale")?,
            node.argument("zero_point")?,
            node.argument("dtype")?,
        ) {
            known.extend([(scale, dtype), (zero, of)]);
        } else if let Argument::Node(scale) = node.argument("scale")? {
            known.push((scale, dtype));
        }
    }
    for (id, dtype) in known {
        let meta = TensorMeta::new([0i64; 0]).dtype(dtype);
        gm.graph_mut().node_mut(id)?.set_meta(ValueMeta::from(meta));
    }
    Ok(())
}
