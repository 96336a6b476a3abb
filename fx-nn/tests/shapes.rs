//! Shapes without data: what is inferred with names for sizes is what runs give.

use fx_nn::ir::ValueMeta;
use fx_nn::models::{
    alexnet, dict_out, gpt2, lstm_classifier, mlp, mobilenet, nested, resnet, shared_sub,
    transformer, unet, vgg, vit,
};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::shapes::{ShapeEnv, Spec, spec};
use fx_nn::trace::{CallArgs, NoLeaves};
use fx_nn::value::IntoValue;

/// Sizes by name.
type Sizes<'a> = &'a [(&'a str, i64)];

fn meta_at(meta: &ValueMeta, sizes: Sizes<'_>) -> Result<String> {
    let of = |name: &str| {
        sizes
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, n)| *n)
    };
    Ok(match meta {
        ValueMeta::Single(tensor) => {
            let shape = tensor.shape.iter().map(|dim| dim.eval(of));
            format!("{:?}{:?}", tensor.dtype, shape.collect::<Result<Vec<_>>>()?)
        }
        ValueMeta::List(items) | ValueMeta::Tuple(items) => {
            let items = items.iter().map(|item| meta_at(item, sizes));
            items.collect::<Result<Vec<_>>>()?.join(";")
        }
        ValueMeta::Dict(items) => {
            let items = items
                .iter()
                .map(|(key, item)| Ok(format!("{key}: {}", meta_at(item, sizes)?)));
            items.collect::<Result<Vec<_>>>()?.join(";")
        }
        ValueMeta::Int(dim) => dim.eval(of)?.to_string(),
        other => other.to_string(),
    })
}

