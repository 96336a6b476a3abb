//! One call made many times: `calls NAME COUNT`, for a counter of instructions. Without arguments it lists the names.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;

use fx_nn::models::resnet::resnet18;
use fx_nn::ops;
use fx_nn::prelude::*;

type Call = Box<dyn Fn() -> Result<()>>;

/// Operands of few elements, so that what a call costs beside its arithmetic shows.
struct Operands {
    x: Tensor,
    y: Tensor,
    index: Tensor,
    image: Tensor,
}

/// What makes the call that is repeated.
type Make = fn(Operands) -> Result<Call>;

/// What runs a call and drops its result.
fn call<T>(run: impl Fn() -> Result<T> + 'static) -> Result<Call> {
    Ok(Box::new(move || {
        run().map(|result| drop(black_box(result)))
    }))
}

/// `x` with 1 added so many times.
fn added(x: &Tensor, times: usize) -> Result<Tensor> {
    let mut h = x.clone();
    for _ in 0..times {
        h = (h + 1.0)?;
    }
    Ok(h)
}

const CALLS: [(&str, Make); 20] = [
    ("eager/add", |o| call(move || &o.x + &o.y)),
    ("eager/mul_number", |o| call(move || &o.x * 2.0)),
    ("eager/relu", |o| call(move || ops::relu(&o.x))),
    ("eager/exp", |o| call(move || o.x.exp())),
    ("eager/softmax", |o| call(move || ops::softmax(&o.x, -1))),
    ("eager/matmul", |o| call(move || o.x.matmul(&o.y))),
    ("eager/linear", |o| {
        call(move || ops::linear(&o.x, &o.y, None))
    }),
    ("eager/conv2d", |o| {
        let layer = nn::Conv2d::new(2, 2, 3)?;
        call(move || layer.forward(&o.image))
    }),
    ("eager/layer_norm", |o| {
        let layer = nn::LayerNorm::new(4)?;
        call(move || layer.forward(&o.x))
    }),
    ("eager/sum", |o| call(move || o.x.sum(-1))),
    ("eager/reshape", |o| call(move || o.x.reshape([2, 8]))),
    ("eager/transpose", |o| call(move || o.x.transpose(0, 1))),
    ("eager/narrow", |o| call(move || o.x.narrow(0, 1, 2))),
    ("eager/cat", |o| call(move || ops::cat(&[&o.x, &o.y], 0))),
    ("eager/index_select", |o| {
        call(move || o.x.index_select(0, &o.index))
    }),
    ("eager/to_dtype", |o| call(move || o.x.to_dtype(DType::F64))),
    ("eager/shape", |o| call(move || Ok(o.x.shape()))),
    ("trace/chain", |_| {
        call(|| Trace::new(traced!(|x: &Tensor| added(x, 1000))).graph())
    }),
    ("trace/resnet18", |_| {
        let mut model = resnet18(10)?;
        model.eval();
        call(move || Trace::new(&model).graph())
    }),
    ("run/chain", |o| {
        let gm = symbolic_trace(traced!(|x: &Tensor| added(x, 100)))?;
        call(move || gm.forward::<Tensor>(&o.x))
    }),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let (Some(name), Some(count)) = (arguments.next(), arguments.next()) else {
        CALLS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let count: usize = count.parse().map_err(Error::other)?;
    let found = CALLS.iter().find(|(known, _)| *known == name);
    let (_, make) = found.ok_or_else(|| Error::msg(format!("no call is named {name}")))?;
    let numbers = (0..16).map(|i| i as f32 / 8.0 - 1.0).collect::<Vec<_>>();
    let x = Tensor::from_vec(numbers, (4, 4))?;
    let call = make(Operands {
        y: x.clone(),
        x,
        index: Tensor::from_vec(vec![2i64, 0, 3], 3)?,
        image: Tensor::ones((1, 2, 4, 4))?,
    })?;
    (0..count).try_for_each(|_| call())
}
