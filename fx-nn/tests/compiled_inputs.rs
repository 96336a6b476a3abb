//! Compiled modules on inputs that are odd, wrong or changed, and from several threads: the numbers of
//! the source, or its error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_nn::cpu::Cpu;
use fx_nn::no_grad;
use fx_nn::passes::backend::{Compile, LowerReport, StepReport};
use fx_nn::prelude::*;

/// Convolutions with and without groups, pools, norms and a linear layer.
#[derive(Clone, Module)]
struct Net {
    first: nn::Conv2d,
    norm: nn::BatchNorm2d,
    depthwise: nn::Conv2d,
    last: nn::Conv2d,
    head: nn::Linear,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.norm.forward(&self.first.forward(x)?)?.relu()?;
        let h = (self.depthwise.forward(&h)? + &h)?;
        let h = self.last.forward(&h)?.silu()?;
        self.head.forward(&h.mean([2, 3])?)
    }
}

fn net() -> Result<(GraphModule, GraphModule)> {
    fx_nn::manual_seed(0);
    let mut net = Net {
        first: nn::Conv2d::new(3, 20, 3)?.stride(2).padding(1),
        norm: nn::BatchNorm2d::new(20)?,
        depthwise: nn::Conv2d::grouped(20, 20, 3, 20)?.padding(1),
        last: nn::Conv2d::new(20, 17, 1)?,
        head: nn::Linear::new(17, 5)?,
    };
    net.eval();
    nn::set_requires_grad(&mut net, false)?;
    let gm = symbolic_trace(&net)?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&Tensor::zeros((1, 3, 8, 8))?))?;
    Ok((gm, fast))
}

fn numbers(y: &Tensor) -> Result<Vec<f64>> {
    y.to_vec()
}

/// Both give the same numbers, NaN and infinities included.
fn same(gm: &GraphModule, fast: &GraphModule, x: &Tensor) -> Result<()> {
    let (expected, found): (Tensor, Tensor) = (gm.forward(x)?, fast.forward(x)?);
    assert_eq!(found.dims()?, expected.dims()?);
    for (f, e) in numbers(&found)?.iter().zip(numbers(&expected)?) {
        let is_same =
            *f == e || (f.is_nan() && e.is_nan()) || (f - e).abs() <= 1e-5 * e.abs().max(1.0);
        assert!(is_same, "{f}, not {e}, for {:?}", x.dims()?);
    }
    Ok(())
}

#[test]
fn odd_sizes_and_empty_batches() -> Result<()> {
    let (gm, fast) = net()?;
    for (batch, height, width) in [
        (1, 1, 1),
        (2, 1, 7),
        (1, 5, 3),
        (3, 16, 17),
        (1, 33, 31),
        (0, 8, 8),
        (1, 2, 100),
    ] {
        same(&gm, &fast, &Tensor::randn((batch, 3, height, width))?)?;
    }
    Ok(())
}

#[test]
fn special_numbers() -> Result<()> {
    let (gm, fast) = net()?;
    for special in [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MIN_POSITIVE / 2.0,
        f32::MAX,
    ] {
        let mut x = vec![0.5; 3 * 9 * 9];
        x[40] = special;
        same(&gm, &fast, &Tensor::from_vec(x, (1, 3, 9, 9))?)?;
    }
    let chain = symbolic_trace(traced!(|x: Tensor| {
        let h = x.exp()?;
        (((h + 1.0)? * 0.5)?.sqrt()? - &x)?.relu()
    }))?;
    let x = Tensor::from_vec(
        vec![
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-40,
            -1e-40,
            0.0,
            -0.0,
            3e38,
        ],
        (8,),
    )?;
    let fast = chain.compile(Compile::new(Cpu::new()).like(&x))?;
    same(&chain, &fast, &x)
}

#[test]
fn wrong_inputs_are_the_errors_of_the_source() -> Result<()> {
    let (gm, fast) = net()?;
    let inputs = [
        Tensor::zeros((1, 4, 8, 8))?,
        Tensor::zeros((3, 8))?,
        Tensor::zeros((1, 3, 8, 8, 1))?,
    ];
    for x in inputs {
        let (expected, found) = (gm.forward::<Tensor>(&x), fast.forward::<Tensor>(&x));
        let (Err(expected), Err(found)) = (expected, found) else {
            panic!("{:?} is not an input", x.dims()?);
        };
        let last = |text: String| text.lines().last().unwrap_or_default().to_string();
        assert_eq!(last(found.to_string()), last(expected.to_string()));
    }
    // In other elements the source runs, and gives what it gives.
    let x = Tensor::zeros((1, 3, 8, 8))?.to_dtype(DType::F64)?;
    assert!(gm.forward::<Tensor>(&x).is_err() && fast.forward::<Tensor>(&x).is_err());
    Ok(())
}

#[test]
fn results_that_do_not_fit_into_memory() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor, y: Tensor| ((x + y)? * 2.0)?.relu()))?;
    let (x, y) = (Tensor::zeros((4, 1))?, Tensor::zeros((1, 4))?);
    let fast = gm.compile(Compile::new(Cpu::new()).like((&x, &y)))?;
    // Nothing is allocated for these.
    let x = Tensor::zeros((1, 1))?.expand((1 << 30, 1))?;
    let y = Tensor::zeros((1, 1))?.expand((1, 1 << 30))?;
    let error = fast
        .forward::<Tensor>((&x, &y))
        .expect_err("there is not so much memory");
    assert!(error.to_string().contains("memory"), "{error}");
    Ok(())
}

