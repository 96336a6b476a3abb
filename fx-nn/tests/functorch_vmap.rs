//! What functorch's own tests say of vmap, functional calls and ensembles, held here: `docs/functorch-tests.md` has the
//! names.

use fx_nn::func::{
    Randomness, Transform, functional_call, grad, hessian, jacfwd, jacrev, jvp, parameters,
    stack_module_state, value_and_grad, vjp, vmap,
};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::trace::TracedFn;
use fx_nn::value::IntoValue;
use fx_nn::{IndexMap, Result};

use super::functorch::{State, close, given, is, number, numbers, product, refused, same, sine};

// Where the examples are.

#[test]
fn examples_that_differ_in_number_are_refused() -> Result<()> {
    let (x, y) = (numbers(&[2], 1)?, numbers(&[3], 2)?);
    let text = "vmap: the examples of arguments `x` (2) and `y` (3) differ in number";
    refused(vmap(product()).call::<Value>((&x, &y)), &[text]);
    // In a structure too.
    let sum = traced!(|p: State| &p["x"] + &p["y"]);
    let p = tree!({"x": (&x), "y": (&y)});
    refused(
        vmap(sum).call::<Value>(given([p])),
        &["differ in number", "(2)", "(3)"],
    );
    Ok(())
}

#[test]
fn a_call_without_examples_is_refused() -> Result<()> {
    let text = "vmap: no argument has a dim of examples";
    let x = numbers(&[2, 3], 1)?;
    let none = vmap(sine()).in_axes([None]);
    refused(none.call::<Value>(&x), &[text]);
    let of_number = traced!(|n: i64| Tensor::ones(3)? * n);
    refused(vmap(of_number).call::<Value>(1i64), &[text]);
    let of_nothing = traced!(|| Tensor::ones(3));
    refused(vmap(of_nothing).call::<Value>(()), &[text]);
    // One number has no dim.
    refused(
        vmap(sine()).call::<Value>(number(1.0)?),
        &["vmap: argument `x` is one number and has no dim of examples"],
    );
    Ok(())
}

#[test]
fn axes_that_are_not_there_are_refused() -> Result<()> {
    let x = numbers(&[2, 3], 1)?;
    for axis in [2, -3] {
        let text = format!("vmap: argument `x` has 2 dims, and no dim {axis} of examples");
        refused(vmap(sine()).in_axes(axis).call::<Value>(&x), &[&text]);
    }
    refused(
        vmap(product()).in_axes([0]).call::<Value>((&x, &x)),
        &["vmap: there are 1 axes for 2 arguments"],
    );
    refused(
        vmap(product()).in_axes([0, 0, 0]).call::<Value>((&x, &x)),
        &["vmap: there are 3 axes for 2 arguments"],
    );
    // Of results.
    let wide = numbers(&[2, 3, 5], 1)?;
    for axis in [3, -4] {
        let text = format!("there is no dim {axis} among 3");
        refused(vmap(same()).out_axes(axis).call::<Value>(&wide), &[&text]);
    }
    let three = || traced!(|x: &Tensor| Ok((x.clone(), x.clone(), x.clone())));
    refused(
        vmap(three()).out_axes([0, 0]).call::<Value>(&x),
        &["vmap: there are 2 axes for 3 results"],
    );
    refused(
        vmap(same()).out_axes([0, 0]).call::<Value>(&x),
        &["vmap: there are 2 axes for 1 results"],
    );
    Ok(())
}

#[test]
fn an_argument_without_examples_is_the_same_for_all() -> Result<()> {
    let (x, y) = (numbers(&[2, 3], 1)?, numbers(&[2, 3], 2)?);
    let each: Tensor = vmap(product()).in_axes([Some(0), None]).call((&x, &y))?;
    close(&each, &(x.reshape((2, 1, 3))? * &y)?)?;
    // The same tensor with and without examples.
    let each: Tensor = vmap(product()).in_axes([None, Some(0)]).call((&x, &x))?;
    close(&each, &(x.unsqueeze(0)? * x.reshape((2, 1, 3))?)?)
}

