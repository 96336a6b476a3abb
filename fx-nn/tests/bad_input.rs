//! Wrong ranks, dims, sizes, types, and nothing at all: each an error that names the operation, the shapes and the rule.

use fx_nn::prelude::*;

fn ones(shape: &[usize]) -> Result<Tensor> {
    Tensor::ones(shape)
}

fn ints(values: &[i64]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), values.len())
}

/// Asserts that the error of `result` contains all of `words`.
#[track_caller]
fn says<T>(result: Result<T>, words: &[&str]) {
    let text = match result {
        Err(error) => error.to_string(),
        Ok(_) => String::from("no error"),
    };
    for word in words {
        assert!(text.contains(word), "`{word}` is not in `{text}`");
    }
}

#[test]
fn wrong_ranks() -> Result<()> {
    let x = ones(&[2, 3])?;
    says(ops::conv2d(&x, &x, None, 1, 0, 1, 1), &["conv2d", "[2, 3]"]);
    says(
        ops::conv1d(&x, &x, None, 1, 0, 1, 1),
        &["conv1d", "[2, 3]", "2 dims, and not 3"],
    );
    says(
        ops::conv_transpose2d(&x, &x, None, 1, 0, 0, 1, 1),
        &["conv_transpose2d", "[2, 3]"],
    );
    says(
        ops::max_pool2d(&x, 2, 2, 0, 1, false),
        &["max_pool2d", "[2, 3]"],
    );
    says(
        ops::interpolate(&x, None, 2.0, "nearest", None),
        &["interpolate", "[2, 3]"],
    );
    says(x.i(0)?.tril(0), &["tril", "[3]", "2 at least"]);
    says(
        ops::embedding(&ints(&[0])?, &x.i(0)?, None),
        &["embedding", "[3]", "two dims"],
    );
    says(
        ops::group_norm(&x.i(0)?, 1, None, None, 1e-5),
        &["group_norm", "[3]"],
    );
    says(
        ops::scaled_dot_product_attention(&x.i(0)?, &x, &x, None, 0.0, false, None, false),
        &["scaled_dot_product_attention", "[3]", "2 at least"],
    );
    let lstm = nn::LSTM::new(3, 4)?;
    says(
        lstm.forward(&ones(&[2])?, None),
        &["lstm", "[2]", "[L, N, in]"],
    );
    says(x.unsqueeze(0)?.t(), &["calling `t`", "[1, 2, 3]"]);
    says(
        ops::cross_entropy(&ones(&[])?, &ints(&[0])?, None, -100, "mean", 0.0),
        &["cross_entropy", "[]"],
    );
    Ok(())
}

#[test]
fn dims_out_of_range() -> Result<()> {
    let x = ones(&[2, 3])?;
    let range = ["out of range", "[-2, 1]"];
    says(x.sum(2), &range);
    says(x.mean(-3), &range);
    says(ops::softmax(&x, 2), &range);
    says(x.cumsum(2), &range);
    says(x.unbind(5), &range);
    says(x.gather(2, &ints(&[0])?), &range);
    says(x.index_select(-3, &ints(&[0])?), &range);
    says(x.argmax(2, false), &range);
    says(x.var(4, true), &range);
    says(x.transpose(0, 2), &range);
    says(x.size(2), &range);
    says(x.permute((0, 0)), &["permute", "more than once"]);
    says(x.permute([0]), &["permute", "[2, 3]"]);
    says(x.i((0, 0, 0)), &["[2, 3]"]);
    says(x.i((0, 3)), &["3"]);
    Ok(())
}

