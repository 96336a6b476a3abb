//! `Submodule` and `SubmoduleMut`: the part at a path of a graph module, in containers, called
//! layers and nested graph modules.
//!
//! Invariant: before a module is lent to be changed, what is known of its calls is forgotten and
//! the version advances.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexSet;

use super::GraphModule;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::Op;
use crate::module::attributes::is_inside;
use crate::module::hierarchy::SetTraining;
use crate::module::module::Module;
use crate::module::parts::below;
use crate::module::registry::{as_module, as_module_mut};
use crate::module::walk::{
    Component, ComponentKey, TensorKind, Visitor, VisitorMut, Walk, walk, walk_mut, walk_mut_by,
};
use crate::submit::REGISTRY_HINT;
use crate::text::first_names;
use crate::trace::call_args::IntoArgs;
use crate::trace::convert::FromValue;
use crate::trace::forward::Forward;
use crate::value::object::{Object, short_type_name};

/// The part at a path of a graph module: a module that the graph calls, a part of one, a module of
/// a nested graph module, or a container, which holds modules and has no `forward` itself. It is a
/// [`Component`]: lists of [`ComponentExt`](crate::module::ComponentExt) are of what is in it, by
/// paths from here.
///
/// ```
/// use fx_core::prelude::*;
/// #[derive(Module)]
/// struct Scale { by: f64 }
/// #[trace(leaf)]
/// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
/// #[derive(Module)]
/// struct Pair { first: Scale, more: Vec<Scale> }
/// #[trace(leaf)]
/// impl Pair { fn forward(&self, x: Float) -> Result<Float> { self.more[0].forward(self.first.forward(x)?) } }
/// #[derive(Module)]
/// struct Net { pairs: Vec<Pair> }
/// #[trace]
/// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.pairs[0].forward(x) } }
///
/// let pair = Pair { first: Scale { by: 2.0 }, more: vec![Scale { by: 3.0 }] };
/// let mut gm = symbolic_trace(&Net { pairs: vec![pair] })?;
/// assert!(gm.submodule("pairs.0")?.is::<Pair>());
/// assert_eq!(gm.submodule("pairs.0.first")?.forward::<f64>(1.0)?, 2.0);
/// assert!(gm.submodule("pairs.0.more")?.module().is_err());
/// assert_eq!(gm.submodule("pairs")?.named_modules().len(), 3);
///
/// gm.submodule_as_mut::<Scale>("pairs.0.more.0")?.by = 10.0;
/// assert_eq!(gm.forward::<f64>(1.0)?, 20.0);
/// let error = gm.submodule("pairs.0.second").unwrap_err();
/// assert_eq!(error.to_string(), "no module at `pairs.0.second`; `pairs.0` has `first`, `more`");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Submodule<'m>(At<'m>);

#[derive(Clone, Copy)]
enum At<'m> {
    Module(&'m dyn Module),
    /// Inside a module.
    Component(&'m dyn Component),
    /// What a graph module has below a path at which there is nothing itself.
    Below(&'m GraphModule, &'m str),
}

/// A [`Submodule`] to change in place: [`GraphModule::submodule_mut`].
pub struct SubmoduleMut<'m>(AtMut<'m>);

