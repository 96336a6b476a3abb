//! Element types of tensors, under PyTorch's names, with PyTorch's promotion order.

use std::fmt;

/// The element type of a tensor. More types will be added, such as complex numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// True or false.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    I8,
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

/// The kind of numbers that a type holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Truths,
    Unsigned,
    Signed,
    Floats,
}

impl DType {
    /// All of them.
    pub const ALL: &'static [DType] = &[
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
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
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::BF16 => "bfloat16",
            DType::F16 => "float16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// The type with PyTorch's name.
    ///
    /// ```
    /// use fx_core::value::DType;
    /// assert_eq!(DType::from_name("uint16"), Some(DType::U16));
    /// assert_eq!(DType::from_name("complex64"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        DType::ALL
            .iter()
            .copied()
            .find(|dtype| dtype.name() == name)
    }

    /// Whether it holds fractions.
    pub fn is_floating_point(self) -> bool {
        self.numbers() == Numbers::Floats
    }

    fn numbers(self) -> Numbers {
        match self {
            DType::Bool => Numbers::Truths,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Numbers::Unsigned,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Numbers::Signed,
            DType::BF16 | DType::F16 | DType::F32 | DType::F64 => Numbers::Floats,
        }
    }

    /// Bytes per element.
    pub fn size_in_bytes(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::BF16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// One element from the bytes of its type.
    pub(super) fn element(self, bytes: &[u8]) -> f64 {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(eight);
        // The upper bytes are zero, so narrowing loses nothing.
        match self {
            DType::Bool => f64::from(bits != 0),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => bits as f64,
            DType::I8 => f64::from(bits as i8),
            DType::I16 => f64::from(bits as i16),
            DType::I32 => f64::from(bits as i32),
            DType::I64 => bits as i64 as f64,
            DType::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
            DType::F16 => half::f16::from_bits(bits as u16).to_f64(),
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            DType::F64 => f64::from_bits(bits),
        }
    }

    /// The result type of an operation on two tensors (`torch.promote_types`). PyTorch rejects
    /// `uint16`, `uint32` and `uint64` with other integers; here the result is the smallest type that holds the numbers
    /// of both, as PyTorch does for `uint8`, and `int64` where none does.
    ///
    /// ```
    /// use fx_core::value::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), DType::F32);
    /// assert_eq!(DType::Bool.promote(DType::U8), DType::U8);
    /// assert_eq!(DType::BF16.promote(DType::F16), DType::F32);
    /// assert_eq!(DType::I8.promote(DType::U8), DType::I16);
    /// assert_eq!(DType::U16.promote(DType::I16), DType::I32);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        use Numbers::{Floats, Signed, Truths, Unsigned};
        let wider = match self.size_in_bytes() >= other.size_in_bytes() {
            true => self,
            false => other,
        };
        match (self.numbers(), other.numbers()) {
            _ if self == other => self,
            // Only the two half-precision types have one size, and neither holds the other's
            // numbers.
            (Floats, Floats) if self.size_in_bytes() == other.size_in_bytes() => DType::F32,
            (Truths, _) | (_, Floats) if other.numbers() != self.numbers() => other,
            (_, Truths) | (Floats, _) if other.numbers() != self.numbers() => self,
            (Signed, Unsigned) => self.with_unsigned(other),
            (Unsigned, Signed) => other.with_unsigned(self),
            _ => wider,
        }
    }

    /// The smallest signed type that holds the numbers of a signed and an unsigned one.
    fn with_unsigned(self, unsigned: DType) -> DType {
        let needed = self.size_in_bytes().max(2 * unsigned.size_in_bytes());
        let mut signed = [DType::I8, DType::I16, DType::I32].into_iter();
        let found = signed.find(|dtype| dtype.size_in_bytes() == needed);
        found.unwrap_or(DType::I64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::DType::{self, *};

    /// PyTorch's `promote_types`, with a row for each type except `uint16`, `uint32` and `uint64`, which it
    /// rejects with other integers.
    const TORCH: [(DType, [DType; 10]); 10] = [
        (Bool, [Bool, U8, I8, I16, I32, I64, BF16, F16, F32, F64]),
        (U8, [U8, U8, I16, I16, I32, I64, BF16, F16, F32, F64]),
        (I8, [I8, I16, I8, I16, I32, I64, BF16, F16, F32, F64]),
        (I16, [I16, I16, I16, I16, I32, I64, BF16, F16, F32, F64]),
        (I32, [I32, I32, I32, I32, I32, I64, BF16, F16, F32, F64]),
        (I64, [I64, I64, I64, I64, I64, I64, BF16, F16, F32, F64]),
        (
            BF16,
            [BF16, BF16, BF16, BF16, BF16, BF16, BF16, F32, F32, F64],
        ),
        (F16, [F16, F16, F16, F16, F16, F16, F32, F16, F32, F64]),
        (F32, [F32, F32, F32, F32, F32, F32, F32, F32, F32, F64]),
        (F64, [F64; 10]),
    ];

    #[test]
    fn types_promote_as_pytorch_says() {
        let types = TORCH.map(|(dtype, _)| dtype);
        for (a, row) in TORCH {
            for (b, expected) in types.into_iter().zip(row) {
                assert_eq!(a.promote(b), expected, "{a} with {b}");
            }
        }
    }

    #[test]
    fn unsigned_types_promote_to_what_has_the_numbers_of_both() {
        let expected = [
            (U16, [U16, U16, I32, I32, I32, I64, BF16, F16, F32, F64]),
            (U32, [U32, U32, I64, I64, I64, I64, BF16, F16, F32, F64]),
            (U64, [U64, U64, I64, I64, I64, I64, BF16, F16, F32, F64]),
        ];
        let types = TORCH.map(|(dtype, _)| dtype);
        for (a, row) in expected {
            for (b, expected) in types.into_iter().zip(row) {
                assert_eq!(a.promote(b), expected, "{a} with {b}");
                assert_eq!(b.promote(a), expected, "{b} with {a}");
            }
        }
        assert_eq!((U16.promote(U32), U32.promote(U16)), (U32, U32));
        assert_eq!((U64.promote(U32), U16.promote(U64)), (U64, U64));
    }
}
