//! `summary`: a table of a model's modules with their results, parameters and multiply-adds.

use std::collections::{HashMap, HashSet};
use std::fmt;

use fx_core::ir::ValueMeta;
use fx_core::module::{ComponentExt, Module};
use fx_core::trace::{IntoArgs, SymbolicTracer};
use fx_core::value::{Dim, Value, short_type_name};
use fx_core::{Error, Result};

use crate::counter::{Counter, around, opened};

/// One module of a [`Summary`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModuleSummary {
    /// Its path; empty for the root.
    pub path: String,
    /// Its type.
    pub type_name: String,
    /// Its result in its last call; `None` if it was not called.
    pub output: Option<ValueMeta>,
    /// Elements of its parameters, including those of the modules inside.
    pub parameters: usize,
    /// Multiplications with an addition in one run, including those of the modules inside.
    pub multiply_adds: Dim,
}

/// A model's modules, made by [`summary`]; prints as a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The modules, the root first, each before those inside it.
    pub modules: Vec<ModuleSummary>,
    /// Elements of the parameters that require a gradient.
    pub trainable_parameters: usize,
    /// Bytes of the inputs.
    pub input_bytes: Dim,
    /// Bytes of the results of all calls of the graph.
    pub output_bytes: Dim,
    /// Bytes of parameters and buffers.
    pub state_bytes: usize,
    /// Calls of modules whose multiply-adds could not be counted, with the reason.
    pub uncounted: Vec<String>,
}

/// Runs a model on sample inputs and returns for each module its result, how many parameters are in
/// it, and how many multiply-adds it took.
///
/// Multiply-adds are those of convolutions, matrix products, attention and recurrent layers; a bias, a norm or an
/// activation counts none.
///
/// ```
/// use fx_nn::prelude::*;
/// let model = fx_nn::models::mlp::Mlp::new(16, 32, 4)?;
/// let summary = fx_nn::summary(&model, &Tensor::rand((2, 16))?)?;
/// let root = &summary.modules[0];
/// assert_eq!(root.parameters, (16 * 32 + 32) + (32 * 32 + 32) + (32 * 4 + 4));
/// assert_eq!(root.multiply_adds, 2 * (16 * 32 + 32 * 32 + 32 * 4));
/// println!("{summary}");
///
/// // Without data, and with a size that has a name:
/// use fx_nn::shapes::spec;
/// let summary = fx_nn::summary(&model, &Tensor::fake(spec!["batch", 16; F32])?)?;
/// assert_eq!(summary.modules[0].multiply_adds.to_string(), "1664*batch");
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the model cannot be traced or run.
pub fn summary(model: &(impl Module + ?Sized), args: impl IntoArgs) -> Result<Summary> {
    let (traced, inputs) = opened(model, &args.into_args(), SymbolicTracer)?;
    let mut counter = Counter::default();
    let mut input_bytes = Dim::default();
    for input in &inputs {
        input_bytes = (input_bytes + ValueMeta::of(input).memory()?)?;
    }
    counter.run(&traced, inputs)?;

    let mut sizes: HashMap<String, usize> = HashMap::new();
    for (path, value) in model.named_parameters() {
        for module in around(&path) {
            *sizes.entry(module.to_string()).or_default() += numel(&value);
        }
    }
    let modules = model.named_modules().into_iter().map(|(path, type_name)| {
        let seen = counter.seen.get(&path);
        ModuleSummary {
            type_name: short_type_name(type_name),
            output: seen.and_then(|seen| seen.output.clone()),
            parameters: sizes.get(&path).copied().unwrap_or(0),
            multiply_adds: seen.map_or(Dim::default(), |seen| seen.multiply_adds.clone()),
            path,
        }
    });
    let trainable = crate::nn::trainable_parameters(model).into_values();
    Ok(Summary {
        modules: modules.collect(),
        trainable_parameters: trainable.map(|tensor| numel(&Value::object(tensor))).sum(),
        input_bytes,
        output_bytes: counter.output_bytes,
        state_bytes: model
            .state_dict()
            .values()
            .map(|v| ValueMeta::of(v).bytes())
            .sum(),
        uncounted: counter.uncounted,
    })
}

