//! Every deliberate difference from PyTorch, each with its reason: the one table that may excuse a call.

use fx_nn::DType;

use crate::call::Call;
use crate::judge::{Difference, Kind};

/// Calls that may differ, and why.
pub struct Excuse {
    /// Names of `docs/ops.md`; none are all names.
    pub names: &'static [&'static str],
    /// The kind of difference.
    pub kind: Kind,
    /// Whether it is such a call.
    pub when: fn(&Call, &Difference) -> bool,
    /// Why.
    pub reason: &'static str,
}

/// The table.
pub const EXCUSES: &[Excuse] = &[];

/// The reason that excuses a difference.
pub fn reason(call: &Call, difference: &Difference) -> Option<&'static str> {
    EXCUSES
        .iter()
        .find(|excuse| {
            excuse.kind == difference.kind
                && (excuse.names.is_empty() || excuse.names.contains(&call.name.as_str()))
                && (excuse.when)(call, difference)
        })
        .map(|excuse| excuse.reason)
}

#[allow(dead_code, reason = "rules of the table ask it")]
fn takes(call: &Call, dtype: DType) -> bool {
    call.has(dtype)
}
