//! In: an ONNX file as a graph module.
//!
//! Invariant: a file that is refused says where; nothing is made of what it does not have.

mod blocks;
mod checks;
mod flow;
mod graph;
mod kind;
mod known;
mod layers;
mod leaves;
mod look;
mod node;
mod operator;
mod ops;
mod paths;
mod read;
mod root;
mod scan;
mod scope;
mod support;
mod tensors;
mod text_leaves;
mod text_pieces;
mod text_rules;
mod texts;
mod value;
mod versions;
mod whole;
mod whole_floats;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fx_nn::ir::{ParamSpec, TensorMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, SpecSize};
use fx_nn::value::Dim;
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use self::flow::Flow;
use self::kind::{Kind, held, open};
use self::root::Root;
use crate::dtype;
use crate::opaque::Opaque;
use crate::proto::{
    DimensionValue, GraphProto, ModelProto, NodeProto, TypeProto, TypeValue, ValueInfoProto,
};
use crate::texts::Texts;

pub use leaves::{bit_cast, non_max_suppression, roi_align};
pub use scan::Limits;
pub use support::{ReadOperator, Support, operators, support};
pub use text_leaves::{
    text_concat, text_equal, text_ids, text_normalize, text_numbers, text_of, text_places,
    text_scores, text_take,
};
pub use text_pieces::{text_matches, text_split, text_tokens};
pub use value::{int_of, items_of, shape_of};

/// What was read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Import {
    /// The file as a graph module.
    pub module: GraphModule,
    /// What is in it.
    pub report: ImportReport,
}

/// What a file has.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// How many nodes the file has.
    pub nodes: usize,
    /// What wrote it.
    pub producer: String,
    /// The versions of the operators.
    pub opsets: Vec<(String, i64)>,
    /// The operators that stay as leaves, with their numbers.
    pub opaque: Vec<(String, usize)>,
    /// The inputs by the names that they have in the file, in the order of the module's: those are names of Rust.
    pub inputs: Vec<String>,
    /// The outputs by their names in the file, in the order of the results.
    pub outputs: Vec<String>,
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes by {}", self.nodes, self.producer)?;
        for (op, count) in &self.opaque {
            write!(f, "; left as a leaf: {op} {count}")?;
        }
        Ok(())
    }
}

/// How a file is read.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Export, Load, OnnxExt};
/// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(4, 2)?).push(nn::ReLU::new()))?;
/// let export = Export::example(&Tensor::ones((1, 4))?).dynamic("batch", [("x", 0)]);
/// let (bytes, _) = gm.to_onnx_bytes(&export)?;
/// let read = Load::new().dim("batch", 3).from_bytes(bytes)?.module;
/// assert_eq!(read.forward::<Tensor>(&Tensor::ones((3, 4))?)?.dims()?, [3, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Load {
    limits: Limits,
    dims: FxHashMap<String, SizeOf>,
    constants: IndexMap<String, Tensor>,
    inputs: FxHashMap<String, Spec>,
    ordered: Vec<Spec>,
    absent: FxHashSet<String>,
    is_reference: bool,
}

#[derive(Debug, Clone)]
enum SizeOf {
    Fixed(i64),
    Named(String),
}

impl Load {
    /// Reads a file as it is.
    pub fn new() -> Self {
        Load::default()
    }

    /// Other limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Gives a named size of the file a number.
    pub fn dim(mut self, name: &str, size: i64) -> Self {
        self.dims.insert(name.to_string(), SizeOf::Fixed(size));
        self
    }

    /// Gives a named size of the file another name.
    pub fn rename(mut self, name: &str, new: &str) -> Self {
        self.dims
            .insert(name.to_string(), SizeOf::Named(new.to_string()));
        self
    }

    /// Gives an input a value: it is no input of the graph module.
    pub fn constant(mut self, input: &str, value: Tensor) -> Self {
        self.constants.insert(input.to_string(), value);
        self
    }

    /// Says what an input is, in place of what the file says. Of a sequence that is a list, with a spec for each item.
    pub fn input(mut self, name: &str, spec: Spec) -> Self {
        self.inputs.insert(name.to_string(), spec);
        self
    }

    /// Leaves an input out that may be missing: it is no input of the graph module.
    pub fn absent(mut self, input: &str) -> Self {
        self.absent.insert(input.to_string());
        self
    }

