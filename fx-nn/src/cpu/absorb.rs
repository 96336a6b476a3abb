//! Factors and shifts of channels that become part of the weights before them, and elements that are computed before
//! dimensions are permuted, not after: files of other layouts permute images around each convolution, and a convolution of
//! rows is one of images.
//!
//! Invariant: weights change only where nothing else uses what they give.

use std::collections::HashMap;

use fx_core::Result;
use fx_core::value::DType;
use fx_kernels::Activation;
use fx_kernels::pointwise::{Binary, Unary};

use super::curve::Curve;
use super::draft::{Draft, Id, Item, Kind, Matrix, PointOp, View};
use crate::Tensor;

/// Takes factors and shifts into weights, and permutes images late.
pub(super) fn absorb(draft: &mut Draft) -> Result<()> {
    let uses = draft.uses();
    let mut made = Made {
        draft: Draft {
            output: draft.output.take(),
            halves: std::mem::take(&mut draft.halves),
            input_halves: std::mem::take(&mut draft.input_halves),
            ..Draft::default()
        },
        uses: Vec::new(),
        is_image: Vec::new(),
        is_row: Vec::new(),
        curves: HashMap::new(),
    };
    let mut renamed: Vec<Id> = Vec::with_capacity(draft.items.len());
    for (item, uses) in std::mem::take(&mut draft.items).into_iter().zip(uses) {
        let mut item = item;
        item.visit_uses(&mut |id| *id = renamed[*id]);
        made.with_numbers(&mut item)?;
        let id = match made.absorbed(&item, uses)? {
            Some(id) => id,
            None => {
                let curve = made.gate(&mut item);
                let id = made.moved_late(item, uses)?;
                let is_there = matches!(made.draft.items[id].kind, Kind::Pointwise(_));
                if let Some(curve) = curve.filter(|_| is_there) {
                    made.curves.insert(id, curve);
                }
                id
            }
        };
        renamed.push(id);
    }
    for (node, id) in std::mem::take(&mut draft.returned) {
        made.draft.returned.insert(node, renamed[id]);
    }
    *draft = made.draft;
    draft.without_dead();
    Ok(())
}

/// The draft in the making.
struct Made {
    draft: Draft,
    /// How often each item is used.
    uses: Vec<usize>,
    /// Whether an item gives images, or is computed of them element by element.
    is_image: Vec<bool>,
    /// Whether an item gives images of one row.
    is_row: Vec<bool>,
    /// Items that are a curve of another one, with the nodes from there on.
    curves: HashMap<Id, CurveOf>,
}

/// The item that a curve is of, the curve, and the nodes from there on.
type CurveOf = (Id, Curve, Vec<String>);

/// What is done to each channel.
enum By {
    Add,
    Sub,
    /// The number less the channel.
    From,
    Mul,
    Div,
}

impl Made {
    fn push(&mut self, item: Item, uses: usize) -> Id {
        let of_images = match item.kind {
            Kind::Pointwise(_) | Kind::Cat(_) => item.inputs.iter().any(|id| self.is_image[*id]),
            _ => false,
        };
        let is_flat = |id: &Id| match &self.draft.items[*id].kind {
            Kind::Constant(tensor) => {
                let dims = tensor.dims().unwrap_or_default();
                dims.iter().rev().nth(1).is_none_or(|rows| *rows == 1) && dims.len() <= 4
            }
            _ => self.is_row[*id],
        };
        let is_row = match &item.kind {
            Kind::View(View::Unsqueeze(-2)) => true,
            Kind::Conv { spec, .. } => {
                spec.kernel[0] == 1 && spec.padding[0] == 0 && self.is_row[item.inputs[0]]
            }
            Kind::Pointwise(_) | Kind::Cat(1 | 3) => of_images && item.inputs.iter().all(is_flat),
            _ => false,
        };
        self.is_row.push(is_row);
        self.is_image.push(of_images || item.is_image());
        self.uses.push(uses);
        self.draft.items.push(item);
        self.uses.len() - 1
    }

