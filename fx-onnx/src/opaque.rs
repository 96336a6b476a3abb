//! `Opaque`: a node that was read and is not understood, as a leaf that can be shown, moved and written again.
//!
//! Invariant: what is written is what was read.

use fx_nn::file::{Json, Loader, Saver};
use fx_nn::ir::{Effects, ParamSpec};
use fx_nn::module::{Component, Module, Walk};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::{Error, Result};
use prost::Message;

use crate::dtype;
use crate::proto::NodeProto;

/// What is known of a result: element type and sizes, each a number or a name.
type Known = (i32, Vec<String>);

/// A node that was read and is not understood.
#[derive(Debug, Clone)]
pub struct Opaque {
    node: NodeProto,
    version: i64,
    results: Vec<Known>,
    params: Vec<ParamSpec>,
}

impl Opaque {
    /// A leaf of a node whose domain has this version, with what is known of its results.
    pub(crate) fn new(node: NodeProto, version: i64, results: Vec<Known>) -> Self {
        let given = node.input.iter().filter(|input| !input.is_empty());
        let params = given
            .enumerate()
            .map(|(at, _)| ParamSpec::of_text(format!("x{at}"), "&Tensor"));
        Opaque {
            params: params.collect(),
            node,
            version,
            results,
        }
    }

    /// The node, as it was read.
    pub fn node(&self) -> &NodeProto {
        &self.node
    }

    /// The version of its domain's operators.
    pub fn version(&self) -> i64 {
        self.version
    }

    fn name(&self) -> String {
        match self.node.domain.is_empty() {
            true => self.node.op_type.clone(),
            false => format!("{}.{}", self.node.domain, self.node.op_type),
        }
    }
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
        let bytes = self.node.encode_to_vec();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(serde_json::json!({"node": hex, "version": self.version, "results": self.results}))
    }

    fn from_saved(saved: &Json, _: &mut Loader<'_>) -> Result<Self> {
        let wrong = || Error::msg("the file does not have an ONNX node here");
        let hex = saved.get("node").and_then(Json::as_str).ok_or_else(wrong)?;
        let digits: Option<Vec<u8>> = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let node = NodeProto::decode(&*digits.ok_or_else(wrong)?).map_err(Error::other)?;
        let version = saved
            .get("version")
            .and_then(Json::as_i64)
            .ok_or_else(wrong)?;
        let results = saved.get("results").cloned().ok_or_else(wrong)?;
        let results: Vec<Known> = serde_json::from_value(results).map_err(Error::other)?;
        Ok(Opaque::new(node, version, results))
    }
}

impl Module for Opaque {
    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        let no_data = args.iter().any(|arg| {
            arg.as_object()
                .is_some_and(|object| object.is_fake() || object.proxy().is_some())
        });
        if !no_data {
            return Err(Error::msg(format_args!(
                "fx has no operator `{}`: replace the node, or lower the graph to an engine that has it",
                self.name()
            )));
        }
        let results = self.results.iter().map(|(code, sizes)| {
            let dtype = dtype::known(*code).ok_or_else(|| {
                Error::msg(format_args!(
                    "`{}` gives elements of type {}",
                    self.name(),
                    dtype::name(*code)
                ))
            })?;
            let spec = Spec::tensor(sizes.iter().map(String::as_str), dtype);
            Ok(Value::object(Tensor::fake(spec)?))
        });
        let mut results = results.collect::<Result<Vec<Value>>>()?;
        *out = match results.len() {
            1 => results.remove(0),
            _ => Value::Tuple(results.into()),
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
        Some("is a node of ONNX that fx does not have")
    }
}
