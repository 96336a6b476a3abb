//! The program of one device: the same calls on parts, with collectives between them.
//!
//! Invariant: every device runs the same graph; the parts of a value make the value that the whole graph has.

use fx_nn::ir::{Args, Argument, Graph, Kwargs, NodeRef, Op, ValueMeta};
use fx_nn::lowering::Val;
use fx_nn::module::Call;
use fx_nn::prelude::*;
use fx_nn::value::NodeId;
use fx_nn::{function, operator};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::collectives;
use super::factors::{Factors, shape_of};
use super::mesh::Mesh;
use super::sharding::Sharding;
use super::spread::factors_of;

/// The axes of each dim of a value.
type Axes = Vec<Vec<String>>;

/// Collectives by name: how many a run makes.
pub(super) type Counts = IndexMap<&'static str, usize>;

/// The graph of one device, which takes and gives whole values.
pub(super) fn partition(gm: &GraphModule, mesh: &Mesh) -> Result<(Graph, Counts)> {
    let mut builder = Builder {
        gm,
        mesh,
        graph: Graph::with_capacity(gm.graph().len()),
        values: IndexMap::default(),
        counts: Counts::default(),
    };
    // Inputs come first, and what cuts them after all of them.
    let mut inputs = IndexMap::new();
    for node in gm.graph().placeholders() {
        inputs.insert(node.id(), builder.graph.placeholder(node.target())?);
    }
    for node in gm.graph().nodes() {
        builder
            .node(node, &inputs)
            .map_err(|error| node.blame("partitioning", error))?;
    }
    Ok((builder.graph, builder.counts))
}

/// A value of the device's graph.
struct Local {
    argument: Argument,
    axes: Axes,
    /// The same value with other axes.
    others: Vec<(Axes, Argument)>,
}

struct Builder<'g> {
    gm: &'g GraphModule,
    mesh: &'g Mesh,
    graph: Graph,
    values: IndexMap<NodeId, Local, FxBuildHasher>,
    counts: Counts,
}

/// What sums the parts of a function's result, where a dim that it sums over is split.
fn reduction_of(function: &str) -> Option<&'static str> {
    match function {
        "matmul" | "linear" | "conv1d" | "conv2d" | "conv3d" | "einsum" | "sum" => Some("sum"),
        "mean" => Some("mean"),
        "amax" => Some("max"),
        "amin" => Some("min"),
        _ => None,
    }
}

/// A number that is known, or several.
fn known(meta: &ValueMeta) -> Option<Argument> {
    Some(match meta {
        ValueMeta::Size(dim) => Argument::Int(dim.as_number()?),
        ValueMeta::Plain(text) => match Val::plain(text)? {
            Val::Dim(dim) => Argument::Int(dim.as_number()?),
            Val::Float(number) => Argument::Float(number),
            Val::Bool(truth) => Argument::Bool(truth),
            _ => Argument::None,
        },
        ValueMeta::Sequence(items) => {
            Argument::List(items.iter().map(known).collect::<Option<Vec<_>>>()?.into())
        }
        _ => return None,
    })
}

fn ints(sizes: &[i64]) -> Argument {
    Argument::List(
        sizes
            .iter()
            .map(|size| Argument::Int(*size))
            .collect::<Vec<_>>()
            .into(),
    )
}

