//! `Component`, and walks over a hierarchy of components: the visitor receives each part with its
//! dotted path.

use std::any::{Any, TypeId};
use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::file::json::{self, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::submit::REGISTRY_HINT;
use crate::value::object::{Object, short_type_name};

/// A part of a module: a module, a tensor, plain data, or a container. `#[derive(Module)]`
/// implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a module, a parameter, a buffer nor plain data",
    label = "is no part of a module: `#[derive(Module)]` makes it one",
    note = "a layer derives `Module`, and the impl block of its `forward` is marked #[trace]; a map of layers is an `IndexMap<String, _>`",
    note = "an enum or a struct of options derives `Module` too; layers behind a trait are `Box<dyn Module>`",
    note = "a tensor type of your own implements `Component` by hand: `fx_core::tensor` shows how",
    note = "a field marked #[module(skip)] is not part of the module: its tensors are in no list of parameters and in no file"
)]
pub trait Component {
    /// Reports its contents to the walk.
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        let _ = walk;
    }

    /// Same as [`visit`](Component::visit), with mutable access.
    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        let _ = walk;
    }

    /// A copy whose tensors share storage with the original.
    fn duplicate(&self) -> Self
    where
        Self: Sized;

    /// Saves it: plain data as JSON, tensors with [`Saver::tensor`].
    ///
    /// # Errors
    /// Returns an error if the type does not implement it, or something inside cannot be saved.
    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let _ = saver;
        Err(not_saved(std::any::type_name::<Self>(), "to_saved"))
    }

    /// Restores what [`to_saved`](Component::to_saved) saved.
    ///
    /// # Errors
    /// Returns an error if the type does not implement it, or the file does not fit.
    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self>
    where
        Self: Sized,
    {
        let _ = (saved, loader);
        Err(not_saved(std::any::type_name::<Self>(), "from_saved"))
    }

    /// The part at a path below it: `part("a.b")` is what a walk finds at `a.b`.
    /// `#[derive(Module)]` implements it.
    fn part(&self, path: &str) -> Option<&dyn Component> {
        let _ = path;
        None
    }

    /// Same as [`part`](Component::part), for change in place. A shared owner (`Arc`) with other
    /// holders is copied first, as with [`Arc::make_mut`](std::sync::Arc::make_mut).
    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        let _ = path;
        None
    }

    /// Lists its fields, in their order; what `#[derive(Module)]` implements follows from the list.
    #[doc(hidden)]
    fn fields<'a>(&'a self, each: &mut EachField<'_, 'a>) {
        let _ = each;
    }

    /// Same as `fields`, for change in place.
    #[doc(hidden)]
    fn fields_mut<'a>(&'a mut self, each: &mut EachFieldMut<'_, 'a>) {
        let _ = each;
    }

    /// Itself as the field of a name.
    #[doc(hidden)]
    fn as_field(&self, name: &'static str) -> Field<'_>
    where
        Self: Sized,
    {
        match Self::is_plain() {
            true => Field::Plain(name, self),
            false => Field::Child(name, self),
        }
    }

    /// Same as `as_field`, for change in place.
    #[doc(hidden)]
    fn as_field_mut(&mut self, name: &'static str) -> FieldMut<'_>
    where
        Self: Sized,
    {
        match Self::is_plain() {
            true => FieldMut::Plain(name, self),
            false => FieldMut::Child(name, self),
        }
    }

    /// Itself as a part, whatever its field is.
    #[doc(hidden)]
    fn as_part(&self) -> &dyn Component
    where
        Self: Sized,
    {
        self
    }

    /// Same as `as_part`, for change in place.
    #[doc(hidden)]
    fn as_part_mut(&mut self) -> &mut dyn Component
    where
        Self: Sized,
    {
        self
    }

    /// Loads the field of a name.
    #[doc(hidden)]
    fn from_field(name: &str, fields: &JsonMap, loader: &mut Loader<'_>) -> Result<Self>
    where
        Self: Sized,
    {
        let saved = json::required(fields, name)?;
        Self::from_saved(saved, loader).map_err(|error| json::in_field(error, name))
    }

    /// Itself as its concrete type; for an option, a box or a shared owner, its contents. `None`
    /// for containers and plain data.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Same as [`as_any`](Component::as_any), for change in place.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// How what [`as_any`](Component::as_any) gives is a module: a `ModuleOf`, if it has a `forward`. `#[derive(Module)]`
    /// implements it for types without generic parameters; of others, the registry knows it.
    #[doc(hidden)]
    fn module_entry(&self) -> Option<&'static dyn Any> {
        None
    }

    /// Whether it is one of several variants, whose fields source cannot name.
    #[doc(hidden)]
    fn has_variants(&self) -> bool {
        false
    }

    /// Whether values of the type never hold a tensor or a module, so that walks skip them.
    fn is_plain() -> bool
    where
        Self: Sized,
    {
        false
    }
}

#[cold]
fn not_saved(type_name: &str, method: &str) -> Error {
    Error::saved(format_args!(
        "a `{}` cannot be kept in a file: its type does not implement `Component::{method}`, which #[derive(Module)] does{REGISTRY_HINT}",
        short_type_name(type_name)
    ))
}

/// The role of a tensor in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorKind {
    /// Learned.
    Parameter,
    /// State that is saved but not learned.
    Buffer,
    /// State that is neither learned nor saved as a weight; the module's constructor computes it.
    NonPersistentBuffer,
}