#[test]
fn axes_of_arguments_nest() -> Result<()> {
    let (x, y) = (numbers(&[5, 2, 3], 1)?, numbers(&[3, 5, 2], 2)?);
    let inner = vmap(&vmap(product())).in_axes([1, 0]);
    let each: Tensor = vmap(&inner).in_axes([1, 2]).call((&x, &y))?;
    let expected = (x.permute([1, 2, 0])? * y.permute([2, 0, 1])?)?;
    close(&each, &expected)?;
    let (x, y) = (numbers(&[2, 3], 1)?, numbers(&[2, 3], 2)?);
    let each: Tensor = vmap(product()).in_axes([-1, -1]).call((&x, &y))?;
    close(&each, &(&x * &y)?.t()?)?;
    // An inner function of the outer example alone.
    let noop = traced!(|x: &Tensor, y: &Tensor| {
        let first = traced!(|y: &Tensor, x: &Tensor| {
            let _ = y;
            Ok(x.clone())
        });
        vmap(first).in_axes([Some(0), None]).call::<Tensor>((y, x))
    });
    let (x, y) = (numbers(&[3], 1)?, numbers(&[5], 2)?);
    let each: Tensor = vmap(noop).in_axes([Some(0), None]).call((&x, &y))?;
    close(&each, &x.unsqueeze(1)?.expand((3, 5))?)
}

#[test]
fn axes_of_results_may_be_negative_and_differ() -> Result<()> {
    let x = numbers(&[2, 3, 5, 7], 1)?;
    let moved: Tensor = vmap(same()).out_axes(2).call(&x)?;
    close(&moved, &x.permute([1, 2, 0, 3])?)?;
    let moved: Tensor = vmap(same()).out_axes(-1).call(&x)?;
    close(&moved, &x.permute([1, 2, 3, 0])?)?;
    let (x, y) = (numbers(&[2, 3, 5], 1)?, numbers(&[2, 3, 5], 2)?);
    let four = traced!(|x: &Tensor, y: &Tensor| Ok((x.clone(), x.clone(), x.clone(), (x * y)?)));
    let (a, b, c, d): (Tensor, Tensor, Tensor, Tensor) =
        vmap(four).out_axes([-1, 0, 1, 2]).call((&x, &y))?;
    close(&a, &x.permute([1, 2, 0])?)?;
    close(&b, &x)?;
    close(&c, &x.permute([1, 0, 2])?)?;
    close(&d, &(&x * &y)?.permute([1, 2, 0])?)?;
    // At each level.
    let x = numbers(&[2, 3, 5, 7], 1)?;
    let both = vmap(&vmap(same()).out_axes(-1)).out_axes(-1);
    close(&both.call::<Tensor>(&x)?, &x.permute([2, 3, 1, 0])?)?;
    let round = vmap(&vmap(same()).in_axes(1).out_axes(1))
        .in_axes(1)
        .out_axes(1);
    close(&round.call::<Tensor>(&x)?, &x)
}

#[test]
fn a_result_that_differs_has_an_axis_and_a_constant_need_not() -> Result<()> {
    let x = numbers(&[2, 3], 1)?;
    refused(
        vmap(sine()).out_axes([None]).call::<Value>(&x),
        &["vmap: result 0 differs between the examples, so that its axis cannot be None"],
    );
    let constant = || {
        traced!(|x: &Tensor| {
            let _ = x;
            ops::arange(0, 3, 1, Some(DType::F64))
        })
    };
    let each: Tensor = vmap(constant()).call(&x)?;
    is(&each, &[2, 3], &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0])?;
    let each: Tensor = vmap(constant()).out_axes(-1).call(&x)?;
    is(&each, &[3, 2], &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0])?;
    let once: Tensor = vmap(constant()).out_axes([None]).call(&x)?;
    is(&once, &[3], &[0.0, 1.0, 2.0])?;
    let captured = number(3.25)?;
    let of = traced!(move |x: &Tensor| {
        let _ = x;
        Ok(captured.clone())
    });
    is(&vmap(of).call::<Tensor>(&x)?, &[2], &[3.25; 2])?;
    // What is no tensor is given once.
    let text = traced!(|x: &Tensor| Ok((x.clone(), tree!("hello"))));
    let (out, text): (Tensor, String) = vmap(text).call(&x)?;
    close(&out, &x)?;
    assert_eq!(text, "hello");
    Ok(())
}

