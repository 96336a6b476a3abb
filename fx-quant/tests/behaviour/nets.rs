//! Whole networks beside the integers of torch.ao.quantization's reference form.

use fx_core::ir::Argument;
use fx_nn::prelude::*;
use fx_quant::{QConfig, Quantize};

use super::draw::{Draw, golden};

#[derive(Module)]
struct Convolutions {
    conv1: nn::Conv2d,
    conv2: nn::Conv2d,
    pool: nn::MaxPool2d,
    fc: nn::Linear,
}

#[trace]
impl Convolutions {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.conv1.forward(x)?.relu()?;
        let z = (self.conv2.forward(&y)? + &y)?.relu()?;
        self.fc.forward(&self.pool.forward(&z)?.flatten_from(1)?)
    }
}

#[derive(Module)]
struct Products {
    a: nn::Linear,
    b: nn::Linear,
    c: nn::Linear,
}

#[trace]
impl Products {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.a.forward(x)?.relu()?;
        self.c.forward(&(self.b.forward(&y)?.relu()? + &y)?)
    }
}

#[derive(Module)]
struct Strided {
    stem: nn::Conv2d,
    wide: nn::Conv2d,
    down: nn::Conv2d,
    pool: nn::MaxPool2d,
    fc: nn::Linear,
}

#[trace]
impl Strided {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.stem.forward(x)?.relu()?;
        let y = (self.wide.forward(&y)? + self.down.forward(&y)?)?.relu()?;
        self.fc.forward(&self.pool.forward(&y)?.flatten_from(1)?)
    }
}

/// The parameters of a graph by the formula, in their order.
fn filled(gm: &mut GraphModule, names: &[&str], draw: &mut Draw) -> Result<()> {
    for name in names {
        let dims = Tensor::from_value(gm.parameter(name)?)?.dims()?.to_vec();
        let fan: usize = match dims.len() {
            1 => 4,
            _ => dims[1..].iter().product(),
        };
        let weight = draw.tensor(&dims, 1, 1.5 / (fan as f64).sqrt(), 0.0)?;
        gm.set_parameter(name, &weight)?;
    }
    Ok(())
}

fn judged(name: &str, mut gm: GraphModule, parameters: &[&str], shape: &[usize]) -> Result<()> {
    let recorded = &golden("nets.json")[name];
    let mut draw = Draw::new(name.len() as u64);
    filled(&mut gm, parameters, &mut draw)?;
    let inputs = (0..4).map(|_| draw.tensor(shape, 3, 2.0, 0.0));
    let inputs = inputs.collect::<Result<Vec<Tensor>>>()?;
    let plan = Quantize::new(QConfig::default()).plan(&gm)?;
    let calibration = plan.calibrate(&inputs)?;
    let quantized = plan.convert(&calibration)?;

    let quantize = function!(ops::quantize_affine);
    let mut integers = Vec::new();
    quantized.forward_observed::<Tensor>(&inputs[0], |node, value| {
        if node.function() == Some(quantize) {
            integers.push(Tensor::from_value(value.clone())?.to_vec()?);
        }
        Ok(())
    })?;
    let pairs = quantized
        .graph()
        .nodes()
        .filter(|node| node.function() == Some(quantize));
    let params = pairs.map(
        |node| match (node.argument("scale")?, node.argument("zero_point")?) {
            (Argument::Float(scale), Argument::Int(zero)) => Ok((scale, zero)),
            other => panic!("{other:?}"),
        },
    );
    let params = params.collect::<Result<Vec<(f64, i64)>>>()?;

    // The order of values of both is that of the graph.
    let values = recorded["values"].as_array().expect("values");
    assert_eq!(values.len(), integers.len(), "{}", quantized.graph());
    let (mut elements, mut apart) = (0, 0);
    for ((value, found), (scale, zero)) in values.iter().zip(&integers).zip(params) {
        let expected = value[0].as_f64().expect("a scale");
        assert!(
            ((scale - expected) / expected).abs() < 2.4e-7,
            "{name}: {scale} {expected}"
        );
        assert_eq!(Some(zero), value[1].as_i64(), "{name}");
        let digits = value[2].as_str().expect("digits");
        let whole: Vec<f64> = (0..digits.len() / 2)
            .map(|at| {
                f64::from(u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits"))
            })
            .collect();
        assert_eq!(whole.len(), found.len());
        for (a, b) in whole.iter().zip(found) {
            elements += 1;
            assert!((a - b).abs() <= 1.0, "{name}: {a} {b}");
            apart += usize::from(a != b);
        }
    }
    println!("{name}: elements {elements} apart by one {apart}");
    assert!(apart * 1000 <= elements, "{name}: {apart} of {elements}");

    let result: Tensor = quantized.forward(&inputs[0])?;
    let float: Tensor = gm.forward(&inputs[0])?;
    for (key, found) in [("result", result), ("float", float)] {
        let expected = recorded[key].as_array().expect("numbers").iter();
        let expected: Vec<f64> = expected.map(|x| x.as_f64().expect("a number")).collect();
        let top = expected.iter().fold(0.0f64, |top, x| top.max(x.abs()));
        // A step of the result, where an element before it is at a boundary of two integers.
        let slack = if key == "float" { 1e-5 } else { 1.5e-2 };
        for (a, b) in expected.iter().zip(found.to_vec()?) {
            assert!((a - b).abs() <= slack * top, "{name} {key}: {a} {b}");
        }
    }
    Ok(())
}

#[test]
fn convolutions_are_those_of_pytorch() -> Result<()> {
    let mut net = Convolutions {
        conv1: nn::Conv2d::new(3, 8, 3)?.padding(1),
        conv2: nn::Conv2d::grouped(8, 8, 3, 8)?.padding(1),
        pool: nn::MaxPool2d::new(2),
        fc: nn::Linear::new(128, 10)?,
    };
    net.eval();
    let names = [
        "conv1.weight",
        "conv1.bias",
        "conv2.weight",
        "conv2.bias",
        "fc.weight",
        "fc.bias",
    ];
    judged("convolutions", symbolic_trace(&net)?, &names, &[2, 3, 8, 8])
}

#[test]
fn products_are_those_of_pytorch() -> Result<()> {
    let mut net = Products {
        a: nn::Linear::new(24, 32)?,
        b: nn::Linear::new(32, 32)?,
        c: nn::Linear::new(32, 6)?.bias(false),
    };
    net.eval();
    let names = ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight"];
    judged("products", symbolic_trace(&net)?, &names, &[8, 24])
}

#[test]
fn strides_are_those_of_pytorch() -> Result<()> {
    let mut net = Strided {
        stem: nn::Conv2d::new(2, 6, 5)?.stride(2).padding(2),
        wide: nn::Conv2d::new(6, 6, 3)?.padding(2).dilation(2),
        down: nn::Conv2d::new(6, 6, 1)?,
        pool: nn::MaxPool2d::new(3).stride(2).padding(1),
        fc: nn::Linear::new(96, 5)?,
    };
    net.eval();
    let names = [
        "stem.weight",
        "stem.bias",
        "wide.weight",
        "wide.bias",
        "down.weight",
        "down.bias",
        "fc.weight",
        "fc.bias",
    ];
    judged("strided", symbolic_trace(&net)?, &names, &[2, 2, 16, 16])
}
