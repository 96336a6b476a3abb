//! What a plan says of each node, what is refused, and which layer hurts.

use fx_nn::prelude::*;
use fx_quant::{MinMax, QConfig, Quantize, compare};

/// A product with a weight that a function computes, a weight that two layers share, words, and shares.
#[derive(Module, Clone, Debug)]
struct Net {
    words: nn::Embedding,
    conv: nn::Conv2d,
    norm: nn::BatchNorm2d,
    fc: nn::Linear,
    scale: Tensor,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor, ids: &Tensor) -> Result<Tensor> {
        let y = ops::relu(&self.norm.forward(&self.conv.forward(x)?)?)?;
        let y = self
            .fc
            .forward(&ops::adaptive_avg_pool2d(&y, 1)?.flatten_from(1)?)?;
        let z = self
            .fc
            .forward(&self.words.forward(&(ids + 1)?)?.mean(1)?)?;
        let w = ops::linear(&z, &(&self.fc.weight * &self.scale)?, None)?;
        ((y + z)? * w)?.softmax(-1)
    }
}

fn net() -> Result<Net> {
    fx_nn::manual_seed(3);
    let mut net = Net {
        words: nn::Embedding::new(10, 6)?,
        conv: nn::Conv2d::new(3, 6, 3)?,
        norm: nn::BatchNorm2d::new(6)?,
        fc: nn::Linear::new(6, 6)?,
        scale: Tensor::from_vec(vec![2.0f32], 1)?,
    };
    net.eval();
    Ok(net)
}

fn inputs() -> Result<Vec<(Tensor, Tensor)>> {
    (0..3)
        .map(|_| {
            Ok((
                Tensor::randn((2, 3, 5, 5))?,
                Tensor::from_vec(vec![1i64, 2, 3, 4], (2, 2))?,
            ))
        })
        .collect()
}

#[test]
fn a_plan_says_what_becomes_of_each_node() -> Result<()> {
    let gm = symbolic_trace(&net()?)?;
    let plan = Quantize::new(QConfig::x86()).plan(&gm)?;
    insta::assert_snapshot!("plan", plan.to_string());
    let quantized = plan.convert(&plan.calibrate(inputs()?)?)?;
    insta::assert_snapshot!("reference", quantized.code());
    let some = Quantize::new(None)
        .type_of::<nn::Linear>(QConfig::default())
        .function(function!(ops::conv2d), QConfig::min_max())
        .module("fc", None)?
        .plan(&gm)?;
    insta::assert_snapshot!("some", some.to_string());
    Ok(())
}

#[test]
fn a_quantized_graph_is_saved_and_written_as_source() -> Result<()> {
    let plan = Quantize::new(QConfig::default()).plan(&symbolic_trace(&net()?)?)?;
    let all = inputs()?;
    let quantized = plan.convert(&plan.calibrate(all.clone())?)?;
    let again = GraphModule::from_bytes(&quantized.to_bytes()?)?;
    let (a, b): (Tensor, Tensor) = (
        quantized.forward(all[0].clone())?,
        again.forward(all[0].clone())?,
    );
    assert_eq!(a.to_vec()?, b.to_vec()?);
    assert!(compare(&plan, &again, all)?.sqnr() > 25.0);
    Ok(())
}

