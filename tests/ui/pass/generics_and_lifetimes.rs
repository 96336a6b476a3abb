#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use fx_core::tensor::Traced;
use fx_core::trace::IntoArgs;
use fx_core::value::IntoValue;
use support::{Tensor, tensor};

#[trace]
fn pair<'a>(x: &'a Tensor, y: &'a Tensor) -> Result<Tensor> {
    x + y
}

#[trace]
fn longer<'a, 'b: 'a>(x: &'a Tensor, y: &'b Tensor) -> Result<Tensor>
where
    'b: 'a,
{
    x + y
}

#[trace]
fn repeated<const N: usize>(x: &Tensor) -> Result<Tensor> {
    if N > 1 { x * N } else { Ok(x.clone()) }
}

#[trace]
fn first<T>(x: &T) -> Result<T>
where
    T: Traced + IntoValue,
{
    Ok(x.clone())
}

#[wrap]
pub fn leaf<'a>(x: &'a Tensor, y: &'a Tensor) -> Result<Tensor> {
    x + y
}

#[wrap(method)]
pub fn leaf_method<'a, 'b>(x: &'a Tensor, y: &'b Tensor, #[kw] n: Option<i64>) -> Result<Tensor>
where
    'b: 'a,
{
    (x + y)? * n.unwrap_or(1)
}

#[wrap]
impl Tensor {
    pub fn plus<'a>(&self, y: &'a Tensor) -> Result<Tensor> {
        self + y
    }
}

#[derive(Module)]
struct Block<A, B>
where
    B: Module,
{
    first: A,
    second: Option<B>,
}

#[trace]
impl<A: Module, B: Module> Block<A, B> {
    fn forward<'a>(&self, x: &'a Tensor) -> Result<Tensor> {
        let y: Tensor = self.first.forward(x)?;
        match &self.second {
            Some(second) => second.forward(&y),
            None => Ok(y),
        }
    }
}

#[derive(Module)]
struct Tree<A> {
    value: A,
    children: Vec<Tree<A>>,
}

#[derive(Module)]
struct Scale<const N: usize>(Tag);

#[trace]
impl<const N: usize> Scale<N> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * N
    }
}

fn nodes<'r>(root: impl fx_core::trace::Root<'r>) -> usize {
    symbolic_trace(root)
        .expect("traces")
        .graph()
        .nodes()
        .count()
}

fn takes(_: impl IntoArgs) {}

fn main() {
    let (x, y) = (&tensor("x"), &tensor("y"));
    assert_eq!(pair(x, y).expect("runs").text, "add(x, y)");
    assert_eq!(leaf(x, y).expect("runs").text, "add(x, y)");
    assert_eq!(x.plus(y).expect("runs").text, "add(x, y)");
    assert_eq!(
        x.leaf_method(y, None).expect("runs").text,
        "mul(add(x, y), 1)"
    );
    assert_eq!(nodes(traced!(pair)), 4);
    assert_eq!(nodes(traced!(longer)), 4);
    assert_eq!(nodes(traced!(repeated::<2>)), 3);
    assert_eq!(nodes(traced!(first::<Tensor>)), 2);
    assert_eq!(
        nodes(traced!(|x: &Tensor, y: &Tensor| x.leaf_method(y, Some(2)))),
        4
    );
    let block = Block {
        first: Scale::<2>(Tag::default()),
        second: Some(Block {
            first: Scale::<3>(Tag::default()),
            second: None::<Scale<0>>,
        }),
    };
    assert_eq!(block.forward(x).expect("runs").text, "mul(mul(x, 2), 3)");
    assert_eq!(nodes(&block), 4);
    let tree = Tree {
        value: Scale::<1>(Tag::default()),
        children: vec![Tree {
            value: Scale::<1>(Tag::default()),
            children: vec![],
        }],
    };
    assert_eq!(tree.children.len(), 1);
    let _ = &tree.value;
    takes((x, y));
}
