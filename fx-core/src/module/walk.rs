//! `Component`, and walks over a hierarchy of them: what a visitor is told, and the dotted path that leads there.

use std::any::{Any, TypeId};
use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::file::json::Json;
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::value::object::{Object, short_type_name};

/// A part of a module: a module, a tensor, plain data, or a container of them. `#[derive(Module)]` writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a module, a parameter, a buffer nor plain data",
    label = "cannot be a field of a module",
    note = "derive `Module` for a layer, or mark a field that is none of these with #[module(skip)]"
)]
pub trait Component {
    /// Tells the walk what is inside.
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        let _ = walk;
    }

    /// As [`visit`](Component::visit), with the means to change it.
    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        let _ = walk;
    }

    /// A copy whose tensors share storage with this one's.
    fn duplicate(&self) -> Self
    where
        Self: Sized;

    /// What a file keeps of it: plain data as JSON, tensors by [`Saver::tensor`].
    ///
    /// # Errors
    /// When the type does not say how, or something inside cannot be saved.
    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let _ = saver;
        Err(not_saved::<Self>("to_saved"))
    }

    /// What [`to_saved`](Component::to_saved) kept, made anew.
    ///
    /// # Errors
    /// When the type does not say how, or the file does not fit it.
    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self>
    where
        Self: Sized,
    {
        let _ = (saved, loader);
        Err(not_saved::<Self>("from_saved"))
    }

    /// The part at a path below it, where `part("a.b")` is what a walk finds at `a.b`; `#[derive(Module)]` writes it.
    fn part(&self, path: &str) -> Option<&dyn Component> {
        let _ = path;
        None
    }

    /// As [`part`](Component::part), to change in place. A shared owner (`Arc`) that others hold too is copied first, as
    /// [`Arc::make_mut`](std::sync::Arc::make_mut) does.
    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        let _ = path;
        None
    }

    /// Itself at the end of a path, or the part below it.
    #[doc(hidden)]
    fn here_or_below(&self, path: &str) -> Option<&dyn Component>
    where
        Self: Sized,
    {
        match path.is_empty() {
            true => Some(self),
            false => self.part(path),
        }
    }

    /// As [`here_or_below`](Component::here_or_below), to change in place.
    #[doc(hidden)]
    fn here_or_below_mut(&mut self, path: &str) -> Option<&mut dyn Component>
    where
        Self: Sized,
    {
        match path.is_empty() {
            true => Some(self),
            false => self.part_mut(path),
        }
    }

    /// Itself, to be looked at as its own type; of an option, a box or a shared owner, what is in it. Containers and plain
    /// data are `None`.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// As [`as_any`](Component::as_any), to change in place.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Whether values of the type never hold a tensor or a module, so that walks pass lists of them by.
    fn is_plain() -> bool
    where
        Self: Sized,
    {
        false
    }
}

fn not_saved<T: ?Sized>(method: &str) -> Error {
    Error::saved(format_args!(
        "a `{}` cannot be kept in a file: its type does not implement `Component::{method}`, which #[derive(Module)] does",
        short_type_name(std::any::type_name::<T>())
    ))
}

/// What a tensor in a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorKind {
    /// Learned.
    Parameter,
    /// State that is saved but not learned.
    Buffer,
    /// State that is neither learned nor among the weights: the module's constructor computes it.
    NonPersistentBuffer,
}

impl TensorKind {
    /// Whether it is a buffer, persistent or not.
    pub fn is_buffer(self) -> bool {
        self != TensorKind::Parameter
    }

    /// Whether it is among a module's weights, which [`state_dict`](super::hierarchy::ComponentExt::state_dict) lists.
    pub fn is_persistent(self) -> bool {
        self != TensorKind::NonPersistentBuffer
    }
}

/// Tells a component from every other: its address and type. What is inside of another type's value may have its address,
/// and never its type.
///
/// A type without a size has no addresses of its own: it does not compile, and a field `tag: Tag` ([`Tag`](crate::module::Tag))
/// mends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComponentKey {
    address: usize,
    ty: TypeId,
}

