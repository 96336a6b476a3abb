//! The rules of the built-in operators: on tensors element by element, on whole numbers as
//! expressions.

use super::broadcast::{broadcast_shapes, result_type};
use super::env::ShapeEnv;
use super::rule::{RuleCall, ShapeRule};
use crate::error::{Error, Result};
use crate::function_table;
use crate::ir::operator;
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::value::Value;

function_table! { ShapeRule {
    operator::add => ShapeRule(|call| computed(call, |a, b| a + b, arithmetic)),
    operator::sub => ShapeRule(difference),
    operator::mul => ShapeRule(|call| computed(call, |a, b| a * b, arithmetic)),
    operator::floordiv => ShapeRule(|call| computed(call, |a, b| a.div(b), arithmetic)),
    operator::r#mod => ShapeRule(|call| computed(call, |a, b| a.rem(b), arithmetic)),
    operator::truediv => ShapeRule(|call| computed(call, no_size, quotient)),
    operator::pow => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::and_ => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::or_ => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::xor => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::lshift => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::rshift => ShapeRule(|call| computed(call, no_size, arithmetic)),
    operator::eq => ShapeRule(compared),
    operator::ne => ShapeRule(compared),
    operator::lt => ShapeRule(compared),
    operator::le => ShapeRule(compared),
    operator::gt => ShapeRule(compared),
    operator::ge => ShapeRule(compared),
    operator::neg => ShapeRule(|call| alone(call, |size| size * -1)),
    operator::abs => ShapeRule(|call| alone(call, |size| size.max(&(size * -1)?))),
    operator::invert => ShapeRule(|call| alone(call, |size| (size * -1)? - 1)),
    operator::matmul => ShapeRule(matmul),
    operator::getitem => ShapeRule(item),
    operator::getattr => ShapeRule(attribute),
} }

/// The element type of arithmetic.
fn arithmetic(a: &ValueMeta, b: &ValueMeta) -> Option<DType> {
    result_type([a, b])
}

/// The element type of a true quotient.
fn quotient(a: &ValueMeta, b: &ValueMeta) -> Option<DType> {
    let dtype = arithmetic(a, b)?;
    Some(match dtype.is_floating_point() {
        true => dtype,
        false => DType::F32,
    })
}

fn no_size(_: &Dim, _: &Dim) -> Result<Dim> {
    Err(Error::msg("it is no size"))
}

fn pair<'c>(call: &RuleCall<'c>) -> Result<(&'c ValueMeta, &'c ValueMeta)> {
    match call.args() {
        [a, b] => Ok((a, b)),
        other => Err(Error::expected("two operands", other.len())),
    }
}

/// A difference, which truth values have none of.
fn difference(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let is_truth = |fake: &ValueMeta| match fake {
        ValueMeta::Single(meta) => meta.dtype == Some(DType::Bool),
        ValueMeta::Bool(_) => true,
        _ => false,
    };
    let (a, b) = pair(call)?;
    let any_tensor = a.as_tensor().is_some() || b.as_tensor().is_some();
    if any_tensor && (is_truth(a) || is_truth(b)) {
        return Err(Error::msg(
            "`-` is not defined for bool tensors: use `^` for where two differ",
        ));
    }
    computed(call, |a, b| a - b, arithmetic)
}

/// Tensors element by element, whole numbers as expressions, other numbers as ones that a run
/// knows.
fn computed(
    call: &mut RuleCall<'_>,
    sizes: fn(&Dim, &Dim) -> Result<Dim>,
    dtype: fn(&ValueMeta, &ValueMeta) -> Option<DType>,
) -> Result<ValueMeta> {
    let (a, b) = pair(call)?;
    match (a, b) {
        (ValueMeta::Single(_), _) | (_, ValueMeta::Single(_)) => tensors(call, dtype),
        (ValueMeta::Int(a), ValueMeta::Int(b)) => match sizes(a, b) {
            Ok(size) => Ok(ValueMeta::Int(size)),
            // A quotient of whole numbers is none.
            Err(_) if call.function() == operator::truediv => Ok(ValueMeta::Float(None)),
            Err(_) => Ok(ValueMeta::Int(call.env().fresh(i64::MIN, None)?)),
        },
        (ValueMeta::Float(_), _) | (_, ValueMeta::Float(_)) => Ok(ValueMeta::Float(None)),
        (ValueMeta::List(a), ValueMeta::List(b)) => Ok(ValueMeta::List([&a[..], &b[..]].concat())),
        (ValueMeta::Tuple(a), ValueMeta::Tuple(b)) => {
            Ok(ValueMeta::Tuple([&a[..], &b[..]].concat()))
        }
        (ValueMeta::Bool(_), _) | (_, ValueMeta::Bool(_)) => Ok(ValueMeta::Bool(None)),
        _ => Err(Error::operator(
            call.function().name(),
            format_args!("{} and {}", a.describe(), b.describe()),
        )),
    }
}

