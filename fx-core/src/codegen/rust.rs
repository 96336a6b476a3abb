//! Rust source of a graph: the `forward` that a person would write, with values dropped after last use.

use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use super::types::{Scalar, returned_type, scalars};
use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::ir::signature::{Bound, ParamSpec, bind};
use crate::value::handle::NodeId;
use crate::value::operator::Operator;
use crate::value::tree::Tree;

/// How a value is held by the generated code.
#[derive(Clone, Copy, PartialEq)]
enum Hold {
    /// A plain value, copied.
    Plain,
    /// A reference.
    Ref,
    /// Owned: lent as `&name`, dropped after its last use.
    Owned,
}

struct Writer<'g> {
    graph: &'g Graph,
    holds: FxHashMap<NodeId, Hold>,
    scalars: FxHashMap<NodeId, Scalar>,
    last_use: FxHashMap<NodeId, NodeId>,
    drop_path: &'static str,
    text: String,
}

/// The source of `forward` for a graph whose inputs have these parameters.
///
/// A parameter whose tree is no leaf is taken apart first.
pub(crate) fn forward_source(graph: &Graph, params: &[ParamSpec], trees: &[Tree]) -> String {
    let shadows_drop = graph.nodes().any(|node| node.name() == "drop");
    let mut writer = Writer {
        graph,
        holds: FxHashMap::default(),
        scalars: scalars(graph),
        last_use: graph
            .nodes()
            .flat_map(|user| {
                user.all_input_nodes()
                    .map(move |input| (input.id(), user.id()))
            })
            .collect(),
        drop_path: if shadows_drop {
            "core::mem::drop"
        } else {
            "drop"
        },
        text: String::new(),
    };
    writer.signature(params, trees);
    for node in graph.nodes() {
        writer.statement(node);
    }
    writer.text.push_str("}\n");
    writer.text
}

