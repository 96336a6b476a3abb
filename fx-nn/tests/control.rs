//! Models whose control flow the graph decides: eager, traced, traced again and loaded runs agree.

#[path = "control/crates.rs"]
mod crates;

use fx_nn::control;
use fx_nn::prelude::*;

/// The graph, the graph of the graph, and what was saved and loaded.
fn graphs(root: &impl Module) -> Result<[GraphModule; 3]> {
    let gm = symbolic_trace(root)?;
    let again = symbolic_trace(&gm)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    Ok([gm, again, loaded])
}

/// A recurrent layer over a sequence of any length.
#[derive(Module)]
struct Rnn {
    cell: nn::GRUCell,
    head: nn::Linear,
}

#[trace]
impl Rnn {
    fn forward(&self, xs: &Tensor, h: &Tensor) -> Result<Tensor> {
        let (last, all): (Tensor, Tensor) =
            control::scan(h.clone(), xs.clone(), |h: Tensor, x: Tensor| {
                let h = self.cell.forward(&x, Some(&h))?;
                let y = self.head.forward(&h)?;
                Ok((h, y))
            })?;
        all + last.sum(..)?
    }
}

fn rnn() -> Result<Rnn> {
    fx_nn::manual_seed(1);
    Ok(Rnn {
        cell: nn::GRUCell::new(3, 4)?,
        head: nn::Linear::new(4, 2)?,
    })
}

#[test]
fn a_recurrent_layer_over_a_traced_length() -> Result<()> {
    let rnn = rnn()?;
    let graphs = graphs(&rnn)?;
    let h = Tensor::randn((2, 4))?;
    for length in [1, 2, 7] {
        let xs = Tensor::randn((length, 2, 3))?;
        let eager = rnn.forward(&xs, &h)?;
        for gm in &graphs {
            let graph: Tensor = gm.forward((&xs, &h))?;
            assert_eq!(eager.dims()?, graph.dims()?);
            assert_eq!(eager.to_vec()?, graph.to_vec()?);
        }
    }
    Ok(())
}

#[test]
fn a_scan_refuses_what_it_cannot_stack() -> Result<()> {
    let f = traced!(|xs: &Tensor, ys: &Tensor| {
        control::map((xs.clone(), ys.clone()), |(x, y): (Tensor, Tensor)| x + y)
    });
    let gm = symbolic_trace(f)?;
    let (two, three) = (Tensor::ones((2, 4))?, Tensor::ones((3, 4))?);
    assert_eq!(gm.forward::<Tensor>((&two, &two))?.to_vec()?, [2.0; 8]);
    let error = gm
        .forward::<Tensor>((&two, &three))
        .expect_err("two lengths");
    assert!(
        error.to_string().contains("sequences of 2 and of 3"),
        "{error}"
    );
    let none = Tensor::ones((0, 4))?;
    let error = gm.forward::<Tensor>((&none, &none)).expect_err("no items");
    assert!(error.to_string().contains("no items"), "{error}");
    let error = gm
        .forward::<Tensor>((&Tensor::ones(())?, &Tensor::ones(())?))
        .expect_err("no dim");
    assert!(error.to_string().contains("first dim"), "{error}");
    Ok(())
}

/// `dy/dt = f(y)` by Heun's method, with steps as large as a tolerance allows.
#[derive(Module)]
struct Ode {
    field: nn::Linear,
    tolerance: f64,
}

#[trace(control_flow)]
impl Ode {
    fn forward(&self, y: &Tensor, end: Float) -> Result<(Tensor, Int)> {
        let mut y = y.clone();
        let mut t = Float::from(0.0);
        let mut step = Float::from(0.25);
        let mut evaluations = Int::from(0);
        while t < end {
            if (t + step)? > end {
                step = (end - t)?;
            }
            let slope = self.field.forward(&y)?.tanh()?;
            let euler = (&y + (&slope * step)?)?;
            let heun = (&y + ((slope + self.field.forward(&euler)?.tanh()?)? * (step * 0.5)?)?)?;
            evaluations = (evaluations + 2)?;
            if (&heun - &euler)?.abs()?.amax(..)? > self.tolerance {
                step = (step * 0.5)?;
                continue;
            }
            y = heun;
            t = (t + step)?;
            step = (step * 1.5)?;
        }
        Ok((y, evaluations))
    }
}

