//! Traces that fail: each error names what, where and what to do, and leaves no trace behind.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::mpsc;

use fx_core::ErrorKind;
use fx_core::ir::{Function, Op};
use fx_core::prelude::*;
use fx_core::trace::{Tracer, is_tracing};
use fx_core::value::Proxy;

use crate::support::*;

#[test]
fn an_escape_names_the_operation_the_value_and_the_line() {
    let line = line!() + 3;
    let error = symbolic_trace(traced!(|x: &Array| {
        let y = x.relu()?;
        let n = (y + 1.0)?.to_vec()?.len();
        x * n
    }))
    .expect_err("to_vec needs a run");
    assert!(
        matches!(error.kind(), ErrorKind::Escape { what, value, .. }
        if what == "to_vec" && value == "%add"),
        "{error}"
    );
    assert_eq!(error.location().map(|l| l.line), Some(line), "{error}");
    assert!(
        error.to_string().contains("a leaf with `#[wrap]`"),
        "{error}"
    );
    assert!(!is_tracing());
}

#[trace]
fn flagged(x: &Array, flag: bool, count: usize, name: &str) -> Result<Array> {
    let x = if flag { x.relu()? } else { x.clone() };
    x * (count + name.len())
}

#[test]
fn a_plain_argument_left_open_is_named_before_anything_runs() {
    let error = symbolic_trace(traced!(flagged)).expect_err("flag is a bool");
    assert!(
        matches!(error.kind(), ErrorKind::Unspecialised { argument, ty }
        if argument == "flag" && ty == "bool"),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("Trace::concrete(\"flag\", value)"),
        "{error}"
    );
    let next = Trace::new(traced!(flagged)).concrete("flag", true).graph();
    assert!(
        matches!(next.expect_err("count is a usize").kind(), ErrorKind::Unspecialised { argument, .. }
        if argument == "count")
    );
}

#[test]
fn a_concrete_argument_specialises_and_guards() -> Result<()> {
    let trace = || {
        Trace::new(traced!(flagged))
            .concrete("count", 3usize)
            .concrete("name", "ab")
    };
    let gm = trace().concrete("flag", true).graph_module()?;
    let text = gm.graph().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(
        lines[1..],
        [
            "%x : &Array [num_users=1] = placeholder[target=x]",
            "%flag : bool [num_users=1] = placeholder[target=flag]",
            "%count : usize [num_users=1] = placeholder[target=count]",
            "%name : &str [num_users=1] = placeholder[target=name]",
            "%assert_specialized : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%flag, \"flag\", true), kwargs = {})",
            "%assert_specialized_1 : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%count, \"count\", 3), kwargs = {})",
            "%assert_specialized_2 : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%name, \"name\", \"ab\"), kwargs = {})",
            "%relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})",
            "%mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%relu, 5), kwargs = {})",
            "return %mul",
        ]
    );
    let x = Array::vec(&[1.0, -1.0]);
    let y: Array = gm.forward((&x, true, 3, "ab"))?;
    assert_eq!(y.to_vec()?, [5.0, 0.0]);
    for (flag, count, name, wrong) in [
        (false, 3, "ab", "flag"),
        (true, 4, "ab", "count"),
        (true, 3, "b", "name"),
    ] {
        let error = gm
            .forward::<Array>((&x, flag, count, name))
            .expect_err("guarded");
        assert!(
            error
                .to_string()
                .contains(&format!("argument {wrong:?} was specialised")),
            "{error}"
        );
    }
    let other = trace().concrete("flag", false).graph_module()?;
    assert!(other.graph().find_name("relu").is_none());
    let unknown = trace()
        .concrete("flga", true)
        .graph()
        .expect_err("no such argument");
    assert!(unknown.to_string().contains("`flga`"), "{unknown}");
    Ok(())
}

