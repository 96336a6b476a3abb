//! `ShapeEnv`: what is known of the symbols of sizes, and what was assumed of them.
//!
//! Invariant: a question that the ranges of the symbols do not decide is answered with yes, and the
//! answer is a guard.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::claim::{Claim, Guard};
use crate::error::{Error, Result};
use crate::ir::value_meta::ValueMeta;
use crate::location::SourceLocation;
use crate::value::dim::Dim;

/// A symbol with its smallest and its largest value.
pub(crate) type SymbolRange = (Arc<str>, i64, Option<i64>);

/// The symbols of sizes, and the claims about them that shapes rest on.
#[derive(Debug, Clone, Default)]
pub struct ShapeEnv {
    /// The smallest and the largest value of each symbol.
    symbols: IndexMap<Arc<str>, (i64, Option<i64>), FxBuildHasher>,
    guards: Vec<Guard>,
    /// Claims about sizes that depend on data.
    assumptions: Vec<Guard>,
    claimed: FxHashSet<Claim>,
    /// The symbols of which a claim says what they are.
    fixed: FxHashMap<Arc<str>, i64>,
    /// The values that decide questions which no range decides.
    hints: FxHashMap<Arc<str>, i64>,
    /// The symbols of such sizes.
    data: FxHashSet<Arc<str>>,
    /// Whether a symbol may be negative: one of a number that is no size.
    has_numbers: bool,
    /// The ranges that claims have narrowed, as they were before, in order.
    narrowed: Vec<Narrowed>,
    fresh: usize,
    /// The place of the node whose shape is asked for.
    pub(crate) location: Option<SourceLocation>,
    pub(crate) module: String,
}

/// The range of a symbol before a claim narrowed it.
#[derive(Debug, Clone)]
struct Narrowed {
    symbol: Arc<str>,
    range: (i64, Option<i64>),
    fixed: Option<i64>,
}

/// How many ranges were narrowed when something began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeMark(usize);

impl ShapeEnv {
    pub(super) fn of(symbols: &[SymbolRange], guards: &[Guard]) -> Self {
        let mut env = ShapeEnv::default();
        for (name, low, high) in symbols {
            env.symbols.insert(name.clone(), (*low, *high));
            env.has_numbers |= *low < 0;
            if *high == Some(*low) {
                env.fixed.insert(name.clone(), *low);
            }
        }
        env.claimed = guards.iter().map(|guard| guard.claim.clone()).collect();
        env.guards = guards.to_vec();
        env
    }

    /// The claims, in the order of the nodes that need them.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The claims about sizes that depend on data, which no input decides.
    pub fn assumptions(&self) -> &[Guard] {
        &self.assumptions
    }

    /// Whether a symbol is of what depends on data.
    pub(super) fn is_data_name(&self, name: &str) -> bool {
        self.data.contains(name)
    }

