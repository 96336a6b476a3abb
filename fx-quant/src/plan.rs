//! `Plan`: what each node of a graph becomes, and why.
//!
//! Invariant: a value of a quantized node's float input or result has one decision, which all of its readers share.

use std::fmt;
use std::sync::Arc;

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::passes::MethodsToFunctions;
use fx_core::trace::{NoLeaves, Trace};
use fx_core::value::NodeId;
use fx_core::{GraphModule, Result};
use fx_nn::passes::{FuseBatchNorm, RemoveIdentity};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::config::{QConfig, Quantize, Unquantized};
use crate::role::Role;
use crate::scheme::Scheme;

/// What becomes of a node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Decision {
    /// It is computed of integers.
    Quantized(QConfig),
    /// It is a part of the product or the sum before it, whose name this is: only its own result is rounded.
    Fused(String),
    /// It stays in floats, for this reason.
    Float(String),
}

/// Where the scale and the zero point of a value come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// From what is seen of it.
    Seen(QConfig),
    /// They are another node's.
    Of(String),
    /// Each run decides them.
    OfRun(Scheme),
}

/// A value that becomes integers.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    pub(crate) source: Source,
    /// Whether it is the result of quantized work, which exists in integers alone; else readers in floats have the floats.
    pub(crate) is_result: bool,
}

impl Quantity {
    /// What a product reads.
    fn read(config: &QConfig) -> Self {
        match config.dynamic {
            true => Quantity {
                source: Source::OfRun(config.activation),
                is_result: false,
            },
            false => Quantity::seen(config, false),
        }
    }

    fn seen(config: &QConfig, is_result: bool) -> Self {
        Quantity {
            source: Source::Seen(config.clone()),
            is_result,
        }
    }
}

/// What each node of a graph becomes: made by [`Quantize::plan`], printed as a table, calibrated and converted.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{QConfig, Quantize};
/// let mut model = nn::Sequential::new()
///     .push(nn::Conv2d::new(3, 8, 3)?)
///     .push(nn::BatchNorm2d::new(8)?)
///     .push(nn::ReLU::new())
///     .push(nn::Flatten::new())
///     .push(nn::Linear::new(8 * 6 * 6, 10)?);
/// model.eval();
/// let gm = symbolic_trace(&model)?;
/// let plan = Quantize::new(QConfig::default()).plan(&gm)?;
/// println!("{plan}");
///
/// fx_nn::manual_seed(0);
/// let batches: Vec<Tensor> = (0..8).map(|_| Tensor::randn((4, 3, 8, 8))).collect::<Result<_>>()?;
/// let calibration = plan.calibrate(&batches)?;
/// let quantized = plan.convert(&calibration)?;
///
/// let (y, found): (Tensor, Tensor) = (gm.forward(&batches[0])?, quantized.forward(&batches[0])?);
/// assert!(fx_quant::compare(&plan, &quantized, [&batches[0]])?.sqnr() > 25.0);
/// # let _ = (y, found);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) gm: GraphModule,
    pub(crate) decisions: IndexMap<String, Decision>,
    pub(crate) values: IndexMap<String, Quantity>,
}

impl Quantize {
    /// What each node of a graph becomes. Batch norms are folded into the layers before them, and layers are opened: the
    /// plan is about the functions that they call, at the layers' paths.
    ///
    /// # Errors
    /// Returns an error if a batch norm is in training mode, or the graph cannot be traced again.
    pub fn plan(&self, gm: &GraphModule) -> Result<Plan> {
        Plan::new(self, gm)
    }
}

impl Plan {
    fn new(quantize: &Quantize, gm: &GraphModule) -> Result<Self> {
        let mut gm = gm.clone();
        gm.apply(&FuseBatchNorm)?;
        gm.apply(&RemoveIdentity)?;
        let mut gm = Trace::new(&gm).tracer(NoLeaves).graph_module()?;
        gm.apply(&RemoveIdentity)?;
        gm.apply(&MethodsToFunctions)?;
        let (decisions, values) = Maker::new(&gm, quantize).run()?;
        Ok(Plan {
            gm,
            decisions,
            values,
        })
    }

    /// The graph that the plan is about: batch norms folded, layers opened.
    pub fn graph_module(&self) -> &GraphModule {
        &self.gm
    }