impl ComponentKey {
    /// The key of a component.
    pub fn of<T: 'static>(component: &T) -> Self {
        const {
            assert!(
                size_of::<T>() != 0,
                "a module without a size cannot be told from another one: add a field `tag: Tag` (`fx_core::module::Tag`)"
            );
        }
        ComponentKey::of_any(component)
    }

    /// The key of a component whose type is not known here.
    pub(crate) fn of_any(component: &dyn Any) -> Self {
        ComponentKey {
            address: std::ptr::from_ref(component).cast::<u8>() as usize,
            ty: component.type_id(),
        }
    }
}

/// Is told what a module holds, from the root inwards.
pub trait Visitor {
    /// A component starts here; `false` skips what is inside.
    fn enter(&mut self, path: &str, key: ComponentKey, type_name: &'static str) -> bool {
        let _ = (path, key, type_name);
        true
    }

    /// A component that was entered ends here.
    fn leave(&mut self, path: &str, key: ComponentKey) {
        let _ = (path, key);
    }

    /// A key of the map at a path, which names one of its parts.
    fn key(&mut self, path: &str, key: &str) {
        let _ = (path, key);
    }

    /// A parameter or buffer.
    fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        let _ = (path, kind, tensor);
    }

    /// The training flag of the component at a path.
    fn training(&mut self, path: &str, training: bool) {
        let _ = (path, training);
    }
}

/// A dotted path that grows and shrinks as a walk goes in and out.
#[derive(Default)]
struct Trail(String);

impl Trail {
    /// Goes one step in; gives what [`leave`](Trail::leave) wants.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.0.len();
        if before > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        before
    }

    fn enter_item(&mut self, index: usize) -> usize {
        let before = self.0.len();
        if before > 0 {
            self.0.push('.');
        }
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{index}");
        before
    }

    fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }
}

/// One place of a walk: `Component::visit` tells it what is there.
pub struct Walk<'w, 'v> {
    visitor: &'w mut (dyn Visitor + 'v),
    trail: &'w mut Trail,
    kind: TensorKind,
    /// Whether the walk goes on to what is inside of the component that it starts with.
    goes_in: bool,
}

/// Walks a component.
pub fn walk(component: &(impl Component + ?Sized), visitor: &mut dyn Visitor) {
    component.visit(&mut Walk {
        visitor,
        trail: &mut Trail::default(),
        kind: TensorKind::Parameter,
        goes_in: true,
    });
}

/// The training flag of a component itself, not of those inside.
pub(crate) fn own_training(component: &(impl Component + ?Sized)) -> Option<bool> {
    #[derive(Default)]
    struct Own {
        entered: bool,
        training: Option<bool>,
    }
    impl Visitor for Own {
        fn enter(&mut self, _: &str, _: ComponentKey, _: &'static str) -> bool {
            !std::mem::replace(&mut self.entered, true)
        }
        fn training(&mut self, _: &str, training: bool) {
            self.training = Some(training);
        }
    }
    let mut own = Own::default();
    component.visit(&mut Walk {
        visitor: &mut own,
        trail: &mut Trail::default(),
        kind: TensorKind::Parameter,
        goes_in: false,
    });
    own.training
}

