//! `Role`: what quantization does with the calls of a function, in a table by function.
//!
//! Invariant: a function without a role stays in floats, and the plan says so.

use fx_core::ir::{Function, FunctionTable, NodeRef};
use fx_core::{Result, function, function_table, operator};
use fx_nn::{OpKind, ops};

/// What quantization does with the calls of a function: an entry of a [`function_table!`](fx_core::function_table),
/// which users' functions may have too.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::Role;
/// assert_eq!(Role::of(function!(ops::conv2d))?, Some(Role::Weighted { weight: "weight", axis: 0 }));
/// assert_eq!(Role::of(function!(ops::reshape))?, Some(Role::Shared));
/// assert_eq!(Role::of(function!(ops::exp))?, None);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A product with a weight, whose channels are along a dim.
    Weighted {
        /// The parameter that is the weight.
        weight: &'static str,
        /// The dim of the weight's channels.
        axis: usize,
    },
    /// Computed of integers, with a range of its own for the result.
    Computed,
    /// The result has numbers of the input, or between them: it shares the input's scale and zero point.
    Shared,
    /// As [`Shared`](Role::Shared), and behind a product or a sum a part of it: only the result is rounded.
    Bounded,
}

function_table! { Role {
    function!(ops::linear) => Role::Weighted { weight: "weight", axis: 0 },
    function!(ops::conv1d) => Role::Weighted { weight: "weight", axis: 0 },
    function!(ops::conv2d) => Role::Weighted { weight: "weight", axis: 0 },
    function!(ops::conv3d) => Role::Weighted { weight: "weight", axis: 0 },
    operator::add => Role::Computed,
    operator::mul => Role::Computed,
    operator::matmul => Role::Computed,
    function!(ops::matmul) => Role::Computed,
    function!(ops::bmm) => Role::Computed,
    function!(ops::cat) => Role::Computed,
    function!(ops::relu) => Role::Bounded,
    function!(ops::relu6) => Role::Bounded,
    function!(ops::hardtanh) => Role::Bounded,
    function!(ops::clamp) => Role::Bounded,
    function!(ops::max_pool1d) => Role::Shared,
    function!(ops::max_pool2d) => Role::Shared,
    function!(ops::max_pool3d) => Role::Shared,
    function!(ops::adaptive_max_pool1d) => Role::Shared,
    function!(ops::adaptive_max_pool2d) => Role::Shared,
    function!(ops::adaptive_max_pool3d) => Role::Shared,
    function!(ops::avg_pool1d) => Role::Computed,
    function!(ops::avg_pool2d) => Role::Computed,
    function!(ops::avg_pool3d) => Role::Computed,
    function!(ops::adaptive_avg_pool1d) => Role::Computed,
    function!(ops::adaptive_avg_pool2d) => Role::Computed,
    function!(ops::adaptive_avg_pool3d) => Role::Computed,
} }

impl Role {
    /// The role of the function that a node calls.
    pub(crate) fn of_node(node: NodeRef<'_>) -> Result<Option<Role>> {
        Ok(node.function().map(Role::of).transpose()?.flatten())
    }

    /// The role of a function: its entry, or that of a view of a tensor.
    ///
    /// # Errors
    /// Returns an error if an entry is there twice.
    pub fn of(function: Function) -> Result<Option<Role>> {
        if let Some(role) = FunctionTable::<Role>::registered()?.get(function) {
            return Ok(Some(*role));
        }
        let kind = FunctionTable::<OpKind>::registered()?.get(function);
        Ok(matches!(kind, Some(OpKind::View)).then_some(Role::Shared))
    }
}
