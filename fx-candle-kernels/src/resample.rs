//! Images in other sizes: each place along a dim of the result is a sum of places of the input, with weights.
//!
//! Invariant: places and weights are computed in the types in which PyTorch computes them, for a place is rounded.

use candle_core::{DType, Result, Tensor, bail};

use super::avg_pool::adaptive_avg_pool2d;
use super::widen::widened;
use super::window::NOTHING;
use crate::room;

/// How a place between the input's places is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// From the place at or before it.
    Nearest,
    /// From the place nearest to it.
    NearestExact,
    /// From the two places around it, by how near they are.
    Linear,
    /// From four places, by a cubic curve.
    Cubic,
    /// From six places, by a sinc.
    Lanczos,
    /// As the mean of the places that it covers.
    Area,
}

/// How an image is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The mode.
    pub mode: Mode,
    /// Whether the centres of the first and last places stay; else their outer edges do.
    pub corners: bool,
    /// Whether a place of a smaller image is made of all places that it covers.
    pub antialias: bool,
    /// How many dims are resized.
    pub dims: usize,
}

/// A place of the input, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tap {
    /// The place.
    pub place: usize,
    /// How much it counts.
    pub weight: f64,
}

/// One dim: its size before and after; and the factor between them if that is what counts, and not the sizes.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The size before.
    pub from: usize,
    /// The size after.
    pub to: usize,
    /// The factor.
    pub factor: Option<f64>,
}

impl Way {
    /// What the options of `interpolate` ask for an input of `rank` dims.
    ///
    /// # Errors
    /// Returns what does not fit, in words.
    pub fn of(
        mode: &str,
        rank: usize,
        align_corners: Option<bool>,
        antialias: bool,
    ) -> std::result::Result<Way, String> {
        let (found, own_rank) = match mode {
            "nearest" => (Mode::Nearest, None),
            "nearest-exact" => (Mode::NearestExact, None),
            "area" => (Mode::Area, None),
            "linear" => (Mode::Linear, Some(3)),
            "bilinear" => (Mode::Linear, Some(4)),
            "trilinear" => (Mode::Linear, Some(5)),
            "bicubic" => (Mode::Cubic, Some(4)),
            "lanczos" => (Mode::Lanczos, Some(4)),
            other => {
                return Err(format!(
                    "mode is \"nearest\", \"nearest-exact\", \"area\", \"linear\", \"bilinear\", \"bicubic\", \
                     \"trilinear\" or \"lanczos\", not {other:?}"
                ));
            }
        };
        if !(3..=5).contains(&rank) {
            return Err(format!(
                "the input is [N, C, L], [N, C, H, W] or [N, C, D, H, W], and has not {rank} dims"
            ));
        }
        if own_rank.is_some_and(|own| own != rank) {
            let (needs, takes) = (
                own_rank.unwrap_or(rank),
                ["linear", "bilinear", "trilinear"][rank - 3],
            );
            return Err(format!(
                "mode {mode:?} is for inputs of {needs} dims, batch and channels among them, and not for {rank}: \
                 use {takes:?}"
            ));
        }
        let between = matches!(found, Mode::Linear | Mode::Cubic | Mode::Lanczos);
        if align_corners.is_some() && !between {
            return Err(format!(
                "align_corners is for the modes that compute between places, and not for {mode:?}"
            ));
        }
        let corners = align_corners.unwrap_or(false);
        if antialias && !(between && rank == 4) {
            return Err(format!(
                "antialias is for the modes \"bilinear\", \"bicubic\" and \"lanczos\" on [N, C, H, W], and not for \
                 {mode:?} on {rank} dims"
            ));
        }
        if found == Mode::Lanczos && (corners || !antialias) {
            return Err("mode \"lanczos\" needs antialias, and no align_corners".into());
        }
        Ok(Way {
            mode: found,
            corners,
            antialias,
            dims: rank - 2,
        })
    }

    /// Whether a place is a copy of another.
    pub fn picks(&self) -> bool {
        matches!(self.mode, Mode::Nearest | Mode::NearestExact)
    }

