//! The shapes of the crate's models without data, with names for batch, height, width or length, compared with
//! runs at three sizes of each name; and the memory that is planned by them.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::{BTreeMap, HashMap};

use fx_nn::ir::{NodeRef, TensorMeta, ValueMeta};
use fx_nn::models;
use fx_nn::module::ComponentExt;
use fx_nn::passes::memory_plan;
use fx_nn::prelude::*;
use fx_nn::shapes::{Contract, Spec, spec};
use fx_nn::trace::CallArgs;
use fx_nn::value::NodeId;

/// The values of the names.
type Sizes = BTreeMap<String, i64>;

#[derive(Default)]
struct Compared {
    models: usize,
    nodes: usize,
    dims: usize,
    wrong: usize,
    plan_wrong: usize,
}

fn main() -> Result<()> {
    let image = || spec!["batch", 3, "h", "w"; F32];
    let rows = || spec!["batch", 8; F32];
    let tokens = || spec!["batch", "t"; I64];
    let mut all = Compared::default();

    let mut resnet = models::resnet::resnet18(1000)?;
    resnet.eval();
    let square = Tensor::fake(spec!["batch", 3, 224, 224; F32])?;
    println!("{}", fx_nn::summary(&resnet, &square)?);

    all.planned("resnet18", resnet, [image()])?;
    all.model("resnet50", models::resnet::resnet50(10)?, [image()])?;
    all.model("alexnet", models::alexnet::alexnet(10)?, [image()])?;
    all.model("vgg11_bn", models::vgg::vgg11_bn(10)?, [image()])?;
    all.model(
        "mobilenet_v2",
        models::mobilenet::mobilenet_v2(10)?,
        [image()],
    )?;
    all.planned("unet", models::unet::UNet::new(3, 2, 8)?, [image()])?;
    let patches = spec!["batch", 3, 64, 64; F32];
    all.model("vit_b_16_img64", models::vit::vit_b_16(64, 10)?, [patches])?;
    all.model(
        "autoencoder",
        models::autoencoder::AutoEncoder::new()?,
        [spec!["batch", 3, 16, 16; F32]],
    )?;
    let pair = [
        spec!["batch", 1, 28, 28; F32],
        spec!["batch", 1, 28, 28; F32],
    ];
    all.model("siamese", models::siamese::Siamese::new()?, pair)?;
    all.model("mlp", models::mlp::Mlp::new(8, 16, 4)?, [rows()])?;
    all.model("nested", models::nested::Nested::new(8)?, [rows()])?;
    all.model(
        "shared_sub",
        models::shared_sub::SharedSub::new(8)?,
        [rows()],
    )?;
    all.model("dict_out", models::dict_out::DictOut::new(8)?, [rows()])?;
    all.model("tuple_out", models::tuple_out::TupleOut::new(8)?, [rows()])?;
    let layer = models::transformer::TransformerEncoderLayer::new(32, 4, 64)?;
    all.model("transformer_encoder", layer, [spec!["batch", "t", 32; F32]])?;
    let lstm = models::lstm_classifier::LstmClassifier::new(50, 16, 24, 5)?;
    all.model("lstm_classifier", lstm, [tokens()])?;
    all.planned("gpt2_small", gpt2()?, [tokens()])?;
    all.model(
        "bert_small",
        bert()?,
        [tokens(), spec!["batch", "t"; F32], tokens()],
    )?;

    let Compared {
        models,
        nodes,
        dims,
        wrong,
        plan_wrong,
    } = all;
    println!("models {models} nodes {nodes} dims_checked {dims} wrong {wrong}");
    println!("plan_wrong {plan_wrong}");
    Ok(())
}

impl Compared {
    /// Compares the shapes of a model.
    fn model<M: Module, const N: usize>(
        &mut self,
        name: &str,
        model: M,
        specs: [Spec; N],
    ) -> Result<()> {
        self.compare(name, model, specs, false)
    }

