//! `Trace::inputs`: inference as a trace records.

use std::sync::Arc;

use super::graph::{Inference, input_fakes};
use crate::error::{Error, Result};
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::shapes::{Claim, Contract, Spec};
use crate::trace::infers::{Inferred, Infers};
use crate::trace::root::Trace;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;
use crate::value::operator::Operator;
use crate::value::tree::Tree;

impl Trace<'_> {
    /// Says what the arguments will be, by position: the trace then knows every shape. What follows
    /// from known sizes is a number of the graph, a mistake is an error at the user's line, and the
    /// nodes have their [`ValueMeta`](crate::ir::ValueMeta) entries. What the shapes assume of the sizes with names is the
    /// graph module's [`contract`](crate::GraphModule::contract).
    ///
    /// A question about a size, such as `n.concrete()` or the truth of `n.gt(4)?`, is answered if
    /// its range decides it, or by a [`hint`](Spec::hint), which makes the answer a guard.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::shapes::Spec;
    /// let f = traced!(|n: Int, m: Int| {
    ///     let wide = if n.gt(4)?.to_bool()? { (n * 2)? } else { n };
    ///     wide + (m + 1)?
    /// });
    /// let trace = Trace::new(f).inputs([Spec::int("n").hint("n", 8), Spec::int(3)]);
    /// let gm = trace.graph_module()?;
    /// // What is known is a number: `m + 1`.
    /// assert!(gm.code().contains(" + 4)"), "{}", gm.code());
    /// assert!(gm.contract().is_some_and(|c| c.guards()[0].to_string().starts_with("n >= 5")));
    /// assert_eq!(gm.forward::<i64>((6, 3))?, 16);
    /// assert!(gm.forward::<i64>((4, 3)).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn inputs(mut self, specs: impl IntoIterator<Item = Spec>) -> Self {
        self.shapes = Some(Box::new(Tracing {
            specs: specs.into_iter().collect(),
            inference: Inference::new(),
            inputs: Vec::new(),
            values: Vec::new(),
            ids: Vec::new(),
        }));
        self
    }
}

struct Tracing {
    specs: Vec<Spec>,
    inference: Inference,
    inputs: Vec<(Arc<str>, ValueMeta)>,
    /// What the nodes give, by their indices, with the nodes: an index is used again.
    values: Vec<Option<ValueMeta>>,
    ids: Vec<Option<NodeId>>,
}

impl Tracing {
    fn value(&self, node: NodeId) -> Option<&ValueMeta> {
        let at = node.index as usize;
        match self.ids.get(at) {
            Some(Some(known)) if *known == node => self.values.get(at)?.as_ref(),
            _ => None,
        }
    }

    fn set(&mut self, node: NodeId, value: ValueMeta) {
        let at = node.index as usize;
        if at >= self.ids.len() {
            self.ids.resize(at + 1, None);
            self.values.resize(at + 1, None);
        }
        self.ids[at] = Some(node);
        self.values[at] = Some(value);
    }

    /// Infers a node whose inputs are inferred.
    fn infer(&mut self, node: NodeRef<'_>, attributes: &Attributes) -> Result<ValueMeta> {
        let mut none = std::iter::empty();
        let value = self
            .inference
            .node(node, attributes, &self.values[..], &mut none);
        let value = value.map_err(|e| node.blame("tracing", e))?;
        self.set(node.id(), value.clone());
        Ok(value)
    }
}

impl Infers for Tracing {
    fn start(&mut self, graph: &Graph, params: &[ParamSpec], trees: &[Tree]) -> Result<()> {
        let env = &mut self.inference.env;
        self.specs.iter().try_for_each(|spec| spec.declare(env))?;
        self.specs.iter().try_for_each(|spec| spec.constrain(env))?;
        if self.specs.len() > params.len() {
            return Err(Error::msg(format_args!(
                "{} specs for {} parameters: give one for each, by position",
                self.specs.len(),
                params.len()
            )));
        }
        let mut leaves = Vec::new();
        let mut flat = Vec::new();
        for (at, (param, tree)) in params.iter().zip(trees).enumerate() {
            match self.specs.get(at) {
                Some(spec) => {
                    let value = spec.leaves(&mut leaves)?;
                    let parts = tree.flatten(value);
                    let about = |e| Error::msg(format_args!("the spec of `{}`: {e}", param.name));
                    flat.extend(parts.map_err(about)?.into_iter().map(Some));
                }
                // Each leaf is specialised, or has a default.
                None => flat.extend(std::iter::repeat_n(None, tree.leaves())),
            }
        }
        let flat: Vec<Option<ValueMeta>> = input_fakes(flat, &leaves);
        for (node, input) in graph.placeholders().zip(flat) {
            let fake = match (input, node.args().first()) {
                (Some(fake), _) => fake,
                (None, Some(default)) => {
                    let default = default.plain_value().unwrap_or_default();
                    ValueMeta::of_argument(&default)
                }
                (None, None) => {
                    return Err(Error::msg(format_args!(
                        "`{}` has no spec: `Trace::inputs` takes one for each parameter, by position",
                        node.target()
                    )));
                }
            };
            self.inputs.push((node.target().into(), fake.clone()));
            self.set(node.id(), fake);
        }
        Ok(())
    }

