//! The neural tangent kernel of a network: products of the gradients of two examples by all parameters, from Jacobians and
//! without them.
//!
//! `cargo run --release -p fx-nn --example neural_tangent_kernel`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::func::{Transform, functional_call, jacrev, jvp, vjp, vmap};
use fx_nn::prelude::*;
use fx_nn::{IndexMap, tree};

type Parameters = IndexMap<String, Tensor>;

const CLASSES: usize = 3;

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut net = nn::Sequential::new()
        .push(nn::Conv2d::new(1, 4, 3)?)
        .push(nn::ReLU::new())
        .push(nn::Flatten::new())
        .push(nn::Linear::new(4 * 6 * 6, CLASSES)?);
    nn::to_dtype(&mut net, DType::F64)?;
    let mut parameters = Parameters::new();
    for (path, value) in net.named_parameters() {
        parameters.insert(path, Tensor::from_value(value)?.detach()?);
    }
    let of_one = traced!(move |parameters: Parameters, x: &Tensor| {
        let scores: Tensor = functional_call(&net, &parameters, &x.unsqueeze(0)?)?;
        scores.squeeze(0)
    });
    let double = |shape: &[usize]| Tensor::randn(shape)?.to_dtype(DType::F64);
    let (a, b) = (double(&[4, 1, 8, 8])?, double(&[5, 1, 8, 8])?);

    // The Jacobians of all examples, then their products, parameter by parameter.
    let jacobians = vmap(&jacrev(of_one.clone())).in_axes(tree!((None, 0)));
    let (of_a, of_b): (Parameters, Parameters) = (
        jacobians.call((parameters.clone(), &a))?,
        jacobians.call((parameters.clone(), &b))?,
    );
    let mut kernel: Option<Tensor> = None;
    for (path, a) in &of_a {
        let (a, b) = (a.flatten(2, -1)?, of_b[path].flatten(2, -1)?);
        let own = ops::einsum("nap,mbp->nmab", &[a, b])?;
        kernel = Some(match kernel {
            Some(sum) => (sum + own)?,
            None => own,
        });
    }
    let kernel = kernel.ok_or_else(|| Error::msg("the network has no parameters"))?;

    // A column of the kernel is what the second example's change of a class does to the first: no Jacobian is there.
    let (pull, push) = (vjp(of_one.clone()).wrt(0), jvp(of_one));
    let of_pair = traced!(
        move |parameters: Parameters, a: &Tensor, b: &Tensor, class: &Tensor| {
            let (_, slope): (Tensor, Parameters) = pull.call((parameters.clone(), b, class))?;
            let still = a.zeros_like()?;
            let (_, change): (Tensor, Tensor) = push.call((parameters, a, (slope, still)))?;
            Ok(change)
        }
    );
    let classes = vmap(of_pair)
        .in_axes(tree!((None, None, None, 0)))
        .out_axes(1);
    let pairs = vmap(&vmap(&classes).in_axes(tree!((None, None, 0, None))))
        .in_axes(tree!((None, 0, None, None)));
    let eye = ops::eye(CLASSES as i64, None, Some(DType::F64))?;
    let same: Tensor = pairs.call((parameters, &a, &b, &eye))?;
    let difference = (&kernel - &same)?.abs()?.amax(..)?.item()?;
    println!(
        "kernel {:?}, by products alone it differs by {difference:.1e}",
        kernel.dims()?
    );
    Ok(())
}
