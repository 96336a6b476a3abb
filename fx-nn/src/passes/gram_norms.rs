//! `GramNorms`: the squares of products of matrices, and of rows added at indices, summed, without these.
//!
//! Invariant: a product that something else reads stays.

use fx_core::ir::{Argument, Graph, NodeRef, ValueMeta};
use fx_core::passes::Pass;
use fx_core::value::{DType, NodeId};
use fx_core::{GraphModule, Result, function, operator};

use crate::ops;

/// Sums the squares of a batch of products of matrices without the products: of `a @ b`, with `a` of shape `[n, rows, k]`
/// and `b` of shape `[n, k, columns]`, they are the sums of `(aᵀ a) * (b bᵀ)`, two matrices of `[n, k, k]` (Gram matrices),
/// and the product of the norms of `a` and `b` where `k` is 1. The gradient of a layer's weights is such a product for each
/// example, with `k` the places of its text: so the norms of 64 gradients take about as long as one gradient.
///
/// A sum of products, as of weights that are used twice, counts as one product. The weights of a convolution are those of
/// a product with the windows of its images. Of a table of rows, those at equal indices count: the sum of `rows rowsᵀ` where
/// two indices are equal. What is larger than the products stays.
/// The numbers stay, up to rounding. Shapes have to be known.
///
/// ```
/// use fx_nn::func::{Transform, grad, vmap};
/// use fx_nn::passes::GramNorms;
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// let loss = traced!(|w: &Tensor, x: &Tensor| ops::linear(x, w, None)?.tanh()?.sum(..));
/// let slope = grad(loss);
/// let norm = traced!(move |w: &Tensor, x: &Tensor| slope.call::<Tensor>((w, x))?.square()?.sum(..)?.sqrt());
/// let mut gm = vmap(norm).in_axes([None, Some(0)]).graph_module(&[spec![20, 30; F32], spec![64, 30; F32]])?;
/// let inputs = (Tensor::rand((20, 30))?, Tensor::rand((64, 30))?);
/// let before: Tensor = gm.forward(inputs.clone())?;
/// assert!(gm.apply(&GramNorms)?.changed);
/// // No tensor has a gradient for each example any more.
/// assert!(gm.graph().nodes().all(|node| {
///     let meta = node.meta::<fx_nn::ir::ValueMeta>().and_then(|meta| meta.tensor());
///     meta.is_none_or(|meta| meta.numel() != Some(64 * 20 * 30))
/// }));
/// assert!(fx_nn::allclose(&gm.forward::<Tensor>(inputs)?, &before, 1e-5, 1e-6)?.close);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct GramNorms;

/// A sum of squares.
struct Found {
    sum: NodeId,
    of: Squared,
}

/// What is squared.
enum Squared {
    /// Products, which are added to each other, and the columns of the left sides together.
    Products {
        products: Vec<[NodeId; 2]>,
        depth: usize,
    },
    /// Rows, `[n, k, columns]`, that are added to zeros at indices: of shape `[n, k, 1]`, or `[k]` for all examples.
    Rows {
        rows: NodeId,
        indices: NodeId,
        dtype: DType,
    },
}

impl Pass for GramNorms {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let graph = gm.graph();
        let found: Vec<Found> = graph
            .nodes()
            .filter_map(|node| found(graph, node))
            .collect();
        if found.is_empty() {
            return Ok(false);
        }
        let mut edit = gm.graph_mut();
        for Found { sum, of } in found {
            let mut graph = edit.inserting_before(sum)?;
            let new = match of {
                Squared::Products { products, depth } => of_products(&mut graph, &products, depth)?,
                Squared::Rows {
                    rows,
                    indices,
                    dtype,
                } => of_rows(&mut graph, rows, indices, dtype)?,
            };
            drop(graph);
            edit.node_mut(sum)?.replace_all_uses_with(new)?;
            edit.erase_node(sum)?;
        }
        drop(edit);
        gm.eliminate_dead_code()?;
        Ok(true)
    }
}

/// The sums of the products of the elements of two batches of matrices.
fn sums(graph: &mut Graph, x: NodeId, y: NodeId) -> Result<NodeId> {
    let product = graph.call_function(operator::mul, (x, y), ())?;
    graph.call_function(function!(ops::sum), (product, vec![1i64, 2], false), ())
}

