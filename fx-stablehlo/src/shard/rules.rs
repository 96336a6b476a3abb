//! `ShardRules`: which axes share the dims of parameters, inputs and outputs, by pattern; rules of one path agree.

use std::sync::Arc;

use super::sharding::DimSharding;

/// A pattern, and the dims of what it matches.
#[derive(Debug, Clone)]
pub(super) struct RuleOf {
    pub pattern: String,
    pub dims: Vec<DimSharding>,
    /// Whether it may match nothing.
    pub is_optional: bool,
}

/// The axes of parameters, inputs and outputs, by patterns of paths
/// ([`PathPattern`](fx_nn::module::PathPattern)).
///
/// A pattern is compared with the paths of parameters and buffers, with the names of inputs, and with those of outputs:
/// `output` if there is one, `output.0` and so on for several. In a rule `_` is a dim that each device has in full, `?`
/// one that propagation decides about, and `["a", "b"]` one that is shared along two axes.
///
/// ```
/// use fx_stablehlo::shard::shard_rules;
/// let rules = shard_rules! {
///     "layers.*.{q,k,v}_proj.weight" => ["model", _],
///     "layers.*.o_proj.weight" => [_, "model"],
///     "tokens" => [["data", "replica"], ?],
/// };
/// assert_eq!(rules.len(), 3);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ShardRules {
    pub(super) rules: Vec<RuleOf>,
    /// The axis of the first dim of inputs that no rule is for.
    pub(super) batch: Option<Arc<str>>,
}

impl ShardRules {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(
        mut self,
        pattern: impl Into<String>,
        dims: impl IntoIterator<Item = DimSharding>,
    ) -> Self {
        self.rules.push(RuleOf {
            pattern: pattern.into(),
            dims: dims.into_iter().collect(),
            is_optional: false,
        });
        self
    }

    /// Adds a rule that may match nothing.
    #[must_use]
    pub fn optional(
        mut self,
        pattern: impl Into<String>,
        dims: impl IntoIterator<Item = DimSharding>,
    ) -> Self {
        self = self.rule(pattern, dims);
        if let Some(last) = self.rules.last_mut() {
            last.is_optional = true;
        }
        self
    }

    /// These rules and others.
    #[must_use]
    pub fn and(mut self, other: ShardRules) -> Self {
        self.rules.extend(other.rules);
        self.batch = other.batch.or(self.batch);
        self
    }

    /// The number of rules with a pattern.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.batch.is_none()
    }

    /// The first dim of each input is shared along an axis; rules for an input stand over this.
    pub fn data_parallel(axis: &str) -> Self {
        ShardRules {
            rules: Vec::new(),
            batch: Some(axis.into()),
        }
    }
}

/// [`ShardRules`] by pattern: each dim is the name of an axis, several in brackets, `_` for none, or `?` for what
/// propagation decides.
#[doc(hidden)]
#[macro_export]
macro_rules! __shard_rules {
    ($($pattern:literal => [$($dims:tt)*]),* $(,)?) => {
        $crate::shard::ShardRules::new()
            $(.rule($pattern, $crate::__shard_dims!([] $($dims)*)))*
    };
}

/// The dims of a rule.
#[doc(hidden)]
#[macro_export]
macro_rules! __shard_dims {
    ([$($done:expr),*]) => { [$($done),*] };
    ([$($done:expr),*] _ $(, $($rest:tt)*)?) => {
        $crate::__shard_dims!([$($done,)* $crate::shard::DimSharding::replicated()] $($($rest)*)?)
    };
    ([$($done:expr),*] ? $(, $($rest:tt)*)?) => {
        $crate::__shard_dims!([$($done,)* $crate::shard::DimSharding::open()] $($($rest)*)?)
    };
    ([$($done:expr),*] [$($axis:expr),*] $(, $($rest:tt)*)?) => {
        $crate::__shard_dims!([$($done,)* $crate::shard::DimSharding::axes([$($axis),*])] $($($rest)*)?)
    };
    ([$($done:expr),*] $axis:literal $(, $($rest:tt)*)?) => {
        $crate::__shard_dims!([$($done,)* $crate::shard::DimSharding::from($axis)] $($($rest)*)?)
    };
}
