//! Graphs as JSON: the nodes in order, and tables of the source locations and modules they came
//! from.
//!
//! Invariants: nodes keep names and order; a node names earlier nodes only.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::arguments::{from_argument, to_argument};
use super::json::{self, Excerpt, Json, JsonMap};
use super::meta::{from_entries, to_entries};
use super::names::{graph_module, node as names, scope as scope_names, source as source_names};
use super::signature::{check_type, to_type};
use crate::error::{Error, Result};
use crate::ir::argument::{Args, Kwargs};
use crate::ir::function::{Function, dynamic_error};
use crate::ir::graph::Graph;
use crate::ir::meta::{NodeAction, NodeSource};
use crate::ir::node::NodeRef;
use crate::ir::op::{Op, Opcode};
use crate::ir::places::{LocationId, ScopeId, Site};
use crate::ir::registry;
use crate::location::SourceLocation;
use crate::submit::REGISTRY_HINT;
use crate::value::handle::NodeId;

/// The approximate number of bytes of text per node.
pub(super) const NODE_TEXT: usize = 128;

/// The tables of one graph, in order of first mention by its nodes.
#[derive(Default)]
struct Tables {
    locations: Vec<Json>,
    location_ids: FxHashMap<LocationId, usize>,
    scopes: Vec<Json>,
    scope_ids: FxHashMap<ScopeId, usize>,
    functions: FxHashMap<&'static str, ()>,
}

impl Tables {
    fn location(&mut self, graph: &Graph, id: LocationId) -> Option<usize> {
        let location = graph.location_of(id)?;
        let Tables {
            locations,
            location_ids,
            ..
        } = self;
        Some(*location_ids.entry(id).or_insert_with(|| {
            locations.push(from_location(location));
            locations.len() - 1
        }))
    }

    /// A scope's position in the table; its parents come before it.
    fn scope(&mut self, graph: &Graph, id: ScopeId) -> Option<usize> {
        let mut chain = Vec::new();
        let mut at = id;
        let mut outer = None;
        while let Some(scope) = graph.scope_of(at) {
            if let Some(known) = self.scope_ids.get(&at) {
                outer = Some(*known);
                break;
            }
            chain.push((at, scope));
            at = scope.parent;
        }
        for (id, scope) in chain.into_iter().rev() {
            let mut fields = JsonMap::new();
            fields.insert(scope_names::PATH.into(), Json::from(&*scope.path));
            fields.insert(
                scope_names::TYPE.into(),
                Json::from(scope.type_name.as_ref()),
            );
            if scope.call > 0 {
                fields.insert(scope_names::CALL.into(), Json::from(scope.call));
            }
            if let Some(outer) = outer {
                fields.insert(scope_names::IN.into(), Json::from(outer));
            }
            self.scopes.push(Json::Object(fields));
            outer = Some(self.scopes.len() - 1);
            self.scope_ids.insert(id, self.scopes.len() - 1);
        }
        outer
    }

    /// Checks that a function can be loaded: the registry has it under its path.
    fn function(&mut self, function: Function) -> Result<()> {
        if self.functions.contains_key(function.path()) {
            return Ok(());
        }
        if function.is_dynamic() {
            return Err(dynamic_error(function));
        }
        let found = registry::function_if_known(function.path())?;
        found.ok_or_else(|| no_function(function.path()))?;
        self.functions.insert(function.path(), ());
        Ok(())
    }
}

fn find_function(path: &str) -> Result<Function> {
    registry::function(path)?.ok_or_else(|| no_function(path))
}

fn no_function(path: &str) -> Error {
    Error::saved(format_args!(
        "no function is registered as {}: link its crate in (`use its_crate as _;`), or make it one with #[wrap]{REGISTRY_HINT}",
        Excerpt(path)
    ))
}

/// Adds a graph's fields to the JSON of its module.
pub(crate) fn from_graph(graph: &Graph, fields: &mut JsonMap) -> Result<()> {
    let mut nodes = Vec::with_capacity(graph.len());
    add_tables(graph, fields, |node| {
        nodes.push(serde_json::to_value(node).map_err(Error::saved)?);
        Ok(())
    })?;
    fields.insert(graph_module::NODES.into(), Json::Array(nodes));
    Ok(())
}