fn turned(graph: &mut Graph, x: NodeId) -> Result<NodeId> {
    graph.call_function(function!(ops::transpose), (x, 1i64, 2i64), ())
}

fn of_products(graph: &mut Graph, products: &[[NodeId; 2]], depth: usize) -> Result<NodeId> {
    let mut side = |at: usize| match products {
        [one] => Ok(one[at]),
        several => {
            let parts: Vec<NodeId> = several.iter().map(|product| product[at]).collect();
            let dim = 2 - at as i64;
            graph.call_function(function!(ops::cat), (parts, dim), ())
        }
    };
    let (a, b) = (side(0)?, side(1)?);
    if depth == 1 {
        let (a, b) = (sums(graph, a, a)?, sums(graph, b, b)?);
        return graph.call_function(operator::mul, (a, b), ());
    }
    let (of_a, of_b) = (turned(graph, a)?, turned(graph, b)?);
    let product = function!(ops::matmul);
    let left = graph.call_function(product, (of_a, a), ())?;
    let right = graph.call_function(product, (b, of_b), ())?;
    sums(graph, left, right)
}

fn of_rows(graph: &mut Graph, rows: NodeId, indices: NodeId, dtype: DType) -> Result<NodeId> {
    let of_rows = turned(graph, rows)?;
    let products = graph.call_function(function!(ops::matmul), (rows, of_rows), ())?;
    let (down, across) = match sizes(graph.node(indices)?).map(|shape| shape.len()) {
        Some(1) => {
            let unsqueeze = function!(ops::unsqueeze);
            (
                graph.call_function(unsqueeze, (indices, 1i64), ())?,
                graph.call_function(unsqueeze, (indices, 0i64), ())?,
            )
        }
        _ => (indices, turned(graph, indices)?),
    };
    let is_equal = graph.call_function(operator::eq, (down, across), ())?;
    let dtype = Argument::from(dtype);
    let is_equal = graph.call_function(function!(ops::to_dtype), (is_equal, dtype), ())?;
    sums(graph, products, is_equal)
}

fn sizes(node: NodeRef<'_>) -> Option<Vec<usize>> {
    node.meta::<ValueMeta>()?.tensor()?.known_shape()
}

/// The node of an argument that nothing else reads.
fn own<'g>(graph: &'g Graph, argument: &Argument) -> Option<NodeRef<'g>> {
    let node = graph.node(argument.as_node()?).ok()?;
    (node.users().count() == 1).then_some(node)
}

/// A sum over all dims but the first, of squares of products.
fn found<'g>(graph: &'g Graph, node: NodeRef<'g>) -> Option<Found> {
    if node.function()? != function!(ops::sum) {
        return None;
    }
    let args = node.normalized_arguments().ok()?;
    let [(_, x), (_, dims), (_, keepdim)] = &args[..] else {
        return None;
    };
    let mut x = own(graph, x)?;
    let shape = sizes(x)?;
    let mut dims = ints(dims)?;
    for dim in &mut dims {
        *dim += if *dim < 0 { shape.len() as i64 } else { 0 };
    }
    dims.sort_unstable();
    let is_all = dims.iter().copied().eq(1..shape.len() as i64);
    if !is_all || *keepdim != Argument::Bool(false) {
        return None;
    }
    x = squared(graph, x)?;
    // What only changes the sizes behind the first changes no sum.
    while let Some(function) = x.function()
        && [function!(ops::reshape), function!(ops::flatten)].contains(&function)
    {
        x = own(graph, x.args().first()?)?;
        if sizes(x)?.first() != shape.first() {
            return None;
        }
    }
    let of = rows_added(graph, x).or_else(|| products_added(graph, x))?;
    let sum = node.id();
    Some(Found { sum, of })
}

