//! Generated source changed by hooks: prints between the steps for a while, and a custom function definition.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::emit::{CodeGen, CodeOptions, FunctionHead};
use fx_nn::models::mlp::Mlp;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

/// A free function over the layers that also returns how long it took.
struct Timed;

impl CodeGen for Timed {
    fn items(&self) -> Vec<String> {
        vec!["use std::time::{Duration, Instant};".to_string()]
    }

    fn head(&self, head: &FunctionHead) -> String {
        let params = head.params[1..].join(", ");
        format!(
            "pub fn timed(model: &Mlp, {params}) -> Result<({}, Duration)>",
            head.result
        )
    }

    fn output(&self, value: &str) -> String {
        format!("Ok(({value}, start.elapsed()))")
    }
}

fn main() -> Result<()> {
    let mut module = Mlp::new(8, 16, 4)?;
    module.eval();
    let mut gm = symbolic_trace(&module)?;
    let usual = gm.code();

    // While the hook is registered, every node is followed by a line that prints it.
    let graph = gm.graph().clone();
    let hook = gm.on_generate_code(move |lines| {
        let mut with_prints = Vec::new();
        for line in lines {
            let name = line
                .node
                .and_then(|id| graph.node(id).ok())
                .map(|node| node.name().to_string());
            let is_let = line.text.starts_with("let ");
            with_prints.push(line);
            if let (Some(name), true) = (name, is_let) {
                with_prints.push(format!("println!(\"{name}: {{{name}}}\");").into());
            }
        }
        with_prints
    });
    println!("with prints:\n{}", gm.code());
    drop(hook);
    println!("as before without the hook: {}\n", gm.code() == usual);

    // A second hook runs after the first; `keep` makes them permanent.
    gm.on_generate_code(|lines| lines.into_iter().map(timed_receiver).collect())
        .keep();
    gm.on_generate_code(|mut lines| {
        lines.insert(0, "let start = Instant::now();".into());
        lines
    })
    .keep();
    gm.set_codegen(Timed);
    println!("custom:\n{}", gm.code());

    // Source lines, and shapes that a sample run recorded.
    gm.reset_codegen();
    gm.propagate_shapes(&Tensor::rand((2, 8))?)?;
    println!(
        "verbose:\n{}",
        gm.rust_code(&CodeOptions::new().verbose(true))
    );

    // The graph runs, whatever the text says.
    let x = Tensor::rand((2, 8))?;
    let (y, expected): (Tensor, _) = (gm.forward(&x)?, module.forward(&x)?);
    println!(
        "max_abs_err: {}",
        fx_nn::allclose(&y, &expected, 0.0, 0.0)?.max_abs
    );
    Ok(())
}

fn timed_receiver(mut line: fx_nn::emit::CodeLine) -> fx_nn::emit::CodeLine {
    line.text = line.text.replace("self.", "model.");
    line
}
