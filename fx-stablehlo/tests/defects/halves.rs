//! Sums of halves in the text of a program.

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{Export, StableHloExt};

/// The sum of a window of large halves is beyond the largest half, where their mean is not.
#[test]
fn sums_of_halves_are_taken_in_float32() -> Result<()> {
    let modules = [
        symbolic_trace(traced!(|x: &Tensor| ops::avg_pool2d(
            x, 2, 2, 0, false, true
        )))?,
        symbolic_trace(traced!(|x: &Tensor| ops::adaptive_avg_pool2d(x, (3, 1))))?,
        symbolic_trace(traced!(|x: &Tensor| ops::adaptive_avg_pool2d(x, (4, 1))))?,
        symbolic_trace(traced!(|x: &Tensor| ops::lp_pool2d(x, 2.0, 2, 2, false)))?,
        symbolic_trace(traced!(|x: &Tensor| ops::local_response_norm(
            x, 3, 1e-4, 0.75, 1.0
        )))?,
        symbolic_trace(traced!(|x: &Tensor| x.mean((1, 2))))?,
        symbolic_trace(traced!(|x: &Tensor| x.sum(-1)))?,
        symbolic_trace(traced!(|x: &Tensor| x.prod(Some(-1), false)))?,
        symbolic_trace(traced!(|x: &Tensor| x.var(-1, true)))?,
        symbolic_trace(traced!(|x: &Tensor| x.logsumexp(-1, false)))?,
        symbolic_trace(traced!(|x: &Tensor| x.cumsum(-1)))?,
        symbolic_trace(traced!(|x: &Tensor| ops::einsum("abcd->a", &[x])))?,
    ];
    for (dtype, name) in [(DType::F16, "f16"), (DType::BF16, "bf16")] {
        let x = Tensor::ones((2, 3, 8, 8))?.to_dtype(dtype)?;
        for (at, gm) in modules.iter().enumerate() {
            let args = CallArgs {
                args: vec![Value::object(x.clone())],
                kwargs: Vec::new(),
            };
            let text = gm.to_stablehlo_text(&Export::example(args))?;
            let half = format!("tensor<{name}>");
            let sums = ["stablehlo.add", "stablehlo.multiply"];
            let is_half = |line: &&str| {
                sums.iter().any(|sum| line.contains(sum)) && line.ends_with(half.as_str())
            };
            assert_eq!(text.lines().find(is_half), None, "call {at}: {text}");
            assert!(text.contains("tensor<f32>"), "call {at}: {text}");
            // The result is of halves all the same.
            let results = text.lines().rfind(|line| line.contains("return"));
            let is_of_halves = results.is_some_and(|line| line.contains(&format!("x{name}>")));
            assert!(is_of_halves, "call {at}: {text}");
        }
    }
    Ok(())
}
