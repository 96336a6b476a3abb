//! Models that are no networks (`ai.onnx.ml`): linear ones, trees, and what prepares their inputs.
//!
//! Invariant: a tree of any size is a few operations for each level of it, on all rows and trees at once.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Result};
use rustc_hash::FxHashMap;

use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

const DOMAIN: &str = "ai.onnx.ml";

/// The most levels of a tree.
const DEEPEST: usize = 1 << 12;

pub(super) const TABLE: &[Operator] = &[
    op("Scaler", |cx| {
        let x = as_type(&cx.tensor(0)?, DType::F32)?;
        let mut y = x;
        if let Some(offset) = vector(cx, "offset")? {
            y = (y - offset)?;
        }
        if let Some(scale) = vector(cx, "scale")? {
            y = (y * scale)?;
        }
        cx.of(y, DType::F32)
    })
    .domain(DOMAIN),
    op("Normalizer", |cx| {
        let x = as_type(&cx.tensor(0)?, DType::F32)?;
        let norm = match &*cx.text("norm", "MAX") {
            "L1" => ops::sum(&x.abs()?, -1, true)?,
            "L2" => ops::sqrt(&ops::sum(&(&x * &x)?, -1, true)?)?,
            _ => ops::amax(&x, -1, true)?,
        };
        // Of zeros there is no norm: they stay.
        let one = ops::ones_like(&norm, None)?;
        cx.of(
            (x / ops::r#where(&norm.eq(0.0)?, &one, &norm)?)?,
            DType::F32,
        )
    })
    .domain(DOMAIN),
    op("Binarizer", |cx| {
        let (x, threshold) = (cx.tensor(0)?, cx.float("threshold", 0.0));
        let dtype = cx.dtype(0)?;
        cx.of(as_type(&x.gt(threshold)?, dtype)?, dtype)
    })
    .domain(DOMAIN),
    op("ArrayFeatureExtractor", |cx| {
        let (x, places) = (cx.tensor(0)?, cx.tensor(1)?);
        let places = ops::reshape(&as_type(&places, DType::I64)?, [-1])?;
        let y = ops::index_select(&x, -1, &places)?;
        cx.like(match cx.rank(0)? {
            1 => ops::unsqueeze(&y, 0)?,
            _ => y,
        })
    })
    .domain(DOMAIN),
    op("LinearRegressor", |cx| {
        let y = linear(cx, cx.int("targets", 1))?;
        cx.of(transformed(cx, &y)?, DType::F32)
    })
    .domain(DOMAIN),
    op("LinearClassifier", |cx| {
        let labels = labels(cx, "classlabels_ints")?;
        let scores = linear(cx, labels.len() as i64)?;
        classified(cx, &labels, &scores)
    })
    .domain(DOMAIN),
    op("TreeEnsembleRegressor", |cx| {
        let trees = Trees::of(cx, "target", cx.int("n_targets", 1))?;
        let mut y = trees.sums(cx)?;
        match &*cx.text("aggregate_function", "SUM") {
            "SUM" => {}
            "AVERAGE" => y = (y / trees.roots.len().max(1) as f64)?,
            other => {
                return Err(Error::msg(format_args!(
                    "trees that are put together by {other}"
                )));
            }
        }
        if let Some(base) = vector(cx, "base_values")? {
            y = (y + base)?;
        }
        cx.of(transformed(cx, &y)?, DType::F32)
    })
    .domain(DOMAIN),
    op("TreeEnsembleClassifier", |cx| {
        let labels = labels(cx, "classlabels_int64s")?;
        let ids = cx.ints("class_ids").unwrap_or_default();
        if labels.len() == 2 && ids.iter().all(|id| Some(id) == ids.first()) {
            return Err(Error::msg(
                "trees that score one of two classes alone: export the model with a score for each",
            ));
        }
        let mut scores = Trees::of(cx, "class", labels.len() as i64)?.sums(cx)?;
        if let Some(base) = vector(cx, "base_values")? {
            scores = (scores + base)?;
        }
        classified(cx, &labels, &scores)
    })
    .domain(DOMAIN),
];

/// An attribute of floats as a vector.
fn vector(cx: &NodeCx<'_>, name: &str) -> Result<Option<Tensor>> {
    let numbers = cx.floats(name).filter(|numbers| !numbers.is_empty());
    let vector = numbers.map(|numbers| {
        let count = numbers.len();
        Tensor::from_vec(numbers, count)
    });
    vector.transpose()
}

/// The whole numbers that classes are called.
fn labels(cx: &NodeCx<'_>, name: &str) -> Result<Vec<i64>> {
    match cx.ints(name).filter(|labels| !labels.is_empty()) {
        Some(labels) => Ok(labels),
        None => Err(Error::msg(format_args!(
            "`{name}` is missing: classes that are texts have no tensor; export the model with numbers for classes"
        ))),
    }
}

/// Rows times coefficients, with intercepts.
fn linear(cx: &NodeCx<'_>, targets: i64) -> Result<Tensor> {
    let x = as_type(&cx.tensor(0)?, DType::F32)?;
    let coefficients = vector(cx, "coefficients")?;
    let coefficients = coefficients.ok_or_else(|| Error::msg("`coefficients` are missing"))?;
    let count = coefficients.dims()?.iter().product::<usize>() as i64;
    if targets < 1 || count % targets != 0 {
        return Err(Error::msg(format_args!(
            "{count} coefficients for {targets} results: export the model with a row of coefficients for each"
        )));
    }
    let w = ops::reshape(&coefficients, [targets, -1])?;
    ops::linear(&x, &w, vector(cx, "intercepts")?.as_ref())
}

/// The scores as an attribute asks for them.
fn transformed(cx: &NodeCx<'_>, scores: &Tensor) -> Result<Tensor> {
    match &*cx.text("post_transform", "NONE") {
        "NONE" => Ok(scores.clone()),
        "SOFTMAX" => ops::softmax(scores, -1),
        "LOGISTIC" => ops::sigmoid(scores),
        other => Err(Error::msg(format_args!("scores transformed by {other}"))),
    }
}

/// The class with the best score, and the scores.
fn classified(cx: &NodeCx<'_>, labels: &[i64], scores: &Tensor) -> Given {
    let best = ops::argmax(scores, -1, false)?;
    let names = Tensor::from_vec(labels.to_vec(), labels.len())?;
    Ok(vec![
        V::of(ops::index_select(&names, 0, &best)?, DType::I64),
        V::of(transformed(cx, scores)?, DType::F32),
    ])
}

/// Trees as tables of their nodes.
struct Trees {
    roots: Vec<i64>,
    /// Of each node: which feature it compares with which number, and where rows go on.
    features: Vec<i64>,
    numbers: Vec<f32>,
    next: [Vec<i64>; 2],
    /// Where rows go on that have no number.
    lost: Vec<u8>,
    mode: String,
    /// Of each leaf: what it adds to each result.
    weights: Vec<f32>,
    results: i64,
    depth: usize,
}

impl Trees {
    fn of(cx: &NodeCx<'_>, kind: &str, results: i64) -> Result<Self> {
        let wrong = || Error::msg("lists of trees that do not fit each other");
        let ints = |name: &str| cx.ints(name).unwrap_or_default();
        let (trees, ids) = (ints("nodes_treeids"), ints("nodes_nodeids"));
        let count = ids.len();
        let place: FxHashMap<(i64, i64), usize> = (trees.iter().copied().zip(ids.iter().copied()))
            .enumerate()
            .map(|(at, key)| (key, at))
            .collect();
        let modes: Vec<String> = cx.attribute("nodes_modes").map_or(Vec::new(), |a| {
            let names = a.strings.iter();
            names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect()
        });
        let numbers = cx.floats("nodes_values").unwrap_or_default();
        let features = ints("nodes_featureids");
        let lengths = [trees.len(), modes.len(), numbers.len(), features.len()];
        if lengths.iter().any(|length| *length != count) || results < 1 || place.len() != count {
            return Err(wrong());
        }
        let is_leaf = |at: usize| modes[at] == "LEAF";
        let mut branches = (0..count)
            .filter(|at| !is_leaf(*at))
            .map(|at| modes[at].as_str());
        let mode = branches.next().unwrap_or("BRANCH_LEQ").to_string();
        if let Some(other) = branches.find(|other| *other != mode) {
            return Err(Error::msg(format_args!(
                "trees that compare by {mode} and by {other}"
            )));
        }
        let sides = ["nodes_truenodeids", "nodes_falsenodeids"].map(ints);
        let mut next = [Vec::with_capacity(count), Vec::with_capacity(count)];
        for (at, tree) in trees.iter().enumerate() {
            for (side, next) in sides.iter().zip(&mut next) {
                // Rows stay at a leaf.
                let to = match is_leaf(at) {
                    true => at,
                    false => {
                        let id = side.get(at).copied().ok_or_else(wrong)?;
                        place.get(&(*tree, id)).copied().ok_or_else(wrong)?
                    }
                };
                next.push(to as i64);
            }
        }
        let table = count.saturating_mul(results as usize);
        if table > cx.reader.limits.constant_bytes / 4 {
            return Err(Error::msg(
                "a table of the weights of trees that is larger than `Limits::constant_bytes`",
            ));
        }
        let mut weights = vec![0f32; table];
        let of = |name: &str| format!("{kind}_{name}");
        let (of_tree, of_node) = (ints(&of("treeids")), ints(&of("nodeids")));
        let targets = ints(&of("ids"));
        let given = cx.floats(&of("weights")).unwrap_or_default();
        for (at, weight) in given.iter().enumerate() {
            let (Some(tree), Some(node), Some(target)) =
                (of_tree.get(at), of_node.get(at), targets.get(at))
            else {
                return Err(wrong());
            };
            let leaf = place.get(&(*tree, *node)).copied().ok_or_else(wrong)?;
            if !(0..results).contains(target) {
                return Err(wrong());
            }
            weights[leaf * results as usize + *target as usize] += weight;
        }
        let tracks = ints("nodes_missing_value_tracks_true");
        let mut all = Trees {
            roots: Vec::new(),
            features,
            numbers,
            next,
            lost: (0..count)
                .map(|at| u8::from(tracks.get(at) == Some(&1)))
                .collect(),
            mode,
            weights,
            results,
            depth: 0,
        };
        all.rooted(count)?;
        Ok(all)
    }

    /// Finds the roots, to which no node leads, and how many levels there are.
    fn rooted(&mut self, count: usize) -> Result<()> {
        let mut has_parent = vec![false; count];
        for next in &self.next {
            for (at, to) in next.iter().enumerate() {
                has_parent[*to as usize] |= *to as usize != at;
            }
        }
        let roots = (0..count).filter(|at| !has_parent[*at]);
        self.roots = roots.map(|at| at as i64).collect();
        let mut level = self.roots.clone();
        let mut seen = level.len();
        while !level.is_empty() {
            let leads = level.iter().flat_map(|at| {
                let to = [0, 1].map(|side| self.next[side][*at as usize]);
                to.into_iter().filter(move |to| to != at)
            });
            level = leads.collect();
            seen += level.len();
            self.depth += usize::from(!level.is_empty());
            if self.depth > DEEPEST {
                return Err(Error::msg(format_args!(
                    "trees of more than {DEEPEST} levels, each of which would be calls of its own"
                )));
            }
            if seen > count {
                return Err(Error::msg(
                    "nodes of trees that lead to each other in a circle",
                ));
            }
        }
        Ok(())
    }

    /// What the leaves of each row add up to, `[rows, results]`.
    fn sums(&self, cx: &NodeCx<'_>) -> Result<Tensor> {
        let x = as_type(&cx.tensor(0)?, DType::F32)?;
        let (count, trees) = (self.features.len(), self.roots.len());
        if count == 0 {
            return Err(Error::msg("no trees"));
        }
        let table = |all: &[i64]| Tensor::from_vec(all.to_vec(), count);
        let (features, numbers) = (
            table(&self.features)?,
            Tensor::from_vec(self.numbers.clone(), count)?,
        );
        let (yes, no) = (table(&self.next[0])?, table(&self.next[1])?);
        let tracks = self.lost.contains(&1);
        let lost = Tensor::from_vec(self.lost.clone(), count)?.ne(0)?;
        let roots = Tensor::from_vec(self.roots.clone(), (1, trees))?;
        let mut at = ops::expand(&roots, vec![x.size(0)?, (trees as i64).into()])?;
        // Where all rows stand, level by level.
        for _ in 0..self.depth {
            let flat = ops::reshape(&at, [-1])?;
            let of = |table: &Tensor| -> Result<Tensor> {
                let picked = ops::index_select(table, 0, &flat)?;
                ops::reshape(&picked, [-1, trees as i64])
            };
            let (value, number) = (ops::gather(&x, 1, &of(&features)?)?, of(&numbers)?);
            let mut goes = match &*self.mode {
                "BRANCH_LEQ" => value.le(&number)?,
                "BRANCH_LT" => value.lt(&number)?,
                "BRANCH_GTE" => value.ge(&number)?,
                "BRANCH_GT" => value.gt(&number)?,
                "BRANCH_EQ" => value.eq(&number)?,
                "BRANCH_NEQ" => value.ne(&number)?,
                other => return Err(Error::msg(format_args!("trees that compare by {other}"))),
            };
            if tracks {
                let is_lost = ops::logical_and(&ops::isnan(&value)?, &of(&lost)?)?;
                goes = ops::logical_or(&goes, &is_lost)?;
            }
            at = ops::r#where(&goes, &of(&yes)?, &of(&no)?)?;
        }
        let weights = Tensor::from_vec(self.weights.clone(), (count, self.results as usize))?;
        let leaves = ops::index_select(&weights, 0, &ops::reshape(&at, [-1])?)?;
        let leaves = ops::reshape(&leaves, [-1, trees as i64, self.results])?;
        ops::sum(&leaves, Dims::One(1), false)
    }
}
