//! The walk: a graph module as the operations of a program.
//!
//! Invariant: values are written in the order of the graph; a weight is one argument, however often it is tied.

use fx_nn::ir::{Graph, NodeRef, Op, ValueMeta};
use fx_nn::lowering::{OpCall, RegionCall, Val, Values, opened, prepare, prepare_within, val_of};
use fx_nn::module::{Attributes, Call, Callee};
use fx_nn::prelude::*;
use fx_nn::shapes::{ShapeEnv, Spec};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::out::control::{self, Graphs};
use crate::out::cx::{Array, Cx, Region, Type, type_of};
use crate::out::options::Export;

/// A weight of the program: an argument that is a tensor of the module.
#[derive(Debug)]
pub(crate) struct Weight {
    pub path: String,
    pub array: Array,
    pub value: Value,
}

/// Writes graphs.
pub(crate) struct Writer<'e> {
    pub cx: Cx,
    export: &'e Export,
    /// The symbols of the graph that is being written.
    env: ShapeEnv,
    pub weights: Vec<Weight>,
    /// The weights by identity.
    tied: IndexMap<u64, usize, FxBuildHasher>,
}

impl<'e> Writer<'e> {
    pub fn new(export: &'e Export) -> Self {
        Writer {
            cx: Cx::new(),
            export,
            env: ShapeEnv::default(),
            weights: Vec::new(),
            tied: IndexMap::default(),
        }
    }

    /// A graph module ready to be written; its symbols are those that the writer writes with from now on.
    pub fn prepared(&mut self, gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule> {
        let mut ready = opened(gm, |_| false)?;
        self.env = prepare(&mut ready, specs, &self.export.rules, "StableHLO")?;
        Ok(ready)
    }

    /// The graph of a branch or the body of a loop ready to be written, and its symbols.
    fn prepared_within(&self, gm: &GraphModule, specs: &[Spec]) -> Result<(GraphModule, ShapeEnv)> {
        let mut ready = opened(gm, |_| false)?;
        let rules = &self.export.rules;
        let env = prepare_within(&mut ready, specs, &self.env, rules, "StableHLO")?;
        Ok((ready, env))
    }

    /// Writes the nodes of a graph; the values that it gives.
    pub fn graph(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        inputs: Vec<Val>,
    ) -> Result<Vec<Val>> {
        let mut values = Values::with_capacity_and_hasher(graph.len(), FxBuildHasher);
        let mut inputs = inputs.into_iter();
        self.cx.reserve(graph.len());
        for node in graph.nodes() {
            self.cx.at(node);
            if *node.op() == Op::Output {
                let mut flat = Vec::new();
                if let Some(output) = node.args().first() {
                    val_of(output, &values)?.flatten(&mut flat);
                }
                return Ok(flat);
            }
            let val = match node.op() {
                Op::Placeholder(_) => inputs.next().ok_or_else(|| {
                    node.blame(
                        "writing as StableHLO",
                        Error::msg("nothing is given for it"),
                    )
                })?,
                _ => {
                    let val = self.node(node, attributes, &values);
                    val.map_err(|error| node.blame("writing as StableHLO", error))?
                }
            };
            values.insert(node.id(), val);
        }
        Err(Error::msg("the graph has no output node"))
    }

    fn node(&mut self, node: NodeRef<'_>, attributes: &Attributes, values: &Values) -> Result<Val> {
        if let Op::GetAttr(path) = node.op() {
            return self.weight(path, attributes.tensor(path)?);
        }
        let unknown = ValueMeta::Opaque("a value".into());
        let meta = node.meta::<ValueMeta>().unwrap_or(&unknown);
        if let Some(known) = known_value(meta) {
            return Ok(known);
        }
        if let Op::CallModule(path) = node.op() {
            let call = Call::of(node, attributes);
            let Callee::Module(module) = call.callee() else {
                return Err(Error::msg(format_args!("there is no module at {path}")));
            };
            let call = RegionCall::new(node, attributes, values, meta)?;
            return control::write(self, *module, &call);
        }
        let Op::CallFunction(function) = node.op() else {
            return Err(Error::msg("it is no function"));
        };
        let export = self.export;
        let Some(rule) = export.rules.get(*function)? else {
            return Err(Error::msg(format_args!(
                "`{}` has no rule",
                function.path()
            )));
        };
        let call = OpCall::new(node, *function, attributes, values, meta)?;
        // A result that has no elements is the same whatever a function computes.
        if meta.tensor().is_some()
            && let Ok((dtype, shape)) = self.cx.result(&call)
            && shape.contains(&0)
        {
            return Ok(self.cx.splat(0.0, dtype, &shape).into());
        }
        rule.write(&mut self.cx, &call)
    }

    /// A tensor of the module as an argument; tied ones are one.
    fn weight(&mut self, path: &str, value: &Value) -> Result<Val> {
        if matches!(value, Value::None) {
            return Ok(Val::None);
        }
        let Some(object) = value.as_object() else {
            return Err(Error::msg(format_args!(
                "`{path}` is {}, and not a tensor",
                value.describe()
            )));
        };
        let id = object.object_id();
        if let Some(known) = id.and_then(|id| self.tied.get(&id)) {
            return Ok(self.weights[*known].array.clone().into());
        }
        let ValueMeta::Single(meta) = ValueMeta::of(value) else {
            return Err(Error::msg(format_args!(
                "`{path}` is {}, and not a tensor",
                value.describe()
            )));
        };
        let array = self.cx.argument(type_of(&meta)?);
        if let Some(id) = id {
            self.tied.insert(id, self.weights.len());
        }
        self.weights.push(Weight {
            path: path.to_string(),
            array: array.clone(),
            value: value.clone(),
        });
        Ok(array.into())
    }
}

impl Graphs for Writer<'_> {
    fn cx(&mut self) -> &mut Cx {
        &mut self.cx
    }

    fn prepared_branch(&self, gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule> {
        self.prepared_within(gm, specs).map(|(ready, _)| ready)
    }

    fn branch(&mut self, gm: &GraphModule, specs: &[Spec], inputs: Vec<Val>) -> Result<Vec<Val>> {
        let (ready, env) = self.prepared_within(gm, specs)?;
        let around = std::mem::replace(&mut self.env, env);
        let results = self.graph(ready.graph(), ready.attributes(), inputs);
        let inside = std::mem::replace(&mut self.env, around);
        self.env.learn(&inside);
        results
    }

    fn region(
        &mut self,
        arguments: &[Type],
        body: impl FnOnce(&mut Self, &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Region> {
        // The context is lent to the region, which lends it back.
        let mut cx = std::mem::replace(&mut self.cx, Cx::new());
        let region = cx.region(arguments, |cx, given| {
            std::mem::swap(cx, &mut self.cx);
            let results = body(self, given);
            std::mem::swap(cx, &mut self.cx);
            results
        });
        self.cx = cx;
        region
    }
}

/// Numbers that a node gives, if a program needs no operation for them.
pub(crate) fn known_value(meta: &ValueMeta) -> Option<Val> {
    Val::known(meta, &|dim| dim.as_number().is_some())
}
