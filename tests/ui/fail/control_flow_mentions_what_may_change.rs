use fx_core::prelude::*;

struct Log(Vec<String>);

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut log = Log(Vec::new());
    if x > 0.0 {
        log.0.push("positive".to_string());
    }
    x * log.0.len() as f64
}

fn main() {}
