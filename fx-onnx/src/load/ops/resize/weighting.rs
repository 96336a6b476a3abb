//! How a place of a resized dim is computed of places of the source.

/// How a place of a resized dim is computed.
pub(super) struct Weighting<'r> {
    pub rank: usize,
    pub mode: &'r str,
    pub transform: &'r str,
    pub nearest: &'r str,
    pub cubic: f64,
    pub antialias: bool,
    pub exclude: bool,
    pub extrapolated: f64,
}

impl Weighting<'_> {
    /// Where a place of the result lies in the source, and whether that is outside.
    pub fn point(
        &self,
        place: usize,
        from: usize,
        to: usize,
        scale: f64,
        bounds: Option<(f64, f64)>,
    ) -> (f64, bool) {
        // In `float32`, as scales are given: which of two places is nearer depends on the last bit.
        let (at, size, target, scale) = (place as f32, from as f32, to as f32, scale as f32);
        let source = match self.transform {
            // By the length of the result, which a scale only leads to.
            "align_corners" if to == 1 => 0.0,
            "align_corners" => at * (size - 1.0) / (target - 1.0),
            "asymmetric" => at / scale,
            "pytorch_half_pixel" if to <= 1 => 0.0,
            "tf_half_pixel_for_nn" => (at + 0.5) / scale,
            "half_pixel_symmetric" => {
                let adjust = target / (scale * size);
                let centre = size / 2.0;
                centre * (1.0 - adjust) + (at + 0.5) / scale - 0.5
            }
            "tf_crop_and_resize" => {
                let (start, end) = bounds.unwrap_or((0.0, 1.0));
                let (start, end) = (start as f32, end as f32);
                match to {
                    1 => 0.5 * (start + end) * (size - 1.0),
                    _ => start * (size - 1.0) + at * (end - start) * (size - 1.0) / (target - 1.0),
                }
            }
            _ => (at + 0.5) / scale - 0.5,
        };
        let (source, size) = (f64::from(source), f64::from(size));
        let out = self.transform == "tf_crop_and_resize" && (source < 0.0 || source > size - 1.0);
        (source, out)
    }

    /// The nearest place to a point of the source.
    pub fn near(&self, point: f64, from: usize) -> i64 {
        let near = match self.nearest {
            "floor" => point.floor(),
            "ceil" => point.ceil(),
            "round_prefer_ceil" => (point + 0.5).floor(),
            _ => (point - 0.5).ceil(),
        };
        (near as i64).clamp(0, from as i64 - 1)
    }

    /// The weights of the source's places for a point of it.
    pub fn weights(&self, point: f64, from: usize, scale: f64) -> Vec<f64> {
        let (mut weights, last) = (vec![0.0; from], from as i64 - 1);
        // As the point was computed.
        let scale = f64::from(scale as f32);
        let stretch = if self.antialias && scale < 1.0 {
            1.0 / scale
        } else {
            1.0
        };
        let radius = if self.mode == "cubic" { 2.0 } else { 1.0 } * stretch;
        let kernel = |apart: f64| -> f64 {
            let d = (apart / stretch).abs();
            if self.mode != "cubic" {
                return (1.0 - d).max(0.0);
            }
            let a = self.cubic;
            match d {
                d if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
                d if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
                _ => 0.0,
            }
        };
        let (low, high) = (
            (point - radius).floor() as i64,
            (point + radius).ceil() as i64,
        );
        let mut sum = 0.0;
        for near in low..=high {
            let weight = kernel(near as f64 - point);
            let inside = (0..=last).contains(&near);
            if weight == 0.0 || (self.exclude && !inside) {
                continue;
            }
            weights[near.clamp(0, last) as usize] += weight;
            sum += weight;
        }
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        weights
    }
}