    /// Compares the planned memory, too.
    fn planned<M: Module, const N: usize>(
        &mut self,
        name: &str,
        model: M,
        specs: [Spec; N],
    ) -> Result<()> {
        self.compare(name, model, specs, true)
    }

    fn compare<M: Module, const N: usize>(
        &mut self,
        name: &str,
        mut model: M,
        specs: [Spec; N],
        planned: bool,
    ) -> Result<()> {
        model.eval();
        let gm = Trace::new(&model).inputs(specs).graph_module()?;
        let contract = gm
            .contract()
            .ok_or_else(|| Error::msg("its inputs are known"))?;
        let guards: Vec<String> = contract.guards().iter().map(ToString::to_string).collect();
        println!("{name}: {} guards", guards.len());
        for guard in guards {
            println!("    {guard}");
        }
        let plan = planned.then(|| memory_plan(&gm)).transpose()?;
        for sizes in runs(contract) {
            let of = |name: &str| sizes.get(name).copied();
            let (given, live) = observed(&gm, contract, &sizes)?;
            for node in gm.graph().nodes() {
                let (Some(meta), Some(real)) = (node.meta::<ValueMeta>(), given.get(&node.id()))
                else {
                    continue;
                };
                let (dims, is_wrong) = differs(meta, real, &of)?;
                self.dims += dims;
                if is_wrong {
                    println!(
                        "wrong: {name} %{} at {sizes:?}: {meta} is {real}",
                        node.name()
                    );
                    self.wrong += 1;
                }
            }
            for planned in plan.iter().flat_map(|plan| &plan.nodes) {
                if let Some(live) = live.get(&planned.node)
                    && planned.live.eval(of)? != *live
                {
                    println!(
                        "wrong: {name} %{} at {sizes:?}: {} is {live}",
                        planned.name, planned.live
                    );
                    self.plan_wrong += 1;
                }
            }
        }
        self.models += 1;
        self.nodes += gm.graph().len();
        Ok(())
    }
}

/// Sizes for three values of each name that no guard fixes, the others at their first value.
fn runs(contract: &Contract) -> Vec<Sizes> {
    let start = |name: &str| match name {
        "h" => 64,
        "w" => 72,
        "t" => 5,
        _ => 1,
    };
    let fits = |name: &str, value: i64| {
        contract.guards().iter().all(|guard| {
            // A guard about another size does not decide.
            let holds = guard.claim.holds(|of| (of == name).then_some(value));
            holds.unwrap_or(true)
        })
    };
    let mut first = Sizes::new();
    let mut more: Vec<(String, i64)> = Vec::new();
    for (name, low, high) in contract.symbols() {
        let from = match high {
            Some(high) => start(name).clamp(low, high),
            None => start(name).max(low),
        };
        let to = high.unwrap_or(from + 64);
        let mut values = (from..=to).filter(|value| fits(name, *value)).take(3);
        first.insert(name.to_string(), values.next().unwrap_or(from));
        more.extend(values.map(|value| (name.to_string(), value)));
    }
    let mut runs = vec![first.clone()];
    for (name, value) in more {
        let mut sizes = first.clone();
        sizes.insert(name, value);
        runs.push(sizes);
    }
    runs
}

