//! `BoundArgs`: a node's arguments, each with its parameter.
//!
//! Invariant: there is one entry per parameter; a parameter without an argument has a default.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::argument::Argument;
use super::function::Function;
use super::node::NodeRef;
use super::signature::{ParamSpec, bind};
use crate::error::{Error, Result};

/// The arguments of a call, one for each parameter of the callee.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::{Argument, BoundArgs};
/// #[wrap] fn scale(x: Float, #[kw] #[default(2.0)] by: f64) -> Result<Float> { x * by }
///
/// let gm = symbolic_trace(traced!(|x: Float| scale(x, 2.0)))?;
/// let call = gm.graph().find_name("scale").ok_or_else(|| Error::msg("it is recorded"))?;
/// let args = gm.call(call)?.bind()?;
/// assert_eq!(args.given("by"), None); // the default stands
/// assert_eq!(args.get("by").as_deref(), Some(&Argument::Float(2.0)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BoundArgs<'g> {
    params: &'g [ParamSpec],
    given: Given<'g>,
}

/// The argument of each parameter; `None` if its default applies.
type Given<'g> = SmallVec<[Option<&'g Argument>; 8]>;

impl<'g> BoundArgs<'g> {
    /// Binds a node's arguments to the parameters of `callee`.
    ///
    /// # Errors
    /// Returns an error if they do not fit.
    pub(crate) fn of(node: NodeRef<'g>, callee: &str, params: &'g [ParamSpec]) -> Result<Self> {
        let given = node.given(callee, params)?;
        Ok(BoundArgs { params, given })
    }

    /// Binds a node's arguments to the parameters of one of several functions, if all of them bind
    /// the arguments the same way.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit one of them, or the functions bind them
    /// differently.
    pub(crate) fn of_all(node: NodeRef<'g>, functions: &[Function]) -> Result<Self> {
        let mut all = functions
            .iter()
            .map(|f| BoundArgs::of(node, f.path(), f.params()));
        let first = all.next().expect("a call of functions has one")?;
        let named = |(param, arg): (&'g ParamSpec, _)| (&*param.name, arg);
        for other in all {
            if !other?.iter().map(named).eq(first.iter().map(named)) {
                return Err(Error::ambiguous(
                    node.target(),
                    format_args!(
                        "several types have a method `{}` that takes these arguments, each in its own way: the receiver's type decides, and a graph does not know it",
                        node.target()
                    ),
                ));
            }
        }
        Ok(first)
    }

    /// The parameters.
    pub fn params(&self) -> &'g [ParamSpec] {
        self.params
    }

    /// The argument of a parameter; `None` if its default applies, or there is no such parameter.
    pub fn given(&self, name: &str) -> Option<&'g Argument> {
        let at = self.params.iter().position(|param| param.name == name)?;
        self.given[at]
    }

    /// The argument of a parameter, or its default; `None` if there is no such parameter.
    pub fn get(&self, name: &str) -> Option<Cow<'g, Argument>> {
        let mut all = self.iter();
        let (_, argument) = all.find(|(param, _)| param.name == name)?;
        Some(argument)
    }

    /// Each parameter with its argument, with defaults filled in.
    pub fn iter(&self) -> impl Iterator<Item = (&'g ParamSpec, Cow<'g, Argument>)> {
        self.places().map(|(param, given)| {
            let argument = match given {
                Some(argument) => Cow::Borrowed(argument),
                None => Cow::Owned(default_of(param)),
            };
            (param, argument)
        })
    }

    /// Each parameter with its given argument, if any.
    pub(crate) fn places(
        &self,
    ) -> impl Iterator<Item = (&'g ParamSpec, Option<&'g Argument>)> + Clone {
        self.params.iter().zip(self.given.iter().copied())
    }
}

/// A parameter's default as an argument.
pub(crate) fn default_of(param: &ParamSpec) -> Argument {
    param
        .default
        .as_ref()
        .map_or(Argument::None, Argument::from)
}

impl<'g> NodeRef<'g> {
    /// The arguments of a function or method node, one per parameter, by name, with defaults filled
    /// in.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit the signature, or there is none: only the graph
    /// module knows the signature of a module, and an unknown method has none.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let y = graph.call_function(operator::add, (x,), [("b", 1)])?;
    /// let names: Vec<String> = graph.node(y)?.normalized_arguments()?.into_iter().map(|(n, _)| n).collect();
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn normalized_arguments(self) -> Result<Vec<(String, Argument)>> {
        let functions = self.functions();
        let bound = match functions.as_slice() {
            [] => Err(Error::msg(format_args!(
                "%{} has no signature that its graph knows",
                self.name()
            ))),
            all => BoundArgs::of_all(self, all),
        };
        let bound = bound.map_err(|error| self.blame("binding", error))?;
        let named = bound
            .iter()
            .map(|(param, arg)| (param.name.to_string(), arg.into_owned()));
        Ok(named.collect())
    }

    /// The argument of a parameter of a function or method node, or its default.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::{Argument, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let y = graph.call_function(operator::add, (x, 1), ())?;
    /// assert_eq!(graph.node(y)?.argument("b")?, Argument::Int(1));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error as for [`normalized_arguments`](NodeRef::normalized_arguments), or if there
    /// is no such parameter.
    pub fn argument(self, name: &str) -> Result<Argument> {
        let arguments = self.normalized_arguments()?;
        let known: Vec<String> = arguments.iter().map(|(name, _)| name.clone()).collect();
        let found = arguments.into_iter().find(|(known, _)| known == name);
        found.map(|(_, argument)| argument).ok_or_else(|| {
            let missing = Error::unknown(
                name,
                format_args!(
                    "`{}` has no parameter `{name}`: it takes {}",
                    self.target(),
                    known.join(", ")
                ),
            );
            self.blame("reading", missing)
        })
    }

    /// Checks that the arguments fit the parameters; obvious cases need no allocation.
    pub(crate) fn fits(self, callee: &str, params: &[ParamSpec]) -> Result<()> {
        let given = self.args().len();
        if self.kwargs().is_empty()
            && given <= params.len()
            && params[given..].iter().all(|p| p.default.is_some())
        {
            return Ok(());
        }
        BoundArgs::of(self, callee, params).map(drop)
    }

    /// The node's argument for each parameter of `callee`.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit.
    pub(crate) fn given(self, callee: &str, params: &[ParamSpec]) -> Result<Given<'g>> {
        let args = self.args();
        let is_plain = self.kwargs().is_empty() && args.len() <= params.len();
        if is_plain && params[args.len()..].iter().all(|p| p.default.is_some()) {
            let mut given: Given<'g> = args.iter().map(Some).collect();
            given.resize(params.len(), None);
            return Ok(given);
        }
        let kwargs = self.kwargs().iter().map(|(name, arg)| (name, arg));
        bind(callee, params, args, kwargs)
    }
}
