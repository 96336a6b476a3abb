//! `Question`: what functions ask of a tensor's sizes. Where they are known, an answer is a number that needs no call.

use fx_core::function;
use fx_core::ir::Function;

use crate::ops;

/// What a function asks of a tensor's sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// How many dims it has.
    Rank,
    /// The size of its parameter `dim`.
    Size,
    /// How many elements it has.
    Elements,
}

impl Question {
    /// What a function asks of its `x`.
    ///
    /// ```
    /// use fx_nn::lowering::Question;
    /// use fx_nn::prelude::*;
    /// assert_eq!(Question::of(function!(ops::size)), Some(Question::Size));
    /// assert_eq!(Question::of(function!(ops::relu)), None);
    /// ```
    pub fn of(function: Function) -> Option<Self> {
        let all = [
            (function!(ops::tensor_dim), Question::Rank),
            (function!(ops::tensor_size), Question::Size),
            (function!(ops::size), Question::Size),
            (function!(ops::tensor_numel), Question::Elements),
        ];
        let found = all.into_iter().find(|(asks, _)| *asks == function);
        found.map(|(_, question)| question)
    }
}
