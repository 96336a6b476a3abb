//! Sizes that become known when a graph runs: their arithmetic, their normal form and their text.

use fx_core::ir::{TensorMeta, ValueMeta};
use fx_core::prelude::*;
use fx_core::value::Dim;
use proptest::prelude::*;

/// An expression, and how it is computed from the values of `a`, `b` and `c`.
#[derive(Debug, Clone)]
enum Expr {
    Symbol(usize),
    Number(i64),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Div(Box<Expr>, i64),
    Rem(Box<Expr>, i64),
    DivBy(Box<Expr>, usize),
    Min(Box<Expr>, Box<Expr>),
    Max(Box<Expr>, Box<Expr>),
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn exprs() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0..3usize).prop_map(Expr::Symbol),
        (-9..30i64).prop_map(Expr::Number),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let two = || {
            (
                inner.clone().prop_map(Box::new),
                inner.clone().prop_map(Box::new),
            )
        };
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            two().prop_map(|(a, b)| Expr::Add(a, b)),
            two().prop_map(|(a, b)| Expr::Sub(a, b)),
            two().prop_map(|(a, b)| Expr::Mul(a, b)),
            (one(), 1..7i64).prop_map(|(a, k)| Expr::Div(a, k)),
            (one(), 1..7i64).prop_map(|(a, k)| Expr::Rem(a, k)),
            (one(), 0..3usize).prop_map(|(a, k)| Expr::DivBy(a, k)),
            two().prop_map(|(a, b)| Expr::Min(a, b)),
            two().prop_map(|(a, b)| Expr::Max(a, b)),
        ]
    })
}

fn dim(expr: &Expr) -> Result<Dim> {
    Ok(match expr {
        Expr::Symbol(at) => Dim::symbol(NAMES[*at])?,
        Expr::Number(number) => Dim::from(*number),
        Expr::Add(a, b) => (dim(a)? + dim(b)?)?,
        Expr::Sub(a, b) => (dim(a)? - dim(b)?)?,
        Expr::Mul(a, b) => (dim(a)? * dim(b)?)?,
        Expr::Div(a, k) => dim(a)?.div(*k)?,
        Expr::Rem(a, k) => dim(a)?.rem(*k)?,
        Expr::DivBy(a, k) => dim(a)?.div(Dim::symbol(NAMES[*k])?)?,
        Expr::Min(a, b) => dim(a)?.min(dim(b)?)?,
        Expr::Max(a, b) => dim(a)?.max(dim(b)?)?,
    })
}

fn value(expr: &Expr, of: [i64; 3]) -> i128 {
    let of_symbol = |at: usize| i128::from(of[at]);
    match expr {
        Expr::Symbol(at) => of_symbol(*at),
        Expr::Number(number) => i128::from(*number),
        Expr::Add(a, b) => value(a, of) + value(b, of),
        Expr::Sub(a, b) => value(a, of) - value(b, of),
        Expr::Mul(a, b) => value(a, of) * value(b, of),
        Expr::Div(a, k) => value(a, of).div_euclid(i128::from(*k)),
        Expr::Rem(a, k) => value(a, of).rem_euclid(i128::from(*k)),
        Expr::DivBy(a, k) => value(a, of).div_euclid(of_symbol(*k)),
        Expr::Min(a, b) => value(a, of).min(value(b, of)),
        Expr::Max(a, b) => value(a, of).max(value(b, of)),
    }
}

fn at(of: [i64; 3]) -> impl Fn(&str) -> Option<i64> {
    move |name| {
        NAMES
            .iter()
            .position(|other| *other == name)
            .map(|at| of[at])
    }
}

/// The limits of expressions are no mistakes.
fn is_limit(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("larger than an `i64` holds") || text.contains("a size is an expression of more")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_size_has_the_value_of_what_it_was_computed_from(
        expr in exprs(),
        of in [1..40i64, 1..40i64, 1..40i64],
    ) {
        let dim = match dim(&expr) {
            Ok(dim) => dim,
            Err(error) => {
                prop_assert!(is_limit(&error), "{error}");
                return Ok(());
            }
        };
        match dim.eval(at(of)) {
            Ok(found) => prop_assert_eq!(i128::from(found), value(&expr, of), "{}", dim),
            Err(error) => prop_assert!(is_limit(&error), "{}: {}", dim, error),
        }
        // Between its limits.
        let (low, high) = dim.bounds(|name| match name {
            "a" => (Some(1), None),
            _ => (Some(1), Some(39)),
        });
        if let Ok(found) = dim.eval(at(of)) {
            prop_assert!(low.is_none_or(|low| low <= found), "{} >= {:?}", dim, low);
            prop_assert!(high.is_none_or(|high| high >= found), "{} <= {:?}", dim, high);
        }
        // As text, and back.
        let text = dim.to_string();
        let read: Dim = text.parse()?;
        prop_assert_eq!(&read, &dim, "{}", text);
        prop_assert_eq!(read.to_string(), text);
        // With a number for one symbol.
        if let Ok(fixed) = dim.with(|name| (name == "a").then_some(Dim::from(of[0])))
            && let (Ok(fixed), Ok(whole)) = (fixed.eval(at([-1, of[1], of[2]])), dim.eval(at(of)))
        {
            prop_assert_eq!(fixed, whole, "{}", dim);
        }
    }

    /// Sums and products have one form, in whatever order they were computed.
    #[test]
    fn polynomials_with_equal_values_are_equal(
        terms in prop::collection::vec((-4..5i64, 0..3u32, 0..3u32, 0..3u32), 0..6),
        order in any::<prop::sample::Index>(),
        by in (1..5i64, 0..3u32, 0..2u32),
    ) {
        let symbols = NAMES.map(Dim::symbol);
        let [a, b, c] = symbols.map(|symbol| symbol.expect("a name"));
        let term = |(count, x, y, z): &(i64, u32, u32, u32)| -> Result<Dim> {
            let factors = [(&a, *x), (&b, *y), (&c, *z)];
            let factors = factors.iter().flat_map(|(dim, times)| std::iter::repeat_n(*dim, *times as usize));
            Dim::product(factors)? * *count
        };
        let sum = |terms: &[(i64, u32, u32, u32)]| terms.iter().try_fold(Dim::from(0), |sum, one| sum + term(one)?);
        let forward = sum(&terms)?;
        let mut turned = terms.clone();
        if !turned.is_empty() {
            let by = order.index(turned.len());
            turned.rotate_left(by);
            turned.reverse();
        }
        prop_assert_eq!(&forward, &sum(&turned)?);
        prop_assert_eq!((&forward - &sum(&turned)?)?, 0);
        // A product is divided again.
        let by = term(&(by.0, by.1, by.2, 1))?;
        let by = (by + 1)?;
        let product = (&forward * &by)?;
        prop_assert_eq!(product.exact_div(&by)?, Some(forward.clone()));
        prop_assert_eq!(product.div(&by)?, forward);
    }
}

