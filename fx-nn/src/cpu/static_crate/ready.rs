//! A graph module made ready for a crate: without layers, with sizes that are numbers, and with what depends on no input
//! computed.
//!
//! Invariant: what comes out gives what the graph module gives for arguments of these sizes.

use std::fmt::Write as _;

use fx_core::ir::{Argument, FunctionTable, NodeRef, Op, ValueMeta};
use fx_core::module::Callee;
use fx_core::passes::backend::Support;
use fx_core::passes::{CoreSet, Decompositions, FoldConstants, MethodsToFunctions};
use fx_core::shapes::Spec;
use fx_core::trace::CallArgs;
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result, operator};

use crate::cpu::draft::Draft;
use crate::cpu::lowering::CpuLowering;
use crate::cpu::types::dtype_of;
use crate::cpu::{absorb, code, fuse, lower, matrix, support};
use crate::lowering::Composed;

/// The opened graph module for arguments of the sizes that these have, and what it will do.
pub(super) fn ready(gm: &GraphModule, args: CallArgs) -> Result<(GraphModule, Draft)> {
    let specs: Vec<Spec> = gm.process_inputs(args)?.into_iter().map(Spec::of).collect();
    refuse_effects(gm)?;
    let opened = code::opened(gm, false)?;
    // One input each: a crate has no structures of arguments.
    let (attributes, graph) = (opened.attributes().clone(), opened.graph().clone());
    let mut gm = GraphModule::new(attributes, graph, gm.class_name())?;
    // What a function is by others depends on shapes.
    gm.infer_shapes(&specs)?;
    if gm.apply(&decompositions()?)?.changed {
        gm.apply(&MethodsToFunctions)?;
        gm.infer_shapes(&specs)?;
    }
    let known: Vec<(NodeId, Argument)> = gm.graph().nodes().filter_map(known).collect();
    let mut graph = gm.graph_mut();
    for (node, number) in &known {
        graph.substitute(*node, number)?;
    }
    let held: Vec<NodeId> = graph.nodes().filter(holds).map(NodeRef::id).collect();
    for node in held {
        graph.erase_node(node)?;
    }
    drop(graph);
    gm.eliminate_dead_code()?;
    gm.apply(&FoldConstants::new())?;
    gm.infer_shapes(&specs)?;
    refuse_regions(&gm)?;
    let floats: Vec<Option<DType>> = gm
        .graph()
        .placeholders()
        .map(|node| dtype_of(node).filter(|dtype| *dtype == DType::F32))
        .collect();
    let mut draft = lower::lower_static(&gm, &floats)?;
    draft.without_dead();
    absorb::absorb(&mut draft)?;
    fuse::fuse(&mut draft);
    Ok((gm, draft))
}

/// Functions without a kernel, by others.
fn decompositions() -> Result<Decompositions> {
    let composed = FunctionTable::<Composed>::registered()?.iter();
    let composed = composed.map(|(function, composed)| (function, composed.0));
    let core = FunctionTable::<CoreSet>::registered()?.iter();
    let decomposed = core.filter_map(|(function, of)| match of {
        CoreSet::Decomposed(rule) => Some((function, *rule)),
        _ => None,
    });
    let mut table = Decompositions::new();
    for (function, rule) in composed.chain(decomposed) {
        if CpuLowering::of(function)?.is_none() {
            table = table.rule(function, rule);
        }
    }
    Ok(table)
}

/// A whole number or a truth that a node gives for all arguments of these sizes.
fn known(node: NodeRef<'_>) -> Option<(NodeId, Argument)> {
    if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
        return None;
    }
    match node.meta::<ValueMeta>()? {
        ValueMeta::Int(dim) => Some((node.id(), Argument::Int(dim.as_number()?))),
        ValueMeta::Bool(truth) => Some((node.id(), Argument::Bool((*truth)?))),
        _ => None,
    }
}

/// Whether a node asserts what is known to be true.
fn holds(node: &NodeRef<'_>) -> bool {
    let is_assertion = matches!(node.op(), Op::CallFunction(f) if *f == operator::_assert);
    is_assertion && node.args().first() == Some(&Argument::Bool(true)) && node.num_users() == 0
}

/// Fails where a call has effects or is in training.
fn refuse_effects(gm: &GraphModule) -> Result<()> {
    let mut problems = Problems::default();
    for node in gm.graph().nodes().filter(|node| node.op().is_call()) {
        let call = gm.call(node)?;
        let is_region = match call.callee() {
            Callee::Module(layer) => !layer.graph_names().is_empty(),
            _ => false,
        };
        match support::supports_call(&call) {
            Support::No(_) if is_region => problems.add(node, REGION),
            Support::No(reason) => problems.add(node, reason),
            _ => {}
        }
    }
    problems.none()
}

/// Why there is no step for a module that is left.
const REGION: &str = "is a branch or a loop, or a layer that is no graph of functions";

/// Fails where a graph has branches or loops.
fn refuse_regions(gm: &GraphModule) -> Result<()> {
    let mut problems = Problems::default();
    for node in gm.graph().nodes() {
        if !matches!(node.op(), Op::CallModule(_)) {
            continue;
        }
        let call = gm.call(node)?;
        let is_product = match call.callee() {
            Callee::Module(layer) => matrix::blocks_of(*layer).is_some(),
            _ => false,
        };
        problems.add(
            node,
            match is_product {
                true => "its weight is in blocks of few bits: make it f32 by `QuantizedLinear::dequantized`",
                false => REGION,
            },
        );
    }
    problems.none()
}

/// What a crate cannot have.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub fn add(&mut self, node: NodeRef<'_>, reason: impl std::fmt::Display) {
        let mut text = format!("%{} = {}", node.name(), node.target());
        if let Some(place) = node.location() {
            let _ = write!(text, " ({place})");
        }
        let module = node.module_stack().next().map(|scope| &scope.path);
        if let Some(path) = module.filter(|path| !path.is_empty()) {
            let _ = write!(text, " in {path}");
        }
        let _ = write!(text, ": {reason}");
        self.0.push(text);
    }

    /// Fails if there are any.
    pub fn none(&self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            count => Err(Error::not_in_format(format_args!(
                "{count} call{} cannot be in a static crate, which has fixed sizes, f32 and no branches:\n  {}",
                if count == 1 { "" } else { "s" },
                self.0.join("\n  ")
            ))),
        }
    }
}