fn ode() -> Result<Ode> {
    fx_nn::manual_seed(2);
    Ok(Ode {
        field: nn::Linear::new(3, 3)?,
        tolerance: 1e-3,
    })
}

#[test]
fn an_ode_solver_with_a_tolerance() -> Result<()> {
    let ode = ode()?;
    let graphs = graphs(&ode)?;
    for end in [0.1, 1.0, 3.0] {
        let y = Tensor::randn((2, 3))?;
        let (eager, evaluations) = ode.forward(&y, Float::from(end))?;
        for gm in &graphs {
            let (graph, counted): (Tensor, i64) = gm.forward((&y, end))?;
            assert_eq!(Some(counted), evaluations.concrete());
            assert_eq!(eager.to_vec()?, graph.to_vec()?);
        }
    }
    Ok(())
}

/// Layers until a halting unit says that it is enough (adaptive computation time).
#[derive(Module)]
struct Adaptive {
    layers: Vec<nn::TransformerEncoderLayer>,
    halt: nn::Linear,
}

#[trace(control_flow)]
impl Adaptive {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Int)> {
        let mut h = x.clone();
        let mut depth = Int::from(0);
        for layer in &self.layers {
            h = layer.forward(&h, None, None, false)?;
            depth = (depth + 1)?;
            let enough = self.halt.forward(&h.mean(1)?)?.sigmoid()?.mean(..)?;
            if enough > 0.5 {
                break;
            }
        }
        Ok((h, depth))
    }
}

fn adaptive() -> Result<Adaptive> {
    fx_nn::manual_seed(3);
    let mut layers = Vec::new();
    for _ in 0..4 {
        layers.push(
            nn::TransformerEncoderLayer::new(8, 2)?
                .dim_feedforward(16)?
                .dropout(0.0)?,
        );
    }
    Ok(Adaptive {
        layers,
        halt: nn::Linear::new(8, 1)?,
    })
}

#[test]
fn a_transformer_of_adaptive_depth() -> Result<()> {
    let model = adaptive()?;
    let graphs = graphs(&model)?;
    let mut depths = Vec::new();
    for _ in 0..12 {
        let x = Tensor::randn((2, 5, 8))?;
        let (eager, depth) = model.forward(&x)?;
        for gm in &graphs {
            let (graph, counted): (Tensor, i64) = gm.forward(&x)?;
            assert_eq!(Some(counted), depth.concrete());
            assert_eq!(eager.to_vec()?, graph.to_vec()?);
        }
        depths.extend(depth.concrete());
    }
    depths.sort_unstable();
    depths.dedup();
    assert!(
        depths.len() > 1,
        "every input takes the same depth: {depths:?}"
    );
    Ok(())
}

/// One expert per sequence, by a router.
#[derive(Module)]
struct Experts {
    router: nn::Linear,
    experts: Vec<nn::Linear>,
}

#[trace(control_flow)]
impl Experts {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let scores = self.router.forward(&x.mean(0)?)?;
        let chosen = scores.argmax(0, false)?;
        let mut out = x.clone();
        for (at, expert) in self.experts.iter().enumerate() {
            if chosen == at as i64 {
                out = expert.forward(x)?;
            }
        }
        out.relu()
    }
}

fn experts() -> Result<Experts> {
    fx_nn::manual_seed(4);
    let mut experts = Vec::new();
    for _ in 0..3 {
        experts.push(nn::Linear::new(4, 4)?);
    }
    Ok(Experts {
        router: nn::Linear::new(4, 3)?,
        experts,
    })
}

#[test]
fn a_mixture_of_experts_runs_the_chosen_one() -> Result<()> {
    let model = experts()?;
    let graphs = graphs(&model)?;
    let mut chosen = Vec::new();
    for _ in 0..10 {
        let x = Tensor::randn((5, 4))?;
        let eager = model.forward(&x)?;
        for gm in &graphs {
            assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, eager.to_vec()?);
        }
        chosen.push(
            model
                .router
                .forward(&x.mean(0)?)?
                .argmax(0, false)?
                .to_vec()?,
        );
    }
    chosen.dedup();
    assert!(chosen.len() > 1, "one expert takes every input");
    Ok(())
}
