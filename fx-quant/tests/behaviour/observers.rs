//! Scales and zero points beside those of torch.ao.quantization.

use fx_nn::prelude::*;
use fx_quant::{Histogram, MinMax, MovingAverage, Observer, Percentile, Scheme, weight_range};

use super::draw::{Draw, golden};

fn group(case: usize) -> Result<Vec<Tensor>> {
    let mut draw = Draw::new(case as u64 + 1);
    let power = [1, 3, 5, 9][case % 4];
    let scale = [1.0, 0.01, 30.0, 1000.0, 5.0][case % 5];
    let shift = [0.0, 0.0, 1.5, -3.0][case / 4 % 4] * scale;
    let count = [64, 500, 3000][case % 3];
    (0..3)
        .map(|at| draw.tensor(&[4, count / 4], power, scale * (1 + at) as f64, shift))
        .collect()
}

#[test]
fn scales_and_zero_points_are_those_of_pytorch() -> Result<()> {
    let recorded = golden("observers.json");
    let lines = recorded.as_array().expect("a list");
    assert_eq!(lines.len(), 400);
    let mut nearest = 0;
    for line in lines {
        let case = line[0].as_u64().expect("a number") as usize;
        let scheme = match line[1].as_str() {
            Some("uint8") => Scheme::UINT8,
            Some("uint7") => Scheme::UINT7,
            _ => Scheme::INT8,
        };
        let name = line[2].as_str().expect("a name");
        let group = group(case)?;
        let ranges = match name {
            "per_channel" => weight_range(&group[0], Some(0))?,
            name => {
                let mut observer: Box<dyn Observer> = match name {
                    "min_max" => Box::new(MinMax::default()),
                    "moving_average" => Box::new(MovingAverage::default()),
                    _ => Box::new(Histogram::default()),
                };
                for tensor in &group {
                    observer.observe(tensor)?;
                }
                vec![observer.range(&scheme)?.expect("numbers were seen")]
            }
        };
        let scales = line[3].as_array().expect("scales");
        let zeros = line[4].as_array().expect("zero points");
        assert_eq!(scales.len(), ranges.len());
        for ((min, max), (scale, zero)) in ranges.into_iter().zip(scales.iter().zip(zeros)) {
            let params = scheme.params(min, max)?;
            let (scale, zero) = (
                scale.as_f64().expect("a scale"),
                zero.as_i64().expect("a zero point"),
            );
            let apart = ((params.scale - scale) / scale).abs();
            // A search over sums of floats depends on the order of the sums by an ulp.
            let allowed = if name == "histogram" { 2.4e-7 } else { 0.0 };
            assert!(apart <= allowed, "{line}: {params:?}");
            assert_eq!(params.zero_point, zero, "{line}: {params:?}");
            nearest += usize::from(apart == 0.0);
        }
    }
    println!("lines 400 equal scales {nearest}");
    Ok(())
}

#[test]
fn what_is_not_finite_is_refused_or_left_out() -> Result<()> {
    let of = |numbers: Vec<f32>| {
        let count = numbers.len();
        Tensor::from_vec(numbers, count)
    };
    let infinite = of(vec![1.0, f32::INFINITY, -2.0])?;
    let error = MinMax::default()
        .observe(&infinite)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`Histogram`"), "{error}");
    let mut histogram = Histogram::default();
    histogram.observe(&infinite)?;
    let (min, max) = histogram
        .range(&Scheme::UINT8)?
        .expect("two numbers were seen");
    assert!(min >= -2.0 && max <= 1.01, "{min} {max}");
    for mut observer in [
        Box::new(MinMax::default()) as Box<dyn Observer>,
        Box::new(MovingAverage::default()),
        Box::new(Histogram::default()),
        Box::new(Percentile::new(99.0)),
    ] {
        let error = observer
            .observe(&of(vec![1.0, f32::NAN])?)
            .unwrap_err()
            .to_string();
        assert!(error.contains("NaN"), "{error}");
        observer.observe(&of(Vec::new())?)?;
        assert_eq!(observer.range(&Scheme::UINT8)?, None);
    }
    assert!(Scheme::UINT8.params(f32::NAN, 1.0).is_err());
    assert!(Scheme::UINT8.params(1.0, -1.0).is_err());
    assert!(weight_range(&of(vec![f32::INFINITY])?, None).is_err());
    assert!(weight_range(&of(vec![1.0])?, Some(1)).is_err());
    Ok(())
}

#[test]
fn constant_values_have_a_scale() -> Result<()> {
    for number in [0.0f32, 0.5, -7.0] {
        for mut observer in [
            Box::new(MinMax::default()) as Box<dyn Observer>,
            Box::new(Histogram::default()),
            Box::new(Percentile::new(99.9)),
        ] {
            observer.observe(&Tensor::from_vec(vec![number; 10], 10)?)?;
            let (min, max) = observer.range(&Scheme::UINT8)?.expect("numbers were seen");
            let params = Scheme::UINT8.params(min, max)?;
            let x = Tensor::from_vec(vec![number], 1)?;
            let q =
                ops::quantize_affine(&x, params.scale, params.zero_point, 0, 255, DType::U8, None)?;
            let back = ops::dequantize_affine(&q, params.scale, params.zero_point, None)?.item()?;
            assert!(
                (back - f64::from(number)).abs() <= params.scale,
                "{number} {back} {params:?}"
            );
        }
    }
    Ok(())
}
