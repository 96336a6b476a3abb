//! Layers that give images other sizes: `Upsample`, and its two older forms.

use fx_core::file::{Json, JsonMap, Loader, Saver};
use fx_core::module::Component;
use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Scales, Shape, Sizes, Tensor};

/// `x` `[N, C, L]`, `[N, C, H, W]` or `[N, C, D, H, W]` enlarged `scale_factor` times, or to a `size`, by
/// [`ops::interpolate`].
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], (1, 1, 1, 2))?;
/// let y = nn::Upsample::new(2).forward(&x)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 4]);
/// assert_eq!(y.to_vec()?, [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
/// let rows = Tensor::ones((1, 2, 4))?;
/// assert_eq!(nn::Upsample::to_size(6).mode("linear").forward(&rows)?.dims()?, [1, 2, 6]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Upsample {
    /// How many times as large the result is: one number, or one for each dim.
    pub scale_factor: Scales,
    /// The mode of [`ops::interpolate`], such as `"nearest"`.
    pub mode: String,
    /// For the modes that compute between places: whether the centres of the first and last places stay.
    pub align_corners: Option<bool>,
    /// The size of the result, where there is no factor.
    pub size: GivenSize,
}

impl Upsample {
    /// By a factor, to the nearest places.
    pub fn new(scale_factor: impl Into<Scales>) -> Self {
        Upsample {
            scale_factor: scale_factor.into(),
            mode: "nearest".into(),
            align_corners: None,
            size: GivenSize(None),
        }
    }

    /// To a size, by the nearest places.
    pub fn to_size(size: impl Into<Shape>) -> Self {
        Upsample {
            size: GivenSize(Some(size.into().0)),
            ..Upsample::new(None)
        }
    }
}

options!(Upsample { mode: impl Into<String>, align_corners: impl Into<Option<bool>> });

#[trace(leaf, path = "fx_nn::nn::Upsample")]
impl Upsample {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the mode is not for such an `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let size = self.size.0.as_ref().map(Sizes::from);
        ops::interpolate(
            x,
            size,
            self.scale_factor.clone(),
            &self.mode,
            self.align_corners,
        )
    }
}

/// The size of the results of an [`Upsample`], if it has one: a number for each dim, or one for all.
///
/// A file of a layer without a size may lack it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenSize(pub Option<Vec<usize>>);

impl Component for GivenSize {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        self.0.to_saved(saver)
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        Option::from_saved(saved, loader).map(GivenSize)
    }

    fn from_field(name: &str, fields: &JsonMap, loader: &mut Loader<'_>) -> Result<Self> {
        match fields.contains_key(name) {
            true => loader.field(fields, name, Self::from_saved),
            false => Ok(GivenSize(None)),
        }
    }
}

macro_rules! older {
    ($($layer:ident $path:literal $mode:literal $corners:expr, $how:literal, $y:literal;)*) => {$(
        #[doc = concat!("Images `[N, C, H, W]` enlarged by a factor or to a size, ", $how, ".")]
        ///
        /// ```
        /// use fx_nn::prelude::*;
        /// let x = Tensor::from_vec(vec![1.0f32, 4.0], (1, 1, 1, 2))?;
        #[doc = concat!("let y = nn::", stringify!($layer), "::to_size((1, 4)).forward(&x)?;")]
        #[doc = concat!("assert_eq!(y.to_vec()?, ", $y, ");")]
        /// # Ok::<(), fx_nn::Error>(())
        /// ```
        #[derive(Module, Clone, Debug)]
        pub struct $layer {
            /// The size of the result, if it is given.
            pub size: Option<Vec<usize>>,
            /// How many times as large the result is, if it has no given size.
            pub scale_factor: Scales,
        }

        impl $layer {
            /// By a factor: one number, or one for each dim.
            pub fn new(scale_factor: impl Into<Scales>) -> Self {
                $layer { size: None, scale_factor: scale_factor.into() }
            }

            /// To a size: one number, or one for each dim.
            pub fn to_size(size: impl Into<Shape>) -> Self {
                $layer { size: Some(size.into().0), scale_factor: Scales::None }
            }
        }

        #[trace(leaf, path = $path)]
        impl $layer {
            /// Applies the layer.
            ///
            /// # Errors
            /// Returns an error if `x` is no image.
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let size = self.size.as_ref().map(Sizes::from);
                ops::interpolate(x, size, self.scale_factor.clone(), $mode, $corners)
            }
        }
    )*};
}

older! {
    UpsamplingNearest2d "fx_nn::nn::UpsamplingNearest2d" "nearest" None,
        "to the nearest pixels", "[1.0, 1.0, 4.0, 4.0]";
    UpsamplingBilinear2d "fx_nn::nn::UpsamplingBilinear2d" "bilinear" Some(true),
        "bilinear, with the corners where they are", "[1.0, 2.0, 3.0, 4.0]";
}