#[test]
fn threads_share_a_compiled_module() -> Result<()> {
    let (gm, fast) = net()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..5)
            .map(|i| {
                let (gm, fast) = (&gm, &fast);
                scope.spawn(move || -> Result<()> {
                    for round in 0..8 {
                        same(
                            gm,
                            fast,
                            &Tensor::randn((1 + round % 2, 3, 8 + i, 8 + round))?,
                        )?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

/// Twelve layers of 512 features, so that the threads of a run stay awake.
fn deep() -> Result<GraphModule> {
    fx_nn::manual_seed(8);
    let mut layers = nn::Sequential::new();
    for _ in 0..12 {
        layers = layers.push(nn::Linear::new(512, 512)?);
        layers = layers.push(nn::SiLU::default());
    }
    symbolic_trace(&layers)
}

/// Runs that wait for each other's threads end, with the same bits: of threads of a pool, of others, and of a run within the
/// work of another.
#[test]
fn deep_runs_share_the_threads_of_a_pool() -> Result<()> {
    let gm = deep()?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let x = Tensor::randn((1, 512))?;
    let bits = || -> Result<Vec<u64>> {
        let y: Tensor = fx_nn::no_grad(|| fast.forward(&x))?;
        Ok(numbers(&y)?.iter().map(|y| y.to_bits()).collect())
    };
    let expected = bits()?;
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(Error::other)?;
        let many = || {
            (0..8).try_for_each(|_| {
                (bits()? == expected)
                    .then_some(())
                    .ok_or(Error::msg("other bits"))
            })
        };
        std::thread::scope(|scope| {
            let outside: Vec<_> = (0..3).map(|_| scope.spawn(|| pool.install(many))).collect();
            let mut within = Vec::new();
            within.resize_with(6, || Ok(()));
            pool.scope(|scope| {
                for found in &mut within {
                    scope.spawn(|_| *found = many());
                }
            });
            let outside = outside
                .into_iter()
                .map(|thread| thread.join().expect("no thread panics"));
            outside.chain(within).collect::<Result<()>>()
        })?;
    }
    Ok(())
}

/// Fails loudly on what it does not like.
#[wrap]
fn particular(x: &Tensor) -> Result<Tensor> {
    let first = numbers(x)?[0];
    assert!(first >= 0.0, "the first number is {first}");
    Ok(x.clone())
}

#[test]
fn a_panic_in_a_step_leaves_the_module_usable() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Tensor| {
        let h = particular(&(x * 2.0)?.tanh()?)?;
        (h.exp()? + 1.0)?.relu()
    }))?;
    let x = Tensor::ones((4, 4))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    same(&gm, &fast, &x)?;
    let wrong = Tensor::full((4, 4), -1.0, DType::F32)?;
    let run = || no_grad(|| fast.forward::<Tensor>(&wrong));
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    same(&gm, &fast, &x)
}

/// The steps of the one part that was compiled.
fn steps_of(fast: &GraphModule) -> Result<Vec<StepReport>> {
    let report = fast
        .meta::<LowerReport>()
        .ok_or_else(|| Error::msg("it is compiled"))?;
    let code = fast
        .submodule_as::<GraphModule>(&report.parts[0].path)?
        .compiled();
    Ok(code.map(|code| code.steps()).unwrap_or_default())
}

#[test]
fn what_follows_a_call_without_a_kernel_is_compiled_too() -> Result<()> {
    let (first, second) = (
        nn::Conv2d::new(3, 8, 3)?.padding(1),
        nn::Conv2d::new(8, 4, 1)?,
    );
    let gm = symbolic_trace(traced!(move |x: &Tensor| {
        // No kernel flips, and what is flipped are floats again.
        let y = first.forward(x)?.relu()?.flip([-1])?;
        second.forward(&y)?.relu()
    }))?;
    let x = Tensor::randn((1, 3, 6, 5))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    let steps = steps_of(&fast)?;
    let named = |part: &str| steps.iter().filter(|step| step.name.contains(part)).count();
    assert_eq!(
        (named("convolution"), named("floats of a call")),
        (2, 1),
        "{steps:?}"
    );
    assert!(fx_nn::allclose(&fast.forward(&x)?, &gm.forward(&x)?, 1e-5, 1e-6)?.close);
    // Of other types, the call gives others.
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.flip([-1])?.sigmoid()? * 2.0))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    // Code rounds to 16 bits once, the graph after each call.
    let half = 2f64.powi(-10);
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-6), (DType::F16, half)] {
        let x = x.to_dtype(dtype)?;
        let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
        assert_eq!(found.dtype()?, dtype);
        assert!(fx_nn::allclose(&found, &expected, tolerance, tolerance / 10.0)?.close);
    }
    Ok(())
}

#[test]
fn a_product_with_its_own_sigmoid_is_part_of_the_convolution() -> Result<()> {
    let (first, second) = (nn::Conv2d::new(3, 8, 3)?, nn::Conv2d::new(8, 4, 1)?);
    let gm = symbolic_trace(traced!(move |x: &Tensor| {
        let y = first.forward(x)?;
        let y = second.forward(&(&y * y.sigmoid()?)?)?;
        y.sigmoid()? * &y
    }))?;
    let x = Tensor::randn((1, 3, 6, 5))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    let steps = steps_of(&fast)?;
    let gated = steps.iter().filter(|step| step.name.contains("Silu"));
    assert_eq!(gated.count(), 2, "{steps:?}");
    assert!(fx_nn::allclose(&fast.forward(&x)?, &gm.forward(&x)?, 1e-5, 1e-6)?.close);
    Ok(())
}
