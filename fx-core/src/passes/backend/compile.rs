//! `GraphModule::compile`: a copy of a module whose parts are a backend's code.
//!
//! Invariant: the module itself is left as it is.

use super::lower::{Backend, LowerReport};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::inference::refusals::CallRules;
use crate::ir::meta::{Meta, MetaPolicy};
use crate::ir::value_meta::ValueMeta;
use crate::run::interpreter::PlainInterpreter;
use crate::shapes::spec::Spec;
use crate::trace::call_args::{CallArgs, IntoArgs};
use crate::value::value::Value;

/// How [`GraphModule::compile`] compiles: by which backend, and for which arguments.
#[derive(Debug, Clone)]
pub struct Compile<B> {
    backend: B,
    like: Option<CallArgs>,
}

impl<B: Backend> Compile<B> {
    /// By a backend, for any arguments.
    pub fn new(backend: B) -> Self {
        Compile {
            backend,
            like: None,
        }
    }

    /// For arguments like these: what their shapes imply is known when parts are chosen, and those
    /// that the graph refuses are refused at once. Others run too.
    #[must_use]
    pub fn like(mut self, args: impl IntoArgs) -> Self {
        self.like = Some(args.into_args());
        self
    }
}

/// The report stays with the module: `gm.meta::<LowerReport>()`.
impl Meta for LowerReport {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

impl GraphModule {
    /// A copy of the module that [`lower`](GraphModule::lower) has a backend make code of. It is a
    /// graph module as before: it is printed, saved, traced and edited as its source, and
    /// [`decompile`](GraphModule::decompile) gives that back. The report of what was taken is its
    /// entry `LowerReport`; [`Compiled::fallbacks`](super::Compiled::fallbacks) counts the runs that
    /// the code did not cover.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fx_core::prelude::*;
    /// # use fx_core::passes::backend::{Backend, Compile, Executable, LowerReport, Metas, Support};
    /// # use fx_core::ir::ValueMeta;
    /// # use fx_core::module::Call;
    /// # struct Engine;
    /// # impl Backend for Engine {
    /// #     fn name(&self) -> &str { "engine" }
    /// #     fn supports(&self, _: &Call<'_>, _: &Metas<'_>) -> Support { Support::Yes }
    /// #     fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
    /// #         struct Code(GraphModule);
    /// #         impl Executable for Code {
    /// #             fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> { self.0.run(inputs, out) }
    /// #         }
    /// #         Ok(Arc::new(Code(part.clone())))
    /// #     }
    /// # }
    /// let gm = symbolic_trace(traced!(|x: Float| ((x + 1.0)? * x)? + 3.0))?;
    /// let fast = gm.compile(Compile::new(Engine).like(1.0))?;
    /// assert_eq!(fast.forward::<f64>(2.0)?, 9.0);
    /// assert_eq!(fast.meta::<LowerReport>().map(|report| report.parts.len()), Some(1));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if arguments like those do not fit the graph, the error of the call that
    /// refuses them, or as
    /// [`lower`](GraphModule::lower).
    pub fn compile<B: Backend>(&self, how: Compile<B>) -> Result<GraphModule> {
        let mut compiled = self.clone();
        if let Some(args) = how.like {
            let inputs = compiled.process_inputs(args)?;
            let specs: Vec<Spec> = inputs.iter().cloned().map(Spec::of).collect();
            // A function without a shape rule leaves shapes unknown, which is no error here.
            match compiled.infer_shapes(&specs) {
                Ok(_) => {
                    compiled.unguarded();
                }
                Err(_) => self.refuse_like(inputs)?,
            }
        }
        let report = compiled.lower(&how.backend)?;
        compiled.set_meta(report);
        Ok(compiled)
    }

    /// The graph's own error for arguments that one of its calls refuses.
    fn refuse_like(&self, inputs: Vec<Value>) -> Result<()> {
        let fakes = inputs.iter().map(ValueMeta::of_argument).collect();
        let refused = CallRules::of(self).is_ok_and(|mut rules| rules.check(fakes).is_err());
        match refused {
            true => self
                .interpretation()
                .run(&mut PlainInterpreter, inputs)
                .map(drop),
            false => Ok(()),
        }
    }
}
