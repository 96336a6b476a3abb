//! What functorch's own tests say of torch.func, held here: `docs/functorch-tests.md` has the names.

use fx_nn::func::{
    Transform, grad, hessian, jacfwd, jacrev, jvp, stop_gradient, value_and_grad, vjp, vmap,
};
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, FromValue, TracedFn};
use fx_nn::value::IntoValue;
use fx_nn::{Error, IndexMap, Result};

pub(super) type State = IndexMap<String, Tensor>;

pub(super) fn numbers(shape: &[usize], seed: usize) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let each = (0..count).map(|at| ((at * 7919 + seed * 131 + 17) % 1009) as f64 / 504.5 - 1.0);
    Tensor::from_vec(each.collect::<Vec<f64>>(), shape)
}

pub(super) fn number(x: f64) -> Result<Tensor> {
    Tensor::from_vec(vec![x], ())
}

#[track_caller]
pub(super) fn close(found: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!(found.dims()?, expected.dims()?);
    for (a, b) in found.to_vec()?.iter().zip(expected.to_vec()?) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, not {b}");
    }
    Ok(())
}

#[track_caller]
pub(super) fn is(found: &Tensor, dims: &[usize], expected: &[f64]) -> Result<()> {
    close(found, &Tensor::from_vec(expected.to_vec(), dims)?)
}

#[track_caller]
pub(super) fn refused(result: Result<impl Sized>, texts: &[&str]) {
    let text = match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    };
    for wanted in texts {
        assert!(text.contains(wanted), "`{wanted}` is not in: {text}");
    }
}

pub(super) fn given(args: impl IntoIterator<Item = Value>) -> CallArgs {
    CallArgs {
        args: args.into_iter().collect(),
        kwargs: Vec::new(),
    }
}

fn diagonal(x: &Tensor) -> Result<Tensor> {
    ops::diagflat(&x.flatten(0, -1)?, 0)
}

pub(super) fn product() -> TracedFn {
    traced!(|x: &Tensor, y: &Tensor| x * y)
}

pub(super) fn sine() -> TracedFn {
    traced!(|x: &Tensor| x.sin())
}

pub(super) fn same() -> TracedFn {
    traced!(|x: &Tensor| Ok(x.clone()))
}

// What gradients are of.

#[test]
fn arguments_that_are_not_there_or_are_named_twice_are_refused() -> Result<()> {
    let (x, y) = (number(2.0)?, number(3.0)?);
    let of = |wrt: [i32; 2]| grad(product()).wrt(wrt).call::<Value>((&x, &y));
    refused(of([0, 2]), &["there is no argument 2: there are x, y"]);
    refused(of([-3, 0]), &["there is no argument -3: there are x, y"]);
    refused(of([0, 0]), &["argument `x` is named twice"]);
    refused(of([0, -2]), &["argument `x` is named twice"]);
    let named = grad(product()).wrt(["y", "y"]);
    refused(
        named.call::<Value>((&x, &y)),
        &["argument `y` is named twice"],
    );
    Ok(())
}

#[test]
fn a_gradient_of_no_argument_is_refused() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let none: [usize; 0] = [];
    let text = "there is nothing that the gradient is of";
    refused(grad(sine()).wrt(none).call::<Value>(&x), &[text]);
    refused(jacrev(sine()).wrt(none).call::<Value>(&x), &[text]);
    refused(jacfwd(sine()).wrt(none).call::<Value>(&x), &[text]);
    Ok(())
}

#[test]
fn gradients_are_in_the_order_that_arguments_are_named() -> Result<()> {
    let (x, y) = (number(2.0)?, number(3.0)?);
    let (of_y, of_x): (Tensor, Tensor) = grad(product()).wrt([1, 0]).call((&x, &y))?;
    assert_eq!((of_y.item()?, of_x.item()?), (2.0, 3.0));
    // One argument is one gradient, a list of one a tuple of one.
    let alone: Value = grad(product()).wrt(1).call((&x, &y))?;
    assert_eq!(Tensor::from_value(alone)?.item()?, 2.0);
    let listed: Value = grad(product()).wrt([1]).call((&x, &y))?;
    let Value::Tuple(items) = &listed else {
        panic!("a tuple, not {listed}");
    };
    assert_eq!(items.len(), 1);
    assert_eq!(Tensor::from_value(items[0].clone())?.item()?, 2.0);
    Ok(())
}

#[test]
fn a_negative_position_counts_from_the_end() -> Result<()> {
    let (x, y) = (number(2.0)?, number(3.0)?);
    let of_y: Tensor = grad(product()).wrt(-1).call((&x, &y))?;
    assert_eq!(of_y.item()?, 2.0);
    let (of_x, of_y): (Tensor, Tensor) = grad(product()).wrt([-2, -1]).call((&x, &y))?;
    assert_eq!((of_x.item()?, of_y.item()?), (3.0, 2.0));
    Ok(())
}

