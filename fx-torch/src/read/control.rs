//! Operators with graphs: branches and loops as regions of fx, and regions of a mode, which are opened where they stand.
//!
//! Invariant: the graph of a branch or a loop writes nothing of what is outside of it.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::memory::Memory;
use super::values::{argument, name, names};
use super::{Reader, autocast};
use crate::schema::{Argument, Graph, NamedArgument, Node};
use crate::written;

/// A graph that an operator has.
fn graph_at(node: &Node, at: usize) -> Result<&Graph> {
    match node.inputs.get(at).map(|input| &input.arg) {
        Some(Argument::AsGraph(inner)) => Ok(&inner.graph),
        _ => Err(Error::msg(format_args!("the argument {at} is no graph"))),
    }
}

/// The values of arguments; those of a list one by one.
fn operands<'n>(inputs: &'n [NamedArgument], memory: &mut Memory<'n>) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for input in inputs {
        match &argument(&input.arg, memory)? {
            Value::List(items) | Value::Tuple(items) => all.extend(items.iter().cloned()),
            value => all.push(value.clone()),
        }
    }
    Ok(all)
}

/// The operands that stand at a place.
fn operands_at<'n>(node: &'n Node, at: usize, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
    operands(node.inputs.get(at..=at).unwrap_or_default(), memory)
}

fn tuple(values: Vec<Value>) -> Value {
    Value::Tuple(values.into())
}

fn items(value: Value) -> Result<Vec<Value>> {
    match &value {
        Value::Tuple(items) | Value::List(items) => Ok(items.to_vec()),
        other => Err(Error::msg(format_args!(
            "a graph gives {}, not a list",
            other.describe()
        ))),
    }
}

/// What decides: a boolean, or a tensor of one element.
fn condition(value: Value) -> Result<Value> {
    match value {
        Value::Object(_) => Ok(Value::Bool(Tensor::from_value(value)?.item()? != 0.0)),
        value => Ok(value),
    }
}

impl<'n> Reader<'n> {
    /// An operator with graphs, the first of which is at `at`.
    pub(super) fn higher_order(
        &self,
        node: &'n Node,
        at: usize,
        memory: &mut Memory<'n>,
    ) -> Result<()> {
        let results = match &*node.target {
            "torch.ops.higher_order.wrap_with_set_grad_enabled"
            | "torch.ops.higher_order.wrap_with_autocast" => {
                return self.region(node, at, memory);
            }
            "torch.ops.higher_order.cond" => self.branch(node, memory)?,
            "torch.ops.higher_order.while_loop" => self.turns(node, memory)?,
            "torch.ops.higher_order.scan" => self.scan(node, memory)?,
            "torch.ops.higher_order.map_impl" => self.map(node, memory)?,
            _ => {
                return Err(Error::msg(
                    "fx has no rule for this operator with a graph: write its part of the model with `torch.cond`, `while_loop`, `scan` or `map`",
                ));
            }
        };
        let mut all = Vec::new();
        for output in &node.outputs {
            match output {
                Argument::AsTensors(named) => {
                    all.extend(named.iter().map(|named| Some(&*named.name)));
                }
                other => all.push(name(other)?),
            }
        }
        if all.len() != results.len() {
            return Err(Error::msg(format_args!(
                "its graph gives {} results, and the file names {}",
                results.len(),
                all.len()
            )));
        }
        for (name, value) in all.into_iter().zip(results) {
            if let Some(name) = name {
                memory.insert(name, value);
            }
        }
        Ok(())
    }

    /// What a graph gives for inputs.
    fn inside(&self, graph: &'n Graph, inputs: Vec<Value>) -> Result<Vec<Value>> {
        if graph.inputs.len() != inputs.len() {
            return Err(Error::msg(format_args!(
                "a graph takes {} inputs, and {} are given",
                graph.inputs.len(),
                inputs.len()
            )));
        }
        let mut memory = Memory::default();
        let mut reader = Reader {
            kept: rustc_hash::FxHashSet::default(),
            is_program: false,
            ..*self
        };
        for (input, value) in graph.inputs.iter().zip(inputs) {
            if let Some(name) = name(input)? {
                memory.insert(name, value);
                reader.kept.insert((0, name));
            }
        }
        reader.noted(graph, &graph.inputs, &mut memory)?;
        reader.graph(graph, None, &mut memory)
    }

