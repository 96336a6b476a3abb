//! Pipelines: where a graph is cut, what the stages take and give, and how they run on threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fx_core::ir::{Argument, Graph, TensorMeta, ValueMeta};
use fx_core::operator;
use fx_core::passes::pipeline::{
    Action, Pipeline, PipelineOptions, Schedule, Stage, StageWorker, pipeline,
};
use fx_core::prelude::*;
use proptest::prelude::*;

/// A chain of sums with an input; sum `n` also takes the value before it by `back[n]`.
fn chain(back: &[usize]) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut values = vec![graph.placeholder("x")?];
    for back in back {
        let last = values.len() - 1;
        let other = values[last.saturating_sub(*back)];
        values.push(graph.call_function(operator::add, (values[last], other), ())?);
    }
    graph.output(values[values.len() - 1])?;
    GraphModule::new(Default::default(), graph, "Chain")
}

/// The least cost of the largest stage, over all cuts.
fn exhaustive(costs: &[u64], stages: usize) -> u64 {
    if stages == 1 {
        return costs.iter().sum();
    }
    let firsts = 1..=costs.len() + 1 - stages;
    let best = firsts.map(|end| {
        let first: u64 = costs[..end].iter().sum();
        first.max(exhaustive(&costs[end..], stages - 1))
    });
    best.min().unwrap_or(u64::MAX)
}

fn costs_of(pipeline: &Pipeline) -> Vec<u64> {
    pipeline.stages().iter().map(|stage| stage.cost).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_largest_stage_is_near_the_least(
        calls in prop::collection::vec((1u64..200, 1usize..16), 16),
        stages in 1usize..6,
    ) {
        let (costs, back): (Vec<u64>, Vec<usize>) = calls.into_iter().unzip();
        let gm = chain(&back)?;
        let mut next = costs.iter().copied();
        let options = PipelineOptions::new().cost(|_| next.next().unwrap_or(0));
        let pipeline = options.pipeline(&gm, stages)?;
        let found = costs_of(&pipeline);
        prop_assert_eq!(found.iter().sum::<u64>(), costs.iter().sum::<u64>());
        let largest = found.into_iter().max().unwrap_or(0);
        let least = exhaustive(&costs, stages);
        prop_assert!(least <= largest && largest * 10 <= least * 11, "{} and {}", largest, least);

        let expected: f64 = gm.forward(1.5)?;
        let results = pipeline.run(vec![vec![Value::of(1.5)]; 3])?;
        prop_assert_eq!(results.len(), 3);
        for result in results {
            prop_assert_eq!(f64::from_value(result)?, expected);
        }
    }
}

#[test]
fn of_cuts_that_are_about_as_good_the_one_with_fewest_bytes_is_taken() -> Result<()> {
    let mut gm = chain(&[0; 40])?;
    let bytes = |rows: usize| ValueMeta::from(TensorMeta::new([rows]).dtype(DType::F32));
    let calls: Vec<_> = gm.graph().nodes().map(|node| node.id()).collect();
    for (at, id) in calls.iter().enumerate() {
        let rows = if at == 21 { 2 } else { 1000 };
        gm.graph_mut().node_mut(*id)?.set_meta(bytes(rows));
    }
    let pipeline = pipeline(&gm, 2)?;
    assert_eq!(costs_of(&pipeline), [21, 19]); // 5 % more than 20, and 8 bytes
    assert_eq!(pipeline.stages()[1].input_bytes, 8);
    Ok(())
}

#[test]
fn a_stage_takes_what_it_and_later_ones_need() -> Result<()> {
    // The last stage needs an input of the whole model, and a value of the first stage.
    let f = traced!(|x: Float, scale: Float| {
        let a = (x + 1.0)?;
        let b = (a * 2.0)?;
        let c = (b - 3.0)?;
        ((c * scale)? + a)? / 2.0
    });
    let gm = symbolic_trace(f)?;
    let pipeline = PipelineOptions::new().pipeline(&gm, 3)?;
    let inputs = |stage: &Stage| -> Vec<String> {
        let inputs = stage.module.graph().placeholders();
        inputs.map(|node| node.name().to_string()).collect()
    };
    let names: Vec<_> = pipeline.stages().iter().map(inputs).collect();
    assert_eq!(names[0], ["x", "scale"]);
    assert_eq!(names[1], ["scale", "add", "mul"]);
    assert_eq!(names[2], ["add", "mul_1"]);
    let [first, second, third] = pipeline.stages() else {
        panic!("there are three stages")
    };
    assert_eq!(first.module.class_name(), "stage_0");
    // Any transport: the results of one are the inputs of the next.
    let between = first.run(vec![Value::of(2.0), Value::of(10.0)])?;
    let between = second.run(between)?;
    let result = third.run(between)?;
    let expected: f64 = gm.forward((2.0, 10.0))?;
    assert_eq!(result.len(), 1);
    assert_eq!(f64::from_value(result[0].clone())?, expected);
    // A stage is a module: it is saved and loaded.
    let loaded = GraphModule::from_bytes(&second.module.to_bytes()?)?;
    assert_eq!(loaded.forward::<(f64, f64)>((10.0, 3.0, 6.0))?, (3.0, 30.0));
    Ok(())
}

