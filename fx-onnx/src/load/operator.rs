//! `Operator`: an entry of the table of operators.
//!
//! Invariant: what is known of an operator stands in its entry.

use fx_nn::Result;

use super::checks::Constants;
use super::node::NodeCx;
use super::value::Given;

/// What reads a node.
pub(super) type Rule = fn(&mut NodeCx<'_>) -> Given;

/// An operator that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub name: &'static str,
    /// The domain; empty for ONNX's own.
    pub domain: &'static str,
    /// The first version of the domain that is read by this entry. Older ones are read by an entry of a smaller one.
    pub since: i64,
    /// Refuses inputs and attributes that the operator does not have, before the rule reads them.
    pub check: Option<fn(&NodeCx<'_>) -> Result<()>>,
    /// How many elements are made of constants at most; without it, as many as the inputs have when they are broadcast.
    pub made: Option<fn(&Constants<'_>) -> u64>,
    pub rule: Rule,
    /// The inputs where a layer has its weights.
    pub weights: &'static [usize],
    /// The inputs whose integers stay integers in reference form.
    pub integers: &'static [usize],
    /// Whether the result shares the elements of its input.
    pub is_view: bool,
    /// Whether it may draw random numbers.
    pub draws: bool,
    /// Whether its attributes may be any numbers, and not only those of sizes.
    pub any_numbers: bool,
    /// Whether its rule takes tensors of any element type. Others get what fx only stores in a type that it computes in.
    pub any_type: bool,
    /// Whether its results are indices, whatever the elements are.
    pub indices: bool,
    /// What it does with text.
    pub text: OfText,
}

/// What an operator does with tensors of text among its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfText {
    /// It takes none.
    Refused,
    /// Its rule reads them.
    Read,
    /// It gives elements of them at other places.
    Moved,
    /// It asks for their sizes alone.
    Sized,
}

/// An entry: an operator of ONNX's own, of any version.
pub(super) const fn op(name: &'static str, rule: Rule) -> Operator {
    Operator {
        name,
        domain: "",
        since: 1,
        check: None,
        made: None,
        rule,
        weights: &[],
        integers: &[],
        is_view: false,
        draws: false,
        any_numbers: false,
        any_type: false,
        indices: false,
        text: OfText::Refused,
    }
}

impl Operator {
    pub const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }

    pub const fn since(mut self, version: i64) -> Self {
        self.since = version;
        self
    }

    pub const fn check(mut self, check: fn(&NodeCx<'_>) -> Result<()>) -> Self {
        self.check = Some(check);
        self
    }

    pub const fn makes(mut self, made: fn(&Constants<'_>) -> u64) -> Self {
        self.made = Some(made);
        self
    }

    pub const fn weights(mut self, inputs: &'static [usize]) -> Self {
        self.weights = inputs;
        self
    }

    pub const fn integers(mut self, inputs: &'static [usize]) -> Self {
        self.integers = inputs;
        self
    }

    pub const fn views(mut self) -> Self {
        self.is_view = true;
        self
    }

    pub const fn draws(mut self) -> Self {
        self.draws = true;
        self
    }

    pub const fn any_numbers(mut self) -> Self {
        self.any_numbers = true;
        self
    }

    pub const fn indices(mut self) -> Self {
        self.indices = true;
        self
    }

    pub const fn any_type(mut self) -> Self {
        self.any_type = true;
        self
    }

    pub const fn reads_text(mut self) -> Self {
        self.text = OfText::Read;
        self
    }

    pub const fn moves_text(mut self) -> Self {
        self.text = OfText::Moved;
        self
    }

    pub const fn sizes_text(mut self) -> Self {
        self.text = OfText::Sized;
        self
    }
}
