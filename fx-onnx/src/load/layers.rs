//! Layers: calls whose weights are constants of the file become calls of fx-nn's layers at the file's module paths, with
//! the weights as parameters to train.
//!
//! Invariant: a layer computes what its call did, and no path is inside of another's.

use std::cell::RefCell;

use fx_nn::ir::{Argument, BoundArgs, Function, NodeRef, Op, ValueMeta};
use fx_nn::module::{Call, Module};
use fx_nn::prelude::*;
use fx_nn::tensor::{Object, Pair, Triple};
use fx_nn::value::NodeId;
use fx_nn::{Result, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::Turned;
use super::operator::Operator;
use super::ops as table;
use crate::proto::NodeProto;

/// Puts a layer at a path.
type Put = Box<dyn FnOnce(&mut GraphModule, &str) -> Result<()>>;

/// A call that can be one of a layer.
struct Candidate {
    node: NodeId,
    /// The product whose sum with a bias the node is.
    product: Option<NodeId>,
    x: NodeId,
    layer: Layer,
    scope: Option<String>,
}

/// A layer with its weights.
struct Layer {
    kind: &'static str,
    /// Where the weight was, without `weight`.
    prefix: Option<String>,
    /// The weights by identity, and the options: calls for which these are equal call one layer.
    same: String,
    /// The nodes of the weights.
    weights: Vec<NodeId>,
    put: Put,
}

/// The values that nodes read at places that the entries of their operators name.
pub(super) fn read_at(
    nodes: &[NodeProto],
    places: fn(&Operator) -> &'static [usize],
) -> FxHashSet<&str> {
    let mut all = FxHashSet::default();
    for node in nodes {
        let entries = table::entries(&node.domain, &node.op_type);
        let places = entries.flat_map(places);
        let names = places.filter_map(|at| node.input.get(*at));
        all.extend(names.map(String::as_str));
    }
    all
}

/// Makes calls of layers.
pub(super) fn layers(gm: &mut GraphModule, turned: &Turned) -> Result<()> {
    let mut found = candidates(gm, turned)?;
    if found.is_empty() {
        return Ok(());
    }
    let paths = paths(gm, &found)?;
    gm.edit(|gm| {
        let mut done: FxHashSet<String> = FxHashSet::default();
        let mut unused = Vec::new();
        for (candidate, path) in found.drain(..).zip(paths) {
            if done.insert(path.clone()) {
                (candidate.layer.put)(gm, &path)?;
            }
            let mut edit = gm.graph_mut();
            let mut node = edit.node_mut(candidate.node)?;
            node.set_op(Op::CallModule(path.as_str().into()))?;
            node.set_inputs((candidate.x,), ())?;
            node.rename(&path.replace('.', "_"));
            unused.extend(candidate.layer.weights);
            unused.extend(candidate.product);
        }
        gm.graph_mut().erase_unused(&unused)
    })
}

fn candidates(gm: &GraphModule, turned: &Turned) -> Result<Vec<Candidate>> {
    let reader = Weights {
        gm,
        turned,
        parameters: RefCell::default(),
    };
    let mut found: Vec<Candidate> = Vec::new();
    // Products with a matrix of the file, until the sum with a bias that may follow.
    let mut products: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in gm.graph().nodes() {
        let Op::CallFunction(function) = node.op() else {
            continue;
        };
        if *function == operator::add {
            let bias = reader.with_bias(node, &products)?;
            if let Some((at, weight, bias)) = bias {
                let product = found[at].node;
                found[at].layer = reader.linear(&weight, Some(&bias), true)?;
                (found[at].node, found[at].product) = (node.id(), Some(product));
            }
            continue;
        }
        let call = Call::of(node, gm.attributes()).bind()?;
        let Some((x, layer)) = reader.layer(*function, &call)? else {
            continue;
        };
        if *function == function!(ops::matmul) {
            products.insert(node.id(), found.len());
        }
        let scope = node.module_stack().next();
        found.push(Candidate {
            node: node.id(),
            product: None,
            x,
            layer,
            scope: scope
                .map(|scope| scope.path.to_string())
                .filter(|path| !path.is_empty()),
        });
    }
    // In the order of the graph: a sum stands behind what was found between.
    let order: FxHashMap<NodeId, usize> = (gm.graph().nodes().enumerate())
        .map(|(at, node)| (node.id(), at))
        .collect();
    found.sort_by_key(|candidate| order.get(&candidate.node).copied());
    Ok(found)
}

/// A weight of the file: its node, its path, and its tensor.
struct Weight {
    node: NodeId,
    path: String,
    tensor: Tensor,
}

impl Weight {
    fn rank(&self) -> usize {
        self.tensor.dims().map_or(0, <[usize]>::len)
    }
}

/// The constants that calls name.
struct Weights<'g> {
    gm: &'g GraphModule,
    turned: &'g Turned,
    /// The parameters by the identity of their constants: tied ones stay tied.
    parameters: RefCell<FxHashMap<u64, Tensor>>,
}

