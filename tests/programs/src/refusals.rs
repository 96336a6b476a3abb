//! Why one path may refuse what others run: a fixed list. A refusal that is not here is a fault.

/// A rule: the start of the path's name, a part of the error's text, and why that is right.
const RULES: &[(&str, &str, &str)] = &[
    ("onnx", "engine: not asked for", "the engine is not there"),
    (
        "onnx",
        "cannot be written as ONNX:",
        "ONNX has no operators for a function; its page says why",
    ),
    (
        "stablehlo",
        "cannot be written as StableHLO:",
        "StableHLO has no form of a function; its page says why",
    ),
    (
        "onnx runtime",
        "engine: NotImplemented",
        "ONNX Runtime has no kernel of an operator for a type that ONNX gives it",
    ),
    (
        "",
        "needs the value of",
        "a layer reads its weights while it is opened",
    ),
];

/// The rule of a refusal.
pub fn rule(path: &str, text: &str) -> Option<&'static str> {
    let mut rules = RULES.iter();
    let found = rules.find(|(of, part, _)| path.starts_with(of) && text.contains(part));
    found.map(|(_, _, why)| *why)
}
