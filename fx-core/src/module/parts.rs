//! Path steps through a hierarchy: how a component finds what is below it without walking all of
//! it.
//!
//! Invariant: `part` finds at a path what a walk finds there.

use super::walk::{Component, ComponentKey, Field, FieldMut, TensorKind, Visitor, walk};
use crate::value::object::Object;

/// The rest of a path after a name; empty if the path is the name.
pub fn below<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(name)?;
    match rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('.'),
    }
}

/// [`Component::part`] of what lists its fields.
pub fn part<'a>(component: &'a dyn Component, path: &str) -> Option<&'a dyn Component> {
    let mut found = None;
    component.fields(&mut |field| {
        if found.is_some() {
            return;
        }
        found = match field {
            Field::Plain(name, part) | Field::Child(name, part) | Field::Buffer(name, _, part) => {
                below(path, name).and_then(|rest| here_or_below(part, rest))
            }
            Field::Flatten(_, part) => part.part(path),
            Field::Training(..) | Field::Repeated => None,
        };
    });
    found
}

/// [`Component::part_mut`] of what lists its fields.
pub fn part_mut<'a>(component: &'a mut dyn Component, path: &str) -> Option<&'a mut dyn Component> {
    let mut found = None;
    component.fields_mut(&mut |field| {
        if found.is_some() {
            return;
        }
        found = match field {
            FieldMut::Plain(name, part)
            | FieldMut::Child(name, part)
            | FieldMut::Buffer(name, _, part) => {
                below(path, name).and_then(|rest| here_or_below_mut(part, rest))
            }
            FieldMut::Flatten(part) => part.part_mut(path),
            FieldMut::Training(_) => None,
        };
    });
    found
}

/// A component if the path is empty, otherwise the part below it.
pub(super) fn here_or_below<'a>(
    component: &'a dyn Component,
    path: &str,
) -> Option<&'a dyn Component> {
    match path.is_empty() {
        true => Some(component),
        false => component.part(path),
    }
}

/// Same as [`here_or_below`], for change in place.
pub(super) fn here_or_below_mut<'a>(
    component: &'a mut dyn Component,
    path: &str,
) -> Option<&'a mut dyn Component> {
    match path.is_empty() {
        true => Some(component),
        false => component.part_mut(path),
    }
}

/// The index at the start of a path, and the rest of the path.
pub(super) fn first_item(path: &str) -> Option<(usize, &str)> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let index: usize = first.parse().ok()?;
    // `01` and `+1` do not occur in paths of a walk.
    (index.to_string() == first).then_some((index, rest))
}

/// Calls `look` with the tensor at a path below a component; returns `None` if there is none.
pub fn tensor_at<R>(
    component: &(impl Component + ?Sized),
    path: &str,
    look: impl FnOnce(TensorKind, &dyn Object) -> R,
) -> Option<R> {
    struct At<'p, F, R> {
        path: &'p str,
        look: Option<F>,
        found: Option<R>,
    }
    impl<R, F: FnOnce(TensorKind, &dyn Object) -> R> Visitor for At<'_, F, R> {
        fn enter(&mut self, path: &str, _: ComponentKey, _: &'static str) -> bool {
            path.is_empty() || below(self.path, path).is_some()
        }
        fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
            if path == self.path
                && let Some(look) = self.look.take()
            {
                self.found = Some(look(kind, tensor));
            }
        }
    }
    let mut at = At {
        path,
        look: Some(look),
        found: None,
    };
    walk(component, &mut at);
    at.found
}
