//! `OpCall`: a call of a function while it is written, with its arguments by parameter.
//!
//! Invariant: an argument is read as what the function takes; what does not fit is an error that names the parameter.

use std::cell::Cell;

use fx_core::ir::{Argument, BoundArgs, Function, NodeRef, TensorMeta, ValueMeta};
use fx_core::module::{Attributes, Call};
use fx_core::value::{DType, Dim, NodeId};
use fx_core::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::value::{Name, Operand, Val, as_tensor};

/// What the nodes of a graph are in the written program.
pub type Values = IndexMap<NodeId, Val, FxBuildHasher>;

/// A call that a rule writes.
pub struct OpCall<'c> {
    node: NodeRef<'c>,
    function: Function,
    bound: BoundArgs<'c>,
    values: &'c Values,
    meta: &'c ValueMeta,
    /// Whether the rule asked for each parameter.
    read: Vec<Cell<bool>>,
}

impl std::fmt::Debug for OpCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.node.name(), self.function.path())
    }
}

/// What an argument is in the written program.
///
/// # Errors
/// Returns an error if it is a node that has no value, or of a kind that no program has.
pub fn val_of(argument: &Argument, values: &Values) -> Result<Val> {
    let all = |items: &[Argument]| -> Result<Vec<Val>> {
        items.iter().map(|item| val_of(item, values)).collect()
    };
    Ok(match argument {
        Argument::Node(id) => values
            .get(id)
            .cloned()
            .ok_or_else(|| Error::msg("an argument was not written"))?,
        Argument::None => Val::None,
        Argument::Ellipsis => Val::Ellipsis,
        Argument::Int(int) => Val::Dim(Dim::from(*int)),
        Argument::Float(number) => Val::Float(*number),
        Argument::Bool(truth) => Val::Bool(*truth),
        Argument::Str(text) => Val::Str(text.to_string()),
        Argument::DType(dtype) => Val::DType(*dtype),
        Argument::Device(device) => Val::Device(*device),
        Argument::List(items) | Argument::Tuple(items) => Val::List(all(items)?),
        Argument::Slice(parts) => {
            let part = |at: usize| val_of(&parts[at], values);
            Val::Slice(Box::new([part(0)?, part(1)?, part(2)?]))
        }
        Argument::Range(_) => {
            return Err(Error::msg(
                "a range of numbers, which a written program does not have: pass its numbers as a list",
            ));
        }
        Argument::Dict(items) => {
            let items = items.iter();
            let items = items.map(|(key, item)| Ok((key.to_string(), val_of(item, values)?)));
            Val::Dict(items.collect::<Result<_>>()?)
        }
    })
}