/// Infers with names for sizes, and compares every node with runs; returns what was assumed.
fn agrees(
    gm: &mut GraphModule,
    specs: &[Spec],
    runs: &[(Vec<Tensor>, Sizes<'_>)],
) -> Result<ShapeEnv> {
    let env = gm.infer_shapes(specs)?;
    let inferred: Vec<(String, ValueMeta)> = gm
        .graph()
        .nodes()
        .filter_map(|node| Some((node.name().to_string(), node.meta::<ValueMeta>()?.clone())))
        .collect();
    for (inputs, sizes) in runs {
        let mut sample = gm.clone();
        let args = inputs.iter().map(|input| Value::of(input.clone()));
        sample.propagate_shapes(CallArgs {
            args: args.collect(),
            kwargs: Vec::new(),
        })?;
        for (name, meta) in &inferred {
            let node = sample.graph().find_name(name);
            let real = node.and_then(|node| node.meta::<ValueMeta>());
            let real = real.map(|real| meta_at(real, &[])).transpose()?;
            assert_eq!(
                Some(meta_at(meta, sizes)?),
                real,
                "%{name}: {meta} at {sizes:?}"
            );
        }
    }
    Ok(env)
}

fn guards(env: &ShapeEnv) -> Vec<String> {
    env.guards()
        .iter()
        .map(|guard| guard.claim.to_string())
        .collect()
}

#[test]
fn a_resnet_has_the_shapes_that_it_runs_with() -> Result<()> {
    let mut model = resnet::resnet18(10)?;
    model.eval();
    let image = spec!["batch", 3, "h", "w"; F32];
    let runs = [
        (
            vec![Tensor::rand((2, 3, 64, 96))?],
            &[("batch", 2), ("h", 64), ("w", 96)][..],
        ),
        (
            vec![Tensor::rand((1, 3, 45, 33))?],
            &[("batch", 1), ("h", 45), ("w", 33)],
        ),
    ];
    // With its layers as calls, and opened.
    let mut gm = symbolic_trace(&model)?;
    let env = agrees(&mut gm, std::slice::from_ref(&image), &runs)?;
    assert_eq!(guards(&env), [] as [&str; 0]);
    let conv = gm
        .graph()
        .find_name("conv1")
        .and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(
        conv.map(ValueMeta::to_string).as_deref(),
        Some("float32[batch, 64, (h + 1) // 2, (w + 1) // 2]")
    );
    let mut opened = Trace::new(&model).tracer(NoLeaves).graph_module()?;
    agrees(&mut opened, &[image], &runs)?;
    Ok(())
}

#[test]
fn a_language_model_says_which_length_it_takes() -> Result<()> {
    let mut model = gpt2::Gpt2::new(&gpt2::Config {
        vocab_size: 50,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 16,
        dropout: 0.0,
    })?;
    model.eval();
    let ids = |t: usize| Tensor::zeros((3, t))?.to_dtype(DType::I64);
    let runs = [
        (vec![ids(8)?], &[("batch", 3), ("t", 8)][..]),
        (vec![ids(5)?], &[("batch", 3), ("t", 5)][..]),
    ];
    let mut gm = symbolic_trace(&model)?;
    let env = agrees(&mut gm, &[spec!["batch", "t"; I64]], &runs)?;
    assert_eq!(guards(&env).len(), 1);
    let guard = env.guards()[0].to_string();
    let is_bound = guard.contains("8   (") && guard.contains("gpt2.rs");
    assert!(is_bound, "{guard}");
    Ok(())
}

/// Every model of the crate that one tensor goes into.
#[test]
fn other_models_too() -> Result<()> {
    fn checked<M: Module>(
        name: &str,
        model: Result<M>,
        spec: Spec,
        sample: Result<Tensor>,
        sizes: Sizes<'_>,
        assumed: &[&str],
    ) -> Result<()> {
        let mut model = model?;
        model.eval();
        let mut gm = symbolic_trace(&model)?;
        let env = agrees(&mut gm, &[spec], &[(vec![sample?], sizes)])?;
        assert_eq!(guards(&env), assumed, "{name}");
        Ok(())
    }
    let image = || spec!["batch", 3, "h", "w"; F32];
    let small = [("batch", 2), ("h", 64), ("w", 48)];
    let floats = |shape: &[usize]| Tensor::rand(shape.to_vec());
    checked(
        "alexnet",
        alexnet::alexnet(10),
        image(),
        floats(&[2, 3, 80, 70]),
        &[("batch", 2), ("h", 80), ("w", 70)],
        &["h >= 63", "w >= 63"],
    )?;
    checked(
        "vgg11_bn",
        vgg::vgg11_bn(10),
        image(),
        floats(&[2, 3, 64, 48]),
        &small,
        &["h >= 32", "w >= 32"],
    )?;
    checked(
        "mobilenet_v2",
        mobilenet::mobilenet_v2(10),
        image(),
        floats(&[2, 3, 64, 48]),
        &small,
        &[],
    )?;
    checked(
        "unet",
        unet::UNet::new(3, 2, 8),
        image(),
        floats(&[2, 3, 64, 48]),
        &small,
        &["h >= 4", "w >= 4", "h % 4 == 0", "w % 4 == 0"],
    )?;
    let vit = vit::VisionTransformer::new(&vit::Config {
        image_size: 32,
        patch_size: 16,
        num_layers: 2,
        num_heads: 2,
        hidden_dim: 16,
        mlp_dim: 24,
        num_classes: 5,
    });
    checked(
        "vit",
        vit,
        spec!["batch", 3, 32, 32; F32],
        floats(&[2, 3, 32, 32]),
        &[("batch", 2)],
        &[],
    )?;
    let rows = || spec!["batch", 8; F32];
    let batch = [("batch", 5)];
    checked(
        "mlp",
        mlp::Mlp::new(8, 16, 4),
        rows(),
        floats(&[5, 8]),
        &batch,
        &[],
    )?;
    checked(
        "nested",
        nested::Nested::new(8),
        rows(),
        floats(&[5, 8]),
        &batch,
        &[],
    )?;
    checked(
        "shared_sub",
        shared_sub::SharedSub::new(8),
        rows(),
        floats(&[5, 8]),
        &batch,
        &[],
    )?;
    checked(
        "dict_out",
        dict_out::DictOut::new(8),
        rows(),
        floats(&[5, 8]),
        &batch,
        &[],
    )?;
    let layer = transformer::TransformerEncoderLayer::new(32, 4, 64);
    let sizes = [("batch", 3), ("t", 7)];
    checked(
        "transformer",
        layer,
        spec!["batch", "t", 32; F32],
        floats(&[3, 7, 32]),
        &sizes,
        &[],
    )?;
    let lstm = lstm_classifier::LstmClassifier::new(31, 8, 6, 3);
    let tokens = Tensor::zeros((3, 7))?.to_dtype(DType::I64);
    checked(
        "lstm_classifier",
        lstm,
        spec!["batch", "t"; I64],
        tokens,
        &sizes,
        &[],
    )?;
    Ok(())
}

#[test]
fn a_mistake_is_found_before_a_run() -> Result<()> {
    let product = traced!(|x: &Tensor, y: &Tensor| x.matmul(y)?.relu());
    let mut gm = symbolic_trace(product)?;
    let error = gm.infer_shapes(&[spec!["n", 3; F32], spec![4, 5; F32]]);
    let error = error.expect_err("3 and 4 differ");
    assert_eq!(error.node(), Some("matmul"));
    let text = error.to_string();
    assert!(
        text.contains("[n, 3] and [4, 5] do not fit: 3 and 4 differ"),
        "{text}"
    );
    assert!(text.contains("tests/shapes.rs"), "{text}");
    assert!(
        gm.graph()
            .nodes()
            .all(|node| node.meta::<ValueMeta>().is_none())
    );

    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.view((x.size(0)?, -1, 8))))?;
    let env = gm.infer_shapes(&[spec!["n", "m"; F32]])?;
    assert_eq!(guards(&env), ["m % 8 == 0"]);
    let output = gm
        .graph()
        .output_node()
        .and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(
        output.map(ValueMeta::to_string).as_deref(),
        Some("float32[n, m // 8, 8]")
    );

    // Of a known size the same is an error, with both numbers.
    let error = gm
        .infer_shapes(&[spec!["n", 12; F32]])
        .expect_err("12 is no multiple");
    assert!(error.to_string().contains("cannot become"), "{error}");
    Ok(())
}

