//! A call with its arguments, and what it has to give.

use std::fmt;

use fx_core::ir::{Argument, Effects, Function, Graph, ValueMeta};
use fx_core::module::Attributes;
use fx_core::trace::CallArgs;
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};

use super::super::close::{self, Slack};
use super::Missing;
use crate::tensor::Tensor;

/// Compares what a route gives with what the call has to give.
type Judge<'s> = dyn Fn(&str, &Result<Value>) -> Option<String> + 's;

/// A call of an operation: its arguments, and what it has to give. In the call's graph the tensors
/// are inputs, and other arguments literals.
pub struct Sample<'s> {
    name: String,
    module: Result<GraphModule>,
    args: Vec<Value>,
    eager: Box<dyn Fn() -> Result<Value> + 's>,
    judge: Box<Judge<'s>>,
    is_random: bool,
    without: Vec<(&'static str, Missing)>,
}

impl<'s> Sample<'s> {
    /// A call of a function with these arguments, in the order of its parameters. It has to give
    /// what the function gives.
    ///
    /// # Errors
    /// Returns an error if the arguments make no call, or the function refuses them.
    pub fn of(function: Function, args: Vec<Value>) -> Result<Self> {
        let expected = run(function, &args)?;
        let is_drawn = is_drawn(function);
        let judge = move |_: &str, result: &Result<Value>| match result {
            // Of what is drawn, the shape and the type are known.
            Ok(value) if is_drawn => {
                let (expected, found) = (ValueMeta::of(&expected), ValueMeta::of(value));
                (expected != found).then(|| format!("{found}, not {expected}"))
            }
            Ok(value) => differs(&expected, value),
            Err(error) => Some(format!("refused: {error}")),
        };
        Sample::call(function, args, judge)
    }

    /// A call that the function refuses, and every route has to refuse.
    ///
    /// # Errors
    /// Returns an error if the function gives something.
    pub fn refused(function: Function, args: Vec<Value>) -> Result<Self> {
        if let Ok(value) = run(function, &args) {
            return Err(Error::msg(format_args!(
                "`{}` gives {}, and is to be refused",
                function.path(),
                value.describe()
            )));
        }
        let judge = |_: &str, result: &Result<Value>| match result {
            Ok(value) => Some(format!("{}, not refused", value.describe())),
            Err(_) => None,
        };
        Sample::call(function, args, judge)
    }

    fn call(
        function: Function,
        args: Vec<Value>,
        judge: impl Fn(&str, &Result<Value>) -> Option<String> + 's,
    ) -> Result<Self> {
        let described: Vec<String> = args.iter().map(Value::describe).collect();
        let (module, inputs) = graph_of(function, &args)?;
        let given = args.clone();
        let sample = Sample::new(
            &format!("({})", described.join(", ")),
            Ok(module),
            inputs,
            move || run(function, &given),
            judge,
        );
        Ok(match is_drawn(function) {
            true => sample.random(),
            false => sample,
        })
    }

    /// A sample with a graph, arguments and a judge of its own: `judge` gets a route's name with its
    /// result, and returns what is wrong with it.
    pub fn new(
        name: &str,
        module: Result<GraphModule>,
        args: Vec<Value>,
        eager: impl Fn() -> Result<Value> + 's,
        judge: impl Fn(&str, &Result<Value>) -> Option<String> + 's,
    ) -> Self {
        Sample {
            name: name.to_string(),
            module,
            args,
            eager: Box::new(eager),
            judge: Box::new(judge),
            is_random: false,
            without: Vec::new(),
        }
    }

    /// The same; what the call gives is drawn.
    #[must_use]
    pub fn random(mut self) -> Self {
        self.is_random = true;
        self
    }

    /// The same, in which a route has no part.
    #[must_use]
    pub fn without(mut self, route: &'static str, reason: Missing) -> Self {
        self.without.push((route, reason));
        self
    }