#[test]
fn a_graph_specialised_to_a_structure_runs_on_that_structure() -> Result<()> {
    let f = || traced!(|x: &Array, sizes: Vec<i64>| x * sizes.len());
    let gm = Trace::new(f())
        .concrete("sizes", vec![2, 3])
        .graph_module()?;
    let y: Array = gm.forward((&Array::vec(&[1.0]), vec![2, 3]))?;
    assert_eq!(y.to_vec()?, [2.0]);
    let f = || traced!(|x: &Array, mask: &Array| x * mask);
    let mask = Array::vec(&[4.0]);
    let gm = Trace::new(f()).concrete("mask", &mask).graph_module()?;
    let y: Array = gm.forward((&Array::vec(&[1.0]), &mask))?;
    assert_eq!(y.to_vec()?, [4.0]);
    Ok(())
}

#[test]
fn an_integer_is_taken_where_a_float_was_specialised() -> Result<()> {
    let f = traced!(|x: &Array, factor: f64| x * factor);
    let gm = Trace::new(f).concrete("factor", 2.0).graph_module()?;
    let y: Array = gm.forward((&Array::vec(&[1.0]), 2))?;
    assert_eq!(y.to_vec()?, [2.0]);
    Ok(())
}

fn leak() -> Result<Array> {
    let stolen = Rc::new(RefCell::new(None));
    let thief = stolen.clone();
    symbolic_trace(traced!(move |x: &Array| {
        *thief.borrow_mut() = Some(x.clone());
        x.relu()
    }))?;
    let leaked = stolen.borrow_mut().take();
    leaked.ok_or_else(|| Error::msg("the closure ran"))
}

fn is_foreign(error: &Error, words: &str) {
    assert!(
        matches!(error.kind(), ErrorKind::ForeignProxy { .. }) && error.to_string().contains(words),
        "{error}"
    );
}

#[test]
fn a_value_that_outlived_its_trace_is_refused_everywhere() -> Result<()> {
    let leaked = leak()?;
    is_foreign(&leaked.relu().expect_err("a method"), "has ended");
    is_foreign(&relu(&leaked).expect_err("a function"), "has ended");
    is_foreign(&(&leaked + 1.0).expect_err("an operator"), "has ended");
    is_foreign(
        &(1.0 - &leaked).expect_err("a reflected operator"),
        "has ended",
    );
    is_foreign(
        &concat(&[Array::vec(&[1.0]), leaked.clone()]).expect_err("in a list"),
        "has ended",
    );
    is_foreign(&leaked.to_vec().expect_err("an escape"), "has ended");
    is_foreign(&split_sign(&leaked).expect_err("two results"), "has ended");
    let gm = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    is_foreign(
        &gm.forward::<Array>(&leaked).expect_err("a graph"),
        "has ended",
    );
    let captured = leaked.clone();
    let error = symbolic_trace(traced!(move |x: &Array| x + &captured)).expect_err("another trace");
    is_foreign(&error, "trace #");
    let returned = symbolic_trace(traced!(move |x: &Array| {
        x.relu()?;
        Ok(leaked.clone())
    }));
    is_foreign(&returned.expect_err("as a result"), "trace #");
    Ok(())
}

#[test]
fn a_value_on_another_thread_is_refused_and_both_threads_named() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let here = x.clone();
        let there = std::thread::spawn(move || here.relu().map(|_| ()));
        let result = there
            .join()
            .map_err(|_| Error::msg("the thread panicked"))?;
        let error = result.expect_err("a proxy belongs to its thread");
        is_foreign(&error, "its own thread");
        let own = format!("runs on {:?}", std::thread::current().id());
        assert!(error.to_string().contains(&own), "{error}");
        x.relu()
    }))?;
    assert_eq!(
        gm.graph().len(),
        3,
        "nothing of the other thread was recorded"
    );
    Ok(())
}

#[test]
fn two_traces_cannot_mix_in_one_call() -> Result<()> {
    let gm = symbolic_trace(traced!(|outer: &Array| {
        let captured = outer.clone();
        let mixed = symbolic_trace(traced!(move |inner: &Array| inner + &captured));
        is_foreign(
            &mixed.expect_err("two traces in one call"),
            "cannot mix two",
        );
        assert!(is_tracing(), "the outer trace still runs");
        // An inner trace is not a problem.
        let gm = symbolic_trace(traced!(|x: &Array| x * 2.0))?;
        assert_eq!(gm.graph().len(), 3);
        outer.relu()
    }))?;
    assert_eq!(gm.graph().len(), 3);
    assert!(!is_tracing());
    Ok(())
}