impl Builder<'_> {
    fn node(&mut self, node: NodeRef<'_>, inputs: &IndexMap<NodeId, NodeId>) -> Result<()> {
        let whole = match node.op() {
            Op::Placeholder(_) => inputs.get(&node.id()).copied(),
            Op::GetAttr(path) => Some(self.graph.get_attr(path)?),
            _ => None,
        };
        if let Some(id) = whole {
            let rank = shape_of(node).map_or(0, |shape| shape.len());
            self.keep(node.id(), id, vec![Vec::new(); rank]);
            if let Some(sharding) = node.meta::<Sharding>() {
                let axes: Axes = sharding.dims().iter().map(|dim| dim.axes.clone()).collect();
                let argument = self.with_axes(node.id(), &axes)?;
                self.values.insert(
                    node.id(),
                    Local {
                        argument,
                        axes,
                        others: Vec::new(),
                    },
                );
            }
            return Ok(());
        }
        if *node.op() == Op::Output {
            let args: Args = node.args().iter().cloned().collect();
            let args = self.mapped(&args, &IndexMap::new())?;
            self.graph
                .output(args.first().cloned().unwrap_or(Argument::None))?;
            return Ok(());
        }
        if let Some(argument) = node.meta::<ValueMeta>().and_then(known) {
            self.values.insert(
                node.id(),
                Local {
                    argument,
                    axes: Vec::new(),
                    others: Vec::new(),
                },
            );
            return Ok(());
        }
        let Op::CallFunction(_) = node.op() else {
            return Err(Error::msg(
                "it is no function: branches and loops are not partitioned",
            ));
        };
        match factors_of(self.gm, node, self.gm.attributes())? {
            Some(factors) => self.split(node, &factors),
            None => self.whole(node),
        }
    }

    fn keep(&mut self, id: NodeId, made: NodeId, axes: Axes) {
        let local = Local {
            argument: Argument::Node(made),
            axes,
            others: Vec::new(),
        };
        self.values.insert(id, local);
    }

    fn collective(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// A value with these axes: gathered where it has others, then cut.
    fn with_axes(&mut self, id: NodeId, wanted: &Axes) -> Result<Argument> {
        let local = self
            .values
            .get(&id)
            .ok_or_else(|| Error::msg("an argument was not partitioned"))?;
        if local.axes == *wanted || local.axes.is_empty() {
            return Ok(local.argument.clone());
        }
        if let Some((_, known)) = local.others.iter().find(|(axes, _)| axes == wanted) {
            return Ok(known.clone());
        }
        let (mut argument, axes) = (local.argument.clone(), local.axes.clone());
        for (dim, (own, wanted)) in axes.iter().zip(wanted).enumerate() {
            if own != wanted && !own.is_empty() {
                let args = (argument.clone(), dim as i64, own.join("+"));
                self.collective("all_gather");
                argument = self
                    .graph
                    .call_function(function!(collectives::all_gather), args, ())?
                    .into();
            }
        }
        for (dim, (own, wanted)) in axes.iter().zip(wanted).enumerate() {
            if own != wanted && !wanted.is_empty() {
                let args = (argument.clone(), dim as i64, wanted.join("+"));
                argument = self
                    .graph
                    .call_function(function!(collectives::own_part), args, ())?
                    .into();
            }
        }
        if let Some(local) = self.values.get_mut(&id) {
            local.others.push((wanted.clone(), argument.clone()));
        }
        Ok(argument)
    }

    /// Arguments with the values of this graph: those that are given, the others whole.
    fn mapped(&mut self, args: &Args, given: &IndexMap<NodeId, Argument>) -> Result<Vec<Argument>> {
        let mut failed = None;
        let mapped = args.iter().map(|argument| {
            argument.map_nodes(&mut |id| {
                if let Some(known) = given.get(&id) {
                    return known.clone();
                }
                let rank = self.values.get(&id).map_or(0, |local| local.axes.len());
                self.with_axes(id, &vec![Vec::new(); rank])
                    .unwrap_or_else(|error| {
                        failed = Some(error);
                        Argument::None
                    })
            })
        });
        let mapped = mapped.collect();
        match failed {
            Some(error) => Err(error),
            None => Ok(mapped),
        }
    }

    /// Calls the node's function with arguments of this graph.
    fn call(&mut self, node: NodeRef<'_>, given: &IndexMap<NodeId, Argument>) -> Result<NodeId> {
        let Op::CallFunction(function) = node.op() else {
            return Err(Error::msg("it is no function"));
        };
        let args: Args = node.args().iter().cloned().collect();
        let args = self.mapped(&args, given)?;
        let (names, values): (Vec<_>, Args) = node
            .kwargs()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .unzip();
        let values = self.mapped(&values, given)?;
        let kwargs: Kwargs = names.into_iter().zip(values).collect();
        self.graph.call_function(*function, args, kwargs)
    }

    /// A call that no rule splits: on whole values.
    fn whole(&mut self, node: NodeRef<'_>) -> Result<()> {
        let made = self.call(node, &IndexMap::new())?;
        let rank = shape_of(node).map_or(0, |shape| shape.len());
        self.keep(node.id(), made, vec![Vec::new(); rank]);
        Ok(())
    }

    /// The axes of each factor of a call: those that an operand has, a parameter first; an axis splits one factor.
    fn chosen(&self, node: NodeRef<'_>, factors: &Factors, reduces: bool) -> Result<Axes> {
        let graph = self.gm.graph();
        let mut sizes: Vec<Vec<i64>> = vec![Vec::new(); factors.count];
        let mut operands = Vec::new();
        for (id, dims) in &factors.operands {
            let operand = graph.node(*id)?;
            let shape = shape_of(operand).unwrap_or_default();
            for (factor, size) in dims.iter().zip(shape) {
                if let Some(factor) = factor {
                    sizes[*factor].push(size);
                }
            }
            operands.push((!matches!(operand.op(), Op::GetAttr(_)), *id, dims));
        }
        for (factor, size) in factors
            .result
            .iter()
            .zip(shape_of(node).unwrap_or_default())
        {
            if let Some(factor) = factor {
                sizes[*factor].push(size);
            }
        }
        operands.sort_by_key(|(is_value, ..)| *is_value);
        let mut chosen: Axes = vec![Vec::new(); factors.count];
        for (_, id, dims) in operands {
            let Some(local) = self.values.get(&id) else {
                continue;
            };
            for (factor, axes) in dims.iter().zip(&local.axes) {
                let Some(factor) = *factor else { continue };
                let is_summed = !factors.result.contains(&Some(factor));
                let is_used = axes
                    .iter()
                    .any(|axis| chosen.iter().any(|of| of.contains(axis)));
                let parts = self.mesh.parts(axes) as i64;
                let divides = sizes[factor].iter().all(|size| size % parts == 0);
                if chosen[factor].is_empty() && !is_used && divides && (reduces || !is_summed) {
                    chosen[factor].clone_from(axes);
                }
            }
        }
        Ok(chosen)
    }

    /// A call on parts, and the sum of what its devices have where a dim that it sums over is split.
    fn split(&mut self, node: NodeRef<'_>, factors: &Factors) -> Result<()> {
        let name = node.target().to_string();
        let name = name.rsplit("::").next().unwrap_or_default();
        let reduction = reduction_of(name);
        let chosen = self.chosen(node, factors, reduction.is_some())?;
        let of = |dims: &[Option<usize>]| -> Axes {
            let axes = dims
                .iter()
                .map(|factor| factor.map_or(Vec::new(), |factor| chosen[factor].clone()));
            axes.collect()
        };
        let mut given = IndexMap::new();
        for (id, dims) in &factors.operands {
            given.insert(*id, self.with_axes(*id, &of(dims))?);
        }
        let mut axes = of(&factors.result);
        let summed = (0..factors.count).filter(|factor| !factors.result.contains(&Some(*factor)));
        let summed: Vec<String> = summed.flat_map(|factor| chosen[factor].clone()).collect();
        let bound = Call::of(node, self.gm.attributes()).bind()?;
        let bias = bound.get("bias").and_then(|argument| argument.as_node());
        let adds_bias = bias.filter(|_| !summed.is_empty());
        if let Some(bias) = adds_bias {
            given.insert(bias, Argument::None);
        }
        let sizes = self.local_sizes(node, &axes);
        let mut made = match (name, bound.get("x").and_then(|x| x.as_node())) {
            // Sizes of the whole are those of the part here.
            ("reshape" | "unflatten", Some(x)) => {
                let args = (
                    given.get(&x).cloned().unwrap_or(Argument::None),
                    ints(&sizes),
                );
                self.graph
                    .call_function(function!(ops::reshape), args, ())?
            }
            ("expand", Some(x)) => {
                let args = (
                    given.get(&x).cloned().unwrap_or(Argument::None),
                    ints(&sizes),
                );
                self.graph.call_function(function!(ops::expand), args, ())?
            }
            _ => self.call(node, &given)?,
        };
        if let Some(op) = reduction
            && !summed.is_empty()
        {
            let scatters = self.scatters(node, &axes, &summed);
            let joined = summed.join("+");
            made = match scatters {
                Some(dim) => {
                    axes[dim].clone_from(&summed);
                    self.collective("reduce_scatter");
                    let args = (Argument::Node(made), op, dim as i64, joined);
                    self.graph
                        .call_function(function!(collectives::reduce_scatter), args, ())?
                }
                None => {
                    self.collective("all_reduce");
                    let args = (Argument::Node(made), op, joined);
                    self.graph
                        .call_function(function!(collectives::all_reduce), args, ())?
                }
            };
        }
        if let Some(bias) = adds_bias {
            made = self.with_bias(name, made, bias, &axes)?;
        }
        self.keep(node.id(), made, axes);
        Ok(())
    }

    /// The sizes that a device has of the result.
    fn local_sizes(&self, node: NodeRef<'_>, axes: &Axes) -> Vec<i64> {
        let shape = shape_of(node).unwrap_or_default();
        let sizes = shape.iter().zip(axes);
        sizes
            .map(|(size, axes)| size / self.mesh.parts(axes).max(1) as i64)
            .collect()
    }

    /// The dim along which the devices' sums are wanted in parts.
    fn scatters(&self, node: NodeRef<'_>, axes: &Axes, summed: &[String]) -> Option<usize> {
        let wanted = node.meta::<Sharding>()?;
        let shape = shape_of(node)?;
        let parts = self.mesh.parts(summed) as i64;
        (0..shape.len()).find(|dim| {
            wanted.dims()[*dim].axes == summed && axes[*dim].is_empty() && shape[*dim] % parts == 0
        })
    }

    /// The bias of a layer, added once the devices' sums are one.
    fn with_bias(&mut self, name: &str, made: NodeId, bias: NodeId, axes: &Axes) -> Result<NodeId> {
        let dim = match name {
            "conv1d" => axes.len() - 2,
            "conv2d" => axes.len() - 3,
            "conv3d" => axes.len() - 4,
            _ => axes.len() - 1,
        };
        let wanted = vec![axes[dim].clone()];
        let mut argument = self.with_axes(bias, &wanted)?;
        if name != "linear" {
            // A column over the places of an image.
            let sizes = [vec![-1], vec![1; axes.len() - dim - 1]].concat();
            let args = (argument, ints(&sizes));
            argument = self
                .graph
                .call_function(function!(ops::reshape), args, ())?
                .into();
        }
        self.graph
            .call_function(operator::add, (Argument::Node(made), argument), ())
    }
}
