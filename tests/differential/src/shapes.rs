//! The shape rule of a call beside its run: with the sizes that are there, and with names for them.

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::Dim;
use fx_nn::{Error, ErrorKind, Result};

use crate::call::{Arg, Call, Kind};
use crate::run::{recorded_call, run_call};

/// What a rule says of a call, beside the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// The same, or a refusal of both.
    Agrees,
    /// There is no rule.
    NoRule,
    /// It cannot say with names for sizes, which decide something.
    Unknown,
    /// Something else.
    Differs(String),
}

/// Compares the rule of a call with its run; `symbolic` gives each size of the inputs a name.
pub fn shape_agreement(call: &Call, symbolic: bool) -> Result<Agreement> {
    if !matches!(call.kind, Kind::Function | Kind::Method) {
        return Ok(Agreement::NoRule);
    }
    let tensors = call.tensors()?;
    let run = run_call(call, &tensors);
    let Ok(mut gm) = recorded_call(call, &tensors) else {
        // What is refused while tracing has no graph to infer.
        return Ok(Agreement::Agrees);
    };
    let (specs, sizes) = specs_of(&tensors, symbolic)?;
    // A name stands for one size or more.
    if sizes.contains(&0) {
        return Ok(Agreement::Unknown);
    }
    let of = |name: &str| {
        sizes
            .get(name.strip_prefix('s')?.parse::<usize>().ok()?)
            .copied()
    };
    let inferred = gm.infer_shapes(&[specs]);
    let (env, result) = match (inferred, run) {
        (Err(error), _) if matches!(error.kind(), ErrorKind::Unregistered { .. }) => {
            return Ok(Agreement::NoRule);
        }
        (Err(_), Err(_)) => return Ok(Agreement::Agrees),
        (Err(_), Ok(_)) if symbolic => return Ok(Agreement::Unknown),
        (Err(error), Ok(_)) => return Ok(Agreement::Differs(format!("refused: {error}"))),
        (Ok(_), Err(error)) => {
            return Ok(match symbolic {
                true => Agreement::Agrees,
                false => Agreement::Differs(format!("not refused: {error}")),
            });
        }
        (Ok(env), Ok(result)) => (env, result),
    };
    let holds = env.guards().iter().map(|guard| guard.claim.holds(of));
    if !holds
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .all(|holds| holds)
    {
        // These sizes are not those that the shapes are for.
        return Ok(Agreement::Unknown);
    }
    let output = gm.graph().output_node();
    let meta = output.and_then(|node| node.meta::<ValueMeta>());
    let meta = meta.ok_or_else(|| Error::msg("the output has no entry"))?;
    let (found, expected) = (shown(meta, &of)?, shown(&ValueMeta::of(&result), &of)?);
    Ok(match fits(&found, &expected) {
        true => Agreement::Agrees,
        false => Agreement::Differs(format!("{found} for {expected}")),
    })
}

/// What the tensors are, with a name for each size if they are symbolic; and the sizes.
fn specs_of(tensors: &[Tensor], symbolic: bool) -> Result<(Spec, Vec<i64>)> {
    let mut sizes: Vec<i64> = Vec::new();
    let specs = tensors.iter().map(|tensor| {
        let dims = tensor.dims()?;
        let mut spec = Spec::of(tensor.clone());
        for (at, size) in dims.iter().enumerate().filter(|_| symbolic) {
            let size = i64::try_from(*size).map_err(Error::other)?;
            spec = spec.dynamic(at, &*format!("s{}", sizes.len()));
            sizes.push(size);
        }
        Ok(spec)
    });
    let specs = specs.collect::<Result<Vec<_>>>()?;
    Ok((Spec::list(specs), sizes))
}

/// Asks the rule of a call with each of its whole numbers replaced by this one; what it answers does
/// not matter, but that it does. Returns how often it was asked.
pub fn ask_with(call: &Call, number: i64) -> Result<usize> {
    if !matches!(call.kind, Kind::Function | Kind::Method) {
        return Ok(0);
    }
    let tensors = call.tensors()?;
    let mut asked = 0;
    for at in 0.. {
        let mut other = call.clone();
        let mut left = at;
        if !replaced(&mut other.args, &mut left, number) {
            break;
        }
        for symbolic in [false, true] {
            let Ok(mut gm) = recorded_call(&other, &tensors) else {
                continue;
            };
            let (specs, _) = specs_of(&tensors, symbolic)?;
            let _ = gm.infer_shapes(&[specs]);
            asked += 1;
        }
    }
    Ok(asked)
}

/// Replaces the whole number behind so many others, if there is one.
pub(crate) fn replaced(args: &mut [Arg], left: &mut usize, number: i64) -> bool {
    args.iter_mut().any(|arg| match arg {
        Arg::Int(own) if *left == 0 => {
            *own = number;
            true
        }
        Arg::Int(_) => {
            *left -= 1;
            false
        }
        Arg::List(items) => replaced(items, left, number),
        _ => false,
    })
}

/// Sizes that depend on data fit every size.
fn fits(found: &str, expected: &str) -> bool {
    let (found, expected) = (found.split(' '), expected.split(' '));
    found.clone().count() == expected.clone().count()
        && found.zip(expected).all(|(a, b)| a == b || a == "?")
}

fn shown(meta: &ValueMeta, of: &impl Fn(&str) -> Option<i64>) -> Result<String> {
    let size = |dim: &Dim| match dim.symbols().iter().any(|name| name.starts_with('u')) {
        true => Ok("?".to_string()),
        false => dim.eval(of).map(|size| size.to_string()),
    };
    let tensor = |tensor: &TensorMeta| {
        let sizes = tensor.shape.iter().map(size);
        let dtype = tensor.dtype.map_or("none", DType::name);
        let sizes = sizes.collect::<Result<Vec<String>>>()?;
        Ok::<_, Error>(format!("{dtype} [ {} ]", sizes.join(" ")))
    };
    Ok(match meta {
        ValueMeta::Single(meta) => tensor(meta)?,
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            let items = items.iter().map(|item| shown(item, of));
            format!("( {} )", items.collect::<Result<Vec<_>>>()?.join(" , "))
        }
        ValueMeta::Int(dim) => size(dim)?,
        _ => "value".to_string(),
    })
}
