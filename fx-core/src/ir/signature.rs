//! Signatures: the named parameters of functions and modules, and binding a call's arguments to them.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

use crate::error::{Error, ErrorKind, Result};
use crate::value::value::Value;

/// A plain value that can stand in a signature as a default.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
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

/// How an argument is given in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// By position, or by name.
    Positional,
    /// Recorded by name (`#[kw]`).
    Keyword,
}

/// One parameter of a function or of a module's `forward`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its Rust type, as written.
    pub ty: Cow<'static, str>,
    /// How it is given.
    pub kind: ParamKind,
    /// What it is when it is not given.
    pub default: Option<Literal>,
    /// Whether it can be symbolic while tracing.
    pub symbolic: bool,
    /// Whether callers may give what converts into the type (`impl Into<T>`).
    pub into: bool,
}

impl ParamSpec {
    /// A positional parameter without a default.
    pub const fn positional(name: &'static str, ty: &'static str) -> Self {
        ParamSpec {
            name: Cow::Borrowed(name),
            ty: Cow::Borrowed(ty),
            kind: ParamKind::Positional,
            default: None,
            symbolic: true,
            into: false,
        }
    }

    /// Whether its type is an `Option`.
    pub(crate) fn is_optional(&self) -> bool {
        let name = self.ty.split('<').next().unwrap_or_default().trim();
        name == "Option" || name.ends_with("::Option")
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

/// Binds a call's arguments to parameters, one result each, in the parameters' order; `None` where a default stands.
///
/// # Errors
/// Too many arguments, a name that is unknown or given twice, or a parameter without argument and default.
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
        return Err(fail(format!(
            "takes {} but {given} were given",
            plural(params.len(), "argument")
        )));
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

/// The error of a call whose arguments do not fit, with the signature spelt out.
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

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
