//! Shardings: how they spread, what is wrong with rules, what they cost, and that the split program gives the numbers of one
//! device.

#[path = "../../fx-onnx/examples/support/families.rs"]
mod families;
#[path = "../../fx-onnx/examples/support/models.rs"]
#[allow(dead_code, reason = "each program uses a part of it")]
mod models;

use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::trace::CallArgs;
use fx_stablehlo::mesh;
use fx_stablehlo::shard::{Mesh, ShardRules, Sharding, explain_sharding, reference, shard};

/// The sharding of the output of a function whose input `x` is split in a way.
fn spread(mut gm: GraphModule, specs: &[Spec], rules: &ShardRules) -> Result<String> {
    gm.infer_shapes(specs)?;
    shard(&mut gm, &mesh!["a" = 2, "b" = 4]?, rules)?;
    let output = gm
        .graph()
        .output_node()
        .and_then(|node| node.args().first().and_then(|arg| arg.as_node()));
    let output = output.ok_or_else(|| Error::msg("the graph gives one value"))?;
    let sharding = gm
        .graph()
        .node(output)?
        .meta::<Sharding>()
        .map(ToString::to_string);
    Ok(sharding.unwrap_or_default())
}

/// A case of the table: the function of `x`, its sizes, how it is split, and how the result is.
macro_rules! spreads {
    ($(|$x:ident| $body:expr, $sizes:expr, $split:literal => $expected:literal;)*) => {$({
        let gm = symbolic_trace(traced!(|$x: &Tensor| $body))?;
        let specs = [Spec::tensor($sizes.map(|size: usize| size), DType::F32)];
        let rules = ShardRules::new().input("x", $split)?;
        assert_eq!(spread(gm, &specs, &rules)?, $expected, "{}", stringify!($body));
    })*};
}

#[test]
fn shardings_spread_as_the_table_says() -> Result<()> {
    spreads! {
        |x| ops::relu(x), [8, 8], "a, b" => "[a, b]";
        |x| x + Tensor::ones(8)?, [8, 8], "a, b" => "[a, b]";
        |x| x.transpose(0, 1), [8, 8], "a, b" => "[b, a]";
        |x| x.permute([2, 0, 1]), [8, 4, 2], "a, b, _" => "[_, a, b]";
        |x| x.sum(1), [8, 8], "a, b" => "[a]";
        |x| ops::sum(x, 0, true), [8, 8], "a, b" => "[_, b]";
        |x| x.reshape((4, 2, 8)), [8, 8], "a, b" => "[a, _, b]";
        |x| x.reshape((64,)), [8, 8], "a, _" => "[a]";
        |x| x.flatten(1, -1), [8, 4, 4], "a, b, _" => "[a, b]";
        |x| x.unsqueeze(1), [8, 8], "a, b" => "[a, _, b]";
        |x| x.softmax(-1), [8, 8], "a, _" => "[a, _]";
        |x| x.matmul(&x.t()?), [8, 4], "a, b" => "[a, _]";
        |x| ops::cat(&[x.clone(), x.clone()], 1), [8, 4], "a, b" => "[a, _]";
        |x| x.narrow(1, 0, 2), [8, 4], "a, b" => "[a, _]";
        |x| x.select(0, 1), [8, 4], "a, b" => "[b]";
        |x| x.tril(0), [2, 8, 8], "a, b, _" => "[a, _, _]";
        |x| ops::max_pool2d(x, 2, 2, 0, 1, false), [2, 8, 4, 4], "a, b, _, _" => "[a, b, _, _]";
        |x| ops::layer_norm(x, [8], None, None, 1e-5), [4, 8], "a, _" => "[a, _]";
    }
    Ok(())
}

#[test]
fn a_sharding_spreads_backward_too() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(&ops::tanh(x)?)))?;
    gm.infer_shapes(&[spec![8, 8; F32]])?;
    let rules = ShardRules::new().output("0", "a, b")?;
    let report = shard(&mut gm, &mesh!["a" = 2, "b" = 4]?, &rules)?;
    assert_eq!((report.fixed, report.split), (1, 3));
    let x = gm
        .graph()
        .placeholders()
        .next()
        .and_then(|node| node.meta::<Sharding>().cloned());
    assert_eq!(x.map(|of| of.to_string()).as_deref(), Some("[a, b]"));
    // Entries are kept in files.
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let kept = loaded
        .graph()
        .nodes()
        .filter(|node| node.meta::<Sharding>().is_some())
        .count();
    assert_eq!(kept, 3);
    Ok(())
}

