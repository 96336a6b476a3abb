//! Initial values, gradients, optimizers and schedules: PyTorch's numbers.

use fx_nn::nn::init::{self, FanMode, Nonlinearity};
use fx_nn::optim::{
    Adam, AdamW, CosineAnnealingLR, CosineAnnealingWarmRestarts, LinearLR, MultiStepLR, OneCycleLR,
    Optimizer, PolynomialLR, ReduceLROnPlateau, SGD, Schedule, Scheduler, SequentialLR,
    clip_grad_norm, clip_grad_value,
};
use fx_nn::prelude::*;

fn moments(tensor: &Tensor) -> Result<(f64, f64)> {
    let values = tensor.to_vec()?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64;
    Ok((mean, variance.sqrt()))
}

#[test]
fn initial_values_have_pytorchs_spread() -> Result<()> {
    fx_nn::manual_seed(3);
    let mut w = Tensor::zeros((64, 32, 3, 3))?;
    let near = |found: f64, expected: f64| (found - expected).abs() < 0.03 * expected;
    let (inputs, outputs) = (32.0 * 9.0, 64.0 * 9.0);
    let mut spread = |fill: &dyn Fn(&mut Tensor) -> Result<()>| -> Result<f64> {
        fill(&mut w)?;
        let (mean, std) = moments(&w)?;
        assert!(mean.abs() < 0.05 * std.max(0.1), "{mean}");
        Ok(std)
    };
    let relu = Nonlinearity::ReLU;
    let out = spread(&|w| init::kaiming_normal(w, FanMode::FanOut, relu))?;
    assert!(near(out, (2.0f64 / outputs).sqrt()), "{out}");
    let uniform =
        spread(&|w| init::kaiming_uniform(w, FanMode::FanIn, Nonlinearity::LeakyReLU(2.0)))?;
    assert!(near(uniform, (0.4f64 / inputs).sqrt()), "{uniform}");
    let xavier = spread(&|w| init::xavier_uniform(w, 2.0))?;
    assert!(
        near(xavier, 2.0 * (2.0f64 / (inputs + outputs)).sqrt()),
        "{xavier}"
    );
    let xavier = spread(&|w| init::xavier_normal(w, 1.0))?;
    assert!(
        near(xavier, (2.0f64 / (inputs + outputs)).sqrt()),
        "{xavier}"
    );
    let normal = spread(&|w| init::normal(w, 0.0, 0.02))?;
    assert!(near(normal, 0.02), "{normal}");

    init::trunc_normal(&mut w, 0.5, 1.0, 0.0, 1.0)?;
    assert!(w.to_vec()?.iter().all(|x| (0.0..=1.0).contains(x)));
    assert!(init::trunc_normal(&mut w, 9.0, 1.0, 0.0, 1.0).is_err());
    init::uniform(&mut w, 2.0, 3.0)?;
    assert!(w.to_vec()?.iter().all(|x| (2.0..3.0).contains(x)));
    Ok(())
}

