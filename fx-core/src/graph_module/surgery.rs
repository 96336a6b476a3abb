//! Surgery: replaces modules, chosen by path and type, while the graph that calls them stays.
//!
//! Invariant: all chosen modules are replaced, or none; undo reverts exactly the replacement.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use super::GraphModule;
use crate::error::{Error, Result};
use crate::file::json::Json;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::not_found;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::path_pattern::PathPattern;
use crate::module::registry::saver;
use crate::module::walk::{TensorKind, Visitor, walk};
use crate::text::{count, first_names};
use crate::value::object::{Object, short_type_name};
use crate::value::tree::Tree;

/// A module that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplacedModule {
    /// Its path.
    pub path: String,
    /// The type of the old module.
    pub old_type: String,
    /// The type of the new module.
    pub new_type: String,
    /// Bytes of the old module's parameters and buffers; fields marked `#[module(skip)]` are not counted.
    pub bytes_before: usize,
    /// Bytes of the new module's parameters and buffers.
    pub bytes_after: usize,
}

/// The result of [`GraphModule::replace_modules`], and the way to [undo](Surgery::undo) it; prints
/// as a list.
#[derive(Clone)]
#[non_exhaustive]
pub struct Surgery {
    /// The replaced modules, in the order of the attributes.
    pub replaced: Vec<ReplacedModule>,
    /// Bytes of all parameters and buffers of the graph module before; a shared one is counted
    /// once.
    pub bytes_before: usize,
    /// Bytes of all parameters and buffers of the graph module after; a shared one is counted
    /// once.
    pub bytes_after: usize,
    /// The old modules, in the order of `replaced`.
    originals: Vec<Box<dyn Module>>,
    /// Marks that identify the new modules, in the order of `replaced`.
    marks: Vec<Mark>,
}

/// Distinguishes a module from another one at its path: its type, which tensors it holds, and what
/// else a file keeps of it. Copying, training in place and the training flag do not change it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Mark {
    ty: TypeId,
    tensors: Vec<Option<u64>>,
    /// `None` if the type cannot be saved.
    configuration: Option<Json>,
}

impl Mark {
    pub(super) fn of(module: &dyn Module) -> Self {
        struct Ids(Vec<Option<u64>>);
        impl Visitor for Ids {
            fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
                self.0.push(tensor.object_id());
            }
        }
        let mut ids = Ids(Vec::new());
        walk(module, &mut ids);
        let any: &dyn Any = module;
        Mark {
            ty: any.type_id(),
            tensors: ids.0,
            configuration: configuration(module),
        }
    }
}

/// What a file would keep of a module except tensors, in evaluation mode; `None` if its type cannot
/// be saved.
fn configuration(module: &dyn Module) -> Option<Json> {
    let mut copy = module.duplicate_box();
    copy.eval();
    let saved = copy.to_saved(&mut saver().naming_tensors());
    saved.ok()
}

impl GraphModule {
    /// Replaces the modules of type `M` whose paths match a pattern; the graph, and so the forward,
    /// stays as it is. The pattern is a [`PathPattern`], such as
    /// `h.*.attn.{q,v}_proj`; `"**"` chooses by type alone. A module that was traced through is no
    /// node: only its parts can be replaced. `make` gets the path and the module,
    /// and returns the replacement. Known shapes of nodes that depend on calls of replaced modules
    /// are removed.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Shift { by: f64 }
    /// #[trace(leaf)]
    /// impl Shift { fn forward(&self, x: Float) -> Result<Float> { x + self.by } }
    /// #[derive(Module)]
    /// struct Net { layers: Vec<Scale> }
    /// #[trace]
    /// impl Net {
    ///     fn forward(&self, mut x: Float) -> Result<Float> {
    ///         for layer in &self.layers { x = layer.forward(x)?; }
    ///         Ok(x)
    ///     }
    /// }
    /// let mut gm = symbolic_trace(&Net { layers: vec![Scale { by: 2.0 }, Scale { by: 3.0 }] })?;
    /// let surgery = gm.replace_modules("layers.*", |_, old: &Scale| Ok(Shift { by: old.by }))?;
    /// assert_eq!(surgery.replaced[1].path, "layers.1");
    /// assert_eq!(gm.forward::<f64>(1.0)?, 6.0);
    /// surgery.undo(&mut gm)?;
    /// assert_eq!(gm.forward::<f64>(2.0)?, 12.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if no module matches, if `make` fails, or if a new module does not take the
    /// parameters of the old one; the error names the path and the node, and nothing is changed.
    pub fn replace_modules<M: Module, N: Module>(
        &mut self,
        pattern: &str,
        mut make: impl FnMut(&str, &M) -> Result<N>,
    ) -> Result<Surgery> {
        let mut others = Vec::new();
        let surgery = self.replace_any_modules(pattern, |path, module| {
            let any: &dyn Any = module;
            match any.downcast_ref::<M>() {
                Some(module) => {
                    make(path, module).map(|new| Some(Box::new(new) as Box<dyn Module>))
                }
                None => {
                    others.push(format!(
                        "`{path}` is a `{}`",
                        short_type_name(module.type_name())
                    ));
                    Ok(None)
                }
            }
        })?;
        if surgery.replaced.is_empty() {
            return Err(Error::unknown(
                pattern,
                format_args!(
                    "`{pattern}` fits no `{}` of this graph module: {}",
                    short_type_name(std::any::type_name::<M>()),
                    first_names(others, 4)
                ),
            ));
        }
        Ok(surgery)
    }