    /// Turns constants of one element into numbers, where that leaves the sizes as they are.
    fn with_numbers(&self, item: &mut Item) -> Result<()> {
        let Kind::Pointwise(points) = &mut item.kind else {
            return Ok(());
        };
        let most = if item.inputs.iter().any(|id| self.is_image[*id]) {
            4
        } else {
            0
        };
        let mut numbers: Vec<Option<f32>> = Vec::with_capacity(item.inputs.len());
        for id in &item.inputs {
            let constant = &self.draft.items[*id];
            numbers.push(match &constant.kind {
                Kind::Constant(tensor) if constant.is_floats => {
                    let dims = tensor.dims()?;
                    let is_one = dims.len() <= most && dims.iter().all(|size| *size == 1);
                    match is_one {
                        true => tensor.to_vec()?.first().map(|x| *x as f32),
                        false => None,
                    }
                }
                _ => None,
            });
        }
        if numbers.iter().all(Option::is_some) || numbers.iter().all(Option::is_none) {
            return Ok(());
        }
        for point in points.iter_mut() {
            if let PointOp::Input(at) = point {
                *point = match numbers[*at] {
                    Some(x) => PointOp::Number(x),
                    None => {
                        let before = numbers[..*at].iter();
                        PointOp::Input(before.filter(|number| number.is_none()).count())
                    }
                };
            }
        }
        let mut kept = numbers.iter().map(Option::is_none);
        item.inputs.retain(|_| kept.next().unwrap_or(true));
        Ok(())
    }

    /// The item whose weights do what this item does, if there is one.
    fn absorbed(&mut self, item: &Item, uses: usize) -> Result<Option<Id>> {
        let Kind::Pointwise(points) = &item.kind else {
            return Ok(None);
        };
        let [a, b, PointOp::Binary(f, left, right)] = points[..] else {
            return Ok(None);
        };
        if (left, right) != (0, 1) {
            return Ok(None);
        }
        let f = |is_swapped: bool| match (f, is_swapped) {
            (Binary::Add, _) => Some(By::Add),
            (Binary::Mul, _) => Some(By::Mul),
            (Binary::Sub, false) => Some(By::Sub),
            (Binary::Sub, true) => Some(By::From),
            (Binary::Div, false) => Some(By::Div),
            _ => None,
        };
        for (source, other, is_swapped) in [(a, b, false), (b, a, true)] {
            let (PointOp::Input(source), Some(by)) = (source, f(is_swapped)) else {
                continue;
            };
            let source = item.inputs[source];
            let Some((weights, channel)) = self.weights_of(source) else {
                continue;
            };
            let Some(numbers) = self.numbers(&other, item, &weights, channel)? else {
                continue;
            };
            let Some((weight, bias)) = weights.changed(&by, &numbers)? else {
                continue;
            };
            let owner = &mut self.draft.items[weights.id];
            match &mut owner.kind {
                Kind::Conv {
                    weight: w, bias: b, ..
                } => {
                    *b = Some(bias);
                    *w = weight.unwrap_or_else(|| w.clone());
                }
                Kind::Linear {
                    weight: w, bias: b, ..
                } => {
                    *b = Some(bias);
                    if let Some(weight) = weight {
                        *w = Matrix::Dense(weight);
                    }
                }
                _ => continue,
            }
            owner.nodes.extend_from_slice(&item.nodes);
            self.uses[source] = uses;
            return Ok(Some(source));
        }
        Ok(None)
    }

    /// The convolution or product behind an item, through views that nothing else uses, and where its channels are.
    fn weights_of(&self, source: Id) -> Option<(Weights, Channel)> {
        let mut views = Vec::new();
        let mut id = source;
        loop {
            if self.uses[id] != 1 {
                return None;
            }
            let item = &self.draft.items[id];
            match &item.kind {
                Kind::View(view @ (View::Permute(_) | View::Squeeze(-2))) => {
                    views.push(view);
                    id = item.inputs[0];
                }
                Kind::Conv {
                    weight,
                    bias,
                    activation: Activation::None,
                    ..
                } if item.inputs.len() == 1 => {
                    let weights = Weights::new(id, weight, bias).ok()?;
                    // The dimension of the channels, from the end.
                    let (mut rank, mut at) = (4, 1);
                    for view in views.iter().rev() {
                        match view {
                            View::Permute(order) => {
                                let place = |dim: i64| if dim < 0 { dim + rank } else { dim };
                                if order.len() as i64 != rank {
                                    return None;
                                }
                                at = order.iter().position(|dim| place(*dim) == at)? as i64;
                            }
                            _ if at == rank - 2 => return None,
                            _ => {
                                at -= i64::from(at > rank - 2);
                                rank -= 1;
                            }
                        }
                    }
                    let channel = Channel {
                        rank: rank as usize,
                        from_end: (rank - 1 - at) as usize,
                    };
                    return Some((weights, channel));
                }
                Kind::Linear {
                    weight,
                    bias,
                    activation: Activation::None,
                    ..
                } if item.inputs.len() == 1 && views.is_empty() => {
                    let channel = Channel {
                        rank: 1,
                        from_end: 0,
                    };
                    let weights = match weight {
                        Matrix::Dense(weight) => Weights::new(id, weight, bias).ok()?,
                        Matrix::Blocks(matrix) => Weights {
                            id,
                            weight: None,
                            outputs: matrix.shape()[0],
                            bias: bias.clone(),
                        },
                    };
                    return Some((weights, channel));
                }
                _ => return None,
            }
        }
    }

