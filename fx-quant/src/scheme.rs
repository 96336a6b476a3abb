//! `Scheme`: which integers stand for floats, and how a range of floats becomes a scale and a zero point.
//!
//! Invariant: scale and zero point are those of `torch.ao.quantization`'s observers, to the last bit.

use fx_core::value::DType;
use fx_core::{Error, Result};

/// Integers that stand for floats: their type, their range, and whether 0 stands for 0.0.
///
/// ```
/// use fx_quant::Scheme;
/// let params = Scheme::UINT8.params(-1.0, 3.0)?;
/// assert_eq!((params.scale, params.zero_point), (f64::from(4.0f32 / 255.0), 64));
/// // Symmetric: 0 stands for 0.0.
/// assert_eq!(Scheme::INT8.params(-1.0, 3.0)?.zero_point, 0);
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// The type of the integers.
    pub dtype: DType,
    /// The least integer.
    pub quant_min: i64,
    /// The largest integer.
    pub quant_max: i64,
    /// Whether the zero point is in the middle of the range.
    pub symmetric: bool,
}

/// What integers of a tensor, or of a channel, stand for: `(x - zero_point) * scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The distance of two neighbours; a number of `float32`.
    pub scale: f64,
    /// The integer that stands for 0.
    pub zero_point: i64,
}

impl Scheme {
    /// `uint8` from 0 to 255, affine: what activations have.
    pub const UINT8: Scheme = Scheme {
        dtype: DType::U8,
        quant_min: 0,
        quant_max: 255,
        symmetric: false,
    };
    /// `uint8` from 0 to 127, affine: activations of PyTorch's `x86` configuration, whose products of pairs fit 16 bits.
    pub const UINT7: Scheme = Scheme {
        quant_max: 127,
        ..Scheme::UINT8
    };
    /// `int8` from -128 to 127, symmetric: what weights have.
    pub const INT8: Scheme = Scheme {
        dtype: DType::I8,
        quant_min: -128,
        quant_max: 127,
        symmetric: true,
    };
    /// `int8` from -8 to 7, symmetric: weights of 4 bits, in the room of 8.
    pub const INT4: Scheme = Scheme {
        quant_min: -8,
        quant_max: 7,
        ..Scheme::INT8
    };

    /// How many integers the type has, of which the scheme may use some.
    pub(crate) fn levels(&self) -> usize {
        1 << (8 * self.dtype.size_in_bytes()).min(16)
    }

    /// The scale and the zero point for floats from `min` to `max`; 0 is always among them.
    ///
    /// # Errors
    /// Returns an error if an end is not finite, `min` is above `max`, or the scheme has no two integers with 0 between
    /// or at them.
    pub fn params(&self, min: f32, max: f32) -> Result<Params> {
        let is_range = min.is_finite() && max.is_finite() && min <= max;
        if !is_range {
            return Err(Error::msg(format_args!(
                "the range of the numbers is {min} to {max}: calibrate with finite ones"
            )));
        }
        let (low, high) = (self.quant_min, self.quant_max);
        if low >= high || low > 0 || high < 0 {
            return Err(Error::msg(format_args!(
                "integers from {low} to {high} do not have 0 among them: give another range"
            )));
        }
        let (min, max) = (min.min(0.0), max.max(0.0));
        let width = (high - low) as f32;
        if self.symmetric {
            let scale = ((-min).max(max) / (width / 2.0)).max(f32::EPSILON);
            let zero_point = match low < 0 {
                true => 0,
                // The middle of all, and of some the lower one of two.
                false if (low, high) == (0, 255) => 128,
                false => (low + high).div_euclid(2),
            };
            return Ok(Params {
                scale: f64::from(scale),
                zero_point,
            });
        }
        let scale = ((max - min) / width).max(f32::EPSILON);
        let zero_point = low - (min / scale).round_ties_even() as i64;
        Ok(Params {
            scale: f64::from(scale),
            zero_point: zero_point.clamp(low, high),
        })
    }
}
