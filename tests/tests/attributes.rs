//! Attributes of every form that `#[trace(control_flow)]` writes anew: what is configured out does not
//! run and need not compile, and the others stand where they stood.
//!
//! Each row is a function, its inputs and what plain Rust gives; the eager call and the graph are
//! compared with it.

#![allow(
    clippy::all,
    clippy::unwrap_used,
    reason = "forms that people write, whatever a lint would say"
)]
#![deny(warnings)]
#![allow(missing_docs, reason = "tests")]
#![allow(unexpected_cfgs, reason = "a condition that is not set")]

use fx_core::prelude::*;

/// Compares a function of a number and a count with what it gives, eager and traced.
macro_rules! gives {
    ($($name:ident: $want:expr;)*) => {
        $(
            #[test]
            fn $name() -> Result<()> {
                let want: fn(f64, i64) -> f64 = $want;
                let gm = symbolic_trace(traced!(functions::$name))?;
                for count in -1..5 {
                    for h in [-2.5, -1.0, 0.0, 0.5, 3.0] {
                        let eager = functions::$name(h.into(), count.into())?.concrete();
                        let graph: f64 = gm.forward((h, count))?;
                        let wanted = want(h, count);
                        assert_eq!((eager, graph), (Some(wanted), wanted), "{h} {count}");
                    }
                }
                Ok(())
            }
        )*
    };
}

mod functions {
    use super::*;

