//! `ShapeRule`: what a function gives, by what it is given, without data; and the call that it is
//! asked about.

use super::broadcast::broadcast_shapes;
use super::env::ShapeEnv;
use crate::error::{Error, Result};
use crate::ir::function::Function;
use crate::ir::table::by_path;
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::value::Value;

/// The shape and the type of what a function gives, or an error if the arguments do not fit: an
/// entry of a [`FunctionTable`](crate::ir::FunctionTable).
///
/// A rule is asked with sizes that may be symbolic, and asks about them in return: whether two are
/// [`same`](RuleCall::same), whether one [divides](ShapeEnv::divided) another. What no number
/// decides becomes a guard of the graph.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::function_table;
/// use fx_core::ir::ValueMeta;
/// use fx_core::shapes::{ShapeRule, Spec};
/// /// How many windows of a size there are.
/// #[wrap]
/// fn windows(length: Int, size: i64) -> Result<Int> {
///     (length - size)? + 1
/// }
/// function_table! { ShapeRule {
///     function!(windows) => ShapeRule(|call| {
///         let (length, size) = (call.size("length")?, call.int("size")?);
///         call.env().at_least(&length, size)?;
///         Ok(ValueMeta::Int(((length - size)? + 1)?))
///     }),
/// } }
/// let mut gm = symbolic_trace(traced!(|n: Int| windows(n, 5)))?;
/// let env = gm.infer_shapes(&[Spec::int("n")])?;
/// assert_eq!(gm.graph().find_name("windows").and_then(|node| node.meta::<ValueMeta>()).map(ValueMeta::to_string).as_deref(), Some("n - 4"));
/// assert!(env.guards()[0].to_string().starts_with("n >= 5"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ShapeRule(pub fn(&mut RuleCall<'_>) -> Result<ValueMeta>);

/// The registered rule of a function.
///
/// # Errors
/// Returns an error if some function has two.
pub(crate) fn rule_of(function: Function) -> Result<Option<ShapeRule>> {
    Ok(by_path::<ShapeRule>()?.get(function.path()).copied())
}

/// A call that a rule is asked about: an argument per parameter, with defaults filled in.
#[derive(Debug)]
pub struct RuleCall<'c> {
    function: Function,
    args: &'c [ValueMeta],
    env: &'c mut ShapeEnv,
    /// Whether the rule has asked for tensors whose number of dims a run decides.
    pub(crate) knows_unranked: bool,
}

