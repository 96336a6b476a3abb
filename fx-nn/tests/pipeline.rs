//! Pipelines of tensors: the same numbers and gradients as one thread, and what is refused.

use fx_nn::Gradients;
use fx_nn::passes::pipeline::{
    Pipeline, PipelineOptions, PipelineRunner, Schedule, multiply_adds, pipeline,
};
use fx_nn::prelude::*;

/// The output layer has the weights of the embedding, so that the first and the last stage share
/// them; the last stage needs `scale`, an input of the whole model.
#[derive(Module, Clone, Debug)]
struct Tied {
    words: nn::Embedding,
    first: nn::Linear,
    norm: nn::LayerNorm,
    second: nn::Linear,
}

impl Tied {
    fn new() -> Result<Self> {
        Ok(Tied {
            words: nn::Embedding::new(11, 6)?,
            first: nn::Linear::new(6, 12)?,
            norm: nn::LayerNorm::new(6)?,
            second: nn::Linear::new(6, 6)?,
        })
    }
}

#[trace]
impl Tied {
    fn forward(&self, words: &Tensor, scale: &Tensor) -> Result<(Tensor, Tensor)> {
        let x = self.words.forward(words)?;
        // The parts of the tuple are taken in a later stage.
        let halves = self.first.forward(&x)?.split(6, -1)?;
        let [a, b] = halves.unpack()?;
        let y = self.norm.forward(&(a * ops::gelu(&b, "none")?)?)?;
        let y = (x + self.second.forward(&y)?)?;
        let scores = ops::linear(&y, &self.words.weight, None)?;
        Ok(((&scores * scale)?, y))
    }
}

fn rows(x: &Tensor, from: usize, to: usize) -> Result<Tensor> {
    ops::narrow(x, 0, from as i64, (to - from) as i64)
}

fn loss((scores, y): (Tensor, Tensor), target: &Tensor) -> Result<Tensor> {
    let scores = scores.flatten(0, 1)?;
    let of_scores = ops::cross_entropy(&scores, &target.flatten(0, 1)?, None, -100, "sum", 0.0)?;
    of_scores + y.square()?.sum(..)?
}

struct Batch {
    gm: GraphModule,
    words: Tensor,
    scale: Tensor,
    target: Tensor,
}

fn batch() -> Result<Batch> {
    fx_nn::manual_seed(3);
    let gm = symbolic_trace(&Tied::new()?)?;
    let whole = |n: usize| -> Result<Vec<i64>> {
        Ok(Tensor::rand(n)?
            .to_vec()?
            .iter()
            .map(|x| (x * 11.0) as i64)
            .collect())
    };
    Ok(Batch {
        gm,
        words: Tensor::from_vec(whole(7 * 4)?, (7, 4))?,
        scale: Tensor::rand((7, 1, 1))?,
        target: Tensor::from_vec(whole(7 * 4)?, (7, 4))?,
    })
}

#[test]
fn numbers_are_those_of_one_thread() -> Result<()> {
    let Batch {
        gm,
        words,
        scale,
        target,
    } = batch()?;
    // 7 rows in 3 micro-batches.
    let ranges = [(0, 3), (3, 5), (5, 7)];
    let mut scores = Vec::new();
    let mut losses = Vec::new();
    let mut expected: Option<Gradients> = None;
    for (from, to) in ranges {
        let args = (rows(&words, from, to)?, rows(&scale, from, to)?);
        let result: (Tensor, Tensor) = gm.forward(args)?;
        scores.push(result.0.clone());
        let one = loss(result, &rows(&target, from, to)?)?;
        losses.push(one.item()?);
        let one = one.backward()?;
        match &mut expected {
            Some(sum) => sum.accumulate(&one)?,
            none => *none = Some(one),
        }
    }
    let expected = expected.ok_or_else(|| Error::msg("there are micro-batches"))?;
    let scores = ops::cat(&scores, 0)?.to_vec()?;
    for stages in [1, 2, 3, 5, 9] {
        let pipeline = pipeline(&gm, stages)?;
        let runner = PipelineRunner::new(&pipeline, 3);
        let (found, y): (Tensor, Tensor) = runner.forward((&words, &scale))?;
        assert_eq!(found.to_vec()?, scores);
        assert_eq!(y.dims()?, [7, 4, 6]);
        assert!(!y.requires_grad()?);
        for schedule in [Schedule::GPipe, Schedule::OneForwardOneBackward] {
            let step = runner.step(schedule, (&words, &scale), &target, loss)?;
            let found: Vec<Tensor> = step.outputs.into_iter().map(|(scores, _)| scores).collect();
            assert_eq!(ops::cat(&found, 0)?.to_vec()?, scores);
            let found: Result<Vec<f64>> = step.losses.iter().map(Tensor::item).collect();
            assert_eq!(found?, losses);
            for parameter in nn::variables(&gm)? {
                let parameter = Tensor::from(parameter.as_tensor().clone());
                let of = |gradients: &Gradients| {
                    gradients.get(&parameter)?.map(|g| g.to_vec()).transpose()
                };
                let (found, expected) = (of(&step.gradients)?, of(&expected)?);
                let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
                // Stages share the words: of those the sum has another order.
                let at_most = if found.len() == 11 * 6 { 1e-4 } else { 0.0 };
                assert_eq!(found.len(), expected.len());
                let mut pairs = found.iter().zip(&expected);
                let is_equal = pairs.all(|(a, b)| (a - b).abs() <= at_most);
                assert!(
                    !found.is_empty() && is_equal,
                    "{stages} stages, {schedule:?}"
                );
            }
        }
    }
    Ok(())
}