#[test]
fn an_error_in_a_forward_leaves_no_trace_active() {
    let error = symbolic_trace(traced!(|x: &Array| -> Result<Array> {
        x.relu()?;
        Err(Error::msg("the user's own"))
    }));
    assert!(
        error
            .expect_err("it fails")
            .to_string()
            .contains("the user's own")
    );
    assert!(!is_tracing());
    assert_eq!(
        Array::vec(&[-1.0]).relu().and_then(|x| x.to_vec()).ok(),
        Some(vec![0.0])
    );
}

#[test]
fn a_panic_in_a_forward_leaves_no_trace_active() -> Result<()> {
    let inner = std::panic::catch_unwind(AssertUnwindSafe(|| {
        symbolic_trace(traced!(|x: &Array| -> Result<Array> {
            let nested = symbolic_trace(traced!(|y: &Array| -> Result<Array> {
                y.relu()?;
                std::panic::resume_unwind(Box::new("the user's own"))
            }));
            nested?;
            x.relu()
        }))
        .map(|_| ())
    }));
    assert!(inner.is_err());
    assert!(!is_tracing());
    assert_eq!(Array::vec(&[-1.0]).relu()?.to_vec()?, [0.0]);
    assert_eq!(
        symbolic_trace(traced!(|x: &Array| x.relu()))?.graph().len(),
        3
    );
    Ok(())
}

#[test]
fn a_panic_caught_inside_a_trace_keeps_the_outer_one_recording() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| {
        let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
            symbolic_trace(traced!(|_y: &Array| -> Result<Array> {
                std::panic::resume_unwind(Box::new("inner"))
            }))
            .map(|_| ())
        }));
        assert!(caught.is_err() && is_tracing());
        x.relu()
    }))?;
    assert_eq!(gm.graph().len(), 3);
    Ok(())
}

/// Two threads are inside their traces at the same moment.
#[test]
fn two_threads_trace_at_once() -> Result<()> {
    let (to_second, from_first) = mpsc::channel::<()>();
    let (to_first, from_second) = mpsc::channel::<()>();
    let trace = |send: mpsc::Sender<()>, receive: mpsc::Receiver<()>, count: usize| {
        symbolic_trace(traced!(move |x: &Array| {
            let mut y = x.clone();
            for _ in 0..count {
                send.send(()).map_err(Error::other)?;
                receive.recv().map_err(Error::other)?;
                y = y.relu()?;
            }
            Ok(y)
        }))
    };
    let other =
        std::thread::spawn(move || trace(to_first, from_first, 50).map(|gm| gm.graph().len()));
    let own = trace(to_second, from_second, 50)?.graph().len();
    let other = other
        .join()
        .map_err(|_| Error::msg("the thread panicked"))??;
    assert_eq!((own, other), (52, 52));
    Ok(())
}

#[test]
fn the_graph_borrowed_while_recording_is_an_error() -> Result<()> {
    struct Holder;
    impl Tracer for Holder {
        fn create_proxy(
            &self,
            cx: &fx_core::trace::TraceContext,
            op: Op,
            _: fx_core::trace::CallArgs,
        ) -> Result<Proxy> {
            let _graph = cx.graph()?;
            let node = self.create_node(
                cx,
                op,
                fx_core::ir::Args::new(),
                fx_core::ir::Kwargs::new(),
                None,
            )?;
            Ok(self.proxy(cx, node))
        }
    }
    let error = Trace::new(traced!(|x: &Array| x.relu()))
        .tracer(Holder)
        .graph();
    assert!(
        error
            .expect_err("borrowed")
            .to_string()
            .contains("is borrowed")
    );
    Ok(())
}

#[test]
fn handles_of_functions_are_checked() -> Result<()> {
    assert_eq!(function!(relu).path(), "array::relu");
    let found: Option<Function> = fx_core::ir::registry::function("array::relu")?;
    assert_eq!(found, Some(function!(relu)));
    assert_eq!(fx_core::ir::registry::function("array::no_such")?, None);
    assert_eq!(fx_core::ir::registry::methods("repeat").len(), 2);
    assert!(
        function!(relu).is_pure() && !function!(record).is_pure() && !function!(noise).is_pure()
    );
    Ok(())
}
