//! From a graph to a draft: what each function is in items.
//!
//! Invariant: a function that has no item of its own is called as it is, on values.

use std::collections::HashMap;

use fx_core::ir::{Argument, Function, NodeRef, Op, ValueMeta};
use fx_core::module::Callee;
use fx_core::value::DType;
use fx_core::{Error, GraphModule, Result, function, function_table, operator};
use fx_kernels::Activation;
use fx_kernels::conv::{ConvSpec, PoolSpec};
use fx_kernels::matrix::Order;
use fx_kernels::recurrent::Unit;
use fx_kernels::reduce::Reduction;

use super::call::{Args, Lowering};
use super::draft::{Attending, Draft, Id, IndexArg, Kind, Mask, Matrix, View};
use super::lowering::{CpuLowering, How};
use super::matrix;
use super::points::{Point, Points};
use super::types::{dtype_of, half_of};
use crate::{Tensor, ops, optim};

/// The draft of a graph without layers. `floats` has the type of each input that is a tensor of floats; `has_halves` says
/// whether those of 16 bits are computed.
pub(super) fn lower(gm: &GraphModule, floats: &[Option<DType>], has_halves: bool) -> Result<Draft> {
    lowered(gm, floats, [has_halves, false])
}

/// [`lower`] for what can call no function as it is.
pub(super) fn lower_static(gm: &GraphModule, floats: &[Option<DType>]) -> Result<Draft> {
    lowered(gm, floats, [false, true])
}

