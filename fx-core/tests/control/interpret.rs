//! Steps inside of branches and loops: overridden, captured, measured, and transformed.

use fx_core::ir::{Function, ValueMeta};
use fx_core::operator;
use fx_core::prelude::*;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::trace::CallArgs;

#[derive(Module, Default)]
struct Doubling {
    tag: Tag,
}

#[trace]
impl Doubling {
    fn forward(&self, x: Float) -> Result<Float> {
        x * 2.0
    }
}

#[derive(Module, Default)]
struct Net {
    block: Doubling,
}

#[trace(control_flow)]
impl Net {
    fn forward(&self, x: Float, turns: Int) -> Result<Float> {
        let mut h = (x + 1.0)?;
        for _ in 0..turns {
            if h > 4.0 {
                h = (self.block.forward(h)? - 1.0)?;
            } else {
                h = (h + 3.0)?;
            }
        }
        Ok(h)
    }
}

/// Adds ten times as much, and remembers where.
#[derive(Default)]
struct Tenfold {
    places: Vec<String>,
}

impl Interpreter for Tenfold {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        mut call: CallArgs,
    ) -> Result<Value> {
        if function == operator::add
            && let Some(Value::Float(by)) = call.args.get_mut(1)
        {
            *by *= 10.0;
            self.places.extend(run.node().map(|node| run.path_of(node)));
        }
        run.call_function(function, call)
    }
}

/// What the net computes if it adds ten times as much.
fn tenfold(x: f64, turns: i64) -> f64 {
    let turn = |h| if h > 4.0 { h * 2.0 - 1.0 } else { h + 30.0 };
    (0..turns).fold(x + 10.0, |h, _| turn(h))
}

#[test]
fn a_step_inside_is_overridden() -> Result<()> {
    let gm = symbolic_trace(&Net::default())?;
    let mut places = Tenfold::default();
    let y: f64 = gm.interpret(&mut places, (-9.0, 3))?;
    assert_eq!(y, tenfold(-9.0, 3));
    let inner = places.places.iter().find(|place| place.contains('.'));
    assert!(
        inner.is_some_and(|place| place.starts_with("while_loop_0.body.cond_0.otherwise.add")),
        "{:?}",
        places.places
    );
    Ok(())
}

#[test]
fn a_transform_goes_into_the_sides() -> Result<()> {
    let gm = symbolic_trace(&Net::default())?;
    let changed = gm.transform(&mut Tenfold::default())?;
    for (x, turns) in [(-9.0, 3), (2.0, 0), (-30.0, 2)] {
        assert_eq!(changed.forward::<f64>((x, turns))?, tenfold(x, turns));
        let retraced: f64 = symbolic_trace(&changed)?.forward((x, turns))?;
        assert_eq!(retraced, tenfold(x, turns));
    }
    // The old module is as it was.
    assert_eq!(gm.forward::<f64>((-9.0, 1))?, -5.0);
    Ok(())
}

#[test]
fn values_inside_are_captured() -> Result<()> {
    let gm = symbolic_trace(&Net::default())?;
    let seen = gm.capture(&["block", "**.cond_0.*.*"], (2.0, 3))?;
    // 3, then 3 + 3 = 6, 11, 21: the last value of each.
    assert_eq!(f64::from_value(seen["block"].clone())?, 22.0);
    let path = "while_loop_0.body.cond_0.otherwise.add";
    let added = seen.iter().find(|(name, _)| name.starts_with(path));
    assert_eq!(
        added
            .map(|(_, value)| f64::from_value(value.clone()))
            .transpose()?,
        Some(6.0)
    );
    // What did not run has no value.
    let none = gm.capture(&["block"], (2.0, 1))?;
    assert!(none.is_empty(), "{none:?}");
    Ok(())
}

#[test]
fn steps_inside_have_shapes_and_costs() -> Result<()> {
    let mut gm = symbolic_trace(&Net::default())?;
    gm.propagate_shapes((2.0, 3))?;
    let side = gm.submodule_as::<GraphModule>("while_loop_0.body.cond_0.then")?;
    let mul = side.graph().find_name("mul");
    let meta = mul.and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(meta.map(ValueMeta::to_string).as_deref(), Some("22.0"));

    let profile = gm.profile(2, (2.0, 3))?;
    let cost = profile.nodes().iter().find(|node| node.name == "mul");
    let cost = cost.ok_or_else(|| Error::msg("no `mul`"))?;
    assert_eq!(
        (cost.calls, &*cost.inside),
        (4, "while_loop_0.body.cond_0.then")
    );
    let own = profile.nodes().iter().filter(|node| node.inside.is_empty());
    assert_eq!(profile.total(), own.map(|node| node.time).sum());
    assert!(
        profile
            .to_string()
            .contains("while_loop_0.body.cond_0.then.mul")
    );
    Ok(())
}

#[test]
fn an_error_inside_names_both_nodes() -> Result<()> {
    struct Stops;
    impl Interpreter for Stops {
        fn call_function(
            &mut self,
            run: &mut Interpretation<'_>,
            function: Function,
            call: CallArgs,
        ) -> Result<Value> {
            if function == operator::mul {
                return Err(Error::msg("it stops here"));
            }
            run.call_function(function, call)
        }
    }
    let gm = symbolic_trace(&Net::default())?;
    let error = gm
        .interpret::<f64>(&mut Stops, (2.0, 3))
        .expect_err("it stops");
    let text = format!("{error}");
    assert!(
        text.contains("%mul") && text.contains("it stops here"),
        "{text}"
    );
    assert!(text.contains("interpret.rs"), "{text}");
    Ok(())
}
