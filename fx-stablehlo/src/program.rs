//! `Program`: the text of a graph module as StableHLO, with what it takes and gives, in order.
//!
//! Invariant: arguments and results stand in the text as they are listed here.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use fx_nn::ir::{NodeRef, Op, ValueMeta};
use fx_nn::lowering::{Val, as_tensor};
use fx_nn::prelude::*;
use serde_json::json;

use crate::out::cx::{Array, type_of};
use crate::out::donation::{Donation, donations};
use crate::out::graph::{Weight, Writer, known_value};
use crate::out::text::{element_type, tensor_type};
use crate::out::{Export, ResultTree};
use crate::shard::{Mesh, Sharding};

/// What was written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of operations, those of regions too.
    pub operations: usize,
    /// The number of weights, tied ones once.
    pub weights: usize,
    /// The size of the weights in bytes.
    pub weight_bytes: usize,
    /// Whether the program takes a key for random numbers.
    pub takes_key: bool,
}

/// The StableHLO program of a graph module, for what compiles and runs it.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_stablehlo::{ArgumentKind, Export, Program};
/// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
/// let program = Program::of(&gm, &Export::example(&Tensor::ones((1, 4))?))?;
/// assert!(program.text().contains("stablehlo.dot_general"));
/// let weights = program.arguments().filter(|argument| matches!(argument.kind, ArgumentKind::Weight { .. }));
/// assert_eq!(weights.count(), 2);
/// assert_eq!(program.results().next(), Some((DType::F32, &[1, 2][..])));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Program {
    text: String,
    inputs: Vec<(String, Array)>,
    weights: Vec<Weight>,
    results: Vec<Array>,
    takes_key: bool,
    operations: usize,
    plan: Plan,
    result_tree: ResultTree,
    donations: Vec<Option<Donation>>,
}

/// An argument of a [`Program`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProgramArgument<'p> {
    /// What is given for it.
    pub kind: ArgumentKind<'p>,
    /// Its element type.
    pub dtype: DType,
    /// Its sizes.
    pub shape: &'p [i64],
    /// Whether a run takes its memory over: [`Export::donate`].
    pub is_donated: bool,
}

/// What is given for an argument of a [`Program`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ArgumentKind<'p> {
    /// An input of the graph: the name of its placeholder.
    Input(&'p str),
    /// A tensor of the module.
    Weight {
        /// Its path.
        path: &'p str,
        /// The tensor.
        value: &'p Value,
    },
    /// Two integers of 64 bits that decide the random numbers.
    Key,
}

/// The shardings that the user fixed, by path, name and place.
#[derive(Debug, Default)]
struct Plan {
    mesh: Option<Mesh>,
    parameters: HashMap<String, Sharding>,
    inputs: HashMap<String, Sharding>,
    outputs: HashMap<usize, Sharding>,
}

impl Plan {
    /// The entries of a graph and its nodes.
    fn of(gm: &GraphModule) -> Result<Self> {
        let mut plan = Plan {
            mesh: gm.meta::<Mesh>().cloned(),
            ..Plan::default()
        };
        for node in gm.graph().nodes() {
            match node.op() {
                Op::Output => {
                    let mut flat = Vec::new();
                    for argument in node.args() {
                        argument.for_each_node(&mut |id| flat.push(id));
                    }
                    for (at, id) in flat.into_iter().enumerate() {
                        let fixed = fixed(gm.graph().node(id)?);
                        plan.outputs.extend(fixed.map(|of| (at, of)));
                    }
                }
                Op::GetAttr(path) => {
                    plan.parameters
                        .extend(fixed(node).map(|of| (path.to_string(), of)));
                }
                Op::Placeholder(name) => {
                    plan.inputs
                        .extend(fixed(node).map(|of| (name.to_string(), of)));
                }
                _ => {}
            }
        }
        Ok(plan)
    }
}

/// The sharding of a node, if the user fixed it.
fn fixed(node: NodeRef<'_>) -> Option<Sharding> {
    let sharding = node.meta::<Sharding>()?;
    let is_fixed = sharding.dims().iter().any(|dim| !dim.open);
    is_fixed.then(|| sharding.clone())
}

/// What is said of an argument or a result: its sharding, and whether its memory is given up.
fn write_attributes(text: &mut String, sharding: Option<&Sharding>, donation: Option<Donation>) {
    let sharding = sharding.map(|sharding| format!("sdy.sharding = {}", sharding.to_mlir()));
    let donation = donation.map(Donation::to_mlir);
    let all: Vec<String> = [sharding, donation].into_iter().flatten().collect();
    if !all.is_empty() {
        let _ = write!(text, " {{{}}}", all.join(", "));
    }
}

