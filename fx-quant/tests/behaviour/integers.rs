//! Graphs that run in integers beside their reference form, on every level of instructions.

use fx_kernels::Level;
use fx_nn::cpu::Cpu;
use fx_nn::models::mobilenet::mobilenet_v2;
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_quant::{Integers, MinMax, Plan, QConfig, Quantize, Scheme, compare};

fn batches(count: usize, shape: &[usize]) -> Result<Vec<Tensor>> {
    (0..count).map(|_| Tensor::randn(shape.to_vec())).collect()
}

fn eval<M: Module + fx_nn::module::Component>(model: &mut M) {
    model.eval();
}

/// A graph in integers on each level: equal bits, and how far it is from the reference form, over a step of the result.
fn steps_apart(plan: &Plan, inputs: &[Tensor], result: &str) -> Result<f64> {
    let calibration = plan.calibrate(inputs)?;
    let reference = plan.convert(&calibration)?;
    let mut found: Option<Vec<f64>> = None;
    for level in Level::available() {
        let mut fast = reference.clone();
        let report = fast.lower(&Integers::new().level(level))?;
        assert_eq!((report.left.len(), report.failed.len()), (0, 0), "{report}");
        // Twice: memory of the first run is used again.
        for _ in 0..2 {
            let y = fast.forward::<Tensor>(&inputs[0])?.to_vec()?;
            match &found {
                Some(found) => assert_eq!(&y, found, "{level:?}"),
                None => found = Some(y),
            }
        }
    }
    // Other sizes by the same code: none at all, and one more.
    let mut fast = reference.clone();
    fast.lower(&Integers::new())?;
    for count in [0, 3] {
        let mut shape = inputs[0].dims()?.to_vec();
        shape[0] = count;
        let x = Tensor::randn(shape)?;
        let (y, z): (Tensor, Tensor) = (reference.forward(&x)?, fast.forward(&x)?);
        assert_eq!(y.dims()?, z.dims()?);
    }
    let (_, params) = calibration.params(result).expect("the result is rounded");
    let expected = reference.forward::<Tensor>(&inputs[0])?.to_vec()?;
    let found = found.expect("there is a level");
    let apart = expected
        .iter()
        .zip(&found)
        .map(|(a, b)| (a - b).abs() / params.scale);
    Ok(apart.fold(0.0, f64::max))
}

#[test]
fn whole_networks_run_in_integers() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = resnet18(10)?;
    eval(&mut model);
    let inputs = batches(2, &[2, 3, 32, 32])?;
    let plan = Quantize::new(QConfig::default().observer(MinMax::default))
        .plan(&symbolic_trace(&model)?)?;
    let apart = steps_apart(&plan, &inputs, "linear")?;
    println!("resnet18: steps apart {apart:.2}");
    assert!(apart <= 4.0, "{apart}");

    let mut model = mobilenet_v2(10)?;
    eval(&mut model);
    let plan = Quantize::new(QConfig::x86()).plan(&symbolic_trace(&model)?)?;
    let apart = steps_apart(&plan, &inputs, "linear")?;
    println!("mobilenet_v2: steps apart {apart:.2}");
    assert!(apart <= 4.0, "{apart}");
    Ok(())
}

#[test]
fn integers_with_signs_and_sums_that_broadcast() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct Net {
        a: nn::Linear,
        b: nn::Linear,
        c: nn::Linear,
    }
    #[trace]
    impl Net {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            // Rows of a batch, and of one alone.
            let y = ops::hardtanh(&self.a.forward(x)?, -0.5, 0.75)?;
            let z = self.b.forward(&x.narrow(0, 0, 1)?)?;
            self.c.forward(&(y + z)?)
        }
    }
    fx_nn::manual_seed(1);
    let net = Net {
        a: nn::Linear::new(9, 20)?,
        b: nn::Linear::new(9, 20)?.bias(false),
        c: nn::Linear::new(20, 5)?,
    };
    let inputs = batches(3, &[4, 3, 9])?;
    let signed = Scheme {
        symmetric: false,
        ..Scheme::INT8
    };
    let plan = Quantize::new(QConfig::default().activation(signed)).plan(&symbolic_trace(&net)?)?;
    let calibration = plan.calibrate(&inputs)?;
    let reference = plan.convert(&calibration)?;
    let mut fast = reference.clone();
    let report = fast.lower(&Integers::new())?;
    // Rows that are chosen by a run are in floats, and are rounded when they are read.
    assert!(report.failed.is_empty(), "{report}");
    let (y, z): (Tensor, Tensor) = (reference.forward(&inputs[1])?, fast.forward(&inputs[1])?);
    let step = calibration
        .params("linear_2")
        .expect("it is rounded")
        .1
        .scale;
    assert!((y - z)?.abs()?.amax(..)?.item()? <= 1.01 * step);
    Ok(())
}

