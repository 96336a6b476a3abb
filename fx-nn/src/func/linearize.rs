//! `linearize`: the value of a function, and its products with the Jacobian at that point as a graph of tangents alone.

use fx_core::ir::ParamSpec;
use fx_core::passes::FoldConstants;
use fx_core::shapes::Spec;
use fx_core::trace::{FromValue, IntoArgs, Root, TraceContext};
use fx_core::value::{Tree, Value};
use fx_core::{Error, GraphModule, Result};

use super::derivative::args_of;
use super::jvp::Jvp;
use super::source::{Source, specs_of};
use super::transform::{Graphs, Transform, transform};

/// The value of a function at a point, and a graph that gives for tangents how the value changes (`torch.func.linearize`).
///
/// The graph takes what [`jvp`](super::jvp) takes as its last argument: a tangent, or a tuple with one for each argument.
/// What depends on the point alone is computed once, here.
///
/// ```
/// use fx_nn::func::linearize;
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0], 2)?;
/// let (y, change): (Tensor, GraphModule) = linearize(traced!(|x: &Tensor| x.sin()), &x)?;
/// assert_eq!(y.to_vec()?, [0.0, 1f64.sin()]);
/// let tangent = Tensor::from_vec(vec![1.0f64, 2.0], 2)?;
/// assert_eq!(change.forward::<Tensor>(&tangent)?.to_vec()?, [1.0, 2.0 * 1f64.cos()]);
/// // The cosine is a constant of the graph.
/// assert!(!change.code().contains("cos"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the arguments do not fit, or the function has no derivative.
pub fn linearize<'r, R: FromValue>(
    of: impl Root<'r>,
    primals: impl IntoArgs,
) -> Result<(R, GraphModule)> {
    let source = Source::of(of);
    let call = primals.into_args();
    if call.args.len() != source.params().len() || !call.kwargs.is_empty() {
        return Err(Error::msg(format_args!(
            "linearize: the function takes {} arguments, and the point has {}",
            source.params().len(),
            call.args.len() + call.kwargs.len()
        )));
    }
    let value = source
        .graph(&call.args)?
        .forward(args_of(call.args.clone()))?;
    let tangents = match <[Spec; 1]>::try_from(specs_of(&call.args)?) {
        Ok([one]) => one,
        Err(several) => Spec::tuple(several),
    };
    let at = AtPoint::new(source, call.args);
    let mut gm = at.graph_module(&[tangents])?;
    gm.apply(&FoldConstants::new())?;
    gm.eliminate_dead_code()?;
    Ok((value, gm))
}

/// The product with a Jacobian at a point.
#[derive(Clone)]
struct AtPoint {
    source: Source,
    jvp: Jvp,
    point: Vec<Value>,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { AtPoint, "linearized", |at| &at.params }

impl AtPoint {
    fn new(source: Source, point: Vec<Value>) -> Self {
        AtPoint {
            jvp: Jvp::of_source(source.clone()),
            source,
            point,
            params: vec![ParamSpec::of_text("tangents".to_string(), "Value")],
            trees: vec![Tree::Leaf],
            graphs: Graphs::default(),
        }
    }

    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let args: Vec<Value> = self.point.iter().chain(args).cloned().collect();
        match &self.jvp.recorded(cx, &args)? {
            Value::Tuple(items) if items.len() == 2 => Ok(items[1].clone()),
            other => Err(Error::expected("a value and its change", other.describe())),
        }
    }
}
