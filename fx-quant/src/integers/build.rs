//! The steps of a part, from its graph.
//!
//! Invariant: a product or a sum and the bounds behind it are one step, which rounds once.

use std::sync::Mutex;

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::passes::backend::StepReport;
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Level;
use fx_kernels::integer::{IntegerConv, IntegerSpec, Rounding, Term, Windows};
use fx_nn::Tensor;
use rustc_hash::FxHashMap;

use crate::run::tensor_at;

use super::form::{Form, range_of, scale_of};
use super::program::{Id, Kernel, Program, Rooms, Step};

/// What bytes stand for: the zero point is that of bytes from 0 on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Affine {
    scale: f64,
    zero_point: u8,
    low: u8,
    high: u8,
}

impl Affine {
    /// The integers of a quantization; those of `int8` are moved by 128.
    fn of(node: NodeRef<'_>) -> Result<Self> {
        let lacks = || node.blame("compiling", Error::msg("its integers are not of 8 bits"));
        let (scale, zero_point) = scale_of(node).ok_or_else(lacks)?;
        let (dtype, low, high) = range_of(node).ok_or_else(lacks)?;
        let moved = if dtype == DType::I8 { 128 } else { 0 };
        let byte = |whole: i64| u8::try_from(whole + moved).map_err(|_| lacks());
        Ok(Affine {
            scale,
            zero_point: byte(zero_point)?,
            low: byte(low)?,
            high: byte(high)?,
        })
    }

    fn rounding(&self) -> Rounding {
        Rounding {
            zero_point: self.zero_point,
            low: self.low,
            high: self.high,
        }
    }

    /// Held between two floats.
    fn bounded(&self, bounds: Option<(f64, f64)>) -> Rounding {
        let Some((low, high)) = bounds else {
            return self.rounding();
        };
        let byte = |x: f64| {
            let at = (x / self.scale).round_ties_even() + f64::from(self.zero_point);
            at.clamp(f64::from(self.low), f64::from(self.high)) as u8
        };
        Rounding {
            zero_point: self.zero_point,
            low: byte(low),
            high: byte(high),
        }
    }

    fn over(&self, other: &Affine) -> Term {
        Term {
            scale: (self.scale / other.scale) as f32,
            zero_point: self.zero_point,
        }
    }
}

/// Weights of integers.
struct Weight {
    integers: Vec<i8>,
    dims: Vec<usize>,
    /// A scale for each channel, or one.
    scales: Vec<f64>,
}

/// What is not rounded yet.
#[derive(Clone, Copy)]
enum Pending {
    Product(NodeId),
    Add(Side, Side),
    MaxPool(Side, Windows),
    Mean(Side, Option<Windows>, bool),
    Flatten(Side, NodeId),
    /// A value itself, behind bounds.
    Plain(Side),
}

/// Bytes in a register, and what they stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    id: Id,
    affine: Affine,
}

enum Item {
    /// An input of the part.
    Input(usize),
    Attr,
    Weight(Weight),
    /// Integers, and the floats that they stand for.
    Bytes(Side),
    Pending(Pending, Option<(f64, f64)>),
    Floats(Id),
}

struct Builder<'p> {
    part: &'p GraphModule,
    items: FxHashMap<NodeId, Item>,
    steps: Vec<Step>,
    registers: usize,
}

/// The program of a part.
pub(super) fn program(part: &GraphModule, level: Level) -> Result<Program> {
    let mut builder = Builder {
        part,
        items: FxHashMap::default(),
        steps: Vec::new(),
        registers: 0,
    };
    let mut inputs = 0;
    let (mut results, mut is_tuple) = (Vec::new(), false);
    for node in part.graph().nodes() {
        let item = match node.op() {
            Op::Placeholder(_) => {
                inputs += 1;
                Item::Input(inputs - 1)
            }
            Op::GetAttr(_) => Item::Attr,
            Op::Output => {
                let mut of = Vec::new();
                match node.args() {
                    [Argument::Node(only)] => of.push(*only),
                    [Argument::Tuple(items) | Argument::List(items)] => {
                        is_tuple = true;
                        of.extend(items.iter().filter_map(Argument::as_node));
                    }
                    _ => return Err(Error::msg("a part gives tensors")),
                }
                for id in of {
                    results.push(builder.result(id)?);
                }
                continue;
            }
            _ => builder
                .call(node)
                .map_err(|error| node.blame("compiling", error))?,
        };
        builder.items.insert(node.id(), item);
    }
    builder.free(&results);
    Ok(Program {
        level,
        steps: builder.steps,
        registers: builder.registers,
        results,
        is_tuple,
        rooms: Mutex::new(Rooms::default()),
    })
}

