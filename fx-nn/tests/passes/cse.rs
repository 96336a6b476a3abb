//! Common sub-expressions.

use fx_nn::ir::Graph;
use fx_nn::module::Attributes;
use fx_nn::operator;
use fx_nn::passes::{Cse, DeadCode};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

use super::{count, keeps_numbers};

fn x() -> Result<Tensor> {
    Tensor::rand((2, 2))
}

#[test]
fn different_calls_stay() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = (x + 1.0)?;
        let b = (x + &a)?;
        let d = (a + x)?;
        b + d
    }))?;
    let before = gm.graph().len();
    assert!(!keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(gm.graph().len(), before);
    Ok(())
}

#[test]
fn a_graph_without_calls_stays() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| Ok(x.clone())))?;
    assert!(!keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    Ok(())
}

#[test]
fn calls_with_equal_lists_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.sum([0, 1])? + x.sum([0, 1])?))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "sum"), 1);
    Ok(())
}

#[test]
fn equal_calls_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.cos()? + x.cos()?))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "cos"), 1);
    Ok(())
}

#[test]
fn equal_chains_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = x.cos()?.cos()?;
        let b = x.cos()?.cos()?.cos()?;
        a + b
    }))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "cos"), 3);
    Ok(())
}

#[test]
fn a_default_that_is_spelt_out_is_the_default() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = x.sum_keepdim(1)?;
        let b = x.sum(1)?;
        let c = x.sum(1)?;
        (a + b)? + c
    }))?;
    // The default, spelt out.
    let last = gm.graph().find_name("sum_2").map(|node| node.id());
    let last = last.ok_or_else(|| Error::msg("there are three sums"))?;
    gm.graph_mut()
        .node_mut(last)?
        .update_kwarg("keepdim", false)?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "sum"), 2);
    Ok(())
}

#[test]
fn four_equal_calls_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b, c, d) = (x.sum(..)?, x.sum(..)?, x.sum(..)?, x.sum(..)?);
        ((a + b)? + c)? + d
    }))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "sum"), 1);
    Ok(())
}

#[test]
fn calls_with_equal_nested_lists_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = ops::cat(&[x.clone(), x.clone()], 0)?;
        let b = ops::cat(&[x.clone(), x.clone()], 0)?;
        a + b
    }))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "cat"), 1);
    Ok(())
}

#[test]
fn equal_constructors_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(
        |x: &Tensor| ops::ones_like(x, None)? + ops::ones_like(x, None)?
    ))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "ones_like"), 1);
    Ok(())
}

#[test]
fn keywords_are_positions_in_whatever_order_and_hubs_are_searched_too() -> Result<()> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let by_name: [(&str, fx_nn::ir::Argument); 2] = [("b", y.into()), ("a", x.into())];
    let mut calls = vec![
        graph.call_function(operator::sub, (x, y), ())?,
        graph.call_function(operator::sub, (), by_name)?,
    ];
    // More calls of one node than are looked through one by one, each twice.
    for at in 0..40 {
        calls.push(graph.call_function(operator::add, (x, at % 20), ())?);
    }
    graph.output(calls)?;
    let mut gm = GraphModule::new(Attributes::default(), graph, "Hub")?;
    assert_eq!(gm.apply(&Cse::new())?.erased.len(), 21);
    assert_eq!((count(&gm, "sub"), count(&gm, "add")), (1, 20));
    Ok(())
}

#[test]
fn random_chains_are_merged_once_and_keep_their_numbers() -> Result<()> {
    for seed in 0..30u64 {
        let mut graph = Graph::new();
        let mut values = vec![graph.placeholder("x")?];
        let mut state = seed + 1;
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            usize::try_from(state >> 33).unwrap_or(0) % bound
        };
        for _ in 0..100 {
            let of = values[values.len() - 1 - next(values.len().min(3))];
            let node = match next(3) {
                0 => graph.call_function(function!(ops::relu), (of,), ())?,
                1 => graph.call_function(function!(ops::sin), (of,), ())?,
                _ => graph.call_method("sigmoid", (of,), ())?,
            };
            values.push(node);
        }
        let last: Vec<NodeId> = values.iter().rev().take(3).copied().collect();
        graph.output(last)?;
        let mut gm = GraphModule::new(Attributes::default(), graph, "Random")?;
        keeps_numbers(&mut gm, &Cse::new(), &x()?)?;
        let nodes = gm.graph().len();
        // A second time there is nothing to merge.
        assert!(!gm.apply(&Cse::new())?.changed);
        assert_eq!(gm.graph().len(), nodes);
    }
    Ok(())
}

#[test]
fn what_is_skipped_stays() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b) = (x.cos()?, x.cos()?);
        (x + &a)? + (x + b)?
    }))?;
    let cse = Cse::new().skip(|node| node.target() == "cos");
    assert!(!keeps_numbers(&mut gm, &cse, &x()?)?);
    assert_eq!(count(&gm, "cos"), 2);
    Ok(())
}

#[test]
fn draws_like_a_tensor_stay_two() -> Result<()> {
    let mut gm = symbolic_trace(traced!(
        |x: &Tensor| ops::rand_like(x, None)? + ops::rand_like(x, None)?
    ))?;
    assert!(!gm.apply(&Cse::new())?.changed);
    assert_eq!(count(&gm, "rand_like"), 2);
    Ok(())
}

