//! `MergeMatmul`: which products become one, and which stay.

use fx_nn::passes::MergeMatmul;
use fx_nn::prelude::*;

use crate::passes::is_close;

/// How many products a graph has after the pass, with the numbers that it had before.
fn products(gm: &mut GraphModule, inputs: (Tensor, Tensor, Tensor)) -> Result<usize> {
    let expected: Tensor = gm.forward(inputs.clone())?;
    gm.propagate_shapes(inputs.clone())?;
    gm.apply(&MergeMatmul)?;
    gm.graph().lint()?;
    is_close(&gm.forward(inputs)?, &expected, 1e-5)?;
    assert!(!gm.apply(&MergeMatmul)?.changed);
    let nodes = gm.graph().nodes();
    Ok(nodes
        .filter(|node| node.target().ends_with("matmul"))
        .count())
}

fn square() -> Result<(Tensor, Tensor, Tensor)> {
    Ok((
        Tensor::rand((4, 4))?,
        Tensor::rand((3, 4))?,
        Tensor::rand((4, 4))?,
    ))
}

#[test]
fn products_with_one_right_side_are_one() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, w: &Tensor| {
        let first = a.matmul(w)?.relu()?;
        // Needed by the second product, and written behind the first.
        let c = (b * 2.0)?.tanh()?;
        let second = ops::matmul(&c, w)?;
        let third = ops::matmul(b, w)?;
        ops::cat(&[first, second, third], 0)
    }))?;
    assert_eq!(products(&mut gm, square()?)?, 1);
    Ok(())
}

#[test]
fn products_that_need_each_other_stay_apart() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, w: &Tensor| {
        let hidden = a.matmul(w)?.tanh()?;
        let again = hidden.matmul(w)?;
        ops::cat(&[again, b.matmul(w)?], 0)
    }))?;
    // `a @ w` and `b @ w` are merged, `hidden @ w` is not.
    assert_eq!(products(&mut gm, square()?)?, 2);
    Ok(())
}

/// Two pairs, each independent, of which both merged would need each other.
#[test]
fn pairs_that_cross_are_not_both_merged() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, w: &Tensor| {
        let v = (w * 0.5)?;
        let (a1, b2) = (a.matmul(w)?, b.matmul(&v)?);
        let (b1, a2) = (a1.matmul(&v)?, b2.matmul(w)?);
        ops::cat(&[b1, a2], 0)
    }))?;
    assert_eq!(products(&mut gm, square()?)?, 4);
    Ok(())
}

#[test]
fn what_is_not_known_to_be_a_matrix_stays() -> Result<()> {
    let f =
        || traced!(|a: &Tensor, b: &Tensor, w: &Tensor| ops::cat(&[a.matmul(w)?, b.matmul(w)?], 0));
    assert!(!symbolic_trace(f())?.apply(&MergeMatmul)?.changed);
    let batches = (
        Tensor::rand((1, 4, 4))?,
        Tensor::rand((2, 4, 4))?,
        Tensor::rand((4, 4))?,
    );
    assert_eq!(products(&mut symbolic_trace(f())?, batches)?, 2);
    assert_eq!(products(&mut symbolic_trace(f())?, square()?)?, 1);
    Ok(())
}

#[test]
fn random_numbers_keep_their_order() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor, w: &Tensor| {
        let first = ops::dropout(&a.matmul(w)?, 0.5, true)?;
        let second = ops::dropout(b, 0.5, true)?.matmul(w)?;
        ops::cat(&[first, second], 0)
    }))?;
    gm.propagate_shapes(square()?)?;
    assert!(!gm.apply(&MergeMatmul)?.changed);
    Ok(())
}
