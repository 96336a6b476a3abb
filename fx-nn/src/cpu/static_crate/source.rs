//! The text of a crate: its `lib.rs`, its manifest and its README.
//!
//! Invariant: no text of a graph becomes code; names are identifiers that nothing else has.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use fx_core::{Error, Result};

use super::plan::{Input, Place, Plan, Step, Work};

/// The words that Rust keeps for itself, and those that a crate uses.
const TAKEN: [&str; 57] = [
    "Self", "abstract", "arena", "as", "async", "await", "become", "box", "break", "const",
    "continue", "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for",
    "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override",
    "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true", "try",
    "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "low",
    "out", "high", "weights",
];

/// The name of an input as an identifier.
fn field(input: &Input, at: usize) -> String {
    let is_plain = input.name.starts_with(|c: char| c.is_ascii_lowercase())
        && input
            .name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match is_plain && !TAKEN.contains(&&*input.name) {
        true => input.name.clone(),
        false => format!("input_{at}"),
    }
}

/// A text of a graph inside a line of a comment.
fn comment(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

/// The text of `src/lib.rs`.
pub(super) fn library(plan: &Plan, model: &str) -> Result<String> {
    let mut body = String::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let fields: Vec<String> = plan
        .inputs
        .iter()
        .enumerate()
        .map(|(at, input)| field(input, at))
        .collect();
    for step in &plan.steps {
        let _ = writeln!(body, "    // {}", comment(&step.what));
        body.push_str(&step_text(plan, step, &fields)?);
    }
    let used = |name: &&str| {
        body.match_indices(*name).any(|(at, _)| {
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let before = body[..at].chars().next_back();
            !is_word(before) && !is_word(body[at + name.len()..].chars().next())
        })
    };
    names.extend(NAMES.iter().copied().filter(used));
    if plan
        .steps
        .iter()
        .any(|step| matches!(step.work, Work::Kernel(_)))
    {
        names.insert("Kernel");
    }
    let has_weights = body.contains("weights[");
    if has_weights {
        names.extend(["Aligned", "floats"]);
    }
    let can_fail = plan
        .steps
        .iter()
        .any(|step| matches!(step.work, Work::Rows { .. }));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "//! `{}` without `std` and without an allocator, as fx wrote it.\n",
        comment(model)
    );
    let _ = writeln!(text, "#![no_std]\n#![forbid(unsafe_code)]\n");
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        let _ = writeln!(text, "use fx_static::{{{}}};\n", names.join(", "));
    }
    let arena = plan.arena;
    let _ = writeln!(
        text,
        "/// The floats of an [`Arena`].\npub const ARENA: usize = {arena};\n"
    );
    if has_weights {
        let count = plan.weights.floats().len();
        let _ = writeln!(
            text,
            "/// The floats of the weights.\npub const WEIGHTS: usize = {count};\n\n\
             static BYTES: &Aligned<[u8; 4 * WEIGHTS]> = &Aligned(*include_bytes!(\"weights.bin\"));\n\n\
             #[cfg(target_endian = \"big\")]\ncompile_error!(\"the weights are little-endian floats\");\n"
        );
    }
    text.push_str("/// What a run takes, in order of the last dim first.\n#[derive(Debug, Clone, Copy)]\npub struct Inputs<'a> {\n");
    for (input, name) in plan.inputs.iter().zip(&fields) {
        let element = if input.is_indices { "i64" } else { "f32" };
        let count: usize = input.dims.iter().product();
        let _ = writeln!(
            text,
            "    /// `{:?}`.\n    pub {name}: &'a [{element}; {count}],",
            input.dims
        );
    }
    if plan.inputs.is_empty() {
        text.push_str("    /// Nothing.\n    pub nothing: core::marker::PhantomData<&'a f32>,\n");
    }
    text.push_str("}\n\n/// What a run gives: it lies in the arena.\n#[derive(Debug, Clone, Copy)]\npub struct Outputs<'a> {\n");
    for output in &plan.outputs {
        let count = output.floats.numel();
        let _ = writeln!(
            text,
            "    /// `{:?}`.\n    pub {}: &'a [f32; {count}],",
            &output.floats.dims[..],
            output.name
        );
    }
    text.push_str("}\n\n");
    text.push_str(
        "/// The memory of a run.\n#[derive(Debug, Clone)]\npub struct Arena {\n    floats: [f32; ARENA],\n}\n\n\
         impl Arena {\n    /// Zeros: a `static` of it is no part of the program's file.\n    pub const fn new() -> Self {\n        \
         Arena { floats: [0.0; ARENA] }\n    }\n}\n\nimpl Default for Arena {\n    fn default() -> Self {\n        Arena::new()\n    }\n}\n\n",
    );
    let (result, ok) = match can_fail {
        true => ("Result<Outputs<'a>, fx_static::IndexError>", ["Ok(", ")"]),
        false => ("Outputs<'a>", ["", ""]),
    };
    text.push_str("/// Runs the model.\n");
    if can_fail {
        text.push_str(
            "///\n/// # Errors\n/// Returns an error for an index that a table does not have.\n",
        );
    }
    let inputs = if body.contains("inputs.") {
        "inputs"
    } else {
        "_"
    };
    let _ = writeln!(
        text,
        "pub fn run<'a>({inputs}: &Inputs<'_>, arena: &'a mut Arena) -> {result} {{"
    );
    if has_weights {
        text.push_str("    let weights = floats(BYTES);\n");
    }
    let is_used = !plan.steps.is_empty();
    if is_used {
        text.push_str("    let arena = &mut arena.floats[..];\n");
    }
    text.push_str(&body);
    let _ = writeln!(text, "    {}Outputs {{", ok[0]);
    for output in &plan.outputs {
        let Place::Buffer(buffer) = output.floats.memory else {
            continue;
        };
        let start = output.floats.start;
        let range = plan.in_arena(buffer, &(start..start + output.floats.numel()));
        let _ = writeln!(
            text,
            "        {}: arena[{range:?}].first_chunk().expect(\"the arena has it\"),",
            output.name
        );
    }
    let _ = writeln!(text, "    }}{}\n}}", ok[1]);
    Ok(text)
}

