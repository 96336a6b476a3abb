//! How calls bind to the parameters of functions and of graph modules.

use fx_core::function;
use fx_core::ir::{Argument, Graph, IntoArguments, IntoKwargs};
use fx_core::prelude::*;

use crate::graph::module;
use crate::support::*;

/// Its result shows what each parameter was bound to, one digit each.
#[wrap(path = "rows::digits")]
fn digits(
    a: Int,
    b: Int,
    #[default(3)] c: Int,
    #[kw]
    #[default(4)]
    d: Int,
) -> Result<Int> {
    number(&[a, b, c, d])
}

/// As `digits`, where the keyword argument must be given.
#[wrap(path = "rows::keyed")]
fn keyed(
    a: Int,
    #[kw] b: Int,
    #[kw]
    #[default(3)]
    c: Int,
) -> Result<Int> {
    number(&[a, b, c])
}

fn number(digits: &[Int]) -> Result<Int> {
    let mut number = 0;
    for digit in digits {
        let digit = digit.concrete().ok_or_else(|| Error::msg("symbolic"))?;
        number = number * 10 + digit;
    }
    Ok(number.into())
}

/// A root with the parameters of `digits`.
#[trace]
fn digits_root(
    a: Int,
    b: Int,
    #[default(3)] c: Int,
    #[kw]
    #[default(4)]
    d: Int,
) -> Result<Int> {
    digits(a, b, c, d)
}

#[trace]
fn keyed_root(
    a: Int,
    #[kw] b: Int,
    #[kw]
    #[default(3)]
    c: Int,
) -> Result<Int> {
    keyed(a, b, c)
}

/// Runs a graph of one call.
fn call(
    function: fx_core::ir::Function,
    args: impl IntoArguments,
    kwargs: impl IntoKwargs,
) -> Result<i64> {
    let mut graph = Graph::new();
    let call = graph.call_function(function, args, kwargs)?;
    graph.output(call)?;
    module(graph)?.forward(())
}

/// Checks that the error of a call has this text, and the callee's signature.
#[track_caller]
fn refused_for<T>(problem: &str, result: Result<T>) {
    let error = refused(result).to_string();
    assert!(
        error.contains(&format!("{problem}; it takes (a: Int, b: Int")),
        "{error}"
    );
}

#[test]
fn positions_keywords_and_defaults_bind_alike() -> Result<()> {
    let f = function!(digits);
    assert_eq!(call(f, (1, 2), ())?, 1234);
    assert_eq!(call(f, (1, 2, 7), ())?, 1274);
    assert_eq!(call(f, (1,), [("b", 2)])?, 1234);
    assert_eq!(call(f, (1,), [("c", 7), ("b", 2)])?, 1274);
    assert_eq!(call(f, (), [("d", 9), ("c", 7), ("b", 2), ("a", 1)])?, 1279);

    let mut graph = Graph::new();
    let node = graph.call_function(f, (1,), [("d", 9), ("b", 2)])?;
    let bound = [("a", 1), ("b", 2), ("c", 3), ("d", 9)]
        .map(|(name, digit)| (name.to_string(), Argument::Int(digit)));
    assert_eq!(graph.node(node)?.normalized_arguments()?, bound);

    let gm = symbolic_trace(traced!(digits_root))?;
    assert_eq!(gm.forward::<i64>((1, 2))?, 1234);
    assert_eq!(gm.forward::<i64>(args![1, 2, 7])?, 1274);
    assert_eq!(gm.forward::<i64>(args![1, c = 7, b = 2])?, 1274);
    assert_eq!(gm.forward::<i64>(args![d = 9, c = 7, b = 2, a = 1])?, 1279);
    Ok(())
}

#[test]
fn a_missing_argument_is_an_error() -> Result<()> {
    let problem = "is missing its argument `b`";
    refused_for(problem, call(function!(digits), (1,), ()));
    refused_for(problem, call(function!(digits), (1,), [("c", 3)]));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>(1));
    refused_for(problem, gm.forward::<i64>(args![1, c = 3]));
    Ok(())
}

#[test]
fn too_many_arguments_are_an_error() -> Result<()> {
    let problem = "takes 4 arguments but 5 were given";
    refused_for(problem, call(function!(digits), (1, 2, 3, 4, 5), ()));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>((1, 2, 3, 4, 5)));
    Ok(())
}

#[test]
fn two_values_for_one_parameter_are_an_error() -> Result<()> {
    let problem = "got more than one value for `a`";
    refused_for(problem, call(function!(digits), (1, 2), [("a", 1)]));
    let gm = symbolic_trace(traced!(digits_root))?;
    refused_for(problem, gm.forward::<i64>(args![1, 2, a = 1]));
    Ok(())
}

#[test]
fn keyword_parameters_are_recorded_by_name() -> Result<()> {
    let f = function!(keyed);
    assert_eq!(call(f, (1,), [("b", 2)])?, 123);
    assert_eq!(call(f, (1,), [("c", 7), ("b", 2)])?, 127);
    let problem = "is missing its argument `b`";
    refused_for(problem, call(f, (1,), ()));

    let gm = symbolic_trace(traced!(keyed_root))?;
    assert_eq!(gm.forward::<i64>(args![1, b = 2])?, 123);
    refused_for(problem, gm.forward::<i64>(1));
    let node = gm.graph().node(node(gm.graph(), "keyed")?.id())?;
    assert_eq!(node.args().len(), 1, "recorded by name");
    let recorded: Vec<&str> = node.kwargs().iter().map(|(name, _)| &**name).collect();
    assert_eq!(recorded, ["b", "c"]);
    Ok(())
}
