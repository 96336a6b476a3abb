//! What the forms and their tests share: calls of a program with structures, and what a run gives and writes beside PyTorch's.

use std::collections::BTreeMap;
use std::path::Path;

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;

use crate::support::{ALLOWED, arrays, furthest, of_kind};

/// PyTorch's numbers of the element types that results have.
const TYPES: [(f64, DType); 10] = [
    (1.0, DType::U8),
    (2.0, DType::I8),
    (3.0, DType::I16),
    (4.0, DType::I32),
    (5.0, DType::I64),
    (6.0, DType::F16),
    (7.0, DType::F32),
    (8.0, DType::F64),
    (12.0, DType::Bool),
    (13.0, DType::BF16),
];

/// How far a result may be off, over the largest element: a half is rounded once.
pub fn allowed(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => ALLOWED,
    }
}

/// A value of the kind that a program takes, of the next tensors.
fn filled(meta: &ValueMeta, left: &mut impl Iterator<Item = Tensor>) -> Result<Value> {
    let missing = || Error::msg("the file has fewer inputs than the program takes");
    let all = |metas: &[ValueMeta], left: &mut _| {
        let items = metas.iter().map(|meta| filled(meta, left));
        items.collect::<Result<Vec<Value>>>()
    };
    Ok(match meta {
        ValueMeta::Single(meta) => {
            let tensor = left.next().ok_or_else(missing)?;
            let dtype = meta.dtype.unwrap_or(DType::F32);
            Value::object(tensor.to_dtype(dtype)?)
        }
        ValueMeta::Int(dim) => match dim.as_number() {
            Some(number) => {
                left.next().ok_or_else(missing)?;
                Value::Int(number)
            }
            None => Value::Int(left.next().ok_or_else(missing)?.item()? as i64),
        },
        ValueMeta::Float(known) => {
            let given = left.next().ok_or_else(missing)?.item()?;
            Value::Float(known.unwrap_or(given))
        }
        ValueMeta::Bool(known) => {
            let given = left.next().ok_or_else(missing)?.item()? != 0.0;
            Value::Bool(known.unwrap_or(given))
        }
        ValueMeta::Tuple(metas) => Value::Tuple(all(metas, left)?.into()),
        ValueMeta::List(metas) => Value::List(all(metas, left)?.into()),
        ValueMeta::Dict(metas) => {
            let items = metas
                .iter()
                .map(|(key, meta)| Ok((key.clone(), filled(meta, left)?)));
            Value::Dict(Box::new(items.collect::<Result<_>>()?))
        }
        ValueMeta::Plain(value) => value.clone(),
        other => return Err(Error::msg(format_args!("an argument is {other}"))),
    })
}

/// A call of a program with tensors in the order of its leaves; an argument that is fixed takes none.
pub fn call_of(gm: &GraphModule, inputs: Vec<Tensor>) -> Result<CallArgs> {
    let mut left = inputs.into_iter();
    let mut args = Vec::new();
    for node in gm.graph().nodes() {
        if !matches!(node.op(), Op::Placeholder(_)) {
            continue;
        }
        let meta = node.meta::<ValueMeta>();
        let meta = meta.ok_or_else(|| Error::msg("an argument has no kind"))?;
        args.push(filled(meta, &mut left)?);
    }
    Ok(CallArgs {
        args,
        kwargs: Vec::new(),
    })
}

