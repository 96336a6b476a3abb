//! `AnnotateTypes`: the types that signatures say, written at the nodes.

use super::callee::Callee;
use super::pass::Pass;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operators;
use crate::module::attributes::Attributes;

/// Annotates each call that has no type yet with what its function or module returns, and each item that is taken of a
/// tuple or a list with the type of that item: torch.fx's `AnnotateTypesWithSchema` and `annotate_getitem_nodes`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::AnnotateTypes;
/// #[wrap] fn halves(x: Float) -> Result<(Float, Int)> { Ok(((x / 2.0)?, Int::from(2))) }
/// let mut gm = symbolic_trace(traced!(|x: Float| halves(x)?.0 + 1.0))?;
/// gm.eliminate_dead_code()?; // the second item
/// gm.apply(&AnnotateTypes)?;
/// let types: Vec<_> = gm.graph().nodes().filter_map(|node| node.type_expr()).collect();
/// assert_eq!(types, ["Float", "(Float, Int)", "Float"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotateTypes;

impl Pass for AnnotateTypes {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        let mut changed = false;
        let mut cursor = graph.cursor();
        while let Some(id) = cursor.advance() {
            let node = cursor.node(id)?;
            if node.type_expr().is_some() {
                continue;
            }
            let Some(ty) = type_of(node, &cursor, attributes) else {
                continue;
            };
            let ty = ty.to_string();
            cursor.node_mut(id)?.set_type_expr(Some(&ty));
            changed = true;
        }
        Ok(changed)
    }
}

fn type_of<'g>(node: NodeRef<'g>, graph: &'g Graph, attributes: &'g Attributes) -> Option<&'g str> {
    if *node.op() == Op::CallFunction(operators::getitem) {
        let [Argument::Node(of), Argument::Int(at)] = node.args() else {
            return None;
        };
        return item(
            graph.node(*of).ok()?.type_expr()?,
            usize::try_from(*at).ok()?,
        );
    }
    let returns = match Callee::of(node) {
        Callee::Function(function) => function.def().returns,
        Callee::Op(Op::CallModule(path)) => attributes.modules.get(path)?.returns(),
        Callee::Op(_) => return None,
    };
    (!returns.is_empty()).then_some(returns)
}

/// The type of an item of a tuple or a list.
fn item(ty: &str, at: usize) -> Option<&str> {
    let list = ["Vec<", "List<"].into_iter().find_map(|open| {
        let inner = ty.strip_prefix(open)?;
        inner.strip_suffix('>')
    });
    if let Some(inner) = list {
        return Some(inner.trim());
    }
    if let Some(inner) = ty.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.rsplit_once(';').map(|(inner, _)| inner.trim());
    }
    let inner = ty.strip_prefix('(')?.strip_suffix(')')?;
    parts(inner).nth(at)
}

/// The parts between commas that are not inside brackets.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut depth = 0i32;
        let end = rest.char_indices().find(|(_, c)| {
            depth += match c {
                '(' | '[' | '<' => 1,
                ')' | ']' | '>' => -1,
                _ => 0,
            };
            *c == ',' && depth == 0
        });
        let part = match end {
            Some((end, _)) => {
                let part = &rest[..end];
                rest = &rest[end + 1..];
                part
            }
            None => std::mem::take(&mut rest),
        };
        let part = part.trim();
        (!part.is_empty()).then_some(part)
    })
}
