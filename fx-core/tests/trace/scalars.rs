//! Symbolic scalars, proxies and lists: the same numbers traced as eager, Python's rules, errors
//! instead of panics.

use fx_core::prelude::*;
use fx_core::trace::{List, TracedFn};
use fx_core::value::IntoValue;
use insta::assert_snapshot;
use proptest::prelude::*;

use crate::support::names;

type Ints = fn(Int, Int) -> Result<Int>;
type Floats = fn(Float, Float) -> Result<Float>;

/// One operation on two numbers, eager and traced: the same result, or an error in both.
fn agree<T, S>(eager: Result<fx_core::value::Sym<T>>, gm: &GraphModule, a: S, b: S) -> Result<()>
where
    T: Copy + FromValue + PartialEq + std::fmt::Debug + 'static,
    S: IntoValue,
{
    let traced = gm.forward::<T>((a, b));
    match (eager, traced) {
        (Ok(eager), Ok(traced)) => {
            let eager = eager
                .concrete()
                .ok_or_else(|| Error::msg("a known number"))?;
            // Both may return NaN.
            assert!(eager == traced || format!("{eager:?}") == format!("{traced:?}"));
        }
        (Err(_), Err(_)) => {}
        (eager, traced) => panic!(
            "{} is {:?} eager and {:?} traced",
            gm.graph(),
            eager.map(|s| s.concrete()),
            traced
        ),
    }
    Ok(())
}

fn ints() -> Vec<(Ints, TracedFn)> {
    macro_rules! all {
        ($($f:expr),*) => { vec![$(($f as Ints, traced!(|a: Int, b: Int| $f(a, b)))),*] };
    }
    all![
        |a: Int, b: Int| a + b,
        |a: Int, b: Int| a - b,
        |a: Int, b: Int| a * b,
        |a: Int, b: Int| a % b,
        |a: Int, b: Int| a.floordiv(b),
        |a: Int, b: Int| a & b,
        |a: Int, b: Int| a | b,
        |a: Int, b: Int| a ^ b,
        |a: Int, b: Int| a << b,
        |a: Int, b: Int| a >> b,
        |a: Int, b: Int| a.pow(b),
        |a: Int, b: Int| (2 * a)? + (b - 3)?,
        |a: Int, b: Int| (1 - a)? % (b + Int::from(1usize))?,
        |a: Int, b: Int| (-a)? + (!b)?,
        |a: Int, b: Int| a.abs()? - b.abs()?
    ]
}

