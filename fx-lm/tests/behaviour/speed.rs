//! Long texts take time in their length, however they are made.

use std::time::{Duration, Instant};

use candle_core::quantized::gguf_file::Value;
use fx_lm::Tokenizer;

use super::files::{changed, data};

#[test]
fn a_long_text_of_one_word_takes_seconds() {
    let texts = [
        "a",
        "ab",
        " ",
        "\n",
        "\t ",
        "世",
        "1",
        "<|end|>",
        "<",
        "é\u{301}",
        "'s",
        "!",
        " a",
    ];
    let names = [
        "default",
        "qwen2",
        "gpt-4o",
        "deepseek-llm",
        "deepseek-coder",
        "tiny_aya",
        "poro-chat",
    ];
    let files = names.map(|name| {
        changed(
            "bytes.gguf",
            &[("tokenizer.ggml.pre", Some(Value::String(name.into())))],
        )
    });
    let mut paths = vec![data("pieces.gguf")];
    paths.extend(files.iter().map(|file| file.0.clone()));
    for path in paths {
        let tokenizer = Tokenizer::of_gguf(path).expect("a tokenizer");
        for text in texts {
            let text = text.repeat(50_000 / text.len());
            let start = Instant::now();
            tokenizer.encode(&text, true).expect("ids");
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{:?}",
                &text[..4]
            );
        }
    }
}