#[test]
fn axes_follow_structures() -> Result<()> {
    let (x, y) = (numbers(&[2, 3], 1)?, numbers(&[3, 2], 2)?);
    let sum = || traced!(|z: (Tensor, Tensor)| &z.0 + &z.1);
    let pair = |y: &Tensor| given([tree!(((&x), (y)))]);
    let plain: Tensor = vmap(sum()).call(pair(&x))?;
    close(&plain, &(&x + &x)?)?;
    let each: Tensor = vmap(sum()).in_axes(tree!(((0, 1),))).call(pair(&y))?;
    close(&each, &(&x + y.t()?)?)?;
    let each: Tensor = vmap(sum()).in_axes(tree!(((0, None),))).call(pair(&x))?;
    close(&each, &(x.reshape((2, 1, 3))? + &x)?)?;
    let deep = traced!(|z: IndexMap<String, (Tensor, Vec<Tensor>)>| {
        let (left, right) = (&z["x"], &z["y"]);
        ((&left.0 + &left.1[0])? + &right.0)? + &right.1[0]
    });
    let z = tree!({"x": ((&x), [(&x)]), "y": ((&y), [(&y)])});
    let axes = tree!(({"x": 0, "y": (1, [1])},));
    let each: Tensor = vmap(deep.clone()).in_axes(axes).call(given([z.clone()]))?;
    close(&each, &((&x * 2.0)? + (y.t()? * 2.0)?)?)?;
    // Of another structure, and of another number.
    let text = "are of another structure than";
    for axes in [
        tree!(({"x": 0},)),
        tree!(({"x": 0, "z": 0},)),
        tree!(({"x": (0, [0, 0]), "y": 1},)),
        tree!(((0, 1),)),
    ] {
        let wrong = vmap(deep.clone()).in_axes(axes);
        refused(wrong.call::<Value>(given([z.clone()])), &[text]);
    }
    refused(
        vmap(sum()).in_axes(tree!((0, 1))).call::<Value>(pair(&x)),
        &["vmap: there are 2 axes for 1 arguments"],
    );
    // Of results: an axis is that of all below its place.
    let out = || {
        traced!(|x: &Tensor| {
            let y = x.sin()?;
            Ok((y.clone(), (y.clone(), y)))
        })
    };
    type Deep = (Tensor, (Tensor, Tensor));
    let sine = x.sin()?;
    let (a, (b, c)): Deep = vmap(out()).out_axes(tree!((0, (0, 1)))).call(&x)?;
    close(&a, &sine)?;
    close(&b, &sine)?;
    close(&c, &sine.t()?)?;
    let (a, (b, c)): Deep = vmap(out()).out_axes(tree!((0, 1))).call(&x)?;
    close(&a, &sine)?;
    close(&b, &sine.t()?)?;
    close(&c, &sine.t()?)?;
    let (a, (b, c)): Deep = vmap(out()).out_axes(1).call(&x)?;
    for moved in [a, b, c] {
        close(&moved, &sine.t()?)?;
    }
    refused(
        vmap(out())
            .out_axes(tree!((0, (0, 1, 2))))
            .call::<Value>(&x),
        &[text],
    );
    Ok(())
}

// What examples decide.

