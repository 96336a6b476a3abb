//! From a graph to a draft: what each function is in items.
//!
//! Invariant: a function that has no item of its own is called as it is, on values.

use std::borrow::Cow;
use std::collections::HashMap;

use fx_core::ir::{Argument, BoundArgs, Function, NodeRef, Op};
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Activation;
use fx_kernels::conv::{ConvSpec, PoolSpec};
use fx_kernels::matrix::Order;

use super::draft::{Attending, Draft, Id, IndexArg, Kind, Mask, SizeArg, SizesArg, View};
use super::elementwise::is_elementwise;
use crate::Tensor;

/// Whether a program has an item for a function, and so a kernel.
pub(super) fn has_kernel(function: Function) -> bool {
    let path = function.path();
    is_elementwise(path) || KERNELS.contains(&path)
}

/// Functions with a kernel, besides those of elements.
const KERNELS: [&str; 16] = [
    "fx_nn::ops::batch_norm",
    "fx_nn::ops::conv2d",
    "fx_nn::ops::max_pool2d",
    "fx_nn::ops::avg_pool2d",
    "fx_nn::ops::adaptive_avg_pool2d",
    "fx_nn::ops::linear",
    "fx_nn::ops::matmul",
    "fx_core::operator::matmul",
    "fx_nn::ops::scaled_dot_product_attention",
    "fx_nn::ops::layer_norm",
    "fx_nn::ops::rms_norm",
    "fx_nn::ops::softmax",
    "fx_nn::ops::log_softmax",
    "fx_nn::ops::embedding",
    "fx_nn::ops::cat",
    "fx_nn::ops::mean",
];

/// The draft of a graph without layers. `is_floats` says which inputs are tensors of `f32`.
pub(super) fn lower(gm: &GraphModule, is_floats: &[bool]) -> Result<Draft> {
    let mut lowering = Lowering {
        gm,
        draft: Draft::default(),
        items: HashMap::new(),
    };
    for (place, node) in gm.graph().placeholders().enumerate() {
        let is_floats = is_floats.get(place).copied().unwrap_or(false);
        let name = node.name();
        let id = lowering
            .draft
            .push(Kind::Input(place), vec![], name, is_floats);
        lowering.items.insert(node.id(), id);
    }
    for node in gm.graph().nodes() {
        lowering.node(node)?;
    }
    Ok(lowering.draft)
}

/// A draft in the making.
pub(super) struct Lowering<'g> {
    gm: &'g GraphModule,
    draft: Draft,
    items: HashMap<NodeId, Id>,
}

/// The arguments of a node.
pub(super) struct Args<'g> {
    node: NodeRef<'g>,
    bound: BoundArgs<'g>,
}

impl<'g> Args<'g> {
    pub fn get(&self, name: &str) -> Option<Cow<'g, Argument>> {
        self.bound.get(name)
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match *self.get(name)? {
            Argument::Float(x) => Some(x),
            Argument::Int(n) => Some(n as f64),
            _ => None,
        }
    }

    fn int(&self, name: &str) -> Option<i64> {
        match *self.get(name)? {
            Argument::Int(n) => Some(n),
            _ => None,
        }
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.get(name).as_deref(), Some(Argument::Bool(true)))
    }

    pub fn is_none(&self, name: &str) -> bool {
        matches!(self.get(name).as_deref(), None | Some(Argument::None))
    }

    /// One number for each of two dimensions, or one for both.
    fn pair(&self, name: &str) -> Option<[i64; 2]> {
        match &*self.get(name)? {
            Argument::Int(n) => Some([*n; 2]),
            Argument::Tuple(items) | Argument::List(items) => match items[..] {
                [Argument::Int(a), Argument::Int(b)] => Some([a, b]),
                [Argument::Int(a)] => Some([a; 2]),
                _ => None,
            },
            _ => None,
        }
    }

    fn sizes(&self, name: &str) -> Option<[usize; 2]> {
        let [a, b] = self.pair(name)?;
        Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?])
    }

    fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let int = |item: &Argument| match item {
            Argument::Int(n) => Some(*n),
            _ => None,
        };
        match &*self.get(name)? {
            Argument::Int(n) => Some(vec![*n]),
            Argument::Tuple(items) | Argument::List(items) => items.iter().map(int).collect(),
            _ => None,
        }
    }
}