impl<'c> OpCall<'c> {
    /// The call that a node makes, of a graph with these layers and tensors.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit the function's parameters.
    pub fn new(
        node: NodeRef<'c>,
        function: Function,
        attributes: &'c Attributes,
        values: &'c Values,
        meta: &'c ValueMeta,
    ) -> Result<Self> {
        let bound = Call::of(node, attributes).bind()?;
        Ok(OpCall {
            read: vec![Cell::new(false); bound.params().len()],
            bound,
            node,
            function,
            values,
            meta,
        })
    }

    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// The node.
    pub fn node(&self) -> NodeRef<'c> {
        self.node
    }

    /// An argument.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn val(&self, name: &str) -> Result<Val> {
        let argument = self.bound.get(name).ok_or_else(|| {
            Error::msg(format_args!(
                "`{}` has no parameter `{name}`",
                self.function.path()
            ))
        })?;
        self.notes(name);
        self.val_of_param(name, &argument)
    }

    fn val_of_param(&self, name: &str, argument: &Argument) -> Result<Val> {
        val_of(argument, self.values).map_err(|error| {
            Error::msg(format_args!(
                "`{name}` of `{}`: {error}",
                self.function.name()
            ))
        })
    }

    fn notes(&self, name: &str) {
        let mut params = self.bound.params().iter().zip(&self.read);
        if let Some((_, read)) = params.find(|(param, _)| param.name == name) {
            read.set(true);
        }
    }

    /// Says that the program needs no more of these parameters than is known of the [`result`](OpCall::result): those that
    /// decide its shape or its element type alone. What a rule neither reads nor names here is an error.
    pub fn needs_no(&self, names: &[&str]) {
        names.iter().for_each(|name| self.notes(name));
    }

    /// That the rule has asked for every argument that is not its parameter's default: what a writer does not read, it
    /// would leave out.
    pub(super) fn all_are_read(&self) -> Result<()> {
        for ((param, argument), read) in self.bound.iter().zip(&self.read) {
            // A program runs where its engine does.
            if read.get() || matches!(*argument, Argument::Device(_)) {
                continue;
            }
            let given = self.val_of_param(&param.name, &argument)?;
            let is_default = match &param.default {
                None => false,
                Some(default) => {
                    let default = val_of(&Argument::from(default), self.values)?;
                    let number = default.as_f64();
                    default == given || (number.is_some() && number == given.as_f64())
                }
            };
            if !is_default {
                return Err(Error::msg(format_args!(
                    "the rule of `{}` does not read `{}`, which is {} here: leave the argument out, or give the function a rule that reads it",
                    self.function.name(),
                    param.name,
                    given.describe()
                )));
            }
        }
        Ok(())
    }

    fn wrong<T>(&self, name: &str, what: &str, found: &Val) -> Result<T> {
        if let Val::Unranked(..) = found {
            return Err(Error::msg(format_args!(
                "`{name}` of `{}` is {}, and what is written depends on that number: reshape it to sizes of a known number first, or give the function a rule of its own",
                self.function.name(),
                found.describe()
            )));
        }
        Err(Error::msg(format_args!(
            "`{name}` of `{}` is {what} here, and not {}: compute it before, or give the function a rule of its own",
            self.function.name(),
            found.describe()
        )))
    }

    /// A tensor.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensor(&self, name: &str) -> Result<Operand> {
        match self.val(name)? {
            Val::Tensor(operand) => Ok(operand),
            other => self.wrong(name, "a tensor", &other),
        }
    }

    /// A tensor of which the rule needs the elements alone: it has no sizes here if a run decides how many there are.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn elements(&self, name: &str) -> Result<Operand> {
        match self.val(name)? {
            Val::Unranked(name, dtype) => Ok(Operand {
                name,
                dtype,
                shape: Vec::new(),
            }),
            _ => self.tensor(name),
        }
    }

    /// A tensor, or `None`.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn optional_tensor(&self, name: &str) -> Result<Option<Operand>> {
        match self.val(name)? {
            Val::None => Ok(None),
            Val::Tensor(operand) => Ok(Some(operand)),
            other => self.wrong(name, "a tensor", &other),
        }
    }

    /// Tensors.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensors(&self, name: &str) -> Result<Vec<Operand>> {
        let Val::List(items) = self.val(name)? else {
            return self.wrong(name, "a list of tensors", &self.val(name)?);
        };
        let items = items.into_iter().map(|item| match item {
            Val::Tensor(operand) => Ok(operand),
            other => self.wrong(name, "a list of tensors", &other),
        });
        items.collect()
    }

    /// A tensor of text: its name and its sizes.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn texts(&self, name: &str) -> Result<(Name, Vec<Dim>)> {
        match self.val(name)? {
            Val::Texts(name, shape) => Ok((name, shape)),
            other => self.wrong(name, "a tensor of text", &other),
        }
    }

    /// Tensors of text.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn all_texts(&self, name: &str) -> Result<Vec<(Name, Vec<Dim>)>> {
        let Val::List(items) = self.val(name)? else {
            return self.wrong(name, "a list of tensors of text", &self.val(name)?);
        };
        let items = items.into_iter().map(|item| match item {
            Val::Texts(name, shape) => Ok((name, shape)),
            other => self.wrong(name, "a list of tensors of text", &other),
        });
        items.collect()
    }

    /// The one result, a tensor of text, as a value of this name.
    ///
    /// # Errors
    /// Returns an error if the result is not one tensor.
    pub fn given_texts(&self, name: Name) -> Result<Val> {
        Ok(Val::Texts(name, self.result()?.shape.clone()))
    }

    /// A whole number that is known.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn int(&self, name: &str) -> Result<i64> {
        let val = self.val(name)?;
        match val.as_int() {
            Some(int) => Ok(int),
            None => self.wrong(name, "a number that is known", &val),
        }
    }

    /// A whole number that is known, or `None`.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn optional_int(&self, name: &str) -> Result<Option<i64>> {
        match self.val(name)? {
            Val::None => Ok(None),
            _ => self.int(name).map(Some),
        }
    }

    /// Whole numbers that are known: a list, or one of them. `None` gives none.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        let val = self.val(name)?;
        let items = match &val {
            Val::None => return Ok(Vec::new()),
            Val::List(items) => items.iter().map(Val::as_int).collect::<Option<Vec<i64>>>(),
            one => one.as_int().map(|int| vec![int]),
        };
        match items {
            Some(items) => Ok(items),
            None => self.wrong(name, "numbers that are known", &val),
        }
    }

    /// As many whole numbers as asked for; one stands for all of them.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn several(&self, name: &str, count: usize) -> Result<Vec<i64>> {
        let ints = self.ints(name)?;
        Ok(match &*ints {
            [one] => vec![*one; count],
            _ => ints,
        })
    }

    /// A size.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn size(&self, name: &str) -> Result<Dim> {
        match self.val(name)? {
            Val::Dim(dim) => Ok(dim),
            other => self.wrong(name, "a size", &other),
        }
    }

    /// A number that is known.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn float(&self, name: &str) -> Result<f64> {
        let val = self.val(name)?;
        match val.as_f64() {
            Some(number) => Ok(number),
            None => self.wrong(name, "a number that is known", &val),
        }
    }

    /// A truth that is known.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.val(name)? {
            Val::Bool(truth) => Ok(truth),
            other => self.wrong(name, "a truth that is known", &other),
        }
    }

    /// Text.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn text(&self, name: &str) -> Result<String> {
        match self.val(name)? {
            Val::Str(text) => Ok(text),
            other => self.wrong(name, "text", &other),
        }
    }

    /// Whether the argument is `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn is_none(&self, name: &str) -> Result<bool> {
        Ok(self.val(name)? == Val::None)
    }

    /// What is known of the result, if it is one tensor.
    ///
    /// # Errors
    /// Returns an error if it is something else.
    pub fn result(&self) -> Result<&'c TensorMeta> {
        self.notes("dtype");
        self.meta.tensor().ok_or_else(|| {
            Error::msg(format_args!(
                "the result is {}, and not one tensor",
                self.meta
            ))
        })
    }

    /// What is known of each result, if they are tensors.
    ///
    /// # Errors
    /// Returns an error if they are something else.
    pub fn results(&self) -> Result<Vec<&'c TensorMeta>> {
        self.notes("dtype");
        let items = match self.meta {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                items.iter().map(ValueMeta::tensor).collect()
            }
            one => one.tensor().map(|one| vec![one]),
        };
        items.ok_or_else(|| Error::msg(format_args!("the result is {}", self.meta)))
    }

    /// What is known of the one result as a tensor; a number is one without dims.
    ///
    /// # Errors
    /// Returns an error if it is neither a tensor nor a number.
    pub fn result_as_tensor(&self) -> Result<TensorMeta> {
        self.notes("dtype");
        as_tensor(self.meta)
    }

    /// The element type of the result; of numbers, that of PyTorch's numbers.
    ///
    /// # Errors
    /// Returns an error if it is not known.
    pub fn dtype(&self) -> Result<DType> {
        self.notes("dtype");
        match self.meta {
            ValueMeta::Single(meta) => known_dtype(meta.dtype),
            ValueMeta::Unranked(dtype) => known_dtype(*dtype),
            number => Ok(as_tensor(number)
                .ok()
                .and_then(|of| of.dtype)
                .unwrap_or(DType::F64)),
        }
    }

    /// The one result as a value of this name.
    ///
    /// # Errors
    /// Returns an error if the result is not one tensor.
    pub fn given(&self, name: Name) -> Result<Val> {
        match self.meta {
            ValueMeta::Single(meta) => operand(name, meta).map(Val::Tensor),
            ValueMeta::Unranked(_) => Ok(Val::Unranked(name, self.dtype()?)),
            _ => Ok(Val::Tensor(Operand {
                name,
                dtype: self.dtype()?,
                shape: Vec::new(),
            })),
        }
    }

    /// The results as values of these names.
    ///
    /// # Errors
    /// Returns an error if the results are not tensors.
    pub fn all_given(&self, names: Vec<Name>) -> Result<Val> {
        let metas = self.results()?;
        let all = names.into_iter().zip(metas);
        let all = all.map(|(name, meta)| operand(name, meta).map(Val::Tensor));
        Ok(Val::List(all.collect::<Result<_>>()?))
    }

    /// The place of a dim, of a tensor with so many.
    ///
    /// # Errors
    /// Returns an error if it is not known.
    pub fn place(&self, name: &str, rank: usize) -> Result<i64> {
        Ok(wrapped(self.int(name)?, rank))
    }

    /// The places of dims; all of them for `None`.
    ///
    /// # Errors
    /// Returns an error if they are not known.
    pub fn places(&self, name: &str, rank: usize) -> Result<Vec<i64>> {
        if self.is_none(name)? {
            return Ok((0..rank as i64).collect());
        }
        let dims = self.ints(name)?;
        Ok(dims.into_iter().map(|dim| wrapped(dim, rank)).collect())
    }
}

fn known_dtype(dtype: Option<DType>) -> Result<DType> {
    dtype.ok_or_else(|| Error::msg("the element type of the result is not known"))
}

/// A place counted from the end, from the start.
pub fn wrapped(dim: i64, rank: usize) -> i64 {
    if dim < 0 {
        dim + rank.max(1) as i64
    } else {
        dim
    }
}

/// A tensor of this name.
///
/// # Errors
/// Returns an error if its element type is not known.
pub fn operand(name: Name, meta: &TensorMeta) -> Result<Operand> {
    Ok(Operand {
        dtype: meta
            .dtype
            .ok_or_else(|| Error::msg(format_args!("the element type of `{name}` is not known")))?,
        shape: meta.shape.clone(),
        name,
    })
}
