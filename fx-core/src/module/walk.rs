//! Walks over a module's hierarchy: what a visitor is told, and the path that leads there.

use std::any::{Any, TypeId};
use std::fmt;

use rustc_hash::FxHashMap;

use super::component::Component;
use crate::value::object::Object;

/// What a tensor in a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// Learned.
    Parameter,
    /// State that is saved but not learned.
    Buffer,
}

/// Tells a component from every other: its address and type.
///
/// Zero-sized components of one type are one: they have no address of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComponentKey {
    address: usize,
    ty: TypeId,
}

impl ComponentKey {
    /// The key of a component.
    pub fn of<T: 'static>(component: &T) -> Self {
        let address = if size_of::<T>() == 0 {
            0
        } else {
            std::ptr::from_ref(component) as usize
        };
        ComponentKey {
            address,
            ty: TypeId::of::<T>(),
        }
    }
}

enum Segment<'p> {
    Name(&'p str),
    Index(usize),
}

/// A dotted path into a module, made text only when it is printed.
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Option<Segment<'p>>,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        if let Some(parent) = self.parent
            && parent.segment.is_some()
        {
            write!(f, "{parent}.")?;
        }
        match segment {
            Segment::Name(name) => f.write_str(name),
            Segment::Index(index) => write!(f, "{index}"),
        }
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Is told what a module holds, from the root inwards.
pub trait Visitor {
    /// A component starts here; `false` skips what is inside.
    fn enter(&mut self, path: &Path<'_>, key: ComponentKey, type_name: &'static str) -> bool {
        let _ = (path, key, type_name);
        true
    }

    /// A parameter or buffer.
    fn tensor(&mut self, path: &Path<'_>, kind: TensorKind, tensor: &dyn Object) {
        let _ = (path, kind, tensor);
    }
}

/// One place of a walk: `Component::visit` tells it what is there.
pub struct Walk<'w, 'v> {
    visitor: &'w mut (dyn Visitor + 'v),
    path: Path<'w>,
    kind: TensorKind,
}

/// Walks a component.
pub fn walk(component: &(impl Component + ?Sized), visitor: &mut dyn Visitor) {
    component.visit(&mut Walk {
        visitor,
        path: Path {
            parent: None,
            segment: None,
        },
        kind: TensorKind::Parameter,
    });
}

impl<'v> Walk<'_, 'v> {
    fn step(&mut self, segment: Segment<'_>, kind: TensorKind, child: &(impl Component + ?Sized)) {
        child.visit(&mut Walk {
            visitor: &mut *self.visitor,
            path: Path {
                parent: Some(&self.path),
                segment: Some(segment),
            },
            kind,
        });
    }

    /// A component is here; `fields` visits what is inside.
    pub fn component<T: 'static>(&mut self, this: &T, fields: impl FnOnce(&mut Walk<'_, 'v>)) {
        let key = ComponentKey::of(this);
        if self
            .visitor
            .enter(&self.path, key, std::any::type_name::<T>())
        {
            fields(&mut Walk {
                visitor: &mut *self.visitor,
                path: Path {
                    parent: self.path.parent,
                    segment: self.path.segment.as_ref().map(|s| match s {
                        Segment::Name(name) => Segment::Name(name),
                        Segment::Index(index) => Segment::Index(*index),
                    }),
                },
                kind: self.kind,
            });
        }
    }

    /// A named child.
    pub fn child(&mut self, name: &str, child: &(impl Component + ?Sized)) {
        self.step(Segment::Name(name), self.kind, child);
    }

    /// A child in a list.
    pub fn item(&mut self, index: usize, child: &(impl Component + ?Sized)) {
        self.step(Segment::Index(index), self.kind, child);
    }

    /// A named child whose tensors are buffers.
    pub fn buffer(&mut self, name: &str, child: &(impl Component + ?Sized)) {
        self.step(Segment::Name(name), TensorKind::Buffer, child);
    }

    /// A tensor is at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        let path = Path {
            parent: Some(&self.path),
            segment: Some(Segment::Name(path)),
        };
        self.visitor.tensor(&path, kind, tensor);
    }

    /// A tensor is here.
    pub fn tensor(&mut self, tensor: &dyn Object) {
        self.visitor.tensor(&self.path, self.kind, tensor);
    }
}