fn floats() -> Vec<(Floats, TracedFn)> {
    macro_rules! all {
        ($($f:expr),*) => { vec![$(($f as Floats, traced!(|a: Float, b: Float| $f(a, b)))),*] };
    }
    all![
        |a: Float, b: Float| a + b,
        |a: Float, b: Float| a - b,
        |a: Float, b: Float| a * b,
        |a: Float, b: Float| a / b,
        |a: Float, b: Float| a % b,
        |a: Float, b: Float| a.floordiv(b),
        |a: Float, b: Float| a.pow(b),
        |a: Float, b: Float| (2.0 * a)? - (1 - b)?,
        |a: Float, b: Float| (-a)? / b.abs()?
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn integers_agree(
        a in prop_oneof![-9i64..9, any::<i64>()],
        b in prop_oneof![-9i64..9, any::<i64>()],
    ) {
        for (eager, traced) in ints() {
            let gm = symbolic_trace(traced).expect("arithmetic traces");
            agree(eager(a.into(), b.into()), &gm, a, b).expect("known numbers");
        }
    }

    #[test]
    fn floats_agree(a in any::<f64>(), b in any::<f64>()) {
        for (eager, traced) in floats() {
            let gm = symbolic_trace(traced).expect("arithmetic traces");
            agree(eager(a.into(), b.into()), &gm, a, b).expect("known numbers");
        }
    }
}

#[test]
fn arithmetic_has_pythons_rules() -> Result<()> {
    let int = |n: Result<Int>| n.map(|n| n.concrete());
    let n = Int::from(-7);
    assert_eq!(int(n % 3)?, Some(2));
    assert_eq!(int(n.floordiv(2))?, Some(-4));
    assert_eq!(int(!n)?, Some(6));
    assert_eq!((n / 2)?.concrete(), Some(-3.5));
    assert_eq!((n + 0.5)?.concrete(), Some(-6.5));
    assert_eq!((0.5 * n)?.concrete(), Some(-3.5));
    assert_eq!((!Bool::from(true))?.concrete(), Some(false));
    assert_eq!((Bool::from(true) ^ true)?.concrete(), Some(false));
    assert_eq!(Float::from(n).concrete(), Some(-7.0));
    Ok(())
}

#[test]
fn what_has_no_result_is_an_error() {
    let n = Int::from(i64::MAX);
    for result in [
        n + 1,
        n * 2,
        n % 0,
        n.floordiv(0),
        n << -1,
        n.pow(2),
        Int::from(2).pow(-1),
        -Int::from(i64::MIN),
        Int::from(i64::MIN).abs(),
        Int::from(i64::MIN).floordiv(-1),
    ] {
        assert!(result.is_err(), "{result:?}");
    }
    assert!((n / 0).is_err());
}

#[trace]
fn compared(n: Int, x: Float) -> Result<(Bool, Bool, Bool)> {
    let inside = ((n >= 0)? & (n < 10)?)?;
    let close = (0.5 < x)?;
    Ok((inside, close, (n != x)?))
}

#[test]
fn comparisons_are_recorded() -> Result<()> {
    let gm = symbolic_trace(traced!(compared))?;
    assert_eq!(
        names(gm.graph()),
        ["n", "x", "ge", "lt", "and_", "gt", "ne", "output"]
    );
    assert_eq!(
        gm.forward::<(bool, bool, bool)>((3, 0.75))?,
        (true, true, true)
    );
    assert_eq!(
        gm.forward::<(bool, bool, bool)>((11, 11))?,
        (false, true, false)
    );
    let (a, b, c) = compared(3.into(), 0.25.into())?;
    assert_eq!(
        (a.to_bool()?, b.to_bool()?, c.to_bool()?),
        (true, false, true)
    );
    assert_eq!(Int::from(3).gt(2)?.concrete(), Some(true));
    assert_eq!(Float::from(3.0).eq(Int::from(3))?.concrete(), Some(true));
    Ok(())
}

#[test]
fn a_conversion_records_nothing() -> Result<()> {
    let gm = symbolic_trace(traced!(|n: Int| Float::from(n) * 0.5))?;
    assert_eq!(names(gm.graph()), ["n", "mul", "output"]);
    assert_eq!(gm.forward::<f64>(3)?, 1.5);
    Ok(())
}

#[test]
fn proxies_have_every_operator() -> Result<()> {
    let f = traced!(|x: Value| {
        let x = x.as_proxy().ok_or_else(|| Error::msg("symbolic"))?;
        let all = [
            x + 1,
            x - 2.0,
            x * x,
            x / 2,
            x % 2,
            x & 1,
            x | 1,
            x ^ 1,
            x << 1,
            x >> 1,
            2.0 + x,
            2 - x,
            -x,
            !x,
            x.gt(1),
            x.lt(1),
            x.ge(1),
            x.le(1),
            x.eq(1),
            x.ne(1),
            x.pow(2),
            x.floordiv(2),
            x.matmul(x),
            x.abs(),
            x.getitem(0),
            x.attr("shape"),
            x.call_method("clamp", args![0, max = 1]),
        ];
        all.into_iter()
            .map(|p| p?.to::<Value>())
            .collect::<Result<Vec<_>>>()
    });
    let graph = Trace::new(f).graph()?;
    let text = graph.to_string();
    assert_eq!(
        names(&graph)[1..28].join(" "),
        "add sub mul truediv mod_1 and_ or_ xor lshift rshift add_1 sub_1 neg invert gt lt ge le eq ne pow \
         floordiv matmul abs getitem getattr clamp"
    );
    assert_snapshot!(text, @r#"
    graph():
        %x : Value [num_users=27] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, 1), kwargs = {})
        %sub : [num_users=1] = call_function[target=fx_core::operator::sub](args = (%x, 2.0), kwargs = {})
        %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, %x), kwargs = {})
        %truediv : [num_users=1] = call_function[target=fx_core::operator::truediv](args = (%x, 2), kwargs = {})
        %mod_1 : [num_users=1] = call_function[target=fx_core::operator::r#mod](args = (%x, 2), kwargs = {})
        %and_ : [num_users=1] = call_function[target=fx_core::operator::and_](args = (%x, 1), kwargs = {})
        %or_ : [num_users=1] = call_function[target=fx_core::operator::or_](args = (%x, 1), kwargs = {})
        %xor : [num_users=1] = call_function[target=fx_core::operator::xor](args = (%x, 1), kwargs = {})
        %lshift : [num_users=1] = call_function[target=fx_core::operator::lshift](args = (%x, 1), kwargs = {})
        %rshift : [num_users=1] = call_function[target=fx_core::operator::rshift](args = (%x, 1), kwargs = {})
        %add_1 : [num_users=1] = call_function[target=fx_core::operator::add](args = (2.0, %x), kwargs = {})
        %sub_1 : [num_users=1] = call_function[target=fx_core::operator::sub](args = (2, %x), kwargs = {})
        %neg : [num_users=1] = call_function[target=fx_core::operator::neg](args = (%x,), kwargs = {})
        %invert : [num_users=1] = call_function[target=fx_core::operator::invert](args = (%x,), kwargs = {})
        %gt : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, 1), kwargs = {})
        %lt : [num_users=1] = call_function[target=fx_core::operator::lt](args = (%x, 1), kwargs = {})
        %ge : [num_users=1] = call_function[target=fx_core::operator::ge](args = (%x, 1), kwargs = {})
        %le : [num_users=1] = call_function[target=fx_core::operator::le](args = (%x, 1), kwargs = {})
        %eq : [num_users=1] = call_function[target=fx_core::operator::eq](args = (%x, 1), kwargs = {})
        %ne : [num_users=1] = call_function[target=fx_core::operator::ne](args = (%x, 1), kwargs = {})
        %pow : [num_users=1] = call_function[target=fx_core::operator::pow](args = (%x, 2), kwargs = {})
        %floordiv : [num_users=1] = call_function[target=fx_core::operator::floordiv](args = (%x, 2), kwargs = {})
        %matmul : [num_users=1] = call_function[target=fx_core::operator::matmul](args = (%x, %x), kwargs = {})
        %abs : [num_users=1] = call_function[target=fx_core::operator::abs](args = (%x,), kwargs = {})
        %getitem : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%x, 0), kwargs = {})
        %getattr : [num_users=1] = call_function[target=fx_core::operator::getattr](args = (%x, "shape"), kwargs = {})
        %clamp : [num_users=1] = call_method[target=clamp](args = (%x, 0), kwargs = {max: 1})
        return [%add, %sub, %mul, %truediv, %mod_1, %and_, %or_, %xor, %lshift, %rshift, %add_1, %sub_1, %neg, %invert, %gt, %lt, %ge, %le, %eq, %ne, %pow, %floordiv, %matmul, %abs, %getitem, %getattr, %clamp]
    "#);
    Ok(())
}

