//! `to_stablehlo`: the text of a program, and the folder that runs it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use fx_nn::ir::{NodeRef, Op, ValueMeta};
use fx_nn::lowering::{Val, as_tensor};
use fx_nn::prelude::*;
use serde_json::json;

use crate::out::Export;
use crate::out::cx::{Array, type_of};
use crate::out::graph::{Weight, Writer, known_value};
use crate::out::text::{element_type, tensor_type};
use crate::shard::{Mesh, Sharding};

/// The script that runs an exported folder.
const RUN: &str = include_str!("../run.py");

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

/// StableHLO of graph modules.
pub trait StableHloExt {
    /// Writes a folder: `model.mlir`, `weights.safetensors`, `calling.json`, and `run.py`, which needs jax, safetensors
    /// and numpy.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_stablehlo::{Export, StableHloExt};
    /// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
    /// let folder = std::env::temp_dir().join("fx_stablehlo_example");
    /// let report = gm.to_stablehlo(&folder, &Export::example(&Tensor::ones((1, 4))?))?;
    /// assert_eq!(report.weights, 2);
    /// assert!(folder.join("run.py").exists());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that lists every function without a rule, with node and source line; if a size is not known; or
    /// if a file cannot be written.
    fn to_stablehlo(&self, folder: impl AsRef<Path>, export: &Export) -> Result<ExportReport>;

    /// The text of the program alone.
    ///
    /// # Errors
    /// As [`to_stablehlo`](StableHloExt::to_stablehlo).
    fn to_stablehlo_text(&self, export: &Export) -> Result<String>;
}

impl StableHloExt for GraphModule {
    fn to_stablehlo(&self, folder: impl AsRef<Path>, export: &Export) -> Result<ExportReport> {
        let folder = folder.as_ref();
        let program = Program::of(self, export)?;
        let failed =
            |error: std::io::Error| Error::msg(format_args!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        std::fs::write(folder.join("model.mlir"), &program.text).map_err(failed)?;
        std::fs::write(folder.join("calling.json"), program.calling().to_string())
            .map_err(failed)?;
        std::fs::write(folder.join("run.py"), RUN).map_err(failed)?;
        program.save_weights(&folder.join("weights.safetensors"))?;
        Ok(program.report())
    }

    fn to_stablehlo_text(&self, export: &Export) -> Result<String> {
        Ok(Program::of(self, export)?.text)
    }
}

/// A program with what it takes and gives.
struct Program {
    text: String,
    inputs: Vec<(String, Array)>,
    weights: Vec<Weight>,
    results: Vec<Array>,
    takes_key: bool,
    operations: usize,
    plan: Plan,
}

/// The shardings that the user fixed, by path, name and place.
#[derive(Default)]
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

/// A value's sharding as an attribute.
fn write_sharding(text: &mut String, sharding: Option<&Sharding>) {
    if let Some(sharding) = sharding {
        let _ = write!(text, " {{sdy.sharding = {}}}", sharding.to_mlir());
    }
}

impl Program {
    fn of(gm: &GraphModule, export: &Export) -> Result<Self> {
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
            write_sharding(&mut text, sharding);
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
            write_sharding(&mut text, plan.outputs.get(&at));
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
        })
    }

    fn report(&self) -> ExportReport {
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
    fn calling(&self) -> serde_json::Value {
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

    fn save_weights(&self, path: &Path) -> Result<()> {
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
