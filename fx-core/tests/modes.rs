//! Modes see each call, made eagerly, traced, run by a graph module or interpreted.

use crate::support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fx_core::operator;
use fx_core::prelude::*;
use fx_core::run::PlainInterpreter;
use fx_core::trace::{CallArgs, Mode, ModeCall, ModeCallee, Next, with_mode};
use fx_core::value::IntoValue;
use support::modules::Block;
use support::*;

/// Notes the calls, with their depth inside other calls.
#[derive(Default)]
struct Notes {
    seen: RefCell<Vec<String>>,
    depth: Cell<usize>,
}

impl Notes {
    fn taken(&self) -> Vec<String> {
        self.seen.take()
    }
}

impl Mode for Notes {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        let depth = self.depth.get();
        let text = format!("{}{}", " ".repeat(depth), call.name());
        self.seen.borrow_mut().push(text);
        self.depth.set(depth + 1);
        let result = next.call(call);
        self.depth.set(depth);
        result
    }
}

fn program() -> fx_core::trace::TracedFn {
    traced!(|x: &Array| {
        let y = (x.relu()? + 1.0)?;
        concat(&[y.clone(), (-y)?])?.scale(3.0)
    })
}

const PROGRAM: [&str; 5] = ["relu", "add", "neg", "concat", "scale"];

#[test]
fn a_mode_sees_functions_methods_and_operators_wherever_they_are_called() -> Result<()> {
    let notes = Rc::new(Notes::default());
    let gm = with_mode(notes.clone(), || symbolic_trace(program()))?;
    assert_eq!(notes.taken(), PROGRAM, "traced");
    let expected = gm.forward::<Array>(&x())?.to_vec()?;
    let run = with_mode(notes.clone(), || gm.forward::<Array>(&x()))?;
    // The graph module is a call too.
    let mut inside: Vec<String> = PROGRAM.iter().map(|name| format!(" {name}")).collect();
    inside.insert(0, "GraphModule".into());
    assert_eq!(notes.taken(), inside, "run");
    let interpreted: Array = with_mode(notes.clone(), || gm.interpret(&mut PlainInterpreter, x()))?;
    assert_eq!(notes.taken(), PROGRAM, "interpreted");
    let eager = with_mode(notes.clone(), || -> Result<Array> {
        let y = (x().relu()? + 1.0)?;
        concat(&[y.clone(), (-y)?])?.scale(3.0)
    })?;
    assert_eq!(notes.taken(), PROGRAM, "eager");
    for found in [run, interpreted, eager] {
        assert_eq!(found.to_vec()?, expected);
    }
    gm.forward::<Array>(&x())?;
    assert!(notes.taken().is_empty(), "it has ended");
    Ok(())
}

#[test]
fn a_module_is_one_call_and_its_bodys_calls_are_inside() -> Result<()> {
    let block = Block::new(2);
    let notes = Rc::new(Notes::default());
    let y = with_mode(notes.clone(), || block.forward(&x()))?;
    let eager = [
        "Block",
        " Linear",
        "  linear",
        " Linear",
        "  linear",
        " Shift",
        "  add",
        " Shift",
        "  add",
        " Linear",
        "  linear",
        " sub",
        " Activation",
        "  relu",
    ];
    assert_eq!(notes.taken(), eager);
    assert_eq!(y.to_vec()?, block.forward(&x())?.to_vec()?);
    // A trace runs the root's body; the body of a leaf does not run.
    with_mode(notes.clone(), || symbolic_trace(&block))?;
    let traced = [
        "Linear",
        "Linear",
        "Shift",
        " add",
        "Shift",
        " add",
        "Linear",
        "sub",
        "Activation",
        " relu",
    ];
    assert_eq!(notes.taken(), traced);
    Ok(())
}

/// Notes its name before and after each call.
struct Says(&'static str, Rc<RefCell<Vec<String>>>);

impl Mode for Says {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        self.1.borrow_mut().push(format!("{} in", self.0));
        // A mode does not see its own calls, and those around it do.
        if self.0 == "inner" {
            Array::vec(&[1.0]).relu()?;
        }
        let result = next.call(call);
        self.1.borrow_mut().push(format!("{} out", self.0));
        result
    }
}

