//! PyTorch's semantics on tensors: promotion, broadcasting, negative dims, truth values, and refusals.

use fx_nn::prelude::*;
use fx_nn::value::DType;
use fx_nn::weights;
use indexmap::IndexMap;

fn floats(data: &[f32]) -> Result<Tensor> {
    Tensor::from_vec(data.to_vec(), data.len())
}

fn ints(data: &[i64]) -> Result<Tensor> {
    Tensor::from_vec(data.to_vec(), data.len())
}

#[track_caller]
fn is(x: &Tensor, dtype: DType, data: &[f64]) -> Result<()> {
    assert_eq!((x.dtype()?, x.to_vec()?.as_slice()), (dtype, data));
    Ok(())
}

fn says<T>(result: Result<T>, part: &str) {
    let text = result.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(text.contains(part), "`{part}` is not in `{text}`");
}

#[test]
fn operands_are_promoted_as_pytorch_promotes_them() -> Result<()> {
    let (f, i) = (floats(&[1.5, -2.0])?, ints(&[3, 4])?);
    let b = f.gt(0.0)?;
    is(&b, DType::Bool, &[1.0, 0.0])?;
    is(&(&f + &i)?, DType::F32, &[4.5, 2.0])?;
    is(&(&b + &i)?, DType::I64, &[4.0, 4.0])?;
    is(&(&b * &f)?, DType::F32, &[1.5, 0.0])?;
    is(&(&i / 2)?, DType::F32, &[1.5, 2.0])?;
    is(&(&i * 0.5)?, DType::F32, &[1.5, 2.0])?;
    is(&(&i - 5)?, DType::I64, &[-2.0, -1.0])?;
    is(&(&b + 1)?, DType::I64, &[2.0, 1.0])?;
    is(&(2.0 * &f)?, DType::F32, &[3.0, -4.0])?;
    is(&(1 - &f)?, DType::F32, &[-0.5, 3.0])?;
    is(&(&f % 1.0)?, DType::F32, &[0.5, 0.0])?;
    is(&(!&b)?, DType::Bool, &[0.0, 1.0])?;
    is(&(&b & &b)?, DType::Bool, &[1.0, 0.0])?;
    is(&b.sum(..)?, DType::I64, &[1.0])?;
    is(&f.maximum(&b)?, DType::F32, &[1.5, 0.0])?;
    is(&i.sigmoid()?.gt(0.9)?, DType::Bool, &[1.0, 1.0])?;
    Ok(())
}

#[test]
fn narrow_integers_wrap_around() -> Result<()> {
    let bytes = Tensor::from_vec(vec![1u8, 5], 2)?;
    is(&(&bytes - 3)?, DType::U8, &[254.0, 2.0])?;
    is(&(&bytes + 255)?, DType::U8, &[0.0, 4.0])?;
    is(&bytes.gt(2)?, DType::Bool, &[0.0, 1.0])
}

#[test]
fn integers_are_clamped_to_integers_or_become_floats() -> Result<()> {
    let x = ints(&[1, 5, -3])?;
    is(&x.clamp(0, 2)?, DType::I64, &[1.0, 2.0, 0.0])?;
    is(&x.clamp(0.0, 2.0)?, DType::F32, &[1.0, 2.0, 0.0])?;
    is(&x.clamp(0.5, 2.5)?, DType::F32, &[1.0, 2.5, 0.5])
}

#[test]
fn shapes_broadcast_and_dims_count_from_the_end() -> Result<()> {
    let column = Tensor::from_vec(vec![1.0f32, 2.0], (2, 1))?;
    let row = Tensor::from_vec(vec![10.0f32, 20.0, 30.0], (1, 3))?;
    let sum = (&column + &row)?;
    assert_eq!(sum.dims()?, [2, 3]);
    is(&sum.sum(-1)?, DType::F32, &[63.0, 66.0])?;
    is(&sum.sum_keepdim(0)?, DType::F32, &[23.0, 43.0, 63.0])?;
    is(&sum.sum([0, 1])?, DType::F32, &[129.0])?;
    is(&sum.sum(..)?, DType::F32, &[129.0])?;
    assert_eq!(sum.flatten(0, -1)?.dims()?, [6]);
    let (values, indices) = sum.max(-1, false)?;
    is(&values, DType::F32, &[31.0, 32.0])?;
    is(&indices, DType::I64, &[2.0, 2.0])?;
    let stacked = ops::stack(&[column.clone(), column.clone()], -1)?;
    assert_eq!(stacked.dims()?, [2, 1, 2]);
    is(
        &ops::cat(&[floats(&[1.0])?, ints(&[2])?], 0)?,
        DType::F32,
        &[1.0, 2.0],
    )
}

