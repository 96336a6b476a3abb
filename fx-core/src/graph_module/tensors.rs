//! Parameters, buffers and constants of a graph module, read and set by path: its own, and those of
//! called layers and of nested graph modules.
//!
//! Invariant: a layer's tensor and the graph's own under one path are one tensor; a refused change
//! changes nothing.

use std::any::{Any, TypeId};
use std::sync::Arc;

use super::GraphModule;
use super::parts::as_graph_module;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::{Attributes, is_inside, not_found};
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::parts::{below, tensor_at};
use crate::module::walk::{TensorKind, VisitorMut, walk_mut};
use crate::text::first_names;
use crate::value::object::{Object, short_type_name};
use crate::value::value::Value;

/// Tensors by path.
impl GraphModule {
    /// The parameter at a path: the graph's own, a called layer's or a nested graph module's.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn parameter(&self, path: &str) -> Result<Value> {
        self.tensor(path, TensorKind::Parameter)
    }

    /// The buffer or constant at a path: the graph's own, a called layer's or a nested graph
    /// module's.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn buffer(&self, path: &str) -> Result<Value> {
        self.tensor(path, TensorKind::Buffer)
    }

    fn tensor(&self, path: &str, wanted: TensorKind) -> Result<Value> {
        let (mut module, mut at) = (self, path);
        loop {
            let holders = module.holders();
            let mut own = holders.iter();
            if let Some((kind, value)) = own.find_map(|held| held.attributes.tensors.get(at)) {
                return match kind.is_buffer() == wanted.is_buffer() {
                    true => Ok(value.clone()),
                    false => Err(other_kind(path, *kind)),
                };
            }
            let around = holders.iter().find_map(|held| {
                let around = held.attributes.enclosing(at)?;
                Some((around, held.attributes.modules.get(around)?))
            });
            let Some((around, layer)) = around else {
                return Err(not_found(name_of(wanted), path));
            };
            let layer = &**layer;
            at = below(at, around).unwrap_or_default();
            if let Some(inner) = as_graph_module(layer) {
                module = inner;
                continue;
            }
            // A path that leads to two things is refused, not guessed.
            layer
                .check_paths()
                .map_err(|error| Error::msg(format_args!("in `{around}`: {error}")))?;
            return match tensor_at(layer, at, |kind, tensor| (kind, tensor.to_value())) {
                Some((kind, value)) if kind == wanted => Ok(value),
                Some((kind, _)) => Err(other_kind(path, kind)),
                None => Err(not_in(layer, wanted, path, at)),
            };
        }
    }

    /// Adds a parameter that `get_attr` nodes can name, or replaces the existing one, also that of
    /// a called layer or of a nested graph module. If the shape differs, known shapes of nodes that
    /// depend on it are removed.
    ///
    /// Within one layer, tied tensors stay tied: each place that has the tensor gets the new one.
    /// Another layer, and an own tensor under another path, keeps its tensor, and is set by its own
    /// path.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// # use fx_core::module::{Component, Walk, WalkMut};
    /// # use fx_core::tensor::{Object, Traced};
    /// # use fx_core::value::Proxy;
    /// # #[derive(Debug, Clone)] struct Number(f64);
    /// # impl Object for Number { fn to_value(&self) -> Value { Value::object(self.clone()) } }
    /// # impl Component for Number {
    /// #     fn visit(&self, walk: &mut Walk<'_, '_>) { walk.tensor(self); }
    /// #     fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) { walk.tensor(self); }
    /// #     fn duplicate(&self) -> Self { self.clone() }
    /// # }
    /// #[derive(Module)]
    /// struct Scale { by: Number }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by.0 } }
    /// #[derive(Module)]
    /// struct Net { scale: Scale }
    /// #[trace]
    /// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.scale.forward(x) } }
    ///
    /// let mut gm = symbolic_trace(&Net { scale: Scale { by: Number(2.0) } })?;
    /// gm.set_parameter("scale.by", &Number(5.0))?;
    /// assert_eq!(gm.forward::<f64>(1.0)?, 5.0);
    /// let error = gm.set_parameter("scale.bias", &Number(1.0)).unwrap_err();
    /// assert_eq!(error.to_string(), "no parameter at `scale.bias`; the `Scale` there has `by`");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the path is empty or a module's; inside a called layer, if it has no
    /// such parameter, or one of another tensor type.
    pub fn set_parameter<T: Object>(&mut self, path: &str, tensor: &T) -> Result<()> {
        let value = tensor.to_value();
        self.set_tensor::<T>(path, path, TensorKind::Parameter, &value)?;
        Ok(())
    }

    /// Adds a buffer that `get_attr` nodes can name, or replaces the existing one, as
    /// [`set_parameter`](GraphModule::set_parameter) does.
    ///
    /// # Errors
    /// As [`set_parameter`](GraphModule::set_parameter).
    pub fn set_buffer<T: Object>(&mut self, path: &str, tensor: &T) -> Result<()> {
        let value = tensor.to_value();
        self.set_tensor::<T>(path, path, TensorKind::Buffer, &value)?;
        Ok(())
    }

    /// Sets a tensor, wherever it is held; messages use its `whole` path. Returns whether a tensor
    /// of the same shape was there.
    fn set_tensor<T: Object>(
        &mut self,
        whole: &str,
        path: &str,
        kind: TensorKind,
        value: &Value,
    ) -> Result<bool> {
        let parts = self.parts_with(path);
        let is_own =
            self.attributes.tensors.contains_key(path) || self.attributes.enclosing(path).is_some();
        let mut is_same_shape = true;
        if is_own || parts.is_empty() {
            is_same_shape = self.set_held_tensor::<T>(whole, path, kind, value)?;
        }
        for part in parts {
            let is_same = self.in_part(&part, |inner| {
                inner.set_tensor::<T>(whole, path, kind, value)
            })?;
            if !is_same {
                self.graph.forget_op(&Op::CallModule(part));
            }
            is_same_shape &= is_same;
        }
        Ok(is_same_shape)
    }

    /// Sets a tensor that the module holds itself, or adds it.
    fn set_held_tensor<T: Object>(
        &mut self,
        whole: &str,
        path: &str,
        kind: TensorKind,
        value: &Value,
    ) -> Result<bool> {
        let Some(around) = self.attributes.enclosing(path).map(Arc::<str>::from) else {
            return self.set_own_tensor(whole, path, kind, value.clone());
        };
        let Attributes { modules, tensors } = &mut *self.attributes;
        let at = modules.get_index_of(&around);
        let below = below(path, &around).unwrap_or_default();
        let Some((at, layer)) = at.and_then(|at| Some((at, modules.get_index(at)?.1))) else {
            return Err(not_found("module", &around));
        };
        let is_own = tensors.contains_key(path);
        let is_same_shape = if as_graph_module(&**layer).is_some() {
            let inner = modules
                .lend(at)
                .map(|(_, layer)| &mut **layer as &mut dyn Any);
            match inner.and_then(|inner| inner.downcast_mut::<GraphModule>()) {
                Some(inner) => inner.set_tensor::<T>(whole, below, kind, value)?,
                None => return Err(not_found("module", &around)),
            }
        } else {
            match check_replaced::<T>(&**layer, whole, below, kind)? {
                Some(old) => {
                    if let Some((_, layer)) = modules.lend(at) {
                        let mut put = Put::<T> {
                            id: old.id,
                            path: below,
                            value,
                            of: std::marker::PhantomData,
                        };
                        walk_mut(&mut **layer, &mut put);
                    }
                    old.shape == ValueMeta::of(value)
                }
                None if is_own => true,
                None => return Err(not_in(&**layer, kind, whole, below)),
            }
        };
        if !is_same_shape {
            self.graph.forget_op(&Op::CallModule(around));
        }
        match is_own {
            true => Ok(self.put_own_tensor(path.into(), kind, value.clone()) && is_same_shape),
            false => Ok(is_same_shape),
        }
    }

    fn set_own_tensor(
        &mut self,
        whole: &str,
        path: &str,
        kind: TensorKind,
        value: Value,
    ) -> Result<bool> {
        self.check_path(path)?;
        if self.attributes.modules.contains_key(path) {
            return Err(Error::taken(
                whole,
                format_args!("`{whole}` is a module: a tensor needs another path"),
            ));
        }
        Ok(self.put_own_tensor(path.into(), kind, value))
    }

    fn put_own_tensor(&mut self, path: Arc<str>, kind: TensorKind, value: Value) -> bool {
        let shape = ValueMeta::of(&value);
        let mut edit = self.graph_mut();
        let (graph, attributes) = edit.parts();
        let old = attributes.tensors.get(&path);
        let is_same_shape = old.is_some_and(|(_, old)| ValueMeta::of(old) == shape);
        attributes.tensors.insert(path.clone(), (kind, value));
        // With the same shape, what is known of its readers still holds.
        if !is_same_shape {
            graph.forget_op(&Op::GetAttr(path));
        }
        is_same_shape
    }
}

