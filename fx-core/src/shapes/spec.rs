//! `Spec`: what an argument will be, without its data.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::claim::Claim;
use super::env::ShapeEnv;
use super::fake::Fake;
use crate::error::{Error, Result};
use crate::ir::value_meta::TensorMeta;
use crate::location::SourceLocation;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::object::Object;
use crate::value::value::{IntoValue, Value};

/// What an argument of a graph will be: the shape and type of a tensor, a whole number, or a
/// structure of them. Sizes are numbers or names; one name is one size, wherever it stands.
///
/// ```
/// use fx_core::shapes::{Spec, spec};
/// let image = spec!["batch", 3, 224, "2*w"; F32];
/// assert_eq!(image.to_string(), "float32[batch, 3, 224, 2*w]");
/// let pair = Spec::tuple([image, Spec::int("n")]);
/// assert_eq!(pair.to_string(), "(float32[batch, 3, 224, 2*w], n)");
/// ```
#[derive(Debug, Clone)]
pub struct Spec {
    kind: Kind,
    /// What must hold of the sizes, with the line that says so.
    constraints: Vec<(Claim, SourceLocation)>,
    hints: Vec<(Arc<str>, i64)>,
}

#[derive(Debug, Clone)]
enum Kind {
    Known(Fake),
    /// A mistake in it, returned when it is used.
    Wrong(String),
    List(Vec<Spec>),
    Tuple(Vec<Spec>),
    Dict(Vec<(Arc<str>, Spec)>),
}

/// A size of a [`Spec`]: a number, a [`Dim`], or its text.
#[derive(Debug, Clone)]
pub struct SpecSize(Result<Dim, String>);

macro_rules! sizes {
    ($($ty:ty)*) => {$(
        impl From<$ty> for SpecSize {
            fn from(size: $ty) -> Self {
                SpecSize(Ok(size.into()))
            }
        }
    )*};
}

sizes! { usize i64 i32 Dim &Dim }

impl From<&str> for SpecSize {
    fn from(text: &str) -> Self {
        SpecSize(text.parse().map_err(|error: Error| error.to_string()))
    }
}

impl Spec {
    fn of_kind(kind: Kind) -> Self {
        Spec {
            kind,
            constraints: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// A tensor of a shape and an element type.
    pub fn tensor<S: Into<SpecSize>>(shape: impl IntoIterator<Item = S>, dtype: DType) -> Self {
        let sizes = shape.into_iter().map(|size| size.into().0);
        Spec::of_kind(match sizes.collect::<Result<Vec<Dim>, String>>() {
            Ok(sizes) => Kind::Known(Fake::tensor(TensorMeta::new(sizes).dtype(dtype))),
            Err(problem) => Kind::Wrong(problem),
        })
    }

    /// What a value is: of a tensor, its shape and what else it reports.
    pub fn of(value: impl IntoValue) -> Self {
        Spec::of_kind(Kind::Known(Fake::of(&value.into_value())))
    }

    /// A whole number.
    pub fn int(size: impl Into<SpecSize>) -> Self {
        Spec::of_kind(match size.into().0 {
            Ok(dim) => Kind::Known(Fake::Int(dim)),
            Err(problem) => Kind::Wrong(problem),
        })
    }

    /// A number that a run decides.
    pub fn float() -> Self {
        Spec::of_kind(Kind::Known(Fake::Float(None)))
    }

    /// A truth that a run decides.
    pub fn bool() -> Self {
        Spec::of_kind(Kind::Known(Fake::Bool(None)))
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Spec>) -> Self {
        Spec::of_kind(Kind::List(items.into_iter().collect()))
    }

    /// A tuple.
    pub fn tuple(items: impl IntoIterator<Item = Spec>) -> Self {
        Spec::of_kind(Kind::Tuple(items.into_iter().collect()))
    }

    /// Named values, or a structure with `#[derive(Tree)]`.
    pub fn dict<'k>(items: impl IntoIterator<Item = (&'k str, Spec)>) -> Self {
        let items = items.into_iter().map(|(key, item)| (Arc::from(key), item));
        Spec::of_kind(Kind::Dict(items.collect()))
    }

    /// Gives a dim of a tensor a name: it may have any size.
    ///
    /// ```
    /// use fx_core::shapes::Spec;
    /// use fx_core::value::DType;
    /// let spec = Spec::tensor([8, 16], DType::F32).dynamic(0, "batch");
    /// assert_eq!(spec.to_string(), "float32[batch, 16]");
    /// ```
    #[must_use]
    pub fn dynamic(mut self, dim: usize, name: impl Into<SpecSize>) -> Self {
        let shown = self.to_string();
        let problem = match (&mut self.kind, name.into().0) {
            (Kind::Wrong(_), _) => return self,
            (Kind::Known(Fake::Single(meta)), Ok(name)) => {
                let meta: &mut TensorMeta = Arc::make_mut(meta);
                meta.strides = None;
                match meta.shape.get_mut(dim) {
                    Some(size) => {
                        *size = name;
                        return self;
                    }
                    None => format!("{shown} has no dim {dim}"),
                }
            }
            (_, Err(problem)) => problem,
            (_, Ok(_)) => format!("{shown} has no dims to name"),
        };
        self.kind = Kind::Wrong(problem);
        self
    }

