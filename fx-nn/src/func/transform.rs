//! `Transform`: what functions of functions share: each is called with tensors, or traced.
//!
//! Invariant: a call with tensors runs the graph for their shapes, which is made once.

use std::sync::{Arc, Mutex, PoisonError};

use fx_core::shapes::Spec;
use fx_core::trace::{CallArgs, FromValue, IntoArgs, Recorder, Trace, TraceContext, with_context};
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};
use rustc_hash::FxHashMap;

use super::derivative::args_of;
use super::source::{meta_of, with_arguments};

/// The graphs of a transform, by what their arguments are.
#[derive(Default)]
pub struct Graphs(Mutex<FxHashMap<String, Arc<GraphModule>>>);

impl Clone for Graphs {
    /// A copy makes its own.
    fn clone(&self) -> Self {
        Graphs::default()
    }
}

/// A function of a function: it can be called, traced, and transformed again.
pub trait Transform: Recorder {
    /// The graphs that were made.
    #[doc(hidden)]
    fn graphs(&self) -> &Graphs;

    /// Calls it: with tensors, or, while a trace records whose inputs are known, with symbolic ones.
    ///
    /// # Errors
    /// Returns an error if it cannot be traced for these arguments, or the run fails.
    fn call<R: FromValue>(&self, args: impl IntoArgs) -> Result<R>
    where
        Self: Sized,
    {
        let args = bound(self, args.into_args())?;
        let value = match is_symbolic(&args) {
            true => {
                let lent: Vec<&Value> = args.iter().collect();
                let mut out = Value::None;
                self.record(&lent, &mut out)?;
                out
            }
            false => run(self, &args)?,
        };
        R::from_value(value)
    }

    /// Its graph for arguments of these shapes.
    ///
    /// # Errors
    /// Returns an error if it cannot be traced.
    fn graph_module(&self, inputs: &[Spec]) -> Result<GraphModule>
    where
        Self: Sized,
    {
        let args = inputs
            .iter()
            .map(Spec::fake_value)
            .collect::<Result<Vec<_>>>()?;
        made(self, &args)
    }
}

/// One argument for each parameter.
fn bound(transform: &dyn Recorder, call: CallArgs) -> Result<Vec<Value>> {
    let params = transform.params();
    let mut args = call.args;
    let wrong = |problem: String| {
        let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
        Error::msg(format_args!(
            "{}: {problem}; it takes {}",
            transform.name(),
            names.join(", ")
        ))
    };
    if args.len() > params.len() {
        return Err(wrong(format!("there are {} arguments", args.len())));
    }
    let mut named = call.kwargs;
    for param in &params[args.len()..] {
        let at = named.iter().position(|(name, _)| **name == *param.name);
        args.push(match at {
            Some(at) => named.swap_remove(at).1,
            None => match &param.default {
                Some(default) => Value::from(default),
                None => return Err(wrong(format!("`{}` is missing", param.name))),
            },
        });
    }
    match named.first() {
        Some((name, _)) => Err(wrong(format!("there is no parameter `{name}`"))),
        None => Ok(args),
    }
}

fn made<T: Transform>(transform: &T, args: &[Value]) -> Result<GraphModule> {
    let trace = with_arguments(
        Trace::new(transform as &dyn Recorder),
        transform.params(),
        args,
    )?;
    let mut gm = trace.graph_module()?;
    gm.eliminate_dead_code()?;
    Ok(gm)
}

/// What a graph for arguments depends on: their shapes and types, and the plain ones themselves.
pub(crate) fn key_of(args: &[Value]) -> Result<String> {
    let mut key = String::new();
    for arg in args {
        use std::fmt::Write as _;
        let written = match arg {
            Value::Object(_) => write!(key, "{};", meta_of(arg)?.describe()),
            // With all that is inside: names, shapes and plain values.
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
                write!(key, "{:?};", meta_of(arg)?)
            }
            plain => write!(key, "{plain:?};"),
        };
        written.map_err(|_| Error::msg("a text has no room"))?;
    }
    Ok(key)
}

/// Runs the graph of a transform for arguments that are known.
pub(crate) fn run<T: Transform>(transform: &T, args: &[Value]) -> Result<Value> {
    let key = key_of(args)?;
    let mut graphs = transform
        .graphs()
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let gm = match graphs.get(&key) {
        Some(gm) => gm.clone(),
        None => {
            let gm = Arc::new(made(transform, args)?);
            graphs.insert(key, gm.clone());
            gm
        }
    };
    drop(graphs);
    gm.forward(args_of(args.to_vec()))
}

/// Whether a call is to be recorded.
fn is_symbolic(args: &[Value]) -> bool {
    let mut found = false;
    for arg in args {
        arg.for_each(&mut |value| {
            let is_fake = matches!(value, Value::Proxy(proxy) if proxy.is_fake());
            found |= super::tape::node_of(value).is_some() && !is_fake;
        });
    }
    found
}

/// Runs `body` with the trace that records.
pub(crate) fn in_trace<R>(body: impl FnOnce(&TraceContext) -> Result<R>) -> Result<R> {
    with_context(body)
        .unwrap_or_else(|| Err(Error::msg("a symbolic value is used outside of its trace")))
}

/// Makes a type a transform: a root of traces that records what its method `recorded` gives.
macro_rules! transform {
    ($name:ident, $text:literal, $params:expr) => {
        impl fx_core::trace::Recorder for $name {
            fn name(&self) -> &str {
                $text
            }

            fn params(&self) -> &[fx_core::ir::ParamSpec] {
                let params: fn(&$name) -> &[fx_core::ir::ParamSpec] = $params;
                params(self)
            }

            fn input_trees(&self) -> &[fx_core::value::Tree] {
                &self.trees
            }

            fn module(&self) -> Option<&dyn fx_core::module::Module> {
                self.source.module()
            }

            fn record(
                &self,
                args: &[&fx_core::value::Value],
                out: &mut fx_core::value::Value,
            ) -> fx_core::Result<()> {
                let args: Vec<fx_core::value::Value> =
                    args.iter().map(|arg| (*arg).clone()).collect();
                *out = $crate::func::transform::in_trace(|cx| self.recorded(cx, &args))?;
                Ok(())
            }

            fn duplicate(&self) -> Box<dyn fx_core::trace::Recorder> {
                Box::new(self.clone())
            }
        }

        impl<'r> fx_core::trace::Root<'r> for &'r $name {
            fn into_rooted(self) -> fx_core::trace::Rooted<'r> {
                fx_core::trace::Rooted::Recorder(self)
            }
        }

        impl $crate::func::Transform for $name {
            fn graphs(&self) -> &$crate::func::transform::Graphs {
                &self.graphs
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($text)
            }
        }
    };
}
pub(crate) use transform;

/// `wrt`, which says what a transform is of: the graphs made before are of something else.
macro_rules! wrt {
    ($name:ident, $doc:literal) => {
        impl $name {
            #[doc = $doc]
            #[must_use]
            pub fn wrt(mut self, wrt: impl Into<$crate::func::Wrt>) -> Self {
                self.wrt = wrt.into();
                self.graphs = $crate::func::transform::Graphs::default();
                self
            }
        }
    };
}
pub(super) use wrt;
