//! One step of a tape on one block.

use pulp::Simd;

use super::program::{Binary, Code, Unary};
use crate::Activation;
use crate::convert::Half;
use crate::math::{self, SINE_LIMIT, at_least, at_most};
use crate::vector::{inlined, load_some, store_some};

/// An argument of a step: a block or a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Argument<'a> {
    Block(&'a [f32]),
    Number(f32),
}

/// Writes a function of one argument.
#[inline(always)]
fn one<S: Simd>(simd: S, out: &mut [f32], a: Argument<'_>, f: impl Fn(S::f32s) -> S::f32s) {
    match a {
        Argument::Number(a) => {
            let y = f(simd.splat_f32s(a));
            let (vectors, rest) = S::as_mut_simd_f32s(out);
            vectors.fill(y);
            simd.partial_store_f32s(rest, y);
        }
        Argument::Block(a) => {
            let a = &a[..out.len()];
            let ((vectors, rest), (a, a_rest)) = (S::as_mut_simd_f32s(out), S::as_simd_f32s(a));
            for (out, a) in vectors.iter_mut().zip(a) {
                *out = f(*a);
            }
            if !rest.is_empty() {
                store_some(simd, rest, f(load_some(simd, a_rest)));
            }
        }
    }
}

/// Writes a function of two arguments.
#[inline(always)]
fn two<S: Simd>(
    simd: S,
    out: &mut [f32],
    a: Argument<'_>,
    b: Argument<'_>,
    f: impl Fn(S::f32s, S::f32s) -> S::f32s,
) {
    match (a, b) {
        (Argument::Block(a), Argument::Block(b)) => {
            let (a, b) = (&a[..out.len()], &b[..out.len()]);
            let (vectors, rest) = S::as_mut_simd_f32s(out);
            let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
            for ((out, a), b) in vectors.iter_mut().zip(a).zip(b) {
                *out = f(*a, *b);
            }
            if !rest.is_empty() {
                let y = f(load_some(simd, a_rest), load_some(simd, b_rest));
                store_some(simd, rest, y);
            }
        }
        (a, Argument::Number(b)) => {
            let b = simd.splat_f32s(b);
            inlined!(one(simd, out, a; |a| f(a, b)));
        }
        (Argument::Number(a), b) => {
            let a = simd.splat_f32s(a);
            inlined!(one(simd, out, b; |b| f(a, b)));
        }
    }
}

