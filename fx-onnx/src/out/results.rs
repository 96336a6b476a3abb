//! The results of a file: values under the names that the user gives.
//!
//! Invariant: a result has a name that no input, constant or other result has.

use std::sync::Arc;

use fx_nn::ir::TensorMeta;
use fx_nn::lowering::{Name, Operand, Val};
use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{Cx, Mark, maps_info, sequence_info, texts_info, unranked_info, value_info};
use super::options::Export;
use crate::proto::ValueInfoProto;

/// The outputs with their types: values under the names that the user gives.
pub(super) fn outputs(
    cx: &mut Cx,
    export: &Export,
    inputs: &[ValueInfoProto],
    results: Vec<Val>,
) -> Result<Vec<ValueInfoProto>> {
    let results: Vec<Val> = results
        .into_iter()
        .filter(|val| *val != Val::None)
        .collect();
    if export.outputs.len() > results.len() {
        return Err(Error::msg(format_args!(
            "{} names of outputs for {} outputs",
            export.outputs.len(),
            results.len()
        )));
    }
    // What no node gives: inputs, constants, and what is an output already.
    let mut taken: FxHashSet<Name> = inputs
        .iter()
        .map(|info| info.name.as_str().into())
        .collect();
    taken.extend(cx.constants.iter().map(|constant| constant.name.clone()));
    let mut constants = cx.constants.len();
    let mut renames: FxHashMap<String, String> = FxHashMap::default();
    let mut infos = Vec::new();
    cx.mark = Arc::new(Mark {
        node: "output".to_string(),
        ..Mark::default()
    });
    for (at, result) in results.iter().enumerate() {
        let dtype = match result {
            Val::Tensor(of) => of.dtype,
            Val::Unranked(_, dtype) => *dtype,
            Val::Float(_) => DType::F64,
            Val::Bool(_) => DType::Bool,
            Val::Dim(_) => DType::I64,
            // Whatever it is: the element types of these are not fx's.
            Val::Texts(..) | Val::Maps(_) => DType::U8,
            Val::Sequence(_, dtype) => *dtype,
            other => {
                return Err(Error::msg(format_args!(
                    "output {at} is {}, which a file does not give",
                    other.describe()
                )));
            }
        };
        let of = match result {
            Val::Texts(name, shape) => Operand {
                name: name.clone(),
                dtype,
                shape: shape.clone(),
            },
            Val::Maps(name) | Val::Sequence(name, _) => Operand {
                name: name.clone(),
                dtype,
                shape: Vec::new(),
            },
            other => cx.elements(other, dtype)?,
        };
        let made = cx.constants[constants..].iter();
        taken.extend(made.map(|constant| constant.name.clone()));
        constants = cx.constants.len();
        let wanted = export.outputs.get(at);
        let own = taken.insert(of.name.clone());
        let name: Name = match (own, wanted) {
            (true, None) => of.name.clone(),
            (true, Some(name)) => {
                let name = cx.fresh(name);
                renames.insert(of.name.to_string(), name.to_string());
                name
            }
            (false, _) => {
                let made = cx.op("Identity", &[&of.name]);
                match wanted {
                    Some(name) => {
                        let name = cx.fresh(name);
                        renames.insert(made.to_string(), name.to_string());
                        name
                    }
                    None => made,
                }
            }
        };
        infos.push(match result {
            Val::Unranked(..) => unranked_info(&name, of.dtype)?,
            Val::Texts(..) => texts_info(&name, &of.shape),
            Val::Maps(_) => maps_info(&name),
            Val::Sequence(..) => sequence_info(&name, of.dtype)?,
            _ => value_info(&name, &TensorMeta::new(of.shape).dtype(of.dtype))?,
        });
    }
    if !renames.is_empty() {
        let scope = cx.scope();
        rename(&mut scope.nodes, &renames);
        for info in &mut scope.value_info {
            if let Some(new) = renames.get(&info.name) {
                info.name.clone_from(new);
            }
        }
    }
    // What is an output is described there.
    let named: FxHashSet<String> = infos.iter().map(|info| info.name.clone()).collect();
    cx.scope()
        .value_info
        .retain(|info| !named.contains(&info.name));
    Ok(infos)
}

/// Other names for values, in nodes and the graphs inside of them.
fn rename(nodes: &mut [crate::proto::NodeProto], names: &FxHashMap<String, String>) {
    let mut left: Vec<&mut [crate::proto::NodeProto]> = vec![nodes];
    while let Some(nodes) = left.pop() {
        for node in nodes {
            for text in node.input.iter_mut().chain(&mut node.output) {
                if let Some(new) = names.get(text) {
                    text.clone_from(new);
                }
            }
            for attribute in &mut node.attribute {
                if let Some(graph) = &mut attribute.g {
                    for info in &mut graph.output {
                        if let Some(new) = names.get(&info.name) {
                            info.name.clone_from(new);
                        }
                    }
                    left.push(&mut graph.node);
                }
            }
        }
    }
}
