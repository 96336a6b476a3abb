//! Training steps as one graph, run and compiled, beside the same steps by the tape.

use fx_nn::optim::{Adam, AdamW, Optimizer, SGD, clip_grad_norm};
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::trace::TracedFn;
use fx_nn::train::TrainStep;

#[derive(Module, Clone, Debug)]
struct Net {
    conv: nn::Conv2d,
    bn: nn::BatchNorm2d,
    pool: nn::MaxPool2d,
    down: nn::Conv2d,
    ln: nn::LayerNorm,
    fc: nn::Linear,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(&self.bn.forward(&self.conv.forward(x)?)?)?;
        let x = ops::gelu(&self.down.forward(&self.pool.forward(&x)?)?, "none")?;
        self.fc.forward(&self.ln.forward(&x.flatten(1, -1)?)?)
    }
}

fn net() -> Result<Net> {
    fx_nn::manual_seed(3);
    Ok(Net {
        conv: nn::Conv2d::new(1, 6, 3)?.padding(1).bias(false),
        bn: nn::BatchNorm2d::new(6)?,
        pool: nn::MaxPool2d::new(2),
        down: nn::Conv2d::grouped(6, 12, 3, 2)?.stride(2).padding(1),
        ln: nn::LayerNorm::new(12 * 4)?,
        fc: nn::Linear::new(12 * 4, 3)?,
    })
}

fn batch() -> Result<(Tensor, Tensor)> {
    fx_nn::manual_seed(5);
    let y = Tensor::from_vec(vec![0i64, 2, 1, 1], 4)?;
    Ok((Tensor::randn((4, 1, 8, 8))?, y))
}

fn loss() -> TracedFn {
    traced!(|scores: &Tensor, y: &Tensor| cross_entropy(scores, y))
}

fn cross_entropy(scores: &Tensor, y: &Tensor) -> Result<Tensor> {
    ops::cross_entropy(scores, y, None, -100, "mean", 0.0)
}

/// How far two models are apart, and where.
fn apart(a: &impl Module, b: &impl Module) -> Result<(f64, String)> {
    let (a, b) = (a.state_dict(), b.state_dict());
    assert_eq!(a.len(), b.len());
    let mut most = (0.0, String::new());
    for ((path, x), y) in a.iter().zip(b.values()) {
        let x = Tensor::from_value(x.clone())?.to_vec()?;
        let y = Tensor::from_value(y.clone())?.to_vec()?;
        for (x, y) in x.iter().zip(&y) {
            if (x - y).abs() > most.0 {
                most = ((x - y).abs(), path.to_string());
            }
        }
    }
    Ok(most)
}

fn check<O: Optimizer>(
    of: impl Fn(&Net) -> Result<O>,
    clip: Option<f64>,
    is_compiled: bool,
) -> Result<()> {
    let (x, y) = batch()?;
    let (mut model, by_tape) = (net()?, net()?);
    let mut step = TrainStep::new(&model, loss(), of(&model)?)?.compiled(is_compiled);
    if let Some(largest) = clip {
        step = step.clip_grad_norm(largest);
    }
    let mut optimizer = of(&by_tape)?;
    for _ in 0..5 {
        let found = step.run((&x, &y))?.item()?;
        let loss = cross_entropy(&by_tape.forward(&x)?, &y)?;
        let mut gradients = loss.backward()?;
        if let Some(largest) = clip {
            clip_grad_norm(&by_tape, &mut gradients, largest, 2.0)?;
        }
        optimizer.step(&gradients)?;
        assert!(
            (found - loss.item()?).abs() < 1e-5,
            "{found} {}",
            loss.item()?
        );
    }
    assert_eq!(step.report().is_empty(), !is_compiled);
    // The model has its own parameters until they are stored.
    assert_eq!(apart(&model, &net()?)?.0, 0.0);
    step.store(&mut model)?;
    let (most, path) = apart(&model, &by_tape)?;
    assert!(most < 1e-4, "{path} differs by {most}");
    Ok(())
}