#[test]
fn the_innermost_mode_is_first_and_does_not_see_its_own_calls() -> Result<()> {
    let said = Rc::new(RefCell::new(Vec::new()));
    with_mode(Says("outer", said.clone()), || {
        with_mode(Says("inner", said.clone()), || x().relu())
    })?;
    let expected = [
        "inner in",
        "outer in",
        "outer out",
        "outer in",
        "outer out",
        "inner out",
    ];
    assert_eq!(said.take(), expected);
    Ok(())
}

/// Turns every sum into a difference, and doubles the result.
struct Changes;

impl Mode for Changes {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        if call.function() != Some(operator::add) {
            return next.call(call);
        }
        let other = ModeCall::function_call(operator::sub, call.args);
        let difference = Array::from_value(next.call(other)?)?;
        Ok((difference * 2.0)?.into_value())
    }
}

#[test]
fn a_mode_changes_calls_eagerly_and_in_traces() -> Result<()> {
    let y = with_mode(Changes, || x() + 1.0)?;
    assert_eq!(y.to_vec()?, [0.0, -6.0]);
    let gm = with_mode(Changes, || symbolic_trace(traced!(|x: &Array| x + 1.0)))?;
    let names: Vec<&str> = gm.graph().nodes().map(|node| node.target()).collect();
    assert_eq!(
        names,
        [
            "x",
            "fx_core::operator::sub",
            "fx_core::operator::mul",
            "output"
        ]
    );
    let plain = symbolic_trace(traced!(|x: &Array| x + 1.0))?;
    let run: Array = with_mode(Changes, || plain.forward(x()))?;
    assert_eq!(run.to_vec()?, [0.0, -6.0]);
    Ok(())
}

/// Refuses one function.
struct Refuses;

impl Mode for Refuses {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        match call.callee() {
            ModeCallee::Function(function) if function.name() == "relu" => {
                Err(Error::msg("no relu here"))
            }
            _ => next.call(call),
        }
    }
}

#[test]
fn a_modes_error_ends_the_call_and_names_the_node_of_a_run() -> Result<()> {
    let error = with_mode(Refuses, || x().relu()).expect_err("it is refused");
    assert_eq!(error.to_string(), "no relu here");
    let gm = symbolic_trace(program())?;
    let error = with_mode(Refuses, || gm.forward::<Array>(&x())).expect_err("it is refused");
    assert_eq!(error.node(), Some("relu"), "{error}");
    Ok(())
}

struct Panics;

impl Mode for Panics {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        match call.name().as_str() {
            "relu" => panic!("as asked"),
            _ => next.call(call),
        }
    }
}

#[test]
fn modes_are_gone_after_unwinding() -> Result<()> {
    let notes = Rc::new(Notes::default());
    with_mode(notes.clone(), || {
        let run = || with_mode(Panics, || x().relu());
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert!(unwound.is_err());
        x().scale(2.0)
    })?;
    assert_eq!(notes.taken(), ["scale"]);
    assert!(!fx_core::tensor::may_record());
    Ok(())
}

/// Runs what it sees in a separate mode.
struct Nests(Rc<Notes>);

impl Mode for Nests {
    fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
        let result = next.call(call)?;
        with_mode(self.0.clone(), || Array::vec(&[1.0]).scale(1.0))?;
        Ok(result)
    }
}

#[test]
fn a_mode_can_start_one() -> Result<()> {
    let (inner, outer) = (Rc::new(Notes::default()), Rc::new(Notes::default()));
    with_mode(outer.clone(), || {
        with_mode(Nests(inner.clone()), || x().relu())?;
        x().relu()
    })?;
    assert_eq!(inner.taken(), ["scale"]);
    assert_eq!(outer.taken(), ["relu", "scale", "relu"]);
    Ok(())
}

#[test]
fn arguments_have_their_parameters_names() -> Result<()> {
    struct Asks(Rc<Cell<Option<f64>>>);
    impl Mode for Asks {
        fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
            assert!(call.is_leaf() && call.argument("nothing").is_none());
            if let Some(Value::Float(by)) = call.argument("factor") {
                self.0.set(Some(*by));
            }
            next.call(call)
        }
    }
    let by = Rc::new(Cell::new(None));
    with_mode(Asks(by.clone()), || x().scale(3.0))?;
    assert_eq!(by.get(), Some(3.0));
    // A method called by name on a known value is that of its type.
    let call = CallArgs {
        args: vec![x().into_value(), 4.0.into_value()],
        kwargs: Vec::new(),
    };
    with_mode(Asks(by.clone()), || {
        fx_core::trace::call_method("scale", call)
    })?;
    assert_eq!(by.get(), Some(4.0));
    Ok(())
}
