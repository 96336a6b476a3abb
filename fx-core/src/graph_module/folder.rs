//! `to_folder`: a graph module as a crate of its own that builds, loads its weights, runs, and traces again.
//!
//! Invariants: nothing is written before all is known to be nameable; the folder appears whole or not at all, and what
//! is there already is never overwritten.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashSet;

use super::GraphModule;
use crate::codegen::crates::{CrateInfo, crate_of, root_of};
use crate::codegen::hooks::Hooks;
use crate::codegen::rust::forward_source;
use crate::codegen::source::{CodeOptions, RustCode};
use crate::codegen::structs::Structs;
use crate::error::{Error, Result};
use crate::ir::names::is_reserved;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::module::registry::path_of;
use crate::passes::folded::FoldedConstants;
use crate::save::file;
use crate::value::data::tensor_types;
use crate::value::object::short_type_name;

/// How many items that cannot be named are told at once.
const TOLD: usize = 8;

/// How a crate is written.
///
/// ```
/// use fx_core::Folder;
/// use fx_core::prelude::*;
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let path = std::env::temp_dir().join(format!("fx_doc_folder_{}", std::process::id()));
/// Folder::new("Affine").dependencies_by_path(true).write(&gm, &path)?;
/// let source = std::fs::read_to_string(path.join("src/lib.rs")).map_err(Error::other)?;
/// assert!(source.contains("pub fn forward(&self, x: Float) -> Result<Float> {"));
/// // What is there is not overwritten.
/// assert!(gm.to_folder(&path, "Affine").is_err());
/// # std::fs::remove_dir_all(&path).map_err(Error::other)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Folder {
    name: String,
    by_path: bool,
    member: bool,
}

impl Folder {
    /// A crate whose module has this name: a type's, such as `ResNet18`. The package is named after it (`res_net18`).
    pub fn new(name: &str) -> Self {
        Folder {
            name: name.to_string(),
            by_path: false,
            member: false,
        }
    }

    /// Whether it depends on the libraries in the folders in which they were built, instead of on their versions.
    #[must_use]
    pub fn dependencies_by_path(mut self, yes: bool) -> Self {
        self.by_path = yes;
        self
    }

    /// Whether it is a member of the workspace around it, instead of standing on its own.
    #[must_use]
    pub fn workspace_member(mut self, yes: bool) -> Self {
        self.member = yes;
        self
    }

    /// Writes the crate: `Cargo.toml`, `src/lib.rs`, `weights.safetensors` and `README.md`.
    ///
    /// # Errors
    /// When the name is none of a type, something is at the path already, the module cannot be saved, constants are folded
    /// [lazily](crate::FoldConstants::lazily), or the graph calls functions or modules that no library is known to have: the error names them, and nothing is written.
    pub fn write(&self, gm: &GraphModule, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let files = self.files(gm)?;
        write(path, &files).map_err(|e| file::in_file(path, e))
    }

    /// The crate's `src/lib.rs`.
    ///
    /// # Errors
    /// As [`write`](Folder::write), but for what is about files.
    pub fn source(&self, gm: &GraphModule) -> Result<String> {
        Ok(source(gm, &self.name, &self.parts(gm)?))
    }

    /// What the source is put together of, once everything can be named.
    fn parts(&self, gm: &GraphModule) -> Result<Parts> {
        let name = &self.name;
        let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric())
            && name != "Self";
        if !is_type {
            return Err(Error::msg(format_args!(
                "`{name}` is no name for a module's type: write it as `ResNet18`"
            )));
        }
        gm.lint()?;
        refuse_lazy(gm)?;
        let mut crates = crates_of(gm)?;
        let mut tensors = gm.attributes.tensors.values();
        let tensor = tensors.find_map(|(_, value)| value.as_object());
        let tensor = tensor.map_or("Tensor".to_string(), |o| short_type_name(o.type_name()));
        let structs = Structs::new(name, &gm.graph, &gm.attributes, &tensor, |path| {
            let module = gm.attributes.module(path);
            let ty = module.ok().and_then(path_of);
            ty.unwrap_or_default().to_string()
        });
        let input = gm.source_input(Some(&structs.fields));
        let code = forward_source(&input, &Hooks::default(), CodeOptions::new(), &|_| None);
        let words = code
            .source()
            .split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut words: FxHashSet<&str> = words.collect();
        words.insert(&tensor);
        let mut types = BTreeSet::new();
        for path in tensor_types() {
            if words.contains(path.rsplit("::").next().unwrap_or(path)) {
                let info = crate_of(path);
                crates.extend(info.map(|info| (info.library, info)));
                if info.is_none_or(|info| info.prelude.is_none()) {
                    types.insert(path);
                }
            }
        }
        Ok(Parts {
            crates,
            types,
            structs: structs.source(),
            code,
        })
    }

    fn files(&self, gm: &GraphModule) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let name = &self.name;
        let parts = self.parts(gm)?;
        let package = package_name(name);
        Ok(vec![
            (
                "Cargo.toml",
                self.manifest(&package, &parts.crates).into_bytes(),
            ),
            ("src/lib.rs", source(gm, name, &parts).into_bytes()),
            ("weights.safetensors", gm.to_bytes()?),
            ("README.md", readme(gm, name, &package).into_bytes()),
        ])
    }

    fn manifest(&self, package: &str, crates: &BTreeMap<&str, &CrateInfo>) -> String {
        let mut text = format!(
            "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n"
        );
        for info in crates.values() {
            let CrateInfo {
                package,
                version,
                folder,
                ..
            } = info;
            let _ = match self.by_path {
                true => writeln!(text, "{package} = {{ path = {folder:?} }}"),
                false => writeln!(text, "{package} = {version:?}"),
            };
        }
        if !self.member {
            text.push_str(
                "\n# It stands on its own, also inside of another workspace.\n[workspace]\n",
            );
        }
        text
    }
}

