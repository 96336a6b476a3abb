//! Joint graphs in two parts: whatever is computed again, the numbers are those of the joint graph, to the bit.

use fx_nn::func::{
    Recompute, SplitJoint, Transform, checkpoint, parameters, split_joint, value_and_grad, vjp,
};
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::optim::SGD;
use fx_nn::passes::memory_plan;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::trace::CallArgs;
use fx_nn::train::TrainStep;

fn gpt2() -> Result<Gpt2> {
    fx_nn::manual_seed(1);
    Gpt2::new(&Config {
        vocab_size: 50,
        block_size: 16,
        n_embd: 16,
        n_layer: 6,
        n_head: 2,
        dropout: 0.0,
    })
}

/// A model of text with its loss.
#[derive(Module, Clone)]
struct Loss {
    net: Gpt2,
}

#[trace]
impl Loss {
    fn forward(&self, ids: &Tensor, next: &Tensor) -> Result<Tensor> {
        cross_entropy(&self.net.forward(ids)?, next)
    }
}

fn cross_entropy(scores: &Tensor, next: &Tensor) -> Result<Tensor> {
    let classes = scores.size(-1)?;
    let scores = scores.reshape((-1, classes))?;
    ops::cross_entropy(&scores, &next.reshape([-1])?, None, -100, "mean", 0.0)
}

fn text() -> Result<(Tensor, Tensor)> {
    let ids: Vec<i64> = (0..24).map(|at| at * 7 % 50).collect();
    let next: Vec<i64> = (0..24).map(|at| at * 11 % 50).collect();
    Ok((
        Tensor::from_vec(ids, (2, 12))?,
        Tensor::from_vec(next, (2, 12))?,
    ))
}

fn joint_of_gpt2() -> Result<GraphModule> {
    let of = value_and_grad(&Loss { net: gpt2()? }).wrt(parameters("**"));
    of.graph_module(&[spec![2, 12; I64], spec![2, 12; I64]])
}

/// All numbers of a result.
fn numbers(value: &Value) -> Result<Vec<f64>> {
    let mut tensors = Vec::new();
    value.for_each(&mut |value| tensors.extend(value.downcast_ref::<Tensor>().cloned()));
    let each = tensors.iter().map(Tensor::to_vec);
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}

fn args(args: &[Value]) -> CallArgs {
    CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    }
}

/// Both forms of a split graph give what the joint graph gives.
fn check(joint: &GraphModule, split: &SplitJoint, inputs: &[Value]) -> Result<()> {
    split.joint.lint()?;
    split.parts.lint()?;
    let expected: Value = joint.forward(args(inputs))?;
    let expected = numbers(&expected)?;
    for gm in [&split.joint, &split.parts] {
        let found: Value = gm.forward(args(inputs))?;
        assert!(numbers(&found)? == expected);
    }
    Ok(())
}

#[test]
fn less_memory_takes_more_computations_and_gives_the_same_numbers() -> Result<()> {
    let joint = joint_of_gpt2()?;
    let (ids, next) = text()?;
    let inputs = [Value::object(ids), Value::object(next)];
    let all = split_joint(&joint, &Recompute::within(u64::MAX))?;
    assert!(all.recomputed.is_empty());
    check(&joint, &all, &inputs)?;
    let mut former = all.clone();
    for share in [0.9, 0.8, 0.7, 0.6] {
        let split = split_joint(&joint, &Recompute::share(share))?;
        assert!(split.peak as f64 <= all.peak as f64 * share, "{share}");
        assert!(split.recomputed.len() > former.recomputed.len(), "{share}");
        assert!(split.kept_bytes() < former.kept_bytes(), "{share}");
        check(&joint, &split, &inputs)?;
        former = split;
    }
    Ok(())
}

#[test]
fn the_peak_is_that_of_the_plan_without_views() -> Result<()> {
    let f = traced!(|x: &Tensor, w: &Tensor| {
        let mut h = x.matmul(w)?;
        for _ in 0..10 {
            h = h.sin()?.exp()?;
        }
        h.sum(..)
    });
    let of = value_and_grad(f).wrt("w");
    let joint = of.graph_module(&[spec![64, 8; F32], spec![8, 32; F32]])?;
    for share in [1.0, 0.7] {
        let split = split_joint(&joint, &Recompute::share(share))?;
        let plan = memory_plan(&split.joint)?;
        // The plan has the inputs in it, each until its last use, and each view as a value of its own.
        let planned = plan.peak.as_known().map(|bytes| bytes as u64);
        let inputs = (64 * 8 + 8 * 32) * 4;
        let planned = planned.ok_or_else(|| fx_nn::Error::msg("the plan has no names"))?;
        assert!(split.peak <= planned && planned <= split.peak + inputs + 64 * 32 * 4);
    }
    Ok(())
}

#[test]
fn modules_are_checkpoints() -> Result<()> {
    let joint = joint_of_gpt2()?;
    let (ids, next) = text()?;
    let all = split_joint(&joint, &Recompute::within(u64::MAX))?;
    let split = split_joint(&joint, &checkpoint("net.h.*"))?;
    check(&joint, &split, &[Value::object(ids), Value::object(next)])?;
    assert!(split.peak < all.peak && split.kept.len() < all.kept.len() / 3);
    let no_module = split_joint(&joint, &checkpoint("net.layers.*"));
    let said = no_module.err().map(|error| error.to_string());
    assert!(said.is_some_and(|said| said.contains("net.layers.*")));
    Ok(())
}

