//! How many threads kernels share their work among.
//!
//! Invariant: rayon's pool is the one owner of threads; nothing here starts others.

use std::sync::Arc;

use fx_core::passes::backend::Around;
use fx_core::{Error, Result};
use fx_kernels::Pace;

use crate::{device, is_grad_enabled, no_grad};

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

/// What graphs run in whose parts share their work among rayon's threads, for
/// [`Executable::around`](fx_core::passes::backend::Executable::around): a long run is on a thread of the pool, whose
/// other threads stay awake between the parts. The scopes of the caller hold there too: [`no_grad`],
/// [`with_device`](crate::with_device).
///
/// ```
/// let around = fx_nn::threads_awake();
/// let mut count = 0;
/// fx_nn::no_grad(|| around.run(&mut || count += usize::from(!fx_nn::is_grad_enabled())));
/// assert_eq!(count, 1);
/// ```
pub fn threads_awake() -> Arc<dyn Around> {
    Arc::new(Awake::default())
}

#[derive(Default)]
struct Awake(Pace);

impl Around for Awake {
    fn run(&self, graph: &mut (dyn FnMut() + Send)) {
        let (device, has_gradients) = (device::current(), is_grad_enabled());
        self.0.run(|| {
            device::on(&device, || match has_gradients {
                true => graph(),
                false => no_grad(graph),
            })
        });
    }
}
