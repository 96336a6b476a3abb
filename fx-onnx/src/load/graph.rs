//! The walk: the nodes of a file, one by one, on tensors that are known or symbolic. What depends on no input is
//! computed at once.
//!
//! Invariant: a name stands for one value, and a node runs after those that it reads.

use std::cell::Cell;
use std::path::Path;
use std::sync::Mutex;

use fx_nn::ir::{SourceLocation, TensorMeta};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::trace::placed;
use fx_nn::value::{Dim, DimStep};
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::{Flow, read_inside};
use super::known::Known;
use super::scan::Limits;
use super::scope::{self, Scope, Scopes};
use super::value::{Given, V};
use super::whole::Whole;
use super::{paths, tensors, versions};
use crate::opaque::Opaque;
use crate::proto::{FunctionProto, GraphProto, NodeProto};

/// What is known of operators.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// What a node with these inputs gives.
    pub read: fn(&Reader<'_>, &NodeProto, Vec<V>, &mut Scopes) -> Given,
    /// Whether a node's operator may draw random numbers.
    pub draws: fn(&NodeProto) -> bool,
}

/// What a file is read with.
pub(super) struct Reader<'m> {
    pub rules: Rules,
    pub file: &'m str,
    pub folder: Option<&'m Path>,
    pub limits: Limits,
    pub versions: FxHashMap<String, i64>,
    pub functions: FxHashMap<(String, String), &'m FunctionProto>,
    pub opaque: &'m IndexMap<String, Opaque>,
    /// What the file says of values, for those of which nothing is known.
    pub hints: &'m FxHashMap<String, TensorMeta>,
    pub flow: &'m Flow,
    /// The channels of a block, where images lie in blocks.
    pub block: i64,
    /// The paths of the constants, by their identity.
    pub paths: &'m FxHashMap<u64, String>,
    pub turned: &'m Mutex<Turned>,
    /// How many nodes were read, functions opened.
    pub count: Cell<usize>,
    pub depth: Cell<usize>,
    /// The bytes of the file with its weights, and of the constants that nodes made.
    pub file_bytes: u64,
    pub spent: Cell<u64>,
    /// What is known of the values of bodies.
    pub known: Known,
    /// Where the names of sizes come from: an input, and which of its dims.
    pub symbols: &'m FxHashMap<String, (Tensor, i64)>,
    /// An input that a run gives.
    pub any: Option<Tensor>,
    /// The inputs that a run gives, by their names in the file; functions have names of their own.
    pub given: Option<&'m FxHashSet<String>>,
    /// Whether quantized operators are read in reference form.
    pub is_reference: bool,
}

/// The matrices of the file that were turned: the path and the matrix of the file, by the identity of the turned one.
pub(super) type Turned = FxHashMap<u64, (String, Tensor)>;

/// The nodes in an order in which they can run.
///
/// # Errors
/// Returns an error if nodes read each other in a circle, or two give one name.
pub(super) fn sorted(nodes: &[NodeProto]) -> Result<Vec<usize>> {
    let mut makers: FxHashMap<&str, usize> = FxHashMap::default();
    for (at, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            if makers.insert(name, at).is_some() {
                return Err(Error::msg(format_args!("two nodes give `{name}`")));
            }
        }
    }
    let mut waits = vec![0usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let mut names = node.input.clone();
        read_inside(node, &mut names);
        let before: FxHashSet<usize> = names
            .iter()
            .filter_map(|name| makers.get(name.as_str()).copied())
            .collect();
        for maker in before {
            waits[at] += 1;
            readers[maker].push(at);
        }
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..nodes.len()).filter(|at| waits[*at] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for reader in &readers[at] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.insert(*reader);
            }
        }
    }
    match waits.iter().position(|waits| *waits > 0) {
        None => Ok(order),
        Some(at) => Err(Error::msg(format_args!(
            "the node `{}` ({}) needs its own result: nodes read each other in a circle",
            nodes[at].name, nodes[at].op_type
        ))),
    }
}