/// May change what a module holds.
pub trait VisitorMut {
    /// A parameter or buffer, to look at or to replace.
    fn tensor(&mut self, path: &Path<'_>, kind: TensorKind, tensor: &mut dyn Object) {
        let _ = (path, kind, tensor);
    }

    /// A training flag.
    fn training(&mut self, path: &Path<'_>, training: &mut bool) {
        let _ = (path, training);
    }
}

/// Shared modules already copied in this walk: old address to new owner, so that sharing survives.
#[derive(Default)]
pub struct Shared {
    copies: FxHashMap<(usize, TypeId), SharedCopy>,
}

struct SharedCopy {
    copy: Box<dyn Any>,
    /// Keeps the old address taken while the walk lasts.
    _original: Box<dyn Any>,
}

/// One place of a changing walk.
pub struct WalkMut<'w, 'v> {
    visitor: &'w mut (dyn VisitorMut + 'v),
    shared: &'w mut Shared,
    path: Path<'w>,
    kind: TensorKind,
}

/// Walks a component, changing it.
pub fn walk_mut(component: &mut (impl Component + ?Sized), visitor: &mut dyn VisitorMut) {
    component.visit_mut(&mut WalkMut {
        visitor,
        shared: &mut Shared::default(),
        path: Path {
            parent: None,
            segment: None,
        },
        kind: TensorKind::Parameter,
    });
}

impl WalkMut<'_, '_> {
    fn step(
        &mut self,
        segment: Segment<'_>,
        kind: TensorKind,
        child: &mut (impl Component + ?Sized),
    ) {
        child.visit_mut(&mut WalkMut {
            visitor: &mut *self.visitor,
            shared: &mut *self.shared,
            path: Path {
                parent: Some(&self.path),
                segment: Some(segment),
            },
            kind,
        });
    }

    /// A named child.
    pub fn child(&mut self, name: &str, child: &mut (impl Component + ?Sized)) {
        self.step(Segment::Name(name), self.kind, child);
    }

    /// A child in a list.
    pub fn item(&mut self, index: usize, child: &mut (impl Component + ?Sized)) {
        self.step(Segment::Index(index), self.kind, child);
    }

    /// A named child whose tensors are buffers.
    pub fn buffer(&mut self, name: &str, child: &mut (impl Component + ?Sized)) {
        self.step(Segment::Name(name), TensorKind::Buffer, child);
    }

    /// A tensor is at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &mut dyn Object) {
        let path = Path {
            parent: Some(&self.path),
            segment: Some(Segment::Name(path)),
        };
        self.visitor.tensor(&path, kind, tensor);
    }

    /// A tensor is here.
    pub fn tensor(&mut self, tensor: &mut dyn Object) {
        self.visitor.tensor(&self.path, self.kind, tensor);
    }

    /// The training flag is here.
    pub fn training(&mut self, training: &mut bool) {
        self.visitor.training(&self.path, training);
    }

    /// The copy that was made of a shared owner in this walk.
    pub(super) fn shared_copy<T: Clone + 'static>(&self, address: usize) -> Option<T> {
        self.shared
            .copies
            .get(&(address, TypeId::of::<T>()))
            .and_then(|shared| shared.copy.downcast_ref::<T>())
            .cloned()
    }

    pub(super) fn remember_copy<T: 'static>(&mut self, address: usize, original: T, copy: T) {
        self.shared.copies.insert(
            (address, TypeId::of::<T>()),
            SharedCopy {
                copy: Box::new(copy),
                _original: Box::new(original),
            },
        );
    }
}
