//! `SizeExpr`: sums of products of symbols, whole quotients, minima and maxima.
//!
//! Invariant: the normal form. Terms are in order and none is zero, what a quotient can give up is
//! outside of it, and a quotient by a number has no quotient by a number as a summand; so equal
//! forms have equal values, and polynomials with equal values have equal forms.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result};

/// How many terms an expression has at most.
const MAX_TERMS: usize = 256;

/// How many factors a term has at most.
const MAX_DEGREE: usize = 64;

/// How many symbols and operations are inside of a quotient, a minimum or a maximum at most.
const MAX_WEIGHT: usize = 1024;

/// A factor.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Atom {
    Symbol(Arc<str>),
    /// Rounded down.
    Quotient(SizeExpr, SizeExpr),
    /// Of two or more, in order.
    Min(Vec<SizeExpr>),
    Max(Vec<SizeExpr>),
}

/// Factors in order, with repetition; none for a number.
type Product = Vec<Atom>;

/// A sum; zero has no terms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct SizeExpr {
    terms: Vec<(Product, i64)>,
}

/// `times*(of % by)`, which is `times*of - times*by*(of // by)`.
pub(super) struct Remainder<'e> {
    pub times: i64,
    pub of: &'e SizeExpr,
    pub by: i64,
}

fn overflow() -> Error {
    Error::arithmetic("a size is larger than an `i64` holds")
}

