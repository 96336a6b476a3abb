//! Ordinary Rust inside `#[trace]`: each body runs rewritten and as it is, and both must agree.

#![allow(
    clippy::all,
    clippy::unwrap_used,
    missing_docs,
    reason = "odd code is the point"
)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use fx_core::{Module, trace};

/// Each function becomes a test that compares the rewritten body with the plain one.
macro_rules! same {
    ($(
        $(#[$attr:meta])*
        fn $name:ident $([$($generics:tt)*])? ($($args:tt)*) -> $output:ty { $($body:tt)* }
        with $(($($value:expr),*))+
    )+) => {$(
        #[test]
        $(#[$attr])*
        fn $name() {
            #[derive(Module)]
            struct Traced(fx_core::module::Tag);
            #[trace]
            impl Traced {
                fn forward(&self) -> fx_core::Result<()> {
                    Ok(())
                }
                fn body $(<$($generics)*>)? (&self, $($args)*) -> $output { $($body)* }
            }
            let traced = Traced(fx_core::module::Tag::default());
            let _ = traced.forward();
            fn plain $(<$($generics)*>)? ($($args)*) -> $output { $($body)* }
            $(assert_eq!(traced.body($($value),*), plain($($value),*));)+
        }
    )+};
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Mode {
    Train,
    Eval(u8),
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Layer {
    name: String,
    width: usize,
    ready: bool,
}

const LIMIT: usize = 3;
static WIDTH: usize = 7;

fn block_on<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

same! {
    fn integers(a: i32, b: i32) -> [bool; 6] {
        [a > b, a < b, a >= b, a <= b, a == b, a != b]
    } with (1, 2) (2, 2) (3, 2)

    fn floats(a: f32, b: f64) -> [bool; 4] {
        [a > 0.5, 0.5 < a, b >= 1e3, f64::INFINITY == b]
    } with (0.5, f64::INFINITY) (0.75, 1e4)

    fn literals_on_both_sides() -> (bool, bool, bool, bool, u8, Option<i32>) {
        (1 > 2, 2.0 <= 2.0, "a" < "b", !(1 > 2), (1 < 2) as u8, (1 != 2).then_some(3))
    } with ()

    fn literals_take_the_type_of_the_other_side(a: u8, b: usize) -> (bool, bool, u8) {
        let five = 5;
        let six = 6;
        let less = five < six;
        let _: u8 = six;
        (a > 250, less && b != usize::MAX, five)
    } with (251, 0) (3, usize::MAX)

    fn strings(a: &str, b: String) -> [bool; 7] {
        [
            a == b,
            b == a,
            *a == *b,
            b == "x",
            "x" == b,
            a.as_bytes() == b"x",
            b.as_str() < a,
        ]
    } with ("x", "x".to_owned()) ("x", "y".to_owned())

    fn slices(v: Vec<i32>, s: &[i32]) -> [bool; 8] {
        [
            v == s,
            v == [1, 2, 3],
            *s == [1, 2],
            s[..1] == v[..1],
            v[1..] > s[1..],
            v == vec![0; 0],
            &v[..] == s,
            s == &[1, 2],
        ]
    } with (vec![1, 2, 3], &[1, 2]) (vec![0], &[7]) (vec![5, 6], &[7])

    fn options(a: Option<&str>, b: Option<u32>) -> [bool; 5] {
        [a == None, a == Some("x"), b > Some(1), None < b, b != None]
    } with (None, None) (Some("x"), Some(3))

    fn tuples_and_units(a: (i32, &str)) -> [bool; 4] {
        [a == (1, "x"), a < (2, "a"), (a.0, a.1) != a, () == ()]
    } with ((1, "x")) ((3, "b"))

    fn enums_and_structs(mode: Mode, layer: &Layer) -> [bool; 5] {
        [
            mode == Mode::Train,
            mode > Mode::Eval(1),
            *layer == Layer { name: String::new(), ..Default::default() },
            layer.name == "conv",
            (Layer { width: 2, ..layer.clone() }) != *layer,
        ]
    } with (Mode::Train, &Layer::default())
      (Mode::Eval(2), &Layer { name: "conv".into(), width: 2, ready: true })

    fn pointers(a: Rc<i32>, b: Arc<str>, c: Box<[u8]>) -> [bool; 5] {
        let same: *const i32 = &*a;
        [a == Rc::new(3), &*b == "x", *b < *"y", *c == [1], same == std::ptr::null()]
    } with (Rc::new(3), Arc::from("x"), Box::from([1])) (Rc::new(4), Arc::from("z"), Box::from([]))

    fn references(a: &i32, b: &mut i32, c: &&i32) -> [bool; 4] {
        [*a > 3, *b == *a, a < *c, &*b != a]
    } with (&4, &mut 4, &&5) (&1, &mut 2, &&1)

    fn generic[T: PartialOrd + Clone](a: T, b: T) -> (bool, bool, bool) {
        let both = [a.clone(), b.clone()];
        (a > b, a == b, both[0] <= both[1])
    } with (1, 2) ("b", "a") (0.5, 0.5)

    fn generic_over_two[A: PartialEq<B> + ?Sized, B: ?Sized](a: &A, b: &B) -> bool {
        *a == *b
    } with ("x", "x") (&[1, 2][..], &[1, 3][..])

    fn largest[T: Ord + Copy](values: &[T]) -> Option<T> {
        let mut best = *values.first()?;
        for &value in values {
            if value > best {
                best = value;
            }
        }
        Some(best)
    } with (&[1, 5, 2]) (&["a"; 0])

    fn const_generic[const N: usize](values: [i32; N]) -> (bool, [u8; 1 + (LIMIT > 2) as usize]) {
        const BIG: bool = LIMIT > 2;
        const { assert!(LIMIT > 1, "too few") };
        let zeros = [0; 1 + (LIMIT > 2) as usize];
        (N > 2 && BIG && values.len() == N && WIDTH > N, zeros)
    } with ([1, 2, 3]) ([])

    fn branches(n: i32, flag: bool) -> &'static str {
        if n > 10 || !flag {
            "first"
        } else if (n < 0 && flag) || n == 5 {
            "second"
        } else if true {
            "third"
        } else {
            "never"
        }
    } with (11, true) (-1, true) (5, true) (6, true) (6, false)

    fn flag_by_reference(flag: &bool) -> bool {
        if !flag { return !flag; }
        let other = !flag && *flag;
        !other
    } with (&true) (&false)

    fn let_chains(a: Option<i32>, b: Option<i32>) -> i32 {
        if let Some(x) = a && x > 3 && let Some(y) = b && (y < x || y == 9) {
            x + y
        } else if let Some(z @ 1..=3) = a && z != 2 {
            z
        } else {
            -1
        }
    } with (Some(4), Some(2)) (Some(4), Some(9)) (Some(3), None) (Some(2), None) (None, None)

    fn let_of_a_comparison(a: i32) -> i32 {
        if let true = a > 3 { 1 } else { 0 }
    } with (4) (3)

    fn let_else(a: Option<i32>) -> bool {
        let Some(x) = a.filter(|x| *x > 2) else { return a == Some(1) };
        x < 5
    } with (Some(1)) (Some(3)) (Some(6)) (None)

    fn while_let(n: i32) -> i32 {
        let mut stack: Vec<i32> = (0..n).collect();
        let mut sum = 0;
        while let Some(top) = stack.pop() && top > 2 {
            sum += top;
        }
        while stack.len() > 1 {
            stack.pop();
        }
        sum * 10 + stack.len() as i32
    } with (0) (3) (7)

    fn labels(n: usize) -> usize {
        let mut count = 0;
        'outer: for i in 0..n {
            for j in 0..n {
                if i * j > 6 { break 'outer; }
                if j > i { continue 'outer; }
                count += 1;
            }
        }
        let found = 'search: {
            if n > 3 { break 'search n > 4; }
            n == 2
        };
        let looped = loop { if count >= n { break count > n; } count += 1; };
        count * 4 + found as usize * 2 + looped as usize
    } with (0) (2) (4) (6)

    fn guards(n: i32, limit: &Mutex<i32>) -> &'static str {
        match n {
            0 if *limit.lock().unwrap() > 5 => "high",
            x @ (1 | 2) if x == 2 && n >= 2 => "two",
            x if matches!(x, 5..=9 if x != 7) => "some",
            _ if let Some(y) = n.checked_sub(100) && y > 0 => "large",
            _ => "none",
        }
    } with (0, &Mutex::new(6)) (0, &Mutex::new(5)) (2, &Mutex::new(0)) (7, &Mutex::new(0)) (8, &Mutex::new(0)) (200, &Mutex::new(0))

    fn scrutinees(lock: &RwLock<i32>) -> (i32, bool) {
        let sign = match *lock.read().unwrap() > 0 {
            true => 1,
            false => -1,
        };
        if *lock.read().unwrap() > 3 {
            *lock.write().unwrap() = 0;
        }
        while *lock.read().unwrap() < 2 {
            *lock.write().unwrap() += 1;
        }
        (sign, *lock.read().unwrap() == 2)
    } with (&RwLock::new(5)) (&RwLock::new(-3))

    fn questions(text: &str) -> Result<bool, std::num::ParseIntError> {
        if text.parse::<i32>()? > 3 && text.len() < "123".parse()? {
            return Ok(text.parse::<u8>()? == 9);
        }
        Ok(text.trim().parse::<i64>()? <= 0)
    } with ("9") ("4") ("-7") ("x") ("1234") (" 1")

    fn diverging(n: i32, values: &[i32]) -> Option<i32> {
        let mut sum = 0;
        for &value in values {
            let _ = value < 0 && { sum -= 1; continue };
            let _ = value > 90 && break;
            sum += value;
        }
        let _ = n > 5 && return None;
        let _ = (n != 0) || return Some(-1);
        let _ = n == 3 || n == 4 || panic!("{}", n > 3);
        let _ = n < 100 || std::process::exit(1);
        let _ = n < 100 || { return None };
        let _ = n < 100 || match sum { 0 => true, _ => return None };
        Some(sum)
    } with (3, &[1, -1, 2, 91, 5]) (0, &[]) (6, &[])

    fn closures(values: Vec<i32>, limit: i32) -> (Vec<i32>, bool, Option<usize>, i32) {
        let above = |x: &i32| *x > limit;
        let generic = |x| x > 3;
        let mut count = 0;
        let mut bump = move || { count += 1; count >= 2 };
        let first = bump();
        let second = if bump() || first { 1 } else { 0 };
        (
            values.iter().copied().filter(above).collect(),
            generic(5u8) && values.iter().all(|x| x != &9),
            values.iter().position(|&x| x == limit),
            values.iter().fold(second, |a, &b| if a < b { b } else { a }),
        )
    } with (vec![1, 2, 3, 4], 2) (vec![9], 9)

    fn sorting(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_by(|a, b| if a < b { std::cmp::Ordering::Greater } else { b.total_cmp(a) });
        values.dedup_by(|a, b| a == b);
        values.retain(|x| *x != 2.0);
        values
    } with (vec![1.0, 3.0, 3.0, 2.0])

    fn inference(text: &str, values: &[u32]) -> (bool, bool, bool, bool) {
        let limit = text.parse().unwrap_or_default();
        let default = Default::default();
        (
            values.len() > limit,
            values.iter().sum::<u32>() > 3,
            5u8 > default,
            values.len() as u32 <= text.len().try_into().unwrap(),
        )
    } with ("1", &[1, 2]) ("x", &[4])

    fn casts_and_precedence(a: i32, b: i64, c: bool) -> (i32, u8, [bool; 7]) {
        (
            (a > 3) as i32 + (b < 2) as i32,
            u8::from(a as i64 == b) | (c as u8),
            [
                a as i64 + b > b * 2 - 1,
                -a < !a,
                (a > 3) == c,
                (a > 3) != (b > 3),
                !(a > 3) & (b == 2) ^ c,
                a & 1 == 1,
                (a as usize) < 3,
            ],
        )
    } with (4, 2, true) (-1, -1, false)

    fn blocks_as_operands(a: i32) -> [bool; 4] {
        [
            { a + 1 } > a,
            if a > 0 { a } else { -a } == a,
            a < match a { 0 => 1, n => n },
            (|| a)() >= 'b: { if a > 5 { break 'b 5 } a },
        ]
    } with (0) (-3)

    fn branches_as_conditions(a: i32, b: Option<bool>) -> i32 {
        if { let c = a + 1; c > 3 } && match b { Some(x) => x, None => a == 3 } {
            1
        } else if if a > 2 { a < 9 } else { a != 0 } {
            2
        } else if { let b = a; b == -1 } || 'a: { if a == 0 { break 'a true } false } {
            3
        } else {
            4
        }
    } with (3, None) (4, Some(false)) (9, None) (0, None) (-1, None)

    fn nested_items(n: usize) -> (bool, usize, bool) {
        fn small(n: usize) -> bool {
            n < LIMIT
        }
        struct Wide<const B: bool>;
        impl<const B: bool> Wide<B> {
            const VALUE: usize = if B && LIMIT > 2 { 1 } else { 0 };
        }
        static TABLE: [u8; (LIMIT > 2) as usize + 1] = [0; (LIMIT > 2) as usize + 1];
        let wide = Wide::<{ LIMIT > 2 }>::VALUE;
        (small(n), wide + TABLE.len(), std::mem::size_of::<[u8; (LIMIT == 3) as usize]>() == 1)
    } with (2) (3)

    fn async_blocks(n: i32) -> bool {
        block_on(async {
            let inner = async move { if n > 3 { n } else { 0 } };
            let late = async |x: i32| x == n;
            inner.await > 3 && late(5).await
        })
    } with (5) (3) (6)

    fn macros(n: i32, values: Vec<i32>) -> (String, Vec<bool>, bool, String) {
        use std::fmt::Write as _;
        assert!(n > 0);
        assert!(n < 100 && !values.is_empty(), "n is {n}, of {}", values.len() > 1);
        debug_assert!(values[0] == 1);
        assert_eq!(n > 0, true, "{}", n > 1);
        assert_ne!(n, 0);
        let mut out = String::new();
        write!(out, "{} {:>5} {a}", n > 3, n < 3, a = n == 3).unwrap();
        let _ = dbg!(n >= 3);
        let all = std::vec![n > 1, n < 1, n == 1];
        let filled = vec![n > 1; if n > 2 { 3 } else { 1 }];
        (
            format!("{n} {0} {0:?}", n != 3),
            vec![all, filled, Vec::new()].concat(),
            matches!(values.iter().find(|x| **x == n), Some(x) if *x > 2) && cfg!(test),
            out,
        )
    } with (3, vec![1, 2, 3]) (2, vec![1])

    fn macro_of_the_user(n: i32) -> (bool, i32) {
        macro_rules! bigger { ($a:expr, $b:expr) => { $a > $b } }
        macro_rules! positive { ($a:expr) => { if $a > 0 { 1 } else { 0 } } }
        (bigger!(n, 3), positive!(n - 4))
    } with (4) (5)

    fn failures(n: i32) -> Vec<String> {
        let said = |f: &(dyn Fn() + std::panic::RefUnwindSafe)| {
            let error = std::panic::catch_unwind(f).unwrap_err();
            match error.downcast::<String>() {
                Ok(text) => text.replace(' ', ""),
                Err(error) => error.downcast_ref::<&str>().map_or("?", |text| text).replace(' ', ""),
            }
        };
        vec![
            said(&move || assert!(n > 100)),
            said(&move || assert!(n + 1 < 0 || "{}" == "x",)),
            said(&move || assert!(n == 0, "n is {n}")),
            said(&move || assert!(n.to_string() == "x" && [n].iter().any(|n| *n > 5))),
            said(&move || assert_eq!(n, 0)),
            said(&move || assert!(false)),
        ]
    } with (7)

    fn cells(cell: &Cell<i32>, shared: &RefCell<Vec<i32>>) -> bool {
        if shared.borrow().len() > 1 {
            shared.borrow_mut().clear();
        }
        cell.set(cell.get() + (cell.get() < 3) as i32);
        shared.borrow().is_empty() && cell.get() == 3 && *shared.borrow() == [0; 0]
    } with (&Cell::new(2), &RefCell::new(vec![1, 2])) (&Cell::new(3), &RefCell::new(vec![1]))

    fn mutation(n: i32) -> Vec<i32> {
        let mut values = vec![n];
        if values.len() > 0 { values.push(values[0]); }
        while values.len() < 4 { values.push(1); }
        let late;
        if n > 3 { late = 1 } else { late = 2 }
        values[(n > 3) as usize] += late;
        values
    } with (3) (4)

    fn json(value: serde_json::Value, n: i64) -> [bool; 5] {
        [value["a"] == 1, value["b"] == "x", value != n, n == 3, 2 < n]
    } with (serde_json::json!({"a": 1, "b": "x"}), 3) (serde_json::json!(3), 3)

    fn maps(counts: &HashMap<String, usize>) -> (bool, bool, usize) {
        let many = counts.get("a") > Some(&1);
        let none = counts.get("b").is_none_or(|n| *n == 0);
        (many, none, counts.values().filter(|&&n| n > 1).count())
    } with (&HashMap::from([("a".to_owned(), 2)])) (&HashMap::new())

    fn statements(n: i32) -> i32 {
        let mut m = n;
        let _ = n > 3;
        if n > 3 { m += 1 }
        #[allow(unused_must_use)]
        { n == 3; }
        match n > 4 { true if n > 5 => m += 1, _ => {} }
        m
    } with (3) (4) (5) (6)

    fn methods_of_results(a: i32) -> (Option<i32>, String, bool) {
        ((a > 3).then_some(a), (a < 3).to_string(), (a == 3).then(|| a != 3).unwrap_or(a > 9))
    } with (2) (3) (4)

    fn ranges(a: usize, values: &[u8]) -> [bool; 4] {
        [(0..3) == (0..a), values[a..] == values[..], (1..=a).contains(&1), (..a) == (..3)]
    } with (0, &[1]) (3, &[1, 2, 3])
}

/// Bodies in an `impl`, where `self` and associated types occur.
#[derive(Module, Debug, Clone, PartialEq, Default)]
struct Counter {
    name: String,
    width: usize,
    ready: bool,
}

#[trace]
impl Counter {
    fn forward(&self) -> fx_core::Result<()> {
        Ok(())
    }

    fn wider(&mut self, other: &Self) -> bool {
        if self.width > other.width && self.ready {
            self.ready = self.name != other.name;
        }
        self == other || self.ready
    }
}

#[test]
fn methods() {
    let mut a = Counter {
        name: "a".into(),
        width: 3,
        ready: true,
    };
    assert!(a.wider(&Counter::default()));
    assert!(Counter::default().wider(&Counter::default()));
    assert!(a.forward().is_ok());
}
