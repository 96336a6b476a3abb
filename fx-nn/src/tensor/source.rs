//! The spelling of tensor operations in generated source.

use fx_core::tensor::{IndexSource, TensorSource};
use fx_core::value::Operator;

use super::index::MOST_PARTS;

/// This crate's names of operators that Rust lacks.
pub(super) struct Spelling;

impl TensorSource for Spelling {
    fn index(&self, tensor: &str, index: &IndexSource) -> Option<String> {
        Some(format!("{tensor}.i({})", part(index)?))
    }

    fn operator(&self, op: Operator, operands: &[&str]) -> Option<String> {
        Some(match (op, operands) {
            (Operator::Matmul, [a, b]) => format!("{a}.matmul({b})"),
            (Operator::Pow, [a, b]) => format!("{a}.pow({b})"),
            (Operator::Floordiv, [a, b]) => format!("{a}.floor_divide({b})"),
            (Operator::Abs, [a]) => format!("{a}.abs()"),
            _ => return None,
        })
    }

    fn attribute(&self, tensor: &str, name: &str) -> Option<String> {
        Some(format!("{tensor}.{name}()"))
    }

    fn names(&self) -> &[&'static str] {
        &["Dims", "Ellipsis", "NewAxis", "Shape"]
    }
}

/// The argument of [`Tensor::i`](super::Tensor::i).
fn part(index: &IndexSource) -> Option<String> {
    Some(match index {
        IndexSource::At(at) => at.clone(),
        IndexSource::NewDim => "NewAxis".to_string(),
        IndexSource::Rest => "Ellipsis".to_string(),
        IndexSource::Slice([start, end, step]) => {
            let [start, end] = [start, end].map(|end| end.as_deref().unwrap_or_default());
            let range = format!("{start}..{end}");
            match (step, range.as_str()) {
                (None, _) => range,
                (Some(step), "..") => format!("every({step})"),
                (Some(step), range) => format!("every({step}).of({range})"),
            }
        }
        IndexSource::Parts(parts) => {
            let parts: Option<Vec<String>> = parts.iter().map(part).collect();
            match parts?.as_slice() {
                [one] => format!("({one},)"),
                many if many.len() > MOST_PARTS => return None,
                many => format!("({})", many.join(", ")),
            }
        }
        _ => return None,
    })
}
