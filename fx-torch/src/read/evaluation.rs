//! Evaluation: a program that was exported in training, as it computes in evaluation.
//!
//! Invariant: what differs between the two is a flag of an operator.

use fx_nn::prelude::*;

use crate::call::Call;
use crate::rules;

/// The operators that know whether they train: the argument that says so, and what it has to come with.
const FLAGS: [(&str, &str, Option<&str>); 14] = [
    (
        "aten._native_batch_norm_legit_functional",
        "training",
        Some("running_mean"),
    ),
    ("aten.alpha_dropout", "train", None),
    ("aten.batch_norm", "training", Some("running_mean")),
    ("aten.dropout", "train", None),
    ("aten.feature_alpha_dropout", "train", None),
    ("aten.feature_dropout", "train", None),
    ("aten.gru", "train", None),
    (
        "aten.instance_norm",
        "use_input_stats",
        Some("running_mean"),
    ),
    ("aten.lstm", "train", None),
    ("aten.native_dropout", "train", None),
    ("aten.rnn_relu", "train", None),
    ("aten.rnn_tanh", "train", None),
    ("aten.rrelu", "training", None),
    ("aten.rrelu_with_noise", "training", None),
];

/// The same call in evaluation.
pub(super) fn of(mut call: Call<'_>) -> Call<'_> {
    let operator = rules::short(call.target).1;
    let operator = operator.strip_suffix('_').unwrap_or(operator);
    if operator == "aten.scaled_dot_product_attention" {
        for (_, p) in call
            .args
            .iter_mut()
            .filter(|(name, _)| *name == "dropout_p")
        {
            *p = Value::Float(0.0);
        }
        return call;
    }
    let Some((_, flag, with)) = FLAGS.iter().find(|(known, ..)| *known == operator) else {
        return call;
    };
    if with.is_none_or(|with| call.get(with).is_some()) {
        for (_, value) in call.args.iter_mut().filter(|(name, _)| name == flag) {
            *value = Value::Bool(false);
        }
    }
    call
}