#[test]
fn specs_that_do_not_fit() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    for (specs, problem) in [
        (vec![spec!["batch", "2*"; F32]], "a number or a name"),
        (vec![], "argument"),
        (vec![spec![2; F32], spec![2; F32]], "argument"),
        (vec![spec![2; F32].dynamic(3, "n")], "has no dim 3"),
        (vec![Spec::int(3).dynamic(0, "n")], "has no dims"),
    ] {
        let error = gm.infer_shapes(&specs).expect_err(problem).to_string();
        assert!(error.contains(problem), "{error}");
    }
    // A body of functions with rules is a rule; of one that reads elements, the error names the way out.
    #[wrap]
    fn by_its_body(x: &Tensor) -> Result<Tensor> {
        x.relu()
    }
    let mut gm = symbolic_trace(traced!(|x: &Tensor| by_its_body(x)))?;
    gm.infer_shapes(&[spec![2, "n"; F32]])?;
    let output = gm.graph().output_node();
    let known = output.and_then(|node| node.meta::<ValueMeta>().map(ValueMeta::to_string));
    assert_eq!(known.as_deref(), Some("float32[2, n]"));
    #[wrap]
    fn without_rule(x: &Tensor) -> Result<Tensor> {
        x * x.sum(..)?.item()?
    }
    let mut gm = symbolic_trace(traced!(|x: &Tensor| without_rule(x)))?;
    let error = gm
        .infer_shapes(&[spec![2; F32]])
        .expect_err("no rule")
        .to_string();
    assert!(
        error.contains("has no shape rule") && error.contains("propagate_shapes"),
        "{error}"
    );
    Ok(())
}

fn output(gm: &GraphModule) -> Option<String> {
    let output = gm.graph().output_node()?;
    output.meta::<ValueMeta>().map(ValueMeta::to_string)
}

#[trace(control_flow)]
fn shortened(x: &Tensor) -> Result<Tensor> {
    let mut h = x.clone();
    if x.sum(..)? > 0.0 {
        h = x.narrow(0, 0, 2)?;
    }
    h * 2.0
}