fn tensors(
    call: &mut RuleCall<'_>,
    dtype: fn(&ValueMeta, &ValueMeta) -> Option<DType>,
) -> Result<ValueMeta> {
    let (a, b) = pair(call)?;
    let shape = |fake: &'_ ValueMeta| {
        fake.as_tensor()
            .map_or(Vec::new(), |meta| meta.shape.clone())
    };
    let shape = match (a, b) {
        (ValueMeta::Single(_), ValueMeta::Single(_)) => call.broadcast(&[&shape(a), &shape(b)])?,
        (ValueMeta::Single(_), _) => shape(a),
        _ => shape(b),
    };
    let mut meta = TensorMeta::new(shape);
    meta.dtype = dtype(a, b);
    Ok(ValueMeta::from(meta))
}

fn compared(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = pair(call)?;
    if a.as_tensor().is_some() || b.as_tensor().is_some() {
        return tensors(call, |_, _| Some(DType::Bool));
    }
    let (ValueMeta::Int(a), ValueMeta::Int(b)) = (a, b) else {
        return Ok(ValueMeta::Bool(None));
    };
    let function = call.function();
    let bounds = call.env().bounds(&(a - b)?);
    Ok(ValueMeta::Bool(decided(function, bounds)))
}

/// What a comparison of two sizes gives, by the smallest and the largest difference.
fn decided(
    function: crate::ir::function::Function,
    (low, high): (Option<i64>, Option<i64>),
) -> Option<bool> {
    let above = |least: i64| low.is_some_and(|low| low >= least);
    let below = |most: i64| high.is_some_and(|high| high <= most);
    let known = |yes: bool, no: bool| match (yes, no) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let equal = known(above(0) && below(0), above(1) || below(-1));
    match function {
        f if f == operator::eq => equal,
        f if f == operator::ne => equal.map(|equal| !equal),
        f if f == operator::lt => known(below(-1), above(0)),
        f if f == operator::le => known(below(0), above(1)),
        f if f == operator::gt => known(above(1), below(0)),
        _ => known(above(0), below(-1)),
    }
}

fn alone(call: &mut RuleCall<'_>, size: fn(&Dim) -> Result<Dim>) -> Result<ValueMeta> {
    match call.args() {
        [ValueMeta::Single(meta)] => {
            let mut same = TensorMeta::new(meta.shape.clone());
            same.dtype = meta.dtype;
            Ok(ValueMeta::from(same))
        }
        [ValueMeta::Int(dim)] => Ok(ValueMeta::Int(size(dim)?)),
        [ValueMeta::Float(_)] => Ok(ValueMeta::Float(None)),
        [ValueMeta::Bool(_)] => Ok(ValueMeta::Bool(None)),
        _ => Err(Error::operator(call.function().name(), "what is no number")),
    }
}

/// The product of matrices, with leading dims that are broadcast; of vectors too.
fn matmul(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (ValueMeta::Single(a), ValueMeta::Single(b)) = pair(call)? else {
        return Err(Error::operator("matmul", "what is no tensor"));
    };
    let dtype = arithmetic(&ValueMeta::Single(a.clone()), &ValueMeta::Single(b.clone()));
    let shape = call.matmul(&a.shape, &b.shape)?;
    let mut meta = TensorMeta::new(shape);
    meta.dtype = dtype;
    Ok(ValueMeta::from(meta))
}

fn attribute(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let meta = call.tensor("value")?;
    Ok(match (call.text("name")?, meta.dtype) {
        ("shape", _) => ValueMeta::List(meta.shape.iter().cloned().map(ValueMeta::Int).collect()),
        ("ndim", _) => ValueMeta::Int(Dim::from(meta.shape.len())),
        ("dtype", Some(dtype)) => ValueMeta::Plain(Value::DType(dtype)),
        ("requires_grad", _) => ValueMeta::Bool(meta.requires_grad),
        (other, _) => {
            return Err(Error::msg(format_args!(
                "the attribute `{other}` of a tensor is known only when the graph runs"
            )));
        }
    })
}