#[test]
fn arguments_may_be_given_by_name() -> Result<()> {
    let of = traced!(|x: &Tensor, y: &Tensor| (x * y)?.sum(..));
    let (x, y) = (numbers(&[3], 1)?, numbers(&[3], 2)?);
    let slope: Tensor = grad(of.clone()).call(args![&x, y = &y])?;
    close(&slope, &y)?;
    refused(
        grad(of).call::<Value>(args![&x, z = &y]),
        &["`y` is missing", "it takes x, y"],
    );
    Ok(())
}

#[test]
fn gradients_of_integers_and_of_several_numbers_are_refused() -> Result<()> {
    let x = Tensor::from_vec(vec![1i64, 2, 3], 3)?;
    let text = "argument `x` is a tensor int64[3]: gradients are of floats";
    refused(grad(sine()).call::<Value>(&x), &[text]);
    refused(jacrev(sine()).call::<Value>(&x), &[text]);
    refused(jacfwd(sine()).call::<Value>(&x), &[text]);
    let x = numbers(&[3], 1)?;
    refused(
        grad(sine()).call::<Value>(&x),
        &["a gradient is of one number", "shape [3]"],
    );
    let truth = traced!(|x: &Tensor| x.sum(..)?.gt(0.0));
    refused(
        grad(truth).call::<Value>(&x),
        &["a gradient is of a float, and the function gives"],
    );
    // A tensor of one element is one number.
    let one: Tensor = grad(sine()).call(numbers(&[1, 1], 1)?)?;
    assert_eq!(one.dims()?, [1, 1]);
    Ok(())
}

// Structures.

#[test]
fn gradients_have_the_structure_of_their_arguments() -> Result<()> {
    let of = traced!(|a: (Tensor, Tensor), b: State| {
        ((&a.0 + (&a.1 * 2.0)?)? + (&b["foo"] * 3.0)?)?.sum(..)
    });
    let x = number(0.5)?;
    let args = || given([tree!(((&x), (&x))), tree!({"foo": (&x)})]);
    let (a0, a1): (Tensor, Tensor) = grad(of.clone()).call(args())?;
    assert_eq!((a0.item()?, a1.item()?), (1.0, 2.0));
    let (a, b): ((Tensor, Tensor), State) = grad(of).wrt([0, 1]).call(args())?;
    assert_eq!(
        (a.0.item()?, a.1.item()?, b["foo"].item()?),
        (1.0, 2.0, 3.0)
    );
    Ok(())
}

#[test]
fn a_call_with_another_structure_is_of_another_graph() -> Result<()> {
    let of = traced!(|p: (Tensor, i64)| (&p.0 * p.1)? * &p.0);
    let jacobian = jacrev(traced!(|p: Vec<Tensor>| &p[0] * &p[0]));
    let each = vmap(of).in_axes(0);
    for (count, times) in [(3, 2i64), (3, 5), (4, 5)] {
        let x = numbers(&[count], 1)?;
        let found: Tensor = each.call(given([tree!(((&x), times))]))?;
        close(&found, &((&x * times as f64)? * &x)?)?;
        let found: Vec<Tensor> = jacobian.call(given([tree!([(&x)])]))?;
        close(&found[0], &diagonal(&(&x * 2.0)?)?)?;
    }
    let slope = grad(traced!(|p: State| p[0].square()?.sum(..)));
    for name in ["left", "right"] {
        let x = numbers(&[3], 1)?;
        let found: State = slope.call(given([tree!({ name: (&x) })]))?;
        close(&found[name], &(&x * 2.0)?)?;
    }
    Ok(())
}

#[test]
fn what_is_beside_the_number_is_given_with_the_gradient() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let both = traced!(|t: &Tensor| Ok((t.sin()?.sum(..)?, t.cos()?)));
    let (slope, aux): (Tensor, Tensor) = grad(both.clone()).has_aux().call(&x)?;
    close(&slope, &x.cos()?)?;
    close(&aux, &x.cos()?)?;
    let ((value, aux), slope): ((Tensor, Tensor), Tensor) =
        value_and_grad(both.clone()).has_aux().call(&x)?;
    close(&value, &x.sin()?.sum(..)?)?;
    close(&aux, &slope)?;
    // Without `has_aux` a tuple is no number, and with it a tensor is no tuple.
    refused(
        grad(both).call::<Value>(&x),
        &["a gradient is of one number"],
    );
    let sum = traced!(|t: &Tensor| t.sum(..));
    refused(
        grad(sum).has_aux().call::<Value>(&x),
        &["with `has_aux` the function gives a tuple"],
    );
    let list = traced!(|t: &Tensor| Ok(vec![t.sum(..)?, t.cos()?]));
    refused(
        grad(list).has_aux().call::<Value>(&x),
        &["with `has_aux` the function gives a tuple"],
    );
    Ok(())
}

