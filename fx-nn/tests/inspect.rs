//! Seeing inside a run: captured activations, values, divergence, closeness, summaries.

use fx_nn::ir::ValueMeta;
use fx_nn::models::mlp::Mlp;
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::first_divergence;
use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{allclose, summary, trace_values};

#[test]
fn a_module_traced_through_is_captured_by_its_path() -> Result<()> {
    let mut model = resnet18(10)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let gm = symbolic_trace(&model)?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    let seen = gm.capture(&["layer{1,2", "layer*.1"], &x);
    assert!(seen.is_err_and(|e| {
        e.to_string()
            .contains("`layer{1,2` is not a pattern of paths")
    }));
    assert_eq!(gm.capture(&["layer{1,2}.1"], &x)?.len(), 2);

    let seen = gm.capture(&["layer*.1", "fc"], &x)?;
    let paths: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        ["layer1.1", "layer2.1", "layer3.1", "layer4.1", "fc"]
    );
    let stem = model
        .maxpool
        .forward(&model.bn1.forward(&model.conv1.forward(&x)?)?.relu()?)?;
    let by_hand = model.layer1[1].forward(&model.layer1[0].forward(&stem)?)?;
    let captured = Tensor::from_value(seen["layer1.1"].clone())?;
    assert!(allclose(&captured, &by_hand, 0.0, 0.0)?.close);
    Ok(())
}

#[test]
fn values_say_where_numbers_go_wrong() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let logs = x.log()?;
        let zeros = (&logs * 0.0)?;
        zeros + 1.0
    }))?;
    let x = Tensor::from_vec(vec![0.0f32, 1.0], 2)?;
    let stats = trace_values(&gm, &x)?;
    let bad: Vec<(&str, usize)> = stats
        .iter()
        .map(|s| (s.node.as_str(), s.not_finite))
        .collect();
    assert_eq!(
        bad,
        [("x", 0), ("log", 1), ("mul", 1), ("add", 1), ("output", 1)]
    );
    assert_eq!((stats[0].min, stats[0].max, stats[0].mean), (0.0, 1.0, 0.5));
    assert_eq!(
        stats[1].to_string(),
        "%log: float32[2] in [0.0000e0, 0.0000e0], mean 0.0000e0, 1 not finite"
    );
    Ok(())
}

#[test]
fn closeness_tells_nan_shape_and_place() -> Result<()> {
    let of = |v: Vec<f32>| Tensor::from_vec(v, (2, 2));
    let expected = of(vec![1.0, 2.0, 3.0, 4.0])?;
    assert!(allclose(&expected, &expected, 0.0, 0.0)?.close);
    let nan = allclose(&of(vec![1.0, f32::NAN, 3.5, 4.0])?, &expected, 1e-5, 0.0)?;
    assert!(!nan.close && nan.wrong == 2);
    assert_eq!(nan.worst.map(|(at, ..)| at), Some(vec![0, 1]));
    let infinite = of(vec![1.0, f32::INFINITY, 3.0, f32::NEG_INFINITY])?;
    assert!(allclose(&infinite, &infinite, 0.0, 0.0)?.close);
    assert_eq!(allclose(&expected, &infinite, 1e-5, 1e-8)?.wrong, 2);
    assert_eq!(allclose(&infinite, &expected, 1e-5, 1e-8)?.wrong, 2);
    let wide = allclose(&expected, &Tensor::ones(4)?, 0.0, 0.0);
    assert!(wide.is_err_and(|e| e.to_string().contains("[2, 2] and [4]")));
    Ok(())
}

#[test]
fn the_first_node_that_differs_is_found() -> Result<()> {
    let mut mlp = Mlp::new(8, 16, 4)?;
    mlp.eval();
    let gm = symbolic_trace(&mlp)?;
    let x = Tensor::rand((2, 8))?;
    assert!(first_divergence(&gm, &gm.clone(), &x, 0.0, 0.0)?.is_none());

    let mut other = gm.clone();
    other.set_submodule("fc2", nn::Linear::new(16, 16)?)?;
    let found = first_divergence(&gm, &other, &x, 1e-5, 1e-8)?.expect("fc2 has other weights");
    assert_eq!(found.node, "fc2");
    assert!(
        found
            .location
            .as_ref()
            .is_some_and(|l| l.contains("mlp.rs")),
        "{found}"
    );

    // A layer of another width cannot be compared at all.
    other.set_submodule("fc3", nn::Linear::new(16, 5)?)?;
    other.set_submodule("fc2", mlp.fc2.clone())?;
    let found = first_divergence(&gm, &other, &x, 1e-5, 1e-8)?.expect("fc3 is wider");
    assert_eq!(found.node, "fc3");
    assert!(
        found
            .difference
            .is_err_and(|why| why.contains("[2, 4] and [2, 5]"))
    );
    Ok(())
}

