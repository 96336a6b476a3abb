//! `QConfig` and `Quantize`: which nodes become integers, and by which scheme and observer.
//!
//! Invariant: of several statements about a node, the last one that names it holds.

use std::fmt;
use std::sync::Arc;

use fx_core::Result;
use fx_core::ir::{Function, NodeRef};
use fx_core::module::PathPattern;
use fx_core::value::short_type_name;
use rustc_hash::FxHashMap;

use crate::histogram::Histogram;
use crate::observer::{MinMax, Observer};
use crate::scheme::Scheme;

type MakeObserver = Arc<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// How the activations and the weight of a node become integers.
///
/// ```
/// use fx_quant::{MovingAverage, QConfig, Scheme};
/// let config = QConfig::default().activation(Scheme::UINT7).observer(MovingAverage::default).weight(Scheme::INT4);
/// assert_eq!(config.weight.quant_max, 7);
/// ```
#[derive(Clone)]
pub struct QConfig {
    /// The integers of inputs and results.
    pub activation: Scheme,
    /// The integers of weights.
    pub weight: Scheme,
    /// Whether each channel of a weight has a scale of its own.
    pub per_channel: bool,
    /// Whether each run decides the scale of an activation, by its least and its largest number.
    pub dynamic: bool,
    observer: MakeObserver,
}

impl Default for QConfig {
    /// `uint8` activations over all 8 bits, by a histogram; `int8` weights per channel.
    fn default() -> Self {
        QConfig {
            activation: Scheme::UINT8,
            weight: Scheme::INT8,
            per_channel: true,
            dynamic: false,
            observer: Arc::new(|| Box::new(Histogram::default())),
        }
    }
}

impl QConfig {
    /// PyTorch's default for x86 (`get_default_qconfig("x86")`): as the default here, with activations of 7 bits.
    pub fn x86() -> Self {
        QConfig::default().activation(Scheme::UINT7)
    }

    /// PyTorch's `default_qconfig`: activations of 7 bits from the least to the largest number, one scale for a weight.
    pub fn min_max() -> Self {
        QConfig::x86().observer(MinMax::default).per_channel(false)
    }

    /// For products whose inputs each run rounds by their own least and largest number, with weights as in the default. What
    /// they give is in floats, and nothing has to be calibrated: PyTorch's `quantize_dynamic`.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_quant::{Calibration, Integers, QConfig, Quantize};
    /// fx_nn::manual_seed(0);
    /// let mut model = nn::Sequential::new().push(nn::Linear::new(64, 64)?).push(nn::GELU::new()).push(nn::Linear::new(64, 8)?);
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let plan = Quantize::new(QConfig::dynamic()).plan(&gm)?;
    /// let mut quantized = plan.convert(&Calibration::default())?;
    /// quantized.lower(&Integers::new())?;
    /// let x = (Tensor::randn((4, 64))? * 1000.0)?; // any range
    /// let (y, found): (Tensor, Tensor) = (gm.forward(&x)?, quantized.forward(&x)?);
    /// assert!(fx_nn::allclose(&found, &y, 0.02, 20.0)?.close);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dynamic() -> Self {
        QConfig {
            dynamic: true,
            ..QConfig::default()
        }
    }

    /// With other integers for activations.
    #[must_use]
    pub fn activation(mut self, scheme: Scheme) -> Self {
        self.activation = scheme;
        self
    }

    /// With other integers for weights.
    #[must_use]
    pub fn weight(mut self, scheme: Scheme) -> Self {
        self.weight = scheme;
        self
    }

    /// Whether each channel of a weight has a scale of its own.
    #[must_use]
    pub fn per_channel(mut self, yes: bool) -> Self {
        self.per_channel = yes;
        self
    }

    /// With another observer of activations; each value gets a new one.
    #[must_use]
    pub fn observer<O: Observer + 'static>(
        mut self,
        make: impl Fn() -> O + Send + Sync + 'static,
    ) -> Self {
        self.observer = Arc::new(move || Box::new(make()));
        self
    }

    pub(crate) fn new_observer(&self) -> Box<dyn Observer> {
        (self.observer)()
    }
}

impl fmt::Debug for QConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QConfig")
            .field("activation", &self.activation)
            .field("weight", &self.weight)
            .field("per_channel", &self.per_channel)
            .field("dynamic", &self.dynamic)
            .field("observer", &self.new_observer())
            .finish()
    }
}

