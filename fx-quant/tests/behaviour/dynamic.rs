//! Plans whose scales each run decides: beside PyTorch's dynamic layers, in integers, and what is refused.

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_quant::{Calibration, Integers, QConfig, Quantize, Scheme, compare};

use super::draw::{Draw, golden};

/// `Products` of `goldens/make.py`.
#[derive(Module, Clone, Debug)]
struct Products {
    a: nn::Linear,
    b: nn::Linear,
    c: nn::Linear,
}

#[trace]
impl Products {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = ops::relu(&self.a.forward(x)?)?;
        self.c.forward(&(ops::relu(&self.b.forward(&y)?)? + y)?)
    }
}

fn filled(layer: &mut nn::Linear, draw: &mut Draw) -> Result<()> {
    let shape = layer.weight.dims()?.to_vec();
    layer.weight = draw.tensor(&shape, 1, 1.5 / (shape[1] as f64).sqrt(), 0.0)?;
    if layer.bias.is_some() {
        layer.bias = Some(draw.tensor(&shape[..1], 1, 0.75, 0.0)?);
    }
    Ok(())
}

fn products(draw: &mut Draw) -> Result<Products> {
    let mut net = Products {
        a: nn::Linear::new(24, 32)?,
        b: nn::Linear::new(32, 32)?,
        c: nn::Linear::new(32, 6)?,
    };
    net.c.bias = None;
    for layer in [&mut net.a, &mut net.b, &mut net.c] {
        filled(layer, draw)?;
    }
    net.eval();
    Ok(net)
}

/// The largest difference over the largest number.
fn apart(found: &Tensor, expected: &[f64]) -> Result<f64> {
    let found = found.to_vec()?;
    assert_eq!(found.len(), expected.len());
    let largest = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, f64::max);
    let differences = largest(&mut found.iter().zip(expected).map(|(a, b)| (a - b).abs()));
    Ok(differences / largest(&mut expected.iter().map(|x| x.abs())))
}

#[test]
fn results_are_those_of_pytorch() -> Result<()> {
    let recorded = golden("dynamic.json");
    let mut draw = Draw::new(7);
    let gm = symbolic_trace(&products(&mut draw)?)?;
    let plan = Quantize::new(QConfig::dynamic()).plan(&gm)?;
    insta::assert_snapshot!("dynamic_plan", plan.to_string());
    let reference = plan.convert(&Calibration::default())?;
    insta::assert_snapshot!("dynamic_graph", reference.to_string());
    let mut lowered = reference.clone();
    let report = lowered.lower(&Integers::new())?;
    assert_eq!(
        (report.parts.len(), report.failed.len()),
        (3, 0),
        "{report}"
    );
    let x = Tensor::zeros((8, 24))?;
    let compiled = lowered.compile(Compile::new(Cpu::new()).like(&x))?;
    for line in recorded.as_array().expect("a list") {
        let number = |name: &str| line[name].as_f64().expect("a number");
        let result: Vec<f64> = (line["result"].as_array().expect("numbers").iter())
            .map(|x| x.as_f64().expect("a number"))
            .collect();
        let x = draw.tensor(&[8, 24], 3, number("scale"), number("shift"))?;
        for (name, gm) in [
            ("reference", &reference),
            ("integers", &lowered),
            ("integers and compiled floats", &compiled),
        ] {
            let found: Tensor = gm.forward(&x)?;
            let apart = apart(&found, &result)?;
            assert!(apart < 1e-5, "{name}, {line}: {apart:.2e}");
        }
    }
    Ok(())
}

/// Layers that share an input, and layers behind them: all of them are in integers.
#[derive(Module, Clone, Debug)]
struct Shared {
    q: nn::Linear,
    k: nn::Linear,
    out: nn::Linear,
}

#[trace]
impl Shared {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (q, k) = (self.q.forward(x)?, self.k.forward(x)?);
        self.out.forward(&ops::softmax(&(q * k)?, -1)?)
    }
}

#[test]
fn layers_share_an_input_of_a_run() -> Result<()> {
    fx_nn::manual_seed(6);
    let mut model = Shared {
        q: nn::Linear::new(16, 16)?,
        k: nn::Linear::new(16, 16)?,
        out: nn::Linear::new(16, 16)?,
    };
    model.eval();
    let plan = Quantize::new(QConfig::dynamic()).plan(&symbolic_trace(&model)?)?;
    let reference = plan.convert(&Calibration::default())?;
    let mut lowered = reference.clone();
    let report = lowered.lower(&Integers::new())?;
    let left = |name: &str| report.left.iter().any(|node| node.name.starts_with(name));
    assert!(!left("linear") && left("softmax"), "{report}");
    let x = Tensor::randn((4, 16))?;
    let (expected, found): (Tensor, Tensor) = (reference.forward(&x)?, lowered.forward(&x)?);
    assert!(apart(&found, &expected.to_vec()?)? < 1e-5);
    Ok(())
}

