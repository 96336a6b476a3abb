//! Saving and loading graph modules: to bytes, to files, and as parts of other modules.
//!
//! Invariant: a saved module runs, and a loaded one was checked like a module that is made from
//! parts.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use super::GraphModule;
use crate::error::{Error, Result};
use crate::file::arguments::{from_value, to_value};
use crate::file::container::Prepared;
use crate::file::graph::{from_graph, to_graph, write_graph};
use crate::file::json::{self, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::meta::{from_entries, to_entries};
use crate::file::names::{attribute, graph_module as names, module as module_names};
use crate::file::saver::Saver;
use crate::file::signature::{from_params, from_trees, to_params, to_trees};
use crate::file::{disk, file};
use crate::ir::graph::Graph;
use crate::module::attributes::Attributes;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::registry::{load_module, save_module, saver};
use crate::module::walk::TensorKind;
use crate::text::count;
use crate::value::tree::Tree;

/// Saved files.
impl GraphModule {
    /// Saves the module in one file: a safetensors file that has the tensors under their paths, as
    /// [`state_dict`](crate::module::ComponentExt::state_dict) has them, and the graph, the
    /// configurations of the modules and the signature as JSON in its metadata. The file appears
    /// whole or not at all. A symbolic link stays one, and the file that it leads to gets the
    /// contents.
    ///
    /// Functions and module types are saved by their registered paths, by which
    /// [`load`](GraphModule::load) finds them: `#[wrap]` and `#[trace]` register them,
    /// [`register_module!`](crate::register_module) registers an instantiation of a generic type.
    /// Entries of nodes and of the module are saved if their type is registered
    /// ([`register_meta!`](crate::register_meta)), as [`ValueMeta`](crate::ir::ValueMeta) is;
    /// others are left out.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let path = std::env::temp_dir().join(format!("fx_doc_{}.safetensors", std::process::id()));
    /// gm.save(&path)?;
    /// let loaded = GraphModule::load(&path)?;
    /// # std::fs::remove_file(&path).map_err(Error::other)?;
    /// assert_eq!(loaded.forward::<f64>(1.5)?, 4.0);
    /// assert_eq!(loaded.graph().to_string(), gm.graph().to_string());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the module does not run, something in it cannot be saved (the error
    /// names it), or the file cannot be written. If the path is not a file but a folder or a
    /// device, it is left unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let file = self.to_file().map_err(|e| disk::in_file(path, e))?;
        file.save(path)
    }

    /// Loads a file that [`save`](GraphModule::save) wrote, of this or an earlier version of fx.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not such a file: the error names the place
    /// in it. A file is data: whatever it holds, nothing in it runs before the module is called.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        disk::open(path.as_ref(), |file| {
            file::read(file, GraphModule::load_file)
        })
    }

    /// The bytes that [`save`](GraphModule::save) writes. The same module has the same bytes in
    /// every run.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// let bytes = gm.to_bytes()?;
    /// let loaded = GraphModule::from_bytes(&bytes)?;
    /// assert_eq!(loaded.to_bytes()?, bytes);
    ///
    /// let cut = GraphModule::from_bytes(&bytes[..bytes.len() - 1]);
    /// assert!(cut.is_err_and(|e| e.to_string().starts_with("not a complete safetensors file")));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`save`](GraphModule::save).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_file()?.into_bytes()
    }

    /// Loads the module from [`to_bytes`](GraphModule::to_bytes).
    ///
    /// # Errors
    /// As [`load`](GraphModule::load).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        file::read(Cursor::new(bytes), GraphModule::load_file)
    }

    /// The file of the module, with its tensors still in place.
    pub(super) fn to_file(&self) -> Result<Prepared> {
        let (mut before, mut after) = (file::header(), JsonMap::new());
        let mut saver = saver();
        self.save_signature(&mut before)?;
        let nodes = write_graph(&self.graph, &mut before)?;
        self.save_attributes(&mut after, &mut saver)?;
        file::prepare(before, &nodes, after, saver)
    }

    fn load_file(fields: &JsonMap, graph: Option<Graph>, loader: &mut Loader<'_>) -> Result<Self> {
        loader.nested(|loader| GraphModule::load_parts(fields, graph, loader))
    }

    /// Appends the module's fields to the existing ones.
    pub(super) fn save_fields(&self, fields: &mut JsonMap, saver: &mut Saver) -> Result<()> {
        self.save_signature(fields)?;
        from_graph(&self.graph, fields)?;
        self.save_attributes(fields, saver)
    }

    /// Appends what comes before the graph.
    fn save_signature(&self, fields: &mut JsonMap) -> Result<()> {
        self.lint()?;
        self.program()?;
        json::check_name(&self.name).map_err(|e| e.inside(".class"))?;
        fields.insert(names::CLASS.into(), Json::from(self.name.as_str()));
        let params = from_params(&self.params).map_err(|e| e.inside(".params"))?;
        fields.insert(names::PARAMS.into(), params);
        if !self.trees.is_empty() {
            let trees = from_trees(&self.trees).map_err(|e| e.inside(".inputs"))?;
            fields.insert(names::INPUTS.into(), trees);
        }
        if let Some(meta) = from_entries(self.entries.iter()).map_err(|e| e.inside(".meta"))? {
            fields.insert(names::META.into(), meta);
        }
        Ok(())
    }

    /// Appends what comes after the graph.
    fn save_attributes(&self, fields: &mut JsonMap, saver: &mut Saver) -> Result<()> {
        let mut modules = Vec::with_capacity(self.attributes.modules.len());
        for (i, (path, module)) in self.attributes.modules.iter().enumerate() {
            let mut entry = JsonMap::new();
            json::check_name(path).map_err(|e| e.inside(format_args!(".modules[{i}].path")))?;
            entry.insert(module_names::PATH.into(), Json::from(&**path));
            let saved = checked_paths(&**module)
                .and_then(|()| match self.is_part(path) {
                    // What a part holds is at the paths of the whole.
                    true => save_module(&**module, saver),
                    false => saver.inside(path, |saver| save_module(&**module, saver)),
                })
                .map_err(|e| e.inside(format_args!(".modules[{i}]")))?;
            entry.extend(saved);
            modules.push(Json::Object(entry));
        }
        fields.insert(names::MODULES.into(), Json::Array(modules));
        let mut attributes = Vec::with_capacity(self.attributes.tensors.len());
        for (i, (path, (kind, value))) in self.attributes.tensors.iter().enumerate() {
            let mut entry = JsonMap::new();
            json::check_name(path).map_err(|e| e.inside(format_args!(".attributes[{i}].path")))?;
            entry.insert(attribute::PATH.into(), Json::from(&**path));
            entry.insert(attribute::KIND.into(), Json::from(kind_name(*kind)));
            let saved = saver
                .inside(path, |saver| from_value(value, saver))
                .map_err(|e| e.inside(format_args!(".attributes[{i}].value")))?;
            entry.insert(attribute::VALUE.into(), saved);
            attributes.push(Json::Object(entry));
        }
        fields.insert(names::ATTRIBUTES.into(), Json::Array(attributes));
        Ok(())
    }

    /// Loads the module of [`save_fields`](GraphModule::save_fields), and checks it.
    pub(super) fn load_fields(fields: &JsonMap, loader: &mut Loader<'_>) -> Result<Self> {
        loader.nested(|loader| GraphModule::load_parts(fields, None, loader))
    }

    /// Reads the graph, unless it was read with the text.
    fn load_parts(fields: &JsonMap, graph: Option<Graph>, loader: &mut Loader<'_>) -> Result<Self> {
        json::known_names(fields, &names::ALL)?;
        let graph = match graph {
            Some(graph) => graph,
            None => to_graph(fields)?,
        };
        let mut attributes = Attributes::default();
        let to_path = |path| json::name(path).map(Arc::<str>::from);
        json::part(fields, names::MODULES, |modules| {
            json::items(modules, |entry| {
                let entry = json::object(entry)?;
                let path = json::part(entry, module_names::PATH, to_path)?;
                json::known_names(entry, &module_names::ALL)?;
                let module = load_module(entry, loader)?;
                checked_paths(&*module)?;
                match attributes.modules.insert(path.clone(), module) {
                    false => Ok(()),
                    true => Err(twice(&path)),
                }
            })
        })?;
        json::part(fields, names::ATTRIBUTES, |saved| {
            json::items(saved, |entry| {
                let entry = json::object(entry)?;
                json::known_names(entry, &attribute::ALL)?;
                let path = json::part(entry, attribute::PATH, to_path)?;
                let kind = json::part(entry, attribute::KIND, to_kind)?;
                let value = json::part(entry, attribute::VALUE, |value| to_value(value, loader))?;
                let taken = attributes.modules.contains_key(&path);
                match attributes.tensors.insert(path.clone(), (kind, value)) {
                    false if !taken => Ok(()),
                    _ => Err(twice(&path)),
                }
            })
        })?;
        let params = json::part(fields, names::PARAMS, to_params)?;
        let trees = json::optional(fields, names::INPUTS, to_trees)?.unwrap_or_default();
        let name = json::part(fields, names::CLASS, json::name)?;
        let mut module = GraphModule::of_parts(graph, attributes, name);
        module.params = Arc::new(params);
        module.trees = Arc::new(trees);
        json::inside(fields.get(names::META), names::META, |meta| {
            to_entries(meta, |entry| module.entries.put(entry))
        })?;
        module.check_signature()?;
        module.lint()?;
        module.program()?;
        Ok(module)
    }

    /// Checks that the parameters, taken apart by the trees, are as many as the graph's inputs.
    fn check_signature(&self) -> Result<()> {
        let inputs = self.graph.placeholders().count();
        let flat = match self.trees.as_slice() {
            [] => self.params.len(),
            trees => trees.iter().map(Tree::leaves).sum(),
        };
        if flat != inputs || !(self.trees.is_empty() || self.trees.len() == self.params.len()) {
            return Err(Error::saved(format_args!(
                "{}, {} when taken apart, do not fit a graph of {}",
                count(self.params.len(), "parameter"),
                count(flat, "value"),
                count(inputs, "input")
            ))
            .inside(".params"));
        }
        Ok(())
    }
}

/// Returns an error if a path in the module leads to two things, which no file may contain.
fn checked_paths(module: &dyn Module) -> Result<()> {
    let checked = module.check_paths();
    checked.map_err(|error| Error::saved(error).inside(format_args!(".{}", module_names::CONFIG)))
}

fn twice(path: &str) -> Error {
    Error::saved(format_args!(
        "something else is at the path {}",
        json::Excerpt(path)
    ))
    .inside(".path")
}

fn kind_name(kind: TensorKind) -> &'static str {
    match kind {
        TensorKind::Parameter => "parameter",
        TensorKind::Buffer => "buffer",
        TensorKind::NonPersistentBuffer => "non_persistent_buffer",
    }
}

fn to_kind(saved: &Json) -> Result<TensorKind> {
    match json::text(saved)? {
        "parameter" => Ok(TensorKind::Parameter),
        "buffer" => Ok(TensorKind::Buffer),
        "non_persistent_buffer" => Ok(TensorKind::NonPersistentBuffer),
        _ => Err(json::expected(
            "`parameter`, `buffer` or `non_persistent_buffer`",
            saved,
        )),
    }
}
