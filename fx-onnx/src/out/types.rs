//! In which element type an operator computes: each of ONNX's operators leaves types out.
//!
//! Invariant: what an operator is given is of a type that the operator set has for it; what it gives is cast back.

use fx_nn::value::DType;
use fx_nn::{Error, Result};

use super::context::Cx;
use fx_nn::lowering::{Name, Operand};

/// The operator set from which on an operator takes `bfloat16`.
fn bfloat16_since(op: &str) -> i64 {
    match op {
        "Acos"
        | "Acosh"
        | "Asin"
        | "Asinh"
        | "Atan"
        | "Atanh"
        | "AveragePool"
        | "Bernoulli"
        | "Conv"
        | "ConvTranspose"
        | "Cos"
        | "Cosh"
        | "Det"
        | "Elu"
        | "GlobalAveragePool"
        | "GlobalMaxPool"
        | "GridSample"
        | "GRU"
        | "HardSigmoid"
        | "HardSwish"
        | "InstanceNormalization"
        | "LpPool"
        | "LSTM"
        | "MaxPool"
        | "Mish"
        | "NegativeLogLikelihoodLoss"
        | "RNN"
        | "Round"
        | "Selu"
        | "Sin"
        | "Sinh"
        | "Softsign"
        | "Tan" => 22,
        "IsInf" => 20,
        "TopK" => 24,
        "Celu" | "Compress" | "Einsum" | "Unique" => i64::MAX,
        _ => 0,
    }
}

/// Whether an operator has an element type.
fn has(op: &str, dtype: DType, opset: i64) -> bool {
    match dtype {
        DType::F32 => true,
        DType::F64 => op != "Celu",
        DType::F16 => op != "Celu" && (op != "IsInf" || opset >= 20),
        DType::BF16 => opset >= bfloat16_since(op),
        DType::Bool => matches!(op, "Compress" | "Equal" | "Unique" | "Where"),
        _ => match op {
            "Abs" | "Add" | "ArgMax" | "ArgMin" | "Clip" | "Compress" | "Div" | "Einsum"
            | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Max" | "Min"
            | "Mod" | "Mul" | "Sign" | "Sub" | "TopK" | "Unique" | "Where" => true,
            "BitwiseAnd" | "BitwiseNot" | "BitwiseOr" | "BitwiseXor" => true,
            "Neg" | "Relu" => !is_unsigned(dtype),
            "ReduceMax" | "ReduceMin" => matches!(dtype, DType::I8 | DType::U8) || is_wide(dtype),
            "MaxPool" => matches!(dtype, DType::I8 | DType::U8),
            "CumSum" | "Gemm" | "MatMul" | "PRelu" | "ReduceLogSumExp" | "ReduceMean"
            | "ReduceProd" | "ReduceSum" => is_wide(dtype),
            "Pow" => matches!(dtype, DType::I32 | DType::I64),
            _ => false,
        },
    }
}

fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::U16 | DType::U32)
}

fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64 | DType::U32)
}

/// The type in which an operator computes on elements of a type: a wider one where it does not have theirs.
fn carrier(op: &str, dtype: DType, opset: i64) -> Result<DType> {
    let wider: &[DType] = match dtype {
        DType::F16 | DType::BF16 | DType::F64 => &[DType::F32],
        DType::U32 => &[DType::I64],
        _ => &[DType::I32, DType::I64],
    };
    let mut all = std::iter::once(&dtype).chain(wider);
    let found = all.find(|dtype| has(op, **dtype, opset)).copied();
    found.ok_or_else(|| {
        Error::msg(format_args!(
            "ONNX's `{op}` takes no {dtype}: convert it first"
        ))
    })
}

impl Cx {
    /// The tensor in an element type that the operator computes in.
    ///
    /// # Errors
    /// Returns an error if the operator has none that holds its elements.
    pub(super) fn carried(&mut self, op: &str, x: &Operand) -> Result<Operand> {
        let carrier = carrier(op, x.dtype, self.opset)?;
        self.cast(x, carrier)
    }

    /// A node of operands of one element type, which its result has too.
    ///
    /// # Errors
    /// As [`carried`](Cx::carried).
    pub(super) fn cast_op(&mut self, op: &str, operands: &[&Operand]) -> Result<Name> {
        let mut names = Vec::with_capacity(operands.len());
        let (mut own, mut carrier) = (DType::F32, DType::F32);
        for operand in operands {
            let carried = self.carried(op, operand)?;
            (own, carrier) = (operand.dtype, carried.dtype);
            names.push(carried.name);
        }
        let name = self.op(op, &names.iter().collect::<Vec<_>>());
        self.given_as(name, carrier, own)
    }

    /// A result of an operator in its carrier, as an element type.
    ///
    /// # Errors
    /// Returns an error if ONNX does not have the type.
    pub(super) fn given_as(&mut self, name: Name, carrier: DType, dtype: DType) -> Result<Name> {
        let made = Operand {
            name,
            dtype: carrier,
            shape: Vec::new(),
        };
        Ok(self.cast(&made, dtype)?.name)
    }
}
