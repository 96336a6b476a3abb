//! Defects once found in sizes, each by its number: none may come back.

use fx_nn::ir::Graph;
use fx_nn::prelude::*;
use fx_nn::{Shape, Tensor};

/// Views without elements whose offset would be past their storage.
fn empty_views() -> Result<Vec<Tensor>> {
    Ok(vec![
        Tensor::zeros((0, 5))?.i((.., 1..3))?,
        Tensor::ones((2, 5))?.i((6..7, 1..3))?,
        Tensor::ones((2, 5))?.i((6..7, every(3).of(1..)))?,
        Tensor::zeros((0, 6))?.chunk(3, 1)?.get(1)?,
        Tensor::zeros((0, 4))?.split(2, 1)?.get(1)?,
        Tensor::zeros((0, 4))?
            .split_with_sizes(vec![1, 3], 1)?
            .get(1)?,
        Tensor::zeros((3, 0, 2))?.unbind(0)?.get(2)?,
        Tensor::ones((4, 1))?.i((3.., ..))?.expand((0, 1, 2))?,
        Tensor::from(
            Tensor::ones((2, 5))?
                .candle()?
                .narrow(1, 5, 0)
                .map_err(Error::other)?,
        ),
    ])
}

#[test]
fn defect_r06_views_of_empty_tensors_work_everywhere() -> Result<()> {
    for x in empty_views()? {
        let shape = x.dims()?.to_vec();
        assert!(shape.contains(&0));
        let _ = format!("{x} {x:?}");
        assert_eq!(x.sum(..)?.to_vec()?, [0.0]);
        assert!(x.mean(..)?.item()?.is_nan());
        assert_eq!(x.sum(0)?.dims()?, &shape[1..]);
        assert_eq!(x.reshape(0)?.dims()?, [0]);
        assert_eq!(x.contiguous()?.dims()?, shape);
        assert_eq!((&x + 1.0)?.exp()?.dims()?, shape);
        assert_eq!(ops::cat(&[x.clone(), x.clone()], 0)?.sum(..)?.item()?, 0.0);
        assert!(x.to_vec()?.is_empty());
        let whole = x.to_dtype(DType::I64)?;
        assert!(ops::one_hot(&whole, 3)?.to_vec()?.is_empty());
        assert!(
            ops::embedding(&whole, &Tensor::ones((2, 4))?, None)?
                .to_vec()?
                .is_empty()
        );
        let gm = symbolic_trace(traced!(move |y: &Tensor| ops::cat(
            &[y.clone(), x.clone()],
            0
        )));
        let gm = gm?;
        let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
        assert!(
            loaded
                .forward::<Tensor>(&Tensor::zeros(shape)?)?
                .to_vec()?
                .is_empty()
        );
    }
    // As many pieces as requested, as in PyTorch.
    assert_eq!(Tensor::zeros((3, 0))?.chunk(2, 1)?.known().len(), 2);
    Ok(())
}

#[track_caller]
fn no_room<T>(what: &str, result: Result<T>) {
    assert!(result.is_err(), "{what} was made");
}