#[trace(control_flow)]
fn halved(x: &Tensor) -> Result<Tensor> {
    let mut h = x.clone();
    while h.amax(..)? > 1.0 {
        h = (&h / 2.0)?;
    }
    Ok(h)
}

#[trace(control_flow)]
fn grown(x: &Tensor) -> Result<(Tensor, Int)> {
    let mut h = x.clone();
    let mut turns = Int::from(0);
    while h.sum(..)? < 100.0 {
        h = ops::cat(&[&h, x], 0)?;
        turns = (turns + 1)?;
    }
    Ok((h, turns))
}

#[test]
fn branches_and_loops_have_shapes() -> Result<()> {
    // A size that both sides have stays, another one is a new symbol.
    let mut gm = symbolic_trace(traced!(shortened))?;
    gm.infer_shapes(&[spec!["n", 4; F32]])?;
    assert_eq!(output(&gm).as_deref(), Some("float32[u0, 4]"));
    let side = gm.submodule_as::<GraphModule>("cond_0.then")?;
    assert_eq!(output(side).as_deref(), Some("float32[2, 4]"));

    let mut gm = symbolic_trace(traced!(halved))?;
    let env = gm.infer_shapes(&[spec!["n", 4; F32]])?;
    assert_eq!(output(&gm).as_deref(), Some("float32[n, 4]"));
    assert!(env.guards().is_empty() && env.assumptions().is_empty());

    // What grows from turn to turn settles as a symbol.
    let mut gm = symbolic_trace(traced!(grown))?;
    gm.infer_shapes(&[spec!["n", 4; F32]])?;
    assert_eq!(output(&gm).as_deref(), Some("(float32[u0, 4], u1)"));
    Ok(())
}

#[test]
fn a_scan_has_the_length_of_its_sequence() -> Result<()> {
    let sums = traced!(|xs: &Tensor| {
        let init = Tensor::zeros(4)?;
        let (last, all): (Tensor, Tensor) =
            fx_nn::control::scan(init, xs.clone(), |sum: Tensor, x: Tensor| {
                let sum = (sum + x)?;
                Ok((sum.clone(), sum.unsqueeze(0)?))
            })?;
        Ok((last, all))
    });
    let mut gm = symbolic_trace(sums)?;
    gm.infer_shapes(&[spec!["t", 4; F32]])?;
    assert_eq!(
        output(&gm).as_deref(),
        Some("(float32[4], float32[t, 1, 4])")
    );
    Ok(())
}

#[test]
fn sizes_that_depend_on_data_are_no_guards() -> Result<()> {
    let f = traced!(|x: &Tensor| x.nonzero()?.reshape((-1, 2, 2)));
    let mut gm = symbolic_trace(f)?;
    let env = gm.infer_shapes(&[spec!["n", 4; F32]])?;
    assert_eq!(output(&gm).as_deref(), Some("int64[u0 // 2, 2, 2]"));
    assert!(env.guards().is_empty());
    assert_eq!(env.assumptions()[0].claim.to_string(), "u0 % 2 == 0");
    Ok(())
}

/// Whether such an index names any place is the run's to say.
#[test]
fn an_index_that_may_be_empty_is_checked_by_the_run() -> Result<()> {
    let f = traced!(|x: &Tensor, y: &Tensor| {
        let index = y.nonzero()?;
        Ok((
            ops::scatter_add(x, -1, &index, x)?,
            ops::gather(x, -1, &index)?,
        ))
    });
    let mut gm = symbolic_trace(f)?;
    gm.infer_shapes(&[spec![4, 0; F32], spec![3, 2; F32]])?;
    assert_eq!(
        output(&gm).as_deref(),
        Some("(float32[4, 0], float32[u0, 2])")
    );
    let x = Tensor::zeros((4, 0))?;
    let (_, none): (Tensor, Tensor) = gm.forward((&x, &Tensor::zeros((3, 2))?))?;
    assert_eq!(none.dims()?, [0, 2]);
    assert!(gm.forward::<Value>((&x, &Tensor::ones((3, 2))?)).is_err());
    Ok(())
}

