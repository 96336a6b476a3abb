//! `Draft`: what a program will do, before kernels are made of it.
//!
//! Invariant: an item uses items before it.

use std::collections::HashMap;

use fx_core::ir::{Argument, Function};
use fx_core::value::NodeId;
use fx_kernels::Activation;
use fx_kernels::conv::{ConvSpec, PoolSpec};
use fx_kernels::convert::Half;
use fx_kernels::matrix::Order;
use fx_kernels::pointwise::{Binary, Unary};
use fx_kernels::recurrent::Unit;
use fx_kernels::reduce::Reduction;

use super::types::Halves;
use crate::Tensor;
use crate::nn::QuantizedMatrix;
use crate::optim::UpdateRule;

/// An item of a draft.
pub(super) type Id = usize;

/// A size that is written down, or the number that an item gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SizeArg {
    Known(i64),
    Of(Id),
}

/// Sizes one by one, or the list that an item gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SizesArg {
    Listed(Vec<SizeArg>),
    Of(Id),
}

/// Other sizes and strides over the same floats.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum View {
    Reshape(SizesArg),
    Flatten(i64, i64),
    Permute(Vec<i64>),
    Transpose(i64, i64),
    /// The two dimensions of a matrix, in the other order.
    Turn,
    Expand(SizesArg),
    Unsqueeze(i64),
    Squeeze(i64),
    /// A dimension's places from the second size on, as many as the third.
    Narrow(i64, SizeArg, SizeArg),
    /// One place of a dimension, which goes.
    Select(i64, SizeArg),
    /// Some places of a dimension, `step` apart.
    Every {
        dim: i64,
        first: usize,
        count: usize,
        step: usize,
    },
    /// Part of a dimension cut into pieces of a size.
    Piece(i64, SizeArg, i64),
    /// Part of a dimension cut into a number of pieces.
    Chunk(i64, SizeArg, i64),
    Index(Vec<IndexArg>),
    /// Floats that lie next to each other.
    Contiguous,
}

/// What an index does with a dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum IndexArg {
    /// Takes one place.
    At(SizeArg),
    /// Takes places from a start to a stop.
    Range(Option<SizeArg>, Option<SizeArg>),
    /// Adds one.
    New,
    /// Leaves all that nothing else names.
    Rest,
}

/// A step of a pointwise item; it refers to the steps before it by place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PointOp {
    /// An input of the item, by place.
    Input(usize),
    Number(f32),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    /// The second where the first is not 0, else the third.
    Select(usize, usize, usize),
}

/// The weight of a linear layer.
#[derive(Debug, Clone)]
pub(super) enum Matrix {
    /// `[outputs, inputs]`.
    Dense(Tensor),
    Blocks(QuantizedMatrix),
}

/// What attention takes beside queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum Mask {
    #[default]
    None,
    /// The fourth input is added; where it holds truth values, as the next two.
    Added,
    /// The fourth input says where a place may be attended to.
    Allowed,
    /// The fourth input says where it may not.
    Forbidden,
}

/// How queries attend to keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attending {
    /// `None` is one over the root of the size of a query.
    pub scale: Option<f32>,
    pub is_causal: bool,
    pub mask: Mask,
    /// Whether a query that sees no key gets zeros, and not NaN.
    pub is_safe: bool,
}

/// A network over sequences. Its inputs are the sequences, then the first states that are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recurring {
    pub unit: Unit,
    /// Whether the first state is given, and the first cells.
    pub is_given: [bool; 2],
    pub has_biases: bool,
    pub layers: usize,
    pub directions: usize,
    pub is_batch_first: bool,
}

/// A norm whose weights a run decides: its inputs are the elements, then the weights that it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NormOf {
    pub is_layer: bool,
    pub size: usize,
    pub eps: f32,
    pub has_weight: bool,
    pub has_bias: bool,
}

/// How a convolution goes over its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConvSteps {
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
    /// What is added to the sizes of a transposed convolution.
    pub added: [usize; 2],
}

