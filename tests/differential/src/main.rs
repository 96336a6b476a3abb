//! Reads calls as JSON lines from standard input and prints each one that differs from PyTorch, then the counts.
//! `--plant NAME` changes the results of that name, to show that the judge sees a wrong kernel.

use std::io::{BufRead, Write};

use fx_differential::{Call, Report, wrong};
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let planted = match args.next().as_deref() {
        Some("--plant") => args.next(),
        _ => None,
    };
    let plant = |call: &Call, value: Value| match planted.as_deref() == Some(&call.name) {
        true => wrong(value),
        false => value,
    };
    // A panic is counted; where it was stands on standard error.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let _ = writeln!(
            std::io::stderr(),
            "panicked at {}",
            place.unwrap_or_default()
        );
    }));
    let mut report = Report::default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(Error::other)?;
        let mut written = Ok(());
        report.line(
            &line,
            Some(&plant),
            &mut |call, mode, difference, excuse| {
                let row = serde_json::json!({
                    "id": call.id,
                    "name": call.name,
                    "mode": mode.name(),
                    "difference": format!("{:?}", difference.kind),
                    "text": difference.text,
                    "excuse": excuse,
                });
                written = writeln!(out, "{row}");
            },
        )?;
        written.map_err(Error::other)?;
    }
    writeln!(out, "{report}").map_err(Error::other)
}
