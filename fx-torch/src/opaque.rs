//! `Opaque`: an operator that fx does not have, as a leaf that is shown, moved, saved and replaced.
//!
//! Invariant: it says what its results are, as the file does, and gives no numbers.

use fx_nn::file::{Json, Loader, Saver};
use fx_nn::ir::{Effects, ParamSpec};
use fx_nn::module::{Component, Module, Walk};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::schema::{Argument, Graph, Named, NamedArgument, Node, Size};
use crate::{element, places, rules, size};

/// What is known of a result: PyTorch's number of its element type, and its sizes, each a number or an expression.
type Known = (u64, Vec<String>);

/// An operator that fx does not have. Its arguments are those of the call, and a run of it is an error that names it.
///
/// It stands at `opaque.NAME` in the module whose code calls it. Replace it by a module of yours, or register a function for
/// its operator ([`Operator`](crate::Operator)) and read the file again.
#[derive(Debug, Clone)]
pub struct Opaque {
    target: String,
    /// Whether there is a tuple of results, also of one.
    is_tuple: bool,
    results: Vec<Known>,
    params: Vec<ParamSpec>,
}

impl Opaque {
    /// The operator with its overload: `torch.ops.shop.swish.default`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What a node of the file is, if its results are tensors of which the file says what they are.
    fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let (outputs, is_tuple): (Vec<&Named>, bool) = match node.outputs.as_slice() {
            [Argument::AsTensor(one)] => (vec![one], false),
            [Argument::AsTensors(all)] => (all.iter().collect(), true),
            several => {
                let outputs = several.iter().map(|output| match output {
                    Argument::AsTensor(one) => Some(one),
                    _ => None,
                });
                (outputs.collect::<Option<_>>()?, true)
            }
        };
        let results = outputs.into_iter().map(|output| {
            let meta = graph.tensor_values.get(&output.name)?;
            element::dtype(meta.dtype).ok()?;
            let sizes = meta.sizes.iter().map(|size| match size {
                Size::AsInt(number) => Some(number.to_string()),
                Size::AsExpr(of) => size::text(&of.expr_str).ok(),
            });
            Some((meta.dtype, sizes.collect::<Option<Vec<String>>>()?))
        });
        let names = node.inputs.iter().map(|input| input.name.clone());
        let made = Opaque::new(
            &node.target,
            is_tuple,
            results.collect::<Option<_>>()?,
            names,
        );
        (!made.results.is_empty()).then_some(made)
    }

    fn new(
        target: &str,
        is_tuple: bool,
        results: Vec<Known>,
        names: impl Iterator<Item = String>,
    ) -> Self {
        Opaque {
            target: target.to_string(),
            is_tuple,
            results,
            params: names
                .map(|name| ParamSpec::of_text(name, "Value"))
                .collect(),
        }
    }
}

/// A leaf with its path.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub path: String,
    pub module: Opaque,
}

/// The name of a node's first result, which no other node has.
pub(crate) fn first_result(node: &Node) -> Option<&str> {
    match node.outputs.first()? {
        Argument::AsTensors(all) => Some(&all.first()?.name),
        one => one.tensor(),
    }
}

/// The leaves of a graph, by the names of their first results: of operators that are not known, have no graphs and write
/// nothing by their name.
pub(crate) fn leaves(graph: &Graph) -> IndexMap<String, Leaf> {
    let mut leaves = IndexMap::new();
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for node in &graph.nodes {
        let (_, operator) = rules::short(&node.target);
        let is_plain = !operator.ends_with('_') && !operator.starts_with("higher_order.");
        let is_graph = |input: &NamedArgument| matches!(input.arg, Argument::AsGraph(_));
        if !is_plain || rules::is_known(&node.target) || node.inputs.iter().any(is_graph) {
            continue;
        }
        let (Some(result), Some(module)) = (first_result(node), Opaque::of(graph, node)) else {
            continue;
        };
        let name = operator.rsplit('.').next().unwrap_or(operator);
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
        let path = match places::modules(node).last() {
            Some(around) => format!("{}.opaque.{name}", around.path),
            None => format!("opaque.{name}"),
        };
        let count = counts.entry(path.clone()).or_default();
        let path = match *count {
            0 => path,
            earlier => format!("{path}_{earlier}"),
        };
        *count += 1;
        leaves.insert(result.to_string(), Leaf { path, module });
    }
    leaves
}

impl Component for Opaque {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |_| {});
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn to_saved(&self, _: &mut Saver) -> Result<Json> {
        let names: Vec<&str> = self.params.iter().map(|param| &*param.name).collect();
        Ok(serde_json::json!({
            "target": self.target,
            "is_tuple": self.is_tuple,
            "results": self.results,
            "arguments": names,
        }))
    }

    fn from_saved(saved: &Json, _: &mut Loader<'_>) -> Result<Self> {
        #[derive(serde::Deserialize)]
        struct Saved {
            target: String,
            is_tuple: bool,
            results: Vec<Known>,
            arguments: Vec<String>,
        }
        let saved: Saved = serde_json::from_value(saved.clone()).map_err(Error::other)?;
        let names = saved.arguments.into_iter();
        Ok(Opaque::new(
            &saved.target,
            saved.is_tuple,
            saved.results,
            names,
        ))
    }
}

impl Module for Opaque {
    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        let mut no_data = false;
        for arg in args {
            arg.for_each(&mut |inner| {
                let object = inner.as_object();
                no_data |= matches!(inner, Value::Proxy(_))
                    || object.is_some_and(|object| object.is_fake() || object.proxy().is_some());
            });
        }
        if !no_data {
            return Err(Error::msg(format_args!(
                "fx has no operator `{}`: register a function for it (`fx_torch::Operator`), or replace the module",
                self.target
            )));
        }
        let results = self.results.iter().map(|(code, sizes)| {
            let spec = Spec::tensor(sizes.iter().map(String::as_str), element::dtype(*code)?);
            Ok(Value::object(Tensor::fake(spec)?))
        });
        let mut results = results.collect::<Result<Vec<Value>>>()?;
        *out = match (self.is_tuple, results.pop()) {
            (false, Some(one)) => one,
            (_, last) => {
                results.extend(last);
                Value::Tuple(results.into())
            }
        };
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.clone())
    }

    fn is_leaf(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn source_problem(&self) -> Option<&'static str> {
        Some("is an operator of PyTorch that fx does not have")
    }
}

fx_nn::register_module!(Opaque);
