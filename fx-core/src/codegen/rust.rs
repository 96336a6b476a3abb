//! Rust source of a graph: the `forward` that a person would write, with values dropped after their last use.
//!
//! Invariant: a view. It decides nothing about what runs, and says each node on a line of its own.

use rustc_hash::FxHashMap;

use super::hooks::{FunctionHead, Hooks};
use super::source::{CodeLine, CodeOptions, RustCode, Text};
use super::types::{Ty, Types, bound_arguments, given, operands, optional};
use crate::ir::argument::Argument;
use crate::ir::function::{Function, WrittenArg};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operators;
use crate::ir::registry;
use crate::ir::signature::ParamSpec;
use crate::module::attributes::Attributes;
use crate::value::handle::NodeId;
use crate::value::operator::Operator;
use crate::value::tree::Tree;

/// How a value is held by the generated code.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Hold {
    /// A plain value, copied.
    Plain,
    /// A reference.
    Ref,
    /// Owned: lent as `&name`, dropped after its last use.
    Owned,
}

/// What source is written of.
pub(crate) struct Input<'g> {
    pub graph: &'g Graph,
    pub attributes: &'g Attributes,
    pub params: &'g [ParamSpec],
    /// The structures of the parameters; empty where each is one input.
    pub trees: &'g [Tree],
    /// What the graph modules give that the graph calls, by path.
    pub results: FxHashMap<&'g str, String>,
    /// How a path is written as fields, where that is not by its own segments.
    pub fields: Option<&'g FxHashMap<String, String>>,
}

pub(super) struct Writer<'g> {
    pub input: &'g Input<'g>,
    pub graph: &'g Graph,
    pub types: Types,
    /// By the nodes' indices.
    holds: Vec<Hold>,
    last_users: Vec<Option<u32>>,
    drop_path: &'static str,
    lines: Vec<CodeLine>,
}

/// What a graph gives, as Rust writes the type: what `forward` returns inside of its `Result`.
pub(crate) fn result_type(input: &Input<'_>) -> String {
    Writer::new(input).result()
}

