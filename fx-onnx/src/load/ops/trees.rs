//! Trees as tables of their nodes, by which rows go down from level to level.
//!
//! Invariant: a tree of any size is a few operations for each level of it, on all rows and trees at once.

use fx_nn::prelude::*;
use fx_nn::{Dims, Error, Result};
use rustc_hash::FxHashMap;

use crate::load::node::NodeCx;
use crate::load::tensors;
use crate::load::value::as_type;

/// The most levels of a tree.
const DEEPEST: usize = 1 << 12;

/// How a node compares, in the order of `TreeEnsemble`'s numbers.
const MODES: [&str; 7] = [
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
    MEMBER,
];

/// Whether a number is one of a set.
const MEMBER: &str = "BRANCH_MEMBER";

/// Trees as tables of their nodes and leaves.
pub(super) struct Trees {
    pub roots: Vec<i64>,
    /// Of each node: which feature it compares with which number, and where rows go on. Rows stay at a leaf.
    features: Vec<i64>,
    numbers: Vec<f64>,
    next: [Vec<i64>; 2],
    /// Where rows go on that have no number.
    lost: Vec<u8>,
    modes: Vec<&'static str>,
    /// Of each node that asks for members of a set: the node, and the set.
    sets: Vec<(usize, Vec<f64>)>,
    /// Of each leaf: what it adds to each result.
    weights: Vec<f64>,
    results: i64,
    depth: usize,
    /// The type of the numbers.
    dtype: DType,
}

fn wrong() -> Error {
    Error::msg("lists of trees that do not fit each other")
}

/// The place of a mode among [`MODES`], by its name.
fn mode(name: &str) -> Result<&'static str> {
    let known = MODES.iter().find(|known| **known == name);
    known
        .copied()
        .ok_or_else(|| Error::msg(format_args!("trees that compare by {name}")))
}

/// The type in which trees of an input are computed.
fn precision(cx: &NodeCx<'_>) -> Result<DType> {
    Ok(match cx.dtype(0)? {
        DType::F64 => DType::F64,
        _ => DType::F32,
    })
}

/// The numbers of an attribute that is a tensor, if it is there.
fn numbers_of(cx: &NodeCx<'_>, name: &str) -> Result<Option<Vec<f64>>> {
    let proto = cx.attribute(name).and_then(|a| a.t.as_ref());
    let tensor = proto.map(|proto| tensors::tensor(proto, cx.reader.folder, false));
    tensor.map(|tensor| tensor?.to_vec()).transpose()
}

/// The numbers of an attribute, which may be a tensor under a name of its own.
fn listed(cx: &NodeCx<'_>, name: &str) -> Result<Vec<f64>> {
    if let Some(numbers) = numbers_of(cx, &format!("{name}_as_tensor"))? {
        return Ok(numbers);
    }
    let numbers = cx.floats(name).unwrap_or_default();
    Ok(numbers.into_iter().map(f64::from).collect())
}

/// A table of numbers of the file, of a number each.
pub(super) fn table(cx: &NodeCx<'_>, rows: usize, columns: usize, number: f64) -> Result<Vec<f64>> {
    match rows.checked_mul(columns) {
        Some(size) if size <= cx.reader.limits.constant_bytes / 8 => Ok(vec![number; size]),
        _ => Err(Error::msg(
            "a table of the weights of a model that is larger than `Limits::constant_bytes`",
        )),
    }
}

