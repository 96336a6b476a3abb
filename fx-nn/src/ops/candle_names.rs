//! candle's names of what PyTorch calls otherwise, as methods of `Tensor`, so that a model written for candle keeps its
//! lines.
//!
//! Invariant: each records the functions of PyTorch that it is, and none has a name that PyTorch gives another meaning.

use std::borrow::Borrow;

use fx_core::module::Module;
use fx_core::tensor::Operand;
use fx_core::trace::Forward;
use fx_core::value::Int;
use fx_core::{Error, Result};

use super::{
    amax, amin, argmax, argmin, avg_pool2d, cat, elu, gelu, interpolate, logsumexp, max_pool2d,
    mean, stack, sum,
};
use crate::error::Fx;
use crate::tensor::{Dims, Pair, Sizes, Tensor};

/// Dims by candle's names, counted from the end: `D::Minus1` is -1.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones((2, 3))?;
/// assert_eq!(x.unsqueeze(D::Minus1)?.dims()?, [2, 3, 1]);
/// assert_eq!(ops::softmax(&x, D::Minus1)?.sum(D::Minus2)?.dims()?, [3]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum D {}

#[allow(non_upper_case_globals, non_snake_case, reason = "candle's names")]
impl D {
    /// The last dim.
    pub const Minus1: i64 = -1;
    /// The dim before the last one.
    pub const Minus2: i64 = -2;

    /// The dim so many before the end.
    pub const fn Minus(places: i64) -> i64 {
        -places
    }
}

/// What [`Tensor::apply`] takes: a module, a function of a tensor, or an optional one of them, where none is the
/// identity. `Kind` says which of them it is.
pub trait Apply<Kind> {
    /// What it makes of a tensor.
    ///
    /// # Errors
    /// Returns its error.
    #[track_caller]
    fn apply_to(&self, x: &Tensor) -> Result<Tensor>;
}

/// The kind of modules.
#[derive(Debug)]
pub enum AModule {}
/// The kind of modules in a box.
#[derive(Debug)]
pub enum ABoxedModule {}
/// The kind of functions of a tensor.
#[derive(Debug)]
pub enum AFunction {}
/// The kind of optional ones of a kind.
#[derive(Debug)]
pub struct AnOption<Kind>(std::marker::PhantomData<Kind>);

impl<M: Module + ?Sized> Apply<AModule> for M {
    #[track_caller]
    fn apply_to(&self, x: &Tensor) -> Result<Tensor> {
        Forward::forward(self, x)
    }
}

impl Apply<ABoxedModule> for Box<dyn Module> {
    #[track_caller]
    fn apply_to(&self, x: &Tensor) -> Result<Tensor> {
        Forward::forward(&**self, x)
    }
}

impl<F: Fn(&Tensor) -> Result<Tensor> + ?Sized> Apply<AFunction> for F {
    #[track_caller]
    fn apply_to(&self, x: &Tensor) -> Result<Tensor> {
        self(x)
    }
}

impl<Kind, A: Apply<Kind>> Apply<AnOption<Kind>> for Option<A> {
    #[track_caller]
    fn apply_to(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Some(own) => own.apply_to(x),
            None => Ok(x.clone()),
        }
    }
}

impl Tensor {
    /// What a module or a function makes of the tensor: `x.apply(&layer)` is `layer.forward(&x)`.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let layer = nn::Linear::new(3, 2)?;
    /// let y = Tensor::ones((4, 3))?.apply(&layer)?.apply(&|x: &Tensor| x.relu())?.apply(&None::<nn::Linear>)?;
    /// assert_eq!(y.dims()?, [4, 2]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the module or the function.
    #[track_caller]
    pub fn apply<Kind>(&self, layer: &(impl Apply<Kind> + ?Sized)) -> Result<Tensor> {
        layer.apply_to(self)
    }

    /// [`ops::cat`](crate::ops::cat): tensors one after another along a dim.
    ///
    /// # Errors
    /// Returns the errors of the function.
    #[track_caller]
    pub fn cat(tensors: &[impl Borrow<Tensor>], dim: i64) -> Result<Tensor> {
        cat(tensors, dim)
    }

    /// [`ops::stack`](crate::ops::stack): tensors along a new dim.
    ///
    /// # Errors
    /// Returns the errors of the function.
    #[track_caller]
    pub fn stack(tensors: &[impl Borrow<Tensor>], dim: i64) -> Result<Tensor> {
        stack(tensors, dim)
    }

    /// `(x * mul)? + add`.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic and its trace is not running here.
    #[track_caller]
    pub fn affine(&self, mul: f64, add: f64) -> Result<Tensor> {
        (self * mul)? + add
    }