    /// What becomes of a node, by its name.
    pub fn decision(&self, name: &str) -> Option<&Decision> {
        self.decisions.get(name)
    }

    /// All decisions, in the order of the graph: of each call, its name and what becomes of it.
    pub fn decisions(&self) -> impl Iterator<Item = (&str, &Decision)> {
        self.decisions
            .iter()
            .map(|(name, decision)| (&**name, decision))
    }

    /// The names of the nodes that are computed of integers.
    pub fn quantized(&self) -> impl Iterator<Item = &str> {
        self.decisions()
            .filter(|(_, decision)| matches!(decision, Decision::Quantized(_)))
            .map(|(name, _)| name)
    }

    /// The same plan where only some nodes are quantized, by their names; the rest of the model is as it was.
    ///
    /// # Errors
    /// Returns an error if a value has no decision any more, which does not happen.
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> Result<Plan> {
        let mut quantize = Quantize::new(None);
        for (name, decision) in &self.decisions {
            quantize = match decision {
                Decision::Quantized(config) if keep(name) => quantize.node(name, config.clone()),
                Decision::Float(_) => quantize.node(name, None),
                _ => quantize,
            };
        }
        let (decisions, values) = Maker::new(&self.gm, &quantize).run()?;
        Ok(Plan {
            gm: self.gm.clone(),
            decisions,
            values,
        })
    }
}

/// Makes the decisions, in the order of the graph.
struct Maker<'g> {
    gm: &'g GraphModule,
    quantize: &'g Quantize,
    decisions: IndexMap<String, Decision>,
    values: IndexMap<String, Quantity>,
    /// Bounds that are a part of what they follow, with its name and configuration.
    bounds: FxHashMap<NodeId, (String, QConfig)>,
}

impl<'g> Maker<'g> {
    fn new(gm: &'g GraphModule, quantize: &'g Quantize) -> Self {
        Maker {
            gm,
            quantize,
            decisions: IndexMap::new(),
            values: IndexMap::new(),
            bounds: FxHashMap::default(),
        }
    }

    fn run(mut self) -> Result<(IndexMap<String, Decision>, IndexMap<String, Quantity>)> {
        for node in self.gm.graph().nodes() {
            if !matches!(
                node.op(),
                Op::CallFunction(_) | Op::CallMethod(_) | Op::CallModule(_)
            ) {
                continue;
            }
            let decision = self.decide(node)?;
            self.decisions.insert(node.name().to_string(), decision);
        }
        Ok((self.decisions, self.values))
    }

    fn decide(&mut self, node: NodeRef<'g>) -> Result<Decision> {
        let float = |reason: &str| Ok(Decision::Float(reason.to_string()));
        let Some(role) = Role::of_node(node)? else {
            return float("it has no form of integers");
        };
        if let Some((before, config)) = self.bounded(node, role) {
            self.values
                .insert(node.name().to_string(), Quantity::seen(&config, true));
            return Ok(Decision::Fused(before));
        }
        let config = match (self.quantize.of(node), role) {
            (Ok(config), _) => config,
            // It follows its input.
            (Err(Unquantized::Unnamed), Role::Shared | Role::Bounded) => {
                let input = node.all_input_nodes().next();
                match input.and_then(|input| self.config_of(&input.name().to_string())) {
                    Some(config) => config,
                    None => return float("its input is in floats"),
                }
            }
            (Err(why), _) => return Ok(Decision::Float(why.to_string())),
        };
        match role {
            Role::Weighted { weight, .. } => {
                let Argument::Node(weight) = node.argument(weight)? else {
                    return float("its weight is not a tensor");
                };
                if !matches!(self.gm.graph().node(weight)?.op(), Op::GetAttr(_)) {
                    return float("its weight is computed by the graph");
                }
            }
            Role::Computed if config.dynamic => {
                return float(
                    "it has no weight: a run rounds only the inputs of products with weights",
                );
            }
            Role::Computed if self.quantize.names(node) => {}
            Role::Computed => {
                let mut inputs = node.all_input_nodes();
                if !inputs.all(|input| self.is_of_integers(input)) {
                    return float("an input of it is in floats");
                }
            }
            Role::Shared | Role::Bounded => {
                let input = match node.all_input_nodes().next() {
                    Some(input) if self.is_of_integers(input) => input.name().to_string(),
                    _ => return float("its input is in floats"),
                };
                let shared = Quantity {
                    source: Source::Of(input),
                    is_result: true,
                };
                self.values.insert(node.name().to_string(), shared);
                return Ok(Decision::Quantized(config));
            }
        }
        for input in inputs_of(node, role)? {
            let name = self.gm.graph().node(input)?.name().to_string();
            self.values
                .entry(name)
                .or_insert_with(|| Quantity::read(&config));
        }
        if config.dynamic {
            return Ok(Decision::Quantized(config));
        }
        match bound_after(node)? {
            // The bound rounds what it gives.
            Some(bound) => drop(
                self.bounds
                    .insert(bound, (node.name().to_string(), config.clone())),
            ),
            None => drop(
                self.values
                    .insert(node.name().to_string(), Quantity::seen(&config, true)),
            ),
        }
        Ok(Decision::Quantized(config))
    }

