//! The items of a draft as steps of a plan.
//!
//! Invariant: an item that has no kernel is a problem with its node, and what depends on it is none.

use fx_core::ir::{Argument, ValueMeta};
use fx_core::value::DType;
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Activation;
use fx_kernels::matrix::Order;
use fx_kernels::pointwise::{Binary, Unary};
use fx_kernels::reduce::Reduction;
use fx_static::{Fill, Join, Kernel, MaskKind, Normed, Pad, Places, Pooled, Reduce, RowNorm};
use smallvec::SmallVec;

use super::floats::{DIMS, Floats, Place, collapsed};
use super::plan::{Input, Output, Plan, Work};
use super::points::{Source, Steps};
use super::ready::Problems;
use crate::Tensor;
use crate::cpu::array::{Dims, broadcast};
use crate::cpu::draft::{Draft, Id, Item, Kind, Mask, PointOp};
use crate::cpu::frame::place;
use crate::cpu::views::Viewing;

/// What an item gives.
#[derive(Debug, Clone)]
pub(super) enum Given {
    Floats(Floats),
    /// Whole numbers of an input, by its index, with their sizes.
    Indices(usize, Dims),
    /// A tensor that is the same in every run.
    Constant(Tensor),
    /// A whole number, or a list of them.
    Int(i64),
    Ints(Vec<i64>),
    /// Several results.
    Parts(Vec<Floats>),
    /// What an item gives that is a problem, or depends on one.
    Nothing,
}

/// A plan while it is made.
pub(super) struct Planner<'g> {
    pub gm: &'g GraphModule,
    pub plan: Plan,
    pub given: Vec<Given>,
    pub problems: Problems,
    /// What the item that is being planned is called.
    pub what: String,
}

impl<'g> Planner<'g> {
    pub fn new(gm: &'g GraphModule) -> Self {
        Planner {
            gm,
            plan: Plan::default(),
            given: Vec::new(),
            problems: Problems::default(),
            what: String::new(),
        }
    }

    /// The plan of all items.
    pub fn plan(mut self, draft: &mut Draft) -> Result<Plan> {
        self.inputs();
        for item in &mut draft.items {
            let mut is_open = false;
            item.visit_uses(&mut |id| is_open |= matches!(self.given[*id], Given::Nothing));
            let given = self.item(item, is_open)?;
            self.given.push(given);
        }
        self.problems.none()?;
        self.outputs(draft)?;
        self.problems.none()?;
        Ok(self.plan)
    }

    fn inputs(&mut self) {
        for node in self.gm.graph().placeholders() {
            let meta = node.meta::<ValueMeta>();
            let tensor = meta.and_then(ValueMeta::tensor);
            let dims = tensor.and_then(|tensor| {
                let sizes = tensor.shape.iter();
                let sizes = sizes.map(|size| usize::try_from(size.as_number()?).ok());
                sizes.collect::<Option<Vec<usize>>>()
            });
            let is_indices = tensor.is_some_and(|tensor| tensor.dtype == Some(DType::I64));
            let is_floats = tensor.is_some_and(|tensor| tensor.dtype == Some(DType::F32));
            let is_taken = is_floats || is_indices;
            if !is_taken && node.num_users() > 0 {
                let what = meta.map_or("of an unknown kind".to_string(), ValueMeta::to_string);
                self.problems.add(
                    node,
                    format_args!("it is {what}: inputs are tensors of f32, or of i64 for indices"),
                );
            }
            self.plan.inputs.push(Input {
                name: node.name().to_string(),
                dims: dims.unwrap_or_default(),
                is_indices,
            });
        }
    }

