//! Counts of words that stand together.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Result};
use rustc_hash::FxHashMap;

use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] =
    &[op("TfIdfVectorizer", counts).check(|cx| rank(cx, 0, 1..3))];

/// The most words that stand together, and the most that are between two of them.
const LONGEST: i64 = 1 << 6;

/// How often rows have each group of words.
fn counts(cx: &mut NodeCx<'_>) -> Given {
    let wrong = || Error::msg("lists of words that do not fit each other");
    let ints = |name: &str| cx.ints(name).unwrap_or_default();
    let (pool, starts, targets) = (
        ints("pool_int64s"),
        ints("ngram_counts"),
        ints("ngram_indexes"),
    );
    if pool.is_empty() {
        return Err(Error::msg(
            "`pool_int64s` is missing: words that are texts have no tensor",
        ));
    }
    let (shortest, longest) = (cx.int("min_gram_length", 1), cx.int("max_gram_length", 1));
    let skips = cx.int("max_skip_count", 0);
    if !(1..=longest).contains(&shortest) || longest > LONGEST || !(0..LONGEST).contains(&skips) {
        return Err(Error::msg(format_args!(
            "groups of {shortest} to {longest} words with {skips} between them"
        )));
    }
    let size = targets.iter().max().map_or(0, |last| last + 1);
    if targets.iter().any(|target| *target < 0) || size > cx.reader.limits.constant_bytes as i64 / 8
    {
        return Err(wrong());
    }
    let is_row = cx.rank(0)? == 1;
    let mut x = as_type(&cx.tensor(0)?, DType::I64)?;
    if is_row {
        x = ops::unsqueeze(&x, 0)?;
    }
    let columns = cx.sizes(0)?[usize::from(!is_row)].clone();
    let mut sum: Option<Tensor> = None;
    let mut first = 0;
    for (at, start) in starts.iter().enumerate() {
        let length = at + 1;
        let end = starts.get(at + 1).copied().unwrap_or(pool.len() as i64);
        let own = usize::try_from(*start).ok().zip(usize::try_from(end).ok());
        let own = own.and_then(|(start, end)| pool.get(start..end));
        let groups: Vec<&[i64]> = own.ok_or_else(wrong)?.chunks_exact(length).collect();
        let own = targets.get(first..first + groups.len()).ok_or_else(wrong)?;
        first += groups.len();
        if groups.is_empty() || !(shortest..=longest).contains(&(length as i64)) {
            continue;
        }
        // One that is there twice counts once, as the last of them.
        let mut last: FxHashMap<&[i64], i64> = FxHashMap::default();
        last.extend(groups.iter().copied().zip(own.iter().copied()));
        let mut groups: Vec<(&[i64], i64)> = last.into_iter().collect();
        groups.sort_unstable();
        let target: Vec<i64> = groups.iter().map(|(_, target)| *target).collect();
        let target = Tensor::from_vec(target, groups.len())?;
        let words = (0..length).map(|word| {
            let all: Vec<i64> = groups.iter().map(|(group, _)| group[word]).collect();
            Tensor::from_vec(all, groups.len())
        });
        let words = words.collect::<Result<Vec<Tensor>>>()?;
        // One word alone has none between.
        let apart = if length == 1 { 1..2 } else { 1..skips + 2 };
        for apart in apart {
            let reach = (length as i64 - 1) * apart;
            let windows = match reach {
                0 => columns.clone(),
                reach => columns.minus(reach)?.at_least(0)?,
            };
            let windows = windows.int()?;
            if windows.concrete() == Some(0) {
                continue;
            }
            let mut found: Option<Tensor> = None;
            for (word, of) in words.iter().enumerate() {
                // Of rows that are shorter than a group, no window is left.
                let from = match word as i64 * apart {
                    0 => Whole::from(0),
                    from => columns.at_most(from)?,
                };
                let from = from.int()?;
                let own = ops::narrow(&x, 1, from, windows)?;
                let is = ops::unsqueeze(&own, -1)?.eq(of)?;
                found = Some(match found {
                    Some(found) => ops::logical_and(&found, &is)?,
                    None => is,
                });
            }
            let found = found.ok_or_else(wrong)?;
            let each = ops::sum(&as_type(&found, DType::F32)?, Dims::One(1), false)?;
            let zeros = ops::new_zeros(&each, vec![x.size(0)?, size.into()], None)?;
            let all = sum.unwrap_or(zeros);
            sum = Some(ops::index_add(&all, 1, &target, &each, 1)?);
        }
    }
    let y = match sum {
        Some(sum) => sum,
        None => ops::zeros(vec![x.size(0)?, size.into()], Some(DType::F32))?,
    };
    let weights = cx.floats("weights").filter(|all| !all.is_empty());
    let weights = weights.map(|all| {
        let own = all.get(..size as usize).ok_or_else(wrong)?;
        Tensor::from_vec(own.to_vec(), own.len())
    });
    let weights = weights.transpose()?;
    let y = match (&*cx.text("mode", "TF"), weights) {
        ("TF", _) | ("TFIDF", None) => y,
        ("TFIDF", Some(weights)) => (y * weights)?,
        ("IDF", None) => as_type(&y.gt(0.0)?, DType::F32)?,
        ("IDF", Some(weights)) => ops::r#where(&y.gt(0.0)?, &weights, 0.0)?,
        (other, _) => return Err(Error::msg(format_args!("counts by {other:?}"))),
    };
    cx.of(if is_row { ops::squeeze(&y, 0)? } else { y }, DType::F32)
}
