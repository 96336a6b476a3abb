//! Programs made by `tests/differential/rust_programs.py --record`: `#[trace(control_flow)]` and plain Rust
//! give the same, eager and as a graph.

#![allow(
    missing_docs,
    dead_code,
    unused,
    unreachable_code,
    unreachable_pub,
    unexpected_cfgs,
    clippy::all,
    clippy::pedantic,
    reason = "programs made by chance"
)]

use fx_core::prelude::*;

const NUMBERS: [(f64, f64); 4] = [(0.5, -1.0), (-2.0, 3.0), (1.5, 1.5), (0.0, 4.0)];
const COUNTS: [(i64, i64); 4] = [(0, 2), (3, 1), (-1, 0), (2, 5)];

/// The first input for which a program gives something else with the attribute.
macro_rules! judged {
    ($program:ident) => {{
        let mut wrong = None;
        for flag in [false, true] {
            let traced = Trace::new(traced!($program::graph::run)).concrete("flag", flag);
            let gm = match traced.graph_module() {
                Ok(gm) => Some(gm),
                Err(error) => {
                    wrong.get_or_insert_with(|| format!("it cannot be traced: {error}"));
                    None
                }
            };
            for (a, b) in NUMBERS {
                for (n, m) in COUNTS {
                    for t in [false, true] {
                        let want = $program::plain::run(a, b, n, m, t, flag).ok();
                        let eager = $program::graph::run(
                            a.into(),
                            b.into(),
                            n.into(),
                            m.into(),
                            t.into(),
                            flag,
                        );
                        let eager = eager.ok().and_then(|x| x.concrete());
                        let graph: Option<Option<f64>> =
                            gm.as_ref().map(|gm| gm.forward((a, b, n, m, t, flag)).ok());
                        let bits = |x: Option<f64>| {
                            x.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() })
                        };
                        if bits(eager) != bits(want)
                            || graph.is_some_and(|graph| bits(graph) != bits(want))
                        {
                            let inputs = format!("a {a} b {b} n {n} m {m} t {t} flag {flag}");
                            wrong.get_or_insert_with(|| {
                                format!(
                                    "{inputs}: eager {eager:?} graph {graph:?}, plain Rust {want:?}"
                                )
                            });
                        }
                    }
                }
            }
        }
        wrong
    }};
}

/// For the graph.
pub mod on_graph {
    pub use fx_core::prelude::*;
    pub type F = Float;
    pub type N = Int;
    pub type B = Bool;
    #[derive(Tree, Clone)]
    pub struct Pair {
        pub x: F,
        pub y: F,
    }
    pub fn total(pair: Pair) -> Result<F> {
        pair.x + pair.y
    }
    pub fn known(truth: bool) -> B {
        truth.into()
    }
    pub fn number(number: f64) -> F {
        number.into()
    }
    pub fn count(count: i64) -> N {
        count.into()
    }
}

/// The same for plain Rust.
pub mod on_plain {
    pub use fx_core::prelude::*;
    pub type F = f64;
    pub type N = i64;
    pub type B = bool;
    #[derive(Clone)]
    pub struct Pair {
        pub x: F,
        pub y: F,
    }
    pub fn total(pair: Pair) -> Result<F> {
        Ok(pair.x + pair.y)
    }
    pub fn known(truth: bool) -> B {
        truth
    }
    pub fn number(number: f64) -> F {
        number
    }
    pub fn count(count: i64) -> N {
        count
    }
}

#[test]
fn program_0_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_0), None);
}

#[test]
fn program_1_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_1), None);
}

#[test]
fn program_2_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_2), None);
}

#[test]
fn program_3_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_3), None);
}

#[test]
fn program_4_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_4), None);
}

#[test]
fn program_5_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_5), None);
}

#[test]
fn program_6_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_6), None);
}

#[test]
fn program_7_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_7), None);
}

#[test]
fn program_8_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_8), None);
}

#[test]
fn program_9_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_9), None);
}

#[test]
fn program_10_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_10), None);
}

#[test]
fn program_11_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_11), None);
}

#[test]
fn program_12_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_12), None);
}

#[test]
fn program_13_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_13), None);
}

#[test]
fn program_14_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_14), None);
}

#[test]
fn program_15_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_15), None);
}

#[test]
fn program_16_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_16), None);
}

#[test]
fn program_17_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_17), None);
}

#[test]
fn program_18_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_18), None);
}

#[test]
fn program_19_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_19), None);
}

#[test]
fn program_20_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_20), None);
}

#[test]
fn program_21_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_21), None);
}

#[test]
fn program_22_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_22), None);
}

#[test]
fn program_23_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_23), None);
}

#[test]
fn program_24_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_24), None);
}

#[test]
fn program_25_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_25), None);
}

#[test]
fn program_26_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_26), None);
}

#[test]
fn program_27_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_27), None);
}

#[test]
fn program_28_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_28), None);
}

#[test]
fn program_29_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_29), None);
}

#[test]
fn program_30_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_30), None);
}

#[test]
fn program_31_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_31), None);
}

#[test]
fn program_32_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_32), None);
}

#[test]
fn program_33_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_33), None);
}

#[test]
fn program_34_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_34), None);
}

#[test]
fn program_35_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_35), None);
}

#[test]
fn program_36_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_36), None);
}

#[test]
fn program_37_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_37), None);
}

#[test]
fn program_38_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_38), None);
}

#[test]
fn program_39_gives_what_plain_rust_gives() {
    assert_eq!(judged!(program_39), None);
}

pub mod program_0 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut p1 = Pair {
                x: v.y,
                #[cfg(all())]
                y: v.y,
            };
            if v.x > 2.5 {
                p1 = Pair { x: p1.y, y: v.y };
            }
            let a = ((h - number(2.0)) - b);
            if n != 2 {
                return Ok((number(3.0) + (a + h)));
            }
            let x2: F = (b * 2.0);
            let mut w3 = count(0);
            while w3 < 3 {
                w3 = (w3 + 1);
                for i4 in m..3 {
                    h = h;
                    let a = b;
                }
                #[cfg(any())]
                total(missing)?;
                for e5 in [0.5, -1.0] {
                    let x6: F = (w3 as f64 * 1.0);
                    let mut x7: F = ((h - b) * 0.5);
                    x7 = a;
                    h = (h + e5);
                }
            }
            let y8: F = if a < 3.0 {
                x2
            } else if b < -1.0 {
                ((a + a) + a)
            } else {
                let mut p9 = Pair {
                    x: x2,
                    #[cfg(all())]
                    y: a,
                };
                if count(3) == 3 {
                    p9 = Pair {
                        x: p9.y,
                        y: number(2.5),
                    };
                }
                (n as f64 * 1.0)
            };
            match k {
                0 => total(v),
                1 | 2 => Ok(total(v.clone())?),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut p1 = Pair {
                x: v.y,
                #[cfg(all())]
                y: v.y,
            };
            if v.x > 2.5 {
                p1 = Pair { x: p1.y, y: v.y };
            }
            let a = ((h - number(2.0))? - b)?;
            if n != 2 {
                return Ok((number(3.0) + (a + h)?)?);
            }
            let x2: F = (b * 2.0)?;
            let mut w3 = count(0);
            while w3 < 3 {
                w3 = (w3 + 1)?;
                for i4 in m..3 {
                    h = h;
                    let a = b;
                }
                #[cfg(any())]
                total(missing)?;
                for e5 in [0.5, -1.0] {
                    let x6: F = (w3 * 1.0)?;
                    let mut x7: F = ((h - b)? * 0.5)?;
                    x7 = a;
                    h = (h + e5)?;
                }
            }
            let y8: F = if a < 3.0 {
                x2
            } else if b < -1.0 {
                ((a + a)? + a)?
            } else {
                let mut p9 = Pair {
                    x: x2,
                    #[cfg(all())]
                    y: a,
                };
                if count(3) == 3 {
                    p9 = Pair {
                        x: p9.y,
                        y: number(2.5),
                    };
                }
                (n * 1.0)?
            };
            match k {
                0 => total(v),
                1 | 2 => Ok(total(v.clone())?),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_1 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let x1: N = m;
            for e2 in [0.5, -1.0] {
                if x1 == 4 {
                    break;
                }
                h = (h + e2);
            }
            let mut w3 = count(0);
            #[allow(unused_assignments)]
            while w3 < m {
                w3 = (w3 + 1);
                h = ((x1 as f64 * 1.0) * 0.5);
                if (number(-2.5) + h) >= -1.0 {
                    k = (k - 1);
                    break;
                }
                if (x1 as f64 * 1.0) >= 1.0 {
                    continue;
                }
            }
            let mut l4 = count(0);
            #[allow(unused_assignments)]
            loop {
                l4 = (l4 + 1);
                if l4 > n {
                    break;
                }
                if (l4 + 2) <= 1 {
                    h = a;
                    #[cfg(not(all()))]
                    total(missing)?;
                }
            }
            Ok((number(1.0) - b))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let x1: N = m;
            for e2 in [0.5, -1.0] {
                if x1 == 4 {
                    break;
                }
                h = (h + e2)?;
            }
            let mut w3 = count(0);
            #[allow(unused_assignments)]
            while w3 < m {
                w3 = (w3 + 1)?;
                h = ((x1 * 1.0)? * 0.5)?;
                if (number(-2.5) + h)? >= -1.0 {
                    k = (k - 1)?;
                    break;
                }
                if (x1 * 1.0)? >= 1.0 {
                    continue;
                }
            }
            let mut l4 = count(0);
            #[allow(unused_assignments)]
            loop {
                l4 = (l4 + 1)?;
                if l4 > n {
                    break;
                }
                if (l4 + 2)? <= 1 {
                    h = a;
                    #[cfg(not(all()))]
                    total(missing)?;
                }
            }
            Ok((number(1.0) - b)?)
        }
    }
}

pub mod program_2 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut x1: F = ((k as f64 * 1.0) + total(v.clone())?);
            let p2 = if number(-2.0) <= 2.0 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            let mut l3 = count(0);
            loop {
                l3 = (l3 + 1);
                if l3 > n {
                    break;
                }
                if t {
                    let x4: B = known(true);
                    let b = (l3 as f64 * 1.0);
                } else if t {
                    let x5: B = known(false);
                    let x6: F = ((h - number(-1.5)) - (number(1.0) - number(1.0)));
                } else if n < 3 {
                    let x7: F = b;
                } else if a >= 0.5 {
                    h = a;
                    h = h;
                } else if x1 > 2.5 {
                    h = h;
                }
                let b = ((number(2.5) + x1) - h);
                #[cfg(no_such_option)]
                while h < missing {
                    h = 3;
                    break;
                }
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut x1: F = ((k * 1.0)? + total(v.clone())?)?;
            let p2 = if number(-2.0) <= 2.0 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            let mut l3 = count(0);
            loop {
                l3 = (l3 + 1)?;
                if l3 > n {
                    break;
                }
                if t {
                    let x4: B = known(true);
                    let b = (l3 * 1.0)?;
                } else if t {
                    let x5: B = known(false);
                    let x6: F = ((h - number(-1.5))? - (number(1.0) - number(1.0))?)?;
                } else if n < 3 {
                    let x7: F = b;
                } else if a >= 0.5 {
                    h = a;
                    h = h;
                } else if x1 > 2.5 {
                    h = h;
                }
                let b = ((number(2.5) + x1)? - h)?;
                #[cfg(no_such_option)]
                while h < missing {
                    h = 3;
                    break;
                }
            }
            Ok(a)
        }
    }
}