    /// What an element type lacks for it, in words.
    ///
    /// # Errors
    /// Returns an error if images of the type are not resized so.
    pub fn check(
        &self,
        is_float: bool,
        is_half: bool,
        is_byte: bool,
    ) -> std::result::Result<(), String> {
        if is_half && self.antialias {
            return Err(
                "antialias takes float32, float64 and uint8: convert the images first".into(),
            );
        }
        let bytes = self.picks() || (self.dims == 2 && self.mode != Mode::Area);
        match is_float || (is_byte && bytes) {
            true => Ok(()),
            false if bytes => Err("the images are floating point or uint8".into()),
            false => Err("the images are floating point in this mode".into()),
        }
    }

    /// The places of the input that each place of a line is made of, for images of a type.
    ///
    /// Of uint8 they are the exact ones, which [`resample`] turns into whole numbers.
    pub fn taps(&self, line: Line, dtype: DType) -> Vec<Vec<Tap>> {
        let narrow = dtype != DType::F64 && (dtype != DType::U8 || self.picks());
        // A step of a calculation, rounded as the type has it.
        let round = |x: f64| if narrow { f64::from(x as f32) } else { x };
        let Line { from, to, factor } = line;
        let scale = match factor {
            _ if self.corners && to <= 1 => 0.0,
            _ if self.corners => round((from - 1) as f64 / (to - 1) as f64),
            Some(factor) => round(1.0 / factor),
            None => round(from as f64 / to as f64),
        };
        // Of a dim that keeps its size, PyTorch looks at no factor here.
        if from == to && (self.antialias || (self.mode == Mode::Nearest && self.dims == 2)) {
            return (0..to)
                .map(|place| vec![Tap { place, weight: 1.0 }])
                .collect();
        }
        if self.antialias {
            return (0..to)
                .map(|i| self.covered(i, from, scale, &round))
                .collect();
        }
        // PyTorch keeps the weights in the type of the images, but for images `[N, C, H, W]` that are linear.
        let kept = |weight: f64| match (self.mode, self.dims) {
            (Mode::Linear, 2) => weight,
            _ => in_type(weight, dtype),
        };
        let last = from.saturating_sub(1);
        let one = |at: f64| {
            vec![Tap {
                place: (f64::from(at as f32).floor() as usize).min(last),
                weight: 1.0,
            }]
        };
        let centre = |i: usize| match self.corners {
            true => round(scale * i as f64),
            false => round(scale.mul_add(i as f64 + 0.5, -0.5)),
        };
        let line = |i: usize| -> Vec<Tap> {
            match self.mode {
                // Its images have a shift there.
                Mode::Nearest if self.dims == 2 && to == 2 * from => vec![Tap {
                    place: i / 2,
                    weight: 1.0,
                }],
                Mode::Nearest => one(round(scale * i as f64)),
                Mode::NearestExact => one(centre(i).max(0.0) + 0.5),
                Mode::Area => {
                    let (start, end) = (i * from / to, ((i + 1) * from).div_ceil(to));
                    let weight = 1.0 / (end - start) as f64;
                    (start..end).map(|place| Tap { place, weight }).collect()
                }
                Mode::Linear if from == to => {
                    vec![
                        Tap {
                            place: i,
                            weight: 1.0,
                        },
                        Tap {
                            place: i,
                            weight: 0.0,
                        },
                    ]
                }
                Mode::Linear => {
                    let at = centre(i).max(0.0);
                    let first = (at.floor() as usize).min(last);
                    let part = kept(round(at - first as f64).clamp(0.0, 1.0));
                    vec![
                        Tap {
                            place: first,
                            weight: kept(round(1.0 - part)),
                        },
                        Tap {
                            place: (first + 1).min(last),
                            weight: part,
                        },
                    ]
                }
                Mode::Cubic | Mode::Lanczos => {
                    let at = centre(i);
                    let first = at.floor().min(last as f64);
                    let part = round(at - first).clamp(0.0, 1.0);
                    (-1..=2)
                        .map(|near| Tap {
                            place: (first as i64 + near).clamp(0, last as i64) as usize,
                            weight: kept(round(cubic(part - near as f64, -0.75))),
                        })
                        .collect()
                }
            }
        };
        (0..to).map(line).collect()
    }