impl<'p> Builder<'p> {
    fn push(&mut self, kernel: Kernel, name: &str, nodes: Vec<String>) -> Id {
        let to = self.registers;
        self.registers += 1;
        self.steps.push(Step {
            kernel,
            to,
            frees: Vec::new(),
            report: StepReport::new(name, nodes),
        });
        to
    }

    /// Has each register end with the last step that reads it.
    fn free(&mut self, results: &[Id]) {
        let mut last: FxHashMap<Id, usize> = FxHashMap::default();
        for (at, step) in self.steps.iter().enumerate() {
            for id in reads(&step.kernel) {
                last.insert(id, at);
            }
        }
        for (id, at) in last {
            if !results.contains(&id) {
                self.steps[at].frees.push(id);
            }
        }
    }

    fn node(&self, node: NodeRef<'_>, name: &str) -> Result<NodeId> {
        let argument = node.argument(name)?;
        argument
            .as_node()
            .ok_or_else(|| Error::msg(format_args!("`{name}` is not one tensor")))
    }

    fn side(&self, id: NodeId) -> Result<Side> {
        match self.items.get(&id) {
            Some(Item::Bytes(side)) => Ok(*side),
            _ => Err(Error::msg("an input of it is not of integers")),
        }
    }

    fn attribute(&self, id: NodeId) -> Result<Tensor> {
        let Op::GetAttr(path) = self.part.graph().node(id)?.op() else {
            return Err(Error::msg("it is no parameter"));
        };
        tensor_at(self.part, path)
    }

    fn call(&mut self, node: NodeRef<'p>) -> Result<Item> {
        let form = Form::of(node).map_err(Error::msg)?;
        Ok(match form {
            Form::Quantize => self.quantize(node)?,
            Form::Dequantize => Item::Bytes(self.side(self.node(node, "x")?)?),
            Form::Weight => Item::Weight(self.weight(node)?),
            Form::Linear | Form::Conv(_) => {
                let is_read_as_floats = form == Form::Linear && !is_rounded_later(node);
                match is_read_as_floats {
                    true => Item::Floats(self.product(node, None)?),
                    false => Item::Pending(Pending::Product(node.id()), None),
                }
            }
            Form::Add => {
                let sides: Vec<NodeId> = node.args().iter().filter_map(Argument::as_node).collect();
                let [a, b] = sides[..] else {
                    return Err(Error::msg("a sum is of two tensors"));
                };
                Item::Pending(Pending::Add(self.side(a)?, self.side(b)?), None)
            }
            Form::Bound(low, high) => {
                let x = self.node(node, "x")?;
                match self.items.get(&x) {
                    Some(Item::Pending(pending, None)) => {
                        Item::Pending(*pending, Some((low, high)))
                    }
                    Some(Item::Bytes(side)) => {
                        Item::Pending(Pending::Plain(*side), Some((low, high)))
                    }
                    _ => return Err(Error::msg("its input is not of integers")),
                }
            }
            Form::MaxPool(windows) => Item::Pending(
                Pending::MaxPool(self.side(self.node(node, "x")?)?, windows),
                None,
            ),
            Form::AveragePool(windows, counts) => Item::Pending(
                Pending::Mean(self.side(self.node(node, "x")?)?, Some(windows), counts),
                None,
            ),
            Form::Mean => Item::Pending(
                Pending::Mean(self.side(self.node(node, "x")?)?, None, false),
                None,
            ),
            Form::View => Item::Pending(
                Pending::Flatten(self.side(self.node(node, "x")?)?, node.id()),
                None,
            ),
        })
    }

