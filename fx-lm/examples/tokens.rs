//! Compares tokens with llama.cpp's: `cargo run --release -p fx-lm --example tokens -- DIR`, of the folder that
//! `fx-lm/tests/tokenizers.py` wrote.

use std::fs;
use std::path::Path;
use std::time::Instant;

use fx_core::{Error, Result};
use fx_lm::Tokenizer;
use serde_json::Value;

/// The positions at which lists differ.
fn differing(ours: &[u32], theirs: &[u32]) -> usize {
    let beside = ours
        .iter()
        .zip(theirs)
        .filter(|(ours, theirs)| ours != theirs);
    beside.count() + ours.len().abs_diff(theirs.len())
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap_or_default();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// How many texts and ends of tokens differ from those of a file.
fn pieces(tokenizer: &Tokenizer, path: &Path) -> Result<usize> {
    let file = fs::read(path).map_err(Error::other)?;
    let file: Value = serde_json::from_slice(&file).map_err(Error::other)?;
    let list = |name: &str| file[name].as_array().cloned().unwrap_or_default();
    let ends: Vec<u32> = list("ends")
        .iter()
        .filter_map(|id| Some(id.as_u64()? as u32))
        .collect();
    let mut differing = usize::from(ends != tokenizer.ends());
    for (id, piece) in list("pieces").iter().enumerate() {
        let theirs = hex(piece.as_str().unwrap_or_default());
        let mut stream = tokenizer.stream(false);
        let ours = stream.push(id as u32)? + &stream.finish()?;
        if ours != String::from_utf8_lossy(&theirs) && !theirs.starts_with(b"[UNK_BYTE") {
            differing += 1;
            eprintln!(
                "{}: {id}: {ours:?} {:?}",
                path.display(),
                String::from_utf8_lossy(&theirs)
            );
        }
    }
    Ok(differing)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("DIR is missing"))?;
    let folder = Path::new(&folder);
    let read = |name: &Value| {
        let path = folder.join(name.as_str().unwrap_or_default());
        fs::read(&path).map_err(|error| Error::msg(format_args!("{}: {error}", path.display())))
    };
    let cases: Value =
        serde_json::from_slice(&read(&"cases.json".into())?).map_err(Error::other)?;
    let cases = cases.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all = (0, 0, 0, 0);
    for cases in cases.chunk_by(|one, next| one["label"] == next["label"]) {
        let label = cases[0]["label"].as_str().unwrap_or_default();
        let start = Instant::now();
        let tokenizer = Tokenizer::of_gguf(cases[0]["vocabulary"].as_str().unwrap_or_default())?;
        let (opened, start) = (start.elapsed(), Instant::now());
        let mut sums = (0, 0, 0, 0);
        for case in cases {
            let text = String::from_utf8(read(&case["text"])?).map_err(Error::other)?;
            let theirs = read(&case["ids"])?;
            let (theirs, _) = theirs.as_chunks();
            let theirs: Vec<u32> = theirs.iter().map(|id| u32::from_le_bytes(*id)).collect();
            let ours = match case["control"] == true {
                true => tokenizer.encode(&text, case["special"] == true)?,
                false => tokenizer.encode_plain(&text)?,
            };
            let wrong = differing(&ours, &theirs);
            if wrong > 0 {
                let at = ours
                    .iter()
                    .zip(&theirs)
                    .take_while(|(ours, theirs)| ours == theirs)
                    .count();
                let near = |ids: &[u32]| {
                    tokenizer.decode(&ids[at.saturating_sub(6)..ids.len().min(at + 6)], false)
                };
                eprintln!(
                    "{}: {at}: {:?} {:?}",
                    case["ids"],
                    near(&ours)?,
                    near(&theirs)?
                );
            }
            sums = (
                sums.0 + text.len(),
                sums.1 + theirs.len(),
                sums.2 + wrong,
                0,
            );
        }
        let took = start.elapsed();
        let listed = folder.join(format!("{label}.json"));
        if listed.exists() {
            sums.3 = pieces(&tokenizer, &listed)?;
        }
        println!(
            "{label}: bytes {} tokens {} differing {} texts of tokens differing {} opened in {opened:.1?} encoded in {took:.1?}",
            sums.0, sums.1, sums.2, sums.3
        );
        all = (
            all.0 + sums.0,
            all.1 + sums.1,
            all.2 + sums.2,
            all.3 + sums.3,
        );
    }
    println!(
        "bytes {} tokens {} differing {} texts of tokens differing {}",
        all.0, all.1, all.2, all.3
    );
    Ok(())
}
