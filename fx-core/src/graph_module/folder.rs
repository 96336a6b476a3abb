//! `to_folder`: writes a graph module as a separate crate that builds, loads its weights, runs, and
//! traces again.
//!
//! Invariants: nothing is written before everything is known to be nameable; the folder appears
//! whole or not at all, and nothing existing is overwritten.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashSet;

use super::GraphModule;
use super::hoisted::Hoisted;
use super::nested_source::Nested;
use super::parts::graphs_of;
use crate::emit::crates::{CrateInfo, crate_of, root_of};
use crate::emit::hooks::Hooks;
use crate::emit::input::Own;
use crate::emit::rust::forward_source;
use crate::emit::source::{CodeOptions, RustCode};
use crate::emit::structs::{Places, Structs, Taken};
use crate::emit::structures::Definitions;
use crate::error::{Error, Result};
use crate::file::container::Prepared;
use crate::file::disk;
use crate::ir::function::dynamic_error;
use crate::ir::method::{Functions, several_methods};
use crate::ir::names::is_reserved;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::registry::path_of;
use crate::text::{Excerpt, count, is_hidden};
use crate::value::tensor_types::{Registered, tensor_type, tensor_types};

/// How many items that cannot be named are listed in one error.
const TOLD: usize = 8;

/// How a crate is written.
///
/// ```
/// use fx_core::graph_module::Folder;
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
    /// A crate whose module has this name: a type name such as `ResNet18`. The package is named
    /// after it (`res_net18`).
    pub fn new(name: &str) -> Self {
        Folder {
            name: name.to_string(),
            by_path: false,
            member: false,
        }
    }

    /// Whether it depends on all libraries by the folders in which they were built. Otherwise it
    /// depends on a library by its git repository if the library declares one
    /// ([`register_crate!`](crate::register_crate)), and by its folder if not. It never asks a
    /// registry.
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
    /// Returns an error if the name is not a type name, something exists at the path, the module
    /// cannot be saved, constants are folded [lazily](crate::passes::FoldConstants::lazily), the
    /// graph calls functions or modules of no known library, a library is neither in a repository
    /// nor in its folder any more, or something traced has no form in source that compiles. The
    /// error names it, and nothing is written.
    pub fn write(&self, gm: &GraphModule, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let files = self.files(gm)?;
        write(path, &files).map_err(|e| disk::in_file(path, e))
    }

    /// The crate's `src/lib.rs`.
    ///
    /// # Errors
    /// As [`write`](Folder::write), except for errors about files.
    pub fn source(&self, gm: &GraphModule) -> Result<String> {
        let gm = &gm.undivided()?;
        Ok(source(gm, &self.name, &self.parts(gm)?))
    }

    /// The parts of the source, once everything can be named.
    fn parts(&self, gm: &GraphModule) -> Result<Parts> {
        let name = &self.name;
        let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_type {
            return Err(Error::source_of(format_args!(
                "{} is not a name for a module's type: write it as `ResNet18`",
                Excerpt(name)
            )));
        }
        let mut taken = Taken::default();
        if !taken.take(name) {
            return Err(Error::source_of(format_args!(
                "`{name}` is a name that the generated source uses: choose another name for the module's type"
            )));
        }
        gm.lint()?;
        gm.program()?;
        let mut held = Hoisted::of(gm);
        let nested = Nested::of(gm);
        nested.open(&mut held.attributes);
        refuse_uncallable(gm, &held.attributes)?;
        let mut crates = crates_of(gm)?;
        let tensor = tensor_of(&held.attributes)?;
        let core = gm.core_path();
        let places = Places::of(&held.attributes, nested.paths(), |path| {
            let module = held.attributes.module(path);
            let ty = module.ok().and_then(path_of).unwrap_or_default();
            match ty.strip_prefix("fx_core::") {
                Some(rest) => format!("{core}::{rest}"),
                None => ty.to_string(),
            }
        })?;
        let definitions = RefCell::new(Definitions::new(taken));
        let sides = held.sides.iter().map(|(side, inside)| {
            let fields = inside.iter().filter_map(|(path, place)| {
                let field = places.fields.get(place)?;
                Some((path.clone(), field.clone()))
            });
            (side.clone(), fields.collect())
        });
        let sides = sides.collect();
        let written = nested.inside("");
        let own = Own {
            fields: &places.fields,
            sides: &sides,
            written: &written,
            definitions: &definitions,
        };
        let input = gm.source_input(Some(own), core);
        let generated = forward_source(&input, &Hooks::default(), &CodeOptions::new());
        let forwards = nested.forwards(&places, &definitions, core);
        let mut problems = generated
            .problems
            .iter()
            .chain(&forwards.problems)
            .peekable();
        if problems.peek().is_some() {
            let told: Vec<String> = problems.take(TOLD).cloned().collect();
            return Err(Error::source_of(format_args!(
                "the source of a crate would not compile:\n  {}",
                told.join("\n  ")
            )));
        }
        let mut definitions = definitions.into_inner();
        let structs = Structs::new(
            name,
            &places,
            &nested.types(gm),
            &forwards.code,
            tensor.map_or("Value", Registered::name),
            definitions.taken_mut(),
        );
        let structs = structs.source();
        let structures = definitions.source();
        for library in &definitions.libraries {
            crates.extend(crate_of(library).map(|info| (info.library, info)));
        }
        let code = generated.code;
        let mut words: FxHashSet<&str> = FxHashSet::default();
        for text in [code.source(), &structures, &structs] {
            words.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_'));
        }
        words.extend(tensor.map(Registered::name));
        let mut imported = BTreeSet::new();
        for ty in tensor_types() {
            // A type that shares its name with others is named by its path.
            let is_path = ty.name() == ty.path();
            let is_used = match is_path {
                true => [code.source(), &structures, &structs]
                    .iter()
                    .any(|text| text.contains(ty.path())),
                false => words.contains(ty.name()),
            };
            if !is_used && tensor.is_none_or(|tensor| tensor.id() != ty.id()) {
                continue;
            }
            let info = crate_of(ty.path());
            crates.extend(info.map(|info| (info.library, info)));
            if !is_path && info.is_none_or(|info| info.prelude.is_none()) {
                imported.insert(ty.path());
            }
        }
        // A library that has all items of fx-core replaces it.
        if core != "fx_core" {
            crates.extend(crate_of(core).map(|info| (info.library, info)));
            crates.remove("fx_core");
        }
        Ok(Parts {
            crates,
            types: imported,
            structs,
            structures,
            code,
            held,
        })
    }

    fn files(&self, gm: &GraphModule) -> Result<Vec<(&'static str, Contents)>> {
        let name = &self.name;
        // A part's fields would be at other paths than what they hold.
        let gm = &gm.undivided()?;
        let parts = self.parts(gm)?;
        let package = package_name(name);
        Ok(vec![
            (
                "Cargo.toml",
                Contents::Text(self.manifest(&package, &parts.crates)?),
            ),
            ("src/lib.rs", Contents::Text(source(gm, name, &parts))),
            (
                "weights.safetensors",
                Contents::Module(parts.held.module(&Nested::of(gm).opened(gm)?).to_file()?),
            ),
            ("README.md", Contents::Text(readme(gm, name, &package))),
        ])
    }

    fn manifest(
        &self,
        package: &str,
        crates: &BTreeMap<&str, &'static CrateInfo>,
    ) -> Result<String> {
        let mut text = format!(
            "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n"
        );
        for info in crates.values() {
            let _ = writeln!(text, "{} = {{ {} }}", info.package, self.place(info)?);
        }
        if !self.member {
            text.push_str(
                "\n# It stands on its own, also inside of another workspace.\n[workspace]\n",
            );
        }
        Ok(text)
    }

    /// Where a library is: in its repository, or in the folder in which it was built. By its name
    /// alone a registry would be asked, where the name may be somebody else's.
    fn place(&self, info: &CrateInfo) -> Result<String> {
        let CrateInfo {
            library, folder, ..
        } = info;
        if let Some(repository) = info.repository.filter(|_| !self.by_path) {
            return Ok(format!("git = {}", toml(repository)));
        }
        if Path::new(folder).join("Cargo.toml").is_file() {
            return Ok(format!("path = {}", toml(folder)));
        }
        Err(Error::source_of(format_args!(
            "the crate would depend on `{library}`, which was built in {}, which no longer exists: write the crate where the library is, or say which repository it is in: `{library}`'s lib.rs has `register_crate!(repository = \"..\")`",
            Excerpt(folder)
        )))
    }
}