impl<'g> Lowering<'g> {
    fn node(&mut self, node: NodeRef<'g>) -> Result<()> {
        match node.op() {
            Op::Placeholder(_) => {}
            Op::GetAttr(path) => {
                let tensor = self.gm.attributes().tensor(path)?;
                let Some(tensor) = tensor.downcast_ref::<Tensor>() else {
                    return Err(Error::msg(format_args!("`{path}` is no tensor")));
                };
                let is_floats = tensor.dtype()? == DType::F32;
                let kind = Kind::Constant(tensor.clone());
                let id = self.draft.push(kind, vec![], node.name(), is_floats);
                self.items.insert(node.id(), id);
            }
            Op::Output => {
                let result = node.args().first().cloned().unwrap_or(Argument::None);
                for input in node.all_input_nodes() {
                    let id = self.item(input)?;
                    self.draft.returned.insert(input.id(), id);
                }
                self.draft.output = Some(result);
            }
            _ => {
                let call = self.gm.call(node)?;
                let Some(function) = call.function() else {
                    return Err(Error::msg("the callee is no known function"));
                };
                let args = Args {
                    node,
                    bound: call.bind()?,
                };
                let id = match self.call(function, &args)? {
                    Some(id) => id,
                    None => self.host(function, &args)?,
                };
                self.items.insert(node.id(), id);
            }
        }
        Ok(())
    }

    fn item(&self, node: NodeRef<'_>) -> Result<Id> {
        let found = self.items.get(&node.id()).copied();
        found.ok_or_else(|| Error::msg("a node is used before it is computed"))
    }

    pub fn item_of(&self, argument: &Argument) -> Option<Id> {
        self.items.get(&argument.as_node()?).copied()
    }

    /// The floats of an argument.
    pub fn floats(&self, args: &Args<'_>, name: &str) -> Option<Id> {
        let id = self.item_of(&*args.get(name)?)?;
        self.draft.items[id].is_floats.then_some(id)
    }

    /// The tensor of an argument, if it is the same in every run; `Some(None)` if it is left out.
    fn constant(&self, args: &Args<'_>, name: &str) -> Option<Option<Tensor>> {
        if args.is_none(name) {
            return Some(None);
        }
        let id = self.item_of(&*args.get(name)?)?;
        match &self.draft.items[id].kind {
            Kind::Constant(tensor) if self.draft.items[id].is_floats => Some(Some(tensor.clone())),
            _ => None,
        }
    }

    fn size(&self, argument: &Argument) -> Option<SizeArg> {
        match argument {
            Argument::Int(n) => Some(SizeArg::Known(*n)),
            Argument::Node(_) => Some(SizeArg::Of(self.item_of(argument)?)),
            _ => None,
        }
    }

    fn all_sizes(&self, args: &Args<'_>, name: &str) -> Option<SizesArg> {
        match &*args.get(name)? {
            Argument::Int(n) => Some(SizesArg::Listed(vec![SizeArg::Known(*n)])),
            Argument::Tuple(items) | Argument::List(items) => {
                let sizes = items.iter().map(|item| self.size(item));
                Some(SizesArg::Listed(sizes.collect::<Option<_>>()?))
            }
            argument @ Argument::Node(_) => Some(SizesArg::Of(self.item_of(argument)?)),
            _ => None,
        }
    }

    pub fn push(&mut self, args: &Args<'_>, kind: Kind, inputs: Vec<Id>) -> Option<Id> {
        Some(self.draft.push(kind, inputs, args.node.name(), true))
    }

    fn view(&mut self, args: &Args<'_>, view: View) -> Option<Id> {
        let x = self.floats(args, "x")?;
        self.push(args, Kind::View(view), vec![x])
    }

    /// The call as it is.
    fn host(&mut self, function: Function, args: &Args<'_>) -> Result<Id> {
        let given: Vec<Argument> = args.bound.iter().map(|(_, a)| a.into_owned()).collect();
        let mut items = HashMap::new();
        for input in args.node.all_input_nodes() {
            items.insert(input.id(), self.item(input)?);
        }
        let kind = Kind::Host {
            function,
            args: given,
            items,
        };
        let id = self.draft.push(kind, vec![], args.node.name(), false);
        self.draft.items[id].is_kept = !function.def().effects.is_pure();
        Ok(id)
    }

