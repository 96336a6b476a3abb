//! `MergeMatmul`: matrix products with one right side, computed as one product.
//!
//! Invariant: what is merged is independent of each other, and no node whose order counts moves.

use std::collections::HashMap;

use fx_core::ir::{Graph, NodeRef, ValueMeta};
use fx_core::passes::Pass;
use fx_core::value::{DType, NodeId};
use fx_core::{GraphModule, Result, function, operator};

use crate::ops;

/// Merges products `a @ w`, `b @ w`, .. of matrices with the same right side into one product of
/// the left sides below each other, which is split again (torch.fx's `merge_matmul`): one large
/// product is faster than several small ones. The numbers stay, up to rounding.
///
/// Merged are calls of [`ops::matmul`] and of the operator whose operands are known to be matrices
/// of one type, with known sizes: [`propagate_shapes`](GraphModule::propagate_shapes) or
/// [`infer_shapes`](GraphModule::infer_shapes) writes them. Products that need each other stay
/// apart. So do products between which nodes stand whose order counts, if these would have to move.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::MergeMatmul;
/// let f = traced!(|a: &Tensor, b: &Tensor, w: &Tensor| a.matmul(w)?.sum(..)? + b.matmul(w)?.sum(..)?);
/// let mut gm = symbolic_trace(f)?;
/// let inputs = (Tensor::rand((2, 4))?, Tensor::rand((3, 4))?, Tensor::rand((4, 5))?);
/// let before: Tensor = gm.forward(inputs.clone())?;
/// gm.propagate_shapes(inputs.clone())?;
/// assert_eq!(gm.apply(&MergeMatmul)?.erased, ["matmul", "matmul_1"]);
/// assert!(gm.graph().find_name("split_with_sizes").is_some());
/// assert!(fx_nn::allclose(&gm.forward::<Tensor>(inputs)?, &before, 1e-5, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeMatmul;

/// A product with its left side and the rows of that.
struct Product {
    node: NodeId,
    left: NodeId,
    rows: i64,
}

/// Products with one right side that do not need each other.
struct Group {
    right: NodeId,
    products: Vec<Product>,
}

impl Pass for MergeMatmul {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let groups = groups(gm)?;
        let ordered = gm.ordered();
        let mut in_order = gm.graph().nodes().filter(|node| ordered.contains(*node));
        // With two of them, sorting could change their order.
        let may_sort = in_order.nth(1).is_none();
        let mut edit = gm.graph_mut();
        // What a merge made of each product.
        let mut items: HashMap<NodeId, NodeId> = HashMap::new();
        let mut is_sorted = true;
        for group in groups {
            let Some(first) = first_user(&edit, &group)? else {
                continue;
            };
            let now = |node: NodeId| items.get(&node).copied().unwrap_or(node);
            let left: Vec<NodeId> = group.products.iter().map(|p| now(p.left)).collect();
            let right = now(group.right);
            let mut fits = true;
            for node in left.iter().chain([&right]) {
                fits = fits && edit.is_before(*node, first)?;
            }
            if !fits && !may_sort {
                continue;
            }
            is_sorted = is_sorted && fits;
            let mut graph = edit.inserting_before(first)?;
            let whole = graph.call_function(function!(ops::cat), (left,), ())?;
            let product = graph.call_function(function!(ops::matmul), (whole, right), ())?;
            let rows: Vec<i64> = group.products.iter().map(|p| p.rows).collect();
            let split = function!(ops::split_with_sizes);
            let parts = graph.call_function(split, (product, rows), ())?;
            let mut made = Vec::with_capacity(group.products.len());
            for (at, _) in (0i64..).zip(&group.products) {
                made.push(graph.call_function(operator::getitem, (parts, at), ())?);
            }
            drop(graph);
            for (product, item) in group.products.iter().zip(made) {
                edit.node_mut(product.node)?.replace_all_uses_with(item)?;
                edit.erase_node(product.node)?;
                items.insert(product.node, item);
            }
        }
        if !is_sorted {
            edit.sort()?;
        }
        Ok(!items.is_empty())
    }
}

/// The first user of a group's products, if there is any.
fn first_user(graph: &Graph, group: &Group) -> Result<Option<NodeId>> {
    let mut first: Option<NodeId> = None;
    for product in &group.products {
        for user in graph.node(product.node)?.users() {
            let is_first = first.map_or(Ok(true), |first| graph.is_before(user.id(), first))?;
            if is_first {
                first = Some(user.id());
            }
        }
    }
    Ok(first)
}

/// The products that can be merged.
fn groups(gm: &GraphModule) -> Result<Vec<Group>> {
    let ordered = gm.ordered();
    let mut products: HashMap<NodeId, (NodeId, Product)> = HashMap::new();
    let mut counts: HashMap<NodeId, usize> = HashMap::new();
    for node in gm.graph().nodes().filter(|node| !ordered.contains(*node)) {
        let call = gm.call(node)?;
        let called = call.function();
        if called != Some(function!(ops::matmul)) && called != Some(operator::matmul) {
            continue;
        }
        let bound = call.bind()?;
        let mut sides = bound.iter().map(|(_, side)| side.as_node());
        let (Some(Some(left)), Some(Some(right))) = (sides.next(), sides.next()) else {
            continue;
        };
        let (a, b) = (
            matrix(gm.graph().node(left)?),
            matrix(gm.graph().node(right)?),
        );
        if let (Some((rows, a)), Some((_, b))) = (a, b)
            && a == b
        {
            *counts.entry(right).or_default() += 1;
            let product = Product {
                node: node.id(),
                left,
                rows,
            };
            products.insert(node.id(), (right, product));
        }
    }
    products.retain(|_, (right, _)| counts.get(right).is_some_and(|count| *count > 1));
    // Of two products that need each other, one has the greater level: those of one level can be
    // merged, whatever else is merged.
    let mut levels: HashMap<NodeId, usize> = HashMap::new();
    let mut places: HashMap<(NodeId, usize), usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for node in gm.graph().nodes() {
        let inputs = node.all_input_nodes();
        let inputs = inputs.filter_map(|input| levels.get(&input.id()).copied());
        let level = inputs.max().unwrap_or(0);
        let Some((right, product)) = products.remove(&node.id()) else {
            levels.insert(node.id(), level);
            continue;
        };
        levels.insert(node.id(), level + 1);
        let place = *places.entry((right, level)).or_insert_with(|| {
            groups.push(Group {
                right,
                products: Vec::new(),
            });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.products.push(product);
        }
    }
    groups.retain(|group| group.products.len() > 1);
    Ok(groups)
}

/// The rows of a node's result, if it is a matrix of known sizes and type.
fn matrix(node: NodeRef<'_>) -> Option<(i64, DType)> {
    let meta = node.meta::<ValueMeta>()?.tensor()?;
    let [rows, _]: [usize; 2] = meta.known_shape()?.try_into().ok()?;
    Some((i64::try_from(rows).ok()?, meta.dtype?))
}