#[test]
fn defect_r09_sizes_that_do_not_fit_are_errors() -> Result<()> {
    const MOST: usize = usize::MAX;
    let one = |n: i64| Tensor::from_vec(vec![n], 1);
    for n in [i64::MAX, 1 << 59, 1 << 50] {
        no_room("one_hot", ops::one_hot(&one(n)?, -1));
    }
    no_room("one_hot", ops::one_hot(&one(0)?, i64::MAX));
    for shape in [
        [1i64 << 62, 4],
        [1 << 61, 1],
        [1 << 45, 1],
        [1 << 40, 1 << 40],
    ] {
        no_room("zeros", ops::zeros(shape, None));
        no_room("ones", ops::ones(shape, None));
        no_room("rand", ops::rand(shape, None));
        no_room("randn", ops::randn(shape, None));
        let shape = Shape(shape.iter().map(|n| *n as usize).collect());
        no_room("full", Tensor::full(shape, 1, DType::I64));
    }
    no_room("zeros", ops::zeros((0, 1i64 << 40, 1i64 << 40), None));
    no_room(
        "from_vec",
        Tensor::from_vec(Vec::<f32>::new(), (0, 1 << 40, 1 << 40)),
    );
    no_room("arange", ops::arange(i64::MIN, i64::MAX, 1, None));
    assert_eq!(
        ops::arange(i64::MIN, i64::MAX, i64::MAX, None)?.dims()?,
        [3]
    );
    assert_eq!(
        ops::arange(i64::MAX, i64::MIN, i64::MIN, None)?.dims()?,
        [2]
    );

    let x = Tensor::ones((1, 1, 4, 4))?;
    let sequence = Tensor::ones((2, 1, 3))?;
    let lstm = |layers| {
        ops::lstm(
            &sequence,
            None,
            None,
            &[] as &[Tensor],
            false,
            layers,
            0.0,
            false,
            false,
            false,
        )
    };
    no_room("lstm", lstm(1 << 63));
    no_room("lstm", lstm(1 << 62));
    for n in [MOST, 1 << 63, 1 << 62, 1 << 61, 1 << 40] {
        no_room("conv2d", ops::conv2d(&x, &x, None, 1, n, 1, 1));
        no_room("conv2d", ops::conv2d(&x, &x, None, 1, 0, n, 1));
        no_room("conv1d", ops::conv1d(&x.i(0)?, &x.i(0)?, None, 1, n, 1, 1));
        no_room(
            "conv_transpose2d",
            ops::conv_transpose2d(&x, &x, None, 1, n, 0, 1, 1),
        );
        no_room(
            "conv_transpose2d",
            ops::conv_transpose2d(&x, &x, None, n, 0, 0, 1, 1),
        );
        no_room(
            "conv_transpose2d",
            ops::conv_transpose2d(&x, &x, None, 1, 0, 0, 1, n),
        );
        no_room("adaptive_avg_pool2d", ops::adaptive_avg_pool2d(&x, n));
        no_room("max_pool2d", ops::max_pool2d(&x, n, 1, 0, 1, false));
        no_room("max_pool2d", ops::max_pool2d(&x, n, 1, n / 2, 1, true));
        no_room("max_pool2d", ops::max_pool2d(&x, 2, 1, 0, n, false));
        no_room("avg_pool2d", ops::avg_pool2d(&x, n, 1, n / 2, false, true));
        no_room("Linear", nn::Linear::new(n, 2));
        no_room("LSTM", nn::LSTM::new(1, n / 2));
        no_room("LSTM", nn::LSTM::new(n, 1));
        no_room("LSTM", nn::LSTM::new(1, 1)?.num_layers(n));
        no_room("Embedding", nn::Embedding::new(n, 2));
        no_room("LayerNorm", nn::LayerNorm::new(n));
        no_room("BatchNorm2d", nn::BatchNorm2d::new(n));
        no_room("MultiheadAttention", nn::MultiheadAttention::new(n, 1));
        no_room("Conv2d", nn::Conv2d::new(n, 1, n));
        no_room("Conv1d", nn::Conv1d::new(1, n, n));
        let size = Some([n as i64, n as i64].into());
        no_room(
            "interpolate",
            ops::interpolate(&x, size, None, "nearest", None),
        );
    }
    for factor in [f64::INFINITY, f64::NAN, 1e300, 1e12] {
        for mode in ["nearest", "bilinear"] {
            no_room(
                "interpolate",
                ops::interpolate(&x, None, factor, mode, None),
            );
        }
    }
    Ok(())
}

#[test]
fn defect_r09_small_tensors_do_not_become_more_than_there_is_room_for() -> Result<()> {
    let one = Tensor::ones(1)?;
    no_room("expand", one.expand((1i64 << 40, 1i64 << 40)));
    no_room("expand", one.expand((1i64 << 40, 1i64 << 20)));
    no_room("expand", one.expand((0, 1i64 << 40, 1i64 << 40)));
    no_room(
        "reshape",
        Tensor::zeros(0)?.reshape((1i64 << 40, 1i64 << 40, 0)),
    );
    let long = Tensor::ones((1 << 20, 1))?;
    no_room("+", &long + long.t()?);
    no_room("==", long.eq(&long.t()?));
    no_room("matmul", long.matmul(&long.t()?));
    no_room(
        "einsum",
        ops::einsum("ab,cd->ac", &[long.clone(), long.clone()]),
    );
    let ids = Tensor::full(1 << 20, 0, DType::I64)?;
    no_room("embedding", ops::embedding(&ids, &long.t()?, None));
    no_room("index_select", long.t()?.index_select(0, &ids));
    Ok(())
}