#[test]
fn all_that_is_wrong_with_rules_is_listed() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(6, 8)?);
    let mut gm = symbolic_trace(&model)?;
    let mesh = mesh!["a" = 2, "b" = 4]?;
    let unknown = shard(&mut gm, &mesh, &ShardRules::new());
    let unknown = unknown
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        unknown.contains("call `gm.infer_shapes` first"),
        "{unknown}"
    );
    gm.infer_shapes(&[spec![4, 6; F32]])?;
    let rules = ShardRules::new()
        .parameter("0.weight", "_, b")?
        .parameter("0.bias", "c")?
        .parameter("1.weight", "a")?
        .input("x", "a, a")?
        .output("*", "a, b, _")?;
    let before = gm.code();
    let error = shard(&mut gm, &mesh, &rules)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for part in [
        "5 problems with the rules of sharding",
        "4 parts of the axes b do not divide the size 6 of dim 1",
        "has no axis \"c\"",
        "the rule `1.weight` for parameters matches nothing",
        "the axis \"a\" splits two dims of one value",
        "it names 3 dims of a value of shape [4, 8]",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(gm.code(), before);
    let mesh = Mesh::new([("a", 2), ("a", 0), ("b\">", 1)]);
    let error = mesh
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        error.contains("twice") && error.contains("no devices") && error.contains("no identifier"),
        "{error}"
    );
    Ok(())
}

/// The rules of a model's layers.
fn rules(name: &str) -> Result<ShardRules> {
    Ok(match name {
        "hf_llama" => ShardRules::llama("model"),
        "gpt2" => ShardRules::gpt2("model"),
        "hf_vit" => ShardRules::vit("model"),
        _ => ShardRules::new()
            .parameter("**.conv1.weight", "model, _, _, _")?
            .parameter("**.conv2.weight", "_, model, _, _")?,
    })
}

/// The split program of each model, at 2, 4 and 8 devices, gives what one device gives.
#[test]
fn parts_make_the_numbers_of_one_device() -> Result<()> {
    let names = ["resnet18", "gpt2", "hf_llama", "hf_vit"];
    let mut count = 0;
    for case in models::all()?
        .into_iter()
        .filter(|case| names.contains(&case.name))
    {
        let inputs = (case.inputs)(8)?;
        let call = CallArgs {
            args: inputs.iter().cloned().map(Value::object).collect(),
            kwargs: Vec::new(),
        };
        let expected: Value = case.gm.forward(call)?;
        let mut expected_tensors = Vec::new();
        tensors(&expected, &mut expected_tensors);
        let (data, tensor) = (ShardRules::data_parallel("data"), rules(case.name)?);
        for (mesh, rules) in [
            (mesh!["data" = 2]?, data.clone()),
            (mesh!["model" = 4]?, tensor.clone()),
            (
                mesh!["data" = 2, "model" = 4]?,
                tensor.clone().and(data.clone()),
            ),
        ] {
            let mut gm = case.gm.clone();
            let specs = inputs.iter().map(|x| Spec::of(Value::object(x.clone())));
            gm.infer_shapes(&specs.collect::<Vec<_>>())?;
            shard(&mut gm, &mesh, &rules)?;
            let costs = explain_sharding(&gm)?;
            assert!(costs.parameter_bytes_per_device <= costs.parameter_bytes);
            let program = reference(&gm)?;
            let found = program.run(&inputs)?;
            assert_eq!(found.len(), expected_tensors.len(), "{}", case.name);
            for (found, expected) in found.iter().zip(&expected_tensors) {
                let most = expected.abs()?.amax(..)?.item()?.max(1e-6);
                let apart = (found - expected)?.abs()?.amax(..)?.item()?;
                assert!(
                    apart <= 1e-5 * most,
                    "{} over {mesh}: {apart} of {most}",
                    case.name
                );
            }
            count += 1;
        }
    }
    assert_eq!(count, 12);
    Ok(())
}

fn tensors(value: &Value, all: &mut Vec<Tensor>) {
    match value {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().for_each(|item| tensors(item, all))
        }
        Value::Dict(items) => items.values().for_each(|item| tensors(item, all)),
        value => all.extend(value.downcast_ref::<Tensor>().cloned()),
    }
}

/// A device that fails ends the run of all.
#[test]
fn a_run_ends_if_a_device_fails() -> Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Linear::new(8, 16)?)
        .push(nn::Linear::new(16, 4)?);
    let mut gm = symbolic_trace(&model)?;
    gm.infer_shapes(&[spec![4, 8; F32]])?;
    let rules = ShardRules::new()
        .parameter("0.weight", "model, _")?
        .parameter("1.weight", "_, model")?;
    shard(&mut gm, &mesh!["model" = 4]?, &rules)?;
    let program = reference(&gm)?;
    assert_eq!(program.collectives(), [("all_reduce", 1)]);
    let error = program
        .run(&[Tensor::ones((4, 7))?])
        .err()
        .map(|error| error.to_string());
    assert!(error.is_some_and(|error| !error.contains("another device")));
    assert_eq!(program.run(&[Tensor::ones((4, 8))?])?[0].dims()?, [4, 4]);
    Ok(())
}