enum AtMut<'m> {
    Module(&'m mut dyn Module),
    Component(&'m mut dyn Component),
    Below(&'m mut GraphModule, Arc<str>),
}

impl<'m> Submodule<'m> {
    /// Finds the part at a path below a module.
    fn find(mut module: &'m GraphModule, mut path: &str) -> Option<Self> {
        if path.is_empty() {
            return Some(Submodule(At::Module(module)));
        }
        'within: loop {
            let holders = module.holders();
            for holder in &holders {
                let modules = &holder.attributes.modules;
                if let Some(found) = modules.get(path) {
                    return Some(Submodule(At::Module(&**found)));
                }
                let Some(around) = holder.attributes.enclosing(path) else {
                    continue;
                };
                let found = modules.get(around)?;
                path = below(path, around).unwrap_or_default();
                match as_graph_module(&**found) {
                    Some(inner) => module = inner,
                    None => return found.part(path).filter(holds_parts).map(Self::of),
                }
                continue 'within;
            }
            let attributes = holders.iter().copied().map(|holder| &holder.attributes);
            let mut keys = attributes.flat_map(|a| a.modules.keys().chain(a.tensors.keys()));
            let key = keys.find(|key| is_inside(key, path))?;
            return Some(Submodule(At::Below(module, &key[..path.len()])));
        }
    }

    fn of(part: &'m dyn Component) -> Self {
        match as_module(part) {
            Some(module) => Submodule(At::Module(module)),
            None => Submodule(At::Component(part)),
        }
    }

    /// The module, to call or to inspect.
    ///
    /// # Errors
    /// Returns an error if it is a container, or of a type that is not registered: inside a called
    /// layer, modules are known by their type, which `#[trace]` registers, and
    /// [`register_module!`](crate::register_module) if it is generic.
    pub fn module(self) -> Result<&'m dyn Module> {
        match self.0 {
            At::Module(module) => Ok(module),
            _ => Err(self.no_module()),
        }
    }

    fn no_module(self) -> Error {
        match self.type_name() {
            Some(name) => Error::unregistered(
                name,
                format_args!(
                    "a `{0}` here is not known as a module: if it has a `forward`, write `fx_core::register_module!({0});`{REGISTRY_HINT}",
                    short_type_name(name)
                ),
            ),
            None => Error::msg(format_args!(
                "this is a container, which has no `forward`: ask for what is in it ({})",
                shown(&self.names())
            )),
        }
    }

    /// Whether it is of a type.
    pub fn is<T: Any>(self) -> bool {
        self.downcast_ref::<T>().is_some()
    }

    /// The part as its own type.
    pub fn downcast_ref<T: Any>(self) -> Option<&'m T> {
        let any: &dyn Any = match self.0 {
            At::Module(module) => module,
            At::Component(part) => part.as_any()?,
            At::Below(..) => return None,
        };
        any.downcast_ref()
    }

    /// The full name of its type; `None` for a container.
    pub fn type_name(self) -> Option<&'static str> {
        struct First(Option<&'static str>);
        impl Visitor for First {
            fn enter(&mut self, path: &str, _: ComponentKey, name: &'static str) -> bool {
                if path.is_empty() {
                    self.0.get_or_insert(name);
                }
                false
            }
        }
        if let At::Module(module) = self.0 {
            return Some(module.type_name());
        }
        let mut first = First(None);
        walk(&self, &mut first);
        first.0
    }

    /// Calls the module's `forward`.
    ///
    /// # Errors
    /// As [`module`](Submodule::module); also if the arguments do not fit, or the forward fails.
    #[track_caller]
    pub fn forward<R: FromValue>(self, args: impl IntoArgs) -> Result<R> {
        Forward::forward(self.module()?, args)
    }

    /// The first segments of the paths of the modules in it.
    fn names(self) -> IndexSet<String> {
        struct Names(IndexSet<String>);
        impl Visitor for Names {
            fn enter(&mut self, path: &str, _: ComponentKey, _: &'static str) -> bool {
                if let Some(name) = path.split('.').next().filter(|name| !name.is_empty()) {
                    self.0.insert(name.to_string());
                }
                path.is_empty()
            }
        }
        let mut names = Names(IndexSet::new());
        walk(&self, &mut names);
        names.0
    }
}

fn shown(names: &IndexSet<String>) -> String {
    first_names(names.iter().map(|name| format!("`{name}`")), 8)
}

