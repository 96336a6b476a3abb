//! The pass manager, its checks, and the records of passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fx_nn::ErrorKind;
use fx_nn::ir::{NodeAction, Op};
use fx_nn::operator;
use fx_nn::passes::{Cse, DeadCode, Pass, PassManager, pass_fn};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

use super::count;

/// Replaces every call of one function by another's.
fn retargeting(
    name: &str,
    from: fx_nn::ir::Function,
    to: fx_nn::ir::Function,
) -> impl Pass + 'static {
    pass_fn(name, move |gm| {
        let calls = gm.graph().find_nodes(&Op::CallFunction(from));
        let calls: Vec<NodeId> = calls.into_iter().map(|node| node.id()).collect();
        let mut graph = gm.graph_mut();
        for id in &calls {
            let args: Vec<fx_nn::ir::Argument> = graph.node(*id)?.args().to_vec();
            let new = graph.inserting_before(*id)?.call_function(to, args, ())?;
            graph.node_mut(*id)?.replace_all_uses_with(new)?;
            graph.erase_node(*id)?;
        }
        Ok(!calls.is_empty())
    })
}

fn add_to_mul() -> impl Pass + 'static {
    retargeting("add_to_mul", operator::add, operator::mul)
}

fn mul_to_sub() -> impl Pass + 'static {
    retargeting("mul_to_sub", operator::mul, operator::sub)
}

fn sums() -> Result<GraphModule> {
    symbolic_trace(traced!(|x: &Tensor, y: &Tensor| {
        let z = (x + y)?;
        let z = (z + x)?;
        z + y
    }))
}

#[test]
fn passes_run_in_rounds_until_nothing_changes() -> Result<()> {
    let mut gm = sums()?;
    let report = PassManager::new()
        .pass(add_to_mul())
        .pass(mul_to_sub())
        .steps(5)
        .run(&mut gm)?;
    assert_eq!(
        (count(&gm, "add"), count(&gm, "mul"), count(&gm, "sub")),
        (0, 0, 3)
    );
    // The second round changes nothing, and is the last.
    let rounds: Vec<(usize, &str, bool)> = report
        .records
        .iter()
        .map(|(round, r)| (*round, r.pass.as_str(), r.changed))
        .collect();
    assert_eq!(
        rounds,
        [
            (1, "add_to_mul", true),
            (1, "mul_to_sub", true),
            (2, "add_to_mul", false),
            (2, "mul_to_sub", false)
        ]
    );
    assert!(report.changed());
    assert!(
        report.to_string().contains(
            "add_to_mul      1      yes             6      6        3         3       3       0"
        ),
        "{report}"
    );
    Ok(())
}

#[test]
fn checks_run_after_each_pass() -> Result<()> {
    let no_muls = |gm: &GraphModule| match count(gm, "mul") {
        0 => Ok(()),
        n => Err(Error::msg(format_args!("{n} products are left"))),
    };
    let mut gm = sums()?;
    let error = PassManager::new()
        .pass(DeadCode)
        .pass(add_to_mul())
        .pass(mul_to_sub())
        .check(no_muls)
        .run(&mut gm)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "in pass `add_to_mul` after `DeadCode`: 3 products are left"
    );
    assert_eq!(error.pass(), Some("add_to_mul"));
    // The module is as the failing pass found it.
    assert_eq!(count(&gm, "add"), 3);
    PassManager::new()
        .pass(mul_to_sub())
        .check(no_muls)
        .run(&mut gm)?;
    Ok(())
}

#[test]
fn constraints_order_passes() -> Result<()> {
    let pass = |name: &str| pass_fn(name, |_| Ok(false));
    let five = || {
        let names = ["0", "1", "2", "3", "4", "5"];
        names
            .into_iter()
            .fold(PassManager::new(), |m, name| m.pass(pass(name)))
    };
    let sorted = five()
        .before("5", "0")
        .before("5", "2")
        .before("4", "0")
        .before("4", "1")
        .before("2", "3")
        .before("3", "1")
        .sorted()?;
    assert_eq!(sorted.names(), ["4", "5", "0", "2", "3", "1"]);
    // Passes that no constraint moves keep their places.
    assert_eq!(five().sorted()?.names(), ["0", "1", "2", "3", "4", "5"]);

    let error = five()
        .before("0", "1")
        .before("1", "2")
        .before("2", "0")
        .sorted()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the constraints form a circle: "),
        "{text}"
    );
    for name in ["`0` before `1`", "`1` before `2`", "`2` before `0`"] {
        assert!(text.contains(name), "{text}");
    }
    // Passes in a group count, and move with it; a name that no pass has is an error.
    let grouped = || {
        PassManager::new()
            .group(PassManager::new().pass(pass("b")))
            .pass(pass("a"))
    };
    let text = grouped()
        .before("a", "b")
        .run(&mut sums()?)
        .unwrap_err()
        .to_string();
    assert!(text.starts_with("pass `a` must run before `b`"), "{text}");
    assert_eq!(grouped().before("a", "b").sorted()?.names(), ["a", "(b)"]);
    let text = grouped()
        .before("a", "c")
        .run(&mut sums()?)
        .unwrap_err()
        .to_string();
    assert_eq!(
        text,
        "a constraint names the pass `c`, and there is none: there are `b`, `a`"
    );
    assert!(grouped().before("a", "c").sorted().is_err());

    // The order is reported as it is: torch.fx prints it backwards.
    let error = five().before("3", "1").run(&mut sums()?).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Constraint(_)));
    assert!(
        error
            .to_string()
            .starts_with("pass `3` must run before `1`, but is number 4 and `1` is number 2"),
        "{error}"
    );
    Ok(())
}