    fn outputs(&mut self, draft: &Draft) -> Result<()> {
        let node = self.gm.graph().output_node();
        let node = node.ok_or_else(|| Error::msg("the graph has no output"))?;
        let mut flat = Vec::new();
        let mut left: Vec<_> = draft.output.iter().collect();
        while let Some(argument) = left.pop() {
            match argument {
                Argument::Tuple(items) | Argument::List(items) => left.extend(items.iter().rev()),
                Argument::Dict(items) => left.extend(items.iter().rev().map(|(_, item)| item)),
                argument => flat.push(argument),
            }
        }
        let mut results = Vec::new();
        for argument in flat {
            let node = argument.as_node();
            match node.and_then(|node| draft.returned.get(&node)) {
                Some(id) => match &self.given[*id] {
                    Given::Parts(parts) => results.extend(parts.iter().cloned().map(Ok)),
                    Given::Floats(floats) => results.push(Ok(floats.clone())),
                    Given::Constant(tensor) if tensor.dtype()? == DType::F32 => {
                        results.push(self.floats(*id));
                    }
                    _ => results.push(Err(Error::msg("a result is no tensor of f32"))),
                },
                None => results.push(Err(Error::msg("a result is no tensor of f32"))),
            }
        }
        let is_single = results.len() == 1;
        for (at, floats) in results.into_iter().enumerate() {
            let floats = match floats {
                Ok(floats) => floats,
                Err(error) => {
                    self.problems.add(node, error);
                    continue;
                }
            };
            self.what = "a result".into();
            let floats = match (floats.memory, floats.is_contiguous()) {
                (Place::Buffer(_), true) => floats,
                // Of the arena, so that all results are.
                _ => self.copied(floats)?,
            };
            let name = match is_single {
                true => "output".to_string(),
                false => format!("output_{at}"),
            };
            self.plan.outputs.push(Output { name, floats });
        }
        Ok(())
    }

    /// The floats that an item gives.
    pub fn floats(&mut self, id: Id) -> Result<Floats> {
        match &self.given[id] {
            Given::Floats(floats) => Ok(floats.clone()),
            Given::Constant(tensor) => {
                let tensor = tensor.clone();
                self.plan.weights.add(&tensor)
            }
            Given::Int(number) => {
                let number = Tensor::from_vec(vec![*number as f32], [0usize; 0])?;
                self.plan.weights.add(&number)
            }
            _ => Err(Error::msg("it takes what is no tensor of f32")),
        }
    }

    pub fn in_order(&mut self, id: Id) -> Result<Floats> {
        let floats = self.floats(id)?;
        self.contiguous(floats)
    }

    pub fn kernel(
        &mut self,
        kernel: impl Kernel + Send + Sync + 'static,
        reads: &[&Floats],
        dims: Dims,
    ) -> Result<Floats> {
        self.plan.kernel(&self.what, kernel, reads, dims)
    }

    fn item(&mut self, item: &Item, is_open: bool) -> Result<Given> {
        let node = item.nodes.last();
        let node = node.and_then(|name| self.gm.graph().find_name(name));
        self.what = item.nodes.join(", ");
        // What gives a number that is known needs nothing.
        let meta = node.and_then(|node| node.meta::<ValueMeta>());
        match meta {
            Some(ValueMeta::Int(dim)) if !item.is_floats => {
                if let Some(number) = dim.as_number() {
                    return Ok(Given::Int(number));
                }
            }
            Some(ValueMeta::List(items) | ValueMeta::Tuple(items)) if !item.is_floats => {
                let number = |meta: &ValueMeta| match meta {
                    ValueMeta::Int(dim) => dim.as_number(),
                    _ => None,
                };
                if let Some(numbers) = items.iter().map(number).collect::<Option<Vec<_>>>() {
                    return Ok(Given::Ints(numbers));
                }
            }
            _ => {}
        }
        if is_open {
            return Ok(Given::Nothing);
        }
        match self.made(item) {
            Ok(given) => Ok(given),
            Err(error) => {
                match node {
                    Some(node) => self.problems.add(node, error),
                    None => return Err(error),
                }
                Ok(Given::Nothing)
            }
        }
    }