    fn weight(&self, node: NodeRef<'_>) -> Result<Weight> {
        let integers = self.attribute(self.node(node, "x")?)?;
        let scales = match node.argument("scale")? {
            Argument::Float(scale) => vec![scale],
            Argument::Node(scale) => self.attribute(scale)?.to_vec()?,
            _ => return Err(Error::msg("a weight has a scale")),
        };
        Ok(Weight {
            dims: integers.dims()?.to_vec(),
            integers: integers.to_vec()?.into_iter().map(|w| w as i8).collect(),
            scales,
        })
    }

    /// A product: bytes by a rounding, or floats.
    fn product(&mut self, node: NodeRef<'_>, to: Option<(Affine, Rounding)>) -> Result<Id> {
        let side = self.side(self.node(node, "x")?)?;
        let Some(Item::Weight(weight)) = self.items.get(&self.node(node, "weight")?) else {
            return Err(Error::msg("its weight is not of integers"));
        };
        let form = Form::of(node).map_err(Error::msg)?;
        let spec = match (&form, &weight.dims[..]) {
            (Form::Conv(steps), dims) => steps
                .spec(dims)
                .ok_or_else(|| Error::msg("its groups have no kernel of integers"))?,
            (_, &[out, inputs]) => IntegerSpec::matrix(inputs, out),
            _ => return Err(Error::msg("the weight of a linear layer has two dims")),
        };
        let bias = match node.argument("bias")? {
            Argument::Node(bias) => self.attribute(bias)?.to_vec()?,
            _ => vec![0.0; spec.out_channels],
        };
        let scale_of =
            |at: usize| side.affine.scale * weight.scales[at.min(weight.scales.len() - 1)];
        let whole = |(at, bias): (usize, &f64)| {
            let steps = (bias / scale_of(at)).round_ties_even();
            steps.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32
        };
        let bias: Vec<i32> = bias.iter().enumerate().map(whole).collect();
        let result = to.map_or(1.0, |(affine, _)| affine.scale);
        let scale: Vec<f32> = (0..spec.out_channels)
            .map(|at| (scale_of(at) / result) as f32)
            .collect();
        let none = Rounding {
            zero_point: 0,
            low: 0,
            high: 255,
        };
        let rounding = to.map_or(none, |(_, rounding)| rounding);
        let conv = IntegerConv::new(
            spec,
            &weight.integers,
            &bias,
            &scale,
            side.affine.zero_point,
            rounding,
        )
        .map_err(Error::other)?;
        let nodes = vec![node.name().to_string()];
        let (x, of_rows) = (side.id, form == Form::Linear);
        Ok(match to {
            Some(_) => self.push(Kernel::Product { x, conv, of_rows }, "product", nodes),
            None => self.push(Kernel::ToFloats { x, conv }, "product to floats", nodes),
        })
    }

