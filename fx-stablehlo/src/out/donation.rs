//! Donated arguments: a run writes results over their memory.
//!
//! Invariant: a donated argument has a result of its element type and sizes, which is no other argument's.

use std::collections::{HashMap, HashSet};

use fx_nn::prelude::*;

use crate::out::cx::Array;

/// Whose memory an argument's becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Donation {
    /// That of a result.
    Result(usize),
    /// That of any result: XLA chooses, since the parts that devices have of a result are its own.
    Any,
}

impl Donation {
    /// The attribute of the argument, by the names that XLA reads.
    pub fn to_mlir(self) -> String {
        match self {
            Donation::Result(at) => format!("tf.aliasing_output = {at} : i32"),
            Donation::Any => String::from("jax.buffer_donor = true"),
        }
    }
}

/// Whose memory that of each argument becomes, if its name is among the donated ones.
///
/// # Errors
/// Returns an error if no argument has a name, or no result is left that fits.
pub(crate) fn donations<'a>(
    donated: &[String],
    arguments: impl Iterator<Item = (&'a str, &'a Array)> + Clone,
    results: &[Array],
    is_sharded: bool,
) -> Result<Vec<Option<Donation>>> {
    let names: HashSet<&str> = arguments.clone().map(|(name, _)| name).collect();
    if let Some(name) = donated.iter().find(|name| !names.contains(name.as_str())) {
        let known: Vec<&str> = arguments.map(|(known, _)| known).collect();
        return Err(Error::msg(format_args!(
            "`{name}` cannot be donated: the program takes {}",
            known.join(", ")
        )));
    }
    let donated: HashSet<&str> = donated.iter().map(String::as_str).collect();
    // The results of each type that no argument has yet, the last first.
    let mut free: HashMap<(DType, &[i64]), Vec<usize>> = HashMap::new();
    for (at, result) in results.iter().enumerate().rev() {
        free.entry((result.dtype, &result.shape))
            .or_default()
            .push(at);
    }
    let all = arguments.map(|(name, array)| {
        if !donated.contains(name) {
            return Ok(None);
        }
        let left = free.get_mut(&(array.dtype, &array.shape[..]));
        match left.and_then(Vec::pop) {
            Some(_) if is_sharded => Ok(Some(Donation::Any)),
            Some(at) => Ok(Some(Donation::Result(at))),
            None => Err(Error::msg(format_args!(
                "`{name}` cannot be donated: no result is left that has its type {} and its sizes {:?}",
                array.dtype, array.shape
            ))),
        }
    });
    all.collect()
}
