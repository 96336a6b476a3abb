//! `fx`: what graph modules in files are, from a shell.
//!
//! Invariant: the exit code is 0; 1 if `diff` or `check` finds differences, `lint` faults or `support` what is missing; 2 after an error.
mod arrays;
mod devices;
mod input;
mod json;
mod open;
mod print;
mod runs;
mod script;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use fx_nn::draw::{Column, Page};
use fx_nn::emit::CodeOptions;
use fx_nn::passes::memory_plan;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_onnx::{Export, OnnxExt};
use fx_stablehlo::StableHloExt;
use serde_json::{Value as Json, json};

use crate::input::Input;
use crate::json::nodes;
use crate::open::{input_names, is_onnx, is_program, known_inputs, limited, open, opened};
use crate::runs::{Call, Setting};

/// Shows, draws, compares, converts and checks graph modules in files.
///
/// The files are those that `GraphModule::save` writes, of modules with the layers of fx-nn, ONNX files (`.onnx`), and
/// programs of torch.export (`.pt2`).
#[derive(Debug, Parser)]
#[command(name = "fx", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the graph.
    Show {
        #[command(flatten)]
        of: Of,
    },
    /// Print the modules with their outputs, parameters and multiply-adds.
    Summary {
        #[command(flatten)]
        of: Of,
    },
    /// Print the graph as Rust.
    Code {
        #[command(flatten)]
        of: Of,
        /// Show source lines and shapes.
        #[arg(long)]
        verbose: bool,
    },
    /// Write a page of HTML.
    Html {
        #[command(flatten)]
        of: Of,
        /// The file to write; without it, the module's file with the extension `html`.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Print the nodes that are new, gone and changed in the second file; exits with 1 if there are any.
    Diff {
        before: PathBuf,
        after: PathBuf,
        /// Write a page of both graphs too.
        #[arg(long)]
        html: Option<PathBuf>,
        /// Print colours.
        #[arg(long)]
        color: bool,
    },
    /// Write the module as what the output's name says: `.onnx` is an ONNX file, `.mlir` a folder with a StableHLO program
    /// and its weights, a name with `/` at its end a crate of Rust with its weights, any other name fx's own file. ONNX and
    /// StableHLO need the shape of each argument, unless the file says it.
    Convert {
        #[command(flatten)]
        of: Of,
        /// The file to write, also as `--output`.
        #[arg(required_unless_present = "output")]
        to: Option<PathBuf>,
        /// The file to write.
        #[arg(short, long, conflicts_with = "to")]
        output: Option<PathBuf>,
        /// The name of a crate's module, such as `ResNet18`; the file's name where it is left out.
        #[arg(long)]
        name: Option<String>,
        /// The version of ONNX's operators.
        #[arg(long, default_value_t = 20)]
        opset: i64,
    },
    /// Print the operators of an ONNX file, and what fx would refuse of it: operators and element types that it does not
    /// have, and else the first node that cannot be read, with what to do; exits with 1 if there is any.
    Support {
        #[command(flatten)]
        of: Of,
    },
    /// Run a module once, and print what it gives.
    Run {
        #[command(flatten)]
        call: Call,
        /// Write the results, as `.npz`.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Time a module: all of it, and each step in microseconds and GFLOP/s.
    Bench {
        #[command(flatten)]
        call: Call,
        /// How often it runs.
        #[arg(long, default_value_t = 10)]
        runs: usize,
    },
    /// Compare what a module gives with the arrays of a file; exits with 1 if they differ.
    Check {
        #[command(flatten)]
        call: Call,
        /// The results that are expected, `.npy` or `.npz`: by name, or in the order of the results.
        #[arg(long)]
        reference: PathBuf,
        /// How far an element may be off, as a part of the largest one.
        #[arg(long, default_value_t = 1e-4)]
        tolerance: f64,
    },
    /// Print a Python script that exports a model of PyTorch as a `.pt2` file: `fx torch-script models:make --input
    /// ids=batch,length:int64 > export.py`.
    TorchScript {
        /// The function that makes the model: `MODULE:FACTORY`.
        factory: String,
        /// An argument of `forward`: its name, sizes, of which those with a name stay open, and type.
        #[arg(long = "input", value_name = "NAME=SIZES:TYPE")]
        inputs: Vec<script::Argument>,
    },
    /// Print the plugins of PJRT, which run models on GPUs and TPUs: the one of `FX_PJRT_PLUGIN`, and those among the
    /// packages of a Python.
    Devices {
        /// The Python: the path of its interpreter.
        #[arg(long, default_value = "python3")]
        python: PathBuf,
        /// Load each plugin, which runs its code, and print its devices.
        #[arg(long)]
        load: bool,
    },
    /// Check files and their graphs; exits with 1 if one has a fault.
    Lint {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// A module, and what it will be called with.
#[derive(Debug, Args)]
struct Of {
    file: PathBuf,
    /// What an argument is, once per argument: the shape and type of a tensor, `batch,3,224,224` or `1,16:int64`; a
    /// number or a truth, `=0.5`, `=true`, or one that a run decides, `=float`, `=bool`, `=n`; a structure,
    /// `{key: "1,4", scale: 2.0}`, `["1,4", "1,4"]`, `("1,4", none)`. Shapes are inferred from these without a run. A name
    /// before it says which argument it is: `x=1,4`. Where the module runs, it may be a file: `x.npy`, `x=file.npy`,
    /// `inputs.npz`, and for text `x=words.json`.
    #[arg(long = "input", value_name = "SHAPE", allow_hyphen_values = true)]
    inputs: Vec<Input>,
    /// The value of an input of an ONNX file, which is no input any more: a number, `true`, `false`, or a file of an array.
    #[arg(
        long = "constant",
        value_name = "NAME=VALUE",
        allow_hyphen_values = true
    )]
    constants: Vec<Setting<String>>,
    /// A limit of what an ONNX file may need to be loaded: `constant_bytes=4GiB`, `nodes=2000000`, `depth`, `memory`.
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    limits: Vec<Setting<String>>,
}

impl Of {
    /// The module, with shapes if inputs are given.
    fn load(&self) -> Result<GraphModule> {
        self.named().map(|named| named.module)
    }

    /// The module, with the names that its file has for inputs and results.
    fn named(&self) -> Result<Named> {
        if is_onnx(&self.file) {
            let import = self.loader()?.load(&self.file)?;
            return Ok(Named {
                module: import.module,
                inputs: import.report.inputs,
                outputs: import.report.outputs,
            });
        }
        let module = self.saved()?;
        Ok(Named {
            inputs: input_names(&module),
            module,
            outputs: Vec::new(),
        })
    }

    /// The module of a file of fx's own.
    fn saved(&self) -> Result<GraphModule> {
        if !self.constants.is_empty() || !self.limits.is_empty() {
            return Err(Error::msg("--constant and --limit are of ONNX files"));
        }
        let mut gm = open(&self.file)?;
        if self.inputs.iter().any(|input| input.spec().is_some()) {
            let specs = self.specs(&gm)?;
            gm.infer_shapes(&specs)?;
        }
        Ok(gm)
    }

    /// How the ONNX file is read.
    fn loader(&self) -> Result<fx_onnx::Load> {
        let mut load = fx_onnx::Load::new();
        let mut ordered = Vec::new();
        for input in &self.inputs {
            match (input.spec(), &input.name) {
                (Some(spec), Some(name)) => load = load.input(name, spec.clone()),
                (Some(spec), None) => ordered.push(spec.clone()),
                (None, _) => {}
            }
        }
        let mut limits = fx_onnx::Limits::default();
        for limit in &self.limits {
            limits = limited(limits, &limit.name, &limit.value)?;
        }
        for constant in &self.constants {
            load = load.constant(&constant.name, constant_of(&constant.value)?);
        }
        Ok(load.ordered_inputs(ordered).limits(limits))
    }

    /// What the arguments are, in their order.
    fn specs(&self, gm: &GraphModule) -> Result<Vec<Spec>> {
        if self.inputs.iter().all(|input| input.name.is_none()) {
            return Ok(self
                .inputs
                .iter()
                .filter_map(Input::spec)
                .cloned()
                .collect());
        }
        let mut unnamed = self.inputs.iter().filter(|input| input.name.is_none());
        let each = input_names(gm).into_iter().map(|name| {
            let named = self
                .inputs
                .iter()
                .find(|input| input.name.as_ref() == Some(&name));
            let spec = named
                .or_else(|| unnamed.next())
                .and_then(Input::spec)
                .cloned();
            spec.ok_or_else(|| {
                Error::msg(format_args!(
                    "the input `{name}` is not given: add --input {name}=SHAPE"
                ))
            })
        });
        each.collect()
    }

    /// What the module is called with, as far as the command or the file says it.
    fn known(&self, gm: &GraphModule) -> Option<Vec<Spec>> {
        match self.inputs.is_empty() || is_onnx(&self.file) || is_program(&self.file) {
            true => known_inputs(gm),
            false => self.specs(gm).ok(),
        }
    }

    fn summary(&self, gm: &GraphModule) -> Result<Option<fx_nn::Summary>> {
        let Some(specs) = self.known(gm) else {
            return Ok(None);
        };
        let args = CallArgs {
            args: specs.iter().map(without_data).collect::<Result<_>>()?,
            ..CallArgs::default()
        };
        fx_nn::summary(gm, args).map(Some)
    }
}

/// A module, and what its file calls inputs and results; results of fx's own files have no names.
struct Named {
    module: GraphModule,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// A value that stands in the command: a number, a boolean, or the array of a file.
fn constant_of(text: &str) -> Result<Tensor> {
    let path = Path::new(text);
    if arrays::is_file(path) {
        let mut all = arrays::read(path)?;
        return match all.len() {
            1 => Ok(all.remove(0).1),
            many => Err(Error::msg(format_args!(
                "{text} has {many} arrays, and one is a value"
            ))),
        };
    }
    match (text, text.parse::<i64>(), text.parse::<f32>()) {
        ("true", ..) => Tensor::full((), true, DType::Bool),
        ("false", ..) => Tensor::full((), false, DType::Bool),
        (_, Ok(whole), _) => Tensor::from_vec(vec![whole], ()),
        (_, _, Ok(number)) => Tensor::from_vec(vec![number], ()),
        _ => Err(Error::msg(format_args!(
            "`{text}` is no number, no boolean and no file of an array"
        ))),
    }
}

/// A value of a spec, with tensors of fx-nn.
fn without_data(spec: &Spec) -> Result<Value> {
    fn tensors(value: Value) -> Result<Value> {
        let all = |items: &[Value]| {
            items
                .iter()
                .cloned()
                .map(tensors)
                .collect::<Result<Vec<_>>>()
        };
        Ok(match &value {
            Value::List(items) => Value::List(all(items)?.into()),
            Value::Tuple(items) => Value::Tuple(all(items)?.into()),
            Value::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| Ok((key.clone(), tensors(item.clone())?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
            Value::Object(_) => Value::object(Tensor::from_value(value)?),
            _ => value,
        })
    }
    tensors(spec.fake_value()?)
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => run(&cli),
        // The help and the version are no mistakes, and are printed.
        Err(told) if !told.use_stderr() => print::print(told.render()).map(|()| 0),
        Err(mistake) => mistake.exit(),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            print::error(error);
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<u8> {
    match &cli.command {
        Command::Show { of } => {
            let gm = of.load()?;
            match cli.json {
                true => print::json(&json!({"name": gm.class_name(), "nodes": nodes(gm.graph())}))?,
                false => print::line(format_args!("{:#}", gm.graph()))?,
            }
        }
        Command::Code { of, verbose } => {
            let gm = of.load()?;
            let code = gm.rust_code(&CodeOptions::new().verbose(*verbose));
            match cli.json {
                true => print::json(&json!({"name": gm.class_name(), "code": code.source()}))?,
                false => print::line(code.source())?,
            }
        }
        Command::Summary { of } => summary(of, cli.json)?,
        Command::Html { of, output } => {
            let gm = of.load()?;
            let path = output
                .clone()
                .unwrap_or_else(|| of.file.with_extension("html"));
            let mut page = Page::new();
            if let Some(summary) = of.summary(&gm)? {
                page = page.table(summary);
            }
            if let Ok(plan) = memory_plan(&gm) {
                page = page.column(Column::memory(&plan));
            }
            gm.to_html(&path, &page)?;
            match cli.json {
                true => print::json(&json!({"written": path}))?,
                false => print::line(path.display())?,
            }
        }
        Command::Diff {
            before,
            after,
            html,
            color,
        } => {
            let (before, after) = (open(before)?, open(after)?);
            let diff = before.diff(&after);
            if let Some(path) = html {
                diff.to_html(path)?;
            }
            let [new, gone, changed] = diff.counts();
            match (cli.json, color) {
                (true, _) => print::json(
                    &json!({"new": new, "gone": gone, "changed": changed, "diff": diff.to_string()}),
                )?,
                (false, true) => print::print(format_args!("{diff:#}"))?,
                (false, false) => print::print(&diff)?,
            }
            return Ok(u8::from(!diff.is_empty()));
        }
        Command::Convert {
            of,
            to,
            output,
            name,
            opset,
        } => {
            let output = output.as_ref().or(to.as_ref());
            let output = output.ok_or_else(|| Error::msg("there is no file to write"))?;
            convert(of, output, name.as_deref(), *opset, cli.json)?;
        }
        Command::Support { of } => return support(of, cli.json),
        Command::Run { call, output } => runs::run(call, output.as_ref(), cli.json)?,
        Command::Bench { call, runs } => runs::bench(call, *runs, cli.json)?,
        Command::Check {
            call,
            reference,
            tolerance,
        } => return runs::check(call, reference, *tolerance, cli.json),
        Command::TorchScript { factory, inputs } => {
            print::print(script::script(factory, inputs)?)?;
        }
        Command::Devices { python, load } => {
            devices::devices(python, *load, cli.json)?;
        }
        Command::Lint { files } => return lint(files, cli.json),
    }
    Ok(0)
}

fn summary(of: &Of, json: bool) -> Result<()> {
    let gm = of.load()?;
    let parameters = gm.named_parameters().into_values();
    let parameters =
        parameters.filter_map(|value| value.downcast_ref::<Tensor>()?.numel().ok()?.concrete());
    let parameters: i64 = parameters.sum();
    let Some(summary) = of.summary(&gm)? else {
        let nodes = gm.graph().len();
        return match json {
            true => print::json(
                &json!({"name": gm.class_name(), "nodes": nodes, "parameters": parameters}),
            ),
            false => print::line(format_args!(
                "{}: {nodes} nodes, {parameters} parameters; give each argument's shape with --input to see every module",
                gm.class_name()
            )),
        };
    };
    if !json {
        return print::print(&summary);
    }
    let modules = summary.modules.iter().map(|module| {
        json!({
            "path": module.path,
            "type": module.type_name,
            "output": module.output.as_ref().map(ToString::to_string),
            "parameters": module.parameters,
            "multiply_adds": module.multiply_adds.to_string(),
        })
    });
    let modules: Vec<Json> = modules.collect();
    print::json(&json!({"name": gm.class_name(), "parameters": parameters, "modules": modules}))
}

/// A name of a module's type from a file's: `resnet-18.pt2` is `Resnet18`.
fn type_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let words = stem.split(|c: char| !c.is_ascii_alphanumeric());
    let mut name = String::new();
    for word in words {
        let mut chars = word.chars();
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.extend(chars);
    }
    match name.starts_with(|c: char| c.is_ascii_uppercase()) {
        true => name,
        false => format!("Model{name}"),
    }
}

fn convert(of: &Of, output: &Path, name: Option<&str>, opset: i64, json: bool) -> Result<()> {
    let gm = of.load()?;
    let specs = |what: &str| {
        of.known(&gm).ok_or_else(|| {
            Error::msg(format_args!(
                "{what} says the shape of each argument: give them with --input"
            ))
        })
    };
    if is_onnx(output) {
        let specs = specs("an ONNX file")?;
        let report = gm.to_onnx(output, &Export::specs(specs).opset(opset))?;
        return match json {
            true => print::json(&json!({
                "written": output,
                "nodes": report.nodes,
                "dynamic": report.dynamic,
                "weight_bytes": report.weight_bytes,
            })),
            false => print::line(format_args!("{}: {report}", output.display())),
        };
    }
    if output.extension().is_some_and(|end| end == "mlir") {
        let specs = specs("a StableHLO program")?;
        let report = gm.to_stablehlo(output, &fx_stablehlo::Export::specs(specs))?;
        return match json {
            true => print::json(&json!({
                "written": output,
                "operations": report.operations,
                "weight_bytes": report.weight_bytes,
            })),
            false => print::line(format_args!(
                "{}: {} operations, {} weights",
                output.display(),
                report.operations,
                report.weights
            )),
        };
    }
    match output.as_os_str().to_string_lossy().ends_with('/') {
        true => {
            let name = name.map_or_else(|| type_name(&of.file), str::to_string);
            gm.to_folder(output, &name)?;
        }
        false => gm.save(output)?,
    }
    match json {
        true => print::json(&json!({"written": output})),
        false => print::line(output.display()),
    }
}

/// What a file needs, with each operator, and whether the rest goes together: reading it says that.
struct Needs {
    /// The operators: the name, the number of nodes, and whether it is known.
    operators: Vec<(String, usize, bool)>,
    unknown_types: Vec<String>,
    is_complete: bool,
    text: String,
}

fn needs(file: &Path) -> Result<Needs> {
    if is_program(file) {
        let support = fx_torch::support(file)?;
        let known = |name: &String| !support.missing.contains_key(name);
        let operators = support.operators.iter();
        return Ok(Needs {
            operators: operators
                .map(|(name, nodes)| (name.clone(), *nodes, known(name)))
                .collect(),
            unknown_types: Vec::new(),
            is_complete: support.missing.is_empty(),
            text: format!("{support}\n"),
        });
    }
    let support = fx_onnx::support(file)?;
    Ok(Needs {
        is_complete: support.is_complete(),
        text: support.to_string(),
        operators: support.operators,
        unknown_types: support.types,
    })
}

fn support(of: &Of, json: bool) -> Result<u8> {
    let needs = needs(&of.file)?;
    let refused = match needs.is_complete {
        true => of.load().err().map(|error| error.to_string()),
        false => None,
    };
    if json {
        let operators = needs
            .operators
            .iter()
            .map(|(name, nodes, known)| json!({"name": name, "nodes": nodes, "known": known}));
        let operators: Vec<Json> = operators.collect();
        print::json(&json!({
            "operators": operators,
            "unknown_types": needs.unknown_types,
            "refused": refused,
        }))?;
    } else {
        print::print(&needs.text)?;
        if let Some(refused) = &refused {
            print::line(format_args!("refused: {refused}"))?;
        }
    }
    Ok(u8::from(!needs.is_complete || refused.is_some()))
}

/// What is wrong with a file that can be read is a fault: a damaged file, or a graph that breaks its rules. A file that
/// cannot be read is an error, after the others were checked.
fn lint(files: &[PathBuf], json: bool) -> Result<u8> {
    let (mut faults, mut unread) = (Vec::new(), Vec::new());
    for file in files {
        if let Err(error) = opened(file) {
            unread.push(format!("{}: {error}", file.display()));
            continue;
        }
        if let Err(error) = open(file).and_then(|gm| gm.lint()) {
            faults.push((file, fault_of(file, &error)));
        }
    }
    match json {
        true => {
            let faults = faults
                .iter()
                .map(|(file, fault)| json!({"file": file, "fault": fault}));
            let faults: Vec<Json> = faults.collect();
            print::json(&json!({"faults": faults, "unread": unread}))?;
        }
        false => faults.iter().try_for_each(|(file, fault)| {
            print::line(format_args!("{}: {fault}", file.display()))
        })?,
    }
    match unread.is_empty() {
        true => Ok(u8::from(!faults.is_empty())),
        false => Err(Error::msg(unread.join("\nerror: "))),
    }
}

/// The text of a fault without the name of its file, which stands before it.
fn fault_of(file: &Path, error: &Error) -> String {
    let text = error.to_string();
    let name = format!("{}: ", file.display());
    text.strip_prefix(&name).unwrap_or(&text).to_string()
}
