//! What the file's arguments and results stand for: the name of a result, the value of an argument.
//!
//! Invariant: an argument that is no value is refused.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::memory::Memory;
use crate::element;
use crate::schema::{self, Argument, OptionalTensor, Sym};

/// The name of an output; `None` has none.
pub(super) fn name(output: &Argument) -> Result<Option<&str>> {
    Ok(match output {
        Argument::AsTensor(named) => Some(&*named.name),
        Argument::AsSymInt(Sym::AsName(name))
        | Argument::AsSymBool(Sym::AsName(name))
        | Argument::AsSymFloat(Sym::AsName(name)) => Some(name),
        Argument::AsOptionalTensor(OptionalTensor::AsTensor(named)) => Some(&named.name),
        Argument::AsNone(_) | Argument::AsOptionalTensor(_) => None,
        other => return Err(Error::msg(format_args!("a result is {other:?}"))),
    })
}

/// The names that outputs give, those of lists one by one.
pub(super) fn names(outputs: &[Argument]) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for output in outputs {
        match output {
            Argument::AsTensors(all) => names.extend(all.iter().map(|named| &*named.name)),
            other => names.extend(name(other)?),
        }
    }
    Ok(names)
}

/// The tensors that an argument or a result names.
pub(super) fn tensors(argument: &Argument) -> Vec<&str> {
    fn optional(tensor: &OptionalTensor) -> Option<&str> {
        match tensor {
            OptionalTensor::AsTensor(named) => Some(&*named.name),
            OptionalTensor::AsNone(_) => None,
        }
    }
    match argument {
        Argument::AsTensors(all) => all.iter().map(|named| &*named.name).collect(),
        Argument::AsOptionalTensors(all) => all.iter().filter_map(optional).collect(),
        Argument::AsNestedTensors(all) => all.iter().flatten().map(|named| &*named.name).collect(),
        one => one.tensor().into_iter().collect(),
    }
}

fn sym<'n>(sym: &'n Sym, memory: &mut Memory<'n>) -> Result<Value> {
    Ok(match sym {
        Sym::AsName(name) => memory.get(name)?,
        Sym::AsInt(number) => Value::Int(*number),
        Sym::AsFloat(number) => Value::Float(float(number)?),
        Sym::AsBool(boolean) => Value::Bool(*boolean),
    })
}

fn float(number: &schema::Number) -> Result<f64> {
    number
        .value()
        .ok_or_else(|| Error::msg(format_args!("{number:?} is no float")))
}

/// The value of an argument.
pub(super) fn argument<'n>(argument: &'n Argument, memory: &mut Memory<'n>) -> Result<Value> {
    fn list<'n, T>(items: &'n [T], of: impl FnMut(&'n T) -> Result<Value>) -> Result<Value> {
        Ok(Value::List(
            items.iter().map(of).collect::<Result<Vec<Value>>>()?.into(),
        ))
    }
    let mut optional = |tensor: &'n OptionalTensor| match tensor {
        OptionalTensor::AsTensor(named) => memory.get(&named.name),
        OptionalTensor::AsNone(_) => Ok(Value::None),
    };
    Ok(match argument {
        Argument::AsNone(_) | Argument::AsMemoryFormat(_) | Argument::AsLayout(_) => Value::None,
        // Every program runs where its inputs are.
        Argument::AsDevice(_) => Value::None,
        Argument::AsTensor(named) => memory.get(&named.name)?,
        Argument::AsTensors(all) => list(all, |named| memory.get(&named.name))?,
        Argument::AsOptionalTensor(tensor) => optional(tensor)?,
        Argument::AsOptionalTensors(all) => list(all, optional)?,
        Argument::AsInt(number) => Value::Int(*number),
        Argument::AsInts(all) => list(all, |number| Ok(Value::Int(*number)))?,
        Argument::AsFloat(number) => Value::Float(float(number)?),
        Argument::AsFloats(all) => list(all, |number| Ok(Value::Float(float(number)?)))?,
        Argument::AsBool(boolean) => Value::Bool(*boolean),
        Argument::AsBools(all) => list(all, |boolean| Ok(Value::Bool(*boolean)))?,
        Argument::AsString(text) => Value::Str(text.as_str().into()),
        Argument::AsStrings(all) => list(all, |text| Ok(Value::Str(text.as_str().into())))?,
        Argument::AsSymInt(one) | Argument::AsSymBool(one) | Argument::AsSymFloat(one) => {
            sym(one, memory)?
        }
        Argument::AsSymInts(all) | Argument::AsSymBools(all) | Argument::AsSymFloats(all) => {
            list(all, |one| sym(one, memory))?
        }
        Argument::AsScalarType(code) => match element::complex(*code) {
            Some(parts) => Value::Str(parts.into()),
            None => Value::DType(element::dtype(*code)?),
        },
        Argument::AsIntLists(all) => list(all, |row| list(row, |number| Ok(Value::Int(*number))))?,
        Argument::AsFloatLists(all) => list(all, |row| {
            list(row, |number| Ok(Value::Float(float(number)?)))
        })?,
        Argument::AsNestedTensors(all) => {
            list(all, |row| list(row, |named| memory.get(&named.name)))?
        }
        Argument::AsComplex(_) => return Err(Error::msg("complex numbers are not there")),
        Argument::AsCustomObj(_) => {
            return Err(Error::msg(
                "an object of the user's own class, which is not run",
            ));
        }
        Argument::AsOperator(name) => Value::Str(name.as_str().into()),
        Argument::AsGraph(_) | Argument::AsStringToArgument(_) => {
            return Err(Error::msg("an argument that is no value"));
        }
    })
}