/// Writes a function of three arguments.
#[inline(always)]
fn three<S: Simd>(
    simd: S,
    out: &mut [f32],
    [a, b, c]: [Argument<'_>; 3],
    f: impl Fn(S::f32s, S::f32s, S::f32s) -> S::f32s,
) {
    match (a, b, c) {
        (Argument::Block(a), Argument::Block(b), Argument::Block(c)) => {
            let [a, b, c] = [a, b, c].map(|x| S::as_simd_f32s(&x[..out.len()]));
            let (vectors, rest) = S::as_mut_simd_f32s(out);
            for (((out, a), b), c) in vectors.iter_mut().zip(a.0).zip(b.0).zip(c.0) {
                *out = f(*a, *b, *c);
            }
            if !rest.is_empty() {
                let y = f(
                    load_some(simd, a.1),
                    load_some(simd, b.1),
                    load_some(simd, c.1),
                );
                store_some(simd, rest, y);
            }
        }
        (a, b, Argument::Number(c)) => {
            let c = simd.splat_f32s(c);
            inlined!(two(simd, out, a, b; |a, b| f(a, b, c)));
        }
        (a, Argument::Number(b), c) => {
            let b = simd.splat_f32s(b);
            inlined!(two(simd, out, a, c; |a, c| f(a, b, c)));
        }
        (Argument::Number(a), b, c) => {
            let a = simd.splat_f32s(a);
            inlined!(two(simd, out, b, c; |b, c| f(a, b, c)));
        }
    }
}

/// Writes a function of one argument, float by float.
#[inline(always)]
fn plain(out: &mut [f32], a: Argument<'_>, f: impl Fn(f32) -> f32) {
    match a {
        Argument::Number(a) => out.fill(f(a)),
        Argument::Block(a) => out.iter_mut().zip(a).for_each(|(out, a)| *out = f(*a)),
    }
}

#[inline(always)]
fn sine<S: Simd>(simd: S, out: &mut [f32], a: Argument<'_>, quarters: u32) {
    // What is too far out for the vectors goes float by float.
    let far = |x: &f32| x.is_nan() || x.abs() > SINE_LIMIT;
    let any = match &a {
        Argument::Number(a) => far(a),
        Argument::Block(a) => a.iter().fold(false, |any, x| any | far(x)),
    };
    match (any, quarters) {
        (false, _) => inlined!(one(simd, out, a; |x| math::sin(simd, x, quarters))),
        (true, 0) => plain(out, a, f32::sin),
        (true, _) => plain(out, a, f32::cos),
    }
}

#[inline(always)]
fn power<S: Simd>(simd: S, out: &mut [f32], a: Argument<'_>, p: f32) {
    let square = |x| simd.mul_f32s(x, x);
    match p {
        1.0 => inlined!(one(simd, out, a; |x| x)),
        2.0 => one(simd, out, a, square),
        3.0 => inlined!(one(simd, out, a; |x| simd.mul_f32s(square(x), x))),
        4.0 => inlined!(one(simd, out, a; |x| square(square(x)))),
        _ => plain(out, a, |x| x.powf(p)),
    }
}

/// The nearest bf16, ties to even; NaN stays NaN.
#[inline(always)]
fn rounded_bf16<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bits = simd.transmute_u32s_f32s(x);
    let last = simd.and_u32s(
        simd.wrapping_dyn_shr_u32s(bits, simd.splat_u32s(16)),
        simd.splat_u32s(1),
    );
    let half = simd.add_u32s(last, simd.splat_u32s(0x7fff));
    let bits = simd.and_u32s(simd.add_u32s(bits, half), simd.splat_u32s(0xffff_0000));
    simd.select_f32s(simd.equal_f32s(x, x), simd.transmute_f32s_u32s(bits), x)
}

#[inline(always)]
fn unary<S: Simd>(simd: S, out: &mut [f32], f: Unary, a: Argument<'_>) {
    let unit = simd.splat_f32s(1.0);
    macro_rules! activations {
        ($activation:expr, $($name:ident)*) => {
            match $activation {
                $(Activation::$name => inlined!(one(simd, out, a; |x| {
                    math::apply(simd, Activation::$name, x)
                })),)*
                other => inlined!(one(simd, out, a; |x| math::apply(simd, other, x))),
            }
        };
    }
    match f {
        Unary::Neg => inlined!(one(simd, out, a; |x| simd.neg_f32s(x))),
        Unary::Abs => inlined!(one(simd, out, a; |x| simd.abs_f32s(x))),
        Unary::Sqrt => inlined!(one(simd, out, a; |x| simd.sqrt_f32s(x))),
        Unary::Rsqrt => inlined!(one(simd, out, a; |x| simd.div_f32s(unit, simd.sqrt_f32s(x)))),
        Unary::Recip => inlined!(one(simd, out, a; |x| simd.div_f32s(unit, x))),
        Unary::Exp => inlined!(one(simd, out, a; |x| math::exp(simd, x))),
        Unary::ExpMinusOne => inlined!(one(simd, out, a; |x| math::exp_minus_one(simd, x))),
        Unary::Tanhshrink => inlined!(one(simd, out, a; |x| math::tanhshrink(simd, x))),
        Unary::Log => inlined!(one(simd, out, a; |x| math::ln(simd, x))),
        Unary::Erf => inlined!(one(simd, out, a; |x| math::erf(simd, x))),
        Unary::Sin => sine(simd, out, a, 0),
        Unary::Cos => sine(simd, out, a, 1),
        Unary::Pow(p) => power(simd, out, a, p),
        Unary::Rounded(Half::Bf16) => inlined!(one(simd, out, a; |x| rounded_bf16(simd, x))),
        Unary::Rounded(half) => plain(out, a, |x| half.rounded(x)),
        Unary::Clamp(low, high) => {
            inlined!(one(simd, out, a; |x| {
                at_most(simd, at_least(simd, x, low), high)
            }));
        }
        Unary::Activation(activation) => activations!(
            activation,
            None Relu Relu6 Silu Hardswish Gelu GeluTanh Sigmoid Tanh
        ),
    }
}

