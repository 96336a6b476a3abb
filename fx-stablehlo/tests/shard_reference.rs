//! Programs of several devices against one device, on models of `fx_nn`; a failing device ends a run.

use fx_nn::models::hf::{self, decoder};
use fx_nn::models::{gpt2, resnet, vit};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::shapes::spec;
use fx_stablehlo::shard::{
    CollectiveKind, Mesh, Partitioned, ShardReport, ShardRules, explain_sharding, mesh, reference,
    shard, shard_rules,
};

/// The largest difference, relative to the largest element.
fn difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    assert_eq!(a.dims()?, b.dims()?);
    if a.dims()?.contains(&0) {
        return Ok(0.0);
    }
    let (a, b) = (a.to_vec()?, b.to_vec()?);
    let largest = a.iter().fold(1e-12f64, |most, x| most.max(x.abs()));
    let pairs = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
    Ok(pairs.fold(0.0, f64::max) / largest)
}

fn prepared(gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule> {
    let mut gm = fx_nn::lowering::opened(gm, |_| false)?;
    gm.infer_shapes(specs)?;
    Ok(gm)
}

/// Shards, runs, and compares with one device.
fn compared(
    gm: &GraphModule,
    mesh: &Mesh,
    rules: &ShardRules,
    inputs: &[Tensor],
    whole: &[Tensor],
) -> Result<(ShardReport, Partitioned)> {
    let mut gm = GraphModule::new(gm.attributes().clone(), gm.graph().clone(), "Shared")?;
    let report = shard(&mut gm, mesh, rules)?;
    let program = reference(&gm, mesh)?;
    let shared = program.run(inputs)?;
    assert_eq!(shared.len(), whole.len());
    for (at, (a, b)) in whole.iter().zip(&shared).enumerate() {
        let difference = difference(a, b)?;
        assert!(difference <= 1e-5, "{mesh}, output {at}: {difference}");
    }
    Ok((report, program))
}

fn meshes() -> Result<Vec<Mesh>> {
    [
        mesh!["data" = 2, "model" = 1],
        mesh!["data" = 1, "model" = 2],
        mesh!["data" = 4, "model" = 1],
        mesh!["data" = 1, "model" = 4],
        mesh!["data" = 2, "model" = 2],
        mesh!["data" = 2, "model" = 4],
        mesh!["data" = 8, "model" = 1],
        mesh!["data" = 1, "model" = 8],
    ]
    .into_iter()
    .collect()
}

/// The collectives by kind.
fn counted(program: &Partitioned) -> String {
    let counts = program.counts().into_iter();
    let counts: Vec<String> = counts
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    counts.join(", ")
}

fn count(program: &Partitioned, kind: CollectiveKind) -> usize {
    let counts = program.counts().into_iter();
    counts.filter(|(of, _)| *of == kind).map(|(_, n)| n).sum()
}

#[test]
fn llama() -> Result<()> {
    let config = decoder::Config::from_json(
        r#"{"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
            "max_position_embeddings": 32, "tie_word_embeddings": false}"#,
    )?;
    let model = decoder::CausalLM::new(&config)?;
    let tokens = Tensor::from_vec((0..48).map(|i| (i * 7 % 64) as i64).collect(), (8, 6))?;
    let caches = model.caches(8)?;
    let mut inputs = vec![tokens.clone()];
    for cache in &caches {
        inputs.extend([cache.k.clone(), cache.v.clone()]);
    }
    let mut specs = vec![spec![8, 6; I64]];
    specs.extend((0..4).map(|_| spec![8, 4, 0, 4; F32]));
    let traced = model.trace()?;
    let (scores, caches): (Tensor, Vec<decoder::Cache>) = traced.forward((&tokens, caches))?;
    let mut whole = vec![scores];
    for cache in caches {
        whole.extend([cache.k, cache.v]);
    }
    let gm = prepared(&traced, &specs)?;
    let rules = ShardRules::llama("model").and(ShardRules::data_parallel("data"));
    for mesh in meshes()? {
        let (report, program) = compared(&gm, &mesh, &rules, &inputs, &whole)?;
        if mesh.size("model") == Some(8) {
            // There are four heads of keys: what is done by head is done whole.
            assert!(count(&program, CollectiveKind::AllGather) > 0, "{report}");
        } else if mesh.size("model") > Some(1) {
            // The embedding, and attention and mlp of each layer.
            assert_eq!(count(&program, CollectiveKind::AllReduce), 5, "{program}");
            assert_eq!(count(&program, CollectiveKind::AllGather), 0, "{report}");
        } else {
            assert!(program.counts().is_empty(), "{report}\n{program}");
        }
    }
    let mut gm = gm;
    let mesh = mesh!["data" = 2, "model" = 4]?;
    shard(&mut gm, &mesh, &rules)?;
    assert_eq!(
        explain_sharding(&gm, &mesh)?.to_string(),
        "mesh[data=2, model=4] of 8 devices
memory                    one device   each device
parameters                  89.1 KiB      23.1 KiB
activations (peak)          54.0 KiB      10.5 KiB
collectives                    count         bytes
all_reduce [model]                 5      15.0 KiB"
    );
    Ok(())
}

