//! `GramNorms`: norms of the gradients of each example, without the gradients.

use fx_nn::func::{Transform, grad, vmap};
use fx_nn::passes::GramNorms;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::trace::TracedFn;

const EXAMPLES: usize = 16;

/// The norm of the gradient of each example by the first argument; the other two are the example.
fn norms(loss: TracedFn, inputs: &[Tensor]) -> Result<GraphModule> {
    let slope = grad(loss);
    let norm = traced!(move |w: &Tensor, x: &Tensor, y: &Tensor| {
        let slope: Tensor = slope.call((w, x, y))?;
        slope.square()?.sum(..)?.sqrt()
    });
    let each = vmap(norm).in_axes([None, Some(0), Some(0)]);
    let specs: Vec<Spec> = inputs.iter().map(Spec::of).collect();
    each.graph_module(&specs)
}

/// Whether a tensor has so many elements.
fn has(gm: &GraphModule, count: usize) -> bool {
    gm.graph().nodes().any(|node| {
        let meta = node.meta::<fx_nn::ir::ValueMeta>();
        meta.and_then(|meta| meta.tensor()?.numel()) == Some(count)
    })
}

fn double(shape: &[usize]) -> Result<Tensor> {
    Tensor::randn(shape)?.to_dtype(DType::F64)
}

/// The pass changes the graph, and not its numbers.
fn check(loss: TracedFn, inputs: &[Tensor], is_changed: bool) -> Result<()> {
    let mut gm = norms(loss, inputs)?;
    let run = |gm: &GraphModule| -> Result<Vec<f64>> {
        gm.forward::<Tensor>((&inputs[0], &inputs[1], &inputs[2]))?
            .to_vec()
    };
    let before = run(&gm)?;
    let whole = EXAMPLES * inputs[0].dims()?.iter().product::<usize>();
    assert!(has(&gm, whole));
    assert_eq!(gm.apply(&GramNorms)?.changed, is_changed);
    assert_eq!(has(&gm, whole), !is_changed);
    gm.lint()?;
    for (a, b) in run(&gm)?.iter().zip(&before) {
        assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
    }
    assert!(!gm.apply(&GramNorms)?.changed);
    Ok(())
}

#[test]
fn of_a_layer_they_are_products_of_norms() -> Result<()> {
    let loss = traced!(|w: &Tensor, x: &Tensor, y: &Tensor| {
        ops::mse_loss(&ops::linear(x, w, None)?.tanh()?, y, "mean")
    });
    let inputs = [
        double(&[30, 20])?,
        double(&[EXAMPLES, 20])?,
        double(&[EXAMPLES, 30])?,
    ];
    check(loss, &inputs, true)
}

#[test]
fn of_texts_they_are_of_gram_matrices() -> Result<()> {
    let loss = || {
        traced!(|w: &Tensor, x: &Tensor, y: &Tensor| {
            ops::mse_loss(&ops::linear(x, w, None)?.tanh()?, y, "mean")
        })
    };
    let inputs = |places: usize| -> Result<[Tensor; 3]> {
        Ok([
            double(&[30, 20])?,
            double(&[EXAMPLES, places, 20])?,
            double(&[EXAMPLES, places, 30])?,
        ])
    };
    check(loss(), &inputs(5)?, true)?;
    // With many places the gradients are smaller.
    check(loss(), &inputs(40)?, false)
}

#[test]
fn a_weight_that_is_used_twice_counts_once() -> Result<()> {
    let loss = traced!(|w: &Tensor, x: &Tensor, y: &Tensor| {
        let h = ops::linear(x, w, None)?.sin()?;
        ops::mse_loss(&ops::linear(&h, w, None)?, y, "mean")
    });
    let inputs = [
        double(&[25, 25])?,
        double(&[EXAMPLES, 3, 25])?,
        double(&[EXAMPLES, 3, 25])?,
    ];
    check(loss, &inputs, true)
}

#[test]
fn a_gradient_that_is_read_stays() -> Result<()> {
    let slope = grad(traced!(|w: &Tensor, x: &Tensor| ops::linear(x, w, None)?
        .sin()?
        .sum(..)));
    let both = traced!(move |w: &Tensor, x: &Tensor| {
        let slope: Tensor = slope.call((w, x))?;
        Ok((slope.square()?.sum(..)?, slope))
    });
    let each = vmap(both).in_axes([None, Some(0)]);
    let mut gm = each.graph_module(&[spec![9, 8; F64], spec![EXAMPLES, 8; F64]])?;
    assert!(!gm.apply(&GramNorms)?.changed);
    Ok(())
}

#[test]
fn of_convolutions_they_are_of_windows() -> Result<()> {
    let loss = |stride: usize| {
        traced!(move |w: &Tensor, x: &Tensor, y: &Tensor| {
            let found = ops::conv2d(&x.unsqueeze(0)?, w, None, stride, 1, 1, 1)?;
            (found.tanh()? * y)?.sum(..)
        })
    };
    // The last windows of the second do not reach the edge.
    for (stride, places) in [(2, 3), (3, 2)] {
        let inputs = [
            double(&[12, 5, 3, 3])?,
            double(&[EXAMPLES, 5, 6, 6])?,
            double(&[EXAMPLES, places, places])?,
        ];
        check(loss(stride), &inputs, true)?;
    }
    // With many places the gradients are smaller.
    let inputs = [
        double(&[3, 1, 3, 3])?,
        double(&[EXAMPLES, 1, 6, 6])?,
        double(&[EXAMPLES, 6, 6])?,
    ];
    check(loss(1), &inputs, false)
}

#[test]
fn of_tables_rows_at_equal_indices_count() -> Result<()> {
    let indices = |dims: &[usize]| {
        let count: usize = dims.iter().product();
        let all = (0..count).map(|at| (at * 7 % 11) as i64);
        Tensor::from_vec(all.collect::<Vec<_>>(), dims)
    };
    let own = traced!(|w: &Tensor, x: &Tensor, y: &Tensor| {
        (ops::embedding(x, w, None)?.tanh()? * y)?.sum(..)
    });
    let table = double(&[40, 6])?;
    let y = double(&[EXAMPLES, 8, 6])?;
    check(
        own,
        &[table.clone(), indices(&[EXAMPLES, 8])?, y.clone()],
        true,
    )?;
    // The same for all examples.
    let shared = indices(&[8])?;
    let of_all = traced!(move |w: &Tensor, x: &Tensor, y: &Tensor| {
        let rows = (ops::embedding(&shared, w, None)? * x)?;
        (rows.tanh()? * y)?.sum(..)
    });
    check(of_all, &[table, y.sin()?, y], true)
}
