//! Sampling of images, and alignments of sequences, by functions that are differentiated.

use fx_core::value::{DType, Int, IntoValue, Value};
use fx_core::{Error, Result, function};

use super::minus;
use crate::func::{Derivative, known};
use crate::ops;
use crate::tensor::{Dims, Tensor};

fx_core::function_table! { Derivative {
    function!(ops::grid_sample) => Derivative::Composite(|call| {
        let (x, grid): (Tensor, Tensor) = (call.arg("x")?, call.arg("grid")?);
        let (mode, outside): (String, String) = (call.arg("mode")?, call.arg("padding_mode")?);
        let edges = Edges { outside: &outside, corners: call.arg("align_corners")? };
        sampled(&x, &grid, &mode, edges).map(IntoValue::into_value)
    }),
    function!(ops::ctc_loss) => Derivative::Composite(|call| {
        let (logs, targets): (Tensor, Tensor) = (call.arg("log_probs")?, call.arg("targets")?);
        let lengths = |name: &str| -> Result<Vec<usize>> {
            let lengths = known::ints(call.arg::<Value>(name)?)?;
            let known = lengths.iter().map(|n| usize::try_from(known::number(n)?).ok());
            known.collect::<Option<_>>().ok_or_else(|| Error::msg("the derivative of `ctc_loss` needs lengths that are numbers"))
        };
        let alignment = Alignment {
            inputs: lengths("input_lengths")?,
            targets: lengths("target_lengths")?,
            blank: call.arg("blank")?,
        };
        let (reduction, skips): (String, bool) = (call.arg("reduction")?, call.arg("zero_infinity")?);
        alignment.loss(&logs, &targets, &reduction, skips).map(IntoValue::into_value)
    }),
} }

/// What stands for places outside of an image.
#[derive(Clone, Copy)]
struct Edges<'e> {
    outside: &'e str,
    corners: bool,
}

impl Edges<'_> {
    /// Places moved into an image.
    fn inside(self, place: &Tensor, size: usize) -> Result<Tensor> {
        let last = size as f64 - 1.0;
        match self.outside {
            "border" => bounded(place, last),
            "reflection" => {
                let (low, span) = match self.corners {
                    true => (0.0, last),
                    false => (-0.5, size as f64),
                };
                if span == 0.0 {
                    return ops::zeros_like(place, None);
                }
                let distance = (place - low)?.abs()?;
                let flips = ops::detach(&ops::floor(&(&distance / span)?)?)?;
                let rest = (distance - (&flips * span)?)?;
                let is_even = (&flips - (ops::floor(&(&flips / 2.0)?)? * 2.0)?)?.eq(0)?;
                let mirrored = ops::r#where(&is_even, &(&rest + low)?, &(span + low - &rest)?)?;
                bounded(&mirrored, last)
            }
            _ => Ok(place.clone()),
        }
    }
}

/// Places from 0 to the last; NaN is 0.
fn bounded(place: &Tensor, last: f64) -> Result<Tensor> {
    let place = ops::r#where(&ops::isnan(place)?, 0, place)?;
    ops::clamp(&place, 0.0, last)
}

/// What is read along a dim: places, and their weights, if they are not 1.
type Reads = Vec<(Tensor, Option<Tensor>)>;

fn reads(place: &Tensor, size: usize, mode: &str, edges: Edges<'_>) -> Result<Reads> {
    /// The curve through the pixels, as PyTorch has it.
    const SHARP: f64 = -0.75;
    let near = |way: &Tensor| {
        let inner = ((way * (SHARP + 2.0))? - (SHARP + 3.0))?;
        ((inner * way)? * way)? + 1.0
    };
    let far = |way: &Tensor| {
        let way = (way + 1.0)?;
        let inner = ((&way * SHARP)? - 5.0 * SHARP)?;
        let inner = ((inner * &way)? + 8.0 * SHARP)?;
        (inner * way)? - 4.0 * SHARP
    };
    match mode {
        "nearest" => {
            let place = edges.inside(place, size)?;
            Ok(vec![(ops::round(&place, 0)?, None)])
        }
        "bicubic" => {
            let low = ops::detach(&ops::floor(place)?)?;
            let way = (place - &low)?;
            let back = (1.0 - &way)?;
            let weights = [far(&way)?, near(&way)?, near(&back)?, far(&back)?];
            let each = weights.into_iter().enumerate().map(|(at, weight)| {
                Ok((
                    edges.inside(&(&low + (at as f64 - 1.0))?, size)?,
                    Some(weight),
                ))
            });
            each.collect()
        }
        _ => {
            let place = edges.inside(place, size)?;
            let low = ops::detach(&ops::floor(&place)?)?;
            let high = (&low + 1.0)?;
            let (nearer, farther) = ((&high - &place)?, (&place - &low)?);
            Ok(vec![(low, Some(nearer)), (high, Some(farther))])
        }
    }
}

