#![allow(missing_docs)]
use fx_nn::prelude::*;
fn main() -> Result<()> {
    let mut module = fx_nn::models::resnet::resnet18(10)?;
    module.eval();
    for _ in 0..20000 {
        std::hint::black_box(Trace::new(&module).graph()?);
    }
    Ok(())
}
