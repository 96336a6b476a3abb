//! `Export`: what a file is written for, and how.

use fx_nn::ir::Function;
use fx_nn::lowering::{OpCall, Rules, Val};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::{CallArgs, IntoArgs};

use super::Rule;
use super::context::Cx;

/// Where the weights go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Weights {
    /// Into the file, which must stay below 2 GB.
    #[default]
    Inline,
    /// Into a file of their own beside it, for each tensor of `from_bytes` bytes or more.
    External {
        /// The name of the file, in the folder of the model.
        file: String,
        /// The smallest tensor that goes there.
        from_bytes: usize,
    },
    /// Nowhere: a file to look at.
    Omitted,
}

/// What the modules become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layers {
    /// Marks of the nodes, under which viewers group them.
    #[default]
    Metadata,
    /// Functions: one for each module type with equal nodes. Not every engine runs them.
    Functions,
}

/// The arguments that a file is written for.
#[derive(Debug, Clone)]
pub(super) enum Inputs {
    Example(CallArgs),
    Specs(Vec<Spec>),
}

/// Axes of one name: the name, and each input with the dim.
pub(super) type Axes = (String, Vec<(String, usize)>);

/// What a file is written for, and how.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Export, OnnxExt};
/// let gm = symbolic_trace(traced!(|x: &Tensor| x.reshape((x.size(0)?, -1))))?;
/// let export = Export::example(&Tensor::ones((2, 3, 4))?)
///     .dynamic("batch", [("x", 0)])
///     .opset(18)
///     .outputs(["rows"]);
/// let (_, report) = gm.to_onnx_bytes(&export)?;
/// assert_eq!(report.dynamic, ["batch"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Export {
    pub(super) given: Inputs,
    pub(super) axes: Vec<Axes>,
    pub(super) opset: i64,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) weights: Weights,
    pub(super) layers: Layers,
    pub(super) half: bool,
    pub(super) check: bool,
    pub(super) rules: Rules<Cx>,
}

impl Export {
    fn new(given: Inputs) -> Self {
        Export {
            given,
            axes: Vec::new(),
            opset: 20,
            inputs: Vec::new(),
            outputs: Vec::new(),
            weights: Weights::default(),
            layers: Layers::default(),
            half: false,
            check: false,
            rules: Rules::default(),
        }
    }

    /// For calls with arguments of these shapes and types.
    pub fn example(args: impl IntoArgs) -> Self {
        Export::new(Inputs::Example(args.into_args()))
    }

    /// For calls with arguments like these specs, whose named sizes are dynamic.
    pub fn specs(specs: impl IntoIterator<Item = Spec>) -> Self {
        Export::new(Inputs::Specs(specs.into_iter().collect()))
    }

    /// Gives dims of inputs one name: they may have any size, all of them the same. An input is named as in the graph.
    pub fn dynamic<'i>(
        mut self,
        axis: &str,
        inputs: impl IntoIterator<Item = (&'i str, usize)>,
    ) -> Self {
        let inputs = inputs
            .into_iter()
            .map(|(input, dim)| (input.to_string(), dim));
        self.axes.push((axis.to_string(), inputs.collect()));
        self
    }

    /// The version of ONNX's operators, 18 to 23; 20 unless it is set.
    pub fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// The names of the inputs, in order.
    pub fn inputs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.inputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// The names of the outputs, in order.
    pub fn outputs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.outputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Where the weights go.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// What the modules become.
    pub fn layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Half precision: weights, inputs and results that are `float32` become `float16`.
    pub fn half(mut self) -> Self {
        self.half = true;
        self
    }

    /// Reads the file back, runs it on the example, and compares; the report has the largest difference. A difference
    /// beyond rounding is an error that names the output: 1e-4 of its largest element, 5e-2 in half precision, none of
    /// whole numbers. Results of a file that draws random numbers are not judged.
    pub fn checked(mut self) -> Self {
        self.check = true;
        self
    }

    /// How calls of a function are written, in place of the rule that it has.
    pub fn op(
        self,
        function: Function,
        emit: impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync + 'static,
    ) -> Self {
        self.rule(function, Rule::new(emit))
    }

    /// The rule of a function, in place of the one that it has.
    pub fn rule(mut self, function: Function, rule: Rule) -> Self {
        self.rules.insert(function, rule);
        self
    }

    pub(crate) fn is_half(&self) -> bool {
        self.half
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.check
    }

    /// The example, if there is one.
    pub(crate) fn example_args(&self) -> Option<CallArgs> {
        match &self.given {
            Inputs::Example(args) => Some(args.clone()),
            Inputs::Specs(_) => None,
        }
    }
}
