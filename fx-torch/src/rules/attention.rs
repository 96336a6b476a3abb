//! Attention.

use fx_nn::prelude::ops;

use super::entry::{Entry, same};

pub(crate) const RULES: &[Entry] = same! {
    "aten.scaled_dot_product_attention" => ops::scaled_dot_product_attention,
};