    /// Reads a quantized file in reference form: its weights stay integers, and quantized operators are those of floats
    /// between [`dequantize_affine`](fx_nn::ops::dequantize_affine) and
    /// [`quantize_affine`](fx_nn::ops::quantize_affine). `fx_quant::Integers` runs that in integers. Without it weights
    /// become floats while they are read.
    ///
    /// Results may differ by a step of the scale from those of the operators, which round sums of integers.
    pub fn reference_form(mut self) -> Self {
        self.is_reference = true;
        self
    }

    /// Says what the first inputs are, in their order, where [`input`](Load::input) says nothing of them.
    pub fn ordered_inputs(mut self, specs: impl IntoIterator<Item = Spec>) -> Self {
        self.ordered = specs.into_iter().collect();
        self
    }

    /// Reads a file, and the files with weights beside it.
    ///
    /// # Errors
    /// Returns an error with the place in the file: if it is no ONNX file or is cut, if nodes read each other in a
    /// circle, if a value has another type than its operator takes, or if it asks for more than the limits.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Import> {
        let path = path.as_ref();
        let bytes = bytes_of(path)?;
        let name = path
            .file_name()
            .map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let folder = path.parent().map(|p| {
            if p.as_os_str().is_empty() {
                Path::new(".")
            } else {
                p
            }
        });
        self.read(bytes, &name, folder)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// As [`load`](Load::load).
    pub fn from_bytes(&self, bytes: impl Into<Bytes>) -> Result<Import> {
        self.read(bytes.into(), "model.onnx", None)
    }