#[test]
fn gpt_2() -> Result<()> {
    let config = gpt2::Config {
        vocab_size: 64,
        block_size: 8,
        n_layer: 2,
        n_head: 4,
        n_embd: 32,
        dropout: 0.0,
    };
    let mut model = gpt2::Gpt2::new(&config)?;
    model.eval();
    let words = Tensor::from_vec((0..64).map(|i| (i * 5 % 64) as i64).collect(), (8, 8))?;
    let traced = symbolic_trace(&model)?;
    let whole = [traced.forward::<Tensor>(&words)?];
    let gm = prepared(&traced, &[spec![8, 8; I64]])?;
    let rules = ShardRules::gpt2("model").and(ShardRules::data_parallel("data"));
    for mesh in meshes()? {
        let (report, program) = compared(&gm, &mesh, &rules, std::slice::from_ref(&words), &whole)?;
        // Queries, keys and values of each layer are gathered, for they are one weight.
        let expected = match mesh.size("model") {
            Some(1) => "",
            _ => "all_gather 2, all_reduce 5",
        };
        assert_eq!(counted(&program), expected, "{report}");
    }
    Ok(())
}

#[test]
fn models_of_hugging_face() -> Result<()> {
    let config = hf::gpt2::Config::from_json(
        r#"{"model_type": "gpt2", "vocab_size": 32, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 4}"#,
    )?;
    let model = hf::gpt2::GPT2LMHeadModel::new(&config)?;
    let words = Tensor::from_vec((0..24).map(|i| (i * 5 % 32) as i64).collect(), (4, 6))?;
    let caches = model.caches(4)?;
    let mut inputs = vec![words.clone()];
    for cache in &caches {
        inputs.extend([cache.k.clone(), cache.v.clone()]);
    }
    let traced = model.trace()?;
    let (scores, caches): (Tensor, Vec<decoder::Cache>) = traced.forward((&words, caches))?;
    let mut whole = vec![scores];
    for cache in caches {
        whole.extend([cache.k, cache.v]);
    }
    let mut specs = vec![spec![4, 6; I64]];
    specs.extend((0..4).map(|_| spec![4, 4, 0, 4; F32]));
    let gm = prepared(&traced, &specs)?;
    let mesh = mesh!["data" = 2, "model" = 4]?;
    let rules = ShardRules::gpt2("model").and(ShardRules::data_parallel("data"));
    let (report, program) = compared(&gm, &mesh, &rules, &inputs, &whole)?;
    assert_eq!(counted(&program), "all_gather 2, all_reduce 5", "{report}");

    let config = hf::vit::Config::from_json(
        r#"{"model_type": "vit", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 32, "image_size": 8, "patch_size": 4, "id2label": {"0": "cat", "1": "dog"}}"#,
    )?;
    let images = Tensor::randn((4, 3, 8, 8))?;
    let traced = symbolic_trace(&hf::vit::ViTForImageClassification::new(&config)?)?;
    let whole = [traced.forward::<Tensor>(&images)?];
    let gm = prepared(&traced, &[spec![4, 3, 8, 8; F32]])?;
    let rules = ShardRules::vit("model").and(ShardRules::data_parallel("data"));
    let (report, program) = compared(&gm, &mesh, &rules, &[images], &whole)?;
    assert_eq!(counted(&program), "all_reduce 4", "{report}");
    Ok(())
}

#[test]
fn the_core_set() -> Result<()> {
    let config = gpt2::Config {
        vocab_size: 64,
        block_size: 8,
        n_layer: 1,
        n_head: 4,
        n_embd: 32,
        dropout: 0.0,
    };
    let mut model = gpt2::Gpt2::new(&config)?;
    model.eval();
    let words = Tensor::from_vec((0..64).map(|i| (i * 5 % 64) as i64).collect(), (8, 8))?;
    let traced = symbolic_trace(&model)?;
    let whole = [traced.forward::<Tensor>(&words)?];
    let mut gm = prepared(&traced, &[spec![8, 8; I64]])?;
    gm.apply(&fx_nn::passes::Decompositions::core()?)?;
    gm.infer_shapes(&[spec![8, 8; I64]])?;
    let rules = ShardRules::gpt2("model").and(ShardRules::data_parallel("data"));
    let mesh = mesh!["data" = 2, "model" = 4]?;
    let (report, program) = compared(&gm, &mesh, &rules, &[words], &whole)?;
    assert_eq!(report.without_rule, [], "{report}");
    assert_eq!(counted(&program), "all_gather 1, all_reduce 3", "{report}");
    Ok(())
}

