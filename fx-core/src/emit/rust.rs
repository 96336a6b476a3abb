//! Rust source of a graph: the `forward` that a person would write, with values dropped after their
//! last use.
//!
//! Invariant: the source is a view. It decides nothing about what runs, and writes each node on its
//! own line.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::hooks::{FunctionHead, Hooks};
use super::input::{Control, Input};
use super::shown::{Boundaries, Places, colored};
use super::source::{CodeLine, CodeOptions, RustCode, Text};
use super::structures::{Access, Leaf, Structure};
use super::types::{Types, bound_arguments, given, operands};
use crate::ir::argument::Argument;
use crate::ir::function::{Function, WrittenArg, dynamic_error};
use crate::ir::graph::Graph;
use crate::ir::method::several_methods;
use crate::ir::names::{as_name, is_identifier};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::param_type::ParamType;
use crate::ir::rust_type::RustType;
use crate::ir::signature::ParamSpec;
use crate::module::parts::below;
use crate::text::{Comment, Escaped};
use crate::value::handle::NodeId;
use crate::value::tree::Tree;

/// How a value is held by the generated code.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Hold {
    /// A plain value, copied.
    Plain,
    /// A reference.
    Ref,
    /// Owned: borrowed as `&name`, dropped after its last use.
    Owned,
}

/// The source, and the reasons why it would not compile.
pub(crate) struct Generated {
    pub code: RustCode,
    pub problems: Vec<String>,
}

/// Path prefixes of the constants that traces and passes create.
const MADE: [&str; 2] = ["_tensor_constant", "_folded"];

pub(super) struct Writer<'g> {
    pub input: &'g Input<'g>,
    pub graph: &'g Graph,
    pub types: Types,
    /// By the nodes' indices.
    pub holds: Vec<Hold>,
    last_users: Vec<Option<u32>>,
    drop_path: &'static str,
    pub lines: Vec<CodeLine>,
    /// Why the source would not compile, without duplicates.
    pub problems: RefCell<Vec<String>>,
    /// The paths of the modules whose `forward` the nodes came from.
    scopes: FxHashSet<&'g str>,
}

/// The return type of a graph as Rust source: what `forward` returns inside its `Result`.
pub(crate) fn result_type(input: &Input<'_>) -> String {
    Writer::new(input, &[]).result()
}