/// Three calls use one value, in three stages: the order of the sum is another one.
#[test]
fn a_value_that_many_stages_use_has_the_sum_of_their_gradients() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, w: &Tensor| {
        let y = (x * w)?;
        ((y.exp()? * y.sin()?)? * &y)? + (&y * 3.0)?
    }))?;
    let pipeline = pipeline(&gm, 5)?;
    let w = Tensor::rand((1, 3))?.into_parameter()?;
    let x = Tensor::rand((4, 3))?;
    let loss = |y: Tensor, _: &Tensor| y.sum(..);
    let runner = PipelineRunner::new(&pipeline, 2).replicate(&["w"]);
    let step = runner.step(Schedule::OneForwardOneBackward, (&x, &w), &x, loss)?;
    let expected = gm.forward::<Tensor>((&x, &w))?.sum(..)?.grad(&[&w])?;
    let found = step.gradients.get(&w)?;
    let found = found.ok_or_else(|| Error::msg("w is a parameter"))?;
    assert!(fx_nn::allclose(&found, &expected[0], 1e-5, 1e-6)?.close);
    Ok(())
}

#[test]
fn gradients_also_reach_an_input_and_stop_at_what_is_frozen() -> Result<()> {
    let mut model = nn::Sequential::new();
    for _ in 0..4 {
        model = model.push(nn::Linear::new(3, 3)?);
    }
    nn::set_requires_grad_at(&mut model, "{0,1}.**", false)?;
    let gm = symbolic_trace(&model)?;
    let pipeline = pipeline(&gm, 4)?;
    let runner = PipelineRunner::new(&pipeline, 2);
    let x = Tensor::rand((4, 3))?;
    let loss = |y: Tensor, target: &Tensor| (y - target)?.square()?.sum(..);
    let step = runner.step(Schedule::GPipe, &x, &x, loss)?;
    assert_eq!(step.gradients.candle().get_ids().count(), 4);
    let x = x.into_parameter()?;
    let step = runner.step(Schedule::OneForwardOneBackward, &x, &x.detach()?, loss)?;
    let whole: Tensor = gm.forward(&x)?;
    let expected = loss(whole, &x.detach()?)?.grad(&[&x])?;
    let found = step
        .gradients
        .get(&x)?
        .ok_or_else(|| Error::msg("x is a parameter"))?;
    assert!(fx_nn::allclose(&found, &expected[0], 1e-5, 1e-6)?.close);
    Ok(())
}

/// Four layers of 3 by 3: 36 bytes of weights and 12 of bias each.
fn layers() -> Result<GraphModule> {
    let mut model = nn::Sequential::new();
    for _ in 0..4 {
        model = model.push(nn::Linear::new(3, 3)?).push(nn::ReLU::new());
    }
    symbolic_trace(&model)
}

fn weights(pipeline: &Pipeline) -> Vec<u64> {
    pipeline
        .stages()
        .iter()
        .map(|stage| stage.weight_bytes)
        .collect()
}

#[test]
fn weights_stay_below_the_limit() -> Result<()> {
    let gm = layers()?;
    // The first layer costs as much as all others; without a limit, those are one stage.
    let first = |node: fx_nn::ir::NodeRef<'_>| if node.name() == "_0" { 100 } else { 1 };
    let free = PipelineOptions::new().cost(first).pipeline(&gm, 2)?;
    assert_eq!(weights(&free), [48, 3 * 48]);
    let limited = PipelineOptions::new().cost(first).memory_limit(2 * 48);
    assert_eq!(weights(&limited.pipeline(&gm, 2)?), [2 * 48, 2 * 48]);

    let error = |limit: u64| {
        let options = PipelineOptions::new().memory_limit(limit);
        options.pipeline(&gm, 2).map(|_| ()).unwrap_err()
    };
    assert_eq!(
        error(60).to_string(),
        "the weights do not fit: 2 stages need a limit of 96 bytes, or there must be 4 of them"
    );
    let error = error(40);
    assert_eq!(error.node(), Some("_0"));
    assert!(
        error
            .to_string()
            .contains("2 stages need a limit of 96 bytes; this call alone"),
        "{error}"
    );

    // Weights that several calls of a stage use count once.
    let tied = batch()?.gm;
    let one = pipeline(&tied, 1)?;
    let parameters = nn::variables(&tied)?;
    let bytes: usize = parameters
        .iter()
        .map(|p| p.as_tensor().elem_count() * 4)
        .sum();
    assert_eq!(weights(&one), [bytes as u64]);
    Ok(())
}