#[test]
fn what_stays_in_floats_has_a_reason() -> Result<()> {
    fx_nn::manual_seed(2);
    let mut model = nn::Sequential::new()
        .push(nn::Linear::new(8, 8)?)
        .push(nn::GELU::default())
        .push(nn::Linear::new(8, 8)?)
        .push(nn::Sigmoid::new());
    eval(&mut model);
    let gm = symbolic_trace(&model)?;
    let inputs = batches(2, &[3, 8])?;
    let plan = Quantize::new(QConfig::default()).plan(&gm)?;
    let mut fast = plan.convert(&plan.calibrate(&inputs)?)?;
    let report = fast.lower(&Integers::new())?;
    let left: Vec<String> = report.left.iter().map(ToString::to_string).collect();
    // A function of each element is a table of bytes where its result is rounded.
    assert_eq!(left, ["%sigmoid: its result stays in floats"]);
    assert_eq!(report.parts.len(), 1);
    assert!(compare(&plan, &fast, &inputs)?.sqnr() > 30.0);
    // What is left is another backend's, beside the code of integers.
    let both = fast.compile(Compile::new(Cpu::new()).like(&inputs[0]))?;
    let part = both.submodule_as::<GraphModule>(&report.parts[0].path)?;
    assert_eq!(part.compiled().map(|code| code.backend()), Some("integers"));
    let (y, z): (Tensor, Tensor) = (fast.forward(&inputs[0])?, both.forward(&inputs[0])?);
    assert!((y - z)?.abs()?.amax(..)?.item()? <= 1e-6);
    // An input that needs a gradient runs the graph.
    let x = inputs[0].clone().into_parameter()?;
    let y: Tensor = fast.forward(&x)?;
    assert_eq!(y.dims()?, [3, 8]);
    Ok(())
}

/// Two products whose scale a run decides, with one weight and one bias.
#[derive(Module, Clone, Debug)]
struct OfRun {
    weight: Tensor,
    bias: Tensor,
}

#[trace]
impl OfRun {
    fn product(&self, x: &Tensor, scale: &Tensor, zero: &Tensor) -> Result<Tensor> {
        let whole = ops::quantize_affine(x, scale, zero, 0, 255, DType::U8, None)?;
        let x = ops::dequantize_affine(&whole, 1.0, zero, None)?;
        let weight = ops::dequantize_affine(&self.weight, 0.01, 0, None)?;
        (ops::matmul(&x, &weight)? * scale)? + &self.bias
    }

    fn forward(&self, x: &Tensor, scale: &Tensor, zero: &Tensor) -> Result<Tensor> {
        let x = ops::softmax(&self.product(x, scale, zero)?, -1)?;
        self.product(&x, scale, zero)
    }
}

#[test]
fn products_of_a_run_have_its_scale_and_a_bias() -> Result<()> {
    fx_nn::manual_seed(1);
    let weight = (Tensor::randn((24, 24))? * 40.0)?.round(0)?;
    let model = OfRun {
        weight: weight.to_dtype(DType::I8)?,
        bias: (nn::Linear::new(24, 24)?.bias).expect("a layer has a bias"),
    };
    let gm = symbolic_trace(&model)?;
    let (x, zero) = (Tensor::randn((3, 24))?, Tensor::full((), 120.0, DType::U8)?);
    let scale = Tensor::full((), 0.02, DType::F32)?;
    let expected: Tensor = gm.forward((&x, &scale, &zero))?;
    for level in Level::available() {
        let backend = Integers::new().level(level);
        let mut fast = gm.compile(Compile::new(backend).like((&x, &scale, &zero)))?;
        let report = fast.meta::<LowerReport>().expect("it was lowered").clone();
        let left: Vec<&str> = report.left.iter().map(|node| &*node.name).collect();
        assert_eq!(
            (&left[..], report.parts.len()),
            (&["softmax"][..], 2),
            "{report}"
        );
        let fallbacks = |fast: &GraphModule| {
            let parts = report.parts.iter();
            let of = parts.map(|part| {
                Ok(fast
                    .submodule_as::<GraphModule>(&part.path)?
                    .compiled()
                    .map_or(1, |code| code.fallbacks().len()))
            });
            of.sum::<Result<usize>>()
        };
        let y: Tensor = fx_nn::no_grad(|| fast.forward((&x, &scale, &zero)))?;
        assert!(
            fx_nn::allclose(&y, &expected, 1e-5, 1e-5)?.close,
            "{level:?}"
        );
        assert_eq!(fallbacks(&fast)?, 0);
        // Other code for other tensors.
        nn::set_requires_grad(&mut fast, false)?;
        let y: Tensor = fast.forward((&x, &scale, &zero))?;
        assert!(
            fx_nn::allclose(&y, &expected, 1e-5, 1e-5)?.close,
            "{level:?}"
        );
        assert_eq!(fallbacks(&fast)?, 0);
    }
    Ok(())
}