#[wrap(path = "scalars::digits")]
fn digits(n: Int) -> Result<List<Int>> {
    let text = n.concrete().unwrap_or(0).to_string();
    Ok(text
        .chars()
        .filter_map(|c| c.to_digit(10))
        .map(|d| Int::from(i64::from(d)))
        .collect())
}

#[test]
fn a_list_is_taken_by_index() -> Result<()> {
    let gm = symbolic_trace(traced!(|n: Int| {
        let all = digits(n)?;
        let [a, b] = all.unpack()?;
        Ok((all.get(-1)?, (a + b)?, all))
    }))?;
    assert_eq!(
        names(gm.graph()),
        [
            "n",
            "digits",
            "getitem",
            "getitem_1",
            "getitem_2",
            "add",
            "output"
        ]
    );
    let (last, sum, all): (i64, i64, Vec<i64>) = gm.forward(345)?;
    assert_eq!((last, sum, all), (5, 7, vec![3, 4, 5]));
    let known = digits(345.into())?;
    assert_eq!(known.known_len(), Some(3));
    assert_eq!(known.get(1)?.concrete(), Some(4));
    assert!(known.get(3).is_err() && known.get(-4).is_err());
    assert!(known.unpack::<2>().is_err());
    assert_eq!(known.iter()?.count(), 3);
    let error = symbolic_trace(traced!(|n: Int| Ok(Int::from(digits(n)?.iter()?.count()))))
        .expect_err("how many is not known");
    assert!(error.to_string().contains("cannot be iterated"), "{error}");
    Ok(())
}