pub mod program_3 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg_attr(all(), cfg(any()))]
            while h < missing {
                h = 3;
                break;
            }
            h = (n as f64 * 1.0);
            if number(1.0) > 1.0 {
                return total(v);
            }
            h = ((a - b) * 2.0);
            match n {
                0 => total(v),
                1 | 2 => Ok(total(v.clone())?),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg_attr(all(), cfg(any()))]
            while h < missing {
                h = 3;
                break;
            }
            h = (n * 1.0)?;
            if number(1.0) > 1.0 {
                return total(v);
            }
            h = ((a - b)? * 2.0)?;
            match n {
                0 => total(v),
                1 | 2 => Ok(total(v.clone())?),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_4 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_variables)]
            for i1 in 0..=m {
                for i2 in m..3 {
                    let x3: F = h;
                }
                if k != 2 {
                    h = ((i1 as f64 * 1.0) + (number(-1.0) + h));
                } else {
                    h = ((number(0.5) - number(1.0)) + a);
                    let mut x4: F = (n as f64 * 1.0);
                }
            }
            let q5 = 'block: {
                if flag {
                    break 'block b;
                }
                (b + (number(0.0) - a))
            };
            if count(2) > 1 {
                let mut l6 = count(0);
                #[cfg(all())]
                loop {
                    l6 = (l6 + 1);
                    if l6 > m {
                        break;
                    }
                    #[allow(unused_mut)]
                    let x7: F = (number(1.5) + (a + a));
                    #[cfg(no_such_option)]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
            } else {
                let p8 = match m {
                    0 => Pair {
                        x: ((q5 - b) + (m as f64 * 1.0)),
                        #[cfg(all())]
                        y: (k as f64 * 1.0),
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
                #[cfg(not(any()))]
                if n == 1 {
                    let mut x9: F = ((q5 + q5) * 0.5);
                }
            }
            let mut w10 = count(0);
            while w10 < n {
                w10 = (w10 + 1);
                let mut w11 = count(0);
                while w11 < n {
                    w11 = (w11 + 1);
                    let x12: N = (w10 + 2);
                    h = (number(2.5) * 0.5);
                    let b = ((m as f64 * 1.0) - (n as f64 * 1.0));
                }
                k = (k + 2);
                for e13 in [0.5, -1.0] {
                    h = ((number(1.5) + a) * 2.0);
                    h = number(-3.0);
                    let x14: F = h;
                    h = (h + e13);
                }
            }
            Ok(((a + q5) - (k as f64 * 1.0)))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_variables)]
            for i1 in 0..=m {
                for i2 in m..3 {
                    let x3: F = h;
                }
                if k != 2 {
                    h = ((i1 * 1.0)? + (number(-1.0) + h)?)?;
                } else {
                    h = ((number(0.5) - number(1.0))? + a)?;
                    let mut x4: F = (n * 1.0)?;
                }
            }
            let q5 = 'block: {
                if flag {
                    break 'block b;
                }
                (b + (number(0.0) - a)?)?
            };
            if count(2) > 1 {
                let mut l6 = count(0);
                #[cfg(all())]
                loop {
                    l6 = (l6 + 1)?;
                    if l6 > m {
                        break;
                    }
                    #[allow(unused_mut)]
                    let x7: F = (number(1.5) + (a + a)?)?;
                    #[cfg(no_such_option)]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
            } else {
                let p8 = match m {
                    0 => Pair {
                        x: ((q5 - b)? + (m * 1.0)?)?,
                        #[cfg(all())]
                        y: (k * 1.0)?,
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
                #[cfg(not(any()))]
                if n == 1 {
                    let mut x9: F = ((q5 + q5)? * 0.5)?;
                }
            }
            let mut w10 = count(0);
            while w10 < n {
                w10 = (w10 + 1)?;
                let mut w11 = count(0);
                while w11 < n {
                    w11 = (w11 + 1)?;
                    let x12: N = (w10 + 2)?;
                    h = (number(2.5) * 0.5)?;
                    let b = ((m * 1.0)? - (n * 1.0)?)?;
                }
                k = (k + 2)?;
                for e13 in [0.5, -1.0] {
                    h = ((number(1.5) + a)? * 2.0)?;
                    h = number(-3.0);
                    let x14: F = h;
                    h = (h + e13)?;
                }
            }
            Ok(((a + q5)? - (k * 1.0)?)?)
        }
    }
}

pub mod program_5 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1);
                if l1 > n {
                    break;
                }
                h = a;
                let b = ((l1 as f64 * 1.0) + (h + number(-1.5)));
                match count(2) {
                    #[cfg(all())]
                    ..=-1 => {
                        k = (k + 1);
                    }
                    #[cfg(any())]
                    1 => missing,
                    0..=2 => {
                        h = ((l1 as f64 * 1.0) + (m as f64 * 1.0));
                    }
                    _ => {
                        h = b;
                    }
                }
            }
            let mut w2 = count(0);
            while w2 < m {
                w2 = (w2 + 1);
                if t {
                    k = (k - 1);
                    continue;
                }
                let mut p3 = Pair {
                    x: ((number(-1.5) + number(-2.0)) * 0.5),
                    #[cfg(all())]
                    y: a,
                };
                if t {
                    p3 = Pair {
                        x: p3.y,
                        y: (number(3.0) - h),
                    };
                }
            }
            let mut l4 = count(0);
            loop {
                l4 = (l4 + 1);
                if l4 > 2 {
                    break;
                }
                let mut x5: F = ((number(1.0) + b) * -1.0);
                for i6 in n..3 {
                    x5 = b;
                }
            }
            let mut l7 = count(0);
            loop {
                l7 = (l7 + 1);
                if l7 > m {
                    break;
                }
                let mut p8 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: b,
                };
                if l4 != 0 {
                    p8 = Pair {
                        x: p8.y,
                        y: (a + b),
                    };
                }
                h = number(0.5);
                if t {
                    let mut x9: N = (l1 + 1);
                    x9 = (x9 - 1);
                } else if l7 == 4 {
                    let mut x10: N = count(1);
                }
            }
            let mut w11 = count(0);
            while w11 < 3 {
                w11 = (w11 + 1);
                if count(0) == 4 {
                    let b = number(2.5);
                    continue;
                }
            }
            Ok((number(-1.5) * 0.5))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1)?;
                if l1 > n {
                    break;
                }
                h = a;
                let b = ((l1 * 1.0)? + (h + number(-1.5))?)?;
                match count(2) {
                    #[cfg(all())]
                    ..=-1 => {
                        k = (k + 1)?;
                    }
                    #[cfg(any())]
                    1 => missing,
                    0..=2 => {
                        h = ((l1 * 1.0)? + (m * 1.0)?)?;
                    }
                    _ => {
                        h = b;
                    }
                }
            }
            let mut w2 = count(0);
            while w2 < m {
                w2 = (w2 + 1)?;
                if t {
                    k = (k - 1)?;
                    continue;
                }
                let mut p3 = Pair {
                    x: ((number(-1.5) + number(-2.0))? * 0.5)?,
                    #[cfg(all())]
                    y: a,
                };
                if t {
                    p3 = Pair {
                        x: p3.y,
                        y: (number(3.0) - h)?,
                    };
                }
            }
            let mut l4 = count(0);
            loop {
                l4 = (l4 + 1)?;
                if l4 > 2 {
                    break;
                }
                let mut x5: F = ((number(1.0) + b)? * -1.0)?;
                for i6 in n..3 {
                    x5 = b;
                }
            }
            let mut l7 = count(0);
            loop {
                l7 = (l7 + 1)?;
                if l7 > m {
                    break;
                }
                let mut p8 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: b,
                };
                if l4 != 0 {
                    p8 = Pair {
                        x: p8.y,
                        y: (a + b)?,
                    };
                }
                h = number(0.5);
                if t {
                    let mut x9: N = (l1 + 1)?;
                    x9 = (x9 - 1)?;
                } else if l7 == 4 {
                    let mut x10: N = count(1);
                }
            }
            let mut w11 = count(0);
            while w11 < 3 {
                w11 = (w11 + 1)?;
                if count(0) == 4 {
                    let b = number(2.5);
                    continue;
                }
            }
            Ok((number(-1.5) * 0.5)?)
        }
    }
}

pub mod program_6 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(all())]
            if h >= b {
                h = (k as f64 * 1.0);
                return Ok(a);
            }
            match (m - 1) {
                #[rustfmt::skip]
        0 => {
            let q1 = if let Some(x) = Some(v.x) { x } else { a };
        }
                1 | 2 => {
                    if flag {
                        k = (k - 2);
                    } else {
                        let a = number(0.0);
                    }
                }
                _ => {
                    let b = (n as f64 * 1.0);
                }
            }
            let mut p2 = Pair {
                x: v.x,
                #[cfg(all())]
                y: (k as f64 * 1.0),
            };
            if (k + 1) >= 3 {
                p2 = Pair { x: p2.y, y: b };
            }
            Ok((p2.y + p2.y))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(all())]
            if h >= b {
                h = (k * 1.0)?;
                return Ok(a);
            }
            match (m - 1)? {
                #[rustfmt::skip]
        0 => {
            let q1 = if let Some(x) = Some(v.x) { x } else { a };
        }
                1 | 2 => {
                    if flag {
                        k = (k - 2)?;
                    } else {
                        let a = number(0.0);
                    }
                }
                _ => {
                    let b = (n * 1.0)?;
                }
            }
            let mut p2 = Pair {
                x: v.x,
                #[cfg(all())]
                y: (k * 1.0)?,
            };
            if (k + 1)? >= 3 {
                p2 = Pair { x: p2.y, y: b };
            }
            Ok((p2.y + p2.y)?)
        }
    }
}

pub mod program_7 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(no_such_option)]
            while h < missing {
                h = 3;
                break;
            }
            let b = h;
            /// A comment.
            if n != 2 {
                let a = h;
            } else {
                k = (k - 2);
            }
            #[cfg(any())]
            total(missing)?;
            #[cfg_attr(all(), allow(unused))]
            if h <= -1.5 {
                if !flag {
                    #[cfg(no_such_option)]
                    {
                        h = number(1000.0);
                    }
                    h = h;
                } else {
                    let b = a;
                    #[cfg(no_such_option)]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
            } else if t {
                let mut w1 = count(0);
                while w1 < n {
                    w1 = (w1 + 1);
                    let b = a;
                    let x2: B = known(flag);
                    k = (k - 2);
                }
            }
            Ok(b)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(no_such_option)]
            while h < missing {
                h = 3;
                break;
            }
            let b = h;
            /// A comment.
            if n != 2 {
                let a = h;
            } else {
                k = (k - 2)?;
            }
            #[cfg(any())]
            total(missing)?;
            #[cfg_attr(all(), allow(unused))]
            if h <= -1.5 {
                if !flag {
                    #[cfg(no_such_option)]
                    {
                        h = number(1000.0);
                    }
                    h = h;
                } else {
                    let b = a;
                    #[cfg(no_such_option)]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
            } else if t {
                let mut w1 = count(0);
                while w1 < n {
                    w1 = (w1 + 1)?;
                    let b = a;
                    let x2: B = known(flag);
                    k = (k - 2)?;
                }
            }
            Ok(b)
        }
    }
}

pub mod program_8 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1);
                if l1 > 2 {
                    break;
                }
                h = (m as f64 * 1.0);
            }
            for e2 in [0.5, -1.0] {
                if b > a {
                    h = ((b - h) - (a + number(-1.0)));
                    continue;
                }
                let x3: B = known(flag);
                h = (h + e2);
            }
            #[cfg(any())]
            loop {
                h = number(7.0);
            }
            #[cfg_attr(all(), allow(unused))]
            if t {
                let mut p4 = Pair {
                    x: number(3.0),
                    #[cfg(all())]
                    y: h,
                };
                if (m - 1) == 3 {
                    p4 = Pair {
                        x: p4.y,
                        y: total(v.clone())?,
                    };
                }
                let y5: F = if k == 0 {
                    h = (a - (a + number(0.0)));
                    number(-1.0)
                } else if l1 <= 0 {
                    #[cfg(no_such_option)]
                    for i in 0..n {
                        h = missing(i);
                    }
                    h
                } else if h < -1.5 {
                    k = (k + 1);
                    (n as f64 * 1.0)
                } else {
                    let a = p4.y;
                    (number(-2.0) + (h + h))
                };
            } else {
                let x6: F = (l1 as f64 * 1.0);
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1)?;
                if l1 > 2 {
                    break;
                }
                h = (m * 1.0)?;
            }
            for e2 in [0.5, -1.0] {
                if b > a {
                    h = ((b - h)? - (a + number(-1.0))?)?;
                    continue;
                }
                let x3: B = known(flag);
                h = (h + e2)?;
            }
            #[cfg(any())]
            loop {
                h = number(7.0);
            }
            #[cfg_attr(all(), allow(unused))]
            if t {
                let mut p4 = Pair {
                    x: number(3.0),
                    #[cfg(all())]
                    y: h,
                };
                if (m - 1)? == 3 {
                    p4 = Pair {
                        x: p4.y,
                        y: total(v.clone())?,
                    };
                }
                let y5: F = if k == 0 {
                    h = (a - (a + number(0.0))?)?;
                    number(-1.0)
                } else if l1 <= 0 {
                    #[cfg(no_such_option)]
                    for i in 0..n {
                        h = missing(i);
                    }
                    h
                } else if h < -1.5 {
                    k = (k + 1)?;
                    (n * 1.0)?
                } else {
                    let a = p4.y;
                    (number(-2.0) + (h + h)?)?
                };
            } else {
                let x6: F = (l1 * 1.0)?;
            }
            Ok(a)
        }
    }
}