#[test]
fn a_result_may_be_a_structure_with_inputs_in_it() -> Result<()> {
    let f = traced!(|x: Float, y: Float| {
        let a = (x + 1.0)?;
        let b = (a * y)?;
        Ok((x, (a, b)))
    });
    let gm = symbolic_trace(f)?;
    for stages in 1..=2 {
        let results = pipeline(&gm, stages)?.run(vec![vec![Value::of(1.0), Value::of(3.0)]])?;
        let result: (f64, (f64, f64)) = FromValue::from_value(results[0].clone())?;
        assert_eq!(result, (1.0, (2.0, 6.0)));
    }
    Ok(())
}

#[test]
fn a_graph_is_not_cut_into_more_stages_than_calls() -> Result<()> {
    let gm = chain(&[0, 0])?;
    for stages in [0, 3] {
        let error = pipeline(&gm, stages).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("a graph of 2 calls cannot have"),
            "{error}"
        );
    }
    assert_eq!(pipeline(&gm, 2)?.run(Vec::new())?.len(), 0);
    Ok(())
}

#[test]
fn the_table_has_a_row_for_each_stage() -> Result<()> {
    let text = pipeline(&chain(&[0; 4])?, 2)?.to_string();
    assert_eq!(text.lines().count(), 3, "{text}");
    Ok(())
}

/// The actions of a stage as text: `F0 B0`.
fn text(schedule: Schedule, stage: usize, stages: usize, batches: usize) -> String {
    let actions = schedule.actions(stage, stages, batches).into_iter();
    let actions = actions.map(|action| match action {
        Action::Forward(at) => format!("F{at}"),
        Action::Backward(at) => format!("B{at}"),
        _ => String::new(),
    });
    actions.collect::<Vec<_>>().join(" ")
}