#[test]
fn steps_are_those_of_each_optimizer() -> Result<()> {
    for is_compiled in [false, true] {
        check(|m| Ok(SGD::new(m)?.lr(0.1)), None, is_compiled)?;
        let momentum = |m: &Net| {
            let sgd = SGD::new(m)?.lr(0.1).momentum(0.9);
            Ok(sgd.dampening(0.3).weight_decay(0.01))
        };
        check(momentum, None, is_compiled)?;
        let nesterov = |m: &Net| Ok(SGD::new(m)?.lr(0.05).momentum(0.9).nesterov(true));
        check(nesterov, Some(0.5), is_compiled)?;
        // A divisor that is not small: the direction of a gradient near zero is noise.
        let adam = |m: &Net| Ok(Adam::new(m)?.lr(0.01).weight_decay(0.1).eps(1e-4));
        check(adam, None, is_compiled)?;
        let adam_w = |m: &Net| Ok(AdamW::new(m)?.lr(0.01).weight_decay(0.1).eps(1e-4));
        check(adam_w, Some(0.1), is_compiled)?;
    }
    Ok(())
}

#[test]
fn a_step_resumes_from_a_file() -> Result<()> {
    let (x, y) = batch()?;
    let model = net()?;
    let new = || TrainStep::new(&model, loss(), AdamW::new(&model)?.lr(0.01));
    let mut through = new()?;
    let file =
        std::env::temp_dir().join(format!("fx_train_step_{}.safetensors", std::process::id()));
    let mut losses = Vec::new();
    for at in 0..6 {
        if at == 3 {
            through.set_learning_rate(0.02);
            through.save(&file)?;
        }
        losses.push(through.run((&x, &y))?.item()?);
    }
    let mut resumed = new()?;
    resumed.load(&file)?;
    assert_eq!((resumed.steps(), resumed.learning_rate()), (3, 0.02));
    for expected in &losses[3..] {
        assert_eq!(resumed.run((&x, &y))?.item()?, *expected);
    }
    let of_other = nn::Linear::new(2, 2)?;
    let squares = traced!(|x: &Tensor| x.square()?.mean(..));
    let mut other = TrainStep::new(&of_other, squares, SGD::new(&of_other)?)?;
    let error = other.load(&file).unwrap_err();
    assert!(
        error.to_string().contains("it is of another step"),
        "{error}"
    );
    std::fs::remove_file(&file).map_err(Error::other)
}

