//! The Markdown pages: their width, their links, their wording, the names in them, and the list of examples; and the
//! wording of the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files of the repository with an ending, with their texts.
fn files(ending: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the repository is readable") {
            let path = entry.expect("the repository is readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(ending) {
                let text = fs::read_to_string(&path).expect("a file is text");
                files.push((path, text));
            }
        }
    }
    files
}

/// All pages of the repository, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let pages = files(".md");
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
    let sources = files(".rs")
        .into_iter()
        .filter(|(path, _)| !path.ends_with("tests/markdown.rs"));
    for (path, text) in pages().into_iter().chain(sources) {
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

/// The words of a text that can be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The names in a code span that are called, or stand in a path.
fn names(span: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    let mut rest = span;
    let mut before = "";
    while let Some(start) = rest.find(is_name) {
        let gap = &rest[..start];
        let end = rest[start..]
            .find(|c| !is_name(c))
            .map_or(rest.len(), |len| start + len);
        let (name, after) = (&rest[start..end], &rest[end..]);
        let is_path = after.starts_with("::") || gap.ends_with("::") && !before.is_empty();
        // A name in quotes or behind a slash is a text or a file.
        let is_ours = !gap.ends_with(['"', '/']);
        if is_ours && (is_path || after.starts_with('(')) {
            names.push(name);
        }
        (before, rest) = (name, after);
    }
    names
}

#[test]
fn names_in_the_guides_exist() {
    /// Rust's own names, candle's, and what torch.fx calls something.
    const OTHERS: &[&str] = &[
        "Ok",
        "Some",
        "unwrap_or_else",
        "helper",
        "clone",
        "map_err",
        "derive",
        "parse",
        "rev",
        "super",
        "to_string",
        "Gelu",
        "add_",
        "candle_nn",
        "broadcast_add",
        "sqr",
    ];
    let mut known: BTreeSet<String> = OTHERS.iter().map(ToString::to_string).collect();
    for list in [
        "fx-core",
        "fx-lm",
        "fx-macros",
        "fx-nn",
        "fx-onnx",
        "fx-pjrt",
        "fx-quant",
        "fx-stablehlo",
    ] {
        let list = root().join(format!("fx-macros/tests/public_api/{list}.txt"));
        let list = fs::read_to_string(list).expect("the public surface");
        known.extend(words(&list).map(ToString::to_string));
    }
    known.insert("fx_lm".to_string());
    known.insert("fx_onnx".to_string());
    known.insert("fx_stablehlo".to_string());
    known.insert("fx_torch".to_string());
    known.insert("fx_pjrt".to_string());
    known.insert("fx_quant".to_string());
    known.insert("trainable".to_string());
    let operations =
        fs::read_to_string(root().join("docs/ops.md")).expect("the page of operations");
    known.extend(words(&operations).map(ToString::to_string));
    // Public modules, and methods that macros make.
    for (path, text) in files(".rs") {
        if path.components().any(|part| part.as_os_str() == "src") {
            let modules = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("pub mod "));
            known.extend(
                modules
                    .filter_map(|rest| words(rest).next())
                    .map(ToString::to_string),
            );
        }
    }
    known.extend((1..=5).map(|n| format!("dims{n}")));

    let mut unknown = Vec::new();
    for (path, text) in pages() {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_guide = path
            .parent()
            .is_some_and(|folder| folder.ends_with("fx-nn/docs"));
        if !(is_guide || name == "README.md" || name == "CONTRIBUTING.md") || name == "ops.md" {
            continue;
        }
        // The first column of these has the names of another library.
        let has_others = name.starts_with("from-");
        let mut in_code = false;
        for line in text.lines() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            let shown = match line.strip_prefix("| ") {
                _ if in_code => continue,
                Some(row) if has_others => row.split_once(" | ").map_or("", |(_, rest)| rest),
                _ => line,
            };
            for span in shown.split('`').skip(1).step_by(2) {
                let strange = names(span)
                    .into_iter()
                    .filter(|name| !known.contains(*name));
                unknown.extend(strange.map(|n| format!("{}: `{n}` in `{span}`", path.display())));
            }
        }
    }
    assert!(unknown.is_empty(), "names that do not exist: {unknown:#?}");
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