#[test]
fn a_draw_is_kept() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let mut h = ops::dropout(&x.sin()?, 0.5, true)?.exp()?;
        for _ in 0..10 {
            h = (h.sqrt()? * 0.5)?.exp()?;
        }
        h.sum(..)
    });
    let joint = value_and_grad(f).graph_module(&[spec![1000; F64]])?;
    let split = split_joint(&joint, &Recompute::share(0.7))?;
    assert!(!split.recomputed.is_empty());
    let x = Tensor::rand(1000)?.to_dtype(DType::F64)?;
    let drawn = |gm: &GraphModule| -> Result<Vec<f64>> {
        fx_nn::manual_seed(11);
        numbers(&gm.forward(&x)?)
    };
    let expected = drawn(&joint)?;
    assert!(expected.contains(&0.0));
    assert!(drawn(&split.joint)? == expected && drawn(&split.parts)? == expected);
    Ok(())
}

#[test]
fn a_product_with_the_jacobian_is_split_too() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let mut h = x.sin()?;
        for _ in 0..8 {
            h = h.exp()?.sin()?;
        }
        Ok(h)
    });
    let joint = vjp(f).graph_module(&[spec![100; F32], spec![100; F32]])?;
    let (x, u) = (Tensor::rand(100)?, Tensor::rand(100)?);
    let split = split_joint(&joint, &Recompute::share(0.8))?;
    check(&joint, &split, &[Value::object(x), Value::object(u)])
}

#[test]
fn what_is_refused_says_why() -> Result<()> {
    let square = || traced!(|x: &Tensor| x.square()?.sum(..));
    let said = |joint: &GraphModule, recompute: &Recompute| {
        let found = split_joint(joint, recompute);
        found
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let one = fx_nn::func::grad(square()).graph_module(&[spec![3; F32]])?;
    assert!(said(&one, &Recompute::share(0.5)).contains("gives a tuple"));
    let open = value_and_grad(square()).graph_module(&[spec!["n"; F32]])?;
    assert!(said(&open, &Recompute::share(0.5)).contains("as numbers"));
    let joint = value_and_grad(square()).graph_module(&[spec![3; F32]])?;
    assert!(said(&joint, &Recompute::within(1)).contains("cannot be within 1 bytes"));
    assert!(said(&joint, &Recompute::share(-1.0)).contains("above 0"));
    Ok(())
}

/// Losses and parameters of some training steps.
fn trained(recompute: Option<Recompute>, compiled: bool) -> Result<Vec<f64>> {
    let net = gpt2()?;
    let loss = traced!(|scores: &Tensor, next: &Tensor| cross_entropy(scores, next));
    let mut step = TrainStep::new(&net, loss, SGD::new(&net)?.lr(0.1))?.compiled(compiled);
    if let Some(recompute) = recompute {
        step = step.recompute(recompute);
    }
    let (ids, next) = text()?;
    let mut found = Vec::new();
    for _ in 0..3 {
        found.extend(step.run((&ids, &next))?.to_vec()?);
    }
    for tensor in step.state_dict()?.values() {
        found.extend(tensor.to_vec()?);
    }
    assert_eq!(step.report().is_empty(), !compiled);
    Ok(found)
}

#[test]
fn training_steps_compute_again() -> Result<()> {
    for compiled in [false, true] {
        let expected = trained(None, compiled)?;
        for recompute in [Recompute::share(0.8), checkpoint("h.*")] {
            let found = trained(Some(recompute), compiled)?;
            // Compiled code may round a chain of operations in another place.
            let near = if compiled { 1e-5 } else { 0.0 };
            let mut pairs = found.iter().zip(&expected);
            assert!(pairs.all(|(a, b)| (a - b).abs() <= near * b.abs().max(1.0)));
        }
    }
    Ok(())
}

#[test]
fn a_deep_graph_is_split_in_a_moment() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let mut h = x.clone();
        for _ in 0..5000 {
            h = h.sin()?;
        }
        h.sum(..)
    });
    let joint = value_and_grad(f).graph_module(&[spec![10; F32]])?;
    let split = split_joint(&joint, &Recompute::share(0.6))?;
    assert!(split.peak <= 5000 * 40 * 6 / 10 + 100);
    Ok(())
}

#[test]
fn images_are_split() -> Result<()> {
    let mut net = nn::Sequential::new().push(nn::Conv2d::new(3, 8, 3)?.padding(1));
    for _ in 0..4 {
        let block = nn::Sequential::new()
            .push(nn::GroupNorm::new(2, 8)?)
            .push(nn::SiLU::new())
            .push(nn::Conv2d::new(8, 8, 3)?.padding(1));
        net = net.push(block);
    }
    let of = vjp(&net).wrt(parameters("**"));
    let joint = of.graph_module(&[spec![1, 3, 16, 16; F32], spec![1, 8, 16, 16; F32]])?;
    let all = split_joint(&joint, &Recompute::within(u64::MAX))?;
    let split = split_joint(&joint, &checkpoint("?"))?;
    assert!(split.kept_bytes() < all.kept_bytes() / 2 && split.peak < all.peak);
    let (x, u) = (Tensor::rand((1, 3, 16, 16))?, Tensor::rand((1, 8, 16, 16))?);
    check(&joint, &split, &[Value::object(x), Value::object(u)])
}