#[test]
fn an_error_names_the_pass_and_those_before_it() -> Result<()> {
    let fails = pass_fn("fails", |gm| {
        let node = gm.graph().find_name("add_1").map(|node| node.id());
        let node = node.ok_or_else(|| Error::msg("there is a second sum"))?;
        // It has users.
        gm.graph_mut().erase_node(node)?;
        Ok(true)
    });
    let mut gm = sums()?;
    let before = gm.graph().to_string();
    let error = PassManager::new()
        .pass(Cse::new())
        .pass(DeadCode)
        .pass(fails)
        .run(&mut gm);
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with("in pass `fails` after `Cse`, `DeadCode`: cannot erase %add_1"),
        "{text}"
    );
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

#[test]
fn observers_outlive_a_pass_that_fails() -> Result<()> {
    #[derive(Default)]
    struct Created(AtomicUsize);
    impl fx_nn::ir::GraphObserver for Created {
        fn created(&self, _: fx_nn::ir::NodeRef<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let created = Arc::new(Created::default());
    let mut gm = sums()?;
    gm.graph_mut().observe(created.clone());
    let refused = pass_fn("refused", |gm| {
        gm.retarget(
            &Op::CallFunction(operator::add),
            Op::CallFunction(operator::neg),
        )?;
        Ok(true)
    });
    assert!(gm.apply(&refused).is_err());
    gm.apply(&add_to_mul())?;
    assert_eq!(created.0.load(Ordering::Relaxed), 3);
    Ok(())
}

#[test]
fn a_graph_that_a_pass_breaks_is_told_with_node_and_line() -> Result<()> {
    let breaks = pass_fn("breaks", |gm| {
        let add = gm.graph().find_name("add").map(|node| node.id());
        let add = add.ok_or_else(|| Error::msg("there is a sum"))?;
        gm.graph_mut().node_mut(add)?.set_args(())?;
        Ok(true)
    });
    let mut gm = sums()?;
    let text = gm.apply(&breaks).unwrap_err().to_string();
    assert!(
        text.starts_with("in pass `breaks`: while checking %add ("),
        "{text}"
    );
    assert!(text.contains("manager.rs:"), "{text}");
    let x = Tensor::ones(2)?;
    assert_eq!(gm.forward::<Tensor>((&x, &x))?.to_vec()?, [4.0, 4.0]);
    Ok(())
}

#[test]
fn requirements_and_promises_are_checked() -> Result<()> {
    struct NeedsNoSums;
    impl Pass for NeedsNoSums {
        fn requires(&self, gm: &GraphModule) -> Result<()> {
            match count(gm, "add") {
                0 => Ok(()),
                _ => Err(Error::msg("the graph still adds; run `add_to_mul` first")),
            }
        }
        fn run(&self, _: &mut GraphModule) -> Result<bool> {
            Ok(false)
        }
        fn ensures(&self, gm: &GraphModule) -> Result<()> {
            match count(gm, "mul") {
                0 => Err(Error::msg("nothing multiplies")),
                _ => Ok(()),
            }
        }
    }
    let mut gm = sums()?;
    let error = gm.apply(&NeedsNoSums).unwrap_err().to_string();
    assert_eq!(
        error,
        "in pass `NeedsNoSums`: the graph still adds; run `add_to_mul` first"
    );
    gm.apply(&add_to_mul())?;
    gm.apply(&NeedsNoSums)?;
    gm.apply(&mul_to_sub())?;
    assert!(gm.apply(&NeedsNoSums).is_err());
    Ok(())
}

#[test]
fn numbers_are_checked_after_every_pass_and_bisect_finds_the_one_that_changes_them() -> Result<()> {
    let x = Tensor::from_vec(vec![1.5f32, -2.0], 2)?;
    let passes = || {
        PassManager::new()
            .pass(DeadCode)
            .pass(Cse::new())
            .pass(add_to_mul())
            .pass(DeadCode)
    };
    let mut gm = sums()?;
    let error = passes()
        .check_numbers((&x, &x), 0.0, 0.0)
        .run(&mut gm)
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Numbers(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("in pass `add_to_mul` after `DeadCode`, `Cse`: the numbers changed on sample 1: not close: 2 elements differ"),
        "{text}"
    );
    assert_eq!(count(&gm, "add"), 3);

    let culprit = passes().bisect(&gm, (&x, &x), 0.0, 0.0)?;
    let culprit = culprit.ok_or_else(|| Error::msg("one changes them"))?;
    assert_eq!(
        (culprit.record.pass.as_str(), culprit.after.len()),
        ("add_to_mul", 2)
    );
    assert!(
        culprit
            .to_string()
            .contains("result: not close: 2 elements differ")
    );
    // Passes that keep the numbers have no culprit, and the module is untouched.
    assert!(
        PassManager::new()
            .pass(Cse::new())
            .bisect(&gm, (&x, &x), 0.0, 0.0)?
            .is_none()
    );
    assert_eq!(count(&gm, "add"), 3);

    // A module that draws random numbers cannot be checked, which is an error.
    let mut draws = symbolic_trace(traced!(|x: &Tensor| x + ops::rand_like(x, None)?))?;
    let refused = PassManager::new()
        .pass(DeadCode)
        .bisect(&draws, &x, 0.0, 0.0);
    assert!(refused.is_err_and(|e| {
        e.to_string()
            .contains("because %rand_like draws random numbers")
    }));
    let error = PassManager::new()
        .check_numbers(&x, 0.0, 0.0)
        .pass(DeadCode)
        .run(&mut draws);
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("because %rand_like draws random numbers"),
        "{text}"
    );
    Ok(())
}

#[test]
fn groups_settle_by_themselves_and_restless_passes_are_named() -> Result<()> {
    let rounds = Arc::new(AtomicUsize::new(0));
    let seen = rounds.clone();
    let three_times = pass_fn("three_times", move |_| {
        Ok(seen.fetch_add(1, Ordering::Relaxed) < 3)
    });
    let mut gm = sums()?;
    let report = PassManager::new()
        .pass(DeadCode)
        .group(PassManager::new().pass(three_times).until_unchanged())
        .run(&mut gm)?;
    assert_eq!(
        (rounds.load(Ordering::Relaxed), report.records.len()),
        (4, 5)
    );

    let endless = PassManager::new()
        .pass(pass_fn("restless", |_| Ok(true)))
        .until_unchanged();
    let text = endless.run(&mut gm).unwrap_err().to_string();
    assert!(
        text.contains("after 100 rounds restless still changed something"),
        "{text}"
    );
    Ok(())
}

#[test]
fn edits_in_place_are_told_whatever_the_pass_says() -> Result<()> {
    let in_place = pass_fn("in_place", |gm| {
        let last = gm.graph().find_name("add_2").map(|node| node.id());
        let last = last.ok_or_else(|| Error::msg("there are three sums"))?;
        gm.graph_mut().node_mut(last)?.update_arg(1, 2.0)?;
        Ok(false)
    });
    let mut gm = sums()?;
    let record = gm.apply(&in_place)?;
    assert!(record.changed);
    assert_eq!(
        (record.edited.as_slice(), record.created.len()),
        (&["add_2".to_string()][..], 0)
    );
    // Users of replaced nodes are not edited.
    assert!(gm.apply(&add_to_mul())?.edited.is_empty());
    Ok(())
}

#[test]
fn a_pass_records_what_it_made_replaced_and_erased() -> Result<()> {
    let mut gm = sums()?;
    let record = gm.apply(&add_to_mul())?;
    assert_eq!(record.created, ["mul", "mul_1", "mul_2"]);
    assert_eq!(record.erased, ["add", "add_1", "add_2"]);
    let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
    assert_eq!(
        record.replaced,
        [
            pair("add", "mul"),
            pair("add_1", "mul_1"),
            pair("add_2", "mul_2")
        ]
    );
    assert_eq!((record.nodes_before, record.nodes_after), (6, 6));

    // A pass that builds another graph is recorded by names.
    let anew = pass_fn("anew", |gm| {
        *gm = gm.transform(&mut fx_nn::run::PlainInterpreter)?;
        let last = gm.graph().find_name("mul_2").map(|node| node.id());
        let last = last.ok_or_else(|| Error::msg("there are three products"))?;
        gm.graph_mut().node_mut(last)?.rename("product");
        Ok(true)
    });
    let record = gm.apply(&anew)?;
    assert_eq!(
        (record.created.as_slice(), record.erased.as_slice()),
        (&["product".to_string()][..], &["mul_2".to_string()][..])
    );
    let product = gm.graph().find_name("product").map(|node| node.id());
    let story = gm
        .graph()
        .explain(product.ok_or_else(|| Error::msg("it was renamed"))?)?;
    assert!(story.contains("made by pass `anew`"), "{story}");
    Ok(())
}

#[test]
fn provenance_goes_through_several_passes() -> Result<()> {
    let mut gm = sums()?;
    gm.apply(&add_to_mul())?;
    gm.apply(&mul_to_sub())?;
    let sub = gm
        .graph()
        .find_name("sub")
        .ok_or_else(|| Error::msg("it subtracts"))?;
    // Through both passes, back to the first node.
    let told: Vec<(&str, NodeAction, Vec<String>)> = sub
        .sources()
        .iter()
        .map(|s| (&*s.pass, s.action, s.from.clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("add_to_mul", NodeAction::Replace, vec!["add".to_string()]),
            ("mul_to_sub", NodeAction::Create, vec![]),
            ("mul_to_sub", NodeAction::Replace, vec!["mul".to_string()]),
        ]
    );
    let told: serde_json::Value = serde_json::from_str(&gm.graph().provenance_json())
        .map_err(|error| Error::msg(error.to_string()))?;
    let expected = serde_json::json!([
        {"pass": "add_to_mul", "action": "replace", "from": ["add"]},
        {"pass": "mul_to_sub", "action": "create", "from": []},
        {"pass": "mul_to_sub", "action": "replace", "from": ["mul"]},
    ]);
    assert_eq!(told.get("sub"), Some(&expected));
    // No pass is running any more.
    let x = sub.all_input_nodes().next().map(|node| node.id());
    let neg = gm.graph_mut().call_function(
        operator::neg,
        (x.ok_or_else(|| Error::msg("it has inputs"))?,),
        (),
    )?;
    assert!(gm.graph().node(neg)?.sources().is_empty());
    Ok(())
}

#[test]
fn a_copy_made_in_a_pass_is_not_watched() -> Result<()> {
    let kept: Arc<std::sync::Mutex<Option<GraphModule>>> = Arc::default();
    let keep = kept.clone();
    let copies = pass_fn("copies", move |gm| {
        if let Ok(mut kept) = keep.lock() {
            *kept = Some(gm.clone());
        }
        Ok(false)
    });
    let record = sums()?.apply(&copies)?;
    assert!(record.created.is_empty());
    let copy = kept.lock().ok().and_then(|mut kept| kept.take());
    let mut copy = copy.ok_or_else(|| Error::msg("the pass kept a copy"))?;
    // Later changes of the copy are not recorded, and belong to no pass.
    let x = copy.graph().placeholders().next().map(|node| node.id());
    let neg = copy.graph_mut().call_function(
        operator::neg,
        (x.ok_or_else(|| Error::msg("it has inputs"))?,),
        (),
    )?;
    assert!(copy.graph().node(neg)?.sources().is_empty());
    Ok(())
}

#[test]
fn the_story_of_a_node_is_told() -> Result<()> {
    let mut gm = sums()?;
    gm.apply(&add_to_mul())?;
    gm.apply(&mul_to_sub())?;
    let sub = gm.graph().find_name("sub").map(|node| node.id());
    let story = gm
        .graph()
        .explain(sub.ok_or_else(|| Error::msg("it subtracts"))?)?;
    let mut lines = story.lines();
    assert_eq!(
        lines.next(),
        Some(
            "%sub : [num_users=1] = call_function[target=fx_core::operator::sub](args = (%x, %y), kwargs = {})"
        )
    );
    // The user's line, not the pass's.
    let written = lines.next().unwrap_or_default();
    let line = sums()?
        .graph()
        .find_name("add")
        .and_then(|n| Some(n.location()?.to_string()));
    assert_eq!(
        written,
        format!("  written at {}", line.unwrap_or_default())
    );
    let rest: Vec<&str> = lines.collect();
    assert_eq!(
        rest,
        [
            "  stands for %add since pass `add_to_mul`",
            "  made by pass `mul_to_sub`",
            "  stands for %mul since pass `mul_to_sub`",
        ]
    );
    Ok(())
}