#[test]
fn multiply_adds_balance_the_stages() -> Result<()> {
    let mut gm = layers()?;
    let x = Tensor::rand((5, 3))?;
    gm.propagate_shapes(&x)?;
    let pipeline = PipelineOptions::new()
        .cost(multiply_adds(&gm, &x)?)
        .pipeline(&gm, 4)?;
    let each = 5 * 9 + 2 * 5 * 3 * 4;
    assert!(pipeline.stages().iter().all(|stage| stage.cost == each));
    assert_eq!(pipeline.stages()[1].input_bytes, 5 * 3 * 4);
    Ok(())
}

#[test]
fn batches_that_do_not_fit_are_refused() -> Result<()> {
    let Batch {
        gm,
        words,
        scale,
        target,
    } = batch()?;
    let pipeline = pipeline(&gm, 3)?;
    let run = |runner: PipelineRunner<'_>, words: &Tensor, scale: &Tensor| {
        let result = runner.forward::<(Tensor, Tensor)>((words, scale));
        result.map(|_| ()).unwrap_err().to_string()
    };
    let three = PipelineRunner::new(&pipeline, 3);
    assert_eq!(
        run(PipelineRunner::new(&pipeline, 8), &words, &scale),
        "a batch of 7 rows cannot be 8 micro-batches: each has a row, and there is at least one"
    );
    assert!(run(PipelineRunner::new(&pipeline, 0), &words, &scale).contains("0 micro-batches"));
    let one = Tensor::ones((1, 1, 1))?;
    assert_eq!(
        run(three.clone(), &words, &one),
        "the input `scale` has 1 rows, and `words` has 7: one that is no batch is given whole to each micro-batch by `.replicate(&[\"scale\"])`"
    );
    assert!(
        three
            .clone()
            .replicate(&["scale"])
            .forward::<Value>((&words, &one))
            .is_ok()
    );
    assert!(run(three.clone().replicate(&["bias"]), &words, &scale).contains("no input `bias`"));

    let short = rows(&target, 0, 6)?;
    let error = three
        .step(Schedule::GPipe, (&words, &scale), &short, loss)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the batch has 7 rows: it needs as many"),
        "{error}"
    );
    let error = three
        .step(Schedule::Forward, (&words, &scale), &target, loss)
        .unwrap_err();
    assert!(
        error.to_string().contains("a schedule with a backward"),
        "{error}"
    );
    let constant = |_: Value, _: &Tensor| Tensor::ones(());
    let error = three
        .step(Schedule::GPipe, (&words, &scale), &target, constant)
        .unwrap_err();
    assert!(
        error.to_string().contains("depends on no parameter"),
        "{error}"
    );

    let sum = symbolic_trace(traced!(|x: &Tensor| x.exp()?.sum(..)))?;
    let sum = fx_nn::passes::pipeline::pipeline(&sum, 2)?;
    let error = PipelineRunner::new(&sum, 2)
        .forward::<Tensor>(&scale)
        .unwrap_err();
    assert!(
        error.to_string().contains("has not a row for each"),
        "{error}"
    );
    Ok(())
}

#[test]
fn an_error_names_the_stage_and_the_node() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x.exp()?.relu()? * y))?;
    let pipeline = pipeline(&gm, 3)?;
    let runner = PipelineRunner::new(&pipeline, 2);
    let (x, y) = (Tensor::rand((4, 3))?, Tensor::rand((4, 2))?);
    let error = runner.forward::<Tensor>((&x, &y)).unwrap_err();
    assert_eq!(
        (error.stage(), error.node()),
        (Some(2), Some("mul")),
        "{error}"
    );
    let refused = |_: Tensor, _: &Tensor| -> Result<Tensor> { Err(Error::msg("no loss")) };
    let x = x.into_parameter()?;
    let error = runner
        .step(Schedule::GPipe, (&x, &x), &x, refused)
        .unwrap_err();
    assert_eq!(error.to_string(), "in stage 2: no loss");
    let panics = |_: Tensor, _: &Tensor| -> Result<Tensor> { panic!("no loss at all") };
    let error = runner
        .step(Schedule::OneForwardOneBackward, (&x, &x), &x, panics)
        .unwrap_err();
    assert_eq!(error.to_string(), "in stage 2: it panicked: no loss at all");
    Ok(())
}