    /// The symbols, with the smallest and the largest value that each can have.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, i64, Option<i64>)> {
        let symbols = self.symbols.iter();
        symbols.map(|(name, (low, high))| (&**name, *low, *high))
    }

    /// Makes the symbols of a size of a tensor known: each is at least 1.
    pub(crate) fn declare(&mut self, dim: &Dim) {
        for name in dim.symbols() {
            let is_data = self.data.contains(&name);
            let (low, _) = self.symbols.entry(name).or_insert((1, None));
            // It was declared as a number before, of which nothing is known.
            if *low == i64::MIN && !is_data {
                *low = 1;
            }
        }
    }

    /// Makes the symbols of a number known: each is any whole number, unless it is a size too.
    pub(crate) fn declare_number(&mut self, dim: &Dim) {
        for name in dim.symbols() {
            self.symbols.entry(name).or_insert((i64::MIN, None));
            self.has_numbers = true;
        }
    }

    /// Makes the symbols in a value known: of sizes, and of numbers.
    pub(crate) fn declare_value(&mut self, value: &ValueMeta) {
        match value {
            ValueMeta::Single(meta) => meta.shape.iter().for_each(|dim| self.declare(dim)),
            ValueMeta::Int(dim) => self.declare_number(dim),
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                items.iter().for_each(|item| self.declare_value(item));
            }
            ValueMeta::Dict(items) => items.iter().for_each(|(_, item)| self.declare_value(item)),
            ValueMeta::Slice(ends) => ends.iter().for_each(|end| self.declare_value(end)),
            ValueMeta::Repeated(item, length) => {
                self.declare_value(item);
                self.declare(length);
            }
            ValueMeta::Float(_)
            | ValueMeta::Bool(_)
            | ValueMeta::Plain(_)
            | ValueMeta::Unranked(_)
            | ValueMeta::Opaque(_) => {}
        }
    }

    /// Where the ranges are as they are now, for [`widen`](ShapeEnv::widen).
    pub(crate) fn ranges(&self) -> RangeMark {
        RangeMark(self.narrowed.len())
    }

    /// Gives symbols the ranges back that they had at a mark: what was claimed since holds on one way only, and decides
    /// nothing on another.
    pub(crate) fn widen(&mut self, mark: RangeMark) {
        for Narrowed {
            symbol,
            range,
            fixed,
        } in self.narrowed.drain(mark.0..).rev()
        {
            match fixed {
                Some(number) => self.fixed.insert(symbol.clone(), number),
                None => self.fixed.remove(&symbol),
            };
            self.symbols.insert(symbol, range);
        }
    }

    /// Gives a symbol a smaller range, and a value if that is one number.
    fn narrow(&mut self, symbol: &str, range: (i64, Option<i64>), fixed: Option<i64>) {
        let symbol: Arc<str> = symbol.into();
        let before = self.symbols.insert(symbol.clone(), range);
        let known = match fixed {
            Some(number) => self.fixed.insert(symbol.clone(), number),
            None => self.fixed.get(&symbol).copied(),
        };
        self.narrowed.push(Narrowed {
            symbol,
            range: before.unwrap_or((i64::MIN, None)),
            fixed: known,
        });
    }

    /// Lets a symbol be 0, if a claim of the user says `n >= 0` before anything else is known of it.
    pub(super) fn let_be_zero(&mut self, claim: &Claim) {
        if let Claim::AtLeast(dim, 0) = claim
            && let Some(name) = dim.as_symbol()
            && let Some((low @ 1, _)) = self.symbols.get_mut(name)
        {
            *low = 0;
        }
    }

    /// Takes over the symbols of sizes that depend on data, so that [`fresh`](ShapeEnv::fresh) makes none of them again.
    pub fn learn(&mut self, other: &ShapeEnv) {
        self.fresh = self.fresh.max(other.fresh);
        self.has_numbers |= other.has_numbers;
        for name in &other.data {
            if let Some(range) = other.symbols.get(name)
                && self.data.insert(name.clone())
            {
                self.symbols.insert(name.clone(), *range);
            }
        }
    }

    /// Takes a claim as given, such as a user's constraint.
    ///
    /// # Errors
    /// Returns an error if it cannot hold together with what is known.
    pub(crate) fn require(&mut self, claim: &Claim) -> Result<()> {
        for name in claim.dims().flat_map(Dim::symbols) {
            self.symbols.entry(name).or_insert((1, None));
        }
        let fits = match claim {
            Claim::Equal(a, b) => self.same(a, b)?,
            Claim::Multiple(a, by) => self.divided(a, by).is_ok(),
            Claim::AtLeast(a, least) => self.at_least(a, *least)?,
            Claim::AtMost(a, most) => self.at_most(a, *most)?,
        };
        match fits {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "`{claim}` cannot hold: {}",
                self.known_of(claim)
            ))),
        }
    }

    /// The claims about the symbols of a claim.
    fn known_of(&self, claim: &Claim) -> String {
        let names: FxHashSet<Arc<str>> = claim.dims().flat_map(Dim::symbols).collect();
        let about = |guard: &&Guard| {
            let mut symbols = guard.claim.dims().flat_map(Dim::symbols);
            symbols.any(|name| names.contains(&name))
        };
        let mut known: Vec<String> = self
            .guards
            .iter()
            .filter(about)
            .map(Guard::to_string)
            .collect();
        for name in &names {
            if let Some((low, None)) = self.symbols.get(name) {
                known.push(format!("{name} >= {low}"));
            }
        }
        known.sort();
        known.join(", ")
    }

    /// A value that decides questions about a symbol, each answer a guard.
    pub(crate) fn hint(&mut self, name: &Arc<str>, value: i64) {
        self.hints.insert(name.clone(), value);
    }

    /// The value that the hints give a size.
    pub(crate) fn hinted(&self, dim: &Dim) -> Option<i64> {
        let of = |name: &str| {
            self.fixed
                .get(name)
                .or_else(|| self.hints.get(name))
                .copied()
        };
        dim.eval(of).ok()
    }

    /// With numbers in place of the symbols that are known.
    fn settled(&self, dim: &Dim) -> Result<Dim> {
        match self.fixed.is_empty() {
            true => Ok(dim.clone()),
            false => dim.with(|name| self.fixed.get(name).map(|number| Dim::from(*number))),
        }
    }

    /// What is known of a value, with numbers in place of the symbols that are known.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub(crate) fn settled_meta(&self, meta: ValueMeta) -> Result<ValueMeta> {
        match self.fixed.is_empty() {
            true => Ok(meta),
            false => meta.with(&|name| self.fixed.get(name).map(|number| Dim::from(*number))),
        }
    }

    /// A new symbol for a size that depends on data.
    ///
    /// # Errors
    /// The name is free, so that no error is returned.
    pub fn fresh(&mut self, low: i64, high: Option<i64>) -> Result<Dim> {
        loop {
            let name = format!("u{}", self.fresh);
            self.fresh += 1;
            if !self.symbols.contains_key(&*name) {
                let name: Arc<str> = name.into();
                self.symbols.insert(name.clone(), (low, high));
                self.data.insert(name.clone());
                self.has_numbers |= low < 0;
                return Dim::symbol(&name);
            }
        }
    }

    /// The smallest and the largest value of a size; `None` is no limit.
    pub fn bounds(&self, dim: &Dim) -> (Option<i64>, Option<i64>) {
        dim.bounds(|name| match self.symbols.get(name) {
            Some((low, high)) => (Some(*low), *high),
            None => (None, None),
        })
    }

    /// Whether two sizes are equal: known, or assumed from now on.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn same(&mut self, a: &Dim, b: &Dim) -> Result<bool> {
        if a == b {
            return Ok(true);
        }
        let (a, b) = (&self.settled(a)?, &self.settled(b)?);
        let difference = (a - b)?;
        if difference == 0 {
            return Ok(true);
        }
        match self.bounds(&difference) {
            (Some(low), _) if low > 0 => return Ok(false),
            (_, Some(high)) if high < 0 => return Ok(false),
            _ => {}
        }
        for difference in [&difference, &(&difference * -1)?] {
            if let Some((of, by)) = difference.as_remainder() {
                self.claim(Claim::Multiple(of, by.into()));
                return Ok(true);
            }
        }
        let (symbolic, other) = match a.as_number() {
            Some(_) => (b, a),
            None => (a, b),
        };
        if let (Some(name), Some(number)) = (symbolic.as_symbol(), other.as_number()) {
            self.narrow(name, (number, Some(number)), Some(number));
        }
        self.claim(Claim::Equal(symbolic.clone(), other.clone()));
        Ok(true)
    }

    /// The whole quotient: known, or assumed to be whole from now on.
    ///
    /// # Errors
    /// Returns an error if both are numbers and there is no whole quotient, the divisor is zero, or
    /// a number does not fit an `i64`.
    pub fn divided(&mut self, a: &Dim, by: &Dim) -> Result<Dim> {
        if let Some(quotient) = a.exact_div(by)? {
            return Ok(quotient);
        }
        let quotient = a.div(by)?;
        // Factors of both do not matter.
        let (a, by) = without_common(&self.settled(a)?, &self.settled(by)?)?;
        if a.exact_div(&by)?.is_some() {
            return Ok(quotient);
        }
        if a.as_number().is_some() && by.as_number().is_some() {
            return Err(Error::msg(format_args!("{a} is no multiple of {by}")));
        }
        self.claim(Claim::Multiple(a, by));
        Ok(quotient)
    }

    /// Claims that the sizes of tensors are none below zero, of those that are made of numbers.
    ///
    /// # Errors
    /// Returns an error if one is.
    pub(crate) fn are_sizes(&mut self, value: &ValueMeta) -> Result<()> {
        if !self.has_numbers {
            return Ok(());
        }
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                ValueMeta::Single(meta) => {
                    for dim in meta.shape.iter().filter(|dim| dim.as_number().is_none()) {
                        if !self.at_least(dim, 0)? {
                            return Err(Error::msg(format_args!(
                                "a tensor has the size {dim}, which is negative"
                            )));
                        }
                    }
                }
                other => left.extend(other.items().unwrap_or_default()),
            }
        }
        Ok(())
    }

    /// Whether a size is at least a number: known, or assumed from now on.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn at_least(&mut self, dim: &Dim, least: i64) -> Result<bool> {
        match self.bounds(dim) {
            (Some(low), _) if low >= least => return Ok(true),
            (_, Some(high)) if high < least => return Ok(false),
            _ => {}
        }
        let (dim, least) = dim.at_least(least)?;
        // `n <= 4` for `-n >= -4`.
        if let (plus, minus) = dim.sides()?
            && plus == 0
            && let Some(most) = least.checked_neg()
        {
            return self.at_most(&minus, most);
        }
        if let Some(name) = dim.as_symbol()
            && let Some((low, high)) = self.symbols.get(name).copied()
        {
            self.narrow(name, (least.max(low), high), None);
            // The strongest of the claims stays.
            let is_weaker = |guard: &Guard| matches!(&guard.claim, Claim::AtLeast(of, known) if *of == dim && *known <= least);
            self.guards.retain(|guard| !is_weaker(guard));
        }
        self.claim(Claim::AtLeast(dim, least));
        Ok(true)
    }

    /// Whether a size is at most a number: known, or assumed from now on.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn at_most(&mut self, dim: &Dim, most: i64) -> Result<bool> {
        match self.bounds(dim) {
            (_, Some(high)) if high <= most => return Ok(true),
            (Some(low), _) if low > most => return Ok(false),
            _ => {}
        }
        // `n <= 4` for `n - 4 <= 0`.
        let shift = dim.eval(|_| Some(0)).unwrap_or(0);
        let (dim, most) = match most.checked_sub(shift) {
            Some(most) => (&(dim - shift)?, most),
            None => (dim, most),
        };
        if let (plus, minus) = dim.sides()?
            && plus == 0
            && let Some(least) = most.checked_neg()
        {
            return self.at_least(&minus, least);
        }
        if let Some(name) = dim.as_symbol()
            && let Some((low, high)) = self.symbols.get(name).copied()
        {
            let high = high.map_or(most, |high| high.min(most));
            self.narrow(name, (low, Some(high)), None);
            let is_weaker = |guard: &Guard| matches!(&guard.claim, Claim::AtMost(of, known) if of == dim && *known >= most);
            self.guards.retain(|guard| !is_weaker(guard));
        }
        self.claim(Claim::AtMost(dim.clone(), most));
        Ok(true)
    }

    /// The larger of two sizes: one of them, where the ranges of the symbols decide.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn max(&self, a: &Dim, b: &Dim) -> Result<Dim> {
        match self.bounds(&(a - b)?) {
            (Some(0..), _) => Ok(a.clone()),
            (_, Some(..=0)) => Ok(b.clone()),
            _ => a.max(b),
        }
    }

    /// The smaller of two sizes, like [`max`](ShapeEnv::max).
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn min(&self, a: &Dim, b: &Dim) -> Result<Dim> {
        match self.bounds(&(a - b)?) {
            (Some(0..), _) => Ok(b.clone()),
            (_, Some(..=0)) => Ok(a.clone()),
            _ => a.min(b),
        }
    }

    /// Removes the claims that follow from others: `h // 2 == 2*(h // 4)` from `h % 4 == 0`.
    pub(crate) fn without_implied(&mut self) -> Result<()> {
        let mut multiples: FxHashMap<Arc<str>, Dim> = FxHashMap::default();
        for guard in &self.guards {
            if let Claim::Multiple(of, by) = &guard.claim
                && let (Some(name), Some(number)) = (of.as_symbol(), by.as_number())
                && multiples
                    .get(name)
                    .and_then(Dim::as_number)
                    .is_none_or(|known| number % known == 0)
            {
                multiples.insert(name.into(), by.clone());
            }
        }
        if multiples.is_empty() {
            return Ok(());
        }
        let of = |name: &str| {
            let by = multiples.get(name)?;
            Dim::symbol(name).and_then(|symbol| symbol * by).ok()
        };
        let mut kept = Vec::with_capacity(self.guards.len());
        for guard in std::mem::take(&mut self.guards) {
            let is_implied = match &guard.claim {
                Claim::Equal(a, b) => a.with(of)? == b.with(of)?,
                Claim::Multiple(a, by) => {
                    let is_own = a.as_symbol().and_then(|name| multiples.get(name)) == Some(by);
                    !is_own && a.with(of)?.exact_div(&by.with(of)?)?.is_some()
                }
                Claim::AtLeast(..) | Claim::AtMost(..) => false,
            };
            if !is_implied {
                kept.push(guard);
            }
        }
        self.guards = kept;
        Ok(())
    }

    fn claim(&mut self, claim: Claim) {
        if !self.claimed.insert(claim.clone()) {
            return;
        }
        let symbols: Vec<Arc<str>> = claim.dims().flat_map(Dim::symbols).collect();
        let is_data = symbols.iter().any(|name| self.data.contains(name));
        let guard = Guard {
            claim,
            location: self.location.clone(),
            module: self.module.clone(),
        };
        match is_data {
            true => self.assumptions.push(guard),
            false => self.guards.push(guard),
        }
    }
}

/// `m` and 4 for `2*m*n` and `8*n`.
fn without_common(a: &Dim, by: &Dim) -> Result<(Dim, Dim)> {
    let (mut a, mut by) = (a.clone(), by.clone());
    let number = number_of(&by)?;
    if let Some(factor) = by.exact_div(&number)?
        && let Some(rest) = a.exact_div(&factor)?
    {
        (a, by) = (rest, number);
    }
    for prime in [2, 3, 5, 7, 11, 13] {
        while let Some(less) = by.exact_div(&prime.into())?
            && let Some(rest) = a.exact_div(&prime.into())?
        {
            (a, by) = (rest, less);
        }
    }
    Ok((a, by))
}

/// The number that a product of symbols is multiplied by.
fn number_of(by: &Dim) -> Result<Dim> {
    let ones = by.with(|_| Some(Dim::known(1)))?;
    Ok(match ones.as_number() {
        Some(number) if number > 0 => ones,
        _ => Dim::known(1),
    })
}