pub mod program_9 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1);
                if l1 > 2 {
                    break;
                }
                h = b;
                k = (k + 2);
                let mut p2 = Pair {
                    x: number(-1.5),
                    #[cfg(all())]
                    y: a,
                };
                if (number(-1.5) + a) < 1.0 {
                    p2 = Pair { x: p2.y, y: b };
                }
            }
            if n == -1 {
                h = (l1 as f64 * 1.0);
                let a = h;
            } else if a <= -1.0 {
                let x3: B = known(flag);
            } else {
                #[cfg(not(all()))]
                if missing {
                    h = nothing;
                }
            }
            match (l1 - 3) {
                ..=-1 => {
                    for e4 in [0.5, -1.0] {
                        k = (k - 1);
                        h = (h + e4);
                    }
                    return total(v);
                }
                0..=2 => {
                    h = b;
                }
                #[cfg(any())]
                3 => missing,
                _ => {
                    #[cfg(all())]
                    let x5: N = count(2);
                }
            }
            let y6: F = if b < h {
                b
            } else {
                #[cfg_attr(all(), cfg(any()))]
                {
                    h = number(1000.0);
                }
                a
            };
            if number(-3.0) < -2.0 {
                let q7 = {
                    let twice = |x: F| Ok::<F, Error>(x + x);
                    twice(h)?
                };
            } else if number(-2.0) <= 3.0 {
                if (m as f64 * 1.0) < 1.5 {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                    #[cfg(no_such_option)]
                    total(missing)?;
                } else if total(v.clone())? >= 2.5 {
                    k = (k + 1);
                    k = (k - 1);
                }
            } else if h < b {
                let y8: F = if n != 3 { y6 } else { b };
                k = (k + 1);
            } else if y6 >= a {
                let mut w9 = count(0);
                while w9 < m {
                    w9 = (w9 + 1);
                    let b = number(0.0);
                }
            }
            let b = (l1 as f64 * 1.0);
            match m {
                0 => total(v),
                1 | 2 => Ok(a),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1)?;
                if l1 > 2 {
                    break;
                }
                h = b;
                k = (k + 2)?;
                let mut p2 = Pair {
                    x: number(-1.5),
                    #[cfg(all())]
                    y: a,
                };
                if (number(-1.5) + a)? < 1.0 {
                    p2 = Pair { x: p2.y, y: b };
                }
            }
            if n == -1 {
                h = (l1 * 1.0)?;
                let a = h;
            } else if a <= -1.0 {
                let x3: B = known(flag);
            } else {
                #[cfg(not(all()))]
                if missing {
                    h = nothing;
                }
            }
            match (l1 - 3)? {
                ..=-1 => {
                    for e4 in [0.5, -1.0] {
                        k = (k - 1)?;
                        h = (h + e4)?;
                    }
                    return total(v);
                }
                0..=2 => {
                    h = b;
                }
                #[cfg(any())]
                3 => missing,
                _ => {
                    #[cfg(all())]
                    let x5: N = count(2);
                }
            }
            let y6: F = if b < h {
                b
            } else {
                #[cfg_attr(all(), cfg(any()))]
                {
                    h = number(1000.0);
                }
                a
            };
            if number(-3.0) < -2.0 {
                let q7 = {
                    let twice = |x: F| x + x;
                    twice(h)?
                };
            } else if number(-2.0) <= 3.0 {
                if (m * 1.0)? < 1.5 {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                    #[cfg(no_such_option)]
                    total(missing)?;
                } else if total(v.clone())? >= 2.5 {
                    k = (k + 1)?;
                    k = (k - 1)?;
                }
            } else if h < b {
                let y8: F = if n != 3 { y6 } else { b };
                k = (k + 1)?;
            } else if y6 >= a {
                let mut w9 = count(0);
                while w9 < m {
                    w9 = (w9 + 1)?;
                    let b = number(0.0);
                }
            }
            let b = (l1 * 1.0)?;
            match m {
                0 => total(v),
                1 | 2 => Ok(a),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_10 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = if count(1) == 4 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            match k {
                1 => {
                    let y2: F = if t {
                        (n as f64 * 1.0)
                    } else if m != 3 {
                        let b = h;
                        ((m as f64 * 1.0) * 0.5)
                    } else if total(p1.clone())? >= -1.5 {
                        (number(-2.5) * 2.0)
                    } else {
                        ((number(-1.0) - a) + (m as f64 * 1.0))
                    };
                    return total(p1);
                }
                2 => {
                    if t {
                        h = (p1.y - (n as f64 * 1.0));
                        #[cfg(not(all()))]
                        loop {
                            h = number(7.0);
                        }
                    } else {
                        #[cfg(no_such_option)]
                        while h < missing {
                            h = 3;
                            break;
                        }
                        h = (number(1.0) + (h - number(0.0)));
                    }
                    return Ok((a + b));
                }
                #[rustfmt::skip]
        0 | 4..=9 => {
            h = ((b - number(0.5)) * 2.0);
        }
                _ =>
                {
                    #[cfg(not(all()))]
                    if missing {
                        h = nothing;
                    }
                }
            }
            if k == -1 {
                return Ok(b);
            } else {
                #[cfg_attr(all(), cfg(any()))]
                let h = "text";
                let mut l3 = count(0);
                loop {
                    l3 = (l3 + 1);
                    if l3 > n {
                        break;
                    }
                    let a = h;
                }
            }
            Ok(((number(-1.5) - number(2.5)) * -1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = if count(1) == 4 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            match k {
                1 => {
                    let y2: F = if t {
                        (n * 1.0)?
                    } else if m != 3 {
                        let b = h;
                        ((m * 1.0)? * 0.5)?
                    } else if total(p1.clone())? >= -1.5 {
                        (number(-2.5) * 2.0)?
                    } else {
                        ((number(-1.0) - a)? + (m * 1.0)?)?
                    };
                    return total(p1);
                }
                2 => {
                    if t {
                        h = (p1.y - (n * 1.0)?)?;
                        #[cfg(not(all()))]
                        loop {
                            h = number(7.0);
                        }
                    } else {
                        #[cfg(no_such_option)]
                        while h < missing {
                            h = 3;
                            break;
                        }
                        h = (number(1.0) + (h - number(0.0))?)?;
                    }
                    return Ok((a + b)?);
                }
                #[rustfmt::skip]
        0 | 4..=9 => {
            h = ((b - number(0.5))? * 2.0)?;
        }
                _ =>
                {
                    #[cfg(not(all()))]
                    if missing {
                        h = nothing;
                    }
                }
            }
            if k == -1 {
                return Ok(b);
            } else {
                #[cfg_attr(all(), cfg(any()))]
                let h = "text";
                let mut l3 = count(0);
                loop {
                    l3 = (l3 + 1)?;
                    if l3 > n {
                        break;
                    }
                    let a = h;
                }
            }
            Ok(((number(-1.5) - number(2.5))? * -1.0)?)
        }
    }
}

pub mod program_11 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let Some(q1) = Some(((n as f64 * 1.0) * -1.0)) else {
                return Ok(a);
            };
            if q1 < h {
                if k >= 2 {
                    let a = v.x;
                    #[cfg_attr(all(), cfg(any()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                } else {
                    let x2: B = known(true);
                }
                h = q1;
            }
            let p3 = match count(1) {
                0 => Pair {
                    x: (k as f64 * 1.0),
                    #[cfg(all())]
                    y: v.x,
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            let a = (k as f64 * 1.0);
            let a = q1;
            if (k as f64 * 1.0) >= -1.0 {
                /// A comment.
                for e4 in [0.5, -1.0] {
                    h = b;
                    h = (h + e4);
                }
                return Ok(a);
            }
            match m {
                0 => total(p3),
                1 | 2 => Ok(h),
                _ => {
                    let last = p3;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let Some(q1) = Some(((n * 1.0)? * -1.0)?) else {
                return Ok(a);
            };
            if q1 < h {
                if k >= 2 {
                    let a = v.x;
                    #[cfg_attr(all(), cfg(any()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                } else {
                    let x2: B = known(true);
                }
                h = q1;
            }
            let p3 = match count(1) {
                0 => Pair {
                    x: (k * 1.0)?,
                    #[cfg(all())]
                    y: v.x,
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            let a = (k * 1.0)?;
            let a = q1;
            if (k * 1.0)? >= -1.0 {
                /// A comment.
                for e4 in [0.5, -1.0] {
                    h = b;
                    h = (h + e4)?;
                }
                return Ok(a);
            }
            match m {
                0 => total(p3),
                1 | 2 => Ok(h),
                _ => {
                    let last = p3;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_12 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_variables)]
            match k {
                3 => {
                    let q1 = if let Some(x) = Some(h) { x } else { a };
                }
                other => {
                    if (h - h) >= -2.0 {
                        k = (k - 2);
                    } else {
                        h = (a - (a + b));
                        let a = ((m as f64 * 1.0) + h);
                    }
                }
            }
            match n {
                0 => {
                    let q2 = 'block: {
                        if flag {
                            break 'block (a + (n as f64 * 1.0));
                        }
                        b
                    };
                }
                /// A comment.
                1 | 2 => match count(1) {
                    0 => {
                        let mut x3: N = (k + 2);
                    }
                    1 | 2 => {
                        #[cfg(no_such_option)]
                        {
                            h = number(1000.0);
                        }
                    }
                    #[cfg(all())]
                    _ => {
                        h = ((number(1.5) - h) + (n as f64 * 1.0));
                    }
                },
                #[rustfmt::skip]
        _ => {
            if (k + 1) != 4 {
                h = ((b + number(-0.5)) * 0.5);
            }
            else if flag && true {
                k = (k + 1);
            }
            else {
                k = (k - 2);
                k = (k - 1);
            }
        },
            }
            if (a + a) <= 0.5 {
                match count(4) {
                    ..=-1 => {
                        k = (k + 2);
                    }
                    0..=2 => {
                        h = a;
                    }
                    _ => {
                        let b = a;
                    }
                }
                return total(v);
            }
            for i4 in 0..=n {
                #[cfg(not(any()))]
                match count(-2) {
                    1 =>
                    {
                        #[cfg_attr(all(), cfg(any()))]
                        match n {
                            0 => h = missing,
                            _ => return,
                        }
                    }
                    #[cfg(not(all()))]
                    0 => missing,
                    2 =>
                    {
                        #[cfg(no_such_option)]
                        for i in 0..n {
                            h = missing(i);
                        }
                    }
                    0 | 4..=9 => {
                        let b = ((number(-0.5) + number(2.5)) - (a + a));
                    }
                    _ => {
                        h = h;
                    }
                }
            }
            if (n as f64 * 1.0) <= 0.0 {
                let b = ((number(-2.0) + number(-3.0)) * 0.5);
            } else {
                let Some(q5) = Some(((a + number(-1.0)) * 2.0)) else {
                    return Ok(a);
                };
                let a = (k as f64 * 1.0);
            }
            if count(1) >= 4 {
                k = (k + 2);
                if t {
                    return total(v);
                } else {
                    let b = ((number(1.0) - h) * 2.0);
                    return Ok(a);
                }
            }
            Ok(number(1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_variables)]
            match k {
                3 => {
                    let q1 = if let Some(x) = Some(h) { x } else { a };
                }
                other => {
                    if (h - h)? >= -2.0 {
                        k = (k - 2)?;
                    } else {
                        h = (a - (a + b)?)?;
                        let a = ((m * 1.0)? + h)?;
                    }
                }
            }
            match n {
                0 => {
                    let q2 = 'block: {
                        if flag {
                            break 'block (a + (n * 1.0)?)?;
                        }
                        b
                    };
                }
                /// A comment.
                1 | 2 => match count(1) {
                    0 => {
                        let mut x3: N = (k + 2)?;
                    }
                    1 | 2 => {
                        #[cfg(no_such_option)]
                        {
                            h = number(1000.0);
                        }
                    }
                    #[cfg(all())]
                    _ => {
                        h = ((number(1.5) - h)? + (n * 1.0)?)?;
                    }
                },
                #[rustfmt::skip]
        _ => {
            if (k + 1)? != 4 {
                h = ((b + number(-0.5))? * 0.5)?;
            }
            else if flag && true {
                k = (k + 1)?;
            }
            else {
                k = (k - 2)?;
                k = (k - 1)?;
            }
        },
            }
            if (a + a)? <= 0.5 {
                match count(4) {
                    ..=-1 => {
                        k = (k + 2)?;
                    }
                    0..=2 => {
                        h = a;
                    }
                    _ => {
                        let b = a;
                    }
                }
                return total(v);
            }
            for i4 in 0..=n {
                #[cfg(not(any()))]
                match count(-2) {
                    1 =>
                    {
                        #[cfg_attr(all(), cfg(any()))]
                        match n {
                            0 => h = missing,
                            _ => return,
                        }
                    }
                    #[cfg(not(all()))]
                    0 => missing,
                    2 =>
                    {
                        #[cfg(no_such_option)]
                        for i in 0..n {
                            h = missing(i);
                        }
                    }
                    0 | 4..=9 => {
                        let b = ((number(-0.5) + number(2.5))? - (a + a)?)?;
                    }
                    _ => {
                        h = h;
                    }
                }
            }
            if (n * 1.0)? <= 0.0 {
                let b = ((number(-2.0) + number(-3.0))? * 0.5)?;
            } else {
                let Some(q5) = Some(((a + number(-1.0))? * 2.0)?) else {
                    return Ok(a);
                };
                let a = (k * 1.0)?;
            }
            if count(1) >= 4 {
                k = (k + 2)?;
                if t {
                    return total(v);
                } else {
                    let b = ((number(1.0) - h)? * 2.0)?;
                    return Ok(a);
                }
            }
            Ok(number(1.0))
        }
    }
}

pub mod program_13 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            for i1 in 0..=n {
                #[cfg(any())]
                {
                    h = number(1000.0);
                }
            }
            h = b;
            #[cfg(any())]
            loop {
                h = number(7.0);
            }
            let p2 = if (k + 2) != 4 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            let q3 = [(number(1.5) - (b - h)), ((n as f64 * 1.0) * 0.5)][usize::from(flag)];
            Ok(total(p2.clone())?)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            for i1 in 0..=n {
                #[cfg(any())]
                {
                    h = number(1000.0);
                }
            }
            h = b;
            #[cfg(any())]
            loop {
                h = number(7.0);
            }
            let p2 = if (k + 2)? != 4 {
                v
            } else {
                Pair { x: v.y, y: v.x }
            };
            let q3 = [(number(1.5) - (b - h)?)?, ((n * 1.0)? * 0.5)?][usize::from(flag)];
            Ok(total(p2.clone())?)
        }
    }
}