#[test]
fn defect_r09_a_loaded_convolution_of_absurd_padding_is_an_error_when_it_runs() -> Result<()> {
    let mut layer = nn::Conv2d::new(1, 1, 3)?;
    layer.padding = (1usize << 60).into();
    let gm = symbolic_trace(&layer)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let result = loaded.forward::<Tensor>(&Tensor::ones((1, 1, 4, 4))?);
    assert!(result.is_err());
    Ok(())
}

/// Runs on a stack of 2 MB, which is what a thread has.
fn on_a_small_stack(work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let running = thread.spawn_scoped(scope, work).map_err(Error::other)?;
        running.join().expect("the thread does not panic")
    })
}

#[test]
fn defect_r12_long_chains_under_a_gradient_are_dropped() -> Result<()> {
    on_a_small_stack(|| {
        let w = Tensor::ones(2)?.into_parameter()?;
        let mut y = w.clone();
        for _ in 0..1_000_000 {
            y = (&y + 1.0)?;
        }
        drop(y);
        // Two results per step, from which the next ones are made.
        let (mut a, mut b) = (w.clone(), w.clone());
        for _ in 0..100_000 {
            (a, b) = ((&a + &b)?.tanh()?, b.sigmoid()?.neg()?.reshape(2)?);
        }
        drop((a, b));
        // A chain within one call.
        let layer = nn::LSTM::new(1, 1)?;
        let (y, _) = layer.forward(&Tensor::ones((30_000, 1, 1))?, None)?;
        assert!(y.candle()?.track_op());
        drop(y);
        Ok(())
    })
}

#[test]
fn defect_r12_a_traced_run_of_a_long_chain_is_dropped() -> Result<()> {
    on_a_small_stack(|| {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let mut y = x;
        for _ in 0..100_000 {
            y = graph.call_function(fx_core::operator::add, (y, 1.0), ())?;
        }
        graph.output(y)?;
        let gm = GraphModule::new(fx_core::module::Attributes::default(), graph, "Chain")?;
        let w = Tensor::ones(2)?.into_parameter()?;
        let y: Tensor = gm.forward(&w)?;
        assert_eq!(y.to_vec()?, [100_001.0; 2]);
        Ok(())
    })
}

#[test]
fn defect_r12_the_backward_pass_of_a_long_chain_works() -> Result<()> {
    on_a_small_stack(|| {
        let w = Tensor::ones(2)?.into_parameter()?;
        let mut y = w.clone();
        for _ in 0..200_000 {
            y = (&y * 1.0)?;
        }
        let gradients = y.sum(..)?.backward()?;
        let of_w = gradients.get(&w)?;
        assert_eq!(of_w.expect("a gradient").to_vec()?, [1.0, 1.0]);
        Ok(())
    })
}

#[test]
fn wrong_counts_and_labels_are_named_in_plain_words() -> Result<()> {
    let few = Tensor::from_vec(vec![1.0f32; 5], (2, 3)).expect_err("five are too few");
    assert_eq!(
        few.to_string(),
        "from_vec: shape [2, 3] has 6 elements, and 5 are given"
    );
    let a = Tensor::ones((2, 3))?;
    let label = ops::einsum("ij->ik", &[&a]).expect_err("no operand has `k`");
    assert!(
        label.to_string().contains("`ij->ik` has `k` in its result"),
        "{label}"
    );
    let sizes = ops::einsum("ij,ij->i", &[&a, &Tensor::ones((2, 4))?]).expect_err("`j` differs");
    assert!(
        sizes
            .to_string()
            .contains("`j` of `ij,ij->i`: 3 and 4 differ"),
        "{sizes}"
    );
    Ok(())
}