#[test]
fn onnx_has_pairs_of_quantize_and_dequantize() -> Result<()> {
    use fx_onnx::{Export, OnnxExt};
    fx_nn::manual_seed(4);
    let mut model = nn::Sequential::new()
        .push(nn::Conv2d::new(3, 8, 3)?.padding(1))
        .push(nn::ReLU::new())
        .push(nn::Flatten::new())
        .push(nn::Linear::new(200, 7)?);
    model.eval();
    let x = Tensor::randn((2, 3, 5, 5))?;
    let plan = Quantize::new(QConfig::default()).plan(&symbolic_trace(&model)?)?;
    let calibration = plan.calibrate([&x])?;
    let quantized = plan.convert(&calibration)?;
    let file = std::env::temp_dir().join("fx_quant_pairs.onnx");
    quantized.to_onnx(&file, &Export::example(&x))?;
    let read = fx_onnx::load(&file)?;
    let (a, b): (Tensor, Tensor) = (quantized.forward(&x)?, read.module.forward(&x)?);
    let step = calibration.params("linear").expect("it is rounded").1.scale;
    assert!((a - b)?.abs()?.amax(..)?.item()? <= 1.01 * step);
    // The weights of both layers are pairs of the file too, of one byte each.
    let pairs = read.report.nodes;
    let (floats, _) = symbolic_trace(&model)?.to_onnx_bytes(&Export::example(&x))?;
    let size = std::fs::metadata(&file).map_err(Error::other)?.len() as usize;
    assert!(
        pairs >= 12 && size < floats.len(),
        "{pairs} nodes, {size} bytes"
    );
    let summary = fx_onnx::support(&file)?.to_string();
    assert!(!summary.contains("missing: "), "{summary}");
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let mut net = net()?;
    let gm = symbolic_trace(&net)?;
    let plan = Quantize::new(QConfig::default()).plan(&gm)?;
    let none: Vec<(Tensor, Tensor)> = Vec::new();
    let error = plan.calibrate(none).unwrap_err().to_string();
    assert!(error.contains("no inputs to calibrate with"), "{error}");

    let (x, ids) = inputs()?.remove(0);
    let bad = (&x * f64::NAN)?;
    let error = plan
        .calibrate([(bad, ids.clone())])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("%x") && error.contains("calibrate with data"),
        "{error}"
    );
    let bad = (&x * f64::INFINITY)?;
    let least = Quantize::new(QConfig::default().observer(MinMax::default)).plan(&gm)?;
    let error = least
        .calibrate([(bad.relu()?, ids.clone())])
        .unwrap_err()
        .to_string();
    assert!(error.contains("a number is"), "{error}");

    let calibration = plan.calibrate([(x.clone(), ids)])?;
    let other =
        Quantize::new(QConfig::default()).plan(&symbolic_trace(traced!(|x: &Tensor| x.relu()))?)?;
    assert!(
        other.convert(&calibration).is_ok(),
        "it has no values of integers"
    );
    let mut model = nn::Sequential::new();
    for _ in 0..4 {
        model = model.push(nn::Linear::new(5, 5)?);
    }
    let mut linear = Quantize::new(QConfig::default()).plan(&symbolic_trace(&model)?)?;
    let error = linear.convert(&calibration).unwrap_err().to_string();
    assert!(error.contains("calibrate this plan"), "{error}");
    linear = linear.only(|_| false)?;
    assert_eq!(linear.quantized().count(), 0);

    net.train();
    let error = Quantize::new(QConfig::default())
        .plan(&symbolic_trace(&net)?)
        .unwrap_err()
        .to_string();
    assert!(error.contains("training"), "{error}");
    assert!(Quantize::new(None).module("a[", None).is_err());
    Ok(())
}

#[test]
fn a_spoilt_layer_is_named_first() -> Result<()> {
    let mut first = 0;
    for seed in 0..20 {
        fx_nn::manual_seed(seed);
        let mut model = nn::Sequential::new();
        for _ in 0..6 {
            model = model.push(nn::Linear::new(24, 24)?).push(nn::ReLU::new());
        }
        model.eval();
        let mut gm = symbolic_trace(&model)?;
        // One weight of a layer is far from the others, so that one scale for all of them is too large.
        let spoilt = (seed as usize * 5) % 6 * 2;
        let path = format!("{spoilt}.weight");
        let weight = Tensor::from_value(gm.parameter(&path)?)?;
        let mut numbers = weight.to_vec()?;
        numbers[seed as usize] = 12.0;
        let numbers: Vec<f32> = numbers.into_iter().map(|x| x as f32).collect();
        gm.set_parameter(&path, &Tensor::from_vec(numbers, (24, 24))?)?;
        let batches: Vec<Tensor> = (0..3)
            .map(|_| Tensor::randn((16, 24)))
            .collect::<Result<_>>()?;
        let plan = Quantize::new(QConfig::default().per_channel(false)).plan(&gm)?;
        let calibration = plan.calibrate(&batches)?;
        let report = plan.sensitivity(&calibration, &batches)?;
        first += usize::from(report.nodes[0].path == spoilt.to_string());

        if seed == 0 {
            // A plan within an error keeps that layer in floats, and the others in integers.
            let all = compare(&plan, &plan.convert(&calibration)?, &batches)?.sqnr();
            let within = plan.within(&calibration, &batches, all + 6.0)?;
            assert!(!within.quantized().any(|name| name == report.nodes[0].node));
            assert!(
                within.quantized().count() >= plan.quantized().count() - 4,
                "{within}"
            );
        }
    }
    println!("named first: {first} of 20");
    assert_eq!(first, 20);
    Ok(())
}