    /// Says what holds of the sizes of the whole call: `h % 32 == 0`, `batch <= 64`, `h == 2*w`.
    /// Shapes get simpler by it, and a run of which it does not hold is an error.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::shapes::Spec;
    /// let mut gm = symbolic_trace(traced!(|n: Int| n.floordiv(4)))?;
    /// let env = gm.infer_shapes(&[Spec::int("n").constrained("n <= 64")])?;
    /// assert!(env.guards()[0].to_string().starts_with("n <= 64"));
    /// let wrong = gm.infer_shapes(&[Spec::int("n").constrained("n < 1")]);
    /// assert!(wrong.is_err_and(|e| e.to_string().contains("`n <= 0` cannot hold: n >= 1")));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn constrained(mut self, claim: &str) -> Self {
        match claim.parse() {
            Ok(claim) => self.constraints.push((claim, Location::caller().into())),
            Err(error) => self.kind = Kind::Wrong(Error::to_string(&error)),
        }
        self
    }

    /// Gives a symbol a value that answers questions about it while tracing, such as whether `n` is
    /// more than 4: each answer is a guard of the graph.
    #[must_use]
    pub fn hint(mut self, name: &str, value: i64) -> Self {
        self.hints.push((name.into(), value));
        self
    }

    /// A value of the spec: tensors without data, numbers without a value.
    ///
    /// # Errors
    /// Returns an error if there is a mistake in the spec.
    pub fn fake_value(&self) -> Result<Value> {
        let all = |items: &[Spec]| items.iter().map(Spec::fake_value).collect::<Result<_>>();
        Ok(match &self.kind {
            Kind::Known(fake) => fake.to_value()?,
            Kind::Wrong(problem) => return Err(Error::msg(problem.clone())),
            Kind::List(items) => Value::List(all(items)?),
            Kind::Tuple(items) => Value::Tuple(all(items)?),
            Kind::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| Ok((key.clone(), item.fake_value()?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
        })
    }

    /// Makes its symbols, constraints and hints known.
    pub(crate) fn declare(&self, env: &mut ShapeEnv) -> Result<()> {
        match &self.kind {
            Kind::Known(fake) => fake.declare(env),
            Kind::Wrong(problem) => return Err(Error::msg(problem.clone())),
            Kind::List(items) | Kind::Tuple(items) => {
                items.iter().try_for_each(|item| item.declare(env))?;
            }
            Kind::Dict(items) => items.iter().try_for_each(|(_, item)| item.declare(env))?,
        }
        for (name, value) in &self.hints {
            env.hint(name, *value);
        }
        Ok(())
    }

    /// Takes the constraints as given.
    pub(crate) fn constrain(&self, env: &mut ShapeEnv) -> Result<()> {
        for (claim, location) in &self.constraints {
            env.location = Some(location.clone());
            let required = env.require(claim);
            required.map_err(|e| Error::msg(format_args!("{location}: {e}")))?;
        }
        match &self.kind {
            Kind::List(items) | Kind::Tuple(items) => {
                items.iter().try_for_each(|item| item.constrain(env))
            }
            Kind::Dict(items) => items.iter().try_for_each(|(_, item)| item.constrain(env)),
            Kind::Known(_) | Kind::Wrong(_) => Ok(()),
        }
    }

    /// As a value whose leaves are numbers: the places of the leaves in the list.
    pub(crate) fn leaves(&self, leaves: &mut Vec<Fake>) -> Result<Value> {
        Ok(match &self.kind {
            Kind::Known(Fake::Plain(value)) => value.clone(),
            Kind::Known(fake) => {
                leaves.push(fake.clone());
                Value::object(Leaf(leaves.len() - 1))
            }
            Kind::Wrong(problem) => return Err(Error::msg(problem.clone())),
            Kind::List(items) => Value::List(all(items, leaves)?),
            Kind::Tuple(items) => Value::Tuple(all(items, leaves)?),
            Kind::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| Ok((key.clone(), item.leaves(leaves)?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
        })
    }
}

fn all(items: &[Spec], leaves: &mut Vec<Fake>) -> Result<Box<[Value]>> {
    items.iter().map(|item| item.leaves(leaves)).collect()
}

/// The place of a leaf of a spec in an argument.
#[derive(Debug)]
pub(crate) struct Leaf(pub usize);

impl Object for Leaf {
    fn to_value(&self) -> Value {
        Value::object(Leaf(self.0))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |items: &[Spec]| {
            let items: Vec<String> = items.iter().map(Spec::to_string).collect();
            items.join(", ")
        };
        match &self.kind {
            Kind::Known(Fake::Single(meta)) => meta.fmt(f),
            Kind::Known(fake) => fake.fmt(f),
            Kind::Wrong(problem) => f.write_str(problem),
            Kind::List(items) => write!(f, "[{}]", all(items)),
            Kind::Tuple(items) => write!(f, "({})", all(items)),
            Kind::Dict(items) => {
                let items = items.iter().map(|(key, item)| format!("{key}: {item}"));
                write!(f, "{{{}}}", items.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A [`Spec`](crate::shapes::Spec) of a tensor: its sizes, each a number, a name or an expression,
/// and its element type.
#[doc(hidden)]
#[macro_export]
macro_rules! spec {
    ($($size:expr),* $(,)?; $dtype:ident) => {
        $crate::shapes::Spec::tensor(
            [$($crate::shapes::SpecSize::from($size)),*],
            $crate::value::DType::$dtype,
        )
    };
}