    fn quantize(&mut self, node: NodeRef<'_>) -> Result<Item> {
        let affine = Affine::of(node)?;
        let x = self.node(node, "x")?;
        let nodes = vec![node.name().to_string()];
        let (pending, bounds) = match self.items.get(&x) {
            Some(Item::Input(input)) => {
                let kernel = Kernel::Quantize {
                    input: *input,
                    inverse: (1.0 / affine.scale) as f32,
                    rounding: affine.rounding(),
                };
                let id = self.push(kernel, "quantize", nodes);
                return Ok(Item::Bytes(Side { id, affine }));
            }
            Some(Item::Pending(pending, bounds)) => (*pending, *bounds),
            Some(Item::Bytes(side)) => (Pending::Plain(*side), None),
            _ => {
                return Err(Error::msg(
                    "what it rounds is not an input, and not of integers",
                ));
            }
        };
        let rounding = affine.bounded(bounds);
        let id = match pending {
            Pending::Product(product) => {
                let product = self.part.graph().node(product)?;
                self.product(product, Some((affine, rounding)))?
            }
            Pending::Add(a, b) => {
                let (a, b) = (
                    (a.id, a.affine.over(&affine)),
                    (b.id, b.affine.over(&affine)),
                );
                self.push(Kernel::Add { a, b, rounding }, "add", nodes)
            }
            Pending::Plain(side) => self.rounded(side, affine, rounding, nodes),
            Pending::MaxPool(side, windows) => {
                let id = self.push(
                    Kernel::MaxPool {
                        x: side.id,
                        windows,
                    },
                    "max pool",
                    nodes.clone(),
                );
                self.rounded(Side { id, ..side }, affine, rounding, nodes)
            }
            Pending::Flatten(side, view) => {
                let view = self.part.graph().node(view)?;
                let dim = |name: &str| match view.argument(name)? {
                    Argument::Int(dim) => Ok(dim),
                    _ => Err(Error::msg(format_args!("`{name}` is not a known number"))),
                };
                let (start, end) = (dim("start_dim")?, dim("end_dim")?);
                let id = self.push(
                    Kernel::Flatten {
                        x: side.id,
                        start,
                        end,
                    },
                    "flatten",
                    nodes.clone(),
                );
                self.rounded(Side { id, ..side }, affine, rounding, nodes)
            }
            Pending::Mean(side, windows, counts) => {
                let kernel = Kernel::AveragePool {
                    x: side.id,
                    windows,
                    scale: side.affine.over(&affine).scale,
                    zero_point: side.affine.zero_point,
                    counts,
                    rounding,
                };
                self.push(kernel, "average pool", nodes)
            }
        };
        Ok(Item::Bytes(Side { id, affine }))
    }

    /// Bytes by another affine, or between other bounds; as they are if neither differs.
    fn rounded(
        &mut self,
        side: Side,
        affine: Affine,
        rounding: Rounding,
        nodes: Vec<String>,
    ) -> Id {
        let is_same =
            (side.affine.scale, side.affine.zero_point) == (affine.scale, affine.zero_point);
        if !is_same {
            let x = (side.id, side.affine.over(&affine));
            return self.push(Kernel::Rescale { x, rounding }, "rescale", nodes);
        }
        if rounding.low <= side.affine.low && rounding.high >= side.affine.high {
            return side.id;
        }
        let (low, high) = (rounding.low, rounding.high);
        self.push(
            Kernel::Clamp {
                x: side.id,
                low,
                high,
            },
            "clamp",
            nodes,
        )
    }

    /// The register of a result, in floats.
    fn result(&mut self, id: NodeId) -> Result<Id> {
        match self.items.get(&id) {
            Some(Item::Floats(id)) => Ok(*id),
            Some(Item::Bytes(side)) => {
                let side = *side;
                let is_float = self.part.graph().node(id)?.function()
                    == Some(fx_core::function!(fx_nn::ops::dequantize_affine));
                if !is_float {
                    return Err(Error::msg("a part gives floats, and not integers"));
                }
                let kernel = Kernel::Dequantize {
                    x: side.id,
                    scale: side.affine.scale as f32,
                    zero_point: side.affine.zero_point,
                };
                let name = self.part.graph().node(id)?.name().to_string();
                Ok(self.push(kernel, "dequantize", vec![name]))
            }
            _ => Err(Error::msg("a result of the part is not rounded")),
        }
    }
}

/// Whether a product's result is rounded, by its reader or behind bounds.
fn is_rounded_later(node: NodeRef<'_>) -> bool {
    let is_output = |node: NodeRef<'_>| matches!(node.op(), Op::Output);
    node.num_users() == 1
        && node.users().next().is_some_and(|user| {
            !is_output(user) && matches!(Form::of(user), Ok(Form::Quantize | Form::Bound(..)))
        })
}

/// The registers that a step reads.
fn reads(kernel: &Kernel) -> Vec<Id> {
    match kernel {
        Kernel::Quantize { .. } => Vec::new(),
        Kernel::Add { a, b, .. } => vec![a.0, b.0],
        Kernel::Rescale { x, .. } => vec![x.0],
        Kernel::Product { x, .. }
        | Kernel::ToFloats { x, .. }
        | Kernel::Clamp { x, .. }
        | Kernel::MaxPool { x, .. }
        | Kernel::AveragePool { x, .. }
        | Kernel::Flatten { x, .. }
        | Kernel::Dequantize { x, .. } => vec![*x],
    }
}