impl Weights<'_> {
    /// A weight to train.
    fn parameter(&self, weight: &Weight) -> Result<Tensor> {
        let Some(id) = Object::object_id(&weight.tensor) else {
            return weight.tensor.clone().into_parameter();
        };
        if let Some(known) = self.parameters.borrow().get(&id) {
            return Ok(known.clone());
        }
        let made = weight.tensor.clone().into_parameter()?;
        self.parameters.borrow_mut().insert(id, made.clone());
        Ok(made)
    }

    fn weight(&self, argument: &Argument) -> Option<Weight> {
        let node = self.gm.graph().node(argument.as_node()?).ok()?;
        let Op::GetAttr(path) = node.op() else {
            return None;
        };
        let value = self.gm.attributes().tensor(path).ok()?;
        let tensor = value.downcast_ref::<Tensor>()?.clone();
        let is_float = Tensor::dtype(&tensor).is_ok_and(DType::is_floating_point);
        is_float.then(|| Weight {
            node: node.id(),
            path: path.to_string(),
            tensor,
        })
    }

    fn given(&self, call: &BoundArgs<'_>, param: &str) -> Option<Weight> {
        self.weight(&*call.get(param)?)
    }

    /// A weight that may be left out; `None` if it is something else.
    fn optional(&self, call: &BoundArgs<'_>, param: &str) -> Option<Option<Weight>> {
        match call.get(param).as_deref() {
            None | Some(Argument::None) => Some(None),
            Some(argument) => self.weight(argument).map(Some),
        }
    }

    /// The layer that a call of a function is, and what it is called with.
    fn layer(&self, function: Function, call: &BoundArgs<'_>) -> Result<Option<(NodeId, Layer)>> {
        let Some(x) = call.iter().next().and_then(|(_, x)| x.as_node()) else {
            return Ok(None);
        };
        let found = if function == function!(ops::matmul) {
            match self.given(call, "other").filter(|w| w.rank() == 2) {
                Some(weight) => Some(self.linear(&weight, None, true)?),
                None => None,
            }
        } else if function == function!(ops::embedding) {
            match self.given(call, "weight").filter(|w| w.rank() == 2) {
                Some(weight) => Some(self.embedding(&weight)?),
                None => None,
            }
        } else if function == function!(ops::batch_norm) {
            self.batch_norm(call)?
        } else {
            let (Some(weight), Some(bias)) =
                (self.given(call, "weight"), self.optional(call, "bias"))
            else {
                return Ok(None);
            };
            self.plain(function, call, &weight, bias.as_ref())?
        };
        Ok(found.map(|layer| (x, layer)))
    }

    /// Layers with a weight and a bias.
    fn plain(
        &self,
        function: Function,
        call: &BoundArgs<'_>,
        weight: &Weight,
        bias: Option<&Weight>,
    ) -> Result<Option<Layer>> {
        let (w, b) = (
            self.parameter(weight)?,
            bias.map(|b| self.parameter(b)).transpose()?,
        );
        let text = options(call);
        let made = |kind, module: Box<dyn FnOnce() -> Put>| {
            Ok(Some(Layer::new(
                kind,
                weight,
                bias.into_iter(),
                &text,
                module(),
            )))
        };
        let groups = number(call, "groups").unwrap_or(1);
        if function == function!(ops::linear) {
            return self.linear(weight, bias, false).map(Some);
        }
        macro_rules! conv {
            ($op:ident, $kind:literal, $layer:ident, $read:ident $(, $more:ident)*) => {
                if function == function!(ops::$op)
                    && let (Some(stride), Some(padding), Some(dilation)) = (
                        $read(call, "stride"),
                        $read(call, "padding"),
                        $read(call, "dilation"),
                    )
                    $(&& let Some($more) = $read(call, stringify!($more)))*
                {
                    return made($kind, Box::new(move || put(nn::$layer {
                        weight: w,
                        bias: b,
                        stride,
                        padding,
                        dilation,
                        groups,
                        $($more,)*
                    })));
                }
            };
        }
        conv!(conv1d, "conv", Conv1d, number);
        conv!(conv2d, "conv", Conv2d, pair);
        conv!(conv3d, "conv", Conv3d, triple);
        conv!(
            conv_transpose1d,
            "conv",
            ConvTranspose1d,
            number,
            output_padding
        );
        conv!(
            conv_transpose2d,
            "conv",
            ConvTranspose2d,
            pair,
            output_padding
        );
        conv!(
            conv_transpose3d,
            "conv",
            ConvTranspose3d,
            triple,
            output_padding
        );
        if function == function!(ops::layer_norm)
            && let (Some(normalized_shape), Some(eps)) =
                (numbers(call, "normalized_shape"), float(call, "eps"))
        {
            return made(
                "norm",
                Box::new(move || {
                    put(nn::LayerNorm {
                        weight: Some(w),
                        bias: b,
                        normalized_shape,
                        eps,
                    })
                }),
            );
        }
        if function == function!(ops::group_norm)
            && let (Some(num_groups), Some(eps)) = (number(call, "num_groups"), float(call, "eps"))
        {
            return made(
                "norm",
                Box::new(move || {
                    put(nn::GroupNorm {
                        weight: Some(w),
                        bias: b,
                        num_groups,
                        eps,
                    })
                }),
            );
        }
        Ok(None)
    }

    /// A linear layer; the weight is `[in, out]` if it is `turned`.
    fn linear(&self, weight: &Weight, bias: Option<&Weight>, turned: bool) -> Result<Layer> {
        let before = Object::object_id(&weight.tensor).and_then(|id| self.turned.get(&id));
        let (path, tensor) = match (turned, before) {
            (true, Some((path, before))) => (path.clone(), before.clone()),
            (true, None) => (weight.path.clone(), ops::t(&weight.tensor)?.contiguous()?),
            (false, _) => (weight.path.clone(), weight.tensor.clone()),
        };
        let own = Weight {
            node: weight.node,
            path,
            tensor,
        };
        let (w, b) = (
            self.parameter(&own)?,
            bias.map(|b| self.parameter(b)).transpose()?,
        );
        let layer = nn::Linear { weight: w, bias: b };
        Ok(Layer::new("linear", &own, bias.into_iter(), "", put(layer)))
    }

    /// The product before a sum with a vector of the file: where it was found, and the two weights.
    fn with_bias(
        &self,
        node: NodeRef<'_>,
        products: &FxHashMap<NodeId, usize>,
    ) -> Result<Option<(usize, Weight, Weight)>> {
        let args = node.args();
        let (Some(a), Some(b), 2) = (args.first(), args.get(1), args.len()) else {
            return Ok(None);
        };
        for (product, bias) in [(a, b), (b, a)] {
            let Some(at) = product.as_node().and_then(|id| products.get(&id)) else {
                continue;
            };
            let Some(bias) = self.weight(bias).filter(|bias| bias.rank() == 1) else {
                continue;
            };
            let product = self
                .gm
                .graph()
                .node(product.as_node().expect("it was found"))?;
            let call = Call::of(product, self.gm.attributes()).bind()?;
            let Some(weight) = self.given(&call, "other") else {
                continue;
            };
            let fits = weight.tensor.dims()?.last() == bias.tensor.dims()?.first();
            if product.num_users() == 1 && fits {
                return Ok(Some((*at, weight, bias)));
            }
        }
        Ok(None)
    }

    fn embedding(&self, weight: &Weight) -> Result<Layer> {
        let layer = nn::Embedding {
            weight: self.parameter(weight)?,
            padding_idx: None,
        };
        Ok(Layer::new(
            "embedding",
            weight,
            None.into_iter(),
            "",
            put(layer),
        ))
    }

    /// A batch norm with statistics of the file.
    fn batch_norm(&self, call: &BoundArgs<'_>) -> Result<Option<Layer>> {
        let all =
            ["weight", "bias", "running_mean", "running_var"].map(|name| self.given(call, name));
        let [Some(weight), Some(bias), Some(mean), Some(var)] = all else {
            return Ok(None);
        };
        let plain = matches!(call.get("training").as_deref(), Some(Argument::Bool(false)));
        let (Some(eps), Some(momentum), true) =
            (float(call, "eps"), float(call, "momentum"), plain)
        else {
            return Ok(None);
        };
        let x = call.get("x").and_then(|x| x.as_node());
        let x = x.map(|x| self.gm.graph().node(x)).transpose()?;
        let rank = x.and_then(|x| x.meta::<ValueMeta>()?.tensor().map(|meta| meta.shape.len()));
        let (w, b) = (Some(self.parameter(&weight)?), Some(self.parameter(&bias)?));
        let (m, v) = (Some(mean.tensor.clone()), Some(var.tensor.clone()));
        macro_rules! norm {
            ($layer:ident) => {
                put(nn::$layer {
                    weight: w,
                    bias: b,
                    running_mean: m,
                    running_var: v,
                    num_batches_tracked: None,
                    eps,
                    momentum,
                    training: false,
                })
            };
        }
        let put = match rank {
            Some(2 | 3) => norm!(BatchNorm1d),
            Some(4) => norm!(BatchNorm2d),
            Some(5) => norm!(BatchNorm3d),
            _ => return Ok(None),
        };
        let others = [&bias, &mean, &var].into_iter();
        Ok(Some(Layer::new(
            "norm",
            &weight,
            others,
            &options(call),
            put,
        )))
    }
}

