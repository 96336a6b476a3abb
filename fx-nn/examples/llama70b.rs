//! A Llama of 70 billion parameters without their data: built, traced with names for its sizes, counted, and its
//! memory planned, in the memory of a small program.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use fx_nn::models::hf::decoder::{CausalLM, Config};
use fx_nn::module::ComponentExt;
use fx_nn::passes::memory_plan;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The configuration that was published for Llama 3 70B.
const CONFIG: &str = r#"{
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16"
}"#;

fn main() -> Result<()> {
    let start = Instant::now();
    let config = Config::from_json(CONFIG)?;
    let model = nn::fake(|| CausalLM::new(&config))?;
    let parameters = model.named_parameters();
    let count = parameters
        .values()
        .filter_map(|value| value.downcast_ref::<Tensor>());
    let count = count
        .map(Tensor::numel)
        .try_fold(Int::from(0), |sum, numel| sum + numel?)?;
    println!("parameters: {count}");

    // A prompt of any length up to the model's, with caches that are empty.
    let cache = || spec!["batch", 8, 0, 128; F32];
    let caches =
        (0..config.num_hidden_layers).map(|_| Spec::dict([("k", cache()), ("v", cache())]));
    let tokens = spec!["batch", "length"; I64].constrained("length <= 8192");
    let structure = vec![tree!({"k": PH, "v": PH}); config.num_hidden_layers];
    let gm = Trace::new(&model)
        .concrete("caches", Value::List(structure.into()))
        .inputs([tokens, Spec::list(caches)])
        .graph_module()?;
    println!("nodes: {}", gm.graph().len());
    for guard in gm
        .contract()
        .into_iter()
        .flat_map(|contract| contract.guards())
    {
        println!("guard: {guard}");
    }
    let plan = memory_plan(&gm)?;
    println!("plan_peak: {}", plan.peak);
    let sizes = |name: &str| match name {
        "batch" => Some(4),
        "length" => Some(2048),
        _ => None,
    };
    println!(
        "plan_peak at batch 4, length 2048: {} MB",
        plan.peak.eval(sizes)? / 1_000_000
    );

    // Multiply-adds of a run, by the same names.
    let (k, v) = (Tensor::fake(cache())?, Tensor::fake(cache())?);
    let empties = vec![tree!({"k": k, "v": v}); config.num_hidden_layers];
    let tokens = Tensor::fake(spec!["batch", "length"; I64])?;
    let counted = fx_nn::passes::counts(&gm, (&tokens, Value::List(empties.into())))?;
    println!("multiply_adds: {}", counted.multiply_adds()?);
    println!("seconds: {:.2}", start.elapsed().as_secs_f64());
    println!("peak_mb: {:.0}", MEMORY.peak_usage_as_mb());
    Ok(())
}
