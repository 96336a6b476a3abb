//! Which whole numbers a run may take from a tensor, as the program was checked for.
//!
//! Invariant: what the file does not say is any number.

use fx_nn::prelude::*;
use indexmap::IndexMap;

use crate::call::Call;
use crate::rules;
use crate::schema::{Argument, Graph, Node, Range, Size, Sym};
use crate::size;

/// Says to a call of `item` which numbers it may give.
pub(super) fn known<'n>(
    mut call: Call<'n>,
    graph: &Graph,
    node: &Node,
    ranges: &IndexMap<String, Range>,
) -> Call<'n> {
    let operator = rules::short(&node.target).1;
    if !["aten.item", "aten._local_scalar_dense"].contains(&operator) {
        return call;
    }
    let Some(Argument::AsSymInt(Sym::AsName(name))) = node.outputs.first() else {
        return call;
    };
    let Some(Size::AsExpr(of)) = graph.sym_int_values.get(name) else {
        return call;
    };
    let range = size::text(&of.expr_str)
        .ok()
        .and_then(|symbol| ranges.get(&symbol));
    if let Some(range) = range {
        let least = range.min_val.filter(|least| *least > i64::MIN / 2);
        let most = range.max_val.filter(|most| *most < i64::MAX / 2);
        for (name, end) in [("least", least), ("most", most)] {
            if let Some(end) = end {
                call.args.push((name, Value::Int(end)));
            }
        }
    }
    call
}