    /// All dims up to `end_dim` as one: `x.flatten(0, end_dim)`.
    ///
    /// # Errors
    /// Returns an error if there is no such dim.
    #[track_caller]
    pub fn flatten_to(&self, end_dim: i64) -> Result<Tensor> {
        self.flatten(0, end_dim)
    }

    /// `x.expand(shape)`, whose last sizes are the tensor's.
    ///
    /// # Errors
    /// Returns an error if the sizes do not fit.
    #[track_caller]
    pub fn broadcast_as(&self, shape: impl Into<Sizes>) -> Result<Tensor> {
        self.expand(shape)
    }

    /// Slice `index` of the first dim: `x.select(0, index)`.
    ///
    /// # Errors
    /// Returns an error if there is no such slice.
    #[track_caller]
    pub fn get(&self, index: impl Into<Int>) -> Result<Tensor> {
        self.select(0, index)
    }

    /// Slice `index` of a dim: `x.select(dim, index)`.
    ///
    /// # Errors
    /// Returns an error if there is no such slice.
    #[track_caller]
    pub fn get_on_dim(&self, dim: i64, index: impl Into<Int>) -> Result<Tensor> {
        self.select(dim, index)
    }

    /// How many dims there are: `x.ndim()`.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn rank(&self) -> Result<Int> {
        self.ndim()
    }

    /// How many elements there are: `x.numel()`.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn elem_count(&self) -> Result<Int> {
        self.numel()
    }

    /// The places of the elements of the last dim in order: `x.argsort(-1, !ascending)`.
    ///
    /// # Errors
    /// Returns an error if the tensor has no dims.
    #[track_caller]
    pub fn arg_sort_last_dim(&self, ascending: bool) -> Result<Tensor> {
        self.argsort(-1, !ascending)
    }

    /// The elements of the last dim in order, and their places: `x.sort(-1, !ascending)`.
    ///
    /// # Errors
    /// Returns an error if the tensor has no dims.
    #[track_caller]
    pub fn sort_last_dim(&self, ascending: bool) -> Result<(Tensor, Tensor)> {
        self.sort(-1, !ascending)
    }

    /// `ops::r#where(self, on_true, on_false)`.
    ///
    /// # Errors
    /// Returns an error if the tensor is not of truth values, or the shapes do not broadcast.
    #[track_caller]
    pub fn where_cond(&self, on_true: &Tensor, on_false: &Tensor) -> Result<Tensor> {
        super::r#where(self, on_true, on_false)
    }

    /// [`ops::logsumexp`](crate::ops::logsumexp) over dims, which go.
    ///
    /// # Errors
    /// Returns an error if there are no such dims.
    #[track_caller]
    pub fn log_sum_exp(&self, dims: impl Into<Dims>) -> Result<Tensor> {
        logsumexp(self, dims, false)
    }

    /// [`ops::gelu`](crate::ops::gelu) without an approximation.
    ///
    /// # Errors
    /// Returns an error if the tensor is not of floating point numbers.
    #[track_caller]
    pub fn gelu_erf(&self) -> Result<Tensor> {
        gelu(self, "none")
    }

    /// [`ops::elu`](crate::ops::elu).
    ///
    /// # Errors
    /// Returns an error if the tensor is not of floating point numbers.
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        elu(self, alpha)
    }

    /// Each element to a power: `x.pow(exponent)`.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn powf(&self, exponent: f64) -> Result<Tensor> {
        self.pow(exponent)
    }

    /// Zeros like it: [`ops::zeros_like`](crate::ops::zeros_like).
    ///
    /// # Errors
    /// Returns an error if the device fails.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        super::zeros_like(self, None)
    }

    /// Ones like it: [`ops::ones_like`](crate::ops::ones_like).
    ///
    /// # Errors
    /// Returns an error if the device fails.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        super::ones_like(self, None)
    }

    /// [`ops::avg_pool2d`](crate::ops::avg_pool2d) of windows side by side.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    #[track_caller]
    pub fn avg_pool2d(&self, kernel_size: impl Into<Pair>) -> Result<Tensor> {
        let kernel_size = kernel_size.into();
        self.avg_pool2d_with_stride(kernel_size, kernel_size)
    }

    /// [`ops::avg_pool2d`](crate::ops::avg_pool2d) without padding.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    #[track_caller]
    pub fn avg_pool2d_with_stride(
        &self,
        kernel_size: impl Into<Pair>,
        stride: impl Into<Pair>,
    ) -> Result<Tensor> {
        avg_pool2d(self, kernel_size, stride, 0, false, true)
    }

    /// [`ops::max_pool2d`](crate::ops::max_pool2d) of windows side by side.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    #[track_caller]
    pub fn max_pool2d(&self, kernel_size: impl Into<Pair>) -> Result<Tensor> {
        let kernel_size = kernel_size.into();
        self.max_pool2d_with_stride(kernel_size, kernel_size)
    }

    /// [`ops::max_pool2d`](crate::ops::max_pool2d) without padding.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    #[track_caller]
    pub fn max_pool2d_with_stride(
        &self,
        kernel_size: impl Into<Pair>,
        stride: impl Into<Pair>,
    ) -> Result<Tensor> {
        max_pool2d(self, kernel_size, stride, 0, 1, false)
    }

    /// Rows `[N, C, L]` of another length, of the nearest places: [`ops::interpolate`](crate::ops::interpolate).
    ///
    /// # Errors
    /// Returns an error if the tensor is no row.
    #[track_caller]
    pub fn upsample_nearest1d(&self, length: impl Into<Int>) -> Result<Tensor> {
        interpolate(self, Some([length.into()].into()), None, "nearest", None)
    }

    /// Another name of [`upsample_nearest1d`](Tensor::upsample_nearest1d).
    ///
    /// # Errors
    /// Returns an error if the tensor is no row.
    #[track_caller]
    pub fn interpolate1d(&self, length: impl Into<Int>) -> Result<Tensor> {
        self.upsample_nearest1d(length)
    }

    /// Images `[N, C, H, W]` of another size, of the nearest pixels: [`ops::interpolate`](crate::ops::interpolate).
    ///
    /// # Errors
    /// Returns an error if the tensor is no image.
    #[track_caller]
    pub fn upsample_nearest2d(
        &self,
        height: impl Into<Int>,
        width: impl Into<Int>,
    ) -> Result<Tensor> {
        let size = [height.into(), width.into()];
        interpolate(self, Some(size.into()), None, "nearest", None)
    }

    /// Another name of [`upsample_nearest2d`](Tensor::upsample_nearest2d).
    ///
    /// # Errors
    /// Returns an error if the tensor is no image.
    #[track_caller]
    pub fn interpolate2d(&self, height: impl Into<Int>, width: impl Into<Int>) -> Result<Tensor> {
        self.upsample_nearest2d(height, width)
    }

    /// Images `[N, C, H, W]` of another size, bilinear: [`ops::interpolate`](crate::ops::interpolate).
    ///
    /// # Errors
    /// Returns an error if the tensor is no image.
    #[track_caller]
    pub fn upsample_bilinear2d(
        &self,
        height: impl Into<Int>,
        width: impl Into<Int>,
        align_corners: bool,
    ) -> Result<Tensor> {
        let size = [height.into(), width.into()];
        interpolate(
            self,
            Some(size.into()),
            None,
            "bilinear",
            Some(align_corners),
        )
    }

    /// Images `[N, C, H, W]` so many times as large, bilinear: [`ops::interpolate`](crate::ops::interpolate).
    ///
    /// # Errors
    /// Returns an error if the tensor is no image.
    #[track_caller]
    pub fn upsample_bilinear2d_with_scale(
        &self,
        height: f64,
        width: f64,
        align_corners: bool,
    ) -> Result<Tensor> {
        interpolate(self, None, [height, width], "bilinear", Some(align_corners))
    }

    /// The one element; a trace has none.
    ///
    /// # Errors
    /// Returns an error if there are several elements, or they are of another type.
    #[track_caller]
    pub fn to_scalar<T: candle_core::WithDType>(&self) -> Result<T> {
        self.data("to_scalar")?.to_scalar().fx()
    }

    /// The one element; a trace has none.
    ///
    /// # Errors
    /// Returns an error if there are several elements, or they are of another type.
    #[track_caller]
    pub fn to_vec0<T: candle_core::WithDType>(&self) -> Result<T> {
        self.data("to_vec0")?.to_vec0().fx()
    }

    /// The elements of a tensor of one dim; a trace has none.
    ///
    /// # Errors
    /// Returns an error if there are more dims, or the elements are of another type.
    #[track_caller]
    pub fn to_vec1<T: candle_core::WithDType>(&self) -> Result<Vec<T>> {
        self.data("to_vec1")?.to_vec1().fx()
    }

    /// The elements of a tensor of two dims; a trace has none.
    ///
    /// # Errors
    /// Returns an error if there are more or fewer dims, or the elements are of another type.
    #[track_caller]
    pub fn to_vec2<T: candle_core::WithDType>(&self) -> Result<Vec<Vec<T>>> {
        self.data("to_vec2")?.to_vec2().fx()
    }

    /// The elements of a tensor of three dims; a trace has none.
    ///
    /// # Errors
    /// Returns an error if there are more or fewer dims, or the elements are of another type.
    #[track_caller]
    pub fn to_vec3<T: candle_core::WithDType>(&self) -> Result<Vec<Vec<Vec<T>>>> {
        self.data("to_vec3")?.to_vec3().fx()
    }

    /// Zeros before and after the elements of a dim: [`ops::pad`](crate::ops::pad).
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or it is counted from the start and a trace does not know how many
    /// there are: count it from the end.
    #[track_caller]
    pub fn pad_with_zeros(&self, dim: i64, left: usize, right: usize) -> Result<Tensor> {
        let behind = match (dim, self.known_rank()) {
            (..0, _) => (-dim - 1) as usize,
            (_, Some(rank)) if (dim as usize) < rank => rank - 1 - dim as usize,
            (_, Some(rank)) => {
                return Err(Error::msg(format_args!(
                    "pad_with_zeros: a tensor of {rank} dims has no dim {dim}"
                )));
            }
            (_, None) => {
                return Err(Error::msg(format_args!(
                    "pad_with_zeros: a trace does not know how many dims there are behind {dim}: count it from the \
                     end, `D::Minus1` for the last one"
                )));
            }
        };
        let mut padding = vec![0i64; behind * 2];
        padding.extend([left as i64, right as i64]);
        super::pad(self, padding, "constant", None)
    }
}