#[test]
fn what_does_not_fit_is_refused_with_the_rule() -> Result<()> {
    let x = Tensor::ones((2, 3))?;
    says(&x + Tensor::ones(4)?, "[2, 3] and [4] do not broadcast");
    says(x.sum(2), "dim");
    says(x.sum([0, -2]), "more than once");
    says(x.gt(0.0)?.relu(), "bool");
    says(ops::cat(&[] as &[Tensor], 0), "empty");
    says(x.matmul(&x), "matmul");
    says(x.item(), "has 6 elements");
    says(nn::Dropout::new(1.5), "probability");
    Ok(())
}

#[test]
fn batch_norm_refuses_what_it_cannot_normalise() -> Result<()> {
    let layer = nn::BatchNorm2d::new(3)?;
    says(
        layer.forward(&Tensor::ones((1, 3, 1, 1))?),
        "more than one value per channel",
    );
    says(layer.forward(&Tensor::ones((4, 3))?), "4 dims");
    says(layer.forward(&Tensor::ones((2, 2, 4, 4))?), "and not [2]");
    let mean = layer
        .running_mean
        .as_ref()
        .map(Tensor::to_vec)
        .transpose()?;
    assert_eq!(
        mean,
        Some(vec![0.0; 3]),
        "a refused input changes no statistics"
    );
    layer.forward(&Tensor::rand((2, 3, 4, 4))?)?;
    let count = layer
        .num_batches_tracked
        .as_ref()
        .map(Tensor::item)
        .transpose()?;
    assert_eq!(count, Some(1.0));
    Ok(())
}

#[test]
fn batch_norm_of_rows_and_vectors() -> Result<()> {
    let mut layer = nn::BatchNorm1d::new(2)?;
    says(layer.forward(&Tensor::ones((1, 2))?), "more than one value");
    says(layer.forward(&Tensor::ones((4, 2, 3, 3))?), "2 or 3 dims");
    says(layer.forward(&Tensor::ones(2)?), "2 or 3 dims");
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 6.0], (2, 2))?;
    layer.eps = 0.0;
    is(&layer.forward(&x)?, DType::F32, &[-1.0, -1.0, 1.0, 1.0])?;
    // Means 2 and 4, unbiased variances 2 and 8, each a tenth of the way.
    let held = |t: &Option<Tensor>| t.as_ref().map(Tensor::to_vec).transpose();
    let near = |t: &Option<Tensor>, expected: [f64; 2]| -> Result<()> {
        let found = held(t)?.unwrap_or_default();
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-6),
            "{found:?}"
        );
        Ok(())
    };
    near(&layer.running_mean, [0.2, 0.4])?;
    near(&layer.running_var, [1.1, 1.7])?;
    assert_eq!(held(&layer.num_batches_tracked)?, Some(vec![1.0]));
    // A row is many values of a channel.
    let rows = Tensor::from_vec(vec![1.0f32, 3.0, 2.0, 6.0], (1, 2, 2))?;
    is(&layer.forward(&rows)?, DType::F32, &[-1.0, 1.0, -1.0, 1.0])?;
    layer.eval();
    let y = layer.forward(&Tensor::zeros((3, 2))?)?;
    assert_eq!(y.dims()?, [3, 2]);
    Ok(())
}