#[test]
fn what_an_example_decides_is_refused() -> Result<()> {
    let x = numbers(&[3], 1)?;
    let item = traced!(|x: &Tensor| {
        let value = x.item()?;
        x * value
    });
    refused(vmap(item).call::<Value>(&x), &["item"]);
    let branch = traced!(|x: &Tensor| match x.gt(0.0)?.item()? != 0.0 {
        true => Ok(x.clone()),
        false => x * 2.0,
    });
    refused(vmap(branch).call::<Value>(&x), &["item"]);
    let places = traced!(|x: &Tensor| ops::nonzero(x));
    refused(
        vmap(places).call::<Value>(numbers(&[2, 3], 1)?),
        &["nonzero"],
    );
    // What says of two tensors whether they are equal is one truth value, and not one for each example.
    let all = traced!(|x: &Tensor, y: &Tensor| ops::equal(x, y));
    let pair = numbers(&[2, 3], 1)?;
    refused(vmap(all).call::<Value>((&pair, &pair)), &["equal"]);
    Ok(())
}

#[test]
fn no_examples_give_an_empty_result() -> Result<()> {
    let none = Tensor::from_vec(Vec::<f64>::new(), (0, 3))?;
    let y = numbers(&[3], 1)?;
    let each: Tensor = vmap(product()).in_axes([Some(0), None]).call((&none, &y))?;
    is(&each, &[0, 3], &[])?;
    let slope = grad(traced!(|x: &Tensor| x.sin()?.sum(..)));
    is(&vmap(&slope).call::<Tensor>(&none)?, &[0, 3], &[])
}

// Transforms of examples.

fn loss() -> TracedFn {
    traced!(|w: &Tensor, x: &Tensor, t: &Tensor| (x.matmul(w)? - t)?.square()?.sum(..))
}

#[test]
fn gradients_of_examples_are_those_of_one_after_the_other() -> Result<()> {
    let (w, x, t) = (
        numbers(&[4, 2], 1)?,
        numbers(&[6, 4], 2)?,
        numbers(&[6, 2], 3)?,
    );
    let all: Tensor = vmap(&grad(loss()))
        .in_axes([None, Some(0), Some(0)])
        .call((&w, &x, &t))?;
    let each = (0..6).map(|at| grad(loss()).call::<Tensor>((&w, x.i(at)?, t.i(at)?)));
    close(&all, &ops::stack(&each.collect::<Result<Vec<_>>>()?, 0)?)?;
    // A gradient of one start for all.
    let (x, v) = (numbers(&[3, 5], 1)?, numbers(&[5], 2)?);
    let back = vjp(traced!(|x: &Tensor| ops::log_softmax(x, -1)));
    let (_, all): (Tensor, Tensor) = vmap(&back).in_axes([Some(0), None]).call((&x, &v))?;
    let each = (0..3).map(|at| Ok(back.call::<(Tensor, Tensor)>((x.i(at)?, &v))?.1));
    close(&all, &ops::stack(&each.collect::<Result<Vec<_>>>()?, 0)?)?;
    // Examples of tangents for one argument.
    let (x, t) = (numbers(&[5], 1)?, numbers(&[4, 5], 2)?);
    let forward = vmap(&jvp(sine()))
        .in_axes([None, Some(0)])
        .out_axes([None, Some(0)]);
    let (out, change): (Tensor, Tensor) = forward.call((&x, &t))?;
    close(&out, &x.sin()?)?;
    close(&change, &(t * x.cos()?)?)
}

// Random numbers.

fn rows(x: &Tensor) -> Result<Vec<Vec<f64>>> {
    let width = x.dims()?[1..].iter().product();
    Ok(x.to_vec()?.chunks(width).map(<[f64]>::to_vec).collect())
}