    /// The item of a call; `None` if there is no kernel for it as it is.
    fn call(&mut self, function: Function, args: &Args<'_>) -> Result<Option<Id>> {
        let path = function.path();
        if is_elementwise(path) {
            return Ok(self.elementwise(args, path));
        }
        let name = path.strip_prefix("fx_nn::ops::");
        let name = name.or_else(|| path.strip_prefix("fx_nn::Tensor::"));
        let name = name.or_else(|| path.strip_prefix("fx_core::operator::"));
        let name = name.unwrap_or(path);
        let made = match name {
            "batch_norm" => self.batch_norm(args)?,
            "conv2d" => self.conv(args),
            "max_pool2d" | "avg_pool2d" => self.pool(args, name == "max_pool2d"),
            "adaptive_avg_pool2d" => self.adaptive(args),
            "linear" => self.linear(args)?,
            "matmul" => self.matmul(args, path),
            "scaled_dot_product_attention" => self.attention(args),
            "layer_norm" | "rms_norm" => self.norm(args, name == "layer_norm"),
            "softmax" | "log_softmax" => self.softmax(args, name == "softmax"),
            "embedding" => self.embedding(args),
            "cat" => self.cat(args),
            "mean" => self.mean(args),
            "dropout"
            | "dropout1d"
            | "dropout2d"
            | "dropout3d"
            | "alpha_dropout"
            | "feature_alpha_dropout"
            | "stochastic_depth"
                if !args.flag("training") =>
            {
                self.floats(args, "x")
            }
            "contiguous" => self.view(args, View::Contiguous),
            "size" => {
                let x = self.first(args);
                match (x, args.is_none("dim"), args.int("dim")) {
                    (Some(x), true, _) => self.number(args, Kind::ShapeOf, x),
                    (Some(x), _, Some(dim)) => self.number(args, Kind::SizeOf(dim), x),
                    _ => None,
                }
            }
            "dim" => match self.first(args) {
                Some(x) => self.number(args, Kind::RankOf, x),
                None => None,
            },
            "getattr" => self.getattr(args),
            "getitem" => self.getitem(args)?,
            _ => self.viewed(args, name),
        };
        Ok(made)
    }

    /// The first argument, if it is floats.
    fn first(&self, args: &Args<'_>) -> Option<Id> {
        let id = self.item_of(args.node.args().first()?)?;
        self.draft.items[id].is_floats.then_some(id)
    }

    fn number(&mut self, args: &Args<'_>, kind: Kind, of: Id) -> Option<Id> {
        Some(self.draft.push(kind, vec![of], args.node.name(), false))
    }

    fn viewed(&mut self, args: &Args<'_>, name: &str) -> Option<Id> {
        let view = match name {
            "reshape" | "view" => View::Reshape(self.all_sizes(args, "shape")?),
            "flatten" => View::Flatten(args.int("start_dim")?, args.int("end_dim")?),
            "permute" => View::Permute(args.ints("dims")?),
            "transpose" => View::Transpose(args.int("dim0")?, args.int("dim1")?),
            "t" => View::Turn,
            "expand" => View::Expand(self.all_sizes(args, "size")?),
            "unsqueeze" => View::Unsqueeze(args.int("dim")?),
            "squeeze" => View::Squeeze(args.int("dim")?),
            "narrow" => View::Narrow(
                args.int("dim")?,
                self.size(&*args.get("start")?)?,
                self.size(&*args.get("length")?)?,
            ),
            "select" => View::Select(args.int("dim")?, self.size(&*args.get("index")?)?),
            _ => return None,
        };
        self.view(args, view)
    }

    fn conv(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let weight = self.constant(args, "weight")??;
        let bias = self.constant(args, "bias")?;
        let [out_channels, group_in, rows, columns] = weight.dims().ok()?[..] else {
            return None;
        };
        let groups = usize::try_from(args.int("groups")?).ok()?;
        let mut spec = ConvSpec::new(group_in * groups, out_channels, 1);
        spec.kernel = [rows, columns];
        spec.groups = groups;
        spec.stride = args.sizes("stride")?;
        spec.padding = args.sizes("padding")?;
        spec.dilation = args.sizes("dilation")?;
        let kind = Kind::Conv {
            spec,
            weight,
            bias,
            activation: Activation::None,
        };
        self.push(args, kind, vec![x])
    }

