//! `Contract`: the inputs that the shapes of a graph module hold for, and the guards among their
//! sizes; compared with the arguments when a run begins.
//!
//! Invariant: `checks` are the inputs and guards in the form in which they are compared.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::checks::{Check, Checks, Later, Sizes};
use super::claim::{Claim, Guard};
use super::env::{ShapeEnv, SymbolRange};
use crate::error::{Error, Result};
use crate::ir::meta::{Meta, MetaPolicy};
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::value::Value;

/// What a graph module takes: for each input what it is, the range of each symbol, and the guards
/// that its shapes rest on. Each run of the module is checked against it.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::shapes::Spec;
/// let mut gm = symbolic_trace(traced!(|n: Int| n.floordiv(4)))?;
/// gm.infer_shapes(&[Spec::int("n").constrained("n % 4 == 0")])?;
/// assert_eq!(gm.forward::<i64>(8)?, 2);
/// let error = gm.forward::<i64>(6).unwrap_err().to_string();
/// assert!(error.starts_with("argument `n` is 6: `n` is 6, and the graph is for `n % 4 == 0`"));
/// gm.unguarded();
/// assert_eq!(gm.forward::<i64>(6)?, 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Contract {
    inputs: Vec<(Arc<str>, ValueMeta)>,
    symbols: Vec<SymbolRange>,
    guards: Vec<Guard>,
    checks: Checks,
}

/// A pass keeps it, since a node's users do not change what goes into the graph.
impl Meta for Contract {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

impl PartialEq for Contract {
    fn eq(&self, other: &Self) -> bool {
        let of = |contract: &Contract| {
            (
                contract.inputs.clone(),
                contract.symbols.clone(),
                contract.guards.clone(),
            )
        };
        of(self) == of(other)
    }
}

impl Contract {
    /// The contract of inputs with these names.
    pub(crate) fn of(inputs: Vec<(Arc<str>, ValueMeta)>, env: &ShapeEnv) -> Self {
        let inputs = inputs.into_iter();
        let inputs = inputs.map(|(name, fake)| (name, fake.entry()));
        let symbols = env.symbols().filter(|(name, ..)| !env.is_data_name(name));
        let symbols = symbols.map(|(name, low, high)| (name.into(), low, high));
        Contract::new(inputs.collect(), symbols.collect(), env.guards().to_vec())
    }

    pub(crate) fn new(
        inputs: Vec<(Arc<str>, ValueMeta)>,
        symbols: Vec<SymbolRange>,
        guards: Vec<Guard>,
    ) -> Self {
        let checks = Checks::of(&inputs, &symbols, &guards);
        Contract {
            inputs,
            symbols,
            guards,
            checks,
        }
    }

    /// The inputs by name, in the order of the placeholders.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = (&str, &ValueMeta)> {
        self.inputs.iter().map(|(name, meta)| (&**name, meta))
    }