    /// Finite numbers for each channel, or one for all, in `f64`.
    fn numbers(
        &self,
        of: &PointOp,
        item: &Item,
        weights: &Weights,
        channel: Channel,
    ) -> Result<Option<Tensor>> {
        let numbers = match of {
            PointOp::Number(x) if x.is_finite() => Tensor::from_vec(vec![f64::from(*x)], 1)?,
            PointOp::Input(at) => {
                let constant = &self.draft.items[item.inputs[*at]];
                let Kind::Constant(tensor) = &constant.kind else {
                    return Ok(None);
                };
                let dims = tensor.dims()?;
                let outputs = weights.outputs;
                let fits = dims.len() <= channel.rank
                    && dims.iter().rev().enumerate().all(|(at, size)| {
                        *size == 1 || (at == channel.from_end && *size == outputs)
                    });
                if !constant.is_floats || !fits || tensor.requires_grad()? {
                    return Ok(None);
                }
                tensor.to_dtype(DType::F64)?.reshape(-1)?
            }
            _ => return Ok(None),
        };
        let all: Vec<f64> = numbers.to_vec()?;
        Ok(all.iter().all(|x| x.is_finite()).then_some(numbers))
    }

    /// Adds an item; one that computes images element by element does so before they are permuted, or become rows.
    fn moved_late(&mut self, mut item: Item, uses: usize) -> Result<Id> {
        if let Some((source, order)) = self.joined_order(&item) {
            let is_same = order.iter().copied().eq(0..order.len() as i64);
            self.uses[source] += if is_same { uses } else { 1 };
            self.release(item.inputs[0]);
            if is_same {
                return Ok(source);
            }
            item.kind = Kind::View(View::Permute(order));
            item.inputs = vec![source];
            return Ok(self.push(item, uses));
        }
        if let Kind::View(View::Unsqueeze(-2)) = item.kind
            && let Some((source, Moved::Row)) = self.moved(item.inputs[0])
        {
            self.uses[source] += uses;
            self.release(item.inputs[0]);
            return Ok(source);
        }
        let found = match &item.kind {
            Kind::Pointwise(_) | Kind::Cat(_) => self.common(&item),
            _ => None,
        };
        let Some(moved) = found else {
            return Ok(self.push(item, uses));
        };
        for id in &mut item.inputs {
            if let Some((source, _)) = self.moved(*id) {
                self.uses[source] += 1;
                self.release(*id);
                *id = source;
                continue;
            }
            let Kind::Constant(tensor) = &self.draft.items[*id].kind else {
                continue;
            };
            let constant = Item {
                kind: Kind::Constant(moved.before(tensor)?),
                inputs: vec![],
                nodes: self.draft.items[*id].nodes.clone(),
                is_floats: true,
                is_kept: false,
            };
            *id = self.push(constant, 1);
        }
        if let Kind::Cat(dim) = &mut item.kind {
            *dim = moved.dim_before(*dim).unwrap_or(*dim);
        }
        let of = self.push(item, 1);
        let view = Item {
            kind: Kind::View(match moved {
                Moved::Order(order) => View::Permute(order),
                Moved::Row => View::Squeeze(-2),
            }),
            inputs: vec![of],
            nodes: vec![],
            is_floats: true,
            is_kept: false,
        };
        Ok(self.push(view, uses))
    }