impl Reader<'_> {
    /// The version of a domain's operators.
    pub fn version(&self, domain: &str) -> Result<i64> {
        let version = self.versions.get(domain).copied();
        version.ok_or_else(|| {
            let of = match domain {
                "" => "ONNX's operators",
                domain => domain,
            };
            Error::msg(format_args!(
                "the file does not say which version of {of} it uses (`opset_import`)"
            ))
        })
    }

    /// A size that is known of a value, by the sizes of the inputs.
    pub fn size_of(&self, dim: &Dim) -> Result<Whole> {
        let fold = |parts: Vec<Dim>, join: fn(&Whole, Whole) -> Result<Whole>| {
            let mut parts = parts.iter();
            let first = parts
                .next()
                .map_or_else(|| Ok(0.into()), |part| self.size_of(part))?;
            parts.try_fold(first, |all, part| join(&all, self.size_of(part)?))
        };
        match dim.step() {
            DimStep::Known(number) => Ok(number.into()),
            DimStep::Symbol(symbol) => match self.symbols.get(&*symbol) {
                Some((input, at)) => input.size(*at).map(Whole::from),
                None => Err(Error::msg(format_args!(
                    "the size `{symbol}` is known only to a run, and no input has it"
                ))),
            },
            DimStep::Sum(parts) => fold(parts, |a, b| a.plus(b)),
            DimStep::Product(parts) => fold(parts, |a, b| a.times(b)),
            DimStep::Quotient(a, b) => self.size_of(&a)?.over(self.size_of(&b)?),
            DimStep::Min(parts) => fold(parts, |a, b| a.at_most(b)),
            DimStep::Max(parts) => fold(parts, |a, b| a.at_least(b)),
            other => Err(Error::msg(format_args!("a size is {other:?}"))),
        }
    }

    /// Keeps which matrix of the file was turned.
    pub fn note_turned(&self, before: &Tensor, turned: &Tensor) {
        let ids = (Object::object_id(before), Object::object_id(turned));
        if let (Some(before_id), Some(id)) = ids
            && let Some(path) = self.paths.get(&before_id)
            && let Ok(mut known) = self.turned.lock()
        {
            known.insert(id, (path.clone(), before.clone()));
        }
    }

    /// Runs a graph on its inputs, which are in the innermost scope; what it gives.
    pub fn graph(&self, graph: &GraphProto, scopes: &mut Scopes, is_root: bool) -> Given {
        if !is_root {
            for constant in &graph.initializer {
                let own = tensors::constant(constant, self.folder, false)?;
                if let Some(scope) = scopes.last_mut() {
                    scope.values.insert(constant.name.clone(), own);
                }
            }
            for constant in &graph.sparse_initializer {
                let limit = self.limits.constant_bytes as u64;
                let (name, tensor) = tensors::dense(constant, self.folder, limit)?;
                let dtype = Tensor::dtype(&tensor)?;
                if let Some(scope) = scopes.last_mut() {
                    scope.values.insert(name, V::of(tensor, dtype));
                }
            }
        }
        self.nodes(&graph.node, scopes)?;
        graph
            .output
            .iter()
            .map(|output| scope::find(scopes, &output.name))
            .collect()
    }

    fn nodes(&self, nodes: &[NodeProto], scopes: &mut Scopes) -> Result<()> {
        for at in sorted(nodes)? {
            let node = &nodes[at];
            let given = self
                .node(node, at, scopes)
                .map_err(|error| self.blame(node, at, error))?;
            let Some(scope) = scopes.last_mut() else {
                return Err(Error::msg("a graph without a scope"));
            };
            for (name, value) in node.output.iter().zip(given) {
                if !name.is_empty() {
                    scope.values.insert(name.clone(), settled(value)?);
                }
            }
        }
        Ok(())
    }

    fn blame(&self, node: &NodeProto, at: usize, error: Error) -> Error {
        let text = error.to_string();
        // What is inside of a graph or a function names itself.
        if text.starts_with("node ") {
            return Error::msg(text);
        }
        let name = if node.name.is_empty() {
            node.output.first().map_or("", String::as_str)
        } else {
            &node.name
        };
        Error::msg(format_args!(
            "node {at} of {} `{name}` ({}): {text}",
            self.file, node.op_type
        ))
    }

    fn node(&self, node: &NodeProto, at: usize, scopes: &mut Scopes) -> Given {
        self.count.set(self.count.get() + 1);
        if self.count.get() > self.limits.nodes {
            return Err(Error::msg(format_args!(
                "more than {} nodes, with functions opened: raise `Limits::nodes` if that is meant",
                self.limits.nodes
            )));
        }
        let inputs = node
            .input
            .iter()
            .map(|name| scope::find(scopes, name))
            .collect::<Result<Vec<V>>>()?;
        let name = if node.name.is_empty() {
            node.output.first().cloned().unwrap_or_default()
        } else {
            node.name.clone()
        };
        let line = SourceLocation::new(format!("{}#{name}", self.file), at as u32 + 1, 1);
        let modules = paths::modules_of(node);
        let modules: Vec<(&str, &str)> =
            modules.iter().map(|(path, ty)| (&**path, &**ty)).collect();
        placed(line, &modules, || {
            (self.rules.read)(self, node, inputs, scopes)
        })
    }

    /// A call of a function of the file, opened.
    pub fn function(&self, call: &NodeProto, function: &FunctionProto, inputs: Vec<V>) -> Given {
        if self.depth.get() >= self.limits.depth * 4 {
            return Err(Error::msg(format_args!(
                "functions are called more than {} deep",
                self.limits.depth * 4
            )));
        }
        let mut scope: FxHashMap<String, V> = FxHashMap::default();
        for (at, name) in function.input.iter().enumerate() {
            scope.insert(name.clone(), inputs.get(at).cloned().unwrap_or(V::Absent));
        }
        let mut nodes = function.node.clone();
        let mut left: Vec<&mut NodeProto> = nodes.iter_mut().collect();
        while let Some(node) = left.pop() {
            node.attribute.retain_mut(|attribute| {
                if attribute.ref_attr_name.is_empty() {
                    return true;
                }
                let own = &attribute.ref_attr_name;
                let given = call
                    .attribute
                    .iter()
                    .chain(&function.attribute_proto)
                    .find(|a| a.name == *own);
                match given {
                    Some(given) => {
                        let name = attribute.name.clone();
                        *attribute = given.clone();
                        attribute.name = name;
                        true
                    }
                    None => false,
                }
            });
            left.extend(
                node.attribute
                    .iter_mut()
                    .filter_map(|a| a.g.as_mut())
                    .flat_map(|g| &mut g.node),
            );
        }
        let mut versions = self.versions.clone();
        versions.extend(
            function
                .opset_import
                .iter()
                .map(|set| (versions::domain(&set.domain).to_string(), set.version)),
        );
        let inner = Reader {
            rules: self.rules,
            versions,
            functions: self.functions.clone(),
            count: Cell::new(self.count.get()),
            depth: Cell::new(self.depth.get() + 1),
            file: self.file,
            folder: self.folder,
            limits: self.limits,
            opaque: self.opaque,
            hints: self.hints,
            flow: self.flow,
            block: self.block,
            paths: self.paths,
            turned: self.turned,
            file_bytes: self.file_bytes,
            spent: Cell::new(self.spent.get()),
            known: Known::default(),
            symbols: self.symbols,
            any: self.any.clone(),
            given: None,
            is_reference: self.is_reference,
        };
        let mut scopes = vec![Scope {
            values: scope,
            body: None,
        }];
        let result = inner.nodes(&nodes, &mut scopes);
        self.count.set(inner.count.get());
        self.spent.set(inner.spent.get());
        result?;
        function
            .output
            .iter()
            .map(|name| scope::find(&scopes, name))
            .collect()
    }
}

/// A constant that was computed of weights is not trained with them.
fn settled(value: V) -> Result<V> {
    let V::Tensor(tensor, dtype) = &value else {
        return Ok(value);
    };
    match tensor.candle() {
        Ok(data) if data.track_op() && !data.is_variable() => {
            Ok(V::Tensor(tensor.detach()?, *dtype))
        }
        _ => Ok(value),
    }
}