    fn node(&mut self, graph: &Graph, attributes: &Attributes, node: NodeId) -> Result<ValueMeta> {
        let mut left = vec![node];
        while let Some(id) = left.last().copied() {
            if self.value(id).is_some() {
                left.pop();
                continue;
            }
            let node = graph.node(id)?;
            let before = left.len();
            let unknown = node
                .all_input_nodes()
                .filter(|input| self.value(input.id()).is_none());
            left.extend(unknown.map(NodeRef::id));
            if left.len() == before {
                self.infer(node, attributes)?;
                left.pop();
            }
        }
        Ok(self.value(node).cloned().unwrap_or(ValueMeta::none()))
    }

    fn truth(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        node: NodeId,
    ) -> Result<Option<bool>> {
        if let ValueMeta::Bool(Some(truth)) = self.node(graph, attributes, node)? {
            return Ok(Some(truth));
        }
        let node = graph.node(node)?;
        let Op::CallFunction(function) = node.op() else {
            return Ok(None);
        };
        let (Some(op), [a, b]) = (function.def().operator, node.args()) else {
            return Ok(None);
        };
        let size = |argument| match self.inference.argument(argument, &self.values[..]) {
            ValueMeta::Int(dim) => Some(dim),
            _ => None,
        };
        let (Some(a), Some(b)) = (size(a), size(b)) else {
            return Ok(None);
        };
        let difference = (&a - &b)?;
        let Some(hinted) = self.inference.env.hinted(&difference) else {
            return Ok(None);
        };
        let truth = match op {
            Operator::Eq => hinted == 0,
            Operator::Ne => hinted != 0,
            Operator::Gt => hinted > 0,
            Operator::Ge => hinted >= 0,
            Operator::Lt => hinted < 0,
            Operator::Le => hinted <= 0,
            _ => return Ok(None),
        };
        // What is enough for the answer, of all that the hint says.
        let claim = match op {
            Operator::Eq | Operator::Ne if hinted == 0 => Claim::Equal(a, b),
            Operator::Ge | Operator::Lt if hinted >= 0 => Claim::AtLeast(difference, 0),
            Operator::Gt | Operator::Le if hinted <= 0 => Claim::AtMost(difference, 0),
            _ if hinted > 0 => Claim::AtLeast(difference, 1),
            _ => Claim::AtMost(difference, -1),
        };
        self.inference.at(node);
        self.inference.env.require(&claim)?;
        Ok(Some(truth))
    }

    fn number(&mut self, dim: &Dim) -> Result<Option<i64>> {
        let Some(number) = self.inference.env.hinted(dim) else {
            return Ok(None);
        };
        self.inference
            .env
            .require(&Claim::Equal(dim.clone(), number.into()))?;
        Ok(Some(number))
    }

    fn finish(&mut self, graph: &Graph, attributes: &Attributes) -> Result<Inferred> {
        let mut metas = Vec::with_capacity(graph.len());
        for node in graph.nodes() {
            let value = match self.value(node.id()) {
                Some(value) => value.clone(),
                None => self.infer(node, attributes)?,
            };
            metas.push((node.id(), value.entry()));
        }
        let mut env = std::mem::take(&mut self.inference.env);
        // A later node may have said what a size is.
        for (_, meta) in &mut metas {
            *meta = env.settled_meta(std::mem::replace(meta, ValueMeta::none()))?;
        }
        env.without_implied()?;
        Ok((Contract::of(std::mem::take(&mut self.inputs), &env), metas))
    }
}
