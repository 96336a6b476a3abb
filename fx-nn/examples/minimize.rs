//! The node for which a backend is wrong: planted at each node of ResNet-18 in turn, found by bisection, and reproduced
//! from a file.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::models::resnet::resnet18;
use fx_nn::module::{Call, ComponentExt};
use fx_nn::passes::backend::{Backend, Executable, Metas, Minimizer, Support};
use fx_nn::prelude::*;

/// Runs every call as fx does, but the one at a line of the graph: that result is a thousandth too large.
struct Wrong {
    node: String,
}

struct Code {
    part: GraphModule,
    wrong: Option<String>,
}

impl Backend for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn supports(&self, _: &Call<'_>, _: &Metas<'_>) -> Support {
        Support::Yes
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        let wrong = part
            .graph()
            .find_name(&self.node)
            .map(|node| node.name().to_string());
        Ok(Arc::new(Code {
            part: part.clone(),
            wrong,
        }))
    }
}

impl Executable for Code {
    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        /// Adds to the result of one node.
        struct Off<'c>(Option<&'c str>);
        impl fx_nn::run::Interpreter for Off<'_> {
            fn run_node(
                &mut self,
                run: &mut fx_nn::run::Interpretation<'_>,
                node: fx_nn::ir::NodeRef<'_>,
            ) -> Result<Value> {
                let value = run.run_node(self, node)?;
                match self.0 {
                    Some(name) if node.name() == name => {
                        Ok(Value::of((Tensor::from_value(value)? + 1e-3)?))
                    }
                    _ => Ok(value),
                }
            }
        }
        let inputs: Vec<Value> = inputs.iter().map(|value| (*value).clone()).collect();
        let mut off = Off(self.wrong.as_deref());
        *out = self.part.interpretation().run(&mut off, inputs)?;
        Ok(())
    }
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = resnet18(10)?;
    model.eval();
    let gm = symbolic_trace(&model)?;
    let x = Tensor::randn((1, 3, 32, 32))?;
    let is_call = |op: &Op| !matches!(op, Op::Placeholder(_) | Op::GetAttr(_) | Op::Output);
    let names: Vec<String> = gm
        .graph()
        .nodes()
        .filter(|node| is_call(node.op()))
        .map(|node| node.name().to_string())
        .collect();
    let path = std::env::temp_dir().join(format!("fx-minimize-{}.fx", std::process::id()));
    let (mut found, mut reproduced, mut most) = (0, 0, 0);
    for name in &names {
        let backend = Wrong { node: name.clone() };
        let minimizer = Minimizer::new(&backend).tolerance(1e-6, 1e-5);
        let Some(minimized) = minimizer.run(&gm, &x)? else {
            println!("%{name}: not found");
            continue;
        };
        found += usize::from(minimized.nodes == [name.as_str()]);
        most = most.max(minimized.compilations);
        minimized.save(&path)?;
        let loaded = GraphModule::load(&path)?;
        reproduced += usize::from(minimizer.check(&loaded, ())?.is_some());
        if found == 1 {
            println!("{minimized}");
        }
    }
    let _ = std::fs::remove_file(&path);
    let bound = 2.0 * (names.len() as f64).log2() + 8.0;
    println!("found {found} of {}", names.len());
    println!("reproduced {reproduced} of {}", names.len());
    println!("compilations: {most} at most (2 log2 N + 8 is {bound:.1})");
    Ok(())
}