#[test]
fn random_numbers_are_refused_the_same_or_different() -> Result<()> {
    let functions: [(&str, TracedFn); 5] = [
        (
            "rand",
            traced!(|x: &Tensor| {
                let _ = x;
                ops::rand(32, Some(DType::F64))
            }),
        ),
        ("rand_like", traced!(|x: &Tensor| ops::rand_like(x, None))),
        ("randn_like", traced!(|x: &Tensor| ops::randn_like(x, None))),
        (
            "randperm",
            traced!(|x: &Tensor| {
                let _ = x;
                ops::randperm(32, None)
            }),
        ),
        (
            "dropout",
            traced!(|x: &Tensor| ops::dropout(&ops::ones_like(x, None)?, 0.5, true)),
        ),
    ];
    let x = numbers(&[4, 32], 1)?;
    for (name, of) in functions {
        let text = "it draws random numbers: say by `randomness`";
        refused(vmap(of.clone()).call::<Value>(&x), &[text, name]);
        let same: Tensor = vmap(of.clone()).randomness(Randomness::Same).call(&x)?;
        let same = rows(&same)?;
        assert_eq!(same.len(), 4);
        assert!(same.iter().all(|row| *row == same[0]), "{name}: {same:?}");
        let each: Tensor = vmap(of).randomness(Randomness::Different).call(&x)?;
        let each = rows(&each)?;
        assert_eq!(each.len(), 4);
        for (at, row) in each.iter().enumerate() {
            assert!(!each[..at].contains(row), "{name}: {each:?}");
        }
    }
    Ok(())
}

#[test]
fn numbers_that_depend_on_the_example_cannot_be_the_same() -> Result<()> {
    let of = traced!(|x: &Tensor| ops::bernoulli(x));
    let x = Tensor::from_vec(vec![0.0f64, 1.0, 1.0, 0.0], (2, 2))?;
    refused(
        vmap(of.clone())
            .randomness(Randomness::Same)
            .call::<Value>(&x),
        &["what it draws depends on the example"],
    );
    let each: Tensor = vmap(of).randomness(Randomness::Different).call(&x)?;
    assert_eq!(each.to_vec()?, [0.0, 1.0, 1.0, 0.0]);
    // What is kept for certain, or never, is not drawn; and evaluation draws nothing.
    let (keep, none) = (
        traced!(|x: &Tensor| ops::dropout(x, 0.0, true)),
        traced!(|x: &Tensor| ops::dropout(x, 1.0, true)),
    );
    close(&vmap(keep).call::<Tensor>(&x)?, &x)?;
    is(&vmap(none).call::<Tensor>(&x)?, &[2, 2], &[0.0; 4])?;
    let model = nn::Sequential::new().push(nn::Dropout::new(0.5)?);
    let (mut evaluated, batch) = (model.clone(), numbers(&[4, 3], 1)?);
    evaluated.eval();
    refused(
        vmap(&model).call::<Value>(&batch),
        &["it draws random numbers"],
    );
    close(&vmap(&evaluated).call::<Tensor>(&batch)?, &batch)
}

#[test]
fn levels_draw_for_themselves() -> Result<()> {
    let of = traced!(|x: &Tensor| ops::rand_like(x, None));
    let x = numbers(&[3, 2, 16], 1)?;
    let both = |outer, inner| -> Result<Vec<Vec<f64>>> {
        let inner = vmap(of.clone()).randomness(inner);
        let all: Tensor = vmap(&inner).randomness(outer).call(&x)?;
        rows(&all.reshape((6, 16))?)
    };
    let each = both(Randomness::Different, Randomness::Different)?;
    assert!((0..6).all(|at| !each[..at].contains(&each[at])), "{each:?}");
    // The same for all inner examples, another for each outer one.
    let each = both(Randomness::Different, Randomness::Same)?;
    for pair in each.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    assert_ne!(each[0], each[2]);
    assert_ne!(each[2], each[4]);
    // The same for all outer examples.
    let each = both(Randomness::Same, Randomness::Different)?;
    assert_ne!(each[0], each[1]);
    assert_eq!((&each[0], &each[1]), (&each[2], &each[3]));
    Ok(())
}

// Modules.

/// A layer whose weight is used twice.
#[derive(Module, Clone)]
struct Tied {
    first: nn::Linear,
    second: nn::Linear,
}