/// What a statement is about.
#[derive(Debug, Clone)]
enum Which {
    /// Nodes inside of modules at paths.
    Module(PathPattern),
    /// Nodes inside of modules of a type, by its short name.
    Type(String),
    /// Calls of a function.
    Function(Function),
}

/// What is to be quantized, and how: torch's `QConfigMapping`. A later statement overrides an earlier one.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{MinMax, QConfig, Quantize};
/// let mut model = nn::Sequential::new()
///     .push(nn::Linear::new(8, 16)?)
///     .push(nn::ReLU::new())
///     .push(nn::Linear::new(16, 4)?);
/// model.eval();
/// let gm = symbolic_trace(&model)?;
/// let plan = Quantize::new(QConfig::default().observer(MinMax::default)).module("2", None)?.plan(&gm)?;
/// assert!(plan.to_string().contains("float: excluded by `2`"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quantize {
    global: Option<QConfig>,
    statements: Vec<(Which, Option<QConfig>)>,
    /// Of nodes by their names, behind how many other statements one was made.
    nodes: FxHashMap<String, (usize, Option<QConfig>)>,
}

impl Quantize {
    /// With a configuration for all nodes, or `None` for only those that are named.
    pub fn new(global: impl Into<Option<QConfig>>) -> Self {
        Quantize {
            global: global.into(),
            statements: Vec::new(),
            nodes: FxHashMap::default(),
        }
    }

    fn state(mut self, which: Which, config: Option<QConfig>) -> Self {
        self.statements.push((which, config));
        self
    }

    /// What is inside of modules whose path matches a pattern, such as `layer1.*`, `head` or `blocks.{0,1}.**`; `None`
    /// keeps it in floats.
    ///
    /// # Errors
    /// Returns an error if it is no pattern.
    pub fn module(self, pattern: &str, config: impl Into<Option<QConfig>>) -> Result<Self> {
        Ok(self.state(Which::Module(PathPattern::new(pattern)?), config.into()))
    }

    /// What is inside of modules of a type, such as [`nn::Linear`](fx_nn::nn::Linear).
    #[must_use]
    pub fn type_of<M>(self, config: impl Into<Option<QConfig>>) -> Self {
        let name = short_type_name(std::any::type_name::<M>());
        self.state(Which::Type(name), config.into())
    }

    /// Calls of a function.
    #[must_use]
    pub fn function(self, function: Function, config: impl Into<Option<QConfig>>) -> Self {
        self.state(Which::Function(function), config.into())
    }

    /// The node of a name in the plan.
    #[must_use]
    pub fn node(self, name: &str, config: impl Into<Option<QConfig>>) -> Self {
        let Quantize { mut nodes, .. } = self;
        nodes.insert(name.to_string(), (self.statements.len(), config.into()));
        Quantize { nodes, ..self }
    }

    /// Whether a statement is about a node by its name.
    pub(crate) fn names(&self, node: NodeRef<'_>) -> bool {
        self.nodes.contains_key(&*node.name().to_string())
    }

    /// The configuration of a node, or what keeps it in floats.
    pub(crate) fn of(&self, node: NodeRef<'_>) -> std::result::Result<QConfig, Unquantized> {
        let named = |which: &Which| match which {
            Which::Module(pattern) => node.module_stack().any(|at| pattern.matches(&at.path)),
            Which::Type(name) => node
                .module_stack()
                .any(|at| short_type_name(&at.type_name) == *name),
            Which::Function(function) => node.function() == Some(*function),
        };
        let name = node.name().to_string();
        let own = self.nodes.get(&*name);
        // Those after the statement about the node itself.
        let later = own.map_or(0, |(before, _)| *before);
        let mut latest = self.statements[later..].iter().rev();
        match (latest.find(|(which, _)| named(which)), own) {
            (Some((_, Some(config))), _) | (None, Some((_, Some(config)))) => Ok(config.clone()),
            (Some((which, None)), _) => Err(Unquantized::Excluded(which.to_string())),
            (None, Some((_, None))) => Err(Unquantized::Excluded(name)),
            (None, None) => self.global.clone().ok_or(Unquantized::Unnamed),
        }
    }
}

/// Why a node has no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unquantized {
    /// A statement keeps it in floats.
    Excluded(String),
    /// No statement is about it.
    Unnamed,
}

impl fmt::Display for Unquantized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unquantized::Excluded(which) => write!(f, "excluded by `{which}`"),
            Unquantized::Unnamed => f.write_str("no statement is about it"),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Module(pattern) => pattern.fmt(f),
            Which::Type(name) => f.write_str(name),
            Which::Function(function) => f.write_str(function.name()),
        }
    }
}
