//! A graph module as Rust source: for reading, with its hooks, and with the graph modules inside
//! it.
//!
//! Invariant: the text is a view; what runs is the program.

use std::fmt::Write as _;
use std::sync::Arc;

use super::GraphModule;
use super::parts::graphs_of;
use crate::emit::crates::core_of;
use crate::emit::hooks::{CodeGen, CodeHook};
use crate::emit::input::{Control, Input, MAX_NESTED, Own};
use crate::emit::rust::{forward_source, result_type};
use crate::emit::source::{CodeLine, CodeOptions, RustCode};
use crate::emit::types::tensor_of as tensor_of_graph;
use crate::ir::op::Op;
use crate::ir::param_type::ParamType;
use crate::ir::rust_type::RustType;
use crate::ir::unnamed::Unnamed;
use crate::module::attributes::within;
use crate::module::module::Module;
use crate::module::registry::path_of;
use crate::shapes::Contract;
use crate::text::Comment;
use crate::value::tensor_types::tensor_type;

/// The sides of a branch or loop that is written as `if` or `while`, inside of so many others; none
/// of what is called.
pub(super) fn written_sides(
    module: &dyn Module,
    depth: usize,
) -> Vec<(&'static str, &GraphModule)> {
    match module.graph_names() {
        ["then", "otherwise"] | ["body"] if depth < MAX_NESTED => graphs_of(module),
        _ => Vec::new(),
    }
}

