//! Sharding: propagation as a table of cases, input that is refused, and what a sharding costs.

use fx_nn::GraphModule;
use fx_nn::ir::Op;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::shapes::spec;
use fx_stablehlo::shard::{
    DimSharding, Mesh, ShardReport, ShardRules, Sharding, explain_sharding, mesh, reference, shard,
    shard_rules,
};

fn grid() -> Result<Mesh> {
    mesh!["data" = 2, "model" = 4]
}

fn traced_with(traced: Result<GraphModule>, specs: &[Spec]) -> Result<GraphModule> {
    let mut gm = traced?.opened()?;
    gm.infer_shapes(specs)?;
    Ok(gm)
}

/// The sharding of each node: inputs, and calls that give tensors.
fn shown(gm: &GraphModule) -> String {
    let nodes = gm.graph().nodes().filter(|node| *node.op() != Op::Output);
    let all = nodes.filter_map(|node| {
        let sharding = node.meta::<Sharding>()?;
        Some(format!("{} {sharding}", node.name()))
    });
    all.collect::<Vec<_>>().join(", ")
}

fn case(
    gm: Result<GraphModule>,
    specs: &[Spec],
    rules: ShardRules,
) -> Result<(String, ShardReport)> {
    let mut gm = traced_with(gm, specs)?;
    let report = shard(&mut gm, &grid()?, &rules)?;
    // What is found also runs.
    let inputs = gm.graph().placeholders().map(|node| {
        let meta = node
            .meta::<fx_nn::ir::ValueMeta>()
            .and_then(|meta| meta.tensor());
        let shape = meta.and_then(|meta| meta.known_shape()).unwrap_or_default();
        Tensor::randn(fx_nn::Shape(shape))
    });
    let inputs: Vec<Tensor> = inputs.collect::<Result<_>>()?;
    let shared = reference(&gm, &grid()?)?.run(&inputs)?;
    let values = inputs.iter().map(fx_nn::value::IntoValue::into_value);
    let whole: Value = gm
        .interpretation()
        .run(&mut fx_nn::run::PlainInterpreter, values.collect())?;
    let mut flat = Vec::new();
    whole.for_each(&mut |value| flat.extend(value.downcast_ref::<Tensor>().cloned()));
    assert_eq!(flat.len(), shared.len());
    for (a, b) in flat.iter().zip(&shared) {
        assert!(fx_nn::allclose(a, b, 1e-4, 1e-5)?.close, "{}", shown(&gm));
    }
    Ok((shown(&gm), report))
}

macro_rules! cases {
    ($($name:ident: |$($x:ident),*| $body:expr, [$($spec:expr),*], $rules:tt => $expected:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let gm = symbolic_trace(traced!(|$($x: Tensor),*| $body));
            let (found, report) = case(gm, &[$($spec),*], shard_rules! $rules)?;
            assert_eq!(found, $expected, "{report}");
            Ok(())
        }
    )*};
}