#[test]
fn what_is_beside_the_result_is_given_with_products_and_jacobians() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let v = numbers(&[3], 2)?;
    let both = || traced!(|t: &Tensor| Ok((t.sin()?, t.cos()?, t.sum(..)?)));
    let expected = (x.cos()? * &v)?;
    let (value, slope, (cos, sum)): (Tensor, Tensor, (Tensor, Tensor)) =
        vjp(both()).has_aux().call((&x, &v))?;
    close(&value, &x.sin()?)?;
    close(&slope, &expected)?;
    close(&cos, &x.cos()?)?;
    close(&sum, &x.sum(..)?)?;
    let (value, change, (cos, _)): (Tensor, Tensor, (Tensor, Value)) =
        jvp(both()).has_aux().call((&x, &v))?;
    close(&value, &x.sin()?)?;
    close(&change, &expected)?;
    close(&cos, &x.cos()?)?;
    let by_hand: Tensor = jacrev(traced!(|t: &Tensor| t.sin())).call(&x)?;
    let (jacobian, (cos, sum)): (Tensor, (Tensor, Tensor)) = jacrev(both()).has_aux().call(&x)?;
    close(&jacobian, &by_hand)?;
    close(&cos, &x.cos()?)?;
    close(&sum, &x.sum(..)?)?;
    let (jacobian, (cos, _)): (Tensor, (Tensor, Value)) = jacfwd(both()).has_aux().call(&x)?;
    close(&jacobian, &by_hand)?;
    close(&cos, &x.cos()?)?;
    let cubes = traced!(|t: &Tensor| Ok((t.pow(3)?.sum(..)?, t.cos()?)));
    let (curvature, cos): (Tensor, Tensor) = hessian(cubes).has_aux().call(&x)?;
    close(&curvature, &(&x * 6.0)?.diag(0)?)?;
    close(&cos, &x.cos()?)?;
    refused(
        jacrev(traced!(|t: &Tensor| t.sin()))
            .has_aux()
            .call::<Value>(&x),
        &["with `has_aux` the function gives a tuple"],
    );
    Ok(())
}

#[test]
fn what_is_beside_the_number_may_be_a_structure() -> Result<()> {
    let of = traced!(|x: &Tensor| {
        let (cos, tan) = (x.cos()?, x.tan()?);
        Ok((x.sin()?.sum(..)?, tree!({"a": cos, "b": [tan, 3i64]})))
    });
    let x = numbers(&[3], 1)?;
    let (slope, aux): (Tensor, IndexMap<String, Value>) = grad(of).has_aux().call(&x)?;
    close(&slope, &x.cos()?)?;
    close(&Tensor::from_value(aux["a"].clone())?, &x.cos()?)?;
    let Value::List(items) = &aux["b"] else {
        panic!("a list, not {}", aux["b"]);
    };
    close(&Tensor::from_value(items[0].clone())?, &x.tan()?)?;
    assert!(matches!(items[1], Value::Int(3)), "{}", items[1]);
    Ok(())
}

#[test]
fn the_gradient_of_what_is_not_used_is_zeros() -> Result<()> {
    let of = traced!(|p: State| p["a"].pow(2)?.sum(..));
    let a = numbers(&[4], 1)?;
    let p = tree!({"a": (&a), "b": (numbers(&[2, 3], 2)?)});
    let slopes: State = grad(of).call(given([p]))?;
    close(&slopes["a"], &(&a * 2.0)?)?;
    is(&slopes["b"], &[2, 3], &[0.0; 6])?;
    Ok(())
}

#[test]
fn the_gradient_of_a_constant_is_zeros() -> Result<()> {
    let y = number(2.0)?;
    let unrelated = traced!(move |x: &Tensor| {
        let _ = x;
        Ok(y.clone())
    });
    let x = numbers(&[2], 1)?;
    let (value, slope): (Tensor, Tensor) = value_and_grad(unrelated.clone()).call(&x)?;
    assert_eq!(value.item()?, 2.0);
    is(&slope, &[2], &[0.0; 2])?;
    let (value, slope): (Tensor, Tensor) = vjp(unrelated.clone()).call((&x, number(1.0)?))?;
    assert_eq!(value.item()?, 2.0);
    is(&slope, &[2], &[0.0; 2])?;
    let (value, change): (Tensor, Tensor) = jvp(unrelated).call((&x, &x))?;
    assert_eq!((value.item()?, change.item()?), (2.0, 0.0));
    Ok(())
}

