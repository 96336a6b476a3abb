//! `Cx`: the file that is being written: nodes by scope, constants, names, and how each node is marked.
//!
//! Invariant: a name stands for one value of the file, and a constant is kept once.

use std::sync::Arc;

use bytes::Bytes;
use fx_nn::ir::{Scope as ModuleScope, SourceLocation, TensorMeta};
use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::dtype;
use crate::proto::{
    AttributeProto, Dimension, DimensionValue, ElementType, GraphProto, MapType, NodeProto,
    StringStringEntryProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
    attribute_type,
};
use crate::texts::Texts;
use fx_nn::lowering::{Name, OpCall, Operand};

/// Where the value of a symbol comes from.
#[derive(Debug, Clone)]
pub(super) enum SymbolSource {
    /// A size of a tensor.
    Axis(Name, usize),
    /// A whole number without dims.
    Scalar(Name),
}

/// A graph that is being written; those of branches and loops are inside of others.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub nodes: Vec<NodeProto>,
    /// The mark of each node.
    pub marks: Vec<Arc<Mark>>,
    pub value_info: Vec<ValueInfoProto>,
    /// The symbols that its values know.
    pub symbols: FxHashMap<Arc<str>, SymbolSource>,
    /// The sizes that are computed here: names of values of shape `[1]`.
    pub sizes: IndexMap<Dim, Name, FxBuildHasher>,
}

/// How far a graph was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub nodes: usize,
    pub sizes: usize,
}

impl Scope {
    pub fn here(&self) -> Place {
        Place {
            nodes: self.nodes.len(),
            sizes: self.sizes.len(),
        }
    }
}

/// The elements of a constant.
#[derive(Debug, Clone)]
pub(super) enum Elements {
    /// A tensor of the module.
    Tensor(Value),
    /// Bytes.
    Bytes(Bytes),
    /// Texts, which have no bytes.
    Texts(Texts),
}

/// A constant of the file.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub name: Name,
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub elements: Elements,
}

/// What each node that a call makes is marked with. It is put on the nodes when they are written: in a large file, the
/// marks are most of the text.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    pub node: String,
    /// Its place in the source.
    pub place: Option<SourceLocation>,
    /// The modules around it, from the outside in: path and type.
    pub modules: Vec<(Arc<str>, Arc<str>)>,
}

/// What a rule writes into.
#[derive(Debug)]
pub struct Cx {
    pub(super) opset: i64,
    pub(super) scopes: Vec<Scope>,
    pub(super) constants: Vec<Constant>,
    pub(super) known: FxHashMap<(DType, Vec<usize>, Vec<u8>), Name>,
    /// In the order in which they were given, in which they are freed too: in a large file, a jump from one to the next
    /// costs more than what is done with it.
    pub(super) names: IndexSet<Arc<str>, FxBuildHasher>,
    pub(super) domains: Vec<(String, i64)>,
    pub(super) mark: Arc<Mark>,
    pub(super) left_out: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) draws: bool,
    pub(super) counter: u32,
}

impl Cx {
    pub(super) fn new(opset: i64) -> Self {
        Cx {
            opset,
            scopes: vec![Scope::default()],
            constants: Vec::new(),
            known: FxHashMap::default(),
            names: IndexSet::default(),
            domains: Vec::new(),
            mark: Arc::default(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            draws: false,
            counter: 0,
        }
    }

    /// The version of ONNX's operators that the file uses.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Says something in the report, besides the node that is written.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = format!("%{}: {}", self.mark.node, text.into());
        self.warnings.push(text);
    }

    /// Says in the report that the file draws random numbers here.
    pub(super) fn warn_of_random_numbers(&mut self) {
        self.draws = true;
        self.warn("draws random numbers, other ones than fx");
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self, hint: &str) -> Name {
        if !hint.is_empty() && !self.names.contains(hint) {
            let name: Name = Arc::from(hint);
            self.names.insert(name.clone());
            return name;
        }
        loop {
            self.counter += 1;
            let name: Name = Arc::from(format!("{hint}.{}", self.counter));
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Makes room for the nodes of a graph in the scope that is open.
    pub(super) fn reserve(&mut self, nodes: usize) {
        self.names.reserve(nodes);
        let scope = self.scope();
        scope.nodes.reserve(nodes);
        scope.marks.reserve(nodes);
        scope.value_info.reserve(nodes);
    }

    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the file's graph is a scope")
    }

    /// A new node with this operator of ONNX.
    pub fn node(&mut self, op_type: &str) -> NodeBuilder<'_> {
        NodeBuilder {
            proto: NodeProto {
                op_type: op_type.to_string(),
                ..NodeProto::default()
            },
            cx: self,
        }
    }

