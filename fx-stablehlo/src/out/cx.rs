//! `Cx`: the program while it is written, and `Array`, a value of it.
//!
//! Invariant: a value has one name, and is named only after it was written, in its region or one around it.

use std::fmt::Write as _;
use std::sync::Arc;

use fx_nn::ir::{NodeRef, TensorMeta};
use fx_nn::lowering::{Name, OpCall, Operand, Val};
use fx_nn::prelude::*;
use fx_nn::value::Dim;
use rustc_hash::FxHashMap;

use crate::out::text::{self, element_type, tensor_type};

/// A value of the program: a tensor whose sizes are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its name, such as `%3`.
    pub name: Name,
    /// Its element type.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<i64>,
}

impl Array {
    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn count(&self) -> i64 {
        self.shape.iter().product()
    }
}

impl From<Array> for Val {
    fn from(array: Array) -> Self {
        Val::Tensor(Operand {
            name: array.name,
            dtype: array.dtype,
            shape: array.shape.into_iter().map(Dim::from).collect(),
        })
    }
}

/// The text of a region.
#[derive(Debug, Clone)]
pub struct Region(String);

/// The element type and the sizes of a value.
pub type Type = (DType, Vec<i64>);

/// The program while it is written: rules add operations to it.
#[derive(Debug)]
pub struct Cx {
    /// The text of the open regions, the outermost first.
    regions: Vec<String>,
    next: u64,
    /// Which place operations are written with.
    place: usize,
    /// The text of the places.
    places: String,
    /// Constants of the program: their number's bits, type and sizes.
    splats: FxHashMap<(u64, DType, Vec<i64>), Array>,
    /// The state of the generator of random numbers, once one was drawn.
    key: Option<Array>,
    pub(crate) operations: usize,
}

/// Known sizes of a shape.
pub(crate) fn known(shape: &[Dim]) -> Result<Vec<i64>> {
    let known = shape.iter().map(Dim::as_number).collect::<Option<_>>();
    known.ok_or_else(|| {
        let sizes: Vec<String> = shape.iter().map(Dim::to_string).collect();
        Error::not_in_format(format_args!(
            "the sizes [{}] are not known: XLA's programs have fixed sizes, which `Export::size` gives to names",
            sizes.join(", ")
        ))
    })
}

impl Cx {
    pub(crate) fn new() -> Self {
        Cx {
            regions: vec![String::new()],
            next: 0,
            place: 0,
            places: String::from("#loc0 = loc(unknown)\n"),
            splats: FxHashMap::default(),
            key: None,
            operations: 0,
        }
    }