fn lowered(
    gm: &GraphModule,
    floats: &[Option<DType>],
    [has_halves, is_static]: [bool; 2],
) -> Result<Draft> {
    let mut lowering = Lowering {
        gm,
        draft: Draft::default(),
        items: HashMap::new(),
        called: HashMap::new(),
        masks: HashMap::new(),
        is_known: true,
        has_halves,
        is_static,
    };
    for (place, node) in gm.graph().placeholders().enumerate() {
        let given = floats.get(place).copied().flatten();
        let computed = |dtype: Option<DType>| dtype.filter(|dtype| lowering.is_computed(*dtype));
        let known = dtype_of(node).is_none_or(|known| computed(Some(known)) == computed(given));
        lowering.is_known &= known;
        lowering.draft.input_halves.push(given.and_then(half_of));
        let is_floats = given == Some(DType::F32);
        let name = node.name();
        let id = lowering
            .draft
            .push(Kind::Input(place), vec![], name, is_floats);
        lowering.items.insert(node.id(), id);
        if let Some(half) = given.and_then(|dtype| lowering.half_type(dtype)) {
            lowering.draft.halves.insert(node.id(), half);
            lowering.called.insert(id, None);
        }
    }
    for node in gm.graph().nodes() {
        lowering.node(node)?;
    }
    Ok(lowering.draft)
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
                let dtype = tensor.dtype()?;
                let is_floats = self.is_computed(dtype);
                let kind = Kind::Constant(tensor.clone());
                let id = self.draft.push(kind, vec![], node.name(), is_floats);
                if let Some(half) = self.half_type(dtype) {
                    self.draft.halves.insert(node.id(), half);
                }
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
                if let Callee::Module(layer) = call.callee()
                    && let Some(blocks) = matrix::blocks_of(*layer)
                {
                    let args = Args {
                        node,
                        bound: call.bind()?,
                    };
                    let id = self.product_with_blocks(&args, blocks)?;
                    self.made(node, id);
                    return Ok(());
                }
                let Some(function) = call.function() else {
                    return Err(Error::msg("the callee is no known function"));
                };
                let args = Args {
                    node,
                    bound: call.bind()?,
                };
                if let Some(mask) = self.mask(function, &args) {
                    self.masks.insert(node.id(), mask);
                }
                let made = self.call(function, &args)?;
                // Floats leave the code in the type that the graph has, so that it has to be known.
                let made = made.filter(|id| {
                    let is_floats = self.draft.items[*id].is_floats;
                    !self.has_halves || !is_floats || dtype_of(node).is_some()
                });
                let id = match made {
                    Some(id) => id,
                    None => {
                        let id = self.host(function, &args)?;
                        let is_floats = dtype_of(node).is_some_and(|dtype| self.is_computed(dtype));
                        if self.is_known && is_floats {
                            self.called.insert(id, None);
                        }
                        id
                    }
                };
                self.made(node, id);
            }
        }
        Ok(())
    }

    /// The item of a call is made.
    fn made(&mut self, node: NodeRef<'_>, id: Id) {
        let dtype = node.meta::<ValueMeta>().and_then(ValueMeta::dtype);
        if let Some(half) = dtype.and_then(|dtype| self.half_type(dtype)) {
            self.draft.halves.insert(node.id(), half);
        }
        self.items.insert(node.id(), id);
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
    fn call(&mut self, function: Function, args: &Args<'g>) -> Result<Option<Id>> {
        match CpuLowering::of(function)?.map(CpuLowering::how) {
            Some(How::Pointwise(steps)) => Ok(self.pointwise(args, steps)),
            Some(How::Kernel(item) | How::Work(item) | How::View(item)) => item(self, args),
            None => Ok(None),
        }
    }

    /// A pointwise item; `None` if the call has arguments that no step takes.
    fn pointwise(
        &mut self,
        args: &Args<'g>,
        steps: fn(&mut Points<'_, '_>) -> Option<Point>,
    ) -> Option<Id> {
        let mut points = Points::new(self, args);
        let result = steps(&mut points)?;
        let (steps, inputs) = points.finish(result);
        self.push(args, Kind::Pointwise(steps), inputs)
    }

    /// The view that the arguments of a call say.
    fn viewed(&mut self, args: &Args<'_>, view: Option<View>) -> Option<Id> {
        self.view(args, view?)
    }

    fn size_of(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.first(args)?;
        match (args.is_none("dim"), args.int("dim")) {
            (true, _) => self.number(args, Kind::ShapeOf, x),
            (false, Some(dim)) => self.number(args, Kind::SizeOf(dim), x),
            _ => None,
        }
    }

    /// The floats of `x`, with a weight and a bias that are the same in every run.
    fn weighted(&mut self, args: &Args<'_>) -> Option<(Id, Tensor, Option<Tensor>)> {
        let x = self.floats(args, "x")?;
        let weight = self.constant(args, "weight")??;
        Some((x, weight, self.constant(args, "bias")?))
    }

    fn conv(&mut self, args: &Args<'_>) -> Option<Id> {
        let sizes = ["stride", "padding", "dilation"].map(|name| args.sizes(name));
        let Some((x, weight, bias)) = self.weighted(args) else {
            let (kind, inputs) = self.convolution_of(args, sizes)?;
            return self.push(args, kind, inputs);
        };
        let kind = convolution(args, weight, bias, sizes)?;
        self.push(args, kind, vec![x])
    }

    /// A convolution whose weight a run decides, with its inputs.
    fn convolution_of(
        &mut self,
        args: &Args<'_>,
        [stride, padding, dilation]: [Option<[usize; 2]>; 3],
    ) -> Option<(Kind, Vec<Id>)> {
        let mut inputs = vec![self.floats(args, "x")?, self.floats(args, "weight")?];
        if !args.is_none("bias") {
            inputs.push(self.floats(args, "bias")?);
        }
        let kind = Kind::ConvOf {
            groups: usize::try_from(args.int("groups")?).ok()?,
            stride: stride?,
            padding: padding?,
            dilation: dilation?,
        };
        Some((kind, inputs))
    }

    /// A convolution of rows, as one of images of height 1.
    fn conv1d(&mut self, args: &Args<'_>) -> Result<Option<Id>> {
        let row = |name: &str, one: usize| Some([one, usize::try_from(args.int(name)?).ok()?]);
        let sizes = [row("stride", 1), row("padding", 0), row("dilation", 1)];
        let made = match self.weighted(args) {
            Some((x, weight, bias)) => {
                convolution(args, weight.unsqueeze(2)?, bias, sizes).map(|kind| (kind, vec![x]))
            }
            None => self.convolution_of(args, sizes),
        };
        let Some((kind, mut inputs)) = made else {
            return Ok(None);
        };
        for id in inputs.iter_mut().take(2) {
            *id = self.draft.push(
                Kind::View(View::Unsqueeze(-2)),
                vec![*id],
                args.node.name(),
                true,
            );
        }
        let made = self.push(args, kind, inputs);
        Ok(made.and_then(|x| self.push(args, Kind::View(View::Squeeze(-2)), vec![x])))
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
        let Some((x, weight, bias)) = self.weighted(args) else {
            return Ok(self.linear_of(args));
        };
        if weight.dims()?.len() != 2 {
            return Ok(None);
        }
        let kind = Kind::Linear {
            weight: Matrix::Dense(weight),
            bias,
            activation: Activation::None,
            order: Order::ActivationFirst,
        };
        Ok(self.push(args, kind, vec![x]))
    }

    fn matmul(&mut self, args: &Args<'_>) -> Option<Id> {
        let names = [args.param(0)?, args.param(1)?];
        let [a, b] = names.map(|name| self.floats(args, name));
        let [of_a, of_b] = names.map(|name| self.half(args, name));
        // The call refuses operands of two types.
        match of_a == of_b {
            true => self.push(args, Kind::Matmul, vec![a?, b?]),
            false => None,
        }
    }

    fn attention(&mut self, args: &Args<'_>) -> Option<Id> {
        if args.float("dropout_p")? != 0.0 {
            return None;
        }
        let (inputs, how) = self.attending(args, &["query", "key", "value"])?;
        self.push(args, Kind::Attention(how), inputs)
    }

    fn attention_back(&mut self, args: &Args<'_>) -> Option<Id> {
        let (inputs, how) = self.attending(args, &["query", "key", "value", "grad"])?;
        let id = self.push(args, Kind::AttentionBack(how), inputs)?;
        self.draft.items[id].is_floats = false;
        Some(id)
    }

    /// The inputs of attention or of its gradients, and how it attends.
    fn attending(&mut self, args: &Args<'_>, names: &[&str]) -> Option<(Vec<Id>, Attending)> {
        let inputs = names.iter().map(|name| self.floats(args, name));
        let mut inputs = inputs.collect::<Option<Vec<Id>>>()?;
        let mut mask = Mask::None;
        if !args.is_none("attn_mask") {
            let given = self.item_of(&*args.get("attn_mask")?)?;
            let added = self.floats_of(given);
            inputs.push(added.unwrap_or(given));
            mask = match added {
                Some(_) => Mask::Added,
                None => Mask::Allowed,
            };
        }
        let scale = match args.is_none("scale") {
            true => None,
            false => Some(args.float("scale")? as f32),
        };
        let how = Attending {
            scale,
            is_causal: args.flag("is_causal"),
            mask,
            is_safe: true,
        };
        Some((inputs, how))
    }

    fn norm(&mut self, args: &Args<'_>, is_layer: bool) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let [size] = args.ints("normalized_shape")?[..] else {
            return None;
        };
        let size = usize::try_from(size).ok()?;
        let bias = is_layer.then(|| self.constant(args, "bias"));
        let (Some(weight), Some(bias)) =
            (self.constant(args, "weight"), bias.unwrap_or(Some(None)))
        else {
            return self.norm_of(args, is_layer);
        };
        let eps = args.float("eps")? as f32;
        let kind = match is_layer {
            true => Kind::LayerNorm {
                size,
                weight,
                bias,
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
        let Some(Some(weight)) = self.constant(args, "weight") else {
            return self.embedding_of(args);
        };
        self.push(args, Kind::Embedding(weight), vec![x])
    }

    fn cat(&mut self, args: &Args<'_>) -> Option<Id> {
        let dim = args.int("dim")?;
        let parts: Vec<Id> = match &*args.get("tensors")? {
            Argument::Tuple(items) | Argument::List(items) => {
                let parts = items.iter().map(|item| {
                    let id = self.item_of(item)?;
                    self.floats_of(id)
                });
                parts.collect::<Option<_>>()?
            }
            _ => return None,
        };
        self.push(args, Kind::Cat(dim), parts)
    }

    fn reduce(&mut self, args: &Args<'_>, how: Reduction) -> Option<Id> {
        let x = self.floats(args, "x")?;
        let dims = match args.is_none("dim") {
            true => vec![],
            false => args.ints("dim")?,
        };
        let keepdim = args.flag("keepdim");
        self.push(args, Kind::Reduce { how, dims, keepdim }, vec![x])
    }

    /// The places that a vector of integers names, which is the same in every run.
    fn index_select(&mut self, args: &Args<'_>) -> Option<Id> {
        let (x, dim) = (self.floats(args, "x")?, args.int("dim")?);
        let index = self.item_of(&*args.get("index")?)?;
        let Kind::Constant(index) = &self.draft.items[index].kind else {
            return None;
        };
        if !matches!(index.dtype(), Ok(DType::I64 | DType::I32)) || index.dims().ok()?.len() != 1 {
            return None;
        }
        let index = index.to_dtype(DType::I64).ok()?;
        let places: Vec<i64> = index.candle().ok()?.to_vec1().ok()?;
        let places: Result<Vec<usize>, _> = places.into_iter().map(usize::try_from).collect();
        let places = places.ok()?;
        // Places in even steps are a view.
        let step = match places[..] {
            [first, second, ..] => second.checked_sub(first).filter(|step| *step > 0),
            _ => None,
        };
        let is_even = |step: usize| places.windows(2).all(|pair| pair[0] + step == pair[1]);
        let kind = match step.filter(|step| is_even(*step)) {
            Some(step) => Kind::View(View::Every {
                dim,
                first: places[0],
                count: places.len(),
                step,
            }),
            None => Kind::Gather { dim, places },
        };
        self.push(args, kind, vec![x])
    }

    fn pad(&mut self, args: &Args<'_>) -> Option<Id> {
        let x = self.floats(args, "x")?;
        if !matches!(args.get("mode").as_deref(), Some(Argument::Str(mode)) if **mode == *"constant")
        {
            return None;
        }
        let value = match args.is_none("value") {
            true => 0.0,
            false => args.float("value")? as f32,
        };
        let given: Result<Vec<usize>, _> =
            args.ints("pad")?.into_iter().map(usize::try_from).collect();
        let given = given.ok()?;
        let (sides, rest) = given.as_chunks::<2>();
        let sides = rest.is_empty().then(|| sides.to_vec())?;
        self.push(args, Kind::Pad { sides, value }, vec![x])
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
        let several = match &self.draft.items[x].kind {
            Kind::Recurrent(how, _) => Some(how.results()),
            Kind::Update(rule) => Some(1 + rule.state().len()),
            Kind::AttentionBack(_) => Some(3),
            _ => None,
        };
        if let (Some(count), Argument::Int(at)) = (several, &*index) {
            let count = count as i64;
            let at = if *at < 0 { *at + count } else { *at };
            return Ok(match (0..count).contains(&at) {
                true => self.push(args, Kind::Part(at as usize), vec![x]),
                false => None,
            });
        }
        if let (Kind::ShapeOf, Argument::Int(at)) = (&self.draft.items[x].kind, &*index) {
            let of = self.draft.items[x].inputs[0];
            return Ok(self.number(args, Kind::SizeOf(*at), of));
        }
        let Some(x) = self.floats_of(x) else {
            return Ok(None);
        };
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
        let (size, is_split) = match call.function() {
            Some(f) if f == function!(ops::split) => ("split_size", true),
            Some(f) if f == function!(ops::chunk) => ("chunks", false),
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
        let view = match is_split {
            true => View::Piece(dim, size, at),
            false => View::Chunk(dim, size, at),
        };
        Ok(self.push(args, Kind::View(view), vec![x]))
    }
}

/// A convolution of images by a weight `[results, channels of a group, rows, columns]`; `sizes` are the stride, the padding
/// and the dilation.
fn convolution(
    args: &Args<'_>,
    weight: Tensor,
    bias: Option<Tensor>,
    sizes: [Option<[usize; 2]>; 3],
) -> Option<Kind> {
    let weight = weight.to_dtype(DType::F32).ok()?;
    let [out_channels, group_in, rows, columns] = weight.dims().ok()?[..] else {
        return None;
    };
    let groups = usize::try_from(args.int("groups")?).ok()?;
    let [stride, padding, dilation] = sizes;
    let mut spec = ConvSpec::new(group_in * groups, out_channels, 1);
    spec.kernel = [rows, columns];
    spec.groups = groups;
    spec.stride = stride?;
    spec.padding = padding?;
    spec.dilation = dilation?;
    Some(Kind::Conv {
        spec,
        weight,
        bias,
        activation: Activation::None,
    })
}

/// Functions with a kernel of their own, besides those of elements.
macro_rules! kernels {
    ($kind:ident: $($function:expr => $item:expr;)*) => {
        function_table! { CpuLowering {
            $($function => CpuLowering::$kind($item),)*
        } }
    };
}

kernels! { kernel:
    function!(ops::batch_norm) => |l, args| l.batch_norm(args);
    function!(ops::max_pool2d) => |l, args| Ok(l.pool(args, true));
    function!(ops::avg_pool2d) => |l, args| Ok(l.pool(args, false));
    function!(ops::adaptive_avg_pool2d) => |l, args| Ok(l.adaptive(args));
    function!(ops::matmul) => |l, args| Ok(l.matmul(args));
    operator::matmul => |l, args| Ok(l.matmul(args));
    function!(ops::layer_norm) => |l, args| Ok(l.norm(args, true));
    function!(ops::rms_norm) => |l, args| Ok(l.norm(args, false));
    function!(ops::softmax) => |l, args| Ok(l.softmax(args, true));
    function!(ops::log_softmax) => |l, args| Ok(l.softmax(args, false));
    function!(ops::embedding) => |l, args| Ok(l.embedding(args));
    function!(ops::index_add) => |l, args| Ok(l.index_add(args));
    function!(ops::gather) => |l, args| Ok(l.take_along(args));
    function!(ops::scatter_add) => |l, args| Ok(l.add_along(args));
    function!(ops::cat) => |l, args| Ok(l.cat(args));
    function!(ops::mean) => |l, args| Ok(l.reduce(args, Reduction::Mean));
    function!(ops::sum) => |l, args| Ok(l.reduce(args, Reduction::Sum));
    function!(ops::amax) => |l, args| Ok(l.reduce(args, Reduction::Max));
    function!(ops::amin) => |l, args| Ok(l.reduce(args, Reduction::Min));
}

kernels! { work:
    function!(ops::conv1d) => |l, args| l.conv1d(args);
    function!(ops::conv2d) => |l, args| Ok(l.conv(args));
    function!(ops::conv_transpose2d) => |l, args| Ok(l.conv_transpose(args));
    function!(crate::derivatives::attention) => |l, args| Ok(l.attention_back(args));
    function!(crate::derivatives::conv2d_weight) => |l, args| Ok(l.conv_weight(args));
    function!(ops::linear) => |l, args| l.linear(args);
    function!(ops::scaled_dot_product_attention) => |l, args| Ok(l.attention(args));
    function!(ops::lstm) => |l, args| Ok(l.recurrent(args, Unit::Lstm));
    function!(ops::gru) => |l, args| Ok(l.recurrent(args, Unit::Gru));
    function!(ops::rnn_tanh) => |l, args| Ok(l.recurrent(args, Unit::Tanh));
    function!(ops::rnn_relu) => |l, args| Ok(l.recurrent(args, Unit::Relu));
    function!(optim::fused_adam) => |l, args| Ok(l.adam(args));
    function!(optim::fused_sgd) => |l, args| Ok(l.sgd(args));
}

/// Nothing is dropped outside of training.
fn as_it_is(lowering: &mut Lowering<'_>, args: &Args<'_>) -> Result<Option<Id>> {
    Ok(match args.flag("training") {
        true if args.float("p") != Some(0.0) => None,
        _ => lowering.floats(args, "x"),
    })
}

// What gives sizes and views computes nothing: a program is not worth it for these alone.
kernels! { view:
    function!(ops::dropout) => as_it_is;
    function!(ops::dropout1d) => as_it_is;
    function!(ops::dropout2d) => as_it_is;
    function!(ops::dropout3d) => as_it_is;
    function!(ops::alpha_dropout) => as_it_is;
    function!(ops::feature_alpha_dropout) => as_it_is;
    function!(ops::stochastic_depth) => as_it_is;
    function!(ops::index_select) => |l, args| Ok(l.index_select(args));
    function!(ops::pad) => |l, args| Ok(l.pad(args));
    function!(ops::to_dtype) => |l, args| Ok(l.converted(args));
    function!(ops::type_as) => |l, args| Ok(l.converted_like(args));
    function!(ops::detach) => |l, args| Ok(l.floats(args, "x"));
    function!(ops::zeros_like) => |l, args| Ok(l.filled_like(args, 0.0));
    function!(ops::ones_like) => |l, args| Ok(l.filled_like(args, 1.0));
    function!(ops::full_like) => |l, args| Ok(args.float("fill_value").and_then(|number| l.filled_like(args, number)));
    function!(ops::contiguous) => |l, args| Ok(l.view(args, View::Contiguous));
    function!(ops::size) => |l, args| Ok(l.size_of(args));
    function!(ops::tensor_size) => |l, args| Ok(l.size_of(args));
    function!(ops::tensor_dim) => |l, args| {
        Ok(l.first(args).and_then(|x| l.number(args, Kind::RankOf, x)))
    };
    operator::getattr => |l, args| Ok(l.getattr(args));
    operator::getitem => |l, args| l.getitem(args);
    function!(ops::reshape) => |l, args| {
        let sizes = l.all_sizes(args, "shape");
        Ok(l.viewed(args, sizes.map(View::Reshape)))
    };
    function!(ops::view) => |l, args| {
        let sizes = l.all_sizes(args, "shape");
        Ok(l.viewed(args, sizes.map(View::Reshape)))
    };
    function!(ops::flatten) => |l, args| {
        let dims = args.int("start_dim").zip(args.int("end_dim"));
        Ok(l.viewed(args, dims.map(|(start, end)| View::Flatten(start, end))))
    };
    function!(ops::permute) => |l, args| Ok(l.viewed(args, args.ints("dims").map(View::Permute)));
    function!(ops::transpose) => |l, args| {
        let dims = args.int("dim0").zip(args.int("dim1"));
        Ok(l.viewed(args, dims.map(|(a, b)| View::Transpose(a, b))))
    };
    function!(ops::t) => |l, args| Ok(l.view(args, View::Turn));
    function!(ops::expand) => |l, args| {
        let sizes = l.all_sizes(args, "size");
        Ok(l.viewed(args, sizes.map(View::Expand)))
    };
    function!(ops::unsqueeze) => |l, args| Ok(l.viewed(args, args.int("dim").map(View::Unsqueeze)));
    function!(ops::squeeze) => |l, args| Ok(l.viewed(args, args.int("dim").map(View::Squeeze)));
    function!(ops::narrow) => |l, args| {
        let size = |name: &str| args.get(name).and_then(|size| l.size(&size));
        let range = size("start").zip(size("length")).zip(args.int("dim"));
        Ok(l.viewed(args, range.map(|((start, length), dim)| View::Narrow(dim, start, length))))
    };
    function!(ops::select) => |l, args| {
        let index = args.get("index").and_then(|index| l.size(&index));
        let chosen = args.int("dim").zip(index);
        Ok(l.viewed(args, chosen.map(|(dim, index)| View::Select(dim, index))))
    };
}
