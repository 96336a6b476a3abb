//! `ResultTree`: how the flat results of a program are the value that its graph gives.
//!
//! Invariant: results are taken in the order in which the walk writes them.

use std::sync::Arc;

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;

/// How the results of a program are the value that its graph gives: numbers are numbers again, and
/// lists lists.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_stablehlo::{Export, Program};
/// let gm = symbolic_trace(traced!(|x: &Tensor| Ok((x.relu()?, x.exp()?))))?;
/// let x = Tensor::ones(2)?;
/// let program = Program::of(&gm, &Export::example(&x))?;
/// let value = program.result_tree().build(vec![x.relu()?, x.exp()?])?;
/// assert_eq!(value.describe(), "a tuple of 2");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ResultTree(Tree);

/// A result of the program for each tensor and number.
#[derive(Debug, Clone)]
enum Tree {
    Tensor,
    Number,
    None,
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    Dict(Vec<(Arc<str>, Tree)>),
}

impl ResultTree {
    /// Of a graph module whose values are known.
    pub(crate) fn of(gm: &GraphModule) -> Result<Self> {
        let output = gm.graph().output_node();
        let output = output.ok_or_else(|| Error::msg("the graph has no output node"))?;
        match output.meta::<ValueMeta>() {
            Some(meta) => Tree::of_meta(meta)
                .map(ResultTree)
                .map_err(|error| output.blame("writing as StableHLO", error)),
            None => Err(output.blame("writing as StableHLO", Error::msg("its value is not known"))),
        }
    }

    /// The value of these results.
    ///
    /// # Errors
    /// Returns an error if there are fewer or more tensors than results, or one has several elements
    /// where the graph gives a number.
    pub fn build(&self, results: Vec<Tensor>) -> Result<Value> {
        let count = results.len();
        let mut left = results.into_iter();
        let value = self.0.take(&mut left);
        match value {
            Some(value) if left.len() == 0 => value,
            _ => Err(Error::msg(format_args!(
                "{count} tensors are another number than the program has results"
            ))),
        }
    }
}

impl Tree {
    fn of_meta(meta: &ValueMeta) -> Result<Self> {
        let all = |items: &[ValueMeta]| items.iter().map(Tree::of_meta).collect::<Result<_>>();
        Ok(match meta {
            ValueMeta::Single(_) => Tree::Tensor,
            ValueMeta::Int(_) | ValueMeta::Float(_) | ValueMeta::Bool(_) => Tree::Number,
            ValueMeta::Plain(Value::None) => Tree::None,
            ValueMeta::List(items) => Tree::List(all(items)?),
            ValueMeta::Tuple(items) => Tree::Tuple(all(items)?),
            ValueMeta::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(name, item)| Ok((name.clone(), Tree::of_meta(item)?)));
                Tree::Dict(items.collect::<Result<_>>()?)
            }
            other => {
                return Err(Error::not_in_format(format_args!(
                    "{other} is no result that a program can give"
                )));
            }
        })
    }

    /// The value of the next results; `None` if there are too few.
    fn take(&self, left: &mut std::vec::IntoIter<Tensor>) -> Option<Result<Value>> {
        let all = |items: &[Tree], left: &mut std::vec::IntoIter<Tensor>| {
            let items = items.iter().map(|item| item.take(left));
            items.collect::<Option<Result<Box<[Value]>>>>()
        };
        Some(match self {
            Tree::Tensor => Ok(Value::object(left.next()?)),
            Tree::Number => left.next()?.number().map(IntoValue::into_value),
            Tree::None => Ok(Value::None),
            Tree::List(items) => all(items, left)?.map(Value::List),
            Tree::Tuple(items) => all(items, left)?.map(Value::Tuple),
            Tree::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(name, item)| Some(item.take(left)?.map(|item| (name.clone(), item))));
                let items: Option<Result<_>> = items.collect();
                items?.map(|items| Value::Dict(Box::new(items)))
            }
        })
    }
}
