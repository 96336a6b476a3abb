//! `docs/from-candle.md` shows what `examples/from_candle.rs` has, line for line.

/// The body of a module of the example, less its indentation.
fn module(name: &str) -> Vec<&'static str> {
    let start = format!("// {name}");
    let lines = include_str!("../examples/from_candle.rs").lines();
    lines
        .skip_while(|line| *line != start)
        .skip(2)
        .take_while(|line| *line != "}")
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect()
}

/// The diff's lines of one side.
fn side(sign: char) -> Vec<&'static str> {
    let lines = include_str!("../../docs/from-candle.md").lines();
    lines
        .skip_while(|line| *line != "```diff")
        .skip(1)
        .take_while(|line| *line != "```")
        .filter(|line| line.is_empty() || line.starts_with([' ', sign]))
        .map(|line| line.get(1..).unwrap_or(""))
        .collect()
}

#[test]
fn the_diff_is_the_example() {
    assert_eq!(side('-'), module("before"));
    assert_eq!(side('+'), module("after"));
    assert!(module("after").len() > 30);
}
