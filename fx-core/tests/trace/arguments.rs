//! The arguments and results of traced functions: structures, defaults, specialised arguments.

use fx_core::ErrorKind;
use fx_core::ir::{Meta, MetaPolicy};
use fx_core::prelude::*;
use fx_core::trace::{SymbolicTracer, Tracer};
use fx_core::value::IntoValue;
use indexmap::IndexMap;
use insta::assert_snapshot;

use crate::support::*;
use crate::trace::modules::placed;

#[test]
fn bitwise_operators_are_recorded() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| Ok(((x & x)?, (x | x)?))))?;
    assert_eq!(names(gm.graph()), ["x", "and_", "or_", "output"]);
    gm.graph().lint()
}

#[test]
fn a_dict_goes_in_and_comes_out() -> Result<()> {
    let gm = Trace::new(traced!(|d: IndexMap<String, Array>| {
        let doubled: Result<IndexMap<String, Array>> =
            d.into_iter().map(|(k, v)| Ok((k, (v * 2.0)?))).collect();
        doubled
    }))
    .concrete("d", tree!({"a": PH, "b": PH}))
    .graph_module()?;
    let input: IndexMap<String, Array> = [("a".to_string(), x()), ("b".to_string(), x())]
        .into_iter()
        .collect();
    let result: IndexMap<String, Array> = gm.forward(input)?;
    assert_eq!(result["b"].to_vec()?, [2.0, -4.0]);
    Ok(())
}

/// A variable number of positional arguments is a list.
#[test]
fn any_number_of_arguments_is_a_list() -> Result<()> {
    #[trace]
    fn sum_of(
        x: Vec<Array>,
        #[kw]
        #[default(1.0)]
        by: Float,
    ) -> Result<Array> {
        let mut sum = (&x[0] * by)?;
        for value in &x[1..] {
            sum = (sum + value)?;
        }
        Ok(sum)
    }
    let gm = Trace::new(traced!(sum_of))
        .concrete("x", tree!([PH, PH]))
        .graph_module()?;
    same(
        &gm,
        Array::vec(&[2.0, -4.0]).relu().and_then(|_| &x() * 2.0),
        (vec![x(), x()],),
    )?;
    let y: Array = gm.forward(args![vec![x(), x()], by = 3.0])?;
    assert_eq!(y.to_vec()?, [4.0, -8.0]);
    Ok(())
}