impl TensorKind {
    /// Whether it is a buffer, persistent or not.
    pub fn is_buffer(self) -> bool {
        self != TensorKind::Parameter
    }

    /// Whether it is one of the weights that
    /// [`state_dict`](super::hierarchy::ComponentExt::state_dict) lists.
    pub fn is_persistent(self) -> bool {
        self != TensorKind::NonPersistentBuffer
    }
}

/// A field of a component: its name in paths and files, and what is there.
pub enum Field<'a> {
    /// Plain data: walks skip it.
    Plain(&'static str, &'a dyn Component),
    /// A module, a parameter, or a container of them.
    Child(&'static str, &'a dyn Component),
    /// Tensors that are buffers, of one of the two kinds.
    Buffer(&'static str, TensorKind, &'a dyn Component),
    /// A component whose parts are at the paths of this one's; files have the name.
    Flatten(&'static str, &'a dyn Component),
    /// The training flag.
    Training(&'static str, &'a bool),
    /// No field: two of them have one name.
    Repeated,
}

/// Same as [`Field`], for change in place.
pub enum FieldMut<'a> {
    /// Plain data: walks skip it.
    Plain(&'static str, &'a mut dyn Component),
    /// A module, a parameter, or a container of them.
    Child(&'static str, &'a mut dyn Component),
    /// Tensors that are buffers, of one of the two kinds.
    Buffer(&'static str, TensorKind, &'a mut dyn Component),
    /// A component whose parts are at the paths of this one's.
    Flatten(&'a mut dyn Component),
    /// The training flag.
    Training(&'a mut bool),
}

/// Receives fields, in their order.
pub type EachField<'e, 'a> = dyn FnMut(Field<'a>) + 'e;

/// Same as [`EachField`], for change in place.
pub type EachFieldMut<'e, 'a> = dyn FnMut(FieldMut<'a>) + 'e;

/// Identifies a component by its address and type. A part inside a value of another type may have
/// the same address, but never the same type.
///
/// A zero-sized type has no unique addresses, so it does not compile; add a field `tag: Tag`
/// ([`Tag`](crate::module::Tag)) to fix it.
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
                "a module without a size cannot be distinguished from another: add a field `tag: Tag` (`fx_core::module::Tag`)"
            );
        }
        ComponentKey::of_any(component)
    }

    /// The key of a component of dynamic type.
    pub(crate) fn of_any(component: &dyn Any) -> Self {
        ComponentKey {
            address: std::ptr::from_ref(component).cast::<u8>() as usize,
            ty: component.type_id(),
        }
    }
}