#[trace]
impl Tied {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.second.forward(&self.first.forward(x)?)
    }
}

fn tied() -> Result<Tied> {
    let first = nn::Linear::new(2, 2)?.bias(false);
    let mut second = nn::Linear::new(2, 2)?.bias(false);
    second.weight = first.weight.clone();
    let mut model = Tied { first, second };
    nn::to_dtype(&mut model, DType::F64)?;
    Ok(model)
}

#[test]
fn a_functional_call_keeps_what_is_not_given_and_refuses_what_is_not_there() -> Result<()> {
    let mut model = nn::Linear::new(2, 3)?;
    nn::to_dtype(&mut model, DType::F64)?;
    let (x, w) = (numbers(&[4, 2], 1)?, numbers(&[3, 2], 2)?);
    let bias = model
        .bias
        .clone()
        .ok_or_else(|| fx_nn::Error::msg("a bias"))?
        .detach()?;
    let own = model.clone();
    let of = traced!(move |p: State, x: &Tensor| functional_call::<Tensor>(&own, &p, x));
    let p = tree!({"weight": (&w)});
    let args = || given([p.clone(), (&x).into_value()]);
    let each = vmap(of.clone()).in_axes([None, Some(0)]);
    close(
        &each.call::<Tensor>(args())?,
        &ops::linear(&x, &w, Some(&bias))?,
    )?;
    // The module is as it was.
    assert_ne!(model.weight.to_vec()?, w.to_vec()?);
    let wrong = tree!({"wieght": (&w)});
    refused(
        each.call::<Value>(given([wrong, (&x).into_value()])),
        &["the module has no parameter or buffer at `wieght`; did you mean `weight`?"],
    );
    let short = tree!({"weight": (numbers(&[3, 5], 2)?)});
    refused(
        each.call::<Value>(given([short, (&x).into_value()])),
        &["linear"],
    );
    // Only what is given has a gradient, and it is that of the parameter.
    let sum = model.clone();
    let loss = traced!(move |p: State, x: &Tensor| {
        functional_call::<Tensor>(&sum, &p, x)?.square()?.sum(..)
    });
    let slopes: State = grad(loss).call(args())?;
    assert_eq!(slopes.keys().collect::<Vec<_>>(), ["weight"]);
    let y = ops::linear(&x, &w, Some(&bias))?;
    close(&slopes["weight"], &(y * 2.0)?.t()?.matmul(&x)?)
}

#[test]
fn a_tied_weight_is_given_once() -> Result<()> {
    let model = tied()?;
    let (x, w) = (numbers(&[2], 1)?, numbers(&[2, 2], 2)?);
    let own = model.clone();
    let of = traced!(move |p: State, x: &Tensor| functional_call::<Tensor>(&own, &p, x)?.sum(..));
    let call = |p: Value| {
        let args = given([p, (&x).into_value()]);
        value_and_grad(of.clone()).call::<(Tensor, State)>(args)
    };
    let expected = |a: &Tensor, b: &Tensor| b.matmul(&a.matmul(&x)?)?.sum(..);
    let (value, slopes): (Tensor, State) = call(tree!({"first.weight": (&w)}))?;
    close(&value, &expected(&w, &w)?)?;
    let both = traced!(|w: &Tensor, x: &Tensor| w.matmul(&w.matmul(x)?)?.sum(..));
    close(
        &slopes["first.weight"],
        &grad(both).call::<Tensor>((&w, &x))?,
    )?;
    // The other path is another name of it.
    let (value, _): (Tensor, State) = call(tree!({"second.weight": (&w)}))?;
    close(&value, &expected(&w, &w)?)?;
    let other = numbers(&[2, 2], 3)?;
    let two = call(tree!({"first.weight": (&w), "second.weight": (&other)}));
    refused(
        two,
        &["`first.weight` and `second.weight` are one tensor, and two are given for it"],
    );
    // The gradient of a tied parameter of the module is of both its uses, too.
    let squares = value_and_grad(traced!(|x: &Tensor| x.sum(..)));
    assert_eq!(
        squares.call::<(Tensor, Tensor)>(&x)?.1.to_vec()?,
        [1.0, 1.0]
    );
    let back = vjp(&model).wrt(parameters("**"));
    let start = Tensor::from_vec(vec![1.0f64; 2], 2)?;
    let (_, slopes): (Tensor, State) = back.call((&x, &start))?;
    assert_eq!(slopes.keys().collect::<Vec<_>>(), ["first.weight"]);
    let w = model.first.weight.detach()?;
    let both = traced!(|w: &Tensor, x: &Tensor| w.matmul(&w.matmul(x)?)?.sum(..));
    close(
        &slopes["first.weight"],
        &grad(both).call::<Tensor>((&w, &x))?,
    )
}

