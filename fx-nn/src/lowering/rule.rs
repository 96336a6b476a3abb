//! `Rule`: how calls of a function are written in a format, and `Rules`, the table of a format.
//!
//! Invariant: the user's rule of a function stands over the registered one.

use std::fmt;
use std::sync::Arc;

use fx_core::ir::{Function, FunctionTable};
use fx_core::passes::{CoreSet, DecomposedCall, Decompositions};
use fx_core::value::Value;
use fx_core::{Error, Result};

use super::call::OpCall;
use super::value::Val;

/// Gives what other functions give for the arguments of a call.
type Write = fn(&DecomposedCall<'_>) -> Result<Value>;

/// Writes a call.
type Emit<C> = dyn Fn(&mut C, &OpCall<'_>) -> Result<Val> + Send + Sync;

/// How calls of a function are written in a format whose context is `C`: an entry of a
/// [`FunctionTable`], registered by any crate.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::lowering::{Rule, Rules};
/// use fx_nn::prelude::*;
/// /// A format that is lines of text.
/// struct Lines(Vec<String>);
/// function_table! { Rule<Lines> {
///     function!(ops::relu) => Rule::new(|lines: &mut Lines, call| {
///         let x = call.tensor("x")?;
///         lines.0.push(format!("relu {}", x.name));
///         call.given("y".into())
///     }),
///     function!(ops::lstm) => Rule::refused("lines have no loops"),
/// } }
/// let rules = Rules::<Lines>::default();
/// assert!(rules.get(function!(ops::relu))?.is_some());
/// assert_eq!(rules.get(function!(ops::lstm))?.and_then(Rule::reason), Some("lines have no loops"));
/// # Ok::<(), Error>(())
/// ```
pub struct Rule<C: 'static>(Kind<C>);

enum Kind<C: 'static> {
    Emit(Arc<Emit<C>>),
    As(Write),
    Refused(&'static str),
}

impl<C> Rule<C> {
    /// Writes calls as operations of the format.
    pub fn new(emit: impl Fn(&mut C, &OpCall<'_>) -> Result<Val> + Send + Sync + 'static) -> Self {
        Rule(Kind::Emit(Arc::new(emit)))
    }

    /// Writes calls as what other functions give for their arguments.
    pub const fn decomposed(rule: fn(&DecomposedCall<'_>) -> Result<Value>) -> Self {
        Rule(Kind::As(rule))
    }

    /// Says why the format cannot have the function.
    pub const fn refused(reason: &'static str) -> Self {
        Rule(Kind::Refused(reason))
    }

    /// Why the format cannot have the function, if it cannot.
    pub fn reason(&self) -> Option<&'static str> {
        match self.0 {
            Kind::Refused(reason) => Some(reason),
            _ => None,
        }
    }

    /// Writes a call.
    ///
    /// # Errors
    /// Returns the rule's error, and one if the rule writes no operations.
    pub fn write(&self, cx: &mut C, call: &OpCall<'_>) -> Result<Val> {
        match &self.0 {
            Kind::Emit(emit) => {
                let val = emit(cx, call)?;
                call.all_are_read()?;
                Ok(val)
            }
            Kind::As(_) | Kind::Refused(_) => Err(Error::msg(format_args!(
                "`{}` has no operations",
                call.function().path()
            ))),
        }
    }
}

impl<C> Clone for Rule<C> {
    fn clone(&self) -> Self {
        Rule(match &self.0 {
            Kind::Emit(emit) => Kind::Emit(emit.clone()),
            Kind::As(rule) => Kind::As(*rule),
            Kind::Refused(reason) => Kind::Refused(reason),
        })
    }
}

impl<C> fmt::Debug for Rule<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Emit(_) => "Rule(operations)",
            Kind::As(_) => "Rule(other functions)",
            Kind::Refused(reason) => reason,
        })
    }
}

/// What a format makes of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Operations of the format.
    Operations,
    /// Calls of other functions.
    OtherFunctions,
    /// An error, with this reason.
    Refused(&'static str),
}

