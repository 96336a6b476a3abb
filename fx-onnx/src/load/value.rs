//! What a value of a file is while its graph is read.

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use crate::texts::Texts;

/// What a node gives.
pub(super) type Given = Result<Vec<V>>;

/// A value of a file.
#[derive(Debug, Clone)]
pub(super) enum V {
    /// A tensor, known or symbolic, and its element type if that is known.
    Tensor(Tensor, Option<DType>),
    /// Whole numbers that are sizes, or were computed from sizes; without dims if `true`.
    Ints(Vec<Int>, bool),
    /// The sizes of a tensor whose number of dims a run decides.
    Sizes(Tensor),
    /// A sequence.
    Seq(Vec<V>),
    /// A sequence whose length a run decides, of items of one shape: they lie along the first dim.
    List(Tensor, Option<DType>),
    /// A tensor of text.
    Texts(Texts),
    /// A value of the host that is no tensor, such as a list of dicts.
    Host(Value),
    /// Left out.
    Absent,
}

impl V {
    /// A tensor of an element type.
    pub fn of(tensor: Tensor, dtype: DType) -> V {
        V::Tensor(tensor, Some(dtype))
    }

    /// Whether it is left out.
    pub fn is_absent(&self) -> bool {
        matches!(self, V::Absent)
    }

    /// What is known of it.
    pub fn meta(&self) -> Option<TensorMeta> {
        match self {
            V::Tensor(tensor, given) => {
                let known = match tensor.proxy() {
                    Some(proxy) => proxy.meta().ok().flatten(),
                    None => Some(ValueMeta::of(&Value::object(tensor.clone()))),
                };
                match known {
                    Some(ValueMeta::Single(meta)) => {
                        let mut meta = (*meta).clone();
                        meta.dtype = meta.dtype.or(*given);
                        Some(meta)
                    }
                    _ => None,
                }
            }
            V::Ints(items, scalar) => {
                let dims: Vec<Dim> = if *scalar {
                    Vec::new()
                } else {
                    vec![Dim::from(items.len())]
                };
                Some(TensorMeta::new(dims).dtype(DType::I64))
            }
            V::Texts(texts) => {
                let known = match texts.proxy() {
                    Some(proxy) => proxy.meta().ok().flatten(),
                    None => Some(ValueMeta::of(&Value::object(texts.clone()))),
                };
                known?.tensor().cloned()
            }
            _ => None,
        }
    }

