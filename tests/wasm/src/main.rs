//! `models make DIR` writes files of the models, with what they give here; `models compare DIR` runs them beside that.

use std::path::{Path, PathBuf};
use std::{fs, io};

use fx_nn::{Error, Result};

fn of_file<T>(file: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::msg(format_args!("{}: {error}", file.display())))
}

fn make(name: &str, file: &Path, numbers: &Path) -> Result<()> {
    let bytes = fx_wasm::made(name)?.to_bytes()?;
    let lines = fx_wasm::outputs(name, &bytes)?
        .iter()
        .map(|x| format!("{x}\n"))
        .collect::<String>();
    of_file(file, fs::write(file, &bytes))?;
    of_file(numbers, fs::write(numbers, lines))
}

fn compare(name: &str, file: &Path, numbers: &Path) -> Result<()> {
    let ours = fx_wasm::outputs(name, &of_file(file, fs::read(file))?)?;
    let text = of_file(numbers, fs::read_to_string(numbers))?;
    let theirs: Vec<f64> = text
        .lines()
        .map(|line| line.parse().map_err(Error::other))
        .collect::<Result<_>>()?;
    let pairs = ours.iter().zip(&theirs);
    let difference = pairs
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f64::max);
    let largest = theirs.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    println!(
        "wasm.difference/{name} {difference:.1e} of {largest:.2}, {} numbers",
        ours.len()
    );
    match ours.len() == theirs.len() && difference <= 1e-5 * largest.max(1.0) {
        true => Ok(()),
        false => Err(Error::msg(format_args!("{name} gives something else here"))),
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (what, folder): (fn(&str, &Path, &Path) -> Result<()>, _) = match args[..] {
        ["make", folder] => (make, PathBuf::from(folder)),
        ["compare", folder] => (compare, PathBuf::from(folder)),
        _ => return Err(Error::msg("usage: models make|compare DIR")),
    };
    for name in fx_wasm::MODELS {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        what(name, &file("fx"), &file("txt"))?;
    }
    println!("wasm.level {}", fx_wasm::level());
    println!("wasm.own_difference {:.1e}", fx_wasm::own_difference()?);
    println!("wasm.gradient {:?}", fx_wasm::gradient()?);
    for line in fx_wasm::refused() {
        println!("wasm.refused {line}");
    }
    Ok(())
}
