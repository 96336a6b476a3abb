//! Activations: the values of chosen nodes and modules of one run, without a hook in the model.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::exec::interpreter::{Interpretation, Interpreter};
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::path_pattern::fits;
use crate::trace::dispatch::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

impl GraphModule {
    /// Runs the graph and keeps what chosen nodes gave: each by its name, or what a module gave by its path. In a
    /// pattern `*` stands for any text of a part (`layers.*.attn`), `**` for any parts.
    ///
    /// What a module that was traced through gave is what its last node gave.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
    /// let gm = symbolic_trace(traced!(|x: Float| double(double(x)?)? + 1.0))?;
    /// let seen = gm.capture(&["double*"], 1.5)?;
    /// assert_eq!(seen.keys().collect::<Vec<_>>(), ["double", "double_1"]);
    /// assert_eq!(f64::from_value(seen["double_1"].clone())?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// When a pattern fits nothing, or as [`forward`](GraphModule::forward).
    pub fn capture(
        &self,
        patterns: &[&str],
        args: impl IntoArgs,
    ) -> Result<IndexMap<String, Value>> {
        let chosen = self.chosen(patterns)?;
        struct Capture {
            chosen: FxHashMap<NodeId, Vec<String>>,
            seen: IndexMap<String, Value>,
        }
        impl Interpreter for Capture {
            fn run_node(
                &mut self,
                run: &mut Interpretation<'_>,
                node: NodeRef<'_>,
            ) -> Result<Value> {
                let value = run.run_node(self, node)?;
                for name in self.chosen.get(&node.id()).into_iter().flatten() {
                    self.seen.insert(name.clone(), value.clone());
                }
                Ok(value)
            }
        }
        let mut capture = Capture {
            chosen,
            seen: IndexMap::new(),
        };
        self.interpret::<Value>(&mut capture, args)?;
        Ok(capture.seen)
    }

    /// The nodes that patterns choose, and under which names.
    fn chosen(&self, patterns: &[&str]) -> Result<FxHashMap<NodeId, Vec<String>>> {
        let mut found: FxHashMap<NodeId, Vec<String>> = FxHashMap::default();
        let mut used = vec![false; patterns.len()];
        let mut any = |text: &str| {
            let mut fit = false;
            for (pattern, used) in patterns.iter().zip(&mut used) {
                if fits(pattern, text) {
                    (*used, fit) = (true, true);
                }
            }
            fit
        };
        // The last node of each module that was traced through.
        let mut modules: IndexMap<Arc<str>, NodeId> = IndexMap::new();
        for node in self.graph().nodes() {
            let name = node.name().to_string();
            let path = match node.op() {
                Op::CallModule(path) => Some(path.clone()),
                _ => None,
            };
            if !matches!(node.op(), Op::Output) {
                for scope in node.module_stack().filter(|s| !s.path.is_empty()) {
                    modules.insert(scope.path.clone(), node.id());
                }
            }
            match path {
                Some(path) if any(&path) => {
                    found.entry(node.id()).or_default().push(path.to_string());
                }
                _ if any(&name) => found.entry(node.id()).or_default().push(name),
                _ => {}
            }
        }
        for (path, last) in modules {
            if any(&path) {
                found.entry(last).or_default().push(path.to_string());
            }
        }
        match used.iter().position(|used| !used) {
            Some(at) => Err(Error::msg(format_args!(
                "`{}` is no node's name and no module's path in this graph",
                patterns[at]
            ))),
            None => Ok(found),
        }
    }
}