/// A layer's tensor that can be replaced.
struct Old {
    id: Option<u64>,
    shape: ValueMeta,
}

/// The replaceable tensor of a layer at a path; `None` if there is none.
fn check_replaced<T: Object>(
    layer: &dyn Module,
    path: &str,
    below: &str,
    wanted: TensorKind,
) -> Result<Option<Old>> {
    layer.check_paths()?;
    let found = tensor_at(layer, below, |kind, tensor| {
        let any: &dyn Any = tensor;
        if kind != wanted {
            return Err(other_kind(path, kind));
        }
        if any.type_id() != TypeId::of::<T>() {
            return Err(Error::mismatch(
                path,
                format_args!(
                    "`{path}` is a `{}`: a `{}` cannot take its place",
                    short_type_name(tensor.type_name()),
                    short_type_name(std::any::type_name::<T>())
                ),
            ));
        }
        Ok(Old {
            id: tensor.object_id(),
            shape: ValueMeta::of(&tensor.to_value()),
        })
    });
    found.transpose()
}

/// Replaces a tensor, wherever it is.
struct Put<'v, T> {
    id: Option<u64>,
    path: &'v str,
    value: &'v Value,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Object> VisitorMut for Put<'_, T> {
    fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
        let is_it = match self.id {
            Some(id) => tensor.object_id() == Some(id),
            None => path == self.path,
        };
        let mut value = self.value.clone();
        if is_it
            && let Value::Object(handle) = &mut value
            && let Some(new) = handle.make_mut()
        {
            let (new, old): (&mut dyn Any, &mut dyn Any) = (new, tensor);
            if let (Some(new), Some(old)) = (new.downcast_mut::<T>(), old.downcast_mut::<T>()) {
                std::mem::swap(new, old);
            }
        }
    }
}

