//! `Loader`: what module parts load from: the JSON that they saved, and their tensors.
//!
//! Invariant: a tensor is created once, however many parts refer to it, so tied tensors stay tied.

use rustc_hash::FxHashMap;

use super::json::{self, Excerpt, Json, JsonMap};
use super::limits::{MAX_MODULE_DEPTH, too_deep};
use super::names::reference::TENSOR;
use crate::error::{Error, Result};
use crate::value::data::TensorData;
use crate::value::object::{Object, short_type_name};
use crate::value::tensor_types::from_data_of;
use crate::value::value::Value;

/// The state of loading one file: [`Component::from_saved`](crate::module::Component::from_saved)
/// takes tensors from it.
#[derive(Debug)]
pub struct Loader<'f> {
    tensors: FxHashMap<&'f str, TensorData<'f>>,
    aliases: FxHashMap<&'f str, &'f str>,
    made: FxHashMap<&'f str, Value>,
    depth: usize,
}

impl<'f> Loader<'f> {
    pub(crate) fn new(
        tensors: FxHashMap<&'f str, TensorData<'f>>,
        aliases: FxHashMap<&'f str, &'f str>,
    ) -> Self {
        Loader {
            tensors,
            aliases,
            made: FxHashMap::default(),
            depth: 0,
        }
    }

    /// Loads the field with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such field, or `load` fails; errors carry the field's path.
    pub fn field<T>(
        &mut self,
        fields: &JsonMap,
        name: &str,
        load: impl FnOnce(&Json, &mut Loader<'_>) -> Result<T>,
    ) -> Result<T> {
        json::part(fields, name, |saved| load(saved, self))
    }

    /// Loads every item of a list.
    ///
    /// # Errors
    /// Returns an error if it is not a list, or `load` fails; errors carry the item's index.
    pub fn items<T>(
        &mut self,
        saved: &Json,
        mut load: impl FnMut(&Json, &mut Loader<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        json::items(saved, |item| load(item, self))
    }

    /// Loads a nested module, one level deeper.
    ///
    /// # Errors
    /// Returns an error if modules nest deeper than 64 levels, or `load` fails.
    pub fn nested<T>(&mut self, load: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match self.enter() {
            Ok(()) => {
                let loaded = load(self);
                self.depth -= 1;
                loaded
            }
            Err(error) => Err(error),
        }
    }

    fn enter(&mut self) -> Result<()> {
        if self.depth == MAX_MODULE_DEPTH {
            return Err(too_deep("modules nest", MAX_MODULE_DEPTH));
        }
        self.depth += 1;
        Ok(())
    }

    /// The tensor behind a reference that [`Saver::tensor`](crate::file::Saver::tensor) returned.
    ///
    /// # Errors
    /// Returns an error if the file has no such tensor, or its type differs.
    pub fn tensor<T: Object + Clone>(&mut self, saved: &Json) -> Result<T> {
        let value = self.tensor_value(saved)?;
        value.downcast_ref::<T>().cloned().ok_or_else(|| {
            Error::saved(format_args!(
                "expected a `{}`, found {}",
                short_type_name(std::any::type_name::<T>()),
                value.describe()
            ))
        })
    }

    /// Same as [`tensor`](Loader::tensor), for any type.
    pub(crate) fn tensor_value(&mut self, saved: &Json) -> Result<Value> {
        let path = match json::tagged(saved) {
            Ok((TENSOR, path)) => {
                json::text(path).map_err(|e| e.inside(format_args!(".{TENSOR}")))?
            }
            _ => return Err(json::expected("a tensor, `{\"tensor\": path}`", saved)),
        };
        let path = self.aliases.get(path).copied().unwrap_or(path);
        if let Some(made) = self.made.get(path) {
            return Ok(made.clone());
        }
        let Some((known, data)) = self.tensors.get_key_value(path) else {
            return Err(Error::saved(format_args!(
                "the file has no tensor {}",
                Excerpt(path)
            )));
        };
        let value = from_data_of(data.type_path())
            .and_then(|from_data| from_data(data))
            .map_err(|e| Error::saved(format_args!("tensor {}: {e}", Excerpt(path))))?;
        self.made.insert(known, value.clone());
        Ok(value)
    }
}
