//! Tracing of what needs a tensor library: matrix products, slices, sizes of parameters, layers.

use fx_core::ir::Graph;
use fx_core::prelude::*;
use fx_core::trace::Frozen;
use fx_nn::prelude::*;

fn names(graph: &Graph) -> Vec<String> {
    graph.nodes().map(|n| n.name().to_string()).collect()
}

#[track_caller]
fn same(gm: &GraphModule, eager: &Tensor, args: impl fx_core::trace::IntoArgs) -> Result<()> {
    gm.graph().lint()?;
    let traced: Tensor = gm.forward(args)?;
    assert_eq!(traced.dims()?, eager.dims()?);
    assert_eq!(traced.to_vec()?, eager.to_vec()?);
    Ok(())
}

#[test]
fn a_matrix_product_with_a_constant_on_either_side() -> Result<()> {
    let constant = Tensor::rand((3, 3))?;
    let (left, right) = (constant.clone(), constant.clone());
    let f = traced!(move |x: &Tensor| x.matmul(&right));
    let g = traced!(move |x: &Tensor| left.matmul(x));
    let x = Tensor::rand((3, 3))?;
    same(&symbolic_trace(f)?, &x.matmul(&constant)?, &x)?;
    same(&symbolic_trace(g)?, &constant.matmul(&x)?, &x)
}

#[derive(Module)]
struct Buffered {
    #[module(buffer)]
    table: Tensor,
}

#[trace]
impl Buffered {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.table.i(..x.size(0)?)
    }
}

#[test]
fn a_buffer_is_sliced_by_a_traced_size() -> Result<()> {
    let root = Buffered {
        table: Tensor::rand((10, 3))?,
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        names(gm.graph()),
        ["x", "size", "table", "getitem", "output"]
    );
    for n in [2, 7] {
        let x = Tensor::ones(n)?;
        same(&gm, &root.forward(&x)?, &x)?;
    }
    Ok(())
}

#[test]
fn a_sequential_is_traced_through() -> Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Linear::new(4, 8)?)
        .push(nn::ReLU::new())
        .push(nn::Linear::new(8, 2)?);
    let gm = symbolic_trace(&model)?;
    assert_eq!(names(gm.graph()), ["x", "_0", "_1", "_2", "output"]);
    let x = Tensor::rand((3, 4))?;
    same(&gm, &model.forward(&x)?, &x)
}

/// What of the parameter decides.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Size,
    Dim,
    Ndim,
    Numel,
    Shape,
}

#[derive(Module)]
struct ByShape {
    param: Tensor,
    #[module(skip)]
    asks: Asks,
}

#[trace]
impl ByShape {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let known = match self.asks {
            Asks::Size => self.param.size(0)?,
            Asks::Dim => self.param.dim()?,
            Asks::Ndim => self.param.ndim()?,
            Asks::Numel => self.param.numel()?,
            Asks::Shape => self.param.shape()?.get(0)?,
        };
        // A plain number: the shape of a parameter is known while tracing.
        match known.concrete() {
            Some(n) if n < 4 => x * &self.param,
            Some(_) => x.relu(),
            None => Err(Error::msg("a parameter's shape is known")),
        }
    }
}

/// The branch that the parameter's shape takes is the one in the graph, whatever of it is asked, and the report says so.
#[test]
fn what_is_asked_of_a_parameters_shape_decides_while_tracing() -> Result<()> {
    for asks in [Asks::Size, Asks::Dim, Asks::Ndim, Asks::Numel, Asks::Shape] {
        for (shape, branch) in [(vec![2], "mul"), (vec![4, 1, 1, 1], "relu")] {
            let root = ByShape {
                param: Tensor::rand(shape.clone())?.into_parameter()?,
                asks,
            };
            let outcome = Trace::new(&root).run()?;
            assert!(
                outcome.graph.find_name(branch).is_some(),
                "{asks:?}: {}",
                outcome.graph
            );
            let read = Frozen::Shape {
                tensor: "param".into(),
                shape,
            };
            let mut entries = outcome.report.entries().iter();
            assert!(entries.any(|e| e.what == read), "{asks:?}");
        }
    }
    Ok(())
}
