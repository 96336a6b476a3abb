//! The functions that a kernel applies to a value before it stores it.

/// What a kernel applies to each result before it stores it, after the bias and the residual.
///
/// Each is PyTorch's function of the same name. NaN stays NaN.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Activation {
    /// The value as it is.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x * sigmoid(x)`.
    Silu,
    /// `x * relu6(x + 3) / 6`.
    Hardswish,
    /// `x * Φ(x)`, by the error function.
    Gelu,
    /// GELU by its `tanh` form.
    GeluTanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `tanh(x)`.
    Tanh,
}

crate::source::source!(Activation);
