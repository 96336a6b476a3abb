//! The names that libraries had: paths in files that were written before a library was renamed begin with them.
//!
//! Invariant: a path that is known as it is written is never looked up as another one.

use rustc_hash::FxHashMap;

/// Former names of libraries, each with the present one. `.ci/rename` adds to it.
const FORMER: &[[&str; 2]] = &[];

/// The path that a path of an older file is now, if it names a library that has another name today.
pub(crate) fn renamed(path: &str) -> Option<String> {
    renamed_by(FORMER, path)
}

/// The entry of a path, as it is written or as it is now.
pub(crate) fn known<'t, V>(table: &'t FxHashMap<&'static str, V>, path: &str) -> Option<&'t V> {
    let now = || table.get(&*renamed(path)?);
    table.get(path).or_else(now)
}

fn renamed_by(names: &[[&str; 2]], path: &str) -> Option<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    let mut is_renamed = false;
    while !rest.is_empty() {
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(length);
        // A library is the first segment of a path, also of one in a list of types.
        let is_first = !out.ends_with("::") && behind.starts_with("::");
        let mut found = names.iter().filter(|_| is_first);
        match found.find_map(|[old, new]| (*old == word).then_some(*new)) {
            Some(new) => {
                is_renamed = true;
                out.push_str(new);
            }
            None => out.push_str(word),
        }
        let others = behind.find(is_name).unwrap_or(behind.len());
        out.push_str(&behind[..others]);
        rest = &behind[others..];
    }
    is_renamed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_alone_are_renamed() {
        let names = &[["old_nn", "new_nn"], ["old", "new_core"]];
        let renamed = |path: &str| renamed_by(names, path);
        assert_eq!(
            renamed("old_nn::ops::relu").as_deref(),
            Some("new_nn::ops::relu")
        );
        assert_eq!(
            renamed("other::Both<old::A, Vec<old_nn::B>>").as_deref(),
            Some("other::Both<new_core::A, Vec<new_nn::B>>")
        );
        for path in ["other::old::x", "old_nn", "bold_nn::x", "my_old::x", ""] {
            assert_eq!(renamed(path), None, "{path}");
        }
    }
}