impl<'v> Walk<'_, 'v> {
    /// A component is here; `fields` visits what is inside.
    pub fn component<T: 'static>(&mut self, this: &T, fields: impl FnOnce(&mut Walk<'_, 'v>)) {
        let key = ComponentKey::of(this);
        if self
            .visitor
            .enter(&self.trail.0, key, std::any::type_name::<T>())
        {
            fields(&mut Walk {
                visitor: &mut *self.visitor,
                trail: &mut *self.trail,
                kind: self.kind,
                goes_in: self.goes_in,
            });
            self.visitor.leave(&self.trail.0, key);
        }
    }

    /// A named child.
    pub fn child(&mut self, name: &str, child: &(impl Component + ?Sized)) {
        if self.goes_in {
            let before = self.trail.enter(name);
            child.visit(self);
            self.trail.leave(before);
        }
    }

    /// A child that a map has under a key.
    pub fn entry(&mut self, key: &str, child: &(impl Component + ?Sized)) {
        self.visitor.key(&self.trail.0, key);
        self.child(key, child);
    }

    /// A child in a list.
    pub fn item(&mut self, index: usize, child: &(impl Component + ?Sized)) {
        if self.goes_in {
            let before = self.trail.enter_item(index);
            child.visit(self);
            self.trail.leave(before);
        }
    }

    /// A named child whose tensors are buffers, of one of the two kinds.
    pub fn buffer(&mut self, name: &str, kind: TensorKind, child: &(impl Component + ?Sized)) {
        let former = std::mem::replace(&mut self.kind, kind);
        self.child(name, child);
        self.kind = former;
    }

    /// A tensor is at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        let before = self.trail.enter(path);
        self.visitor.tensor(&self.trail.0, kind, tensor);
        self.trail.leave(before);
    }

    /// The training flag is here.
    pub fn training(&mut self, training: bool) {
        self.visitor.training(&self.trail.0, training);
    }

    /// A tensor is here.
    pub fn tensor(&mut self, tensor: &dyn Object) {
        self.visitor.tensor(&self.trail.0, self.kind, tensor);
    }
}

/// May change what a module holds.
pub trait VisitorMut {
    /// A parameter or buffer, to look at or to replace.
    fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &mut dyn Object) {
        let _ = (path, kind, tensor);
    }

    /// A module, before what is inside.
    fn module(&mut self, path: &str, module: &mut dyn Any) {
        let _ = (path, module);
    }

    /// A training flag.
    fn training(&mut self, path: &str, training: &mut bool) {
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
    trail: &'w mut Trail,
    kind: TensorKind,
}

/// Walks a component, changing it.
pub fn walk_mut(component: &mut (impl Component + ?Sized), visitor: &mut dyn VisitorMut) {
    walk_mut_by(visitor, |walk| component.visit_mut(walk));
}

/// Walks what `fields` visits, changing it.
pub(crate) fn walk_mut_by(visitor: &mut dyn VisitorMut, fields: impl FnOnce(&mut WalkMut<'_, '_>)) {
    fields(&mut WalkMut {
        visitor,
        shared: &mut Shared::default(),
        trail: &mut Trail::default(),
        kind: TensorKind::Parameter,
    });
}

impl WalkMut<'_, '_> {
    /// A named child.
    pub fn child(&mut self, name: &str, child: &mut (impl Component + ?Sized)) {
        let before = self.trail.enter(name);
        child.visit_mut(self);
        self.trail.leave(before);
    }

    /// A child in a list.
    pub fn item(&mut self, index: usize, child: &mut (impl Component + ?Sized)) {
        let before = self.trail.enter_item(index);
        child.visit_mut(self);
        self.trail.leave(before);
    }

    /// A named child whose tensors are buffers, of one of the two kinds.
    pub fn buffer(&mut self, name: &str, kind: TensorKind, child: &mut (impl Component + ?Sized)) {
        let former = std::mem::replace(&mut self.kind, kind);
        self.child(name, child);
        self.kind = former;
    }

    /// A module is here; what is inside follows.
    pub fn module(&mut self, module: &mut dyn Any) {
        self.visitor.module(&self.trail.0, module);
    }

    /// A tensor is at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &mut dyn Object) {
        let before = self.trail.enter(path);
        self.visitor.tensor(&self.trail.0, kind, tensor);
        self.trail.leave(before);
    }

    /// A tensor is here.
    pub fn tensor(&mut self, tensor: &mut dyn Object) {
        self.visitor.tensor(&self.trail.0, self.kind, tensor);
    }

    /// The training flag is here.
    pub fn training(&mut self, training: &mut bool) {
        self.visitor.training(&self.trail.0, training);
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
