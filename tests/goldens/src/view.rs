//! Our graphs as the comparator sees them.

use fx_core::ir::{
    Argument, Graph, Literal as Default, NodeRef, Op, ParamKind, ParamSpec, registry,
};

use crate::compare::{NodeView, ParamView};
use crate::golden::Literal;

/// The nodes of a graph; `params_of_module` gives the parameters of the module at a path.
pub fn view<'m>(
    graph: &Graph,
    params_of_module: impl Fn(&str) -> Option<&'m [ParamSpec]>,
) -> Vec<NodeView> {
    graph
        .nodes()
        .map(|node| NodeView {
            op: node.opcode().name().to_string(),
            name: node.name().to_string(),
            target: match node.op() {
                // `r#mod` is how Rust spells a name that is a keyword.
                Op::CallFunction(function) => function.path().replace("::", ".").replace("r#", ""),
                op => op.target().to_string(),
            },
            args: node.args().iter().map(|a| literal(graph, a)).collect(),
            kwargs: node
                .kwargs()
                .iter()
                .map(|(k, a)| (k.to_string(), literal(graph, a)))
                .collect(),
            params: params(node, &params_of_module),
        })
        .collect()
}

fn params<'m>(
    node: NodeRef<'_>,
    params_of_module: impl Fn(&str) -> Option<&'m [ParamSpec]>,
) -> Option<Vec<ParamView>> {
    let specs = match node.op() {
        Op::CallFunction(function) => function.params(),
        Op::CallMethod(name) => registry::methods(name).first()?.params(),
        Op::CallModule(path) => params_of_module(path)?,
        _ => return None,
    };
    Some(
        specs
            .iter()
            .map(|spec| ParamView {
                name: spec.name.to_string(),
                keyword_only: spec.kind == ParamKind::Keyword,
                default: spec.default.as_ref().map(|d| match d {
                    Default::None => Literal::None,
                    Default::Bool(x) => Literal::Bool(*x),
                    Default::Int(x) => Literal::Int(*x),
                    Default::Float(x) => Literal::Float(*x),
                    Default::Str(x) => Literal::Str(x.to_string()),
                    other => Literal::Str(other.to_string()),
                }),
            })
            .collect(),
    )
}

fn literal(graph: &Graph, arg: &Argument) -> Literal {
    let all = |items: &[Argument]| items.iter().map(|a| literal(graph, a)).collect();
    match arg {
        Argument::Node(id) => Literal::Node(
            graph
                .node(*id)
                .map_or_else(|_| "<erased>".to_string(), |n| n.name().to_string()),
        ),
        Argument::None => Literal::None,
        Argument::Ellipsis => Literal::Ellipsis,
        Argument::Bool(x) => Literal::Bool(*x),
        Argument::Int(x) => Literal::Int(*x),
        Argument::Float(x) => Literal::Float(*x),
        Argument::Str(x) => Literal::Str(x.to_string()),
        Argument::DType(x) => Literal::DType(format!("torch.{x}")),
        Argument::List(items) => Literal::List(all(items)),
        Argument::Tuple(items) => Literal::Tuple(all(items)),
        Argument::Dict(items) => Literal::Dict(
            items
                .iter()
                .map(|(k, a)| (Literal::Str(k.to_string()), literal(graph, a)))
                .collect(),
        ),
        Argument::Slice(parts) => {
            let [a, b, c] = &**parts;
            Literal::Slice(Box::new([
                literal(graph, a),
                literal(graph, b),
                literal(graph, c),
            ]))
        }
        other => Literal::Str(format!("{other:?}")),
    }
}
