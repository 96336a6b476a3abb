//! Inspecting numbers: whether two tensors are close and where they are not, and the values of a
//! run.

use std::fmt;

use fx_core::ir::NodeRef;
use fx_core::passes::Closeness;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::tensor::Object;
use fx_core::trace::IntoArgs;
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};

use crate::tensor::Tensor;

/// Compares two tensors element by element, and reports where they differ most.
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
/// Returns an error if the shapes differ, or a tensor is symbolic.
pub fn allclose(found: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Result<Closeness> {
    let (found, expected) = (found.to_data()?, expected.to_data()?);
    Closeness::between(&found, &expected, rtol, atol)
        .map_err(|error| Error::msg(format_args!("allclose: {error}")))
}

/// Statistics of a tensor that a node returned.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValueStats {
    /// The node's name; in a side of a branch or loop behind its path, as in `cond_0.then.mul`.
    pub node: String,
    /// The tensor's shape.
    pub shape: Vec<usize>,
    /// The element type's name.
    pub dtype: &'static str,
    /// The smallest finite element.
    pub min: f64,
    /// The largest one.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// The number of elements that are NaN or infinite.
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

/// Runs a graph module and returns the statistics of every tensor that its nodes return, in the
/// order of the run: what a branch or a loop ran comes before its own result.
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
/// Returns the errors of the run.
pub fn trace_values(gm: &GraphModule, args: impl IntoArgs) -> Result<Vec<ValueStats>> {
    struct Stats(Vec<ValueStats>);
    impl Interpreter for Stats {
        fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
            let value = run.run_node(self, node)?;
            let mut problem = Ok(());
            value.for_each(&mut |inner| {
                if let Some(tensor) = inner.downcast_ref::<Tensor>() {
                    match stats(&run.path_of(node), tensor) {
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