    /// The curve that an item is. The last step of a gate that is written out becomes the activation that it is.
    fn gate(&self, item: &mut Item) -> Option<CurveOf> {
        let Kind::Pointwise(points) = &item.kind else {
            return None;
        };
        // All that it reads is of one item.
        let known = |id: &Id| self.curves.get(id);
        let mut bases = item
            .inputs
            .iter()
            .map(|id| known(id).map_or(*id, |(base, ..)| *base));
        let base = bases
            .next()
            .filter(|base| bases.all(|other| other == *base))?;
        let inputs: Vec<Curve> = item
            .inputs
            .iter()
            .map(|id| known(id).map_or(Curve::SAME, |(_, curve, _)| *curve))
            .collect();
        let curve = Curve::of(points, &inputs)?;
        let mut nodes: Vec<String> = Vec::new();
        for id in &item.inputs {
            for node in known(id).map_or(&[][..], |(.., nodes)| nodes) {
                if !nodes.contains(node) {
                    nodes.push(node.clone());
                }
            }
        }
        nodes.extend_from_slice(&item.nodes);
        if let Some(activation) = curve.activation() {
            let step = PointOp::Unary(Unary::Activation(activation), 0);
            item.kind = Kind::Pointwise(vec![PointOp::Input(0), step]);
            item.inputs = vec![base];
            item.nodes = nodes;
            return None;
        }
        Some((base, curve, nodes))
    }

    /// One use less of an item, and of what only it reads where it is a view.
    fn release(&mut self, mut id: Id) {
        loop {
            self.uses[id] = self.uses[id].saturating_sub(1);
            let item = &self.draft.items[id];
            match item.kind {
                Kind::View(_) if self.uses[id] == 0 => id = item.inputs[0],
                _ => return,
            }
        }
    }

    /// What a permutation of a permutation is of, and its order.
    fn joined_order(&self, item: &Item) -> Option<(Id, Vec<i64>)> {
        let Kind::View(View::Permute(order)) = &item.kind else {
            return None;
        };
        let Some((source, Moved::Order(first))) = self.moved(item.inputs[0]) else {
            return None;
        };
        let order = in_range(order).filter(|order| order.len() == first.len())?;
        let joined = order.iter().map(|dim| first[*dim as usize]);
        Some((source, joined.collect()))
    }

    /// What a view is of, and how it moves it.
    fn moved(&self, id: Id) -> Option<(Id, Moved)> {
        let item = &self.draft.items[id];
        match &item.kind {
            Kind::View(View::Permute(order)) => {
                Some((item.inputs[0], Moved::Order(in_range(order)?)))
            }
            Kind::View(View::Squeeze(-2)) if self.is_row[item.inputs[0]] => {
                Some((item.inputs[0], Moved::Row))
            }
            _ => None,
        }
    }

    /// How all that an item reads is moved: images, and constants that fit them.
    fn common(&self, item: &Item) -> Option<Moved> {
        let mut common: Option<Moved> = None;
        for id in &item.inputs {
            let constant = &self.draft.items[*id];
            if matches!(constant.kind, Kind::Constant(_)) && constant.is_floats {
                continue;
            }
            let (source, moved) = self.moved(*id)?;
            let is_same = common.as_ref().is_none_or(|common| *common == moved);
            if !self.is_image[source] || moved.rank_before() != 4 || !is_same {
                return None;
            }
            common = Some(moved);
        }
        let common = common?;
        let is_cat = matches!(item.kind, Kind::Cat(_));
        let rank = common.rank();
        let mut inputs = item.inputs.iter();
        let fits = inputs.all(|id| match &self.draft.items[*id].kind {
            Kind::Constant(tensor) => tensor
                .dims()
                .is_ok_and(|dims| dims.len() == rank || (!is_cat && dims.len() < rank)),
            _ => true,
        });
        let dim_fits = match item.kind {
            Kind::Cat(dim) => common.dim_before(dim).is_some(),
            _ => true,
        };
        (fits && dim_fits).then_some(common)
    }
}

/// How a view moves elements.
#[derive(PartialEq)]
enum Moved {
    /// To dimensions in another order.
    Order(Vec<i64>),
    /// From an image of one row to a row.
    Row,
}

impl Moved {
    fn rank(&self) -> usize {
        match self {
            Moved::Order(order) => order.len(),
            Moved::Row => 3,
        }
    }

    fn rank_before(&self) -> usize {
        match self {
            Moved::Order(order) => order.len(),
            Moved::Row => 4,
        }
    }

    /// The dimension before it is moved.
    fn dim_before(&self, dim: i64) -> Option<i64> {
        let dim = in_rank(dim, self.rank())?;
        Some(match self {
            Moved::Order(order) => order[dim],
            Moved::Row => [0, 1, 3][dim],
        })
    }

