//! Edits of a graph module: one transaction for each change, and the updates at the end of an edit.
//!
//! Invariants: parameters and program match the current graph and attributes, which their versions
//! show; a failed or panicking edit restores the graph, and which module and tensor is at each
//! path.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;

use super::GraphModule;
use super::kept::{Contents, KeptProgram, Ready, Versions};
use super::open_edits::{Edits, Open, Start};
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::changes::Changes;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::{Op, Opcode};
use crate::ir::signature::{Literal, ParamSpec};
use crate::ir::transaction::moved_out;
use crate::module::attributes::Attributes;
use crate::run::program::Program;
use crate::shapes::Contract;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;

impl GraphModule {
    /// Changes the module in one transaction. If `change` fails or panics, the graph is restored,
    /// and so is which module and which tensor is at each path; new nodes get the names that they
    /// would have got without the edit. What runs wrote into a buffer stays written.
    ///
    /// The cost is that of the change: changes are recorded with what is needed to undo them, and a
    /// module is copied when it is first lent to be changed in place. A nested edit goes back to
    /// its own start.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Op;
    /// use fx_core::operator;
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * 2.0))?;
    /// let before = gm.to_bytes()?;
    /// let failed = gm.edit(|gm| {
    ///     let add = gm.graph().find_name("add").map(|node| node.id());
    ///     let add = add.ok_or_else(|| Error::msg("nothing is added"))?;
    ///     gm.graph_mut().node_mut(add)?.set_op(Op::CallFunction(operator::sub))?;
    ///     match gm.forward::<f64>(1.0)? {
    ///         y if y > 3.0 => Ok(y),
    ///         y => Err(Error::msg(format!("{y} is too little"))),
    ///     }
    /// });
    /// assert_eq!(failed.unwrap_err().to_string(), "0 is too little");
    /// assert_eq!(gm.to_bytes()?, before);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Observers of the graph stay registered, and are notified of the reverse of each change.
    ///
    /// # Errors
    /// Returns the error of `change`. If `change` moved the graph or the module out and something
    /// else keeps it, it cannot be restored, and the error says so.
    pub fn edit<R>(&mut self, change: impl FnOnce(&mut GraphModule) -> Result<R>) -> Result<R> {
        self.edit_within(|gm, _| change(gm))
    }

    /// [`edit`](GraphModule::edit), with the argument for [`changes_in`](GraphModule::changes_in).
    pub(crate) fn edit_within<R>(
        &mut self,
        change: impl FnOnce(&mut GraphModule, &Open<GraphModule>) -> Result<R>,
    ) -> Result<R> {
        let start = self.open();
        let result = catch_unwind(AssertUnwindSafe(|| change(self, &start)));
        match result {
            Ok(Ok(value)) => {
                self.keep(&start);
                Ok(value)
            }
            Ok(Err(error)) => match self.undo(&start) {
                true => Err(error),
                false => Err(moved_out("module", &error)),
            },
            Err(panic) => {
                self.undo(&start);
                resume_unwind(panic)
            }
        }
    }

    fn open(&mut self) -> Open<GraphModule> {
        let shelf = self.edits.shelf.get_or_insert_default().clone();
        let depth = self.open_edits();
        Open { shelf, depth }
    }

    fn keep(&mut self, open: &Open<GraphModule>) {
        if self.is_of(open) {
            self.close_edits(open.depth, true);
        } else if open.depth == 0
            && let Some(mut other) = open.shelf.take()
        {
            other.abandon_edits();
        }
    }

    fn undo(&mut self, open: &Open<GraphModule>) -> bool {
        if !self.is_of(open) {
            match open.shelf.take() {
                Some(module) => *self = module,
                None => return false,
            }
        }
        self.close_edits(open.depth, false)
    }

    /// Whether an edit is of this module, and not of another one that was here before.
    fn is_of(&self, open: &Open<GraphModule>) -> bool {
        let own = self.edits.shelf.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, &open.shelf))
    }

    /// Starts an edit; returns how many were open.
    pub(super) fn open_edits(&mut self) -> usize {
        self.edits.shelf.get_or_insert_default();
        self.edits.starts.push(Start {
            graph: self.graph.open_edit(),
            attributes: [
                self.attributes.modules.open_edit(),
                self.attributes.tensors.open_edit(),
            ],
            params: self.params.clone(),
            trees: self.trees.clone(),
            followed: self.followed,
            hooks: self.hooks.clone(),
            entries: self.entries.clone(),
        });
        self.edits.starts.len() - 1
    }

    /// How many edits are open.
    pub(super) fn edits_open(&self) -> usize {
        self.edits.starts.len()
    }

    /// Ends an edit and those inside it, and undoes it unless `keep`; `false` if the graph is
    /// missing.
    pub(super) fn close_edits(&mut self, depth: usize, keep: bool) -> bool {
        self.edits.starts.truncate(depth + 1);
        let Some(start) = self.edits.starts.pop() else {
            return true;
        };
        if depth == 0 {
            self.edits.shelf = None;
        }
        let [modules, tensors] = start.attributes;
        self.attributes.modules.close_edit(modules, keep);
        self.attributes.tensors.close_edit(tensors, keep);
        let mut is_whole = true;
        if keep {
            self.graph.keep_edit(start.graph);
        } else {
            self.params = start.params;
            self.trees = start.trees;
            self.followed = start.followed;
            *self.hooks = start.hooks;
            *self.entries = start.entries;
            is_whole = self.graph.undo_edit(start.graph);
        }
        self.settle();
        is_whole
    }

    fn abandon_edits(&mut self) {
        *self.edits = Edits::default();
        self.graph.end_edits();
    }

    /// The changes of an edit so far. If it assigned another graph, the changes are found by name,
    /// and the ids of the new nodes are returned too.
    pub(crate) fn changes_in(&self, open: &Open<GraphModule>) -> (Changes, Vec<NodeId>) {
        if self.is_of(open)
            && let Some(start) = self.edits.starts.get(open.depth)
            && self.graph.is_of(&start.graph)
        {
            return (self.graph.changes_since(&start.graph), Vec::new());
        }
        let names = match self.is_of(open) {
            true => self.names_at(open.depth),
            false => open
                .shelf
                .look(|module| module.names_at(open.depth))
                .flatten(),
        };
        self.changes_from(names.unwrap_or_default())
    }

    /// The names of the nodes at the beginning of an edit, if the graph is known.
    fn names_at(&self, depth: usize) -> Option<Vec<String>> {
        let start = &self.edits.starts.get(depth)?.graph;
        match self.graph.is_of(start) {
            true => Some(self.graph.names_at(start)),
            false => start.shelf().look(|graph| graph.names_at(start)),
        }
    }

    /// The nodes whose names are not among the former ones, and the former names that are missing.
    fn changes_from(&self, former: Vec<String>) -> (Changes, Vec<NodeId>) {
        let mut changes = Changes::default();
        let mut created = Vec::new();
        let mut names: FxHashSet<String> = FxHashSet::default();
        let known: FxHashSet<&str> = former.iter().map(String::as_str).collect();
        for node in self.graph.nodes() {
            let name = node.name().to_string();
            if !known.contains(name.as_str()) {
                changes.created.push(name.clone());
                created.push(node.id());
            }
            names.insert(name);
        }
        changes.erased = former;
        changes.erased.retain(|name| !names.contains(name));
        (changes, created)
    }

    /// Edit access to graph and attributes. The next run uses the edited graph.
    ///
    /// A new graph is assigned through it as well:
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// *gm.graph_mut() = Trace::new(traced!(|x: Float, by: Float| x * by)).graph()?;
    /// assert_eq!(gm.forward::<f64>((2.0, 3.0))?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn graph_mut(&mut self) -> GraphEdit<'_> {
        GraphEdit { module: self }
    }

    /// Compiles the graph now, to see its errors early; `forward` does it when needed.
    ///
    /// # Errors
    /// Returns an error that names the first node that cannot run, with the reason.
    pub fn recompile(&mut self) -> Result<()> {
        self.settle();
        self.program().map(drop)
    }

    /// The current versions.
    pub(super) fn versions(&self) -> Versions {
        [
            self.graph.version(),
            self.attributes.modules.version(),
            self.attributes.tensors.version(),
        ]
    }

    /// The versions of the modules and the tensors, with what is in them.
    pub(super) fn contents(&self) -> Contents {
        [
            self.attributes.modules.contents(),
            self.attributes.tensors.contents(),
        ]
    }

    /// [`lint`](GraphModule::lint), if anything changed since it last found nothing.
    pub(crate) fn lint_once(&mut self) -> Result<()> {
        let versions = self.versions();
        if self.checked != Some(versions) {
            self.lint()?;
            self.checked = Some(versions);
        }
        Ok(())
    }

    /// Brings parameters and program up to date with the graph and the attributes.
    pub(super) fn settle(&mut self) {
        if let Some(compiled) = self.program.get()
            && compiled.of != self.versions()
        {
            self.forget_program();
        }
        if self.followed != self.graph.inputs_version() {
            self.follow_placeholders();
        }
    }

    /// Has the next run compile the graph again.
    pub(super) fn forget_program(&mut self) {
        *self.program = OnceLock::new();
    }

    pub(super) fn program(&self) -> Result<Ready<'_>> {
        let of = self.versions();
        if let Some(compiled) = self.program.get()
            && compiled.of == of
        {
            return Ok(Ready::Kept(compiled));
        }
        let program = Program::compile(&self.graph, &self.attributes)?;
        if self.program.get().is_some() {
            return Ok(Ready::Made(Box::new(program)));
        }
        let around = self.around();
        let compiled = (self.program).get_or_init(|| KeptProgram {
            of,
            program,
            around,
        });
        Ok(Ready::Kept(compiled))
    }

    /// Reads the parameters again if they differ from the placeholders; else they keep kind and
    /// type.
    pub(super) fn follow_placeholders(&mut self) {
        self.followed = self.graph.inputs_version();
        let inputs = self.graph.find_opcode(Opcode::Placeholder);
        let is_for_these = |contract: &Contract| {
            let names = inputs.iter().map(|node| node.target());
            contract.inputs().map(|(name, _)| name).eq(names)
        };
        if self
            .entries
            .get()
            .is_some_and(|contract| !is_for_these(contract))
        {
            self.entries.remove::<Contract>();
        }
        if !self.trees.is_empty() {
            // The flat names were made from the parameters' names: the signature stays while the
            // number of inputs is the same.
            let flat = self.trees.iter().map(Tree::leaves).sum::<usize>();
            let is_flat = self.trees.iter().all(Tree::is_leaf);
            if flat == inputs.len() && !is_flat {
                return;
            }
            self.trees = Arc::default();
        }
        let mut both = self.params.iter().zip(&inputs);
        let same = self.params.len() == inputs.len()
            && both.all(|(param, node)| {
                param.name == node.target() && param.default == default_of(*node)
            });
        if !same {
            self.params = Arc::new(params_of(&self.graph));
        }
    }
}

