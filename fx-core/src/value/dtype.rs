//! Element types of tensors, under PyTorch's names, with PyTorch's promotion order.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// True or false.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits: PyTorch's `long`.
    I64,
    /// Brain float, 16 bits.
    BF16,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl DType {
    /// All of them.
    pub const ALL: [DType; 10] = [
        DType::Bool,
        DType::U8,
        DType::U32,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::BF16,
        DType::F16,
        DType::F32,
        DType::F64,
    ];

    /// PyTorch's name, such as `float32`.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::U32 => "uint32",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::BF16 => "bfloat16",
            DType::F16 => "float16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// Whether it holds fractions.
    pub fn is_floating_point(self) -> bool {
        matches!(self, DType::BF16 | DType::F16 | DType::F32 | DType::F64)
    }

    /// Bytes an element takes.
    pub fn size_in_bytes(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::I16 | DType::BF16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The type of the result of an operation on two tensors (`torch.promote_types`).
    ///
    /// ```
    /// use fx_core::value::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), DType::F32);
    /// assert_eq!(DType::Bool.promote(DType::U8), DType::U8);
    /// assert_eq!(DType::BF16.promote(DType::F16), DType::F32);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        use DType::{BF16, F16, F32, I16, I64, U8, U32};
        let (low, high) = if self.rank() <= other.rank() {
            (self, other)
        } else {
            (other, self)
        };
        match (low, high) {
            (F16, BF16) | (BF16, F16) => F32,
            (U8, DType::I16) => I16,
            (U32, DType::I16 | DType::I32) | (I16 | DType::I32, U32) => I64,
            _ => high,
        }
    }

    fn rank(self) -> u8 {
        match self {
            DType::Bool => 0,
            DType::U8 => 1,
            DType::I16 => 2,
            DType::I32 => 3,
            DType::U32 => 4,
            DType::I64 => 5,
            DType::F16 => 6,
            DType::BF16 => 7,
            DType::F32 => 8,
            DType::F64 => 9,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