    /// A batch norm with its statistics, as a factor and a shift of each channel.
    fn batch_norm(&mut self, args: &Args<'_>) -> Result<Option<Id>> {
        let Some(x) = self.floats(args, "x") else {
            return Ok(None);
        };
        let names = ["running_mean", "running_var", "weight", "bias"];
        let [
            Some(Some(mean)),
            Some(Some(variance)),
            Some(weight),
            Some(bias),
        ] = names.map(|name| self.constant(args, name))
        else {
            return Ok(None);
        };
        let Some(eps) = args.float("eps") else {
            return Ok(None);
        };
        let deviation = (variance.to_dtype(DType::F64)? + eps)?.sqrt()?;
        let weight = match weight {
            Some(weight) => weight.to_dtype(DType::F64)?,
            None => Tensor::ones(mean.dims()?)?.to_dtype(DType::F64)?,
        };
        let factors = (weight / deviation)?;
        let mut shifts = (mean.to_dtype(DType::F64)? * &factors)?.neg()?;
        if let Some(bias) = bias {
            shifts = (shifts + bias.to_dtype(DType::F64)?)?;
        }
        let kind = Kind::ChannelAffine {
            factors: factors.to_dtype(DType::F32)?,
            shifts: shifts.to_dtype(DType::F32)?,
            activation: Activation::None,
            is_image: false,
        };
        Ok(self.push(args, kind, vec![x]))
    }

    fn pool(&mut self, args: &Args<'_>, is_max: bool) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let mut spec = PoolSpec::new(1);
        spec.kernel = args.sizes("kernel_size")?;
        spec.stride = args.sizes("stride")?;
        spec.padding = args.sizes("padding")?;
        spec.ceil_mode = args.flag("ceil_mode");
        if is_max {
            spec.dilation = args.sizes("dilation")?;
            return self.push(args, Kind::MaxPool(spec), vec![x]);
        }
        spec.count_include_pad = args.flag("count_include_pad");
        self.push(args, Kind::AveragePool(spec), vec![x])
    }

    fn adaptive(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let size = args.pair("output_size")?;
        self.push(args, Kind::AdaptivePool(size), vec![x])
    }

    fn linear(&mut self, args: &Args<'_>) -> Result<Option<Id>> {
        let (Some(x), Some(Some(weight)), Some(bias)) = (
            self.floats(args, "x"),
            self.constant(args, "weight"),
            self.constant(args, "bias"),
        ) else {
            return Ok(None);
        };
        if weight.dims()?.len() != 2 {
            return Ok(None);
        }
        let kind = Kind::Linear {
            weight,
            bias,
            activation: Activation::None,
            order: Order::ActivationFirst,
        };
        Ok(self.push(args, kind, vec![x]))
    }

    fn matmul(&mut self, args: &Args<'_>, path: &str) -> Option<Id> {
        let (a, b) = match path.starts_with("fx_core") {
            true => ("a", "b"),
            false => ("x", "other"),
        };
        let (a, b) = (self.floats(args, a)?, self.floats(args, b)?);
        self.push(args, Kind::Matmul, vec![a, b])
    }

    fn attention(&mut self, args: &Args<'_>) -> Option<Id> {
        if args.float("dropout_p")? != 0.0 {
            return None;
        }
        let mut inputs = vec![
            self.floats(args, "query")?,
            self.floats(args, "key")?,
            self.floats(args, "value")?,
        ];
        let mut mask = Mask::None;
        if !args.is_none("attn_mask") {
            inputs.push(self.item_of(&*args.get("attn_mask")?)?);
            mask = Mask::Added;
            if !self.draft.items[inputs[3]].is_floats {
                mask = Mask::Allowed;
            }
        }
        let scale = match args.is_none("scale") {
            true => None,
            false => Some(args.float("scale")? as f32),
        };
        let kind = Kind::Attention(Attending {
            scale,
            is_causal: args.flag("is_causal"),
            mask,
            is_safe: true,
        });
        self.push(args, kind, inputs)
    }

    fn norm(&mut self, args: &Args<'_>, is_layer: bool) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let [size] = args.ints("normalized_shape")?[..] else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        let weight = self.constant(args, "weight")?;
        let eps = args.float("eps")? as f32;
        let kind = match is_layer {
            true => Kind::LayerNorm {
                size,
                weight,
                bias: self.constant(args, "bias")?,
                eps,
            },
            false => Kind::RmsNorm { size, weight, eps },
        };
        self.push(args, kind, vec![x])
    }

    fn softmax(&mut self, args: &Args<'_>, is_plain: bool) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let dim = args.int("dim")?;
        let kind = match is_plain {
            true => Kind::Softmax(dim),
            false => Kind::LogSoftmax(dim),
        };
        self.push(args, kind, vec![x])
    }

