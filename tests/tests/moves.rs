//! Programs that are legal Rust with plain numbers: under `#[trace(control_flow)]` they compile too,
//! with plain numbers and with traced ones, and give the same.

#![allow(
    clippy::all,
    clippy::unwrap_used,
    reason = "forms that people write, whatever a lint would say"
)]
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::needless_return,
    clippy::never_loop,
    reason = "the forms are what is tested"
)]

use crate::support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

/// Each program without the attribute, with it, and with a traced number.
macro_rules! programs {
    ($($(#[$attr:meta])* fn $name:ident($y:ident: $ty:ty, $z:ident: &Tensor, $n:ident: N) -> $out:ty $body:block)*) => {
        mod plain {
            use super::*;
            type N = i64;
            $(pub fn $name($y: $ty, $z: &Tensor, $n: N) -> $out $body)*
        }
        mod known {
            use super::*;
            type N = i64;
            $(#[trace(control_flow)] pub fn $name($y: $ty, $z: &Tensor, $n: N) -> $out $body)*
        }
        mod traced {
            use super::*;
            type N = Int;
            $(#[trace(control_flow)] pub fn $name($y: $ty, $z: &Tensor, $n: N) -> $out $body)*
        }
        $(
            #[test]
            fn $name() -> Result<()> {
                let gm = symbolic_trace(traced!(traced::$name))?;
                let z = tensor("z");
                for n in -1..5 {
                    let y = || tensor("y");
                    let want = plain::$name(y(), &z, n).map(|y| y.text);
                    let want = want.map_err(|_| ());
                    let known = known::$name(y(), &z, n).map(|y| y.text);
                    assert_eq!(known.map_err(|_| ()), want, "known {n}");
                    let eager = traced::$name(y(), &z, n.into()).map(|y| y.text);
                    assert_eq!(eager.map_err(|_| ()), want, "eager {n}");
                    let graph = gm.forward::<Tensor>((y(), &z, n)).map(|y| y.text);
                    assert_eq!(graph.map_err(|_| ()), want, "graph {n}");
                }
                Ok(())
            }
        )*
    };
}

fn owned(y: Tensor) -> Result<Tensor> {
    y + 1.0
}

fn two(a: Tensor, b: Tensor) -> Result<Tensor> {
    a + b
}

#[derive(Tree, Clone)]
struct Pair {
    a: Tensor,
    b: Tensor,
}

programs! {
    fn defect_t3_m5_one_side_moves_and_the_other_computes(y: Tensor, _z: &Tensor, n: N) -> Result<Tensor> {
        if n > 1 { Ok(y) } else { y * 2.0 }
    }

    fn defect_t3_m5_both_sides_call_with_it(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        if n > 1 {
            owned(y)
        } else if n > 0 {
            two(y, z.clone())
        } else {
            let y = y;
            -y
        }
    }

    fn defect_t3_m5_a_mutable_one_moves(y: Tensor, _z: &Tensor, n: N) -> Result<Tensor> {
        let mut y = y;
        if n > 2 {
            y = (y * 2.0)?;
        }
        if n > 1 { Ok(y) } else { y * 2.0 }
    }

    fn defect_t3_m5_an_early_return_moves(y: Tensor, _z: &Tensor, n: N) -> Result<Tensor> {
        if n > 3 {
            return y * 100.0;
        }
        if n > 2 {
            return Ok(y);
        }
        if n <= 0 {
            let doubled = y * 2.0;
            return doubled;
        } else {
            y * 3.0
        }
    }

    fn defect_t3_m5_arms_return_what_they_move(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        match n {
            0 => return Ok(y),
            1 => {
                return y + 1.0;
            }
            2 => two(y, z.clone()),
            _ => y * 4.0,
        }
    }

    fn defect_t3_m5_structures_move(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let pair = Pair { a: y, b: z.clone() };
        let pair = if n > 1 {
            let Pair { a, b } = &pair;
            Pair { a: (a + b)?, b: pair.a }
        } else {
            Pair { a: pair.b, b: pair.a }
        }.a;
        Ok(pair)
    }

    fn defect_t3_m5_vectors_and_tuples_move(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let other = z.clone();
        let list = if n > 1 { vec![y, other] } else { [other, y].to_vec() };
        let (a, b) = if n > 0 { (list[0].clone(), list[1].clone()) } else { (list[1].clone(), list[0].clone()) };
        let mut sum = a;
        for part in list {
            sum = (sum + part)?;
        }
        two(sum, b)
    }

    fn defect_t3_m5_options_move(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let given = Some(y);
        if n > 1 { given.ok_or(Error::msg("none")) } else { given.unwrap_or(z.clone()) * 2.0 }
    }

    fn defect_t3_m5_a_way_out_of_a_loop_moves(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        for k in [1i64, 2, 3] {
            if n > k {
                return y + k;
            }
        }
        two(y, z.clone())
    }

    fn defect_t3_m5_nested_sides_return(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        if n > 0 {
            if n > 2 {
                return Ok(y);
            } else if n > 1 {
                return owned(y);
            } else {
                return two(y, z.clone());
            }
        }
        y * 5.0
    }

    fn defect_t3_m5_a_nested_side_returns_before_the_end(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        if n > 0 {
            let h = (&y * 2.0)?;
            if n > 2 {
                return Ok(h);
            }
            let h = (h + y)?;
            if n > 1 {
                return h * z;
            }
            return h - 1.0;
        }
        y * 5.0
    }

    fn defect_t3_m5_a_nested_side_refuses(y: Tensor, _z: &Tensor, n: N) -> Result<Tensor> {
        if n > 0 {
            if n > 2 {
                return Err(Error::msg("large"));
            } else {
                return Ok(y);
            }
        }
        y * 5.0
    }

    fn defect_t3_m5_nested_arms_return(y: Tensor, _z: &Tensor, n: N) -> Result<Tensor> {
        if n > 0 {
            match n {
                1 => return Ok(y),
                2 => return y * 2.0,
                _ => return y * 3.0,
            }
        }
        match n {
            0 => {
                if n > -1 {
                    return y * 8.0;
                }
                return y * 9.0;
            }
            _ => Ok(y),
        }
    }

    fn defect_t3_m5_nested_sides_go_on(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let mut h = y;
        for k in 0..n {
            if k > 0 {
                if k > 2 {
                    h = (h + z)?;
                    continue;
                } else {
                    h = (h - z)?;
                    continue;
                }
            }
            h = (h * 2.0)?;
        }
        Ok(h)
    }

    fn defect_t3_m5_let_else_and_if_let(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let given = Some(y);
        let Some(y) = given else {
            return Ok(z.clone());
        };
        let none: Option<Tensor> = None;
        if let Some(other) = &none {
            return Ok(other.clone());
        }
        if n > 1 {
            if let Some(y) = Some(y) && y.text.len() > 40 {
                Ok(y)
            } else {
                Ok(z.clone())
            }
        } else {
            y * 2.0
        }
    }

    fn defect_t3_m5_while_let_and_break_values(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let mut rest = vec![1.0, 2.0];
        let mut h = y;
        while let Some(number) = rest.pop() {
            h = if n > 1 { h * number } else { h + number }?;
        }
        let found = loop {
            if rest.is_empty() {
                break h;
            }
            rest.clear();
        };
        let found = 'block: {
            if z.text.len() > 100 {
                break 'block z.clone();
            }
            found
        };
        Ok(found)
    }

    fn defect_t3_m5_closures_and_macros(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let scaled = |x: &Tensor, by: f64| x * by;
        let name = y.text.len();
        let h = if n > 1 {
            assert!(name > 0, "{y:?}");
            scaled(&y, 2.0)?
        } else {
            let add = |x: Tensor| x + z;
            add(y.clone())?
        };
        let last = move |x: Tensor| two(x, y);
        last(h)
    }

    fn defect_t3_m5_references_stay(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        fn push(list: &mut Vec<f64>, x: f64) {
            list.push(x);
        }
        let mut list = Vec::new();
        let lent = &mut list;
        push(lent, 1.0);
        if z.text.len() > 10 {
            push(lent, 2.0);
        } else {
            push(lent, 3.0);
        }
        push(lent, 4.0);
        let numbers = &list;
        let pick = if n > 1 { z.clone() } else { y };
        let h = if n > 0 { pick * numbers[1] } else { pick * numbers[2] };
        h
    }

    fn defect_t3_m5_shadows_and_questions(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let y = y;
        let y = if n > 1 {
            let y = (y * 2.0)?;
            let y = owned(y)?;
            two(y, z.clone())?
        } else {
            let z = owned(y)?;
            z
        };
        let r: Option<Tensor> = Some(y);
        if n > 0 { r.ok_or(Error::msg("none")) } else { Ok((r.unwrap() + 1.0)?) }
    }

    fn defect_t3_m5_labels(y: Tensor, z: &Tensor, n: N) -> Result<Tensor> {
        let mut h = y;
        'outer: for k in [1i64, 2] {
            for j in [1i64, 2] {
                if n > k + j {
                    h = (h + z)?;
                    continue 'outer;
                }
                h = (h * 2.0)?;
            }
            if z.text.is_empty() {
                break 'outer;
            }
        }
        Ok(h)
    }
}
