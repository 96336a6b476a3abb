//! A look at a body before it is recorded: one turn of it runs beside the graph, where shapes are inferred; in the body
//! itself they are not. What it leaves behind is dead code.
//!
//! Invariant: what is known of a value of a body is so in every turn.

use fx_nn::ir::TensorMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::read_inside;
use super::graph::Reader;
use super::known::address;
use super::scope::{self, Scope, Scopes};
use super::value::{V, as_type};
use crate::proto::{GraphProto, NodeProto};

/// Looks at a body with inputs like those of its first turn. A turn gives the `carried` ones to the next, behind `before`
/// other results. If their shapes are not known, or a turn changes one, nothing is known after it.
pub(super) fn look(
    reader: &Reader<'_>,
    scopes: &Scopes,
    body: &GraphProto,
    inputs: &[V],
    carried: std::ops::Range<usize>,
    before: usize,
) {
    if draws(reader, body) {
        return;
    }
    let Ok(Some(inputs)) = symbolic(reader, inputs) else {
        return;
    };
    let depth = reader.known.depth.get();
    if depth == 0 {
        reader.known.forget(body);
    }
    reader.known.depth.set(depth + 1);
    // The nodes of the turn count: bodies in bodies are looked at again and again.
    let spent = reader.spent.get();
    let found = turn(reader, scopes, body, inputs, carried, before);
    reader.spent.set(spent);
    reader.known.depth.set(depth);
    if let Ok(Some(all)) = found {
        reader.known.add(body, all);
    }
}

fn turn(
    reader: &Reader<'_>,
    scopes: &Scopes,
    body: &GraphProto,
    inputs: Vec<V>,
    carried: std::ops::Range<usize>,
    before: usize,
) -> Result<Option<Vec<(String, TensorMeta)>>> {
    let metas: Option<Vec<TensorMeta>> = inputs.iter().map(V::meta).collect();
    let Some(metas) = metas else {
        return Ok(None);
    };
    let inputs_are_none = inputs.is_empty();
    // What is read from outside, which is not known in a body either.
    let mut names = Vec::new();
    for node in &body.node {
        names.extend(node.input.iter().cloned());
        read_inside(node, &mut names);
    }
    names.extend(body.output.iter().map(|output| output.name.clone()));
    let outside = names.into_iter().filter_map(|name| {
        let meta = scope::find(scopes, &name).ok()?.meta()?;
        Some((name, meta))
    });
    let mut all: FxHashMap<String, TensorMeta> = outside.collect();
    let mut scopes = scopes.clone();
    let own = body.input.iter().map(|input| input.name.clone());
    scopes.push(Scope {
        values: own.zip(inputs).collect(),
        body: Some(address(body)),
    });
    let given = match reader.graph(body, &mut scopes, false) {
        Ok(given) => given,
        // Of a branch, what is known of the values before is.
        Err(_) if inputs_are_none => Vec::new(),
        Err(error) => return Err(error),
    };
    for (at, meta) in metas[carried].iter().enumerate() {
        let after = given.get(before + at).and_then(V::meta);
        if after.is_none_or(|after| after.shape != meta.shape || after.dtype != meta.dtype) {
            return Ok(None);
        }
    }
    let Some(scope) = scopes.pop() else {
        return Ok(None);
    };
    for (name, value) in scope.values {
        match value.meta() {
            Some(meta) => drop(all.insert(name, meta)),
            None => drop(all.remove(&name)),
        }
    }
    Ok(Some(all.into_iter().collect()))
}

/// Inputs that depend on the run, as they do in a body; `None` if there is nothing to depend on, or that is in a body.
fn symbolic(reader: &Reader<'_>, inputs: &[V]) -> Result<Option<Vec<V>>> {
    if inputs.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let one = inputs.iter().find_map(|v| match v {
        V::Tensor(x, _) if Object::proxy(x).is_some() => v.meta().map(|_| x.clone()),
        _ => None,
    });
    let Some(one) = one.or_else(|| reader.any.clone()) else {
        return Ok(None);
    };
    let zero = ops::sum(&ops::zeros_like(&one, Some(DType::I64))?, .., false)?;
    let each = inputs.iter().map(|v| {
        let x = v.tensor()?;
        let dtype = v.dtype();
        if Object::proxy(&x).is_some() {
            return Ok(V::Tensor(x, dtype));
        }
        let own = Tensor::dtype(&x)?;
        let y = match own {
            DType::Bool => ops::logical_or(&x, &zero.ne(0)?)?,
            own => (x + as_type(&zero, own)?)?,
        };
        Ok(V::of(y, own))
    });
    each.collect::<Result<Vec<V>>>().map(Some)
}

/// Whether a body draws random numbers: a turn beside the graph would draw some too.
fn draws(reader: &Reader<'_>, body: &GraphProto) -> bool {
    let mut left: Vec<&NodeProto> = body.node.iter().collect();
    let mut opened = FxHashSet::default();
    while let Some(node) = left.pop() {
        if (reader.rules.draws)(node) {
            return true;
        }
        let graphs = node.attribute.iter().filter_map(|a| a.g.as_ref());
        left.extend(graphs.flat_map(|graph| &graph.node));
        let key = (node.domain.clone(), node.op_type.clone());
        if let Some(function) = reader.functions.get(&key)
            && opened.insert(key)
        {
            left.extend(&function.node);
        }
    }
    false
}