impl<'c> RuleCall<'c> {
    pub(crate) fn new(function: Function, args: &'c [ValueMeta], env: &'c mut ShapeEnv) -> Self {
        RuleCall {
            function,
            args,
            env,
            knows_unranked: false,
        }
    }

    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// The arguments, in the order of the parameters.
    pub fn args(&self) -> &'c [ValueMeta] {
        self.args
    }

    /// The symbols, and what is assumed of them.
    pub fn env(&mut self) -> &mut ShapeEnv {
        self.env
    }

    /// The argument of a parameter.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn arg(&self, param: &str) -> Result<&'c ValueMeta> {
        let mut params = self.function.params().iter();
        let at = params.position(|known| known.name == param);
        at.and_then(|at| self.args.get(at)).ok_or_else(|| {
            Error::msg(format_args!(
                "`{}` has no parameter `{param}`, which its shape rule asks for",
                self.function.name()
            ))
        })
    }

    /// Whether an argument is a tensor whose number of dims a run decides. What a rule says of such a tensor counts if it has
    /// asked; else what the function gives is such a tensor too.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter.
    pub fn is_unranked(&mut self, param: &str) -> Result<bool> {
        self.knows_unranked = true;
        Ok(matches!(self.arg(param)?, ValueMeta::Unranked(_)))
    }

    /// A tensor.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensor(&self, param: &str) -> Result<&'c TensorMeta> {
        match self.arg(param)? {
            ValueMeta::Single(meta) => Ok(meta),
            other => Err(self.unexpected(param, "a tensor", other)),
        }
    }

    /// A tensor, or `None`.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn optional_tensor(&self, param: &str) -> Result<Option<&'c TensorMeta>> {
        match self.arg(param)? {
            none if none.is_none() => Ok(None),
            _ => self.tensor(param).map(Some),
        }
    }

    /// A list of tensors.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn tensors(&self, param: &str) -> Result<Vec<&'c TensorMeta>> {
        let arg = self.arg(param)?;
        let items = arg.items();
        let items = items.ok_or_else(|| self.unexpected(param, "a list of tensors", arg))?;
        let tensor = |item: &'c ValueMeta| match item {
            ValueMeta::Single(meta) => Ok(&**meta),
            other => Err(self.unexpected(param, "a list of tensors", other)),
        };
        items.iter().map(tensor).collect()
    }

    /// A whole number, which may be symbolic.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn size(&self, param: &str) -> Result<Dim> {
        self.arg(param)?.dim().map_err(|e| self.about(param, &e))
    }

    /// A whole number.
    ///
    /// # Errors
    /// Returns an error if the argument is something else, or symbolic.
    pub fn int(&self, param: &str) -> Result<i64> {
        self.arg(param)?.int().map_err(|e| self.about(param, &e))
    }

    /// A whole number, or `None`.
    ///
    /// # Errors
    /// Returns an error if the argument is something else, or symbolic.
    pub fn optional_int(&self, param: &str) -> Result<Option<i64>> {
        match self.arg(param)? {
            none if none.is_none() => Ok(None),
            _ => self.int(param).map(Some),
        }
    }

    /// Whole numbers, which may be symbolic: one, or a list of them.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn sizes(&self, param: &str) -> Result<Vec<Dim>> {
        let arg = self.arg(param)?;
        let sizes: Result<Vec<Dim>> = match arg.items() {
            Some(items) => items.iter().map(ValueMeta::dim).collect(),
            None => arg.dim().map(|dim| vec![dim]),
        };
        sizes.map_err(|e| self.about(param, &e))
    }

    /// `N` whole numbers: a list of them, or one for all.
    ///
    /// # Errors
    /// Returns an error if the argument is something else, or symbolic.
    pub fn ints<const N: usize>(&self, param: &str) -> Result<[i64; N]> {
        let arg = self.arg(param)?;
        let all: Vec<i64> = match arg.items() {
            Some(items) => items.iter().map(ValueMeta::int).collect::<Result<_>>(),
            None => arg.int().map(|one| vec![one; N]),
        }
        .map_err(|e| self.about(param, &e))?;
        let many = all.len();
        all.try_into()
            .map_err(|_| Error::expected(format_args!("{N} numbers for `{param}`"), many))
    }

    /// A boolean.
    ///
    /// # Errors
    /// Returns an error if the argument is something else, or a run decides it.
    pub fn flag(&self, param: &str) -> Result<bool> {
        match self.arg(param)? {
            ValueMeta::Bool(Some(truth)) => Ok(*truth),
            other => Err(self.unexpected(param, "true or false", other)),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn text(&self, param: &str) -> Result<&'c str> {
        match self.arg(param)? {
            ValueMeta::Plain(Value::Str(text)) => Ok(text),
            other => Err(self.unexpected(param, "a text", other)),
        }
    }

    /// A dtype, or `None`.
    ///
    /// # Errors
    /// Returns an error if the argument is something else.
    pub fn dtype(&self, param: &str) -> Result<Option<DType>> {
        match self.arg(param)? {
            ValueMeta::Plain(Value::DType(dtype)) => Ok(Some(*dtype)),
            none if none.is_none() => Ok(None),
            other => Err(self.unexpected(param, "a dtype", other)),
        }
    }

    /// The place of a dim; a negative one counts from the end.
    ///
    /// # Errors
    /// Returns an error if there is no such dim.
    pub fn place(&self, dim: i64, rank: usize) -> Result<usize> {
        // A tensor without dims counts as one of a dim.
        let many = rank.max(1);
        let from_end = if dim < 0 { dim + many as i64 } else { dim };
        let place = usize::try_from(from_end).ok();
        place.filter(|at| *at < many).ok_or_else(|| {
            Error::msg(format_args!(
                "{}: dim {dim} is out of range [-{many}, {}] for a tensor of {rank} dims",
                self.function.name(),
                many - 1
            ))
        })
    }

    /// The places of the dims that a parameter names: one, several, or all for `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the argument is something else.
    pub fn places(&self, param: &str, rank: usize) -> Result<Vec<usize>> {
        let arg = self.arg(param)?;
        let dims: Vec<i64> = match (arg, arg.items()) {
            (none, _) if none.is_none() => return Ok((0..rank).collect()),
            (_, Some([])) => return Ok((0..rank).collect()),
            (_, Some(items)) => items.iter().map(ValueMeta::int).collect::<Result<_>>()?,
            (one, None) => vec![one.int().map_err(|e| self.about(param, &e))?],
        };
        let mut places = Vec::with_capacity(dims.len());
        for dim in dims {
            let place = self.place(dim, rank)?;
            if places.contains(&place) {
                return Err(Error::msg(format_args!(
                    "{}: the dim {dim} is named more than once",
                    self.function.name()
                )));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Returns an error with the text unless two sizes are equal, or can be: then it is a guard.
    ///
    /// # Errors
    /// See above.
    pub fn same(&mut self, a: &Dim, b: &Dim, problem: impl FnOnce() -> String) -> Result<()> {
        match self.env.same(a, b)? {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "{}: {}: {a} and {b} differ",
                self.function.name(),
                problem()
            ))),
        }
    }

    /// The shape of shapes that are broadcast with each other.
    ///
    /// # Errors
    /// Returns an error if they do not fit.
    pub fn broadcast(&mut self, shapes: &[&[Dim]]) -> Result<Vec<Dim>> {
        broadcast_shapes(self.env, self.function.name(), shapes)
    }

    /// The shape of a product of matrices, with leading dims that are broadcast; of vectors too.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit.
    pub fn matmul(&mut self, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>> {
        let one = [Dim::known(1)];
        let (rows, inner_a, batch_a) = match a {
            [batch @ .., rows, inner] => (Some(rows), inner, batch),
            [inner] => (None, inner, &one[..0]),
            [] => return Err(self.not_a_matrix()),
        };
        let (columns, inner_b, batch_b) = match b {
            [batch @ .., inner, columns] => (Some(columns), inner, batch),
            [inner] => (None, inner, &one[..0]),
            [] => return Err(self.not_a_matrix()),
        };
        self.same(inner_a, inner_b, || {
            format!("the shapes {a:?} and {b:?} do not fit")
        })?;
        let mut shape = self.broadcast(&[batch_a, batch_b])?;
        shape.extend(rows.cloned());
        shape.extend(columns.cloned());
        Ok(shape)
    }

    fn not_a_matrix(&self) -> Error {
        Error::msg(format_args!(
            "{}: a tensor without dims has no rows: give a vector or a matrix",
            self.function.name()
        ))
    }

    fn unexpected(&self, param: &str, wanted: &str, found: &ValueMeta) -> Error {
        Error::expected(
            format_args!("{wanted} for `{param}` of `{}`", self.function.name()),
            found.describe(),
        )
    }

    fn about(&self, param: &str, error: &Error) -> Error {
        Error::msg(format_args!(
            "`{param}` of `{}`: {error}",
            self.function.name()
        ))
    }
}
