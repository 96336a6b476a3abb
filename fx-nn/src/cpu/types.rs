//! Which types of floats code computes, in `f32`, and which a node gives.
//!
//! Invariant: `f64` is none of them.

use std::collections::HashMap;

use fx_core::ir::{NodeRef, ValueMeta};
use fx_core::value::{DType, NodeId};
use fx_kernels::convert::Half;

/// The type of each node that gives tensors of 16 bits.
pub(super) type Halves = HashMap<NodeId, Half>;

/// The element type that is known of the tensor that a node gives.
pub(super) fn dtype_of(node: NodeRef<'_>) -> Option<DType> {
    node.meta::<ValueMeta>()?.tensor()?.dtype
}

/// The type, if code computes with it, in `f32`.
pub(super) fn float_type(dtype: DType) -> Option<DType> {
    (dtype == DType::F32 || half_of(dtype).is_some()).then_some(dtype)
}

/// The type of 16 bits that it is.
pub(super) fn half_of(dtype: DType) -> Option<Half> {
    match dtype {
        DType::F16 => Some(Half::F16),
        DType::BF16 => Some(Half::Bf16),
        _ => None,
    }
}

/// A type of 16 bits, as the graph names it.
pub(super) fn dtype(half: Half) -> DType {
    match half {
        Half::F16 => DType::F16,
        Half::Bf16 => DType::BF16,
    }
}