pub mod program_14 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if count(-2) != 2 {
                let q2 = 'block: {
                    if flag {
                        break 'block (h * 2.0);
                    }
                    h
                };
                ((m as f64 * 1.0) + q2)
            } else {
                (b - v.x)
            };
            #[allow(unused_assignments)]
            match count(-2) {
                0 => {
                    let p3 = match m {
                        0 => Pair {
                            x: number(1.0),
                            #[cfg(all())]
                            y: ((y1 - number(-2.5)) - v.y),
                        },
                        1 => v,
                        _ => Pair { x: total(v)?, y: a },
                    };
                }
                1 | 2 => {
                    let mut x4: F = ((a + number(0.0)) * 2.0);
                }
                _ =>
                {
                    #[allow(unused_variables)]
                    for i5 in m..3 {
                        h = h;
                    }
                }
            }
            h = b;
            Ok(((a - number(3.0)) + (n as f64 * 1.0)))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if count(-2) != 2 {
                let q2 = 'block: {
                    if flag {
                        break 'block (h * 2.0)?;
                    }
                    h
                };
                ((m * 1.0)? + q2)?
            } else {
                (b - v.x)?
            };
            #[allow(unused_assignments)]
            match count(-2) {
                0 => {
                    let p3 = match m {
                        0 => Pair {
                            x: number(1.0),
                            #[cfg(all())]
                            y: ((y1 - number(-2.5))? - v.y)?,
                        },
                        1 => v,
                        _ => Pair { x: total(v)?, y: a },
                    };
                }
                1 | 2 => {
                    let mut x4: F = ((a + number(0.0))? * 2.0)?;
                }
                _ =>
                {
                    #[allow(unused_variables)]
                    for i5 in m..3 {
                        h = h;
                    }
                }
            }
            h = b;
            Ok(((a - number(3.0))? + (n * 1.0)?)?)
        }
    }
}

pub mod program_15 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k + 1);
            h = ((b - b) + b);
            let y1: F = if (number(0.0) + h) <= -0.5 {
                let mut p2 = Pair {
                    x: b,
                    #[cfg(all())]
                    y: ((n as f64 * 1.0) - (a - a)),
                };
                if v.x < -1.5 {
                    p2 = Pair { x: p2.y, y: b };
                }
                a
            } else {
                for e3 in [0.5, -1.0] {
                    k = (k + 1);
                    h = (h + e3);
                }
                total(v.clone())?
            };
            let mut w4 = count(0);
            while w4 < n {
                w4 = (w4 + 1);
                let q5 = {
                    let twice = |x: F| Ok::<F, Error>(x + x);
                    twice(h)?
                };
                let x6: F = h;
            }
            Ok((y1 + v.y))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k + 1)?;
            h = ((b - b)? + b)?;
            let y1: F = if (number(0.0) + h)? <= -0.5 {
                let mut p2 = Pair {
                    x: b,
                    #[cfg(all())]
                    y: ((n * 1.0)? - (a - a)?)?,
                };
                if v.x < -1.5 {
                    p2 = Pair { x: p2.y, y: b };
                }
                a
            } else {
                for e3 in [0.5, -1.0] {
                    k = (k + 1)?;
                    h = (h + e3)?;
                }
                total(v.clone())?
            };
            let mut w4 = count(0);
            while w4 < n {
                w4 = (w4 + 1)?;
                let q5 = {
                    let twice = |x: F| x + x;
                    twice(h)?
                };
                let x6: F = h;
            }
            Ok((y1 + v.y)?)
        }
    }
}

pub mod program_16 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if b >= 3.0 {
                let y1: F = if v.y < 3.0 {
                    v.x
                } else {
                    h = ((b - a) - v.y);
                    (number(1.5) * -1.0)
                };
                if a <= 2.0 {
                    h = v.y;
                    return Ok(b);
                }
                return Ok((number(2.5) + (a + a)));
            }
            for e2 in [0.5, -1.0] {
                k = (k - 2);
                h = (h + e2);
            }
            let y3: F = if k < 0 {
                (h * 0.5)
            } else {
                #[cfg_attr(all(), cfg(any()))]
                return Ok(missing);
                a
            };
            let y4: F = if number(-1.0) < 1.0 {
                h = (b - v.x);
                ((a + a) * 2.0)
            } else {
                let p5 = if (m - 1) < 1 {
                    v
                } else {
                    Pair { x: v.y, y: v.x }
                };
                ((h + number(2.0)) + (number(-2.0) + number(0.5)))
            };
            h = ((h + h) * 0.5);
            Ok(b)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if b >= 3.0 {
                let y1: F = if v.y < 3.0 {
                    v.x
                } else {
                    h = ((b - a)? - v.y)?;
                    (number(1.5) * -1.0)?
                };
                if a <= 2.0 {
                    h = v.y;
                    return Ok(b);
                }
                return Ok((number(2.5) + (a + a)?)?);
            }
            for e2 in [0.5, -1.0] {
                k = (k - 2)?;
                h = (h + e2)?;
            }
            let y3: F = if k < 0 {
                (h * 0.5)?
            } else {
                #[cfg_attr(all(), cfg(any()))]
                return Ok(missing);
                a
            };
            let y4: F = if number(-1.0) < 1.0 {
                h = (b - v.x)?;
                ((a + a)? * 2.0)?
            } else {
                let p5 = if (m - 1)? < 1 {
                    v
                } else {
                    Pair { x: v.y, y: v.x }
                };
                ((h + number(2.0))? + (number(-2.0) + number(0.5))?)?
            };
            h = ((h + h)? * 0.5)?;
            Ok(b)
        }
    }
}