macro_rules! renamed {
    ($($name:ident => $method:ident, $like:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("`", $like, "`.")]
            ///
            /// # Errors
            /// Returns the errors of that method.
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                self.$method()
            }
        )*}
    };
}
renamed! {
    sqr => square, "x.square()";
    recip => reciprocal, "x.reciprocal()";
}

macro_rules! broadcast {
    ($($name:ident $like:literal |$a:ident, $b:ident| $call:expr;)*) => {
        impl Tensor {$(
            #[doc = concat!("`", $like, "`: shapes broadcast everywhere.")]
            ///
            /// # Errors
            /// Returns an error if the shapes do not broadcast.
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                let ($a, $b) = (self, other);
                $call
            }
        )*}
    };
}
broadcast! {
    broadcast_add "x + other" |a, b| a + b;
    broadcast_sub "x - other" |a, b| a - b;
    broadcast_mul "x * other" |a, b| a * b;
    broadcast_div "x / other" |a, b| a / b;
    broadcast_pow "x.pow(other)" |a, b| a.pow(b);
    broadcast_maximum "x.maximum(other)" |a, b| a.maximum(b);
    broadcast_minimum "x.minimum(other)" |a, b| a.minimum(b);
    broadcast_matmul "x.matmul(other)" |a, b| a.matmul(b);
    broadcast_eq "x.eq(other)" |a, b| a.eq(b);
    broadcast_ne "x.ne(other)" |a, b| a.ne(b);
    broadcast_lt "x.lt(other)" |a, b| a.lt(b);
    broadcast_le "x.le(other)" |a, b| a.le(b);
    broadcast_gt "x.gt(other)" |a, b| a.gt(b);
    broadcast_ge "x.ge(other)" |a, b| a.ge(b);
}