#[test]
fn parts_of_a_batch_give_the_gradient_of_the_whole() -> Result<()> {
    let (x, y) = (Tensor::randn((8, 3))?, Tensor::randn((8, 2))?);
    let squares = || traced!(|found: &Tensor, y: &Tensor| (found - y)?.square()?.mean(..));
    let model = nn::Linear::new(3, 2)?;
    let new = || TrainStep::new(&model, squares(), SGD::new(&model)?.lr(0.1));
    let (mut whole, mut parts) = (new()?, new()?.accumulate(4));
    for _ in 0..3 {
        let (a, b) = (whole.run((&x, &y))?.item()?, parts.run((&x, &y))?.item()?);
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    let error = new()?.accumulate(3).run((&x, &y)).unwrap_err();
    assert!(
        error.to_string().contains("cannot be cut into 3"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_step_is_a_graph_that_writes_nothing_and_is_saved() -> Result<()> {
    let model = net()?;
    let step = TrainStep::new(&model, loss(), AdamW::new(&model)?)?;
    let gm = step.graph_module(&[spec![4, 1, 8, 8; F32], spec![4; I64]])?;
    let writes = gm.graph().nodes().filter_map(|node| node.function());
    let writes: Vec<_> = writes.filter(|f| !f.def().effects.is_pure()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    let file = std::env::temp_dir().join(format!("fx_step_graph_{}.fx", std::process::id()));
    gm.save(&file)?;
    let loaded = GraphModule::load(&file)?;
    assert_eq!(loaded.graph().len(), gm.graph().len());
    std::fs::remove_file(&file).map_err(Error::other)
}

#[test]
fn threads_do_not_change_a_bit() -> Result<()> {
    let (x, y) = batch()?;
    let model = net()?;
    let mut first: Option<Vec<Vec<f64>>> = None;
    for threads in [1, 2, 4, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let state = pool.map_err(Error::other)?.install(|| {
            let mut step = TrainStep::new(&model, loss(), AdamW::new(&model)?.lr(0.01))?;
            for _ in 0..8 {
                step.run((&x, &y))?;
            }
            let state = step.state_dict()?;
            state
                .values()
                .map(Tensor::to_vec)
                .collect::<Result<Vec<_>>>()
        })?;
        assert_eq!(*first.get_or_insert_with(|| state.clone()), state);
    }
    Ok(())
}

/// The scores of many classes are one array: their logarithms, and the gradient, are written over it.
#[test]
fn a_loss_by_classes_keeps_one_array_of_scores() -> Result<()> {
    let (examples, classes) = (64, 5000);
    let model = nn::Linear::new(4, classes)?;
    let squashed = traced!(|scores: &Tensor, y: &Tensor| cross_entropy(&scores.tanh()?, y));
    let x = Tensor::randn((examples, 4))?;
    let y = Tensor::from_vec((0..examples as i64).collect(), examples)?;
    for (loss, arrays) in [(loss(), 1), (squashed, 2)] {
        let mut step = TrainStep::new(&model, loss, SGD::new(&model)?)?;
        step.run((&x, &y))?;
        step.run((&x, &y))?;
        assert!(!step.report().is_empty());
        let scores = (examples * classes * 4) as u64;
        let found = step.planned_bytes();
        // The parameters and their gradients are less than half of an array of scores.
        let bar = arrays * scores + scores / 2;
        assert!(found < bar, "{found} bytes, of which an array is {scores}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_a_step_says_so() -> Result<()> {
    struct Own;
    impl Optimizer for Own {
        fn step(&mut self, _: &fx_nn::tensor::Gradients) -> Result<()> {
            Ok(())
        }
        fn learning_rate(&self) -> f64 {
            0.1
        }
        fn set_learning_rate(&mut self, _: f64) {}
        fn state_dict(&self) -> Result<fx_nn::IndexMap<String, Tensor>> {
            Ok(Default::default())
        }
        fn load_state_dict(&mut self, _: &fx_nn::IndexMap<String, Tensor>) -> Result<()> {
            Ok(())
        }
    }
    let mut model = net()?;
    let error = TrainStep::new(&model, loss(), Own)
        .err()
        .map(|e| e.to_string());
    assert!(error.is_some_and(|text| text.contains("Optimizer::update_rule")));
    let mut step = TrainStep::new(&model, loss(), SGD::new(&model)?)?;
    let (x, y) = batch()?;
    let error = step.run(&x).unwrap_err().to_string();
    assert!(error.contains("takes x, y"), "{error}");
    let error = step.run((&x.i(0)?, &y)).unwrap_err().to_string();
    assert!(!error.is_empty());
    assert_eq!(step.steps(), 0);
    // A step that fails in the middle leaves what it carries as it was.
    let classes = Tensor::from_vec(vec![0i64, 2, 1, 7], 4)?;
    let mut other = TrainStep::new(&model, loss(), SGD::new(&model)?)?;
    for run in [&mut step, &mut other] {
        run.run((&x, &y))?;
    }
    let error = step.run((&x, &classes)).unwrap_err();
    assert!(error.node().is_some(), "{error}");
    assert_eq!(step.steps(), 1);
    for _ in 0..2 {
        let (a, b) = (step.run((&x, &y))?.item()?, other.run((&x, &y))?.item()?);
        assert_eq!(a, b);
    }
    let optimizer = SGD::new(&model)?;
    nn::set_requires_grad(&mut model, false)?;
    let error = TrainStep::new(&model, loss(), optimizer)
        .err()
        .map(|e| e.to_string());
    assert!(error.is_some_and(|text| text.contains("nn::set_requires_grad")));
    Ok(())
}
