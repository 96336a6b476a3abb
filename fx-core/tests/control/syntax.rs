//! `#[trace(control_flow)]`.

use fx_core::prelude::*;

use crate::support::text::without_lines;

/// Runs a function eagerly and as a graph on each input: equal numbers, or equal refusals.
pub fn same(
    gm: &GraphModule,
    eager: impl Fn(Float) -> Result<Float>,
    inputs: &[f64],
) -> Result<()> {
    for x in inputs {
        let expected = eager(Float::from(*x));
        let found = gm.forward::<f64>(*x);
        match (expected, found) {
            (Ok(expected), Ok(found)) => assert_eq!(Some(found), expected.concrete(), "{x}"),
            (Err(expected), Err(found)) => {
                let found = found.to_string();
                assert!(found.contains(&expected.to_string()), "{found}");
            }
            (expected, found) => panic!("{x}: {expected:?} and {found:?}"),
        }
    }
    Ok(())
}

pub const INPUTS: [f64; 6] = [-7.0, -1.0, 0.0, 0.5, 3.0, 40.0];

#[trace(control_flow)]
pub fn sides(x: Float) -> Result<Float> {
    let mut h = x;
    if x > 1.0 {
        h = (h * 3.0)?;
    } else if x > -2.0 {
        let y = (h - 1.0)?;
        h = (y * y)?;
    }
    let shift = if h > 5.0 { h * 0.5 } else { h + 0.25 }?;
    h + shift
}

#[test]
fn sides_change_locals_and_give_values() -> Result<()> {
    let gm = symbolic_trace(traced!(sides))?;
    same(&gm, sides, &INPUTS)?;
    assert!(gm.graph().to_string().contains("call_module[target=cond_"));
    Ok(())
}

#[trace(control_flow)]
pub fn collatz(n: Int) -> Result<Int> {
    let mut n = n;
    let mut steps = Int::from(0);
    while n > 1 {
        n = if (n % 2)? == 0 {
            n.floordiv(2)
        } else {
            (n * 3)? + 1
        }?;
        steps = (steps + 1)?;
    }
    Ok(steps)
}

#[test]
fn a_loop_with_a_branch_inside() -> Result<()> {
    let gm = symbolic_trace(traced!(collatz))?;
    for (n, steps) in [(1, 0), (6, 8), (27, 111)] {
        assert_eq!(gm.forward::<i64>(n)?, steps);
        assert_eq!(collatz(Int::from(n))?.concrete(), Some(steps));
    }
    Ok(())
}

#[trace(control_flow)]
pub fn early(x: Float) -> Result<Float> {
    if x < -5.0 {
        return Err(Error::msg("the input is too small"));
    }
    let y = (x * 2.0)?;
    if y > 50.0 {
        return Ok(y);
    }
    let z = (y + 1.0)?;
    if z > 3.0 {
        let z = (z * z)?;
        return z - 1.0;
    }
    z * 0.5
}

#[test]
fn early_returns() -> Result<()> {
    let gm = symbolic_trace(traced!(early))?;
    same(&gm, early, &INPUTS)
}

#[trace(control_flow)]
fn list(x: Float) -> Result<Float> {
    let mut all = vec![x, (x + 1.0)?];
    let sizes = [1usize, 2];
    if x > 0.0 {
        let last = all.pop().unwrap_or(x);
        all.push((last * 10.0)?);
    }
    (all[0] + all[1])? * sizes.len() as f64
}

#[test]
fn a_method_changes_a_local() -> Result<()> {
    let gm = symbolic_trace(traced!(list))?;
    same(&gm, list, &INPUTS)
}

#[trace(control_flow)]
fn counts(x: Float) -> Result<Float> {
    let mut sizes = vec![1usize];
    if x > 0.0 {
        sizes.push(2);
    }
    x * sizes.len() as f64
}

#[test]
fn plain_data_that_changes_in_a_side_is_refused() {
    let error = symbolic_trace(traced!(counts)).unwrap_err();
    insta::assert_snapshot!(without_lines(error), @"`sizes` is plain data and changes where a traced value decides: the graph cannot change it when it runs");
}

/// A value that cannot be copied.
struct Owned(f64);

