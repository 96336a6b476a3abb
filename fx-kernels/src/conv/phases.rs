//! Copies of plain planes with their padding, whose pixels are sorted by their place modulo the stride: in such a copy
//! neighbouring results read neighbouring floats, whatever the stride.

use crate::conv::ConvSpec;

/// Where a tap reads: a plane of the copy, and an offset in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tap {
    pub phase: usize,
    pub offset: usize,
}

/// How planes are copied and read.
pub(crate) struct Plan {
    pub spec: ConvSpec,
    pub input: (usize, usize),
    pub out: (usize, usize),
    /// The floats of a row and the rows of a copied plane.
    pub pitch: usize,
    pub rows: usize,
    /// First row and column of each copied plane, modulo the stride.
    pub phases: Vec<(usize, usize)>,
    pub taps: Vec<Tap>,
}

impl Plan {
    pub(crate) fn new(spec: &ConvSpec, height: usize, width: usize) -> Plan {
        let out = spec.out_size(height, width);
        let [down, right] = spec.stride;
        let reach = |i: usize| (spec.kernel[i] - 1) * spec.dilation[i] / spec.stride[i];
        let (rows, pitch) = (out.0 + reach(0), out.1 + reach(1));
        let mut phases = Vec::new();
        let mut taps = Vec::with_capacity(spec.taps());
        for tap in 0..spec.taps() {
            let y = tap / spec.kernel[1] * spec.dilation[0];
            let x = tap % spec.kernel[1] * spec.dilation[1];
            let place = (y % down, x % right);
            let phase = phases
                .iter()
                .position(|p| *p == place)
                .unwrap_or(phases.len());
            if phase == phases.len() {
                phases.push(place);
            }
            taps.push(Tap {
                phase,
                offset: y / down * pitch + x / right,
            });
        }
        Plan {
            spec: *spec,
            input: (height, width),
            out,
            pitch,
            rows,
            phases,
            taps,
        }
    }

    /// The floats of one copied channel.
    pub(crate) fn channel(&self) -> usize {
        self.phases.len() * self.rows * self.pitch
    }

    /// Copies a plane with its padding, sorted by phase.
    pub(crate) fn copy(&self, plane: &[f32], target: &mut [f32]) {
        let (height, width) = self.input;
        let [down, right] = self.spec.stride;
        let [above, left] = self.spec.padding;
        for (&(y0, x0), target) in self
            .phases
            .iter()
            .zip(target.chunks_exact_mut(self.rows * self.pitch))
        {
            // Columns before `first` and from `last` on lie in the padding.
            let first = left.saturating_sub(x0).div_ceil(right).min(self.pitch);
            let last = (width + left)
                .saturating_sub(x0)
                .div_ceil(right)
                .clamp(first, self.pitch);
            for (r, line) in target.chunks_exact_mut(self.pitch).enumerate() {
                let y = (r * down + y0).wrapping_sub(above);
                if y >= height || first == last {
                    line.fill(0.0);
                    continue;
                }
                line[..first].fill(0.0);
                line[last..].fill(0.0);
                let source = &plane[y * width..(y + 1) * width][first * right + x0 - left..];
                let line = &mut line[first..last];
                match right {
                    1 => line.copy_from_slice(&source[..line.len()]),
                    2 => {
                        let (pairs, rest) = source.as_chunks::<2>();
                        for (to, from) in line.iter_mut().zip(pairs) {
                            *to = from[0];
                        }
                        if let (Some(to), Some(from)) = (line.get_mut(pairs.len()), rest.first()) {
                            *to = *from;
                        }
                    }
                    _ => {
                        for (to, from) in line.iter_mut().zip(source.iter().step_by(right)) {
                            *to = *from;
                        }
                    }
                }
            }
        }
    }
}
