//! Pairing two node lists; it owns that equal lists pair by position and that each node is in exactly one pair.

/// A golden node with ours, or one without the other; the numbers are positions in the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// They stand for each other.
    Both(usize, usize),
    /// Only in the golden.
    Theirs(usize),
    /// Only in ours.
    Ours(usize),
}

/// Above this many cells the table is not made: lists are then paired by position.
const TABLE_LIMIT: usize = 16_000_000;

/// Pairs `0..theirs` with `0..ours` in order, so that the sum of `score` is largest; 0 means "do not belong together".
///
/// Between nodes that belong together, runs of equal length on both sides are paired one by one: a changed node is
/// then reported as changed, not as missing here and new there.
pub(crate) fn align(theirs: usize, ours: usize, score: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let by_position = theirs == ours && (0..theirs).all(|i| score(i, i) > 0);
    let shorter = theirs.min(ours);
    let anchors = if by_position || theirs.saturating_mul(ours) > TABLE_LIMIT {
        (0..shorter).map(|i| (i, i)).collect()
    } else {
        best_chain(theirs, ours, score)
    };
    let mut pairs = Vec::with_capacity(theirs.max(ours));
    let (mut i, mut j) = (0, 0);
    for (next_i, next_j) in anchors.into_iter().chain([(theirs, ours)]) {
        if next_i - i == next_j - j {
            pairs.extend((i..next_i).zip(j..next_j).map(|(i, j)| Pair::Both(i, j)));
        } else {
            pairs.extend((i..next_i).map(Pair::Theirs));
            pairs.extend((j..next_j).map(Pair::Ours));
        }
        if next_i < theirs && next_j < ours {
            pairs.push(Pair::Both(next_i, next_j));
        }
        (i, j) = (next_i + 1, next_j + 1);
    }
    pairs
}

/// The longest common subsequence, weighted.
fn best_chain(
    theirs: usize,
    ours: usize,
    score: impl Fn(usize, usize) -> u32,
) -> Vec<(usize, usize)> {
    let width = ours + 1;
    // best[i * width + j]: the best sum for what is left from i and j on.
    let mut best = vec![0u32; (theirs + 1) * width];
    for i in (0..theirs).rev() {
        for j in (0..ours).rev() {
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let here = score(i, j);
            best[i * width + j] = if here > 0 {
                skip.max(here + best[(i + 1) * width + j + 1])
            } else {
                skip
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut chain = Vec::new();
    while i < theirs && j < ours {
        let here = score(i, j);
        let all = best[i * width + j];
        if here > 0 && all == here + best[(i + 1) * width + j + 1] {
            chain.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if all == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::{Pair, align};

    fn of(theirs: &str, ours: &str) -> Vec<Pair> {
        let (a, b) = (theirs.as_bytes(), ours.as_bytes());
        align(a.len(), b.len(), |i, j| u32::from(a[i] == b[j]))
    }

    #[test]
    fn every_node_is_in_one_pair() {
        assert_eq!(of("ab", "ab"), [Pair::Both(0, 0), Pair::Both(1, 1)]);
        assert_eq!(of("axb", "ayb").len(), 3);
        assert_eq!(of("axb", "ayb")[1], Pair::Both(1, 1));
        assert_eq!(
            of("abc", "ac"),
            [Pair::Both(0, 0), Pair::Theirs(1), Pair::Both(2, 1)]
        );
        assert_eq!(
            of("ac", "abbc"),
            [
                Pair::Both(0, 0),
                Pair::Ours(1),
                Pair::Ours(2),
                Pair::Both(1, 3)
            ]
        );
        assert_eq!(of("", "a"), [Pair::Ours(0)]);
        assert_eq!(of("a", ""), [Pair::Theirs(0)]);
        assert_eq!(of("", ""), []);
    }
}
