//! Hooks into generated source: custom heads, outputs and items (`CodeGen`), and edits to the lines
//! of a body.
//!
//! Invariant: hooks change the text, which is a view, and the calling convention; what runs is the
//! graph's program.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::source::CodeLine;
use crate::error::Result;
use crate::trace::call_args::CallArgs;
use crate::value::value::Value;

/// The head of a generated function.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionHead {
    /// Its name.
    pub name: String,
    /// Its parameters as they are written, `&self` first.
    pub params: Vec<String>,
    /// What it returns, inside the `Result`.
    pub result: String,
}

impl FunctionHead {
    /// Writes each parameter on its own line.
    pub(super) fn expanded(&self) -> String {
        let params = self.params.iter().map(|param| format!("    {param},\n"));
        self.with_params(&format!("\n{}", params.collect::<String>()))
    }

    fn with_params(&self, params: &str) -> String {
        format!("pub fn {}({params}) -> Result<{}>", self.name, self.result)
    }
}

impl fmt::Display for FunctionHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_params(&self.params.join(", ")))
    }
}

/// Customizes parts of generated source and the calling convention that goes with them. The default
/// methods produce the usual text and leave calls unchanged.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::emit::{CodeGen, FunctionHead};
/// struct Timed;
/// impl CodeGen for Timed {
///     fn items(&self) -> Vec<String> { vec!["use std::time::{Duration, Instant};".to_string()] }
///     fn head(&self, head: &FunctionHead) -> String {
///         let params = head.params.join(", ");
///         format!("pub fn forward({params}) -> Result<({}, Duration)>", head.result)
///     }
///     fn output(&self, value: &str) -> String { format!("Ok(({value}, start.elapsed()))") }
/// }
/// let mut gm = symbolic_trace(traced!(|x: Float| x * 2.0))?;
/// gm.set_codegen(Timed);
/// assert!(gm.code().starts_with("use std::time::{Duration, Instant};\n\npub fn forward(&self, x: Float) -> Result<(Float, Duration)> {\n"));
/// assert!(gm.code().ends_with("    Ok((mul, start.elapsed()))\n}\n"));
/// # Ok::<(), Error>(())
/// ```
///
/// A convention that takes one list of all arguments, in the text and in calls:
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::emit::{CodeGen, FunctionHead};
/// use fx_core::trace::CallArgs;
/// struct Boxed;
/// impl CodeGen for Boxed {
///     fn head(&self, head: &FunctionHead) -> String {
///         let names = head.params.iter().filter_map(|param| Some(param.split_once(':')?.0));
///         let names: Vec<&str> = names.collect();
///         format!("pub fn forward(&self, [{}]: [Float; {}]) -> Result<{}>", names.join(", "), names.len(), head.result)
///     }
///     fn process_inputs(&self, mut call: CallArgs) -> Result<CallArgs> {
///         match call.args.as_mut_slice() {
///             [Value::List(items)] if call.kwargs.is_empty() => {
///                 let args = std::mem::take(items).into_vec();
///                 Ok(CallArgs { args, kwargs: Vec::new() })
///             }
///             other => Err(Error::msg(format!("one list of all arguments is wanted, found {} arguments", other.len()))),
///         }
///     }
/// }
/// let mut gm = symbolic_trace(traced!(|x: Float, y: Float| x - y))?;
/// gm.set_codegen(Boxed);
/// assert!(gm.code().starts_with("pub fn forward(&self, [x, y]: [Float; 2]) -> Result<Float> {"));
/// assert_eq!(gm.forward::<f64>(vec![5.0, 3.0])?, 2.0);
/// let error = gm.forward::<f64>((5.0, 3.0)).unwrap_err();
/// assert_eq!(error.to_string(), "one list of all arguments is wanted, found 2 arguments");
/// # Ok::<(), Error>(())
/// ```
pub trait CodeGen: Send + Sync {
    /// The function's definition up to its body.
    fn head(&self, head: &FunctionHead) -> String {
        head.to_string()
    }

    /// The final expression, for the value that the graph returns.
    fn output(&self, value: &str) -> String {
        format!("Ok({value})")
    }

    /// What precedes the function: imports, types, helpers.
    fn items(&self) -> Vec<String> {
        Vec::new()
    }

    /// Converts the arguments of a call into the arguments of the graph's parameters. Used by
    /// [`forward`](crate::GraphModule::forward),
    /// [`forward_observed`](crate::GraphModule::forward_observed) and
    /// [`interpret`](crate::GraphModule::interpret). A call from a node of another graph, or
    /// through `dyn Module`, does not use it.
    ///
    /// # Errors
    /// Returns an error if the call does not follow the convention.
    fn process_inputs(&self, call: CallArgs) -> Result<CallArgs> {
        Ok(call)
    }

    /// Converts the graph's result into the result of such a call.
    ///
    /// # Errors
    /// Returns an error if the result cannot be converted.
    fn process_outputs(&self, result: Value) -> Result<Value> {
        Ok(result)
    }
}

/// The default source.
pub(crate) struct Standard;

impl CodeGen for Standard {}

type Transform = dyn Fn(Vec<CodeLine>) -> Vec<CodeLine> + Send + Sync;

/// The hooks that change a module's source.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    codegen: Option<Arc<dyn CodeGen>>,
    transforms: Vec<(Arc<AtomicBool>, Arc<Transform>)>,
}

impl Hooks {
    pub fn codegen(&self) -> &dyn CodeGen {
        match &self.codegen {
            Some(codegen) => &**codegen,
            None => &Standard,
        }
    }

    /// The custom codegen, if one was set.
    pub fn own(&self) -> Option<&dyn CodeGen> {
        self.codegen.as_deref()
    }

    pub fn set_codegen(&mut self, codegen: Option<Arc<dyn CodeGen>>) {
        self.codegen = codegen;
    }

    pub fn add(
        &mut self,
        transform: impl Fn(Vec<CodeLine>) -> Vec<CodeLine> + Send + Sync + 'static,
    ) -> CodeHook {
        self.transforms
            .retain(|(active, _)| active.load(Ordering::Relaxed));
        let active = Arc::new(AtomicBool::new(true));
        self.transforms.push((active.clone(), Arc::new(transform)));
        CodeHook {
            active,
            scoped: true,
        }
    }

    /// A body's lines after all active changes, applied in the order in which they were added.
    pub fn apply(&self, mut lines: Vec<CodeLine>) -> Vec<CodeLine> {
        for (active, transform) in &self.transforms {
            if active.load(Ordering::Relaxed) {
                lines = transform(lines);
            }
        }
        lines
    }
}

/// Keeps a change to generated source active; dropping it undoes the change.
#[must_use = "the change is taken back when this is dropped; `keep` makes it lasting"]
#[derive(Debug)]
pub struct CodeHook {
    active: Arc<AtomicBool>,
    scoped: bool,
}

impl CodeHook {
    /// Makes the change permanent.
    pub fn keep(mut self) {
        self.scoped = false;
    }
}

impl Drop for CodeHook {
    fn drop(&mut self) {
        if self.scoped {
            self.active.store(false, Ordering::Relaxed);
        }
    }
}