/// What a step may name.
const NAMES: [&str; 26] = [
    "Activation",
    "AdaptivePool",
    "Attention",
    "Contiguous",
    "Conv",
    "ConvSpec",
    "ConvTranspose",
    "Fill",
    "Join",
    "Linear",
    "MaskKind",
    "Matmul",
    "Normed",
    "Pad",
    "Places",
    "Pool",
    "PoolSpec",
    "Pooled",
    "Recurrent",
    "Reduce",
    "Reduction",
    "RowNorm",
    "Unit",
    "point",
    "rows_at",
    "split",
];

/// A step: the arena is cut at what it writes.
fn step_text(plan: &Plan, step: &Step, fields: &[String]) -> Result<String> {
    let part = plan.in_arena(step.out, &(0..step.length));
    let mut sides = ["_", "_"];
    let mut read = |(place, range): &(Place, Range<usize>)| match place {
        Place::Buffer(buffer) => {
            let range = plan.in_arena(*buffer, range);
            match range.start < part.start {
                true => {
                    sides[0] = "low";
                    format!("&low[{range:?}]")
                }
                false => {
                    sides[1] = "high";
                    format!("&high[{:?}]", range.start - part.end..range.end - part.end)
                }
            }
        }
        Place::Weights => format!("&weights[{range:?}]"),
        Place::Input(at) => format!("&inputs.{}[{range:?}]", fields[*at]),
    };
    let reads: Vec<String> = step.reads.iter().map(&mut read).collect();
    let call = match &step.work {
        Work::Kernel(kernel) => {
            let mut text = String::new();
            kernel.source(&mut text).map_err(Error::other)?;
            format!(
                "{}\n        .run(&[{}], out)",
                text.replace(", }", " }"),
                reads.join(", ")
            )
        }
        Work::Points(steps) => steps.text(&reads)?,
        Work::Rows { size, input } => {
            format!(
                "rows_at({size}, &inputs.{}[..], {}, out)?",
                fields[*input], reads[0]
            )
        }
    };
    let [low, high] = sides;
    Ok(format!(
        "    let ({low}, out, {high}) = split(arena, {part:?});\n    {call};\n"
    ))
}

/// The text of `Cargo.toml`.
pub(super) fn manifest(package: &str) -> String {
    format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\nfx-static = {{ path = {:?} }}\n\n[profile.release]\nopt-level = \"s\"\nlto = true\npanic = \"abort\"\n",
        fx_static::MANIFEST_DIR
    )
}
