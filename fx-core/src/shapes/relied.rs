//! `ReliedOn`: the shape that an edit relied on when it replaced a size by a number.
//!
//! Invariant: a run that computes the node compares its result, so that a wrong rule fails and
//! gives no wrong number.

use smallvec::SmallVec;

use super::checks::{Expected, Sizes};
use crate::error::{Error, Result};
use crate::ir::meta::{Meta, MetaPolicy};
use crate::ir::value_meta::ValueMeta;
use crate::value::value::Value;

/// An entry of a node from which a size was taken at the time of an edit.
#[derive(Debug, Clone)]
pub(crate) struct ReliedOn {
    meta: ValueMeta,
    expected: Expected,
}

impl Meta for ReliedOn {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

impl ReliedOn {
    pub fn new(meta: ValueMeta) -> Self {
        let expected = Expected::of(&meta, &|_| None);
        ReliedOn { meta, expected }
    }

    /// The shape.
    pub fn meta(&self) -> &ValueMeta {
        &self.meta
    }

    /// Returns an error if a result has another shape; sizes without a number fit.
    pub fn check(&self, result: &Value) -> Result<()> {
        let mut sizes: Sizes = SmallVec::new();
        let checked = self
            .expected
            .check(result, 0, &mut sizes, &mut SmallVec::new());
        checked.map_err(|mismatch| {
            Error::msg(format_args!(
                "the result is {}, and the graph relies on {}: {mismatch}; correct the shape rule of the call, or trace \
                 without `inputs`",
                result.describe(),
                self.meta
            ))
        })
    }
}