pub mod program_17 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            for i1 in 1..=2 {
                h = ((n as f64 * 1.0) - (a - h));
            }
            if v.x < 2.0 {
                #[cfg(no_such_option)]
                if missing {
                    h = nothing;
                }
                let mut p2 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: ((n as f64 * 1.0) + (b - number(3.0))),
                };
                if (a + a) > 2.5 {
                    p2 = Pair {
                        x: p2.y,
                        y: number(-1.0),
                    };
                }
            }
            let mut w3 = count(0);
            while w3 < m {
                w3 = (w3 + 1);
                #[cfg(not(any()))]
                match (m + 2) {
                    #[cfg(not(all()))]
                    3 => missing,
                    3 => {
                        h = h;
                    }
                    other => {
                        k = (k - 2);
                    }
                }
                #[cfg(any())]
                if missing {
                    h = nothing;
                }
                for i4 in 0..=m {
                    let mut x5: N = (w3 + 3);
                }
            }
            let y6: F = if number(3.0) <= 0.0 {
                ((number(2.0) + number(0.0)) * 2.0)
            } else {
                if count(3) != 3 {
                    h = (k as f64 * 1.0);
                    let mut x7: F = (k as f64 * 1.0);
                } else if (m as f64 * 1.0) < 1.5 {
                    let a = (v.x - b);
                    let b = (h + b);
                } else {
                    let b = (n as f64 * 1.0);
                }
                b
            };
            let y8: F = if y6 >= -2.0 {
                (k as f64 * 1.0)
            } else {
                let mut p9 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: a,
                };
                if count(0) <= 3 {
                    p9 = Pair {
                        x: p9.y,
                        y: (w3 as f64 * 1.0),
                    };
                }
                p9.x
            };
            /// A comment.
            match count(1) {
                ..=-1 => {
                    if h > a {
                        let b = number(2.0);
                        #[cfg(not(all()))]
                        total(missing)?;
                    } else {
                        let a = (m as f64 * 1.0);
                        h = (number(-1.0) * 2.0);
                    }
                    return Ok((a - (k as f64 * 1.0)));
                }
                #[cfg(all())]
                0..=2 => {
                    for e10 in [0.5, -1.0] {
                        #[cfg(all())]
                        let mut x11: F = ((number(2.0) - y8) - (number(-1.0) - b));
                        h = (h + e10);
                    }
                }
                _ => {
                    let mut l12 = count(0);
                    loop {
                        l12 = (l12 + 1);
                        if l12 > m {
                            break;
                        }
                        let x13: F = (a - (k as f64 * 1.0));
                        let x14: B = known(false);
                    }
                }
            }
            match m {
                0 => total(v),
                1 | 2 => Ok((m as f64 * 1.0)),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            for i1 in 1..=2 {
                h = ((n * 1.0)? - (a - h)?)?;
            }
            if v.x < 2.0 {
                #[cfg(no_such_option)]
                if missing {
                    h = nothing;
                }
                let mut p2 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: ((n * 1.0)? + (b - number(3.0))?)?,
                };
                if (a + a)? > 2.5 {
                    p2 = Pair {
                        x: p2.y,
                        y: number(-1.0),
                    };
                }
            }
            let mut w3 = count(0);
            while w3 < m {
                w3 = (w3 + 1)?;
                #[cfg(not(any()))]
                match (m + 2)? {
                    #[cfg(not(all()))]
                    3 => missing,
                    3 => {
                        h = h;
                    }
                    other => {
                        k = (k - 2)?;
                    }
                }
                #[cfg(any())]
                if missing {
                    h = nothing;
                }
                for i4 in 0..=m {
                    let mut x5: N = (w3 + 3)?;
                }
            }
            let y6: F = if number(3.0) <= 0.0 {
                ((number(2.0) + number(0.0))? * 2.0)?
            } else {
                if count(3) != 3 {
                    h = (k * 1.0)?;
                    let mut x7: F = (k * 1.0)?;
                } else if (m * 1.0)? < 1.5 {
                    let a = (v.x - b)?;
                    let b = (h + b)?;
                } else {
                    let b = (n * 1.0)?;
                }
                b
            };
            let y8: F = if y6 >= -2.0 {
                (k * 1.0)?
            } else {
                let mut p9 = Pair {
                    x: h,
                    #[cfg(all())]
                    y: a,
                };
                if count(0) <= 3 {
                    p9 = Pair {
                        x: p9.y,
                        y: (w3 * 1.0)?,
                    };
                }
                p9.x
            };
            /// A comment.
            match count(1) {
                ..=-1 => {
                    if h > a {
                        let b = number(2.0);
                        #[cfg(not(all()))]
                        total(missing)?;
                    } else {
                        let a = (m * 1.0)?;
                        h = (number(-1.0) * 2.0)?;
                    }
                    return Ok((a - (k * 1.0)?)?);
                }
                #[cfg(all())]
                0..=2 => {
                    for e10 in [0.5, -1.0] {
                        #[cfg(all())]
                        let mut x11: F = ((number(2.0) - y8)? - (number(-1.0) - b)?)?;
                        h = (h + e10)?;
                    }
                }
                _ => {
                    let mut l12 = count(0);
                    loop {
                        l12 = (l12 + 1)?;
                        if l12 > m {
                            break;
                        }
                        let x13: F = (a - (k * 1.0)?)?;
                        let x14: B = known(false);
                    }
                }
            }
            match m {
                0 => total(v),
                1 | 2 => Ok((m * 1.0)?),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_18 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let b = ((b + b) + (m as f64 * 1.0));
            if number(3.0) <= -0.5 {
                let y1: F = if (k as f64 * 1.0) <= 1.5 {
                    v.x
                } else {
                    k = (k - 2);
                    total(v.clone())?
                };
            } else if t {
                if (k - 3) > 4 {
                    #[cfg_attr(all(), cfg(any()))]
                    total(missing)?;
                } else {
                    h = (k as f64 * 1.0);
                    k = (k + 2);
                }
            }
            h = ((h - b) - (b + b));
            for i2 in 1..=2 {
                let mut p3 = Pair {
                    x: (h * 0.5),
                    #[cfg(all())]
                    y: (number(-1.5) - (b - number(1.0))),
                };
                if (b - a) > 2.0 {
                    p3 = Pair {
                        x: p3.y,
                        y: number(1.0),
                    };
                }
            }
            match m {
                0 => total(v),
                1 | 2 => Ok(a),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let b = ((b + b)? + (m * 1.0)?)?;
            if number(3.0) <= -0.5 {
                let y1: F = if (k * 1.0)? <= 1.5 {
                    v.x
                } else {
                    k = (k - 2)?;
                    total(v.clone())?
                };
            } else if t {
                if (k - 3)? > 4 {
                    #[cfg_attr(all(), cfg(any()))]
                    total(missing)?;
                } else {
                    h = (k * 1.0)?;
                    k = (k + 2)?;
                }
            }
            h = ((h - b)? - (b + b)?)?;
            for i2 in 1..=2 {
                let mut p3 = Pair {
                    x: (h * 0.5)?,
                    #[cfg(all())]
                    y: (number(-1.5) - (b - number(1.0))?)?,
                };
                if (b - a)? > 2.0 {
                    p3 = Pair {
                        x: p3.y,
                        y: number(1.0),
                    };
                }
            }
            match m {
                0 => total(v),
                1 | 2 => Ok(a),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_19 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let a = (v.y - total(v.clone())?);
            let mut p1 = Pair {
                x: v.y,
                #[cfg(all())]
                y: total(v.clone())?,
            };
            if (n as f64 * 1.0) < 2.0 {
                p1 = Pair {
                    x: p1.y,
                    y: (b - number(-2.5)),
                };
            }
            h = ((number(-2.5) + number(1.5)) - total(v.clone())?);
            match n {
                0 => total(p1),
                1 | 2 => Ok(number(-2.0)),
                _ => {
                    let last = p1;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let a = (v.y - total(v.clone())?)?;
            let mut p1 = Pair {
                x: v.y,
                #[cfg(all())]
                y: total(v.clone())?,
            };
            if (n * 1.0)? < 2.0 {
                p1 = Pair {
                    x: p1.y,
                    y: (b - number(-2.5))?,
                };
            }
            h = ((number(-2.5) + number(1.5))? - total(v.clone())?)?;
            match n {
                0 => total(p1),
                1 | 2 => Ok(number(-2.0)),
                _ => {
                    let last = p1;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_20 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            match k {
                #[rustfmt::skip]
        0 => {
            let mut x1: F = number(-0.5);
            return Ok((m as f64 * 1.0));
        }
                1 | 2 => {
                    #[cfg(all())]
                    let x2: B = known(false);
                    return total(v);
                }
                #[cfg(any())]
                2 => missing,
                _ => match k {
                    ..=-1 => {
                        h = a;
                    }
                    0..=2 => {
                        let mut x3: F = ((number(0.0) + number(-1.0)) * -1.0);
                    }
                    #[allow(unused)]
                    _ => {
                        #[cfg(no_such_option)]
                        let h = "text";
                    }
                },
            }
            if b < -2.0 {
                for e4 in [0.5, -1.0] {
                    k = (k + 2);
                    #[cfg_attr(all(), cfg(any()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    #[cfg(any())]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                    h = (h + e4);
                }
                let mut x5: N = n;
            } else {
                for i6 in 0..n {
                    h = b;
                }
            }
            #[cfg(no_such_option)]
            while h < missing {
                h = 3;
                break;
            }
            let q7 = if let Some(x) = Some(v.y) { x } else { a };
            if flag && true {
                total(v)
            } else {
                Ok(v.x * 2.0)
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            match k {
                #[rustfmt::skip]
        0 => {
            let mut x1: F = number(-0.5);
            return Ok((m * 1.0)?);
        }
                1 | 2 => {
                    #[cfg(all())]
                    let x2: B = known(false);
                    return total(v);
                }
                #[cfg(any())]
                2 => missing,
                _ => match k {
                    ..=-1 => {
                        h = a;
                    }
                    0..=2 => {
                        let mut x3: F = ((number(0.0) + number(-1.0))? * -1.0)?;
                    }
                    #[allow(unused)]
                    _ => {
                        #[cfg(no_such_option)]
                        let h = "text";
                    }
                },
            }
            if b < -2.0 {
                for e4 in [0.5, -1.0] {
                    k = (k + 2)?;
                    #[cfg_attr(all(), cfg(any()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    #[cfg(any())]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                    h = (h + e4)?;
                }
                let mut x5: N = n;
            } else {
                for i6 in 0..n {
                    h = b;
                }
            }
            #[cfg(no_such_option)]
            while h < missing {
                h = 3;
                break;
            }
            let q7 = if let Some(x) = Some(v.y) { x } else { a };
            if flag && true { total(v) } else { v.x * 2.0 }
        }
    }
}

pub mod program_21 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = if n >= 0 { v } else { Pair { x: v.y, y: v.x } };
            h = (a + (number(-0.5) - number(-2.5)));
            let mut x2: F = b;
            for e3 in [0.5, -1.0] {
                h = b;
                h = (h + e3);
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = if n >= 0 { v } else { Pair { x: v.y, y: v.x } };
            h = (a + (number(-0.5) - number(-2.5))?)?;
            let mut x2: F = b;
            for e3 in [0.5, -1.0] {
                h = b;
                h = (h + e3)?;
            }
            Ok(a)
        }
    }
}

pub mod program_22 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if number(2.5) >= -1.5 {
                #[cfg(all())]
                let x2: F = v.y;
                (h * 0.5)
            } else {
                number(-2.5)
            };
            k = (k - 2);
            if count(3) != 0 {
                h = (number(-1.0) - v.y);
                let mut l3 = count(0);
                loop {
                    l3 = (l3 + 1);
                    if l3 > 2 {
                        break;
                    }
                    #[cfg(no_such_option)]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    h = y1;
                }
            } else {
                let y4: F = if m < 0 { ((b + a) - number(-0.5)) } else { a };
            }
            if a >= 1.5 {
                for i5 in n..3 {
                    #[cfg_attr(all(), cfg(any()))]
                    if missing {
                        h = nothing;
                    }
                }
            } else if count(-1) != 4 {
                #[cfg(all())]
                match (k - 1) {
                    #[allow(unused)]
                    ..=-1 =>
                    {
                        #[cfg_attr(all(), cfg(any()))]
                        while h < missing {
                            h = 3;
                            break;
                        }
                    }
                    #[cfg(not(all()))]
                    0 => missing,
                    0..=2 =>
                    {
                        #[cfg(not(all()))]
                        match n {
                            0 => h = missing,
                            _ => return,
                        }
                    }
                    #[cfg(any())]
                    0 => missing,
                    _ => {
                        #[cfg(any())]
                        let h = "text";
                    }
                }
                let p6 = if b > h { v } else { Pair { x: v.y, y: v.x } };
            } else if t {
                k = (k - 1);
            } else if t {
                #[cfg_attr(all(), cfg(any()))]
                {
                    h = number(1000.0);
                }
                k = (k + 1);
            }
            Ok(((b - number(0.5)) - (number(-2.0) + h)))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if number(2.5) >= -1.5 {
                #[cfg(all())]
                let x2: F = v.y;
                (h * 0.5)?
            } else {
                number(-2.5)
            };
            k = (k - 2)?;
            if count(3) != 0 {
                h = (number(-1.0) - v.y)?;
                let mut l3 = count(0);
                loop {
                    l3 = (l3 + 1)?;
                    if l3 > 2 {
                        break;
                    }
                    #[cfg(no_such_option)]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    h = y1;
                }
            } else {
                let y4: F = if m < 0 { ((b + a)? - number(-0.5))? } else { a };
            }
            if a >= 1.5 {
                for i5 in n..3 {
                    #[cfg_attr(all(), cfg(any()))]
                    if missing {
                        h = nothing;
                    }
                }
            } else if count(-1) != 4 {
                #[cfg(all())]
                match (k - 1)? {
                    #[allow(unused)]
                    ..=-1 =>
                    {
                        #[cfg_attr(all(), cfg(any()))]
                        while h < missing {
                            h = 3;
                            break;
                        }
                    }
                    #[cfg(not(all()))]
                    0 => missing,
                    0..=2 =>
                    {
                        #[cfg(not(all()))]
                        match n {
                            0 => h = missing,
                            _ => return,
                        }
                    }
                    #[cfg(any())]
                    0 => missing,
                    _ => {
                        #[cfg(any())]
                        let h = "text";
                    }
                }
                let p6 = if b > h { v } else { Pair { x: v.y, y: v.x } };
            } else if t {
                k = (k - 1)?;
            } else if t {
                #[cfg_attr(all(), cfg(any()))]
                {
                    h = number(1000.0);
                }
                k = (k + 1)?;
            }
            Ok(((b - number(0.5))? - (number(-2.0) + h)?)?)
        }
    }
}