#[test]
fn a_result_that_is_an_argument_has_its_gradient() -> Result<()> {
    let y = number(2.0)?;
    let of = traced!(move |w: &Tensor, x: &Tensor| {
        let _ = w;
        Ok((y.clone(), y.clone(), x.clone()))
    });
    let (w, x, v) = (number(3.0)?, number(4.0)?, number(1.5)?);
    let args = given([
        (&w).into_value(),
        (&x).into_value(),
        tree!(((&v), (&v), (&v))),
    ]);
    let ((_, _, out), (of_w, of_x)): ((Tensor, Tensor, Tensor), (Tensor, Tensor)) =
        vjp(of).call(args)?;
    assert_eq!((out.item()?, of_w.item()?, of_x.item()?), (4.0, 0.0, 1.5));
    Ok(())
}

#[test]
fn gradients_of_all_results_are_summed() -> Result<()> {
    let of = traced!(|x: &Tensor| Ok((x.clone(), (x.clone(), x.clone()))));
    let (v1, v2, v3) = (number(1.0)?, number(20.0)?, number(300.0)?);
    let start = tree!(((&v1), ((&v2), (&v3))));
    let (_, slope): (Value, Tensor) = vjp(of.clone()).call(given([(&v1).into_value(), start]))?;
    assert_eq!(slope.item()?, 321.0);
    // Of another structure, and of another shape.
    let wrong = tree!((((&v1), ((&v2), (&v3))),));
    refused(
        vjp(of.clone()).call::<Value>(given([(&v1).into_value(), wrong])),
        &["the gradient of the result has another structure"],
    );
    let wide = numbers(&[2], 1)?;
    let wrong = tree!(((&v1), ((&wide), (&v3))));
    refused(
        vjp(of).call::<Value>(given([(&v1).into_value(), wrong])),
        &["the gradient of a result of shape [] has shape [2]"],
    );
    Ok(())
}

#[test]
fn results_may_be_lists_and_dicts() -> Result<()> {
    let (x, t) = (numbers(&[2, 3], 1)?, numbers(&[2, 3], 2)?);
    let list = traced!(|x: &Tensor| Ok(vec![x.clone(), x.sum(..)?]));
    let start = tree!([(&t), (t.sum(..)?)]);
    let (out, slope): (Vec<Tensor>, Tensor) = vjp(list).call(given([(&x).into_value(), start]))?;
    assert_eq!(out.len(), 2);
    close(&slope, &(&t + t.sum(..)?)?)?;
    let deep = traced!(|x: &Tensor| {
        let sum = x.sum(..)?;
        Ok(vec![(sum.clone(), tree!({"a": x, "out": [x, sum]}))])
    });
    type Deep = Vec<(Tensor, IndexMap<String, Value>)>;
    let (out, change): (Value, Deep) = jvp(deep).call((&x, &t))?;
    assert!(matches!(&out, Value::List(items) if matches!(&items[0], Value::Tuple(_))));
    close(&change[0].0, &t.sum(..)?)?;
    close(&Tensor::from_value(change[0].1["a"].clone())?, &t)?;
    let jacobian: IndexMap<String, Tensor> = jacrev(traced!(|x: &Tensor| {
        let sum = x.sum(..)?;
        Ok(tree!({"x": x, "xsum": sum}))
    }))
    .call(&x)?;
    is(&jacobian["xsum"], &[2, 3], &[1.0; 6])?;
    assert_eq!(jacobian["x"].dims()?, [2, 3, 2, 3]);
    Ok(())
}

// Transforms of transforms.

#[test]
fn gradients_nest_to_any_depth() -> Result<()> {
    let x = number(0.7)?;
    let second: Tensor = grad(&grad(sine())).call(&x)?;
    close(&second, &(x.sin()? * -1.0)?)?;
    let fourth: Tensor = grad(&grad(&grad(&grad(sine())))).call(&x)?;
    close(&fourth, &x.sin()?)?;
    // Of a gradient, what a gradient becomes.
    let y = number(1.5)?;
    let (_, pulled): (Tensor, Tensor) = vjp(&grad(sine())).call((&x, &y))?;
    close(&pulled, &((&y * x.sin()?)? * -1.0)?)?;
    let linear = traced!(|x: &Tensor, y: &Tensor| {
        let of = vjp(&grad(traced!(|x: &Tensor| x.cos()? * -1.0)));
        Ok(of.call::<(Tensor, Tensor)>((x, y))?.1)
    });
    let slope: Tensor = grad(linear).wrt(1).call((&x, &y))?;
    close(&slope, &x.cos()?)?;
    Ok(())
}