#[test]
fn vision_transformer() -> Result<()> {
    let config = vit::Config {
        image_size: 16,
        patch_size: 8,
        num_layers: 2,
        num_heads: 4,
        hidden_dim: 32,
        mlp_dim: 64,
        num_classes: 10,
    };
    let mut model = vit::VisionTransformer::new(&config)?;
    model.eval();
    let images = Tensor::randn((8, 3, 16, 16))?;
    let traced = symbolic_trace(&model)?;
    let whole = [traced.forward::<Tensor>(&images)?];
    let gm = prepared(&traced, &[spec![8, 3, 16, 16; F32]])?;
    let rules = ShardRules::vit("model").and(ShardRules::data_parallel("data"));
    for mesh in meshes()? {
        let (report, program) =
            compared(&gm, &mesh, &rules, std::slice::from_ref(&images), &whole)?;
        // Attention and mlp of each layer. The weight and the bias of queries, keys and values are gathered, and so
        // are the weights over the keys, of which each block returns an empty part.
        let is_shared = mesh.size("model") > Some(1);
        let sums = if is_shared { 4 } else { 0 };
        assert_eq!(count(&program, CollectiveKind::AllReduce), sums, "{report}");
        let most = if is_shared { 8 } else { 2 };
        assert!(
            count(&program, CollectiveKind::AllGather) <= most,
            "{report}"
        );
    }
    Ok(())
}

#[test]
fn resnet_18() -> Result<()> {
    let mut model = resnet::resnet18(10)?;
    model.eval();
    let images = Tensor::randn((8, 3, 32, 32))?;
    let traced = symbolic_trace(&model)?;
    let whole = [traced.forward::<Tensor>(&images)?];
    let gm = prepared(&traced, &[spec![8, 3, 32, 32; F32]])?;
    let rules = shard_rules! {
        "layer*.*.conv1.weight" => ["model", _, _, _],
        "layer*.*.conv2.weight" => [_, "model", _, _],
        "fc.weight" => [_, "model"],
    };
    let rules = rules.and(ShardRules::data_parallel("data"));
    for mesh in [
        mesh!["data" = 2, "model" = 1]?,
        mesh!["data" = 1, "model" = 4]?,
        mesh!["data" = 4, "model" = 2]?,
    ] {
        let (report, program) =
            compared(&gm, &mesh, &rules, std::slice::from_ref(&images), &whole)?;
        let expected = match mesh.size("model") {
            Some(1) => "",
            _ => "all_gather 1, all_reduce 7, reduce_scatter 2",
        };
        assert_eq!(counted(&program), expected, "{report}");
    }
    Ok(())
}

#[wrap]
fn fails(x: &Tensor) -> Result<Tensor> {
    if x.dims()? == [1] && x.to_vec()? == [3.0] {
        return Err(Error::msg("three is too many"));
    }
    Ok(x.clone())
}

#[wrap]
fn panics(x: &Tensor) -> Result<Tensor> {
    if x.dims()? == [1] && x.to_vec()? == [3.0] {
        panic!("three is too many");
    }
    Ok(x.clone())
}

fx_nn::function_table! { fx_nn::shapes::ShapeRule {
    function!(fails) => fx_nn::shapes::ShapeRule(|call| Ok(call.arg("x")?.clone())),
    function!(panics) => fx_nn::shapes::ShapeRule(|call| Ok(call.arg("x")?.clone())),
} }

fn own(call: &fx_stablehlo::shard::ShardCall<'_>) -> Result<Option<fx_stablehlo::shard::Factors>> {
    let x = call.tensor("x")?;
    let mut factors = fx_stablehlo::shard::Factors::new();
    let dims = [Some(factors.factor(x.shape[0]))];
    factors.operand(&x, dims);
    factors.result(dims);
    Ok(Some(factors))
}

fx_nn::function_table! { fx_stablehlo::shard::ShardRule {
    function!(fails) => fx_stablehlo::shard::ShardRule(own),
    function!(panics) => fx_stablehlo::shard::ShardRule(own),
} }

#[test]
fn a_device_that_fails_ends_the_run() -> Result<()> {
    for (gm, expected) in [
        (
            symbolic_trace(traced!(|x: Tensor| fails(&x)?.sum(0)))?,
            "on device 2: ",
        ),
        (
            symbolic_trace(traced!(|x: Tensor| panics(&x)?.sum(0)))?,
            "device 2 panicked",
        ),
    ] {
        let mut gm = gm.opened()?;
        gm.infer_shapes(&[spec![4; F32]])?;
        let mesh = mesh!["data" = 4]?;
        shard(&mut gm, &mesh, &ShardRules::data_parallel("data"))?;
        let program = reference(&gm, &mesh)?;
        let good = Tensor::from_vec(vec![1f32, 2.0, 4.0, 5.0], 4)?;
        assert_eq!(program.run(&[good])?[0].to_vec()?, [12.0]);
        let bad = Tensor::from_vec(vec![1f32, 2.0, 3.0, 5.0], 4)?;
        let error = program.run(&[bad]).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let wrong = Tensor::from_vec(vec![1f32], 1)?;
        assert!(program.run(&[wrong]).is_err());
        assert!(program.run(&[]).is_err());
    }
    Ok(())
}