    /// A node with inputs and one result.
    pub fn op(&mut self, op_type: &str, inputs: &[&Name]) -> Name {
        let mut node = self.node(op_type);
        for input in inputs {
            node = node.input(input);
        }
        node.output()
    }

    /// A constant of these elements, as bytes.
    fn constant(&mut self, hint: &str, dtype: DType, dims: Vec<usize>, bytes: Vec<u8>) -> Name {
        let key = (dtype, dims, bytes);
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = self.fresh(hint);
        self.constants.push(Constant {
            name: name.clone(),
            dtype,
            dims: key.1.clone(),
            elements: Elements::Bytes(key.2.clone().into()),
        });
        self.known.insert(key, name.clone());
        name
    }

    /// The texts of a constant.
    pub(crate) fn constant_texts(&self, name: &Name) -> Option<Vec<String>> {
        let mut latest = self.constants.iter().rev();
        let constant = latest.find(|constant| constant.name == *name)?;
        let Elements::Texts(texts) = &constant.elements else {
            return None;
        };
        let items = texts.items().ok()?.iter();
        Some(items.map(ToString::to_string).collect())
    }

    /// Whole numbers, as a constant of shape `[n]`.
    pub fn i64s(&mut self, numbers: &[i64]) -> Name {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let shown: Vec<String> = numbers.iter().take(4).map(i64::to_string).collect();
        let hint = format!("c_{}", shown.join("_").replace('-', "m"));
        self.constant(&hint, DType::I64, vec![numbers.len()], bytes)
    }

    /// A whole number, as a constant without dims.
    pub fn i64(&mut self, number: i64) -> Name {
        self.whole(number, DType::I64)
    }

    /// A whole number, as a constant without dims.
    pub(super) fn whole(&mut self, number: i64, dtype: DType) -> Name {
        let hint = format!("k_{number}").replace('-', "m");
        self.constant(&hint, dtype, Vec::new(), dtype::whole(number, dtype))
    }

    /// A number, as a constant without dims.
    pub fn number(&mut self, number: f64, dtype: DType) -> Name {
        let hint = format!("k_{number}").replace('-', "m");
        self.constant(&hint, dtype, Vec::new(), dtype::element(number, dtype))
    }

    /// Numbers, as a constant of shape `[n]`.
    pub fn numbers(&mut self, numbers: &[f64], dtype: DType) -> Name {
        let elements = numbers.iter().flat_map(|n| dtype::element(*n, dtype));
        let elements: Vec<u8> = elements.collect();
        self.constant("k", dtype, vec![numbers.len()], elements)
    }

    /// The tensor with another element type.
    ///
    /// # Errors
    /// Returns an error if ONNX does not have the type.
    pub fn cast(&mut self, x: &Operand, dtype: DType) -> Result<Operand> {
        if x.dtype == dtype {
            return Ok(x.clone());
        }
        let to = i64::from(dtype::code(dtype)?);
        let name = self.node("Cast").input(&x.name).int("to", to).output();
        Ok(Operand {
            name,
            dtype,
            shape: x.shape.clone(),
        })
    }

    /// A tensor among the arguments of a call, in the element type of the result.
    ///
    /// # Errors
    /// Returns an error if it is none.
    pub fn widened(&mut self, call: &OpCall<'_>, name: &str) -> Result<Operand> {
        let x = call.tensor(name)?;
        self.cast(&x, call.dtype()?)
    }

    /// As [`widened`](Cx::widened), for what is computed element by element: the tensor has no sizes here if a run decides how
    /// many there are.
    ///
    /// # Errors
    /// Returns an error if it is none.
    pub fn widened_elements(&mut self, call: &OpCall<'_>, name: &str) -> Result<Operand> {
        let x = call.elements(name)?;
        self.cast(&x, call.dtype()?)
    }

    /// Notes that a value has these sizes: it knows the symbols in them.
    pub(super) fn knows(&mut self, name: &Name, shape: &[Dim]) {
        for (axis, dim) in shape.iter().enumerate() {
            if let Some(symbol) = dim.as_symbol()
                && self.symbol(symbol).is_none()
            {
                let source = SymbolSource::Axis(name.clone(), axis);
                self.scope().symbols.insert(Arc::from(symbol), source);
            }
        }
    }

