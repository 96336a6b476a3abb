//! Counts of words that stand together.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Result};
use rustc_hash::FxHashMap;

use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::text_leaves::text_ids;
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;
use crate::texts::Texts;

pub(super) const TABLE: &[Operator] = &[op("TfIdfVectorizer", counts)
    .check(|cx| rank(cx, 0, 1..3))
    .reads_text()];

/// The most words that stand together, and the most that are between two of them.
const LONGEST: i64 = 1 << 6;

/// How often rows have each group of words.
fn counts(cx: &mut NodeCx<'_>) -> Given {
    let wrong = || Error::msg("lists of words that do not fit each other");
    let ints = |name: &str| cx.ints(name).unwrap_or_default();
    let (starts, targets) = (ints("ngram_counts"), ints("ngram_indexes"));
    // Words that are texts are counted by their places among those of the file.
    let (pool, known) = match cx.texts("pool_strings").filter(|all| !all.is_empty()) {
        None => (ints("pool_int64s"), None),
        Some(all) => {
            let known = Texts::from(all);
            let places = text_ids(&known, &known)?.to_vec()?;
            let pool = places.into_iter().map(|place| place as i64).collect();
            (pool, Some(known))
        }
    };
    if pool.is_empty() {
        return Err(Error::msg("`pool_int64s` and `pool_strings` are missing"));
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
    // Of each group: its own weight, if what is counted has any.
    let mode = cx.text("mode", "TF");
    let weights = cx.floats("weights").filter(|all| !all.is_empty());
    let (is_plain, weights) = match &*mode {
        "TF" => (true, None),
        "IDF" => (false, weights),
        "TFIDF" => (true, weights),
        other => return Err(Error::msg(format_args!("counts by {other:?}"))),
    };
    if weights
        .as_ref()
        .is_some_and(|all| all.len() != targets.len())
    {
        return Err(wrong());
    }
    let is_row = cx.rank(0)? == 1;
    let mut x = match &known {
        Some(known) => text_ids(&cx.input(0).texts()?, known)?,
        None => as_type(&cx.tensor(0)?, DType::I64)?,
    };
    if is_row {
        x = ops::unsqueeze(&x, 0)?;
    }
    let columns = match cx.shape(0)?[usize::from(!is_row)].as_number() {
        Some(columns) => Whole::from(columns),
        None => Whole::from(x.size(1)?),
    };
    let mut sum: Option<Tensor> = None;
    let mut first = 0;
    for (at, start) in starts.iter().enumerate() {
        let length = at + 1;
        let end = starts.get(at + 1).copied().unwrap_or(pool.len() as i64);
        let own = usize::try_from(*start).ok().zip(usize::try_from(end).ok());
        let own = own.and_then(|(start, end)| pool.get(start..end));
        let groups: Vec<&[i64]> = own.ok_or_else(wrong)?.chunks_exact(length).collect();
        let ids = first..first + groups.len();
        first = ids.end;
        if first > targets.len() {
            return Err(wrong());
        }
        if groups.is_empty() || !(shortest..=longest).contains(&(length as i64)) {
            continue;
        }
        // One that is there twice counts once, as the last of them.
        let last: FxHashMap<&[i64], usize> = groups.into_iter().zip(ids).collect();
        let mut groups: Vec<(&[i64], usize)> = last.into_iter().collect();
        groups.sort_unstable();
        let target: Vec<i64> = groups.iter().map(|(_, id)| targets[*id]).collect();
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
            let mut each = ops::sum(&as_type(&found, DType::F32)?, Dims::One(1), false)?;
            if let (true, Some(weights)) = (is_plain, &weights) {
                let own: Vec<f32> = groups.iter().map(|(_, id)| weights[*id]).collect();
                each = (each * Tensor::from_vec(own, groups.len())?)?;
            }
            let zeros = ops::new_zeros(&each, vec![x.size(0)?, size.into()], None)?;
            let all = sum.unwrap_or(zeros);
            sum = Some(ops::index_add(&all, 1, &target, &each, 1)?);
        }
    }
    let y = match sum {
        Some(sum) => sum,
        None => ops::zeros(vec![x.size(0)?, size.into()], Some(DType::F32))?,
    };
    let y = match (is_plain, weights) {
        (true, _) => y,
        (false, None) => as_type(&y.gt(0.0)?, DType::F32)?,
        (false, Some(weights)) => {
            let own = of_targets(&targets, &weights, size as usize)?;
            let own = Tensor::from_vec(own, size as usize)?;
            ops::r#where(&y.gt(0.0)?, &own, 0.0)?
        }
    };
    cx.of(if is_row { ops::squeeze(&y, 0)? } else { y }, DType::F32)
}

/// The weight of each place of the result.
fn of_targets(targets: &[i64], weights: &[f32], size: usize) -> Result<Vec<f32>> {
    let mut all: Vec<Option<f32>> = vec![None; size];
    for (target, weight) in targets.iter().zip(weights) {
        match all[*target as usize].replace(*weight) {
            Some(other) if other != *weight => {
                return Err(Error::msg(
                    "groups of words of several weights that are counted at one place, of which the last found decides",
                ));
            }
            _ => {}
        }
    }
    Ok(all
        .into_iter()
        .map(|weight| weight.unwrap_or(0.0))
        .collect())
}