#[test]
fn sizes_that_do_not_fit() -> Result<()> {
    let (x, y) = (ones(&[2, 3])?, ones(&[4])?);
    let both = ["[2, 3]", "[4]"];
    says(&x + &y, &both);
    says(ops::r#where(&x.gt(0.0)?, &x, &y), &both);
    says(x.masked_fill(&y.gt(0.0)?, 0.0), &both);
    says(ops::mse_loss(&x, &y, "mean"), &both);
    says(ops::cosine_similarity(&x, &y, 1, 1e-8), &both);
    says(ops::matmul(&x, &x), &["matmul", "do not fit", "3 and 2"]);
    says(
        ops::einsum("ij,jk->ik", &[x.clone(), x.clone()]),
        &["einsum", "`j`", "3 and 2"],
    );
    says(
        ops::layer_norm(&x, 2, None, None, 1e-5),
        &["layer_norm", "[2, 3]", "[2]"],
    );
    says(
        nn::Linear::new(4, 2)?.forward(&x),
        &["linear", "[2, 3]", "[2, 4]"],
    );
    says(x.reshape((4, -1)), &["reshape", "[2, 3]", "6 elements"]);
    says(x.expand((2, 4)), &["expand", "[2, 3]"]);
    says(
        x.split_with_sizes(vec![1, 1], 1),
        &["split_with_sizes", "do not add up"],
    );
    says(
        ops::cat(&[x.clone(), y.clone()], 0),
        &["cat", "[2, 3]", "[4]"],
    );
    says(
        ops::scaled_dot_product_attention(&x, &ones(&[5, 4])?, &x, None, 0.0, false, None, false),
        &["scaled_dot_product_attention", "[2, 3]", "[5, 4]"],
    );
    says(
        ops::cross_entropy(&x, &ints(&[0])?, None, -100, "mean", 0.0),
        &["cross_entropy", "[1]", "[2]"],
    );
    says(
        nn::MultiheadAttention::new(6, 4),
        &["4 heads do not divide", "6"],
    );
    says(nn::GroupNorm::new(4, 6), &["4 groups do not divide 6"]);
    Ok(())
}

#[test]
fn types_and_values_that_an_operation_does_not_take() -> Result<()> {
    let (x, n) = (ones(&[2, 3])?, ints(&[1, 2])?);
    says(ops::gelu(&n, "none"), &["gelu", "floating point"]);
    says(ops::gelu(&x, "fast"), &["gelu", "\"none\"", "\"fast\""]);
    says(ops::relu6(&x.gt(0.0)?), &["relu6", "bool"]);
    says(n.mean(..), &["mean", "floating point"]);
    says(n.std(.., true), &["std", "floating point"]);
    says(ops::softmax(&n, 0), &["softmax", "floating point"]);
    says(
        ops::layer_norm(&n, 2, None, None, 1e-5),
        &["layer_norm", "floating point"],
    );
    says(ops::embedding(&x, &x, None), &["embedding", "integers"]);
    says(
        ops::embedding(&ints(&[2])?, &x, None),
        &["embedding", "index 2", "there are 2"],
    );
    says(x.gather(0, &x), &["gather", "integers"]);
    says(ops::one_hot(&x, 3), &["one_hot", "integers"]);
    says(ops::one_hot(&n, 2), &["one_hot", "index 2", "there are 2"]);
    says(ops::one_hot(&n, -2), &["one_hot", "-2"]);
    says(
        x.masked_fill(&x, 0.0),
        &["masked_fill", "booleans", "compare first"],
    );
    says(ops::r#where(&n, &x, &x), &["where", "booleans"]);
    says(
        n.masked_fill(&n.gt(1)?, 1e30),
        &["masked_fill", "1e30", "int64"],
    );
    says(
        ops::cross_entropy(&x, &ints(&[0, 3])?, None, -100, "mean", 0.0),
        &["target 3", "3 classes"],
    );
    says(
        ops::mse_loss(&x, &x, "average"),
        &["mse_loss", "\"mean\"", "\"average\""],
    );
    says(ops::dropout(&x, 1.5, true), &["dropout", "[0, 1]", "1.5"]);
    says(ops::arange(0, 5, 0, None), &["arange", "steps of 0"]);
    says(ops::arange(5, 0, 1, None), &["arange", "from 5 to 0"]);
    says(
        ops::interpolate(&ones(&[1, 1, 2, 2])?, None, 2.0, "cubic", None),
        &["interpolate", "\"cubic\""],
    );
    says(
        ops::interpolate(&ones(&[1, 1, 2, 2])?, None, None, "nearest", None),
        &["size and scale_factor"],
    );
    says(
        ops::interpolate(&ones(&[1, 1, 2, 2])?, None, -1.0, "nearest", None),
        &["-1"],
    );
    says(
        nn::to_dtype(&mut nn::ReLU::new(), DType::I64),
        &["to_dtype", "int64"],
    );
    says(
        ops::einsum("ij->k", &[x]),
        &["einsum", "which no operand has"],
    );
    Ok(())
}

#[test]
fn tensors_of_nothing() -> Result<()> {
    let empty = ones(&[0, 3])?;
    for (name, result) in [
        ("relu", empty.relu()),
        ("gelu", ops::gelu(&empty, "none")),
        ("softmax", ops::softmax(&empty, -1)),
        ("softmax of no columns", ops::softmax(&ones(&[0, 3])?, 0)),
        ("layer_norm", ops::layer_norm(&empty, 3, None, None, 1e-5)),
        ("leaky_relu", ops::leaky_relu(&empty, 0.1)),
        ("where", ops::r#where(&empty.gt(0.0)?, &empty, &empty)),
        ("masked_fill", empty.masked_fill(&empty.gt(0.0)?, 1.0)),
        ("tril", empty.tril(0)),
        ("cumsum", empty.cumsum(0)),
        ("add", &empty + 1.0),
        ("contiguous", empty.contiguous()),
    ] {
        let dims = result.map_err(|e| Error::msg(format_args!("{name}: {e}")))?;
        assert_eq!(dims.dims()?, [0, 3], "{name}");
    }
    assert_eq!(nn::Linear::new(3, 2)?.forward(&empty)?.dims()?, [0, 2]);
    assert_eq!(ops::matmul(&empty.t()?, &empty)?.to_vec()?, vec![0.0; 9]);
    assert_eq!(empty.sum(..)?.item()?, 0.0);
    assert_eq!(
        ops::cat(&[empty.clone(), ones(&[2, 3])?], 0)?.dims()?,
        [2, 3]
    );
    assert_eq!(empty.unbind(0)?.known_len(), Some(0));
    says(empty.amax(..), &["max"]);
    says(empty.argmax(0, false), &["0"]);
    says(empty.item(), &["item", "0 elements"]);
    let images = ones(&[0, 2, 4, 4])?;
    let conv = nn::Conv2d::new(2, 3, 3)?;
    assert_eq!(conv.forward(&images)?.dims()?, [0, 3, 2, 2]);
    assert_eq!(
        ops::interpolate(&images, None, 2.0, "nearest", None)?.dims()?,
        [0, 2, 8, 8]
    );
    says(
        ops::interpolate(&ones(&[1, 2, 0, 4])?, None, 2.0, "nearest", None),
        &["interpolate", "at least one pixel"],
    );
    let lstm = nn::LSTM::new(3, 4)?;
    says(
        lstm.forward(&ones(&[0, 2, 3])?, None),
        &["lstm", "no time steps"],
    );
    Ok(())
}

/// A number has no slices, as in PyTorch; without `dim` it is its one element.
#[test]
fn a_number_has_no_slices_to_tell_apart() -> Result<()> {
    let number = Tensor::ones(())?;
    says(
        ops::unique(&number, true, false, false, 0),
        &["unique", "no dim 0", "take no `dim`"],
    );
    says(
        ops::unique_consecutive(&number, false, false, -1),
        &["unique_consecutive", "no dim -1"],
    );
    let (values, ..) = ops::unique(&number, true, false, false, None)?;
    assert_eq!(values.to_vec()?, [1.0]);
    Ok(())
}

/// A number is a slice of a vector or of a number; slices are added to what has as many dims.
#[test]
fn a_source_has_a_slice_for_each_index() -> Result<()> {
    let (number, one, two) = (Tensor::ones(())?, ones(&[1])?, ones(&[1, 1])?);
    let index = Tensor::zeros(())?.to_dtype(DType::I64)?;
    for (x, source) in [(&number, &one), (&number, &two), (&one, &number)] {
        let given = ops::index_add(x, 0, &index, source, 1);
        says(given, &["index_add", "source"]);
    }
    says(
        ops::index_copy(&number, 0, &index, &two),
        &["index_copy", "source"],
    );
    assert_eq!(
        ops::index_add(&number, 0, &index, &number, 1)?.to_vec()?,
        [2.0]
    );
    for (x, source) in [(&number, &one), (&number, &number), (&one, &number)] {
        assert_eq!(ops::index_copy(x, 0, &index, source)?.to_vec()?, [1.0]);
    }
    Ok(())
}

/// Asserts that a function of a tensor is refused, and by the rule of shapes before it is run.
#[track_caller]
fn is_refused<F>(function: F, x: &Tensor, words: &[&str])
where
    F: Fn(&Tensor) -> Result<Tensor> + Clone + 'static,
{
    says(function(x), words);
    let inferred = symbolic_trace(traced!(move |x: &Tensor| function(x)))
        .and_then(|mut gm| gm.infer_shapes(&[fx_nn::shapes::Spec::of(x)]).map(|_| ()));
    says(inferred, &words[..1]);
}

#[test]
fn other_counts_of_dims_are_refused_as_pytorch_refuses_them() -> Result<()> {
    let (one, row, number) = (ones(&[1])?, ones(&[1, 4])?, ones(&[])?);
    let beside = one.clone();
    is_refused(
        move |x| ops::diff(x, 1, -1, Some(&beside), None),
        &row,
        &["diff", "[1]"],
    );
    is_refused(
        |x| ops::repeat_interleave(x, 2, 0),
        &number,
        &["repeat_interleave", "a number"],
    );
    let (mean, target) = (ones(&[2, 3])?, ones(&[2, 3])?);
    is_refused(
        move |var| ops::gaussian_nll_loss(&mean, &target, var, false, 1e-6, "mean"),
        &ones(&[2, 1, 1])?,
        &["gaussian_nll_loss", "[2, 1, 1]"],
    );
    let logs = ones(&[2, 1, 4])?;
    let label = Tensor::full((), 1, DType::I64)?;
    is_refused(
        move |x| ops::ctc_loss(x, &label, [2usize], [1usize], 0, "sum", false),
        &logs,
        &["ctc_loss", "one dim or two"],
    );
    let right = ones(&[2, 2])?;
    is_refused(
        move |x| ops::linalg::lstsq(x, &right, None, None).map(|(solution, ..)| solution),
        &ones(&[2, 3, 2])?,
        &["lstsq"],
    );
    is_refused(
        |x| ops::max_pool2d(x, 2, 2, 0, 1, false),
        &ones(&[2, 0, 4, 4])?,
        &["max_pool2d", "channels"],
    );
    let pooled = ops::adaptive_max_pool2d(&ones(&[0, 4, 4])?, 2)?;
    assert_eq!(pooled.dims()?, [0, 2, 2]);
    Ok(())
}