#[test]
fn an_inner_gradient_sees_the_outer_variable_as_a_constant() -> Result<()> {
    // The confusion of perturbations: d/dx x · d/dy (x + y) is 1, not 2.
    let of = traced!(|x: &Tensor| {
        let inner: Tensor =
            grad(traced!(|y: &Tensor, x: &Tensor| x + y)).call((number(1.0)?, x))?;
        x * inner
    });
    let slope: Tensor = grad(of).call(number(5.0)?)?;
    assert_eq!(slope.item()?, 1.0);
    // And of a product both levels count.
    let of = traced!(|x: &Tensor| {
        let inner: Tensor = grad(traced!(|y: &Tensor, x: &Tensor| (x * y)? * y)).call((x, x))?;
        x * inner
    });
    // x · 2 x · x, whose derivative is 6 x².
    let slope: Tensor = grad(of).call(number(5.0)?)?;
    assert_eq!(slope.item()?, 150.0);
    Ok(())
}

#[test]
fn no_gradient_runs_through_what_is_detached() -> Result<()> {
    let of = traced!(|x: &Tensor| x.pow(2)? - stop_gradient(&x.pow(2)?)?);
    let x = number(3.0)?;
    assert_eq!(grad(of.clone()).call::<Tensor>(&x)?.item()?, 6.0);
    assert_eq!(grad(&grad(of.clone())).call::<Tensor>(&x)?.item()?, 2.0);
    let (_, change): (Tensor, Tensor) = jvp(of).call((&x, number(1.0)?))?;
    assert_eq!(change.item()?, 6.0);
    // A gradient that is detached, inside of a gradient: of x³ - (x⁴ / 4)' it is 3 x².
    let of = traced!(|x: &Tensor| {
        let shift: Tensor = grad(traced!(|x: &Tensor| x.pow(4)? * 0.25)).call(x)?;
        x.pow(3)? - shift.detach()?
    });
    assert_eq!(grad(of).call::<Tensor>(&x)?.item()?, 27.0);
    Ok(())
}

#[test]
fn a_scope_without_gradients_is_refused_inside_and_seen_outside() -> Result<()> {
    // A graph has no such scope: a gradient of it would be wrong without a word.
    let of = traced!(|x: &Tensor| (x.pow(2)? - fx_nn::no_grad(|| x.pow(2))?)?.sum(..));
    let x = numbers(&[3], 1)?;
    let text = "a gradient does not see `no_grad` inside of its function: `detach` what it gives";
    refused(grad(of.clone()).call::<Value>(&x), &[text]);
    refused(jvp(of.clone()).call::<Value>((&x, &x)), &[text]);
    refused(grad(&grad(of.clone())).call::<Value>(&x), &[text]);
    refused(hessian(of.clone()).call::<Value>(&x), &[text]);
    // Without a gradient it changes nothing.
    let each: Tensor = vmap(of).call(numbers(&[2, 3], 1)?)?;
    is(&each, &[2], &[0.0; 2])?;
    // Around the call the tape remembers nothing.
    let x = x.into_parameter()?;
    let all = traced!(|x: &Tensor| x.sin()?.sum(..));
    let slope: Tensor = fx_nn::no_grad(|| grad(all).call(&x))?;
    close(&slope, &x.detach()?.cos()?)?;
    assert!(!slope.requires_grad()?);
    Ok(())
}

#[test]
fn the_tape_runs_through_a_gradient() -> Result<()> {
    let x = numbers(&[3], 1)?.into_parameter()?;
    let all = traced!(|x: &Tensor| x.sin()?.sum(..));
    let slope: Tensor = grad(all).call(&x)?;
    let store = slope.sum(..)?.backward()?;
    let own = store.get(&x)?.ok_or_else(|| Error::msg("a gradient"))?;
    close(&own, &(x.detach()?.sin()? * -1.0)?)
}

#[test]
fn a_part_that_is_replaced_has_the_gradient_of_what_replaces_it() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let of = traced!(|x: &Tensor| {
        let first = x.i(0)?.sin()?;
        ops::select_scatter(x, &first, 0, 0)?.sum(..)
    });
    let slope: Tensor = grad(of).call(&x)?;
    let cos = x.i(0)?.cos()?.item()?;
    is(&slope, &[3], &[cos, 1.0, 1.0])?;
    // Where a mask replaces elements, their gradient ends.
    let of = traced!(|x: &Tensor| x.masked_fill(&x.gt(0.0)?, 0.0)?.sum(..));
    let slope: Tensor = grad(of).call(&x)?;
    close(&slope, &x.le(0.0)?.to_dtype(DType::F64)?)?;
    // A slice of another argument over the own elements: of these nothing is left.
    let of =
        traced!(|x: &Tensor, y: &Tensor| ops::slice_scatter(x, y, 0, 0, 2, 1)?.pow(2)?.sum(..));
    let y = numbers(&[2], 2)?;
    let (of_x, of_y): (Tensor, Tensor) = grad(of).wrt([0, 1]).call((&x, &y))?;
    is(&of_x, &[3], &[0.0, 0.0, 2.0 * x.i(2)?.item()?])?;
    close(&of_y, &(&y * 2.0)?)
}