/// A text as TOML writes it.
fn toml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_hidden(c) => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The type of a module's tensors; `None` if it has none.
fn tensor_of(held: &Attributes) -> Result<Option<&'static Registered>> {
    let mut found: Option<(TypeId, &'static str)> = None;
    for (path, (_, value)) in &held.tensors {
        let Some(object) = value.as_object() else {
            return Err(Error::source_of(format_args!(
                "{} is {}, and no tensor: no field of a module gives it to a trace again; put it into the graph as an argument",
                Excerpt(path),
                value.describe()
            )));
        };
        let any: &dyn Any = object;
        let (id, name) = (any.type_id(), object.type_name());
        match found {
            Some((known, other)) if known != id => {
                return Err(Error::source_of(format_args!(
                    "the tensors are of several types, `{other}` and `{name}`: a crate is written of modules with one"
                )));
            }
            _ => found = Some((id, name)),
        }
    }
    let Some((id, name)) = found else {
        return Ok(None);
    };
    match tensor_type(id) {
        Some(registered) => Ok(Some(registered)),
        None => Err(Error::unregistered(
            name,
            format_args!(
                "the tensors are of the type `{name}`, which is not registered: write `fx_core::register_tensor!(..)` for it"
            ),
        )),
    }
}

/// The contents of a file of a crate.
enum Contents {
    Text(String),
    /// The module; its tensors are written from where they are.
    Module(Prepared),
}