impl Layer {
    fn new<'w>(
        kind: &'static str,
        weight: &'w Weight,
        others: impl Iterator<Item = &'w Weight>,
        options: &str,
        put: Put,
    ) -> Self {
        let mut same = format!("{kind} {options}");
        let mut weights = Vec::new();
        for one in std::iter::once(weight).chain(others) {
            same.push_str(&format!(" {:?}", Object::object_id(&one.tensor)));
            weights.push(one.node);
        }
        Layer {
            kind,
            prefix: weight.path.strip_suffix(".weight").map(str::to_string),
            same,
            weights,
            put,
        }
    }
}

fn put(module: impl Module) -> Put {
    Box::new(move |gm, path| gm.add_submodule(path, module))
}

/// The arguments that are no values of the graph, as text.
fn options(call: &BoundArgs<'_>) -> String {
    let plain = call
        .iter()
        .filter(|(_, argument)| argument.as_node().is_none());
    let named = plain.map(|(param, argument)| format!("{}={argument:?}", param.name));
    named.collect::<Vec<String>>().join(" ")
}

fn numbers(call: &BoundArgs<'_>, param: &str) -> Option<Vec<usize>> {
    match &*call.get(param)? {
        Argument::Int(one) => Some(vec![usize::try_from(*one).ok()?]),
        Argument::List(items) | Argument::Tuple(items) => items
            .iter()
            .map(|item| match item {
                Argument::Int(one) => usize::try_from(*one).ok(),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn number(call: &BoundArgs<'_>, param: &str) -> Option<usize> {
    numbers(call, param)?.first().copied()
}

fn pair(call: &BoundArgs<'_>, param: &str) -> Option<Pair> {
    match *numbers(call, param)? {
        [one] => Some(Pair(one, one)),
        [a, b] => Some(Pair(a, b)),
        _ => None,
    }
}

fn triple(call: &BoundArgs<'_>, param: &str) -> Option<Triple> {
    match *numbers(call, param)? {
        [one] => Some(Triple(one, one, one)),
        [a, b, c] => Some(Triple(a, b, c)),
        _ => None,
    }
}

fn float(call: &BoundArgs<'_>, param: &str) -> Option<f64> {
    match &*call.get(param)? {
        Argument::Float(x) => Some(*x),
        Argument::Int(x) => Some(*x as f64),
        _ => None,
    }
}

/// The proper prefixes of a path.
fn around(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(at, _)| &path[..at])
}

/// A path for each layer: where its weights were, or the module of its node. Equal layers at one place are one.
fn paths(gm: &GraphModule, found: &[Candidate]) -> Result<Vec<String>> {
    // Who reads a weight: how many calls, and the layer that it belongs to, the one at its path or the first.
    let mut readers: FxHashMap<&str, (usize, &str)> = FxHashMap::default();
    for candidate in found {
        let Some(prefix) = candidate.layer.prefix.as_deref() else {
            continue;
        };
        let (count, owner) = readers.entry(prefix).or_insert((0, &candidate.layer.same));
        *count += 1;
        if candidate.scope.as_deref() == Some(prefix) {
            *owner = &candidate.layer.same;
        }
    }
    // The calls that want a path, by what makes them one layer.
    let mut wanted: Vec<Option<&str>> = Vec::new();
    let mut keys: Vec<(Option<&str>, &str)> = Vec::new();
    for candidate in found {
        let (scope, prefix) = (
            candidate.scope.as_deref(),
            candidate.layer.prefix.as_deref(),
        );
        let path = match prefix.map(|prefix| (prefix, readers[prefix])) {
            Some((prefix, (count, owner)))
                if owner == candidate.layer.same
                    && (count == 1 || scope.is_none_or(|scope| scope == prefix)) =>
            {
                Some(prefix)
            }
            _ => scope,
        };
        wanted.push(path);
        keys.push((path, &candidate.layer.same));
    }
    let mut wishes: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
    for (path, same) in &keys {
        if let Some(path) = path {
            wishes.entry(path).or_default().insert(same);
        }
    }
    // Weights that are read elsewhere stay where they are.
    let absorbed: FxHashSet<NodeId> = found
        .iter()
        .flat_map(|c| &c.layer.weights)
        .copied()
        .collect();
    let callers: FxHashSet<NodeId> = found
        .iter()
        .flat_map(|c| c.product.into_iter().chain([c.node]))
        .collect();
    let mut taken: FxHashSet<String> = FxHashSet::default();
    for node in gm.graph().nodes() {
        let stays = !absorbed.contains(&node.id())
            || node.users().any(|user| !callers.contains(&user.id()));
        match node.op() {
            Op::GetAttr(path) if stays => drop(taken.insert(path.to_string())),
            Op::CallModule(path) => drop(taken.insert(path.to_string())),
            _ => {}
        }
    }
    let mut outer: FxHashSet<String> = taken
        .iter()
        .flat_map(|path| around(path))
        .map(str::to_string)
        .collect();
    outer.extend(
        wanted
            .iter()
            .flatten()
            .flat_map(|path| around(path))
            .map(str::to_string),
    );
    let mut given: FxHashMap<(Option<&str>, &str), String> = FxHashMap::default();
    let mut all = Vec::with_capacity(found.len());
    for (candidate, key) in found.iter().zip(keys) {
        if let Some(path) = given.get(&key) {
            all.push(path.clone());
            continue;
        }
        let is_free = |path: &str, taken: &FxHashSet<String>, outer: &FxHashSet<String>| {
            !taken.contains(path)
                && !outer.contains(path)
                && !around(path).any(|p| taken.contains(p))
        };
        let kind = candidate.layer.kind;
        let alone = key.0.filter(|path| wishes[path].len() == 1);
        let mut path = match (alone, key.0) {
            (Some(path), _) if is_free(path, &taken, &outer) => path.to_string(),
            (_, Some(path)) => format!("{path}.{kind}"),
            (_, None) => kind.to_string(),
        };
        let mut count = 0;
        while !is_free(&path, &taken, &outer) {
            count += 1;
            path = match key.0 {
                // Where the module itself is a layer, beside it.
                Some(path) if around(path).chain([path]).any(|p| taken.contains(p)) => {
                    format!("{}_{kind}_{count}", path.replace('.', "_"))
                }
                Some(path) => format!("{path}.{kind}_{count}"),
                None => format!("{kind}_{count}"),
            };
        }
        taken.insert(path.clone());
        outer.extend(around(&path).map(str::to_string));
        given.insert(key, path.clone());
        all.push(path);
    }
    Ok(all)
}