    /// The configuration by which a value that integers stand for is rounded.
    fn config_of(&self, name: &str) -> Option<QConfig> {
        match self.decisions.get(name)? {
            Decision::Quantized(config) => Some(config.clone()),
            Decision::Fused(before) => self.config_of(before),
            Decision::Float(_) => None,
        }
    }

    /// Of a bound that is a part of the product or the sum before it, that one's name and configuration.
    fn bounded(&self, node: NodeRef<'_>, role: Role) -> Option<(String, QConfig)> {
        match role {
            Role::Bounded => self.bounds.get(&node.id()).cloned(),
            _ => None,
        }
    }

    /// Whether a value is the result of quantized work.
    fn is_of_integers(&self, node: NodeRef<'_>) -> bool {
        let value = self.values.get(&node.name().to_string());
        value.is_some_and(|value| value.is_result)
    }
}

/// The bound that follows a node as its only reader.
fn bound_after(node: NodeRef<'_>) -> Result<Option<NodeId>> {
    let (1, Some(user)) = (node.num_users(), node.users().next()) else {
        return Ok(None);
    };
    let is_bound = Role::of_node(user)? == Some(Role::Bounded);
    Ok(is_bound.then(|| user.id()))
}

/// The inputs of a node that become integers: of a product with a weight the first one alone.
fn inputs_of(node: NodeRef<'_>, role: Role) -> Result<Vec<NodeId>> {
    if let Role::Weighted { .. } = role {
        let function = node.function();
        let first = function.and_then(|function| function.params().first());
        let input = first.map(|first| node.argument(&first.name)).transpose()?;
        return Ok(input
            .and_then(|input| input.as_node())
            .into_iter()
            .collect());
    }
    Ok(node.all_input_nodes().map(|input| input.id()).collect())
}

/// The path of the innermost module that a node is in.
pub(crate) fn path_of(node: NodeRef<'_>) -> Arc<str> {
    let innermost = node.module_stack().next();
    innermost.map_or_else(|| Arc::from(""), |scope| scope.path.clone())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in self.gm.graph().nodes() {
            let name = node.name().to_string();
            let Some(decision) = self.decisions.get(&name) else {
                continue;
            };
            write!(f, "%{name}")?;
            match &*path_of(node) {
                "" => {}
                path => write!(f, " ({path})")?,
            }
            match decision {
                Decision::Quantized(config) => write!(f, ": {}", words(config, node))?,
                Decision::Fused(before) => write!(f, ": a part of %{before}")?,
                Decision::Float(reason) => write!(f, ": float: {reason}")?,
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The integers of a quantized node in words.
fn words(config: &QConfig, node: NodeRef<'_>) -> String {
    let range = |scheme: &Scheme| {
        format!(
            "{} {}..={}",
            scheme.dtype, scheme.quant_min, scheme.quant_max
        )
    };
    let activation = range(&config.activation);
    match Role::of_node(node) {
        Ok(Some(Role::Weighted { .. })) => {
            let each = if config.per_channel {
                " per channel"
            } else {
                ""
            };
            let of_run = if config.dynamic { " of each run" } else { "" };
            format!(
                "{activation}{of_run}, weight {}{each}",
                range(&config.weight)
            )
        }
        Ok(Some(Role::Shared | Role::Bounded)) => {
            format!("{}, as its input", config.activation.dtype)
        }
        _ => activation,
    }
}