#[test]
fn resnet18_has_the_published_size() -> Result<()> {
    let mut model = resnet18(1000)?;
    model.eval();
    let summary = summary(&model, &Tensor::rand((1, 3, 224, 224))?)?;
    let root = &summary.modules[0];
    assert_eq!(
        (root.parameters, root.multiply_adds.as_known()),
        (11_689_512, Some(1_814_073_344))
    );
    assert_eq!(summary.trainable_parameters, root.parameters);
    let shape = |path: &str| -> Result<Vec<usize>> {
        let output = summary
            .module(path)?
            .output
            .as_ref()
            .and_then(ValueMeta::tensor);
        Ok(output.and_then(|t| t.known_shape()).unwrap_or_default())
    };
    assert_eq!(shape("")?, [1, 1000]);
    assert_eq!(shape("layer2.0")?, [1, 128, 28, 28]);
    assert_eq!(shape("layer2.0.downsample.0")?, [1, 128, 28, 28]);
    // The modules inside add up to the module around them.
    let inside = ["conv1", "conv2", "downsample"]
        .iter()
        .map(|name| Ok(&summary.module(&format!("layer2.0.{name}"))?.multiply_adds))
        .try_fold(Dim::default(), |sum, count: Result<&Dim>| sum + count?)?;
    assert_eq!(summary.module("layer2.0")?.multiply_adds, inside);
    assert!(summary.to_string().contains("  layer2.0: BasicBlock"));
    Ok(())
}

/// Layers that are single nodes are counted by the operations inside them.
#[test]
fn attention_and_recurrence_are_counted() -> Result<()> {
    let mut attention = nn::MultiheadAttention::new(16, 4)?;
    attention.eval();
    let (l, s, e) = (5, 7, 16);
    let (q, k) = (Tensor::rand((l, 1, e))?, Tensor::rand((s, 1, e))?);
    let counted = summary(&attention, (&q, &k, &k))?;
    assert_eq!(counted.uncounted, Vec::<String>::new());
    // Three projections in, one out, and two products of [heads, l, 4] with [heads, 4, s].
    let expected = l * e * e + 2 * s * e * e + l * e * e + 2 * l * s * e;
    assert_eq!(counted.modules[0].multiply_adds, expected as usize);

    let lstm = nn::LSTM::new(3, 8)?;
    let counted = summary(&lstm, &Tensor::rand((6, 2, 3))?)?;
    assert_eq!(
        counted.modules[0].multiply_adds,
        6 * 2 * (4 * 8 * 3 + 4 * 8 * 8)
    );

    let up = nn::ConvTranspose2d::new(4, 2, 3)?;
    let counted = summary(&up, &Tensor::rand((1, 4, 5, 5))?)?;
    assert_eq!(counted.modules[0].multiply_adds, 5 * 5 * 4 * 2 * 9);
    Ok(())
}

#[test]
fn a_call_lends_what_a_lowering_needs() -> Result<()> {
    #[derive(Module)]
    struct Model {
        conv: nn::Conv2d,
        bn: nn::BatchNorm2d,
        act: nn::ReLU,
        fc: nn::Linear,
    }
    #[trace]
    impl Model {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            let y = self
                .act
                .forward(&self.bn.forward(&self.conv.forward(x)?)?)?;
            self.fc.forward(&y.mean((2, 3))?)
        }
    }
    let gm = symbolic_trace(&Model {
        conv: nn::Conv2d::new(3, 8, 3)?,
        bn: nn::BatchNorm2d::new(8)?,
        act: nn::ReLU::new(),
        fc: nn::Linear::new(8, 4)?,
    })?;
    let mut lent = String::new();
    for node in gm.graph().nodes() {
        let names: Vec<String> = gm.call(node)?.attributes().into_keys().collect();
        lent += &format!("{}: {}\n", node.name(), names.join(" "));
    }
    let expected = "x: \nconv: conv.weight conv.bias\n\
         bn: bn.weight bn.bias bn.running_mean bn.running_var bn.num_batches_tracked\n\
         act: \nmean: \nfc: fc.weight fc.bias\noutput: \n";
    assert_eq!(lent, expected);
    let conv = gm.submodule_as::<nn::Conv2d>("conv")?;
    assert_eq!(conv.weight.dims()?, [8, 3, 3, 3]);
    Ok(())
}