/// An item of a list, or a part of a tensor.
fn item(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (of, index) = pair(call)?;
    if let ValueMeta::Single(meta) = of {
        let items = match index {
            ValueMeta::Tuple(items) => items.clone(),
            one => vec![one.clone()],
        };
        let mut part = TensorMeta::new(indexed(call.env(), &meta.shape, &items)?);
        part.dtype = meta.dtype;
        return Ok(ValueMeta::from(part));
    }
    if let (ValueMeta::Dict(items), ValueMeta::Plain(Value::Str(key))) = (of, index) {
        let found = items.iter().find(|(name, _)| name == key);
        let found = found.map(|(_, item)| item.clone());
        return found.ok_or_else(|| Error::msg(format_args!("there is no item `{key}`")));
    }
    if let ValueMeta::Repeated(item, _) = of {
        return Ok((**item).clone());
    }
    let Some(items) = of.items() else {
        return Err(Error::expected(
            "a list or a tensor to take an item of",
            of.describe(),
        ));
    };
    let many = items.len() as i64;
    let from_end = |at: i64| if at < 0 { at + many } else { at };
    if let ValueMeta::Slice(ends) = index {
        let [start, stop, step] = &**ends;
        let end = |end: &ValueMeta, default: i64| match end.is_none() {
            true => Ok(default),
            false => end.int().map(from_end),
        };
        let step = end(step, 1)?;
        let (start, stop) = (
            end(start, 0)?.clamp(0, many),
            end(stop, many)?.clamp(0, many),
        );
        if step != 1 {
            return Err(Error::msg("a list is sliced in steps of one"));
        }
        let part = items.get(start as usize..stop.max(start) as usize);
        let part = part.unwrap_or_default().to_vec();
        return Ok(match of {
            ValueMeta::Tuple(_) => ValueMeta::Tuple(part),
            _ => ValueMeta::List(part),
        });
    }
    let at = index.int()?;
    let item = usize::try_from(from_end(at))
        .ok()
        .and_then(|at| items.get(at));
    item.cloned()
        .ok_or_else(|| Error::msg(format_args!("there is no item {at} of {}", items.len())))
}

/// The shape of a part of a tensor.
fn indexed(env: &mut ShapeEnv, shape: &[Dim], items: &[ValueMeta]) -> Result<Vec<Dim>> {
    let is_ellipsis = |item: &ValueMeta| matches!(item, ValueMeta::Plain(Value::Ellipsis));
    let taken = items
        .iter()
        .filter(|item| !item.is_none() && !is_ellipsis(item))
        .count();
    if taken > shape.len() {
        return Err(Error::msg(format_args!(
            "getitem: {taken} indices for a tensor of shape {shape:?}, which has {} dims",
            shape.len()
        )));
    }
    let mut left = shape.iter();
    let mut result = Vec::new();
    // The place of the sizes that tensors of indices give together.
    let mut together: Option<(usize, Vec<Dim>)> = None;
    for item in items {
        match item {
            none if none.is_none() => result.push(Dim::known(1)),
            rest if is_ellipsis(rest) => {
                let kept = shape.len() - taken;
                result.extend(left.by_ref().take(kept).cloned());
            }
            ValueMeta::Int(at) => {
                let size = left.next();
                if let (Some(at), Some(size)) = (at.as_number(), size) {
                    let least = if at < 0 { -at } else { at.saturating_add(1) };
                    if !env.at_least(size, least)? {
                        return Err(Error::msg(format_args!(
                            "getitem: the index {at} is out of range for a dim of size {size}"
                        )));
                    }
                }
            }
            ValueMeta::Slice(ends) => {
                let size = left.next().cloned().unwrap_or(Dim::known(1));
                result.push(sliced(env, &size, ends)?);
            }
            ValueMeta::Single(index) if index.dtype == Some(DType::Bool) => {
                // Each place that is true.
                left.by_ref().take(index.shape.len()).for_each(drop);
                together.get_or_insert((result.len(), Vec::new())).1 = vec![env.fresh(0, None)?];
            }
            ValueMeta::Single(index) => {
                left.next();
                let at = result.len();
                let (_, shape) = together.get_or_insert((at, Vec::new()));
                let both = [shape.as_slice(), &index.shape];
                *shape = broadcast_shapes(env, "getitem", &both)?;
            }
            other => return Err(Error::expected("an index", other.describe())),
        }
    }
    result.extend(left.cloned());
    if let Some((at, shape)) = together {
        result.splice(at..at, shape);
    }
    Ok(result)
}

/// The size of a slice of a dim.
fn sliced(env: &mut ShapeEnv, size: &Dim, [start, stop, step]: &[ValueMeta; 3]) -> Result<Dim> {
    let mut end = |end: &ValueMeta, default: Dim| -> Result<Dim> {
        if end.is_none() {
            return Ok(default);
        }
        let at = end.dim()?;
        if let (_, Some(..=-1)) = env.bounds(&at) {
            return env.max(&(size + &at)?, &Dim::known(0));
        }
        // Where no range decides from which end it counts, it is a place from the start.
        env.at_least(&at, 0)?;
        env.min(&at, size)
    };
    let (start, stop) = (end(start, Dim::known(0))?, end(stop, size.clone())?);
    let length = env.max(&(stop - start)?, &Dim::known(0))?;
    match step.is_none() {
        true => Ok(length),
        false => {
            let step = step.int()?;
            if step < 1 {
                return Err(Error::msg(format_args!(
                    "getitem: a slice has a step of {step}: take one that is 1 or above"
                )));
            }
            (length + (step - 1))?.div(step)
        }
    }
}
