//! The recorded calls of the differential test, by name: what programs are made of.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use fx_differential::{Arg, Call, Kind, Outcome};
use fx_nn::Result;
use fx_nn::prelude::*;

/// The recorded calls, by name.
pub struct Calls {
    pub(crate) by_name: Vec<(String, Vec<Arc<Call>>)>,
}

/// The functions that ONNX has no operators for.
pub(crate) static NOT_IN_ONNX: LazyLock<HashSet<String>> =
    LazyLock::new(|| refused(include_str!("../../../fx-onnx/docs/operations.md")));

/// The functions that StableHLO has no form of.
pub(crate) static NOT_IN_STABLEHLO: LazyLock<HashSet<String>> = LazyLock::new(|| {
    refused(include_str!(
        "../../../fx-stablehlo/docs/stablehlo-operations.md"
    ))
});

/// The functions that the page of a format refuses.
fn refused(page: &str) -> HashSet<String> {
    let rows = page.lines().filter(|row| row.contains("| no:"));
    let paths = rows.filter_map(|row| row.split('`').nth(1));
    let names = paths.map(|path| plain(path.rsplit("::").next().unwrap_or(path)));
    names.collect()
}

/// A name as a function and the layer of it share it: `pixel_unshuffle`, `PixelUnshuffle`.
pub(crate) fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

impl Calls {
    /// Reads the lines that the differential test has recorded.
    ///
    /// # Errors
    /// Returns an error if one is not a call.
    pub fn parse(lines: &str) -> Result<Self> {
        let mut by_name: BTreeMap<String, Vec<Arc<Call>>> = BTreeMap::new();
        for line in lines.lines() {
            let call = Call::parse(line)?;
            if matches!(call.outcome, Outcome::Refused)
                || fx_differential::is_plain(&call)
                || writes(&call)
            {
                continue;
            }
            let entry = by_name.entry(call.name.clone()).or_default();
            entry.push(Arc::new(call));
        }
        Ok(Calls {
            by_name: by_name.into_iter().collect(),
        })
    }

    /// All calls, in the order of their names.
    pub fn all(&self) -> Vec<Arc<Call>> {
        let calls = self.by_name.iter().flat_map(|(_, calls)| calls.clone());
        calls.collect()
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().map(|(name, _)| &**name)
    }
}

/// Whether a call has to do with `bfloat16`.
pub fn is_bf16(call: &Call) -> bool {
    let made = call
        .made
        .as_ref()
        .is_some_and(|made| made.dtype == DType::BF16);
    made || call.has(DType::BF16)
        || call
            .args
            .iter()
            .any(|arg| matches!(arg, Arg::DType(DType::BF16)))
}

/// Whether a function writes into one of its arguments.
fn writes(call: &Call) -> bool {
    let is_trained = call.args.iter().any(|arg| matches!(arg, Arg::Bool(true)));
    call.kind != Kind::Layer && is_trained && ["batch_norm", "instance_norm"].contains(&&*call.name)
}
