//! `block`: how many channels lie beside each other in the images of a file that ONNX Runtime optimized for a machine.

use fx_nn::prelude::*;
use rustc_hash::FxHashSet;

use crate::proto::GraphProto;

/// The domain of operators on such images.
pub(super) const DOMAIN: &str = "com.microsoft.nchwc";

/// The channels of a block of a file, as far as its weights say: else those that ONNX Runtime has on this machine, as such a
/// file is one machine's.
pub(super) fn block<'t>(
    graph: &GraphProto,
    constants: impl Iterator<Item = &'t (String, Tensor)>,
) -> i64 {
    let convs = graph
        .node
        .iter()
        .filter(|node| node.domain == DOMAIN && node.op_type == "Conv");
    let names: FxHashSet<&str> = convs
        .filter_map(|node| node.input.get(1).map(String::as_str))
        .collect();
    if names.is_empty() {
        return own_block();
    }
    let is_half = |dims: &[usize]| match dims {
        [results, channels, ..] => results % 16 != 0 || *channels > 16 && channels % 16 != 0,
        _ => false,
    };
    let mut weights = constants.filter(|(name, _)| names.contains(&**name));
    match weights.any(|(_, weight)| weight.dims().is_ok_and(is_half)) {
        true => 8,
        false => own_block(),
    }
}

#[cfg(target_arch = "x86_64")]
fn own_block() -> i64 {
    match std::arch::is_x86_feature_detected!("avx512f") {
        true => 16,
        false => 8,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn own_block() -> i64 {
    16
}
