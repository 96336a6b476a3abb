//! What snapshots leave out of texts.

/// A text without the line and column numbers of source locations, which every edit of a file
/// changes.
pub fn without_lines(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    let mut parts = text.split(".rs:");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(".rs:_");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'));
    }
    out
}
