//! What generated source shows a reader besides the computation: colours, and where nodes came from.

use crate::ir::node::NodeRef;
use crate::text::Comment;
use crate::value::object::short_type_name;

/// A line in the colours of a terminal: comments and drops dim, the name that it binds bold.
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

/// Where nodes came from, told where it changes.
#[derive(Default)]
pub(super) struct Places {
    last: Option<String>,
}

impl Places {
    /// The place of a node as a comment, where it is another than that of the node before.
    pub(super) fn next(&mut self, node: NodeRef<'_>) -> Option<String> {
        let location = node.location().map(|at| format!("{}:{}", at.file, at.line));
        let module = node.module_stack().last().map(|scope| {
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
