//! `Spec`: what an argument will be, without its data.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::claim::Claim;
use super::env::ShapeEnv;
use crate::error::{Error, Result};
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
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
    Known(ValueMeta),
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
        Spec::of_shape(shape, |meta| meta.dtype(dtype))
    }

    /// What has a shape and no element type, such as a tensor of text.
    pub fn untyped<S: Into<SpecSize>>(shape: impl IntoIterator<Item = S>) -> Self {
        Spec::of_shape(shape, |meta| meta)
    }

    fn of_shape<S: Into<SpecSize>>(
        shape: impl IntoIterator<Item = S>,
        typed: impl FnOnce(TensorMeta) -> TensorMeta,
    ) -> Self {
        let sizes = shape.into_iter().map(|size| size.into().0);
        Spec::of_kind(match sizes.collect::<Result<Vec<Dim>, String>>() {
            Ok(sizes) => Kind::Known(ValueMeta::from(typed(TensorMeta::new(sizes)))),
            Err(problem) => Kind::Wrong(problem),
        })
    }

    /// What a value is: of a tensor, its shape and what else it reports.
    pub fn of(value: impl IntoValue) -> Self {
        Spec::of_fake(ValueMeta::of_argument(&value.into_value()))
    }

    /// What several values are: a size that differs between them gets a name, `s0`, `s1` and so on.
    /// Sizes that are equal in each of them have one name.
    ///
    /// ```
    /// use fx_core::shapes::Spec;
    /// let spec = Spec::of_examples([(8, 3, 8), (16, 3, 16)]);
    /// assert_eq!(spec.to_string(), "(s0, 3, s0)");
    /// ```
    pub fn of_examples<V: IntoValue>(examples: impl IntoIterator<Item = V>) -> Self {
        let examples = examples.into_iter();
        let examples: Vec<ValueMeta> = examples
            .map(|v| ValueMeta::of_argument(&v.into_value()))
            .collect();
        let joined = Joining::default().join(&examples.iter().collect::<Vec<_>>());
        joined.unwrap_or_else(|problem| Spec::of_kind(Kind::Wrong(problem)))
    }

    fn of_fake(fake: ValueMeta) -> Self {
        let all = |items: Vec<ValueMeta>| items.into_iter().map(Spec::of_fake).collect();
        Spec::of_kind(match fake {
            ValueMeta::List(items) => Kind::List(all(items)),
            ValueMeta::Tuple(items) => Kind::Tuple(all(items)),
            ValueMeta::Dict(items) => {
                let items = items.into_iter();
                Kind::Dict(
                    items
                        .map(|(key, item)| (key, Spec::of_fake(item)))
                        .collect(),
                )
            }
            other => Kind::Known(other),
        })
    }

    /// A whole number: a number, or a name that stands for any.
    pub fn int(size: impl Into<SpecSize>) -> Self {
        Spec::of_kind(match size.into().0 {
            Ok(dim) => Kind::Known(ValueMeta::Int(dim)),
            Err(problem) => Kind::Wrong(problem),
        })
    }

    /// A number that a run decides.
    pub fn float() -> Self {
        Spec::of_kind(Kind::Known(ValueMeta::Float(None)))
    }

    /// A truth that a run decides.
    pub fn bool() -> Self {
        Spec::of_kind(Kind::Known(ValueMeta::Bool(None)))
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
            (Kind::Known(ValueMeta::Single(meta)), Ok(name)) => {
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
    /// let wrong = gm.infer_shapes(&[Spec::int("n").constrained("n <= 64").constrained("n > 64")]);
    /// assert!(wrong.is_err_and(|e| e.to_string().contains("`n >= 65` cannot hold: n <= 64")));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// The name of a size stands for 1 or more, unless a constraint says `n >= 0`; that of a number which is no size of
    /// a tensor of the call is any whole number:
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::shapes::Spec;
    /// let mut gm = symbolic_trace(traced!(|n: Int| n.floordiv(4)))?;
    /// gm.infer_shapes(&[Spec::int("n")])?;
    /// assert_eq!(gm.forward::<i64>(-8)?, -2);
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

    /// Takes over what other specs say of the sizes of the whole call: their constraints and hints.
    #[must_use]
    pub fn constrained_like<'s>(mut self, others: impl IntoIterator<Item = &'s Spec>) -> Self {
        let mut left: Vec<&Spec> = others.into_iter().collect();
        left.reverse();
        while let Some(spec) = left.pop() {
            self.constraints.extend(spec.constraints.iter().cloned());
            self.hints.extend(spec.hints.iter().cloned());
            match &spec.kind {
                Kind::List(items) | Kind::Tuple(items) => left.extend(items.iter().rev()),
                Kind::Dict(items) => left.extend(items.iter().rev().map(|(_, item)| item)),
                Kind::Known(_) | Kind::Wrong(_) => {}
            }
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

    /// The spec of a value that a node's entry describes.
    ///
    /// ```
    /// use fx_core::ir::ValueMeta;
    /// use fx_core::prelude::*;
    /// use fx_core::shapes::Spec;
    /// let mut gm = symbolic_trace(traced!(|n: Int| n * 2))?;
    /// gm.infer_shapes(&[Spec::int("n")])?;
    /// let entry = gm.graph().find_name("mul").and_then(|node| node.meta::<ValueMeta>());
    /// assert_eq!(entry.map(Spec::of_meta).transpose()?.map(|spec| spec.to_string()).as_deref(), Some("2*n"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the entry does not say enough.
    pub fn of_meta(meta: &ValueMeta) -> Result<Self> {
        match meta.is_opaque() && !meta.has_unranked() {
            false => Ok(Spec::of_fake(meta.clone())),
            true => Err(Error::msg(format_args!(
                "what is known of a value, {meta}, says not what it is"
            ))),
        }
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

    /// What it says of tensors, and of numbers, as one value.
    pub(crate) fn fakes(&self) -> Vec<&ValueMeta> {
        let mut found = Vec::new();
        let mut left = vec![self];
        while let Some(spec) = left.pop() {
            match &spec.kind {
                Kind::Known(fake) => found.push(fake),
                Kind::Wrong(_) => {}
                Kind::List(items) | Kind::Tuple(items) => left.extend(items),
                Kind::Dict(items) => left.extend(items.iter().map(|(_, item)| item)),
            }
        }
        found
    }

    /// Makes its symbols, constraints and hints known.
    pub(crate) fn declare(&self, env: &mut ShapeEnv) -> Result<()> {
        match &self.kind {
            Kind::Known(fake) => env.declare_value(fake),
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
            env.let_be_zero(claim);
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
    pub(crate) fn leaves(&self, leaves: &mut Vec<ValueMeta>) -> Result<Value> {
        Ok(match &self.kind {
            Kind::Known(ValueMeta::Plain(value)) => value.clone(),
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

/// What several values have in common.
#[derive(Default)]
struct Joining {
    /// The sizes of each name, one for each of the values.
    names: Vec<Vec<Dim>>,
}

impl Joining {
    fn join(&mut self, of: &[&ValueMeta]) -> Result<Spec, String> {
        let Some((first, others)) = of.split_first() else {
            return Err("there are no examples".to_string());
        };
        let each =
            |item: &dyn Fn(&ValueMeta) -> Option<ValueMeta>| -> Result<Vec<ValueMeta>, String> {
                let items = of.iter().map(|fake| item(fake)).collect::<Option<_>>();
                items.ok_or_else(|| {
                    format!(
                        "the examples differ in more than sizes: one is {}",
                        first.describe()
                    )
                })
            };
        let mut items = |count: usize| -> Result<Vec<Spec>, String> {
            let at = |at: usize| {
                each(&move |fake| fake.items().filter(|i| i.len() == count)?.get(at).cloned())
            };
            let mut join = |fakes: Vec<ValueMeta>| self.join(&fakes.iter().collect::<Vec<_>>());
            (0..count).map(|i| join(at(i)?)).collect()
        };
        Ok(match first {
            ValueMeta::List(own) => Spec::of_kind(Kind::List(items(own.len())?)),
            ValueMeta::Tuple(own) => Spec::of_kind(Kind::Tuple(items(own.len())?)),
            ValueMeta::Dict(own) => {
                let keys = own.iter().map(|(key, _)| key);
                let joined = keys.map(|key| {
                    let fakes = each(&|fake| match fake {
                        ValueMeta::Dict(other) if other.len() == own.len() => {
                            let found = other.iter().find(|(known, _)| known == key);
                            found.map(|(_, item)| item.clone())
                        }
                        _ => None,
                    })?;
                    Ok((key.clone(), self.join(&fakes.iter().collect::<Vec<_>>())?))
                });
                Spec::of_kind(Kind::Dict(joined.collect::<Result<_, String>>()?))
            }
            ValueMeta::Int(_) => {
                let sizes = each(&|fake| fake.dim().ok().map(ValueMeta::Int))?;
                let sizes = sizes.iter().filter_map(|size| size.dim().ok()).collect();
                Spec::of_kind(Kind::Known(ValueMeta::Int(self.size(sizes))))
            }
            ValueMeta::Single(own) => {
                let metas = each(&|fake| {
                    let meta = fake.as_tensor()?;
                    let fits = meta.shape.len() == own.shape.len() && meta.dtype == own.dtype;
                    fits.then(|| fake.clone())
                })?;
                let metas: Vec<_> = metas.iter().filter_map(ValueMeta::as_tensor).collect();
                let mut joined = (**own).clone();
                for (dim, size) in joined.shape.iter_mut().enumerate() {
                    *size = self.size(metas.iter().map(|meta| meta.shape[dim].clone()).collect());
                }
                if joined.shape != own.shape {
                    joined.strides = None;
                }
                Spec::of_kind(Kind::Known(ValueMeta::from(joined)))
            }
            ValueMeta::Float(_) if !others.iter().all(|other| other == first) => {
                each(&|fake| matches!(fake, ValueMeta::Float(_)).then(ValueMeta::none))?;
                Spec::float()
            }
            ValueMeta::Bool(_) if !others.iter().all(|other| other == first) => {
                each(&|fake| matches!(fake, ValueMeta::Bool(_)).then(ValueMeta::none))?;
                Spec::bool()
            }
            other => {
                each(&|fake| (fake.describe() == other.describe()).then(ValueMeta::none))?;
                Spec::of_kind(Kind::Known((*other).clone()))
            }
        })
    }

    /// A size that is the same in all values, or has a name.
    fn size(&mut self, of: Vec<Dim>) -> Dim {
        if let [first, others @ ..] = &*of
            && others.iter().all(|other| other == first)
        {
            return first.clone();
        }
        let known = self.names.iter().position(|known| *known == of);
        let at = known.unwrap_or_else(|| {
            self.names.push(of);
            self.names.len() - 1
        });
        Dim::symbol(&format!("s{at}")).expect("a letter and a number are a name")
    }
}

fn all(items: &[Spec], leaves: &mut Vec<ValueMeta>) -> Result<Box<[Value]>> {
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
            Kind::Known(ValueMeta::Single(meta)) => meta.fmt(f),
            Kind::Known(fake) => f.write_str(&fake.describe()),
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
