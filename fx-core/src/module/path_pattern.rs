//! Patterns of dotted paths, the one language in which modules are chosen by where they are.

/// Whether a dotted path fits a pattern, part by part: `*` in a part stands for any text, a part `**` for any parts.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    fn part(pattern: &str, text: &str) -> bool {
        let mut pieces = pattern.split('*');
        let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or("")) else {
            return false;
        };
        let pieces: Vec<&str> = pieces.collect();
        let Some((last, middle)) = pieces.split_last() else {
            return rest.is_empty();
        };
        for piece in middle {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
    let parts: Vec<&str> = path.split('.').collect();
    // Which counts of the path's parts the pattern so far can stand for.
    let mut reached = vec![false; parts.len() + 1];
    reached[0] = true;
    for piece in pattern.split('.') {
        let mut next = vec![false; parts.len() + 1];
        for at in 0..=parts.len() {
            if piece == "**" {
                next[at] = reached[at] || (at > 0 && next[at - 1]);
            } else if at > 0 {
                next[at] = reached[at - 1] && part(piece, parts[at - 1]);
            }
        }
        reached = next;
    }
    reached[parts.len()]
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("layers.*.attn", "layers.3.attn", true),
            ("layers.*.attn", "layers.3.mlp.attn", false),
            ("layers.**", "layers.3.mlp.attn", true),
            ("**.attn", "layers.3.attn", true),
            ("**.attn", "attn", true),
            ("conv*", "conv1", true),
            ("conv*_1", "conv2d_1", true),
            ("conv*_1", "conv2d_2", false),
            ("*a*b*", "xxayybzz", true),
            ("*a*b*", "xxbyyazz", false),
            ("relu", "relu_1", false),
            ("**", "a.b", true),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} on {path}");
        }
    }
}
