//! Gradients: the backward pass, on a stack that is large enough for its graph.

use candle_core::backprop::GradStore;
use fx_core::{Error, Result};

use super::Tensor;
use crate::error::Fx;
use crate::kernels::chain;

/// Stack for each result that a backward pass visits: candle takes about 300 bytes for each of the nodes behind one.
const STACK_EACH: usize = 4 << 10;

/// Stack for a backward pass over a graph of any few operations.
const STACK_LEAST: usize = 64 << 20;

/// The gradients of one number with respect to the parameters that it was computed from.
#[derive(Debug)]
pub struct Gradients(GradStore);

impl Gradients {
    /// The gradient with respect to a parameter; `None` if the number does not depend on it.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    pub fn get(&self, tensor: &Tensor) -> Result<Option<Tensor>> {
        let gradient = self.0.get(tensor.data("grad")?);
        Ok(gradient.map(|gradient| Tensor::from(gradient.detach())))
    }

    /// Replaces the gradient with respect to a parameter, for the optimizer's step to take.
    ///
    /// # Errors
    /// Returns an error if a tensor is symbolic, or the gradient has a different shape than the
    /// parameter.
    pub fn set(&mut self, tensor: &Tensor, gradient: &Tensor) -> Result<()> {
        let (own, new) = (tensor.data("grad")?, gradient.data("grad")?);
        if own.dims() != new.dims() {
            return Err(Error::msg(format_args!(
                "a gradient of shape {:?} belongs to no parameter of shape {:?}",
                new.dims(),
                own.dims()
            )));
        }
        self.0.insert(own, new.detach());
        Ok(())
    }

    /// Adds the gradients of another number, as those of several batches before one step are added.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = Tensor::from_vec(vec![2.0f32], 1)?.into_parameter()?;
    /// let mut gradients = w.square()?.sum(..)?.backward()?;
    /// gradients.accumulate(&(&w * 3.0)?.sum(..)?.backward()?)?;
    /// assert_eq!(gradients.get(&w)?.map(|g| g.to_vec()).transpose()?, Some(vec![7.0]));
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of candle's addition.
    pub fn accumulate(&mut self, other: &Gradients) -> Result<()> {
        for id in other.0.get_ids() {
            if let Some(new) = other.0.get_id(*id) {
                let sum = match self.0.get_id(*id) {
                    Some(own) => (own + new).fx()?,
                    None => new.clone(),
                };
                self.0.insert_id(*id, sum);
            }
        }
        Ok(())
    }

    /// Candle's gradients, by candle's tensors.
    pub fn candle(&self) -> &GradStore {
        &self.0
    }

    /// Candle's gradients, to change.
    pub fn candle_mut(&mut self) -> &mut GradStore {
        &mut self.0
    }
}

impl Tensor {
    /// The gradients of this one number with respect to every parameter that it was computed from:
    /// candle's `backward`, which walks the graph by recursion, on a stack that is large enough for
    /// it.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = Tensor::from_vec(vec![2.0f32, 3.0], 2)?.into_parameter()?;
    /// let gradients = (&w * &w)?.sum(..)?.backward()?;
    /// assert_eq!(gradients.get(&w)?.map(|g| g.to_vec()).transpose()?, Some(vec![4.0, 6.0]));
    ///
    /// let several = (&w * &w)?.backward().unwrap_err().to_string();
    /// assert!(several.contains("shape [2] is not one number"), "{several}");
    /// let detached = w.detach()?.sum(..)?.backward().unwrap_err().to_string();
    /// assert!(detached.contains("depends on no parameter"), "{detached}");
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic, is not one number, or was computed from no
    /// parameter, if an operation has no gradient, or if no stack can be allocated for so large a
    /// graph.
    pub fn backward(&self) -> Result<Gradients> {
        let data = self.data("backward")?;
        if data.elem_count() != 1 {
            return Err(Error::msg(format_args!(
                "backward: a tensor of shape {:?} is not one number: reduce it first, with `.mean(..)` or `.sum(..)`",
                data.dims()
            )));
        }
        if !data.track_op() {
            return Err(Error::msg(
                "backward: this number depends on no parameter: none has gradients (`nn::set_requires_grad` changes that), or it was computed without recording (`detach`, `no_grad`, compiled code, which is for inference and freezes its parameters)",
            ));
        }
        let results = chain::results();
        let stack = results
            .saturating_mul(STACK_EACH)
            .saturating_add(STACK_LEAST);
        std::thread::scope(|scope| {
            let pass = std::thread::Builder::new()
                .stack_size(stack)
                .spawn_scoped(scope, || data.backward());
            match pass.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(gradients)) => gradients.map(Gradients).fx(),
                Ok(Err(panic)) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                    Err(Error::msg(format_args!(
                        "backward: the gradient of an operation panics: {}",
                        text.unwrap_or("it says nothing")
                    )))
                }
                Err(error) => Err(Error::msg(format_args!(
                    "backward: no stack of {stack} bytes for a graph of about {results} operations: {error}"
                ))),
            }
        })
    }

    /// The gradients of this one number with respect to some tensors, PyTorch's `autograd.grad`:
    /// zeros if it does not depend on one.
    ///
    /// # Errors
    /// Returns the errors of [`backward`](Tensor::backward), and an error if one of the tensors is
    /// not a parameter, so that autograd did not record it.
    pub fn grad(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let gradients = self.backward()?;
        let of = |input: &&Tensor| match gradients.get(input)? {
            Some(gradient) => Ok(gradient),
            None if input.requires_grad()? => {
                let zeros = input.data("grad")?.detach().zeros_like().fx()?;
                Ok(input.with_data(zeros))
            }
            None => Err(Error::msg(
                "grad: a tensor is not a parameter: make it one with `into_parameter` before computing with it",
            )),
        };
        inputs.iter().map(of).collect()
    }

    /// Whether gradients are computed with respect to this tensor, or run through it.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    pub fn requires_grad(&self) -> Result<bool> {
        match self.as_fake() {
            Some(fake) => Ok(fake.requires_grad()),
            None => Ok(self.data("requires_grad")?.track_op()),
        }
    }
}