    #[trace(control_flow)]
    pub fn defect_t3_m1_an_if_is_configured_out(h: Float, n: Int) -> Result<Float> {
        let mut h = h;
        #[cfg(any())]
        if n > 0 {
            h = (h * 100.0)?;
            no_such_function(h, "and no type")?;
        }
        #[cfg(all())]
        if n > 2 {
            h = (h + 1.0)?;
        }
        Ok(h)
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_loops_are_configured_out(h: Float, n: Int) -> Result<Float> {
        let mut h = h;
        let mut k = Int::from(0);
        #[cfg(any())]
        while h < 100.0 {
            h = missing(h)?;
        }
        #[cfg(any())]
        for i in 0..n {
            h = (h + i)?;
        }
        #[cfg(any())]
        loop {
            h = 1;
        }
        #[cfg(not(any()))]
        while k < n {
            k = (k + 1)?;
            h = (h + 2.0)?;
        }
        Ok(h)
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_arms_are_configured_out(h: Float, n: Int) -> Result<Float> {
        match n {
            #[cfg(any())]
            0 => h * missing,
            #[cfg(all())]
            0 => h * 2.0,
            #[cfg(any(any(), not(all())))]
            1 | 2 => h * 1000.0,
            #[allow(clippy::identity_op)]
            1..=2 => h + (1.0 + 0.0),
            #[cfg(not(windows_of_no_system))]
            _ => Ok(h),
            #[cfg(windows_of_no_system)]
            _ => Ok(nothing),
        }
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_statements_are_configured_out(h: Float, n: Int) -> Result<Float> {
        let mut h = h;
        let mut untouched = "plain data".to_string();
        if n > 1 {
            #[cfg(any())]
            {
                h = (h * 1000.0)?;
            }
            #[cfg(any())]
            let h = 5;
            #[cfg(any())]
            untouched.push('!');
            #[cfg(any())]
            return h * 7.0;
            #[cfg(all())]
            {
                h = (h - 1.0)?;
            }
        }
        #[cfg(all())]
        untouched.push('?');
        let mut other = Vec::<i64>::new();
        other.push(untouched.len() as i64);
        h + other[0]
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_jumps_are_configured_out(h: Float, n: Int) -> Result<Float> {
        let mut h = h;
        for i in 0..n {
            if h > 2.0 {
                h = (h - 1.0)?;
                #[cfg(any())]
                break;
                #[cfg(all())]
                continue;
            }
            h = (h + i)?;
            if i == 2 {
                #[cfg(any())]
                continue;
                #[cfg(not(any()))]
                break;
            }
        }
        if h > 4.0 {
            #[cfg(any())]
            return Ok(1);
            #[cfg(all())]
            return h * 0.5;
        }
        Ok(h)
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_ends_of_blocks_are_configured_out(h: Float, n: Int) -> Result<Float> {
        let side = if n > 2 {
            #[cfg(any())]
            {
                Ok("text")
            }
            #[cfg(all())]
            {
                h + 1.0
            }
        } else {
            #[cfg(no_such_option)]
            {
                h / 0
            }
            #[cfg(not(no_such_option))]
            {
                h - 1.0
            }
        };
        #[cfg(any())]
        return Ok(4);
        #[cfg(all())]
        side
    }

    #[cfg_attr(all(), derive(Tree))]
    #[derive(Clone)]
    struct Pair {
        one: Float,
        #[cfg(any())]
        other: Missing,
        #[cfg(all())]
        two: Float,
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_fields_arguments_and_parameters_are_configured_out(
        h: Float,
        #[cfg(any())] left_out: Missing,
        n: Int,
    ) -> Result<Float> {
        fn first(a: Float, #[cfg(any())] b: Missing) -> Float {
            a
        }
        let mut pair = Pair {
            one: first(
                h,
                #[cfg(any())]
                nothing,
            ),
            #[cfg(any())]
            other: nothing,
            #[cfg(all())]
            two: h,
        };
        if n > 1 {
            pair = Pair {
                #[cfg(all())]
                one: (h * 2.0)?,
                #[cfg(any())]
                two: 6,
                #[cfg(not(any()))]
                two: (h * 3.0)?,
            };
        }
        let Pair {
            one,
            #[cfg(any())]
            other,
            #[cfg(all())]
            two,
        } = pair;
        let add = |a: Float, #[cfg(any())] b: Missing| a + two;
        let list = [
            #[cfg(any())]
            3,
            add(one)?,
        ];
        let one_more = (
            #[cfg(any())]
            "",
            list[0],
        );
        Ok(one_more.0)
    }

    #[trace(control_flow)]
    pub fn defect_t3_m1_attributes_that_depend(h: Float, n: Int) -> Result<Float> {
        let mut h = h;
        #[cfg_attr(any(), cfg(any()))]
        if n > 0 {
            h = (h + 1.0)?;
        }
        #[cfg_attr(all(), cfg(any()), allow(unused))]
        if n > 0 {
            h = (h + 100.0)?;
        }
        #[cfg_attr(all(), allow(unused_variables))]
        let unused = 3;
        match n {
            #[cfg_attr(all(), cfg(any()))]
            2 => return Ok(4),
            #[cfg_attr(all(), allow(unused_variables))]
            2 => {
                let unused = 3;
                return h * 2.0;
            }
            _ => {}
        }
        Ok(h)
    }

    /// A lint of each form, and a comment on each.
    #[trace(control_flow)]
    #[allow(unused_doc_comments)]
    pub fn defect_t3_m1_lints_and_comments(
        h: Float,
        #[allow(unused_variables)] n: Int,
    ) -> Result<Float> {
        /// A comment.
        #[allow(unused_variables)]
        let mut h = h;
        /// A comment.
        #[allow(unused_variables)]
        #[rustfmt::skip]
        if n > 3 {
            let unused = 1;
            h = (h + 1.0)?;
        } else if n > 2 {
            let unused = 1;
            h = (h + 2.0)?;
        } else {
            #[expect(unused_variables)]
            let unused = 1;
        }
        /// A comment.
        #[expect(unused_variables)]
        #[rustfmt::skip]
        while h > 1.0 {
            let unused = 1;
            h = (h - 1.0)?;
        }
        /// A comment.
        #[expect(unused_variables, reason = "tested")]
        #[rustfmt::skip]
        for i in 0..n {
            let unused = 1;
            h = (h + 0.25)?;
            /// A comment.
            #[allow(unused_variables)]
            if h > 0.9 {
                let unused = 2;
                /// A comment.
                #[allow(clippy::needless_continue)]
                #[rustfmt::skip]
                continue;
            }
            h = (h + 0.5)?;
        }
        /// A comment.
        #[allow(unused_variables, unused_assignments)]
        #[rustfmt::skip]
        loop {
            let unused = 1;
            h = (h + 1.0)?;
            #[allow(clippy::needless_continue)]
            if h > 0.0 {
                #[rustfmt::skip]
                break;
            }
        }
        /// A comment.
        #[rustfmt::skip]
        #[allow(unused_variables)]
        match n {
            /// A comment.
            #[expect(unused_variables)]
            #[rustfmt::skip]
            0 => {
                let unused = 1;
                /// A comment.
                #[allow(clippy::needless_return)]
                #[rustfmt::skip]
                return h * 3.0;
            }
            /// A comment.
            #[allow(clippy::needless_return)]
            1 => return h * 5.0,
            /// A comment.
            #[expect(unused_variables)]
            other => {
                let unused = 1;
            }
        }
        /// A comment.
        #[rustfmt::skip]
        {
            #![allow(unused_variables)]
            let unused = 1;
        }
        #[expect(unused_variables)]
        #[rustfmt::skip]
        if n > 3 {
            let unused = 1;
            h * 2.0
        } else {
            Ok(h)
        }
    }

    #[trace(control_flow)]
    #[cfg(any())]
    pub fn defect_t3_m1_lints_and_comments(h: Missing) -> Result<Nothing> {
        h
    }

    #[cfg(any())]
    #[trace(control_flow)]
    pub fn defect_t3_m1_lints_and_comments(h: Missing) -> Result<Nothing> {
        h
    }
}

gives! {
    defect_t3_m1_an_if_is_configured_out: |h, n| if n > 2 { h + 1.0 } else { h };
    defect_t3_m1_loops_are_configured_out: |h, n| h + 2.0 * n.max(0) as f64;
    defect_t3_m1_arms_are_configured_out: |h, n| match n {
        0 => h * 2.0,
        1 | 2 => h + 1.0,
        _ => h,
    };
    defect_t3_m1_statements_are_configured_out: |h, n| if n > 1 { h + 10.0 } else { h + 11.0 };
    defect_t3_m1_jumps_are_configured_out: |h, n| {
        let mut h = h;
        for i in 0..n {
            if h > 2.0 {
                h -= 1.0;
                continue;
            }
            h += i as f64;
            if i == 2 {
                break;
            }
        }
        if h > 4.0 { h * 0.5 } else { h }
    };
    defect_t3_m1_ends_of_blocks_are_configured_out: |h, n| if n > 2 { h + 1.0 } else { h - 1.0 };
    defect_t3_m1_fields_arguments_and_parameters_are_configured_out: |h, n| match n > 1 {
        true => h * 2.0 + h * 3.0,
        false => h + h,
    };
    defect_t3_m1_attributes_that_depend: |h, n| {
        let h = if n > 0 { h + 1.0 } else { h };
        if n == 2 { h * 2.0 } else { h }
    };
    defect_t3_m1_lints_and_comments: |h, n| {
        let mut h = h;
        if n > 3 {
            h += 1.0;
        } else if n > 2 {
            h += 2.0;
        }
        while h > 1.0 {
            h -= 1.0;
        }
        for _ in 0..n {
            h += 0.25;
            if h > 0.9 {
                continue;
            }
            h += 0.5;
        }
        loop {
            h += 1.0;
            if h > 0.0 {
                break;
            }
        }
        match n {
            0 => h * 3.0,
            1 => h * 5.0,
            4.. => h * 2.0,
            _ => h,
        }
    };
}

/// Methods, leaves and roots: what is configured out is not there.
#[derive(Module, Clone)]
struct Net {
    #[cfg(any())]
    missing: Missing,
    #[cfg(all())]
    #[module(skip)]
    factor: f64,
}

#[trace(control_flow)]
impl Net {
    #[cfg(any())]
    fn forward(&self, x: Missing) -> Result<Missing> {
        x
    }

    #[cfg(all())]
    #[expect(unused_variables)]
    fn forward(&self, x: Float, #[allow(unused_variables)] n: Int) -> Result<Float> {
        let unused = 1;
        #[cfg(no_such_option)]
        return nothing;
        #[cfg(not(no_such_option))]
        self.scaled(x)
    }

    #[cfg_attr(all(), allow(dead_code))]
    fn scaled(&self, x: Float) -> Result<Float> {
        #[cfg(any())]
        if x > 0.0 {
            return Ok(3);
        }
        twice(x, self.factor, 0.0)
    }
}

#[derive(Module, Clone)]
#[allow(dead_code)]
enum Kind {
    #[cfg(any())]
    Missing(Missing),
    #[cfg(all())]
    Known(#[cfg(any())] Missing, #[cfg(all())] bool),
}

#[trace]
impl Kind {
    #[expect(unused_variables)]
    fn forward(&self, x: Float) -> Result<Float> {
        let unused = 1;
        match self {
            #[cfg(any())]
            Kind::Missing(missing) => missing.forward(x),
            Kind::Known(known) => match known {
                #[cfg(any())]
                true => Ok(missing),
                #[cfg(all())]
                true => Ok(x),
                _ => x * 2.0,
            },
        }
    }
}

#[wrap]
#[expect(unused_variables)]
fn twice(
    #[allow(unused_variables)] x: Float,
    #[cfg(any())] missing: Missing,
    #[cfg(all())]
    #[default(2.0)]
    by: f64,
    #[cfg_attr(any(), kw)]
    #[cfg_attr(all(), default(0.0), kw)]
    plus: f64,
) -> Result<Float> {
    let unused = 1;
    #[cfg(any())]
    return Ok(nothing);
    #[cfg(all())]
    {
        (x * by)? + plus
    }
}

#[test]
fn defect_t3_m1_methods_leaves_and_roots() -> Result<()> {
    let net = Net { factor: 3.0 };
    let gm = symbolic_trace(&net)?;
    let given: f64 = gm.forward((2.0, 1))?;
    assert_eq!(given, 6.0);
    assert_eq!(net.forward(2.0.into(), 1.into())?.concrete(), Some(6.0));
    let kind: f64 = symbolic_trace(&Kind::Known(false))?.forward(2.0)?;
    assert_eq!(kind, 4.0);
    let closure = traced!(|x: Float,
                           #[cfg(any())] missing: Missing,
                           #[allow(unused_variables)] y: Float| {
        #[cfg(any())]
        return missing;
        #[cfg(all())]
        {
            twice(x, 1.5, 1.0)
        }
    });
    let given: f64 = symbolic_trace(closure)?.forward((2.0, 0.0))?;
    assert_eq!(given, 4.0);
    Ok(())
}
