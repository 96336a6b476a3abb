//! A graph module is a module: it traces again, nests in another model, and two threads trace at once.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

#[trace]
fn normalize(x: &Tensor) -> Result<Tensor> {
    let centred = (x - x.mean(..)?)?;
    &centred / centred.exp()?.sum(..)?
}

#[derive(Module)]
struct Model {
    body: GraphModule,
    head: nn::Linear,
}

#[trace]
impl Model {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h: Tensor = self.body.forward(x)?;
        self.head.forward(&h)
    }
}

/// The model with the graph module in it, with an input.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let model = Model {
        body: symbolic_trace(traced!(normalize))?,
        head: nn::Linear::new(3, 2)?,
    };
    let x = Tensor::rand((2, 3))?;
    Ok((symbolic_trace(&model)?, vec![Value::of(x)]))
}

fn main() -> Result<()> {
    let body = symbolic_trace(traced!(normalize))?;
    let again = symbolic_trace(&body)?;
    println!(
        "traced again, the graph is equal: {}",
        again.graph().to_string() == body.graph().to_string()
    );

    let model = Model {
        body,
        head: nn::Linear::new(3, 2)?,
    };
    let traced = symbolic_trace(&model)?;
    println!(
        "\nin another model it is traced through:\n{}\n",
        traced.graph()
    );
    for node in traced.graph().nodes() {
        let path = node
            .module_stack()
            .next()
            .map(|scope| scope.path.to_string());
        if let (Some(path), Some(location)) = (path.filter(|p| !p.is_empty()), node.location()) {
            println!(
                "{} is in `{path}`, from line {}",
                node.name(),
                location.line
            );
        }
    }

    let x = Tensor::rand((2, 3))?;
    let eager = model.forward(&x)?.to_vec()?;
    assert_eq!(traced.forward::<Tensor>(&x)?.to_vec()?, eager);

    let texts: Vec<Result<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| Ok(Trace::new(&model).graph()?.to_string())))
            .collect();
        threads
            .into_iter()
            .map(|t| {
                t.join()
                    .unwrap_or_else(|_| Err(Error::msg("a thread panicked")))
            })
            .collect()
    });
    let equal = texts.iter().all(|text| {
        text.as_ref()
            .is_ok_and(|text| *text == traced.graph().to_string())
    });
    println!("\ntwo threads at once give the same graph: {equal}");
    Ok(())
}