#[test]
fn sizes_print_as_people_write_them() -> Result<()> {
    for text in [
        "0",
        "-3",
        "t",
        "2*t",
        "-t",
        "t - 1",
        "2*t + batch + 3",
        "batch*h*w",
        "(h + 15) // 16",
        "(h + 1) // 2 - 1",
        "3*((h + 1) // 2)",
        "batch*((h + 15) // 16)",
        "t % 8",
        "2*(t % 8)",
        "-(t // 2)",
        "(t + 1) % 8",
        "n - t % 8",
        "min(n, 8)",
        "max(8, n + m)",
        "m // n",
        "m // (8*n)",
        "(m + 1) // (n + 1)",
        "n*min(n, 8)",
    ] {
        let dim: Dim = text.parse()?;
        let shown = dim.to_string();
        let again: Dim = shown.parse()?;
        assert_eq!(again, dim, "{text}: {shown}");
        assert_eq!(shown.len(), text.len(), "{text}: {shown}");
    }
    Ok(())
}

#[test]
fn forms_that_are_equal() -> Result<()> {
    for (one, other) in [
        ("((h + 1) // 2 + 1) // 2", "(h + 3) // 4"),
        ("(4*h + 6) // 2", "2*h + 3"),
        ("(2*h + 5) // 4", "(h + 2) // 2"),
        ("m*n // (8*n)", "m // 8"),
        ("(m*n + m) // m", "n + 1"),
        ("(2*n + m) // n", "2 + m // n"),
        ("(a*a - b*b) // (a - b)", "a + b"),
        ("t % 1", "0"),
        ("(8*t + 3) % 8", "3"),
        ("min(n, n + 1)", "n"),
        ("max(n, min(8, n + 3), n + 2)", "max(min(8, n + 3), n + 2)"),
        ("min(min(a, b), c)", "min(c, b, a)"),
        ("h // -2", "-h // 2"),
        ("7 // 2 + -7 // 2", "-1"),
    ] {
        assert_eq!(
            one.parse::<Dim>()?,
            other.parse::<Dim>()?,
            "{one} and {other}"
        );
    }
    Ok(())
}

#[test]
fn what_is_no_size() {
    for (text, problem) in [
        ("", "a number or a name"),
        ("h +", "a number or a name"),
        ("h h", "an operator"),
        ("(h", "`)`"),
        ("h / 2", "an operator"),
        ("min h", "`(`"),
        ("h // 0", "divided by zero"),
        ("99999999999999999999", "a number"),
        (
            "9223372036854775807*h + 9223372036854775807*h",
            "larger than an `i64`",
        ),
    ] {
        let error = text.parse::<Dim>().expect_err(text).to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
    let nested = "(".repeat(100_000);
    assert!(nested.parse::<Dim>().is_err());
    for name in ["", "2t", "a b", "min", "h'"] {
        assert!(Dim::symbol(name).is_err(), "{name}");
    }
}

/// Expressions that would grow without end are refused.
#[test]
fn sizes_stay_small() -> Result<()> {
    let mut dim = (Dim::symbol("a")? + Dim::symbol("b")?)?;
    let error = loop {
        dim = match &dim * &dim {
            Ok(dim) => dim,
            Err(error) => break error,
        };
    };
    assert!(is_limit(&error), "{error}");
    let mut dim = Dim::symbol("a")?;
    let error = loop {
        let next = (&dim + Dim::symbol("b")?).and_then(|sum| sum.div(Dim::symbol("c")?));
        dim = match next.and_then(|next| &next * &next) {
            Ok(dim) => dim,
            Err(error) => break error,
        };
    };
    assert!(is_limit(&error), "{error}");
    Ok(())
}

#[test]
fn a_file_keeps_sizes_as_text() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    let mul = gm.graph().find_name("mul").map(|node| node.id());
    let mul = mul.ok_or_else(|| Error::msg("no `mul`"))?;
    let shape = ["batch", "3", "(h + 15) // 16"].map(str::parse::<Dim>);
    let shape = shape.into_iter().collect::<Result<Vec<_>>>()?;
    let meta = ValueMeta::from(TensorMeta::new(shape));
    gm.graph_mut().node_mut(mul)?.set_meta(meta.clone());
    let bytes = gm.to_bytes()?;
    assert!(String::from_utf8_lossy(&bytes).contains("(h + 15) // 16"));
    let loaded = GraphModule::from_bytes(&bytes)?;
    let found = loaded.graph().find_name("mul");
    assert_eq!(found.and_then(|node| node.meta::<ValueMeta>()), Some(&meta));
    Ok(())
}
