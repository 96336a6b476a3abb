//! `functional_call`: a call of a module with other tensors in place of its own.
//!
//! Invariant: the module is only read; what is replaced is in a copy that shares all other tensors.

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::{DualGraphModule, GraphModule};
use crate::error::{Error, Result};
use crate::ir::graph::Graph;
use crate::module::hierarchy::ComponentExt;
use crate::module::module::Module;
use crate::module::walk::{Component, TensorKind, Visitor, VisitorMut, walk, walk_mut};
use crate::text::did_you_mean;
use crate::trace::call_args::{CallArgs, IntoArgs, bind_values};
use crate::trace::convert::FromValue;
use crate::value::object::{Handle, Object, short_type_name};
use crate::value::value::{IntoValue, Value};

/// Calls a module with some of its parameters and buffers replaced, by path, for this call alone:
/// `torch.func.functional_call`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::graph_module::functional_call;
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
/// let net = Net { scale: Scale { by: Number(2.0) } };
/// let five = [("scale.by", Value::object(Number(5.0)))];
/// assert_eq!(functional_call::<f64>(&net, five.clone(), 1.0)?, 5.0);
/// let gm = symbolic_trace(&net)?;
/// assert_eq!(functional_call::<f64>(&gm, five, 1.0)?, 5.0);
/// assert_eq!(gm.forward::<f64>(1.0)?, 2.0);
///
/// let wrong = functional_call::<f64>(&gm, [("scale.bye", Value::object(Number(5.0)))], 1.0);
/// assert!(wrong.is_err_and(|e| e.to_string().contains("did you mean `scale.by`?")));
/// # Ok::<(), Error>(())
/// ```
///
/// The paths are those of [`named_parameters`](ComponentExt::named_parameters) and
/// [`named_buffers`](ComponentExt::named_buffers), also inside of called layers. A tensor that the
/// module has under several paths is replaced under all of them. The shape may differ, as long as
/// the operations take it. Gradients of the result flow to the given tensors.
///
/// A graph module runs its compiled program, whichever tensors are given; of another module a copy
/// is called.
///
/// # Errors
/// Returns an error if the module has no tensor at a path, the given one is of another tensor type,
/// two different ones are for one tensor, or as the call.
pub fn functional_call<R: FromValue>(
    module: &(impl Module + ?Sized),
    tensors: impl IntoIterator<Item = (impl AsRef<str>, impl IntoValue)>,
    args: impl IntoArgs,
) -> Result<R> {
    let tensors = tensors.into_iter();
    let tensors = tensors.map(|(path, value)| (path.as_ref().to_string(), value.into_value()));
    R::from_value(called(
        module.as_module(),
        tensors.collect(),
        args.into_args(),
    )?)
}

fn called(module: &dyn Module, given: FxHashMap<String, Value>, args: CallArgs) -> Result<Value> {
    let any: &dyn std::any::Any = module;
    let dual = any.downcast_ref::<DualGraphModule>();
    let graph_module = dual.map(DualGraphModule::graph_module);
    if let Some(gm) = graph_module.or_else(|| any.downcast_ref::<GraphModule>()) {
        // The program stays: what it names is looked up in other attributes.
        let attributes = gm.attributes.clone();
        let mut holder = GraphModule::of_parts(Graph::default(), attributes, &gm.name);
        *holder.entries = gm.entries.clone();
        holder.forget_code()?;
        replace(&mut holder, &given)?;
        let result = gm.run_with(&holder.attributes, gm.bind(args)?, None)?;
        return gm.process_outputs(result);
    }
    let mut copy = module.duplicate_box();
    replace(&mut *copy, &given)?;
    let args = bind_values(copy.type_name(), copy.params(), args)?;
    let lent: Vec<&Value> = args.iter().collect();
    let mut out = Value::None;
    copy.run(&lent, &mut out)?;
    Ok(out)
}