/// The tensors and numbers of a value, in order.
fn results(value: &Value) -> Result<Vec<Tensor>> {
    let mut all = Vec::new();
    let mut failed = None;
    value.for_each(&mut |inner| {
        let made = match inner {
            Value::Int(number) => Tensor::from_vec(vec![*number], ()).map(Some),
            Value::Float(number) => Tensor::from_vec(vec![*number], ()).map(Some),
            Value::Bool(truth) => Tensor::full((), *truth, DType::Bool).map(Some),
            inner => Ok(inner.downcast_ref::<Tensor>().cloned()),
        };
        match made {
            Ok(tensor) => all.extend(tensor),
            Err(error) => failed = Some(error),
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(all),
    }
}

/// How far a tensor is off, over the largest element and what its type allows, or twice what PyTorch itself is off its own
/// in `f64`: 1 and below is equal.
fn far(
    what: &str,
    found: &Tensor,
    expected: &Tensor,
    wide: Option<&Tensor>,
    dtype: DType,
) -> Result<f64> {
    if found.dims()? != expected.dims()? {
        return Err(Error::msg(format_args!(
            "{what} is {:?}, not {:?}",
            found.dims()?,
            expected.dims()?
        )));
    }
    let elements = |x: &Tensor| x.to_dtype(DType::F64)?.to_vec();
    let (a, b) = (elements(found)?, elements(expected)?);
    let finite = b.iter().filter(|x| x.is_finite());
    let largest = finite.fold(1e-30f64, |most, x| most.max(x.abs()));
    let own = match wide {
        Some(wide) if wide.dims()? == expected.dims()? => furthest(&b, &elements(wide)?) / largest,
        _ => 0.0,
    };
    // Where a comparison falls the other way in `f64`, that is no measure.
    let own = if own < 1e-2 { 2.0 * own } else { 0.0 };
    Ok(furthest(&a, &b) / largest / allowed(dtype).max(own))
}

/// The parameters and buffers of a program, as they are now.
fn held(gm: &GraphModule) -> Result<BTreeMap<String, Tensor>> {
    let all = gm.named_parameters().into_iter().chain(gm.named_buffers());
    all.map(|(path, value)| {
        let tensor = Tensor::from_value(value)?;
        let copy = ops::zeros_like(&tensor, None)?;
        let mut copy = copy;
        copy.copy_from(&tensor.detach()?)?;
        Ok((path, copy))
    })
    .collect()
}

/// How far a run is off that of a file, over what is allowed: its results, and what it has written of its inputs and
/// buffers. What PyTorch has not written has to be as it was. `as_read` says what the program takes.
pub fn run_off(gm: &GraphModule, as_read: &GraphModule, file: &Path) -> Result<f64> {
    let arrays = arrays(file)?;
    let inputs = of_kind(&arrays, "in_");
    let call = call_of(as_read, inputs.clone())?;
    let given = results(&Value::Tuple(call.args.clone().into()))?;
    let before = held(gm)?;
    let found = results(&gm.forward::<Value>(call)?)?;
    let expected = of_kind(&arrays, "out_");
    if found.len() != expected.len() {
        return Err(Error::msg(format_args!(
            "{} results, and PyTorch has {}",
            found.len(),
            expected.len()
        )));
    }
    let types = match arrays.get("types") {
        Some(types) => types.to_dtype(DType::F64)?.to_vec()?,
        None => Vec::new(),
    };
    let mut worst = 0f64;
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let dtype = found.dtype()?;
        if let Some(code) = types.get(at) {
            let known = TYPES.iter().find(|(known, _)| known == code);
            if known.is_none_or(|(_, known)| *known != dtype) {
                return Err(Error::msg(format_args!(
                    "the result {at} is of {dtype}, and PyTorch's type is {code}"
                )));
            }
        }
        let wide = arrays.get(&format!("wide_out_{at:02}"));
        worst = worst.max(far(
            &format!("the result {at}"),
            found,
            expected,
            wide,
            dtype,
        )?);
    }
    for (at, (now, before)) in given.iter().zip(&inputs).enumerate() {
        let expected = arrays.get(&format!("after_in_{at:02}")).unwrap_or(before);
        worst = worst.max(far(
            &format!("the input {at}"),
            now,
            expected,
            None,
            now.dtype()?,
        )?);
    }
    let after = held(gm)?;
    for (path, before) in &before {
        let expected = arrays.get(&format!("after_buffer:{path}"));
        let now = &after[path];
        let wide = arrays.get(&format!("wide_after_buffer:{path}"));
        worst = worst.max(far(
            path,
            now,
            expected.unwrap_or(before),
            wide,
            now.dtype()?,
        )?);
    }
    for name in arrays.keys() {
        let path = name.strip_prefix("after_buffer:");
        if let Some(path) = path.filter(|path| !before.contains_key(*path)) {
            return Err(Error::msg(format_args!(
                "PyTorch writes `{path}`, which is not there"
            )));
        }
    }
    Ok(worst)
}