fn name_of(kind: TensorKind) -> &'static str {
    match kind {
        TensorKind::Parameter => "parameter",
        TensorKind::Buffer | TensorKind::NonPersistentBuffer => "buffer",
    }
}

fn other_kind(path: &str, kind: TensorKind) -> Error {
    let name = name_of(kind);
    Error::mismatch(
        path,
        format_args!("`{path}` is a {name}: `{name}` and `set_{name}` are for it"),
    )
}

/// The error for a tensor that a layer does not have.
fn not_in(layer: &dyn Module, kind: TensorKind, path: &str, below: &str) -> Error {
    let tensors = match kind {
        TensorKind::Parameter => layer.named_parameters(),
        TensorKind::Buffer | TensorKind::NonPersistentBuffer => layer.named_buffers(),
    };
    // Tensors beside the requested one, if there are any.
    let beside = below.rsplit_once('.').map(|(around, _)| around);
    let is_beside = |name: &&String| beside.is_none_or(|around| is_inside(name, around));
    let mut names: Vec<&String> = tensors.keys().filter(is_beside).collect();
    if names.is_empty() {
        names = tensors.keys().collect();
    }
    let layer = short_type_name(layer.type_name());
    let hint = match names.is_empty() {
        true => format!("; the `{layer}` there has none"),
        false => {
            let names = names.iter().map(|name| format!("`{name}`"));
            format!("; the `{layer}` there has {}", first_names(names, 8))
        }
    };
    ErrorKind::NotFound {
        what: name_of(kind),
        path: path.to_string(),
        hint,
    }
    .into()
}