    fn embedding(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.item_of(&*args.get("x")?)?;
        let weight = self.constant(args, "weight")??;
        self.push(args, Kind::Embedding(weight), vec![x])
    }

    fn cat(&mut self, args: &Args<'_>) -> Option<Id> {
        let dim = args.int("dim")?;
        let parts: Vec<Id> = match &*args.get("tensors")? {
            Argument::Tuple(items) | Argument::List(items) => {
                let parts = items.iter().map(|item| self.item_of(item));
                parts.collect::<Option<_>>()?
            }
            _ => return None,
        };
        if parts.iter().any(|id| !self.draft.items[*id].is_floats) {
            return None;
        }
        self.push(args, Kind::Cat(dim), parts)
    }

    fn mean(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let dims = args.ints("dim")?;
        let keepdim = args.flag("keepdim");
        self.push(args, Kind::Mean { dims, keepdim }, vec![x])
    }

    fn getattr(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.first(args)?;
        let name = args.get("name")?;
        let Argument::Str(name) = &*name else {
            return None;
        };
        match name.as_str() {
            "shape" => self.number(args, Kind::ShapeOf, x),
            "ndim" => self.number(args, Kind::RankOf, x),
            _ => None,
        }
    }

    fn getitem(&mut self, args: &Args<'_>) -> Result<Option<Id>> {
        let (Some(source), Some(index)) = (args.get("a"), args.get("b")) else {
            return Ok(None);
        };
        // An item of a tuple that is written down.
        if let (Argument::Tuple(items) | Argument::List(items), Argument::Int(at)) =
            (&*source, &*index)
        {
            let item = usize::try_from(*at).ok().and_then(|at| items.get(at));
            return Ok(item.and_then(|item| self.item_of(item)));
        }
        let Some(id) = source.as_node() else {
            return Ok(None);
        };
        let node = self.gm.graph().node(id)?;
        if let Argument::Int(at) = *index
            && let Some(made) = self.piece(node, at, args)?
        {
            return Ok(Some(made));
        }
        let Some(x) = self.item_of(&source) else {
            return Ok(None);
        };
        if let (Kind::ShapeOf, Argument::Int(at)) = (&self.draft.items[x].kind, &*index) {
            let of = self.draft.items[x].inputs[0];
            return Ok(self.number(args, Kind::SizeOf(*at), of));
        }
        if !self.draft.items[x].is_floats {
            return Ok(None);
        }
        let parts = match &*index {
            Argument::Tuple(items) => items.iter().map(|item| self.index(item)).collect(),
            item => self.index(item).map(|item| vec![item]),
        };
        let Some(parts) = parts else {
            return Ok(None);
        };
        Ok(self.push(args, Kind::View(View::Index(parts)), vec![x]))
    }

    fn index(&self, item: &Argument) -> Option<IndexArg> {
        let bound = |item: &Argument| match item {
            Argument::None => Some(None),
            item => self.size(item).map(Some),
        };
        Some(match item {
            Argument::None => IndexArg::New,
            Argument::Ellipsis => IndexArg::Rest,
            Argument::Slice(parts) => {
                let [start, stop, step] = &**parts;
                if !matches!(step, Argument::None | Argument::Int(1)) {
                    return None;
                }
                IndexArg::Range(bound(start)?, bound(stop)?)
            }
            item => IndexArg::At(self.size(item)?),
        })
    }

    /// A piece of what `split` or `chunk` cuts.
    fn piece(&mut self, node: NodeRef<'g>, at: i64, args: &Args<'_>) -> Result<Option<Id>> {
        if !node.op().is_call() {
            return Ok(None);
        }
        let call = self.gm.call(node)?;
        let path = call.function().map(|function| function.path());
        let size = match path {
            Some("fx_nn::ops::split") => "split_size",
            Some("fx_nn::ops::chunk") => "chunks",
            _ => return Ok(None),
        };
        let cut = Args {
            node,
            bound: call.bind()?,
        };
        let (Some(x), Some(dim), Some(size)) =
            (self.floats(&cut, "x"), cut.int("dim"), cut.get(size))
        else {
            return Ok(None);
        };
        let Some(size) = self.size(&size) else {
            return Ok(None);
        };
        let view = match path {
            Some("fx_nn::ops::split") => View::Piece(dim, size, at),
            _ => View::Chunk(dim, size, at),
        };
        Ok(self.push(args, Kind::View(view), vec![x]))
    }
}