/// How a function of the core set is written by others of it that every format has: an entry of a
/// [`FunctionTable`]. It is used where a format has no [`Rule`] for the function.
///
/// ```
/// use fx_nn::ir::FunctionTable;
/// use fx_nn::lowering::Composed;
/// use fx_nn::prelude::*;
/// let composed = FunctionTable::<Composed>::registered()?;
/// assert!(composed.get(function!(ops::hypot)).is_some());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Composed(pub fn(&DecomposedCall<'_>) -> Result<Value>);

/// How the functions of the core set that have a [`Composed`] entry are written by others.
///
/// ```
/// use fx_nn::lowering::compositions;
/// use fx_nn::prelude::*;
/// let mut gm = symbolic_trace(traced!(|x: &Tensor| ops::signbit(x)))?;
/// gm.propagate_shapes(&Tensor::rand(3)?)?;
/// assert!(gm.apply(&compositions()?)?.changed);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if two entries are registered for one function.
pub fn compositions() -> Result<Decompositions> {
    let registered = FunctionTable::<Composed>::registered()?;
    let mut table = Decompositions::new();
    for (function, composed) in registered.iter() {
        table = table.rule(function, composed.0);
    }
    Ok(table)
}

/// The rules of a format: the user's, and behind them those that crates have registered.
pub struct Rules<C: 'static> {
    own: FunctionTable<Rule<C>>,
}

impl<C> Clone for Rules<C> {
    fn clone(&self) -> Self {
        Rules {
            own: self.own.clone(),
        }
    }
}

impl<C> fmt::Debug for Rules<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own.iter();
        f.debug_map()
            .entries(own.map(|(function, rule)| (function.path(), rule)))
            .finish()
    }
}

impl<C> Default for Rules<C> {
    fn default() -> Self {
        Rules {
            own: FunctionTable::new(),
        }
    }
}

impl<C> Rules<C> {
    /// Gives a function a rule, in place of the one that it has.
    pub fn insert(&mut self, function: Function, rule: Rule<C>) {
        self.own.insert(function, rule);
    }

    /// The rule of a function.
    ///
    /// # Errors
    /// Returns an error if two rules are registered for one function.
    pub fn get(&self, function: Function) -> Result<Option<&Rule<C>>> {
        match self.own.get(function) {
            Some(own) => Ok(Some(own)),
            None => Ok(FunctionTable::<Rule<C>>::registered()?.get(function)),
        }
    }

    /// What the format makes of a function; `None` if nothing is known of it.
    ///
    /// # Errors
    /// As [`get`](Rules::get).
    pub fn form(&self, function: Function) -> Result<Option<Form>> {
        Ok(match self.get(function)?.map(|rule| &rule.0) {
            Some(Kind::Emit(_)) => Some(Form::Operations),
            Some(Kind::As(_)) => Some(Form::OtherFunctions),
            Some(Kind::Refused(reason)) => Some(Form::Refused(reason)),
            None => written_by_others(function)?.map(|_| Form::OtherFunctions),
        })
    }

    /// How functions without operations of the format are written by others.
    ///
    /// # Errors
    /// As [`get`](Rules::get).
    pub fn decompositions(&self) -> Result<Decompositions> {
        let core = FunctionTable::<CoreSet>::registered()?;
        let registered = FunctionTable::<Rule<C>>::registered()?;
        let functions = core.iter().map(|(function, _)| function);
        let functions = functions.chain(registered.iter().map(|(function, _)| function));
        let functions = functions.chain(self.own.iter().map(|(function, _)| function));
        let mut table = Decompositions::new();
        for function in functions {
            let rule = match self.get(function)?.map(|rule| &rule.0) {
                Some(Kind::As(rule)) => Some(*rule),
                Some(_) => None,
                None => written_by_others(function)?,
            };
            if let Some(rule) = rule {
                table = table.rule(function, rule);
            }
        }
        Ok(table)
    }
}

/// How a function is written by others in every format, if it is.
fn written_by_others(function: Function) -> Result<Option<Write>> {
    Ok(
        match FunctionTable::<CoreSet>::registered()?.get(function) {
            Some(CoreSet::Decomposed(rule)) => Some(*rule),
            _ => FunctionTable::<Composed>::registered()?
                .get(function)
                .map(|composed| composed.0),
        },
    )
}