/// Symmetric integers, other weights, one scale for a weight, and zeros alone.
#[test]
fn schemes_of_a_run() -> Result<()> {
    let mut draw = Draw::new(8);
    let gm = symbolic_trace(&products(&mut draw)?)?;
    let x = draw.tensor(&[8, 24], 1, 3.0, 0.0)?;
    for (config, least) in [
        (QConfig::dynamic(), 35.0),
        (QConfig::dynamic().activation(Scheme::INT8), 33.0),
        (QConfig::dynamic().activation(Scheme::UINT7), 30.0),
        (QConfig::dynamic().weight(Scheme::INT4), 12.0),
        (QConfig::dynamic().per_channel(false), 33.0),
    ] {
        let plan = Quantize::new(config.clone()).plan(&gm)?;
        let quantized = plan.convert(&Calibration::default())?;
        let sqnr = compare(&plan, &quantized, [&x])?.sqnr();
        assert!(sqnr > least, "{config:?}: {sqnr:.1} dB");
        let mut lowered = quantized.clone();
        lowered.lower(&Integers::new())?;
        for x in [&x, &Tensor::zeros((8, 24))?] {
            let (expected, found): (Tensor, Tensor) = (quantized.forward(x)?, lowered.forward(x)?);
            let apart = apart(&found, &expected.to_vec()?)?;
            assert!(apart < 1e-5, "{config:?}: {apart:.2e}");
        }
    }
    Ok(())
}

/// A layer beside calibrated ones, convolutions, and errors by layer.
#[test]
fn some_layers_are_of_a_run() -> Result<()> {
    fx_nn::manual_seed(4);
    let mut model = nn::Sequential::new()
        .push(nn::Conv2d::new(4, 16, 3)?)
        .push(nn::ReLU::new())
        .push(nn::Flatten::new())
        .push(nn::Linear::new(16 * 16, 32)?)
        .push(nn::ReLU::new())
        .push(nn::Linear::new(32, 8)?);
    model.eval();
    let gm = symbolic_trace(&model)?;
    let batches: Vec<Tensor> = (0..3)
        .map(|_| Tensor::randn((2, 4, 6, 6)))
        .collect::<Result<_>>()?;
    for quantize in [
        Quantize::new(QConfig::default()).module("3", QConfig::dynamic())?,
        Quantize::new(QConfig::dynamic()).module("0", QConfig::default())?,
        Quantize::new(QConfig::dynamic()),
    ] {
        let plan = quantize.plan(&gm)?;
        let calibration = plan.calibrate(&batches)?;
        let quantized = plan.convert(&calibration)?;
        assert!(
            compare(&plan, &quantized, &batches)?.sqnr() > 25.0,
            "{plan}"
        );
        let mut lowered = quantized.clone();
        let report = lowered.lower(&Integers::new())?;
        assert!(report.failed.is_empty(), "{report}");
        let (expected, found): (Tensor, Tensor) = (
            quantized.forward(&batches[0])?,
            lowered.forward(&batches[0])?,
        );
        // A number at the boundary of two integers may fall on either side.
        assert!(apart(&found, &expected.to_vec()?)? < 0.02, "{plan}");
        assert_eq!(plan.sensitivity(&calibration, &batches)?.nodes.len(), 3);
    }
    Ok(())
}

#[test]
fn what_needs_a_calibration_is_refused() -> Result<()> {
    let mut draw = Draw::new(9);
    let gm = symbolic_trace(&products(&mut draw)?)?;
    let plan = Quantize::new(QConfig::default()).plan(&gm)?;
    let error = plan.convert(&Calibration::default()).map(drop);
    insta::assert_snapshot!("no_calibration", error.expect_err("refused").to_string());
    let plan = Quantize::new(QConfig::dynamic()).plan(&gm)?;
    assert_eq!(plan.calibrate::<&Tensor>([])?.runs(), 0);
    let error = plan.prepare_qat(&Calibration::default()).map(drop);
    insta::assert_snapshot!("no_training", error.expect_err("refused").to_string());
    Ok(())
}
