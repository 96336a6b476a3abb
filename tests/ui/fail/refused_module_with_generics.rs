#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer<T: Clone, const N: usize>
where
    T: Send,
{
    #[module(bufer)]
    pub mean: [T; N],
    #[module(skip, flatten)]
    pub rest: Vec<T>,
}

#[trace(leaff)]
impl<T: Clone + Send + Sync + 'static, const N: usize> Layer<T, N> {
    pub async fn forward(&self, #[default(N)] x: &Tensor, (y, z): (Tensor, Tensor)) -> Result<Tensor> {
        if N > 2 { x + y } else { x + z }
    }
}

#[derive(Module)]
pub struct Net {
    pub layer: Layer<Tensor, 3>,
    #[module(name = "a.b")]
    pub other: std::time::Instant,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &mut Tensor, y: &Tensor) -> Result<Tensor> {
        assert!(y > 0.5);
        &*x + y
    }
}

#[wrap]
pub fn layer_of(layer: &Layer<Tensor, 3>, x: &Tensor) -> Result<Tensor> {
    let _ = layer;
    Ok(x.clone())
}

pub fn graphs(layer: &Layer<Tensor, 3>, net: &Net) -> Result<[GraphModule; 2]> {
    Ok([symbolic_trace(layer)?, symbolic_trace(net)?])
}

fn main() {}
