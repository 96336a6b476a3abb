//! What the sides of branches and loops name, at places of the module around them: there the structs
//! of a crate hold it, since `if` and `while` are no fields.
//!
//! Invariant: two things share a place only if they are the same module or tensor.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::GraphModule;
use super::source::written_sides;
use super::surgery::Mark;
use crate::module::attributes::{Attributes, within};
use crate::module::module::Module;
use crate::value::value::Value;

/// A module as a crate holds it.
pub(super) struct Hoisted {
    /// What the structs hold: all but the branches and loops that are written.
    pub attributes: Attributes,
    /// The places of what a side names, by its path and the path in it.
    pub sides: Vec<(String, FxHashMap<String, String>)>,
}

impl Hoisted {
    /// Whether a branch or a loop is written.
    pub fn has_sides(&self) -> bool {
        !self.sides.is_empty()
    }

    pub fn of(gm: &GraphModule) -> Self {
        let mut hoisted = Hoisted {
            attributes: Attributes::default(),
            sides: Vec::new(),
        };
        let mut left: Vec<(String, &GraphModule, usize)> = vec![(String::new(), gm, 0)];
        while let Some((around, inner, depth)) = left.pop() {
            let mut places = FxHashMap::default();
            for (path, (kind, tensor)) in &inner.attributes.tensors {
                let place = hoisted.place(path, |held| held.has_tensor(tensor));
                let held = &mut hoisted.attributes.tensors;
                held.insert(Arc::from(&*place), (*kind, tensor.clone()));
                places.insert(path.to_string(), place);
            }
            for (path, module) in &inner.attributes.modules {
                let sides = written_sides(&**module, depth);
                for (name, side) in sides.iter().rev() {
                    left.push((within(&within(&around, path), name), side, depth + 1));
                }
                if sides.is_empty() {
                    let place = hoisted.place(path, |held| held.has_module(&**module));
                    let held = &mut hoisted.attributes.modules;
                    if !held.contains_key(&place) {
                        held.insert(Arc::from(&*place), module.clone());
                    }
                    places.insert(path.to_string(), place);
                }
            }
            if !around.is_empty() {
                hoisted.sides.push((around, places));
            }
        }
        hoisted
    }

    /// The module with what its sides name at their places, to be saved beside the structs.
    pub fn module(&self, gm: &GraphModule) -> GraphModule {
        let mut whole = gm.clone();
        let mut edit = whole.graph_mut();
        let (_, attributes) = edit.parts();
        for (path, module) in &self.attributes.modules {
            if !gm.attributes.has(path) {
                attributes.modules.insert(path.clone(), module.clone());
            }
        }
        for (path, tensor) in &self.attributes.tensors {
            if !gm.attributes.has(path) {
                attributes.tensors.insert(path.clone(), tensor.clone());
            }
        }
        drop(edit);
        whole
    }

    /// The path itself if it is free, or is that of the same thing; otherwise a new one.
    fn place(&self, path: &str, is_same: impl Fn(&At<'_>) -> bool) -> String {
        let mut place = path.to_string();
        let mut number = 0;
        loop {
            let at = At {
                held: &self.attributes,
                path: &place,
            };
            if is_same(&at) || at.is_free() {
                return place;
            }
            number += 1;
            place = format!("{}_{number}", path.replace('.', "_"));
        }
    }
}

/// A place that may be taken.
struct At<'h> {
    held: &'h Attributes,
    path: &'h str,
}

impl At<'_> {
    fn is_free(&self) -> bool {
        !self.held.has(self.path) && self.held.conflict(self.path).is_none()
    }

    fn has_module(&self, module: &dyn Module) -> bool {
        let held = self.held.modules.get(self.path);
        held.is_some_and(|held| Mark::of(&**held) == Mark::of(module))
    }

    fn has_tensor(&self, tensor: &Value) -> bool {
        let held = self.held.tensors.get(self.path);
        held.is_some_and(|(_, held)| held.is_same_object(tensor))
    }
}
