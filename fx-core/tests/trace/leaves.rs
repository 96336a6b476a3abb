//! Functions that are leaves: recorded as one call, whatever they do inside.

use std::sync::atomic::Ordering;

use fx_core::module::Module;
use fx_core::prelude::*;

use crate::support::modules::Linear;
use crate::support::*;

#[wrap(path = "rows::a_lifted_leaf")]
fn a_lifted_leaf(x: &Array, by: f64) -> Result<Array> {
    // Plain Rust: the actual numbers may decide.
    if x.to_vec()?.iter().sum::<f64>() > 0.0 {
        x * by
    } else {
        x - by
    }
}

#[trace]
fn calls_a_leaf(x: &Array) -> Result<Array> {
    let open = (x > -10.0)?;
    a_lifted_leaf(&(x * open)?, 2.0)? + 1.0
}

/// One node for the call, the same numbers, also when it is traced again.
#[test]
fn a_leaf_is_one_call() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    assert_eq!(
        targets(gm.graph()),
        [
            "x",
            "fx_core::operator::gt",
            "fx_core::operator::mul",
            "rows::a_lifted_leaf",
            "fx_core::operator::add",
            "output"
        ]
    );
    same(&gm, calls_a_leaf(&x()), &x())
}

#[test]
fn a_leaf_called_at_once_is_one_node() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| a_lifted_leaf(x, 3.0)))?;
    assert_eq!(names(gm.graph()), ["x", "a_lifted_leaf", "output"]);
    same(&gm, a_lifted_leaf(&x(), 3.0), &x())
}

/// Running on symbolic values is tracing again, which is what a transformer does.
#[test]
fn a_leaf_stays_one_when_it_is_traced_again() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    let transformed = symbolic_trace(&gm)?;
    assert_eq!(targets(transformed.graph()), targets(gm.graph()));
    same(&transformed, calls_a_leaf(&x()), &x())
}

#[test]
fn a_leaf_is_a_plain_function_outside_of_a_trace() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| a_lifted_leaf(x, 1.0)? * 3.0))?;
    assert_eq!(names(gm.graph()), ["x", "a_lifted_leaf", "mul", "output"]);
    // Outside a trace the function is unchanged.
    assert_eq!(a_lifted_leaf(&x(), 1.0)?.to_vec()?, [0.0, -3.0]);
    Ok(())
}

/// A function that takes a module: the module's own call is the leaf.
#[test]
fn a_helper_that_takes_a_module_records_its_call() -> Result<()> {
    fn applied(layer: &dyn Module, x: &Array) -> Result<Array> {
        layer.forward::<Array>(x)
    }
    #[derive(Module)]
    struct Holder {
        layer: Linear,
    }
    #[trace]
    impl Holder {
        fn forward(&self, x: &Array) -> Result<Array> {
            applied(&self.layer, x)
        }
    }
    let root = Holder {
        layer: Linear::square(2, 2.0),
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(names(gm.graph()), ["x", "layer", "output"]);
    same(&gm, root.forward(&x()), &x())
}

#[test]
fn a_graph_with_a_leaf_traced_twice_again_prints_the_same() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    let again = symbolic_trace(&symbolic_trace(&gm)?)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    Ok(())
}

#[test]
fn a_traced_length_is_recorded_and_a_known_one_is_not() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x * len(x)?))?;
    assert_eq!(names(gm.graph()), ["x", "len", "mul", "output"]);
    same(&gm, &x() * 2, &x())?;
    // A known length is plain: nothing is recorded for it.
    let known = x();
    let gm = symbolic_trace(traced!(move |y: &Array| y * known.to_vec()?.len()))?;
    assert_eq!(names(gm.graph()), ["y", "mul", "output"]);
    Ok(())
}

#[wrap(path = "rows::sqrt")]
fn sqrt(n: Int) -> Result<Float> {
    match n.concrete() {
        Some(n) if n >= 0 => Ok((n as f64).sqrt().into()),
        _ => Err(Error::msg("the root of a negative number")),
    }
}

#[test]
fn a_leaf_of_numbers_is_recorded() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x / sqrt(len(x)?)?))?;
    assert_eq!(names(gm.graph()), ["x", "len", "sqrt", "truediv", "output"]);
    let four = Array::vec(&[2.0; 4]);
    assert_eq!(gm.forward::<Array>(&four)?.to_vec()?, [1.0; 4]);
    Ok(())
}

/// A function of a custom library is a function like any other.
#[test]
fn functions_of_other_libraries_are_recorded_by_their_paths() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| Ok((
        split_sign(&x.relu()?)?,
        concat(&[x.clone(), x.clone()])?,
    ))))?;
    assert_eq!(targets(gm.graph())[..3], ["x", "relu", "array::split_sign"]);
    gm.graph().lint()
}

#[test]
fn an_impure_function_outlives_dead_code_and_runs() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| {
        record(x)?;
        x.relu()?;
        x * 2.0
    }))?;
    gm.eliminate_dead_code()?;
    assert_eq!(names(gm.graph()), ["x", "record", "mul", "output"]);
    let before = RECORDED.load(Ordering::SeqCst);
    gm.forward::<Array>(&x())?;
    assert!(RECORDED.load(Ordering::SeqCst) > before);
    Ok(())
}