/// The source of `forward`; `annotate` tells what is known of a node's value beyond its type.
pub(crate) fn forward_source(
    input: &Input<'_>,
    hooks: &Hooks,
    options: CodeOptions,
    annotate: &dyn Fn(NodeRef<'_>) -> Option<String>,
) -> RustCode {
    let graph = input.graph;
    let mut writer = Writer::new(input);
    writer.last_users = graph.last_users();
    writer.lines.reserve(graph.len() + 1);
    let codegen = hooks.codegen();
    let head = writer.head();
    let mut places = Places::default();
    let mut output = "()".to_string();
    for node in graph.nodes() {
        if *node.op() == Op::Output {
            if let Some(result) = node.args().first() {
                output = writer.output(result);
            }
            let text = codegen.output(&output);
            let node = Some(node.id());
            writer.lines.push(CodeLine { text, node });
            continue;
        }
        let before = writer.lines.len();
        writer.statement(node, options, annotate);
        if options.verbose
            && writer.lines.len() > before
            && let Some(place) = places.next(node)
        {
            writer.lines.insert(before, place.into());
        }
    }
    if graph.output_node().is_none() {
        writer.lines.push(codegen.output(&output).into());
    }
    let lines = hooks.apply(writer.lines);
    let mut text = Text::with_capacity(lines.len() + 4);
    let items = codegen.items();
    for item in &items {
        text.push("", item, None);
    }
    if !items.is_empty() {
        text.push("", "", None);
    }
    let head = match options.expanded {
        true => head.expanded(),
        false => codegen.head(&head),
    };
    text.push("", &format!("{head} {{"), None);
    for line in &lines {
        match options.color {
            true => text.push("    ", &colored(&line.text), line.node),
            false => text.push("    ", &line.text, line.node),
        }
    }
    text.push("", "}", None);
    text.finish()
}

/// A line in the colours of a terminal: comments and drops dim, the name that it binds bold.
fn colored(line: &str) -> String {
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
struct Places {
    last: Option<String>,
}

impl Places {
    fn next(&mut self, node: NodeRef<'_>) -> Option<String> {
        let location = node.location().map(|at| format!("{}:{}", at.file, at.line));
        let module = node.module_stack().last().map(|scope| {
            let name = crate::value::object::short_type_name(&scope.type_name);
            match scope.path.is_empty() {
                true => format!("in {name}"),
                false => format!("in {} ({name})", scope.path),
            }
        });
        let place = match (location, module) {
            (None, None) => "// made without a place in the source".to_string(),
            (location, module) => {
                let parts: Vec<String> = location.into_iter().chain(module).collect();
                format!("// {}", parts.join(" "))
            }
        };
        let is_new = self.last.as_ref() != Some(&place);
        is_new.then(|| self.last.insert(place).clone())
    }
}

impl<'g> Writer<'g> {
    fn new(input: &'g Input<'g>) -> Self {
        let graph = input.graph;
        Writer {
            input,
            graph,
            types: Types::new(graph, input.attributes, &input.results),
            holds: vec![Hold::Owned; graph.index_bound()],
            last_users: Vec::new(),
            drop_path: match graph.find_name("drop") {
                Some(_) => "core::mem::drop",
                None => "drop",
            },
            lines: Vec::new(),
        }
    }
}

impl Writer<'_> {
    /// What the graph gives.
    fn result(&self) -> String {
        let output = self.graph.output_node();
        let result = output.and_then(|node| node.args().first());
        result.map_or_else(|| "()".to_string(), |result| self.result_type(result))
    }

    /// The function's head; what takes structures and optional inputs apart becomes the first lines.
    fn head(&mut self) -> FunctionHead {
        let input = self.input;
        let mut list = vec!["&self".to_string()];
        let mut placeholders = input.graph.placeholders();
        for (param, tree) in input.params.iter().zip(input.trees) {
            if tree.is_leaf() {
                if let Some(node) = placeholders.next() {
                    list.push(self.parameter(node));
                }
                continue;
            }
            list.push(format!("{}: {}", param.name, param.ty));
            for (path, node) in tree.paths().iter().zip(&mut placeholders) {
                let (hold, lent) = match node.type_expr() {
                    Some(_) => (Hold::Plain, ""),
                    None => (Hold::Ref, "&"),
                };
                self.holds[node.id().index as usize] = hold;
                // A struct's dict of fields is the struct.
                let path = match path.strip_prefix("[\"").and_then(|p| p.split_once("\"]")) {
                    Some((field, rest)) if !param.ty.contains("Map<") => format!(".{field}{rest}"),
                    _ => path.clone(),
                };
                let text = format!("let {} = {lent}{}{path};", node.name(), param.name);
                let node = Some(node.id());
                self.lines.push(CodeLine { text, node });
            }
        }
        for node in placeholders {
            list.push(self.parameter(node));
        }
        FunctionHead {
            name: "forward".to_string(),
            params: list,
            result: self.result(),
        }
    }

    /// A parameter that is one input, as the head has it.
    fn parameter(&mut self, node: NodeRef<'_>) -> String {
        let declared = self.input.params.iter().find(|p| p.name == node.target());
        let ty = node
            .type_expr()
            .or(declared.map(|p| p.ty.as_ref()))
            .unwrap_or("&Tensor");
        let name = node.name();
        let inner = optional(ty);
        let hold = match inner.unwrap_or(ty) {
            ty if ty.starts_with('&') => Hold::Ref,
            ty if Ty::parse(ty).is_scalar() || ty == "usize" => Hold::Plain,
            _ => Hold::Owned,
        };
        self.holds[node.id().index as usize] = hold;
        // An optional input was traced as there.
        if inner.is_some() && (node.args().is_empty() || !self.is_guarded(node)) {
            let bound = match node.num_users() {
                0 => "_".to_string(),
                _ => name.to_string(),
            };
            let text = format!(
                "let {bound} = {name}.ok_or_else(|| Error::msg(\"`{name}` is missing: it was there when this was traced\"))?;"
            );
            let node = Some(node.id());
            self.lines.push(CodeLine { text, node });
        }
        let default = match node.args().first() {
            Some(Argument::None) | None => String::new(),
            Some(default) => format!("#[default({})] ", self.built(default)),
        };
        format!("{default}{name}: {ty}")
    }

    /// Whether all that a graph does with an input is to check that it is what it was specialised to.
    fn is_guarded(&self, node: NodeRef<'_>) -> bool {
        node.users()
            .all(|user| *user.op() == Op::CallFunction(operators::assert_specialized))
    }

    fn statement(
        &mut self,
        node: NodeRef<'_>,
        options: CodeOptions,
        annotate: &dyn Fn(NodeRef<'_>) -> Option<String>,
    ) {
        let Some(expression) = self.expression(node) else {
            return;
        };
        let index = node.id().index as usize;
        self.holds[index] = match node.op() {
            Op::GetAttr(_) => Hold::Ref,
            _ if self.types.of(node).is_scalar() => Hold::Plain,
            _ => Hold::Owned,
        };
        let shape = match options.verbose {
            true => annotate(node).map(|shape| format!(" /* {shape} */")),
            false => None,
        };
        let mut text = match node.num_users() {
            0 if expression.ends_with('}') => expression,
            0 if expression.ends_with("clone()") => format!("let _ = {expression};"),
            0 => format!("{expression};"),
            _ => format!(
                "let {}{} = {expression};",
                node.name(),
                shape.unwrap_or_default()
            ),
        };
        let mut before = "  ";
        for input in node.all_input_nodes() {
            let at = input.id().index as usize;
            if self.last_users[at] == Some(node.id().index) && self.holds[at] == Hold::Owned {
                text.push_str(before);
                text.push_str(&format!("{}({});", self.drop_path, input.name()));
                before = " ";
            }
        }
        let node = Some(node.id());
        self.lines.push(CodeLine { text, node });
    }

    /// What computes a node; nothing for the graph's inputs.
    fn expression(&self, node: NodeRef<'_>) -> Option<String> {
        Some(match node.op() {
            Op::Placeholder(_) | Op::Output => return None,
            Op::GetAttr(path) => format!("&self.{}", self.field_path(path)),
            Op::CallModule(path) if let Some(result) = self.input.results.get(&**path) => format!(
                "self.{}.forward::<{result}>({})?",
                self.field_path(path),
                self.for_graph_module(node)
            ),
            Op::CallModule(path) => {
                let args = match self.input.attributes.modules.get(path) {
                    Some(module) => self.bound(path, module.params(), node),
                    None => self.unbound(node),
                };
                format!(
                    "self.{}.forward({})?",
                    self.field_path(path),
                    args.join(", ")
                )
            }
            Op::CallMethod(method) => self.method(method, node),
            Op::CallFunction(function) => match function.def().operator {
                Some(op) => self.operator(op, *function, node),
                None => self.function(*function, node),
            },
        })
    }

    fn method(&self, name: &str, node: NodeRef<'_>) -> String {
        let receiver = match node.args().first() {
            Some(first) => self.receiver(first),
            None => "self".to_string(),
        };
        let Some(method) = registry::methods(name).first() else {
            let args = self.unbound(node);
            return format!(
                "{receiver}.{name}({})?",
                args[1.min(args.len())..].join(", ")
            );
        };
        if let Some(written) = method.def().written {
            let given = given(*method, node);
            if let Some(written) = written(&given) {
                let args: Vec<String> = written
                    .args
                    .iter()
                    .map(|arg| match arg {
                        WrittenArg::Text(text) => (*text).to_string(),
                        WrittenArg::Of(at) => match (given.get(*at), method.params().get(*at)) {
                            (Some(arg), Some(param)) => self.present(arg, param),
                            (Some(arg), None) => self.lent(arg),
                            _ => String::new(),
                        },
                    })
                    .collect();
                return format!("{receiver}.{}({})?", written.method, args.join(", "));
            }
        }
        let args = self.bound(method.path(), method.params(), node);
        format!(
            "{receiver}.{name}({})?",
            args[1.min(args.len())..].join(", ")
        )
    }

    fn function(&self, function: Function, node: NodeRef<'_>) -> String {
        let args = operands(function, node);
        if function == operators::getattr
            && let [of, Argument::Str(name)] = &*args
        {
            return format!("{}.{name}()?", self.receiver(of));
        }
        if function == operators::_assert
            && let [claim, Argument::Str(words)] = &*args
        {
            let words = match words.contains(['{', '}']) {
                true => format!("\"{{}}\", {words:?}"),
                false => format!("{words:?}"),
            };
            return format!("assert!({}, {words})", self.built(claim));
        }
        if function == operators::assert_specialized
            && let [value, Argument::Str(argument), expected] = &*args
        {
            let (value, words) = (
                self.receiver(value),
                format!("`{argument}` was specialised"),
            );
            let differs = match expected {
                Argument::None => format!("{value}.is_some()"),
                expected => format!("{value} != {}", self.built(expected)),
            };
            return format!("if {differs} {{ return Err(Error::msg({words:?})); }}");
        }
        let args = self.bound(function.path(), function.params(), node);
        format!("{}({})?", function.path(), args.join(", "))
    }

    fn operator(&self, op: Operator, function: Function, node: NodeRef<'_>) -> String {
        let args = &*operands(function, node);
        // Of several types that would do rustc takes `i32` for a literal, which a wide one does not fit.
        let operand = |arg: &Argument| match arg {
            Argument::Int(n) if i32::try_from(*n).is_err() => format!("{n}_i64"),
            arg => self.lent(arg),
        };
        let lent: Vec<String> = args.iter().map(operand).collect();
        match (op, args, lent.as_slice()) {
            (Operator::Neg, _, [a]) => format!("(-{a})?"),
            (Operator::Invert, _, [a]) => format!("(!{a})?"),
            (Operator::Getitem, [of, index], _) => self.getitem(of, index),
            (Operator::Abs, [a], _) => format!("{}.abs()?", self.receiver(a)),
            (Operator::Matmul | Operator::Pow | Operator::Floordiv, [a, _], [_, b]) => {
                let ty = self.types.of(node);
                let method = match op {
                    Operator::Matmul => "matmul",
                    Operator::Pow => "pow",
                    _ if ty.is_scalar() => "floordiv",
                    _ => "floor_divide",
                };
                match (a.as_node(), ty.is_scalar()) {
                    (Some(_), _) => format!("{}.{method}({b})?", self.receiver(a)),
                    (None, true) => format!("{}.{method}({b})?", self.output(a)),
                    // A number has no such method.
                    (None, false) => format!(
                        "fx_core::binary::<{}>(fx_core::Operator::{op:?}, &{}, &{b})?",
                        ty.text(),
                        operand(a)
                    ),
                }
            }
            (Operator::Add, [a, b], _) if self.is_list(a) => {
                format!("{}.concat({})?", self.receiver(a), self.list(b))
            }
            (op, _, [a, b]) => match op.infix() {
                Some(sign) => format!("({a} {sign} {b})?"),
                None => format!("fx_core::operator::{}({a}, {b})?", op.name()),
            },
            (op, _, lent) => format!("fx_core::operator::{}({})?", op.name(), lent.join(", ")),
        }
    }

    fn is_list(&self, arg: &Argument) -> bool {
        let node = arg.as_node().and_then(|id| self.graph.node(id).ok());
        node.is_some_and(|node| matches!(self.types.of(node), Ty::List(_)))
    }

    /// `x[i]`: one of several results, an item of a list, an entry of a map, or an index of a tensor.
    fn getitem(&self, of: &Argument, index: &Argument) -> String {
        let receiver = self.receiver(of);
        let node = of.as_node().and_then(|id| self.graph.node(id).ok());
        match (node.map(|node| self.types.of(node)), index) {
            (Some(Ty::Tuple(_)), Argument::Int(i)) => format!("{receiver}.{i}.clone()"),
            (Some(Ty::List(_)), Argument::Slice(ends)) => format!(
                "{receiver}.slice({}, {})?",
                self.lent(&ends[0]),
                self.lent(&ends[1])
            ),
            (Some(Ty::List(_)), index) => format!("{receiver}.get({})?", self.lent(index)),
            (Some(Ty::Sequence(_) | Ty::Map(_)), index) => {
                format!("{receiver}[{}].clone()", self.lent(index))
            }
            (_, index) => format!("{receiver}.i({})?", self.index(index)),
        }
    }

    /// A call's arguments in the order of the signature, defaults written out, as Rust wants them.
    fn bound(&self, callee: &str, params: &[ParamSpec], node: NodeRef<'_>) -> Vec<String> {
        match bound_arguments(callee, params, node) {
            Some(bound) => {
                let bound = bound.iter().zip(params);
                bound
                    .map(|(arg, param)| self.for_param(arg, param))
                    .collect()
            }
            None => self.unbound(node),
        }
    }

    /// Arguments of a callee whose signature is not known, or that do not fit it.
    fn unbound(&self, node: NodeRef<'_>) -> Vec<String> {
        let kwargs = node.kwargs().iter().map(|(_, arg)| arg);
        let args = node.args().iter().chain(kwargs);
        args.map(|arg| self.lent(arg)).collect()
    }

    pub(super) fn hold(&self, id: NodeId) -> Hold {
        self.holds
            .get(id.index as usize)
            .copied()
            .unwrap_or(Hold::Owned)
    }

    /// A dotted path as Rust fields: `layer1.0.conv1` is `layer1[0].conv1`.
    fn field_path(&self, path: &str) -> String {
        if let Some(fields) = self.input.fields {
            return match longest(fields, path) {
                Some((known, rest)) => format!("{known}{rest}"),
                None => path.to_string(),
            };
        }
        let mut text = String::with_capacity(path.len());
        for segment in path.split('.') {
            if !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()) {
                text.push('[');
                text.push_str(segment);
                text.push(']');
            } else {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(segment);
            }
        }
        text
    }
}

/// What the longest known part of a path is written as, and the rest of the path.
fn longest<'p, 'f>(
    fields: &'f FxHashMap<String, String>,
    path: &'p str,
) -> Option<(&'f str, &'p str)> {
    let mut end = path.len();
    loop {
        if let Some(known) = fields.get(&path[..end]) {
            return Some((known, &path[end..]));
        }
        end = path[..end].rfind('.')?;
    }
}