cases! {
    elementwise_takes_both: |x, y| x + y, [spec![4, 8; F32], spec![4, 8; F32]],
        {"x" => ["data", ?], "y" => [?, "model"]}
        => "x [data, model], y [data, model], add [data, model]";
    what_is_fixed_is_kept: |x, y| x + y, [spec![4, 8; F32], spec![4, 8; F32]],
        {"x" => ["data", _], "y" => [_, "model"]}
        => "x [data, _], y [_, model], add [data, model]";
    broadcast_dims_are_not_shared: |x, y| x * y, [spec![4, 8; F32], spec![1, 8; F32]],
        {"x" => ["data", "model"]} => "x [data, model], y [_, model], mul [data, model]";
    from_results_to_inputs: |x| x.relu()?.exp(), [spec![4, 8; F32]],
        {"output" => ["data", "model"]} => "x [data, model], relu [data, model], exp [data, model]";
    products: |x, y| ops::matmul(&x, &y), [spec![4, 8; F32], spec![8, 12; F32]],
        {"x" => ["data", _], "y" => [_, "model"]} => "x [data, _], y [_, model], matmul [data, model]";
    contracted_dims: |x, y| ops::matmul(&x, &y), [spec![4, 8; F32], spec![8, 12; F32]],
        {"x" => [?, "model"]} => "x [_, model], y [model, _], matmul [_, _]";
    batches_of_products: |x, y| ops::matmul(&x, &y), [spec![2, 4, 4, 8; F32], spec![4, 8, 4; F32]],
        {"x" => ["data", "model", ?, ?]}
        => "x [data, model, _, _], y [model, _, _], matmul [data, model, _, _]";
    heads: |x| x.view((4, 3, 4, 2))?.transpose(1, 2), [spec![4, 3, 8; F32]],
        {"x" => ["data", _, "model"]}
        => "x [data, _, model], view [data, _, model, _], transpose [data, model, _, _]";
    too_few_heads: |x| x.view((4, 3, 2, 4)), [spec![4, 3, 8; F32]],
        {"x" => ["data", _, "model"]} => "x [data, _, model], view [data, _, _, _]";
    merged: |x| x.flatten(1, 2), [spec![4, 8, 3; F32]],
        {"x" => ["data", "model", _]} => "x [data, model, _], flatten [data, model]";
    two_axes: |x| x.flatten(0, 1), [spec![8, 3; F32]],
        {"x" => [["data", "model"], _]} => "x [(data, model), _], flatten [(data, model)]";
    order: |x| x.permute((2, 0, 1)), [spec![2, 3, 4; F32]],
        {"x" => ["data", _, "model"]} => "x [data, _, model], permute [model, data, _]";
    sums: |x| x.sum(1), [spec![4, 8; F32]], {"x" => ["data", "model"]} => "x [data, model], sum [data]";
    largest: |x| ops::amax(&x, 1, true), [spec![4, 8; F32]],
        {"x" => ["data", "model"]} => "x [data, model], amax [data, _]";
    means: |x| x.mean(1), [spec![4, 8; F32]], {"x" => ["data", "model"]} => "x [data, model], mean [data]";
    softmax: |x| ops::softmax(&x, -1), [spec![4, 8; F32]],
        {"x" => ["data", "model"]} => "x [data, model], softmax [data, _]";
    joined: |x, y| ops::cat(&[x, y], 1), [spec![4, 8; F32], spec![4, 4; F32]],
        {"x" => ["data", "model"]} => "x [data, model], y [data, _], cat [data, _]";
    parts: |x| { let [a, b] = x.chunk(2, 1)?.unpack()?; a * b }, [spec![4, 8; F32]],
        {"x" => ["data", _]} => "x [data, _], chunk [data, _], getitem [data, _], getitem_1 [data, _], mul [data, _]";
    picked: |x| x.i((.., 0)), [spec![4, 3, 8; F32]],
        {"x" => ["data", _, "model"]} => "x [data, _, model], getitem [data, model]";
    sizes_of_one: |x| x.unsqueeze(1)?.expand((4, 2, 8)), [spec![4, 8; F32]],
        {"x" => ["data", "model"]} => "x [data, model], unsqueeze [data, _, model], expand [data, _, model]";
    images: |x, w| ops::conv2d(&x, &w, None, 1, 1, 1, 1), [spec![4, 8, 5, 5; F32], spec![4, 8, 3, 3; F32]],
        {"x" => ["data", ?, _, _], "w" => ["model", ?, _, _]}
        => "x [data, _, _, _], w [model, _, _, _], conv2d [data, model, _, _]";
    channels_into_images: |x, w| ops::conv2d(&x, &w, None, 1, 1, 1, 1),
        [spec![4, 8, 5, 5; F32], spec![4, 8, 3, 3; F32]],
        {"x" => ["data", "model", _, _]}
        => "x [data, model, _, _], w [_, model, _, _], conv2d [data, _, _, _]";
    letters: |x, y| ops::einsum("bhqd,bhkd->bhqk", &[x, y]), [spec![2, 4, 3, 8; F32], spec![2, 4, 5, 8; F32]],
        {"x" => ["data", "model", _, _]}
        => "x [data, model, _, _], y [data, model, _, _], einsum [data, model, _, _]";
    letters_that_are_summed: |x, y| ops::einsum("ij,jk->ki", &[x, y]), [spec![4, 8; F32], spec![8, 5; F32]],
        {"y" => ["model", _], "x" => ["data", ?]}
        => "x [data, model], y [model, _], einsum [_, data]";
    images_out: |x, w| ops::conv_transpose2d(&x, &w, None, 2, 0, 0, 1, 1),
        [spec![4, 8, 3, 3; F32], spec![8, 4, 2, 2; F32]],
        {"x" => ["data", "model", _, _]}
        => "x [data, model, _, _], w [model, _, _, _], conv_transpose2d [data, _, _, _]";
    scattered_sum: |x, y| ops::matmul(&x, &y), [spec![4, 8; F32], spec![8, 4; F32]],
        {"x" => [_, "model"], "output" => [_, "model"]} => "x [_, model], y [model, _], matmul [_, model]";
}

#[test]
fn an_axis_is_used_once_in_a_value() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor, y: Tensor| ops::matmul(&x, &y)));
    let specs = [spec![8, 8; F32], spec![8, 4; F32]];
    let rules = shard_rules! { "x" => ["model", _], "y" => [_, "model"] };
    let (found, report) = case(gm, &specs, rules)?;
    assert_eq!(found, "x [model, _], y [_, model], matmul [model, _]");
    assert_eq!(report.reshards.len(), 1);
    let reshard = &report.reshards[0];
    assert_eq!(
        (&*reshard.value, &*reshard.user, reshard.against.as_deref()),
        ("y", "matmul", Some("x"))
    );
    assert!(
        reshard
            .user_at
            .as_deref()
            .is_some_and(|at| at.contains("tests/shard.rs"))
    );
    Ok(())
}

