//! The text of a crate: its `lib.rs` and its manifest.
//!
//! Invariant: no text of a graph becomes code; names are identifiers that nothing else has.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use fx_core::{Error, Result};

use super::floats::Place;
use super::plan::{Input, Plan, Step, Work};

/// The names of inputs as identifiers. A graph gives no node a name that Rust keeps for itself.
fn fields(inputs: &[Input]) -> Vec<String> {
    let is_plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let mut fields: Vec<String> = Vec::with_capacity(inputs.len());
    for (at, input) in inputs.iter().enumerate() {
        fields.push(match is_plain(&input.name) {
            true => input.name.clone(),
            // No name of a graph ends so.
            false => format!("input_{at}_"),
        });
    }
    fields
}

/// A text of a graph inside a line of a comment.
fn comment(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

/// The text of `src/lib.rs`.
pub(super) fn library(plan: &Plan, model: &str) -> Result<String> {
    let fields = fields(&plan.inputs);
    let steps = plan.steps.iter();
    let steps: Vec<String> = steps
        .map(|step| step_text(plan, step, &fields))
        .collect::<Result<_>>()?;
    let has_weights = !plan.weights.floats().is_empty();
    let mut text = format!(
        "//! `{}` without `std` and without an allocator, as fx wrote it.\n\n\
         #![no_std]\n#![forbid(unsafe_code)]\n\n",
        comment(model)
    );
    let names = names(plan, &steps);
    if !names.is_empty() {
        let _ = writeln!(text, "use fx_static::{{{}}};\n", names.join(", "));
    }
    let _ = writeln!(
        text,
        "/// The floats of an [`Arena`].\npub const ARENA: usize = {};\n",
        plan.arena
    );
    if has_weights {
        let _ = writeln!(
            text,
            "/// The floats of the weights.\npub const WEIGHTS: usize = {};\n\n\
             static BYTES: &Aligned<[u8; 4 * WEIGHTS]> = &Aligned(*include_bytes!(\"weights.bin\"));\n\n\
             #[cfg(target_endian = \"big\")]\ncompile_error!(\"the weights are little-endian floats\");\n",
            plan.weights.floats().len()
        );
    }
    types(&mut text, plan, &fields);
    run(&mut text, plan, &steps);
    Ok(text)
}

/// The names that steps have of `fx_static`, in order.
fn names(plan: &Plan, steps: &[String]) -> Vec<&'static str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for step in steps {
        words.extend(step.split(|c| !is_word(c)));
    }
    let named = NAMES.into_iter().filter(|name| words.contains(name));
    let mut names: BTreeSet<&str> = named.collect();
    let has_kernels = |step: &Step| matches!(step.work, Work::Kernel(_));
    if plan.steps.iter().any(has_kernels) {
        names.insert("Kernel");
    }
    if !plan.weights.floats().is_empty() {
        names.extend(["Aligned", "floats"]);
    }
    names.into_iter().collect()
}

/// What a run takes and gives, and its memory.
fn types(text: &mut String, plan: &Plan, fields: &[String]) {
    text.push_str(
        "/// What a run takes; the last dim lies in order.\n\
         #[derive(Debug, Clone, Copy)]\npub struct Inputs<'a> {\n",
    );
    for (input, name) in plan.inputs.iter().zip(fields) {
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
    text.push_str(
        "}\n\n/// What a run gives: it lies in the arena.\n\
         #[derive(Debug, Clone, Copy)]\npub struct Outputs<'a> {\n",
    );
    for output in &plan.outputs {
        let count = output.floats.numel();
        let _ = writeln!(
            text,
            "    /// `{:?}`.\n    pub {}: &'a [f32; {count}],",
            &output.floats.dims[..],
            output.name
        );
    }
    text.push_str(
        "}

/// The memory of a run.
#[derive(Debug, Clone)]
pub struct Arena {
    floats: [f32; ARENA],
}

impl Arena {
    /// Zeros: a `static` of it is no part of the program's file.
    pub const fn new() -> Self {
        Arena { floats: [0.0; ARENA] }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

",
    );
}

/// The function that runs the steps.
fn run(text: &mut String, plan: &Plan, steps: &[String]) {
    text.push_str("/// Runs the model.\n");
    let can_fail = |step: &Step| matches!(step.work, Work::Rows { .. });
    let (result, ok) = match plan.steps.iter().any(can_fail) {
        true => {
            text.push_str(
                "///\n/// # Errors\n/// Returns an error for an index that a table does not have.\n",
            );
            let result = "Result<Outputs<'a>, fx_static::IndexError>";
            (result, ["Ok(", ")"])
        }
        false => ("Outputs<'a>", ["", ""]),
    };
    let are_read = steps.iter().any(|step| step.contains("inputs."));
    let inputs = if are_read { "inputs" } else { "_" };
    let _ = writeln!(
        text,
        "pub fn run<'a>({inputs}: &Inputs<'_>, arena: &'a mut Arena) -> {result} {{"
    );
    if !plan.weights.floats().is_empty() {
        text.push_str("    let weights = floats(BYTES);\n");
    }
    text.push_str("    let arena = &mut arena.floats[..];\n");
    for (step, code) in plan.steps.iter().zip(steps) {
        let _ = writeln!(text, "    // {}", comment(&step.what));
        text.push_str(code);
    }
    let _ = writeln!(text, "    {}Outputs {{", ok[0]);
    for output in &plan.outputs {
        let range = plan.result(output);
        let _ = writeln!(
            text,
            "        {}: arena[{range:?}].first_chunk().expect(\"the arena has it\"),",
            output.name
        );
    }
    let _ = writeln!(text, "    }}{}\n}}", ok[1]);
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
        _ if range.is_empty() => "&[]".to_string(),
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
