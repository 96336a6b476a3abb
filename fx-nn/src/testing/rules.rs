//! Instances of patterns: what a pattern leaves open is drawn.
//!
//! Invariant: what is drawn fits by the pattern's own tests, so that the rule finds it.

use std::collections::HashMap;

use fx_core::ir::{Argument, Graph, NodeRef, Op, ParamType, ScalarType};
use fx_core::pattern::{OpenNode, Rewriter, Rule, SubgraphMatcher};
use fx_core::trace::CallArgs;
use fx_core::value::{IntoValue, NodeId, Value};
use fx_core::{Error, GraphModule, Result};

use super::draw::Draw;
use super::layers::layer;
use super::literal;
use super::rewrite::{Did, Instance, Rewrite};

impl Rewrite for Rule {
    fn name(&self) -> String {
        Rule::name(self).to_string()
    }

    fn instance(&self, _: usize, draw: &mut Draw) -> Result<Instance> {
        instance(self.matcher(), draw)
    }

    fn rewrite(&self, _: usize, gm: &mut GraphModule) -> Result<Did> {
        let found = !self.matcher().find(gm)?.is_empty();
        did(found, !self.apply(gm)?.is_empty())
    }
}

/// A rewriter is verified rule by rule, each in company of the others.
impl Rewrite for Rewriter {
    fn name(&self) -> String {
        let names: Vec<&str> = self.rules().iter().map(Rule::name).collect();
        names.join(", ")
    }

    fn parts(&self) -> Vec<String> {
        let names = self.rules().iter().map(Rule::name);
        names.map(str::to_string).collect()
    }

    fn instance(&self, part: usize, draw: &mut Draw) -> Result<Instance> {
        instance(self.rules()[part].matcher(), draw)
    }

    fn rewrite(&self, part: usize, gm: &mut GraphModule) -> Result<Did> {
        let found = !self.rules()[part].matcher().find(gm)?.is_empty();
        did(found, !self.run(gm)?.rewritten.is_empty())
    }
}

fn did(found: bool, rewrote: bool) -> Result<Did> {
    Ok(match (found, rewrote) {
        (_, true) => Did::Rewrote,
        (true, false) => Did::Refused,
        (false, false) => Did::Nothing,
    })
}

/// A graph that a pattern matches, with arguments.
fn instance(pattern: &SubgraphMatcher, draw: &mut Draw) -> Result<Instance> {
    let mut graph = pattern.graph().clone();
    let mut attributes = pattern.attributes().clone();
    let mut returned: Vec<NodeId> = pattern.returned().collect();
    // The dict that only names nodes is not part of what is computed.
    let values: Vec<Argument> = returned.drain(..).map(Argument::Node).collect();
    let output = graph.output_node().map(|node| node.id());
    let output = output.ok_or_else(|| Error::msg("a pattern has an output"))?;
    let result = match values.len() {
        1 => values[0].clone(),
        _ => Argument::Tuple(values.into()),
    };
    graph.node_mut(output)?.set_args((result,))?;
    let mut done: HashMap<String, String> = HashMap::new();
    for open in pattern.open_nodes() {
        let node = open.node()?;
        if open.may_be_absent() && draw.chance(0.3) {
            let first = graph.node(node.id())?.args().first();
            if let Some(first) = first.and_then(Argument::as_node) {
                graph.node_mut(node.id())?.replace_all_uses_with(first)?;
                graph.erase_node(node.id())?;
                continue;
            }
        }
        if open.params().next().is_some() || pattern.ignores_literals() {
            literals(&open, pattern, &mut graph, node, draw)?;
        }
        if !open.alternatives().is_empty() && draw.chance(0.5) {
            let op = draw.one_of(open.alternatives());
            graph.node_mut(node.id())?.set_op(op)?;
        }
        if let Op::CallModule(path) = node.op() {
            let place = match done.get(&**path) {
                Some(place) => place.clone(),
                None => {
                    let sample = pattern
                        .attributes()
                        .modules
                        .get(path)
                        .map(|module| &**module);
                    let fits = |module: &dyn fx_core::module::Module| open.takes_module(module);
                    let layer = layer(draw, sample, &fits)?;
                    let layer = layer.ok_or_else(|| {
                        Error::msg(format_args!(
                            "no layer of fx-nn fits %{}: make instances with `testing::pass`",
                            node.name()
                        ))
                    })?;
                    let place = concrete(&open, path)?;
                    attributes.modules.insert(place.as_str().into(), layer);
                    done.insert(path.to_string(), place.clone());
                    place
                }
            };
            if *place != **path {
                graph
                    .node_mut(node.id())?
                    .set_op(Op::CallModule(place.as_str().into()))?;
            }
        }
    }
    let mut inputs = Vec::new();
    for node in graph.placeholders() {
        inputs.push(input(node, draw)?);
    }
    let mut gm = GraphModule::new(attributes, graph, "Instance")?;
    let named: Vec<String> = gm
        .attributes()
        .tensors
        .keys()
        .map(|path| path.to_string())
        .collect();
    if !named.is_empty() {
        draw.weights(&mut gm)?;
    }
    let call = CallArgs {
        args: inputs,
        kwargs: Vec::new(),
    };
    Ok(Instance::new(gm, call))
}