#[test]
fn weights_along_the_axis_of_the_batch_are_gathered() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(8, 64)?);
    let rules = shard_rules! { "0.weight" => ["data", _], "0.bias" => ["data"] };
    let rules = rules.and(ShardRules::data_parallel("data"));
    let (found, report) = case(symbolic_trace(&model), &[spec![4, 8; F32]], rules)?;
    assert!(found.ends_with("linear [data, _]"), "{found}");
    let moved: Vec<&str> = report.reshards.iter().map(|one| &*one.to).collect();
    assert_eq!(moved, ["[_, _]", "[_]"], "{report}");
    Ok(())
}

#[test]
fn long_graphs_take_no_stack() -> Result<()> {
    let chain = |x: Tensor| -> Result<Tensor> {
        let mut x = x;
        for _ in 0..5000 {
            x = x.relu()?;
        }
        Ok(x)
    };
    let mut gm = traced_with(
        symbolic_trace(traced!(|x: Tensor| chain(x))),
        &[spec![4, 8; F32]],
    )?;
    let report = shard(
        &mut gm,
        &grid()?,
        &shard_rules! { "output" => ["data", "model"] },
    )?;
    assert_eq!((report.sharded, report.reshards.len()), (5001, 0));
    Ok(())
}

#[test]
fn what_draws_numbers_is_refused() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor| ops::dropout(&x, 0.5, true)));
    let mut gm = traced_with(gm, &[spec![4, 8; F32]])?;
    shard(&mut gm, &grid()?, &ShardRules::data_parallel("data"))?;
    let error = reference(&gm, &grid()?)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("%dropout") && error.contains("`eval()`"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_value_that_is_wanted_in_two_ways_is_moved() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor, y: Tensor| x + y));
    let specs = [spec![8, 8; F32], spec![8, 8; F32]];
    let rules = shard_rules! { "x" => ["model", _], "y" => ["data", _] };
    let (found, report) = case(gm, &specs, rules)?;
    assert_eq!(found, "x [model, _], y [data, _], add [model, _]");
    let text = report.to_string();
    assert!(
        text.starts_with("3 of 3 values are shared, 2 by rules\nreshard: %y"),
        "{text}"
    );
    assert!(text.contains("is [data, _], and %add"), "{text}");
    assert!(text.ends_with("takes [model, _], as %x has it"), "{text}");
    Ok(())
}

#[wrap]
fn strange(x: &Tensor) -> Result<Tensor> {
    x.cumsum(0)
}

fx_nn::function_table! { fx_nn::shapes::ShapeRule {
    function!(strange) => fx_nn::shapes::ShapeRule(|call| Ok(call.arg("x")?.clone())),
} }

#[test]
fn a_function_without_a_rule_ends_propagation() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor| strange(&x.relu()?)?.relu()));
    let (found, report) = case(gm, &[spec![4, 8; F32]], shard_rules! { "x" => ["data", _] })?;
    assert_eq!(
        found,
        "x [data, _], relu [data, _], strange [_, _], relu_1 [_, _]"
    );
    assert_eq!(report.without_rule[0].0, "strange");
    assert!(
        report.to_string().contains("no rule: %strange = "),
        "{report}"
    );
    Ok(())
}

#[test]
fn everything_that_is_wrong_with_rules_is_listed() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(6, 10)?);
    let mut gm = traced_with(symbolic_trace(&model), &[spec![4, 6; F32]])?;
    let rules = shard_rules! {
        "0.weight" => ["model", _],
        "{0.weight" => [_, _],
        "1.weight" => [_, _],
        "0.bias" => [_, _],
        "**.weight" => [_, "model"],
        "output" => ["rows", ["data", "data"]],
    };
    let before = gm.graph().to_string();
    let error = shard(&mut gm, &grid()?, &rules)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    for part in [
        "4 devices along `model` do not divide dim 0, which is 10",
        "`{0.weight` is not a pattern of paths",
        "`1.weight` matches no parameter, input or output",
        "2 dims are shared, and the value has 1",
        "`0.weight` and `**.weight` contradict each other about `0.weight`: [model, _] and [_, model]",
        "mesh[data=2, model=4] has no axis `rows`",
        "the axis `data` is used twice",
    ] {
        assert!(error.contains(part), "{part}:\n{error}");
    }
    assert_eq!(gm.graph().to_string(), before);
    let none = shard(&mut gm, &grid()?, &ShardRules::new())
        .map(|_| ())
        .unwrap_err();
    assert!(none.to_string().contains("no rule matches"), "{none}");
    Ok(())
}

