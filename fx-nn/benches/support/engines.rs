//! What each program of a comparison answers about its engines, whatever they are.

use std::time::Instant;

use fx_nn::prelude::*;
use fx_nn::weights;

/// Answers `run ENGINE COUNT` (the least time of so many runs in ms) and `result ENGINE FILE`. `run` gives the result of an
/// engine.
pub fn answer_of_engine(words: &[&str], run: impl Fn(&str) -> Result<Tensor>) -> Result<String> {
    match *words {
        ["run", engine, count] => {
            let mut least = f64::INFINITY;
            for _ in 0..count.parse::<usize>().map_err(Error::other)? {
                let start = Instant::now();
                let result = run(engine)?;
                least = least.min(start.elapsed().as_secs_f64() * 1e3);
                drop(result);
            }
            Ok(least.to_string())
        }
        ["result", engine, file] => {
            weights::save_tensors([("y".to_string(), run(engine)?)], file)?;
            Ok("written".to_string())
        }
        _ => Err(Error::msg(format_args!(
            "no such line: {}",
            words.join(" ")
        ))),
    }
}
