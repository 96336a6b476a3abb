//! What kind of operation a function is, and why no gradient runs through it: entries of tables.

use fx_core::{function, function_table};

use crate::optim;

/// How the dims of a result relate to those of the arguments: an entry of a [`function_table!`](fx_core::function_table).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpKind {
    /// Each element of a tensor by itself.
    Unary,
    /// Each pair of elements, broadcast.
    Binary,
    /// Each pair of elements, broadcast, compared.
    Compare,
    /// The elements along some dims become one.
    Reduce,
    /// The elements along a dim, together; the shape stays.
    Along,
    /// The same elements, in another shape or order.
    View,
    /// Some of the elements.
    Pick,
    /// Windows of elements become one each.
    Pool,
    /// Windows of elements by weights.
    Conv,
    /// Elements by the statistics of others.
    Norm,
    /// Elements and targets become a loss.
    Loss,
    /// Random numbers.
    Draw,
    /// A new tensor, of a shape.
    Create,
    /// Tensors after a step, which compiled code changes where they are.
    Update,
}

/// Why no gradient runs through a function: an entry of a [`function_table!`](fx_core::function_table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoGradient(pub &'static str);

function_table! { OpKind {
    function!(optim::fused_adam) => OpKind::Update,
    function!(optim::fused_sgd) => OpKind::Update,
} }
