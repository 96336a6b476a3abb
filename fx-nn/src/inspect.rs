//! Seeing numbers: whether two tensors are close and where not, what values a run has, where two modules part.

use std::fmt;

use fx_core::{
    CallArgs, Error, GraphModule, Interpretation, Interpreter, IntoArgs, NodeRef, Result, Value,
};

use crate::tensor::Tensor;

/// How far two tensors are apart: made by [`allclose`].
#[derive(Debug, Clone, PartialEq)]
pub struct Closeness {
    /// Whether every element equals the expected one or is within `atol + rtol · |expected|` of it; two nans are not.
    pub close: bool,
    /// The largest difference.
    pub max_abs: f64,
    /// The largest difference over the expected element's size.
    pub max_rel: f64,
    /// How many elements are not close.
    pub wrong: usize,
    /// Where the largest difference is, and both elements there.
    pub worst: Option<(Vec<usize>, f64, f64)>,
}

impl fmt::Display for Closeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.close { "close" } else { "not close" };
        write!(
            f,
            "{word}: {} elements differ, at most by {:.3e} ({:.3e} relative)",
            self.wrong, self.max_abs, self.max_rel
        )?;
        match &self.worst {
            Some((at, found, expected)) => {
                write!(f, ", at {at:?}: {found} where {expected} is expected")
            }
            None => Ok(()),
        }
    }
}

/// Compares two tensors, element by element, and says where they differ most.
///
/// ```
/// use fx_nn::prelude::*;
/// let (x, y) = (Tensor::ones((2, 2))?, Tensor::from_vec(vec![1.0f32, 1.0, 1.5, 1.0], (2, 2))?);
/// let closeness = fx_nn::allclose(&y, &x, 1e-5, 1e-8)?;
/// assert!(!closeness.close);
/// assert_eq!(closeness.worst, Some((vec![1, 0], 1.5, 1.0)));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// When the shapes differ, or a tensor is symbolic.
pub fn allclose(found: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Result<Closeness> {
    let dims = expected.dims()?;
    if found.dims()? != dims {
        return Err(Error::msg(format_args!(
            "allclose: shapes {:?} and {dims:?} differ",
            found.dims()?
        )));
    }
    let mut closeness = Closeness {
        close: true,
        max_abs: 0.0,
        max_rel: 0.0,
        wrong: 0,
        worst: None,
    };
    for (at, (a, b)) in found
        .to_vec()?
        .into_iter()
        .zip(expected.to_vec()?)
        .enumerate()
    {
        let error = if a == b { 0.0 } else { (a - b).abs() };
        // Equal infinities are close; what is infinite on one side only, or no number, never is.
        let close = a == b || (error.is_finite() && error <= atol + rtol * b.abs());
        if !close {
            closeness.wrong += 1;
            closeness.close = false;
        }
        let relative = if error == 0.0 { 0.0 } else { error / b.abs() };
        closeness.max_rel = closeness.max_rel.max(relative);
        // A nan is worse than any number, and the first one is kept.
        let worse = error > closeness.max_abs || (error.is_nan() && !closeness.max_abs.is_nan());
        if worse {
            closeness.max_abs = error;
            closeness.worst = Some((place(at, dims), a, b));
        }
    }
    Ok(closeness)
}

/// The index of the `at`-th element, row-major.
fn place(mut at: usize, dims: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = dims
        .iter()
        .rev()
        .map(|size| {
            let i = at % size;
            at /= size;
            i
        })
        .collect();
    index.reverse();
    index
}

/// What a node gave, in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueStats {
    /// The node's name.
    pub node: String,
    /// The tensor's shape.
    pub shape: Vec<usize>,
    /// The element type's name.
    pub dtype: &'static str,
    /// The smallest element that is a number.
    pub min: f64,
    /// The largest one.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Elements that are nan or infinite.
    pub not_finite: usize,
}

impl fmt::Display for ValueStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            node,
            shape,
            dtype,
            min,
            max,
            mean,
            not_finite,
        } = self;
        write!(
            f,
            "%{node}: {dtype}{shape:?} in [{min:.4e}, {max:.4e}], mean {mean:.4e}"
        )?;
        match not_finite {
            0 => Ok(()),
            n => write!(f, ", {n} not finite"),
        }
    }
}