    pub(super) fn symbol(&self, name: &str) -> Option<SymbolSource> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.symbols.get(name).cloned())
    }

    /// Says what a value is, for tools that show files.
    pub(super) fn describe(&mut self, name: &Name, meta: &TensorMeta) -> Result<()> {
        let info = value_info(name, meta)?;
        self.scope().value_info.push(info);
        Ok(())
    }

    /// Opens the graph of a branch or a loop.
    pub(super) fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// A graph that gives one tensor, whose number of dims a run decides: a way of a branch that a rule writes.
    pub(super) fn way(
        &mut self,
        name: &str,
        dtype: DType,
        write: impl FnOnce(&mut Self) -> Name,
    ) -> Result<GraphProto> {
        self.open();
        let given = write(self);
        let (mut graph, marks) = self.close(name);
        put_all(marks, &mut graph.node);
        graph.output.push(unranked_info(&given, dtype)?);
        Ok(graph)
    }

    /// Ends it: the graph, and the mark of each of its nodes.
    pub(super) fn close(&mut self, name: &str) -> (GraphProto, Vec<Arc<Mark>>) {
        let scope = self.scopes.pop().expect("a graph that was opened");
        let graph = GraphProto {
            node: scope.nodes,
            value_info: scope.value_info,
            name: name.to_string(),
            ..GraphProto::default()
        };
        (graph, scope.marks)
    }
}

/// A name with element type and sizes.
pub(super) fn value_info(name: &str, meta: &TensorMeta) -> Result<ValueInfoProto> {
    let dtype = meta
        .dtype
        .ok_or_else(|| Error::msg(format_args!("the element type of `{name}` is not known")))?;
    typed_info(name, dtype, Some(sizes(&meta.shape)))
}

fn sizes(shape: &[Dim]) -> TensorShapeProto {
    let dim = shape.iter().map(|dim| Dimension {
        value: Some(match dim.as_number() {
            Some(number) => DimensionValue::Value(number),
            None => DimensionValue::Param(dim.to_string()),
        }),
    });
    TensorShapeProto { dim: dim.collect() }
}

/// A name of a tensor of text with its sizes.
pub(super) fn texts_info(name: &str, shape: &[Dim]) -> ValueInfoProto {
    tensor_info(name, dtype::TEXT, Some(sizes(shape)))
}

/// A name of a sequence of tensors of an element type.
pub(super) fn sequence_info(name: &str, dtype: DType) -> Result<ValueInfoProto> {
    let item = tensor_info("", dtype::code(dtype)?, None).r#type;
    let list = TypeValue::Sequence(Box::new(ElementType {
        elem_type: item.map(Box::new),
    }));
    Ok(ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto { value: Some(list) }),
        ..ValueInfoProto::default()
    })
}

/// A name of a list of maps from text to numbers.
pub(super) fn maps_info(name: &str) -> ValueInfoProto {
    let of = |value| TypeProto { value: Some(value) };
    let number = of(TypeValue::Tensor(TensorType {
        elem_type: 1,
        shape: Some(TensorShapeProto::default()),
    }));
    let map = of(TypeValue::Map(Box::new(MapType {
        key_type: dtype::TEXT,
        value_type: Some(Box::new(number)),
    })));
    let list = TypeValue::Sequence(Box::new(ElementType {
        elem_type: Some(Box::new(map)),
    }));
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(of(list)),
        ..ValueInfoProto::default()
    }
}

/// A name with an element type, where a run decides the number of dims.
pub(super) fn unranked_info(name: &str, dtype: DType) -> Result<ValueInfoProto> {
    typed_info(name, dtype, None)
}

fn typed_info(name: &str, dtype: DType, shape: Option<TensorShapeProto>) -> Result<ValueInfoProto> {
    Ok(tensor_info(name, dtype::code(dtype)?, shape))
}

fn tensor_info(name: &str, elem_type: i32, shape: Option<TensorShapeProto>) -> ValueInfoProto {
    let tensor = TensorType { elem_type, shape };
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(tensor)),
        }),
        ..ValueInfoProto::default()
    }
}

/// An entry of a name.
pub(super) fn entry(key: &str, value: impl Into<String>) -> StringStringEntryProto {
    StringStringEntryProto {
        key: key.to_string(),
        value: value.into(),
    }
}

/// The modules around a node, from the outside in.
pub(super) fn modules_of<'s>(
    stack: impl Iterator<Item = &'s ModuleScope>,
) -> Vec<(Arc<str>, Arc<str>)> {
    let named = stack.filter(|scope| !scope.path.is_empty());
    let mut all: Vec<(Arc<str>, Arc<str>)> = named
        .map(|scope| (scope.path.clone(), Arc::from(&*scope.type_name)))
        .collect();
    all.reverse();
    all
}

/// A node on its way into the file.
#[derive(Debug)]
#[must_use = "a node is written by `output`"]
pub struct NodeBuilder<'c> {
    cx: &'c mut Cx,
    proto: NodeProto,
}