/// Reads the parameters from a graph's placeholders.
pub(super) fn params_of(graph: &Graph) -> Vec<ParamSpec> {
    let placeholders = graph.find_opcode(Opcode::Placeholder).into_iter();
    placeholders
        .map(|node| ParamSpec::of_input(node.target(), node.type_expr(), default_of(node)))
        .collect()
}

/// The default of a placeholder.
fn default_of(placeholder: NodeRef<'_>) -> Option<Literal> {
    Some(match placeholder.args().first()? {
        Argument::None => Literal::None,
        Argument::Bool(x) => Literal::Bool(*x),
        Argument::Int(x) => Literal::Int(*x),
        Argument::Float(x) => Literal::Float(*x),
        Argument::Str(x) => Literal::Str(x.to_string().into()),
        _ => return None,
    })
}

/// Edit access to a graph module's graph. When it ends, the parameters follow the placeholders, and
/// the program follows the graph.
#[derive(Debug)]
pub struct GraphEdit<'m> {
    module: &'m mut GraphModule,
}

impl GraphEdit<'_> {
    /// Graph and attributes, to edit together.
    pub(crate) fn parts(&mut self) -> (&mut Graph, &mut Attributes) {
        (&mut self.module.graph, &mut self.module.attributes)
    }

    /// Erases those of the nodes that nobody uses, and removes the modules and tensors that the
    /// graph named through these nodes alone. The nodes must be in order; those that no longer
    /// exist are skipped.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::value::NodeId;
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * 2.0))?;
    /// let nodes: Vec<NodeId> = gm.graph().nodes().map(|node| node.id()).collect();
    /// let (x, mul) = (nodes[0], nodes[2]);
    /// let mut edit = gm.graph_mut();
    /// edit.node_mut(mul)?.replace_all_uses_with(x)?;
    /// edit.erase_unused(&nodes[1..3])?;
    /// drop(edit);
    /// assert_eq!(gm.graph().nodes().count(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a node cannot be erased.
    pub fn erase_unused(&mut self, nodes: &[NodeId]) -> Result<()> {
        let (graph, _) = self.parts();
        let mut paths: FxHashSet<Arc<str>> = FxHashSet::default();
        for id in nodes.iter().rev() {
            let Some(node) = graph.node(*id).ok().filter(|node| node.num_users() == 0) else {
                continue;
            };
            if let Op::GetAttr(path) | Op::CallModule(path) = node.op() {
                paths.insert(path.clone());
            }
            graph.erase_node(*id)?;
        }
        self.remove_unnamed(paths);
        Ok(())
    }

    /// Removes the modules and tensors at those paths that no node names.
    pub(crate) fn remove_unnamed(&mut self, mut paths: FxHashSet<Arc<str>>) {
        let (graph, attributes) = self.parts();
        paths.retain(|path| {
            !graph.has_op(&Op::GetAttr(path.clone()))
                && !graph.has_op(&Op::CallModule(path.clone()))
        });
        if !paths.is_empty() {
            attributes.tensors.retain(|path, _| !paths.contains(path));
            attributes.modules.retain(|path, _| !paths.contains(path));
        }
    }
}

impl std::ops::Deref for GraphEdit<'_> {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        &self.module.graph
    }
}

impl std::ops::DerefMut for GraphEdit<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        &mut self.module.graph
    }
}

impl Drop for GraphEdit<'_> {
    fn drop(&mut self) {
        self.module.settle();
    }
}

impl Drop for GraphModule {
    /// A module that an open edit may restore is put on the edit's shelf.
    fn drop(&mut self) {
        let Some(shelf) = self.edits.shelf.take() else {
            return;
        };
        if Arc::strong_count(&shelf) == 1 {
            return self.abandon_edits();
        }
        let mut module = GraphModule::of_parts(Graph::default(), Attributes::default(), "");
        std::mem::swap(self, &mut module);
        module.edits.shelf = Some(shelf.clone());
        shelf.put(module);
    }
}