    /// A constant as it meets elements before they are moved.
    fn before(&self, tensor: &Tensor) -> Result<Tensor> {
        let own = tensor.dims()?;
        let mut dims = vec![1i64; self.rank().saturating_sub(own.len())];
        dims.extend(own.iter().map(|size| *size as i64));
        match self {
            Moved::Row => {
                dims.insert(2, 1);
                tensor.reshape(dims)
            }
            Moved::Order(order) => {
                let mut back = vec![0i64; order.len()];
                for (at, dim) in order.iter().enumerate() {
                    back[*dim as usize] = at as i64;
                }
                tensor.reshape(dims)?.permute(back)?.contiguous()
            }
        }
    }
}

/// A dimension counted from the start.
fn in_rank(dim: i64, rank: usize) -> Option<usize> {
    let dim = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(dim).ok().filter(|dim| *dim < rank)
}

/// An order with each dimension counted from the start; `None` if it does not name each once.
fn in_range(order: &[i64]) -> Option<Vec<i64>> {
    let dims: Option<Vec<usize>> = order.iter().map(|dim| in_rank(*dim, order.len())).collect();
    let mut is_named = vec![false; order.len()];
    dims?
        .into_iter()
        .map(|dim| (!std::mem::replace(&mut is_named[dim], true)).then_some(dim as i64))
        .collect()
}

/// Where the channels of an item are.
#[derive(Clone, Copy)]
struct Channel {
    rank: usize,
    from_end: usize,
}

/// The weights of a convolution or a product.
struct Weights {
    id: Id,
    /// `None` if it cannot be changed, as blocks of integers cannot.
    weight: Option<Tensor>,
    outputs: usize,
    bias: Option<Tensor>,
}

impl Weights {
    fn new(id: Id, weight: &Tensor, bias: &Option<Tensor>) -> Result<Weights> {
        Ok(Weights {
            id,
            weight: Some(weight.clone()),
            outputs: weight.dims()?[0],
            bias: bias.clone(),
        })
    }

    /// The weight, if it changes, and the bias that do it too; `None` if they are not finite.
    fn changed(&self, by: &By, numbers: &Tensor) -> Result<Option<(Option<Tensor>, Tensor)>> {
        if self.outputs == 0 {
            return Ok(None);
        }
        let wide = |t: &Tensor| t.to_dtype(DType::F64);
        let bias = match &self.bias {
            Some(bias) => wide(bias)?,
            None => Tensor::zeros(self.outputs)?.to_dtype(DType::F64)?,
        };
        let factor = match by {
            By::Add | By::Sub => None,
            By::From => Some(Tensor::from_vec(vec![-1.0f64], 1)?),
            By::Mul => Some(numbers.clone()),
            By::Div => Some((1.0 / numbers)?),
        };
        let shift = match by {
            By::Add | By::From => Some(numbers.clone()),
            By::Sub => Some(numbers.neg()?),
            By::Mul | By::Div => None,
        };
        let (mut weight, mut bias) = (None, bias);
        if let Some(factor) = factor {
            // Weights of 16 bits stay: they are half as many bytes to read.
            let of_f32 = |weight: &&Tensor| weight.dtype().is_ok_and(|dtype| dtype == DType::F32);
            let Some(own) = self.weight.as_ref().filter(of_f32) else {
                return Ok(None);
            };
            let mut column = vec![1i64; own.dims()?.len()];
            column[0] = -1;
            let column = factor.reshape(column)?;
            weight = Some((wide(own)? * column)?.to_dtype(DType::F32)?);
            bias = (bias * factor)?;
        }
        if let Some(shift) = shift {
            bias = (bias + shift)?;
        }
        let bias = bias.to_dtype(DType::F32)?;
        let is_finite = |t: &Tensor| -> Result<bool> {
            // Of a weight without inputs there is no largest element.
            if t.dims()?.contains(&0) {
                return Ok(true);
            }
            let largest = t.abs()?.amax(..)?.to_vec()?;
            Ok(largest.iter().all(|x| x.is_finite()))
        };
        let is_finite = match &weight {
            Some(weight) => is_finite(weight)? && is_finite(&bias)?,
            None => is_finite(&bias)?,
        };
        Ok(is_finite.then_some((weight, bias)))
    }
}
