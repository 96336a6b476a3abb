//! What a contract says in the form in which a run compares it: symbols by their places, claims
//! about a symbol and a number without expressions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::claim::{Claim, Guard};
use super::env::SymbolRange;
use crate::error::Result;
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::value::Value;

/// The values of the symbols of a contract.
pub(super) type Sizes = SmallVec<[Option<i64>; 8]>;

/// Expressions that are compared once the symbols are known, with the input's place and the size.
pub(super) type Later<'c> = SmallVec<[(usize, &'c Dim, i64); 4]>;

/// Inputs and guards in the form in which a run compares them.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    pub inputs: Vec<Expected>,
    pub guards: Vec<Check>,
}

#[derive(Debug, Clone)]
pub(super) enum Expected {
    Tensor {
        dtype: Option<DType>,
        sizes: Vec<Size>,
    },
    Int(Size),
    Float,
    Bool,
    Items(Vec<Expected>),
    Fields(Vec<(Arc<str>, Expected)>),
    Any,
}

#[derive(Debug, Clone)]
pub(super) enum Size {
    Known(i64),
    /// The symbol of this place.
    Symbol(usize),
    Expr(Dim),
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    /// A claim about a symbol and a number.
    Slots {
        claim: Simple,
        slot: usize,
        number: i64,
    },
    Claim,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Simple {
    Equal,
    Multiple,
    AtLeast,
    AtMost,
}

impl Simple {
    pub fn holds(self, size: i64, number: i64) -> bool {
        match self {
            Simple::Equal => size == number,
            Simple::Multiple => size.checked_rem(number) == Some(0),
            Simple::AtLeast => size >= number,
            Simple::AtMost => size <= number,
        }
    }
}

impl Checks {
    pub fn of(inputs: &[(Arc<str>, ValueMeta)], symbols: &[SymbolRange], guards: &[Guard]) -> Self {
        let slot = |dim: &Dim| {
            let name = dim.as_symbol()?;
            symbols.iter().position(|(known, ..)| &**known == name)
        };
        let check = |guard: &Guard| {
            let (claim, dim, number) = match &guard.claim {
                Claim::Equal(a, b) => (Simple::Equal, a, b.as_number()),
                Claim::Multiple(a, b) => (Simple::Multiple, a, b.as_number()),
                Claim::AtLeast(a, least) => (Simple::AtLeast, a, Some(*least)),
                Claim::AtMost(a, most) => (Simple::AtMost, a, Some(*most)),
            };
            match (slot(dim), number) {
                (Some(slot), Some(number)) => Check::Slots {
                    claim,
                    slot,
                    number,
                },
                _ => Check::Claim,
            }
        };
        Checks {
            inputs: inputs
                .iter()
                .map(|(_, meta)| Expected::of(meta, &slot))
                .collect(),
            guards: guards.iter().map(check).collect(),
        }
    }
}

impl Expected {
    pub fn of(meta: &ValueMeta, slot: &dyn Fn(&Dim) -> Option<usize>) -> Self {
        let size = |dim: &Dim| match (dim.as_number(), slot(dim)) {
            (Some(number), _) => Size::Known(number),
            (None, Some(slot)) => Size::Symbol(slot),
            (None, None) => Size::Expr(dim.clone()),
        };
        match meta {
            ValueMeta::Single(meta) => Expected::Tensor {
                dtype: meta.dtype,
                sizes: meta.shape.iter().map(size).collect(),
            },
            ValueMeta::Int(dim) => Expected::Int(size(dim)),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                Expected::Items(items.iter().map(|item| Expected::of(item, slot)).collect())
            }
            ValueMeta::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| (key.clone(), Expected::of(item, slot)));
                Expected::Fields(items.collect())
            }
            ValueMeta::Float(None) => Expected::Float,
            ValueMeta::Bool(None) => Expected::Bool,
            _ => Expected::Any,
        }
    }

    /// The error of a value of another kind. Of a symbolic value nothing is known here.
    #[cold]
    fn other_kind(arg: &Value) -> Result<(), String> {
        match arg {
            Value::Proxy(_) => Ok(()),
            _ => Err(format!("it is {}", arg.describe())),
        }
    }

    pub fn check<'c>(
        &'c self,
        arg: &Value,
        at: usize,
        sizes: &mut Sizes,
        later: &mut Later<'c>,
    ) -> Result<(), String> {
        match self {
            Expected::Tensor { dtype, sizes: dims } => {
                let Some(object) = arg.as_object() else {
                    // Of what has no element type, plain data may be made: that is the graph's own matter.
                    let is_plain = matches!(arg, Value::Str(_) | Value::List(_) | Value::Tuple(_));
                    if dtype.is_none() && is_plain {
                        return Ok(());
                    }
                    return Expected::other_kind(arg);
                };
                // An object without a shape is the graph's own matter.
                let Some(shape) = object.shape() else {
                    return Ok(());
                };
                if shape.len() != dims.len() {
                    return Err(format!("it has {} dims, not {}", shape.len(), dims.len()));
                }
                if let Some(dtype) = dtype
                    && let Some(own) = object.dtype()
                    && own != *dtype
                {
                    return Err(format!("it is of {own}, not of {dtype}"));
                }
                for (dim, (expected, size)) in dims.iter().zip(shape).enumerate() {
                    let size = i64::try_from(*size).unwrap_or(i64::MAX);
                    expected
                        .check(size, at, sizes, later)
                        .map_err(|problem| format!("dim {dim} is {size}, {problem}"))?;
                }
                Ok(())
            }
            Expected::Int(expected) => match arg {
                Value::Int(number) => expected
                    .check(*number, at, sizes, later)
                    .map_err(|problem| format!("it is {number}, {problem}")),
                _ => Expected::other_kind(arg),
            },
            Expected::Float => match arg {
                Value::Float(_) | Value::Int(_) => Ok(()),
                _ => Expected::other_kind(arg),
            },
            Expected::Bool => match arg {
                Value::Bool(_) => Ok(()),
                _ => Expected::other_kind(arg),
            },
            Expected::Items(items) => match arg {
                Value::List(args) | Value::Tuple(args) if args.len() == items.len() => {
                    let mut both = items.iter().zip(args.iter());
                    both.try_for_each(|(item, arg)| item.check(arg, at, sizes, later))
                }
                Value::List(args) | Value::Tuple(args) => {
                    Err(format!("it has {} items, not {}", args.len(), items.len()))
                }
                _ => Expected::other_kind(arg),
            },
            Expected::Fields(fields) => match arg {
                Value::Dict(args) => fields.iter().try_for_each(|(key, field)| {
                    args.get(key)
                        .map_or(Ok(()), |arg| field.check(arg, at, sizes, later))
                }),
                _ => Expected::other_kind(arg),
            },
            Expected::Any => Ok(()),
        }
    }
}

impl Size {
    #[inline]
    fn check<'c>(
        &'c self,
        size: i64,
        at: usize,
        sizes: &mut Sizes,
        later: &mut Later<'c>,
    ) -> Result<(), String> {
        match self {
            Size::Known(known) if *known == size => Ok(()),
            Size::Known(known) => Err(format!("not {known}")),
            Size::Symbol(slot) => match sizes.get_mut(*slot) {
                Some(known @ None) => {
                    *known = Some(size);
                    Ok(())
                }
                Some(Some(known)) if *known != size => Err(format!(
                    "and {known} elsewhere, where the same symbol stands"
                )),
                _ => Ok(()),
            },
            Size::Expr(dim) => {
                later.push((at, dim, size));
                Ok(())
            }
        }
    }
}
