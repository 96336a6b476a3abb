//! The text of MLIR: types, numbers, attributes and quoted names.
//!
//! Invariant: a text of the user stands only inside of quotes, where nothing in it ends them.

use std::fmt::Write as _;

use fx_nn::value::DType;

/// The name of an element type.
pub(crate) fn element_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "i1",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 => "ui64",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::BF16 => "bf16",
        DType::F16 => "f16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        _ => "none",
    }
}

/// The type of a tensor.
pub(crate) fn tensor_type(out: &mut String, dtype: DType, shape: &[i64]) {
    out.push_str("tensor<");
    for size in shape {
        let _ = write!(out, "{size}x");
    }
    out.push_str(element_type(dtype));
    out.push('>');
}

/// A number as an element of a type.
pub(crate) fn number(out: &mut String, number: f64, dtype: DType) {
    let _ = match dtype {
        DType::Bool => write!(out, "{}", number != 0.0),
        dtype if dtype.is_floating_point() => float(out, number, dtype),
        _ => write!(out, "{}", wrapped(number as i64, dtype)),
    };
}

/// A whole number as an element of a type of whole numbers, which it wraps around in.
pub(crate) fn wrapped(number: i64, dtype: DType) -> i64 {
    match dtype {
        DType::U8 => i64::from(number as u8),
        DType::U16 => i64::from(number as u16),
        DType::U32 => i64::from(number as u32),
        DType::I8 => i64::from(number as i8),
        DType::I16 => i64::from(number as i16),
        DType::I32 => i64::from(number as i32),
        _ => number,
    }
}

/// A float: in decimal, or by its bits where decimal has no form.
fn float(out: &mut String, number: f64, dtype: DType) -> std::fmt::Result {
    let overflows = dtype == DType::F32 && (number as f32).is_infinite();
    if number.is_finite() && !overflows && !matches!(dtype, DType::F16 | DType::BF16) {
        let text = match dtype {
            DType::F32 => format!("{:e}", number as f32),
            _ => format!("{number:e}"),
        };
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        return write!(out, "{digits}{point}e{exponent}");
    }
    match dtype {
        DType::F16 => write!(out, "0x{:04X}", half::f16::from_f64(number).to_bits()),
        DType::BF16 => write!(out, "0x{:04X}", half::bf16::from_f64(number).to_bits()),
        DType::F32 => write!(out, "0x{:08X}", (number as f32).to_bits()),
        _ => write!(out, "0x{:016X}", number.to_bits()),
    }
}

/// Numbers as an attribute: `array<i64: 1, 2>`.
pub(crate) fn array(numbers: &[i64]) -> String {
    let mut out = String::from("array<i64");
    for (at, number) in numbers.iter().enumerate() {
        let _ = write!(out, "{}{number}", if at == 0 { ": " } else { ", " });
    }
    out.push('>');
    out
}

/// Numbers in brackets: `[1, 2]`.
pub(crate) fn list(numbers: &[i64]) -> String {
    let items: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// Pairs as an attribute: what is added before and behind each dim.
pub(crate) fn pairs(pairs: &[[i64; 2]]) -> String {
    if pairs.is_empty() {
        return "dense<> : tensor<0x2xi64>".to_string();
    }
    let items: Vec<String> = pairs
        .iter()
        .map(|[before, behind]| format!("[{before}, {behind}]"))
        .collect();
    format!(
        "dense<[{}]> : tensor<{}x2xi64>",
        items.join(", "),
        pairs.len()
    )
}

/// A text in quotes.
pub(crate) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let _ = write!(out, "\\{byte:02X}");
            }
            byte => out.push(char::from(byte)),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_mlir() {
        let written = |value, dtype| {
            let mut out = String::new();
            number(&mut out, value, dtype);
            out
        };
        assert_eq!(written(1.0, DType::F32), "1.0e0");
        assert_eq!(written(0.1, DType::F32), "1.0e-1");
        assert_eq!(written(-2.5e-7, DType::F64), "-2.5e-7");
        assert_eq!(written(f64::NEG_INFINITY, DType::F32), "0xFF800000");
        assert_eq!(written(1.5, DType::BF16), "0x3FC0");
        assert_eq!(written(-3.0, DType::I64), "-3");
        assert_eq!(written(1.0, DType::Bool), "true");
        let mut out = String::new();
        quoted(&mut out, "a\"b\\c\n%x é");
        assert_eq!(out, r#""a\22b\5Cc\0A%x \C3\A9""#);
    }
}
