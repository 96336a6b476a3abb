//! Where a node came from: the line of Python, and the modules around it.

use fx_nn::ir::SourceLocation;

use crate::schema::Node;

/// The innermost line of the user's own code; lines of PyTorch's layers stand behind it.
pub(crate) fn location(node: &Node) -> SourceLocation {
    let trace = node.metadata.get("stack_trace").map_or("", String::as_str);
    let frames = trace.lines().filter_map(|line| {
        let (file, rest) = line
            .trim()
            .strip_prefix("File \"")?
            .split_once("\", line ")?;
        let number = rest.split(',').next()?.trim().parse::<u32>().ok()?;
        Some((file, number))
    });
    let frames: Vec<(&str, u32)> = frames.collect();
    let is_own =
        |(file, _): &&(&str, u32)| !file.contains("/torch/") && !file.starts_with("torch/");
    match frames.iter().rev().find(is_own).or(frames.last()) {
        Some((file, line)) => SourceLocation::new(file.to_string(), *line, 1),
        None => SourceLocation::new(
            node.name.clone().unwrap_or_else(|| node.target.clone()),
            1,
            1,
        ),
    }
}

/// The modules around a node, from the outside in: path and class.
pub(crate) fn modules(node: &Node) -> Vec<(String, String)> {
    let stack = node.metadata.get("nn_module_stack");
    let entries = stack.map_or("", String::as_str).split(';');
    let entries = entries.filter_map(|entry| {
        let mut parts = entry.splitn(3, ',');
        let (_, path, class) = (parts.next()?, parts.next()?, parts.next()?);
        // A second call of a module has `@1` behind its path.
        let path = path.split('@').next().unwrap_or_default();
        let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let fits = !path.is_empty() && path.chars().all(is_path);
        fits.then(|| {
            (
                path.to_string(),
                class.rsplit('.').next().unwrap_or(class).to_string(),
            )
        })
    });
    entries
        .filter(|(path, _)| path != "_empty_nn_module_stack_from_metadata_hook")
        .collect()
}