/// Receives the contents of a module, from the root inwards.
pub trait Visitor {
    /// A component starts here; return `false` to skip its contents.
    fn enter(&mut self, path: &str, key: ComponentKey, type_name: &'static str) -> bool {
        let _ = (path, key, type_name);
        true
    }

    /// A component that was entered ends here.
    fn leave(&mut self, path: &str, key: ComponentKey) {
        let _ = (path, key);
    }

    /// Parts below this path may have one name: code that is not derived names them, or fields of
    /// several structs are at one level.
    #[doc(hidden)]
    fn may_repeat(&mut self) {}

    /// Whether it is shown each copy of what the parts of a graph hold at one path.
    #[doc(hidden)]
    fn sees_copies(&self) -> bool {
        false
    }

    /// The key of a map at this path; it names one of the map's parts.
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

    /// What stands at this path in place of a field of the part's own type, so that source cannot name what is there.
    #[doc(hidden)]
    fn unnamed(&mut self, path: &str, what: &str) {
        let _ = (path, what);
    }
}

/// A dotted path that grows and shrinks during a walk.
#[derive(Default)]
struct Trail(String);

impl Trail {
    /// Enters a name. Returns the value to pass to [`leave`](Trail::leave).
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

/// A position in a walk; `Component::visit` reports what is there.
pub struct Walk<'w, 'v> {
    visitor: &'w mut (dyn Visitor + 'v),
    trail: &'w mut Trail,
    kind: TensorKind,
    /// Whether the walk continues into the children of the component it starts with.
    goes_in: bool,
    /// Whether the parts here are those of a field that has no name in paths.
    is_flattened: bool,
}

/// Walks a component.
pub fn walk(component: &(impl Component + ?Sized), visitor: &mut dyn Visitor) {
    component.visit(&mut Walk {
        visitor,
        trail: &mut Trail::default(),
        kind: TensorKind::Parameter,
        goes_in: true,
        is_flattened: false,
    });
}

/// The training flag of a component itself, not of its children.
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
        is_flattened: false,
    });
    own.training
}

impl<'v> Walk<'_, 'v> {
    /// Reports a component; `fields` visits its contents.
    pub fn component<T: 'static>(&mut self, this: &T, fields: impl FnOnce(&mut Walk<'_, 'v>)) {
        self.entered(ComponentKey::of(this), std::any::type_name::<T>(), fields);
    }

    fn entered(
        &mut self,
        key: ComponentKey,
        name: &'static str,
        fields: impl FnOnce(&mut Walk<'_, 'v>),
    ) {
        if self.visitor.enter(&self.trail.0, key, name) {
            crate::stack::level(|| fields(self));
            self.visitor.leave(&self.trail.0, key);
        }
    }

    /// Reports a component, and visits the fields that it lists.
    #[doc(hidden)]
    pub fn fields_of<T: Component + 'static>(&mut self, this: &T) {
        self.listed(ComponentKey::of(this), std::any::type_name::<T>(), this);
    }

    /// What `fields_of` does, compiled once for all types.
    fn listed(&mut self, key: ComponentKey, name: &'static str, this: &dyn Component) {
        self.entered(key, name, |walk| visit_fields(this, walk));
    }

    /// Whether the visitor is shown each copy of what several parts of a graph hold.
    pub(crate) fn sees_copies(&self) -> bool {
        self.visitor.sees_copies()
    }

    /// Visits a named child.
    pub fn child(&mut self, name: &str, child: &dyn Component) {
        self.visitor.may_repeat();
        self.step(name, child);
    }

    /// Says what stands here in place of a field of the part's own type.
    pub(crate) fn unnamed(&mut self, what: &str) {
        self.visitor.unnamed(&self.trail.0, what);
    }

    /// The same of a path below.
    pub(crate) fn unnamed_at(&mut self, path: &str, what: &str) {
        let before = self.trail.enter(path);
        self.unnamed(what);
        self.trail.leave(before);
    }

    /// Visits a child whose name no other part has here.
    fn step(&mut self, name: &str, child: &dyn Component) {
        if self.goes_in {
            let before = self.trail.enter(name);
            let former = std::mem::replace(&mut self.is_flattened, false);
            child.visit(self);
            self.is_flattened = former;
            self.trail.leave(before);
        }
    }

    /// Visits the child of a map under a key.
    pub fn entry(&mut self, key: &str, child: &dyn Component) {
        self.visitor.key(&self.trail.0, key);
        self.unnamed_at(key, "an entry of a map");
        self.step(key, child);
    }

    /// Visits a child in a list.
    pub fn item(&mut self, index: usize, child: &dyn Component) {
        if self.goes_in {
            let before = self.trail.enter_item(index);
            child.visit(self);
            self.trail.leave(before);
        }
    }

    /// Visits a named child whose tensors are buffers, of one of the two kinds.
    pub fn buffer(&mut self, name: &str, kind: TensorKind, child: &dyn Component) {
        self.visitor.may_repeat();
        self.step_to_buffer(name, kind, child);
    }

    fn step_to_buffer(&mut self, name: &str, kind: TensorKind, child: &dyn Component) {
        let former = std::mem::replace(&mut self.kind, kind);
        self.step(name, child);
        self.kind = former;
    }

    /// Reports a tensor at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        self.visitor.may_repeat();
        let before = self.trail.enter(path);
        self.visitor.tensor(&self.trail.0, kind, tensor);
        self.trail.leave(before);
    }

    /// Reports the training flag.
    pub fn training(&mut self, training: bool) {
        self.visitor.training(&self.trail.0, training);
    }

    /// Reports a tensor.
    pub fn tensor(&mut self, tensor: &dyn Object) {
        self.visitor.tensor(&self.trail.0, self.kind, tensor);
    }
}

