//! Comparisons of traced values inside `#[trace]`: each is an op at the place of the user's comparison.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use crate::support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

#[trace]
fn all(x: &Tensor, y: Tensor, n: Int, f: Float) -> Result<Vec<Tensor>> {
    let (a, b) = (2.0, 3i64);
    Ok(vec![
        (x > 0.5)?,
        (x < 2)?,
        (x >= n)?,
        (x <= f)?,
        (x == &y)?,
        (x != y)?,
        (y > x)?,
        (y < y.clone())?,
        (y >= 1.0)?,
        (y == a)?,
        (y != b)?,
        (0.5 < x)?,
        (2 > y)?,
        (a <= x)?,
        (b != y)?,
        (n == x)?,
        (f >= y)?,
    ])
}

/// What the comparisons of `all` are, in order.
const ALL: [&str; 17] = [
    "gt(x, 0.5)",
    "lt(x, 2)",
    "ge(x, 7)",
    "le(x, 1.5)",
    "eq(x, y)",
    "ne(x, y)",
    "gt(y, x)",
    "lt(y, y)",
    "ge(y, 1.0)",
    "eq(y, 2.0)",
    "ne(y, 3)",
    "gt(x, 0.5)",
    "lt(y, 2)",
    "ge(x, 2.0)",
    "ne(y, 3)",
    "eq(x, 7)",
    "le(y, 1.5)",
];

#[test]
fn ops_run() {
    let texts = all(&tensor("x"), tensor("y"), 7i64.into(), 1.5.into()).unwrap();
    let texts: Vec<_> = texts.iter().map(|t| t.text.as_str()).collect();
    assert_eq!(texts, ALL);
}

/// The calls of a graph as `gt(x, 0.5)`.
fn calls(gm: &GraphModule) -> Vec<String> {
    let text = gm.graph().to_string();
    let calls = text.lines().filter_map(|line| {
        let (_, call) = line.split_once("call_function[target=fx_core::operator::")?;
        let (op, args) = call.split_once("](args = (")?;
        let (args, _) = args.split_once("), kwargs")?;
        Some(format!("{op}({})", args.replace('%', "")))
    });
    calls.collect()
}

#[test]
fn ops_are_recorded() {
    let gm = symbolic_trace(traced!(all)).unwrap();
    let expected: Vec<_> = ALL
        .iter()
        .map(|call| call.replace('7', "n").replace("1.5", "f"))
        .collect();
    assert_eq!(calls(&gm), expected);
}

#[rustfmt::skip]
#[trace]
fn places(x: &Tensor) -> Result<Vec<Tensor>> {
    let a = x > 0.0;
    let b = (x
        < 0.0)?;
    let c = [x].iter().map(|x| *x == 1.0).collect::<Result<Vec<_>>>()?;
    let d = (&(x + 1.0)? >= x)?;
    let e = x + 1.0;
    let f = format!("{:?}", (x != 2).is_ok()).len();
    assert!(f == 4);
    Ok(vec![a?, b, c[0].clone(), d, e?])
}

#[test]
fn locations_are_the_comparisons() {
    let gm = symbolic_trace(traced!(places)).unwrap();
    let place = |node: fx_core::ir::NodeRef<'_>| {
        let place = node.location().unwrap();
        (node.name().to_string(), place.line, place.column)
    };
    let places: Vec<_> = gm
        .graph()
        .nodes()
        .filter(|node| node.opcode() == fx_core::ir::Opcode::CallFunction)
        .map(place)
        .collect();
    let first = places[0].1;
    let places: Vec<_> = places
        .iter()
        .map(|(name, line, column)| (name.as_str(), line - first, *column))
        .collect();
    assert_eq!(
        places,
        [
            ("gt", 0, 13),
            ("lt", 1, 13),
            ("eq", 3, 32),
            ("add", 4, 15),
            ("ge", 4, 13),
            ("add_1", 5, 13),
            ("ne", 6, 29),
        ]
    );
}

#[trace]
fn nested(x: &Tensor) -> Result<Tensor> {
    let mask = (((x > 0.0)? == (x < 1.0)?)? != (!(x == 0.5)?)?)?;
    let inner = |t: &Tensor| t * (t >= 2)?;
    fn helper(x: &Tensor) -> Result<Tensor> {
        x + 1.0
    }
    if mask.text.len() > 3 && !mask.text.is_empty() {
        inner(&helper(&mask)?)
    } else {
        Ok(mask)
    }
}

#[test]
fn nesting() {
    let mask = "ne(eq(gt(x, 0.0), lt(x, 1.0)), invert(eq(x, 0.5)))";
    assert_eq!(
        nested(&tensor("x")).unwrap().text,
        format!("mul(add({mask}, 1.0), ge(add({mask}, 1.0), 2))")
    );
}

/// A traced function whose operands come through a macro as whole expressions.
macro_rules! through_a_macro {
    ($name:ident($n:ident, $x:ident), $a:expr, $b:expr, $y:expr, $c:expr) => {
        #[trace]
        #[allow(
            clippy::nonminimal_bool,
            clippy::double_comparisons,
            clippy::precedence
        )]
        fn $name($n: i64, $x: &Tensor) -> Result<Tensor> {
            if $a > $b && $b == $a - 1 || !($a < $b) {
                let fine = $a;
                let empty = $c && fine < 0;
                assert!(!empty);
                assert_eq!($a * 2, 2 * fine);
                assert_eq!($a.pow(2) as i32, (fine * fine) as i32);
                let _: Vec<i64> = vec![$a];
                assert!(Some($a).is_some());
                return $y > 0.5;
            }
            ($y != $x)? * ($x <= $y)?
        }
    };
}
through_a_macro!(grouped(n, x), n + 1, n, (x + 1.0)?, n > 0 || n < 0);
through_a_macro!(other(n, x), n - 1, n, &(x + 1.0)?, n > 0 || n < 0);

#[test]
fn operands_through_a_macro() {
    let x = &tensor("x");
    assert_eq!(grouped(1, x).unwrap().text, "gt(add(x, 1.0), 0.5)");
    assert_eq!(
        other(1, x).unwrap().text,
        "mul(ne(add(x, 1.0), x), le(x, add(x, 1.0)))"
    );
}