    /// Makes room for the operations of so many nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.places.reserve(nodes.saturating_mul(48));
        if let Some(out) = self.regions.last_mut() {
            out.reserve(nodes.saturating_mul(128));
        }
    }

    /// Operations that follow are those of a node, in a module.
    pub(crate) fn at(&mut self, node: NodeRef<'_>) {
        self.place += 1;
        let places = &mut self.places;
        let _ = write!(places, "#loc{} = loc(", self.place);
        let mut of = String::new();
        if let Some(scope) = node
            .module_stack()
            .next()
            .filter(|scope| !scope.path.is_empty())
        {
            of.push_str(&scope.path);
            of.push('/');
        }
        let _ = write!(of, "{}", node.name());
        text::quoted(places, &of);
        if let Some(line) = node.location() {
            places.push('(');
            text::quoted(places, &line.file);
            let _ = write!(places, ":{}:{})", line.line, line.column);
        }
        places.push_str(")\n");
    }

    /// The text of the program's operations, and of the places that they name.
    pub(crate) fn close(mut self) -> (String, String) {
        (self.regions.pop().unwrap_or_default(), self.places)
    }

    /// A name that nothing has.
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// An argument of the program or of a region.
    pub(crate) fn argument(&mut self, (dtype, shape): Type) -> Array {
        let name: Name = format!("%a{}", self.fresh()).into();
        Array { name, dtype, shape }
    }

    /// Writes an operation with several results and with regions.
    pub fn operations(
        &mut self,
        op: &str,
        operands: &[&Array],
        attributes: &str,
        regions: Vec<Region>,
        results: &[Type],
    ) -> Vec<Array> {
        self.operations += 1;
        let at = self.fresh();
        let place = self.place;
        let out = self.regions.last_mut().expect("the program is a region");
        match results.len() {
            0 => {}
            1 => {
                let _ = write!(out, "%{at} = ");
            }
            count => {
                let _ = write!(out, "%{at}:{count} = ");
            }
        }
        let dialect = if op.contains('.') { "" } else { "stablehlo." };
        let _ = write!(out, "\"{dialect}{op}\"(");
        for (at, operand) in operands.iter().enumerate() {
            let _ = write!(out, "{}{}", if at == 0 { "" } else { ", " }, operand.name);
        }
        out.push(')');
        if !attributes.is_empty() {
            let _ = write!(out, " <{{{attributes}}}>");
        }
        if !regions.is_empty() {
            let texts: Vec<&str> = regions.iter().map(|region| &*region.0).collect();
            let _ = write!(out, " ({})", texts.join(", "));
        }
        out.push_str(" : (");
        for (at, operand) in operands.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            tensor_type(out, operand.dtype, &operand.shape);
        }
        out.push_str(") -> ");
        if results.len() != 1 {
            out.push('(');
        }
        for (at, (dtype, shape)) in results.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            tensor_type(out, *dtype, shape);
        }
        if results.len() != 1 {
            out.push(')');
        }
        let _ = writeln!(out, " loc(#loc{place})");
        let made = results.iter().enumerate().map(|(index, (dtype, shape))| {
            let name: Arc<str> = match results.len() {
                1 => format!("%{at}").into(),
                _ => format!("%{at}#{index}").into(),
            };
            Array {
                name,
                dtype: *dtype,
                shape: shape.clone(),
            }
        });
        made.collect()
    }

    /// Writes an operation with one result. A name without a dialect is one of StableHLO's.
    pub fn op(
        &mut self,
        op: &str,
        operands: &[&Array],
        attributes: &str,
        dtype: DType,
        shape: &[i64],
    ) -> Array {
        let results = [(dtype, shape.to_vec())];
        let mut made = self.operations(op, operands, attributes, Vec::new(), &results);
        made.pop().expect("one result was asked for")
    }

    /// Writes a region, which gives what `body` returns.
    ///
    /// # Errors
    /// Returns the error of `body`.
    pub fn region(
        &mut self,
        arguments: &[Type],
        body: impl FnOnce(&mut Cx, &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Region> {
        let given: Vec<Array> = arguments
            .iter()
            .map(|of| self.argument(of.clone()))
            .collect();
        self.regions.push(String::new());
        let results = body(self, &given);
        if let Ok(results) = &results {
            let results: Vec<&Array> = results.iter().collect();
            self.operations("return", &results, "", Vec::new(), &[]);
        }
        let inner = self.regions.pop().unwrap_or_default();
        results?;
        let mut out = String::from("{\n");
        if !given.is_empty() {
            out.push_str("^bb0(");
            for (at, of) in given.iter().enumerate() {
                let _ = write!(out, "{}{}: ", if at == 0 { "" } else { ", " }, of.name);
                tensor_type(&mut out, of.dtype, &of.shape);
            }
            out.push_str("):\n");
        }
        out.push_str(&inner);
        out.push('}');
        Ok(Region(out))
    }

    /// Whether a random number was drawn.
    pub(crate) fn draws(&self) -> bool {
        self.key.is_some()
    }

    /// Random bits, and the state of the generator moved on.
    ///
    /// # Errors
    /// Returns an error inside of branches and loops, which would draw the same bits at each turn.
    pub fn random_bits(&mut self, shape: &[i64]) -> Result<Array> {
        if self.regions.len() > 1 {
            return Err(Error::msg(
                "random numbers inside of a branch or a loop: draw them before, for all turns",
            ));
        }
        let key = self.key.take().unwrap_or_else(|| Array {
            name: "%key".into(),
            dtype: DType::I64,
            shape: vec![2],
        });
        let (state, drawn, next) = (self.fresh(), self.fresh(), self.fresh());
        let place = self.place;
        let mut bits = String::new();
        tensor_type(&mut bits, DType::U32, shape);
        self.operations += 3;
        let out = self.regions.last_mut().expect("the program is a region");
        // The generator's state has a type of its own, which tensors of fx do not have.
        let _ = write!(
            out,
            "%{state} = \"stablehlo.bitcast_convert\"({}) : (tensor<2xi64>) -> tensor<2xui64> loc(#loc{place})\n\
             %{drawn}:2 = \"stablehlo.rng_bit_generator\"(%{state}) <{{rng_algorithm = #stablehlo<rng_algorithm \
             THREE_FRY>}}> : (tensor<2xui64>) -> (tensor<2xui64>, {bits}) loc(#loc{place})\n\
             %{next} = \"stablehlo.bitcast_convert\"(%{drawn}#0) : (tensor<2xui64>) -> tensor<2xi64> loc(#loc{place})\n",
            key.name
        );
        self.key = Some(Array {
            name: format!("%{next}").into(),
            ..key
        });
        Ok(Array {
            name: format!("%{drawn}#1").into(),
            dtype: DType::U32,
            shape: shape.to_vec(),
        })
    }

    // Values of calls.

    /// A tensor of the program.
    ///
    /// # Errors
    /// Returns an error if its sizes are not known.
    pub fn array(&self, of: &Operand) -> Result<Array> {
        Ok(Array {
            name: of.name.clone(),
            dtype: of.dtype,
            shape: known(&of.shape)?,
        })
    }

    /// A tensor among the arguments of a call.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensor(&self, call: &OpCall<'_>, name: &str) -> Result<Array> {
        self.array(&call.tensor(name)?)
    }

    /// A tensor or nothing among the arguments of a call.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn optional(&self, call: &OpCall<'_>, name: &str) -> Result<Option<Array>> {
        let of = call.optional_tensor(name)?;
        of.map(|of| self.array(&of)).transpose()
    }

    /// Tensors among the arguments of a call.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensors(&self, call: &OpCall<'_>, name: &str) -> Result<Vec<Array>> {
        let all = call.tensors(name)?;
        all.iter().map(|of| self.array(of)).collect()
    }

    /// The type of the result of a call; of a number, that of a tensor without dims.
    ///
    /// # Errors
    /// Returns an error if it is neither a number nor one tensor of known sizes.
    pub fn result(&self, call: &OpCall<'_>) -> Result<Type> {
        type_of(&call.result_as_tensor()?)
    }

    /// The types of the results of a call.
    ///
    /// # Errors
    /// As [`result`](Cx::result).
    pub fn results(&self, call: &OpCall<'_>) -> Result<Vec<Type>> {
        call.results()?.into_iter().map(type_of).collect()
    }

    /// A value as a tensor of a type: a number in each element, a tensor converted and expanded.
    ///
    /// # Errors
    /// Returns an error if it is neither a tensor nor a number.
    pub fn value(&mut self, val: &Val, dtype: DType, shape: &[i64]) -> Result<Array> {
        match val {
            Val::Tensor(of) => {
                let of = self.array(of)?;
                let of = self.convert(&of, dtype);
                self.expand(&of, shape)
            }
            other => match (other.as_int(), other.as_f64()) {
                // A float would round it.
                (Some(number), _) if dtype == DType::I64 && number.unsigned_abs() > 1 << 53 => {
                    let mut attributes = format!("value = dense<{number}> : ");
                    tensor_type(&mut attributes, dtype, shape);
                    Ok(self.op("constant", &[], &attributes, dtype, shape))
                }
                (_, Some(number)) => Ok(self.splat(number, dtype, shape)),
                (_, None) => Err(Error::msg(format_args!(
                    "{} is neither a tensor nor a number",
                    other.describe()
                ))),
            },
        }
    }

    /// An argument of a call as a tensor of the type of its result.
    ///
    /// # Errors
    /// As [`value`](Cx::value).
    pub fn widened(&mut self, call: &OpCall<'_>, name: &str) -> Result<Array> {
        let (dtype, shape) = self.result(call)?;
        self.value(&call.val(name)?, dtype, &shape)
    }

    // Operations that many rules use.

    /// A tensor with one number in each element.
    pub fn splat(&mut self, number: f64, dtype: DType, shape: &[i64]) -> Array {
        // A constant of the program is there for all; one of a region is seen by the region alone.
        let is_shared = self.regions.len() == 1;
        let key = (number.to_bits(), dtype, shape.to_vec());
        if is_shared && let Some(known) = self.splats.get(&key) {
            return known.clone();
        }
        let mut attributes = String::from("value = dense<");
        text::number(&mut attributes, number, dtype);
        attributes.push_str("> : ");
        tensor_type(&mut attributes, dtype, shape);
        let made = self.op("constant", &[], &attributes, dtype, shape);
        if is_shared {
            self.splats.insert(key, made.clone());
        }
        made
    }

    /// Numbers, with one dim.
    pub fn numbers(&mut self, numbers: &[f64], dtype: DType) -> Array {
        let shape = [numbers.len() as i64];
        let mut attributes = String::from("value = dense<");
        if !numbers.is_empty() {
            attributes.push('[');
            for (at, number) in numbers.iter().enumerate() {
                attributes.push_str(if at == 0 { "" } else { ", " });
                text::number(&mut attributes, *number, dtype);
            }
            attributes.push(']');
        }
        attributes.push_str("> : ");
        tensor_type(&mut attributes, dtype, &shape);
        self.op("constant", &[], &attributes, dtype, &shape)
    }

    /// Whole numbers, with one dim.
    pub fn ints(&mut self, numbers: &[i64], dtype: DType) -> Array {
        let numbers: Vec<f64> = numbers.iter().map(|n| *n as f64).collect();
        self.numbers(&numbers, dtype)
    }

    /// The places along a dim.
    pub fn iota(&mut self, dim: usize, dtype: DType, shape: &[i64]) -> Array {
        let attributes = format!("iota_dimension = {dim} : i64");
        self.op("iota", &[], &attributes, dtype, shape)
    }

    /// An operation on one tensor, element by element.
    pub fn unary(&mut self, op: &str, x: &Array) -> Array {
        self.op(op, &[x], "", x.dtype, &x.shape)
    }

    /// An operation on two tensors of one type, element by element.
    pub fn binary(&mut self, op: &str, a: &Array, b: &Array) -> Array {
        debug_assert_eq!(
            (a.dtype, &a.shape),
            (b.dtype, &b.shape),
            "{op} takes two tensors of one type"
        );
        self.op(op, &[a, b], "", a.dtype, &a.shape)
    }

    /// An operation with a number.
    pub fn with_number(&mut self, op: &str, a: &Array, number: f64) -> Array {
        let number = self.splat(number, a.dtype, &a.shape);
        self.binary(op, a, &number)
    }

    /// A comparison (`EQ`, `NE`, `LT`, `LE`, `GT`, `GE`) of two tensors of one type.
    pub fn compare(&mut self, how: &str, a: &Array, b: &Array) -> Array {
        let attributes = format!("comparison_direction = #stablehlo<comparison_direction {how}>");
        self.op("compare", &[a, b], &attributes, DType::Bool, &a.shape)
    }

    /// A comparison with a number.
    pub fn compare_number(&mut self, how: &str, a: &Array, number: f64) -> Array {
        let number = self.splat(number, a.dtype, &a.shape);
        self.compare(how, a, &number)
    }

    /// Elements of `a` where a mask is true, else those of `b`.
    pub fn select(&mut self, mask: &Array, a: &Array, b: &Array) -> Array {
        self.op("select", &[mask, a, b], "", a.dtype, &a.shape)
    }

    /// The tensor with another element type. What is not zero is true.
    pub fn convert(&mut self, x: &Array, dtype: DType) -> Array {
        match dtype {
            dtype if dtype == x.dtype => x.clone(),
            DType::Bool => self.compare_number("NE", x, 0.0),
            DType::U8 | DType::I16 if x.dtype.is_floating_point() => {
                // What is beyond wraps around, and is not held.
                let wide = self.op("convert", &[x], "", DType::I64, &x.shape);
                self.op("convert", &[&wide], "", dtype, &x.shape)
            }
            dtype => self.op("convert", &[x], "", dtype, &x.shape),
        }
    }

    /// A tensor of halves in `float32`, for steps that are rounded once; any other as it is.
    pub(crate) fn single(&mut self, x: &Array) -> Array {
        match x.dtype {
            DType::F16 | DType::BF16 => self.convert(x, DType::F32),
            _ => x.clone(),
        }
    }

    /// The tensor repeated along dims of size one, as broadcasting does.
    ///
    /// # Errors
    /// Returns an error if its shape does not broadcast to that one.
    pub fn expand(&mut self, x: &Array, shape: &[i64]) -> Result<Array> {
        if x.shape == shape {
            return Ok(x.clone());
        }
        let Some(ahead) = shape.len().checked_sub(x.rank()) else {
            return Err(Error::msg(format_args!(
                "a tensor of shape {:?} does not broadcast to {shape:?}",
                x.shape
            )));
        };
        let dims: Vec<i64> = (ahead as i64..shape.len() as i64).collect();
        Ok(self.broadcast(x, &dims, shape))
    }

    /// The tensor with its dims at those places of a shape, repeated along the others.
    pub fn broadcast(&mut self, x: &Array, dims: &[i64], shape: &[i64]) -> Array {
        let attributes = format!("broadcast_dimensions = {}", text::array(dims));
        self.op("broadcast_in_dim", &[x], &attributes, x.dtype, shape)
    }

    /// The elements in other sizes.
    pub fn reshape(&mut self, x: &Array, shape: &[i64]) -> Array {
        match x.shape == shape {
            true => x.clone(),
            false => self.op("reshape", &[x], "", x.dtype, shape),
        }
    }

    /// The dims in another order.
    pub fn transpose(&mut self, x: &Array, order: &[i64]) -> Array {
        if order.iter().copied().eq(0..order.len() as i64) {
            return x.clone();
        }
        let shape: Vec<i64> = order.iter().map(|dim| x.shape[*dim as usize]).collect();
        let attributes = format!("permutation = {}", text::array(order));
        self.op("transpose", &[x], &attributes, x.dtype, &shape)
    }

    /// Elements from starts to limits by strides, one of each for a dim.
    pub fn slice(&mut self, x: &Array, starts: &[i64], limits: &[i64], strides: &[i64]) -> Array {
        let parts = starts.iter().zip(limits).zip(strides);
        let shape: Vec<i64> = parts
            .map(|((start, limit), stride)| {
                let length = (limit - start).max(0);
                length / stride + i64::from(length % stride != 0)
            })
            .collect();
        if shape == x.shape {
            return x.clone();
        }
        let attributes = format!(
            "start_indices = {}, limit_indices = {}, strides = {}",
            text::array(starts),
            text::array(limits),
            text::array(strides)
        );
        self.op("slice", &[x], &attributes, x.dtype, &shape)
    }

    /// Elements from `start` to `limit` along one dim.
    pub fn slice_dim(&mut self, x: &Array, dim: usize, start: i64, limit: i64, step: i64) -> Array {
        let (mut starts, mut limits) = (vec![0; x.rank()], x.shape.clone());
        let mut strides = vec![1; x.rank()];
        (starts[dim], limits[dim], strides[dim]) = (start, limit, step);
        self.slice(x, &starts, &limits, &strides)
    }

    /// Tensors one behind the other along a dim.
    pub fn concatenate(&mut self, parts: &[Array], dim: usize) -> Array {
        let first = &parts[0];
        if parts.len() == 1 {
            return first.clone();
        }
        let mut shape = first.shape.clone();
        shape[dim] = parts.iter().map(|part| part.shape[dim]).sum();
        let operands: Vec<&Array> = parts.iter().collect();
        let attributes = format!("dimension = {dim} : i64");
        self.op("concatenate", &operands, &attributes, first.dtype, &shape)
    }

    /// The tensor with a number around it and between its elements; less than zero cuts.
    pub fn pad(&mut self, x: &Array, number: f64, around: &[[i64; 2]], between: &[i64]) -> Array {
        if around.iter().all(|pair| *pair == [0, 0]) && between.iter().all(|count| *count == 0) {
            return x.clone();
        }
        let shape: Vec<i64> = x
            .shape
            .iter()
            .zip(around)
            .zip(between)
            .map(|((size, [low, high]), between)| size + (size - 1).max(0) * between + low + high)
            .collect();
        let number = self.splat(number, x.dtype, &[]);
        let side = |at: usize| around.iter().map(|pair| pair[at]).collect::<Vec<i64>>();
        let attributes = format!(
            "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
            text::array(&side(0)),
            text::array(&side(1)),
            text::array(between)
        );
        self.op("pad", &[x, &number], &attributes, x.dtype, &shape)
    }

    /// The tensor in reverse along dims.
    pub fn reverse(&mut self, x: &Array, dims: &[i64]) -> Array {
        if dims.is_empty() {
            return x.clone();
        }
        let attributes = format!("dimensions = {}", text::array(dims));
        self.op("reverse", &[x], &attributes, x.dtype, &x.shape)
    }

    /// The elements along dims as one, by an operation of two.
    pub fn reduce(&mut self, op: &str, x: &Array, start: f64, dims: &[i64]) -> Array {
        if dims.is_empty() {
            return x.clone();
        }
        let own = x.dtype;
        let x = &match op {
            "add" | "multiply" => self.single(x),
            _ => x.clone(),
        };
        let start = self.splat(start, x.dtype, &[]);
        let body = self.folding(op, x.dtype);
        let kept = (0..x.rank()).filter(|dim| !dims.contains(&(*dim as i64)));
        let shape: Vec<i64> = kept.map(|dim| x.shape[dim]).collect();
        let attributes = format!("dimensions = {}", text::array(dims));
        let results = [(x.dtype, shape)];
        let mut made = self.operations("reduce", &[x, &start], &attributes, vec![body], &results);
        let made = made.pop().expect("one result was asked for");
        self.convert(&made, own)
    }

    /// A region that makes one element of two.
    pub fn folding(&mut self, op: &str, dtype: DType) -> Region {
        let scalar = (dtype, Vec::new());
        self.region(&[scalar.clone(), scalar], |cx, both| {
            Ok(vec![cx.binary(op, &both[0], &both[1])])
        })
        .expect("an operation of two elements has no error")
    }

    /// The result of a reduction with its dims kept at size one.
    pub fn keeping(&mut self, x: &Array, dims: &[i64], of: &[i64]) -> Array {
        let shape: Vec<i64> = of
            .iter()
            .enumerate()
            .map(|(dim, size)| {
                if dims.contains(&(dim as i64)) {
                    1
                } else {
                    *size
                }
            })
            .collect();
        self.reshape(x, &shape)
    }

    /// Products summed over pairs of dims, with batches of pairs in front.
    pub fn dot(&mut self, a: &Array, b: &Array, batch: &[[i64; 2]], summed: &[[i64; 2]]) -> Array {
        let side =
            |pairs: &[[i64; 2]], at: usize| pairs.iter().map(|p| p[at]).collect::<Vec<i64>>();
        let left = |of: &Array, at: usize| -> Vec<i64> {
            let used = [side(batch, at), side(summed, at)].concat();
            let rest = (0..of.rank() as i64).filter(|dim| !used.contains(dim));
            rest.map(|dim| of.shape[dim as usize]).collect()
        };
        let mut shape: Vec<i64> = batch.iter().map(|[at, _]| a.shape[*at as usize]).collect();
        shape.extend(left(a, 0));
        shape.extend(left(b, 1));
        let attributes = format!(
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, \
             lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>",
            text::list(&side(batch, 0)),
            text::list(&side(batch, 1)),
            text::list(&side(summed, 0)),
            text::list(&side(summed, 1))
        );
        self.op("dot_general", &[a, b], &attributes, a.dtype, &shape)
    }
}

/// The type of what is known of a tensor.
pub(crate) fn type_of(meta: &TensorMeta) -> Result<Type> {
    let dtype = meta
        .dtype
        .ok_or_else(|| Error::msg("the element type of a value is not known"))?;
    if element_type(dtype) == "none" {
        return Err(Error::msg(format_args!("StableHLO has no {dtype}")));
    }
    Ok((dtype, known(&meta.shape)?))
}
