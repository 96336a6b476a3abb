//! The source generated of modules, kept in `tests/generated_source` and compiled with the tests.

use std::path::PathBuf;

use fx_core::graph_module::Folder;
use fx_core::{GraphModule, Result};

/// The type of every generated module.
pub const TYPE: &str = "Generated";

/// The source of a module as a crate of its own.
///
/// # Errors
/// When it calls what a crate cannot name.
pub fn source(gm: &GraphModule) -> Result<String> {
    Folder::new(TYPE).source(gm)
}

/// What a module's `code()` is in an `impl` of a struct without layers, where `imports` are made.
pub fn code_of_function(gm: &GraphModule, imports: &str) -> String {
    let head = "/// Where a function stands.\n#[derive(Module)]\npub struct Code {\n    /// Tells it from others.\n    pub tag: Tag,\n}\n";
    in_impl(gm, &format!("{imports}\n{head}"))
}

/// What a module's `code()` is in an `impl` of what stands for a model's type, with its fields.
pub fn code_of_model(gm: &GraphModule, model: &str) -> String {
    let head = format!(
        "\n/// What stands for a model.\n#[derive(Module)]\npub struct Code(#[module(flatten)] pub {model});\n\nimpl std::ops::Deref for Code {{\n    type Target = {model};\n\n    fn deref(&self) -> &Self::Target {{\n        &self.0\n    }}\n}}\n"
    );
    in_impl(gm, &head)
}

fn in_impl(gm: &GraphModule, head: &str) -> String {
    let mut text = format!(
        "//! What `code()` gives, where it was traced.\n\nuse fx_nn::prelude::*;\n{head}\n#[trace]\nimpl Code {{\n"
    );
    for line in gm.code().lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("}\n");
    text
}

/// The file that keeps a module's source.
pub fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/generated_source");
    folder.join(format!("{name}.rs"))
}