#[test]
fn structured_initial_values_are_pytorchs() -> Result<()> {
    let mut eye = Tensor::ones((2, 3))?;
    init::eye(&mut eye)?;
    assert_eq!(eye.to_vec()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    // torch.nn.init.dirac_(torch.empty(4, 2, 3), groups=2)
    let mut dirac = Tensor::ones((4, 2, 3))?;
    init::dirac(&mut dirac, 2)?;
    let ones: Vec<usize> = (0..24)
        .filter(|i| dirac.to_vec().is_ok_and(|v| v[*i] == 1.0))
        .collect();
    assert_eq!(ones, [1, 10, 13, 22]);
    let x = Tensor::randn((1, 4, 5))?;
    let conv = ops::conv1d(&x, &dirac, None, 1, 1, 1, 2)?;
    assert_eq!(conv.to_vec()?, x.to_vec()?);
    let mut sparse = Tensor::zeros((10, 4))?;
    init::sparse(&mut sparse, 0.25, 1.0)?;
    for column in 0..4 {
        let zeros = sparse
            .i((.., column))?
            .to_vec()?
            .iter()
            .filter(|x| **x == 0.0)
            .count();
        assert_eq!(zeros, 3);
    }
    assert!(init::eye(&mut Tensor::ones(3)?).is_err());
    assert!(init::xavier_normal(&mut Tensor::ones(3)?, 1.0).is_err());
    // Overwriting keeps the tensor: a parameter that the module and a trace share.
    let mut layer = nn::Linear::new(2, 2)?;
    let gm = symbolic_trace(&layer)?;
    init::eye(&mut layer.weight)?;
    if let Some(bias) = &mut layer.bias {
        init::constant(bias, 3.0)?;
    }
    assert_eq!(
        gm.forward::<Tensor>(&Tensor::ones((1, 2))?)?.to_vec()?,
        [4.0, 4.0]
    );
    Ok(())
}

#[derive(Module)]
struct Point {
    a: Tensor,
    b: Tensor,
}

fn point() -> Result<Point> {
    Ok(Point {
        a: Tensor::from_vec(vec![1.0f64, -2.0], 2)?.into_parameter()?,
        b: Tensor::from_vec(vec![0.5f64], 1)?.into_parameter()?,
    })
}

fn loss(point: &Point) -> Result<Tensor> {
    let squares = (point.a.square()? * Tensor::from_vec(vec![1.0f64, 3.0], 2)?)?.sum(..)?;
    squares + (&point.b * 4.0)?.sum(..)?
}

fn run(optimizer: &mut impl Optimizer, point: &Point, steps: usize) -> Result<Vec<f64>> {
    for _ in 0..steps {
        optimizer.step(&loss(point)?.backward()?)?;
    }
    Ok([point.a.to_vec()?, point.b.to_vec()?].concat())
}

#[track_caller]
fn same(found: &[f64], expected: &[f64]) {
    for (x, y) in found.iter().zip(expected) {
        assert!(
            (x - y).abs() < 1e-12 * y.abs().max(1.0),
            "{found:?} {expected:?}"
        );
    }
}

include!("training/recorded.rs");

#[test]
fn optimizers_step_as_pytorchs_do() -> Result<()> {
    fn check<O: Optimizer>(make: impl FnOnce(&Point) -> Result<O>, expected: &[f64]) -> Result<()> {
        let point = point()?;
        same(&run(&mut make(&point)?, &point, 5)?, expected);
        Ok(())
    }
    check(|p| Ok(SGD::new(p)?.lr(0.05)), &SGD_PLAIN)?;
    let momentum = |p: &Point| Ok::<_, Error>(SGD::new(p)?.lr(0.05).momentum(0.9));
    check(
        |p| Ok(momentum(p)?.dampening(0.3).weight_decay(0.1)),
        &SGD_MOMENTUM,
    )?;
    check(|p| Ok(momentum(p)?.nesterov(true)), &SGD_NESTEROV)?;
    let adam = |p: &Point| Ok::<_, Error>(Adam::new(p)?.lr(0.1).betas(0.8, 0.95));
    check(|p| Ok(adam(p)?.eps(1e-6).weight_decay(0.1)), &ADAM)?;
    check(|p| Ok(AdamW::new(p)?.lr(0.1)), &ADAMW)?;
    let refused = SGD::new(&point()?)?
        .nesterov(true)
        .step(&loss(&point()?)?.backward()?);
    assert!(refused.is_err());
    let mut frozen = point()?;
    nn::set_requires_grad(&mut frozen, false)?;
    assert!(SGD::new(&frozen).is_err());
    Ok(())
}

#[test]
fn a_run_goes_on_from_what_was_saved() -> Result<()> {
    let whole = point()?;
    let expected = run(&mut AdamW::new(&whole)?.lr(0.1), &whole, 5)?;

    let begun = point()?;
    let mut optimizer = AdamW::new(&begun)?.lr(0.1);
    run(&mut optimizer, &begun, 2)?;
    let path =
        std::env::temp_dir().join(format!("fx_optimizer_{}.safetensors", std::process::id()));
    optimizer.save(&path)?;
    let mut again = AdamW::new(&begun)?.lr(0.1);
    again.load(&path)?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    same(&run(&mut again, &begun, 3)?, &expected);

    let mut state = again.state_dict()?;
    let names: Vec<&String> = state.keys().collect();
    assert_eq!(
        names,
        [
            "a.step",
            "a.exp_avg",
            "a.exp_avg_sq",
            "b.step",
            "b.exp_avg",
            "b.exp_avg_sq"
        ]
    );
    state.shift_remove("b.exp_avg");
    state.insert("c.step".to_string(), Tensor::from_vec(vec![1i64], ())?);
    let problem = again.load_state_dict(&state).unwrap_err().to_string();
    assert!(problem.contains("`b.exp_avg` is missing"), "{problem}");
    state.insert("b.exp_avg".to_string(), Tensor::zeros(3)?);
    let problem = again.load_state_dict(&state).unwrap_err().to_string();
    assert!(
        problem.contains("`b.exp_avg` has shape [3], and the parameter [1]"),
        "{problem}"
    );
    Ok(())
}

#[test]
fn gradients_are_clipped_as_pytorch_does() -> Result<()> {
    let p = point()?;
    let mut gradients = loss(&p)?.backward()?;
    // Gradients 2, -12 and 4: a norm of sqrt(164).
    let norm = clip_grad_norm(&p, &mut gradients, 1.0, 2.0)?;
    same(&[norm], &[164f64.sqrt()]);
    let of = |g: &fx_nn::Gradients, t: &Tensor| -> Result<Vec<f64>> {
        g.get(t)?.ok_or_else(|| Error::msg("it has one"))?.to_vec()
    };
    let scale = 1.0 / (164f64.sqrt() + 1e-6);
    same(&of(&gradients, &p.a)?, &[2.0 * scale, -12.0 * scale]);
    let mut gradients = loss(&p)?.backward()?;
    assert_eq!(
        clip_grad_norm(&p, &mut gradients, 6.0, f64::INFINITY)?,
        12.0
    );
    same(&of(&gradients, &p.b)?, &[4.0 * 6.0 / (12.0 + 1e-6)]);
    let mut gradients = loss(&p)?.backward()?;
    clip_grad_value(&p, &mut gradients, 3.0)?;
    assert_eq!(of(&gradients, &p.a)?, [2.0, -3.0]);
    assert_eq!(loss(&p)?.grad(&[&p.b])?[0].to_vec()?, [4.0]);
    assert!(loss(&p)?.grad(&[&Tensor::ones(1)?]).is_err());
    Ok(())
}

#[test]
fn schedules_give_pytorchs_rates() -> Result<()> {
    let rates = |schedule: &dyn Schedule, base: f64| -> Vec<f64> {
        (0..12).map(|step| base * schedule.factor(step)).collect()
    };
    same(&rates(&LinearLR::new(0.25, 1.0, 5), 0.1), &LINEAR);
    same(&rates(&MultiStepLR::new([2, 7], 0.1), 0.1), &MULTI_STEP);
    same(&rates(&CosineAnnealingLR::new(8, 0.1), 0.1), &COSINE);
    same(
        &rates(&CosineAnnealingWarmRestarts::new(3, 2, 0.0), 0.1),
        &RESTARTS,
    );
    same(&rates(&OneCycleLR::new(12), 0.1), &ONE_CYCLE);
    same(&rates(&PolynomialLR::new(8, 2.0), 0.1), &POLYNOMIAL);
    let sequential =
        SequentialLR::new(LinearLR::new(0.1, 1.0, 4)).then(4, CosineAnnealingLR::new(8, 0.0));
    same(&rates(&sequential, 0.1), &SEQUENTIAL);

    let mut optimizer = SGD::new(&point()?)?.lr(0.1);
    let mut scheduler = Scheduler::new(OneCycleLR::new(12), &mut optimizer);
    same(&[optimizer.learning_rate()], &ONE_CYCLE[..1]);
    (0..5).for_each(|_| scheduler.step(&mut optimizer));
    let mut optimizer = SGD::new(&point()?)?.lr(0.1);
    let resumed = Scheduler::new(OneCycleLR::new(12), &mut optimizer);
    let resumed = resumed.resume_at(scheduler.last_step(), &mut optimizer);
    same(&[optimizer.learning_rate()], &ONE_CYCLE[5..6]);
    assert_eq!(resumed.last_step(), 5);

    let mut optimizer = SGD::new(&point()?)?.lr(0.1);
    let mut plateau = ReduceLROnPlateau::new(0.5, 2).min_lr(0.03);
    let mut found = Vec::new();
    for measure in [5.0, 4.0, 4.1, 4.0, 4.2, 4.1, 4.0, 4.0, 4.0, 4.0, 1.0, 2.0] {
        plateau.step(measure, &mut optimizer)?;
        found.push(optimizer.learning_rate());
    }
    same(&found, &PLATEAU);
    assert!(plateau.step(f64::NAN, &mut optimizer).is_err());
    Ok(())
}

#[test]
fn nothing_is_remembered_where_gradients_are_not_wanted() -> Result<()> {
    let layer = nn::Linear::new(4, 4)?;
    let x = Tensor::ones((2, 4))?;
    let gm = symbolic_trace(&layer)?;
    let expected = layer.forward(&x)?;
    for y in [
        fx_nn::no_grad(|| layer.forward(&x))?,
        fx_nn::no_grad(|| gm.forward::<Tensor>(&x))?,
        fx_nn::no_grad(|| fx_nn::no_grad(|| layer.forward(&x)))?,
    ] {
        assert!(!y.requires_grad()?);
        assert_eq!(y.to_vec()?, expected.to_vec()?);
    }
    let unwound = std::panic::catch_unwind(|| fx_nn::no_grad(|| panic!("inside")));
    assert!(unwound.is_err() && layer.forward(&x)?.requires_grad()?);
    Ok(())
}

#[test]
fn gradients_of_what_is_flat_are_zeros() -> Result<()> {
    let x = Tensor::from_vec(vec![7.0f64, -3.0], 2)?.into_parameter()?;
    // Between the parameter and the quotient is another step.
    let y = (&x * 2.0)?;
    let whole = ops::floor_divide(&y, &y)?;
    let gradients = (whole + &y)?.sum(..)?.grad(&[&x])?;
    assert_eq!(gradients[0].to_vec()?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn a_step_takes_the_value_at_zero_with_its_gradient() -> Result<()> {
    let x = Tensor::from_vec(vec![0.0f64, 2.0, -1.0], 3)?.into_parameter()?;
    let values = Tensor::from_vec(vec![0.5f64, 0.5, 0.5], 3)?.into_parameter()?;
    let steps = ops::heaviside(&x, &values)?;
    assert_eq!(steps.to_vec()?, [0.5, 1.0, 0.0]);
    let gradients = steps.sum(..)?.grad(&[&x, &values])?;
    assert_eq!(gradients[0].to_vec()?, [0.0; 3]);
    assert_eq!(gradients[1].to_vec()?, [1.0, 0.0, 0.0]);
    Ok(())
}