fn visit_fields(component: &dyn Component, walk: &mut Walk<'_, '_>) {
    let (mut named, mut flattened, mut repeated) = (0, 0, false);
    let has_variants = component.has_variants();
    let note = |walk: &mut Walk<'_, '_>, name: &str| {
        if has_variants {
            walk.unnamed_at(name, "a field of an enum's variant");
        } else if name.starts_with(|first: char| first.is_ascii_digit()) {
            walk.unnamed_at(name, "a field of a tuple");
        } else if walk.is_flattened {
            walk.unnamed_at(name, "a field of a flattened field");
        }
    };
    component.fields(&mut |field| match field {
        Field::Plain(..) => {}
        Field::Child(name, part) => {
            named += 1;
            note(walk, name);
            walk.step(name, part);
        }
        Field::Buffer(name, kind, part) => {
            named += 1;
            note(walk, name);
            walk.step_to_buffer(name, kind, part);
        }
        Field::Flatten(_, part) => {
            flattened += 1;
            let former = std::mem::replace(&mut walk.is_flattened, true);
            part.visit(walk);
            walk.is_flattened = former;
        }
        Field::Training(_, training) => walk.training(*training),
        Field::Repeated => repeated = true,
    });
    if repeated || flattened > 0 && named + flattened > 1 {
        walk.visitor.may_repeat();
    }
}

fn visit_fields_mut(component: &mut dyn Component, walk: &mut WalkMut<'_, '_>) {
    component.fields_mut(&mut |field| match field {
        FieldMut::Plain(..) => {}
        FieldMut::Child(name, part) => walk.child(name, part),
        FieldMut::Buffer(name, kind, part) => walk.buffer(name, kind, part),
        FieldMut::Flatten(part) => part.visit_mut(walk),
        FieldMut::Training(training) => walk.training(training),
    });
}

/// A visitor that may change the contents of a module.
pub trait VisitorMut {
    /// A parameter or buffer, to inspect or replace.
    fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &mut dyn Object) {
        let _ = (path, kind, tensor);
    }

    /// A module, before its contents.
    fn module(&mut self, path: &str, module: &mut dyn Any) {
        let _ = (path, module);
    }

    /// A training flag.
    fn training(&mut self, path: &str, training: &mut bool) {
        let _ = (path, training);
    }
}

