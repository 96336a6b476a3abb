//! What is known of values: the shapes and the types of tensors, of which some are symbolic.

use fx_core::ir::{Function, TensorMeta};
use fx_core::tensor::Object;
use fx_core::trace::{FromValue, with_context};
use fx_core::value::{DType, Dim, Int, Value};
use fx_core::{Error, Result};

use crate::tensor::{Dims, Tensor};

/// The shape and the type of a symbolic tensor.
fn meta(x: &Tensor) -> Result<Option<TensorMeta>> {
    let Some(proxy) = x.proxy() else {
        return Ok(None);
    };
    let meta = proxy.meta()?;
    match meta.as_ref().and_then(|meta| meta.tensor()) {
        Some(meta) => Ok(Some(meta.clone())),
        None => Err(Error::msg(format_args!(
            "the shape of {} is not known here: say what the arguments are, with `Trace::inputs` or `graph_module(specs)`",
            proxy
        ))),
    }
}

/// The sizes of a tensor.
pub(crate) fn dims(x: &Tensor) -> Result<Vec<Dim>> {
    match meta(x)? {
        Some(meta) => Ok(meta.shape.clone()),
        None => Ok(x.dims()?.iter().map(|size| Dim::from(*size)).collect()),
    }
}

/// How many dims a tensor has.
pub(crate) fn rank(x: &Tensor) -> Result<usize> {
    dims(x).map(|dims| dims.len())
}

/// The element type of a tensor.
pub(crate) fn dtype(x: &Tensor) -> Result<DType> {
    match meta(x)? {
        Some(meta) => meta
            .dtype
            .ok_or_else(|| Error::msg("the element type of a tensor is not known here")),
        None => x.dtype(),
    }
}

/// Whether a value is a tensor of floats.
pub(crate) fn is_float(value: &Value) -> bool {
    let tensor = Tensor::from_value(value.clone());
    tensor
        .and_then(|tensor| dtype(&tensor))
        .is_ok_and(|dtype| dtype.is_floating_point())
}

/// The sizes of a tensor as numbers of a graph: those that are known are plain numbers.
pub(crate) fn sizes(x: &Tensor) -> Result<Vec<Int>> {
    let dims = dims(x)?;
    let sizes = dims.iter().enumerate();
    sizes.map(|(at, dim)| int(x, at, dim)).collect()
}

fn int(x: &Tensor, at: usize, dim: &Dim) -> Result<Int> {
    match dim.as_known() {
        Some(size) => Ok(Int::from(size as i64)),
        None => x.size(at as i64),
    }
}

/// One size.
pub(crate) fn size(x: &Tensor, dim: i64) -> Result<Int> {
    let dims = dims(x)?;
    let at = place(dim, dims.len())?;
    match dims.get(at) {
        Some(dim) => int(x, at, dim),
        None => Err(Error::msg("a tensor with no dims has no sizes")),
    }
}

/// All sizes, which are numbers.
pub(crate) fn shape(x: &Tensor, why: &str) -> Result<Vec<usize>> {
    last_sizes(x, rank(x)?, why)
}

/// The last sizes, which are numbers.
pub(crate) fn last_sizes(x: &Tensor, count: usize, why: &str) -> Result<Vec<usize>> {
    let dims = dims(x)?;
    let last = &dims[dims.len().saturating_sub(count)..];
    let known: Option<Vec<usize>> = last.iter().map(Dim::as_known).collect();
    known.ok_or_else(|| {
        Error::msg(format_args!(
            "{why} needs sizes that are numbers, not {last:?}"
        ))
    })
}

/// The index of a dim.
pub(crate) fn place(dim: i64, rank: usize) -> Result<usize> {
    let rank = rank.max(1) as i64;
    let at = if dim < 0 { dim + rank } else { dim };
    match (0..rank).contains(&at) {
        true => Ok(at as usize),
        false => Err(Error::msg(format_args!(
            "there is no dim {dim} among {rank}"
        ))),
    }
}

/// The indices of dims, in their order.
pub(crate) fn places(dims: Dims, rank: usize) -> Result<Vec<usize>> {
    match dims {
        Dims::All => Ok((0..rank).collect()),
        Dims::One(dim) => Ok(vec![place(dim, rank)?]),
        Dims::Many(dims) => dims.into_iter().map(|dim| place(dim, rank)).collect(),
    }
}

/// The tensors of a list or a tuple.
pub(crate) fn items(value: &Value) -> Result<Vec<Tensor>> {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().cloned().map(Tensor::from_value).collect()
        }
        Value::Proxy(proxy) => {
            let meta = proxy.meta()?;
            let count = meta.as_ref().and_then(|meta| meta.items().map(<[_]>::len));
            let count =
                count.ok_or_else(|| Error::msg("how many items a list has is not known here"))?;
            (0..count)
                .map(|at| {
                    let item =
                        fx_core::operator::getitem.call_as::<Value>((value.clone(), at as i64))?;
                    Tensor::from_value(item)
                })
                .collect()
        }
        other => Err(Error::msg(format_args!(
            "{} is not a list of tensors",
            other.describe()
        ))),
    }
}

/// A number that is known.
pub(crate) fn number(n: &Int) -> Option<i64> {
    match n {
        Int::Concrete(n) => Some(*n),
        _ => None,
    }
}

/// The numbers of a list.
pub(crate) fn ints(value: Value) -> Result<Vec<Int>> {
    match &value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().cloned().map(Int::from_value).collect()
        }
        one => Ok(vec![Int::from_value(one.clone())?]),
    }
}

/// The call that gives a symbolic tensor in the trace that records, with an argument for each parameter.
pub(crate) fn call_of(x: &Tensor) -> Result<Option<(Function, Vec<Value>)>> {
    let Some(proxy) = x.proxy() else {
        return Ok(None);
    };
    let found = with_context(|cx| {
        let graph = cx.graph()?;
        let node = graph.node(proxy.node())?;
        let Some(function) = node.function() else {
            return Ok(None);
        };
        let arguments = node.normalized_arguments()?.into_iter();
        let values = arguments
            .map(|(_, argument)| argument.to_value(&mut |node| Ok(Value::Proxy(cx.proxy(node)))));
        Ok(Some((function, values.collect::<Result<_>>()?)))
    });
    found.unwrap_or(Ok(None))
}
