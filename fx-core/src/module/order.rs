//! `PartOrder`: the order of a graph module's parts, where it is that of the model which was traced.
//!
//! Invariant: it is an order alone; what the parts are is in the attributes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::attributes::Attributes;
use super::walk::{Component, ComponentKey, TensorKind, Visitor, walk};
use crate::error::Result;
use crate::file::json::{self, Json};
use crate::file::meta::SavedMeta;
use crate::ir::meta::{Meta, MetaPolicy};
use crate::value::object::Object;

/// Paths of modules and tensors in the order of the model's fields: an entry of a graph module whose graph names them
/// in another order, or names tensors beside modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartOrder(Vec<Arc<str>>);

impl Meta for PartOrder {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

impl SavedMeta for PartOrder {
    const NAME: &'static str = "fx_core::PartOrder";

    fn to_saved(&self) -> Result<Json> {
        Ok(self.0.iter().map(|path| Json::from(&**path)).collect())
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let paths = json::items(saved, |path| json::text(path).map(Arc::<str>::from));
        paths.map(PartOrder)
    }
}

crate::__private::submit! { MetaType, crate::file::meta::MetaType::of::<PartOrder>() }

/// A part of a graph module, by its position among the modules or the tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// A module.
    Module(usize),
    /// A tensor.
    Tensor(usize),
}

impl PartOrder {
    /// The order of parts with ranks; `None` if it is that of the attributes, modules before tensors.
    pub fn of_ranks(mut parts: Vec<(usize, Part, Arc<str>)>) -> Option<Self> {
        let is_tensor = |part: &Part| matches!(part, Part::Tensor(_));
        parts.sort_by_key(|(_, part, _)| is_tensor(part));
        if parts.is_sorted_by_key(|(rank, ..)| *rank) {
            return None;
        }
        parts.sort_by_key(|(rank, ..)| *rank);
        Some(PartOrder(
            parts.into_iter().map(|(.., path)| path).collect(),
        ))
    }

    /// The order that these attributes of a module have in it.
    pub fn of_module(module: &(impl Component + ?Sized), attributes: &Attributes) -> Option<Self> {
        struct Ranks<'a> {
            attributes: &'a Attributes,
            found: Vec<(usize, Part, Arc<str>)>,
        }
        impl Ranks<'_> {
            fn found(&mut self, part: Part, path: &Arc<str>) {
                self.found.push((self.found.len(), part, path.clone()));
            }
        }
        impl Visitor for Ranks<'_> {
            fn enter(&mut self, path: &str, _: ComponentKey, _: &'static str) -> bool {
                if let Some((at, path, _)) = self.attributes.modules.get_full(path) {
                    self.found(Part::Module(at), path);
                }
                true
            }

            fn tensor(&mut self, path: &str, _: TensorKind, _: &dyn Object) {
                if let Some((at, path, _)) = self.attributes.tensors.get_full(path) {
                    self.found(Part::Tensor(at), path);
                }
            }
        }
        let mut ranks = Ranks {
            attributes,
            found: Vec::new(),
        };
        walk(module, &mut ranks);
        let mut parts = ranks.found;
        let place = |part: &Part| match part {
            Part::Module(at) | Part::Tensor(at) => *at,
        };
        parts.sort_by_key(|(_, part, _)| place(part));
        PartOrder::of_ranks(parts)
    }

    /// The places of the paths.
    pub fn ranks(&self) -> FxHashMap<&str, usize> {
        let paths = self.0.iter().enumerate();
        paths.map(|(at, path)| (&**path, at)).collect()
    }

    /// The parts of these attributes in this order, what it does not name behind them.
    pub fn parts(order: Option<&Self>, attributes: &Attributes) -> Vec<Part> {
        let Attributes { modules, tensors } = attributes;
        let mut parts = Vec::with_capacity(modules.len() + tensors.len());
        let (mut seen_modules, mut seen_tensors) = (Vec::new(), Vec::new());
        if let Some(PartOrder(paths)) = order {
            seen_modules.resize(modules.len(), false);
            seen_tensors.resize(tensors.len(), false);
            for path in paths {
                if let Some(at) = modules.get_index_of(path)
                    && !std::mem::replace(&mut seen_modules[at], true)
                {
                    parts.push(Part::Module(at));
                } else if let Some(at) = tensors.get_index_of(path)
                    && !std::mem::replace(&mut seen_tensors[at], true)
                {
                    parts.push(Part::Tensor(at));
                }
            }
        }
        let is_new = |seen: &[bool], at: &usize| !seen.get(*at).copied().unwrap_or_default();
        parts.extend(
            (0..modules.len())
                .filter(|at| is_new(&seen_modules, at))
                .map(Part::Module),
        );
        parts.extend(
            (0..tensors.len())
                .filter(|at| is_new(&seen_tensors, at))
                .map(Part::Tensor),
        );
        parts
    }
}