/// Plain conditions: moves, late values, borrows given out, early returns with a borrow.
#[trace(control_flow)]
fn plain(x: Float, flag: bool) -> Result<Float> {
    let owned = Owned(3.0);
    let mut outs: Vec<Owned> = Vec::new();
    let mut count = 0usize;
    let late;
    let moved = if flag {
        outs.push(Owned(1.0));
        count += 1;
        late = 1.0;
        owned.0
    } else {
        late = 2.0;
        let inner = owned;
        inner.0 + 1.0
    };
    let mut values = vec![1.0, 2.0];
    let first: &mut f64 = if flag { &mut values[0] } else { &mut values[1] };
    *first += 10.0;
    for value in &values {
        if *value > 100.0 {
            break;
        }
        if count > 5 {
            continue;
        }
        count += 1;
    }
    let text = String::from("text");
    if text.is_empty() {
        return x * 0.0;
    }
    drop(text);
    while count < 10 {
        count += 4;
    }
    let sum = moved + late + outs.len() as f64 + count as f64 + values[0];
    x * sum
}

#[test]
fn plain_conditions_are_plain_rust() -> Result<()> {
    for (flag, sum) in [
        (true, 3.0 + 1.0 + 1.0 + 11.0 + 11.0),
        (false, 4.0 + 2.0 + 10.0 + 1.0),
    ] {
        assert_eq!(
            plain(Float::from(1.0), flag)?.concrete(),
            Some(sum),
            "{flag}"
        );
    }
    Ok(())
}

#[trace(control_flow)]
pub fn breaks(x: Float) -> Result<Float> {
    let mut h = x;
    while h < 100.0 {
        h = (h * 2.0)?;
        if h > 20.0 {
            h = (h + 0.5)?;
            break;
        }
        if h < 3.0 {
            h = ((h * 0.25)? + 3.0)?;
            continue;
        }
        h = (h + 0.25)?;
    }
    Ok(h)
}

#[trace(control_flow)]
pub fn repeats(x: Float) -> Result<Float> {
    let mut h = x;
    let mut turns = Int::from(0);
    loop {
        h = (h * 0.5)?;
        if h < 0.1 {
            break;
        }
        turns = (turns + 1)?;
        if turns >= 4 {
            break;
        } else {
            h = (h + 0.01)?;
        }
    }
    h + turns
}

#[trace(control_flow)]
fn unrolled(x: Float) -> Result<Float> {
    let mut h = x;
    for (i, step) in [1.0, 2.0, 3.0, 4.0].into_iter().enumerate() {
        if i == 3 {
            break;
        }
        h = (h + step)?;
        if h > 4.5 {
            h = (h * 10.0)?;
            break;
        }
        if h < 0.0 {
            continue;
        }
        h = (h - 0.5)?;
    }
    Ok(h)
}

#[trace(control_flow)]
fn kept(x: Float) -> Result<Float> {
    let mut h = x;
    while h < 50.0 {
        let y = (h + 10.0)?;
        if y > 20.0 {
            h = (y + 1.0)?;
        } else {
            h = (h + 7.0)?;
            continue;
        }
        if y != 30.0 {
            h = (h + 1.0)?;
        } else {
            break;
        }
    }
    Ok(h)
}

#[trace(control_flow)]
fn stops(x: Float) -> Result<Float> {
    let mut h = x;
    let once = true;
    while h < 50.0 {
        h = (h + 7.0)?;
        if once {
            break;
        }
    }
    Ok(h)
}

#[test]
fn jumps_out_of_loops() -> Result<()> {
    same(&symbolic_trace(traced!(breaks))?, breaks, &INPUTS)?;
    same(&symbolic_trace(traced!(repeats))?, repeats, &INPUTS)?;
    same(&symbolic_trace(traced!(unrolled))?, unrolled, &INPUTS)?;
    same(&symbolic_trace(traced!(kept))?, kept, &INPUTS)?;
    same(&symbolic_trace(traced!(stops))?, stops, &INPUTS)
}

#[trace(control_flow)]
pub fn counted(x: Float, n: Int) -> Result<Float> {
    let mut h = x;
    for i in 0..n {
        if i == 3 {
            continue;
        }
        h = (h + i)?;
    }
    for i in n..=4 {
        h = ((h * 2.0)? + i)?;
    }
    Ok(h)
}

