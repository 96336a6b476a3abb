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

/// A module around a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Around<'n> {
    /// Which call of which module it is: a key with the path, and behind it `@1` in its second call.
    pub call: &'n str,
    pub path: &'n str,
    /// The class with its Python module: `torch.nn.modules.conv.Conv2d`.
    pub class: &'n str,
}

impl<'n> Around<'n> {
    /// The path, with `@1` behind it in the module's second call.
    pub fn numbered_path(&self) -> String {
        match self.call.rsplit_once('@') {
            Some((_, call)) => format!("{}@{call}", self.path),
            None => self.path.to_string(),
        }
    }

    /// The class without its Python module.
    pub fn name(&self) -> &'n str {
        self.class.rsplit('.').next().unwrap_or(self.class)
    }
}

/// The modules around a node, from the outside in; the root is not among them.
pub(crate) fn modules(node: &Node) -> Vec<Around<'_>> {
    let stack = node.metadata.get("nn_module_stack");
    let entries = stack.map_or("", String::as_str).split(';');
    let entries = entries.filter_map(|entry| {
        let mut parts = entry.splitn(3, ',');
        let (call, path, class) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.split('@').next().unwrap_or_default();
        // A part of a list is no module: `layers.slice(0, 2, None)`.
        let fits = !path.is_empty() && !path.contains(['(', '[', ' ']);
        fits.then_some(Around { call, path, class })
    });
    entries
        .filter(|around| around.path != "_empty_nn_module_stack_from_metadata_hook")
        .collect()
}
