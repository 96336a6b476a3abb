//! The tables of torch.fx's and functorch's tests, `docs/torchfx-tests.md` and `docs/functorch-tests.md`: each row names
//! existing tests, or says why there is none.
//!
//! It is here because this crate has the parser.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// How many tests torch.fx 2.15 has of the features in the table.
const ROWS: usize = 334;
/// How many of functorch's tests are in the other table.
const OF_FUNCTORCH: usize = 92;

/// The tests of a source file.
#[derive(Default)]
struct Tests {
    named: BTreeSet<String>,
    /// The macros of the file that make tests.
    makers: BTreeSet<String>,
}

impl Tests {
    /// `None` where there is no such file.
    fn of(path: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let source = fs::read_to_string(root.join(path)).ok()?;
        let file = syn::parse_file(&source).expect("a source file that compiles");
        let mut tests = Tests::default();
        tests.visit_file(&file);
        Some(tests)
    }

    fn name_all(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    self.named.insert(ident.to_string());
                }
                TokenTree::Group(group) => self.name_all(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.attrs.iter().any(|attr| attr.path().is_ident("test")) {
            self.named.insert(item.sig.ident.to_string());
        }
        visit::visit_item_fn(self, item);
    }

    /// A macro whose text has `#[test]` makes a test of each name that it gets.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let tokens = &item.mac.tokens;
        if let Some(name) = &item.ident {
            if tokens.to_string().contains("# [test]") {
                self.makers.insert(name.to_string());
            }
        } else if let Some(name) = item.mac.path.get_ident()
            && self.makers.contains(&name.to_string())
        {
            self.name_all(tokens.clone());
        }
    }
}

/// The three cells of each row: torch.fx's test, its file, and what is here.
fn rows(page: &str) -> Vec<[&str; 3]> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells = line.strip_prefix("| ").and_then(|l| l.strip_suffix(" |"));
        let cells: Vec<&str> = cells.unwrap_or_default().splitn(3, " | ").collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("a row has three cells: {line}"))
    })
    .collect()
}

/// The text between backquotes, alternating with the text outside: the odd parts.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The faults of the page.
fn findings(page: &str, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut listed = BTreeSet::new();
    let mut files: BTreeMap<&str, Option<Tests>> = BTreeMap::new();
    let rows = rows(page);
    if rows.len() != count {
        found.push(format!("there are {} rows, not {count}", rows.len()));
    }
    for [test, file, here] in rows {
        if !listed.insert((test, file)) {
            found.push(format!("{test} of {file} is listed twice"));
        }
        let reason = ["*Not here:* ", "*Later:* "]
            .iter()
            .find_map(|kind| here.strip_prefix(kind));
        let holders: Vec<_> = quoted(here)
            .filter_map(|name| name.split_once(".rs::"))
            .collect();
        let is_held = !holders.is_empty() && here.starts_with('`');
        if !is_held && reason.is_none_or(|reason| reason.trim_end_matches('.').len() <= 10) {
            found.push(format!("{test} has neither a test nor a reason: {here}"));
        }
    }
    for name in quoted(page) {
        let Some((path, function)) = name.split_once(".rs::") else {
            continue;
        };
        if path == "path/to/file" {
            continue;
        }
        let file = &name[..path.len() + ".rs".len()];
        match files.entry(file).or_insert_with(|| Tests::of(file)) {
            None => found.push(format!("there is no {file} with {function}")),
            Some(tests) if !tests.named.contains(function) => {
                found.push(format!("{file} has no test {function}"));
            }
            Some(_) => {}
        }
    }
    found
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    fs::read_to_string(path).expect("the page is in the repository")
}

#[test]
fn each_row_names_a_test_or_a_reason() {
    for (name, count) in [
        ("torchfx-tests.md", ROWS),
        ("functorch-tests.md", OF_FUNCTORCH),
    ] {
        let found = findings(&page(name), count);
        assert!(
            found.is_empty(),
            "docs/{name} is not true any more; name the tests as they are called now:\n{}",
            found.join("\n")
        );
    }
}

/// Each fault that a page may have is found.
#[test]
fn a_wrong_page_is_told() {
    let page = page("torchfx-tests.md");
    let [test, file, here] = rows(&page)[0];
    let row = format!("| {test} | {file} | {here} |");
    let told = |wrong: &str, problem: &str| {
        let found = findings(wrong, ROWS);
        assert!(
            found.iter().any(|told| told.contains(problem)),
            "{found:#?}"
        );
    };
    told(&row, "there are 1 rows");
    told(&format!("{row}\n{row}"), "is listed twice");
    for nothing in ["", "*Later:* .", "somewhere", "see `symbolic_trace`"] {
        let wrong = format!("| {test} | {file} | {nothing} |");
        told(&wrong, "has neither a test nor a reason");
    }
    let held = |name: &str| format!("| {test} | {file} | `{name}` |");
    told(
        &held("fx-core/tests/none.rs::named"),
        "there is no fx-core/tests/none.rs",
    );
    let helper = "fx-macros/tests/torchfx_tests.rs::findings";
    told(&held(helper), "has no test findings");
}
