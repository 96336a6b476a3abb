//! Functions with a derivative of their own: in every transform, whatever the function computes.

use fx_nn::cpu::Cpu;
use fx_nn::func::{CustomVjp, Transform, custom_vjp, grad, hessian, jvp, vjp, vmap};
use fx_nn::ir::ValueMeta;
use fx_nn::op;
use fx_nn::passes::Decompositions;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::shapes::{RuleCall, spec};

/// The sine of a number, with three times its derivative.
fn sine() -> CustomVjp {
    custom_vjp(
        traced!(|x: &Tensor| x.sin()),
        traced!(|x: &Tensor, _y: &Tensor, grad: &Tensor| (grad * x.cos()?)? * 3.0),
    )
}

fn of(values: &[f64]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), values.len())
}

fn near(found: &Tensor, expected: impl IntoIterator<Item = f64>) -> Result<()> {
    let expected: Vec<f64> = expected.into_iter().collect();
    let found = found.to_vec()?;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
    Ok(())
}

const XS: [f64; 3] = [0.3, -1.2, 2.0];

#[test]
fn a_gradient_is_what_the_rule_gives() -> Result<()> {
    let f = sine();
    let x = of(&XS)?;
    near(&f.call(&x)?, XS.map(f64::sin))?;
    let loss = traced!(move |x: &Tensor| f.call::<Tensor>(x)?.square()?.sum(..));
    let slope: Tensor = grad(loss).call(&x)?;
    near(&slope, XS.map(|x| 2.0 * x.sin() * 3.0 * x.cos()))
}

#[test]
fn second_derivatives_are_of_the_rule() -> Result<()> {
    let f = sine();
    let second = hessian(traced!(move |x: &Tensor| f.call::<Tensor>(x)?.sum(..)));
    let found: Tensor = second.call(&of(&XS)?)?;
    near(&found.diagonal(0, 0, 1)?, XS.map(|x| -3.0 * x.sin()))
}

#[test]
fn jvp_and_vmap_follow_the_rule() -> Result<()> {
    let (x, t) = (of(&XS)?, of(&[1.0, 0.5, -1.0])?);
    let (_, change): (Tensor, Tensor) = jvp(&sine()).call((&x, &t))?;
    let pairs = XS.iter().zip([1.0, 0.5, -1.0]);
    near(&change, pairs.map(|(x, t)| 3.0 * x.cos() * t))?;
    // A gradient of each example, and the gradient of all examples.
    let f = sine();
    let slope = grad(traced!(move |x: &Tensor| f.call::<Tensor>(x)?.square()));
    let each: Tensor = vmap(&slope).call(&x)?;
    let expected = XS.map(|x| 6.0 * x.sin() * x.cos());
    near(&each, expected)?;
    let all = vmap(&sine());
    let loss = traced!(move |x: &Tensor| all.call::<Tensor>(x)?.square()?.sum(..));
    near(&grad(loss).call(&x)?, expected)
}

#[test]
fn a_weight_that_examples_share_has_the_sum_of_their_gradients() -> Result<()> {
    // x * w, with twice the gradient of w and none of x.
    let scaled = custom_vjp(
        traced!(|w: &Tensor, x: &Tensor| w * x),
        traced!(|_w: &Tensor, x: &Tensor, _y: &Tensor, grad: &Tensor| {
            Ok(((grad * x)? * 2.0, ops::zeros_like(x, None)?))
                .and_then(|(a, b)| Ok::<_, Error>((a?, b)))
        }),
    );
    let (w, x) = (of(&[2.0])?, of(&XS)?.reshape((3, 1))?);
    let each = vmap(&scaled).in_axes([None, Some(0)]);
    let loss = traced!(move |w: &Tensor, x: &Tensor| each.call::<Tensor>((w, x))?.sum(..));
    let (dw, dx): (Tensor, Tensor) = grad(loss).wrt([0, 1]).call((&w, &x))?;
    near(&dw, [2.0 * XS.iter().sum::<f64>()])?;
    near(&dx, [0.0; 3])
}

fn same(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    call.arg("x").cloned()
}

#[op(rule = same)]
fn secret(x: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(
        x.to_vec()?.iter().map(|x| x.round()).collect::<Vec<f64>>(),
        x.dims()?,
    )
}

