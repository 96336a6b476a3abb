//! Helpers of the kernels' tests: sample tensors and gradient checks by finite differences.

use candle_core::{DType, Device, Result, Tensor, Var};

/// All values of `x`, row by row, as `f64`.
pub fn f64s(x: &Tensor) -> Result<Vec<f64>> {
    x.to_dtype(DType::F64)?
        .contiguous()?
        .flatten_all()?
        .to_vec1::<f64>()
}

/// Distinct `f64` values in (-1, 1) in a scrambled order.
pub fn varied(dims: &[usize]) -> Result<Tensor> {
    let len: usize = dims.iter().product();
    let values: Vec<f64> = (0..len)
        .map(|i| ((i as f64 + 1.0) * 0.618_033_988_749).fract() * 2.0 - 1.0)
        .collect();
    Tensor::from_vec(values, dims, &Device::Cpu)
}

/// A strided tensor equal to `x`: its last two dimensions are stored swapped.
pub fn strided(x: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.rank() - 2, x.rank() - 1);
    x.transpose(a, b)?.contiguous()?.transpose(a, b)
}

/// Asserts that all values of `x` are within 1e-9 of `want`.
pub fn near(x: &Tensor, want: &[f64]) -> Result<()> {
    let got = f64s(x)?;
    assert_eq!(got.len(), want.len(), "{got:?} against {want:?}");
    for (g, w) in got.iter().zip(want) {
        assert!(g == w || (g - w).abs() < 1e-9, "{got:?} against {want:?}");
    }
    Ok(())
}

/// Asserts that candle's gradients of a weighted sum of `f` match central differences.
pub fn check(inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<()> {
    let loss = |v: &[Tensor]| -> Result<Tensor> {
        let y = f(v)?;
        (&y * varied(y.dims())?)?.sum_all()
    };
    let vars = inputs
        .iter()
        .map(Var::from_tensor)
        .collect::<Result<Vec<_>>>()?;
    let tracked: Vec<Tensor> = vars.iter().map(|v| v.as_tensor().clone()).collect();
    let grads = loss(&tracked)?.backward()?;
    for (at, var) in vars.iter().enumerate() {
        let got = f64s(grads.get(var).expect("a gradient"))?;
        let base = f64s(&inputs[at])?;
        for i in 0..base.len() {
            let side = |step: f64| -> Result<f64> {
                let mut moved = base.clone();
                moved[i] += step;
                let mut v = inputs.to_vec();
                v[at] = Tensor::from_vec(moved, inputs[at].dims(), &Device::Cpu)?;
                loss(&v)?.to_scalar::<f64>()
            };
            let want = (side(1e-5)? - side(-1e-5)?) / 2e-5;
            assert!(
                (got[i] - want).abs() < 1e-6 * (1.0 + want.abs()),
                "input {at}, value {i}: {} against {want}",
                got[i]
            );
        }
    }
    Ok(())
}