/// Replaces tensors of a component by path.
fn replace(
    component: &mut (impl Component + ?Sized),
    given: &FxHashMap<String, Value>,
) -> Result<()> {
    component.check_paths()?;
    let mut found = Found {
        given,
        by_path: FxHashMap::default(),
        by_id: FxHashMap::default(),
        problem: None,
    };
    walk(component, &mut found);
    let Found {
        by_path,
        by_id,
        problem,
        ..
    } = found;
    if let Some(problem) = problem {
        return Err(problem);
    }
    let missing = given
        .keys()
        .filter(|path| !by_path.contains_key(path.as_str()));
    if let Some(path) = missing.min() {
        return Err(unknown(component, path));
    }
    let mut put = Put {
        by_path,
        by_id,
        problem: None,
    };
    walk_mut(component, &mut put);
    put.problem.map_or(Ok(()), Err)
}

/// Finds the tensors that are replaced.
struct Found<'g> {
    given: &'g FxHashMap<String, Value>,
    by_path: FxHashMap<&'g str, &'g Handle>,
    /// With the path by which each is given.
    by_id: FxHashMap<u64, (&'g str, &'g Handle)>,
    problem: Option<Error>,
}

impl Visitor for Found<'_> {
    fn tensor(&mut self, path: &str, _: TensorKind, tensor: &dyn Object) {
        let Some((path, value)) = self.given.get_key_value(path) else {
            return;
        };
        let path = path.as_str();
        let Value::Object(handle) = value else {
            self.problem.get_or_insert_with(|| {
                Error::mismatch(
                    path,
                    format_args!(
                        "`{path}` is a `{}`: {} cannot take its place",
                        short_type_name(tensor.type_name()),
                        value.describe()
                    ),
                )
            });
            return;
        };
        self.by_path.insert(path, handle);
        let Some(id) = tensor.object_id() else {
            return;
        };
        let same = |other: &Handle| {
            let id = |handle: &Handle| handle.object().and_then(|object| object.object_id());
            id(other).is_some() && id(other) == id(handle)
        };
        match self.by_id.get(&id) {
            Some((other, there)) if *other != path && !same(there) => {
                self.problem.get_or_insert_with(|| {
                    let (first, second) = (path.min(*other), path.max(*other));
                    Error::ambiguous(
                        path,
                        format_args!(
                            "`{first}` and `{second}` are one tensor, and two are given for it: give one, or the same twice"
                        ),
                    )
                });
            }
            _ => {
                self.by_id.insert(id, (path, handle));
            }
        }
    }
}

/// Puts the given tensors in their places.
struct Put<'g> {
    by_path: FxHashMap<&'g str, &'g Handle>,
    by_id: FxHashMap<u64, (&'g str, &'g Handle)>,
    problem: Option<Error>,
}

impl VisitorMut for Put<'_> {
    fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
        let by_id = tensor.object_id().and_then(|id| self.by_id.get(&id));
        let by_id = by_id.map(|(_, handle)| *handle);
        let Some(handle) = by_id.or_else(|| self.by_path.get(path).copied()) else {
            return;
        };
        if !handle.clone().put_into(tensor) {
            self.problem.get_or_insert_with(|| {
                let given = handle.object().map_or("", |object| object.type_name());
                Error::mismatch(
                    path,
                    format_args!(
                        "`{path}` is a `{}`: a `{}` cannot take its place",
                        short_type_name(tensor.type_name()),
                        short_type_name(given)
                    ),
                )
            });
        }
    }
}

/// The error for a path at which a component has no tensor.
fn unknown(component: &(impl Component + ?Sized), path: &str) -> Error {
    struct Paths(IndexSet<String>);
    impl Visitor for Paths {
        fn tensor(&mut self, path: &str, _: TensorKind, _: &dyn Object) {
            self.0.insert(path.to_string());
        }
    }
    let mut paths = Paths(IndexSet::new());
    walk(component, &mut paths);
    let hint = match did_you_mean(path, paths.0.iter().map(String::as_str)) {
        Some(question) => format!("; {question}"),
        None => ": `named_parameters` and `named_buffers` list them".to_string(),
    };
    Error::unknown(
        path,
        format_args!("the module has no parameter or buffer at `{path}`{hint}"),
    )
}