#[inline(always)]
fn binary<S: Simd>(
    simd: S,
    out: &mut [f32],
    f: Binary,
    a: Argument<'_>,
    b: Argument<'_>,
    relu: bool,
) {
    macro_rules! with_relu {
        ($name:ident) => {
            match relu {
                false => inlined!(two(simd, out, a, b; |a, b| simd.$name(a, b))),
                true => inlined!(two(simd, out, a, b; |a, b| {
                    at_least(simd, simd.$name(a, b), 0.0)
                })),
            }
        };
    }
    let (zero, unit) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    let truth = |mask| simd.select_f32s(mask, unit, zero);
    // NaN in either argument is the result.
    let number = |b, y| simd.select_f32s(simd.equal_f32s(b, b), y, b);
    match f {
        Binary::Add => with_relu!(add_f32s),
        Binary::Sub => with_relu!(sub_f32s),
        Binary::Mul => with_relu!(mul_f32s),
        Binary::Div => inlined!(two(simd, out, a, b; |a, b| simd.div_f32s(a, b))),
        Binary::Min => inlined!(two(simd, out, a, b; |a, b| {
            number(b, simd.select_f32s(simd.less_than_f32s(b, a), b, a))
        })),
        Binary::Max => inlined!(two(simd, out, a, b; |a, b| {
            number(b, simd.select_f32s(simd.less_than_f32s(a, b), b, a))
        })),
        Binary::Less => inlined!(two(simd, out, a, b; |a, b| truth(simd.less_than_f32s(a, b)))),
        Binary::LessEqual => {
            inlined!(two(simd, out, a, b; |a, b| {
                truth(simd.less_than_or_equal_f32s(a, b))
            }));
        }
        Binary::Equal => inlined!(two(simd, out, a, b; |a, b| truth(simd.equal_f32s(a, b)))),
        Binary::NotEqual => {
            inlined!(two(simd, out, a, b; |a, b| {
                simd.select_f32s(simd.equal_f32s(a, b), zero, unit)
            }));
        }
        Binary::Pow => match (a, b) {
            (a, Argument::Number(b)) => power(simd, out, a, b),
            (Argument::Number(a), b) => plain(out, b, |b| a.powf(b)),
            (Argument::Block(a), Argument::Block(b)) => {
                out.iter_mut()
                    .zip(a)
                    .zip(b)
                    .for_each(|((out, a), b)| *out = a.powf(*b));
            }
        },
    }
}

/// Does a step: writes a block.
#[inline(always)]
pub(super) fn step<'a, S: Simd>(
    simd: S,
    code: &Code,
    relu: bool,
    argument: impl Fn(&super::program::Source) -> Argument<'a>,
    out: &mut [f32],
) {
    match code {
        Code::Copy(a) => inlined!(one(simd, out, argument(a); |x| x)),
        Code::Unary(f, a) => unary(simd, out, *f, argument(a)),
        Code::Binary(f, a, b) => binary(simd, out, *f, argument(a), argument(b), relu),
        Code::MulAdd(a, b, c) => {
            let all = [argument(a), argument(b), argument(c)];
            match relu {
                false => inlined!(three(simd, out, all; |a, b, c| simd.mul_add_e_f32s(a, b, c))),
                true => inlined!(three(simd, out, all; |a, b, c| {
                    at_least(simd, simd.mul_add_e_f32s(a, b, c), 0.0)
                })),
            }
        }
        Code::Select(a, b, c) => {
            let all = [argument(a), argument(b), argument(c)];
            let zero = simd.splat_f32s(0.0);
            inlined!(three(simd, out, all; |a, b, c| {
                simd.select_f32s(simd.equal_f32s(a, zero), c, b)
            }));
        }
    }
}
