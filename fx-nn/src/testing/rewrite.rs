//! `Rewrite`: what is checked, with the instances of what it looks for.
//!
//! Invariant: an instance has as many arguments as its graph has inputs.

use std::fmt;

use fx_core::passes::Pass;
use fx_core::trace::IntoArgs;
use fx_core::value::Value;
use fx_core::{GraphModule, Result};

use super::draw::Draw;

/// What [`verify`](super::verify) checks: it makes instances of what it looks for, and rewrites them.
///
/// Implemented for [`Rule`](crate::pattern::Rule), [`Rewriter`](crate::pattern::Rewriter) and
/// [`Decompositions`](crate::passes::Decompositions), and for passes by [`pass`].
pub trait Rewrite {
    /// Its name in reports.
    fn name(&self) -> String;

    /// The names of its parts, each of which has its own cases.
    fn parts(&self) -> Vec<String> {
        vec![self.name()]
    }

    /// An instance of what a part looks for.
    ///
    /// # Errors
    /// Returns an error if this draw gives none; another one is drawn.
    fn instance(&self, part: usize, draw: &mut Draw) -> Result<Instance>;

    /// Rewrites a graph.
    ///
    /// # Errors
    /// Returns an error if the rewrite fails, which is a counterexample.
    fn rewrite(&self, part: usize, gm: &mut GraphModule) -> Result<Did>;
}

/// A pass with a function that makes instances of what it looks for.
pub struct Passed<P, F> {
    pass: P,
    instance: F,
}

/// A pass as something to verify: `instance` draws a graph in which it finds something to do, with
/// arguments.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::FuseBatchNorm;
/// use fx_nn::testing::{Instance, Verify, pass};
/// let fusion = pass(FuseBatchNorm, |draw| {
///     let n = draw.features();
///     let mut model = nn::Sequential::new().push(nn::Conv2d::new(2, n, 3)?).push(nn::BatchNorm2d::new(n)?);
///     draw.weights(&mut model)?;
///     model.eval();
///     Ok(Instance::new(symbolic_trace(&model)?, draw.tensor(&[2, 2, 5, 4])?))
/// });
/// let verified = Verify::new().cases(20).finite().of(&fusion)?;
/// assert_eq!(verified.matched, 20);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn pass<P: Pass, F: Fn(&mut Draw) -> Result<Instance>>(pass: P, instance: F) -> Passed<P, F> {
    Passed { pass, instance }
}

impl<P: Pass, F> fmt::Debug for Passed<P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passed({})", self.pass.name())
    }
}

impl<P: Pass, F: Fn(&mut Draw) -> Result<Instance>> Rewrite for Passed<P, F> {
    fn name(&self) -> String {
        self.pass.name().into_owned()
    }

    fn instance(&self, _: usize, draw: &mut Draw) -> Result<Instance> {
        (self.instance)(draw)
    }

    fn rewrite(&self, _: usize, gm: &mut GraphModule) -> Result<Did> {
        if self.pass.requires(gm).is_err() {
            return Ok(Did::Refused);
        }
        Ok(match gm.apply(&self.pass)?.changed {
            true => Did::Rewrote,
            false => Did::Nothing,
        })
    }
}

/// A graph in which a rewrite finds what it looks for, with arguments for it.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(super) gm: GraphModule,
    pub(super) inputs: Vec<Value>,
    /// Whether the rewrite gets the shapes.
    pub(super) shapes: bool,
    pub(super) needs_shapes: bool,
}

impl Instance {
    /// A graph module with arguments, in the order of its inputs.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::testing::Instance;
    /// let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x * y))?;
    /// let instance = Instance::new(gm, (Tensor::ones(2)?, Tensor::ones(1)?));
    /// assert_eq!(instance.inputs().len(), 2);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    pub fn new(gm: GraphModule, inputs: impl IntoArgs) -> Self {
        Instance {
            gm,
            inputs: inputs.into_args().args,
            shapes: true,
            needs_shapes: false,
        }
    }

    /// Whether the rewrite has to know the shapes: without this it has them in most cases only.
    #[must_use]
    pub fn with_shapes(mut self) -> Self {
        self.needs_shapes = true;
        self
    }

    /// The graph.
    pub fn graph_module(&self) -> &GraphModule {
        &self.gm
    }

    /// The arguments.
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    pub(super) fn with_inputs(&self, inputs: Vec<Value>) -> Self {
        Instance {
            inputs,
            ..self.clone()
        }
    }
}

/// What a rewrite did to a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// It rewrote what it looks for.
    Rewrote,
    /// It found it and left it, because a filter or a requirement refuses it.
    Refused,
    /// It did not find it.
    Nothing,
}