pub mod program_23 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_mut)]
            let x1: F = v.y;
            #[cfg_attr(all(), allow(unused))]
            match count(1) {
                #[cfg(all())]
                1 => {
                    h = (h - b);
                }
                2 => {
                    let mut l2 = count(0);
                    loop {
                        l2 = (l2 + 1);
                        if l2 > m {
                            break;
                        }
                        let mut x3: N = l2;
                        let a = number(3.0);
                        x3 = (x3 + 1);
                    }
                }
                #[cfg(not(all()))]
                0 => missing,
                0 | 4..=9 =>
                {
                    #[cfg(not(any()))]
                    match m {
                        3 => {
                            let a = v.x;
                        }
                        #[rustfmt::skip]
                other => {
                    h = x1;
                }
                    }
                }
                #[rustfmt::skip]
        _ => {
            #[cfg(all())]
            for e4 in [0.5, -1.0] {
                h = ((a + x1) * 0.5);
                h = (m as f64 * 1.0);
                let x5: F = a;
                h = (h + e4);
            }
        },
            }
            if t {
                let p6 = match m {
                    0 => Pair {
                        x: (k as f64 * 1.0),
                        #[cfg(all())]
                        y: v.y,
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
            } else if (a + a) <= -0.5 {
                let q7 = 'block: {
                    if flag {
                        break 'block ((b - number(-2.5)) * 2.0);
                    }
                    ((b + h) + (h + number(0.5)))
                };
                h = h;
            } else if a > b {
                let mut l8 = count(0);
                loop {
                    l8 = (l8 + 1);
                    if l8 > 2 {
                        break;
                    }
                    #[cfg(not(all()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    h = number(2.5);
                    let x9: B = known(flag);
                }
                h = (b + number(-0.5));
            } else {
                let mut w10 = count(0);
                while w10 < 3 {
                    w10 = (w10 + 1);
                    let b = (k as f64 * 1.0);
                    let a = (number(-1.5) - (b + x1));
                    #[rustfmt::skip]
            let x11: B = known(false);
                }
                let mut p12 = Pair {
                    x: number(1.5),
                    #[cfg(all())]
                    y: (h - (k as f64 * 1.0)),
                };
                if t {
                    p12 = Pair {
                        x: p12.y,
                        y: (number(-2.0) - x1),
                    };
                }
            }
            let q13 = if let Some(x) = Some((x1 + (a + x1))) {
                x
            } else {
                a
            };
            let mut l14 = count(0);
            loop {
                l14 = (l14 + 1);
                if l14 > m {
                    break;
                }
                for i15 in m..3 {
                    k = (k + 1);
                }
                let b = (x1 + a);
            }
            Ok((number(-1.5) - (number(-2.0) + a)))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_mut)]
            let x1: F = v.y;
            #[cfg_attr(all(), allow(unused))]
            match count(1) {
                #[cfg(all())]
                1 => {
                    h = (h - b)?;
                }
                2 => {
                    let mut l2 = count(0);
                    loop {
                        l2 = (l2 + 1)?;
                        if l2 > m {
                            break;
                        }
                        let mut x3: N = l2;
                        let a = number(3.0);
                        x3 = (x3 + 1)?;
                    }
                }
                #[cfg(not(all()))]
                0 => missing,
                0 | 4..=9 =>
                {
                    #[cfg(not(any()))]
                    match m {
                        3 => {
                            let a = v.x;
                        }
                        #[rustfmt::skip]
                other => {
                    h = x1;
                }
                    }
                }
                #[rustfmt::skip]
        _ => {
            #[cfg(all())]
            for e4 in [0.5, -1.0] {
                h = ((a + x1)? * 0.5)?;
                h = (m * 1.0)?;
                let x5: F = a;
                h = (h + e4)?;
            }
        },
            }
            if t {
                let p6 = match m {
                    0 => Pair {
                        x: (k * 1.0)?,
                        #[cfg(all())]
                        y: v.y,
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
            } else if (a + a)? <= -0.5 {
                let q7 = 'block: {
                    if flag {
                        break 'block ((b - number(-2.5))? * 2.0)?;
                    }
                    ((b + h)? + (h + number(0.5))?)?
                };
                h = h;
            } else if a > b {
                let mut l8 = count(0);
                loop {
                    l8 = (l8 + 1)?;
                    if l8 > 2 {
                        break;
                    }
                    #[cfg(not(all()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                    h = number(2.5);
                    let x9: B = known(flag);
                }
                h = (b + number(-0.5))?;
            } else {
                let mut w10 = count(0);
                while w10 < 3 {
                    w10 = (w10 + 1)?;
                    let b = (k * 1.0)?;
                    let a = (number(-1.5) - (b + x1)?)?;
                    #[rustfmt::skip]
            let x11: B = known(false);
                }
                let mut p12 = Pair {
                    x: number(1.5),
                    #[cfg(all())]
                    y: (h - (k * 1.0)?)?,
                };
                if t {
                    p12 = Pair {
                        x: p12.y,
                        y: (number(-2.0) - x1)?,
                    };
                }
            }
            let q13 = if let Some(x) = Some((x1 + (a + x1)?)?) {
                x
            } else {
                a
            };
            let mut l14 = count(0);
            loop {
                l14 = (l14 + 1)?;
                if l14 > m {
                    break;
                }
                for i15 in m..3 {
                    k = (k + 1)?;
                }
                let b = (x1 + a)?;
            }
            Ok((number(-1.5) - (number(-2.0) + a)?)?)
        }
    }
}

pub mod program_24 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if number(2.0) > 3.0 {
                #[cfg_attr(all(), cfg(any()))]
                loop {
                    h = number(7.0);
                }
            }
            let a = number(0.5);
            let q1 = {
                let twice = |x: F| Ok::<F, Error>(x + x);
                twice(b)?
            };
            match count(1) {
                #[cfg(not(all()))]
                1 => missing,
                3 => {
                    if total(v.clone())? >= -0.5 {
                        h = (m as f64 * 1.0);
                    } else if m == 1 {
                        k = (k - 1);
                        let x2: F = q1;
                    } else {
                        let x3: B = known(false);
                    }
                    return Ok((v.y - (m as f64 * 1.0)));
                }
                #[cfg(any())]
                0 => missing,
                other => {
                    k = (k - 2);
                }
            }
            for e4 in [0.5, -1.0] {
                let mut w5 = count(0);
                #[allow(unused_variables)]
                while w5 < 3 {
                    w5 = (w5 + 1);
                    let a = number(3.0);
                    h = (a + number(-3.0));
                }
                h = ((a + a) + number(-0.5));
                h = (h + e4);
            }
            for i6 in 0..2 {
                #[cfg_attr(all(), cfg(any()))]
                let h = "text";
                #[cfg(not(all()))]
                loop {
                    h = number(7.0);
                }
                let mut w7 = count(0);
                while w7 < n {
                    w7 = (w7 + 1);
                    #[cfg(not(all()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                }
            }
            Ok((m as f64 * 1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if number(2.0) > 3.0 {
                #[cfg_attr(all(), cfg(any()))]
                loop {
                    h = number(7.0);
                }
            }
            let a = number(0.5);
            let q1 = {
                let twice = |x: F| x + x;
                twice(b)?
            };
            match count(1) {
                #[cfg(not(all()))]
                1 => missing,
                3 => {
                    if total(v.clone())? >= -0.5 {
                        h = (m * 1.0)?;
                    } else if m == 1 {
                        k = (k - 1)?;
                        let x2: F = q1;
                    } else {
                        let x3: B = known(false);
                    }
                    return Ok((v.y - (m * 1.0)?)?);
                }
                #[cfg(any())]
                0 => missing,
                other => {
                    k = (k - 2)?;
                }
            }
            for e4 in [0.5, -1.0] {
                let mut w5 = count(0);
                #[allow(unused_variables)]
                while w5 < 3 {
                    w5 = (w5 + 1)?;
                    let a = number(3.0);
                    h = (a + number(-3.0))?;
                }
                h = ((a + a)? + number(-0.5))?;
                h = (h + e4)?;
            }
            for i6 in 0..2 {
                #[cfg_attr(all(), cfg(any()))]
                let h = "text";
                #[cfg(not(all()))]
                loop {
                    h = number(7.0);
                }
                let mut w7 = count(0);
                while w7 < n {
                    w7 = (w7 + 1)?;
                    #[cfg(not(all()))]
                    while h < missing {
                        h = 3;
                        break;
                    }
                }
            }
            Ok((m * 1.0)?)
        }
    }
}

pub mod program_25 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = ((number(2.0) + number(-2.5)) + v.y);
            if a <= h {
                k = (k + 2);
                let p1 = match n {
                    0 => Pair {
                        x: (k as f64 * 1.0),
                        #[cfg(all())]
                        y: number(1.5),
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
            } else {
                k = (k + 1);
            }
            let mut p2 = Pair {
                x: (b - (a - b)),
                #[cfg(all())]
                y: (b * 2.0),
            };
            if (a + a) >= 3.0 {
                p2 = Pair {
                    x: p2.y,
                    y: number(2.0),
                };
            }
            #[cfg(not(all()))]
            match n {
                0 => h = missing,
                _ => return,
            }
            if b >= b {
                h = ((b - h) * 2.0);
                let p3 = if h <= 0.0 {
                    p2
                } else {
                    Pair { x: p2.y, y: p2.x }
                };
            } else {
                h = (number(1.0) + b);
            }
            let mut l4 = count(0);
            #[allow(unused_variables)]
            loop {
                l4 = (l4 + 1);
                if l4 > n {
                    break;
                }
                if h < -2.0 {
                    k = (k - 1);
                    k = (k - 1);
                } else {
                    let mut x5: N = count(4);
                    x5 = (x5 + 2);
                }
            }
            Ok(number(-0.5))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = ((number(2.0) + number(-2.5))? + v.y)?;
            if a <= h {
                k = (k + 2)?;
                let p1 = match n {
                    0 => Pair {
                        x: (k * 1.0)?,
                        #[cfg(all())]
                        y: number(1.5),
                    },
                    1 => v,
                    _ => Pair { x: total(v)?, y: a },
                };
            } else {
                k = (k + 1)?;
            }
            let mut p2 = Pair {
                x: (b - (a - b)?)?,
                #[cfg(all())]
                y: (b * 2.0)?,
            };
            if (a + a)? >= 3.0 {
                p2 = Pair {
                    x: p2.y,
                    y: number(2.0),
                };
            }
            #[cfg(not(all()))]
            match n {
                0 => h = missing,
                _ => return,
            }
            if b >= b {
                h = ((b - h)? * 2.0)?;
                let p3 = if h <= 0.0 {
                    p2
                } else {
                    Pair { x: p2.y, y: p2.x }
                };
            } else {
                h = (number(1.0) + b)?;
            }
            let mut l4 = count(0);
            #[allow(unused_variables)]
            loop {
                l4 = (l4 + 1)?;
                if l4 > n {
                    break;
                }
                if h < -2.0 {
                    k = (k - 1)?;
                    k = (k - 1)?;
                } else {
                    let mut x5: N = count(4);
                    x5 = (x5 + 2)?;
                }
            }
            Ok(number(-0.5))
        }
    }
}

pub mod program_26 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if flag {
                k = (k - 1);
                let p1 = if (a - h) >= 0.0 {
                    v
                } else {
                    Pair { x: v.y, y: v.x }
                };
            } else {
                h = ((h + b) * 2.0);
            }
            for e2 in [0.5, -1.0] {
                #[cfg(any())]
                while h < missing {
                    h = 3;
                    break;
                }
                #[cfg(any())]
                for i in 0..n {
                    h = missing(i);
                }
                if b <= -2.0 {
                    let a = b;
                    k = (k + 1);
                } else {
                    let x3: B = known(flag);
                    h = h;
                }
                h = (h + e2);
            }
            if h < a {
                h = number(-2.5);
                if a < 3.0 {
                    #[cfg(any())]
                    loop {
                        h = number(7.0);
                    }
                    return Ok(((b + a) * -1.0));
                } else {
                    return Ok(number(1.5));
                }
            }
            for e4 in [0.5, -1.0] {
                #[allow(unused_mut)]
                let mut x5: F = number(2.5);
                let mut w6 = count(0);
                while w6 < m {
                    w6 = (w6 + 1);
                    let b = (w6 as f64 * 1.0);
                    h = a;
                }
                h = (h + e4);
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if flag {
                k = (k - 1)?;
                let p1 = if (a - h)? >= 0.0 {
                    v
                } else {
                    Pair { x: v.y, y: v.x }
                };
            } else {
                h = ((h + b)? * 2.0)?;
            }
            for e2 in [0.5, -1.0] {
                #[cfg(any())]
                while h < missing {
                    h = 3;
                    break;
                }
                #[cfg(any())]
                for i in 0..n {
                    h = missing(i);
                }
                if b <= -2.0 {
                    let a = b;
                    k = (k + 1)?;
                } else {
                    let x3: B = known(flag);
                    h = h;
                }
                h = (h + e2)?;
            }
            if h < a {
                h = number(-2.5);
                if a < 3.0 {
                    #[cfg(any())]
                    loop {
                        h = number(7.0);
                    }
                    return Ok(((b + a)? * -1.0)?);
                } else {
                    return Ok(number(1.5));
                }
            }
            for e4 in [0.5, -1.0] {
                #[allow(unused_mut)]
                let mut x5: F = number(2.5);
                let mut w6 = count(0);
                while w6 < m {
                    w6 = (w6 + 1)?;
                    let b = (w6 * 1.0)?;
                    h = a;
                }
                h = (h + e4)?;
            }
            Ok(a)
        }
    }
}

