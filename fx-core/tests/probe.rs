//! probe
mod support;
use fx_core::prelude::*;
use support::*;
use support::modules::*;
#[test] fn p() -> Result<()> {
  let b = Block::new(2);
  let gm = symbolic_trace(&b)?;
  println!("{}\n{}", gm.graph(), gm.code());
  let t = symbolic_trace(&Tied::new(2))?;
  println!("{}\n{}", t.graph(), t.code());
  let f = symbolic_trace(traced!(|x: &Array, y: &Array| { let (a, b) = split_sign(x)?; concat(&[a.relu()?, b, relu(y)?, noise(2)?])?.scale(2.0)?.scale(3.0) }))?;
  println!("{}\n{}", f.graph(), f.code());
  let y: Array = f.forward((&Array::vec(&[1.0,-1.0]), &Array::vec(&[1.0])))?;
  println!("{y:?}");
  println!("{:?}", f.graph().nodes().map(|n| (n.name().to_string(), n.location().map(|l| l.to_string()))).collect::<Vec<_>>());
  println!("{:?}", gm.graph().nodes().map(|n| (n.name().to_string(), n.location().map(|l| l.to_string()), n.module_stack().map(|s| (s.path.to_string(), s.type_name)).collect::<Vec<_>>())).collect::<Vec<_>>());
  Ok(())
}
