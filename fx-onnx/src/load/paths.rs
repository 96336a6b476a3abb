//! Module paths, from what exporters leave in files: metadata, or names with slashes.

use std::sync::Arc;

use crate::proto::NodeProto;

/// The items of a list as Python writes it.
fn listed(text: &str) -> Vec<String> {
    text.split('\'')
        .skip(1)
        .step_by(2)
        .map(str::to_string)
        .collect()
}

/// A path of names that can be fields.
pub(super) fn clean(text: &str) -> String {
    let parts = text.split(['.', '/']).filter(|part| !part.is_empty());
    let parts = parts.map(|part| {
        part.chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c
                } else {
                    '_'
                }
            })
            .collect::<String>()
    });
    parts.collect::<Vec<String>>().join(".")
}

/// The modules around a node, from the outside in: path and type.
pub(super) fn modules_of(node: &NodeProto) -> Vec<(Arc<str>, Arc<str>)> {
    let of = |key: &str| {
        node.metadata_props
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &*entry.value)
    };
    if let Some(scopes) = of("pkg.torch.onnx.name_scopes") {
        let mut paths = listed(scopes);
        let types = of("pkg.torch.onnx.class_hierarchy")
            .map(listed)
            .unwrap_or_default();
        // The last is the node itself.
        paths.pop();
        return paths
            .into_iter()
            .enumerate()
            .filter(|(_, path)| !path.is_empty())
            .map(|(at, path)| {
                (
                    Arc::from(clean(&path)),
                    Arc::from(types.get(at).map_or("", String::as_str)),
                )
            })
            .collect();
    }
    if let Some(names) = node.name.strip_prefix('/') {
        let mut all: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let mut path = String::new();
        let mut parts: Vec<&str> = names.split('/').collect();
        parts.pop();
        for part in parts {
            // A part may repeat the path so far.
            path = match part.strip_prefix(&format!("{path}.")) {
                Some(_) if !path.is_empty() => part.to_string(),
                _ if path.is_empty() => part.to_string(),
                _ => format!("{path}.{part}"),
            };
            all.push((Arc::from(clean(&path)), Arc::from("")));
        }
        return all;
    }
    Vec::new()
}