    fn made(&mut self, item: &Item) -> Result<Given> {
        let inputs = &item.inputs[..];
        Ok(Given::Floats(match &item.kind {
            Kind::Input(at) => {
                let input = &self.plan.inputs[*at];
                let dims: Dims = input.dims.iter().copied().collect();
                return Ok(match input.is_indices {
                    true => Given::Indices(*at, dims),
                    false => Given::Floats(Floats::of(Place::Input(*at), dims)),
                });
            }
            Kind::Constant(tensor) => return Ok(Given::Constant(tensor.clone())),
            Kind::Floats => self.floats(inputs[0])?,
            Kind::Host {
                function,
                args,
                items,
            } => return self.host(*function, args, items),
            Kind::View(view) => {
                let x = self.floats(inputs[0])?;
                self.viewed(x, view)?
            }
            Kind::Part(at) => match &self.given[inputs[0]] {
                Given::Parts(parts) => parts
                    .get(*at)
                    .cloned()
                    .ok_or_else(|| Error::msg("there is no such result"))?,
                _ => return Err(Error::msg("it is a part of what has none")),
            },
            Kind::Conv {
                spec,
                weight,
                bias,
                activation,
            } => self.conv(inputs, *spec, weight, bias.as_ref(), *activation)?,
            Kind::ConvOf {
                groups,
                stride,
                padding,
                dilation,
            } => self.conv_of(inputs, *groups, [*stride, *padding, *dilation])?,
            Kind::ConvTranspose(steps) => self.conv_transpose(inputs, *steps)?,
            Kind::MaxPool(spec) => {
                let x = self.floats(inputs[0])?;
                self.pool(x, spec, Pooled::Largest)?
            }
            Kind::AveragePool(spec) => {
                let x = self.floats(inputs[0])?;
                self.pool(x, spec, Pooled::Mean)?
            }
            Kind::AdaptivePool(size) => {
                let x = self.floats(inputs[0])?;
                self.adaptive_pool(x, *size)?
            }
            Kind::Linear {
                weight,
                bias,
                activation,
                order,
            } => {
                let is_residual_first = *order == Order::ResidualFirst;
                self.linear(
                    inputs,
                    weight,
                    bias.as_ref(),
                    *activation,
                    is_residual_first,
                )?
            }
            Kind::LinearOf => self.linear_of(inputs)?,
            Kind::Matmul => self.matmul(inputs)?,
            Kind::Attention(how) => self.attention(inputs, *how)?,
            Kind::LayerNorm {
                size,
                weight,
                bias,
                eps,
            } => self.norm(
                Normed::Layer,
                inputs[0],
                *size,
                [weight.as_ref(), bias.as_ref()],
                *eps,
            )?,
            Kind::RmsNorm { size, weight, eps } => {
                self.norm(Normed::Rms, inputs[0], *size, [weight.as_ref(), None], *eps)?
            }
            Kind::NormOf(how) => {
                let given: Result<Vec<Floats>> =
                    inputs[1..].iter().map(|id| self.in_order(*id)).collect();
                let kind = match how.is_layer {
                    true => Normed::Layer,
                    false => Normed::Rms,
                };
                let norm = RowNorm {
                    how: kind,
                    size: how.size,
                    eps: how.eps,
                    has_weight: how.has_weight,
                    has_bias: how.has_bias,
                };
                self.rows(norm, inputs[0], &given?)?
            }
            Kind::Softmax(dim) => self.softmax(inputs[0], *dim, Normed::Softmax)?,
            Kind::LogSoftmax(dim) => self.softmax(inputs[0], *dim, Normed::LogSoftmax)?,
            Kind::Embedding(table) => {
                let table = self.plan.weights.add(table)?;
                self.embedding(inputs[0], table)?
            }
            Kind::EmbeddingOf => {
                let table = self.in_order(inputs[1])?;
                self.embedding(inputs[0], table)?
            }
            Kind::Pointwise(points) => self.points(inputs, points.clone())?,
            Kind::ChannelAffine {
                factors,
                shifts,
                activation,
                ..
            } => self.channel_affine(inputs[0], [factors, shifts], *activation)?,
            Kind::Cat(dim) => self.cat(inputs, *dim)?,
            Kind::Reduce { how, dims, keepdim } => self.reduce(inputs[0], *how, dims, *keepdim)?,
            Kind::Gather { dim, places } => self.gather(inputs[0], *dim, places)?,
            Kind::Pad { sides, value } => self.pad(inputs[0], sides, *value)?,
            Kind::Filled(number) => {
                let dims = self.floats(inputs[0])?.dims;
                self.kernel(Fill { value: *number }, &[], dims)?
            }
            Kind::Recurrent(how, weights) => {
                return self.recurrent(inputs, *how, weights.as_deref());
            }
            _ => return Err(Error::msg("there is no kernel for it")),
        }))
    }

    fn norm(
        &mut self,
        how: Normed,
        id: Id,
        size: usize,
        [weight, bias]: [Option<&Tensor>; 2],
        eps: f32,
    ) -> Result<Floats> {
        let norm = RowNorm {
            how,
            size,
            eps,
            has_weight: weight.is_some(),
            has_bias: bias.is_some(),
        };
        let given = [weight, bias].into_iter().flatten();
        let given: Result<Vec<Floats>> =
            given.map(|tensor| self.plan.weights.add(tensor)).collect();
        self.rows(norm, id, &given?)
    }