    /// The symbols, with the smallest and the largest value that each can have.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = (&str, i64, Option<i64>)> {
        let symbols = self.symbols.iter();
        symbols.map(|(name, low, high)| (&**name, *low, *high))
    }

    /// What must hold of the sizes.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The symbols, and what is assumed of them.
    pub(crate) fn env(&self) -> ShapeEnv {
        ShapeEnv::of(&self.symbols, &self.guards)
    }

    /// Adds a guard: a pass that changes the graph by what it knows of a size records the claim
    /// that it relied on.
    pub fn add_guard(&mut self, guard: Guard) {
        if !self.guards.iter().any(|known| known.claim == guard.claim) {
            self.guards.push(guard);
            self.checks = Checks::of(&self.inputs, &self.symbols, &self.guards);
        }
    }

    /// The contract for runs in which a symbol has a value.
    ///
    /// # Errors
    /// Returns an error if there is no such symbol, or the value breaks a guard.
    pub(crate) fn specialised(&self, symbol: &str, value: i64) -> Result<Self> {
        let Some((_, low, high)) = self.symbols.iter().find(|(name, ..)| &**name == symbol) else {
            let known: Vec<&str> = self.symbols().map(|(name, ..)| name).collect();
            return Err(Error::msg(format_args!(
                "no size is `{symbol}`: the symbols are {known:?}"
            )));
        };
        if let Some(claim) = beyond(symbol, *low, *high, value) {
            return Err(Error::msg(format_args!(
                "`{symbol}` cannot be {value}: the graph is for {claim}"
            )));
        }
        let of = |name: &str| (name == symbol).then(|| Dim::from(value));
        let mut guards = Vec::with_capacity(self.guards.len());
        for guard in &self.guards {
            let claim = guard.claim.with(of)?;
            match claim.decided() {
                Some(true) => {}
                Some(false) => {
                    return Err(Error::msg(format_args!(
                        "`{symbol}` cannot be {value}: the graph is for {guard}"
                    )));
                }
                None => guards.push(Guard {
                    claim,
                    ..guard.clone()
                }),
            }
        }
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|(name, meta)| Ok((name.clone(), meta.with(&of)?)));
        let mut symbols = self.symbols.clone();
        symbols.retain(|(name, ..)| &**name != symbol);
        Ok(Contract::new(
            inputs.collect::<Result<_>>()?,
            symbols,
            guards,
        ))
    }

    /// Returns an error if these inputs of a run do not fit.
    #[inline]
    pub(crate) fn check(&self, args: &[Value]) -> Result<()> {
        let mut sizes: Sizes = SmallVec::from_elem(None, self.symbols.len());
        let mut later: Later<'_> = SmallVec::new();
        for (at, (expected, arg)) in self.checks.inputs.iter().zip(args).enumerate() {
            if let Err(mismatch) = expected.check(arg, at, &mut sizes, &mut later) {
                return Err(self.mismatch(at, arg, &mismatch));
            }
        }
        for (at, dim, size) in later {
            if !self.solve(dim, size, &mut sizes) {
                return Err(self.mismatch(at, &args[at], &format!("{dim} is not {size}")));
            }
        }
        for (check, guard) in self.checks.guards.iter().zip(&self.guards) {
            let holds = match check {
                Check::Slots {
                    claim,
                    slot,
                    number,
                } => match sizes.get(*slot).copied().flatten() {
                    Some(size) => claim.holds(size, *number),
                    None => true,
                },
                Check::Claim => self.holds(&guard.claim, &sizes),
            };
            if !holds {
                return Err(self.broken(&guard.claim, &guard.place(), &sizes, args));
            }
        }
        for ((name, low, high), size) in self.symbols.iter().zip(&sizes) {
            if let Some(size) = *size
                && let Some(claim) = beyond(name, *low, *high, size)
            {
                return Err(self.broken(&claim, "", &sizes, args));
            }
        }
        Ok(())
    }

    /// Of symbols without a value nothing is claimed.
    fn holds(&self, claim: &Claim, sizes: &Sizes) -> bool {
        let of = |name: &str| self.size_of(name, sizes);
        let mut symbols = claim.dims().flat_map(Dim::symbols);
        symbols.any(|name| of(&name).is_none()) || claim.holds(of).unwrap_or(false)
    }

    fn size_of(&self, name: &str, sizes: &Sizes) -> Option<i64> {
        let at = self
            .symbols
            .iter()
            .position(|(known, ..)| &**known == name)?;
        sizes.get(at).copied().flatten()
    }

    /// Compares an expression with a size; the only symbol in it that has no value yet gets one.
    fn solve(&self, dim: &Dim, size: i64, sizes: &mut Sizes) -> bool {
        let unknown: SmallVec<[usize; 2]> = self
            .symbols
            .iter()
            .enumerate()
            .filter(|(at, (name, ..))| {
                sizes.get(*at).copied().flatten().is_none() && dim.symbols().contains(name)
            })
            .map(|(at, _)| at)
            .collect();
        match unknown[..] {
            [] => {}
            [at] => {
                let mut at_number = |number: i64| {
                    sizes[at] = Some(number);
                    let given = dim.eval(|name| self.size_of(name, sizes)).ok();
                    sizes[at] = None;
                    given
                };
                // Where the expression is `a*n + b`, two points show what `n` is.
                let (Some(first), Some(second)) = (at_number(1), at_number(2)) else {
                    return false;
                };
                let slope = second.saturating_sub(first);
                if slope == 0 {
                    return true;
                }
                sizes[at] = Some(size.saturating_sub(first) / slope + 1);
            }
            _ => return true,
        }
        dim.eval(|name| self.size_of(name, sizes)).ok() == Some(size)
    }

    #[cold]
    fn mismatch(&self, at: usize, arg: &Value, problem: &str) -> Error {
        let (name, expected) = match self.inputs.get(at) {
            Some((name, meta)) => (&**name, meta.to_string()),
            None => ("", String::new()),
        };
        Error::msg(format_args!(
            "argument `{name}` is {}: the graph is for {expected}: {problem}. {WAYS_OUT}",
            shown(arg)
        ))
    }

    #[cold]
    fn broken(&self, claim: &Claim, place: &str, sizes: &Sizes, args: &[Value]) -> Error {
        let names: Vec<Arc<str>> = claim.dims().flat_map(Dim::symbols).collect();
        let is_about = |dim: &Dim| dim.symbols().iter().any(|name| names.contains(name));
        let mut both = self.inputs.iter().zip(args);
        let (name, arg) = match both.find(|((_, meta), _)| meta.any_dim(&is_about)) {
            Some(((name, _), arg)) => (&**name, shown(arg)),
            None => ("", String::new()),
        };
        let values = names.iter().filter_map(|name| {
            let size = self.size_of(name, sizes)?;
            Some(format!("`{name}` is {size}"))
        });
        let values: Vec<String> = values.collect();
        Error::msg(format_args!(
            "argument `{name}` is {arg}: {}, and the graph is for `{claim}`{place}. {WAYS_OUT}",
            values.join(", ")
        ))
    }
}

const WAYS_OUT: &str = "Infer its shapes with other specs, or drop the guards with `unguarded`";

/// The end of its range that a value of a symbol is beyond.
fn beyond(name: &str, low: i64, high: Option<i64>, value: i64) -> Option<Claim> {
    let symbol = || Dim::symbol(name).ok();
    match high {
        _ if value < low => Some(Claim::AtLeast(symbol()?, low)),
        Some(high) if value > high => Some(Claim::AtMost(symbol()?, high)),
        _ => None,
    }
}

fn shown(arg: &Value) -> String {
    match (arg, ValueMeta::of(arg)) {
        (Value::Int(number), _) => number.to_string(),
        (_, ValueMeta::Single(meta)) => meta.to_string(),
        _ => arg.describe(),
    }
}

/// A line for each input, then one for each guard.
impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, meta) in &self.inputs {
            writeln!(f, "{name}: {meta}")?;
        }
        for guard in &self.guards {
            writeln!(f, "{guard}")?;
        }
        Ok(())
    }
}
