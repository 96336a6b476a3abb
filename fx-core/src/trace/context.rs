//! `TraceContext`: what one trace has recorded so far, and what it knows of its root.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::hash::BuildHasher;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::cut::Cut;
use super::infers::Infers;
use super::open_side::OpenSides;
use super::report::{Frozen, Report, ReportEntry};
use super::root_index::{PathRange, RootIndex};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::meta::{Entries, MadeFrom};
use crate::ir::method::RecordedMethod;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::places::{Scope, ScopeId, Site};
use crate::ir::registry;
use crate::ir::returned::{Place, ReturnedPart};
use crate::ir::signature::ParamSpec;
use crate::ir::unnamed::Unnamed;
use crate::location::SourceLocation;
use crate::module::argument::ModuleArg;
use crate::module::attributes::Attributes;
use crate::module::items::Items;
use crate::module::module::Module;
use crate::module::order::{Part, PartOrder};
use crate::module::paths::PathCheck;
use crate::module::walk::{ComponentKey, TensorKind, Visitor, own_training, walk};
use crate::value::handle::{NodeId, Proxy, TraceId};
use crate::value::object::{Object, short_type_name};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// Numbers for fresh paths of one prefix.
struct Numbers {
    next: u64,
    taken: FxHashSet<u64>,
}

/// The arguments of a root that are bound before the trace.
#[derive(Debug, Clone, Default)]
pub(super) struct Specialised {
    pub values: IndexMap<String, Value>,
    pub unguarded: bool,
}

/// What a trace recorded.
pub(super) struct Recorded {
    pub graph: Graph,
    pub attributes: Attributes,
    pub inputs: Vec<Tree>,
    pub report: Report,
    pub unnamed: Unnamed,
    pub order: Option<PartOrder>,
}

/// One running trace, as its tracer sees it.
pub struct TraceContext {
    id: TraceId,
    graph: RefCell<Graph>,
    pub(super) attributes: RefCell<Attributes>,
    root: RootIndex,
    /// What the graph names, with its place in the root.
    ranks: RefCell<Vec<(usize, Part, Arc<str>)>>,
    /// What the walk over the root found about its paths.
    paths: RefCell<PathCheck>,
    /// The parts of the root that source cannot name.
    unnamed: RefCell<Unnamed>,
    parameter_proxies: RefCell<FxHashMap<Arc<str>, Proxy>>,
    constants: RefCell<FxHashMap<u64, Arc<str>>>,
    specialised: Specialised,
    /// The structure of each argument of the root.
    pub(super) inputs: RefCell<Vec<Tree>>,
    pub(super) shapes: RefCell<Option<Box<dyn Infers>>>,
    pub(super) report: RefCell<Report>,
    /// The proxies of each value's parts, if a typed result took it apart.
    parts: RefCell<FxHashMap<Proxy, Vec<Proxy>>>,
    fresh: RefCell<FxHashMap<String, Numbers>>,
    /// What is now in the graph of a branch or a loop.
    pub(super) cut: RefCell<Cut>,
    pub(super) open: RefCell<OpenSides>,
    /// How often each module was called, by the hash of its path: calls of two paths with one hash
    /// are numbered together, and each number stays unique.
    calls: RefCell<FxHashMap<u64, u32>>,
    /// The hash of a path, and the number of its call, from its beginning until it is entered.
    numbered: Cell<Option<(u64, u32)>>,
    location: Cell<&'static Location<'static>>,
    /// The source location of a node that is being traced again.
    pub(super) origin: RefCell<Option<SourceLocation>>,
    /// The method as which a node that is being traced again was recorded.
    method: Cell<Option<RecordedMethod>>,
    /// The entries of each node that is recorded now.
    pub(super) annotations: RefCell<Entries>,
    /// Where the innermost traced body is written.
    body: Cell<&'static Location<'static>>,
    /// The file of the innermost body, if it is a container's: its lines say nothing.
    container: Cell<Option<&'static str>>,
}