/// What an item does.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// An argument, by place.
    Input(usize),
    Constant(Tensor),
    /// A function on values that are no floats, and on floats that no kernel is for.
    Host {
        function: Function,
        args: Vec<Argument>,
        items: HashMap<NodeId, Id>,
    },
    /// The floats of what a call gave, which fails on anything else.
    Floats,
    ShapeOf,
    SizeOf(i64),
    RankOf,
    View(View),
    Conv {
        spec: ConvSpec,
        weight: Tensor,
        bias: Option<Tensor>,
        activation: Activation,
    },
    MaxPool(PoolSpec),
    AveragePool(PoolSpec),
    AdaptivePool([i64; 2]),
    Linear {
        weight: Matrix,
        bias: Option<Tensor>,
        activation: Activation,
        order: Order,
    },
    Matmul,
    Attention(Attending),
    /// The gradients of the queries, keys and values, whose fourth input is that of the result; then the mask.
    AttentionBack(Attending),
    LayerNorm {
        size: usize,
        weight: Option<Tensor>,
        bias: Option<Tensor>,
        eps: f32,
    },
    RmsNorm {
        size: usize,
        weight: Option<Tensor>,
        eps: f32,
    },
    Softmax(i64),
    LogSoftmax(i64),
    Embedding(Tensor),
    Pointwise(Vec<PointOp>),
    Cat(i64),
    /// An argument, of a type of 16 bits or `f32`, with the second input behind it.
    Append(i64, Option<Half>),
    Reduce {
        how: Reduction,
        dims: Vec<i64>,
        keepdim: bool,
    },
    /// Places of a dimension.
    Gather {
        dim: i64,
        places: Vec<usize>,
    },
    /// Elements of a number around the last dimensions: before and after each, the last first.
    Pad {
        sides: Vec<[usize; 2]>,
        value: f32,
    },
    /// The elements of a tensor of another type.
    Convert,
    /// A convolution whose weight a run decides, and its bias if there is a third input.
    ConvOf {
        groups: usize,
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
    },
    /// A network over sequences, of the weights that are the same in every run; else the last inputs are the weights.
    Recurrent(Recurring, Option<Vec<Tensor>>),
    /// A parameter and its state after a step of an optimizer, in their own memory. The inputs are the gradient, the
    /// learning rate, the number of the step, the parameter and its state, and what multiplies the gradient if that is
    /// given.
    Update(UpdateRule),
    /// A linear layer whose weight a run decides, and its bias if there is a third input.
    LinearOf,
    NormOf(NormOf),
    /// The rows of a table, the second input, at indices.
    EmbeddingOf,
    /// Rows, the third input, that are added to those of the first at indices.
    AddRows,
    /// Elements at indices along a dimension.
    TakeAlong(i64),
    /// Elements, the third input, that are added to those of the first at indices along a dimension.
    AddAlong(i64),
    /// The gradient of the weights of a convolution: of images, weights, and the gradient of the result.
    ConvWeight(ConvSteps),
    /// A transposed convolution by a weight that a run decides.
    ConvTranspose(ConvSteps),
    /// A number in the sizes of the input.
    Filled(f32),
    /// One of several results.
    Part(usize),
    /// Each channel times a factor plus a shift: a batch norm with its statistics.
    ChannelAffine {
        factors: Tensor,
        shifts: Tensor,
        activation: Activation,
        is_image: bool,
    },
    /// The sum of two images, then an activation.
    ImageAdd(Activation),
    ImageActivate(Activation),
    /// Each channel times a number: the second input is `[n, c, 1, 1]`.
    ImageScale,
    ImageCat,
    /// Steps of images, whose other inputs are numbers of channels.
    ImagePointwise(Vec<PointOp>, Vec<Tensor>),
    /// Chosen rows or columns of images.
    ImagePlaces {
        is_row: bool,
        places: Vec<usize>,
    },
    /// Pixels of a number around images: columns, then rows.
    ImagePad {
        sides: [[usize; 2]; 2],
        value: f32,
    },
    ToImage,
    ToArray,
}

/// An item: what it does, with which items.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub kind: Kind,
    pub inputs: Vec<Id>,
    /// The names of the nodes that it computes.
    pub nodes: Vec<String>,
    /// Whether it gives floats.
    pub is_floats: bool,
    /// Whether it runs whatever uses it.
    pub is_kept: bool,
}

