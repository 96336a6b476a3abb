//! How many threads kernels share their work among.
//!
//! Invariant: rayon's pool is the one owner of threads; nothing here starts others.

use fx_core::{Error, Result};

/// Has all operations, eager and compiled, share their work among this many threads. Without it there
/// is one for each CPU, or as many as `RAYON_NUM_THREADS` says.
///
/// The threads are those of rayon's global pool, which starts at its first use and keeps its size: call
/// this at the start of the program. A compiled module that runs inside of a pool of its own uses that
/// pool's threads: `pool.install(|| module.forward(&x))`. Compiled modules give the same bits for any
/// number of threads.
///
/// ```
/// fx_nn::set_num_threads(2)?;
/// assert_eq!(fx_nn::num_threads(), 2);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the count is 0, or if the pool has started already.
pub fn set_num_threads(count: usize) -> Result<()> {
    if count == 0 {
        return Err(Error::expected("at least one thread", count));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
    pool.build_global().map_err(|error| {
        Error::msg(format_args!(
            "{count} threads: {error}: call `set_num_threads` before anything is computed"
        ))
    })
}

/// How many threads operations on this thread share their work among.
pub fn num_threads() -> usize {
    rayon::current_num_threads()
}