/// Adds the tables of a graph to the JSON of its module, and returns the list of nodes as text:
/// they never all exist as JSON.
pub(crate) fn write_graph(graph: &Graph, fields: &mut JsonMap) -> Result<String> {
    let mut text = Vec::with_capacity(NODE_TEXT * graph.len());
    text.push(b'[');
    add_tables(graph, fields, |node| {
        if text.len() > 1 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, &node).map_err(Error::saved)
    })?;
    text.push(b']');
    String::from_utf8(text).map_err(Error::saved)
}

/// Passes each node to `add`, and adds the tables that the nodes mention.
fn add_tables(
    graph: &Graph,
    fields: &mut JsonMap,
    mut add: impl FnMut(SavedNode<'_>) -> Result<()>,
) -> Result<()> {
    let mut tables = Tables::default();
    for (i, node) in graph.nodes().enumerate() {
        SavedNode::of(graph, node, &mut tables)
            .and_then(&mut add)
            .map_err(|e| node.blame("saving", e.inside(format_args!(".nodes[{i}]"))))?;
    }
    let Tables {
        locations, scopes, ..
    } = tables;
    fields.insert(graph_module::LOCATIONS.into(), Json::Array(locations));
    fields.insert(graph_module::SCOPES.into(), Json::Array(scopes));
    Ok(())
}

/// The fields of a node, in the order in which a file has them.
struct SavedNode<'g> {
    node: NodeRef<'g>,
    args: Vec<Json>,
    kwargs: JsonMap,
    at: Option<usize>,
    inside: Option<usize>,
    passes: Vec<Json>,
    meta: Option<Json>,
}

impl<'g> SavedNode<'g> {
    fn of(graph: &Graph, node: NodeRef<'g>, tables: &mut Tables) -> Result<Self> {
        let reference =
            |id: NodeId| -> Result<Json> { Ok(Json::from(format!("%{}", graph.node(id)?.name()))) };
        if let Op::CallFunction(function) = node.op() {
            tables
                .function(*function)
                .map_err(|e| e.inside(".target"))?;
        }
        if *node.op() != Op::Output {
            json::check_name(node.target()).map_err(|e| e.inside(".target"))?;
        }
        let args = node.args().iter();
        let args = args.map(|arg| from_argument(arg, &reference));
        let args = args.collect::<Result<_>>()?;
        let mut kwargs = JsonMap::new();
        for (name, arg) in node.kwargs() {
            json::check_name(name).map_err(|e| e.inside(".kwargs"))?;
            kwargs.insert(name.to_string(), from_argument(arg, &reference)?);
        }
        if let Some(ty) = node.type_expr() {
            check_type(ty).map_err(|e| e.inside(".type"))?;
        }
        let (location, scope) = node.places();
        Ok(SavedNode {
            node,
            args,
            kwargs,
            at: tables.location(graph, location),
            inside: tables.scope(graph, scope),
            passes: node.sources().iter().map(from_source).collect(),
            meta: from_entries(node.entries()).map_err(|e| e.inside(".meta"))?,
        })
    }
}

impl Serialize for SavedNode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let node = self.node;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry(names::OP, node.opcode().name())?;
        if *node.op() != Op::Output {
            fields.serialize_entry(names::TARGET, node.target())?;
        }
        fields.serialize_entry(names::NAME, &String::from(node.name()))?;
        if !self.args.is_empty() {
            fields.serialize_entry(names::ARGS, &self.args)?;
        }
        if !self.kwargs.is_empty() {
            fields.serialize_entry(names::KWARGS, &self.kwargs)?;
        }
        if let Some(ty) = node.type_expr() {
            fields.serialize_entry(names::TYPE, ty)?;
        }
        if let Some(at) = &self.at {
            fields.serialize_entry(names::AT, at)?;
        }
        if let Some(inside) = &self.inside {
            fields.serialize_entry(names::IN, inside)?;
        }
        if !self.passes.is_empty() {
            fields.serialize_entry(names::PASSES, &self.passes)?;
        }
        if let Some(meta) = &self.meta {
            fields.serialize_entry(names::META, meta)?;
        }
        fields.end()
    }
}

fn from_source(source: &NodeSource) -> Json {
    let action = source.action.name();
    let mut fields = JsonMap::new();
    fields.insert(source_names::PASS.into(), Json::from(&*source.pass));
    fields.insert(source_names::ACTION.into(), Json::from(action));
    if !source.from.is_empty() {
        fields.insert(source_names::FROM.into(), Json::from(source.from.clone()));
    }
    Json::Object(fields)
}