/// Items in order, and what the program returns.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub items: Vec<Item>,
    pub output: Option<Argument>,
    /// The item of each node that the output names.
    pub returned: HashMap<NodeId, Id>,
    /// The nodes that give tensors of 16 bits, which items compute in `f32`.
    pub halves: Halves,
    /// The types of arguments of 16 bits, by place.
    pub input_halves: Vec<Option<Half>>,
}

impl SizeArg {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Id)) {
        if let SizeArg::Of(id) = self {
            f(id);
        }
    }
}

impl SizesArg {
    fn visit(&mut self, f: &mut dyn FnMut(&mut Id)) {
        match self {
            SizesArg::Of(id) => f(id),
            SizesArg::Listed(sizes) => sizes.iter_mut().for_each(|size| size.visit(f)),
        }
    }
}

impl Item {
    /// Visits every item that this one uses.
    pub fn visit_uses(&mut self, f: &mut dyn FnMut(&mut Id)) {
        self.inputs.iter_mut().for_each(&mut *f);
        match &mut self.kind {
            Kind::Host { items, .. } => items.values_mut().for_each(f),
            Kind::View(View::Reshape(sizes) | View::Expand(sizes)) => sizes.visit(f),
            Kind::View(View::Narrow(_, start, length)) => {
                start.visit(f);
                length.visit(f);
            }
            Kind::View(
                View::Piece(_, size, _) | View::Chunk(_, size, _) | View::Select(_, size),
            ) => size.visit(f),
            Kind::View(View::Index(parts)) => {
                for part in parts {
                    match part {
                        IndexArg::At(at) => at.visit(f),
                        IndexArg::Range(start, stop) => {
                            for size in [start, stop].into_iter().flatten() {
                                size.visit(f);
                            }
                        }
                        IndexArg::New | IndexArg::Rest => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether it gives an image.
    pub fn is_image(&self) -> bool {
        matches!(
            self.kind,
            Kind::Conv { .. }
                | Kind::MaxPool(_)
                | Kind::AveragePool(_)
                | Kind::AdaptivePool(_)
                | Kind::ImageAdd(_)
                | Kind::ImageActivate(_)
                | Kind::ImageScale
                | Kind::ImageCat
                | Kind::ImagePointwise(..)
                | Kind::ImagePlaces { .. }
                | Kind::ImagePad { .. }
                | Kind::ChannelAffine { is_image: true, .. }
                | Kind::ToImage
        )
    }
}

impl Draft {
    /// Adds an item.
    pub fn push(
        &mut self,
        kind: Kind,
        inputs: Vec<Id>,
        name: impl std::fmt::Display,
        is_floats: bool,
    ) -> Id {
        self.items.push(Item {
            kind,
            inputs,
            nodes: vec![name.to_string()],
            is_floats,
            is_kept: false,
        });
        self.items.len() - 1
    }

    /// How often each item is used.
    pub fn uses(&mut self) -> Vec<usize> {
        let mut uses = vec![0; self.items.len()];
        for item in &mut self.items {
            item.visit_uses(&mut |id| uses[*id] += 1);
        }
        for id in self.returned.values() {
            uses[*id] += 1;
        }
        uses
    }

    /// Removes what nothing uses.
    pub fn without_dead(&mut self) {
        let mut is_used = vec![false; self.items.len()];
        for id in self.returned.values() {
            is_used[*id] = true;
        }
        for at in (0..self.items.len()).rev() {
            let item = &mut self.items[at];
            if is_used[at] || item.is_kept {
                is_used[at] = true;
                item.visit_uses(&mut |id| is_used[*id] = true);
            }
        }
        let mut renamed = vec![0; self.items.len()];
        let mut kept = Vec::with_capacity(self.items.len());
        for (at, mut item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            if is_used[at] {
                item.visit_uses(&mut |id| *id = renamed[*id]);
                renamed[at] = kept.len();
                kept.push(item);
            }
        }
        self.items = kept;
        self.returned.values_mut().for_each(|id| *id = renamed[*id]);
    }
}
