//! The compiler rule that `#[trace(control_flow)]` relies on: what stands behind a call whose result
//! has no values is not borrow-checked. Each form here is legal plain Rust only.

use fx_core::prelude::*;

struct Owned(f64);

#[trace(control_flow)]
fn f(x: Float, flag: bool, count: usize) -> Result<Float> {
    // A move in one side, a late value in both, a `&mut` out of a branch.
    let owned = Owned(1.0);
    let late;
    let moved = if flag {
        late = "a";
        owned.0
    } else {
        late = "b";
        let inner = owned;
        inner.0
    };
    let mut numbers = [1.0, 2.0];
    let number: &mut f64 = if flag { &mut numbers[0] } else { &mut numbers[1] };
    *number += 1.0;
    // A move before a `break`, and one into a turn that is the last.
    let mut log = Vec::new();
    let last = Owned(2.0);
    loop {
        log.push(Owned(3.0));
        if log.len() > count {
            drop(last);
            break;
        }
        if log.len() == 7 {
            continue;
        }
    }
    // Ranges, labels, values of loops.
    let mut total = 0usize;
    'outer: for i in 0..count {
        for j in i..=count {
            if j == 5 {
                continue 'outer;
            }
            if i + j > 20 {
                break 'outer;
            }
            total += j;
        }
    }
    let found = loop {
        total += 1;
        if total % 3 == 0 {
            break total;
        }
    };
    // A `match` on a plain number, with a constant in capitals and with a binding.
    const FOUR: usize = 4;
    let name = match found {
        FOUR => "four",
        _ => "other",
    };
    let doubled = match found {
        0 | 1 => 0,
        2..=9 => 1,
        other => other * 2,
    };
    // An early `return` that reads what is dropped later.
    let text = format!("{late}{name}");
    if text.is_empty() {
        return x * text.len() as f64;
    }
    let boxed: Box<dyn Fn(f64) -> f64> = if flag { Box::new(|v| v) } else { Box::new(|v| v + 1.0) };
    while total > 100 {
        total -= 1;
        let taken = log.pop();
        if taken.is_none() {
            break;
        }
    }
    x * boxed(moved + numbers[0] + (total + doubled + log.len()) as f64)
}

fn main() {
    assert!(f(Float::from(1.0), true, 3).is_ok());
}
