//! The backward pass, on a stack that is large enough for its graph.

use candle_core::backprop::GradStore;
use fx_core::{Error, Result};

use super::Tensor;
use crate::error::Fx;
use crate::kernels::chain;

/// Stack for each result that a backward pass visits: candle takes about 300 bytes for each of the nodes behind one.
const STACK_EACH: usize = 4 << 10;

/// Stack for a backward pass over a graph of any few operations.
const STACK_LEAST: usize = 64 << 20;

impl Tensor {
    /// The gradients of this one number with respect to every parameter that it was computed from: candle's `backward`,
    /// on a stack that is large enough for the graph, which candle's own walks by recursion.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let w = Tensor::from_vec(vec![2.0f32, 3.0], 2)?.into_parameter()?;
    /// let gradients = (&w * &w)?.sum(..)?.backward()?;
    /// let of_w = gradients.get(w.candle()?).map(|g| Tensor::from(g.clone()).to_vec()).transpose()?;
    /// assert_eq!(of_w, Some(vec![4.0, 6.0]));
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the tensor is symbolic, an operation has no gradient, or there is no stack for so large a graph.
    pub fn backward(&self) -> Result<GradStore> {
        let data = self.data("backward")?;
        let results = chain::results();
        let stack = results
            .saturating_mul(STACK_EACH)
            .saturating_add(STACK_LEAST);
        std::thread::scope(|scope| {
            let pass = std::thread::Builder::new()
                .stack_size(stack)
                .spawn_scoped(scope, || data.backward());
            match pass.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(gradients)) => gradients.fx(),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(error) => Err(Error::msg(format_args!(
                    "backward: no stack of {stack} bytes for a graph of about {results} operations: {error}"
                ))),
            }
        })
    }
}