    fn branch(&self, node: &'n Node, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        let (then, otherwise) = (graph_at(node, 1)?, graph_at(node, 2)?);
        let decides = condition(operands_at(node, 0, memory)?.pop().unwrap_or_default())?;
        let given = operands(node.inputs.get(3..).unwrap_or_default(), memory)?;
        let side = |graph: &'n Graph| Ok(tuple(self.inside(graph, given.clone())?));
        items(control::cond(decides, || side(then), || side(otherwise))?)
    }

    fn turns(&self, node: &'n Node, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        let (goes, body) = (graph_at(node, 0)?, graph_at(node, 1)?);
        // A loop whose turns are known stays one.
        let carried = operands_at(node, 2, memory)?
            .into_iter()
            .map(|value| match value {
                Value::Object(_) => function!(written::copied).call_as((value,)),
                value => Ok(value),
            });
        let carried = carried.collect::<Result<Vec<Value>>>()?;
        let others = operands(node.inputs.get(3..).unwrap_or_default(), memory)?;
        let whole = |state: Value| -> Result<Vec<Value>> {
            let mut inputs = items(state)?;
            inputs.extend(others.iter().cloned());
            Ok(inputs)
        };
        let last: Value = control::while_loop(
            tuple(carried),
            |state: &Value| {
                let mut given = self.inside(goes, whole(state.clone())?)?;
                condition(given.pop().unwrap_or_default())
            },
            |state: Value| Ok(tuple(self.inside(body, whole(state)?)?)),
        )?;
        items(last)
    }

    fn scan(&self, node: &'n Node, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        let body = graph_at(node, 0)?;
        let state = operands_at(node, 1, memory)?;
        let sequences = operands_at(node, 2, memory)?;
        let others = operands(node.inputs.get(3..).unwrap_or_default(), memory)?;
        let carried = state.len();
        let (last, all): (Value, Value) = control::scan(
            tuple(state),
            tuple(sequences),
            |state: Value, item: Value| {
                let mut inputs = items(state)?;
                inputs.extend(items(item)?);
                inputs.extend(others.iter().cloned());
                let mut given = self.inside(body, inputs)?;
                let results = given.split_off(carried.min(given.len()));
                Ok((tuple(given), tuple(results)))
            },
        )?;
        let mut results = items(last)?;
        results.extend(items(all)?);
        Ok(results)
    }

    fn map(&self, node: &'n Node, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        let body = graph_at(node, 0)?;
        let sequences = operands_at(node, 1, memory)?;
        let others = operands(node.inputs.get(2..).unwrap_or_default(), memory)?;
        let all: Value = control::map(tuple(sequences), |item: Value| {
            let mut inputs = items(item)?;
            inputs.extend(others.iter().cloned());
            Ok(tuple(self.inside(body, inputs)?))
        })?;
        items(all)
    }

    /// A region is read where it stands: its names are other names of what is outside.
    fn region(&self, node: &'n Node, at: usize, memory: &mut Memory<'n>) -> Result<()> {
        let inner = graph_at(node, at)?;
        let mut reader = Reader {
            kept: self.kept.clone(),
            ..*self
        };
        if node.target.ends_with("wrap_with_autocast") {
            reader.autocast = autocast::of_region(&node.inputs[..at], self.autocast)?;
        }
        let given = &node.inputs[at + 1..];
        if given.len() != inner.inputs.len() {
            return Err(Error::msg(format_args!(
                "a region takes {} inputs, and {} are given",
                inner.inputs.len(),
                given.len()
            )));
        }
        let values = given.iter().map(|given| argument(&given.arg, memory));
        let values = values.collect::<Result<Vec<Value>>>()?;
        let outer = memory.enter();
        for ((input, given), value) in inner.inputs.iter().zip(given).zip(values) {
            match (name(input)?, &given.arg) {
                (Some(name), Argument::AsTensor(of)) => memory.alias(name, (outer, &of.name))?,
                (Some(name), _) => memory.insert(name, value),
                (None, _) => {}
            }
        }
        let results = reader.graph(inner, None, memory)?;
        let own = memory.leave(outer);
        let mut all = Vec::new();
        for output in &node.outputs {
            match output {
                Argument::AsTensors(_) => {
                    all.extend(names(std::slice::from_ref(output))?.into_iter().map(Some))
                }
                other => all.push(name(other)?),
            }
        }
        for ((output, value), of) in all.into_iter().zip(results).zip(&inner.outputs) {
            match (output, of) {
                (Some(name), Argument::AsTensor(of)) => memory.alias(name, (own, &of.name))?,
                (Some(name), _) => memory.insert(name, value),
                (None, _) => {}
            }
        }
        Ok(())
    }
}