#[test]
fn half_precision_is_normalised_by_statistics_in_single() -> Result<()> {
    let mut layer = nn::BatchNorm1d::new(2)?;
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 6.0], (2, 2))?;
    for training in [true, false] {
        layer.training = training;
        let y = layer.forward(&x.to_dtype(DType::BF16)?)?;
        let expected = layer.forward(&x)?.to_vec()?;
        assert_eq!(y.dtype()?, DType::BF16);
        // The statistics that are kept move between the runs.
        for (found, expected) in y.to_vec()?.iter().zip(expected) {
            assert!((found - expected).abs() < 0.05 * expected.abs().max(1.0));
        }
    }
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Scale {
    scale: Tensor,
    #[module(buffer)]
    shift: Tensor,
    layers: Vec<Box<dyn Module>>,
}

#[trace]
impl Scale {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = ((x * &self.scale)? + &self.shift)?;
        for layer in &self.layers {
            x = layer.forward(&x)?;
        }
        Ok(x)
    }
}

#[test]
fn weights_loaded_after_tracing_are_seen_by_the_traced_module() -> Result<()> {
    let mut module = Scale {
        scale: Tensor::ones(1)?,
        shift: Tensor::zeros(())?,
        layers: vec![Box::new(nn::ReLU::new())],
    };
    let traced = symbolic_trace(&module)?;
    let state = IndexMap::from([
        ("scale".to_string(), Tensor::full(1, 3.0, DType::F32)?),
        ("shift".to_string(), Tensor::full((), 0.5, DType::F32)?),
    ]);
    weights::load_state_dict(&mut module, &state)?;
    let x = floats(&[1.0, -2.0])?;
    assert_eq!(module.forward(&x)?.to_vec()?, [3.5, 0.0]);
    assert_eq!(traced.forward::<Tensor>(&x)?.to_vec()?, [3.5, 0.0]);
    Ok(())
}

#[trace]
fn asks_for_dims(x: &Tensor) -> Result<Tensor> {
    let y = x.relu()?;
    if y.dims()?.len() > 1 { y.sum(0) } else { Ok(y) }
}

#[test]
fn an_escape_names_the_line_that_asked() {
    let error = symbolic_trace(traced!(asks_for_dims)).unwrap_err();
    let line = error.location().map(|l| l.line);
    let text = error.to_string();
    assert!(text.contains("`dims`") && text.contains("%relu"), "{text}");
    let asked = include_str!("semantics.rs")
        .lines()
        .position(|l| l.contains("y.dims()?.len()"));
    assert_eq!(line.map(|l| l as usize), asked.map(|at| at + 1), "{text}");
}

#[test]
fn where_refuses_a_number_that_the_type_does_not_hold() -> Result<()> {
    let mask = Tensor::zeros((2, 1))?.ne(0)?;
    let x = Tensor::full((1, 3), 4, DType::I16)?;
    for pair in [
        ops::r#where(&mask, -2147483649i64, &x),
        ops::r#where(&mask, &x, -2147483649i64),
    ] {
        let error = pair.unwrap_err().to_string();
        assert!(
            error.contains("-2147483649 is beyond what a tensor of int16 holds"),
            "{error}"
        );
    }
    assert_eq!(ops::r#where(&mask, -7, &x)?.dtype()?, DType::I16);
    let half = x.to_dtype(DType::F16)?;
    assert_eq!(
        ops::r#where(&mask, &half, 70_000)?.to_vec()?[3],
        f64::INFINITY
    );
    Ok(())
}

#[test]
fn the_rank_of_a_quantile_is_not_rounded() -> Result<()> {
    let x = ops::arange(0, 11, 1, Some(DType::F32))?;
    // 0.1 as float32 is above 0.1, so that its rank among 11 is above 1.
    for (q, higher) in [(0.1, 2.0), (0.4, 5.0), (0.5, 5.0), (0.7, 7.0)] {
        let found = ops::quantile(&x, q, None, false, "higher")?;
        assert_eq!(found.item()?, higher, "{q}");
    }
    let x = Tensor::from_vec(vec![0f32, 0.0, 0.0, 0.0, 0.0, f32::INFINITY], 6)?;
    assert_eq!(
        ops::quantile(&x, 0.9, None, false, "linear")?.item()?,
        f64::INFINITY
    );
    Ok(())
}