impl Trees {
    /// Of `TreeEnsembleRegressor` and `TreeEnsembleClassifier`, whose leaves are nodes. `none` is what a leaf has for the
    /// results that it is not for.
    pub fn of(cx: &NodeCx<'_>, kind: &str, results: i64, none: f64) -> Result<Self> {
        let ints = |name: &str| cx.ints(name).unwrap_or_default();
        let (trees, ids) = (ints("nodes_treeids"), ints("nodes_nodeids"));
        let count = ids.len();
        let place: FxHashMap<(i64, i64), usize> = (trees.iter().copied().zip(ids.iter().copied()))
            .enumerate()
            .map(|(at, key)| (key, at))
            .collect();
        let names: Vec<String> = cx.attribute("nodes_modes").map_or(Vec::new(), |a| {
            let names = a.strings.iter();
            names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect()
        });
        let numbers = listed(cx, "nodes_values")?;
        let features = ints("nodes_featureids");
        let lengths = [trees.len(), names.len(), numbers.len(), features.len()];
        if lengths.iter().any(|length| *length != count) || results < 1 || place.len() != count {
            return Err(wrong());
        }
        let is_leaf = |at: usize| names[at] == "LEAF";
        let modes = (0..count).map(|at| match is_leaf(at) {
            true => Ok(MODES[0]),
            false => mode(&names[at]),
        });
        let modes = modes.collect::<Result<Vec<&str>>>()?;
        if modes.contains(&MEMBER) {
            return Err(Error::msg("trees that ask for members of a set"));
        }
        let sides = ["nodes_truenodeids", "nodes_falsenodeids"].map(ints);
        let mut next = [Vec::with_capacity(count), Vec::with_capacity(count)];
        for (at, tree) in trees.iter().enumerate() {
            for (side, next) in sides.iter().zip(&mut next) {
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
        let mut weights = table(cx, count, results as usize, none)?;
        let of = |name: &str| format!("{kind}_{name}");
        let (of_tree, of_node) = (ints(&of("treeids")), ints(&of("nodeids")));
        let targets = ints(&of("ids"));
        let given = listed(cx, &of("weights"))?;
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
            let own = &mut weights[leaf * results as usize + *target as usize];
            *own = if own.is_finite() {
                *own + weight
            } else {
                *weight
            };
        }
        let mut has_parent = vec![false; count];
        for next in &next {
            for (at, to) in next.iter().enumerate() {
                has_parent[*to as usize] |= *to as usize != at;
            }
        }
        let roots = (0..count).filter(|at| !has_parent[*at]);
        let roots = roots.map(|at| at as i64).collect();
        let tracks = ints("nodes_missing_value_tracks_true");
        let all = Trees {
            roots,
            features,
            numbers,
            next,
            lost: (0..count)
                .map(|at| u8::from(tracks.get(at) == Some(&1)))
                .collect(),
            modes,
            sets: Vec::new(),
            weights,
            results,
            depth: 0,
            dtype: precision(cx)?,
        };
        all.measured()
    }

    /// Of `TreeEnsemble`, whose leaves are a list of their own: they stand behind the nodes here. `none` is what a leaf
    /// has for the results that it is not for.
    pub fn of_leaves(cx: &NodeCx<'_>, results: i64, none: f64) -> Result<Self> {
        let ints = |name: &str| cx.ints(name).unwrap_or_default();
        let numbers =
            |name: &str| -> Result<Vec<f64>> { Ok(numbers_of(cx, name)?.unwrap_or_default()) };
        let (mut features, mut splits) = (ints("nodes_featureids"), numbers("nodes_splits")?);
        let (targets, given) = (ints("leaf_targetids"), numbers("leaf_weights")?);
        let (count, leaves) = (features.len(), targets.len());
        let codes = numbers("nodes_modes")?;
        let roots = ints("tree_roots");
        let inside = |at: &i64, count: usize| (0..count as i64).contains(at);
        let fit = splits.len() == count
            && codes.len() == count
            && given.len() == leaves
            && results >= 1
            && roots.iter().all(|root| inside(root, count));
        if !fit {
            return Err(wrong());
        }
        let modes = codes.iter().map(|code| {
            let known = MODES.get(*code as usize).copied();
            known.ok_or_else(|| Error::msg(format_args!("trees that compare by {code}")))
        });
        let mut modes = modes.collect::<Result<Vec<&str>>>()?;
        let sides = [
            ("nodes_truenodeids", "nodes_trueleafs"),
            ("nodes_falsenodeids", "nodes_falseleafs"),
        ];
        let next = sides.map(|(places, is_leaf)| {
            let (places, is_leaf) = (ints(places), ints(is_leaf));
            if places.len() != count || is_leaf.len() != count {
                return Err(wrong());
            }
            let to = places
                .iter()
                .zip(is_leaf)
                .map(|(to, is_leaf)| match is_leaf {
                    0 if inside(to, count) => Ok(*to),
                    0 => Err(wrong()),
                    _ if inside(to, leaves) => Ok(*to + count as i64),
                    _ => Err(wrong()),
                });
            let ends = (count..count + leaves).map(|leaf| Ok(leaf as i64));
            to.chain(ends).collect::<Result<Vec<i64>>>()
        });
        let [yes, no] = next;
        let next = [yes?, no?];
        let mut weights = table(cx, count + leaves, results as usize, none)?;
        for (leaf, (target, weight)) in targets.iter().zip(given).enumerate() {
            if !(0..results).contains(target) {
                return Err(wrong());
            }
            weights[(count + leaf) * results as usize + *target as usize] = weight;
        }
        let tracks = ints("nodes_missing_value_tracks_true");
        let all = count + leaves;
        features.resize(all, 0);
        splits.resize(all, 0.0);
        modes.resize(all, MODES[0]);
        let dtype = precision(cx)?;
        let sets = sets(&modes, &numbers("membership_values")?)?;
        let trees = Trees {
            roots,
            features,
            numbers: splits,
            next,
            lost: (0..all)
                .map(|at| u8::from(tracks.get(at) == Some(&1)))
                .collect(),
            modes,
            sets,
            weights,
            results,
            depth: 0,
            dtype,
        };
        trees.measured()
    }

    /// Finds how many levels there are.
    fn measured(mut self) -> Result<Self> {
        let count = self.features.len();
        let is_node =
            |next: &[Vec<i64>; 2], at: i64| next.iter().any(|side| side[at as usize] != at);
        let mut level = self.roots.clone();
        level.retain(|at| is_node(&self.next, *at));
        let mut seen = 0;
        while !level.is_empty() {
            seen += level.len();
            self.depth += 1;
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
            let leads = level
                .iter()
                .flat_map(|at| [0, 1].map(|side| self.next[side][*at as usize]));
            level = leads.filter(|to| is_node(&self.next, *to)).collect();
        }
        Ok(self)
    }

    /// What the leaves of each row add up to, `[rows, results]`.
    pub fn sums(&self, cx: &NodeCx<'_>) -> Result<Tensor> {
        ops::sum(&self.leaves(cx)?, Dims::One(1), false)
    }

    /// What the leaf of each row and tree has, `[rows, trees, results]`.
    pub fn leaves(&self, cx: &NodeCx<'_>) -> Result<Tensor> {
        let x = as_type(&cx.tensor(0)?, self.dtype)?;
        let (count, trees) = (self.features.len(), self.roots.len());
        if count == 0 || trees == 0 {
            return Err(Error::msg("no trees"));
        }
        let floats = |all: &[f64], shape: &[usize]| {
            as_type(&Tensor::from_vec(all.to_vec(), shape.to_vec())?, self.dtype)
        };
        let table = |all: &[i64]| Tensor::from_vec(all.to_vec(), count);
        let (features, numbers) = (table(&self.features)?, floats(&self.numbers, &[count])?);
        let (yes, no) = (table(&self.next[0])?, table(&self.next[1])?);
        let tracks = self.lost.contains(&1);
        let lost = Tensor::from_vec(self.lost.clone(), count)?.ne(0)?;
        let roots = Tensor::from_vec(self.roots.clone(), (1, trees))?;
        let mut at = ops::expand(&roots, vec![x.size(0)?, (trees as i64).into()])?;
        // How the nodes compare that are no leaves, and which of them by what.
        let is_node = |at: &usize| self.next.iter().any(|side| side[*at] != *at as i64);
        let used = |mode: &str| (0..count).any(|at| is_node(&at) && self.modes[at] == mode);
        let modes: Vec<&str> = MODES.into_iter().filter(|mode| used(mode)).collect();
        let places = self.modes.iter().map(|own| {
            let place = MODES.iter().position(|mode| mode == own);
            place.unwrap_or(0) as i64
        });
        let own_mode = table(&places.collect::<Vec<i64>>())?;
        let sets = self.set_table(cx)?;
        let sets = sets.map(|(all, width)| Ok::<_, Error>((floats(&all, &[count, width])?, width)));
        let sets = sets.transpose()?;
        // Where all rows stand, level by level.
        for _ in 0..self.depth {
            let flat = ops::reshape(&at, [-1])?;
            let of = |table: &Tensor| -> Result<Tensor> {
                let picked = ops::index_select(table, 0, &flat)?;
                ops::reshape(&picked, [-1, trees as i64])
            };
            let (value, number) = (ops::gather(&x, 1, &of(&features)?)?, of(&numbers)?);
            let by = |mode: &str| match (mode, &sets) {
                ("BRANCH_LEQ", _) => value.le(&number),
                ("BRANCH_LT", _) => value.lt(&number),
                ("BRANCH_GTE", _) => value.ge(&number),
                ("BRANCH_GT", _) => value.gt(&number),
                ("BRANCH_EQ", _) => value.eq(&number),
                ("BRANCH_NEQ", _) => value.ne(&number),
                (_, Some((sets, width))) => {
                    let own = ops::index_select(sets, 0, &flat)?;
                    let own = ops::reshape(&own, [-1, trees as i64, *width as i64])?;
                    let is = ops::unsqueeze(&value, -1)?.eq(&own)?;
                    ops::any(&is, Dims::One(-1), false)
                }
                (mode, None) => Err(Error::msg(format_args!("trees that compare by {mode}"))),
            };
            let mut goes: Option<Tensor> = None;
            for mode in &modes {
                let own = by(mode)?;
                goes = Some(match goes {
                    None => own,
                    Some(others) => {
                        let place = MODES.iter().position(|other| other == mode);
                        let is = of(&own_mode)?.eq(place.unwrap_or(0) as i64)?;
                        ops::r#where(&is, &own, &others)?
                    }
                });
            }
            let mut goes = goes.ok_or_else(wrong)?;
            if tracks {
                let is_lost = ops::logical_and(&ops::isnan(&value)?, &of(&lost)?)?;
                goes = ops::logical_or(&goes, &is_lost)?;
            }
            at = ops::r#where(&goes, &of(&yes)?, &of(&no)?)?;
        }
        let weights = floats(&self.weights, &[count, self.results as usize])?;
        let leaves = ops::index_select(&weights, 0, &ops::reshape(&at, [-1])?)?;
        ops::reshape(&leaves, [-1, trees as i64, self.results])
    }

    /// The sets of all nodes as rows of one width, filled with what equals no number; `None` without sets.
    fn set_table(&self, cx: &NodeCx<'_>) -> Result<Option<(Vec<f64>, usize)>> {
        let Some(width) = self.sets.iter().map(|(_, set)| set.len()).max() else {
            return Ok(None);
        };
        let width = width.max(1);
        let mut all = table(cx, self.features.len(), width, f64::NAN)?;
        for (node, set) in &self.sets {
            all[node * width..node * width + set.len()].copy_from_slice(set);
        }
        Ok(Some((all, width)))
    }
}

/// The sets of the nodes that ask for members, which are listed one behind the other with a NaN between, in the order of
/// the nodes.
fn sets(modes: &[&str], given: &[f64]) -> Result<Vec<(usize, Vec<f64>)>> {
    let asks = (0..modes.len()).filter(|at| modes[*at] == MEMBER);
    let mut lists = given.split(|number| number.is_nan());
    asks.map(|node| Ok((node, lists.next().ok_or_else(wrong)?.to_vec())))
        .collect()
}
