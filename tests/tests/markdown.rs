//! The Markdown pages: their width, their links, their wording, and that the list of examples is complete.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All pages of the repository, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the repository is readable") {
            let path = entry.expect("the repository is readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a page is text");
                pages.push((path, text));
            }
        }
    }
    assert!(pages.len() > 10, "the pages are found: {}", pages.len());
    pages
}

#[test]
fn lines_are_at_most_120_columns_wide() {
    let mut wide = Vec::new();
    for (path, text) in pages() {
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > 120 && !line.starts_with('|') {
                wide.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "lines over 120 columns: {wide:#?}");
}

/// A heading as the anchor that leads to it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        });
    kept.collect()
}

#[test]
fn relative_links_lead_somewhere() {
    let mut broken = Vec::new();
    for (path, text) in pages() {
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            if target.starts_with("http") || target.contains(char::is_whitespace) {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((target, ""));
            let there = match file {
                "" => path.clone(),
                file => path.parent().expect("a page is in a folder").join(file),
            };
            let found = match part {
                "" => there.exists(),
                part => fs::read_to_string(&there).is_ok_and(|text| {
                    let mut headings = text.lines().filter(|line| line.starts_with('#'));
                    headings.any(|heading| anchor(heading) == part)
                }),
            };
            if !found {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

#[test]
fn plain_words_are_used() {
    const NOT_SAID: &[(&str, &str)] = &[
        ("is told", "is an error, is reported"),
        ("are told", "are errors, are reported"),
        ("of one's own", "custom"),
        ("that there is already", "existing"),
        ("what is other", "what differs"),
        ("in the place of", "instead of"),
        ("the mend", "the fix"),
        ("for ever", "without end"),
        ("in the field's words", "(leave it out)"),
    ];
    let mut said = Vec::new();
    for (path, text) in pages() {
        let text = text.to_lowercase();
        for (phrase, better) in NOT_SAID {
            let ends_there = |(at, found): (usize, &str)| {
                !text[at + found.len()..].starts_with(char::is_alphabetic)
            };
            if text.match_indices(phrase).any(ends_there) {
                said.push(format!("{}: `{phrase}`, better: {better}", path.display()));
            }
        }
    }
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn the_list_of_examples_is_complete() {
    let list = fs::read_to_string(root().join("fx-nn/examples/README.md")).expect("the list");
    let listed = |name: &str| list.contains(&format!("\n| `{name}` |"));
    let mut missing = Vec::new();
    for folder in ["fx-nn/examples", "fx-core/examples"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder of examples") {
            let path = entry.expect("a folder of examples").path();
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_example = path.is_dir() || path.extension().is_some_and(|end| end == "rs");
            if is_example && !listed(&name) {
                missing.push(name);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "examples that the list lacks: {missing:?}"
    );
}