/// Runs a graph module and says of every tensor that its nodes give what numbers are in it, in the graph's order.
///
/// ```
/// use fx_nn::prelude::*;
/// let gm = symbolic_trace(traced!(|x: &Tensor| (x / 0.0)?.relu()))?;
/// let stats = fx_nn::trace_values(&gm, &Tensor::ones(2)?)?;
/// assert_eq!(stats.iter().find(|s| s.not_finite > 0).map(|s| s.node.as_str()), Some("truediv"));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// What the run says.
pub fn trace_values(gm: &GraphModule, args: impl IntoArgs) -> Result<Vec<ValueStats>> {
    struct Stats(Vec<ValueStats>);
    impl Interpreter for Stats {
        fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
            let value = run.run_node(self, node)?;
            let mut problem = Ok(());
            value.for_each(&mut |inner| {
                if let Some(tensor) = inner.downcast_ref::<Tensor>() {
                    match stats(&node.name().to_string(), tensor) {
                        Ok(stats) => self.0.push(stats),
                        Err(error) => problem = Err(error),
                    }
                }
            });
            problem.map(|()| value)
        }
    }
    let mut stats = Stats(Vec::new());
    gm.interpret::<Value>(&mut stats, args)?;
    Ok(stats.0)
}

fn stats(node: &str, tensor: &Tensor) -> Result<ValueStats> {
    let all = tensor.to_vec()?;
    let finite = || all.iter().copied().filter(|x| x.is_finite());
    let count = finite().count();
    Ok(ValueStats {
        node: node.to_string(),
        shape: tensor.dims()?.to_vec(),
        dtype: tensor.dtype()?.name(),
        min: finite().fold(f64::INFINITY, f64::min),
        max: finite().fold(f64::NEG_INFINITY, f64::max),
        mean: finite().sum::<f64>() / count.max(1) as f64,
        not_finite: all.len() - count,
    })
}

/// The first node of which two modules give different numbers: made by [`first_divergence`].
#[derive(Debug, Clone)]
pub struct Divergence {
    /// The node's name, in both.
    pub node: String,
    /// How far its values are apart, or why they cannot be compared.
    pub difference: std::result::Result<Closeness, String>,
    /// The user's source line of the node in the first module.
    pub location: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.node)?;
        if let Some(location) = &self.location {
            write!(f, " ({location})")?;
        }
        match &self.difference {
            Ok(closeness) => write!(f, ": {closeness}"),
            Err(problem) => write!(f, ": {problem}"),
        }
    }
}

/// Runs two modules on one input and finds the first node of the same name that gives them different numbers, in the
/// first one's order; `None` where there is none.
///
/// # Errors
/// What either run says.
pub fn first_divergence(
    a: &GraphModule,
    b: &GraphModule,
    args: impl IntoArgs,
    rtol: f64,
    atol: f64,
) -> Result<Option<Divergence>> {
    let CallArgs { args, kwargs } = args.into_args();
    let call = || CallArgs {
        args: args.clone(),
        kwargs: kwargs.clone(),
    };
    let (mut first, mut second) = (
        a.interpretation().keep_values(),
        b.interpretation().keep_values(),
    );
    first.run(&mut fx_core::PlainInterpreter, a.process_inputs(call())?)?;
    second.run(&mut fx_core::PlainInterpreter, b.process_inputs(call())?)?;
    for node in a.graph() {
        let name = node.name().to_string();
        let other = b
            .graph()
            .find_name(&name)
            .and_then(|n| second.value(n.id()));
        let (Some(found), Some(expected)) = (first.value(node.id()), other) else {
            continue;
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (value, tensors) in [(found, &mut ours), (expected, &mut theirs)] {
            value.for_each(&mut |inner| tensors.extend(inner.downcast_ref::<Tensor>().cloned()));
        }
        let difference = match ours.len() == theirs.len() {
            false => Some(Err(format!("{} and {} tensors", ours.len(), theirs.len()))),
            true => ours
                .iter()
                .zip(&theirs)
                .find_map(|(x, y)| match allclose(x, y, rtol, atol) {
                    Ok(closeness) => (!closeness.close).then_some(Ok(closeness)),
                    Err(error) => Some(Err(error.to_string())),
                }),
        };
        if let Some(difference) = difference {
            return Ok(Some(Divergence {
                node: name,
                difference,
                location: node.location().map(|l| format!("{}:{}", l.file, l.line)),
            }));
        }
    }
    Ok(None)
}