fn sampled(x: &Tensor, grid: &Tensor, mode: &str, edges: Edges<'_>) -> Result<Tensor> {
    let name = "the derivative of `grid_sample`";
    let (image, over) = (known::shape(x, name)?, known::shape(grid, name)?);
    let (sizes, dims) = (&image[2..], image.len() - 2);
    let (n, channels) = (image[0] as i64, image[1] as i64);
    let points: usize = over[1..=dims].iter().product();
    let mut shape = vec![n, channels];
    shape.extend(over[1..=dims].iter().map(|size| *size as i64));
    if shape.contains(&0) {
        return ops::zeros(shape, Some(known::dtype(x)?));
    }
    let grid = ops::reshape(grid, vec![n, points as i64, dims as i64])?;
    let each = sizes.iter().enumerate().map(|(at, size)| {
        let unit = ops::select(&grid, 2, (dims - 1 - at) as i64)?;
        let half = *size as f64 / 2.0;
        let place = match edges.corners {
            true => ((&unit + 1.0)? * ((*size as f64 - 1.0) / 2.0))?,
            false => ((&unit * half)? + (half - 0.5))?,
        };
        reads(&place, *size, mode, edges)
    });
    let each = each.collect::<Result<Vec<Reads>>>()?;
    let flat = ops::reshape(x, vec![n, channels, -1])?;
    let count: usize = each.iter().map(Vec::len).product();
    let mut sum: Option<Tensor> = None;
    for mut number in 0..count {
        let mut index: Option<Tensor> = None;
        let mut is_inside: Option<Tensor> = None;
        let mut weight: Option<Tensor> = None;
        let mut chosen = Vec::with_capacity(dims);
        for reads in each.iter().rev() {
            chosen.push(&reads[number % reads.len()]);
            number /= reads.len();
        }
        for ((place, share), size) in chosen.into_iter().rev().zip(sizes) {
            let place = ops::detach(place)?;
            let fits = ops::logical_and(&place.ge(0)?, &place.lt(*size as f64)?)?;
            let whole = ops::to_dtype(&ops::r#where(&fits, &place, 0)?, DType::I64)?;
            is_inside = Some(match is_inside {
                Some(before) => ops::logical_and(&before, &fits)?,
                None => fits,
            });
            index = Some(match index {
                Some(before) => ((before * *size as i64)? + whole)?,
                None => whole,
            });
            weight = match (weight, share) {
                (Some(weight), Some(share)) => Some((weight * share)?),
                (weight, share) => weight.or_else(|| share.clone()),
            };
        }
        let (Some(index), Some(is_inside)) = (index, is_inside) else {
            return Err(Error::msg("an image has dims"));
        };
        let index = ops::expand(
            &ops::unsqueeze(&index, 1)?,
            vec![n, channels, points as i64],
        )?;
        let pixel = ops::gather(&flat, 2, &index)?;
        let mut part = ops::r#where(&ops::unsqueeze(&is_inside, 1)?, &pixel, 0)?;
        if let Some(weight) = weight {
            part = (part * ops::unsqueeze(&weight, 1)?)?;
        }
        sum = Some(match sum {
            Some(sum) => (sum + part)?,
            None => part,
        });
    }
    let sum = sum.ok_or_else(|| Error::msg("there are no pixels around a point"))?;
    ops::reshape(&sum, shape)
}

/// How sequences of classes are aligned with steps.
struct Alignment {
    inputs: Vec<usize>,
    targets: Vec<usize>,
    blank: i64,
}

impl Alignment {
    fn loss(
        &self,
        logs: &Tensor,
        targets: &Tensor,
        reduction: &str,
        skips: bool,
    ) -> Result<Tensor> {
        let is_single = known::rank(logs)? == 2;
        let logs = if is_single {
            ops::unsqueeze(logs, 1)?
        } else {
            logs.clone()
        };
        let steps = known::shape(&logs, "the derivative of `ctc_loss`")?[0];
        let samples = self.inputs.len();
        let losses = (0..samples).map(|sample| {
            let own = ops::select(&logs, 1, sample as i64)?;
            self.sample(
                &own,
                &self.classes(targets, sample, is_single)?,
                (sample, steps),
                skips,
            )
        });
        let mut losses = ops::stack(&losses.collect::<Result<Vec<_>>>()?, 0)?;
        if skips {
            losses = ops::r#where(&losses.eq(f64::INFINITY)?, 0, &losses)?;
        }
        if reduction == "mean" {
            let by: Vec<f64> = self.targets.iter().map(|n| (*n).max(1) as f64).collect();
            let by = ops::to_dtype(&Tensor::from_vec(by, samples)?, known::dtype(&losses)?)?;
            losses = (losses / by)?;
        }
        match reduction {
            "mean" => ops::mean(&losses, Dims::All, false),
            "sum" => ops::sum(&losses, Dims::All, false),
            _ if is_single => ops::reshape(&losses, Vec::<i64>::new()),
            _ => Ok(losses),
        }
    }

    /// The classes of a sample.
    fn classes(&self, targets: &Tensor, sample: usize, is_single: bool) -> Result<Tensor> {
        let count = self.targets[sample] as i64;
        let all = match known::rank(targets)? {
            2 => ops::select(targets, 0, sample as i64)?,
            _ if is_single => targets.clone(),
            _ => {
                let from: usize = self.targets[..sample].iter().sum();
                return ops::to_dtype(&ops::narrow(targets, 0, from as i64, count)?, DType::I64);
            }
        };
        ops::to_dtype(&ops::narrow(&all, 0, 0, count)?, DType::I64)
    }

    /// Minus the logarithm of the probability of all alignments: classes with blanks between, before and behind them.
    fn sample(
        &self,
        logs: &Tensor,
        classes: &Tensor,
        (sample, steps): (usize, usize),
        skips: bool,
    ) -> Result<Tensor> {
        let (count, steps) = (self.targets[sample], self.inputs[sample].min(steps));
        let dtype = known::dtype(logs)?;
        let none = |n: usize| ops::full([n as i64], f64::NEG_INFINITY, Some(dtype));
        if steps == 0 {
            return match count {
                0 => ops::zeros(Vec::<i64>::new(), Some(dtype)),
                _ => ops::full(Vec::<Int>::new(), f64::INFINITY, Some(dtype)),
            };
        }
        // Blank, class, blank, class, .., blank.
        let blanks = ops::full([count as i64 + 1], self.blank, Some(DType::I64))?;
        let labels = match count {
            0 => blanks,
            _ => {
                let first = ops::narrow(&blanks, 0, 0, count as i64)?;
                let pairs = ops::reshape(&ops::stack(&[first, classes.clone()], 1)?, [-1])?;
                ops::cat(&[pairs, ops::narrow(&blanks, 0, 0, 1)?], 0)?
            }
        };
        let long = 2 * count + 1;
        let scores = ops::index_select(logs, 1, &labels)?;
        let at = |step: usize| ops::select(&scores, 0, step as i64);
        let mut sums = match long {
            1 => at(0)?,
            _ => ops::cat(&[ops::narrow(&at(0)?, 0, 0, 2)?, none(long - 2)?], 0)?,
        };
        // A blank between two equal classes is not left out.
        let skip = match long {
            0..=2 => None,
            _ => {
                let (own, before) = (
                    ops::narrow(&labels, 0, 2, long as i64 - 2)?,
                    ops::narrow(&labels, 0, 0, long as i64 - 2)?,
                );
                Some(ops::logical_and(&own.ne(self.blank)?, &own.ne(&before)?)?)
            }
        };
        for step in 1..steps {
            let mut ways = vec![sums.clone()];
            if long > 1 {
                ways.push(ops::cat(
                    &[none(1)?, ops::narrow(&sums, 0, 0, long as i64 - 1)?],
                    0,
                )?);
            }
            if let Some(skip) = &skip {
                let jumped = ops::narrow(&sums, 0, 0, long as i64 - 2)?;
                let jumped = ops::r#where(skip, &jumped, f64::NEG_INFINITY)?;
                ways.push(ops::cat(&[none(2)?, jumped], 0)?);
            }
            sums = (ops::logsumexp(&ops::stack(&ways, 0)?, 0, false)? + at(step)?)?;
        }
        let last = (long as i64).min(2);
        let ends = ops::narrow(&sums, 0, long as i64 - last, last)?;
        if skips {
            return minus(ops::logsumexp(&ends, 0, false));
        }
        // Where no alignment fits, the gradient is NaN, as PyTorch's.
        let top = ops::detach(&ops::amax(&ends, 0, false)?)?;
        let top = ops::r#where(&ops::isfinite(&top)?, &top, 0)?;
        let sum = ops::sum(&ops::exp(&(ends - &top)?)?, 0, false)?;
        minus(ops::log(&sum)? + top)
    }
}
