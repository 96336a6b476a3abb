//! `Saver`: where module parts write when they are saved; it collects the tensors under their
//! paths, sharing their elements.
//!
//! Invariant: a tensor is kept once, under its first path; every other path is an alias.

use std::fmt::{Display, Write};

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::container::{self, Outgoing};
use super::json::{Json, tag};
use super::limits::{MAX_MODULE_DEPTH, too_deep};
use super::names::reference::TENSOR;
use crate::error::{Error, Result};
use crate::value::object::Object;
use crate::value::tensor_types::from_data_of;

/// The state of saving one module: [`Component::to_saved`](crate::module::Component::to_saved) adds
/// tensors to it.
#[derive(Debug, Default)]
pub struct Saver {
    trail: String,
    depth: usize,
    pub(crate) tensors: IndexMap<String, Outgoing, FxBuildHasher>,
    /// Further paths of tensors, each with the tensor's first path.
    pub(crate) aliases: IndexMap<String, String, FxBuildHasher>,
    by_id: FxHashMap<u64, String>,
    /// Whether tensors are only named, not kept.
    names_only: bool,
}

impl Saver {
    /// Keeps no tensors from now on, and only names them: for configurations.
    pub(crate) fn naming_tensors(mut self) -> Self {
        self.names_only = true;
        self
    }

    /// Saves a named field; the paths of tensors inside it contain the name.
    ///
    /// # Errors
    /// Returns the error of `save`, with the field's path.
    pub fn child(
        &mut self,
        name: &str,
        save: impl FnOnce(&mut Saver) -> Result<Json>,
    ) -> Result<Json> {
        self.inside(name, save)
            .map_err(|e| e.inside(format_args!(".{name}")))
    }

    /// Saves an item of a list.
    ///
    /// # Errors
    /// Returns the error of `save`, with the item's index.
    pub fn item(
        &mut self,
        index: usize,
        save: impl FnOnce(&mut Saver) -> Result<Json>,
    ) -> Result<Json> {
        self.inside(index, save)
            .map_err(|e| e.inside(format_args!("[{index}]")))
    }

    pub(crate) fn inside<T>(
        &mut self,
        step: impl Display,
        save: impl FnOnce(&mut Saver) -> Result<T>,
    ) -> Result<T> {
        let before = self.trail.len();
        if before > 0 {
            self.trail.push('.');
        }
        // Writing to a string cannot fail.
        let _ = write!(self.trail, "{step}");
        let saved = save(self);
        self.trail.truncate(before);
        saved
    }

    /// Saves a nested module, one level deeper.
    ///
    /// # Errors
    /// Returns an error if modules nest deeper than 64 levels, or `save` fails.
    pub fn nested<T>(&mut self, save: impl FnOnce(&mut Saver) -> Result<T>) -> Result<T> {
        if self.depth == MAX_MODULE_DEPTH {
            return Err(too_deep("modules nest", MAX_MODULE_DEPTH));
        }
        self.depth += 1;
        let saved = save(self);
        self.depth -= 1;
        saved
    }

    /// Saves the tensor at the current path, and returns a reference to it.
    ///
    /// # Errors
    /// Returns an error if its type cannot be saved, it is symbolic, or another tensor has its
    /// path.
    pub fn tensor(&mut self, tensor: &dyn Object) -> Result<Json> {
        if self.names_only {
            return Ok(tag(TENSOR, self.trail.as_str()));
        }
        let path = self.trail.clone();
        container::check_name(&path)?;
        let reference = tag(TENSOR, path.as_str());
        let first = tensor.object_id().and_then(|id| self.by_id.get(&id));
        let known = self.aliases.get(&path).or_else(|| {
            let own = self.tensors.get_key_value(&path);
            own.map(|(path, _)| path)
        });
        match (first, known) {
            // A module's tensor that the graph names too.
            (Some(first), Some(known)) if first == known => return Ok(reference),
            (_, Some(_)) => {
                return Err(Error::saved(format_args!(
                    "two tensors are at `{path}`: rename one of the fields"
                )));
            }
            (Some(first), None) => {
                self.aliases.insert(path, first.clone());
                return Ok(reference);
            }
            (None, None) => {}
        }
        if let Some(id) = tensor.object_id() {
            self.by_id.insert(id, path.clone());
        }
        let outgoing = Outgoing::of(tensor)?;
        from_data_of(&outgoing.type_path)?;
        self.tensors.insert(path, outgoing);
        Ok(reference)
    }
}
