//! What a call of `interpolate` asks for, for formats that write it.

use fx_core::value::DType;
use fx_core::{Error, Result};

use super::call::OpCall;
use super::value::Val;
use crate::kernels::resample::{Line, Way};
use crate::tensor::{Scales, candle_dtype};

pub use crate::kernels::resample::{Mode, Tap};

/// How a call of `interpolate` or `interpolate_with` resizes.
#[derive(Debug, Clone)]
pub struct Resampling {
    way: Way,
    dtype: DType,
    factors: Option<Vec<f64>>,
}

impl Resampling {
    /// What a call asks for.
    ///
    /// # Errors
    /// Returns an error if the call does not fit.
    pub fn of(call: &OpCall<'_>) -> Result<Self> {
        let x = call.tensor("x")?;
        call.needs_no(&["size"]);
        let is_known = |param: &str| {
            call.function()
                .params()
                .iter()
                .any(|known| known.name == param)
        };
        let truth = |param: &str| -> Result<Option<bool>> {
            match is_known(param) && !call.is_none(param)? {
                true => call.flag(param).map(Some),
                false => Ok(None),
            }
        };
        let antialias = truth("antialias")?.unwrap_or(false);
        let way = Way::of(
            &call.text("mode")?,
            x.rank(),
            truth("align_corners")?,
            antialias,
        )
        .map_err(Error::msg)?;
        let is_recomputed = truth("recompute_scale_factor")?.unwrap_or(false);
        let scales = match call.val("scale_factor")? {
            Val::None => Scales::None,
            Val::List(items) => {
                let items: Option<Vec<f64>> = items.iter().map(Val::as_f64).collect();
                Scales::Each(
                    items.ok_or_else(|| Error::msg("`scale_factor` has numbers that are known"))?,
                )
            }
            _ => Scales::One(call.float("scale_factor")?),
        };
        let factors = match is_recomputed || way.mode == Mode::Area {
            true => None,
            false => scales.each(way.dims)?,
        };
        Ok(Resampling {
            way,
            dtype: x.dtype,
            factors,
        })
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.way.mode
    }

    /// Whether the centres of the first and last places stay.
    pub fn has_corners(&self) -> bool {
        self.way.corners
    }

    /// Whether a place of a smaller image is made of all places that it covers.
    pub fn is_antialiased(&self) -> bool {
        self.way.antialias
    }

    /// The factors that decide where places are, a number for each dim behind the channels; `None` where the sizes do.
    pub fn factors(&self) -> Option<&[f64]> {
        self.factors.as_deref()
    }

    /// Whether the values are whole numbers that are rounded on the way.
    pub fn is_rounded(&self) -> bool {
        self.dtype == DType::U8 && !self.way.picks()
    }

    /// The places that each place along a dim behind the channels is made of, by its sizes before and after.
    ///
    /// # Errors
    /// Returns an error if fx has no such element type.
    pub fn taps(&self, dim: usize, from: usize, to: usize) -> Result<Vec<Vec<Tap>>> {
        let factor = self
            .factors
            .as_ref()
            .and_then(|factors| factors.get(dim).copied());
        Ok(self
            .way
            .taps(Line { from, to, factor }, candle_dtype(self.dtype)?))
    }
}