/// Shared modules already copied in this walk, from old address to new owner, so that sharing
/// survives.
#[derive(Default)]
pub struct Shared {
    copies: FxHashMap<(usize, TypeId), SharedCopy>,
}

struct SharedCopy {
    copy: Box<dyn Any>,
    /// Keeps the old address in use during the walk.
    _original: Box<dyn Any>,
}

/// A position in a mutable walk.
pub struct WalkMut<'w, 'v> {
    visitor: &'w mut (dyn VisitorMut + 'v),
    shared: &'w mut Shared,
    trail: &'w mut Trail,
    kind: TensorKind,
}

/// Walks a component with mutable access.
pub fn walk_mut(component: &mut (impl Component + ?Sized), visitor: &mut dyn VisitorMut) {
    walk_mut_by(visitor, |walk| component.visit_mut(walk));
}

/// Walks what `fields` visits with mutable access.
pub(crate) fn walk_mut_by(visitor: &mut dyn VisitorMut, fields: impl FnOnce(&mut WalkMut<'_, '_>)) {
    fields(&mut WalkMut {
        visitor,
        shared: &mut Shared::default(),
        trail: &mut Trail::default(),
        kind: TensorKind::Parameter,
    });
}

impl WalkMut<'_, '_> {
    /// Visits a named child.
    pub fn child(&mut self, name: &str, child: &mut dyn Component) {
        let before = self.trail.enter(name);
        child.visit_mut(self);
        self.trail.leave(before);
    }

    /// Visits a child in a list.
    pub fn item(&mut self, index: usize, child: &mut dyn Component) {
        let before = self.trail.enter_item(index);
        child.visit_mut(self);
        self.trail.leave(before);
    }

    /// Visits a named child whose tensors are buffers, of one of the two kinds.
    pub fn buffer(&mut self, name: &str, kind: TensorKind, child: &mut dyn Component) {
        let former = std::mem::replace(&mut self.kind, kind);
        self.child(name, child);
        self.kind = former;
    }

    /// Reports a module, and visits the fields that it lists.
    #[doc(hidden)]
    pub fn fields_of<T: Component + 'static>(&mut self, this: &mut T) {
        self.module(this);
        crate::stack::level(|| visit_fields_mut(this, self));
    }

    /// Reports a module; its contents follow.
    pub fn module(&mut self, module: &mut dyn Any) {
        self.visitor.module(&self.trail.0, module);
    }

    /// Reports a tensor at a path below.
    pub fn tensor_at(&mut self, path: &str, kind: TensorKind, tensor: &mut dyn Object) {
        let before = self.trail.enter(path);
        self.visitor.tensor(&self.trail.0, kind, tensor);
        self.trail.leave(before);
    }

    /// Reports a tensor.
    pub fn tensor(&mut self, tensor: &mut dyn Object) {
        self.visitor.tensor(&self.trail.0, self.kind, tensor);
    }

    /// Reports the training flag.
    pub fn training(&mut self, training: &mut bool) {
        self.visitor.training(&self.trail.0, training);
    }

    /// The copy of a shared owner made in this walk, if any.
    pub(super) fn shared_copy<T: Clone + 'static>(&self, address: usize) -> Option<T> {
        let copy = self.copy_at(address, TypeId::of::<T>())?;
        copy.downcast_ref::<T>().cloned()
    }

    fn copy_at(&self, address: usize, ty: TypeId) -> Option<&dyn Any> {
        let shared = self.shared.copies.get(&(address, ty))?;
        Some(&*shared.copy)
    }

    pub(super) fn remember_copy<T: 'static>(&mut self, address: usize, original: T, copy: T) {
        let shared = SharedCopy {
            copy: Box::new(copy),
            _original: Box::new(original),
        };
        self.keep_copy((address, TypeId::of::<T>()), shared);
    }

    fn keep_copy(&mut self, of: (usize, TypeId), shared: SharedCopy) {
        self.shared.copies.insert(of, shared);
    }
}