fn to_source(saved: &Json) -> Result<NodeSource> {
    let fields = json::object(saved)?;
    json::known_names(fields, &source_names::ALL)?;
    let names = |from| json::items(from, |name| json::text(name).map(str::to_string));
    Ok(NodeSource {
        pass: json::part(fields, source_names::PASS, json::text)?.into(),
        action: json::part(fields, source_names::ACTION, |action| {
            match json::text(action)? {
                "create" => Ok(NodeAction::Create),
                "replace" => Ok(NodeAction::Replace),
                _ => Err(json::expected("`create` or `replace`", action)),
            }
        })?,
        from: json::optional(fields, source_names::FROM, names)?.unwrap_or_default(),
    })
}

/// The graph in the JSON of its module.
pub(crate) fn to_graph(fields: &JsonMap) -> Result<Graph> {
    let expected = fields
        .get(graph_module::NODES)
        .and_then(Json::as_array)
        .map_or(0, Vec::len);
    let mut reader = GraphReader::new(fields, expected)?;
    json::part(fields, graph_module::NODES, |nodes| {
        json::items(nodes, |node| {
            reader.node(json::parts(json::object(node)?, &names::ALL)?)
        })
    })?;
    Ok(reader.finish())
}

/// File, line and column.
pub(super) fn from_location(location: &SourceLocation) -> Json {
    Json::Array(vec![
        Json::from(location.file.as_ref()),
        Json::from(location.line),
        Json::from(location.column),
    ])
}

pub(super) fn to_location(saved: &Json) -> Result<SourceLocation> {
    let number = |json: &Json| {
        json.as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| json::expected("a number of a line or column", json))
    };
    match json::array(saved)? {
        [file, line, column] => Ok(SourceLocation {
            file: Cow::Owned(json::text(file)?.to_string()),
            line: number(line)?,
            column: number(column)?,
        }),
        _ => Err(json::expected("file, line and column", saved)),
    }
}

/// Adds the scopes to a graph; a scope's parent comes before it.
fn to_scopes(graph: &mut Graph, saved: &Json) -> Result<Vec<ScopeId>> {
    let mut ids: Vec<ScopeId> = Vec::new();
    json::items(saved, |scope| {
        let fields = json::object(scope)?;
        json::known_names(fields, &scope_names::ALL)?;
        let parent = json::optional(fields, scope_names::IN, |outer| {
            json::index(outer, ids.len())
        })?;
        let path = json::part(fields, scope_names::PATH, json::text)?;
        let ty = json::part(fields, scope_names::TYPE, json::text)?;
        graph.leave_scope(parent.map_or(ScopeId::default(), |outer| ids[outer]));
        let call = json::optional(fields, scope_names::CALL, |call| {
            let call = call.as_u64().and_then(|call| u32::try_from(call).ok());
            call.ok_or_else(|| Error::saved("expected the number of a call"))
        })?;
        graph.enter_scope(path.into(), ty.to_string(), call.unwrap_or(0));
        ids.push(graph.scope_id());
        Ok(())
    })?;
    Ok(ids)
}

/// A graph that grows node by node.
pub(crate) struct GraphReader {
    graph: Graph,
    locations: Vec<LocationId>,
    scopes: Vec<ScopeId>,
    /// Functions that have been looked up.
    functions: FxHashMap<Box<str>, Function>,
}

impl GraphReader {
    /// Starts a graph with the tables in its module's JSON, with room for the expected number of
    /// nodes.
    pub fn new(fields: &JsonMap, expected: usize) -> Result<Self> {
        let mut graph = Graph::with_capacity(expected);
        let locations = json::part(fields, graph_module::LOCATIONS, |saved| {
            json::items(saved, to_location)
        })?;
        Ok(GraphReader {
            locations: locations
                .into_iter()
                .map(|location| graph.intern_location(location))
                .collect(),
            scopes: json::part(fields, graph_module::SCOPES, |scopes| {
                to_scopes(&mut graph, scopes)
            })?,
            functions: FxHashMap::default(),
            graph,
        })
    }

    /// Returns the graph of the nodes that were read.
    pub fn finish(mut self) -> Graph {
        self.graph.leave_scope(ScopeId::default());
        self.graph
    }