impl TraceContext {
    #[track_caller]
    pub(super) fn new(root: Option<&dyn Module>, specialised: Specialised) -> Self {
        let mut index = RootIndex::with_room();
        if let Some(root) = root {
            walk(root, &mut index);
        }
        let paths = std::mem::take(&mut index.paths);
        let unnamed = std::mem::take(&mut index.unnamed);
        // Most modules are called once.
        let calls = index.components.len();
        let mut graph = Graph::with_capacity(calls * 5 / 4 + 8);
        graph.expect_scopes(calls);
        TraceContext {
            id: fresh_id(),
            graph: RefCell::new(graph),
            attributes: RefCell::new(Attributes {
                modules: Items::with_capacity(calls),
                ..Attributes::default()
            }),
            root: index,
            ranks: RefCell::default(),
            paths: RefCell::new(paths),
            unnamed: RefCell::new(unnamed),
            parameter_proxies: RefCell::default(),
            constants: RefCell::default(),
            specialised,
            inputs: RefCell::default(),
            shapes: RefCell::default(),
            report: RefCell::default(),
            parts: RefCell::default(),
            fresh: RefCell::default(),
            cut: RefCell::default(),
            open: RefCell::default(),
            calls: RefCell::new(FxHashMap::with_capacity_and_hasher(calls, FxBuildHasher)),
            numbered: Cell::default(),
            location: Cell::new(Location::caller()),
            origin: RefCell::default(),
            method: Cell::default(),
            annotations: RefCell::default(),
            body: Cell::new(Location::caller()),
            container: Cell::default(),
        }
    }

    /// Takes out what the trace recorded.
    pub(super) fn take_parts(&self) -> Recorded {
        Recorded {
            graph: self.graph.take(),
            attributes: self.attributes.take(),
            inputs: self.inputs.take(),
            report: self.report.take(),
            unnamed: self.unnamed.take(),
            order: PartOrder::of_ranks(self.ranks.take()),
        }
    }

    /// Takes what the walk over the root found about its paths; to be called once.
    pub(super) fn take_path_check(&self) -> PathCheck {
        self.paths.take()
    }

    /// Records into an existing graph.
    pub(super) fn give_parts(&self, graph: Graph, attributes: Attributes) {
        self.graph.replace(graph);
        self.attributes.replace(attributes);
    }

    /// This trace's id.
    pub fn id(&self) -> TraceId {
        self.id
    }