    fn rows(&mut self, norm: RowNorm, id: Id, given: &[Floats]) -> Result<Floats> {
        let x = self.in_order(id)?;
        if x.dims.last() != Some(&norm.size) {
            return Err(Error::msg("the rows of a norm have another size"));
        }
        let reads: Vec<&Floats> = [&x].into_iter().chain(given).collect();
        self.kernel(norm, &reads, x.dims.clone())
    }

    fn softmax(&mut self, id: Id, dim: i64, how: Normed) -> Result<Floats> {
        let x = self.floats(id)?;
        let rank = x.dims.len();
        if rank == 0 {
            return Err(Error::msg("it is over a dim of a tensor that has none"));
        }
        let mut order: Dims = (0..rank).collect();
        order.swap(place(dim, rank)?, rank - 1);
        let x = self.contiguous(x.permuted(&order))?;
        let norm = RowNorm {
            how,
            size: x.dims[rank - 1],
            eps: 0.0,
            has_weight: false,
            has_bias: false,
        };
        let made = self.kernel(norm, &[&x], x.dims.clone())?;
        Ok(made.permuted(&order))
    }

    /// The rows of a table at the indices that an input has.
    fn embedding(&mut self, id: Id, table: Floats) -> Result<Floats> {
        let (input, dims) = match &self.given[id] {
            Given::Indices(input, dims) => (*input, dims.clone()),
            _ => return Err(Error::msg("its indices are no input of i64")),
        };
        let [_, size] = table.dims[..] else {
            return Err(Error::msg("the table of an embedding has two dims"));
        };
        let mut dims = dims;
        dims.push(size);
        let work = Work::Rows { size, input };
        self.plan.push(&self.what, work, &[&table], dims, 0)
    }

    /// Functions of elements.
    pub fn points(&mut self, inputs: &[Id], points: Vec<PointOp>) -> Result<Floats> {
        let views: Result<Vec<Floats>> = inputs.iter().map(|id| self.floats(*id)).collect();
        let views = views?;
        self.points_of(&views, points)
    }

    /// Functions of the elements of views.
    pub fn points_of(&mut self, views: &[Floats], points: Vec<PointOp>) -> Result<Floats> {
        let dims = broadcast(views.iter().map(|x| &x.dims[..]));
        let dims = dims.ok_or_else(|| Error::msg("the sizes of its operands do not fit"))?;
        let wide: Option<Vec<Floats>> = views.iter().map(|x| x.expanded(&dims)).collect();
        let wide = wide.ok_or_else(|| Error::msg("the sizes of its operands do not fit"))?;
        let strides: Vec<&[usize]> = wide.iter().map(|x| &x.strides[..]).collect();
        let (all, strides) = collapsed::<DIMS>(&dims, &strides)?;
        let steps = Steps {
            points,
            dims: all,
            inputs: (0..wide.len()).map(Source::Read).collect(),
            strides,
        };
        steps.check()?;
        let reads: Vec<&Floats> = wide.iter().collect();
        self.plan
            .push(&self.what, Work::Points(steps), &reads, dims, 0)
    }

    /// Each channel times a factor plus a shift.
    pub fn channel_affine(
        &mut self,
        id: Id,
        numbers: [&Tensor; 2],
        activation: Activation,
    ) -> Result<Floats> {
        let x = self.floats(id)?;
        let mut views: SmallVec<[Floats; 3]> = SmallVec::new();
        views.push(x.clone());
        for tensor in numbers {
            let mut view = self.plan.weights.add(tensor)?;
            if x.dims.len() < 2 || view.dims[..] != [x.dims[1]] {
                return Err(Error::msg("a batch norm is over other channels"));
            }
            for at in 2..x.dims.len() {
                view = view.with_one(at - 1);
            }
            views.push(view);
        }
        let points = vec![
            PointOp::Input(0),
            PointOp::Input(1),
            PointOp::Binary(Binary::Mul, 0, 1),
            PointOp::Input(2),
            PointOp::Binary(Binary::Add, 2, 3),
            PointOp::Unary(Unary::Activation(activation), 4),
        ];
        self.points_of(&views, points)
    }