fn too_large() -> Error {
    Error::limit(
        MAX_TERMS,
        format_args!(
            "a size is an expression of more than {MAX_TERMS} terms, {MAX_DEGREE} factors or {MAX_WEIGHT} operations"
        ),
    )
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl SizeExpr {
    pub fn number(number: i64) -> Self {
        let terms = match number {
            0 => Vec::new(),
            _ => vec![(Product::new(), number)],
        };
        SizeExpr { terms }
    }

    pub fn symbol(name: Arc<str>) -> Self {
        Self::atom(Atom::Symbol(name))
    }

    fn atom(atom: Atom) -> Self {
        Self::term(vec![atom], 1)
    }

    /// A product of factors, which are in order, and a number, which is not zero.
    pub fn term(product: Vec<Atom>, count: i64) -> Self {
        SizeExpr {
            terms: vec![(product, count)],
        }
    }

    /// The products with their factors; that of the number is empty, and the first if there is one.
    pub fn terms(&self) -> &[(Product, i64)] {
        &self.terms
    }

    pub fn as_number(&self) -> Option<i64> {
        match &*self.terms {
            [] => Some(0),
            [(product, number)] if product.is_empty() => Some(*number),
            _ => None,
        }
    }

    /// The one factor that this is.
    pub fn as_atom(&self) -> Option<&Atom> {
        match &*self.terms {
            [(product, 1)] if let [only] = &**product => Some(only),
            _ => None,
        }
    }

    pub fn as_symbol(&self) -> Option<&str> {
        match self.as_atom() {
            Some(Atom::Symbol(name)) => Some(name),
            _ => None,
        }
    }

    /// How many symbols and operations it is made of.
    fn weight(&self) -> usize {
        let atoms = self.terms.iter().flat_map(|(product, _)| product);
        let weights = atoms.map(|atom| match atom {
            Atom::Symbol(_) => 1,
            Atom::Quotient(a, b) => 1 + a.weight() + b.weight(),
            Atom::Min(of) | Atom::Max(of) => 1 + of.iter().map(Self::weight).sum::<usize>(),
        });
        self.terms.len() + weights.sum::<usize>()
    }

    pub fn add(&self, other: &Self) -> Result<Self> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let from_a = (order != Ordering::Greater).then(|| a.next()).flatten();
            let from_b = (order != Ordering::Less).then(|| b.next()).flatten();
            let Some((product, _)) = from_a.or(from_b) else {
                break;
            };
            let count = |term: Option<&(Product, i64)>| term.map_or(0, |(_, number)| *number);
            let sum = count(from_a).checked_add(count(from_b));
            match sum.ok_or_else(overflow)? {
                0 => {}
                number => terms.push((product.clone(), number)),
            }
        }
        match terms.len() > MAX_TERMS {
            true => Err(too_large()),
            false => Ok(SizeExpr { terms }),
        }
    }

    pub fn times(&self, number: i64) -> Result<Self> {
        let terms = self.terms.iter().map(|(product, count)| {
            let count = count.checked_mul(number).ok_or_else(overflow)?;
            Ok((product.clone(), count))
        });
        match number {
            0 => Ok(Self::default()),
            _ => Ok(SizeExpr {
                terms: terms.collect::<Result<_>>()?,
            }),
        }
    }

    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.add(&other.times(-1)?)
    }

    pub fn mul(&self, other: &Self) -> Result<Self> {
        if let Some(number) = other.as_number() {
            return self.times(number);
        }
        if self.terms.len().saturating_mul(other.terms.len()) > MAX_TERMS * 4 {
            return Err(too_large());
        }
        let mut sum = Self::default();
        for (product, number) in &other.terms {
            let mut terms = Vec::with_capacity(self.terms.len());
            for (own, count) in &self.terms {
                let mut all: Product = own.iter().chain(product).cloned().collect();
                if all.len() > MAX_DEGREE {
                    return Err(too_large());
                }
                all.sort_unstable();
                terms.push((all, count.checked_mul(*number).ok_or_else(overflow)?));
            }
            terms.sort_unstable();
            sum = sum.add(&SizeExpr { terms })?;
        }
        Ok(sum)
    }

    /// The quotient, rounded down.
    pub fn quotient(&self, by: &Self) -> Result<Self> {
        match by.as_number() {
            Some(0) => Err(Error::arithmetic("a size is divided by zero")),
            Some(1) => Ok(self.clone()),
            Some(number @ ..0) => self
                .times(-1)?
                .quotient_by(number.checked_neg().ok_or_else(overflow)?),
            Some(number) => self.quotient_by(number),
            None => self.quotient_by_sizes(by),
        }
    }

    fn quotient_by(&self, by: i64) -> Result<Self> {
        let (mut whole, mut rest) = (Self::default(), Self::default());
        for (product, count) in &self.terms {
            let (out, left) = (count.div_euclid(by), count.rem_euclid(by));
            for (sum, count) in [(&mut whole, out), (&mut rest, left)] {
                if count != 0 {
                    sum.terms.push((product.clone(), count));
                }
            }
        }
        if rest.as_number().is_some() {
            // Less than the divisor.
            return Ok(whole);
        }
        let numbers = rest.terms.iter().filter(|(product, _)| !product.is_empty());
        let common = numbers.fold(by, |common, (_, count)| gcd(common, *count));
        if common > 1 {
            let terms = rest
                .terms
                .iter()
                .map(|(product, count)| (product, count / common));
            let terms = terms.filter(|(_, count)| *count != 0);
            let terms = terms.map(|(product, count)| (product.clone(), count));
            let smaller = SizeExpr {
                terms: terms.collect(),
            };
            return whole.add(&smaller.quotient(&Self::number(by / common))?);
        }
        let inner = rest
            .terms
            .iter()
            .find_map(|(product, count)| match &**product {
                [Atom::Quotient(of, inner)] if *count == 1 => {
                    Some((product, of, inner.as_number()?))
                }
                _ => None,
            });
        if let Some((product, of, inner)) = inner {
            // (p // a + t) // b is (p + a*t) // (a*b).
            let atom = Self::term(product.clone(), 1);
            let of = of.add(&rest.sub(&atom)?.times(inner)?)?;
            let by = by.checked_mul(inner).ok_or_else(overflow)?;
            return whole.add(&of.quotient_by(by)?);
        }
        whole.add(&rest.over(Self::number(by))?)
    }

    fn quotient_by_sizes(&self, by: &Self) -> Result<Self> {
        if let Some(whole) = self.exact(by)? {
            return Ok(whole);
        }
        // What both have as a factor goes.
        let all = self.terms.iter().chain(&by.terms);
        let common = all
            .clone()
            .fold(0, |common, (_, count)| gcd(common, *count))
            .max(1);
        let mut shared: Product = all
            .clone()
            .next()
            .map(|(product, _)| product.clone())
            .unwrap_or_default();
        for (product, _) in all {
            let mut left = product.clone();
            shared.retain(|atom| match left.iter().position(|other| other == atom) {
                Some(at) => {
                    left.remove(at);
                    true
                }
                None => false,
            });
        }
        if common > 1 || !shared.is_empty() {
            let factor = Self::term(shared, common);
            if let (Some(a), Some(b)) = (self.exact(&factor)?, by.exact(&factor)?) {
                return a.quotient(&b);
            }
        }
        if let [term] = &*by.terms {
            // Terms that are multiples of a product come out.
            let (mut whole, mut rest) = (Self::default(), Self::default());
            for own in &self.terms {
                match divided(own, term) {
                    Some(quotient) => whole = whole.add(&Self::term(quotient.0, quotient.1))?,
                    None => rest.terms.push(own.clone()),
                }
            }
            return whole.add(&rest.over(by.clone())?);
        }
        self.clone().over(by.clone())
    }

    fn over(self, by: Self) -> Result<Self> {
        if self.terms.is_empty() {
            return Ok(self);
        }
        match self.weight() + by.weight() <= MAX_WEIGHT {
            true => Ok(Self::atom(Atom::Quotient(self, by))),
            false => Err(too_large()),
        }
    }

    /// The term that others of a product are below: of the highest degree, then the last.
    fn leading(&self) -> Option<&(Product, i64)> {
        let terms = self.terms.iter();
        terms.max_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)))
    }

    /// The quotient, if this is a multiple of the other in form.
    pub fn exact(&self, by: &Self) -> Result<Option<Self>> {
        let Some(leading) = by.leading() else {
            return Ok(None);
        };
        let (mut quotient, mut left) = (Self::default(), self.clone());
        while let Some(term) = left.leading() {
            let Some(term) = divided(term, leading) else {
                return Ok(None);
            };
            let term = Self::term(term.0, term.1);
            left = left.sub(&by.mul(&term)?)?;
            quotient = quotient.add(&term)?;
        }
        Ok(Some(quotient))
    }

    pub fn min(of: impl IntoIterator<Item = Self>) -> Result<Self> {
        Self::extreme(of, false)
    }

    pub fn max(of: impl IntoIterator<Item = Self>) -> Result<Self> {
        Self::extreme(of, true)
    }

    fn extreme(of: impl IntoIterator<Item = Self>, largest: bool) -> Result<Self> {
        let mut kept: Vec<Self> = Vec::new();
        let mut left: Vec<Self> = of.into_iter().collect();
        while let Some(one) = left.pop() {
            match one.as_atom() {
                Some(Atom::Min(inner)) if !largest => left.extend(inner.iter().cloned()),
                Some(Atom::Max(inner)) if largest => left.extend(inner.iter().cloned()),
                _ => {
                    // Of two whose difference is a number one goes.
                    let mut is_needed = true;
                    let mut others = Vec::with_capacity(kept.len() + 1);
                    for other in kept {
                        match one.sub(&other)?.as_number() {
                            Some(difference) if (difference > 0) == largest && difference != 0 => {}
                            difference => {
                                is_needed &= difference.is_none();
                                others.push(other);
                            }
                        }
                    }
                    if is_needed {
                        others.push(one);
                    }
                    kept = others;
                }
            }
        }
        kept.sort_unstable();
        if kept.iter().map(Self::weight).sum::<usize>() > MAX_WEIGHT {
            return Err(too_large());
        }
        match (<[Self; 1]>::try_from(kept), largest) {
            (Ok([only]), _) => Ok(only),
            (Err(of), _) if of.is_empty() => {
                Err(Error::arithmetic("no size is the extreme of none"))
            }
            (Err(of), true) => Ok(Self::atom(Atom::Max(of))),
            (Err(of), false) => Ok(Self::atom(Atom::Min(of))),
        }
    }

    /// The expression with other expressions for its symbols.
    pub fn substitute(&self, of: &dyn Fn(&str) -> Option<SizeExpr>) -> Result<Self> {
        let mut sum = Self::default();
        for (product, count) in &self.terms {
            let mut value = Self::number(*count);
            for atom in product {
                let atom = match atom {
                    Atom::Symbol(name) => of(name).unwrap_or_else(|| Self::symbol(name.clone())),
                    Atom::Quotient(a, b) => a.substitute(of)?.quotient(&b.substitute(of)?)?,
                    Atom::Min(items) => Self::min(substituted(items, of)?)?,
                    Atom::Max(items) => Self::max(substituted(items, of)?)?,
                };
                value = value.mul(&atom)?;
            }
            sum = sum.add(&value)?;
        }
        Ok(sum)
    }

    /// The value with numbers for the symbols.
    pub fn eval(&self, of: &dyn Fn(&str) -> Option<i64>) -> Result<i64> {
        let mut sum = 0i64;
        for (product, count) in &self.terms {
            let mut value = *count;
            for atom in product {
                let atom = match atom {
                    Atom::Symbol(name) => of(name).ok_or_else(|| {
                        Error::unknown(name, format_args!("the size `{name}` has no value here"))
                    })?,
                    Atom::Quotient(a, b) => {
                        let (a, b) = (a.eval(of)?, b.eval(of)?);
                        rounded_down(a, b)?
                    }
                    Atom::Min(items) => extreme_value(items, of, i64::min)?,
                    Atom::Max(items) => extreme_value(items, of, i64::max)?,
                };
                value = value.checked_mul(atom).ok_or_else(overflow)?;
            }
            sum = sum.checked_add(value).ok_or_else(overflow)?;
        }
        Ok(sum)
    }

    /// The smallest and the largest value with symbols between such values; `None` is no limit.
    pub fn range(&self, of: &dyn Fn(&str) -> SizeRange) -> SizeRange {
        let mut sum = SizeRange::number(0);
        for (product, count) in &self.terms {
            let mut value = SizeRange::number(*count);
            for atom in product {
                value = value.mul(match atom {
                    Atom::Symbol(name) => of(name),
                    Atom::Quotient(a, b) => a.range(of).quotient(b.range(of)),
                    Atom::Min(items) => {
                        let ranges = items.iter().map(|item| item.range(of));
                        ranges.reduce(SizeRange::min).unwrap_or(SizeRange::ANY)
                    }
                    Atom::Max(items) => {
                        let ranges = items.iter().map(|item| item.range(of));
                        ranges.reduce(SizeRange::max).unwrap_or(SizeRange::ANY)
                    }
                });
            }
            sum = sum.add(value);
        }
        sum
    }

    /// The remainders among the terms, and the other terms.
    pub fn remainders(&self) -> (Vec<Remainder<'_>>, Self) {
        let mut found = Vec::new();
        let mut rest = self.clone();
        for (product, count) in &self.terms {
            let [Atom::Quotient(of, by)] = &**product else {
                continue;
            };
            let by = by.as_number().filter(|by| *by > 0 && count % by == 0);
            let Some(by) = by else {
                continue;
            };
            let times = -(count / by);
            let left = of.times(times).and_then(|of| rest.sub(&of));
            let left = left.and_then(|left| left.sub(&Self::term(product.clone(), *count)));
            // It is one only if all of its terms were there.
            if let Ok(left) = left
                && left.terms.len() + of.terms.len() < rest.terms.len()
            {
                found.push(Remainder { times, of, by });
                rest = left;
            }
        }
        (found, rest)
    }

    /// What is added, and what is taken from that; a remainder stays whole.
    pub fn sides(&self) -> Result<(Self, Self)> {
        if !self.remainders().0.is_empty() {
            return Ok((self.clone(), Self::default()));
        }
        let (mut plus, mut minus) = (Self::default(), Self::default());
        for (product, count) in &self.terms {
            let side = if *count > 0 { &mut plus } else { &mut minus };
            side.terms.push((product.clone(), *count));
        }
        Ok((plus, minus.times(-1)?))
    }

    /// What is at least a number if and only if this is at least `least`, of fewer operations.
    pub fn at_least(&self, least: i64) -> Result<(Self, i64)> {
        let (mut of, mut least) = (self.clone(), least);
        loop {
            let number = match of.terms.first() {
                Some((product, number)) if product.is_empty() => *number,
                _ => 0,
            };
            if number != 0 {
                of.terms.remove(0);
                least = least.checked_sub(number).ok_or_else(overflow)?;
            }
            let [(product, count @ 1..)] = &*of.terms else {
                return Ok((of, least));
            };
            // Rounded up.
            least = rounded_down(least.checked_add(count - 1).ok_or_else(overflow)?, *count)?;
            of = match &**product {
                [Atom::Quotient(inner, by)] if let Some(by @ 1..) = by.as_number() => {
                    least = least.checked_mul(by).ok_or_else(overflow)?;
                    inner.clone()
                }
                _ => return Ok((Self::term(product.clone(), 1), least)),
            };
        }
    }

    /// Calls `visit` with each symbol, as often as it is named.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Arc<str>)) {
        for atom in self.terms.iter().flat_map(|(product, _)| product) {
            match atom {
                Atom::Symbol(name) => visit(name),
                Atom::Quotient(a, b) => {
                    a.for_each_symbol(visit);
                    b.for_each_symbol(visit);
                }
                Atom::Min(items) | Atom::Max(items) => {
                    items.iter().for_each(|item| item.for_each_symbol(visit));
                }
            }
        }
    }
}

