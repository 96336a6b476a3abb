//! Why one path may refuse what others run: a fixed list. A refusal that is not here is a fault.

use crate::calls::plain;
use crate::generate::Case;
use crate::program::Step;

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
        "onnx",
        "ONNX has the one point of a dim of size 1 at its start",
        "ONNX's grid of one point is at another place where corners are aligned",
    ),
    (
        "onnx runtime",
        "Unexpected mode of 3",
        "ONNX Runtime has no padding that wraps for a type that ONNX gives it",
    ),
    (
        "onnx runtime",
        "does not support double yet",
        "ONNX Runtime has no recurrent layers of float64",
    ),
    (
        "onnx",
        "ONNX always includes what is there before",
        "ONNX scatters onto what is there; the error says so",
    ),
    (
        "stablehlo",
        "StableHLO's rule has \"bilinear\" and \"nearest\"",
        "points of a grid by a cubic curve are not written",
    ),
    (
        "stablehlo",
        "points in volumes: StableHLO's rule is for images",
        "points of a grid in volumes are not written",
    ),
    (
        "onnx runtime",
        "lrn.cc",
        "ONNX Runtime has local response norms of images alone",
    ),
    (
        "",
        "a sorter: gather the sequence before",
        "no format has a sorter beside a sequence; the error says how to write it",
    ),
    (
        "onnx",
        "columns of other than three dims",
        "ONNX folds batches",
    ),
    (
        "onnx",
        "is not known where it is used",
        "a size that the data decides is no size of a tensor before",
    ),
    (
        "stablehlo",
        "XLA's programs have fixed sizes",
        "XLA's programs have fixed sizes",
    ),
    (
        "sharded",
        "is no tensor of known sizes",
        "what has a size that the data decides is not partitioned",
    ),
    (
        "",
        "Infer its shapes with other specs, or drop the guards",
        "a size that broadcasts is taken to be no 1: a guard refuses the run in which it is",
    ),
    (
        "split",
        "and its effects come between theirs",
        "what a layer that is trained writes is between what is read",
    ),
    (
        "split",
        "and they have no effect",
        "a part that nothing uses is refused by its name",
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

/// What another engine computes by a rule of its own: the path, a part of the functions' names, a part of the text, and
/// the rule.
const DIFFERENCES: &[(&str, &str, &str, &str)] = &[
    (
        "onnx runtime",
        "maxpool",
        "expected NaN",
        "ONNX Runtime's largest number of a window leaves NaN out",
    ),
    (
        "onnx runtime",
        "rnn",
        "expected NaN",
        "ONNX Runtime's recurrent layers with `relu` leave NaN out",
    ),
];

/// The relative difference of numbers that a file has as `float32`.
const SINGLE: f64 = 1e-6;

/// The numbers of a difference: what a path gives, and what is expected.
fn numbers(text: &str) -> Option<(f64, f64)> {
    let (found, expected) = text.split_once(" is ")?.1.split_once(", expected ")?;
    let expected = expected.split(',').next()?;
    Some((found.parse().ok()?, expected.parse().ok()?))
}

/// The rule by which another engine gives another value.
pub fn difference(path: &str, case: &Case, text: &str) -> Option<&'static str> {
    let steps = case.program.all_steps();
    let calls = |part: &str| {
        steps.iter().any(|step| match step {
            Step::Call { call, .. } => plain(&call.name).contains(part),
            _ => false,
        })
    };
    if path.starts_with("onnx")
        && numbers(text).is_some_and(|(a, b)| (a - b).abs() <= SINGLE * b.abs())
    {
        return Some("numbers that are attributes of ONNX are float32");
    }
    let mut rules = DIFFERENCES.iter();
    let found = rules.find(|(of, name, part, _)| *of == path && text.contains(part) && calls(name));
    found.map(|(.., why)| *why)
}
