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

use crate::config::{QConfig, Quantize};
use crate::role::Role;

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
}

/// A value that becomes integers.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    pub(crate) source: Source,
    /// Whether it is the result of quantized work, which exists in integers alone; else readers in floats have the floats.
    pub(crate) is_result: bool,
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

impl Plan {
    pub(crate) fn new(quantize: &Quantize, gm: &GraphModule) -> Result<Self> {
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
            if let Decision::Quantized(config) = decision
                && keep(name)
            {
                quantize = quantize.node(name, config.clone());
            }
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
    /// Nodes whose result is rounded by a node that they are followed by.
    rounded_by: FxHashMap<NodeId, NodeId>,
}

impl<'g> Maker<'g> {
    fn new(gm: &'g GraphModule, quantize: &'g Quantize) -> Self {
        Maker {
            gm,
            quantize,
            decisions: IndexMap::new(),
            values: IndexMap::new(),
            rounded_by: FxHashMap::default(),
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
        let role = match node.function() {
            Some(function) => Role::of(function)?,
            None => None,
        };
        let Some(role) = role else {
            return Ok(Decision::Float("it has no form of integers".to_string()));
        };
        if let Some(before) = self.fuses_with(node, role) {
            let config = match &self.decisions[&before] {
                Decision::Quantized(config) => config.clone(),
                _ => return Ok(Decision::Float("what it follows is in floats".to_string())),
            };
            self.give(node, config);
            return Ok(Decision::Fused(before));
        }
        match role {
            Role::Weighted { weight, .. } => {
                let config = match self.quantize.of(node) {
                    Ok(config) => config,
                    Err(reason) => return Ok(Decision::Float(reason)),
                };
                let Argument::Node(weight) = node.argument(weight)? else {
                    return Ok(Decision::Float("its weight is not a tensor".to_string()));
                };
                if !matches!(self.gm.graph().node(weight)?.op(), Op::GetAttr(_)) {
                    let reason = "its weight is computed by the graph".to_string();
                    return Ok(Decision::Float(reason));
                }
                self.take(node, &config)?;
                self.give(node, config.clone());
                Ok(Decision::Quantized(config))
            }
            Role::Computed => {
                let config = match self.quantize.of(node) {
                    Ok(config) => config,
                    Err(reason) => return Ok(Decision::Float(reason)),
                };
                let inputs: Vec<NodeRef<'_>> = node.all_input_nodes().collect();
                let is_of_integers = inputs.iter().all(|input| self.is_of_integers(*input));
                if !is_of_integers && !self.quantize.names(node) {
                    let reason = "an input of it is in floats".to_string();
                    return Ok(Decision::Float(reason));
                }
                self.take(node, &config)?;
                self.give(node, config.clone());
                Ok(Decision::Quantized(config))
            }
            Role::Shared | Role::Bounded => {
                let input = match node.all_input_nodes().next() {
                    Some(input) if self.is_of_integers(input) => input.name().to_string(),
                    _ => return Ok(Decision::Float("its input is in floats".to_string())),
                };
                let Ok(config) = self.quantize.of(node).or_else(|_| self.config_of(&input)) else {
                    return Ok(Decision::Float("its input is in floats".to_string()));
                };
                self.values.insert(
                    node.name().to_string(),
                    Quantity {
                        source: Source::Of(input),
                        is_result: true,
                    },
                );
                Ok(Decision::Quantized(config))
            }
        }
    }

    /// The configuration by which a value that integers stand for is rounded.
    fn config_of(&self, name: &str) -> std::result::Result<QConfig, ()> {
        match self.decisions.get(name) {
            Some(Decision::Quantized(config)) => Ok(config.clone()),
            Some(Decision::Fused(before)) => self.config_of(before),
            _ => Err(()),
        }
    }

    /// The product or the sum before a bound that is a part of it: its only reader.
    fn fuses_with(&mut self, node: NodeRef<'g>, role: Role) -> Option<String> {
        if role != Role::Bounded {
            return None;
        }
        let before = node.all_input_nodes().next()?;
        (self.rounded_by.get(&before.id()) == Some(&node.id())).then(|| before.name().to_string())
    }

    /// The bound that follows a node as its only reader.
    fn bound_after(&self, node: NodeRef<'g>) -> Result<Option<NodeId>> {
        if node.num_users() != 1 {
            return Ok(None);
        }
        let Some(user) = node.users().next() else {
            return Ok(None);
        };
        let role = match user.function() {
            Some(function) => Role::of(function)?,
            None => None,
        };
        let is_off = self.quantize.of(node).is_err();
        Ok((role == Some(Role::Bounded) && !is_off).then(|| user.id()))
    }

    /// Whether a value is the result of quantized work.
    fn is_of_integers(&self, node: NodeRef<'_>) -> bool {
        let value = self.values.get(&node.name().to_string());
        value.is_some_and(|value| value.is_result)
    }

    /// Has the inputs of a node become integers.
    fn take(&mut self, node: NodeRef<'g>, config: &QConfig) -> Result<()> {
        let inputs: Vec<NodeRef<'g>> = match node.function().map(Role::of).transpose()?.flatten() {
            Some(Role::Weighted { .. }) => node.all_input_nodes().take(1).collect(),
            _ => node.all_input_nodes().collect(),
        };
        for input in inputs {
            self.values
                .entry(input.name().to_string())
                .or_insert_with(|| Quantity {
                    source: Source::Seen(config.clone()),
                    is_result: false,
                });
        }
        Ok(())
    }

    /// Has the result of a node become integers, unless a bound after it does that.
    fn give(&mut self, node: NodeRef<'g>, config: QConfig) {
        if let Ok(Some(bound)) = self.bound_after(node)
            && !matches!(
                node.function().map(Role::of),
                Some(Ok(Some(Role::Bounded | Role::Shared)))
            )
        {
            self.rounded_by.insert(node.id(), bound);
            return;
        }
        self.values.insert(
            node.name().to_string(),
            Quantity {
                source: Source::Seen(config),
                is_result: true,
            },
        );
    }
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
    let range = |scheme: &crate::scheme::Scheme| {
        format!(
            "{} {}..={}",
            scheme.dtype, scheme.quant_min, scheme.quant_max
        )
    };
    let activation = range(&config.activation);
    match node.function().map(Role::of) {
        Some(Ok(Some(Role::Weighted { .. }))) => {
            let each = if config.per_channel {
                " per channel"
            } else {
                ""
            };
            format!("{activation}, weight {}{each}", range(&config.weight))
        }
        Some(Ok(Some(Role::Shared | Role::Bounded))) => {
            format!("{}, as its input", config.activation.dtype)
        }
        _ => activation,
    }
}