    /// The places that place `i` covers, by Pillow's rule.
    fn covered(&self, i: usize, from: usize, scale: f64, round: &dyn Fn(f64) -> f64) -> Vec<Tap> {
        let reach = match self.mode {
            Mode::Cubic => 2.0,
            Mode::Lanczos => 3.0,
            _ => 1.0,
        };
        let wide = scale.max(1.0);
        let (support, shrink) = (round(reach * wide), round(1.0 / wide));
        let centre = round(scale * (i as f64 + 0.5));
        let start = round(round(centre - support) + 0.5).max(0.0) as usize;
        let end = (round(round(centre + support) + 0.5).max(0.0) as usize).min(from);
        let weight = |place: usize| {
            let apart = round(round(round(place as f64 - centre) + 0.5) * shrink);
            round(match self.mode {
                Mode::Cubic => cubic(apart, -0.5),
                Mode::Lanczos => lanczos(apart),
                _ => (1.0 - apart.abs()).max(0.0),
            })
        };
        let mut taps: Vec<Tap> = (start..end)
            .map(|place| Tap {
                place,
                weight: weight(place),
            })
            .collect();
        let sum = taps.iter().fold(0.0, |sum, tap| round(sum + tap.weight));
        if sum != 0.0 {
            taps.iter_mut()
                .for_each(|tap| tap.weight = round(tap.weight / sum));
        }
        taps
    }
}

/// A number as a half type holds it.
fn in_type(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => half::f16::from_f64(x).to_f64(),
        DType::BF16 => half::bf16::from_f32(x as f32).to_f64(),
        _ => x,
    }
}

