//! Modes: they see each call on a thread and may change it, the innermost first.
//!
//! Invariant: a mode does not see the calls that it makes itself, and the stack is restored when a
//! scope ends, also on unwinding.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

use super::call_args::{CallArgs, CallForm};
use super::scope;
use crate::error::Result;
use crate::ir::function::Function;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::value::object::short_type_name;
use crate::value::value::Value;

/// Sees every call of a function, a method, an operator or a module inside [`with_mode`], before it
/// runs or is recorded: eager calls, calls that are being traced, and the steps of graph modules,
/// run or interpreted.
///
/// A module is one call, and the calls of its body come while `next` runs. A mode does not see the
/// calls that it makes itself; modes around it do. Operators of known numbers
/// ([`Int`](crate::value::Int) and the like) are plain Rust, not calls.
///
/// Count what a model calls:
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use fx_core::prelude::*;
/// use fx_core::trace::{Mode, ModeCall, Next, with_mode};
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
///
/// #[derive(Default)]
/// struct Count(Cell<usize>);
/// impl Mode for Count {
///     fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
///         self.0.set(self.0.get() + 1);
///         next.call(call)
///     }
/// }
///
/// let count = Rc::new(Count::default());
/// let y: Float = with_mode(count.clone(), || double(double(Float::from(1.5))?))?;
/// assert_eq!((count.0.get(), f64::from_value(Value::of(y))?), (2, 6.0));
/// # Ok::<(), Error>(())
/// ```
///
/// Change arguments and results:
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::trace::{Mode, ModeCall, Next, with_mode};
/// #[wrap] fn exact(x: Float) -> Result<Float> { Ok(x) }
///
/// /// Every number that goes into a call is rounded.
/// struct Rounded;
/// impl Mode for Rounded {
///     fn call(&self, mut call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
///         for arg in &mut call.args.args {
///             if let Value::Float(x) = arg { *x = x.round(); }
///         }
///         next.call(call)
///     }
/// }
/// let y = with_mode(Rounded, || exact(Float::from(1.7)))?;
/// assert_eq!(f64::from_value(Value::of(y))?, 2.0);
/// # Ok::<(), Error>(())
/// ```
pub trait Mode {
    /// Handles a call and returns its result, usually that of [`next.call(call)`](Next::call).
    ///
    /// # Errors
    /// Returns an error if the mode refuses the call, or the call fails.
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value>;
}

impl<M: Mode + ?Sized> Mode for Rc<M> {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        (**self).call(call, next)
    }
}

/// What a [`ModeCall`] calls.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ModeCallee<'c> {
    /// A function, an operator, or a method whose type is known.
    Function(Function),
    /// A method of a symbolic value, by name.
    Method(&'c str),
    /// A module.
    Module(&'c dyn Module),
}

/// A call on its way through the modes.
#[derive(Debug)]
pub struct ModeCall<'c> {
    callee: ModeCallee<'c>,
    pub(super) form: CallForm,
    /// The arguments. A function's and a module's are in the order of the parameters, defaults
    /// filled in.
    pub args: CallArgs,
}

impl<'c> ModeCall<'c> {
    /// A call of a function, for a mode that makes one of another.
    pub fn function_call(function: Function, args: CallArgs) -> Self {
        ModeCall::new(ModeCallee::Function(function), CallForm::Function, args)
    }

    pub(super) fn new(callee: ModeCallee<'c>, form: CallForm, args: CallArgs) -> Self {
        ModeCall { callee, form, args }
    }

    /// What is called.
    pub fn callee(&self) -> ModeCallee<'c> {
        self.callee
    }

    /// The function that is called.
    pub fn function(&self) -> Option<Function> {
        match self.callee {
            ModeCallee::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The module that is called.
    pub fn module(&self) -> Option<&'c dyn Module> {
        match self.callee {
            ModeCallee::Module(module) => Some(module),
            _ => None,
        }
    }

    /// The function's or the method's name, or the module's type.
    pub fn name(&self) -> String {
        match self.callee {
            ModeCallee::Function(function) => function.name().to_string(),
            ModeCallee::Method(name) => name.to_string(),
            ModeCallee::Module(module) => short_type_name(module.type_name()),
        }
    }

    /// Whether a trace records the call as one node by default: all except calls of modules
    /// that are not leaves.
    pub fn is_leaf(&self) -> bool {
        self.module().is_none_or(|module| module.is_leaf())
    }

    /// The argument of a parameter, if the callee has one of that name.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        let params: &[ParamSpec] = match self.callee {
            ModeCallee::Function(function) => function.params(),
            ModeCallee::Module(module) => module.params(),
            ModeCallee::Method(_) => &[],
        };
        self.args.argument(params, name)
    }
}

/// What follows a mode: the modes around it, then the call itself.
#[derive(Debug)]
pub struct Next<'c> {
    /// How many modes are left.
    at: usize,
    base: &'c Base,
}

/// Runs or records a call after all modes.
#[derive(Debug)]
pub(super) struct Base {
    /// How many modes the call's body sees.
    pub visible: usize,
    pub location: &'static Location<'static>,
    pub run: fn(ModeCall<'_>, &'static Location<'static>) -> Result<Value>,
}

impl Next<'_> {
    /// Continues with a call: the one that came in, or another.
    ///
    /// # Errors
    /// Returns the error of the modes around, or of the call itself.
    pub fn call(self, call: ModeCall<'_>) -> Result<Value> {
        let Some(at) = self.at.checked_sub(1) else {
            let _seen = scope::seeing_modes(self.base.visible);
            return (self.base.run)(call, self.base.location);
        };
        let mode = MODES.with_borrow(|modes| modes.get(at).cloned());
        let next = Next {
            at,
            base: self.base,
        };
        let Some(mode) = mode else {
            return next.call(call);
        };
        let _seen = scope::seeing_modes(at);
        mode.call(call, next)
    }
}

thread_local! {
    static MODES: RefCell<Vec<Rc<dyn Mode>>> = const { RefCell::new(Vec::new()) };
}

/// Passes a call to the innermost mode that is visible here.
pub(super) fn through_modes(call: ModeCall<'_>, base: &Base) -> Result<Value> {
    Next {
        at: base.visible,
        base,
    }
    .call(call)
}

/// Runs `body` with a mode: the innermost one of this thread until `body` ends.
///
/// To inspect a mode afterwards, pass it as an [`Rc`].
pub fn with_mode<R>(mode: impl Mode + 'static, body: impl FnOnce() -> R) -> R {
    let _pushed = Pushed::new(Rc::new(mode));
    body()
}

/// A mode on top of the stack. When dropped, also on unwinding, it restores the stack.
struct Pushed {
    /// How many modes are below it.
    below: usize,
    /// Modes further in, which do not see the calls made here.
    aside: Vec<Rc<dyn Mode>>,
    _seen: scope::Seeing,
}

impl Pushed {
    fn new(mode: Rc<dyn Mode>) -> Self {
        let visible = scope::visible_modes();
        let (below, aside) = MODES.with_borrow_mut(|modes| {
            let below = visible.min(modes.len());
            let aside = modes.split_off(below);
            modes.push(mode);
            (below, aside)
        });
        Pushed {
            below,
            aside,
            _seen: scope::seeing_modes(visible + 1),
        }
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let ended = MODES.with_borrow_mut(|modes| {
            let ended = modes.split_off(self.below.min(modes.len()));
            modes.append(&mut self.aside);
            ended
        });
        // Dropped outside the borrow: a mode's own drop may make calls.
        drop(ended);
    }
}