/// The parts of a crate's source.
struct Parts {
    /// The libraries that it names, by name.
    crates: BTreeMap<&'static str, &'static CrateInfo>,
    /// Tensor types that are in no prelude.
    types: BTreeSet<&'static str>,
    structs: String,
    /// The structures of its arguments.
    structures: String,
    code: RustCode,
    held: Hoisted,
}

impl GraphModule {
    /// Writes the module as a crate that builds, to be edited as any source: the struct `name` with
    /// its layers, its `forward`, annotated so that it can be traced again, and its weights, which
    /// `load` reads. A nested graph module is a field, loaded with the weights; a trace of the
    /// crate goes through it, unless it is a leaf for the tracer. [`Folder`] has the options, and
    /// an example.
    ///
    /// # Errors
    /// As [`Folder::write`].
    pub fn to_folder(&self, path: impl AsRef<Path>, name: &str) -> Result<()> {
        Folder::new(name).write(self, path)
    }
}

/// Refuses modules that source cannot call. Those inside graph modules are loaded, not written.
fn refuse_uncallable(gm: &GraphModule, held: &Attributes) -> Result<()> {
    for (path, module) in &held.modules {
        if let Some(problem) = module.source_problem() {
            let error = Error::source_of(format_args!("`{path}` {problem}"));
            let mut nodes = gm.graph.nodes();
            let calls = nodes.find(|node| matches!(node.op(), Op::CallModule(at) if at == path));
            return Err(match calls {
                Some(node) => node.blame("writing a crate", error),
                None => error,
            });
        }
    }
    Ok(())
}

