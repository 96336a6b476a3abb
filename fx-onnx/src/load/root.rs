//! `Root`: a file as a module whose trace is its graph.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fx_nn::ir::{ParamSpec, TensorMeta};
use fx_nn::module::{Component, Module, TensorKind, Walk, WalkMut};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::block;
use super::flow::Flow;
use super::graph::{Reader, Turned};
use super::kind::Kind;
use super::known::Known;
use super::read;
use super::scan::Limits;
use super::scope::Scope;
use super::text_leaves::text_places;
use super::value::{V, items_of};
use super::versions;
use crate::opaque::Opaque;
use crate::proto::ModelProto;
use crate::texts::Texts;

/// A file with its constants as tensors.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub model: Arc<ModelProto>,
    /// The constants by path, with their names in the file.
    pub tensors: IndexMap<String, (String, Tensor)>,
    pub opaque: IndexMap<String, Opaque>,
    /// What the file says of values.
    pub hints: FxHashMap<String, TensorMeta>,
    /// The constants of text, with their names in the file.
    pub texts: Vec<(String, Texts)>,
    /// The inputs that are given: the name, and what each is.
    pub inputs: Vec<(String, Kind)>,
    /// The inputs that are left out.
    pub absent: Vec<String>,
    pub flow: Flow,
    /// Inputs with a value.
    pub fixed: Vec<(String, Tensor)>,
    pub params: Vec<ParamSpec>,
    pub file: String,
    pub folder: Option<PathBuf>,
    pub limits: Limits,
    /// The bytes of the file with its weights.
    pub bytes: u64,
    /// Whether quantized operators are read in reference form, and the paths of the integers that it keeps.
    pub is_reference: bool,
    pub integers: FxHashSet<String>,
    /// What was turned while the file was read.
    pub turned: Arc<Mutex<Turned>>,
}

impl Root {
    /// What the graph gives for inputs.
    pub fn given(&self, args: &[&Value]) -> Result<Vec<V>> {
        let graph = self
            .model
            .graph
            .as_ref()
            .ok_or_else(|| Error::msg("the file has no graph"))?;
        let mut scope: FxHashMap<String, V> = FxHashMap::default();
        for (name, tensor) in self.tensors.values() {
            scope.insert(name.clone(), V::of(tensor.clone(), Tensor::dtype(tensor)?));
        }
        for (name, tensor) in &self.fixed {
            scope.insert(name.clone(), V::of(tensor.clone(), Tensor::dtype(tensor)?));
        }
        for (name, texts) in &self.texts {
            scope.insert(name.clone(), V::Texts(texts.clone()));
        }
        for name in &self.absent {
            scope.insert(name.clone(), V::Absent);
        }
        for ((name, kind), value) in self.inputs.iter().zip(args) {
            let about = |e: Error| Error::msg(format_args!("the input `{name}`: {e}"));
            scope.insert(name.clone(), kind.read(value).map_err(about)?);
        }
        let ids = self
            .tensors
            .iter()
            .filter_map(|(path, (_, tensor))| Some((Object::object_id(tensor)?, path.clone())));
        let paths: FxHashMap<u64, String> = ids.collect();
        let mut symbols = FxHashMap::default();
        let mut any = None;
        // Of a tensor of text, its places have the sizes, and a sequence has those of its items.
        let mut given = Vec::new();
        for (name, _) in &self.inputs {
            match scope.get(name) {
                Some(V::Tensor(x, _)) => given.push(x.clone()),
                Some(V::Texts(x)) => given.push(text_places(std::slice::from_ref(x), 0)?),
                Some(V::Seq(items)) => given.extend(items.iter().filter_map(|v| v.tensor().ok())),
                _ => {}
            }
        }
        for x in &given {
            let shape = V::Tensor(x.clone(), None).meta().map(|meta| meta.shape);
            for (at, dim) in shape.iter().flatten().enumerate() {
                if let Some(symbol) = dim.as_symbol() {
                    symbols
                        .entry(symbol.to_string())
                        .or_insert_with(|| (x.clone(), at as i64));
                }
            }
            if shape.is_some() && Object::proxy(x).is_some() {
                any.get_or_insert_with(|| x.clone());
            }
        }
        let inputs = self.inputs.iter().map(|(name, _)| name.clone()).collect();
        let reader = Reader {
            rules: read::RULES,
            given: Some(&inputs),
            is_reference: self.is_reference,
            symbols: &symbols,
            any,
            paths: &paths,
            turned: &self.turned,
            file_bytes: self.bytes,
            spent: Cell::new(0),
            file: &self.file,
            folder: self.folder.as_deref(),
            limits: self.limits,
            versions: self
                .model
                .opset_import
                .iter()
                .map(|set| (versions::domain(&set.domain).to_string(), set.version))
                .collect(),
            functions: self
                .model
                .functions
                .iter()
                .map(|f| ((f.domain.clone(), f.name.clone()), f))
                .collect(),
            opaque: &self.opaque,
            hints: &self.hints,
            flow: &self.flow,
            block: block(graph, self.tensors.values()),
            count: Cell::new(0),
            depth: Cell::new(0),
            known: Known::default(),
        };
        let scope = Scope {
            values: scope,
            body: None,
        };
        reader.graph(graph, &mut vec![scope], true)
    }
}

impl Component for Root {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| {
            for (path, (_, tensor)) in &self.tensors {
                // What layers have as weights is trained, and integers that are kept are read by the graph; other constants
                // belong to the computation.
                let is_read =
                    Object::requires_grad(tensor) == Some(true) || self.integers.contains(path);
                match is_read {
                    true => walk.child(path, tensor),
                    false => walk.buffer(path, TensorKind::Buffer, tensor),
                }
            }
            for (path, opaque) in &self.opaque {
                walk.child(&format!("opaque.{}", super::paths::clean(path)), opaque);
            }
        });
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        for (path, (_, tensor)) in &mut self.tensors {
            walk.child(path, tensor);
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

impl Module for Root {
    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        let given = self.given(args)?;
        let mut values = given
            .into_iter()
            .map(as_value)
            .collect::<Result<Vec<Value>>>()?;
        *out = match values.len() {
            1 => values.remove(0),
            _ => Value::Tuple(values.into()),
        };
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.clone())
    }
}

fn as_value(v: V) -> Result<Value> {
    use fx_nn::value::IntoValue;
    Ok(match v {
        V::Tensor(tensor, _) => tensor.into_value(),
        V::Seq(items) => Value::List(
            items
                .into_iter()
                .map(as_value)
                .collect::<Result<Vec<Value>>>()?
                .into(),
        ),
        V::List(list, _) => items_of(&list)?,
        V::Texts(texts) => texts.into_value(),
        V::Host(value) => value,
        V::Absent => Value::None,
        ints => ints.tensor()?.into_value(),
    })
}