#[test]
fn a_module_is_called_for_examples() -> Result<()> {
    let mut model = nn::Linear::new(3, 3)?.bias(false);
    nn::to_dtype(&mut model, DType::F64)?;
    let x = numbers(&[2, 3], 1)?;
    close(
        &vmap(&model).call::<Tensor>(&x)?,
        &model.forward(&x)?.detach()?,
    )?;
    // Statistics of a batch are not those of one example.
    let mut norm = nn::BatchNorm1d::new(3)?;
    nn::to_dtype(&mut norm, DType::F64)?;
    let batch = numbers(&[4, 2, 3], 1)?;
    refused(
        vmap(&norm).call::<Value>(&batch),
        &["it writes its statistics, which examples cannot share: call `eval()`"],
    );
    norm.eval();
    let each: Tensor = vmap(&norm).call(&batch)?;
    close(
        &each.reshape((8, 3))?,
        &norm.forward(&batch.reshape((8, 3))?)?.detach()?,
    )
}

#[test]
fn an_ensemble_is_of_one_structure_and_one_mode() -> Result<()> {
    let model = |width: usize| -> Result<nn::Sequential> {
        let mut model = nn::Sequential::new()
            .push(nn::Linear::new(3, width)?)
            .push(nn::BatchNorm1d::new(width)?);
        nn::to_dtype(&mut model, DType::F64)?;
        model.eval();
        Ok(model)
    };
    let none: [&nn::Sequential; 0] = [];
    refused(
        stack_module_state(&none),
        &["stack_module_state: there are no modules"],
    );
    let (a, b) = (model(4)?, model(4)?);
    let mut trained = model(4)?;
    trained.train();
    refused(
        stack_module_state(&[&a, &trained]),
        &["module 1 is of another structure or in another mode than module 0"],
    );
    refused(
        stack_module_state(&[&a, &model(5)?]),
        &["stack_module_state: `0.weight`"],
    );
    let other = nn::Sequential::new().push(nn::Linear::new(3, 4)?);
    refused(stack_module_state(&[&a, &other]), &["another structure"]);
    let pair = [nn::Linear::new(3, 2)?, nn::Linear::new(3, 2)?];
    let mut frozen = pair[1].clone();
    frozen.weight = frozen.weight.detach()?;
    refused(
        stack_module_state(&[&pair[0], &frozen]),
        &["`weight`: it is trained in 1 of 2 modules"],
    );
    // Parameters and buffers, each with an axis.
    let (params, buffers) = stack_module_state(&[&a, &b])?;
    assert!(params["0.weight"].requires_grad()?);
    assert_eq!(params["0.weight"].dims()?, [2, 4, 3]);
    assert_eq!(buffers["1.running_mean"].dims()?, [2, 4]);
    let base = a.clone();
    let of = traced!(move |p: State, b: State, x: &Tensor| {
        functional_call::<Tensor>(&base, p.iter().chain(&b), x)
    });
    let x = numbers(&[5, 3], 1)?;
    let floats = buffers
        .into_iter()
        .filter(|(name, _)| !name.contains("num_batches"));
    let dict = |all: State| -> Value {
        let pairs = all.into_iter();
        Value::Dict(Box::new(
            pairs
                .map(|(name, x)| (name.as_str().into(), x.into_value()))
                .collect(),
        ))
    };
    let args = given([dict(params), dict(floats.collect()), (&x).into_value()]);
    let each: Tensor = vmap(of).in_axes([Some(0), Some(0), None]).call(args)?;
    let one_by_one = [a.forward(&x)?.detach()?, b.forward(&x)?.detach()?];
    close(&each.detach()?, &ops::stack(&one_by_one, 0)?)
}

