//! `fx torch-script`: a Python file that exports a model of PyTorch as a program that fx reads.
//!
//! Invariant: the text is a whole program, with the sizes that stay open by their names.

use std::fmt::Write as _;
use std::str::FromStr;

use fx_nn::prelude::*;

/// The example size of the first open axis; each further one is larger, so that no two are taken for the same.
const FIRST: usize = 2;

/// An argument of `forward`: `NAME=SIZES` or `NAME=SIZES:TYPE`, each size a number or a name.
#[derive(Debug, Clone)]
pub struct Argument {
    name: String,
    sizes: Vec<Size>,
    dtype: DType,
}

#[derive(Debug, Clone)]
enum Size {
    Known(usize),
    Open(String),
}

impl FromStr for Argument {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::msg(format_args!(
                "`{text}`: {what}: write an argument as `ids=batch,length:int64`"
            ))
        };
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| wrong("it has no name"))?;
        if !is_name(name) {
            return Err(wrong("the name is none of Python's"));
        }
        let (sizes, dtype) = rest.split_once(':').unwrap_or((rest, "float32"));
        let sizes = sizes
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty());
        let sizes = sizes.map(|size| match size.parse() {
            Ok(number) => Ok(Size::Known(number)),
            Err(_) if is_name(size) => Ok(Size::Open(size.to_string())),
            Err(_) => Err(wrong("a size is a number or a name")),
        });
        Ok(Argument {
            name: name.to_string(),
            sizes: sizes.collect::<Result<_>>()?,
            dtype: DType::from_name(dtype.trim()).ok_or_else(|| wrong("the type is none"))?,
        })
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The script for the model that a function makes, `MODULE:FACTORY`.
///
/// # Errors
/// Returns an error if that is no function of a module, or there is no argument.
pub fn script(factory: &str, arguments: &[Argument]) -> Result<String> {
    let parts = factory.split_once(':');
    let is_module = |module: &str| module.split('.').all(is_name);
    let Some((module, function)) =
        parts.filter(|(module, name)| is_module(module) && is_name(name))
    else {
        return Err(Error::msg(format_args!(
            "`{factory}` is no function of a module: write it as `models.resnet:make`"
        )));
    };
    if arguments.is_empty() {
        return Err(Error::msg(
            "the arguments of `forward` are missing: give each as `--input ids=batch,length:int64`",
        ));
    }
    let mut open: Vec<&str> = Vec::new();
    for size in arguments.iter().flat_map(|argument| &argument.sizes) {
        if let Size::Open(name) = size
            && !open.contains(&name.as_str())
        {
            open.push(name);
        }
    }
    let example = |name: &str| {
        let at = open.iter().position(|known| *known == name).unwrap_or(0);
        FIRST + 3 * at
    };
    let mut text = format!(
        "\"\"\"Exports the model that `{factory}` makes as `model.pt2`, for fx: python export.py [FILE]\"\"\"\n\nimport sys\n\nimport torch\n\nfrom {module} import {function}\n\nmodel = {function}().eval()\n"
    );
    text.push_str("inputs = {\n");
    for argument in arguments {
        let sizes = argument.sizes.iter().map(|size| match size {
            Size::Known(number) => number.to_string(),
            Size::Open(name) => example(name).to_string(),
        });
        let sizes: Vec<String> = sizes.collect();
        let dtype = argument.dtype;
        let _ = writeln!(
            text,
            "    \"{}\": torch.zeros([{}], dtype=torch.{dtype}),",
            argument.name,
            sizes.join(", ")
        );
    }
    text.push_str("}\n# Sizes with a name may be any; the others are fixed.\n");
    for name in &open {
        let _ = writeln!(text, "{name} = torch.export.Dim(\"{name}\")");
    }
    text.push_str("dynamic_shapes = {\n");
    for argument in arguments {
        let dims = argument.sizes.iter().enumerate();
        let dims = dims.filter_map(|(at, size)| match size {
            Size::Known(_) => None,
            Size::Open(name) => Some(format!("{at}: {name}")),
        });
        let dims: Vec<String> = dims.collect();
        let _ = writeln!(text, "    \"{}\": {{{}}},", argument.name, dims.join(", "));
    }
    text.push_str(
        "}\nprogram = torch.export.export(model, (), inputs, dynamic_shapes=dynamic_shapes, strict=False)\ntorch.export.save(program, sys.argv[1] if len(sys.argv) > 1 else \"model.pt2\")\n",
    );
    Ok(text)
}
