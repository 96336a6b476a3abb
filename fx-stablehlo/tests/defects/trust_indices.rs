//! Indices and masks in the text of a program.

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{Export, StableHloExt};

/// The program of a graph module.
fn program(gm: &GraphModule, inputs: &[Tensor]) -> Result<String> {
    let args = CallArgs {
        args: inputs.iter().cloned().map(Value::object).collect(),
        kwargs: Vec::new(),
    };
    gm.to_stablehlo_text(&Export::example(args))
}

#[test]
fn defect_t3_e1_an_ellipsis_is_all_other_dims() -> Result<()> {
    let x = Tensor::arange(0, 16)?
        .to_dtype(DType::F32)?
        .reshape((4, 4))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| x.i((Ellipsis, -1))))?;
    let text = program(&gm, &[x])?;
    // The last column of every row.
    assert!(
        text.contains("start_indices = array<i64: 0, 3>, limit_indices = array<i64: 4, 4>"),
        "{text}"
    );
    assert!(text.contains("-> tensor<4xf32>"), "{text}");
    Ok(())
}

#[test]
fn defect_t3_e1_masked_scores_are_those_where_the_mask_holds() -> Result<()> {
    let scores = Tensor::ones((2, 2))?;
    let mask = Tensor::ones((2, 2))?.to_dtype(DType::Bool)?;
    let gm = symbolic_trace(traced!(|x: &Tensor, mask: &Tensor| ops::mask_scores(
        x, mask
    )))?;
    let text = program(&gm, &[scores, mask])?;
    let select = text
        .lines()
        .find(|line| line.contains("select"))
        .unwrap_or_default();
    let constant = text
        .lines()
        .find(|line| line.contains("0xFF800000"))
        .unwrap_or_default();
    let name = constant.split(' ').next().unwrap_or_default();
    // Minus infinity comes first: it is taken where the mask is true.
    assert!(
        !name.is_empty() && select.contains(&format!(", {name}, ")),
        "{text}"
    );
    Ok(())
}

/// A number is its one element, as in PyTorch.
#[test]
fn an_element_of_a_number_is_written() -> Result<()> {
    let index = Tensor::zeros(1)?.to_dtype(DType::I64)?;
    let gm = symbolic_trace(traced!(|x: &Tensor, at: &Tensor| {
        ops::index_select(x, 0, at)? * 2.0
    }))?;
    let text = program(&gm, &[Tensor::ones(())?, index])?;
    assert!(text.contains("-> (tensor<f32>"), "{text}");
    Ok(())
}

#[test]
fn defect_t3_e1_large_whole_numbers_are_written_exactly() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x + 9_007_199_254_740_993i64))?;
    let text = program(&gm, &[Tensor::arange(0, 2)?])?;
    assert!(text.contains("dense<9007199254740993>"), "{text}");
    Ok(())
}

/// The last dim of a complex tensor has the parts of its numbers, and is none of its own.
#[test]
fn a_shift_rolls_complex_numbers_and_not_their_parts() -> Result<()> {
    let x = Tensor::ones((5, 2))?;
    let head = "start_indices = array<i64: 2, 0>, limit_indices = array<i64: 5, 2>";
    let last = symbolic_trace(traced!(|x: &Tensor| ops::fft::ifftshift(x, -1)))?;
    let all = symbolic_trace(traced!(|x: &Tensor| ops::fft::ifftshift(x, ..)))?;
    for gm in [last, all] {
        let text = program(&gm, std::slice::from_ref(&x))?;
        assert!(text.contains(head), "{text}");
        assert_eq!(text.matches("stablehlo.concatenate").count(), 1, "{text}");
    }
    Ok(())
}

/// A number has the dim 0 and the dim -1, along which it is alone.
#[test]
fn a_number_is_reduced_along_its_only_dim() -> Result<()> {
    let number = Tensor::ones(())?;
    let product = symbolic_trace(traced!(|x: &Tensor| ops::prod(x, Some(-1), false)))?;
    let text = program(&product, std::slice::from_ref(&number))?;
    assert!(!text.contains("dimensions = array<i64: 0>"), "{text}");
    let sums = symbolic_trace(traced!(|x: &Tensor| ops::logcumsumexp(x, 0)))?;
    let text = program(&sums, &[number])?;
    assert!(!text.contains("reduce_window"), "{text}");
    Ok(())
}

#[test]
fn any_of_bytes_is_a_byte() -> Result<()> {
    let bytes = Tensor::ones(3)?.to_dtype(DType::U8)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::any(x, .., false)))?;
    let text = program(&gm, &[bytes])?;
    assert!(text.contains("-> tensor<ui8>"), "{text}");
    Ok(())
}