#[test]
fn a_captured_tensor_is_not_overwritten() -> Result<()> {
    let captured = numbers(&[3], 2)?;
    let before = captured.to_vec()?;
    let kept = captured.clone();
    let of = traced!(move |x: &Tensor| {
        let mut own = kept.clone();
        own.copy_from(x)?;
        (x * own)?.sum(..)
    });
    let x = numbers(&[3], 1)?;
    refused(grad(of.clone()).call::<Value>(&x), &["copy_from"]);
    refused(jvp(of.clone()).call::<Value>((&x, &x)), &["copy_from"]);
    refused(vmap(of).call::<Value>(numbers(&[2, 3], 1)?), &["copy_from"]);
    assert_eq!(captured.to_vec()?, before);
    Ok(())
}

// Jacobians.

#[test]
fn a_jacobian_has_the_dims_of_the_result_and_then_of_the_argument() -> Result<()> {
    let of = || traced!(|x: &Tensor| x.i((0, 1..))?.unsqueeze(-1));
    let mut expected = vec![0.0; 24];
    for (row, at) in [1, 2, 3].into_iter().enumerate() {
        expected[row * 8 + at] = 1.0;
    }
    let x = numbers(&[2, 4], 1)?;
    is(&jacrev(of()).call::<Tensor>(&x)?, &[3, 1, 2, 4], &expected)?;
    is(&jacfwd(of()).call::<Tensor>(&x)?, &[3, 1, 2, 4], &expected)?;
    // No dims, and one of size 1.
    let one = number(2.0)?;
    is(&jacrev(same()).call::<Tensor>(&one)?, &[], &[1.0])?;
    is(&jacfwd(same()).call::<Tensor>(&one)?, &[], &[1.0])?;
    let one = numbers(&[1], 1)?;
    is(&jacrev(same()).call::<Tensor>(&one)?, &[1, 1], &[1.0])?;
    is(&jacfwd(same()).call::<Tensor>(&one)?, &[1, 1], &[1.0])?;
    Ok(())
}

#[test]
fn a_jacobian_of_several_results_by_several_arguments_is_a_tuple_of_tuples() -> Result<()> {
    let of = || {
        traced!(|x: &Tensor, y: &Tensor| {
            let left = ((x * 2.0)? + (y * 3.0)?)?;
            Ok((left, ((x * 4.0)? + (y * 5.0)?)?))
        })
    };
    type Pair = (Tensor, Tensor);
    let (x, y) = (numbers(&[3], 1)?, numbers(&[3], 2)?);
    let eye = |scale: f64| ops::eye(3, None, Some(DType::F64))? * scale;
    for (left, right) in [
        jacrev(of()).wrt([0, 1]).call::<(Pair, Pair)>((&x, &y))?,
        jacfwd(of()).wrt([0, 1]).call::<(Pair, Pair)>((&x, &y))?,
    ] {
        close(&left.0, &eye(2.0)?)?;
        close(&left.1, &eye(3.0)?)?;
        close(&right.0, &eye(4.0)?)?;
        close(&right.1, &eye(5.0)?)?;
    }
    // Of one argument alone, and of a list of one.
    for (left, right) in [
        jacrev(of()).call::<Pair>((&x, &y))?,
        jacfwd(of()).call::<Pair>((&x, &y))?,
    ] {
        close(&left, &eye(2.0)?)?;
        close(&right, &eye(4.0)?)?;
    }
    for (left, right) in [
        jacrev(of())
            .wrt([0])
            .call::<((Tensor,), (Tensor,))>((&x, &y))?,
        jacfwd(of())
            .wrt([0])
            .call::<((Tensor,), (Tensor,))>((&x, &y))?,
    ] {
        close(&left.0, &eye(2.0)?)?;
        close(&right.0, &eye(4.0)?)?;
    }
    Ok(())
}

#[test]
fn a_jacobian_of_structures_has_both_structures() -> Result<()> {
    let of = || {
        traced!(|p: State| {
            let (c, d) = (p["a"].sin()?, p["b"].cos()?);
            Ok(tree!({"c": c, "d": d}))
        })
    };
    let x = numbers(&[3], 1)?;
    let zeros = Tensor::from_vec(vec![0.0; 9], (3, 3))?;
    let p = || given([tree!({"a": (&x), "b": (&x)})]);
    for found in [
        jacrev(of()).call::<IndexMap<String, State>>(p())?,
        jacfwd(of()).call::<IndexMap<String, State>>(p())?,
    ] {
        close(&found["c"]["a"], &diagonal(&x.cos()?)?)?;
        close(&found["c"]["b"], &zeros)?;
        close(&found["d"]["a"], &zeros)?;
        close(&found["d"]["b"], &diagonal(&(x.sin()? * -1.0)?)?)?;
    }
    Ok(())
}

