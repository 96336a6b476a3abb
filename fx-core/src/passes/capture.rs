//! Activations: the values of chosen nodes and modules of one run, without a hook in the model.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::within;
use crate::module::path_pattern::PathPattern;
use crate::run::interpreter::{Interpretation, Interpreter};
use crate::text::did_you_mean;
use crate::trace::call_args::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

impl GraphModule {
    /// Runs the graph and keeps the values of chosen nodes, by name, and the results of chosen
    /// modules, by path, traced through or not. A pattern is a
    /// [`PathPattern`], such as `layers.*.{attn,mlp}`.
    ///
    /// The result of a module is the whole of what its last call returned. A part that an edit
    /// removed is `None`. A node in a side of a branch or loop has the side's path before its name,
    /// as in `cond_0.then.mul`: its value is the last one, and missing if it did not run.
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
    /// Returns an error if a pattern matches nothing, or as [`forward`](GraphModule::forward).
    pub fn capture(
        &self,
        patterns: &[&str],
        args: impl IntoArgs,
    ) -> Result<IndexMap<String, Value>> {
        let chosen = self.chosen(patterns)?;
        struct Capture {
            chosen: Chosen,
            /// Values that are parts of the structures that modules returned.
            kept: FxHashMap<NodeId, Value>,
            seen: IndexMap<String, Value>,
        }
        impl Interpreter for Capture {
            fn run_node(
                &mut self,
                run: &mut Interpretation<'_>,
                node: NodeRef<'_>,
            ) -> Result<Value> {
                let value = run.run_node(self, node)?;
                let Capture { chosen, kept, seen } = self;
                for name in chosen.nodes.get(&node.id()).into_iter().flatten() {
                    seen.insert(name.clone(), value.clone());
                }
                if let Some(parts) = chosen.parts.get(&node.id()) {
                    kept.insert(node.id(), value.clone());
                    for at in parts {
                        let returned = &mut chosen.returned[*at];
                        returned.missing.remove(&node.id());
                        if returned.missing.is_empty() {
                            // A loop may run them once more.
                            returned.missing.clone_from(&returned.nodes);
                            let part = |id| kept.get(&id).cloned().unwrap_or_default();
                            let whole = returned.value.to_value(&mut |id| Ok(part(id)))?;
                            seen.insert(returned.path.to_string(), whole);
                        }
                    }
                }
                Ok(value)
            }
        }
        let mut capture = Capture {
            chosen,
            kept: FxHashMap::default(),
            seen: IndexMap::new(),
        };
        self.interpret::<Value>(&mut capture, args)?;
        Ok(capture.seen)
    }

    /// The results of the modules that were traced through, by path: for each call an argument that
    /// holds the nodes of the graph whose values were returned, the calls of one module in their
    /// order. A part that an edit removed is `None`.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Argument;
    /// # #[derive(Module, Default)] struct Block { tag: Tag }
    /// #[trace]
    /// impl Block {
    ///     fn forward(&self, x: Float) -> Result<(Float, Float)> {
    ///         let y = (x * 2.0)?;
    ///         let _unused = (y + 1.0)?;
    ///         Ok((y, x))
    ///     }
    /// }
    /// # #[derive(Module, Default)] struct Net { block: Block }
    /// # #[trace] impl Net { fn forward(&self, x: Float) -> Result<Float> { Ok(self.block.forward(x)?.0) } }
    /// let gm = symbolic_trace(&Net::default())?;
    /// let (path, returned) = &gm.returned()[0];
    /// let Argument::Tuple(items) = returned else { return Err(Error::msg("it returned a pair")) };
    /// let first = items[0].as_node().and_then(|id| gm.graph().node(id).ok());
    /// assert!(path == "block" && first.is_some_and(|node| node.name() == "mul"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn returned(&self) -> Vec<(String, Argument)> {
        let returned = self.graph().returned().into_iter();
        returned
            .map(|(path, value)| (path.to_string(), value))
            .collect()
    }

    /// The nodes and modules that patterns choose.
    fn chosen(&self, patterns: &[&str]) -> Result<Chosen> {
        let mut chosen = Chosen::default();
        let globs = patterns.iter().map(|pattern| PathPattern::new(pattern));
        let globs: Vec<PathPattern> = globs.collect::<Result<_>>()?;
        let mut used = vec![false; patterns.len()];
        let mut any = |text: &str| {
            let mut fit = false;
            for (pattern, used) in globs.iter().zip(&mut used) {
                if pattern.matches(text) {
                    (*used, fit) = (true, true);
                }
            }
            fit
        };
        for (inside, side) in self.with_sides() {
            for node in side.graph() {
                let name = within(&inside, &node.name().to_string());
                match node.op() {
                    Op::CallModule(path) if any(path) => {
                        let names = chosen.nodes.entry(node.id()).or_default();
                        names.push(path.to_string());
                    }
                    _ if any(&name) => chosen.nodes.entry(node.id()).or_default().push(name),
                    _ => {}
                }
            }
            // Only the last call of a module counts.
            let last: IndexMap<Arc<str>, Argument> = side.graph().returned().into_iter().collect();
            for (path, returned) in last {
                if any(&path) {
                    let mut nodes = FxHashSet::default();
                    returned.for_each_node(&mut |id| {
                        nodes.insert(id);
                    });
                    for id in &nodes {
                        let parts = chosen.parts.entry(*id).or_default();
                        parts.push(chosen.returned.len());
                    }
                    chosen.returned.push(Returned {
                        path,
                        value: returned,
                        missing: nodes.clone(),
                        nodes,
                    });
                }
            }
        }
        match used.iter().position(|used| !used) {
            Some(at) => {
                let mut names: IndexSet<String> = IndexSet::new();
                for (inside, side) in self.with_sides() {
                    names.extend(side.graph().nodes().filter_map(|node| match node.op() {
                        Op::CallModule(path) => Some(path.to_string()),
                        _ => None,
                    }));
                    let returned = side.graph().returned().into_iter();
                    names.extend(returned.map(|(path, _)| path.to_string()));
                    let nodes = side.graph().nodes();
                    names.extend(nodes.map(|node| within(&inside, &node.name().to_string())));
                }
                let meant = did_you_mean(patterns[at], names.iter().map(String::as_str));
                let meant = meant.map(|meant| format!("; {meant}")).unwrap_or_default();
                Err(Error::unknown(
                    patterns[at],
                    format_args!(
                        "`{}` is not a node's name, and no path of a module of which this graph knows what it returned{meant}",
                        patterns[at]
                    ),
                ))
            }
            None => Ok(chosen),
        }
    }
}

/// What a run has to keep.
#[derive(Default)]
struct Chosen {
    /// Nodes, with the names to keep them under.
    nodes: FxHashMap<NodeId, Vec<String>>,
    /// Results of modules.
    returned: Vec<Returned>,
    /// The nodes of these results, each with the places in that list.
    parts: FxHashMap<NodeId, Vec<usize>>,
}

/// What a module that was traced through returned.
struct Returned {
    path: Arc<str>,
    value: Argument,
    nodes: FxHashSet<NodeId>,
    /// The nodes that have not run yet.
    missing: FxHashSet<NodeId>,
}
