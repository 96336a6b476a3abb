//! The exponential function and its relatives on vectors, which are those of `fx-static`, and activations of slices.

use pulp::{Simd, WithSimd};

pub(crate) use fx_static::math::*;

use crate::{Activation, Level};

struct ApplyAll<'a>(Activation, &'a mut [f32]);

impl WithSimd for ApplyAll<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        apply_all(simd, self.0, self.1);
    }
}

/// Replaces each float by its activation.
///
/// ```
/// use fx_kernels::{Activation, Level, math};
///
/// let mut floats = [-1.0, 2.0, f32::NAN];
/// math::activate(Level::best(), Activation::Relu, &mut floats);
/// assert_eq!(floats[..2], [0.0, 2.0]);
/// assert!(floats[2].is_nan());
/// ```
pub fn activate(level: Level, activation: Activation, floats: &mut [f32]) {
    level.run(ApplyAll(activation, floats));
}
