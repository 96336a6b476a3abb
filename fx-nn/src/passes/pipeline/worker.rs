//! What a stage does for tensors: forward without gradients, or with them.
//!
//! Invariant: no history of gradients crosses a thread; a stage sends leaves, and gets a gradient for
//! each.

use std::collections::VecDeque;

use candle_core::Tensor as Candle;
use candle_core::backprop::GradStore;
use fx_core::passes::pipeline::{Stage, StageWorker};
use fx_core::tensor::Object;
use fx_core::value::{Tree, Value};
use fx_core::{Error, Result};

use crate::tensor::{Gradients, Tensor, no_grad};

/// Runs a stage, and keeps nothing.
pub(super) struct Inference<'p>(pub &'p Stage);

impl StageWorker for Inference<'_> {
    fn forward(&mut self, _: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        no_grad(|| self.0.run(inputs))
    }

    fn backward(&mut self, _: usize, _: Vec<Value>) -> Result<Vec<Value>> {
        Err(Error::msg("inference has no gradients"))
    }
}

/// The loss of a micro-batch, from the result of the last stage.
pub(super) type LossOf<'p> = dyn Fn(usize, Value) -> Result<Tensor> + Sync + 'p;

/// Runs a stage forward and backward.
pub(super) struct Training<'p> {
    stage: &'p Stage,
    /// Whether its inputs are those of the model, whose gradients nobody takes.
    is_first: bool,
    /// In the last stage.
    loss: Option<&'p LossOf<'p>>,
    /// The parameters of the stage; `None` if gradients run to others through the inputs of the
    /// model, so that all are kept.
    parameters: Option<Vec<Candle>>,
    /// Micro-batches that ran forward, and not yet backward.
    kept: VecDeque<Kept>,
    /// The losses and results of the last stage.
    pub losses: Vec<Tensor>,
    /// The sums over the micro-batches.
    pub gradients: Option<Gradients>,
}

/// What the gradients of a micro-batch need.
struct Kept {
    /// Inputs of the stage.
    leaves: Vec<Tensor>,
    /// Results of the stage whose leaves were sent, or the loss.
    results: Vec<Tensor>,
}

impl<'p> Training<'p> {
    pub fn new(
        stage: &'p Stage,
        is_first: bool,
        loss: Option<&'p LossOf<'p>>,
        parameters: Option<Vec<Candle>>,
    ) -> Self {
        Training {
            stage,
            is_first,
            loss,
            parameters,
            kept: VecDeque::new(),
            losses: Vec::new(),
            gradients: None,
        }
    }
}

impl StageWorker for Training<'_> {
    fn forward(&mut self, at: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let mut kept = Kept {
            leaves: Vec::new(),
            results: Vec::new(),
        };
        for input in inputs.iter().filter(|_| !self.is_first) {
            input.for_each(&mut |value| {
                let leaf = value.downcast_ref::<Tensor>();
                let leaf = leaf.filter(|leaf| Object::requires_grad(*leaf) == Some(true));
                kept.leaves.extend(leaf.cloned());
            });
        }
        let results = self.stage.run(inputs)?;
        let sent = match self.loss {
            Some(loss) => {
                let loss = results.first().map(|result| loss(at, result.clone()));
                let loss = loss.ok_or_else(|| Error::msg("the last stage has a result"))??;
                self.losses.push(loss.detach()?);
                kept.results.push(loss);
                with_leaves(results, &mut |tensor| tensor.detach())?
            }
            None => with_leaves(results, &mut |tensor| {
                kept.results.push(tensor.clone());
                tensor.detach()?.into_parameter()
            })?,
        };
        self.kept.push_back(kept);
        Ok(sent)
    }

    fn backward(&mut self, _: usize, gradients: Vec<Value>) -> Result<Vec<Value>> {
        let kept = self.kept.pop_front();
        let kept = kept.ok_or_else(|| Error::msg("a micro-batch runs forward, then backward"))?;
        let Some(root) = self.root(&kept, &gradients)? else {
            return Ok(vec![Value::None; kept.leaves.len()]);
        };
        let mut gradients = root.backward()?;
        drop(root);
        let mut taken = |data: &Candle| gradients.candle_mut().remove(data).map(|g| g.detach());
        let mut sent = Vec::with_capacity(kept.leaves.len());
        for leaf in &kept.leaves {
            let gradient = taken(leaf.data("pipeline")?);
            sent.push(gradient.map_or(Value::None, |g| Value::object(Tensor::from(g))));
        }
        if let Some(parameters) = &self.parameters {
            // Candle also has gradients of what is no parameter, which would stay in memory.
            let mut kept = GradStore::default();
            for data in parameters {
                if let Some(gradient) = taken(data) {
                    kept.insert(data, gradient);
                }
            }
            *gradients.candle_mut() = kept;
        }
        match &mut self.gradients {
            Some(sum) => sum.accumulate(&gradients)?,
            none => *none = Some(gradients),
        }
        Ok(sent)
    }
}

impl Training<'_> {
    /// The number whose gradients are those of the stage: the loss, or the sum of the results, each
    /// times its gradient, in which every product passes its gradient on as it is.
    fn root(&self, kept: &Kept, gradients: &[Value]) -> Result<Option<Tensor>> {
        if self.loss.is_some() {
            let loss = kept.results.first();
            let loss = loss.filter(|loss| Object::requires_grad(*loss) == Some(true));
            return Ok(loss.cloned());
        }
        let mut root: Option<Tensor> = None;
        for (result, gradient) in kept.results.iter().zip(gradients) {
            if let Some(gradient) = gradient.downcast_ref::<Tensor>() {
                let product = (result * gradient)?.sum(..)?;
                root = Some(match root {
                    // Of different types they are added as numbers of one.
                    Some(sum) => (sum + product)?,
                    None => product,
                });
            }
        }
        Ok(root)
    }
}

/// Values with other tensors in place of those that gradients run through.
fn with_leaves(
    values: Vec<Value>,
    leaf: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Value>> {
    let values = values.into_iter().map(|value| {
        let tree = Tree::of(&value)?;
        let items = tree.flatten(value)?.into_iter();
        let items = items.map(|item| match item.downcast_ref::<Tensor>() {
            Some(tensor) if Object::requires_grad(tensor) == Some(true) => {
                leaf(tensor).map(Value::object)
            }
            _ => Ok(item),
        });
        tree.unflatten(items.collect::<Result<_>>()?)
    });
    values.collect()
}