/// Rows that are added to zeros at indices.
fn rows_added<'g>(graph: &'g Graph, node: NodeRef<'g>) -> Option<Squared> {
    let args = node.normalized_arguments().ok()?;
    let arg = |name: &str| {
        args.iter()
            .find(|(of, _)| &**of == name)
            .map(|(_, arg)| arg)
    };
    let node_of = |argument: &Argument| graph.node(argument.as_node()?).ok();
    let is_scattered = node.function()? == function!(ops::scatter_add);
    if !is_scattered && node.function()? != function!(ops::index_add) {
        return None;
    }
    if arg("dim") != Some(&Argument::Int(1)) || !is_zeros(node_of(arg("x")?)?) {
        return None;
    }
    let mut indices = node_of(arg("index")?)?;
    let rows = node_of(arg(if is_scattered { "src" } else { "source" })?)?;
    let shape = sizes(rows)?;
    let [n, count, columns] = shape[..] else {
        return None;
    };
    if is_scattered {
        // One index for each row.
        if indices.function()? != function!(ops::expand) || sizes(indices)? != shape {
            return None;
        }
        indices = node_of(indices.args().first()?)?;
        if sizes(indices)? != [n, count, 1] {
            return None;
        }
    } else if sizes(indices)? != [count] || arg("alpha").is_some_and(|alpha| !is_one(alpha)) {
        return None;
    }
    let [_, all, _] = sizes(node)?[..] else {
        return None;
    };
    let dtype = rows.meta::<ValueMeta>()?.tensor()?.dtype?;
    (count * (count + columns) < all * columns).then(|| Squared::Rows {
        rows: rows.id(),
        indices: indices.id(),
        dtype,
    })
}

fn is_one(argument: &Argument) -> bool {
    match argument {
        Argument::Int(1) => true,
        Argument::Float(float) => *float == 1.0,
        _ => false,
    }
}

/// Zeros, in another shape.
fn is_zeros(mut node: NodeRef<'_>) -> bool {
    let views = [
        function!(ops::expand),
        function!(ops::reshape),
        function!(ops::unsqueeze),
    ];
    loop {
        match node.function() {
            Some(function) if views.contains(&function) => {}
            function => return function == Some(function!(ops::zeros_like)),
        }
        match node.all_input_nodes().next() {
            Some(of) => node = of,
            None => return false,
        }
    }
}

/// Products that are added to each other.
fn products_added<'g>(graph: &'g Graph, node: NodeRef<'g>) -> Option<Squared> {
    let (mut products, mut depth) = (Vec::new(), 0);
    let mut pending = vec![node];
    let whole = sizes(node)?;
    let [_, rows, columns] = whole[..] else {
        return None;
    };
    while let Some(x) = pending.pop() {
        if sizes(x)? != whole {
            return None;
        }
        let (a, b) = (x.args().first()?, x.args().get(1)?);
        if x.function()? == operator::add {
            pending.extend([own(graph, b)?, own(graph, a)?]);
        } else if [function!(ops::matmul), operator::matmul].contains(&x.function()?) {
            let sides = [
                graph.node(a.as_node()?).ok()?,
                graph.node(b.as_node()?).ok()?,
            ];
            let [left, right] = sides.map(sizes);
            let (left, right) = (left?, right?);
            // Each example has its own.
            if left.len() != 3 || right.len() != 3 || left[0] != whole[0] || right[0] != whole[0] {
                return None;
            }
            depth += left[2];
            products.push(sides.map(NodeRef::id));
        } else {
            return None;
        }
    }
    let is_less = depth == 1 || depth * (rows + columns) < rows * columns;
    is_less.then_some(Squared::Products { products, depth })
}

/// What is squared, if nothing else reads it.
fn squared<'g>(graph: &'g Graph, node: NodeRef<'g>) -> Option<NodeRef<'g>> {
    let function = node.function()?;
    let args = node.args();
    let of = args.first()?;
    let is_square = function == function!(ops::square)
        || function == operator::mul && args.get(1) == Some(of)
        || function == operator::pow && args.get(1) == Some(&Argument::from(2i64));
    if !is_square {
        return None;
    }
    own(graph, of)
}

fn ints(argument: &Argument) -> Option<Vec<i64>> {
    let int = |argument: &Argument| match argument {
        Argument::Int(int) => Some(*int),
        _ => None,
    };
    match argument {
        Argument::List(items) | Argument::Tuple(items) => items.iter().map(int).collect(),
        one => Some(vec![int(one)?]),
    }
}