/// The libraries that a graph module's code names, by name.
fn crates_of(gm: &GraphModule) -> Result<BTreeMap<&'static str, &'static CrateInfo>> {
    let mut crates = BTreeMap::new();
    let mut unknown: Vec<String> = Vec::new();
    let mut uses = 0;
    let core = crate_of("fx_core");
    crates.extend(core.map(|info| (info.library, info)));
    let mut is_known = |path: &str| match crate_of(path) {
        Some(info) => {
            crates.insert(info.library, info);
            true
        }
        None => false,
    };
    // What is called inside graph modules is found by path when they are loaded: its library must
    // be linked.
    let mut modules = vec![(String::new(), gm)];
    let mut at = 0;
    while let Some((path, gm)) = modules.get(at) {
        let mut inner = Vec::new();
        for (at, module) in &gm.attributes.modules {
            let graphs = graphs_of(&**module).into_iter();
            inner.extend(graphs.map(|(name, gm)| match name {
                "" => (format!("{path}{at}."), gm),
                name => (format!("{path}{at}.{name}."), gm),
            }));
        }
        modules.extend(inner);
        at += 1;
    }
    let nodes = modules.iter().flat_map(|(outer, gm)| {
        let nodes = gm.graph.nodes();
        nodes.map(move |node| (outer, *gm, node))
    });
    for (outer, gm, node) in nodes {
        let path = match node.op() {
            Op::CallFunction(function) if function.is_dynamic() => {
                uses += 1;
                let why = dynamic_error(*function).to_string();
                unknown.push(told(outer, node, function.path(), &why));
                continue;
            }
            Op::CallFunction(function) => function.path(),
            Op::CallMethod(name) => match node.functions() {
                Functions::One(method) => method.path(),
                Functions::None => continue,
                Functions::Several(several) => {
                    uses += 1;
                    unknown.push(told(outer, node, name, &several_methods(name, &several)));
                    continue;
                }
            },
            Op::CallModule(path) => {
                let module = gm.attributes.module(path)?;
                match path_of(module) {
                    Some(ty) => ty,
                    None => {
                        uses += 1;
                        unknown.push(told(
                            outer,
                            node,
                            module.type_name(),
                            "it is not registered: write `register_module!(..)` for it",
                        ));
                        continue;
                    }
                }
            }
            _ => continue,
        };
        let is_public = !path.contains(['{', '<']) || matches!(node.op(), Op::CallModule(_));
        if !is_public || !is_known(path) {
            uses += 1;
            if unknown.len() < TOLD {
                let why = format!(
                    "no library `{}` is known: if it is one, put `{}::register_crate!();` into its lib.rs; otherwise move the item into a library, or trace through it",
                    root_of(path),
                    gm.core_path()
                );
                unknown.push(told(outer, node, path, &why));
            }
        }
    }
    if !unknown.is_empty() {
        return Err(Error::source_of(format_args!(
            "what a crate cannot name from outside is used by {}:\n{}",
            count(uses, "node"),
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

/// A type name as a package name: `ResNet18` is `res_net18`.
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
    // The preludes of other libraries include fx's own.
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
    let trace = match parts.held.has_sides() {
        true => "#[trace(control_flow)]",
        false => "#[trace]",
    };
    let _ = write!(
        text,
        "\n{}{}\nimpl {name} {{\n    /// The module with the layers and weights of a file that was saved with it.\n    ///\n    /// # Errors\n    /// Returns an error if the file is not of this module.\n    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {{\n        Self::take(&mut GraphModule::load(path)?)\n    }}\n}}\n\n{trace}\nimpl {name} {{\n    /// What was traced.\n    ///\n    /// # Errors\n    /// When the arguments do not fit.\n",
        parts.structs, parts.structures
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

/// Writes files into a folder that does not exist yet, or is empty: first beside it, then under its
/// name.
fn write(path: &Path, files: &[(&'static str, Contents)]) -> Result<()> {
    if let Ok(mut entries) = fs::read_dir(path) {
        if entries.next().is_some() {
            return Err(Error::saved(
                "exists and is not overwritten: remove it, or write to another folder",
            ));
        }
    } else if fs::symlink_metadata(path).is_ok() {
        return Err(Error::saved("is not a folder"));
    }
    let beside = disk::beside(path)?;
    let written = write_all(&beside, files).and_then(|()| {
        if path.exists() {
            fs::remove_dir(path).map_err(Error::saved)?;
        }
        fs::rename(&beside, path).map_err(Error::saved)
    });
    if written.is_err() {
        // What is left of it is useless; the first error is the one that counts.
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

fn write_all(folder: &Path, files: &[(&'static str, Contents)]) -> Result<()> {
    for (name, contents) in files {
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(Error::saved)?;
        }
        disk::create(&file, |out| match contents {
            Contents::Text(text) => out.write_all(text.as_bytes()).map_err(Error::saved),
            Contents::Module(module) => module.write(out),
        })?;
    }
    Ok(())
}