#[test]
fn ranges_with_traced_bounds() -> Result<()> {
    let gm = symbolic_trace(traced!(counted))?;
    for n in [-1i64, 0, 1, 3, 4, 5, 9] {
        let eager = counted(Float::from(1.5), Int::from(n))?.concrete();
        assert_eq!(
            gm.forward::<f64>((1.5, n))?,
            eager.expect("a number"),
            "{n}"
        );
    }
    Ok(())
}

#[trace(control_flow)]
pub fn chooses(x: Float, n: Int, up: Bool) -> Result<Float> {
    let h = match n {
        0 => x * 2.0,
        1 | 2 => x + 1.0,
        -5..=-2 => Ok(x),
        7.. => x - 3.0,
        other => x * other,
    }?;
    match up {
        true => h + 0.5,
        false => h - 0.5,
    }
}

#[test]
fn a_match_on_numbers_and_truths() -> Result<()> {
    let gm = symbolic_trace(traced!(chooses))?;
    for n in -7i64..9 {
        for up in [false, true] {
            let eager = chooses(Float::from(1.5), Int::from(n), Bool::from(up))?.concrete();
            assert_eq!(
                gm.forward::<f64>((1.5, n, up))?,
                eager.expect("a number"),
                "{n}"
            );
        }
    }
    Ok(())
}

/// As many branches as the list has numbers, each in the other side of the one before.
#[trace(control_flow)]
fn deep(x: Float, depth: usize) -> Result<Float> {
    let mut h = x;
    for i in 0..depth {
        if h > 1.0e6 {
            h = (h * 0.5)?;
            break;
        }
        h = (h + i as f64)?;
    }
    Ok(h)
}

#[test]
fn many_branches_in_each_other() -> Result<()> {
    for depth in [100usize, 2000] {
        let gm = Trace::new(traced!(deep))
            .concrete("depth", depth)
            .graph_module()?;
        let again = Trace::new(&gm).concrete("depth", depth).graph_module()?;
        for x in [0.0, 2.0e6] {
            let eager = deep(Float::from(x), depth)?.concrete();
            assert_eq!(gm.forward::<f64>((x, depth))?, eager.expect("a number"));
            assert_eq!(again.forward::<f64>((x, depth))?, eager.expect("a number"));
        }
    }
    Ok(())
}

/// The runs that `continue` take more turns, though Rust decides about the `break` of the others.
#[trace(control_flow)]
fn some_break(x: Float) -> Result<Float> {
    let mut h = x;
    for step in [1.0, 2.0, 3.0] {
        if h > 2.0 {
            h = (h - 10.0)?;
            continue;
        }
        h = (h * step)?;
        let always = true;
        if always {
            break;
        }
    }
    Ok(h)
}

#[test]
fn a_known_break_is_for_those_that_came_to_it() -> Result<()> {
    same(&symbolic_trace(traced!(some_break))?, some_break, &INPUTS)
}

#[test]
fn a_branch_of_a_turn_is_in_its_loop_only() -> Result<()> {
    let gm = symbolic_trace(traced!(breaks))?;
    let modules: Vec<String> = gm.named_modules().into_keys().collect();
    let mut inside = modules.iter().skip(1);
    assert!(
        inside.all(|path| path.starts_with("while_loop_0")),
        "{modules:?}"
    );
    Ok(())
}

#[trace(control_flow)]
fn in_a_closure(x: Float, up: Bool) -> Result<Float> {
    fx_core::control::cond(
        up,
        || {
            let mut h = x;
            while h > 1.0 {
                h = (h * 0.5)?;
            }
            if h > 0.75 { h + 1.0 } else { Ok(h) }
        },
        || x * 2.0,
    )
}

#[test]
fn closures_that_run_in_place() -> Result<()> {
    let gm = symbolic_trace(traced!(in_a_closure))?;
    for x in INPUTS {
        for up in [false, true] {
            let eager = in_a_closure(Float::from(x), Bool::from(up))?.concrete();
            assert_eq!(
                gm.forward::<f64>((x, up))?,
                eager.expect("a number"),
                "{x} {up}"
            );
        }
    }
    Ok(())
}
