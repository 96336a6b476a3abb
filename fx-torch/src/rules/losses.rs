//! Losses, whose reductions are numbers in programs.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, same_function};
use crate::call::Call;

/// A loss whose first two tensors are `x1` and `x2`.
const PAIR: [(&str, &str); 2] = [("input1", "x1"), ("input2", "x2")];

fn loss(function: Function, call: &Call<'_>) -> Result<Value> {
    let mut args = call.args.clone();
    for (_, value) in args.iter_mut().filter(|(name, _)| *name == "reduction") {
        let name = match value {
            Value::Int(0) => "none",
            Value::Int(1) => "mean",
            Value::Int(2) => "sum",
            other => {
                return Err(Error::msg(format_args!(
                    "`reduction` is {}",
                    other.describe()
                )));
            }
        };
        *value = Value::Str(name.into());
    }
    same_function(function, &PAIR, &call.with_args(args))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.binary_cross_entropy" => |call| loss(function!(ops::binary_cross_entropy), call),
    "aten.binary_cross_entropy_with_logits" => |call| {
        loss(function!(ops::binary_cross_entropy_with_logits), call)
    },
    "aten.cosine_embedding_loss" => |call| loss(function!(ops::cosine_embedding_loss), call),
    "aten.cross_entropy_loss" => |call| loss(function!(ops::cross_entropy), call),
    "aten.hinge_embedding_loss" => |call| loss(function!(ops::hinge_embedding_loss), call),
    "aten.huber_loss" => |call| loss(function!(ops::huber_loss), call),
    "aten.kl_div" => |call| loss(function!(ops::kl_div), call),
    "aten.l1_loss" => |call| loss(function!(ops::l1_loss), call),
    "aten.margin_ranking_loss" => |call| loss(function!(ops::margin_ranking_loss), call),
    "aten.mse_loss" => |call| loss(function!(ops::mse_loss), call),
    "aten.multi_margin_loss" => |call| loss(function!(ops::multi_margin_loss), call),
    "aten.multilabel_margin_loss" => |call| loss(function!(ops::multilabel_margin_loss), call),
    "aten.nll_loss" => |call| loss(function!(ops::nll_loss), call),
    "aten.nll_loss_nd" => |call| loss(function!(ops::nll_loss), call),
    "aten.poisson_nll_loss" => |call| loss(function!(ops::poisson_nll_loss), call),
    "aten.smooth_l1_loss" => |call| loss(function!(ops::smooth_l1_loss), call),
    "aten.soft_margin_loss" => |call| loss(function!(ops::soft_margin_loss), call),
    "aten.triplet_margin_loss" => |call| loss(function!(ops::triplet_margin_loss), call),
};