    /// What to do about a pattern that matches no module: a module that was traced through is no
    /// node; otherwise the first modules that there are.
    fn instead_of(&self, chosen: &PathPattern) -> String {
        let mut scopes = self.graph.nodes().flat_map(|node| node.modules_around());
        if let Some(scope) = scopes.find(|scope| chosen.matches(&scope.path)) {
            return format!(
                ": `{}` (`{}`) was traced through; mark its type `#[trace(leaf)]`, or trace with a tracer to which it is a \
                 leaf, to replace it as a whole",
                scope.path,
                short_type_name(&scope.type_name)
            );
        }
        let held = self.held_modules().into_iter();
        let held = held.map(|(path, _)| format!("`{path}`"));
        format!(": it has {}", first_names(held, 6))
    }

    /// As [`replace_modules`](GraphModule::replace_modules), for modules of any type: `make` gets
    /// each module whose path matches, and returns its replacement, or `None` to keep it.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { first: Scale, second: Scale }
    /// #[trace]
    /// impl Net {
    ///     fn forward(&self, x: Float) -> Result<Float> { self.second.forward(self.first.forward(x)?) }
    /// }
    /// let mut gm = symbolic_trace(&Net { first: Scale { by: 2.0 }, second: Scale { by: 3.0 } })?;
    /// let surgery = gm.replace_any_modules("**", |path, _| {
    ///     Ok((path == "first").then(|| Box::new(Scale { by: 10.0 }) as Box<dyn Module>))
    /// })?;
    /// assert_eq!((surgery.replaced.len(), gm.forward::<f64>(1.0)?), (1, 30.0));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the pattern matches no path, and as
    /// [`replace_modules`](GraphModule::replace_modules).
    pub fn replace_any_modules(
        &mut self,
        pattern: &str,
        mut make: impl FnMut(&str, &dyn Module) -> Result<Option<Box<dyn Module>>>,
    ) -> Result<Surgery> {
        let chosen = PathPattern::new(pattern)?;
        let mut made: Vec<(Arc<str>, Box<dyn Module>)> = Vec::new();
        let mut is_used = false;
        for (path, old) in self.held_modules() {
            if !chosen.matches(path) {
                continue;
            }
            is_used = true;
            let new = make(path, old).and_then(|new| match new {
                Some(new) => check_signature(path, old, &*new).map(|()| Some(new)),
                None => Ok(None),
            });
            if let Some(new) = new.map_err(|error| self.blame_caller(path, error))? {
                made.push((path.clone(), new));
            }
        }
        if !is_used {
            return Err(Error::unknown(
                pattern,
                format_args!(
                    "`{pattern}` matches no module that this graph module holds{}",
                    self.instead_of(&chosen)
                ),
            ));
        }
        let bytes_before = bytes(self);
        let mut surgery = Surgery {
            replaced: Vec::with_capacity(made.len()),
            bytes_before,
            bytes_after: bytes_before,
            originals: Vec::with_capacity(made.len()),
            marks: Vec::with_capacity(made.len()),
        };
        self.edit(|gm| {
            for (path, new) in made {
                let old = gm.held_module(&path);
                let old = old.ok_or_else(|| not_found("module", &path))?;
                surgery.replaced.push(ReplacedModule {
                    path: path.to_string(),
                    old_type: short_type_name(old.type_name()),
                    new_type: short_type_name((*new).type_name()),
                    bytes_before: bytes(old),
                    bytes_after: bytes(&*new),
                });
                surgery.marks.push(Mark::of(&*new));
                surgery.originals.push(old.duplicate_box());
                gm.put_module(&path, &*new)?;
                gm.forget_calls(&path)?;
            }
            surgery.bytes_after = bytes(gm);
            Ok(surgery)
        })
    }