    /// Why a route has no part in it, if it has none.
    pub fn missing(&self, route: &str) -> Option<Missing> {
        let mut without = self.without.iter();
        without.find_map(|(name, reason)| (*name == route).then_some(*reason))
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether what it gives is drawn.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// The graph of the call.
    ///
    /// # Errors
    /// Returns an error if the call is refused while it is traced.
    pub fn module(&self) -> Result<&GraphModule> {
        self.module
            .as_ref()
            .map_err(|error| Error::msg(error.to_string()))
    }

    /// The arguments of the graph.
    pub fn args(&self) -> CallArgs {
        CallArgs {
            args: self.args.clone(),
            kwargs: Vec::new(),
        }
    }

    /// What the graph of the call gives.
    ///
    /// # Errors
    /// Returns the call's error.
    pub fn traced(&self) -> Result<Value> {
        self.module()?.forward(self.args())
    }

    /// What the call gives without a graph.
    ///
    /// # Errors
    /// Returns the call's error.
    pub fn eager(&self) -> Result<Value> {
        (self.eager)()
    }

    /// What is wrong with what a route gives; `None` if nothing is.
    pub fn judge(&self, route: &str, result: &Result<Value>) -> Option<String> {
        (self.judge)(route, result)
    }
}

impl fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample")
            .field("name", &self.name)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

/// The results of a program in the structure of what the call gives: a program has tensors alone,
/// one after another, and a number is a tensor without dims there.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::structured;
/// use fx_nn::value::IntoValue;
/// let results = (Tensor::ones(2)?, Tensor::from_vec(vec![3i64], ())?).into_value();
/// let like = (Tensor::zeros(2)?, (Value::None, 7)).into_value();
/// assert_eq!(structured(&like, &results)?.describe(), "a tuple of 2");
/// assert!(structured(&Value::Int(7), &results).is_err());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are more or fewer results than the call gives.
pub fn structured(like: &Value, results: &Value) -> Result<Value> {
    let mut flat = Vec::new();
    results.for_each(&mut |leaf| match leaf {
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::None => {}
        leaf => flat.push(leaf.clone()),
    });
    let count = flat.len();
    let mut left = flat.into_iter();
    match (rebuilt(like, &mut left)?, left.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(Error::msg(format_args!(
            "{count} results, where the call gives {}",
            like.describe()
        ))),
    }
}

/// The structure of a value, of other leaves; `None` if there are too few.
fn rebuilt(like: &Value, left: &mut dyn Iterator<Item = Value>) -> Result<Option<Value>> {
    let mut all = |items: &[Value]| -> Result<Option<Box<[Value]>>> {
        items.iter().map(|item| rebuilt(item, left)).collect()
    };
    Ok(match like {
        Value::List(items) => all(items)?.map(Value::List),
        Value::Tuple(items) => all(items)?.map(Value::Tuple),
        Value::None => Some(Value::None),
        leaf => match (left.next(), leaf) {
            (Some(found), Value::Bool(_) | Value::Int(_) | Value::Float(_)) => {
                Some(as_number(found, leaf)?)
            }
            (found, _) => found,
        },
    })
}

/// A tensor without dims as a number of the kind of another one.
fn as_number(found: Value, like: &Value) -> Result<Value> {
    let Some(tensor) = found.downcast_ref::<Tensor>() else {
        return Ok(found);
    };
    Ok(match like {
        Value::Bool(_) => Value::Bool(tensor.item()? != 0.0),
        Value::Int(_) => Value::Int(tensor.item()? as i64),
        _ => Value::Float(tensor.item()?),
    })
}

/// Whether what a function gives is drawn.
fn is_drawn(function: Function) -> bool {
    function.def().effects.contains(Effects::RANDOM)
}

fn run(function: Function, args: &[Value]) -> Result<Value> {
    function.call(CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    })
}

/// The graph of a call, and the arguments that are its inputs.
fn graph_of(function: Function, args: &[Value]) -> Result<(GraphModule, Vec<Value>)> {
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut written = Vec::new();
    for arg in args {
        written.push(argument(&mut graph, arg, &mut inputs)?);
    }
    let result = graph.call_function(function, written, ())?;
    graph.output(result)?;
    let module = GraphModule::new(Attributes::default(), graph, "Sample")?;
    Ok((module, inputs))
}

/// An argument with an input in place of each tensor.
fn argument(graph: &mut Graph, value: &Value, inputs: &mut Vec<Value>) -> Result<Argument> {
    if value.as_object().is_some() {
        let input = graph.placeholder(&format!("x{}", inputs.len()))?;
        inputs.push(value.clone());
        return Ok(input.into());
    }
    Ok(match value {
        Value::List(items) => {
            let items = items.iter().map(|item| argument(graph, item, inputs));
            Argument::List(items.collect::<Result<Vec<_>>>()?.into())
        }
        Value::Tuple(items) => {
            let items = items.iter().map(|item| argument(graph, item, inputs));
            Argument::Tuple(items.collect::<Result<Vec<_>>>()?.into())
        }
        other => Argument::of_plain(other).ok_or_else(|| {
            Error::msg(format_args!(
                "{} is no argument of a sample",
                other.describe()
            ))
        })?,
    })
}

/// How a value differs from what is expected.
fn differs(expected: &Value, found: &Value) -> Option<String> {
    match close::gap(expected, found, Slack::default(), None) {
        Ok(None) => None,
        Ok(Some(gap)) => Some(gap.text("the result")),
        Err(error) => Some(error.to_string()),
    }
}