fn substituted(items: &[SizeExpr], of: &dyn Fn(&str) -> Option<SizeExpr>) -> Result<Vec<SizeExpr>> {
    items.iter().map(|item| item.substitute(of)).collect()
}

fn extreme_value(
    items: &[SizeExpr],
    of: &dyn Fn(&str) -> Option<i64>,
    best: fn(i64, i64) -> i64,
) -> Result<i64> {
    let mut found = None;
    for item in items {
        let value = item.eval(of)?;
        found = Some(found.map_or(value, |found| best(found, value)));
    }
    found.ok_or_else(overflow)
}

/// A term over another one, if it is a multiple.
fn divided((own, count): &(Product, i64), (by, number): &(Product, i64)) -> Option<(Product, i64)> {
    if *number == 0 || count.checked_rem(*number)? != 0 {
        return None;
    }
    let mut left = own.clone();
    for atom in by {
        let at = left.iter().position(|other| other == atom)?;
        left.remove(at);
    }
    Some((left, count / number))
}

/// The quotient of two numbers, rounded down.
pub(super) fn rounded_down(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::arithmetic("a size is divided by zero"));
    }
    let quotient = a.checked_div(b).ok_or_else(overflow)?;
    Ok(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
}

/// What a size can be: from `low` to `high`, both included; `None` is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeRange {
    pub low: Option<i64>,
    pub high: Option<i64>,
}