/// What a crate's source is put together of.
struct Parts {
    /// The libraries that it names, by their names.
    crates: BTreeMap<&'static str, &'static CrateInfo>,
    /// Tensor types that no prelude has.
    types: BTreeSet<&'static str>,
    structs: String,
    code: RustCode,
}

impl GraphModule {
    /// Writes the module as a crate that builds, to be edited as any source: the struct `name` with its layers, its
    /// `forward`, annotated so that it can be traced again, and its weights, which `load` reads. A graph module inside
    /// is a field, loaded with the weights; a trace of the crate goes through it, unless its tracer has it as a leaf.
    /// [`Folder`] has the options, and an example.
    ///
    /// # Errors
    /// As [`Folder::write`].
    pub fn to_folder(&self, path: impl AsRef<Path>, name: &str) -> Result<()> {
        Folder::new(name).write(self, path)
    }
}

/// Constants that are folded lazily are computed by a graph inside of a module that has no `forward` of its own. Those
/// inside of graph modules are loaded, not written.
fn refuse_lazy(gm: &GraphModule) -> Result<()> {
    for node in gm.graph.nodes() {
        let Op::CallModule(path) = node.op() else {
            continue;
        };
        let module: &dyn Any = gm.attributes.module(path)?;
        if module.is::<FoldedConstants>() {
            let error = Error::msg(format_args!(
                "`{path}` has constants that are folded lazily, which source cannot call: fold with `FoldConstants::new()`, at once, in a graph module that is to be written"
            ));
            return Err(node.blame("writing a crate", error));
        }
    }
    Ok(())
}

/// The libraries that a graph module's code names, by their names.
fn crates_of(gm: &GraphModule) -> Result<BTreeMap<&'static str, &'static CrateInfo>> {
    let mut crates = BTreeMap::new();
    let mut unknown: Vec<String> = Vec::new();
    let mut count = 0;
    let core = crate_of("fx_core");
    crates.extend(core.map(|info| (info.library, info)));
    let mut is_known = |path: &str| match crate_of(path) {
        Some(info) => {
            crates.insert(info.library, info);
            true
        }
        None => false,
    };
    // What is called inside of graph modules is found by its path when they are loaded: its library is to be linked.
    let mut modules = vec![(String::new(), gm)];
    let mut at = 0;
    while let Some((path, gm)) = modules.get(at) {
        let inner = gm.graph_modules();
        let inner: Vec<_> = inner.map(|(at, gm)| (format!("{path}{at}."), gm)).collect();
        modules.extend(inner);
        at += 1;
    }
    let nodes = modules.iter().flat_map(|(outer, gm)| {
        let nodes = gm.graph.nodes();
        nodes.map(move |node| (outer, *gm, node))
    });
    for (outer, gm, node) in nodes {
        let path = match node.op() {
            Op::CallFunction(function) => function.path(),
            Op::CallMethod(name) => match registry::methods(name).first() {
                Some(method) => method.path(),
                None => continue,
            },
            Op::CallModule(path) => {
                let module = gm.attributes.module(path)?;
                match path_of(module) {
                    Some(ty) => ty,
                    None => {
                        count += 1;
                        unknown.push(told(
                            outer,
                            node,
                            module.type_name(),
                            "it is not registered: write `fx_core::register_module!(..)` for it",
                        ));
                        continue;
                    }
                }
            }
            _ => continue,
        };
        let is_public = !path.contains(['{', '<']) || matches!(node.op(), Op::CallModule(_));
        if !is_public || !is_known(path) {
            count += 1;
            if unknown.len() < TOLD {
                let why = format!(
                    "no library `{}` is known: if it is one, put `fx_core::register_crate!();` into its lib.rs; else move the item into a library, or trace through it",
                    root_of(path)
                );
                unknown.push(told(outer, node, path, &why));
            }
        }
    }
    if !unknown.is_empty() {
        return Err(Error::msg(format_args!(
            "{count} nodes use what a crate cannot name from outside:\n{}",
            unknown.join("\n")
        )));
    }
    Ok(crates)
}

