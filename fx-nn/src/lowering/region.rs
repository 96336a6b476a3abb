//! `RegionCall`: a call of a branch, a loop or a scan while it is written, with its arguments and what is known of them.
//!
//! Invariant: what a side gets is what the graph knows of the arguments, so that a number stays a number in it, and
//! keeps its range.

use fx_core::ir::{Argument, NodeRef, TensorMeta, ValueMeta};
use fx_core::module::{Attributes, Call};
use fx_core::shapes::Spec;
use fx_core::{Error, Result};

use super::call::{Values, val_of};
use super::value::{Val, as_tensor};

/// A call of a branch, a loop or a scan, which a writer writes.
#[derive(Debug)]
pub struct RegionCall<'c> {
    args: Vec<(Val, Spec)>,
    meta: &'c ValueMeta,
}

impl<'c> RegionCall<'c> {
    /// The call that a node makes, of a graph with these layers.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, or nothing is known of one.
    pub fn new(
        node: NodeRef<'c>,
        attributes: &Attributes,
        values: &Values,
        meta: &'c ValueMeta,
    ) -> Result<Self> {
        let bound = Call::of(node, attributes).bind()?;
        let args = bound.iter().map(|(_, argument)| {
            let spec = spec_of(&argument, node)?;
            Ok((val_of(&argument, values)?, spec))
        });
        Ok(RegionCall {
            args: args.collect::<Result<_>>()?,
            meta,
        })
    }

    /// What decides, and the other arguments.
    ///
    /// # Errors
    /// Returns an error if there is no argument.
    pub fn condition(&self) -> Result<(&Val, &[(Val, Spec)])> {
        match &*self.args {
            [(condition, _), rest @ ..] => Ok((condition, rest)),
            [] => Err(Error::msg("a branch or a loop without a condition")),
        }
    }

    /// All arguments.
    pub fn args(&self) -> &[(Val, Spec)] {
        &self.args
    }

    /// What is known of each result, lists and tuples taken apart.
    pub fn results(&self) -> Vec<&'c ValueMeta> {
        flat(self.meta)
    }

    /// Each result as a tensor.
    ///
    /// # Errors
    /// Returns an error if one cannot be one.
    pub fn tensors(&self) -> Result<Vec<TensorMeta>> {
        self.results().into_iter().map(as_tensor).collect()
    }

    /// The result of the call, of its parts one by one.
    pub fn given(&self, parts: impl IntoIterator<Item = Val>) -> Val {
        rebuilt(self.meta, &mut parts.into_iter())
    }
}

/// What an argument is, as the graph knows it.
fn spec_of(argument: &Argument, node: NodeRef<'_>) -> Result<Spec> {
    let Argument::Node(id) = argument else {
        let mut none = |_| Err(Error::msg("an argument is a structure of nodes"));
        return argument.to_value(&mut none).map(Spec::of);
    };
    let of = node.graph().node(*id)?;
    match of.meta::<ValueMeta>() {
        Some(meta) => Spec::of_meta(meta),
        None => Err(Error::msg(format_args!(
            "nothing is known of %{}",
            of.name()
        ))),
    }
}

fn flat(meta: &ValueMeta) -> Vec<&ValueMeta> {
    let mut found = Vec::new();
    let mut left = vec![meta];
    while let Some(meta) = left.pop() {
        match meta {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => left.extend(items.iter().rev()),
            ValueMeta::Dict(items) => left.extend(items.iter().rev().map(|(_, item)| item)),
            leaf => found.push(leaf),
        }
    }
    found
}

fn rebuilt(meta: &ValueMeta, parts: &mut dyn Iterator<Item = Val>) -> Val {
    match meta {
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            Val::List(items.iter().map(|item| rebuilt(item, parts)).collect())
        }
        ValueMeta::Dict(items) => {
            let items = items.iter();
            Val::Dict(
                items
                    .map(|(key, item)| (key.to_string(), rebuilt(item, parts)))
                    .collect(),
            )
        }
        _ => parts.next().unwrap_or(Val::None),
    }
}