impl SizeRange {
    pub const ANY: SizeRange = SizeRange {
        low: None,
        high: None,
    };

    pub fn number(number: i64) -> Self {
        SizeRange {
            low: Some(number),
            high: Some(number),
        }
    }

    fn add(self, other: Self) -> Self {
        let sum = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        SizeRange {
            low: sum(self.low, other.low),
            high: sum(self.high, other.high),
        }
    }

    fn mul(self, other: Self) -> Self {
        // A missing limit is infinite, and zero times it is zero.
        let limits = |range: Self| {
            [
                range.low.map_or(i128::MIN, i128::from),
                range.high.map_or(i128::MAX, i128::from),
            ]
        };
        let times = |a: i128, b: i128| match a.checked_mul(b) {
            Some(product) => product,
            None if (a < 0) == (b < 0) => i128::MAX,
            None => i128::MIN,
        };
        let [a, b] = limits(self);
        let [c, d] = limits(other);
        let products = [times(a, c), times(a, d), times(b, c), times(b, d)];
        let limit = |at: Option<i128>| at.and_then(|at| i64::try_from(at).ok());
        SizeRange {
            low: limit(products.iter().min().copied()),
            high: limit(products.iter().max().copied()),
        }
    }

    fn quotient(self, by: Self) -> Self {
        let Some(low) = by.low.filter(|low| *low > 0) else {
            return Self::ANY;
        };
        let over = |a: Option<i64>, near: bool| {
            let a = a?;
            // A larger divisor brings the quotient nearer to zero.
            match (near, by.high) {
                (false, _) => rounded_down(a, low).ok(),
                (true, Some(high)) => rounded_down(a, high).ok(),
                (true, None) => Some(if a < 0 { -1 } else { 0 }),
            }
        };
        SizeRange {
            low: over(self.low, self.low.is_some_and(|low| low >= 0)),
            high: over(self.high, self.high.is_some_and(|high| high < 0)),
        }
    }

    fn min(self, other: Self) -> Self {
        SizeRange {
            low: self.low.zip(other.low).map(|(a, b)| a.min(b)),
            high: [self.high, other.high].into_iter().flatten().min(),
        }
    }

    fn max(self, other: Self) -> Self {
        SizeRange {
            low: [self.low, other.low].into_iter().flatten().max(),
            high: self.high.zip(other.high).map(|(a, b)| a.max(b)),
        }
    }
}