    /// The graph so far.
    ///
    /// # Errors
    /// Returns an error while it is being edited through [`graph_mut`](TraceContext::graph_mut).
    pub fn graph(&self) -> Result<Ref<'_, Graph>> {
        self.graph.try_borrow().map_err(|_| held())
    }

    /// The graph so far, to edit. Release it before calling operations on traced values.
    ///
    /// # Errors
    /// Returns an error while another borrow of it is held.
    pub fn graph_mut(&self) -> Result<RefMut<'_, Graph>> {
        self.graph.try_borrow_mut().map_err(|_| held())
    }

    /// The user's expression that is being recorded.
    pub fn location(&self) -> SourceLocation {
        match &*self.origin.borrow() {
            Some(origin) => origin.clone(),
            None => self.location.get().into(),
        }
    }

    /// Adds a node at the current place in the source.
    ///
    /// # Errors
    /// Returns an error if an argument is not of this graph, or this part of the trace may not use it.
    pub fn insert(&self, op: Op, args: Args, kwargs: Kwargs, name: Option<&str>) -> Result<NodeId> {
        registry::open_for(&op);
        self.insert_known(op, args, kwargs, name)
    }

    /// Same as `insert`, for an op whose method a graph has already called.
    pub(crate) fn insert_known(
        &self,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        self.cut.borrow().check(&args, &kwargs)?;
        let origin = self.origin.borrow();
        let site = match &*origin {
            Some(origin) => Site::Kept(origin),
            None => Site::Caller(self.location.get()),
        };
        let node = self.graph_mut()?.insert(op, args, kwargs, name, site)?;
        self.annotated(node)
    }

    /// Runs `body` before a node of this trace's graph: what it records is inserted there, with the
    /// source location of the node.
    pub(crate) fn recording_before<R>(
        &self,
        node: NodeId,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        /// Restores the state of the trace, also on unwinding.
        struct Restore<'c> {
            context: &'c TraceContext,
            scope: ScopeId,
            insertion: usize,
            origin: Option<SourceLocation>,
            made_from: Option<MadeFrom>,
        }
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.context.origin.replace(self.origin.take());
                if let Ok(mut graph) = self.context.graph_mut() {
                    graph.leave_insertion(self.insertion);
                    if let Some(former) = self.made_from.take() {
                        graph.made_from_before(former);
                    }
                    graph.leave_scope(self.scope);
                }
            }
        }
        let mut graph = self.graph_mut()?;
        let location = graph.node(node)?.location().cloned();
        let scope = graph.enter_scope_of(node)?;
        let restore = Restore {
            context: self,
            scope,
            insertion: graph.enter_insertion_before(node)?,
            made_from: Some(graph.make_from(&[node])),
            origin: self.origin.replace(location),
        };
        drop(graph);
        let result = body();
        drop(restore);
        result
    }

    /// Runs `body` for a node of another graph: what it records has that node's origin.
    pub(crate) fn retracing<R>(&self, node: NodeRef<'_>, body: impl FnOnce() -> R) -> Result<R> {
        struct Restore<'c> {
            context: &'c TraceContext,
            scope: ScopeId,
            origin: Option<SourceLocation>,
            method: Option<RecordedMethod>,
        }
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.context.origin.replace(self.origin.take());
                self.context.method.set(self.method);
                if let Ok(mut graph) = self.context.graph_mut() {
                    graph.leave_scope(self.scope);
                }
            }
        }
        let restore = {
            let mut graph = self.graph_mut()?;
            let outer = graph.current_scope().map(|s| s.path.clone());
            let outer = outer.filter(|path| !path.is_empty());
            let former = graph.scope_id();
            let mut stack: Vec<&Scope> = node.modules_around().collect();
            stack.reverse();
            // The node's root is a root here too, unless this trace has one of its own.
            let rooted = graph.current_scope().is_some();
            for scope in stack.into_iter().filter(|s| !(rooted && s.path.is_empty())) {
                let path = match &outer {
                    Some(outer) => format!("{outer}.{}", scope.path).into(),
                    None => scope.path.clone(),
                };
                graph.enter_scope(path, scope.type_name.clone(), scope.call);
            }
            let origin = self.origin.replace(node.location().cloned());
            let method = self.method.replace(node.meta().copied());
            Restore {
                context: self,
                scope: former,
                origin,
                method,
            }
        };
        let result = body();
        drop(restore);
        Ok(result)
    }

    /// A body begins, or continues: what has no source location of its own is located here.
    pub(super) fn set_body(&self, location: &'static Location<'static>) {
        self.body.set(location);
        self.location.set(location);
    }

    /// What comes next belongs to the body, and not to an expression in it.
    pub(super) fn at_body(&self) {
        self.location.set(self.body.get());
    }

    pub(crate) fn set_location(&self, location: &'static Location<'static>) {
        // A leaf passed to a library's function (`.map(relu)`) is "called" inside the library: the
        // enclosing forward says more.
        let file = location.file();
        if file.starts_with("/rustc/") || self.container.get() == Some(file) {
            self.at_body();
        } else {
            self.location.set(location);
        }
    }

    /// The proxy of a node of this trace.
    pub fn proxy(&self, node: NodeId) -> Proxy {
        Proxy {
            node,
            trace: self.id,
        }
    }

    /// The name of a proxy of this trace in messages: `%add`.
    pub(super) fn name_of(&self, proxy: Proxy) -> String {
        let named = self.graph().ok().and_then(|graph| {
            let node = graph.node(proxy.node).ok()?;
            Some(format!("%{}", node.name()))
        });
        named.unwrap_or_else(|| proxy.to_string())
    }

    /// The path of a module of the root.
    pub fn path_of(&self, module: &dyn Module) -> Option<Arc<str>> {
        let range = self.range_of(module)?;
        Some(self.root.path(range).into())
    }

    fn range_of(&self, module: &dyn Module) -> Option<PathRange> {
        if let Some(range) = self.root.components.get(&ComponentKey::of_any(module)) {
            return Some(*range);
        }
        // A type that delegates its walk to its contents is known under the key of those.
        struct First(Option<ComponentKey>);
        impl Visitor for First {
            fn enter(&mut self, _: &str, key: ComponentKey, _: &'static str) -> bool {
                self.0.get_or_insert(key);
                false
            }
        }
        let mut first = First(None);
        walk(module, &mut first);
        self.root.components.get(&first.0?).copied()
    }

    /// Remembers where in the root a part is; what is new is behind all of it.
    fn rank(&self, range: Option<PathRange>, part: Part, path: &Arc<str>) {
        let rank = range.map_or(usize::MAX, PathRange::start);
        self.ranks.borrow_mut().push((rank, part, path.clone()));
    }

    /// The path of a module that is passed to a function.
    pub(super) fn path_of_argument(&self, module: &ModuleArg) -> Result<Arc<str>> {
        let range = self.root.components.get(&module.key());
        let path = range.map(|range| self.root.path(*range));
        path.filter(|path| !path.is_empty()).map(Arc::from).ok_or_else(|| {
            Error::msg(format_args!(
                "a function is given a `{}` that is not a module inside of the traced root: make it a field of the root, so that the graph can name it",
                short_type_name(module.type_name())
            ))
        })
    }

    /// Path and kind of a tensor of the root.
    pub fn path_of_tensor(&self, object_id: u64) -> Option<(Arc<str>, TensorKind)> {
        let (range, kind) = self.root.tensors.get(&object_id)?;
        Some((self.root.path(*range).into(), *kind))
    }

    /// Whether the object is a parameter of the root, which counts as symbolic.
    pub(super) fn is_parameter(&self, object: &dyn Object) -> bool {
        object.object_id().is_some_and(|id| {
            matches!(self.root.tensors.get(&id), Some((_, TensorKind::Parameter)))
        })
    }

    /// What an argument of the root was specialised to.
    pub fn concrete(&self, argument: &str) -> Option<Value> {
        self.specialised.values.get(argument).cloned()
    }

    /// Whether specialised arguments get a guard.
    pub(super) fn is_guarded(&self) -> bool {
        !self.specialised.unguarded
    }

    pub(super) fn set_inputs(&self, inputs: Vec<Tree>) {
        self.inputs.replace(inputs);
    }

    /// Adds something that the graph fixes to the trace's report.
    pub fn report(&self, what: Frozen) {
        let location = match what {
            Frozen::Argument { .. } | Frozen::Present { .. } => None,
            _ => Some(self.location()),
        };
        self.report.borrow_mut().add(ReportEntry {
            what,
            location,
            module: self.current_module().unwrap_or_default(),
        });
    }

    /// Checks that every specialised argument exists.
    pub(super) fn check_concrete(&self, callee: &str, params: &[ParamSpec]) -> Result<()> {
        for name in self.specialised.values.keys() {
            if !params.iter().any(|p| p.name == name.as_str()) {
                return Err(crate::ir::signature::arguments_error(
                    callee,
                    params,
                    format!("has no parameter `{name}` to specialise"),
                ));
            }
        }
        Ok(())
    }

    /// Remembers a module that the graph calls.
    pub fn keep_module(&self, path: &Arc<str>, module: &dyn Module) {
        if self.attributes.borrow().modules.contains_key(path) {
            return;
        }
        // The copy is the user's code: nothing is borrowed while it runs.
        let copy = module.duplicate_box();
        let mut attributes = self.attributes.borrow_mut();
        self.rank(
            self.range_of(module),
            Part::Module(attributes.modules.len()),
            path,
        );
        attributes.modules.insert(path.clone(), copy);
    }

    /// A copy of a module that the graph calls.
    pub fn module_at(&self, path: &str) -> Option<Box<dyn Module>> {
        let attributes = self.attributes.borrow();
        let module = attributes.modules.get(path)?;
        Some(module.duplicate_box())
    }

    /// Remembers a tensor that the graph names.
    pub fn keep_tensor(&self, path: &Arc<str>, kind: TensorKind, value: Value) {
        let mut attributes = self.attributes.borrow_mut();
        if !attributes.tensors.contains_key(path) {
            let id = value.as_object().and_then(|object| object.object_id());
            let known = id.and_then(|id| self.root.tensors.get(&id));
            let range = known.map(|(range, _)| *range);
            self.rank(range, Part::Tensor(attributes.tensors.len()), path);
            attributes.tensors.insert(path.clone(), (kind, value));
        }
    }

    /// A free path: the prefix and the first free number.
    pub fn fresh_path(&self, prefix: &str) -> Arc<str> {
        let mut fresh = self.fresh.borrow_mut();
        let numbers = fresh.entry(prefix.to_string()).or_insert_with(|| Numbers {
            next: 0,
            taken: self.root.numbers_after(prefix),
        });
        let attributes = self.attributes.borrow();
        loop {
            let number = numbers.next;
            numbers.next += 1;
            let path = format!("{prefix}{number}");
            if !numbers.taken.contains(&number)
                && !attributes.tensors.contains_key(path.as_str())
                && !attributes.modules.contains_key(path.as_str())
            {
                return path.into();
            }
        }
    }

    /// The path of a constant tensor: one per identity.
    pub fn constant_path(&self, object: &dyn Object) -> Arc<str> {
        let known = object
            .object_id()
            .and_then(|id| self.constants.borrow().get(&id).cloned());
        if let Some(path) = known {
            return path;
        }
        let path = self.fresh_path("_tensor_constant");
        if let Some(id) = object.object_id() {
            self.constants.borrow_mut().insert(id, path.clone());
        }
        let value = object.to_value();
        self.report(Frozen::Constant {
            path: path.to_string(),
            value: value.describe(),
        });
        self.keep_tensor(&path, TensorKind::Buffer, value);
        path
    }

    pub(super) fn remember_parts(&self, whole: Proxy, parts: &[Proxy]) {
        self.parts.borrow_mut().insert(whole, parts.to_vec());
    }

    /// A tuple of all parts of one value, in order, is that value: `Ok(topk(..)?)` returns the
    /// result of `topk`, and taking it apart was only for the types.
    pub(super) fn repacked(&self, value: Value) -> Result<Value> {
        let Some(whole) = self.whole_of(&value) else {
            return Ok(value);
        };
        let all = self.parts.borrow();
        let mut graph = self.graph_mut()?;
        let unused = |p: &Proxy| graph.node(p.node).is_ok_and(|n| n.num_users() == 0);
        if !all.get(&whole).into_iter().flatten().all(unused) {
            return Ok(value);
        }
        for part in all.get(&whole).into_iter().flatten() {
            graph.erase_node(part.node)?;
        }
        Ok(Value::Proxy(whole))
    }

    pub(super) fn cached_parameter(&self, path: &Arc<str>) -> Option<Proxy> {
        self.parameter_proxies.borrow().get(path).copied()
    }

    pub(super) fn cache_parameter(&self, path: Arc<str>, proxy: Proxy) {
        self.parameter_proxies.borrow_mut().insert(path, proxy);
    }

    /// Runs `body` with nodes recorded as inside a module.
    pub(super) fn in_scope<R>(
        &self,
        path: Arc<str>,
        module: &dyn Module,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        struct Leave<'c> {
            context: &'c TraceContext,
            scope: ScopeId,
            body: &'static Location<'static>,
            container: Option<&'static str>,
        }
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.context.set_body(self.body);
                self.context.container.set(self.container);
                if let Ok(mut graph) = self.context.graph_mut() {
                    graph.leave_scope(self.scope);
                }
            }
        }
        self.report_training(&path, module);
        let former = self.enter_call(path, module)?;
        let _leave = Leave {
            context: self,
            scope: former,
            body: self.body.get(),
            container: self.container.take(),
        };
        match module.location() {
            // What a container records is at the line of its own call.
            Some(location) if module.is_container() => {
                self.container.set(Some(location.file()));
                self.set_body(self.location.get());
            }
            Some(location) => self.set_body(location),
            None => {}
        }
        body()
    }

    /// Nodes made from now on belong to a call of a module; returns the scope before.
    fn enter_call(&self, path: Arc<str>, module: &dyn Module) -> Result<ScopeId> {
        let call = match self.numbered.take() {
            Some((of, call)) if of == hash_of(&path) => call,
            _ => self.number_call(&path),
        };
        let mut graph = self.graph_mut()?;
        Ok(graph.enter_new_scope(path, module.type_name(), call))
    }

    /// Counts a call of a module: returns how often it was called before.
    pub(crate) fn number_call(&self, path: &str) -> u32 {
        self.number_hashed(hash_of(path))
    }

    fn number_hashed(&self, path: u64) -> u32 {
        let mut calls = self.calls.borrow_mut();
        let count = calls.entry(path).or_default();
        *count += 1;
        *count - 1
    }

    /// How often the module at a path was called.
    pub(super) fn calls_of(&self, path: &str) -> u32 {
        let calls = self.calls.borrow();
        calls.get(&hash_of(path)).copied().unwrap_or_default()
    }

    /// Runs `body`, which enters a call of a module, with the number of the call.
    pub(super) fn numbered_call<R>(&self, path: &str, body: impl FnOnce(u32) -> R) -> R {
        let hash = hash_of(path);
        let call = self.number_hashed(hash);
        let outer = self.numbered.replace(Some((hash, call)));
        let result = body(call);
        self.numbered.set(outer);
        result
    }

    /// Notes a call of a method by name: if a node is traced again, its node remembers whose method
    /// that was.
    pub(super) fn note_named_method(&self, proxy: Proxy) -> Result<()> {
        match self.method.get() {
            Some(RecordedMethod(method)) => self.note_method(proxy, method),
            None => Ok(()),
        }
    }

    /// Notes a call of a method that several types have: its node remembers whose it is.
    pub(super) fn note_method(&self, proxy: Proxy, method: Function) -> Result<()> {
        let mut graph = self.graph_mut()?;
        let node = graph.node(proxy.node)?;
        // A tracer may have recorded something else.
        if matches!(node.op(), Op::CallMethod(name) if **name == *method.name()) {
            let mut node = graph.node_mut(proxy.node)?;
            node.set_meta(RecordedMethod(method));
        }
        Ok(())
    }

    /// Notes the result of a module's call: the nodes in it remember that, so that the module's
    /// result can be shown. A node that calls the module needs no note.
    pub(super) fn note_returned(&self, path: &Arc<str>, call: u32, value: &Value) -> Result<()> {
        let part = |whole, at| ReturnedPart {
            module: path.clone(),
            call,
            whole,
            at,
        };
        if let Some(proxy) = value.as_proxy().filter(|proxy| proxy.trace == self.id) {
            let mut graph = self.graph_mut()?;
            if !calls(&graph, proxy.node, path)? {
                let mut node = graph.node_mut(proxy.node)?;
                node.add_returned([part(Argument::None, Place::new())]);
            }
            return Ok(());
        }
        let mut nodes = Vec::new();
        let whole = match self.whole_of(value) {
            Some(whole) => {
                nodes.push((whole.node, Place::new()));
                Argument::None
            }
            None => self.structure(value, &mut Place::new(), &mut nodes),
        };
        let mut graph = self.graph_mut()?;
        for (node, at) in nodes {
            if !calls(&graph, node, path)? {
                graph
                    .node_mut(node)?
                    .add_returned([part(whole.clone(), at)]);
            }
        }
        Ok(())
    }

    /// The structure of a value, with `None` in the places of nodes, which are collected with their
    /// places.
    fn structure(
        &self,
        value: &Value,
        at: &mut Place,
        nodes: &mut Vec<(NodeId, Place)>,
    ) -> Argument {
        if let Some(proxy) = value.as_proxy().filter(|proxy| proxy.trace == self.id) {
            nodes.push((proxy.node, at.clone()));
            return Argument::None;
        }
        let mut item = |position: usize, inner: &Value| {
            at.push(u32::try_from(position).expect("the items of a value are numbered by 32 bits"));
            let inner = self.structure(inner, at, nodes);
            at.pop();
            inner
        };
        let mut all = |items: &[Value]| -> Arc<Vec<Argument>> {
            let items = items.iter().enumerate();
            Arc::new(items.map(|(i, inner)| item(i, inner)).collect())
        };
        match value {
            Value::List(items) => Argument::List(all(items)),
            Value::Tuple(items) => Argument::Tuple(all(items)),
            Value::Dict(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(i, (key, inner))| (key.clone(), item(i, inner)));
                Argument::Dict(Arc::new(items.collect()))
            }
            plain => Argument::of_plain(plain).unwrap_or(Argument::None),
        }
    }

    /// The value of which a tuple has all parts, in order.
    fn whole_of(&self, value: &Value) -> Option<Proxy> {
        let Value::Tuple(items) = value else {
            return None;
        };
        let proxies: Vec<Proxy> = items.iter().map(Value::as_proxy).collect::<Option<_>>()?;
        let graph = self.graph().ok()?;
        let first = graph.node(proxies.first()?.node).ok()?;
        let whole = self.proxy(first.args().first()?.as_node()?);
        (self.parts.borrow().get(&whole) == Some(&proxies)).then_some(whole)
    }

    /// Runs `body`, which records the call of a module, as inside that call.
    pub(super) fn in_call<R>(
        &self,
        path: &Arc<str>,
        module: &dyn Module,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let former = self.enter_call(path.clone(), module)?;
        let result = body();
        self.graph_mut()?.leave_scope(former);
        result
    }

    /// Reports the training flag of a module that is traced through, because the module reads it as
    /// a plain bool.
    fn report_training(&self, path: &str, module: &dyn Module) {
        if let Some(training) = own_training(module) {
            self.report(Frozen::Training {
                path: path.to_string(),
                training,
            });
        }
    }

    /// The path of the module whose forward is running, for errors.
    pub(super) fn current_module(&self) -> Option<String> {
        let graph = self.graph().ok()?;
        let path = graph.current_scope()?.path.to_string();
        (!path.is_empty()).then_some(path)
    }
}

fn hash_of(path: &str) -> u64 {
    FxBuildHasher.hash_one(path)
}

/// Whether a node calls the module at a path.
fn calls(graph: &Graph, node: NodeId, path: &Arc<str>) -> Result<bool> {
    let node = graph.node(node)?;
    let is_path = |called: &Arc<str>| Arc::ptr_eq(called, path) || called == path;
    Ok(matches!(node.op(), Op::CallModule(called) if is_path(called)))
}

fn held() -> Error {
    let problem =
        "the graph of this trace is borrowed: let go of `graph()`/`graph_mut()` before recording";
    ErrorKind::Borrowed(problem.to_string()).into()
}

fn fresh_id() -> TraceId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    TraceId(NEXT.fetch_add(1, Ordering::Relaxed))
}