pub mod program_27 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            match (m + 3) {
                #[cfg(not(all()))]
                2 => missing,
                3 => {
                    if h >= 3.0 {
                        #[cfg(no_such_option)]
                        if missing {
                            h = nothing;
                        }
                    }
                }
                #[cfg(not(all()))]
                2 => missing,
                /// A comment.
                other => {
                    let y1: F = if flag {
                        #[cfg(all())]
                        let mut x2: F = a;
                        b
                    } else {
                        ((a + a) + (b - b))
                    };
                }
            }
            let y3: F = if (b + b) > 0.5 {
                total(v.clone())?
            } else {
                v.y
            };
            for i4 in 0..=n {
                let a = h;
                if a < y3 {
                    let a = number(-0.5);
                    k = (k + 2);
                } else if k >= 0 {
                    h = number(0.5);
                } else {
                    #[cfg_attr(all(), cfg(any()))]
                    if missing {
                        h = nothing;
                    }
                }
            }
            if t {
                if b <= -1.5 {
                    #[cfg(any())]
                    for i in 0..n {
                        h = missing(i);
                    }
                    let mut x5: N = n;
                } else {
                    h = ((m as f64 * 1.0) * 0.5);
                }
                return total(v);
            }
            if h > -0.5 {
                let mut w6 = count(0);
                while w6 < n {
                    w6 = (w6 + 1);
                    k = (k + 1);
                }
            } else if a >= y3 {
                #[cfg_attr(all(), cfg(any()))]
                match n {
                    0 => h = missing,
                    _ => return,
                }
            }
            for e7 in [0.5, -1.0] {
                let x8: B = known(false);
                if (n as f64 * 1.0) > 0.5 {
                    continue;
                }
                for i9 in m..3 {
                    h = a;
                }
                h = (h + e7);
            }
            match n {
                0 => total(v),
                1 | 2 => Ok(b),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            match (m + 3)? {
                #[cfg(not(all()))]
                2 => missing,
                3 => {
                    if h >= 3.0 {
                        #[cfg(no_such_option)]
                        if missing {
                            h = nothing;
                        }
                    }
                }
                #[cfg(not(all()))]
                2 => missing,
                /// A comment.
                other => {
                    let y1: F = if flag {
                        #[cfg(all())]
                        let mut x2: F = a;
                        b
                    } else {
                        ((a + a)? + (b - b)?)?
                    };
                }
            }
            let y3: F = if (b + b)? > 0.5 {
                total(v.clone())?
            } else {
                v.y
            };
            for i4 in 0..=n {
                let a = h;
                if a < y3 {
                    let a = number(-0.5);
                    k = (k + 2)?;
                } else if k >= 0 {
                    h = number(0.5);
                } else {
                    #[cfg_attr(all(), cfg(any()))]
                    if missing {
                        h = nothing;
                    }
                }
            }
            if t {
                if b <= -1.5 {
                    #[cfg(any())]
                    for i in 0..n {
                        h = missing(i);
                    }
                    let mut x5: N = n;
                } else {
                    h = ((m * 1.0)? * 0.5)?;
                }
                return total(v);
            }
            if h > -0.5 {
                let mut w6 = count(0);
                while w6 < n {
                    w6 = (w6 + 1)?;
                    k = (k + 1)?;
                }
            } else if a >= y3 {
                #[cfg_attr(all(), cfg(any()))]
                match n {
                    0 => h = missing,
                    _ => return,
                }
            }
            for e7 in [0.5, -1.0] {
                let x8: B = known(false);
                if (n * 1.0)? > 0.5 {
                    continue;
                }
                for i9 in m..3 {
                    h = a;
                }
                h = (h + e7)?;
            }
            match n {
                0 => total(v),
                1 | 2 => Ok(b),
                _ => {
                    let last = v;
                    Ok(last.y)
                }
            }
        }
    }
}

pub mod program_28 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(not(all()))]
            return Ok(missing);
            let q1 = [a, (total(v.clone())? - number(-2.0))][usize::from(flag)];
            if (h - b) < 1.0 {
                let y2: F = if (k as f64 * 1.0) <= 2.0 {
                    h = h;
                    ((number(0.5) + b) * -1.0)
                } else {
                    #[cfg(no_such_option)]
                    for i in 0..n {
                        h = missing(i);
                    }
                    (m as f64 * 1.0)
                };
            } else {
                let y3: F = if (q1 - number(1.0)) < -1.0 {
                    (number(-2.5) - (a + q1))
                } else {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                    (n as f64 * 1.0)
                };
            }
            Ok(q1)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(not(all()))]
            return Ok(missing);
            let q1 = [a, (total(v.clone())? - number(-2.0))?][usize::from(flag)];
            if (h - b)? < 1.0 {
                let y2: F = if (k * 1.0)? <= 2.0 {
                    h = h;
                    ((number(0.5) + b)? * -1.0)?
                } else {
                    #[cfg(no_such_option)]
                    for i in 0..n {
                        h = missing(i);
                    }
                    (m * 1.0)?
                };
            } else {
                let y3: F = if (q1 - number(1.0))? < -1.0 {
                    (number(-2.5) - (a + q1)?)?
                } else {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                    (n * 1.0)?
                };
            }
            Ok(q1)
        }
    }
}

pub mod program_29 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1);
                if l1 > n {
                    break;
                }
                let mut x2: N = (l1 + 1);
                let y3: F = if (k - 3) < 2 {
                    (l1 as f64 * 1.0)
                } else {
                    ((number(0.5) - number(2.5)) - (number(-2.0) + b))
                };
            }
            for e4 in [0.5, -1.0] {
                let mut l5 = count(0);
                loop {
                    l5 = (l5 + 1);
                    if l5 > m {
                        break;
                    }
                    let x6: F = (number(-0.5) + (number(2.0) - b));
                }
                h = (h + e4);
            }
            match l1 {
                #[cfg(not(all()))]
                1 => missing,
                0 => {
                    h = v.x;
                    return Ok(a);
                }
                #[allow(unused)]
                1 | 2 => {
                    let mut l7 = count(0);
                    loop {
                        l7 = (l7 + 1);
                        if l7 > 2 {
                            break;
                        }
                        h = a;
                        h = h;
                        let a = (m as f64 * 1.0);
                    }
                }
                _ => {
                    let y8: F = if n != 3 {
                        let mut x9: F = ((b + a) + (b - h));
                        (number(-0.5) - number(-2.0))
                    } else {
                        #[cfg(any())]
                        let h = "text";
                        ((number(0.5) + a) + (a + number(-1.5)))
                    };
                }
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let mut l1 = count(0);
            loop {
                l1 = (l1 + 1)?;
                if l1 > n {
                    break;
                }
                let mut x2: N = (l1 + 1)?;
                let y3: F = if (k - 3)? < 2 {
                    (l1 * 1.0)?
                } else {
                    ((number(0.5) - number(2.5))? - (number(-2.0) + b)?)?
                };
            }
            for e4 in [0.5, -1.0] {
                let mut l5 = count(0);
                loop {
                    l5 = (l5 + 1)?;
                    if l5 > m {
                        break;
                    }
                    let x6: F = (number(-0.5) + (number(2.0) - b)?)?;
                }
                h = (h + e4)?;
            }
            match l1 {
                #[cfg(not(all()))]
                1 => missing,
                0 => {
                    h = v.x;
                    return Ok(a);
                }
                #[allow(unused)]
                1 | 2 => {
                    let mut l7 = count(0);
                    loop {
                        l7 = (l7 + 1)?;
                        if l7 > 2 {
                            break;
                        }
                        h = a;
                        h = h;
                        let a = (m * 1.0)?;
                    }
                }
                _ => {
                    let y8: F = if n != 3 {
                        let mut x9: F = ((b + a)? + (b - h)?)?;
                        (number(-0.5) - number(-2.0))?
                    } else {
                        #[cfg(any())]
                        let h = "text";
                        ((number(0.5) + a)? + (a + number(-1.5))?)?
                    };
                }
            }
            Ok(a)
        }
    }
}

pub mod program_30 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k - 1);
            for e1 in [0.5, -1.0] {
                let x2: B = known(true);
                h = (h + e1);
            }
            h = (b * 2.0);
            h = (total(v.clone())? * 0.5);
            #[cfg(not(any()))]
            if n <= 4 {
                let a = (total(v.clone())? * -1.0);
                return Ok(((number(-2.5) - a) * 2.0));
            }
            Ok(v.y)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k - 1)?;
            for e1 in [0.5, -1.0] {
                let x2: B = known(true);
                h = (h + e1)?;
            }
            h = (b * 2.0)?;
            h = (total(v.clone())? * 0.5)?;
            #[cfg(not(any()))]
            if n <= 4 {
                let a = (total(v.clone())? * -1.0)?;
                return Ok(((number(-2.5) - a)? * 2.0)?);
            }
            Ok(v.y)
        }
    }
}

pub mod program_31 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if number(-2.5) < 2.0 {
                return total(v);
            }
            #[cfg(not(all()))]
            total(missing)?;
            let p1 = match n {
                0 => Pair {
                    x: a,
                    #[cfg(all())]
                    y: b,
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            Ok(((m as f64 * 1.0) - (n as f64 * 1.0)))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            if number(-2.5) < 2.0 {
                return total(v);
            }
            #[cfg(not(all()))]
            total(missing)?;
            let p1 = match n {
                0 => Pair {
                    x: a,
                    #[cfg(all())]
                    y: b,
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            Ok(((m * 1.0)? - (n * 1.0)?)?)
        }
    }
}

pub mod program_32 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_assignments)]
            if h >= -2.0 {
                let mut w1 = count(0);
                while w1 < 3 {
                    w1 = (w1 + 1);
                    #[cfg(no_such_option)]
                    if missing {
                        h = nothing;
                    }
                }
            }
            h = v.y;
            #[allow(unused_mut)]
            let x2: N = n;
            Ok(b)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[allow(unused_assignments)]
            if h >= -2.0 {
                let mut w1 = count(0);
                while w1 < 3 {
                    w1 = (w1 + 1)?;
                    #[cfg(no_such_option)]
                    if missing {
                        h = nothing;
                    }
                }
            }
            h = v.y;
            #[allow(unused_mut)]
            let x2: N = n;
            Ok(b)
        }
    }
}

pub mod program_33 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if k != 3 {
                h = b;
                ((number(-1.5) - h) - (number(2.0) + number(1.5)))
            } else if v.x <= 0.5 {
                ((a - number(0.0)) + v.x)
            } else {
                (a * -1.0)
            };
            #[cfg(any())]
            match n {
                0 => h = missing,
                _ => return,
            }
            h = v.x;
            if (m - 2) == -1 {
                h = ((y1 - number(-2.0)) + (n as f64 * 1.0));
            } else if (y1 - y1) <= 2.5 {
                /// A comment.
                for e2 in [0.5, -1.0] {
                    let x3: F = b;
                    #[rustfmt::skip]
            let mut x4: F = (a - (number(2.0) - number(-0.5)));
                    h = (h + e2);
                }
                let a = (n as f64 * 1.0);
            } else {
                let mut p5 = Pair {
                    x: b,
                    #[cfg(all())]
                    y: ((number(-1.5) + b) + b),
                };
                if (a + number(0.5)) <= 3.0 {
                    p5 = Pair { x: p5.y, y: a };
                }
            }
            Ok(v.y)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let y1: F = if k != 3 {
                h = b;
                ((number(-1.5) - h)? - (number(2.0) + number(1.5))?)?
            } else if v.x <= 0.5 {
                ((a - number(0.0))? + v.x)?
            } else {
                (a * -1.0)?
            };
            #[cfg(any())]
            match n {
                0 => h = missing,
                _ => return,
            }
            h = v.x;
            if (m - 2)? == -1 {
                h = ((y1 - number(-2.0))? + (n * 1.0)?)?;
            } else if (y1 - y1)? <= 2.5 {
                /// A comment.
                for e2 in [0.5, -1.0] {
                    let x3: F = b;
                    #[rustfmt::skip]
            let mut x4: F = (a - (number(2.0) - number(-0.5))?)?;
                    h = (h + e2)?;
                }
                let a = (n * 1.0)?;
            } else {
                let mut p5 = Pair {
                    x: b,
                    #[cfg(all())]
                    y: ((number(-1.5) + b)? + b)?,
                };
                if (a + number(0.5))? <= 3.0 {
                    p5 = Pair { x: p5.y, y: a };
                }
            }
            Ok(v.y)
        }
    }
}

