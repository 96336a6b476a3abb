//! A run whose threads stay awake: between its parallel steps they look for work, and do not sleep.
//!
//! Invariant: a thread that waits for a run waits for no other run below it, so that runs never wait for each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use web_time::Instant;

/// How often a thread looks for work before it lets others of the system run.
const LOOKS: usize = 4096;

thread_local! {
    /// Whether the thread runs, or waits for, a run already.
    static IS_TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// Takes the thread for as long as it lives.
struct Taken;

impl Taken {
    fn of_this_thread() -> Option<Taken> {
        // Made only where it was free: one that is dropped gives the thread back.
        (!IS_TAKEN.replace(true)).then(|| Taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        IS_TAKEN.set(false);
    }
}

/// Says that a run is over, a panic included.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `body` on a thread of rayon's pool, whose other threads look for its work until it ends.
///
/// A thread that has gone to sleep takes longer to wake than a product of one row takes.
///
/// ```
/// use rayon::prelude::*;
/// let sum = fx_kernels::awake(|| {
///     let squares: Vec<u64> = (0..1000u64).into_par_iter().map(|x| x * x).collect();
///     squares.par_iter().sum::<u64>()
/// });
/// assert_eq!(sum, 332_833_500);
/// ```
pub fn awake<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let is_over = AtomicBool::new(false);
    rayon::scope(|scope| {
        let Some(_taken) = Taken::of_this_thread() else {
            return body();
        };
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| watch(&is_over));
        }
        let _ends = Ends(&is_over);
        body()
    })
}

/// Whether the threads of something that runs again and again stay awake, as long runs need and short ones had better not.
///
/// ```
/// use rayon::prelude::*;
/// let pace = fx_kernels::Pace::default();
/// let sum = pace.run(|| (0..1000u64).into_par_iter().sum::<u64>());
/// assert_eq!(sum, 499_500);
/// ```
#[derive(Debug, Default)]
pub struct Pace {
    /// Nanoseconds of the last run.
    last: AtomicU64,
    was_awake: AtomicBool,
}

/// The nanoseconds of a run whose threads stay awake the next time, and those below which they may sleep again.
const LONG: u64 = 500_000;
const SHORT: u64 = LONG / 4;

impl Pace {
    /// Runs `body`, [`awake`] if the run before it was long.
    pub fn run<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        let least = match self.was_awake.load(Ordering::Relaxed) {
            true => SHORT,
            false => LONG,
        };
        let is_long = self.last.load(Ordering::Relaxed) >= least;
        let start = Instant::now();
        let result = match is_long {
            true => awake(body),
            false => body(),
        };
        let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(time, Ordering::Relaxed);
        self.was_awake.store(is_long, Ordering::Relaxed);
        result
    }
}

/// Does what work there is until the run is over.
fn watch(is_over: &AtomicBool) {
    let Some(_taken) = Taken::of_this_thread() else {
        return;
    };
    let mut looks = 0;
    while !is_over.load(Ordering::Acquire) {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => looks = 0,
            _ if looks < LOOKS => {
                looks += 1;
                std::hint::spin_loop();
            }
            _ => {
                looks = 0;
                std::thread::yield_now();
            }
        }
    }
}