fn told(outer: &str, node: NodeRef<'_>, item: &str, why: &str) -> String {
    let at = match node.location() {
        Some(at) => format!(" ({}:{})", at.file, at.line),
        None => String::new(),
    };
    let inside = match outer.strip_suffix('.') {
        Some(path) => format!(" of the graph module `{path}`"),
        None => String::new(),
    };
    format!("  %{}{inside}{at} calls `{item}`: {why}", node.name())
}

/// A type's name as a package's: `ResNet18` is `res_net18`.
fn package_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if at > 0 && c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    match is_reserved(&text) {
        true => format!("{text}_module"),
        false => text,
    }
}

/// `src/lib.rs`.
fn source(gm: &GraphModule, name: &str, parts: &Parts) -> String {
    let mut text = format!(
        "//! `{name}`, generated from a traced graph of {} nodes; to be edited as any source.\n//!\n//! `weights.safetensors` has its layers and weights: [`{name}::load`] takes them from there.\n\n",
        gm.graph.len()
    );
    let preludes = parts.crates.values().filter_map(|info| info.prelude);
    let mut preludes: BTreeSet<&str> = preludes.collect();
    // Those of other libraries have what fx's own has.
    if preludes.len() > 1 {
        preludes.remove("fx_core::prelude");
    }
    for prelude in preludes {
        let _ = writeln!(text, "use {prelude}::*;");
    }
    for ty in &parts.types {
        let _ = writeln!(text, "use {ty};");
    }
    if gm.graph_modules().next().is_some() {
        let unnamed = parts.crates.values().filter(|info| info.prelude.is_none());
        for info in unnamed {
            let _ = writeln!(text, "use {} as _;", info.library);
        }
    }
    let _ = write!(
        text,
        "\n{}\nimpl {name} {{\n    /// The module with the layers and weights of a file that was saved with it.\n    ///\n    /// # Errors\n    /// When the file is none of this module's.\n    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {{\n        Self::take(&mut GraphModule::load(path)?)\n    }}\n}}\n\n#[trace]\nimpl {name} {{\n    /// What was traced.\n    ///\n    /// # Errors\n    /// When the arguments do not fit.\n",
        parts.structs
    );
    for line in parts.code.source().lines() {
        match line.is_empty() {
            true => text.push('\n'),
            false => {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text.push_str("}\n");
    text
}

fn readme(gm: &GraphModule, name: &str, package: &str) -> String {
    format!(
        "# {package}\n\n`{name}` as a crate, generated by fx {} from a traced graph of {} nodes.\n\n```rust\nlet module = {package}::{name}::load(\"weights.safetensors\")?;\nlet y = module.forward(..)?;\n```\n\n`src/lib.rs` is yours to edit: print values, change layers, take steps out. The structs hold the layers under the\nnames that they had; `take` says where each comes from, and a layer of your own is made there instead.\nThe module is annotated, so `symbolic_trace(&module)?` gives its graph again.\n\n`weights.safetensors` is what `GraphModule::save` writes: the tensors under their paths, for Python's safetensors too,\nand the graph, which `GraphModule::load` runs without this source.\n",
        env!("CARGO_PKG_VERSION"),
        gm.graph.len()
    )
}

/// Writes files into a folder that is not there yet, or empty: beside it first, then under its name.
fn write(path: &Path, files: &[(&'static str, Vec<u8>)]) -> Result<()> {
    if let Ok(mut entries) = fs::read_dir(path) {
        if entries.next().is_some() {
            return Err(Error::saved(
                "is there already, and is not overwritten: take it away, or write to another folder",
            ));
        }
    } else if path.exists() {
        return Err(Error::saved("is a file"));
    }
    let beside = file::beside(path)?;
    let written = write_all(&beside, files).and_then(|()| {
        if path.exists() {
            fs::remove_dir(path).map_err(Error::saved)?;
        }
        fs::rename(&beside, path).map_err(Error::saved)
    });
    if written.is_err() {
        // What is left of it is of no use; the error that counts is the first.
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

fn write_all(folder: &Path, files: &[(&'static str, Vec<u8>)]) -> Result<()> {
    for (name, bytes) in files {
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(Error::saved)?;
        }
        fs::write(file, bytes).map_err(Error::saved)?;
    }
    Ok(())
}