#[test]
fn a_structure_that_is_not_bound_is_named_in_the_error() {
    let error = symbolic_trace(traced!(
        |pairs: Vec<(Array, Array)>| &pairs[0].0 + &pairs[0].1
    ))
    .unwrap_err()
    .to_string();
    assert!(
        error.contains(r#"`Trace::concrete("pairs", tree!([(PH, PH), (PH, PH)]))`"#),
        "{error}"
    );
    let error = symbolic_trace(traced!(|named: IndexMap<String, Array>| Ok(
        named["a"].clone()
    )))
    .unwrap_err()
    .to_string();
    assert!(error.contains(r#"tree!({"key": PH})"#), "{error}");
}

#[test]
fn each_item_of_a_bound_tuple_is_an_input() -> Result<()> {
    let gm = Trace::new(traced!(|xs: (Array, Array, Array)| (xs.0 + xs.1)? * xs.2))
        .concrete("xs", tree!((PH, PH, PH)))
        .graph_module()?;
    assert_eq!(names(gm.graph())[..3], ["xs_1", "xs_2", "xs_3"]);
    same(&gm, (&x() + &x())? * &x(), ((x(), x(), x()),))
}

#[test]
fn the_truth_of_a_traced_value_is_an_error_with_the_ways_out() {
    // A condition on a tensor does not compile (tests/ui/fail); asking by name is an error that
    // names the alternatives.
    let error = refused(symbolic_trace(traced!(|x: &Array, open: Bool| {
        if open.to_bool()? { x.relu() } else { x * 2.0 }
    })));
    assert!(
        matches!(error.kind(), ErrorKind::ControlFlow { .. }),
        "{error}"
    );
    assert_snapshot!(without_lines(error), @"while tracing `to_bool` (fx-core/tests/trace/arguments.rs:_): symbolically traced variables cannot be used as inputs to control flow: the truth of %open is known only when the graph runs; record both ways with `control::cond`, decide by a plain `bool` argument and bind it with `Trace::concrete`, make the function a leaf with #[wrap], or answer in `Tracer::to_bool`");
}

#[test]
fn an_argument_bound_to_none_is_guarded() -> Result<()> {
    #[trace]
    fn maybe(x: &Array, val: Option<&Array>) -> Result<Array> {
        match val {
            Some(val) => x + val,
            None => x * 2.0,
        }
    }
    let gm = Trace::new(traced!(maybe))
        .concrete("val", None::<f64>)
        .graph_module()?;
    same(&gm, maybe(&x(), None), (&x(), None::<&Array>))?;
    let error = refused(gm.forward::<Array>((&x(), &x())));
    assert!(
        error
            .to_string()
            .contains("argument \"val\" was specialised to None"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_tuple_is_unpacked_by_items() -> Result<()> {
    let gm = symbolic_trace(traced!(|a: (Array, Array), b: &Array| {
        let (c, d) = a;
        ((c + d)? + b)? * 2.0
    }))?;
    assert_eq!(
        names(gm.graph()),
        [
            "a",
            "b",
            "getitem",
            "getitem_1",
            "add",
            "add_1",
            "mul",
            "output"
        ]
    );
    same(&gm, ((&x() + &x())? + &x())? * 2.0, ((x(), x()), &x()))
}

#[test]
fn iterating_a_traced_value_is_an_error() {
    let error = refused(symbolic_trace(traced!(|x: Value| {
        Ok(x.iter()?.collect::<Vec<Value>>())
    })));
    assert_snapshot!(without_lines(error), @"while tracing `iter` (fx-core/tests/trace/arguments.rs:_): %x is symbolic and cannot be iterated: its items are known only when the graph runs; take a fixed number of items, specialise the argument to a structure with `Trace::concrete` and `tree!`, make the function a leaf with #[wrap], or answer in `Tracer::iter`");
}

#[derive(Tree, Clone)]
struct Pair {
    left: Array,
    right: Array,
}

/// A struct of tensors is returned as it was passed in.
#[test]
fn a_struct_goes_through() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array, y: &Array| Ok(Pair {
        left: (x + y)?,
        right: (x * y)?,
    })))?;
    let pair: Pair = gm.forward((&x(), &x()))?;
    assert_eq!(
        (pair.left.to_vec()?, pair.right.to_vec()?),
        ((&x() + &x())?.to_vec()?, (&x() * &x())?.to_vec()?)
    );
    Ok(())
}

#[test]
fn a_struct_as_an_argument_keeps_its_fields_nodes() -> Result<()> {
    #[wrap(path = "rows::of_pair")]
    fn of_pair(pair: Pair) -> Result<Array> {
        pair.left - pair.right
    }
    let mut gm = symbolic_trace(traced!(|x: &Array, y: &Array| of_pair(Pair {
        left: (x + y)?,
        right: y.clone(),
    })))?;
    gm.eliminate_dead_code()?;
    assert_snapshot!(gm.graph(), @r#"
    graph():
        %x : &Array [num_users=1] = placeholder[target=x]
        %y : &Array [num_users=2] = placeholder[target=y]
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %y), kwargs = {})
        %of_pair : [num_users=1] = call_function[target=rows::of_pair](args = ({"left": %add, "right": %y},), kwargs = {})
        return %of_pair
    "#);
    same(&gm, (&x() + &x())? - &x(), (&x(), &x()))
}

#[test]
fn a_tuple_is_returned() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| Ok((x.clone(), (x + x)?))))?;
    let (a, b): (Array, Array) = gm.forward(&x())?;
    assert_eq!(
        (a.to_vec()?, b.to_vec()?),
        (vec![1.0, -2.0], vec![2.0, -4.0])
    );
    Ok(())
}

