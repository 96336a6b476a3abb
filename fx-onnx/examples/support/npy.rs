//! Tensors as NumPy's files.

use std::path::Path;

use fx_nn::prelude::*;
use fx_nn::tensor::Object;

/// Writes a tensor.
pub fn write(path: &Path, tensor: &Tensor) -> Result<()> {
    let data = tensor.to_data()?;
    let kind = match data.dtype() {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U32 => "<u4",
        DType::F16 => "<f2",
        DType::F64 => "<f8",
        _ => "<f4",
    };
    let dims: Vec<String> = data.shape().iter().map(|dim| format!("{dim},")).collect();
    let mut head = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        dims.concat()
    );
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(data.bytes()?.iter());
    std::fs::write(path, bytes).map_err(|e| Error::msg(format_args!("{}: {e}", path.display())))
}
