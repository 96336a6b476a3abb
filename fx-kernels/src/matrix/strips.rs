//! How panels are cut into strips for the products of few rows, which threads take as tasks.
//!
//! Invariant: no thread has much more to do than another, as far as panels can be shared out.

/// The most strips.
const MOST: usize = 64;

/// The panels of a strip, an even number unless there is one strip: for `tasks` strips or fewer.
///
/// The more strips the better, as long as threads have equally much to do. The start of a strip takes as long as a panel:
/// what comes first from memory was not asked for before.
pub(super) fn strip(panels: usize, tasks: usize) -> usize {
    let threads = rayon::current_num_threads();
    if tasks < 2 || threads < 2 {
        return panels.max(1);
    }
    let cut = |rounds: usize| {
        let strip = panels.div_ceil(threads * rounds).next_multiple_of(2);
        let time = panels.div_ceil(strip).div_ceil(threads) * (strip + 1);
        (strip, time)
    };
    let cuts = (1..=tasks.min(MOST).div_ceil(threads)).map(cut);
    let least = cuts.clone().map(|(_, time)| time).min().unwrap_or_default();
    // Two in a hundred are less than what the threads of a real machine differ by.
    let (strip, _) = cuts
        .rev()
        .find(|(_, time)| time * 50 <= least * 51)
        .unwrap_or((panels, 0));
    strip.max(1)
}