/// Source.
impl GraphModule {
    /// The computation as Rust source, for reading. It is a view: the graph's program is what runs,
    /// and the text names fields by their paths, whatever containers they are in.
    ///
    /// It is a method of the traced type, and compiles there if the type's fields are named like
    /// their paths, in an `impl` marked `#[trace]` if it compares. If it is known not to compile,
    /// because a path is not made of fields (`features[0]` of an `nn::Sequential`, `block1-0`, a layer in an `Option`, a
    /// tuple, a map or an enum) or something has no form in Rust, the first line is a comment with the reason:
    /// [`to_folder`](GraphModule::to_folder) writes its own structs, so it does not depend on them.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// assert!(gm.code().starts_with("pub fn forward(&self, x: Float) -> Result<Float> {\n    let mul = (x * 2.0)?;"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn code(&self) -> String {
        self.rust_code(&CodeOptions::new()).into()
    }

    /// The source with the given options, and with its map from lines to nodes.
    pub fn rust_code(&self, options: &CodeOptions) -> RustCode {
        let input = self.source_input(None, self.core_path());
        forward_source(&input, &self.hooks, options).code
    }

    /// The path under which the libraries that the graph names have fx-core's items.
    pub(super) fn core_path(&self) -> &'static str {
        let called = self.graph.nodes().filter_map(|node| match node.op() {
            Op::CallFunction(function) => Some(function.path()),
            Op::CallMethod(_) => node.functions().one().map(|method| method.path()),
            Op::CallModule(path) => path_of(&**self.attributes.modules.get(path)?),
            _ => None,
        });
        // The types of the module's tensors, and of its inputs: an input without a type is a
        // tensor.
        let tensor = tensor_of_graph(&self.graph, &self.attributes);
        let has_tensors = !self.attributes.tensors.is_empty();
        let inputs = self
            .graph
            .placeholders()
            .filter_map(|node| match node.type_expr() {
                Some(text) => text.parse().ok(),
                None => tensor.clone(),
            });
        let types = tensor
            .clone()
            .filter(|_| has_tensors)
            .into_iter()
            .chain(inputs);
        let tensors =
            types.filter_map(|ty: ParamType| Some(tensor_type(ty.tensor()?.id()?)?.path()));
        core_of(called.chain(tensors))
    }

    /// The input of source generation. It recurses over nested graph modules, not over nodes.
    pub(super) fn source_input<'g>(&'g self, own: Option<Own<'g>>, core: &'g str) -> Input<'g> {
        self.source_inside(own, core, "", 0, self.meta::<Unnamed>())
    }

    /// As [`source_input`](Self::source_input), at a path inside of so many regions.
    fn source_inside<'g>(
        &'g self,
        own: Option<Own<'g>>,
        core: &'g str,
        around: &str,
        depth: usize,
        unnamed: Option<&'g Unnamed>,
    ) -> Input<'g> {
        let is_loaded = |path: &str| own.is_none_or(|own| !own.written.contains(path));
        let loaded = self.graph_modules().filter(|(path, _)| is_loaded(path));
        let results = loaded.map(|(path, inner)| {
            let result = result_type(&inner.source_input(own, core));
            (path, result)
        });
        let regions = self.attributes.modules.iter().filter_map(|(path, module)| {
            let sides = match module.graph_names() {
                ["step"] if depth < MAX_NESTED => graphs_of(&**module),
                _ => written_sides(&**module, depth),
            };
            let side = |(name, side): (&str, &'g GraphModule)| {
                let at = within(&within(around, path), name);
                let own = own.map(|own| own.at(&at));
                side.source_inside(own, core, &at, depth + 1, unnamed)
            };
            let region = match <[_; 2]>::try_from(sides) {
                Ok(sides) => Control::Branch(Box::new(sides.map(side))),
                Err(sides) => {
                    let only = Box::new(side(sides.into_iter().next()?));
                    match module.graph_names() {
                        ["step"] => Control::Scan(only, module.carried()),
                        _ => Control::Loop(only),
                    }
                }
            };
            Some((&**path, region))
        });
        Input {
            regions: regions.collect(),
            graph: &self.graph,
            attributes: &self.attributes,
            params: &self.params,
            trees: &self.trees,
            results: results.collect(),
            own,
            core,
            unnamed,
        }
    }

    /// The graph modules among the modules, by path.
    pub(crate) fn graph_modules(&self) -> impl DoubleEndedIterator<Item = (&str, &GraphModule)> {
        self.attributes.modules.iter().filter_map(|(path, module)| {
            let any: &dyn std::any::Any = &**module;
            Some((&**path, any.downcast_ref::<GraphModule>()?))
        })
    }

    /// The source with source lines, modules and shapes, and below it that of every nested graph
    /// module.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let inner = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// gm.add_submodule("inner", inner)?;
    /// let text = gm.print_readable();
    /// assert!(text.contains("(x + 1.0)?") && text.contains("// inner: GraphModule") && text.contains("(x * 2.0)?"));
    /// assert!(text.lines().all(|line| line.trim_end() == line));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn print_readable(&self) -> String {
        self.readable(&CodeOptions::new().verbose(true))
    }

    /// As [`print_readable`](GraphModule::print_readable), with options.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::emit::CodeOptions;
    /// let inner = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// gm.add_submodule("inner", inner)?;
    /// let text = gm.readable(&CodeOptions::new().expanded_head(true));
    /// assert_eq!(text.matches("\n        x: Float,\n").count(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn readable(&self, options: &CodeOptions) -> String {
        let mut text = String::new();
        let mut left = vec![(String::new(), self, 0)];
        while let Some((path, module, depth)) = left.pop() {
            for (at, called) in module.attributes.modules.iter().rev() {
                let depth = match called.graph_names() {
                    [] => 0,
                    _ => (depth + 1) % (MAX_NESTED + 1),
                };
                for (name, inner) in graphs_of(&**called).into_iter().rev() {
                    left.push((within(&within(&path, at), name), inner, depth));
                }
            }
            // A side is written where it is called.
            if depth > 0 {
                continue;
            }
            if !path.is_empty() {
                let _ = write!(text, "\n// {}: GraphModule\n", Comment(&path));
            }
            let class = module.name.replace("GraphModule", "Traced");
            let _ = match RustType::parse(&class) {
                Ok(class @ RustType::Path(_)) => writeln!(text, "impl {class} {{"),
                _ => writeln!(text, "// {}\nimpl Traced {{", Comment(&class)),
            };
            if path.is_empty() {
                for guard in module.contract().into_iter().flat_map(Contract::guards) {
                    let _ = writeln!(text, "    // guard: {}", Comment(&guard.to_string()));
                }
            }
            let code = module.rust_code(options);
            for line in code.source().lines() {
                match line.is_empty() {
                    true => text.push('\n'),
                    false => {
                        let _ = writeln!(text, "    {line}");
                    }
                }
            }
            text.push_str("}\n");
        }
        text
    }

    /// Has `transform` change the lines of the body whenever source is generated, after the hooks
    /// that were added before. It applies until the returned hook is dropped;
    /// [`keep`](CodeHook::keep) makes it permanent. Clones made meanwhile share it.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    /// let mut gm = gm;
    /// let before = gm.code();
    /// let hook = gm.on_generate_code(|mut lines| {
    ///     lines.insert(0, "let start = std::time::Instant::now();".into());
    ///     lines
    /// });
    /// assert!(gm.code().contains("Result<Float> {\n    let start = std::time::Instant::now();\n"));
    /// drop(hook);
    /// assert_eq!(gm.code(), before);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on_generate_code(
        &mut self,
        transform: impl Fn(Vec<CodeLine>) -> Vec<CodeLine> + Send + Sync + 'static,
    ) -> CodeHook {
        self.hooks.add(transform)
    }

    /// Sets custom parts for generated source, and a custom convention for calls; [`CodeGen`] has
    /// examples. Files do not keep it.
    pub fn set_codegen(&mut self, codegen: impl CodeGen + 'static) {
        self.hooks.set_codegen(Some(Arc::new(codegen)));
    }

    /// Resets source generation and calls to the default.
    pub fn reset_codegen(&mut self) {
        self.hooks.set_codegen(None);
    }
}