    fn read(&self, bytes: Bytes, file: &str, folder: Option<&Path>) -> Result<Import> {
        let mut size = bytes.len() as u64;
        let mut model = decoded(bytes, &self.limits)?;
        let graph = model
            .graph
            .as_mut()
            .ok_or_else(|| Error::msg(format_args!("{file} has no graph")))?;
        let mut tensors: IndexMap<String, (String, Tensor)> = IndexMap::new();
        let mut known: FxHashSet<String> = FxHashSet::default();
        let mut texts: Vec<(String, Texts)> = Vec::new();
        let limit = self.limits.of_file(size).constant_bytes as u64;
        let mut dense = Vec::new();
        for constant in std::mem::take(&mut graph.sparse_initializer) {
            dense.push(tensors::dense(&constant, folder, limit)?);
        }
        let constants = std::mem::take(&mut graph.initializer);
        let weights = layers::read_at(&graph.node, |entry| entry.weights);
        let integers = match self.is_reference {
            true => layers::read_at(&graph.node, |entry| entry.integers),
            false => FxHashSet::default(),
        };
        let mut kept = FxHashSet::default();
        for constant in constants {
            if self.constants.contains_key(&constant.name) {
                continue;
            }
            if constant.data_type == dtype::TEXT {
                known.insert(constant.name.clone());
                texts.push((constant.name.clone(), tensors::texts(&constant)?));
                continue;
            }
            let tensor = tensors::tensor(&constant, folder, weights.contains(&*constant.name))?;
            if constant.data_location == 1 {
                let width = Tensor::dtype(&tensor)?.size_in_bytes();
                size += (tensor.dims()?.iter().product::<usize>() * width) as u64;
            }
            let path = fresh(&tensors, &paths::clean(&constant.name));
            if !known.insert(constant.name.clone()) {
                return Err(Error::msg(format_args!(
                    "two constants have the name `{}`",
                    constant.name
                )));
            }
            let dtype = Tensor::dtype(&tensor)?;
            if integers.contains(&*constant.name) && !dtype.is_floating_point() {
                kept.insert(path.clone());
            }
            tensors.insert(path, (constant.name, tensor));
        }
        for (name, tensor) in dense {
            let path = fresh(&tensors, &paths::clean(&name));
            known.insert(name.clone());
            tensors.insert(path, (name, tensor));
        }
        let opaque = opaque(graph, &model.functions, &model.opset_import)?;
        let graph = model.graph.as_ref().ok_or_else(|| Error::msg("no graph"))?;
        let nodes = graph.node.len();
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for leaf in opaque.values() {
            *counted.entry(leaf.node().op_type.clone()).or_default() += 1;
        }
        let mut report = ImportReport {
            nodes,
            producer: format!("{} {}", model.producer_name, model.producer_version)
                .trim()
                .to_string(),
            opsets: model
                .opset_import
                .iter()
                .map(|set| (set.domain.clone(), set.version))
                .collect(),
            opaque: counted.into_iter().collect(),
            inputs: Vec::new(),
            outputs: graph.output.iter().map(|of| of.name.clone()).collect(),
        };
        let given: Vec<&ValueInfoProto> = graph
            .input
            .iter()
            .filter(|i| {
                let is_known = known.contains(&i.name) || self.constants.contains_key(&i.name);
                !is_known && !self.absent.contains(&i.name)
            })
            .collect();
        let (mut inputs, mut specs, mut params) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken: FxHashSet<String> = FxHashSet::default();
        self.check_names(graph, &given)?;
        for (at, info) in given.into_iter().enumerate() {
            let (spec, kind) = self.spec(info, at)?;
            let mut name = paths::clean(&info.name).replace('.', "_");
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                name.insert(0, 'x');
            }
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            params.push(ParamSpec::of_text(name, kind.type_text()));
            specs.push(spec);
            inputs.push((info.name.clone(), kind));
            report.inputs.push(info.name.clone());
        }
        let name = match graph.name.is_empty() {
            true => "Graph".to_string(),
            false => paths::clean(&graph.name).replace('.', "_"),
        };
        let (hints, flow, fixed) = (hints(graph), Flow::of(graph), self.fixed(graph)?);
        let root = Root {
            model: Arc::new(model),
            tensors,
            opaque,
            hints,
            flow,
            inputs,
            texts,
            absent: self.absent.iter().cloned().collect(),
            fixed,
            params,
            file: file.to_string(),
            folder: folder.map(Path::to_path_buf),
            limits: self.limits.of_file(size),
            bytes: size,
            is_reference: self.is_reference,
            integers: kept,
            turned: Arc::default(),
        };
        let mut trace = Trace::new(&root).inputs(specs.clone());
        let mut is_flat = true;
        for (param, spec) in root.params.iter().zip(&specs) {
            if let Some(structure) = open(spec)? {
                is_flat = false;
                trace = trace.concrete(&param.name, structure);
            }
        }
        let mut traced = trace.run()?;
        let mut module = match is_flat {
            true => GraphModule::new(traced.attributes, traced.graph, &name)?,
            // Called with lists where the file has sequences.
            false => {
                traced.name = name;
                GraphModule::from(traced)
            }
        };
        module.eliminate_dead_code()?;
        if self.is_reference {
            whole_floats::leave_out_casts(&mut module)?;
        }
        if let Ok(turned) = root.turned.lock() {
            layers::layers(&mut module, &turned)?;
        }
        module.infer_shapes(&specs)?;
        Ok(Import { module, report })
    }

    /// Refuses what is said of inputs that the file does not have.
    fn check_names(&self, graph: &GraphProto, given: &[&ValueInfoProto]) -> Result<()> {
        let names = || given.iter().map(|info| format!("`{}`", info.name));
        let has = |name: &String| graph.input.iter().any(|info| info.name == *name);
        let made = |name: &String| graph.initializer.iter().any(|made| made.name == *name);
        let unknown = self
            .inputs
            .keys()
            .chain(&self.absent)
            .find(|name| !has(name))
            .or_else(|| self.constants.keys().find(|name| !has(name) && !made(name)));
        if let Some(name) = unknown {
            return Err(Error::msg(format_args!(
                "the file has no input `{name}`: its inputs are {}",
                names().collect::<Vec<_>>().join(", ")
            )));
        }
        match self.ordered.len() > given.len() {
            false => Ok(()),
            true => Err(Error::msg(format_args!(
                "{} inputs are given, and the file has {}: {}",
                self.ordered.len(),
                given.len(),
                names().collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// The inputs with a value, in the types that the file says.
    fn fixed(&self, graph: &GraphProto) -> Result<Vec<(String, Tensor)>> {
        let each = self.constants.iter().map(|(name, value)| {
            let info = graph.input.iter().find(|info| info.name == *name);
            let code = match info.and_then(|info| info.r#type.as_ref()?.value.as_ref()) {
                Some(TypeValue::Tensor(tensor)) => Some(tensor.elem_type),
                _ => None,
            };
            let value = match code.and_then(dtype::known) {
                Some(dtype) => value.to_dtype(dtype)?,
                None => value.clone(),
            };
            Ok((name.clone(), value))
        });
        each.collect()
    }

    /// What an input is, by the file or the user; `at` is its index.
    fn spec(&self, info: &ValueInfoProto, at: usize) -> Result<(Spec, Kind)> {
        let kind = info.r#type.as_ref().and_then(Kind::of);
        let kind = kind.ok_or_else(|| {
            Error::msg(format_args!(
                "the input `{}` is no tensor: maps are not taken as inputs",
                info.name
            ))
        })?;
        kind.check(&info.name)?;
        if let Some(spec) = self.inputs.get(&info.name).or_else(|| self.ordered.get(at)) {
            return Ok((spec.clone(), kind));
        }
        let Some(tensor) = info.r#type.as_ref().and_then(held) else {
            return Err(Error::msg(format_args!(
                "the input `{}` is a sequence, and the file does not say of how many items: say it with `Load::input`, as a list of a spec for each",
                info.name
            )));
        };
        let Some(shape) = &tensor.shape else {
            return Err(Error::msg(format_args!(
                "the file does not say how many dims the input `{}` has: say it with `Load::input`",
                info.name
            )));
        };
        // The elements can be counted, whatever is computed of the sizes.
        let known = shape.dim.iter().filter_map(|dim| match dim.value {
            Some(DimensionValue::Value(size)) => Some(size),
            _ => None,
        });
        let count = known
            .clone()
            .try_fold(1i64, |n, size| n.checked_mul(size.max(1)));
        if count.is_none_or(|count| count > 1 << 48) {
            return Err(Error::msg(format_args!(
                "the input `{}` has sizes that no memory holds: {:?}",
                info.name,
                known.collect::<Vec<i64>>()
            )));
        }
        let clean = paths::clean(&info.name).replace('.', "_");
        let sizes = shape
            .dim
            .iter()
            .enumerate()
            .map(|(at, dim)| match &dim.value {
                Some(DimensionValue::Value(size)) if *size >= 0 => SpecSize::from(*size),
                Some(DimensionValue::Param(name)) if is_name(name) => match self.dims.get(name) {
                    Some(SizeOf::Fixed(size)) => SpecSize::from(*size),
                    Some(SizeOf::Named(new)) => SpecSize::from(symbol(new).as_str()),
                    None => SpecSize::from(symbol(name).as_str()),
                },
                _ => SpecSize::from(format!("{clean}_{at}").as_str()),
            });
        let spec = match kind.dtype() {
            Some(dtype) => Spec::tensor(sizes, dtype),
            None => Spec::untyped(sizes),
        };
        Ok((spec, kind))
    }
}

/// Whether a text names a size: `?` stands for several sizes of which nothing is known.
fn is_name(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_alphanumeric())
}

/// A name of a size: letters, digits and `_`, or an expression of such.
fn symbol(name: &str) -> String {
    if name.parse::<fx_nn::value::Dim>().is_ok() {
        return name.to_string();
    }
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    match clean.starts_with(|c: char| c.is_ascii_digit()) || clean == "min" || clean == "max" {
        true => format!("s_{clean}"),
        false => clean,
    }
}

/// A path that no constant has, and that leads through none.
fn fresh(tensors: &IndexMap<String, (String, Tensor)>, wanted: &str) -> String {
    let wanted = if wanted.is_empty() {
        "constant"
    } else {
        wanted
    };
    let clashes = |path: &str| {
        tensors.contains_key(path)
            || path
                .match_indices('.')
                .any(|(at, _)| tensors.contains_key(&path[..at]))
    };
    let mut path = wanted.to_string();
    let mut count = 0;
    while clashes(&path) {
        count += 1;
        path = format!("{}_{count}", wanted.replace('.', "_"));
    }
    path
}

/// The largest message of a protobuf file; larger models have their weights in files beside it.
const LARGEST: u64 = 1 << 31;

/// The bytes of a file, which is one and no longer than a message can be.
fn bytes_of(path: &Path) -> Result<Bytes> {
    let about =
        |problem: &dyn fmt::Display| Error::msg(format_args!("{}: {problem}", path.display()));
    let mut file = fx_nn::__private::opened(path).map_err(|e| about(&e))?;
    let length = file.metadata().map_err(|e| about(&e))?.len();
    if length > LARGEST {
        return Err(about(&format_args!(
            "it has {length} bytes, and an ONNX file has {LARGEST} at most"
        )));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.read_to_end(&mut bytes).map_err(|e| about(&e))?;
    Ok(bytes.into())
}

/// The messages of a file, within the limits.
fn decoded(bytes: Bytes, limits: &Limits) -> Result<ModelProto> {
    scan::scan(&bytes, limits)?;
    let model = ModelProto::decode(bytes)
        .map_err(|e| Error::msg(format_args!("the file is no ONNX file: {e}")))?;
    if model.graph.is_none() {
        return Err(Error::msg("the file has no graph: it is no ONNX model"));
    }
    versions::check(&model)?;
    Ok(model)
}

/// What the file says of the values of its graphs.
fn hints(graph: &GraphProto) -> FxHashMap<String, TensorMeta> {
    let mut all = FxHashMap::default();
    let mut left = vec![graph];
    while let Some(graph) = left.pop() {
        for info in graph
            .value_info
            .iter()
            .chain(&graph.input)
            .chain(&graph.output)
        {
            let Some(TypeProto {
                value: Some(TypeValue::Tensor(tensor)),
            }) = &info.r#type
            else {
                continue;
            };
            let (Some(shape), Some(dtype)) = (&tensor.shape, dtype::known(tensor.elem_type)) else {
                continue;
            };
            let dims = shape
                .dim
                .iter()
                .enumerate()
                .map(|(at, dim)| match &dim.value {
                    Some(DimensionValue::Value(size)) => Dim::from(*size),
                    Some(DimensionValue::Param(name)) if is_name(name) => {
                        symbol(name).parse().unwrap_or_else(|_| unknown(at))
                    }
                    _ => unknown(at),
                });
            all.insert(info.name.clone(), TensorMeta::new(dims).dtype(dtype));
        }
        let nodes = graph.node.iter().flat_map(|node| &node.attribute);
        left.extend(nodes.filter_map(|attribute| attribute.g.as_ref()));
    }
    all
}

/// A size of which nothing is known.
fn unknown(at: usize) -> Dim {
    Dim::symbol(&format!("unknown_{at}")).expect("letters and digits are a name")
}

/// The nodes whose operators fx does not have, where the file says what they give.
fn opaque(
    graph: &GraphProto,
    functions: &[crate::proto::FunctionProto],
    sets: &[crate::proto::OperatorSetIdProto],
) -> Result<IndexMap<String, Opaque>> {
    let mut all = IndexMap::new();
    let mut types: FxHashMap<&str, &TypeProto> = FxHashMap::default();
    for info in graph.value_info.iter().chain(&graph.output) {
        if let Some(ty) = &info.r#type {
            types.insert(&info.name, ty);
        }
    }
    let is_function = |node: &NodeProto| {
        functions
            .iter()
            .any(|f| f.domain == node.domain && f.name == node.op_type)
    };
    for node in &graph.node {
        if ops::is(&node.domain, &node.op_type, |_| true) || is_function(node) {
            continue;
        }
        let results: Option<Vec<(i32, Vec<String>)>> =
            node.output
                .iter()
                .filter(|name| !name.is_empty())
                .map(|name| {
                    let Some(TypeValue::Tensor(tensor)) = &types.get(name.as_str())?.value else {
                        return None;
                    };
                    let dims = tensor
                        .shape
                        .as_ref()?
                        .dim
                        .iter()
                        .enumerate()
                        .map(|(at, dim)| match &dim.value {
                            Some(DimensionValue::Value(size)) => size.to_string(),
                            Some(DimensionValue::Param(name)) if is_name(name) => symbol(name),
                            _ => format!("{}_{at}", paths::clean(name).replace('.', "_")),
                        });
                    Some((tensor.elem_type, dims.collect()))
                })
                .collect();
        let version = sets
            .iter()
            .find(|set| set.domain == node.domain)
            .map_or(1, |set| set.version);
        if let (Some(results), Some(first)) = (results, node.output.first()) {
            all.insert(first.clone(), Opaque::new(node.clone(), version, results));
        }
    }
    Ok(all)
}

/// A tensor of a file, whose elements are in the message.
///
/// # Errors
/// Returns an error if fx holds no tensors of its type, or its bytes do not fit its sizes.
pub fn tensor(proto: &crate::proto::TensorProto) -> Result<Tensor> {
    match dtype::known(proto.data_type) {
        Some(_) => tensors::tensor(proto, None, false),
        None => Err(dtype::unknown(proto.data_type, &proto.name)),
    }
}

/// A tensor of text of a file.
///
/// # Errors
/// Returns an error if there are more or fewer texts than its sizes say.
pub fn texts(proto: &crate::proto::TensorProto) -> Result<Texts> {
    tensors::texts(proto)
}

/// Reads a file, and the files with weights beside it.
///
/// # Errors
/// As [`Load::load`].
pub fn load(path: impl AsRef<Path>) -> Result<Import> {
    Load::new().load(path)
}

/// Reads bytes.
///
/// # Errors
/// As [`Load::load`].
pub fn from_bytes(bytes: &Bytes) -> Result<Import> {
    Load::new().from_bytes(bytes.clone())
}