#[test]
fn a_jacobian_of_what_is_unrelated_is_zeros() -> Result<()> {
    let y = numbers(&[2, 3], 2)?;
    let x = numbers(&[2, 3], 1)?;
    let first = || {
        traced!(|x: &Tensor, y: &Tensor| {
            let _ = y;
            Ok(x.clone())
        })
    };
    for (of_x, of_y) in [
        jacrev(first())
            .wrt([0, 1])
            .call::<(Tensor, Tensor)>((&x, &y))?,
        jacfwd(first())
            .wrt([0, 1])
            .call::<(Tensor, Tensor)>((&x, &y))?,
    ] {
        close(
            &of_x.reshape((6, 6))?,
            &ops::eye(6, None, Some(DType::F64))?,
        )?;
        is(&of_y, &[2, 3, 2, 3], &[0.0; 36])?;
    }
    let constant = traced!(move |x: &Tensor| {
        let _ = x;
        Ok(y.clone())
    });
    for found in [
        jacrev(constant.clone()).call::<Tensor>(&x)?,
        jacfwd(constant.clone()).call::<Tensor>(&x)?,
    ] {
        is(&found, &[2, 3, 2, 3], &[0.0; 36])?;
    }
    let linear = traced!(|x: &Tensor| Tensor::ones((5, 3))?.to_dtype(DType::F64)?.matmul(x));
    let second: Tensor = jacrev(&jacrev(linear)).call(numbers(&[3], 1)?)?;
    is(&second, &[5, 3, 3], &[0.0; 45])
}

#[test]
fn a_jacobian_of_nothing_or_of_what_is_no_tensor_is_refused() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let text = "the function gives no tensor";
    let wrong = "result 0 of the function is no tensor of floats";
    let nothing = || {
        traced!(|x: &Tensor| {
            let _ = x;
            Ok(tree!(()))
        })
    };
    refused(jacrev(nothing()).call::<Value>(&x), &[text]);
    refused(jacfwd(nothing()).call::<Value>(&x), &[text]);
    let plain = || {
        traced!(|x: &Tensor| {
            let _ = x;
            Ok(tree!(12.2))
        })
    };
    refused(jacrev(plain()).call::<Value>(&x), &[wrong]);
    refused(jacfwd(plain()).call::<Value>(&x), &[wrong]);
    let place = || traced!(|x: &Tensor| x.argmax(0, false));
    refused(jacrev(place()).call::<Value>(&x), &[wrong]);
    refused(jacfwd(place()).call::<Value>(&x), &[wrong]);
    Ok(())
}

#[test]
fn an_argument_that_is_a_number_stays_one() -> Result<()> {
    let of = || traced!(|t: &Tensor, n: i64| (t * n)? * t);
    let t = numbers(&[3], 1)?;
    let expected = diagonal(&(&t * 6.0)?)?;
    close(&jacrev(of()).call::<Tensor>((&t, 3i64))?, &expected)?;
    close(&jacfwd(of()).call::<Tensor>((&t, 3i64))?, &expected)?;
    let each: Tensor = vmap(of()).in_axes([Some(0), None]).call((&t, 3i64))?;
    close(&each, &((&t * 3.0)? * &t)?)?;
    // A number has no examples, and is the same for all.
    let each: Tensor = vmap(of()).call((&t, 2i64))?;
    close(&each, &((&t * 2.0)? * &t)?)
}

#[test]
fn a_hessian_of_a_constant_is_zeros_and_of_a_vector_has_three_dims() -> Result<()> {
    let (x, y) = (numbers(&[2], 1)?, numbers(&[3], 2)?);
    let of = traced!(|x: &Tensor, y: &Tensor| {
        let _ = y;
        x.pow(2)?.sum(..)
    });
    type Rows = ((Tensor, Tensor), (Tensor, Tensor));
    let ((xx, xy), (yx, yy)): Rows = hessian(of).wrt([0, 1]).call((&x, &y))?;
    is(&xx, &[2, 2], &[2.0, 0.0, 0.0, 2.0])?;
    is(&xy, &[2, 3], &[0.0; 6])?;
    is(&yx, &[3, 2], &[0.0; 6])?;
    is(&yy, &[3, 3], &[0.0; 9])?;
    let constant = traced!(|x: &Tensor| {
        let _ = x;
        number(1.0)
    });
    is(&hessian(constant).call::<Tensor>(&x)?, &[2, 2], &[0.0; 4])?;
    let vector: Tensor = hessian(sine()).call(&x)?;
    let (a, b) = (x.i(0)?.sin()?.item()?, x.i(1)?.sin()?.item()?);
    is(&vector, &[2, 2, 2], &[-a, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -b])
}