impl NodeBuilder<'_> {
    /// Adds an input.
    pub fn input(mut self, name: &str) -> Self {
        self.proto.input.push(name.to_string());
        self
    }

    /// Adds an input that may be left out.
    pub fn optional(self, name: Option<&Name>) -> Self {
        self.input(name.map_or("", |name| name))
    }

    /// Uses an operator of another domain.
    pub fn domain(mut self, domain: &str, version: i64) -> Self {
        self.proto.domain = domain.to_string();
        let known = &mut self.cx.domains;
        if !known.iter().any(|(name, _)| name == domain) {
            known.push((domain.to_string(), version));
        }
        self
    }

    fn attribute(mut self, attribute: AttributeProto) -> Self {
        self.proto.attribute.push(attribute);
        self
    }

    /// A whole number.
    pub fn int(self, name: &str, i: i64) -> Self {
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::INT,
            i: Some(i),
            ..AttributeProto::default()
        })
    }

    /// Whole numbers.
    pub fn ints(self, name: &str, ints: impl IntoIterator<Item = i64>) -> Self {
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::INTS,
            ints: ints.into_iter().collect(),
            ..AttributeProto::default()
        })
    }

    /// A number.
    pub fn float(self, name: &str, f: f64) -> Self {
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::FLOAT,
            f: Some(f as f32),
            ..AttributeProto::default()
        })
    }

    /// Text.
    pub fn text(self, name: &str, text: &str) -> Self {
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::STRING,
            s: Some(Bytes::copy_from_slice(text.as_bytes())),
            ..AttributeProto::default()
        })
    }

    /// Texts.
    pub fn texts(self, name: &str, texts: &[&str]) -> Self {
        let texts = texts.iter().map(|t| Bytes::copy_from_slice(t.as_bytes()));
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::STRINGS,
            strings: texts.collect(),
            ..AttributeProto::default()
        })
    }

    /// A graph.
    pub(super) fn graph(self, name: &str, graph: GraphProto) -> Self {
        self.attribute(AttributeProto {
            name: name.to_string(),
            r#type: attribute_type::GRAPH,
            g: Some(graph),
            ..AttributeProto::default()
        })
    }

    /// An attribute as it is in a file.
    pub(crate) fn raw(self, attribute: AttributeProto) -> Self {
        self.attribute(attribute)
    }

    /// Writes the node; the name of its one result.
    pub fn output(self) -> Name {
        let mut names = self.outputs(1);
        names.pop().expect("one result was asked for")
    }

    /// Writes the node; the names of its results.
    pub fn outputs(mut self, count: usize) -> Vec<Name> {
        let hint = format!(
            "{}.{}",
            self.cx.mark.node,
            self.proto.op_type.to_lowercase()
        );
        let names: Vec<Name> = (0..count).map(|_| self.cx.fresh(&hint)).collect();
        self.proto.output = names.iter().map(ToString::to_string).collect();
        while self.proto.input.last().is_some_and(String::is_empty) {
            self.proto.input.pop();
        }
        let mark = self.cx.mark.clone();
        let scope = self.cx.scope();
        scope.nodes.push(self.proto);
        scope.marks.push(mark);
        names
    }
}

/// The model, the modules around a node, and the node, as a list in Python's words.
fn quoted<'s>(modules: impl Iterator<Item = &'s str>, node: &'s str) -> String {
    let mut text = String::from("['");
    for item in modules.chain([node]) {
        text.push_str("', '");
        text.push_str(item);
    }
    text.push_str("']");
    text
}

impl Mark {
    /// Marks a node: its name, its source line, and its modules, as PyTorch's exporter does, so that
    /// tools which group nodes find them.
    pub fn put(&self, proto: &mut NodeProto) {
        proto.name = proto.output.first().cloned().unwrap_or_default();
        proto.doc_string = self
            .place
            .as_ref()
            .map_or(String::new(), ToString::to_string);
        let modules = || self.modules.iter();
        let mut namespace = String::new();
        for (path, _) in modules() {
            if !namespace.is_empty() {
                namespace.push('/');
            }
            namespace.push_str(path);
        }
        let names = quoted(modules().map(|(path, _)| &**path), &self.node);
        let types = quoted(modules().map(|(_, ty)| &**ty), &proto.op_type);
        proto.metadata_props = vec![
            entry("namespace", namespace),
            entry("pkg.torch.onnx.name_scopes", names),
            entry("pkg.torch.onnx.class_hierarchy", types),
            entry("pkg.fx.node", self.node.clone()),
        ];
    }
}

/// Marks nodes, each with its own.
pub(super) fn put_all(marks: Vec<Arc<Mark>>, nodes: &mut [NodeProto]) {
    for (node, mark) in nodes.iter_mut().zip(marks) {
        mark.put(node);
    }
}
