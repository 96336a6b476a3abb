//! What differs in the modules and tensors that two nodes name.
//!
//! Invariant: tensors are the same if they have the same type, shape and elements, whichever object holds them.

use indexmap::IndexMap;

use crate::error::Result;
use crate::file::json::Json;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::registry::saver;
use crate::value::value::Value;

/// What differs in what two nodes name: `weight`, `bias (new)`, `eps`; nothing if all of it is the same.
pub(super) fn differences(
    (before, old): (&GraphModule, NodeRef<'_>),
    (after, new): (&GraphModule, NodeRef<'_>),
) -> Vec<String> {
    match (old.op(), new.op()) {
        (Op::GetAttr(one), Op::GetAttr(other)) => {
            let pair = (
                before.attributes().tensor(one),
                after.attributes().tensor(other),
            );
            match pair {
                (Ok(one), Ok(other)) if !is_same_tensor(one, other) => vec!["value".to_string()],
                _ => Vec::new(),
            }
        }
        (Op::CallModule(one), Op::CallModule(other)) => {
            let pair = (
                before.attributes().module(one),
                after.attributes().module(other),
            );
            match pair {
                (Ok(one), Ok(other)) => of_modules(one, other),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn of_modules(old: &dyn Module, new: &dyn Module) -> Vec<String> {
    // The sides of a branch or a loop are graphs that are compared by themselves.
    if !old.graph_names().is_empty() && old.type_name() == new.type_name() {
        return Vec::new();
    }
    if old.type_name() != new.type_name() {
        return vec![format!("{} for {}", new.type_name(), old.type_name())];
    }
    let mut found = Vec::new();
    let before = old.state_dict();
    let mut left: IndexMap<&str, &Value> = IndexMap::new();
    left.extend(before.iter().map(|(name, value)| (name.as_str(), value)));
    for (name, value) in &new.state_dict() {
        match left.shift_remove(name.as_str()) {
            None => found.push(format!("{name} (new)")),
            Some(one) if !is_same_tensor(one, value) => found.push(name.clone()),
            Some(_) => {}
        }
    }
    found.extend(left.keys().map(|name| format!("{name} (gone)")));
    // What is saved beside tensors; a module that cannot be saved has its tensors compared alone.
    if let (Ok(one), Ok(other)) = (settings(old), settings(new)) {
        found.extend(of_settings(&one, &other));
    }
    found
}

fn settings(module: &dyn Module) -> Result<Json> {
    module.to_saved(&mut saver().naming_tensors())
}

/// The names of the settings that differ, those of tensors left out.
fn of_settings(old: &Json, new: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![(String::new(), old, new)];
    while let Some((path, old, new)) = left.pop() {
        match (old, new) {
            (Json::Object(one), Json::Object(other)) => {
                for (key, value) in other.iter().rev() {
                    let below = match path.is_empty() {
                        true => key.clone(),
                        false => format!("{path}.{key}"),
                    };
                    left.push((below, one.get(key).unwrap_or(&Json::Null), value));
                }
            }
            // A tensor that is new or gone is named as one.
            (Json::Null, Json::Object(_)) | (Json::Object(_), Json::Null) => {}
            (one, other) if one != other => found.push(path),
            _ => {}
        }
    }
    found
}

fn is_same_tensor(one: &Value, other: &Value) -> bool {
    let (Some(a), Some(b)) = (one.as_object(), other.as_object()) else {
        return one.to_string() == other.to_string();
    };
    if a.object_id().is_some() && a.object_id() == b.object_id() {
        return true;
    }
    let (Ok(a), Ok(b)) = (a.to_data(), b.to_data()) else {
        return false;
    };
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    match (a.bytes(), b.bytes()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
