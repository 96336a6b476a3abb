//! `Call`: what a node calls, with its parameters, the arguments bound to them, and its effects.
//!
//! Invariant: passes, patterns and source generation learn only here what a call does.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;
use smallvec::SmallVec;

use super::attributes::Attributes;
use super::hierarchy::ComponentExt;
use super::module::Module;
use crate::error::{Error, Result};
use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::function::{Effects, Function};
use crate::ir::identity::{hash_argument, identical_but, identical_named};
use crate::ir::method::{Functions, effects_of};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// The callee of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Callee<'g> {
    /// A function, or the method of the only possible type.
    Function(Function),
    /// A method of several linked types, in the order of their paths; the receiver decides at run
    /// time.
    Methods(Vec<Function>),
    /// A module.
    Module(&'g dyn Module),
    /// Nothing known: an input, an attribute, the output, a method that no linked type has, or a
    /// path without a module.
    None,
}

impl PartialEq for Callee<'_> {
    /// Modules are equal if they are the same object.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Callee::Function(a), Callee::Function(b)) => a == b,
            (Callee::Methods(a), Callee::Methods(b)) => a == b,
            (Callee::Module(a), Callee::Module(b)) => std::ptr::addr_eq(*a, *b),
            (Callee::None, Callee::None) => true,
            _ => false,
        }
    }
}

/// A node as a call: [`GraphModule::call`](crate::GraphModule::call).
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::operator;
/// use fx_core::module::Callee;
/// let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// let add = gm.graph().find_name("add").ok_or_else(|| Error::msg("it is recorded"))?;
/// let call = gm.call(add)?;
/// assert_eq!(call.function(), Some(operator::add));
/// assert!(call.effects().is_pure());
/// let names: Vec<String> = call.bind()?.iter().map(|(param, _)| param.name.to_string()).collect();
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Call<'g> {
    node: NodeRef<'g>,
    callee: Callee<'g>,
    attributes: &'g Attributes,
}

impl<'g> Call<'g> {
    /// The call of a node, in a graph with these attributes.
    pub fn of(node: NodeRef<'g>, attributes: &'g Attributes) -> Self {
        let callee = match node.op() {
            Op::CallModule(path) => match attributes.modules.get(path) {
                Some(module) => Callee::Module(&**module),
                None => Callee::None,
            },
            _ => match node.functions() {
                Functions::None => Callee::None,
                Functions::One(function) => Callee::Function(function),
                Functions::Several(several) => Callee::Methods(several),
            },
        };
        Call {
            node,
            callee,
            attributes,
        }
    }

