//! Images of sizes that only a run knows, resized: by fx's own function where it has the same places, else place by place.

use fx_nn::prelude::*;
use fx_nn::{Bound, Result};

use super::target::{Factor, Target};
use super::weighting::Weighting;
use crate::load::value::as_type;
use crate::load::whole::Whole;

/// What of an operator's attributes says where places lie.
pub(super) struct Way<'w> {
    pub mode: &'w str,
    pub transform: &'w str,
    pub nearest: &'w str,
    /// Whether a curve is PyTorch's, and goes on past the edges.
    pub plain: bool,
    pub by_scales: bool,
}

impl Way<'_> {
    /// By `ops::interpolate`; `None` if that has other places.
    pub fn interpolated(&self, x: &Tensor, targets: &[Target]) -> Result<Option<Tensor>> {
        let (head, image) = match targets {
            [n, c, image @ ..] if matches!(image.len(), 1..=3) => ([n, c], image),
            _ => return Ok(None),
        };
        if head.iter().any(|target| !target.is_kept) {
            return Ok(None);
        }
        let scales: Option<Vec<f64>> = image
            .iter()
            .map(|target| match target.factor {
                Factor::Known(factor) => Some(factor),
                Factor::Run(_) => None,
            })
            .collect();
        let corners = self.transform == "align_corners";
        let centred = match self.transform {
            "half_pixel" => true,
            // Of an image of one place it has the first one.
            "pytorch_half_pixel" => scales.iter().flatten().all(|s| *s >= 1.0) && scales.is_some(),
            _ => false,
        };
        let (mode, align) = match (self.mode, image.len()) {
            ("linear", 1) if corners || centred => ("linear", Some(corners)),
            ("linear", 2) if corners || centred => ("bilinear", Some(corners)),
            ("linear", 3) if corners || centred => ("trilinear", Some(corners)),
            ("cubic", 2) if (corners || centred) && self.plain => ("bicubic", Some(corners)),
            ("nearest", _) if self.transform == "asymmetric" && self.nearest == "floor" => {
                ("nearest", None)
            }
            _ => return Ok(None),
        };
        // Corners lie by the sizes; else a scale says where places lie.
        if self.by_scales && !corners {
            let Some(scales) = scales else {
                return Ok(None);
            };
            let y = match &*scales {
                [first, rest @ ..] if rest.iter().all(|scale| scale == first) => {
                    ops::interpolate(x, None, *first, mode, align)?
                }
                _ => ops::interpolate(x, None, scales, mode, align)?,
            };
            return Ok(Some(y));
        }
        let sizes = image.iter().map(|target| target.to.int());
        let sizes = sizes.collect::<Result<Vec<Int>>>()?;
        ops::interpolate(x, Some(sizes.into()), None, mode, align).map(Some)
    }
}

fn none() -> Bound {
    Bound::from(None::<f64>)
}