#[test]
fn a_hessian_is_one_mode_over_the_other_at_every_level() -> Result<()> {
    let loss = traced!(|a: &Tensor, x1: &Tensor, x2: &Tensor| {
        let hat = a.matmul(&x1.t()?)?.t()?;
        (x2 - hat)?.square()?.sum(..)
    });
    let (a, x) = (numbers(&[2, 2, 2], 1)?, numbers(&[2, 5, 2], 2)?);
    // The same tensor is two arguments.
    let left: Tensor = vmap(&jacrev(&jacrev(loss.clone()))).call((&a, &x, &x))?;
    let right: Tensor = vmap(&hessian(loss)).call((&a, &x, &x))?;
    assert_eq!(left.dims()?, [2, 2, 2, 2, 2]);
    assert!(left.to_vec()?.iter().any(|x| x.abs() > 0.1));
    close(&left, &right)
}

#[test]
fn a_jacobian_is_of_one_draw() -> Result<()> {
    let of = || traced!(|x: &Tensor| ops::dropout(&(x * x)?, 0.5, true));
    let x = numbers(&[40], 1)?;
    for found in [
        jacrev(of()).call::<Tensor>(&x)?,
        jacfwd(of()).call::<Tensor>(&x)?,
    ] {
        let own = ops::diagonal(&found, 0, 0, 1)?;
        close(&found, &diagonal(&own)?)?;
        // 2 x, and twice of it or nothing.
        let kept = (own / (&x * 4.0)?)?.to_vec()?;
        assert!(
            kept.iter().all(|k| (k * (k - 1.0)).abs() < 1e-12),
            "{kept:?}"
        );
        assert!(
            kept.contains(&0.0) && kept.iter().any(|k| *k > 0.5),
            "{kept:?}"
        );
    }
    // Two results would be of two draws.
    let two = traced!(|x: &Tensor| {
        let y = ops::dropout(x, 0.5, true)?;
        Ok((y.clone(), y))
    });
    refused(jacrev(two).call::<Value>(&x), &["it draws random numbers"]);
    Ok(())
}

// Forward mode.

#[test]
fn a_linear_function_takes_tangents_as_arguments() -> Result<()> {
    let of = || {
        traced!(|x: &Tensor, y: &Tensor| {
            Ok((((x * 2.0)? + (y * 3.0)?)?, ((x * 4.0)? + (y * 5.0)?)?))
        })
    };
    let [x, y, tx, ty] = [1, 2, 3, 4].map(|seed| numbers(&[2, 3], seed));
    let (x, y, tx, ty) = (x?, y?, tx?, ty?);
    type Pair = (Tensor, Tensor);
    let (out, change): (Pair, Pair) = jvp(of()).call((&x, &y, (&tx, &ty)))?;
    let expected: Pair = jvp(of()).call::<(Pair, Pair)>((&tx, &ty, (&x, &y)))?.0;
    close(&out.0, &((&x * 2.0)? + (&y * 3.0)?)?)?;
    close(&change.0, &expected.0)?;
    close(&change.1, &expected.1)?;
    // An argument that is not used, and of structures.
    let deep = traced!(|x: (Tensor, Tensor), y: &Tensor, z: &Tensor| {
        let _ = z;
        (&x.0 + (&x.1 * 2.0)?)? + (y * 3.0)?
    });
    let one = number(1.0)?;
    let pair = || tree!(((&one), (&one)));
    let tangents = tree!((((&one), (&one)), (&one), (&one)));
    let args = given([pair(), (&one).into_value(), (&one).into_value(), tangents]);
    let (out, change): (Tensor, Tensor) = jvp(deep).call(args)?;
    assert_eq!((out.item()?, change.item()?), (6.0, 6.0));
    Ok(())
}

#[test]
fn tangents_of_another_structure_are_refused() -> Result<()> {
    let (x, t) = (numbers(&[2, 3], 1)?, numbers(&[2, 3], 2)?);
    // One argument has one tangent.
    refused(
        jvp(sine()).call::<Value>((&x, (&t, &t))),
        &["the tangents have another structure than the arguments"],
    );
    let text = "there is a tangent for each of 2 arguments, in a tuple";
    refused(jvp(product()).call::<Value>((&x, &x, &t)), &[text]);
    refused(
        jvp(product()).call::<Value>((&x, &x, (&t, &t, &t))),
        &[text],
    );
    refused(
        jvp(product()).call::<Value>((&x, &x, (&t, (&t, &t)))),
        &["the tangents have another structure than the arguments"],
    );
    refused(
        jvp(sine()).call::<Value>((&x, numbers(&[3], 2)?)),
        &["a tangent of shape [3] for an argument of shape [2, 3]"],
    );
    refused(
        jvp(sine()).call::<Value>((&x, 1.0)),
        &["the tangents have another structure than the arguments"],
    );
    refused(jvp(sine()).call::<Value>(&x), &["`tangents` is missing"]);
    Ok(())
}