impl Program {
    /// Writes the program of a graph module.
    ///
    /// # Errors
    /// As [`to_stablehlo`](crate::StableHloExt::to_stablehlo).
    pub fn of(gm: &GraphModule, export: &Export) -> Result<Self> {
        let specs = export.specs_of(gm)?;
        let plan = Plan::of(gm)?;
        let mut writer = Writer::new(export);
        let ready = writer.prepared(gm, &specs)?;
        let (mut inputs, mut vals) = (Vec::new(), Vec::new());
        for node in ready.graph().placeholders() {
            let unknown = ValueMeta::Opaque("an input".into());
            let meta = node.meta::<ValueMeta>().unwrap_or(&unknown);
            if let Some(known) = known_value(meta) {
                vals.push(known);
                continue;
            }
            let meta = as_tensor(meta);
            let meta = meta.map_err(|error| node.blame("writing as StableHLO", error))?;
            let array = writer.cx.argument(type_of(&meta)?);
            vals.push(array.clone().into());
            inputs.push((node.target().to_string(), array));
        }
        let result_tree = ResultTree::of(&ready)?;
        let results = writer.graph(ready.graph(), ready.attributes(), vals)?;
        let results = results.iter().filter(|val| **val != Val::None).map(|val| {
            let (dtype, shape) = match val {
                Val::Tensor(of) => (of.dtype, crate::out::cx::known(&of.shape)?),
                Val::Float(_) => (DType::F64, Vec::new()),
                Val::Bool(_) => (DType::Bool, Vec::new()),
                _ => (DType::I64, Vec::new()),
            };
            writer.cx.value(val, dtype, &shape)
        });
        let results: Vec<Array> = results.collect::<Result<_>>()?;
        let operands: Vec<&Array> = results.iter().collect();
        writer
            .cx
            .operations("func.return", &operands, "", Vec::new(), &[]);
        let takes_key = writer.cx.draws();
        let operations = writer.cx.operations;
        let weights = writer.weights;
        let (body, places) = writer.cx.close();
        let named = inputs.iter().map(|(name, array)| (name.as_str(), array));
        let of_weights = weights.iter();
        let named = named.chain(of_weights.map(|weight| (weight.path.as_str(), &weight.array)));
        let donations = donations(&export.donated, named, &results, plan.mesh.is_some())?;
        let mut text = String::with_capacity(body.len() + places.len() + 1024);
        match &plan.mesh {
            Some(mesh) => {
                let _ = write!(
                    text,
                    "module attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = 1 : i32}} {{\n{}\n",
                    mesh.devices(),
                    mesh.to_mlir()
                );
            }
            None => text.push_str("module {\n"),
        }
        text.push_str("func.func public @main(");
        let arguments = inputs
            .iter()
            .map(|(name, array)| (array, plan.inputs.get(name)));
        let of_weights = weights.iter();
        let of_weights =
            of_weights.map(|weight| (&weight.array, plan.parameters.get(&weight.path)));
        for (at, (array, sharding)) in arguments.chain(of_weights).enumerate() {
            let _ = write!(text, "{}{}: ", if at == 0 { "" } else { ", " }, array.name);
            tensor_type(&mut text, array.dtype, &array.shape);
            write_attributes(&mut text, sharding, donations[at]);
        }
        if takes_key {
            let comma = if inputs.is_empty() && weights.is_empty() {
                ""
            } else {
                ", "
            };
            let _ = write!(text, "{comma}%key: tensor<2xi64>");
        }
        text.push_str(") -> (");
        for (at, array) in results.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            tensor_type(&mut text, array.dtype, &array.shape);
            write_attributes(&mut text, plan.outputs.get(&at), None);
        }
        text.push_str(") {\n");
        text.push_str(&body);
        text.push_str("}\n}\n");
        text.push_str(&places);
        Ok(Program {
            text,
            inputs,
            weights,
            results,
            takes_key,
            operations,
            plan,
            result_tree,
            donations,
        })
    }

    /// The text: a module of MLIR with the function `main`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The node that a compiler's message is about, with the path of its module: the first one whose line of source the
    /// message names, as MLIR does.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_stablehlo::{Export, Program};
    /// let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    /// let program = Program::of(&gm, &Export::example(&Tensor::ones(3)?))?;
    /// let line = gm.graph().nodes().nth(1).and_then(|node| node.location()).ok_or_else(|| Error::msg("no line"))?;
    /// let message = format!("{}:{}:{}: error: it cannot be", line.file, line.line, line.column);
    /// assert_eq!(program.node_of(&message), Some("relu"));
    /// assert_eq!(program.node_of("error: it cannot be"), None);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn node_of(&self, message: &str) -> Option<&str> {
        let places = self.text.lines().filter_map(|line| {
            let (_, rest) = line.strip_prefix("#loc")?.split_once(" = loc(\"")?;
            let (name, place) = rest.split_once("\"(\"")?;
            let (file, at) = place.strip_suffix("))")?.split_once("\":")?;
            let at = message.find(&format!("{file}:{at}:"))?;
            Some((at, name))
        });
        places.min_by_key(|(at, _)| *at).map(|(_, name)| name)
    }

    /// The text alone.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// What it takes, in order: inputs, tensors of the module, and the key of random numbers.
    pub fn arguments(&self) -> impl Iterator<Item = ProgramArgument<'_>> {
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|(name, array)| (ArgumentKind::Input(name), array));
        let weights = self.weights.iter().map(|weight| {
            let (path, value) = (&*weight.path, &weight.value);
            (ArgumentKind::Weight { path, value }, &weight.array)
        });
        let named = inputs.chain(weights).zip(&self.donations);
        let named = named.map(|((kind, array), donation)| ProgramArgument {
            kind,
            dtype: array.dtype,
            shape: &array.shape,
            is_donated: donation.is_some(),
        });
        named.chain(self.takes_key.then_some(ProgramArgument {
            kind: ArgumentKind::Key,
            dtype: DType::I64,
            shape: &[2],
            is_donated: false,
        }))
    }

    /// The element types and the sizes of what it gives, in order.
    pub fn results(&self) -> impl ExactSizeIterator<Item = (DType, &[i64])> {
        let results = self.results.iter();
        results.map(|array| (array.dtype, &array.shape[..]))
    }

    /// The devices that it is split over, if [`shard`](crate::shard::shard()) was called.
    pub fn mesh(&self) -> Option<&Mesh> {
        self.plan.mesh.as_ref()
    }

    /// How its results are the value that the graph gives.
    pub fn result_tree(&self) -> &ResultTree {
        &self.result_tree
    }

    /// What was written.
    pub fn report(&self) -> ExportReport {
        let bytes = self.weights.iter().map(|weight| {
            let count = usize::try_from(weight.array.count()).unwrap_or(0);
            count * weight.array.dtype.size_in_bytes()
        });
        ExportReport {
            operations: self.operations,
            weights: self.weights.len(),
            weight_bytes: bytes.sum(),
            takes_key: self.takes_key,
        }
    }

    /// What the program takes and gives, in order.
    pub(crate) fn calling(&self) -> serde_json::Value {
        let described = |array: &Array, sharding: Option<&Sharding>| {
            let mut of = json!({ "dtype": element_type(array.dtype), "shape": array.shape });
            if let Some(sharding) = sharding {
                let axes = sharding.dims().iter();
                let axes =
                    axes.map(|dim| dim.axes.iter().map(|axis| &**axis).collect::<Vec<&str>>());
                of["sharding"] = json!(axes.collect::<Vec<_>>());
            }
            of
        };
        let mut arguments: Vec<serde_json::Value> = Vec::new();
        for (name, array) in &self.inputs {
            let mut of = described(array, self.plan.inputs.get(name));
            (of["kind"], of["name"]) = (json!("input"), json!(name));
            arguments.push(of);
        }
        for weight in &self.weights {
            let mut of = described(&weight.array, self.plan.parameters.get(&weight.path));
            (of["kind"], of["path"]) = (json!("weight"), json!(weight.path));
            arguments.push(of);
        }
        if self.takes_key {
            arguments.push(json!({ "kind": "key", "dtype": "i64", "shape": [2] }));
        }
        let results = self.results.iter().enumerate();
        let results = results.map(|(at, array)| described(array, self.plan.outputs.get(&at)));
        let results: Vec<serde_json::Value> = results.collect();
        let mut calling = json!({ "format": 1, "arguments": arguments, "results": results });
        if let Some(mesh) = &self.plan.mesh {
            calling["mesh"] = json!(mesh.axes().collect::<Vec<_>>());
        }
        calling
    }

    pub(crate) fn save_weights(&self, path: &Path) -> Result<()> {
        let mut tensors = HashMap::new();
        for weight in &self.weights {
            let Some(tensor) = weight.value.downcast_ref::<Tensor>() else {
                return Err(Error::msg(format_args!(
                    "`{}` is no tensor of fx-nn",
                    weight.path
                )));
            };
            let candle = tensor.candle()?;
            tensors.insert(
                weight.path.clone(),
                candle.contiguous().map_err(Error::other)?,
            );
        }
        candle_core::safetensors::save(&tensors, path).map_err(Error::other)
    }
}