// Chunks of examples.

#[test]
fn chunks_of_examples_give_what_all_at_once_give() -> Result<()> {
    let (x, y) = (numbers(&[7, 3], 1)?, numbers(&[3, 7], 2)?);
    // A result of the examples, one along another axis, and one that is the same for all.
    let several =
        traced!(|x: &Tensor, y: &Tensor| Ok(((x * y)?.sum(..)?, x.sin()?, Tensor::ones(2)?)));
    let whole = vmap(several)
        .in_axes([0, 1])
        .out_axes([Some(0), Some(1), None]);
    let expected: (Tensor, Tensor, Tensor) = whole.clone().call((&x, &y))?;
    for size in [1, 2, 3, 6, 7, 100] {
        let found: (Tensor, Tensor, Tensor) = whole.clone().chunk_size(size).call((&x, &y))?;
        close(&found.0, &expected.0)?;
        close(&found.1, &expected.1)?;
        close(&found.2, &expected.2)?;
    }
    let none = whole.clone().chunk_size(0);
    refused(none.call::<Value>((&x, &y)), &["chunks of 0 examples"]);
    Ok(())
}

#[test]
fn chunks_nest_and_have_gradients() -> Result<()> {
    let x = numbers(&[5, 3], 1)?;
    let sum = |size| {
        let of_all = vmap(traced!(|x: &Tensor| x.pow(3)?.sum(..))).chunk_size(size);
        traced!(move |x: &Tensor| of_all.call::<Tensor>(x)?.sum(..))
    };
    let expected: Tensor = grad(sum(5)).call(&x)?;
    close(&grad(sum(2)).call::<Tensor>(&x)?, &expected)?;
    let per_sample = vmap(&grad(traced!(|x: &Tensor| x.pow(3)?.sum(..)))).chunk_size(2);
    close(&per_sample.call::<Tensor>(&x)?, &expected)
}

#[test]
fn each_chunk_draws_its_own_numbers() -> Result<()> {
    let x = numbers(&[4, 3], 1)?;
    let noisy = || traced!(|x: &Tensor| x + ops::rand_like(x, None)?);
    let different = vmap(noisy())
        .randomness(Randomness::Different)
        .chunk_size(2);
    let y: Tensor = different.call(&x)?;
    assert_eq!(y.dims()?, [4, 3]);
    let same = vmap(noisy()).randomness(Randomness::Same).chunk_size(2);
    refused(same.call::<Value>(&x), &["rand_like"]);
    Ok(())
}

#[test]
fn jacobians_are_computed_some_rows_at_a_time() -> Result<()> {
    let x = numbers(&[5], 1)?;
    let f = || traced!(|x: &Tensor| x.sin()? * x.sum(..)?);
    let expected: Tensor = jacrev(f()).call(&x)?;
    for size in [1, 2, 5, 9] {
        close(&jacrev(f()).chunk_size(size).call::<Tensor>(&x)?, &expected)?;
        close(&jacfwd(f()).chunk_size(size).call::<Tensor>(&x)?, &expected)?;
    }
    let cubes = || traced!(|x: &Tensor| x.pow(3)?.sum(..));
    let expected: Tensor = hessian(cubes()).call(&x)?;
    close(
        &hessian(cubes()).chunk_size(2).call::<Tensor>(&x)?,
        &expected,
    )
}
