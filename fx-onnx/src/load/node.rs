//! `NodeCx`: a node that is read, with its inputs and attributes.

use fx_nn::ir::TensorMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::graph::Reader;
use super::scope::Scopes;
use super::tensors;
use super::value::{Given, V, as_type};
use super::whole::{Whole, of_run};
use crate::dtype;
use crate::proto::{AttributeProto, GraphProto, NodeProto};

/// A node on its way into the graph.
pub(super) struct NodeCx<'n> {
    pub node: &'n NodeProto,
    pub inputs: Vec<V>,
    /// The version of the node's domain.
    pub version: i64,
    pub reader: &'n Reader<'n>,
    pub scopes: &'n Scopes,
}

impl NodeCx<'_> {
    /// An input as whole numbers, of which there are a known count.
    pub fn wholes(&self, at: usize) -> Result<Vec<Whole>> {
        match (self.input(at), self.known_shape(at)) {
            (V::Tensor(x, _), Ok(shape)) if x.proxy().is_some() => of_run(x, Some(&shape)),
            (other, _) => other.wholes(),
        }
    }

    /// An input as one whole number.
    pub fn whole(&self, at: usize) -> Result<Whole> {
        let one = self.wholes(at)?.into_iter().next();
        one.ok_or_else(|| Error::msg("a number is expected, and there is none"))
    }

    pub fn input(&self, at: usize) -> &V {
        self.inputs.get(at).unwrap_or(&V::Absent)
    }

    pub fn has(&self, at: usize) -> bool {
        !self.input(at).is_absent()
    }

    pub fn tensor(&self, at: usize) -> Result<Tensor> {
        self.input(at)
            .tensor()
            .map_err(|e| Error::msg(format_args!("input {at}: {e}")))
    }

    pub fn optional(&self, at: usize) -> Result<Option<Tensor>> {
        match self.has(at) {
            true => self.tensor(at).map(Some),
            false => Ok(None),
        }
    }

    pub fn dtype(&self, at: usize) -> Result<DType> {
        let named = || self.named(at)?.dtype;
        self.input(at)
            .dtype()
            .or_else(named)
            .ok_or_else(|| Error::msg(format_args!("the element type of input {at} is not known")))
    }

    /// What is known of an input by its name.
    fn named(&self, at: usize) -> Option<TensorMeta> {
        let name = self.node.input.get(at)?;
        let known = self.reader.known.find(self.scopes, name);
        known.or_else(|| self.reader.hints.get(name).cloned())
    }

    /// Whether an input is one of the whole graph, which a run gives.
    pub fn is_given(&self, at: usize) -> bool {
        let name = self.node.input.get(at);
        let given = self.reader.given;
        name.zip(given)
            .is_some_and(|(name, given)| given.contains(name))
    }

    pub fn is_float(&self, at: usize) -> bool {
        self.input(at).dtype().is_none_or(DType::is_floating_point)
    }

    pub fn shape(&self, at: usize) -> Result<Vec<Dim>> {
        let named = || self.named(at);
        let meta = self.input(at).meta().or_else(named).ok_or_else(|| Error::msg(format_args!("the number of dims of input {at} is not known: give the inputs shapes with `Load::input`")));
        Ok(meta?.shape)
    }

    pub fn rank(&self, at: usize) -> Result<usize> {
        self.shape(at).map(|shape| shape.len())
    }

    /// The sizes of an input, as numbers where they are known.
    pub fn sizes(&self, at: usize) -> Result<Vec<Whole>> {
        let (x, shape) = (self.tensor(at)?, self.shape(at)?);
        let each = shape
            .iter()
            .enumerate()
            .map(|(dim, size)| match size.as_number() {
                Some(size) => Ok(Whole::from(size)),
                None => x.size(dim as i64).map(Whole::from),
            });
        each.collect()
    }

    pub fn known_shape(&self, at: usize) -> Result<Vec<usize>> {
        Dim::all_known(&self.shape(at)?)
            .ok_or_else(|| Error::msg(format_args!("the sizes of input {at} are not known")))
    }

    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node
            .attribute
            .iter()
            .find(|attribute| attribute.name == name)
    }

    pub fn int(&self, name: &str, or: i64) -> i64 {
        self.attribute(name).and_then(|a| a.i).unwrap_or(or)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.int(name, 0) != 0
    }

    pub fn float(&self, name: &str, or: f64) -> f64 {
        // As a decimal of the float's digits: 0.1f32 is meant as 0.1.
        self.attribute(name)
            .and_then(|a| a.f)
            .map_or(or, |f| f.to_string().parse().unwrap_or(f64::from(f)))
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let attribute = self.attribute(name)?;
        Some(match (attribute.ints.is_empty(), attribute.i) {
            (true, Some(one)) => vec![one],
            _ => attribute.ints.clone(),
        })
    }

    pub fn floats(&self, name: &str) -> Option<Vec<f32>> {
        self.attribute(name).map(|a| a.floats.clone())
    }

    pub fn text(&self, name: &str, or: &str) -> String {
        let text = self.attribute(name).and_then(|a| a.s.as_ref());
        text.map_or(or.to_string(), |bytes| {
            String::from_utf8_lossy(bytes).into_owned()
        })
    }

    /// The texts of an attribute.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let attribute = self.attribute(name)?;
        let texts = attribute.strings.iter().map(|text| tensors::of_utf8(text));
        Some(texts.collect())
    }

    pub fn graph(&self, name: &str) -> Result<&GraphProto> {
        self.attribute(name)
            .and_then(|a| a.g.as_ref())
            .ok_or_else(|| Error::msg(format_args!("the graph `{name}` is missing")))
    }

    /// The element type of an attribute.
    pub fn type_of(&self, name: &str) -> Result<Option<DType>> {
        match self.int(name, 0) {
            0 => Ok(None),
            code => dtype::known(code as i32).map(Some).ok_or_else(|| {
                Error::msg(format_args!(
                    "fx has no elements of type {}",
                    dtype::name(code as i32)
                ))
            }),
        }
    }

    /// A dim, counted from the start.
    pub fn axis(&self, name: &str, or: i64, rank: usize) -> Result<i64> {
        self.place(self.int(name, or), rank)
    }

    /// A dim of an input; one that is counted from the start needs no number of dims.
    pub fn dim_of(&self, axis: i64, at: usize) -> Result<i64> {
        match (axis, self.rank(at)) {
            (0.., Err(_)) => Ok(axis),
            (axis, rank) => self.place(axis, rank?),
        }
    }

    /// An input that has so many dims by the operator's definition, whatever is known of it.
    pub fn ranked(&self, at: usize, rank: usize) -> Result<Tensor> {
        let x = self.tensor(at)?;
        // What the file says alone, the graph does not know.
        let name = self.node.input.get(at);
        let looked = || self.reader.known.find(self.scopes, name?);
        if self.input(at).meta().or_else(looked).is_some() {
            return Ok(x);
        }
        of_rank(&x, rank)
    }

    pub fn place(&self, axis: i64, rank: usize) -> Result<i64> {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        match (0..rank as i64).contains(&place) {
            true => Ok(place),
            false => Err(Error::msg(format_args!(
                "there is no dim {axis} among {rank}"
            ))),
        }
    }

    /// Dims of an input, or of an attribute in older versions; `None` if they are left out.
    pub fn axes(&self, at: usize) -> Result<Option<Vec<i64>>> {
        if self.has(at) {
            return self.input(at).known_ints().map(Some);
        }
        Ok(self.ints("axes"))
    }

    /// The numbers from 0 on below a size.
    pub fn numbers(&self, size: Int) -> Result<Tensor> {
        let most = self.reader.limits.constant_bytes as i64 / 8;
        match size.concrete() {
            Some(size) if size > most => Err(Error::msg(format_args!(
                "{size} places are more than `Limits::constant_bytes` holds"
            ))),
            _ => ops::arange(0, size, 1, Some(DType::I64)),
        }
    }

    /// Results of one tensor in the type of the first input.
    pub fn like(&self, tensor: Tensor) -> Given {
        Ok(vec![V::Tensor(tensor, self.input(0).dtype())])
    }

    /// An input for an operator that is read as several operations: halves in `float32`, so that the result alone is
    /// rounded.
    pub fn single(&self, at: usize) -> Result<Tensor> {
        let x = self.tensor(at)?;
        match self.input(at).dtype() {
            Some(DType::F16 | DType::BF16) => as_type(&x, DType::F32),
            _ => Ok(x),
        }
    }

    /// What was computed of [`single`](NodeCx::single) inputs, in the type of the first input.
    pub fn rounded(&self, tensor: &Tensor) -> Result<V> {
        let dtype = self.input(0).dtype();
        let tensor = dtype.map_or(Ok(tensor.clone()), |dtype| as_type(tensor, dtype))?;
        Ok(V::Tensor(tensor, dtype))
    }

    /// One result of an element type.
    pub fn of(&self, tensor: Tensor, dtype: DType) -> Given {
        Ok(vec![V::of(tensor, dtype)])
    }
}

/// A tensor that is known to have so many dims, as the graph knows it then too.
pub(super) fn of_rank(x: &Tensor, rank: usize) -> Result<Tensor> {
    let sizes = (0..rank as i64).map(|dim| x.size(dim));
    ops::reshape(x, sizes.collect::<Result<Vec<Int>>>()?)
}
