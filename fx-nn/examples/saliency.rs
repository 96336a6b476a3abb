//! What a classifier looks at: the gradient of a score by its input, and integrated gradients, whose sum is what the score
//! gained on the way from an empty image.
//!
//! `cargo run --release -p fx-nn --example saliency`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::func::{Transform, grad, vmap};
use fx_nn::models::resnet::resnet18;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

const SIZE: usize = 64;
const STEPS: usize = 32;
const CLASS: i64 = 7;

/// A classifier of one image, and the score of a class.
#[derive(Module)]
struct Score {
    net: fx_nn::models::resnet::ResNet,
}

#[trace]
impl Score {
    fn forward(&self, image: &Tensor) -> Result<Tensor> {
        self.net.forward(&image.unsqueeze(0)?)?.i((0, CLASS))
    }
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut net = resnet18(10)?;
    net.eval();
    let score = Score { net };
    let image = Tensor::rand((3, SIZE, SIZE))?;

    let slope = grad(&score);
    let saliency: Tensor = slope.call(&image)?;
    let saliency = saliency.abs()?.amax(0)?;
    let places = saliency
        .flatten(0, -1)?
        .topk(3, 0, true, true)?
        .1
        .to_vec()?;
    let places: Vec<(usize, usize)> = places
        .iter()
        .map(|at| (*at as usize / SIZE, *at as usize % SIZE))
        .collect();
    println!("the score changes most with the points {places:?}");

    // The mean of gradients between an empty image and this one, by the middle of each step; all in one run.
    let empty = Tensor::zeros((3, SIZE, SIZE))?;
    let shares: Vec<f32> = (0..STEPS)
        .map(|at| (at as f32 + 0.5) / STEPS as f32)
        .collect();
    let shares = Tensor::from_vec(shares, (STEPS, 1, 1, 1))?;
    let way = (&empty + ((&image - &empty)?.unsqueeze(0)? * shares)?)?;
    let slopes: Tensor = vmap(&slope).call(&way)?;
    let integrated = ((&image - &empty)? * slopes.mean(0)?)?;
    let (sum, gain) = (
        integrated.sum(..)?.item()?,
        (score.forward(&image)? - score.forward(&empty)?)?.item()?,
    );
    println!("integrated gradients add up to {sum:.4}; the score gained {gain:.4}");
    Ok(())
}
