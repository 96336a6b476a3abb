//! What generated source shows besides the computation: colours, and where nodes came from.

use crate::ir::node::NodeRef;
use crate::text::Comment;
use crate::value::object::short_type_name;

/// A line in terminal colours: comments and drops are dim, the bound name is bold.
pub(super) fn colored(line: &str) -> String {
    const DIM: &str = "\x1b[2m";
    const BOLD: &str = "\x1b[1m";
    const END: &str = "\x1b[0m";
    if line.starts_with("//") {
        return format!("{DIM}{line}{END}");
    }
    let (code, drops) = match line.split_once(";  ") {
        Some((code, drops)) => (format!("{code};"), format!("  {DIM}{drops}{END}")),
        None => (line.to_string(), String::new()),
    };
    match code.strip_prefix("let ").and_then(|c| c.split_once(' ')) {
        Some((name, rest)) => format!("let {BOLD}{name}{END} {rest}{drops}"),
        None => format!("{code}{drops}"),
    }
}

/// Where nodes came from, shown only where it changes.
#[derive(Default)]
pub(super) struct Places {
    last: Option<String>,
}

/// The modules that nodes came from, shown where one begins.
#[derive(Default)]
pub(super) struct Boundaries<'g> {
    /// The module and its call of the previous node.
    last: Option<(&'g str, u32)>,
}

impl<'g> Boundaries<'g> {
    /// The module of a node as a comment, if the previous node came from another module or call.
    pub(super) fn next(&mut self, node: NodeRef<'g>) -> Option<String> {
        let scope = node.modules_around().next()?;
        let here = (&*scope.path, scope.call);
        let is_new = match self.last.replace(here) {
            Some(before) => before != here,
            // The head of the function says that it begins with the root.
            None => !scope.path.is_empty(),
        };
        if !is_new {
            return None;
        }
        let name = short_type_name(&scope.type_name);
        let text = match scope.path.is_empty() {
            true => name,
            false => format!("{}: {name}", scope.path),
        };
        Some(format!("// {}", Comment(&text)))
    }
}

impl Places {
    /// The place of a node as a comment, if it differs from that of the previous node.
    pub(super) fn next(&mut self, node: NodeRef<'_>) -> Option<String> {
        let location = node.location().map(|at| format!("{}:{}", at.file, at.line));
        let module = node.modules_around().next().map(|scope| {
            let name = short_type_name(&scope.type_name);
            match scope.path.is_empty() {
                true => format!("in {name}"),
                false => format!("in {} ({name})", scope.path),
            }
        });
        let place = match (location, module) {
            (None, None) => "// made without a place in the source".to_string(),
            (location, module) => {
                let parts: Vec<String> = location.into_iter().chain(module).collect();
                format!("// {}", Comment(&parts.join(" ")))
            }
        };
        let is_new = self.last.as_ref() != Some(&place);
        is_new.then(|| self.last.insert(place).clone())
    }
}
