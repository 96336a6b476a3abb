//! Donated arguments: a run writes results over their memory.
//!
//! Invariant: a donated argument has a result of its element type and sizes, which is no other argument's.

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
    for name in donated {
        if !arguments.clone().any(|(known, _)| known == name) {
            let known: Vec<&str> = arguments.clone().map(|(known, _)| known).collect();
            return Err(Error::msg(format_args!(
                "`{name}` cannot be donated: the program takes {}",
                known.join(", ")
            )));
        }
    }
    let mut free: Vec<bool> = vec![true; results.len()];
    let all = arguments.map(|(name, array)| {
        if !donated.iter().any(|known| known == name) {
            return Ok(None);
        }
        let fits = |at: &usize| {
            let result = &results[*at];
            free[*at] && (result.dtype, &result.shape) == (array.dtype, &array.shape)
        };
        let Some(at) = (0..results.len()).find(fits) else {
            return Err(Error::msg(format_args!(
                "`{name}` cannot be donated: no result is left that has its type {} and its sizes {:?}",
                array.dtype, array.shape
            )));
        };
        free[at] = false;
        Ok(Some(match is_sharded {
            true => Donation::Any,
            false => Donation::Result(at),
        }))
    });
    all.collect()
}
