//! Signatures: named parameters of functions and modules, and binding a call's arguments to them.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

use super::param_type::ParamType;
use crate::error::{Error, ErrorKind, Result};
use crate::text;
use crate::value::tensor_types::only_tensor_type;
use crate::value::value::Value;

/// A plain value that can be a default in a signature.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
#[non_exhaustive]
pub enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Cow<'static, str>),
}

impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::None => Value::None,
            Literal::Bool(x) => Value::Bool(*x),
            Literal::Int(x) => Value::Int(*x),
            Literal::Float(x) => Value::Float(*x),
            Literal::Str(x) => Value::Str(x.as_ref().into()),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::None => f.write_str("None"),
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(n) => write!(f, "{n}"),
            Literal::Float(x) => write!(f, "{x:?}"),
            Literal::Str(s) => write!(f, "{s:?}"),
        }
    }
}

/// How an argument is passed in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamKind {
    /// By position, or by name.
    Positional,
    /// Recorded by name (`#[kw]`).
    Keyword,
}

/// One parameter of a function or of a module's `forward`.
///
/// ```
/// use fx_core::ir::{Literal, ParamKind, ParamSpec};
/// let dim = ParamSpec::of_text("dim", "i64").keyword().default(Literal::Int(-1));
/// assert_eq!((dim.kind, dim.default), (ParamKind::Keyword, Some(Literal::Int(-1))));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ParamSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its Rust type, as written.
    pub ty: Cow<'static, str>,
    /// Its type, as data.
    pub param_type: ParamType,
    /// How it is passed.
    pub kind: ParamKind,
    /// Its default value.
    pub default: Option<Literal>,
    /// Whether it can be symbolic while tracing.
    pub symbolic: bool,
    /// Whether callers may pass anything that converts into the type (`impl Into<T>`).
    pub into: bool,
}

impl ParamSpec {
    /// A positional parameter without a default; `ty` is the text of its type.
    pub const fn positional(name: &'static str, ty: &'static str, param_type: ParamType) -> Self {
        ParamSpec {
            name: Cow::Borrowed(name),
            ty: Cow::Borrowed(ty),
            param_type,
            kind: ParamKind::Positional,
            default: None,
            symbolic: true,
            into: false,
        }
    }

    /// Makes it recorded by name.
    #[must_use]
    pub const fn keyword(mut self) -> Self {
        self.kind = ParamKind::Keyword;
        self
    }

    /// Sets its default value.
    #[must_use]
    pub const fn default(mut self, default: Literal) -> Self {
        let former = self.default.replace(default);
        // Nothing may be dropped in a `const fn`; a default is set once.
        std::mem::forget(former);
        self
    }

    /// Sets whether it can be symbolic while tracing.
    #[must_use]
    pub const fn symbolic(mut self, symbolic: bool) -> Self {
        self.symbolic = symbolic;
        self
    }

    /// Sets whether callers may pass anything that converts into the type.
    #[must_use]
    pub const fn takes_into(mut self, into: bool) -> Self {
        self.into = into;
        self
    }

    /// A positional parameter without a default, with its type as text; any value if the text is
    /// not a type.
    ///
    /// ```
    /// use fx_core::ir::{ParamSpec, ParamType};
    /// use fx_core::trace::FromValue;
    /// use fx_core::value::Int;
    /// let sizes = ParamSpec::of_text("sizes", "Vec<Int>");
    /// assert_eq!(sizes.param_type, <Vec<Int> as FromValue>::TYPE);
    /// assert_eq!(ParamSpec::of_text("x", "no type").param_type, ParamType::AnyValue);
    /// ```
    pub fn of_text(name: impl Into<Cow<'static, str>>, ty: impl Into<Cow<'static, str>>) -> Self {
        let ty = ty.into();
        ParamSpec {
            name: name.into(),
            param_type: ty.parse().unwrap_or(ParamType::AnyValue),
            ty,
            kind: ParamKind::Positional,
            default: None,
            symbolic: true,
            into: false,
        }
    }

    /// The parameter for an input of a graph, with its declared type. An undeclared type is the
    /// only registered tensor type, or any value if there are none or several.
    pub(crate) fn of_input(name: &str, ty: Option<&str>, default: Option<Literal>) -> Self {
        let ty: Cow<'static, str> = match (ty, only_tensor_type()) {
            (Some(ty), _) => ty.to_string().into(),
            (None, Some(tensor)) => format!("&{}", tensor.name()).into(),
            (None, None) => "&Value".into(),
        };
        ParamSpec {
            default,
            ..ParamSpec::of_text(name.to_string(), ty)
        }
    }

    /// Its type as the annotation of an input: as written, except that a tensor type whose name is
    /// shared by others is given by its path.
    pub(crate) fn annotation(&self) -> Cow<'_, str> {
        let by = match self.param_type {
            ParamType::Reference(_) => "&",
            _ => "",
        };
        match self.param_type.referred() {
            tensor @ ParamType::TensorOf(name) if name.is_shared() => {
                format!("{by}{tensor}").into()
            }
            _ => self.ty.as_ref().into(),
        }
    }

    /// Whether its type is an `Option`.
    pub(crate) fn is_optional(&self) -> bool {
        self.param_type.optional().is_some()
    }
}

impl fmt::Display for ParamSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.ty)?;
        if let Some(default) = &self.default {
            write!(f, " = {default}")?;
        }
        Ok(())
    }
}

/// Binds a call's arguments to parameters, one result per parameter, in order; `None` if the
/// default applies.
///
/// # Errors
/// Returns an error for too many arguments, a name that is unknown or passed twice, or a parameter
/// with neither argument nor default.
pub fn bind<A>(
    callee: &str,
    params: &[ParamSpec],
    args: impl IntoIterator<Item = A>,
    kwargs: impl IntoIterator<Item = (impl AsRef<str>, A)>,
) -> Result<SmallVec<[Option<A>; 8]>> {
    let fail = |problem: String| -> Error { arguments_error(callee, params, problem) };
    let mut bound: SmallVec<[Option<A>; 8]> = SmallVec::with_capacity(params.len());
    let mut given = 0usize;
    for arg in args {
        given += 1;
        if bound.len() < params.len() {
            bound.push(Some(arg));
        }
    }
    if given > params.len() {
        return Err(arity_error(callee, params, given));
    }
    bound.resize_with(params.len(), || None);
    for (name, arg) in kwargs {
        let name = name.as_ref();
        let Some(i) = params.iter().position(|p| p.name == name) else {
            return Err(fail(format!("has no parameter `{name}`")));
        };
        if bound[i].is_some() {
            return Err(fail(format!("got more than one value for `{name}`")));
        }
        bound[i] = Some(arg);
    }
    let mut places = bound.iter().zip(params);
    match places.find(|(given, param)| given.is_none() && param.default.is_none()) {
        Some((_, param)) => Err(fail(format!("is missing its argument `{}`", param.name))),
        None => Ok(bound),
    }
}

/// The error for a call, or a kernel, with the wrong number of arguments.
pub fn arity_error(callee: &str, params: &[ParamSpec], given: usize) -> Error {
    let needed = text::count(params.len(), "argument");
    let problem = format!("takes {needed} but {}", text::given(given));
    arguments_error(callee, params, problem)
}

/// The error for a call whose arguments do not fit, with the full signature.
pub(crate) fn arguments_error(callee: &str, params: &[ParamSpec], problem: String) -> Error {
    ErrorKind::Arguments {
        callee: callee.to_string(),
        problem,
        signature: params
            .iter()
            .map(ParamSpec::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
    .into()
}