fn numel(value: &Value) -> usize {
    ValueMeta::of(value)
        .tensor()
        .and_then(fx_core::ir::TensorMeta::numel)
        .unwrap_or(0)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: HashSet<&str> = self.modules.iter().map(|m| m.path.as_str()).collect();
        let rows: Vec<[String; 4]> = self
            .modules
            .iter()
            .map(|module| {
                // A list of modules is not a module itself: `layer1.0` belongs to the module around
                // `layer1`.
                let modules = around(&module.path).filter(|path| listed.contains(path));
                let nearest = modules.clone().next_back().map(str::len);
                let within = nearest.map_or("", |len| &module.path[len..]);
                let name = match within.trim_start_matches('.') {
                    "" => module.type_name.clone(),
                    name => format!("{name}: {}", module.type_name),
                };
                let depth = modules.count();
                let shape = module.output.as_ref().map_or("--".to_string(), shapes);
                let number = |n: &Dim| if *n == 0 { "--".to_string() } else { shown(n) };
                [
                    format!("{}{name}", "  ".repeat(depth)),
                    shape,
                    number(&module.parameters.into()),
                    number(&module.multiply_adds),
                ]
            })
            .collect();
        let head = ["module", "output shape", "parameters", "multiply-adds"];
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(head[column].len())
        };
        let [a, b, c, d] = [width(0), width(1), width(2), width(3)];
        let rule = "-".repeat(a + b + c + d + 6);
        let line = |f: &mut fmt::Formatter<'_>, row: [&str; 4]| {
            writeln!(
                f,
                "{:a$}  {:b$}  {:>c$}  {:>d$}",
                row[0], row[1], row[2], row[3]
            )
        };
        line(f, head)?;
        writeln!(f, "{rule}")?;
        for row in &rows {
            line(f, [&row[0], &row[1], &row[2], &row[3]])?;
        }
        writeln!(f, "{rule}")?;
        let root = self.modules.first();
        let parameters = root.map_or(0, |root| root.parameters);
        writeln!(f, "parameters: {}", grouped(parameters as u64))?;
        writeln!(
            f,
            "trainable parameters: {}",
            grouped(self.trainable_parameters as u64)
        )?;
        let count = root.map_or(Dim::default(), |root| root.multiply_adds.clone());
        writeln!(f, "multiply-adds: {}", shown(&count))?;
        writeln!(f, "input size: {}", megabytes(&self.input_bytes))?;
        writeln!(f, "forward pass size: {}", megabytes(&self.output_bytes))?;
        let state = megabytes(&self.state_bytes.into());
        writeln!(f, "parameters and buffers size: {state}")?;
        for reason in &self.uncounted {
            writeln!(f, "not counted: {reason}")?;
        }
        Ok(())
    }
}

/// The shapes of a value.
fn shapes(meta: &ValueMeta) -> String {
    match meta {
        ValueMeta::Single(tensor) => format!("{:?}", tensor.shape),
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            let items: Vec<String> = items.iter().map(shapes).collect();
            format!("({})", items.join(", "))
        }
        ValueMeta::Dict(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(k, v)| format!("{k}: {}", shapes(v)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
        meta => meta.to_string(),
    }
}

/// A number with commas between thousands, or an expression.
fn shown(number: &Dim) -> String {
    match number.as_known() {
        Some(number) => grouped(number as u64),
        None => number.to_string(),
    }
}

fn megabytes(bytes: &Dim) -> String {
    match bytes.as_known() {
        Some(bytes) => format!("{:.2} MB", bytes as f64 / 1e6),
        None => format!("{bytes} bytes"),
    }
}

/// A number with commas between thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Summary {
    /// The module at a path.
    ///
    /// # Errors
    /// Returns an error if there is no such module.
    pub fn module(&self, path: &str) -> Result<&ModuleSummary> {
        self.modules
            .iter()
            .find(|module| module.path == path)
            .ok_or_else(|| Error::msg(format_args!("the model has no module `{path}`")))
    }
}
