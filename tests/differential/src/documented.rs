//! The rows of `docs/ops.md`: what has to be called.

/// A row of the page.
#[derive(Debug, Clone)]
pub struct Documented {
    /// `Functions`, `Operators` or `Layers`.
    pub chapter: &'static str,
    /// The name.
    pub name: String,
    /// Whether it is a method of tensors too.
    pub is_method: bool,
}

/// All rows of the page.
pub fn documented() -> Vec<Documented> {
    let mut rows = Vec::new();
    let mut chapter = "";
    for line in include_str!("../../../docs/ops.md").lines() {
        if let Some(title) = line.strip_prefix("## ") {
            chapter = title;
        }
        let Some((path, rest)) = line.strip_prefix("| `").and_then(|l| l.split_once('`')) else {
            continue;
        };
        let name = path.rsplit("::").next().unwrap_or(path);
        rows.push(Documented {
            chapter,
            name: name.trim_start_matches("r#").to_string(),
            is_method: chapter == "Functions" && rest.starts_with(" | yes"),
        });
    }
    rows
}
