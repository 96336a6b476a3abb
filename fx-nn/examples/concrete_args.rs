//! Arguments that are known before a trace: plain values, `None`, and structures taken apart into inputs.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::prelude::*;

#[derive(Tree, Clone)]
struct Batch {
    tokens: Tensor,
    masks: Vec<Tensor>,
}

#[trace]
fn pooled(batch: Batch, average: bool, bias: Option<&Tensor>) -> Result<Tensor> {
    let mut sum = batch.tokens.clone();
    for mask in &batch.masks {
        sum = (sum * mask)?;
    }
    let pooled = if average { sum.mean(-1)? } else { sum.sum(-1)? };
    match bias {
        Some(bias) => pooled + bias,
        None => Ok(pooled),
    }
}

fn trace() -> Trace<'static> {
    Trace::new(traced!(pooled))
        .concrete("batch", tree!({"tokens": PH, "masks": [PH, PH]}))
        .concrete("average", true)
        .concrete("bias", None::<f64>)
}

/// The specialised function, with the arguments that it is for.
pub fn example() -> Result<(GraphModule, Vec<Value>)> {
    let batch = Batch {
        tokens: Tensor::rand((2, 3))?,
        masks: vec![Tensor::ones((2, 3))?, Tensor::ones(3)?],
    };
    let inputs = vec![Value::of(batch), Value::Bool(true), Value::None];
    Ok((trace().graph_module()?, inputs))
}

fn main() -> Result<()> {
    // Without a value, a plain `bool` is an error that says what to do, before anything runs.
    if let Err(error) = symbolic_trace(traced!(pooled)) {
        println!("{error}\n");
    }

    let gm = trace().graph_module()?;
    println!("{}\n\n{}", gm.graph(), gm.code());
    println!("frozen:\n{}", trace().report()?);

    // Called like the function.
    let batch = Batch {
        tokens: Tensor::rand((2, 3))?,
        masks: vec![Tensor::ones((2, 3))?, Tensor::ones(3)?],
    };
    let y: Tensor = gm.forward((&batch, true, None::<&Tensor>))?;
    let eager = pooled(batch.clone(), true, None)?;
    assert_eq!(y.to_vec()?, eager.to_vec()?);

    // A guard stops a run with another value, a structure is checked before it.
    for wrong in [
        gm.forward::<Tensor>((&batch, false, None::<&Tensor>)),
        gm.forward::<Tensor>((tree!({"tokens": 1}), true, None::<&Tensor>)),
    ] {
        if let Err(error) = wrong {
            println!("stopped: {error}");
        }
    }

    let open = trace().unguarded().graph_module()?;
    let again: Tensor = open.forward((&batch, false, None::<&Tensor>))?;
    assert_eq!(again.to_vec()?, eager.to_vec()?);
    println!(
        "without guards: {} nodes instead of {}",
        open.graph().len(),
        gm.graph().len()
    );
    Ok(())
}
