//! Graph modules that no golden is of, whose generated source is kept, compiled and run as theirs is: those of examples,
//! and structures in and out.

use fx_nn::prelude::*;

#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/concrete_args.rs"]
mod concrete_args;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/custom_tracer.rs"]
mod custom_tracer;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/decompose.rs"]
mod decompose;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/decomposition_table.rs"]
mod decomposition_table;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/diffusion_unet.rs"]
mod diffusion_unet;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/fuse_linear_gelu.rs"]
mod fuse_linear_gelu;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/invert.rs"]
mod invert;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/leaf_policy.rs"]
mod leaf_policy;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/llama.rs"]
mod llama;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/quickstart.rs"]
mod quickstart;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/replace_op.rs"]
mod replace_op;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/replace_pattern.rs"]
mod replace_pattern;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/retrace.rs"]
mod retrace;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/transformer.rs"]
mod transformer;
#[allow(dead_code, reason = "its program is not run here")]
#[path = "../../../../fx-nn/examples/wrap_functions.rs"]
mod wrap_functions;

/// A module whose source is kept.
pub struct Emitted {
    pub traced: GraphModule,
    pub inputs: Vec<Value>,
    /// What its arguments are bound to in a trace.
    pub bound: Vec<(&'static str, Value)>,
}

impl From<(GraphModule, Vec<Value>)> for Emitted {
    fn from((traced, inputs): (GraphModule, Vec<Value>)) -> Self {
        Emitted {
            traced,
            inputs,
            bound: Vec::new(),
        }
    }
}

impl Emitted {
    fn bound(mut self, name: &'static str, value: Value) -> Self {
        self.bound.push((name, value));
        self
    }
}

/// How a module's `code()` is compiled, too.
pub enum Code {
    /// It is not: the type is not at hand, or its first line says that it would not be.
    Not,
    /// In an `impl` of a struct without fields, where these names are imported.
    Function(&'static str),
    /// In an `impl` of what stands for a model of this path.
    Model(&'static str),
}

type Make = fn() -> Result<Emitted>;

/// Every such module, by name.
pub const EMITTED: &[(&str, Make, Code)] = &[
    ("example_concrete_args", concrete_args, Code::Not),
    (
        "example_custom_tracer",
        || Ok(custom_tracer::example()?.into()),
        Code::Not,
    ),
    (
        "example_invert",
        || Ok(invert::example()?.into()),
        Code::Not,
    ),
    (
        "example_leaf_policy",
        || Ok(leaf_policy::example()?.into()),
        Code::Not,
    ),
    (
        "example_quickstart",
        || Ok(quickstart::example()?.into()),
        Code::Not,
    ),
    (
        "example_replace_op",
        || Ok(replace_op::example()?.into()),
        Code::Not,
    ),
    (
        "example_replace_pattern",
        || Ok(replace_pattern::example()?.into()),
        Code::Not,
    ),
    (
        "example_transformer",
        || Ok(transformer::example()?.into()),
        Code::Not,
    ),
    (
        "example_decompose",
        || Ok(decompose::example()?.into()),
        Code::Not,
    ),
    (
        "example_decomposition_table",
        || Ok(decomposition_table::example()?.into()),
        Code::Function(""),
    ),
    (
        "example_diffusion_unet",
        || Ok(diffusion_unet::example()?.into()),
        Code::Not,
    ),
    (
        "example_llama",
        || Ok(Emitted::from(llama::example()?).bound("caches", llama::caches())),
        Code::Not,
    ),
    (
        "example_retrace",
        || Ok(retrace::example()?.into()),
        Code::Not,
    ),
    (
        "tree_in",
        tree_in,
        Code::Function("use crate::emitted::Cache;\n"),
    ),
    (
        "tree_in_trees",
        tree_in_trees,
        Code::Function("use crate::emitted::{Cache, Layers};\n"),
    ),
    (
        "tree_mixed",
        tree_mixed,
        Code::Function("use crate::emitted::Settings;\n"),
    ),
    ("tree_out", tree_out, Code::Function("")),
    ("names", names, Code::Not),
    ("model_gpt2", gpt2, Code::Not),
    ("model_mlp", mlp, Code::Model("fx_nn::models::mlp::Mlp")),
    (
        "model_siamese",
        siamese,
        Code::Model("fx_nn::models::siamese::Siamese"),
    ),
];

/// Examples that call what is private to them, with what: no crate can name it.
pub const PRIVATE: &[(&str, Example, &str)] = &[
    ("fuse_linear_gelu", fuse_linear_gelu::example, "LinearGelu"),
    ("wrap_functions", wrap_functions::example, "clip_norm"),
];

type Example = fn() -> Result<(GraphModule, Vec<Value>)>;

fn concrete_args() -> Result<Emitted> {
    Ok(Emitted::from(concrete_args::example()?)
        .bound("batch", tree!({"tokens": PH, "masks": [PH, PH]}))
        .bound("average", Value::Bool(true))
        .bound("bias", Value::None))
}

fn x() -> Result<Tensor> {
    Tensor::arange(0, 6)?.to_dtype(DType::F32)?.reshape((2, 3))
}

/// What a layer has seen.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    pub k: Tensor,
}

fn tree_in() -> Result<Emitted> {
    let cache = || tree!({"k": PH});
    let gm = Trace::new(traced!(|x: &Tensor, c: Cache| x + c.k))
        .concrete("c", cache())
        .graph_module()?;
    let inputs = vec![Value::of(x()?), Value::of(Cache { k: x()? })];
    Ok(Emitted::from((gm, inputs)).bound("c", cache()))
}

/// Two of one kind.
#[derive(Tree, Clone, Debug)]
pub struct Pair(pub Cache, pub Tensor);

/// Structures in structures.
#[derive(Tree, Clone, Debug)]
pub struct Layers {
    pub r#type: Tensor,
    pub caches: Vec<Cache>,
    pub pair: Pair,
    pub named: IndexMap<String, Tensor>,
}

#[trace]
fn nested(layers: &Layers, more: Vec<(Tensor, Cache)>) -> Result<(Layers, Tensor)> {
    let mut sum = (&layers.r#type + &layers.caches[1].k)?;
    sum = ((sum + &layers.pair.0.k)? + &layers.pair.1)?;
    sum = ((sum + &layers.named["a b"])? + &more[0].1.k)?;
    Ok((
        Layers {
            r#type: sum.relu()?,
            caches: vec![Cache { k: sum.clone() }],
            pair: layers.pair.clone(),
            named: IndexMap::from([("fn".to_string(), sum.neg()?)]),
        },
        sum,
    ))
}

fn tree_in_trees() -> Result<Emitted> {
    let layers = || {
        let cache = tree!({"k": PH});
        tree!({"type": PH, "caches": [(cache.clone()), (cache.clone())], "pair": ((cache), PH), "named": {"a b": PH}})
    };
    let more = || tree!([(PH, {"k": PH})]);
    let gm = Trace::new(traced!(nested))
        .concrete("layers", layers())
        .concrete("more", more())
        .graph_module()?;
    let cache = || -> Result<Cache> { Ok(Cache { k: x()? }) };
    let given = Layers {
        r#type: x()?,
        caches: vec![cache()?, cache()?],
        pair: Pair(cache()?, x()?),
        named: IndexMap::from([("a b".to_string(), x()?)]),
    };
    let inputs = vec![Value::of(given), Value::of(vec![(x()?, cache()?)])];
    Ok(Emitted::from((gm, inputs))
        .bound("layers", layers())
        .bound("more", more()))
}

/// Values of several kinds.
#[derive(Tree, Clone, Debug)]
pub struct Settings {
    pub x: Tensor,
    pub times: i64,
    pub scale: f64,
    pub is_on: bool,
    pub mode: String,
    pub mask: Option<Tensor>,
}

#[trace]
fn configured(settings: Settings) -> Result<Tensor> {
    let mut y = settings.x;
    for _ in 0..settings.times {
        y = (y * settings.scale)?;
    }
    match (settings.is_on, settings.mode.as_str(), settings.mask) {
        (true, "relu", None) => y.relu(),
        (_, _, Some(mask)) => y + mask,
        _ => Ok(y),
    }
}

fn tree_mixed() -> Result<Emitted> {
    let bound =
        || tree!({"x": PH, "times": 2, "scale": 0.5, "is_on": true, "mode": "relu", "mask": None});
    let gm = Trace::new(traced!(configured))
        .concrete("settings", bound())
        .graph_module()?;
    let given =
        tree!({"x": (x()?), "times": 2, "scale": 0.5, "is_on": true, "mode": "relu", "mask": None});
    Ok(Emitted::from((gm, vec![given])).bound("settings", bound()))
}

/// Structs and trees of several kinds as a result.
fn tree_out() -> Result<Emitted> {
    #[derive(Tree, Clone)]
    struct Inner {
        h: Tensor,
    }
    #[derive(Tree, Clone)]
    struct Outer {
        inner: Inner,
        all: (Tensor, Vec<Tensor>),
        size: Int,
        nothing: Option<Tensor>,
    }
    let f = traced!(|x: &Tensor| -> Result<(Outer, Value)> {
        let h = x.relu()?;
        let size = x.size(0)?;
        let mixed = tree!({"h": (h.clone()), "n": 3, "pair": ((x.exp()?), 0.5), "list": [(h.clone()), "text"]});
        let all = (h.neg()?, vec![h.clone(), x.clone()]);
        Ok((
            Outer {
                inner: Inner { h },
                all,
                size,
                nothing: None,
            },
            mixed,
        ))
    });
    Ok((symbolic_trace(f)?, vec![Value::of(x()?)]).into())
}

/// Paths that are not names in Rust.
fn names() -> Result<Emitted> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let paths = [
        "0",
        "type",
        "a-b.self",
        "a-b.{x}",
        "a-b.`",
        "features.0",
        "features.1",
        "*/ fn",
        "fn.fn",
    ];
    let relu = gm.graph().nodes().nth(1).map(|node| node.id());
    let relu = relu.ok_or_else(|| Error::msg("it has an input and a relu"))?;
    let mut last = relu;
    for path in paths {
        gm.add_submodule(path, nn::Tanh::new())?;
    }
    let mut graph = gm.graph_mut();
    for path in paths {
        let call = graph
            .inserting_after(last)?
            .call_module(path, (last,), ())?;
        graph
            .node_mut(last)?
            .replace_uses_with_filter(call, |user| user.id() != call)?;
        last = call;
    }
    drop(graph);
    Ok((gm, vec![Value::of(x()?)]).into())
}

fn gpt2() -> Result<Emitted> {
    let mut model = fx_nn::models::gpt2::Gpt2::new(&fx_nn::models::gpt2::Config {
        vocab_size: 11,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 8,
        dropout: 0.1,
    })?;
    model.eval();
    let tokens = Tensor::from_vec((0..8).collect::<Vec<i64>>(), (1, 8))?;
    Ok((symbolic_trace(&model)?, vec![Value::of(tokens)]).into())
}

pub fn code_model_mlp() -> Result<fx_nn::models::mlp::Mlp> {
    fx_nn::models::mlp::Mlp::new(3, 4, 2)
}

fn mlp() -> Result<Emitted> {
    let mut model = code_model_mlp()?;
    model.eval();
    Ok((symbolic_trace(&model)?, vec![Value::of(x()?)]).into())
}

pub fn code_model_siamese() -> Result<fx_nn::models::siamese::Siamese> {
    fx_nn::models::siamese::Siamese::new()
}

fn siamese() -> Result<Emitted> {
    let model = code_model_siamese()?;
    let image = || Tensor::rand((1, 1, 28, 28));
    let inputs = vec![Value::of(image()?), Value::of(image()?)];
    Ok((symbolic_trace(&model)?, inputs).into())
}