/// The cubic convolution of Keys.
fn cubic(x: f64, a: f64) -> f64 {
    match x.abs() {
        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| match x * std::f64::consts::PI {
        0.0 => 1.0,
        x => x.sin() / x,
    };
    if x.abs() < 3.0 {
        sinc(x) * sinc(x / 3.0)
    } else {
        0.0
    }
}

/// `x [n, c, ..]` with the dims behind the channels resized, each by its line.
///
/// # Errors
/// Returns an error if an image or a channel is missing, the result does not fit into memory, or the element type has
/// no such images.
pub fn resample(op: &str, x: &Tensor, way: &Way, lines: &[Line]) -> Result<Tensor> {
    let sizes: Vec<usize> = lines.iter().map(|line| line.to).collect();
    let dims = [&x.dims()[..2], &sizes].concat();
    let area = way.mode == Mode::Area;
    if lines
        .iter()
        .any(|line| line.from == 0 || (line.to == 0 && !area))
    {
        bail!(
            "{op}: input {:?} and result {sizes:?} must have an image of at least one pixel",
            x.dims()
        )
    }
    if x.dims()[1] == 0 && !area {
        bail!("{op}: input {:?} has no channels", x.dims())
    }
    // The last dim first.
    for at in 0..lines.len() {
        room::of(
            op,
            &[&x.dims()[..2 + at], &dims[2 + at..]].concat(),
            x.dtype(),
        )?;
    }
    if dims.contains(&0) {
        return Tensor::zeros(dims, x.dtype(), x.device());
    }
    if area {
        return averages(x, &dims);
    }
    if x.dtype() == DType::U8 && !way.picks() {
        return bytes(x, way, lines);
    }
    let dtype = x.dtype();
    let all = |x: Tensor| -> Result<Tensor> {
        let mut y = x.contiguous()?;
        for (at, line) in lines.iter().enumerate().rev() {
            y = along(&y, 2 + at, &way.taps(*line, dtype))?;
        }
        Ok(y)
    };
    match way.picks() {
        true => all(x.clone()),
        false => widened(x, x, all),
    }
}

/// The means of the places that each place covers: an adaptive pool.
fn averages(x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    match (x.dims(), dims) {
        ([n, c, row], [.., to]) if x.rank() == 3 => {
            let y = adaptive_avg_pool2d(&x.reshape((*n, *c, 1, *row))?, (1, *to))?;
            y.reshape(dims)
        }
        (_, [.., height, width]) if x.rank() == 4 => adaptive_avg_pool2d(x, (*height, *width)),
        ([n, c, depth, height, width], [.., to_depth, to_height, to_width]) => {
            widened(x, x, |x: Tensor| {
                let slices = x.reshape((*n, c * depth, *height, *width))?;
                let slices = adaptive_avg_pool2d(&slices, (*to_height, *to_width))?;
                let area = to_height * to_width;
                let volume = slices.reshape((*n, *c, *depth, area))?;
                adaptive_avg_pool2d(&volume, (*to_depth, area))?.reshape(dims)
            })
        }
        _ => bail!("interpolate: input {:?} cannot become {dims:?}", x.dims()),
    }
}

/// Sums of weighted places along a dim.
fn along(x: &Tensor, dim: usize, taps: &[Vec<Tap>]) -> Result<Tensor> {
    let slots = taps.iter().map(Vec::len).max().unwrap_or(0);
    let mut shape = vec![1; x.rank()];
    shape[dim] = taps.len();
    let mut sum: Option<Tensor> = None;
    for slot in 0..slots {
        let of = |taps: &Vec<Tap>| taps.get(slot).map_or(NOTHING, |tap| tap.place as u32);
        let places: Vec<u32> = taps.iter().map(of).collect();
        let picked = x.index_select(&Tensor::from_vec(places, taps.len(), x.device())?, dim)?;
        let weights: Vec<f64> = taps
            .iter()
            .map(|taps| taps.get(slot).map_or(0.0, |tap| tap.weight))
            .collect();
        let part = match weights.iter().all(|weight| *weight == 1.0) {
            true => picked,
            false => {
                let weights =
                    Tensor::from_vec(weights, &*shape, x.device())?.to_dtype(x.dtype())?;
                picked.broadcast_mul(&weights)?
            }
        };
        sum = Some(match sum {
            Some(sum) => sum.add(&part)?,
            None => part,
        });
    }
    sum.map_or_else(|| x.narrow(dim, 0, 0), Ok)
}

/// Images of uint8, by PyTorch's whole-numbered weights: each dim is rounded. A dim that keeps its size is left alone.
fn bytes(x: &Tensor, way: &Way, lines: &[Line]) -> Result<Tensor> {
    let mut data = x.flatten_all()?.to_vec1::<u8>()?;
    let mut dims = x.dims().to_vec();
    for (at, line) in lines.iter().enumerate().rev() {
        if line.from == line.to {
            continue;
        }
        let (weights, bits) = whole(&way.taps(*line, DType::U8));
        let inner: usize = dims[2 + at + 1..].iter().product();
        dims[2 + at] = line.to;
        let mut resized = Vec::with_capacity(dims.iter().product());
        for image in data.chunks_exact(line.from * inner) {
            for taps in &weights {
                for column in 0..inner {
                    let half = if bits > 0 { 1 << (bits - 1) } else { 0 };
                    let sum: i64 = taps
                        .iter()
                        .map(|(place, weight)| weight * i64::from(image[place * inner + column]))
                        .sum();
                    resized.push(((sum + half) >> bits).clamp(0, 255) as u8);
                }
            }
        }
        data = resized;
    }
    Tensor::from_vec(data, dims, x.device())
}

/// The weights as whole numbers of so many bits behind the point: as many as 16 bits have room for.
fn whole(taps: &[Vec<Tap>]) -> (Vec<Vec<(usize, i64)>>, u32) {
    let mut rows: Vec<Vec<(usize, f64)>> = Vec::with_capacity(taps.len());
    for taps in taps {
        let mut row: Vec<(usize, f64)> = Vec::with_capacity(taps.len());
        for tap in taps {
            match row.iter_mut().find(|(place, _)| *place == tap.place) {
                Some((_, weight)) => *weight += tap.weight,
                None => row.push((tap.place, tap.weight)),
            }
        }
        rows.push(row);
    }
    let largest = rows
        .iter()
        .flatten()
        .fold(0.0f64, |most, (_, weight)| most.max(*weight));
    let room = |bits: u32| (0.5 + largest * f64::from(1u32 << bits)) < f64::from(1 << 15);
    let bits = (1..=22).take_while(|bits| room(*bits)).last().unwrap_or(0);
    let scaled = |weight: f64| (weight * f64::from(1u32 << bits)).round() as i64;
    let rows = rows.into_iter().map(|row| {
        row.into_iter()
            .map(|(place, weight)| (place, scaled(weight)))
            .collect()
    });
    (rows.collect(), bits)
}
