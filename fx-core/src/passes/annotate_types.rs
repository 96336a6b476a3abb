//! `AnnotateTypes`: writes the types of signatures at the nodes.

use super::pass::Pass;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::rust_type::RustType;
use crate::module::attributes::Attributes;
use crate::module::call::{Call, Callee};

/// Annotates each call that has no type with what its function or module returns, and each item
/// taken from a tuple or a list with its type: torch.fx's `AnnotateTypesWithSchema` and
/// `annotate_getitem_nodes`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::AnnotateTypes;
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
    fn enters_control(&self) -> bool {
        true
    }

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
            cursor.node_mut(id)?.set_type_expr(Some(&ty));
            changed = true;
        }
        Ok(changed)
    }
}

fn type_of(node: NodeRef<'_>, graph: &Graph, attributes: &Attributes) -> Option<String> {
    if *node.op() == Op::CallFunction(operator::getitem) {
        let [Argument::Node(of), Argument::Int(at)] = node.args() else {
            return None;
        };
        let of = RustType::parse(graph.node(*of).ok()?.type_expr()?).ok()?;
        let item = of.item(usize::try_from(*at).ok()?)?;
        return Some(item.to_string());
    }
    let returns = match Call::of(node, attributes).callee() {
        Callee::Function(function) => function.def().returns,
        Callee::Module(module) => module.returns(),
        Callee::Methods(_) | Callee::None => return None,
    };
    (!returns.is_empty()).then(|| returns.to_string())
}