#[test]
fn what_has_no_derivative_can_have_a_rule() -> Result<()> {
    // Its gradient passes through.
    let round = custom_vjp(
        traced!(|x: &Tensor| secret(&(x * 2.0)?)),
        traced!(|_x: &Tensor, _y: &Tensor, grad: &Tensor| grad * 1.0),
    );
    let loss =
        traced!(move |x: &Tensor| (round.call::<Tensor>(x)? * of(&[1.0, 2.0, 3.0])?)?.sum(..));
    near(&grad(loss).call(&of(&XS)?)?, [1.0, 2.0, 3.0])
}

#[test]
fn several_results_are_taken_back_at_once() -> Result<()> {
    let both = custom_vjp(
        traced!(|x: &Tensor| Ok::<_, Error>((x.sin()?, x.cos()?))),
        traced!(
            |_x: &Tensor, _y: (Tensor, Tensor), grad: (Tensor, Tensor)| (grad.0 * 5.0)?
                + (grad.1 * 7.0)?
        ),
    );
    let (x, u, v) = (of(&XS)?, of(&[1.0, 2.0, 3.0])?, of(&[0.5, 0.25, 4.0])?);
    let (_, found): ((Tensor, Tensor), Tensor) = vjp(&both).wrt(0).call((&x, (&u, &v)))?;
    near(&found, [8.5, 11.75, 43.0])?;
    // One of them alone.
    let first = traced!(move |x: &Tensor| both.call::<(Tensor, Tensor)>(x)?.0.sum(..));
    near(&grad(first).call(&x)?, [5.0; 3])
}

#[test]
fn a_graph_keeps_the_rule() -> Result<()> {
    let f = sine();
    let loss = traced!(move |x: &Tensor| f.call::<Tensor>(x)?.sum(..));
    let mut gm = Trace::new(loss).inputs([spec![3; F64]]).graph_module()?;
    assert!(gm.code().contains("with_vjp"), "{}", gm.code());
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let expected = XS.map(|x| 3.0 * x.cos());
    near(&grad(&gm).call(&of(&XS)?)?, expected)?;
    near(&grad(&loaded).call(&of(&XS)?)?, expected)?;
    // Without gradients nothing of it is left.
    gm.apply(&Decompositions::core()?)?;
    gm.eliminate_dead_code()?;
    assert!(!gm.code().contains("cos"), "{}", gm.code());
    near(
        &gm.forward::<Tensor>(&of(&XS)?)?,
        [XS.iter().map(|x| x.sin()).sum()],
    )?;
    let slope = grad(&loaded).graph_module(&[spec![3; F64]])?;
    let fast = slope.compile(Compile::new(Cpu::new()).like(&of(&XS)?))?;
    near(&fast.forward::<Tensor>(&of(&XS)?)?, expected)
}

#[test]
fn rules_that_do_not_fit_are_refused() -> Result<()> {
    let x = of(&XS)?;
    let text = |f: CustomVjp| {
        let of = grad(traced!(move |x: &Tensor| f.call::<Tensor>(x)?.sum(..)));
        of.call::<Tensor>(&x)
            .map_or_else(|error| error.to_string(), |_| String::new())
    };
    let two = custom_vjp(
        traced!(|x: &Tensor| x.sin()),
        traced!(|_x: &Tensor, grad: &Tensor| grad * 1.0),
    );
    assert!(text(two).contains("takes the arguments, the result and its gradient: 3, not 2"));
    let shape = custom_vjp(
        traced!(|x: &Tensor| x.sin()),
        traced!(|_x: &Tensor, _y: &Tensor, grad: &Tensor| grad.sum(..)),
    );
    assert!(text(shape).contains("a gradient of shape [] for an argument of shape [3]"));
    let count = custom_vjp(
        traced!(|x: &Tensor| x.sin()),
        traced!(|_x: &Tensor, _y: &Tensor, grad: &Tensor| Ok::<_, Error>((
            grad.clone(),
            grad.clone()
        ))),
    );
    assert!(text(count).contains("gives 2 gradients, and 1 arguments"));
    Ok(())
}
