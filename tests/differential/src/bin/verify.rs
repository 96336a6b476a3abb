//! Verifies every rule, decomposition and fusion of the repository, each in so many drawn cases:
//! `verify --cases 10000 --seed 1`; `--only NAME` those whose name contains it, `--each` with a line for each.

use std::io::Write;

use fx_differential::{claims, recorded, verify_all};
use fx_nn::{Error, Result};

fn main() -> Result<()> {
    let (mut cases, mut seed, mut only, mut each) = (200, 1, String::new(), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .ok_or_else(|| Error::msg(format_args!("{arg} takes a value")))
        };
        match arg.as_str() {
            "--cases" => cases = value()?.parse().map_err(Error::other)?,
            "--seed" => seed = value()?.parse().map_err(Error::other)?,
            "--only" => only = value()?,
            "--each" => each = true,
            other => {
                return Err(Error::msg(format_args!(
                    "{other} is none of --cases, --seed, --only, --each"
                )));
            }
        }
    }
    let mut chosen = claims(&recorded()?)?;
    chosen.retain(|claim| claim.name.contains(&only));
    let tally = verify_all(&chosen, cases, seed, &|claim, ended, time| {
        let text = match ended {
            Ok(verified) if each => format!("{verified} in {} ms\n", time.as_millis()),
            Ok(_) => return,
            Err(error) => format!("{}: {error}\n", claim.name),
        };
        // A reader that is gone needs no lines.
        let _ = std::io::stdout().write_all(text.as_bytes());
    });
    writeln!(std::io::stdout(), "{tally}").map_err(Error::other)?;
    match tally.failed.is_empty() && tally.unverified.is_empty() {
        true => Ok(()),
        false => Err(Error::msg("not all are verified")),
    }
}