/// What each node gives in a run at these sizes, and the bytes of all results that are there meanwhile.
fn observed(
    gm: &GraphModule,
    contract: &Contract,
    sizes: &Sizes,
) -> Result<(HashMap<NodeId, ValueMeta>, HashMap<NodeId, i64>)> {
    let mut args = Vec::new();
    for (_, meta) in contract.inputs() {
        // What follows has a default.
        let Some(tensor) = meta.tensor() else {
            break;
        };
        let dims = tensor
            .shape
            .iter()
            .map(|dim| dim.eval(|name| sizes.get(name).copied()));
        let x = Tensor::rand(dims.collect::<Result<Vec<i64>>>()?)?;
        args.push(Value::of(match tensor.dtype {
            Some(dtype) => x.to_dtype(dtype)?,
            None => x,
        }));
    }
    // How many of its users a result still waits for.
    let mut waits: HashMap<NodeId, usize> = HashMap::new();
    for node in gm.graph().nodes() {
        waits.insert(node.id(), node.users().count());
    }
    let mut bytes: HashMap<NodeId, i64> = HashMap::new();
    let (mut given, mut live, mut total) = (HashMap::new(), HashMap::new(), 0);
    let mut passed = |node: NodeRef<'_>, meta: ValueMeta| {
        let own = meta.bytes() as i64;
        total += own;
        bytes.insert(node.id(), own);
        live.insert(node.id(), total);
        given.insert(node.id(), meta);
        let mut gone: Vec<NodeId> = Vec::new();
        for input in node.all_input_nodes() {
            let left = waits.entry(input.id()).or_default();
            *left -= 1;
            if *left == 0 {
                gone.push(input.id());
            }
        }
        if node.num_users() == 0 {
            gone.push(node.id());
        }
        total -= gone.iter().filter_map(|id| bytes.get(id)).sum::<i64>();
    };
    for (node, arg) in gm.graph().placeholders().zip(&args) {
        passed(node, ValueMeta::of(arg));
    }
    let args = CallArgs {
        args,
        kwargs: Vec::new(),
    };
    gm.forward_observed::<Value>(args, |node, value| {
        passed(node, ValueMeta::of(value));
        Ok(())
    })?;
    Ok((given, live))
}

/// How many sizes were compared, and whether one, or an element type, is another.
fn differs(
    meta: &ValueMeta,
    real: &ValueMeta,
    of: &dyn Fn(&str) -> Option<i64>,
) -> Result<(usize, bool)> {
    let tensor = |meta: &TensorMeta, real: &TensorMeta| -> Result<bool> {
        let sizes: Vec<i64> = meta
            .shape
            .iter()
            .map(|dim| dim.eval(of))
            .collect::<Result<_>>()?;
        let known: Vec<i64> = real
            .shape
            .iter()
            .filter_map(|dim| dim.as_number())
            .collect();
        Ok(sizes != known || meta.dtype != real.dtype)
    };
    Ok(match (meta, real) {
        (ValueMeta::Single(meta), ValueMeta::Single(real)) => {
            (meta.shape.len(), tensor(meta, real)?)
        }
        (ValueMeta::List(a), ValueMeta::List(b)) if a.len() == b.len() => {
            let mut all = (0, false);
            for (a, b) in a.iter().zip(b) {
                let (dims, is_wrong) = differs(a, b, of)?;
                all = (all.0 + dims, all.1 || is_wrong);
            }
            all
        }
        (ValueMeta::Dict(a), ValueMeta::Dict(b)) if a.len() == b.len() => {
            let mut all = (0, false);
            for ((key, a), (other, b)) in a.iter().zip(b) {
                let (dims, is_wrong) = differs(a, b, of)?;
                all = (all.0 + dims, all.1 || is_wrong || key != other);
            }
            all
        }
        (ValueMeta::Int(dim), real) => (1, dim.eval(of)?.to_string() != real.to_string()),
        (meta, real) => (0, meta != real),
    })
}

fn gpt2() -> Result<models::gpt2::Gpt2> {
    models::gpt2::Gpt2::new(&models::gpt2::Config {
        vocab_size: 101,
        block_size: 8,
        n_layer: 2,
        n_head: 4,
        n_embd: 64,
        dropout: 0.1,
    })
}

fn bert() -> Result<models::bert::Bert> {
    models::bert::Bert::new(&models::bert::Config {
        vocab_size: 97,
        max_positions: 24,
        length: 10,
        width: 48,
        heads: 4,
        intermediate: 96,
        layers: 2,
        labels: 3,
        dropout: 0.1,
    })
}
