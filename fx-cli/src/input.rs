//! `--input`: the shape and type of an argument.

use std::str::FromStr;

use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, SpecSize};

/// An argument of the module.
#[derive(Debug, Clone)]
pub struct Input(pub Spec);

impl FromStr for Input {
    type Err = Error;

    /// Sizes with commas in between, each a number or a name, then `:` and a type, which is `float32` if it is left
    /// out. A scalar has no size: `:int64`.
    fn from_str(text: &str) -> Result<Self> {
        let (sizes, dtype) = text.split_once(':').unwrap_or((text, "float32"));
        let dtype = DType::from_name(dtype).ok_or_else(|| {
            let names: Vec<String> = DType::ALL.iter().map(ToString::to_string).collect();
            Error::msg(format_args!(
                "`{dtype}` is no element type: give one of {}",
                names.join(", ")
            ))
        })?;
        let sizes = sizes
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty());
        let sizes = sizes.map(|size| match size.parse::<usize>() {
            Ok(number) => SpecSize::from(number),
            Err(_) => SpecSize::from(size),
        });
        Ok(Input(Spec::tensor(sizes, dtype)))
    }
}