impl Writer<'_> {
    fn signature(&mut self, params: &[ParamSpec], trees: &[Tree]) {
        let mut list = vec!["&self".to_string()];
        let mut placeholders = self.graph.placeholders();
        let mut taken_apart = String::new();
        for (param, tree) in params.iter().zip(trees) {
            if tree.is_leaf() {
                let node = placeholders.next();
                list.extend(node.map(|node| self.parameter(node, params)));
                continue;
            }
            list.push(format!("{}: {}", param.name, param.ty));
            for (path, node) in tree.paths().iter().zip(&mut placeholders) {
                let (hold, lent) = match node.type_expr() {
                    Some(_) => (Hold::Plain, ""),
                    None => (Hold::Ref, "&"),
                };
                self.holds.insert(node.id(), hold);
                // A struct's dict of fields is the struct.
                let path = match path.strip_prefix("[\"").and_then(|p| p.split_once("\"]")) {
                    Some((field, rest)) if !param.ty.contains("Map<") => format!(".{field}{rest}"),
                    _ => path.clone(),
                };
                let _ = writeln!(
                    taken_apart,
                    "    let {} = {lent}{}{path};",
                    node.name(),
                    param.name
                );
            }
        }
        for node in placeholders {
            list.push(self.parameter(node, params));
        }
        let result = self
            .graph
            .output_node()
            .and_then(|node| node.args().first().map(|a| self.result_type(a)))
            .unwrap_or_else(|| "()".to_string());
        let _ = writeln!(
            self.text,
            "pub fn forward({}) -> Result<{result}> {{",
            list.join(", ")
        );
        self.text.push_str(&taken_apart);
    }

    /// A parameter that is one input, as the signature has it.
    fn parameter(&mut self, node: NodeRef<'_>, params: &[ParamSpec]) -> String {
        let declared = params.iter().find(|p| p.name == node.target());
        let ty = node
            .type_expr()
            .or(declared.map(|p| p.ty.as_ref()))
            .unwrap_or("&Tensor");
        let hold = match ty {
            ty if ty.starts_with('&') => Hold::Ref,
            "bool" | "i64" | "f64" | "usize" | "Int" | "Float" | "Bool" => Hold::Plain,
            ty if ty.starts_with("Option<&") => Hold::Plain,
            _ => Hold::Owned,
        };
        self.holds.insert(node.id(), hold);
        format!("{}: {ty}", node.name())
    }

    /// The type of a result, as far as signatures tell; a tensor otherwise.
    fn result_type(&self, arg: &Argument) -> String {
        let all = |items: &[Argument]| {
            items
                .iter()
                .map(|a| self.result_type(a))
                .collect::<Vec<_>>()
        };
        match arg {
            Argument::Node(id) => match self.scalars.get(id) {
                Some(scalar) => scalar.name().to_string(),
                None => self
                    .graph
                    .node(*id)
                    .ok()
                    .and_then(returned_type)
                    .unwrap_or_else(|| "Tensor".to_string()),
            },
            Argument::Tuple(items) => {
                let items = all(items);
                match items.as_slice() {
                    [one] => format!("({one},)"),
                    many => format!("({})", many.join(", ")),
                }
            }
            Argument::List(items) => match all(items).first() {
                Some(first) => format!("Vec<{first}>"),
                None => "Vec<Tensor>".to_string(),
            },
            Argument::Dict(_) => "IndexMap<String, Tensor>".to_string(),
            Argument::None => "()".to_string(),
            Argument::Bool(_) => "Bool".to_string(),
            Argument::Int(_) => "Int".to_string(),
            Argument::Float(_) => "Float".to_string(),
            _ => "Value".to_string(),
        }
    }

    fn statement(&mut self, node: NodeRef<'_>) {
        let name = node.name();
        let line = match node.op() {
            Op::Placeholder(_) => return,
            Op::Output => {
                let result = node
                    .args()
                    .first()
                    .map_or_else(|| "()".to_string(), |arg| self.given(arg));
                let _ = writeln!(self.text, "    Ok({result})");
                return;
            }
            Op::GetAttr(path) => {
                self.holds.insert(node.id(), Hold::Ref);
                format!("let {name} = &self.{};", field_path(path))
            }
            Op::CallModule(path) => {
                let args = self.arguments(node.args()).join(", ");
                let kwargs: Vec<String> = node.kwargs().iter().map(|(_, a)| self.lent(a)).collect();
                let kwargs = kwargs.join(", ");
                let args = [args, kwargs]
                    .into_iter()
                    .filter(|a| !a.is_empty())
                    .collect::<Vec<_>>()
                    .join(", ");
                format!("let {name} = self.{}.forward({args})?;", field_path(path))
            }
            Op::CallMethod(method) => {
                let args = match registry::methods(method) {
                    [known, ..] => self.bound(*known, node),
                    [] => self.arguments(node.args()),
                };
                let (receiver, rest) = match node.args().split_first() {
                    Some((first, _)) => (self.receiver(first), args.get(1..).unwrap_or(&[])),
                    None => ("self".to_string(), args.as_slice()),
                };
                format!("let {name} = {receiver}.{method}({})?;", rest.join(", "))
            }
            Op::CallFunction(function) => match function.def().operator {
                Some(op) => format!("let {name} = {};", self.operator(op, node)),
                None => {
                    let args = self.bound(*function, node).join(", ");
                    let call = format!("{}({args})?;", function.path());
                    if node.num_users() == 0 {
                        call
                    } else {
                        format!("let {name} = {call}")
                    }
                }
            },
        };
        let hold = match self.scalars.contains_key(&node.id()) {
            true => Hold::Plain,
            false => Hold::Owned,
        };
        self.holds.entry(node.id()).or_insert(hold);
        let _ = write!(self.text, "    {line}");
        let dead: Vec<String> = node
            .all_input_nodes()
            .filter(|input| {
                self.last_use.get(&input.id()) == Some(&node.id())
                    && self.holds.get(&input.id()) == Some(&Hold::Owned)
            })
            .map(|input| format!("{}({});", self.drop_path, input.name()))
            .collect();
        if !dead.is_empty() {
            let _ = write!(self.text, "  {}", dead.join(" "));
        }
        self.text.push('\n');
    }

    fn operator(&self, op: Operator, node: NodeRef<'_>) -> String {
        let args = self.arguments(node.args());
        match (op, args.as_slice()) {
            (Operator::Neg, [a]) => format!("(-{a})?"),
            (Operator::Invert, [a]) => format!("(!{a})?"),
            (Operator::Getitem, [_, _]) => self.getitem(node),
            (Operator::Matmul, [_, b]) => {
                format!("{}.matmul({b})?", self.receiver(&node.args()[0]))
            }
            (Operator::Pow, [_, b]) => format!("{}.pow({b})?", self.receiver(&node.args()[0])),
            (Operator::Abs, [_]) => format!("{}.abs()?", self.receiver(&node.args()[0])),
            (Operator::Floordiv, [_, b]) => {
                let method = match self.scalars.contains_key(&node.id()) {
                    true => "floordiv",
                    false => "floor_divide",
                };
                format!("{}.{method}({b})?", self.receiver(&node.args()[0]))
            }
            (op, [a, b]) => match op.infix() {
                Some(sign) => format!("({a} {sign} {b})?"),
                None => format!("fx_core::operator::{}({a}, {b})?", op.name()),
            },
            (op, args) => format!("fx_core::operator::{}({})?", op.name(), args.join(", ")),
        }
    }

    /// `x[i]`: a field of several results, or an index of a tensor.
    fn getitem(&self, node: NodeRef<'_>) -> String {
        let (container, index) = (&node.args()[0], &node.args()[1]);
        let of_tuple = container
            .as_node()
            .and_then(|id| self.graph.node(id).ok())
            .and_then(returned_type)
            .is_some_and(|ty| ty.starts_with('('));
        match index {
            Argument::Int(i) if of_tuple => format!("{}.{i}.clone()", self.receiver(container)),
            index => format!("{}.i({})?", self.receiver(container), self.lent(index)),
        }
    }

    /// Arguments in the order of the signature, defaults written out, as Rust wants them.
    fn bound(&self, function: Function, node: NodeRef<'_>) -> Vec<String> {
        let kwargs = node.kwargs().iter().map(|(k, a)| (k, a));
        match bind(function.path(), function.params(), node.args(), kwargs) {
            Ok(bound) => bound
                .into_iter()
                .map(|b| match b {
                    Bound::Given(arg) => self.lent(arg),
                    Bound::Default(literal) => self.lent(&literal.into()),
                })
                .collect(),
            Err(_) => self.arguments(node.args()),
        }
    }

    fn arguments(&self, args: &[Argument]) -> Vec<String> {
        args.iter().map(|a| self.lent(a)).collect()
    }

    fn hold(&self, id: NodeId) -> Hold {
        self.holds.get(&id).copied().unwrap_or(Hold::Owned)
    }

    fn name(&self, id: NodeId) -> String {
        self.graph
            .node(id)
            .map_or_else(|_| "erased".to_string(), |node| node.name().to_string())
    }

    fn receiver(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => self.name(*id),
            other => self.lent(other),
        }
    }

    /// An argument that the callee only looks at.
    fn lent(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => match self.hold(*id) {
                Hold::Owned => format!("&{}", self.name(*id)),
                Hold::Ref | Hold::Plain => self.name(*id),
            },
            Argument::List(items)
                if items.iter().any(|a| !a.is_leaf() || a.as_node().is_some()) =>
            {
                format!("&{}", self.built(arg, true))
            }
            other => self.built(other, true),
        }
    }

    /// An argument that the callee keeps.
    fn given(&self, arg: &Argument) -> String {
        self.built(arg, false)
    }

    /// An argument written out; `copied` leaves the values in it to their owners.
    fn built(&self, arg: &Argument, copied: bool) -> String {
        let all = |items: &[Argument]| -> Vec<String> {
            items.iter().map(|a| self.built(a, copied)).collect()
        };
        match arg {
            Argument::Node(id) => match self.hold(*id) {
                Hold::Owned if !copied => self.name(*id),
                Hold::Owned => format!("{}.clone()", self.name(*id)),
                Hold::Ref => format!("{}.clone()", self.name(*id)),
                Hold::Plain => self.name(*id),
            },
            Argument::None => "None".to_string(),
            Argument::Ellipsis => "..".to_string(),
            Argument::Bool(x) => x.to_string(),
            Argument::Int(x) => x.to_string(),
            Argument::Float(x) if x.is_nan() => "f64::NAN".to_string(),
            Argument::Float(x) if x.is_infinite() => {
                format!("f64::{}INFINITY", if *x < 0.0 { "NEG_" } else { "" })
            }
            Argument::Float(x) => format!("{x:?}"),
            Argument::Str(x) => format!("{x:?}"),
            Argument::DType(x) => format!("DType::{x:?}"),
            Argument::Device(x) => format!("Device::{x:?}"),
            Argument::List(items) => format!("[{}]", self.repeatable(&all(items))),
            Argument::Tuple(items) => match all(items).as_slice() {
                [one] => format!("({one},)"),
                many => format!("({})", self.repeatable(many)),
            },
            Argument::Dict(items) => {
                let entries: Vec<String> = items
                    .iter()
                    .map(|(k, a)| format!("({k:?}.to_string(), {})", self.built(a, copied)))
                    .collect();
                format!("IndexMap::from([{}])", entries.join(", "))
            }
            Argument::Slice(parts) => format!("slice({})", all(&parts[..]).join(", ")),
            Argument::Range(parts) => format!("range({})", all(&parts[..]).join(", ")),
        }
    }

    /// Items of a structure: a name that comes again is cloned but for its last time.
    fn repeatable(&self, items: &[String]) -> String {
        let mut seen = FxHashSet::default();
        let mut shown: Vec<String> = items
            .iter()
            .rev()
            .map(|item| {
                let is_name = item.chars().all(|c| c.is_alphanumeric() || c == '_')
                    && !item.starts_with(|c: char| c.is_ascii_digit());
                if is_name && !seen.insert(item.clone()) {
                    format!("{item}.clone()")
                } else {
                    item.clone()
                }
            })
            .collect();
        shown.reverse();
        shown.join(", ")
    }
}

/// A dotted path as Rust fields: `layer1.0.conv1` is `layer1[0].conv1`.
fn field_path(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for segment in path.split('.') {
        if !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()) {
            let _ = write!(text, "[{segment}]");
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(segment);
        }
    }
    text
}
