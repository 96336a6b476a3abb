//! `fx-nn/docs/from-candle.md` shows what the examples have, line for line, and names all of candle's methods and layers.

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../docs/from-candle.md");

/// The body of a module of an example, less its indentation.
fn module<'a>(example: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("// {name}");
    let lines = example.lines();
    lines
        .skip_while(|line| *line != start)
        .skip(2)
        .take_while(|line| *line != "}")
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect()
}

/// One side of the page's diff at a place.
fn side(place: usize, sign: char) -> Vec<&'static str> {
    let diff = PAGE.split("```diff\n").nth(place + 1).unwrap_or_default();
    diff.lines()
        .take_while(|line| *line != "```")
        .filter(|line| line.is_empty() || line.starts_with([' ', sign]))
        .map(|line| line.get(1..).unwrap_or(""))
        .collect()
}

#[test]
fn the_diffs_are_the_examples() {
    let examples = [
        include_str!("../examples/from_candle.rs"),
        include_str!("../examples/decoder_from_candle.rs"),
    ];
    for (place, example) in examples.into_iter().enumerate() {
        assert_eq!(side(place, '-'), module(example, "before"));
        assert_eq!(side(place, '+'), module(example, "after"));
        assert!(module(example, "after").len() > 30);
    }
}

/// The names in the first column of the tables between two headings.
fn listed(from: &str, to: &str) -> BTreeSet<&'static str> {
    let part = PAGE.split(from).nth(1).unwrap_or_default();
    let part = part.split(to).next().unwrap_or_default();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split(" | ").next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// Both lists were read off candle's sources, version 0.11.1; a new version of candle needs new ones.
#[test]
fn the_tables_have_all_of_candles_names() {
    let methods: BTreeSet<&str> = include_str!("from_candle/tensor_methods.txt")
        .lines()
        .collect();
    let types: BTreeSet<&str> = include_str!("from_candle/nn_types.txt").lines().collect();
    assert!(methods.len() > 200 && types.len() > 50);
    assert_eq!(
        listed(
            "## Every method of candle's",
            "### Functions of `candle_nn`"
        ),
        methods
    );
    assert_eq!(listed("### Types of `candle_nn`", "\n## "), types);
    let lock = include_str!("../../Cargo.lock");
    assert!(
        lock.contains("name = \"candle-core\"\nversion = \"0.11.1\""),
        "candle is another version"
    );
}