    /// The element type, if it is known.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            V::Tensor(tensor, given) => given
                .or_else(|| Tensor::dtype(tensor).ok())
                .or_else(|| self.meta()?.dtype),
            V::Ints(..) | V::Sizes(_) => Some(DType::I64),
            V::List(_, dtype) => *dtype,
            _ => None,
        }
    }

    /// The number of a constant without dims that a tensor of an element type can take as it is, if it is finite.
    pub fn scalar(&self, dtype: Option<DType>) -> Option<f64> {
        self.number(dtype).filter(|number| number.is_finite())
    }

    /// The number of a constant without dims that a tensor of an element type can take as it is.
    pub fn number(&self, dtype: Option<DType>) -> Option<f64> {
        let V::Tensor(tensor, _) = self else {
            return None;
        };
        let is_plain =
            Object::proxy(tensor).is_none() && tensor.dims().is_ok_and(<[usize]>::is_empty);
        let own = self.dtype().filter(|own| is_plain && Some(*own) == dtype)?;
        let number = matches!(own, DType::F32 | DType::F64).then(|| tensor.item().ok());
        number.flatten()
    }

    /// As a tensor: sizes become a tensor of them.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            V::Tensor(tensor, _) => Ok(tensor.clone()),
            V::Ints(items, scalar) => of_ints(items, *scalar),
            V::Sizes(of) => shape_of(of),
            V::Seq(_) | V::List(..) => Err(Error::msg("a sequence where a tensor is expected")),
            V::Texts(_) => Err(Error::msg("text where a tensor of numbers is expected")),
            V::Host(_) => Err(Error::msg("maps where a tensor is expected")),
            V::Absent => Err(Error::msg("an input is left out that the operator needs")),
        }
    }

    /// As a tensor of text.
    pub fn texts(&self) -> Result<Texts> {
        match self {
            V::Texts(texts) => Ok(texts.clone()),
            V::Absent => Err(Error::msg("an input is left out that the operator needs")),
            _ => Err(Error::msg("numbers where text is expected")),
        }
    }

    /// As whole numbers, if they are known or sizes.
    pub fn ints(&self) -> Result<Vec<Int>> {
        match self {
            V::Ints(items, _) => Ok(items.clone()),
            V::Tensor(tensor, _) if tensor.proxy().is_none() => Ok(tensor
                .to_vec()?
                .iter()
                .map(|n| Int::from(*n as i64))
                .collect()),
            V::Tensor(tensor, _) => {
                let meta = self.meta().and_then(|meta| meta.known_shape());
                match meta.as_deref() {
                    Some([]) => Ok(vec![int_of(tensor)?]),
                    Some([count]) if *count <= 1024 => (0..*count as i64)
                        .map(|at| int_of(&ops::select(tensor, 0, at)?))
                        .collect(),
                    _ => Err(Error::msg("numbers that only a run knows, and how many")),
                }
            }
            _ => Err(Error::msg("numbers are expected")),
        }
    }

    /// As whole numbers that are known.
    pub fn known_ints(&self) -> Result<Vec<i64>> {
        let items = match self {
            V::Tensor(tensor, _) if tensor.proxy().is_some() => None,
            other => Some(other.ints()?),
        };
        let known = items.and_then(|items| {
            items
                .iter()
                .map(Int::concrete)
                .collect::<Option<Vec<i64>>>()
        });
        known.ok_or_else(|| Error::msg("numbers that only a run knows: give the input a constant value with `Load::constant`"))
    }

    /// Whether the value can take part in arithmetic on sizes.
    pub fn as_sizes(&self) -> Option<(Vec<Int>, bool)> {
        match self {
            V::Ints(items, scalar) => Some((items.clone(), *scalar)),
            V::Tensor(tensor, _)
                if tensor.proxy().is_none()
                    && Tensor::dtype(tensor)
                        .is_ok_and(|d| matches!(d, DType::I64 | DType::I32)) =>
            {
                let dims = tensor.dims().ok()?;
                let small = dims.len() <= 1 && dims.iter().product::<usize>() <= 64;
                small.then(|| Some((self.ints().ok()?, dims.is_empty())))?
            }
            _ => None,
        }
    }
}

/// A tensor in an element type; as it is if it is known to be in that.
pub(super) fn as_type(x: &Tensor, dtype: DType) -> Result<Tensor> {
    match V::Tensor(x.clone(), None).dtype() {
        Some(own) if own == dtype => Ok(x.clone()),
        _ => ops::to_dtype(x, dtype),
    }
}

/// Sizes as a tensor.
pub(super) fn of_ints(items: &[Int], scalar: bool) -> Result<Tensor> {
    if let Some(known) = items
        .iter()
        .map(Int::concrete)
        .collect::<Option<Vec<i64>>>()
    {
        let count = known.len();
        return match scalar {
            true => Tensor::from_vec(known, ()),
            false => Tensor::from_vec(known, count),
        };
    }
    let each = items.iter().map(|n| ops::arange(*n, (*n + 1)?, 1, None));
    let each = each.collect::<Result<Vec<Tensor>>>()?;
    match (scalar, &*each) {
        (true, [one]) => ops::squeeze(one, 0),
        (_, [one]) => Ok(one.clone()),
        _ => ops::cat(&each, 0),
    }
}

