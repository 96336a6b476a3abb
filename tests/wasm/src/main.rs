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
    let text = of_file(numbers, fs::read_to_string(numbers))?;
    let bytes = of_file(file, fs::read(file))?;
    println!("{}", fx_wasm::compare(name, &bytes, &text)?);
    Ok(())
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
    println!("{}", fx_wasm::report()?);
    Ok(())
}