/// Whether a part is a module or a container of some; plain data and tensors are neither.
fn holds_parts(part: &&dyn Component) -> bool {
    struct Parts(bool);
    impl Visitor for Parts {
        fn enter(&mut self, _: &str, _: ComponentKey, _: &'static str) -> bool {
            self.0 = true;
            false
        }
        fn tensor(&mut self, path: &str, _: TensorKind, _: &dyn Object) {
            self.0 |= !path.is_empty();
        }
    }
    let mut parts = Parts(part.as_any().is_some());
    if !parts.0 {
        walk(*part, &mut parts);
    }
    parts.0
}

/// The graph modules that a call of a module may run, by path inside it: itself, or its sides.
pub(crate) fn graphs_of(module: &dyn Module) -> Vec<(&'static str, &GraphModule)> {
    if let Some(itself) = as_graph_module(module) {
        return vec![("", itself)];
    }
    let names = module.graph_names().iter();
    names
        .filter_map(|name| {
            let part = module.part(name)?.as_any()?;
            Some((*name, part.downcast_ref()?))
        })
        .collect()
}

/// Same as [`graphs_of`], for change in place.
pub(super) fn for_each_graph_of(
    module: &mut dyn Module,
    mut change: impl FnMut(&'static str, &mut GraphModule) -> Result<()>,
) -> Result<()> {
    let names = module.graph_names();
    let any: &mut dyn Any = module;
    if let Some(itself) = any.downcast_mut::<GraphModule>() {
        return change("", itself);
    }
    for name in names {
        let part = module.part_mut(name).and_then(|part| part.as_any_mut());
        if let Some(inner) = part.and_then(|part| part.downcast_mut::<GraphModule>()) {
            change(name, inner)?;
        }
    }
    Ok(())
}

pub(super) fn as_graph_module(module: &dyn Module) -> Option<&GraphModule> {
    let any: &dyn Any = module;
    any.downcast_ref()
}

impl Component for Submodule<'_> {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        match self.0 {
            At::Module(module) => module.visit(walk),
            At::Component(part) => part.visit(walk),
            At::Below(module, around) => module.visit_held(Some(around), walk),
        }
    }

    fn duplicate(&self) -> Self {
        *self
    }
}

impl fmt::Debug for Submodule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.type_name() {
            Some(name) => f.write_str(&short_type_name(name)),
            None => write!(f, "a container of {}", shown(&self.names())),
        }
    }
}

impl<'m> SubmoduleMut<'m> {
    fn of(part: &'m mut dyn Component) -> Option<Self> {
        Some(SubmoduleMut(match as_module(part).is_some() {
            true => AtMut::Module(as_module_mut(part)?),
            false => AtMut::Component(part),
        }))
    }

    fn as_ref(&self) -> Submodule<'_> {
        Submodule(match &self.0 {
            AtMut::Module(module) => At::Module(&**module),
            AtMut::Component(part) => At::Component(&**part),
            AtMut::Below(module, path) => At::Below(module, path),
        })
    }

    /// The module, to change by its methods.
    ///
    /// # Errors
    /// As [`Submodule::module`].
    pub fn module_mut(self) -> Result<&'m mut dyn Module> {
        if let AtMut::Module(module) = self.0 {
            return Ok(module);
        }
        Err(self.as_ref().no_module())
    }

    /// The part as its own type.
    pub fn downcast_mut<T: Any>(self) -> Option<&'m mut T> {
        let any: &mut dyn Any = match self.0 {
            AtMut::Module(module) => module,
            AtMut::Component(part) => part.as_any_mut()?,
            AtMut::Below(..) => return None,
        };
        any.downcast_mut()
    }

    /// Walks it with access to change its tensors and training flags.
    pub fn walk_mut(&mut self, visitor: &mut dyn VisitorMut) {
        match &mut self.0 {
            AtMut::Module(module) => walk_mut(&mut **module, visitor),
            AtMut::Component(part) => walk_mut(&mut **part, visitor),
            AtMut::Below(module, around) => {
                walk_mut_by(visitor, |walk| module.visit_below(Some(around), walk));
            }
        }
    }

    /// Sets the training flag of everything inside.
    pub fn set_training(&mut self, mode: bool) {
        self.walk_mut(&mut SetTraining(mode));
    }
}