pub mod program_34 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = (v.x - b);
            #[cfg(any())]
            match n {
                0 => h = missing,
                _ => return,
            }
            h = b;
            match k {
                0 => {
                    for i1 in 0..=m {
                        #[cfg(not(all()))]
                        total(missing)?;
                    }
                }
                1 | 2 => {
                    let a = ((number(2.5) - a) - (a + number(-1.0)));
                }
                _ => {
                    let q2 = {
                        let twice = |x: F| Ok::<F, Error>(x + x);
                        twice(h)?
                    };
                }
            }
            let q3 = [(number(-2.5) * 2.0), (number(-1.0) - number(3.0))][usize::from(flag)];
            Ok((m as f64 * 1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = (v.x - b)?;
            #[cfg(any())]
            match n {
                0 => h = missing,
                _ => return,
            }
            h = b;
            match k {
                0 => {
                    for i1 in 0..=m {
                        #[cfg(not(all()))]
                        total(missing)?;
                    }
                }
                1 | 2 => {
                    let a = ((number(2.5) - a)? - (a + number(-1.0))?)?;
                }
                _ => {
                    let q2 = {
                        let twice = |x: F| x + x;
                        twice(h)?
                    };
                }
            }
            let q3 = [(number(-2.5) * 2.0)?, (number(-1.0) - number(3.0))?][usize::from(flag)];
            Ok((m * 1.0)?)
        }
    }
}

pub mod program_35 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg_attr(all(), cfg(any()))]
            {
                h = number(1000.0);
            }
            let mut p1 = Pair {
                x: h,
                #[cfg(all())]
                y: total(v.clone())?,
            };
            if h <= -2.0 {
                p1 = Pair { x: p1.y, y: h };
            }
            if n >= 1 {
                if (h - b) < -1.5 {
                    return Ok(((h + h) - (b - number(0.0))));
                } else {
                    return total(v);
                }
            }
            h = (k as f64 * 1.0);
            #[allow(unused_assignments)]
            if h < -1.0 {
                #[cfg(no_such_option)]
                loop {
                    h = number(7.0);
                }
            }
            Ok(total(p1.clone())?)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg_attr(all(), cfg(any()))]
            {
                h = number(1000.0);
            }
            let mut p1 = Pair {
                x: h,
                #[cfg(all())]
                y: total(v.clone())?,
            };
            if h <= -2.0 {
                p1 = Pair { x: p1.y, y: h };
            }
            if n >= 1 {
                if (h - b)? < -1.5 {
                    return Ok(((h + h)? - (b - number(0.0))?)?);
                } else {
                    return total(v);
                }
            }
            h = (k * 1.0)?;
            #[allow(unused_assignments)]
            if h < -1.0 {
                #[cfg(no_such_option)]
                loop {
                    h = number(7.0);
                }
            }
            Ok(total(p1.clone())?)
        }
    }
}

pub mod program_36 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = a;
            if count(-2) != 2 {
                for e1 in [0.5, -1.0] {
                    h = h;
                    let a = ((b - a) + (a - number(1.0)));
                    h = (h + e1);
                }
                k = (k + 1);
            } else {
                let q2 = [number(-2.5), (m as f64 * 1.0)][usize::from(flag)];
                if n != 4 {
                    let b = v.x;
                }
            }
            h = ((a + b) * 0.5);
            match m {
                #[rustfmt::skip]
        3 => {
            if total(v.clone())? >= 1.5 {
                #[cfg(not(all()))]
                while h < missing { h = 3; break; }
            }
            else {
                h = ((number(0.0) - b) - number(-0.5));
                let b = ((h + number(-3.0)) + number(1.0));
            }
            return Ok(total(v.clone())?);
        }
                #[cfg(all())]
                other => {
                    k = (k + 2);
                }
            }
            for e3 in [0.5, -1.0] {
                if a >= h {
                    k = (k + 1);
                    h = (h - number(2.0));
                } else {
                    h = h;
                    let x4: N = k;
                }
                if t {
                    k = (k + 1);
                } else if count(0) != 4 {
                    let x5: B = known(false);
                } else if h >= 2.5 {
                    h = ((h + number(-2.5)) - (k as f64 * 1.0));
                    #[cfg(not(all()))]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
                let b = ((h - number(-2.5)) + (b - number(-2.5)));
                h = (h + e3);
            }
            Ok(a)
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            h = a;
            if count(-2) != 2 {
                for e1 in [0.5, -1.0] {
                    h = h;
                    let a = ((b - a)? + (a - number(1.0))?)?;
                    h = (h + e1)?;
                }
                k = (k + 1)?;
            } else {
                let q2 = [number(-2.5), (m * 1.0)?][usize::from(flag)];
                if n != 4 {
                    let b = v.x;
                }
            }
            h = ((a + b)? * 0.5)?;
            match m {
                #[rustfmt::skip]
        3 => {
            if total(v.clone())? >= 1.5 {
                #[cfg(not(all()))]
                while h < missing { h = 3; break; }
            }
            else {
                h = ((number(0.0) - b)? - number(-0.5))?;
                let b = ((h + number(-3.0))? + number(1.0))?;
            }
            return Ok(total(v.clone())?);
        }
                #[cfg(all())]
                other => {
                    k = (k + 2)?;
                }
            }
            for e3 in [0.5, -1.0] {
                if a >= h {
                    k = (k + 1)?;
                    h = (h - number(2.0))?;
                } else {
                    h = h;
                    let x4: N = k;
                }
                if t {
                    k = (k + 1)?;
                } else if count(0) != 4 {
                    let x5: B = known(false);
                } else if h >= 2.5 {
                    h = ((h + number(-2.5))? - (k * 1.0)?)?;
                    #[cfg(not(all()))]
                    match n {
                        0 => h = missing,
                        _ => return,
                    }
                }
                let b = ((h - number(-2.5))? + (b - number(-2.5))?)?;
                h = (h + e3)?;
            }
            Ok(a)
        }
    }
}

pub mod program_37 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k - 1);
            let q1 = {
                let twice = |x: F| Ok::<F, Error>(x + x);
                twice(b)?
            };
            let mut l2 = count(0);
            loop {
                l2 = (l2 + 1);
                if l2 > 2 {
                    break;
                }
                h = (k as f64 * 1.0);
                h = (l2 as f64 * 1.0);
                #[cfg(not(all()))]
                if missing {
                    h = nothing;
                }
            }
            Ok(((n as f64 * 1.0) + h))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            k = (k - 1)?;
            let q1 = {
                let twice = |x: F| x + x;
                twice(b)?
            };
            let mut l2 = count(0);
            loop {
                l2 = (l2 + 1)?;
                if l2 > 2 {
                    break;
                }
                h = (k * 1.0)?;
                h = (l2 * 1.0)?;
                #[cfg(not(all()))]
                if missing {
                    h = nothing;
                }
            }
            Ok(((n * 1.0)? + h)?)
        }
    }
}

pub mod program_38 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = match count(3) {
                0 => Pair {
                    x: b,
                    #[cfg(all())]
                    y: (number(1.5) - h),
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            let mut w2 = count(0);
            while w2 < 3 {
                w2 = (w2 + 1);
                for e3 in [0.5, -1.0] {
                    k = (k + 2);
                    #[cfg(not(all()))]
                    for i in 0..n {
                        h = missing(i);
                    }
                    #[allow(unused_mut)]
                    let mut x4: F = number(0.5);
                    h = (h + e3);
                }
                let mut x5: F = ((number(-1.0) - b) - number(-0.5));
            }
            if (k as f64 * 1.0) > -2.0 {
                let mut p6 = Pair {
                    x: ((h + b) + h),
                    #[cfg(all())]
                    y: (number(1.5) * 0.5),
                };
                if a >= 1.0 {
                    p6 = Pair {
                        x: p6.y,
                        y: number(1.0),
                    };
                }
            }
            #[allow(unused_assignments)]
            match m {
                ..=-1 => {
                    let q7 = [h, p1.y][usize::from(flag)];
                }
                0..=2 => {
                    h = ((h - a) * 2.0);
                }
                _ => {
                    let mut w8 = count(0);
                    while w8 < 3 {
                        w8 = (w8 + 1);
                        k = (k + 2);
                    }
                }
            }
            let b = b;
            let q9 = 'block: {
                if flag {
                    break 'block a;
                }
                ((h + b) - p1.y)
            };
            Ok((m as f64 * 1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            let p1 = match count(3) {
                0 => Pair {
                    x: b,
                    #[cfg(all())]
                    y: (number(1.5) - h)?,
                },
                1 => v,
                _ => Pair { x: total(v)?, y: a },
            };
            let mut w2 = count(0);
            while w2 < 3 {
                w2 = (w2 + 1)?;
                for e3 in [0.5, -1.0] {
                    k = (k + 2)?;
                    #[cfg(not(all()))]
                    for i in 0..n {
                        h = missing(i);
                    }
                    #[allow(unused_mut)]
                    let mut x4: F = number(0.5);
                    h = (h + e3)?;
                }
                let mut x5: F = ((number(-1.0) - b)? - number(-0.5))?;
            }
            if (k * 1.0)? > -2.0 {
                let mut p6 = Pair {
                    x: ((h + b)? + h)?,
                    #[cfg(all())]
                    y: (number(1.5) * 0.5)?,
                };
                if a >= 1.0 {
                    p6 = Pair {
                        x: p6.y,
                        y: number(1.0),
                    };
                }
            }
            #[allow(unused_assignments)]
            match m {
                ..=-1 => {
                    let q7 = [h, p1.y][usize::from(flag)];
                }
                0..=2 => {
                    h = ((h - a)? * 2.0)?;
                }
                _ => {
                    let mut w8 = count(0);
                    while w8 < 3 {
                        w8 = (w8 + 1)?;
                        k = (k + 2)?;
                    }
                }
            }
            let b = b;
            let q9 = 'block: {
                if flag {
                    break 'block a;
                }
                ((h + b)? - p1.y)?
            };
            Ok((m * 1.0)?)
        }
    }
}

pub mod program_39 {
    pub mod plain {
        use crate::on_plain::*;
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(all())]
            match k {
                1 => match k {
                    #[cfg(all())]
                    3 => {
                        let mut x1: F = b;
                    }
                    #[cfg(not(all()))]
                    2 => missing,
                    other => {
                        h = total(v.clone())?;
                    }
                },
                #[allow(unused)]
                2 => {
                    k = (k - 2);
                }
                0 | 4..=9 => {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                }
                _ => {
                    for i2 in 0..2 {
                        h = h;
                        let a = ((n as f64 * 1.0) * 0.5);
                        #[cfg(no_such_option)]
                        total(missing)?;
                    }
                }
            }
            let y3: F = if (number(-1.5) - number(-1.0)) < 2.0 {
                number(-2.0)
            } else {
                let mut w4 = count(0);
                while w4 < n {
                    w4 = (w4 + 1);
                    k = (k + 1);
                }
                h
            };
            let a = ((h - number(-1.5)) * 2.0);
            if (number(-2.5) + a) < -1.0 {
                /// A comment.
                for e5 in [0.5, -1.0] {
                    let x6: F = (m as f64 * 1.0);
                    h = (h + e5);
                }
            } else {
                h = (h + (h + b));
            }
            Ok((k as f64 * 1.0))
        }
    }
    pub mod graph {
        use crate::on_graph::*;
        #[trace(control_flow)]
        pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F> {
            let mut h: F = a;
            let mut k: N = n;
            let v = Pair { x: a, y: b };
            #[cfg(all())]
            match k {
                1 => match k {
                    #[cfg(all())]
                    3 => {
                        let mut x1: F = b;
                    }
                    #[cfg(not(all()))]
                    2 => missing,
                    other => {
                        h = total(v.clone())?;
                    }
                },
                #[allow(unused)]
                2 => {
                    k = (k - 2)?;
                }
                0 | 4..=9 => {
                    #[cfg(no_such_option)]
                    return Ok(missing);
                }
                _ => {
                    for i2 in 0..2 {
                        h = h;
                        let a = ((n * 1.0)? * 0.5)?;
                        #[cfg(no_such_option)]
                        total(missing)?;
                    }
                }
            }
            let y3: F = if (number(-1.5) - number(-1.0))? < 2.0 {
                number(-2.0)
            } else {
                let mut w4 = count(0);
                while w4 < n {
                    w4 = (w4 + 1)?;
                    k = (k + 1)?;
                }
                h
            };
            let a = ((h - number(-1.5))? * 2.0)?;
            if (number(-2.5) + a)? < -1.0 {
                /// A comment.
                for e5 in [0.5, -1.0] {
                    let x6: F = (m * 1.0)?;
                    h = (h + e5)?;
                }
            } else {
                h = (h + (h + b)?)?;
            }
            Ok((k * 1.0)?)
        }
    }
}