macro_rules! operators {
    ($($name:ident $sign:tt $like:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("`", $like, "`, as a method; shapes broadcast.")]
            ///
            /// # Errors
            /// Returns an error if the shapes do not broadcast.
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
                fx_core::tensor::binary(fx_core::value::Operator::$sign, self, &other)
            }
        )*}
    };
}
operators! {
    add Add "x + other";
    sub Sub "x - other";
    mul Mul "x * other";
    div Truediv "x / other";
}

macro_rules! whole {
    ($($name:ident $function:ident;)*) => {
        impl Tensor {$(
            #[doc = concat!("[`ops::", stringify!($function), "`](crate::ops::", stringify!($function), ") of all elements.")]
            ///
            /// # Errors
            /// Returns an error if there are none of which it could be.
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                $function(self, .., false)
            }
        )*}
    };
}
whole! {
    sum_all sum;
    mean_all mean;
    max_all amax;
    min_all amin;
}

macro_rules! keeping {
    ($($name:ident $function:ident $dim:ty;)*) => {
        impl Tensor {$(
            #[doc = concat!("[`ops::", stringify!($function), "`](crate::ops::", stringify!($function),
                ") along a dim, which stays, of size 1.")]
            ///
            /// # Errors
            /// Returns an error if there is no such dim, or it is empty.
            #[track_caller]
            pub fn $name(&self, dim: $dim) -> Result<Tensor> {
                $function(self, dim, true)
            }
        )*}
    };
}
keeping! {
    max_keepdim amax i64;
    min_keepdim amin i64;
    argmax_keepdim argmax i64;
    argmin_keepdim argmin i64;
}
