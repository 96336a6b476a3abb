//! Patterns of dotted paths: the one language in which modules, nodes and parameters are chosen by path.

use std::fmt;

use fast_glob::{glob_match, validate};

use crate::error::{Error, Result};

/// A pattern of dotted paths, as globs have them, with dots between the parts.
///
/// `*` matches any text of one part, `**` any number of parts, `?` one character, `[a-c]` one of several
/// characters, and `{q,v}_proj` one of several texts. A `!` at the start matches all other paths.
///
/// ```
/// use fx_core::module::PathPattern;
/// let pattern = PathPattern::new("layers.*.attn.{q,v}_proj")?;
/// assert!(pattern.matches("layers.3.attn.q_proj"));
/// assert!(!pattern.matches("layers.3.attn.k_proj"));
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PathPattern {
    /// The pattern with slashes, which are the separators of globs.
    glob: String,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Returns an error if a bracket or brace is not closed, or braces nest more than ten deep.
    pub fn new(pattern: &str) -> Result<Self> {
        let glob = pattern.replace('.', "/");
        validate(&glob).map_err(|error| {
            let problem = format!("`{pattern}` is not a pattern of paths: {error}");
            Error::unknown(pattern, problem)
        })?;
        Ok(Self { glob })
    }

    /// Whether the pattern matches a whole path.
    pub fn matches(&self, path: &str) -> bool {
        let path = path.replace('.', "/");
        let below = self.glob.strip_suffix("/**");
        // `layers.**` is `layers` and all below it.
        glob_match(&self.glob, &path) || below.is_some_and(|glob| glob_match(glob, &path))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.glob.replace('/', "."))
    }
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("layers.*.attn", "layers.3.attn", true),
            ("layers.*.attn", "layers.3.mlp.attn", false),
            ("layers.**", "layers.3.mlp.attn", true),
            ("layers.**", "layers", true),
            ("**.attn", "layers.3.attn", true),
            ("**.attn", "attn", true),
            ("conv*", "conv1", true),
            ("conv*_1", "conv2d_1", true),
            ("conv*_1", "conv2d_2", false),
            ("*a*b*", "xxayybzz", true),
            ("*a*b*", "xxbyyazz", false),
            ("relu", "relu_1", false),
            ("**", "a.b", true),
            ("{0,1}.**", "1.weight", true),
            ("{0,1}.**", "2.weight", false),
            ("h.*.{q,v}_proj", "h.0.v_proj", true),
            ("layer[1-2].conv", "layer2.conv", true),
        ] {
            let found = PathPattern::new(pattern).map(|pattern| pattern.matches(path));
            assert_eq!(found.ok(), Some(expected), "{pattern} on {path}");
        }
        assert!(PathPattern::new("layers.{0,1").is_err());
    }
}