    fn cat(&mut self, inputs: &[Id], dim: i64) -> Result<Floats> {
        let mut parts = Vec::with_capacity(inputs.len());
        for id in inputs {
            let part = self.in_order(*id)?;
            // An empty tensor of one dim fits everything.
            if part.dims[..] != [0] {
                parts.push(part);
            }
        }
        let first = parts
            .first()
            .ok_or_else(|| Error::msg("nothing is joined"))?;
        let mut dims = first.dims.clone();
        let dim = place(dim, dims.len())?;
        dims[dim] = parts.iter().map(|part| part.dims[dim]).sum();
        let outer = dims[..dim].iter().product();
        let reads: Vec<&Floats> = parts.iter().collect();
        self.kernel(Join { outer }, &reads, dims)
    }

    fn reduce(&mut self, id: Id, how: Reduction, dims: &[i64], keepdim: bool) -> Result<Floats> {
        let x = self.floats(id)?;
        let rank = x.dims.len();
        let mut is_gone = vec![dims.is_empty(); rank];
        for dim in dims.iter().filter(|_| rank > 0) {
            is_gone[place(*dim, rank)?] = true;
        }
        let left = |at: &usize| keepdim || !is_gone[*at];
        let made: Dims = (0..rank)
            .filter(left)
            .map(|at| if is_gone[at] { 1 } else { x.dims[at] })
            .collect();
        let kept = (0..rank).filter(|at| !is_gone[*at]);
        let gone = (0..rank).filter(|at| is_gone[*at]);
        let first = is_gone.iter().position(|gone| *gone).unwrap_or(rank);
        let count: usize = gone.clone().map(|at| x.dims[at]).product();
        if count == 0 && matches!(how, Reduction::Max | Reduction::Min) {
            return Err(Error::msg("there is nothing to take the largest of"));
        }
        let last = first + gone.clone().count();
        // Dims next to each other are reduced where they are; others go to the end.
        let (x, outer, inner) = match is_gone[first..last].iter().all(|gone| *gone) {
            true => {
                let outer = x.dims[..first].iter().product();
                let inner = x.dims[last..].iter().product();
                (x, outer, inner)
            }
            false => {
                let outer = kept.clone().map(|at| x.dims[at]).product();
                let order: Dims = kept.chain(gone).collect();
                (x.permuted(&order), outer, 1)
            }
        };
        let x = self.contiguous(x)?;
        let reduce = Reduce {
            how,
            sizes: [outer, count, inner],
        };
        self.kernel(reduce, &[&x], made)
    }

    fn gather(&mut self, id: Id, dim: i64, places: &[usize]) -> Result<Floats> {
        let x = self.in_order(id)?;
        let dim = place(dim, x.dims.len())?;
        if places.iter().any(|at| *at >= x.dims[dim]) {
            return Err(Error::msg("an index is behind the end"));
        }
        let mut dims = x.dims.clone();
        dims[dim] = places.len();
        let chosen = Places {
            sizes: [
                x.dims[..dim].iter().product(),
                x.dims[dim],
                x.dims[dim + 1..].iter().product(),
            ],
            places: places.to_vec(),
        };
        self.kernel(chosen, &[&x], dims)
    }

    fn pad(&mut self, id: Id, sides: &[[usize; 2]], value: f32) -> Result<Floats> {
        let x = self.in_order(id)?;
        let rank = x.dims.len();
        if rank > DIMS || sides.len() > rank {
            return Err(Error::msg(
                "a padding is over more dims than there are, or over more than 6",
            ));
        }
        let mut pad = Pad {
            dims: [1; DIMS],
            before: [0; DIMS],
            after: [0; DIMS],
            value,
        };
        pad.dims[DIMS - rank..].copy_from_slice(&x.dims);
        for (at, [before, after]) in sides.iter().enumerate() {
            pad.before[DIMS - 1 - at] = *before;
            pad.after[DIMS - 1 - at] = *after;
        }
        let dims = (0..rank).map(|at| {
            let at = DIMS - rank + at;
            pad.dims[at] + pad.before[at] + pad.after[at]
        });
        self.kernel(pad, &[&x], dims.collect())
    }

    /// What a mask of attention means, if there is one.
    pub fn mask_kind(&self, mask: Mask, id: Option<Id>) -> Option<MaskKind> {
        let is_truth = |id: Id| match &self.given[id] {
            Given::Constant(tensor) => tensor.dtype().is_ok_and(|dtype| dtype == DType::Bool),
            _ => false,
        };
        match (mask, id) {
            (Mask::None, _) | (_, None) => None,
            (Mask::Forbidden, _) => Some(MaskKind::Forbidden),
            (_, Some(id)) if is_truth(id) => Some(MaskKind::Allowed),
            _ => Some(MaskKind::Added),
        }
    }
}
