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
        "onnx",
        "an adaptive pool to",
        "ONNX has adaptive pools to size 1, and those whose windows have one size",
    ),
    (
        "onnx",
        "a local response norm over an even number",
        "ONNX centres the window of a local response norm",
    ),
    (
        "onnx",
        "export the model in evaluation mode",
        "ONNX has no such function in training",
    ),
    (
        "onnx",
        "images of other than four dims",
        "ONNX has no form of it without a batch",
    ),
    (
        "onnx",
        "an LP pool of a broken power",
        "ONNX has LP pools of whole powers, and none with `ceil_mode`",
    ),
    (
        "onnx",
        "an instance norm by running statistics",
        "it is a batch norm, which is to be written instead",
    ),
    (
        "stablehlo",
        "alpha dropout while training",
        "StableHLO has no such function in training",
    ),
    (
        "",
        "uint8 images between places are rounded by PyTorch's own rule",
        "no format has PyTorch's rounding of images of bytes",
    ),
    (
        "onnx",
        "ONNX's loss has no label smoothing",
        "ONNX has no label smoothing; the error says how to write it",
    ),
    (
        "stablehlo",
        "a negative power needs an inverse",
        "StableHLO has no inverse of a matrix",
    ),
    (
        "sharded",
        "each device would draw other numbers, or change the same state",
        "what draws or trains is not partitioned",
    ),
    (
        "sharded",
        "is no tensor whose sizes are numbers",
        "a result whose size the data decides is not partitioned",
    ),
    (
        "stablehlo",
        "random numbers inside of a branch or a loop",
        "a key is split before a loop, and not in it",
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