    /// The node.
    pub fn node(&self) -> NodeRef<'g> {
        self.node
    }

    /// The modules, parameters and constants that the call's graph names.
    pub fn graph_attributes(&self) -> &'g Attributes {
        self.attributes
    }

    /// The callee.
    pub fn callee(&self) -> &Callee<'g> {
        &self.callee
    }

    /// The function that it calls, if there is exactly one.
    pub fn function(&self) -> Option<Function> {
        match self.callee {
            Callee::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The parameters of the callee, if it has one known signature.
    pub fn params(&self) -> Option<&'g [ParamSpec]> {
        match &self.callee {
            Callee::Function(function) => Some(function.params()),
            Callee::Module(module) => Some(module.params()),
            Callee::Methods(_) | Callee::None => None,
        }
    }

    /// The effects of the call besides its result. An unknown callee may do anything. Inputs and
    /// the output also count as impure, since they are never dropped.
    pub fn effects(&self) -> Effects {
        match (&self.callee, self.node.op()) {
            (Callee::Module(module), _) => module.effects(),
            (Callee::Function(function), _) => self.effects_of(*function),
            (Callee::Methods(several), _) => effects_of(several),
            (Callee::None, Op::GetAttr(_)) => Effects::PURE,
            (Callee::None, _) => Effects::ALL,
        }
    }

    /// The effects of a function with these arguments.
    fn effects_of(&self, function: Function) -> Effects {
        let def = function.def();
        let parameter = def.effects_if.and_then(|at| def.params.get(at));
        let is_off = parameter.is_some_and(|parameter| {
            let bound = self.bind().ok();
            let given = bound.as_ref().and_then(|bound| bound.get(&parameter.name));
            matches!(given.as_deref(), Some(Argument::Bool(false)))
        });
        match is_off {
            true => Effects::PURE,
            false => def.effects,
        }
    }

    /// Whether the first two arguments may be swapped.
    pub fn is_commutative(&self) -> bool {
        match &self.callee {
            Callee::Function(function) => function.def().commutative,
            Callee::Methods(several) => several.iter().all(|f| f.def().commutative),
            Callee::Module(_) | Callee::None => false,
        }
    }

    /// The arguments, each with its parameter.
    ///
    /// # Errors
    /// Returns an error if they do not fit, the callee is unknown, or several types have the method
    /// with different signatures. The error names the node.
    pub fn bind(&self) -> Result<BoundArgs<'g>> {
        let bound = match &self.callee {
            Callee::Module(module) => BoundArgs::of(self.node, self.node.target(), module.params()),
            Callee::None => Err(Error::unknown(
                self.node.target(),
                format_args!(
                    "nothing is known at `{}` that could be called: link the crate of a method in, add a module to the attributes",
                    self.node.target()
                ),
            )),
            Callee::Function(function) => {
                BoundArgs::of(self.node, function.path(), function.params())
            }
            Callee::Methods(several) => BoundArgs::of_all(self.node, several),
        };
        bound.map_err(|error| self.node.blame("binding", error))
    }

    /// The parameters, saved buffers and constants that the call uses, by path: those of the called
    /// module, and those that its arguments read; of a `get_attr` node, what it reads. Other fields of a
    /// module, such as a stride, are the module's own
    /// ([`submodule_as`](crate::GraphModule::submodule_as)).
    ///
    /// ```
    /// # use fx_core::prelude::*;
    /// # use fx_core::module::{Component, Walk, WalkMut};
    /// # use fx_core::tensor::{Object, Traced};
    /// # use fx_core::value::Proxy;
    /// # #[derive(Clone, Debug)]
    /// # enum Scalar { Known(std::sync::Arc<f64>), Traced(Proxy) }
    /// # impl Object for Scalar {
    /// #     fn to_value(&self) -> Value { Value::object(self.clone()) }
    /// #     fn object_id(&self) -> Option<u64> {
    /// #         match self { Scalar::Known(x) => Some(std::sync::Arc::as_ptr(x) as u64), Scalar::Traced(_) => None }
    /// #     }
    /// #     fn shape(&self) -> Option<&[usize]> { Some(&[]) }
    /// #     fn proxy(&self) -> Option<Proxy> { match self { Scalar::Traced(p) => Some(*p), Scalar::Known(_) => None } }
    /// # }
    /// # impl Traced for Scalar { fn from_proxy(proxy: Proxy) -> Self { Scalar::Traced(proxy) } }
    /// # impl Component for Scalar {
    /// #     fn visit(&self, walk: &mut Walk<'_, '_>) { walk.tensor(self); }
    /// #     fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) { walk.tensor(self); }
    /// #     fn duplicate(&self) -> Self { self.clone() }
    /// # }
    /// # fx_core::tensor::tensor_type!(Scalar);
    /// # #[derive(Module)] struct Scale { by: Scalar }
    /// # #[trace(leaf)] impl Scale { fn forward(&self, x: &Scalar) -> Result<Scalar> { x * &self.by } }
    /// #[derive(Module)]
    /// struct Model { scale: Scale, shift: Scalar }
    /// #[trace]
    /// impl Model {
    ///     fn forward(&self, x: &Scalar) -> Result<Scalar> { self.scale.forward(x)? + &self.shift }
    /// }
    /// # let scalar = |x: f64| Scalar::Known(x.into());
    /// let gm = symbolic_trace(&Model { scale: Scale { by: scalar(2.0) }, shift: scalar(1.0) })?;
    /// let used = |name: &str| -> Result<Vec<String>> {
    ///     let node = gm.graph().find_name(name).ok_or_else(|| Error::msg("it is recorded"))?;
    ///     Ok(gm.call(node)?.attributes().into_keys().collect())
    /// };
    /// assert_eq!(used("scale")?, ["scale.by"]);
    /// assert_eq!(used("add")?, ["shift"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn attributes(&self) -> IndexMap<String, Value> {
        let mut used = IndexMap::new();
        let state_of = |path: &str, module: &dyn Module| {
            let state = module.state_dict().into_iter();
            let named = state.map(|(name, value)| (format!("{path}.{name}"), value));
            named.collect::<Vec<_>>()
        };
        if let (Op::CallModule(path), Callee::Module(called)) = (self.node.op(), &self.callee) {
            used.extend(state_of(path, *called));
        }
        let inputs = self.node.all_input_nodes();
        for node in std::iter::once(self.node).chain(inputs) {
            let Op::GetAttr(path) = node.op() else {
                continue;
            };
            match (
                self.attributes.tensor(path),
                self.attributes.modules.get(path),
            ) {
                (Ok(tensor), _) => {
                    used.insert(path.to_string(), tensor.clone());
                }
                (Err(_), Some(read)) => used.extend(state_of(path, &**read)),
                (Err(_), None) => {}
            }
        }
        used
    }

    /// Whether two calls call the same thing with the same arguments, where `same` decides which
    /// nodes are the same. Arguments are compared by type and value: 1, 1.0 and true differ, as do
    /// 0.0 and -0.0. A spelled-out default equals the default, a keyword equals its position, and a
    /// method of one type equals that function.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * (x + 1.0)?))?;
    /// let calls: Vec<_> = gm.graph().nodes().map(|node| gm.call(node)).collect::<Result<_>>()?;
    /// assert!(calls[1].is_same(&calls[2], &|a, b| a == b));
    /// assert!(!calls[1].is_same(&calls[3], &|a, b| a == b));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_same(&self, other: &Call<'_>, same: &dyn Fn(NodeId, NodeId) -> bool) -> bool {
        let calls_same = match (self.function(), other.function()) {
            (None, None) => self.node.op() == other.node.op() && self.callee == other.callee,
            (a, b) => a == b,
        };
        if !calls_same {
            return false;
        }
        if let (Some(a), Some(b)) = (self.plain_arguments(), other.plain_arguments()) {
            let mut args = a.iter().zip(b);
            return a.len() == b.len() && args.all(|(a, b)| identical_but(a, b, same));
        }
        let ((a, a_named), (b, b_named)) = (self.arguments(), other.arguments());
        let mut args = a.iter().zip(&b);
        a.len() == b.len()
            && args.all(|(a, b)| identical_but(a, b, same))
            && identical_named(a_named, b_named, same)
    }

    /// Feeds a hasher with what [`is_same`](Call::is_same) compares; `node` feeds in each node, in
    /// order. Equal calls have equal hashes if `node` feeds the same for equal nodes.
    pub fn hash_same<H: Hasher>(&self, hasher: &mut H, node: &mut dyn FnMut(NodeId, &mut H)) {
        match self.function() {
            Some(function) => function.hash(hasher),
            None => self.node.op_number().hash(hasher),
        }
        if let Some(args) = self.plain_arguments() {
            return args.iter().for_each(|arg| hash_argument(arg, hasher, node));
        }
        let (args, named) = self.arguments();
        for argument in &args {
            hash_argument(argument, hasher, node);
        }
        for (name, argument) in named {
            name.hash(hasher);
            hash_argument(argument, hasher, node);
        }
    }

    /// The arguments, if every parameter has a positional one, so that binding is unnecessary.
    fn plain_arguments(&self) -> Option<&'g [Argument]> {
        let args = self.node.args();
        let is_plain = self.node.kwargs().is_empty() && self.params()?.len() == args.len();
        is_plain.then_some(args)
    }

    /// The arguments in signature order with defaults filled in; unchanged if there is no signature
    /// or they do not fit it.
    fn arguments(&self) -> Arguments<'g> {
        // Arguments that do not fit are reported by `lint`.
        let bound = self.params().and_then(|_| self.bind().ok());
        match bound {
            Some(bound) => (bound.iter().map(|(_, argument)| argument).collect(), &[]),
            None => {
                let args = self.node.args().iter().map(Cow::Borrowed);
                (args.collect(), self.node.kwargs())
            }
        }
    }
}

/// Positional and keyword arguments.
type Arguments<'g> = (SmallVec<[Cow<'g, Argument>; 4]>, &'g [(Arc<str>, Argument)]);
