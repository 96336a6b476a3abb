//! Scopes without gradients.
//!
//! Invariant: what is computed in such a scope remembers nothing of how it was computed.

use std::cell::Cell;

use crate::scope;

thread_local! {
    /// How many scopes without gradients the thread is in.
    static WITHOUT: Cell<usize> = const { Cell::new(0) };
    /// How many of them began while a trace recorded, which does not see them.
    static UNSEEN: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` without recording for autograd: no gradients run through its results, and their
/// operands are freed at once.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::Linear::new(4, 4)?;
/// let x = Tensor::ones((1, 4))?;
/// assert!(layer.forward(&x)?.requires_grad()?);
/// assert!(!fx_nn::no_grad(|| layer.forward(&x))?.requires_grad()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// A graph does not have such scopes: in a function whose gradient is taken by `func`, one is an error, and `detach`
/// says what no gradient runs through.
pub fn no_grad<R>(body: impl FnOnce() -> R) -> R {
    if fx_core::trace::with_context(|_| ()).is_some() {
        UNSEEN.set(UNSEEN.get() + 1);
    }
    scope::within(&WITHOUT, body)
}

/// How many scopes without gradients no trace has seen.
pub(crate) fn unseen() -> usize {
    UNSEEN.get()
}

/// Whether operations on this thread record what gradients need: they do, but inside of [`no_grad`].
///
/// ```
/// assert!(fx_nn::is_grad_enabled());
/// assert!(!fx_nn::no_grad(fx_nn::is_grad_enabled));
/// ```
pub fn is_grad_enabled() -> bool {
    WITHOUT.get() == 0
}

/// The result of an operation, without its history where there are no gradients.
#[inline]
pub(super) fn remembered(data: candle_core::Tensor) -> candle_core::Tensor {
    if data.track_op() && !data.is_variable() && WITHOUT.get() > 0 {
        data.detach()
    } else {
        data
    }
}
