//! Layers that put elements around their input.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// Pads rows `[N, C, L]` (or `[C, L]`) with their elements mirrored at the edges.
#[derive(Module, Clone, Debug)]
pub struct ReflectionPad1d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReflectionPad1d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 2]) -> Self {
        ReflectionPad1d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReflectionPad1d")]
impl ReflectionPad1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "reflect", None)
    }
}

/// Pads images `[N, C, H, W]` (or `[C, H, W]`) with their elements mirrored at the edges.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], (1, 1, 3))?;
/// let y = nn::ReflectionPad2d::new([2, 1, 0, 0]).forward(&x)?;
/// assert_eq!(y.to_vec()?, [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct ReflectionPad2d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReflectionPad2d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 4]) -> Self {
        ReflectionPad2d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReflectionPad2d")]
impl ReflectionPad2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "reflect", None)
    }
}

/// Pads volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) with their elements mirrored at the edges.
#[derive(Module, Clone, Debug)]
pub struct ReflectionPad3d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReflectionPad3d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 6]) -> Self {
        ReflectionPad3d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReflectionPad3d")]
impl ReflectionPad3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "reflect", None)
    }
}

/// Pads rows `[N, C, L]` (or `[C, L]`) by repeating the element at each edge.
#[derive(Module, Clone, Debug)]
pub struct ReplicationPad1d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReplicationPad1d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 2]) -> Self {
        ReplicationPad1d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReplicationPad1d")]
impl ReplicationPad1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "replicate", None)
    }
}

/// Pads images `[N, C, H, W]` (or `[C, H, W]`) by repeating the element at each edge.
#[derive(Module, Clone, Debug)]
pub struct ReplicationPad2d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReplicationPad2d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 4]) -> Self {
        ReplicationPad2d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReplicationPad2d")]
impl ReplicationPad2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "replicate", None)
    }
}

/// Pads volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) by repeating the element at each edge.
#[derive(Module, Clone, Debug)]
pub struct ReplicationPad3d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ReplicationPad3d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 6]) -> Self {
        ReplicationPad3d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ReplicationPad3d")]
impl ReplicationPad3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "replicate", None)
    }
}

/// Pads rows `[N, C, L]` (or `[C, L]`) with their elements from the other end.
#[derive(Module, Clone, Debug)]
pub struct CircularPad1d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl CircularPad1d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 2]) -> Self {
        CircularPad1d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::CircularPad1d")]
impl CircularPad1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "circular", None)
    }
}

/// Pads images `[N, C, H, W]` (or `[C, H, W]`) with their elements from the other end.
#[derive(Module, Clone, Debug)]
pub struct CircularPad2d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl CircularPad2d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 4]) -> Self {
        CircularPad2d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::CircularPad2d")]
impl CircularPad2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "circular", None)
    }
}

/// Pads volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) with their elements from the other end.
#[derive(Module, Clone, Debug)]
pub struct CircularPad3d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl CircularPad3d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 6]) -> Self {
        CircularPad3d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::CircularPad3d")]
impl CircularPad3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "circular", None)
    }
}

/// Pads rows `[N, C, L]` (or `[C, L]`) with `value`.
#[derive(Module, Clone, Debug)]
pub struct ConstantPad1d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
    /// The value of the added elements.
    pub value: f64,
}

impl ConstantPad1d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 2], value: f64) -> Self {
        ConstantPad1d {
            padding: padding.to_vec(),
            value,
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ConstantPad1d")]
impl ConstantPad1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", self.value)
    }
}

/// Pads images `[N, C, H, W]` (or `[C, H, W]`) with `value`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], (1, 1, 2))?;
/// let y = nn::ConstantPad2d::new([1, 0, 0, 1], 7.0).forward(&x)?;
/// assert_eq!(y.to_vec()?, [7.0, 1.0, 2.0, 7.0, 7.0, 7.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct ConstantPad2d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
    /// The value of the added elements.
    pub value: f64,
}

impl ConstantPad2d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 4], value: f64) -> Self {
        ConstantPad2d {
            padding: padding.to_vec(),
            value,
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ConstantPad2d")]
impl ConstantPad2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", self.value)
    }
}

/// Pads volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) with `value`.
#[derive(Module, Clone, Debug)]
pub struct ConstantPad3d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
    /// The value of the added elements.
    pub value: f64,
}

impl ConstantPad3d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 6], value: f64) -> Self {
        ConstantPad3d {
            padding: padding.to_vec(),
            value,
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ConstantPad3d")]
impl ConstantPad3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", self.value)
    }
}

/// Pads rows `[N, C, L]` (or `[C, L]`) with zeros.
#[derive(Module, Clone, Debug)]
pub struct ZeroPad1d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ZeroPad1d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 2]) -> Self {
        ZeroPad1d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ZeroPad1d")]
impl ZeroPad1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", 0.0)
    }
}

/// Pads images `[N, C, H, W]` (or `[C, H, W]`) with zeros.
#[derive(Module, Clone, Debug)]
pub struct ZeroPad2d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ZeroPad2d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 4]) -> Self {
        ZeroPad2d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ZeroPad2d")]
impl ZeroPad2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", 0.0)
    }
}

/// Pads volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) with zeros.
#[derive(Module, Clone, Debug)]
pub struct ZeroPad3d {
    /// How many elements to add before and after the last dim, then the one before it, and so on;
    /// negative numbers remove elements.
    pub padding: Vec<i64>,
}

impl ZeroPad3d {
    /// A layer for one padding.
    pub fn new(padding: [i64; 6]) -> Self {
        ZeroPad3d {
            padding: padding.to_vec(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::ZeroPad3d")]
impl ZeroPad3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the padding does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pad(x, self.padding.clone(), "constant", 0.0)
    }
}