impl Weighting<'_> {
    /// One dim resized; a run computes where its places lie, and with what weights.
    pub(super) fn opened(
        &self,
        x: &Tensor,
        dim: i64,
        from: &Whole,
        target: &Target,
        dtype: DType,
    ) -> Result<Tensor> {
        let to = target.to.at_least(0)?;
        let point = self.points(from, &to, &target.factor)?;
        let last = from.minus(1)?.tensor()?;
        let inside = |places: &Tensor| ops::minimum(&ops::clamp(places, 0, none())?, &last);
        if self.mode == "nearest" {
            let near = match self.nearest {
                "floor" => ops::floor(&point)?,
                "ceil" => ops::ceil(&point)?,
                "round_prefer_ceil" => ops::floor(&(point + 0.5)?)?,
                _ => ops::ceil(&(point - 0.5)?)?,
            };
            let places = inside(&as_type(&near, DType::I64)?)?;
            return ops::index_select(x, dim, &places);
        }
        let stretch = match (self.antialias, &target.factor) {
            (false, _) => 1.0,
            (true, Factor::Known(scale)) if *scale < 1.0 => 1.0 / *scale,
            (true, Factor::Known(_)) => 1.0,
            (true, Factor::Run(_)) => {
                return Err(fx_nn::Error::msg(
                    "a smaller image without aliasing, by a scale that only a run knows",
                ));
            }
        };
        let reach = if self.mode == "cubic" { 2.0 } else { 1.0 } * stretch;
        let reach = reach.ceil() as i64;
        let base = ops::floor(&point)?;
        let apart = (&point - &base)?;
        let base = as_type(&base, DType::I64)?;
        let (mut parts, mut sum): (Vec<(Tensor, Tensor)>, Option<Tensor>) = (Vec::new(), None);
        for offset in 1 - reach..=reach {
            let places = (&base + offset)?;
            let within = inside(&places)?;
            let distance = ((offset as f64 - &apart)? / stretch)?.abs()?;
            let mut weight = self.kernel(&distance)?;
            if self.exclude {
                let is_there = places.eq(&within)?;
                weight = ops::r#where(&is_there, &weight, ops::zeros_like(&weight, None)?)?;
            }
            sum = Some(match sum {
                Some(sum) => (sum + &weight)?,
                None => weight.clone(),
            });
            parts.push((within, weight));
        }
        let rank = self.rank as i64;
        let mut y: Option<Tensor> = None;
        for (places, mut weight) in parts {
            if let (true, Some(sum)) = (self.exclude || self.antialias, &sum) {
                weight = (weight / sum)?;
            }
            let mut wide = as_type(&weight, dtype)?;
            for _ in dim + 1..rank {
                wide = ops::unsqueeze(&wide, -1)?;
            }
            let part = (ops::index_select(x, dim, &places)? * wide)?;
            y = Some(match y {
                Some(y) => (y + part)?,
                None => part,
            });
        }
        y.ok_or_else(|| fx_nn::Error::msg("a place of no places"))
    }

    /// Where the places of the result lie in the source, in `float32` as for known sizes.
    fn points(&self, from: &Whole, to: &Whole, scale: &Factor) -> Result<Tensor> {
        let float = |of: &Whole| as_type(&of.tensor()?, DType::F32);
        let at = ops::arange(0, to.int()?, 1, Some(DType::F32))?;
        let (size, target, scale) = (float(from)?, float(to)?, scale.tensor()?);
        let centred = |at: Tensor| ((at + 0.5)? / &scale)? - 0.5;
        match self.transform {
            "align_corners" => {
                let steps = ops::clamp(&(target - 1.0)?, 1.0, none())?;
                (at * (size - 1.0)?)? / steps
            }
            "asymmetric" => at / scale,
            "pytorch_half_pixel" => {
                let centred = centred(at)?;
                let is_one = target.le(1.0)?;
                ops::r#where(&is_one, ops::zeros_like(&centred, None)?, &centred)
            }
            "tf_half_pixel_for_nn" => (at + 0.5)? / scale,
            "half_pixel_symmetric" => {
                let adjust = (target / (&scale * &size)?)?;
                let middle = ((size / 2.0)? * (1.0 - adjust)?)?;
                centred(at)? + middle
            }
            _ => centred(at),
        }
    }

    /// The weight of a place at a distance, of which the curve's radius is 1, or 2 of a cubic one.
    fn kernel(&self, distance: &Tensor) -> Result<Tensor> {
        if self.mode != "cubic" {
            return ops::clamp(&(1.0 - distance)?, 0.0, none());
        }
        let (a, d) = (self.cubic, distance);
        // The two parts of the curve, and nothing beyond them.
        let near = (((((d * (a + 2.0))? - (a + 3.0))? * d)? * d)? + 1.0)?;
        let far = ((((((d * a)? - 5.0 * a)? * d)? + 8.0 * a)? * d)? - 4.0 * a)?;
        let far = ops::r#where(&d.lt(2.0)?, &far, ops::zeros_like(&far, None)?)?;
        ops::r#where(&d.le(1.0)?, &near, &far)
    }
}