/// The element of a tensor of one whole number.
///
/// ```
/// use fx_nn::prelude::*;
/// let n = fx_onnx::int_of(&Tensor::from_vec(vec![7i64], ())?)?;
/// assert_eq!(n.concrete(), Some(7));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is not one element.
#[wrap(path = "fx_onnx::int_of")]
pub fn int_of(x: &Tensor) -> Result<Int> {
    Ok(Int::from(x.item()? as i64))
}

/// The sizes of a tensor as a tensor, however many there are: a run knows them where the number of dims is not known
/// before.
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(fx_onnx::shape_of(&Tensor::zeros((2, 3))?)?.to_vec()?, [2.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns no error.
#[wrap(path = "fx_onnx::shape_of")]
pub fn shape_of(x: &Tensor) -> Result<Tensor> {
    let sizes: Vec<i64> = x.dims()?.iter().map(|size| *size as i64).collect();
    let count = sizes.len();
    Tensor::from_vec(sizes, count)
}

/// The parts of a tensor along its first dim, as a list: a run knows how many there are.
///
/// ```
/// use fx_nn::prelude::*;
/// let rows = fx_onnx::items_of(&Tensor::ones((3, 2))?)?;
/// assert_eq!(Vec::<Tensor>::from_value(rows)?.len(), 3);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if it has no dims.
#[wrap(path = "fx_onnx::items_of")]
pub fn items_of(x: &Tensor) -> Result<Value> {
    let count = x.dims()?.first().copied();
    let count = count.ok_or_else(|| Error::msg("items_of: a tensor without dims has no items"))?;
    let items = (0..count as i64).map(|at| Ok(Value::object(ops::select(x, 0, at)?)));
    Ok(Value::List(items.collect::<Result<_>>()?))
}

fx_nn::function_table! { fx_nn::shapes::ShapeRule {
    fx_nn::function!(crate::load::items_of) => fx_nn::shapes::ShapeRule(|call| {
        let x = call.tensor("x")?;
        let (count, rest) = x.shape.split_first().ok_or_else(|| {
            Error::msg("items_of: a tensor without dims has no items")
        })?;
        let mut item = TensorMeta::new(rest.iter().cloned());
        item.dtype = x.dtype;
        Ok(ValueMeta::Repeated(Box::new(item.into()), count.clone()))
    }),
    fx_nn::function!(crate::load::shape_of) => fx_nn::shapes::ShapeRule(|call| {
        let count = match call.is_unranked("x")? {
            true => call.env().fresh(0, None)?,
            false => Dim::from(call.tensor("x")?.shape.len()),
        };
        Ok(TensorMeta::new([count]).dtype(DType::I64).into())
    }),
} }

fx_nn::function_table! { crate::out::Rule {
    fx_nn::function!(crate::load::items_of) => crate::out::Rule::new(|cx, call| {
        let x = call.tensor("x")?;
        let node = cx.node("SplitToSequence").input(&x.name).int("axis", 0);
        Ok(fx_nn::lowering::Val::Sequence(node.int("keepdims", 0).output(), x.dtype))
    }),
    fx_nn::function!(crate::load::shape_of) => crate::out::Rule::new(|cx, call| {
        let x = call.elements("x")?;
        let name = cx.op("Shape", &[&x.name]);
        call.given(name)
    }),
} }

fx_nn::function_table! { crate::out::Rule {
    fx_nn::function!(crate::load::int_of) => crate::out::Rule::new(|cx, call| {
        let x = call.tensor("x")?;
        let x = cx.cast(&x, DType::I64)?;
        let none = cx.i64s(&[]);
        let name = cx.op("Reshape", &[&x.name, &none]);
        match call.node().meta::<ValueMeta>() {
            Some(ValueMeta::Int(dim)) if dim.as_symbol().is_some() => {
                Ok(cx.whole_number(dim, name))
            }
            _ => call.given(name),
        }
    }),
} }