    /// The error, attributed to the first node that calls the module.
    fn blame_caller(&self, path: &Arc<str>, error: Error) -> Error {
        let error = match error.node() {
            Some(_) => error,
            None => Error::msg(format_args!("`{path}`: {error}")),
        };
        match self.graph.find_nodes(&Op::CallModule(path.clone())).first() {
            Some(node) => node.blame("replacing", error),
            None => error,
        }
    }
}

impl Surgery {
    /// Puts the old modules back, with the same tensors.
    ///
    /// # Errors
    /// Returns an error if a path no longer holds the module that was put there. The type, the
    /// identity of the tensors (training them in place does not count), and what else a file keeps
    /// of the module are compared, except the training flag; if the type cannot be saved, only the
    /// type and the tensors. Nothing is changed then.
    pub fn undo(&self, gm: &mut GraphModule) -> Result<()> {
        for (replaced, mark) in self.replaced.iter().zip(&self.marks) {
            let path = &replaced.path;
            let found = gm.held_module(path);
            let found = found.ok_or_else(|| not_found("module", path))?;
            let other = Mark::of(found);
            if other != *mark {
                return Err(Error::msg(format_args!(
                    "`{path}` has been changed since its `{}` was put there: it holds {}; take that change back first, or set the module with `set_submodule` (this is also reported for a module that was loaded from a file, which has tensors of its own)",
                    replaced.new_type,
                    match short_type_name(found.type_name()) {
                        same if same == replaced.new_type && other.tensors == mark.tensors => {
                            "one of another configuration".to_string()
                        }
                        same if same == replaced.new_type => "one with other tensors".to_string(),
                        other => format!("a `{other}`"),
                    }
                )));
            }
        }
        gm.edit(|gm| {
            for (replaced, original) in self.replaced.iter().zip(&self.originals) {
                let path: Arc<str> = replaced.path.as_str().into();
                gm.put_module(&path, &**original)?;
                gm.forget_calls(&path)?;
            }
            Ok(())
        })
    }
}

impl fmt::Debug for Surgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surgery")
            .field("replaced", &self.replaced)
            .field("bytes_before", &self.bytes_before)
            .field("bytes_after", &self.bytes_after)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Surgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for replaced in &self.replaced {
            writeln!(
                f,
                "{}: {} -> {}, {} -> {} bytes",
                replaced.path,
                replaced.old_type,
                replaced.new_type,
                replaced.bytes_before,
                replaced.bytes_after
            )?;
        }
        write!(
            f,
            "{} replaced, {} -> {} bytes of parameters and buffers in all",
            count(self.replaced.len(), "module"),
            self.bytes_before,
            self.bytes_after
        )
    }
}

/// Bytes of all parameters and buffers inside.
fn bytes(module: &dyn Module) -> usize {
    let (parameters, buffers) = (module.named_parameters(), module.named_buffers());
    let tensors = parameters.values().chain(buffers.values());
    tensors.map(|value| ValueMeta::of(value).bytes()).sum()
}

/// Checks that a new module can be called like the old one: parameters of the same names in the
/// same order, of the same structures, and defaults for any further ones.
fn check_signature(path: &str, old: &dyn Module, new: &dyn Module) -> Result<()> {
    let (before, after) = (old.params(), new.params());
    let same = |(a, b): (&ParamSpec, &ParamSpec)| {
        a.name == b.name && a.kind == b.kind && a.default == b.default
    };
    let beyond = after.get(before.len()..).unwrap_or_default();
    let trees = (old.input_trees(), new.input_trees());
    if trees.0 != trees.1 {
        let shown = |trees: &[Tree]| match trees.is_empty() {
            true => "each argument whole".to_string(),
            false => format!("arguments taken apart as {trees:?}"),
        };
        return Err(Error::mismatch(
            path,
            format_args!(
                "the `{}` at `{path}` takes {}, and the `{}` for its place {}: a module in another's place must take the same structures; trace it with arguments of the same structure",
                short_type_name(old.type_name()),
                shown(trees.0),
                short_type_name(new.type_name()),
                shown(trees.1)
            ),
        ));
    }
    if before.len() <= after.len()
        && before.iter().zip(after).all(same)
        && beyond.iter().all(|param| param.default.is_some())
    {
        return Ok(());
    }
    let shown = |params: &[ParamSpec]| {
        let params: Vec<String> = params.iter().map(ToString::to_string).collect();
        params.join(", ")
    };
    Err(Error::mismatch(
        path,
        format_args!(
            "the `{}` at `{path}` takes ({}), and the `{}` for its place ({}): a module in another's place must take the same parameters",
            short_type_name(old.type_name()),
            shown(before),
            short_type_name(new.type_name()),
            shown(after)
        ),
    ))
}