#[test]
fn what_is_not_ready_is_refused() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(6, 10)?);
    let mut gm = symbolic_trace(&model)?;
    let rules = ShardRules::data_parallel("data");
    let refused = |gm: &mut GraphModule| -> Result<String> {
        Ok(shard(gm, &grid()?, &rules)
            .map(|_| ())
            .unwrap_err()
            .to_string())
    };
    let error = refused(&mut gm)?;
    assert!(error.contains("Call `gm.opened()` first"), "{error}");
    let mut gm = gm.opened()?;
    let error = refused(&mut gm)?;
    assert!(error.contains("call `infer_shapes` first"), "{error}");
    gm.infer_shapes(&[spec!["n", 6; F32]])?;
    let error = refused(&mut gm)?;
    assert!(error.contains("no rule matches"), "{error}");
    let error = reference(&gm, &grid()?)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("call `shard`"), "{error}");
    gm.infer_shapes(&[spec![4, 6; F32]])?;
    shard(&mut gm, &grid()?, &rules)?;
    let other = mesh!["rows" = 2]?;
    let error = reference(&gm, &other).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("mesh[rows=2] has no axis `data`"), "{error}");
    Ok(())
}

#[test]
fn entries_that_do_not_fit_are_refused() -> Result<()> {
    let mut gm = traced_with(
        symbolic_trace(traced!(|x: Tensor| x.relu())),
        &[spec![4, 6; F32]],
    )?;
    let x = gm.graph().nodes().next().map(|node| node.id());
    let x = x.ok_or_else(|| Error::msg("there is an input"))?;
    for (dims, expected) in [
        (
            vec![DimSharding::from("data")],
            "1 dims are shared, and the value has 2",
        ),
        (
            vec!["data".into(), "data".into()],
            "the axis `data` is used twice",
        ),
        (
            vec!["data".into(), "model".into()],
            "do not divide dim 1, which is 6",
        ),
    ] {
        gm.graph_mut().node_mut(x)?.set_meta(Sharding::new(dims));
        let error = reference(&gm, &grid()?)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected) && error.contains("%x"), "{error}");
    }
    let lists = traced_with(
        symbolic_trace(traced!(|x: Tensor| x.split(2, 0))),
        &[spec![4, 6; F32]],
    );
    let mut lists = lists?;
    shard(&mut lists, &grid()?, &shard_rules! { "x" => [_, _] })?;
    let error = reference(&lists, &grid()?)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("%split is no tensor"), "{error}");
    Ok(())
}

#[test]
fn meshes_have_plain_names() {
    for (axes, expected) in [
        (vec![("a\"=1]>", 2)], "is no name of an axis"),
        (vec![("", 2)], "is no name of an axis"),
        (vec![("a", 2), ("a", 2)], "the axis `a` is there twice"),
        (vec![("a", 0)], "has no devices"),
        (vec![], "a mesh needs an axis"),
        (vec![("a", usize::MAX), ("b", 2)], "too many"),
    ] {
        let error = Mesh::new(axes).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn shardings_are_saved() -> Result<()> {
    let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?);
    let mut gm = traced_with(symbolic_trace(&model), &[spec![4, 8; F32]])?;
    let rules = shard_rules! { "0.weight" => ["model", _] };
    shard(
        &mut gm,
        &grid()?,
        &rules.and(ShardRules::data_parallel("data")),
    )?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(shown(&loaded), shown(&gm));
    assert_eq!(loaded.meta::<Mesh>(), Some(&grid()?));
    let weight = loaded
        .graph()
        .find_name("_0_weight")
        .and_then(|node| node.meta::<Sharding>());
    if let Some(weight) = weight {
        assert_eq!(weight.to_mlir(), r#"#sdy.sharding<@mesh, [{"model"}, {}]>"#);
        assert_eq!(weight.dims()[1], DimSharding::replicated());
    }
    Ok(())
}

#[test]
fn explanations() -> Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Linear::new(64, 256)?)
        .push(nn::ReLU::new())
        .push(nn::Linear::new(256, 64)?);
    let mut gm = traced_with(symbolic_trace(&model), &[spec![16, 64; F32]])?;
    let rules = shard_rules! { "0.weight" => ["model", _], "2.weight" => [_, "model"] };
    shard(
        &mut gm,
        &grid()?,
        &rules.and(ShardRules::data_parallel("data")),
    )?;
    let explanation = explain_sharding(&gm, &grid()?)?;
    assert_eq!(
        explanation.to_string(),
        "mesh[data=2, model=4] of 8 devices
memory                    one device   each device
parameters                 129.2 KiB      32.5 KiB
activations (peak)          32.0 KiB       4.0 KiB
collectives                    count         bytes
all_reduce [model]                 1       2.0 KiB"
    );
    Ok(())
}
