//! The steps of a part, from its graph.
//!
//! Invariant: a product or a sum and the bounds behind it are one step, which rounds once.

use std::sync::Mutex;

use fx_core::ir::{Argument, Graph, NodeRef, Op, ValueMeta};
use fx_core::module::Attributes;
use fx_core::passes::backend::StepReport;
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result, function};
use fx_kernels::integer::{IntegerConv, IntegerSpec, Rounding, Windows};
use fx_kernels::{Level, Pace};
use fx_nn::{Tensor, ops};
use rustc_hash::FxHashMap;

use super::affine::{Affine, Numbers, Weight, constant, integers_of, moved};
use super::form::{Form, Forms};
use super::layout::bytes_of;
use super::program::Program;
use super::read::{is_call, is_matmul, only_input, only_reader, operands, range_of, two_nodes};
use super::run::Rooms;
use super::step::{Floats, Id, Kernel, OfRun, RunScale, Scalar, Shape, Step};

/// What is not rounded yet.
#[derive(Clone)]
enum Pending {
    Product(NodeId, Option<NodeId>),
    Add(Side, Side),
    Mul(Side, Side),
    Cat(Vec<Side>, i64),
    Mean(Side, Windows, bool),
    /// Of all pixels, and whether their dims stay.
    MeanOfAll(Side, bool),
    /// A value itself, behind bounds.
    Plain(Side),
    /// What functions of each element make of each byte.
    Table(Side, Vec<f32>),
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
    /// A constant, or what a constant stands for.
    Constant,
    /// Integers, and their type.
    Integers(Id, DType),
    /// Integers, and the floats that they stand for.
    Bytes(Side),
    Pending(Pending, Option<(f64, f64)>),
    Floats(Id),
    /// A product in floats, and what it is multiplied with: the one reader of it computes both.
    Scaled(NodeId, Option<Scalar>),
    /// Integers of a type whose scale or zero point a run decides.
    OfRun(Id, DType, OfRun),
}

struct Builder<'p> {
    part: &'p GraphModule,
    forms: Forms<'p>,
    items: FxHashMap<NodeId, Item>,
    steps: Vec<Step>,
    registers: usize,
}