#[test]
fn a_literal_is_returned() -> Result<()> {
    let gm = symbolic_trace(traced!(|_x: &Array| Ok("foo".into_value())))?;
    assert_eq!(gm.forward::<String>(&x())?, "foo");
    Ok(())
}

#[trace]
fn with_defaults(
    x: &Array,
    #[default(2.0)] factor: Float,
    #[default(1)] offset: Int,
) -> Result<Array> {
    (x * factor)? + offset
}

/// Defaults are in the placeholders, and are used if the call leaves arguments out.
#[test]
fn defaults_stand_in() -> Result<()> {
    let gm = symbolic_trace(traced!(with_defaults))?;
    assert_snapshot!(gm.graph(), @"
    graph():
        %x : &Array [num_users=1] = placeholder[target=x]
        %factor : Float [num_users=1] = placeholder[target=factor](default=2.0)
        %offset : Int [num_users=1] = placeholder[target=offset](default=1)
        %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, %factor), kwargs = {})
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%mul, %offset), kwargs = {})
        return %add
    ");
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [3.0, -3.0]);
    assert_eq!(gm.forward::<Array>((&x(), 3.0))?.to_vec()?, [4.0, -5.0]);
    assert_eq!(
        gm.forward::<Array>(args![&x(), offset = 5])?.to_vec()?,
        [7.0, 1.0]
    );
    let again = symbolic_trace(&gm)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    Ok(())
}

/// A user's plain type is an argument if it defines the value that stands for it.
#[derive(Clone, Copy)]
enum Mode {
    Sum,
    Mean,
}

impl IntoValue for Mode {
    fn into_value(self) -> Value {
        match self {
            Mode::Sum => "sum".into_value(),
            Mode::Mean => "mean".into_value(),
        }
    }
}

#[wrap(path = "rows::reduced")]
fn reduced(x: &Array, mode: &str) -> Result<Array> {
    match mode {
        "sum" => x.sum(),
        _ => x.sum()? / x.to_vec()?.len(),
    }
}

/// The conversion of a custom type defines what it becomes in the graph.
#[test]
fn a_users_type_is_an_argument() -> Result<()> {
    for (mode, said, result) in [(Mode::Sum, "sum", -1.0), (Mode::Mean, "mean", -0.5)] {
        let gm = symbolic_trace(traced!(move |x: &Array| {
            let value = mode.into_value();
            let Value::Str(mode) = &value else {
                return Err(Error::msg("a mode is a string"));
            };
            reduced(x, mode)
        }))?;
        let call = gm
            .graph()
            .find_name("reduced")
            .map(|node| node.args()[1].clone());
        assert_eq!(call, Some(said.into()), "{}", gm.graph());
        assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, [result]);
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq)]
struct Ttag(&'static str);

impl Meta for Ttag {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

#[test]
fn a_placeholder_takes_the_entries_that_it_is_bound_with() -> Result<()> {
    let graph = Trace::new(traced!(|a: Array, b: Vec<Array>| a + b[0].clone()))
        .concrete("a", PH.with_meta(Ttag("whole")))
        .concrete("b", tree!([(PH.with_meta(Ttag("leaf")))]))
        .graph()?;
    let meta = |name: &str| {
        graph
            .find_name(name)
            .and_then(|n| n.meta::<Ttag>().cloned())
    };
    assert_eq!(meta("a"), Some(Ttag("whole")));
    assert_eq!(meta("b_1"), Some(Ttag("leaf")));
    Ok(())
}

/// A tracer that is used twice makes two independent graphs.
#[test]
fn traces_by_one_tracer_are_independent() -> Result<()> {
    let tracer = SymbolicTracer;
    let one = tracer.trace(traced!(placed))?;
    let mut other = tracer.trace(traced!(placed))?;
    let relu = other.graph.find_name("relu").map(|n| n.id());
    let relu = relu.ok_or_else(|| Error::msg("it is there"))?;
    other.graph.node_mut(relu)?.rename("changed");
    assert_eq!(names(&one.graph), ["x", "relu", "add", "output"]);
    Ok(())
}
