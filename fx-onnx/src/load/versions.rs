//! The versions that a file says: of ONNX's format, and of the operators of each domain.
//!
//! Invariant: an operator is read as the version of the file defines it, or not at all.

use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

use crate::proto::{ModelProto, OperatorSetIdProto};

/// The newest version of ONNX's format that is read.
const FORMAT: i64 = 14;

/// The newest version of ONNX's own operators that is read.
const OPERATORS: i64 = 28;

/// The name of a domain: ONNX's own has two.
pub(super) fn domain(name: &str) -> &str {
    match name {
        "ai.onnx" => "",
        name => name,
    }
}

/// Refuses a file of a version that there is not, or that fx does not know.
pub(super) fn check(model: &ModelProto) -> Result<()> {
    let format = model.ir_version;
    if !(1..=FORMAT).contains(&format) {
        return Err(Error::msg(format_args!(
            "the file is of version {format} of ONNX's format (`ir_version`), and fx reads 1 to {FORMAT}"
        )));
    }
    if model.opset_import.is_empty() {
        return Err(Error::msg(
            "the file does not say which version of ONNX's operators it uses (`opset_import`)",
        ));
    }
    sets(&model.opset_import)?;
    model.functions.iter().try_for_each(|function| {
        sets(&function.opset_import)
            .map_err(|e| Error::msg(format_args!("the function `{}`: {e}", function.name)))
    })
}

fn sets(all: &[OperatorSetIdProto]) -> Result<()> {
    let mut known: FxHashMap<&str, i64> = FxHashMap::default();
    for OperatorSetIdProto {
        domain: name,
        version,
    } in all
    {
        let name = domain(name);
        let newest = if name.is_empty() {
            OPERATORS
        } else {
            i64::from(i32::MAX)
        };
        let of = match name {
            "" => "ONNX's operators",
            name => name,
        };
        if !(1..=newest).contains(version) {
            return Err(Error::msg(format_args!(
                "the file uses version {version} of {of}, and fx reads 1 to {newest}"
            )));
        }
        if known
            .insert(name, *version)
            .is_some_and(|other| other != *version)
        {
            return Err(Error::msg(format_args!(
                "the file uses two versions of {of}"
            )));
        }
    }
    Ok(())
}
