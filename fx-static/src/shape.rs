//! What moves floats: copies of views, joined, chosen and padded ones; and reductions.

use pulp::{Scalar, WithSimd};

use crate::Source;
use crate::kernel::Kernel;
use crate::point::each;
use crate::reduce::{Job, Reduction, WIDE};
use crate::source::source;

/// A view in order. Reads the floats from the view's first on.
///
/// ```
/// use fx_static::{Contiguous, Kernel};
///
/// let turned = Contiguous { dims: [1, 1, 1, 1, 2, 2], strides: [0, 0, 0, 0, 1, 2] };
/// let mut out = [0.0; 4];
/// turned.run(&[&[1.0, 2.0, 3.0, 4.0]], &mut out);
/// assert_eq!(out, [1.0, 3.0, 2.0, 4.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contiguous {
    /// The sizes.
    pub dims: [usize; 6],
    /// The floats from a place of a dim to the next.
    pub strides: [usize; 6],
}

impl Kernel for Contiguous {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        each(self.dims, [(reads[0], self.strides)], out, |_, [x]| x);
    }
}

/// Parts side by side: each has so many floats for each outer place. Reads the parts.
///
/// ```
/// use fx_static::{Join, Kernel};
///
/// let mut out = [0.0; 6];
/// Join { outer: 2 }.run(&[&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0]], &mut out);
/// assert_eq!(out, [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// The places of all dims before the joined one.
    pub outer: usize,
}

impl Kernel for Join {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let mut rest = out;
        for at in 0..self.outer {
            for part in reads {
                let length = part.len() / self.outer;
                let (to, others) = rest.split_at_mut(length);
                to.copy_from_slice(&part[at * length..][..length]);
                rest = others;
            }
        }
    }
}

/// Places of the middle dim of `[outer, count, inner]`. Reads the floats.
///
/// ```
/// use fx_static::{Kernel, Places};
///
/// let mut out = [0.0; 3];
/// Places { sizes: [1, 2, 1], places: [1, 1, 0] }.run(&[&[1.0, 2.0]], &mut out);
/// assert_eq!(out, [2.0, 2.0, 1.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places<P> {
    /// Outer places, those of the dim, floats of each.
    pub sizes: [usize; 3],
    /// The places: an array, or what has a slice of them.
    pub places: P,
}

impl<P: AsRef<[usize]>> Kernel for Places<P> {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let [_, count, inner] = self.sizes;
        let places = self.places.as_ref();
        if inner == 0 || places.is_empty() {
            return;
        }
        for (at, out) in out.chunks_exact_mut(inner).enumerate() {
            let (outer, place) = (at / places.len(), places[at % places.len()]);
            out.copy_from_slice(&reads[0][(outer * count + place) * inner..][..inner]);
        }
    }
}

/// Floats with places of a number around them. Reads the floats.
///
/// ```
/// use fx_static::{Kernel, Pad};
///
/// let pad = Pad { dims: [1, 1, 1, 1, 1, 2], before: [0; 6], after: [0, 0, 0, 0, 0, 1], value: 9.0 };
/// let mut out = [0.0; 3];
/// pad.run(&[&[1.0, 2.0]], &mut out);
/// assert_eq!(out, [1.0, 2.0, 9.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pad {
    /// The sizes without the padding.
    pub dims: [usize; 6],
    /// The places before each dim.
    pub before: [usize; 6],
    /// Those after it.
    pub after: [usize; 6],
    /// Their number.
    pub value: f32,
}

impl Kernel for Pad {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        for (at, out) in out.iter_mut().enumerate() {
            let (mut rest, mut from, mut stride) = (at, Some(0), 1);
            for dim in (0..6).rev() {
                let size = self.dims[dim];
                let padded = size + self.before[dim] + self.after[dim];
                let place = (rest % padded).wrapping_sub(self.before[dim]);
                rest /= padded;
                from = from
                    .filter(|_| place < size)
                    .map(|from: usize| from + place * stride);
                stride *= size;
            }
            *out = from.map_or(self.value, |from| reads[0][from]);
        }
    }
}

/// One number. Reads nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    /// The number.
    pub value: f32,
}

impl Kernel for Fill {
    fn run(&self, _: &[&[f32]], out: &mut [f32]) {
        out.fill(self.value);
    }
}

/// A reduction of the middle dim of `[outer, count, inner]`. Reads the floats.
///
/// ```
/// use fx_static::{Kernel, Reduce, reduce::Reduction};
///
/// let mut out = [0.0];
/// Reduce { how: Reduction::Mean, sizes: [1, 2, 1] }.run(&[&[1.0, 2.0]], &mut out);
/// assert_eq!(out, [1.5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduce {
    /// What is made of the floats.
    pub how: Reduction,
    /// Outer places, those of the dim, floats of each.
    pub sizes: [usize; 3],
}

impl Kernel for Reduce {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let Reduce {
            how,
            sizes: [_, count, inner],
        } = *self;
        if inner == 0 || out.is_empty() {
            return;
        }
        if count == 0 {
            return out.fill(match how {
                Reduction::Mean => f32::NAN,
                _ => how.start(),
            });
        }
        let job = |x: &[f32], out: &mut [f32]| {
            Job {
                how,
                x,
                count,
                inner,
                out,
            }
            .with_simd(Scalar::new());
        };
        if inner == 1 {
            return job(reads[0], out);
        }
        let outer = reads[0].chunks_exact(count * inner);
        for (x, out) in outer.zip(out.chunks_exact_mut(inner)) {
            for (at, out) in out.chunks_mut(WIDE).enumerate() {
                job(&x[at * WIDE..], out);
            }
        }
    }
}

source!(Contiguous { dims, strides });
source!(Join { outer });
source!(Pad {
    dims,
    before,
    after,
    value
});
source!(Fill { value });
source!(Reduce { how, sizes });

impl<P: AsRef<[usize]>> Source for Places<P> {
    fn source(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        out.write_str("Places { sizes: ")?;
        self.sizes.source(out)?;
        out.write_str(", places: ")?;
        self.places.as_ref().source(out)?;
        out.write_str(" }")
    }
}