#[test]
fn sizes_that_differ_between_examples_have_names() -> Result<()> {
    let zeros = |shape: (usize, usize)| Tensor::zeros(shape).map(Value::of);
    let example = |n: usize, m: usize, scale: f64, steps: i64| -> Result<Value> {
        let inner: IndexMap<String, Value> = [
            ("mask".to_string(), zeros((m, m))?),
            ("steps".to_string(), Value::Int(steps)),
        ]
        .into();
        Ok((zeros((n, 4))?, inner, vec![zeros((n, m))?], scale).into_value())
    };
    let spec = Spec::of_examples([example(8, 3, 0.5, 2)?, example(16, 5, 0.5, 2)?]);
    let tensors = "(float32[s0, 4], {mask: float32[s1, s1], steps: 2}, [float32[s0, s1]], 0.5)";
    assert_eq!(spec.to_string(), tensors);
    let numbers = Spec::of_examples([example(8, 3, 0.5, 2)?, example(8, 3, 1.5, 7)?]);
    let shown = "(float32[8, 4], {mask: float32[3, 3], steps: s0}, [float32[8, 3]], a number)";
    assert_eq!(numbers.to_string(), shown);
    // What differs in more than sizes is an error where the spec is used.
    let wrong = Spec::of_examples([zeros((2, 3))?, Value::Int(1)]);
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let found = gm
        .infer_shapes(&[wrong])
        .map_or_else(|e| e.to_string(), |_| String::new());
    assert!(
        found.contains("the examples differ in more than sizes"),
        "{found}"
    );
    gm.infer_shapes(&[Spec::of_examples([zeros((2, 3))?, zeros((4, 3))?])])?;
    assert_eq!(output(&gm).as_deref(), Some("float32[s0, 3]"));
    Ok(())
}

#[test]
fn a_row_may_have_one_variance() -> Result<()> {
    let loss = traced!(|x: &Tensor, var: &Tensor| {
        ops::gaussian_nll_loss(x, &(x * 2.0)?, var, false, 1e-6, "none")
    });
    let cases: [(&[usize], &[usize]); 3] = [(&[4], &[]), (&[2, 3], &[2]), (&[2, 3], &[2, 1])];
    for (rows, variances) in cases {
        let (x, var) = (Tensor::ones(rows)?, Tensor::ones(variances)?);
        let mut gm = symbolic_trace(loss.clone())?;
        gm.infer_shapes(&[Spec::of(&x), Spec::of(&var)])?;
        assert_eq!(gm.forward::<Tensor>((&x, &var))?.dims()?, rows);
    }
    Ok(())
}

/// Sides with other numbers of dims have no shape in common: nothing is known of what follows from them, and it runs.
#[test]
fn the_number_of_dims_may_be_a_runs() -> Result<()> {
    let f = traced!(|x: &Tensor, flat: &Tensor| {
        let y = fx_nn::control::cond(flat.clone(), || x.flatten_all(), || Ok(x.clone()))?;
        let both = ops::cat(&[y.relu()?, y], 0)?;
        Ok((both.unsqueeze(0)?, both.size(0)?))
    });
    let mut gm = symbolic_trace(f)?;
    let flag = Spec::tensor([0i64; 0], DType::Bool);
    let env = gm.infer_shapes(&[Spec::tensor(["n", "m"], DType::F32), flag])?;
    assert!(env.guards().is_empty(), "{:?}", env.guards());
    let entry = gm.graph().find_name("relu");
    let entry = entry.and_then(|node| node.meta::<ValueMeta>().map(ToString::to_string));
    let unknown = "a tensor of float32 whose number of dims a run decides";
    assert_eq!(entry.as_deref(), Some(unknown));
    let x = Tensor::ones((2, 3))?;
    for (flat, dims, rows) in [(true, vec![1, 12], 12), (false, vec![1, 4, 3], 4)] {
        let flat = Tensor::full((), flat, DType::Bool)?;
        let (y, first): (Tensor, i64) = gm.forward((&x, &flat))?;
        assert_eq!((y.dims()?.to_vec(), first), (dims, rows));
    }
    Ok(())
}