#[test]
fn draws_of_a_shape_stay_two() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b) = (ops::randn((2, 2), None)?, ops::randn((2, 2), None)?);
        (x + a)? + b
    }))?;
    assert!(!gm.apply(&Cse::new())?.changed);
    assert_eq!(count(&gm, "randn"), 2);
    Ok(())
}

#[test]
fn merging_keeps_results_and_draws() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b) = (x.cos()?, x.cos()?);
        let y = (a * 2.0)?;
        let z = (b * 2.0)?;
        let noise = (ops::rand_like(x, None)? * 0.0)?;
        Ok(((y + z)?, (x * 2)?, noise))
    }))?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!((count(&gm, "cos"), count(&gm, "rand_like")), (1, 1));
    Ok(())
}

#[test]
fn equal_tensors_of_ones_are_one() -> Result<()> {
    let mut graph = Graph::new();
    let x_node = graph.placeholder("x")?;
    let mut sum = x_node;
    for _ in 0..3 {
        let ones = graph.call_function(function!(ops::ones), (vec![2, 2],), ())?;
        sum = graph.call_function(operator::add, (sum, ones), ())?;
    }
    graph.output(sum)?;
    let mut gm = GraphModule::new(Attributes::default(), graph, "Factory")?;
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "ones"), 1);
    Ok(())
}

// Cases that torch.fx's pass gets wrong.

#[test]
fn one_and_one_point_zero_and_true_are_three_computations() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| Ok((
        (x + 1)?,
        (x + 1.0)?,
        (x + Tensor::from_vec(vec![1i64], 1)?)?
    ))))?;
    let x = Tensor::from_vec(vec![1i64, 2], 2)?;
    assert!(!keeps_numbers(&mut gm, &Cse::new(), &x)?);
    let (a, b, _): (Tensor, Tensor, Tensor) = gm.forward(&x)?;
    assert_eq!((a.dtype()?, b.dtype()?), (DType::I64, DType::F32));

    // Built by hand, because Rust has no `x + true`.
    let mut graph = Graph::new();
    let x_node = graph.placeholder("x")?;
    let mut calls = Vec::new();
    for one in [
        1.into(),
        1.0.into(),
        true.into(),
        fx_nn::ir::Argument::Float(0.0),
        fx_nn::ir::Argument::Float(-0.0),
    ] {
        let one: fx_nn::ir::Argument = one;
        calls.push(graph.call_function(operator::mul, (x_node, one), ())?);
    }
    graph.output(calls)?;
    let mut gm = GraphModule::new(Attributes::default(), graph, "Ones")?;
    assert!(!gm.apply(&Cse::new())?.changed);
    assert_eq!(count(&gm, "mul"), 5);
    Ok(())
}

#[test]
fn two_calls_of_one_dropout_stay_two_in_training_and_become_one_in_evaluation() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct Twice {
        dropout: nn::Dropout,
    }
    #[trace]
    impl Twice {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.dropout.forward(x)? + self.dropout.forward(x)?
        }
    }
    let mut gm = symbolic_trace(&Twice {
        dropout: nn::Dropout::new(0.5)?,
    })?;
    assert!(!gm.apply(&Cse::new())?.changed);
    gm.eval();
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!(count(&gm, "dropout"), 1);
    Ok(())
}

#[test]
fn equal_attributes_are_read_once() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct Scaled {
        scale: Tensor,
    }
    #[trace]
    impl Scaled {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            (x * &self.scale)? + (x * &self.scale)?
        }
    }
    let mut gm = symbolic_trace(&Scaled {
        scale: Tensor::ones(2)?.into_parameter()?,
    })?;
    let first = gm.graph().find_name("scale").map(|node| node.id());
    let first = first.ok_or_else(|| Error::msg("the scale is read"))?;
    let mut graph = gm.graph_mut();
    let second = graph.inserting_after(first)?.get_attr("scale")?;
    let last = graph.find_name("mul_1").map(|node| node.id());
    let last = last.ok_or_else(|| Error::msg("there are two products"))?;
    graph.node_mut(last)?.replace_input_with(first, second)?;
    drop(graph);
    assert!(keeps_numbers(&mut gm, &Cse::new(), &x()?)?);
    assert_eq!((count(&gm, "scale"), count(&gm, "mul")), (1, 1));
    Ok(())
}

#[test]
fn methods_and_functions_are_one_computation_and_structures_are_kept() -> Result<()> {
    #[trace]
    fn f(x: IndexMap<String, Tensor>) -> Result<(Tensor, Tensor)> {
        Ok((x["a"].relu()?, ops::relu(&x["a"])?))
    }
    let trace = Trace::new(traced!(f)).concrete("x", tree!({"a": PH}));
    let mut gm = trace.graph_module()?;
    assert!(gm.apply(&Cse::new())?.changed);
    gm.apply(&DeadCode)?;
    assert_eq!(count(&gm, "relu"), 1);
    // The module still takes the structure.
    let input: IndexMap<String, Tensor> = [("a".to_string(), x()?)].into_iter().collect();
    let (a, b): (Tensor, Tensor) = gm.forward((input,))?;
    assert_eq!(a.to_vec()?, b.to_vec()?);
    Ok(())
}