impl fmt::Debug for SubmoduleMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Parts by path.
impl GraphModule {
    /// The part at a path: a module that the graph calls, a part of one or of a nested graph
    /// module, or a container of modules, which is not called as a whole. [`Submodule`] has an
    /// example.
    ///
    /// # Errors
    /// Returns an error if there is none; the error names what is there.
    pub fn submodule(&self, path: &str) -> Result<Submodule<'_>> {
        Submodule::find(self, path).ok_or_else(|| self.no_submodule(path))
    }

    /// As [`submodule`](GraphModule::submodule), to change in place. Within an
    /// [`edit`](GraphModule::edit) the module is copied first, so that a failed edit leaves it
    /// unchanged; known shapes of nodes that depend on its calls are removed. A module inside a
    /// called one that several fields share (`Arc`) is copied too, so that only this path changes.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { layers: Vec<Scale> }
    /// #[trace]
    /// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.layers[0].forward(x) } }
    ///
    /// let mut gm = symbolic_trace(&Net { layers: vec![Scale { by: 2.0 }] })?;
    /// if let Some(scale) = gm.submodule_mut("layers.0")?.downcast_mut::<Scale>() {
    ///     scale.by = 5.0;
    /// }
    /// assert_eq!(gm.forward::<f64>(1.0)?, 5.0);
    /// gm.submodule_mut("layers")?.set_training(false);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`submodule`](GraphModule::submodule).
    pub fn submodule_mut(&mut self, path: &str) -> Result<SubmoduleMut<'_>> {
        self.submodule(path)?;
        self.refuse_several(path)?;
        self.lend_part(path).ok_or_else(|| not_lent(path))
    }

    /// The module at a path, as its own type.
    ///
    /// # Errors
    /// Returns an error if there is none, or it is of another type.
    pub fn submodule_as<M: Module>(&self, path: &str) -> Result<&M> {
        let found = self.submodule(path)?;
        found
            .downcast_ref()
            .ok_or_else(|| other_type::<M>(path, found))
    }

    /// As [`submodule_as`](GraphModule::submodule_as), to change in place as by
    /// [`submodule_mut`](GraphModule::submodule_mut).
    ///
    /// # Errors
    /// Returns an error if there is none, or it is of another type.
    pub fn submodule_as_mut<M: Module>(&mut self, path: &str) -> Result<&mut M> {
        self.submodule_as::<M>(path)?;
        self.refuse_several(path)?;
        let found = self.lend_part(path);
        found
            .and_then(SubmoduleMut::downcast_mut)
            .ok_or_else(|| not_lent(path))
    }

    /// Refuses to lend a module that several parts hold: a change in place would be of one of them.
    fn refuse_several(&self, path: &str) -> Result<()> {
        let parts = self.parts_with(path);
        let is_own =
            self.attributes.modules.contains_key(path) || self.attributes.enclosing(path).is_some();
        // A container is walked, in all parts.
        let is_container = matches!(self.submodule(path)?.0, At::Below(..));
        if is_container || parts.len() + usize::from(is_own) < 2 {
            return Ok(());
        }
        let parts = first_names(parts.iter().map(|part| format!("`{part}`")), 4);
        Err(Error::mismatch(
            path,
            format_args!(
                "`{path}` is held by the parts {parts}, each for itself: put another module there with `set_submodule`, which is for all of them, or put the parts back with `decompile` or `inline_module`"
            ),
        ))
    }

    fn no_submodule(&self, path: &str) -> Error {
        let mut around = path;
        let found = loop {
            around = around.rsplit_once('.').map_or("", |(around, _)| around);
            match Submodule::find(self, around) {
                Some(found) => break found,
                None if around.is_empty() => break Submodule(At::Module(self)),
                None => {}
            }
        };
        let names = found.names();
        let place = match around {
            "" => "this module".to_string(),
            around => format!("`{around}`"),
        };
        let hint = match names.is_empty() {
            true => format!("; {place} has no modules"),
            false => format!("; {place} has {}", shown(&names)),
        };
        ErrorKind::NotFound {
            what: "module",
            path: path.to_string(),
            hint,
        }
        .into()
    }

    /// Lends the part at a path to be changed.
    pub(super) fn lend_part(&mut self, path: &str) -> Option<SubmoduleMut<'_>> {
        if path.is_empty() {
            return Some(SubmoduleMut(AtMut::Module(self)));
        }
        let modules = &self.attributes.modules;
        let called = match modules.get_key_value(path) {
            Some((called, _)) => Some(called.clone()),
            None => self.attributes.enclosing(path).map(Arc::from),
        };
        let Some(called) = called else {
            let parts = self.parts_with(path);
            let is_container = matches!(Submodule::find(self, path)?.0, At::Below(..));
            if let [part] = &parts[..]
                && !is_container
            {
                return self.lend_from(part, path);
            }
            let modules = &self.attributes.modules;
            let inside = modules.keys().filter(|key| is_inside(key, path));
            let inside: Vec<Arc<str>> = inside.cloned().chain(parts).collect();
            self.may_change(inside);
            return is_container.then(|| SubmoduleMut(AtMut::Below(self, path.into())));
        };
        let at = modules.get_index_of(&called)?;
        self.may_change([called.clone()]);
        let (_, module) = self.attributes.modules.lend(at)?;
        if called.len() == path.len() {
            return Some(SubmoduleMut(AtMut::Module(&mut **module)));
        }
        let rest = below(path, &called).unwrap_or_default();
        if as_graph_module(&**module).is_some() {
            let any: &mut dyn Any = &mut **module;
            return any.downcast_mut::<GraphModule>()?.lend_part(rest);
        }
        SubmoduleMut::of(module.part_mut(rest)?)
    }

    /// Lends what a part holds at a path.
    fn lend_from(&mut self, part: &Arc<str>, path: &str) -> Option<SubmoduleMut<'_>> {
        self.may_change([part.clone()]);
        let at = self.attributes.modules.get_index_of(part)?;
        let (_, module) = self.attributes.modules.lend(at)?;
        let any: &mut dyn Any = &mut **module;
        any.downcast_mut::<GraphModule>()?.lend_part(path)
    }

    /// Lent modules may differ afterwards: removes what was compiled and what is known of their
    /// results.
    fn may_change(&mut self, modules: impl IntoIterator<Item = Arc<str>>) {
        for path in modules {
            self.graph.forget_op(&Op::CallModule(path));
        }
        self.attributes.modules.lent_to_change();
        self.settle();
    }

    /// The part at a path, if it is a single component.
    pub(super) fn component(&self, path: &str) -> Option<&dyn Component> {
        match Submodule::find(self, path)?.0 {
            At::Module(module) => Some(module),
            At::Component(part) => Some(part),
            At::Below(..) => None,
        }
    }

    /// As [`component`](GraphModule::component), lent to be changed.
    pub(super) fn component_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        self.component(path)?;
        match self.lend_part(path)?.0 {
            AtMut::Module(module) => Some(module),
            AtMut::Component(part) => Some(part),
            AtMut::Below(..) => None,
        }
    }
}

/// The error of a component that shows a part but does not lend it.
fn not_lent(path: &str) -> Error {
    ErrorKind::NotFound {
        what: "module to change",
        path: path.to_string(),
        hint: ": the component around it has no `part_mut` for it".to_string(),
    }
    .into()
}

pub(super) fn other_type<M>(path: &str, found: Submodule<'_>) -> Error {
    let wanted = short_type_name(std::any::type_name::<M>());
    Error::mismatch(
        path,
        match found.type_name() {
            Some(name) => format!(
                "`{path}` is a `{}`, not a `{wanted}`",
                short_type_name(name)
            ),
            None => format!("`{path}` is a container, not a `{wanted}`"),
        },
    )
}