/// The source of `forward`.
pub(crate) fn forward_source(input: &Input<'_>, hooks: &Hooks, options: &CodeOptions) -> Generated {
    let graph = input.graph;
    let mut writer = Writer::new(input, &[]);
    writer.lines.reserve(graph.len() + 1);
    let codegen = hooks.codegen();
    let head = writer.head();
    writer.body(options);
    let returned = graph.output_node();
    let result = returned.and_then(|node| node.args().first());
    let output = result.map_or_else(|| "()".to_string(), |result| writer.output(result));
    writer.lines.push(CodeLine {
        text: codegen.output(&output),
        node: returned.map(|node| node.id()),
    });
    let lines = hooks.apply(writer.lines);
    let problems = writer.problems.into_inner();
    let mut text = Text::with_capacity(lines.len() + 4);
    if let (Some(first), None) = (problems.first(), input.own) {
        let more = match problems.len() {
            1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        let why = Comment(first);
        text.push("", &format!("// does not compile as it stands: {why}{more}; `to_folder` writes a crate that does, or says what is in its way"), None);
    }
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
    Generated {
        code: text.finish(),
        problems,
    }
}

impl<'g> Writer<'g> {
    /// A writer of a graph whose inputs have these types; none if they say themselves.
    pub fn new(input: &'g Input<'g>, operands: &[ParamType]) -> Self {
        let graph = input.graph;
        let mut scopes = FxHashSet::default();
        let mut last = None;
        for node in graph.nodes() {
            // Nodes of one module are usually adjacent.
            let (_, scope) = node.places();
            if last.replace(scope) != Some(scope) {
                scopes.extend(node.module_stack().map(|scope| &*scope.path));
            }
        }
        Writer {
            input,
            graph,
            types: Types::new(input, operands),
            holds: vec![Hold::Owned; graph.index_bound()],
            last_users: graph.last_users(),
            drop_path: match graph.find_name("drop") {
                Some(_) => "core::mem::drop",
                None => "drop",
            },
            lines: Vec::new(),
            problems: RefCell::default(),
            scopes,
        }
    }
}

impl Writer<'_> {
    /// The statements of the nodes, without the result.
    pub(super) fn body(&mut self, options: &CodeOptions) {
        let (mut places, mut boundaries) = (Places::default(), Boundaries::default());
        for node in self.graph.nodes().filter(|node| *node.op() != Op::Output) {
            let before = self.lines.len();
            self.statement(node, options);
            if self.lines.len() > before {
                let place = match options.verbose {
                    true => places.next(node),
                    false => boundaries.next(node),
                };
                if let Some(place) = place {
                    self.lines.insert(before, place.into());
                }
            }
        }
    }

    /// Records a reason why the source would not compile.
    pub(super) fn problem(&self, why: impl Into<String>) {
        let why = why.into();
        let mut problems = self.problems.borrow_mut();
        // There are few kinds of problems, and they repeat.
        if problems.len() < 64 && !problems.contains(&why) {
            problems.push(why);
        }
    }

    /// The return type of the graph.
    fn result(&self) -> String {
        let output = self.graph.output_node();
        let result = output.and_then(|node| node.args().first());
        result.map_or_else(|| "()".to_string(), |result| self.result_type(result))
    }

    /// The function's head; code that destructures inputs and unwraps optional ones becomes the
    /// first lines.
    fn head(&mut self) -> FunctionHead {
        let input = self.input;
        let mut list = vec!["&self".to_string()];
        let mut placeholders = input.graph.placeholders();
        for (param, tree) in input.params.iter().zip(input.trees) {
            if tree.is_leaf() {
                if let Some(node) = placeholders.next() {
                    list.push(self.parameter(node, declared_text(param)));
                }
                continue;
            }
            let leaves: Vec<NodeRef<'_>> = placeholders.by_ref().take(tree.leaves()).collect();
            list.push(self.structure(param, tree, &leaves));
        }
        let mut declared: FxHashMap<&str, &str> = FxHashMap::default();
        for param in input.params {
            if let Some(text) = declared_text(param) {
                declared.entry(&param.name).or_insert(text);
            }
        }
        for node in placeholders {
            list.push(self.parameter(node, declared.get(node.target()).copied()));
        }
        FunctionHead {
            name: "forward".to_string(),
            params: list,
            result: self.result(),
        }
    }

    /// A parameter that is several inputs; the lines that destructure it come first.
    fn structure(&mut self, param: &ParamSpec, tree: &Tree, leaves: &[NodeRef<'_>]) -> String {
        let name = match as_name(&param.name) {
            Some(name) => name.into_owned(),
            None => {
                self.problem(format!(
                    "`{}` is not a name of a parameter",
                    Escaped(&param.name)
                ));
                format!(
                    "_{}",
                    leaves
                        .first()
                        .map_or("_".into(), |leaf| leaf.name().to_string())
                )
            }
        };
        let declared = self.type_of_text(&param.ty);
        let mut found = Vec::new();
        let written = {
            let mut definitions = self.input.own.map(|own| own.definitions.borrow_mut());
            let known = leaves.iter().map(|node| Leaf {
                declared: node.type_expr().and_then(|ty| self.type_of_text(ty)),
                is_none: self.is_checked_to_be_none(*node),
            });
            let mut structure = Structure {
                definitions: definitions.as_deref_mut(),
                tensor: self.types.tensor().map(ToString::to_string),
                leaves: known.collect::<Vec<_>>().into_iter(),
                found: Vec::with_capacity(leaves.len()),
            };
            let whole = Access {
                path: name.clone(),
                is_own: false,
            };
            // A value that is always present need not be optional.
            let ty = declared.as_ref().map(|ty| ty.optional().unwrap_or(ty));
            let written = structure.read(ty, tree, &whole, &name);
            found.append(&mut structure.found);
            written
        };
        let written = match (written, &declared, self.input.own) {
            (Ok(written), declared, Some(_)) => {
                let by = match declared {
                    Some(RustType::Reference { .. }) => "&",
                    _ => "",
                };
                format!("{by}{written}")
            }
            (Ok(_), Some(ty), None) => ty.to_string(),
            (Ok(_), None, None) => "Value".to_string(),
            (Err(problem), _, _) => {
                self.problem(problem);
                declared
                    .as_ref()
                    .map_or("Value".to_string(), RustType::to_string)
            }
        };
        if self.input.own.is_none() && declared.as_ref().is_some_and(|ty| ty.optional().is_some()) {
            let text = missing(&name, true);
            self.lines.push(CodeLine { text, node: None });
        }
        // What could not be read is shown as the whole parameter.
        found.resize_with(leaves.len(), || Access {
            path: name.clone(),
            is_own: false,
        });
        for (access, node) in found.into_iter().zip(leaves) {
            // An input with a declared type is a plain value; all of those except strings are
            // copied.
            let is_copied = node.type_expr().is_some() && *self.types.of(*node) != ParamType::Str;
            let (hold, lent) = match (access.is_own, is_copied) {
                (true, _) => (Hold::Owned, ""),
                (false, true) => (Hold::Plain, ""),
                (false, false) => (Hold::Ref, "&"),
            };
            self.holds[node.index()] = hold;
            if node.num_users() == 0 {
                continue;
            }
            let text = format!("let {} = {lent}{};", node.name(), access.path);
            let node = Some(node.id());
            self.lines.push(CodeLine { text, node });
        }
        format!("{name}: {written}")
    }

    /// Parses a type's text; text that is not a type is a problem.
    fn type_of_text(&self, text: &str) -> Option<RustType> {
        match RustType::parse(text) {
            Ok(ty) => Some(ty),
            Err(error) => {
                self.problem(error.to_string());
                None
            }
        }
    }

    /// A parameter that is one input, as it appears in the head.
    fn parameter(&mut self, node: NodeRef<'_>, declared: Option<&str>) -> String {
        let unknown = self.types.unknown().to_string();
        let name = node.name();
        let ty = match node.type_expr().or(declared) {
            Some(text) => self.type_of_text(text),
            None => {
                if self.types.tensor().is_none() {
                    self.problem(format!(
                        "the input `{name}` has no type, and no tensor type is known that it could have: set its type, or write `fx_core::register_tensor!(..)` for the tensor type"
                    ));
                }
                self.type_of_text(&format!("&{unknown}"))
            }
        };
        let ty = ty.unwrap_or_else(|| RustType::named(&unknown));
        let inner = ty.optional();
        let hold = match inner.unwrap_or(&ty) {
            RustType::Reference { .. } => Hold::Ref,
            inner if ParamType::of(inner).is_scalar() => Hold::Plain,
            _ => Hold::Owned,
        };
        self.holds[node.index()] = hold;
        let written = match self.input.own {
            Some(own) => own
                .definitions
                .borrow_mut()
                .named(&ty)
                .unwrap_or_else(|problem| {
                    self.problem(format!("`{name}`: {problem}"));
                    unknown
                }),
            None => ty.to_string(),
        };
        // An optional input was present when it was traced.
        if inner.is_some() && (node.args().is_empty() || !self.is_guarded(node)) {
            let text = missing(&name.to_string(), node.num_users() > 0);
            let node = Some(node.id());
            self.lines.push(CodeLine { text, node });
        }
        let default = match node.args().first() {
            Some(Argument::None) | None => String::new(),
            Some(default) => format!("#[default({})] ", self.built(default)),
        };
        format!("{default}{name}: {written}")
    }

    /// Whether an input is checked to be `None`.
    fn is_checked_to_be_none(&self, node: NodeRef<'_>) -> bool {
        node.users().any(|user| {
            *user.op() == Op::CallFunction(operator::assert_specialized)
                && matches!(user.args().last(), Some(Argument::None))
        })
    }

    /// Whether a graph only checks that an input is what it was specialised to.
    fn is_guarded(&self, node: NodeRef<'_>) -> bool {
        node.users()
            .all(|user| *user.op() == Op::CallFunction(operator::assert_specialized))
    }

    fn statement(&mut self, node: NodeRef<'_>, options: &CodeOptions) {
        let region = match node.op() {
            Op::CallModule(path) => self.input.regions.get(&**path),
            _ => None,
        };
        let written = match region {
            Some(region) => Some(self.region(region, node, options)),
            None => self.expression(node),
        };
        let Some(expression) = written else {
            return;
        };
        let index = node.index();
        self.holds[index] = match node.op() {
            Op::GetAttr(_) => Hold::Ref,
            _ if self.types.of(node).is_copied() => Hold::Plain,
            _ => Hold::Owned,
        };
        let beside = options.beside(node);
        let beside = beside.map(|text| format!(" /* {} */", Comment(&text)));
        let mut text = match node.num_users() {
            // An item of a tuple that nobody takes: unpacking recorded it.
            0 if self.is_tuple_item(node) => String::new(),
            0 if region.is_some_and(Control::gives) => format!("let _ = {expression};"),
            0 if expression.ends_with('}') => expression,
            0 if expression.ends_with("clone()") => format!("let _ = {expression};"),
            0 => format!("{expression};"),
            _ => format!(
                "let {}{} = {expression};",
                node.name(),
                beside.unwrap_or_default()
            ),
        };
        let mut before = if text.is_empty() { "" } else { "  " };
        for input in node.all_input_nodes() {
            let at = input.index();
            if self.last_users[at] == Some(node.id().index) && self.holds[at] == Hold::Owned {
                text.push_str(before);
                text.push_str(&format!("{}({});", self.drop_path, input.name()));
                before = " ";
            }
        }
        if !text.is_empty() {
            let node = Some(node.id());
            self.lines.push(CodeLine { text, node });
        }
    }

    /// Whether a node takes an item out of a tuple of a known type, which cannot fail.
    fn is_tuple_item(&self, node: NodeRef<'_>) -> bool {
        let of = node.args().first().and_then(Argument::as_node);
        *node.op() == Op::CallFunction(operator::getitem)
            && of
                .and_then(|of| self.graph.node(of).ok())
                .is_some_and(|of| matches!(self.types.of(of), ParamType::Tuple(_)))
    }

    /// The expression that computes a node; `None` for inputs and the output.
    fn expression(&self, node: NodeRef<'_>) -> Option<String> {
        Some(match node.op() {
            Op::Placeholder(_) | Op::Output => return None,
            Op::GetAttr(path) => format!("&self{}", self.field_path(path)),
            Op::CallModule(path)
                if let Some(result) = self.input.results.get(&**path)
                    && !self.is_written(path) =>
            {
                self.typed_call(node, result)
            }
            Op::CallModule(path) => {
                let args = match self.input.attributes.modules.get(path) {
                    Some(module) => self.bound(path, module.params(), node),
                    None => self.unbound(node),
                };
                format!(
                    "self{}.forward({})?",
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

    /// Whether a graph module is a struct of the generated crate, with a `forward` of its own.
    fn is_written(&self, path: &str) -> bool {
        let own = self.input.own;
        own.is_some_and(|own| own.written.contains(path))
    }

    /// A call of a module that is a graph, which takes any values.
    pub(super) fn typed_call(&self, node: NodeRef<'_>, result: &str) -> String {
        let field = self.field_path(node.target());
        let args = self.for_graph_module(node);
        format!("self{field}.forward::<{result}>({args})?")
    }

    fn method(&self, name: &str, node: NodeRef<'_>) -> String {
        let receiver = match node.args().first() {
            Some(first) => self.receiver(first),
            None => "self".to_string(),
        };
        let functions = node.functions();
        let Some(method) = functions.one() else {
            self.problem(match functions.as_slice() {
                [] => format!("no method `{}` is registered", Escaped(name)),
                several => several_methods(name, several),
            });
            let args = self.unbound(node);
            let name = match is_identifier(name) {
                true => name,
                false => "call_method",
            };
            return format!(
                "{receiver}.{name}({})?",
                args[1.min(args.len())..].join(", ")
            );
        };
        if let Some(written) = method.def().written {
            let given = given(method, node);
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
        if function.is_dynamic() {
            self.problem(dynamic_error(function).to_string());
        }
        let args = operands(function, node);
        if function == operator::getattr
            && let [of, Argument::Str(name)] = &*args
        {
            let name = match name.as_str() {
                known @ ("shape" | "ndim" | "dtype") => known,
                other => {
                    self.problem(format!("tensors have no attribute `{}`", Escaped(other)));
                    "attribute"
                }
            };
            return self.attribute(of, name);
        }
        if function == operator::_assert
            && let [claim, Argument::Str(words)] = &*args
        {
            let words = match words.contains(['{', '}']) {
                true => format!("\"{{}}\", {words:?}"),
                false => format!("{words:?}"),
            };
            return format!("assert!({}, {words})", self.built(claim));
        }
        if function == operator::assert_specialized
            && let [value, Argument::Str(argument), expected] = &*args
        {
            let (value, words) = (
                self.receiver(value),
                format!("`{}` was specialised", Escaped(argument.as_str())),
            );
            let differs = match expected {
                Argument::None => format!("{value}.is_some()"),
                expected => format!("{value} != {}", self.built(expected)),
            };
            return format!("if {differs} {{ return Err(Error::msg({words:?})); }}");
        }
        let args = self.bound(function.path(), function.params(), node);
        let path = self.item_path(function.path());
        format!("{path}({})?", args.join(", "))
    }

    /// The path of an item; fx-core's items may be named through a library that re-exports them.
    pub(super) fn item_path(&self, path: &str) -> String {
        if path.contains(['{', '<']) {
            self.problem(format!("`{path}` has no path that can be named"));
        }
        match path.strip_prefix("fx_core::") {
            Some(rest) => format!("{}::{rest}", self.input.core),
            None => path.to_string(),
        }
    }

    /// A call's arguments in signature order, defaults written out, in the form Rust needs.
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

    /// Arguments of a callee whose signature is unknown or does not fit them.
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
        if let Some(own) = self.input.own {
            return match longest(own.fields, path) {
                Some((known, rest)) => {
                    self.check_inside(path, rest);
                    let inside = if rest.is_empty() {
                        String::new()
                    } else {
                        fields(&rest[1..])
                    };
                    format!(".{known}{inside}")
                }
                None => {
                    self.problem(format!("there is nothing at `{}`", Escaped(path)));
                    fields(path)
                }
            };
        }
        if MADE.iter().any(|made| path.starts_with(made)) {
            let path = Escaped(path);
            self.problem(format!("`{path}` is a constant of the graph, not a field"));
        }
        let unnamed = self.input.unnamed.into_iter().flat_map(|of| &of.0);
        for (at, what) in unnamed {
            if below(path, at).is_some() {
                let at = Escaped(at);
                self.problem(format!("`{at}` is {what}, and no field that can be named"));
            }
        }
        let mut end = 0;
        for segment in path.split('.') {
            let outer = &path[..end.max(1) - 1];
            end += segment.len();
            let is_number = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
            let is_field = match is_number {
                // A number indexes a list, which is not a module; a module's children need other
                // accessors.
                true => !outer.is_empty() && !self.scopes.contains(outer),
                false => as_name(segment).is_some(),
            };
            if !is_field {
                let path = Escaped(&path[..end]);
                self.problem(format!("`{path}` is not a field that can be named"));
            }
            end += 1;
        }
        fields(path)
    }

    /// Reports a path inside a library's module that cannot be reached.
    fn check_inside(&self, path: &str, rest: &str) {
        if rest.is_empty() {
            return;
        }
        let mut segments = rest[1..].split('.');
        let outer = path.strip_suffix(rest).unwrap_or(path);
        let module = self.input.attributes.modules.contains_key(outer);
        let is_graph = self.input.results.contains_key(outer);
        if !module || is_graph || segments.any(|segment| as_name(segment).is_none()) {
            self.problem(format!(
                "`{}` is inside the module at `{}`, and cannot be named",
                Escaped(path),
                Escaped(outer)
            ));
        }
    }
}

/// A path as fields. A segment that cannot be a field is written as a string in brackets.
fn fields(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while !rest.is_empty() || text.is_empty() {
        let (segment, next) = rest.split_once('.').unwrap_or((rest, ""));
        let is_number = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
        match as_name(segment) {
            _ if is_number => text.push_str(&format!("[{segment}]")),
            Some(name) => {
                text.push('.');
                text.push_str(&name);
            }
            None => text.push_str(&format!("[{segment:?}]")),
        }
        rest = next;
    }
    text
}

/// The type that a parameter declares, for inputs without a type of their own; `None` if it is any
/// value.
fn declared_text(param: &ParamSpec) -> Option<&str> {
    (*param.param_type.referred() != ParamType::AnyValue).then_some(&*param.ty)
}

/// The line that unwraps an optional argument.
fn missing(name: &str, is_used: bool) -> String {
    let bound = if is_used { name } else { "_" };
    format!(
        "let {bound} = {name}.ok_or_else(|| Error::msg(\"`{name}` is missing: it was there when this was traced\"))?;"
    )
}

/// The source text of the longest known prefix of a path, and the rest of the path.
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