/// What an input of a pattern is given.
fn input(node: NodeRef<'_>, draw: &mut Draw) -> Result<Value> {
    let ty = node.type_expr().map(str::parse::<ParamType>).transpose()?;
    let of = |scalar: ScalarType, draw: &mut Draw| match scalar {
        ScalarType::Bool => draw.chance(0.5).into_value(),
        ScalarType::Int => (draw.below(7) as i64 - 2).into_value(),
        _ => draw.number().into_value(),
    };
    Ok(match ty {
        Some(ParamType::Scalar(scalar) | ParamType::Plain(scalar)) => of(scalar, draw),
        _ => draw.input()?.into_value(),
    })
}

/// Draws the literals that are open at a node.
fn literals(
    open: &OpenNode<'_>,
    pattern: &SubgraphMatcher,
    graph: &mut Graph,
    node: NodeRef<'_>,
    draw: &mut Draw,
) -> Result<()> {
    let params: Vec<&str> = open.params().collect();
    let mut args = node.normalized_arguments()?;
    for (name, arg) in &mut args {
        let is_open = params.contains(&name.as_str());
        if arg.as_node().is_some() || !(is_open || pattern.ignores_literals()) {
            continue;
        }
        let fits = |literal: &Argument| !is_open || open.takes(name, literal);
        let own = arg.clone();
        for _ in 0..40 {
            let drawn = literal(&own, draw);
            if fits(&drawn) {
                *arg = drawn;
                break;
            }
        }
        if !fits(arg) {
            return Err(Error::msg(format_args!(
                "no number was drawn that `{name}` of %{} takes: have the pattern itself hold one that does",
                node.name()
            )));
        }
    }
    let args: Vec<Argument> = args.into_iter().map(|(_, arg)| arg).collect();
    graph.node_mut(node.id())?.set_inputs(args, ())
}

/// A path that a node's pattern of paths matches.
fn concrete(open: &OpenNode<'_>, own: &str) -> Result<String> {
    let Some(pattern) = open.module_path() else {
        return Ok(own.to_string());
    };
    if pattern.matches(own) {
        return Ok(own.to_string());
    }
    let mut path = String::new();
    let text = pattern.to_string().replace("**", "*");
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => path += "m0",
            '?' => path.push('a'),
            '{' => {
                let inner: String = rest.by_ref().take_while(|c| *c != '}').collect();
                path += inner.split(',').next().unwrap_or_default();
            }
            c => path.push(c),
        }
    }
    match pattern.matches(&path) {
        true => Ok(path),
        false => Err(Error::msg(format_args!(
            "no path was made that `{pattern}` matches: make instances with `testing::pass`"
        ))),
    }
}
