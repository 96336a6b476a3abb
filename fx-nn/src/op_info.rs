//! `OpInfo`: all that is known of an operation, read from the tables that `#[op]` fills.
//!
//! Invariant: each fact stands in one table, under the function itself.

use fx_core::Result;
use fx_core::ir::{Function, FunctionTable};
use fx_core::passes::CoreSet;
use fx_core::shapes::ShapeRule;

use crate::MultiplyAdds;
use crate::cpu::CpuLowering;
use crate::func::{Batching, Derivative};
use crate::lowering::Composed;
use crate::op_kind::{NoGradient, OpKind};

/// What a function is to the core set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A member: what others are written by.
    Member,
    /// Written by others of it, in every format.
    Decomposed,
    /// A member that formats without a form for it write by others.
    Composed,
    /// Neither.
    None,
}

/// All that is known of an operation.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::{Form, OpInfo};
/// let info = OpInfo::of(function!(ops::hypot))?;
/// assert_eq!(info.form, Form::Composed);
/// assert!(info.rule.is_some() && info.no_gradient.is_none());
/// assert_eq!(OpInfo::of(function!(ops::floor))?.no_gradient.map(|no| no.0), Some("is flat"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OpInfo {
    /// The function.
    pub function: Function,
    /// How the dims of the result relate to those of the arguments.
    pub kind: Option<OpKind>,
    /// The shape and the type of the result, and what is refused.
    pub rule: Option<ShapeRule>,
    /// What it is to the core set.
    pub form: Form,
    /// How many multiplications with an addition it takes, if it takes any.
    pub cost: Option<MultiplyAdds>,
    /// How compiled code computes it.
    pub cpu: Option<CpuLowering>,
    /// Why no gradient runs through it.
    pub no_gradient: Option<NoGradient>,
    /// How it is differentiated, if not by the functions that it is written by.
    pub derivative: Option<Derivative>,
    /// How it is called for many examples, if its kind does not say it.
    pub batching: Option<Batching>,
}

impl OpInfo {
    /// The record of a function.
    ///
    /// # Errors
    /// Returns an error if a fact is registered twice.
    pub fn of(function: Function) -> Result<Self> {
        let composed = entry::<Composed>(function)?;
        Ok(OpInfo {
            function,
            kind: entry(function)?,
            rule: entry(function)?,
            form: match FunctionTable::<CoreSet>::registered()?.get(function) {
                Some(CoreSet::Decomposed(_)) => Form::Decomposed,
                _ if composed.is_some() => Form::Composed,
                Some(CoreSet::Member) => Form::Member,
                _ => Form::None,
            },
            cost: entry(function)?,
            cpu: entry(function)?,
            no_gradient: entry(function)?,
            derivative: entry(function)?,
            batching: entry(function)?,
        })
    }
}

fn entry<T: Copy + Send + Sync + 'static>(function: Function) -> Result<Option<T>> {
    Ok(FunctionTable::<T>::registered()?.get(function).copied())
}
