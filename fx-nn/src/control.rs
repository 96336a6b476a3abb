//! Control flow that a graph decides when it runs: that of `fx_core`, and scans over tensors.
//!
//! Invariant: results of steps are stacked along a new first dim.

use crate::op;
use fx_core::function;
use fx_core::prelude::*;
use fx_core::trace::{List, Output};

pub use fx_core::control::*;

use crate::ops;
use crate::tensor::Tensor;

/// Runs a step on a state and each item of `xs` along its first dim (`jax.lax.scan`): returns the
/// state after the last one, and what the steps gave, stacked along a new first dim.
///
/// `xs`, and what a step gives besides the state, are tensors or structures of them. The graph runs
/// one recorded step for as many items as there are.
///
/// ```
/// use fx_nn::control;
/// use fx_nn::prelude::*;
///
/// /// A recurrent layer over a sequence `[T, B, I]` of any length.
/// #[derive(Module)]
/// struct Rnn {
///     cell: nn::RNNCell,
/// }
///
/// #[trace]
/// impl Rnn {
///     fn forward(&self, xs: &Tensor, h: &Tensor) -> Result<(Tensor, Tensor)> {
///         control::scan(h.clone(), xs.clone(), |h: Tensor, x: Tensor| {
///             let h = self.cell.forward(&x, Some(&h))?;
///             Ok((h.clone(), h))
///         })
///     }
/// }
///
/// let rnn = Rnn { cell: nn::RNNCell::new(3, 4)? };
/// let gm = symbolic_trace(&rnn)?;
/// let h = Tensor::zeros((2, 4))?;
/// for length in [1, 5] {
///     let xs = Tensor::randn((length, 2, 3))?;
///     let (last, all) = rnn.forward(&xs, &h)?;
///     let (graph_last, graph_all): (Tensor, Tensor) = gm.forward((&xs, &h))?;
///     assert_eq!(all.to_vec()?.len(), length * 2 * 4);
///     assert_eq!(last.to_vec()?, graph_last.to_vec()?);
///     assert_eq!(all.to_vec()?, graph_all.to_vec()?);
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if a step fails or changes the structure of the state, the items have different
/// lengths, or there are none.
#[track_caller]
pub fn scan<S: Output, X: Output, Y: Output>(
    init: S,
    xs: X,
    step: impl FnMut(S, X) -> Result<(S, Y)>,
) -> Result<(S, Y)> {
    fx_core::control::scan(function!(stacked), init, xs, step)
}

/// A list of tensors of one shape as one tensor, along a new first dim: what [`scan`] makes of the
/// results of its steps. Unlike [`stack`](ops::stack), it takes a list whose length the graph does
/// not know.
///
/// ```
/// use fx_nn::control;
/// use fx_nn::prelude::*;
/// let items = List::from(vec![Tensor::zeros(3)?, Tensor::ones(3)?]);
/// assert_eq!(control::stacked(items)?.dims()?, [2, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are no tensors, or their shapes differ.
#[op(member, path = "fx_nn::control::stacked")]
pub fn stacked(items: List<Tensor>) -> Result<Tensor> {
    ops::stack(items.known(), 0)
}

/// Runs a function on each item of `xs` along its first dim (`jax.lax.map`): what it gives, stacked
/// along a new first dim.
///
/// ```
/// use fx_nn::control;
/// use fx_nn::prelude::*;
/// let squares = traced!(|xs: &Tensor| {
///     control::map(xs.clone(), |x: Tensor| x.unsqueeze(1)?.matmul(&x.unsqueeze(0)?))
/// });
/// let gm = symbolic_trace(squares)?;
/// let xs = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], (2, 2))?;
/// let products: Tensor = gm.forward(&xs)?;
/// assert_eq!(products.to_vec()?, [1.0, 2.0, 2.0, 4.0, 9.0, 12.0, 12.0, 16.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the function fails, the items have different lengths, or there are none.
#[track_caller]
pub fn map<X: Output, Y: Output>(xs: X, mut f: impl FnMut(X) -> Result<Y>) -> Result<Y> {
    let (_, results) = scan((), xs, |(), x| Ok(((), f(x)?)))?;
    Ok(results)
}