#[test]
fn schedules_have_their_order() {
    let one = Schedule::OneForwardOneBackward;
    assert_eq!(text(one, 0, 4, 5), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    assert_eq!(text(one, 1, 4, 5), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
    assert_eq!(text(one, 3, 4, 5), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
    assert_eq!(text(one, 0, 4, 2), "F0 F1 B0 B1"); // fewer micro-batches than stages
    assert_eq!(text(one, 0, 4, 0), "");
    assert_eq!(text(Schedule::GPipe, 0, 4, 3), "F0 F1 F2 B0 B1 B2");
    assert_eq!(text(Schedule::GPipe, 3, 4, 3), "F0 F1 F2 B0 B1 B2");
    assert_eq!(text(Schedule::Forward, 2, 4, 3), "F0 F1 F2");
}

/// Notes what it does, and how many micro-batches it holds.
struct Noting {
    stage: usize,
    stages: usize,
    done: Vec<String>,
    held: usize,
    most: usize,
}

impl StageWorker for Noting {
    fn forward(&mut self, at: usize, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.done.push(format!("F{at}"));
        self.held += 1;
        self.most = self.most.max(self.held);
        assert_eq!(inputs.len(), self.stage + 1);
        inputs.push(Value::of(at as i64));
        Ok(inputs)
    }

    fn backward(&mut self, at: usize, mut gradients: Vec<Value>) -> Result<Vec<Value>> {
        self.done.push(format!("B{at}"));
        self.held -= 1;
        assert_eq!(gradients.len(), self.stages - 1 - self.stage);
        gradients.push(Value::of(at as i64));
        Ok(gradients)
    }
}

#[test]
fn workers_are_called_in_the_order_of_the_schedule() -> Result<()> {
    let stages = 4;
    let pipeline = pipeline(&chain(&[0; 4])?, stages)?;
    for schedule in [Schedule::GPipe, Schedule::OneForwardOneBackward] {
        for batches in [1, 3, 9] {
            let worker = |stage| Noting {
                stage,
                stages,
                done: Vec::new(),
                held: 0,
                most: 0,
            };
            let mut workers: Vec<Noting> = (0..stages).map(worker).collect();
            let inputs = vec![vec![Value::of(1.0)]; batches];
            let results = pipeline.run_with(schedule, inputs, &mut workers)?;
            assert!(results.iter().all(|result| result.len() == 5));
            for worker in workers {
                let order = text(schedule, worker.stage, stages, batches);
                assert_eq!(worker.done.join(" "), order);
                if schedule == Schedule::OneForwardOneBackward {
                    assert!(worker.most <= stages - worker.stage);
                }
            }
        }
    }
    let mut too_few: [Noting; 0] = [];
    let error = pipeline.run_with(Schedule::Forward, Vec::new(), &mut too_few);
    assert!(error.is_err());
    Ok(())
}

/// Sleeps; fails for a negative number, panics for one above 1000.
#[wrap]
fn slow(x: Float, how: &str) -> Result<Float> {
    std::thread::sleep(Duration::from_millis(5));
    let number = x.concrete().unwrap_or_default();
    RUNS.fetch_add(1, Ordering::Relaxed);
    match how {
        "fail" if number > 3.0 => Err(Error::msg("there is no paper")),
        "panic" if number > 3.0 => panic!("the drum is stuck"),
        _ => x + 1.0,
    }
}

static RUNS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_stage_that_fails_or_panics_stops_the_others() -> Result<()> {
    let fails = traced!(|x: Float| slow(slow(slow(slow(x, "")?, "")?, "fail")?, ""));
    let panics = traced!(|x: Float| slow(slow(slow(slow(x, "")?, "")?, "panic")?, ""));
    for (gm, text) in [
        (symbolic_trace(fails)?, "there is no paper"),
        (symbolic_trace(panics)?, "it panicked: the drum is stuck"),
    ] {
        let pipeline = pipeline(&gm, 4)?;
        RUNS.store(0, Ordering::Relaxed);
        // The third micro-batch is too much for stage 2.
        let batches: Vec<Vec<Value>> = (0..500)
            .map(|at| vec![Value::Float(f64::from(at))])
            .collect();
        let start = Instant::now();
        let error = pipeline.run(batches).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2));
        // How far the stages before run ahead is up to the threads; without an end these are 2,000.
        assert!(RUNS.load(Ordering::Relaxed) < 500);
        assert_eq!(
            (error.stage(), error.node()),
            (Some(2), Some("slow_2")),
            "{error}"
        );
        assert!(
            error
                .location()
                .is_some_and(|at| at.file.ends_with("pipeline.rs"))
        );
        let shown = error.to_string();
        assert!(
            shown.starts_with("in stage 2: while executing %slow_2"),
            "{shown}"
        );
        assert!(shown.ends_with(text), "{shown}");
    }
    Ok(())
}

/// Fails in its second backward.
struct FailsBackward(usize);

impl StageWorker for FailsBackward {
    fn forward(&mut self, _: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        Ok(inputs)
    }

    fn backward(&mut self, at: usize, gradients: Vec<Value>) -> Result<Vec<Value>> {
        match (self.0, at) {
            (1, 1) => panic!("no gradient"),
            _ => Ok(gradients),
        }
    }
}

#[test]
fn a_worker_that_panics_backward_stops_the_others() -> Result<()> {
    let pipeline = pipeline(&chain(&[0; 3])?, 3)?;
    for schedule in [Schedule::GPipe, Schedule::OneForwardOneBackward] {
        let mut workers = [0, 1, 2].map(FailsBackward);
        let batches = vec![vec![Value::of(1.0)]; 8];
        let error = pipeline.run_with(schedule, batches, &mut workers);
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "in stage 1: it panicked: no gradient");
    }
    Ok(())
}

#[test]
fn stages_work_at_once() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| slow(
        slow(slow(slow(x, "")?, "")?, "")?,
        ""
    )))?;
    let pipeline = pipeline(&gm, 4)?;
    let start = Instant::now();
    pipeline.run(vec![vec![Value::of(1.0)]; 20])?;
    // One behind the other they take 400 ms; at once, 115.
    assert!(start.elapsed() < Duration::from_millis(300));
    Ok(())
}

/// A graph of any size takes time in proportion, and no stack.
#[test]
fn a_long_graph_is_cut() -> Result<()> {
    let gm = chain(&[1; 20_000])?;
    let start = Instant::now();
    let pipeline = pipeline(&gm, 8)?;
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(costs_of(&pipeline).iter().all(|cost| *cost <= 2625));
    Ok(())
}

#[test]
fn a_literal_result_is_given_by_the_last_stage() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let a = graph.call_function(operator::add, (x, 1.0), ())?;
    graph.call_function(operator::mul, (a, 1.0), ())?;
    graph.output(Argument::from(3))?;
    let gm = GraphModule::new(Default::default(), graph, "Literal")?;
    let results = pipeline(&gm, 2)?.run(vec![vec![Value::of(1.0)]])?;
    assert_eq!(i64::from_value(results[0].clone())?, 3);
    Ok(())
}