/// The program of a part.
pub(super) fn program(part: &GraphModule, level: Level) -> Result<Program> {
    let mut builder = Builder {
        part,
        forms: Forms {
            attributes: part.attributes(),
        },
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
            Op::GetAttr(_) => Item::Constant,
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
        make: program,
        pace: Pace::default(),
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
            for id in step.kernel.reads() {
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

    fn at(&self, id: NodeId) -> Result<NodeRef<'p>> {
        self.part.graph().node(id)
    }

    fn attributes(&self) -> &'p Attributes {
        self.part.attributes()
    }

    /// The bytes of a value; those of a constant get a register here.
    fn side(&mut self, id: NodeId) -> Result<Side> {
        match self.items.get(&id) {
            Some(Item::Bytes(side)) => return Ok(*side),
            Some(Item::Constant) => {}
            _ => return Err(Error::msg("an input of it is not of integers")),
        }
        let node = self.at(id)?;
        let integers = integers_of(node, self.attributes())
            .ok_or_else(|| Error::msg("a constant beside integers is one of them"))?;
        let dtype = integers.dtype()?;
        let affine = Affine::read(node, dtype)?;
        let (bytes, dims) = (
            bytes_of(&integers, dtype == DType::I8)?,
            integers.dims()?.to_vec(),
        );
        let name = vec![node.name().to_string()];
        let id = self.push(Kernel::Constant { bytes, dims }, "constant", name);
        Ok(Side { id, affine })
    }

    fn call(&mut self, node: NodeRef<'p>) -> Result<Item> {
        let forms = self.forms;
        let form = forms.of(node).map_err(Error::msg)?;
        let mut side_of = |name: &str| self.side(self.node(node, name)?);
        Ok(match form {
            Form::Quantize => self.quantize(node)?,
            Form::QuantizeOfRun => self.quantize_of_run(node)?,
            Form::Dequantize => self.dequantize(node)?,
            Form::DequantizeOfRun => {
                let (id, dtype) = self.integers(self.at(self.node(node, "x")?)?)?;
                Item::OfRun(id, dtype, self.of_run(node)?)
            }
            Form::Constant => Item::Constant,
            Form::Linear | Form::Conv(_) if forms.is_rounded(node) => {
                Item::Pending(Pending::Product(node.id(), None), None)
            }
            Form::Linear | Form::Conv(_) => {
                let reader = only_reader(node).and_then(|reader| forms.scaled(reader));
                match reader.is_some_and(|(product, _)| product.id() == node.id()) {
                    true => Item::Scaled(node.id(), None),
                    false => Item::Floats(self.product(node, None, None, None)?),
                }
            }
            Form::Scale => {
                let (product, scale) = forms
                    .scaled(node)
                    .ok_or_else(|| Error::msg("it multiplies no product"))?;
                let scale = self.scalar(scale.id(), "the scale")?;
                let reader = only_reader(node).and_then(|reader| forms.sum_of_scaled(reader));
                match reader.is_some_and(|(scaled, _)| scaled.id() == node.id()) {
                    true => Item::Scaled(product.id(), Some(scale)),
                    false => Item::Floats(self.product(product, None, Some(scale), None)?),
                }
            }
            Form::BiasOfScaled => {
                let (scaled, bias) = forms
                    .sum_of_scaled(node)
                    .ok_or_else(|| Error::msg("it adds to no product"))?;
                let Some(Item::Scaled(product, Some(scale))) = self.items.get(&scaled.id()) else {
                    return Err(Error::msg("what it adds to is no product"));
                };
                let (product, scale) = (self.at(*product)?, *scale);
                Item::Floats(self.product(product, Some(bias.id()), Some(scale), None)?)
            }
            Form::Bias => {
                let of = forms.product_of_sum(node);
                let (product, bias) = of.ok_or_else(|| Error::msg("it adds no bias"))?;
                Item::Pending(Pending::Product(product.id(), Some(bias.id())), None)
            }
            Form::Add | Form::Mul => {
                let two = two_nodes(node).ok_or_else(|| Error::msg("it is of two tensors"))?;
                let (a, b) = (self.side(two[0].id())?, self.side(two[1].id())?);
                match form == Form::Add {
                    true => Item::Pending(Pending::Add(a, b), None),
                    false => Item::Pending(Pending::Mul(a, b), None),
                }
            }
            Form::Cat(dim) => {
                let all: Vec<NodeId> = match &node.argument("tensors")? {
                    Argument::List(items) | Argument::Tuple(items) => {
                        items.iter().filter_map(Argument::as_node).collect()
                    }
                    _ => Vec::new(),
                };
                let sides = all.into_iter().map(|id| self.side(id));
                Item::Pending(Pending::Cat(sides.collect::<Result<_>>()?, dim), None)
            }
            Form::Bound(low, high) => {
                let x = self.node(node, "x")?;
                match self.items.get(&x) {
                    Some(Item::Pending(pending, None)) => {
                        Item::Pending(pending.clone(), Some((low, high)))
                    }
                    Some(Item::Bytes(side)) => {
                        Item::Pending(Pending::Plain(*side), Some((low, high)))
                    }
                    _ => return Err(Error::msg("its input is not of integers")),
                }
            }
            Form::Each => self.each(node)?,
            Form::MaxPool(windows) => {
                let side = side_of("x")?;
                let kernel = Kernel::MaxPool {
                    x: side.id,
                    windows,
                };
                let id = self.push(kernel, "max pool", vec![node.name().to_string()]);
                Item::Bytes(Side { id, ..side })
            }
            Form::Pad(by) => {
                let side = side_of("x")?;
                let kernel = Kernel::Pad {
                    x: side.id,
                    by,
                    byte: side.affine.zero_point,
                };
                let id = self.push(kernel, "pad", vec![node.name().to_string()]);
                Item::Bytes(Side { id, ..side })
            }
            Form::AveragePool(windows, counts) => {
                Item::Pending(Pending::Mean(side_of("x")?, windows, counts), None)
            }
            Form::Mean => {
                let keeps = is_call(node, function!(ops::adaptive_avg_pool2d))
                    || matches!(node.argument("keepdim"), Ok(Argument::Bool(true)));
                Item::Pending(Pending::MeanOfAll(side_of("x")?, keeps), None)
            }
            Form::View => self.view(node)?,
        })
    }

    /// What a call of one tensor computes, as a graph of its own.
    fn alone(&self, node: NodeRef<'_>) -> Result<GraphModule> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let y = graph.node_copy(node, |_| Argument::Node(x))?;
        graph.output(y)?;
        GraphModule::new(Attributes::default(), graph, "call")
    }

    /// A function of each element, as a table of its results.
    fn each(&mut self, node: NodeRef<'_>) -> Result<Item> {
        let x = only_input(node).ok_or_else(|| Error::msg("it is not of one tensor"))?;
        let (side, values) = match self.items.get(&x.id()) {
            Some(Item::Bytes(side)) => (*side, side.affine.values()),
            Some(Item::Pending(Pending::Table(side, values), None)) => (*side, values.clone()),
            _ => return Err(Error::msg("its input is not of integers")),
        };
        let count = values.len();
        let made: Tensor = self
            .alone(node)?
            .forward(&Tensor::from_vec(values, count)?)?;
        if made.dims()? != [count] {
            return Err(Error::msg("it does not give one number for each"));
        }
        let made = made.to_vec()?.into_iter().map(|x| x as f32).collect();
        Ok(Item::Pending(Pending::Table(side, made), None))
    }

    /// The same elements in another shape: of integers, or of what they stand for.
    fn view(&mut self, node: NodeRef<'_>) -> Result<Item> {
        let x = only_input(node).ok_or_else(|| Error::msg("it is not of one tensor"))?;
        let (from, side, dtype) = match self.items.get(&x.id()) {
            Some(Item::Bytes(side)) => (side.id, Some(*side), DType::U8),
            _ => {
                let (id, dtype) = self.integers(x)?;
                (id, None, dtype)
            }
        };
        let call = Box::new(self.alone(node)?);
        let nodes = vec![node.name().to_string()];
        let id = self.push(Kernel::View { x: from, call }, "view", nodes);
        Ok(match side {
            Some(side) => Item::Bytes(Side { id, ..side }),
            None => Item::Integers(id, dtype),
        })
    }

    /// The type of an input of integers.
    fn type_of(&self, node: NodeRef<'_>) -> Result<DType> {
        let meta: Option<&ValueMeta> = node.meta();
        let dtype = meta.and_then(|meta| meta.tensor()?.dtype);
        dtype
            .filter(|dtype| matches!(dtype, DType::U8 | DType::I8))
            .ok_or_else(|| Error::msg("an input is not known to be of integers of 8 bits"))
    }

    /// The register of the integers that a node gives, and their type.
    fn integers(&mut self, node: NodeRef<'_>) -> Result<(Id, DType)> {
        match self.items.get(&node.id()) {
            Some(Item::Integers(id, dtype)) => Ok((*id, *dtype)),
            Some(Item::Input(input)) => {
                let (input, dtype) = (*input, self.type_of(node)?);
                let kernel = Kernel::Load {
                    input,
                    is_signed: dtype == DType::I8,
                };
                let id = self.push(kernel, "load", vec![node.name().to_string()]);
                Ok((id, dtype))
            }
            _ => Err(Error::msg("its input is not of integers")),
        }
    }

    /// Where the floats of a node are, if it gives some.
    fn floats(&self, id: NodeId) -> Option<Floats> {
        match self.items.get(&id)? {
            Item::Floats(id) => Some(Floats::Register(*id)),
            Item::Input(input) => Some(Floats::Input(*input)),
            _ => None,
        }
    }

    /// The scale and the zero point of a call, as a run reads them.
    fn of_run(&self, node: NodeRef<'_>) -> Result<OfRun> {
        let scalar = |name: &str| match node.argument(name)? {
            Argument::Float(number) => Ok(Scalar::Number(number)),
            Argument::Int(number) => Ok(Scalar::Number(number as f64)),
            Argument::Node(id) => self.scalar(id, name),
            _ => Err(Error::msg(format_args!("`{name}` is not one number"))),
        };
        Ok(OfRun {
            scale: scalar("scale")?,
            zero_point: scalar("zero_point")?,
        })
    }

    /// A value of one element, as a run reads it.
    fn scalar(&self, id: NodeId, name: &str) -> Result<Scalar> {
        if let Some(Item::Input(input)) = self.items.get(&id) {
            return Ok(Scalar::Input(*input));
        }
        let own = constant(self.at(id)?, self.attributes());
        let own = own.and_then(|own| own.to_vec().ok()?.first().copied());
        own.map(Scalar::Number)
            .ok_or_else(|| Error::msg(format_args!("`{name}` is no input")))
    }

    fn quantize_of_run(&mut self, node: NodeRef<'_>) -> Result<Item> {
        let (dtype, low, high) =
            range_of(node).ok_or_else(|| Error::msg("its integers are not of 8 bits"))?;
        let from = self.floats(self.node(node, "x")?);
        let from = from.ok_or_else(|| Error::msg("it is not of floats"))?;
        let kernel = Kernel::QuantizeOfRun {
            from,
            of: self.of_run(node)?,
            moved: moved(dtype),
            ends: (low, high),
        };
        let id = self.push(kernel, "quantize", vec![node.name().to_string()]);
        Ok(Item::Integers(id, dtype))
    }

    fn dequantize(&mut self, node: NodeRef<'_>) -> Result<Item> {
        let x = self.at(self.node(node, "x")?)?;
        let (id, dtype) = self.integers(x)?;
        let mut affine = Affine::read(node, dtype)?;
        // Of a quantization, the ends are known.
        if is_call(x, function!(ops::quantize_affine)) {
            let of = Affine::of(x)?;
            (affine.low, affine.high) = (of.low, of.high);
        }
        Ok(Item::Bytes(Side { id, affine }))
    }

    /// The bias of a product in steps of its sums.
    fn bias(
        &self,
        node: Option<NodeId>,
        channels: usize,
        step: impl Fn(usize) -> f64,
    ) -> Result<Vec<i32>> {
        let Some(node) = node else {
            return Ok(vec![0; channels]);
        };
        let node = self.at(node)?;
        let whole = |x: f64| {
            x.round_ties_even()
                .clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32
        };
        if let Some(bias) = constant(node, self.attributes()) {
            let each = bias.to_vec()?.into_iter().enumerate();
            return Ok(each.map(|(at, bias)| whole(bias / step(at))).collect());
        }
        let each = self.steps_of_bias(node)?.into_iter().enumerate();
        let each = each.map(|(at, (steps, own))| {
            let ratio = own / step(at);
            // Integers with the scale of the sums are taken as they are.
            match (ratio - 1.0).abs() < 1e-5 {
                true => whole(steps),
                false => whole(steps * ratio),
            }
        });
        Ok(each.collect())
    }

    /// The integers of a bias beside their zero points, with the scale of each.
    fn steps_of_bias(&self, node: NodeRef<'_>) -> Result<Vec<(f64, f64)>> {
        let lacks = || Error::msg("a bias is a vector of the module");
        let integers = integers_of(node, self.attributes());
        let integers = integers.ok_or_else(lacks)?.to_vec()?;
        let read = |name: &str| {
            let numbers = Numbers::of(node, name, self.attributes());
            numbers.ok_or_else(lacks)?.to_vec()
        };
        let (scales, zeros) = (read("scale")?, read("zero_point")?);
        let of = |all: &[f64], at: usize| all.get(at).or(all.first()).copied();
        let each = integers.into_iter().enumerate();
        each.map(|(at, x)| {
            let (zero, scale) = of(&zeros, at).zip(of(&scales, at)).ok_or_else(lacks)?;
            Ok((x - zero, scale))
        })
        .collect()
    }

    /// A bias in floats.
    fn floats_of_bias(&self, node: Option<NodeId>) -> Result<Vec<f32>> {
        let Some(node) = node else {
            return Ok(Vec::new());
        };
        let node = self.at(node)?;
        let bias = match constant(node, self.attributes()) {
            Some(bias) => bias.to_vec()?,
            None => (self.steps_of_bias(node)?.into_iter())
                .map(|(steps, scale)| steps * scale)
                .collect(),
        };
        Ok(bias.into_iter().map(|bias| bias as f32).collect())
    }

    /// A product: bytes by a rounding, or floats, which a run may multiply with a number before a bias is added.
    fn product(
        &mut self,
        node: NodeRef<'p>,
        bias: Option<NodeId>,
        scaled: Option<Scalar>,
        to: Option<(Affine, Rounding)>,
    ) -> Result<Id> {
        let (x, from) = operands(node).map_err(Error::msg)?;
        let x = x.id();
        let of_run = match self.items.get(&x) {
            Some(Item::OfRun(id, dtype, of)) => Some((*id, *dtype, *of)),
            _ => None,
        };
        let side = match of_run {
            // As if the scale were 1: that of a run comes to the sums.
            Some((id, ..)) => Side {
                id,
                affine: Affine::STEPS,
            },
            None => self.side(x)?,
        };
        let weight = Weight::of(from, self.attributes()).map_err(Error::msg)?;
        let (spec, integers, shape) =
            match (self.forms.of(node).map_err(Error::msg)?, &weight.dims[..]) {
                (Form::Conv(spec), dims) => {
                    let shape = match dims.len() {
                        3 => Shape::Sequence,
                        _ => Shape::Image,
                    };
                    (spec, weight.apart()?, shape)
                }
                (_, &[a, b]) => match is_matmul(node) {
                    true => (
                        IntegerSpec::matrix(a, b),
                        weight.apart_turned()?,
                        Shape::Rows,
                    ),
                    false => (IntegerSpec::matrix(b, a), weight.apart()?, Shape::Rows),
                },
                _ => return Err(Error::msg("the weight of a linear layer has two dims")),
            };
        let bias = match (bias, node.argument("bias")) {
            (Some(bias), _) => Some(bias),
            (None, Ok(Argument::Node(bias))) => Some(bias),
            _ => None,
        };
        let scales = weight.scales()?;
        let scale_of = |at: usize| side.affine.scale * scales[at.min(scales.len() - 1)];
        let (bias, bias_of_run) = match of_run {
            Some(_) => (None, self.floats_of_bias(bias)?),
            None => (bias, Vec::new()),
        };
        let bias = self.bias(bias, spec.out_channels, scale_of)?;
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
        let zero_point = side.affine.zero_point;
        let conv = IntegerConv::new(spec, &integers, &bias, &scale, zero_point, rounding)
            .map_err(Error::other)?;
        let nodes = vec![node.name().to_string()];
        let x = side.id;
        Ok(match to {
            Some(_) => self.push(Kernel::Product { x, conv, shape }, "product", nodes),
            None => {
                let of = of_run.map(|(_, dtype, of)| RunScale {
                    of,
                    moved: moved(dtype),
                    factor: scaled.unwrap_or(Scalar::Number(1.0)),
                    bias: bias_of_run,
                });
                let kernel = Kernel::ToFloats { x, conv, shape, of };
                self.push(kernel, "product to floats", nodes)
            }
        })
    }

    fn quantize(&mut self, node: NodeRef<'p>) -> Result<Item> {
        let affine = Affine::of(node)?;
        let x = self.node(node, "x")?;
        let nodes = vec![node.name().to_string()];
        if let Some(from) = self.floats(x) {
            let kernel = Kernel::Quantize {
                from,
                inverse: (1.0 / affine.scale) as f32,
                rounding: affine.rounding(),
            };
            let id = self.push(kernel, "quantize", nodes);
            return Ok(integers(node, id));
        }
        let (pending, bounds) = match self.items.get(&x) {
            Some(Item::Pending(pending, bounds)) => (pending.clone(), *bounds),
            Some(Item::Bytes(side)) => (Pending::Plain(*side), None),
            _ => {
                return Err(Error::msg(
                    "what it rounds is not an input, and not of integers",
                ));
            }
        };
        let rounding = affine.bounded(bounds);
        let id = match pending {
            Pending::Product(product, bias) => {
                let product = self.at(product)?;
                self.product(product, bias, None, Some((affine, rounding)))?
            }
            Pending::Add(a, b) => {
                let (a, b) = (
                    (a.id, a.affine.over(&affine)),
                    (b.id, b.affine.over(&affine)),
                );
                self.push(Kernel::Add { a, b, rounding }, "add", nodes)
            }
            Pending::Mul(a, b) => {
                let scale = (a.affine.scale * b.affine.scale / affine.scale) as f32;
                let (a, b) = ((a.id, a.affine.zero_point), (b.id, b.affine.zero_point));
                let kernel = Kernel::Mul {
                    a,
                    b,
                    scale,
                    rounding,
                };
                self.push(kernel, "mul", nodes)
            }
            Pending::Cat(sides, dim) => {
                let each = sides
                    .into_iter()
                    .map(|side| self.rounded(side, affine, rounding, nodes.clone()));
                let all = each.collect();
                self.push(Kernel::Cat { all, dim }, "cat", nodes)
            }
            Pending::Plain(side) => self.rounded(side, affine, rounding, nodes),
            Pending::Table(side, values) => {
                let inverse = (1.0 / affine.scale) as f32;
                let mut table = Box::new([0u8; 256]);
                for (to, value) in table.iter_mut().zip(values) {
                    *to = rounding.byte(value * inverse);
                }
                self.push(Kernel::Each { x: side.id, table }, "table", nodes)
            }
            Pending::MeanOfAll(side, keeps) => {
                let kernel = Kernel::Mean {
                    x: side.id,
                    term: side.affine.over(&affine),
                    keeps,
                    rounding,
                };
                self.push(kernel, "mean", nodes)
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
        Ok(integers(node, id))
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

    /// The register of a result: floats, or integers.
    fn result(&mut self, id: NodeId) -> Result<Id> {
        let name = self.at(id)?.name().to_string();
        match self.items.get(&id) {
            Some(Item::Floats(id)) => Ok(*id),
            Some(Item::Integers(id, dtype)) => {
                let kernel = Kernel::Store {
                    x: *id,
                    is_signed: *dtype == DType::I8,
                };
                Ok(self.push(kernel, "store", vec![name]))
            }
            Some(Item::Bytes(side)) => {
                let kernel = Kernel::Dequantize {
                    x: side.id,
                    scale: side.affine.scale as f32,
                    zero_point: side.affine.zero_point,
                };
                Ok(self.push(kernel, "dequantize", vec![name]))
            }
            _ => Err(Error::msg("a result of the part is not rounded")),
        }
    }
}

/// The integers that a quantization gives.
fn integers(node: NodeRef<'_>, id: Id) -> Item {
    let dtype = range_of(node).map_or(DType::U8, |(dtype, ..)| dtype);
    Item::Integers(id, dtype)
}