    /// Adds a node with these fields.
    pub fn node(&mut self, parts: [Option<&Json>; names::ALL.len()]) -> Result<()> {
        let [op, target, name, args, kwargs, ty, at, inside, passes, meta] = parts;
        let op = self.op(op, target)?;
        let name = json::inside(name, names::NAME, json::text)?;
        let name = name.ok_or_else(|| json::missing(names::NAME))?;
        let graph = &self.graph;
        let reference = |earlier: &str| {
            let found = graph.find_name(earlier).map(NodeRef::id);
            found.ok_or_else(|| {
                Error::saved(format_args!(
                    "{} is not an earlier node: a node uses nodes that come before it",
                    Excerpt(&format!("%{earlier}"))
                ))
            })
        };
        let args = json::inside(args, names::ARGS, |args| {
            json::items(args, |arg| to_argument(arg, 0, &reference))
        })?;
        let kwargs = json::inside(kwargs, names::KWARGS, |kwargs| {
            json::object(kwargs)?
                .iter()
                .map(|(key, arg)| {
                    json::check_name(key)?;
                    let arg = to_argument(arg, 0, &reference)
                        .map_err(|e| e.inside(format_args!(".{key}")))?;
                    Ok((Arc::from(key.as_str()), arg))
                })
                .collect::<Result<Kwargs>>()
        })?;
        let ty = json::inside(ty, names::TYPE, to_type)?;
        let at = json::inside(at, names::AT, |at| json::index(at, self.locations.len()))?;
        let inside = json::inside(inside, names::IN, |at| json::index(at, self.scopes.len()))?;
        let sources = json::inside(passes, names::PASSES, |s| json::items(s, to_source))?;

        let scope = inside.map_or(ScopeId::default(), |at| self.scopes[at]);
        self.graph.leave_scope(scope);
        let site = at.map_or(Site::Unknown, |at| Site::Known(self.locations[at]));
        let args = Args::from(args.unwrap_or_default());
        let kwargs = kwargs.unwrap_or_default();
        let id = self.graph.insert(op, args, kwargs, Some(name), site)?;
        let given = self.graph.node(id)?.name();
        if given != name {
            let problem = match self.graph.find_name(name) {
                Some(_) => format!("two nodes are named {}", Excerpt(name)),
                None => format!("{} is not a name of a node", Excerpt(name)),
            };
            return Err(Error::saved(problem).inside(".name"));
        }
        if ty.is_some() || sources.is_some() || meta.is_some() {
            let mut node = self.graph.node_mut(id)?;
            node.set_type_expr(ty);
            if let Some(sources) = sources {
                node.set_sources(sources);
            }
            json::inside(meta, names::META, |meta| {
                to_entries(meta, |entry| node.put_entry(entry))
            })?;
        }
        Ok(())
    }

    fn op(&mut self, op: Option<&Json>, target: Option<&Json>) -> Result<Op> {
        let opcode = json::inside(op, names::OP, to_opcode)?;
        let opcode = opcode.ok_or_else(|| json::missing(names::OP))?;
        if opcode == Opcode::Output {
            return Ok(Op::Output);
        }
        let functions = &mut self.functions;
        let op = json::inside(target, names::TARGET, |target| {
            let target = json::name(target)?;
            Ok(match opcode {
                Opcode::Placeholder => Op::Placeholder(target.into()),
                Opcode::GetAttr => Op::GetAttr(target.into()),
                Opcode::CallFunction => Op::CallFunction(match functions.get(target) {
                    Some(known) => *known,
                    None => {
                        let found = find_function(target)?;
                        functions.insert(target.into(), found);
                        found
                    }
                }),
                Opcode::CallMethod => {
                    registry::open();
                    Op::CallMethod(target.into())
                }
                Opcode::CallModule => Op::CallModule(target.into()),
                Opcode::Output => Op::Output,
            })
        })?;
        op.ok_or_else(|| json::missing(names::TARGET))
    }
}

fn to_opcode(op: &Json) -> Result<Opcode> {
    let opcode = Opcode::named(json::text(op)?);
    opcode.ok_or_else(|| {
        let known = Opcode::ALL.map(Opcode::name).join(", ");
        json::expected(format_args!("one of {known}"), op)
    })
}
