//! Files that lie are refused in words, and never end the process.

use std::fs;

use candle_core::quantized::gguf_file::Value;
use fx_lm::Tokenizer;

use super::files::{Temporary, changed, data, list};

fn text(text: &str) -> Option<Value> {
    Some(Value::String(text.to_string()))
}

/// What is said of a file with other values.
fn refused(name: &str, values: &[(&str, Option<Value>)]) -> String {
    let file = changed(name, values);
    let error = Tokenizer::of_gguf(&file.0).err().expect("it is refused");
    let error = error.to_string();
    assert!(error.contains(name), "{error}");
    error
}

#[test]
fn what_is_not_supported_is_named_beside_what_is() {
    let error = refused("bytes.gguf", &[("tokenizer.ggml.model", text("bert"))]);
    assert!(
        error.contains("`bert`: supported are gpt2, gemma4 and llama"),
        "{error}"
    );
    let error = refused("bytes.gguf", &[("tokenizer.ggml.pre", text("chameleon"))]);
    assert!(
        error.contains("`chameleon`: supported are default, gpt-2"),
        "{error}"
    );
    for name in Tokenizer::pre_tokenizers() {
        assert!(error.contains(name), "{name}: {error}");
    }
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let tokens = "tokenizer.ggml.tokens";
    let mut twice = list("bytes.gguf", tokens);
    twice[7] = twice[9].clone();
    let mut cut = list("bytes.gguf", tokens);
    cut.truncate(400);
    let mut scores = list("pieces.gguf", "tokenizer.ggml.scores");
    scores[300] = Value::F32(f32::NAN);
    let mut types = list("bytes.gguf", "tokenizer.ggml.token_type");
    types.truncate(400);
    let mut merges = list("bytes.gguf", "tokenizer.ggml.merges");
    merges.push(Value::String("nonsense zzzz".into()));
    let short = merges[..10].iter().map(|_| Value::U8(1)).collect();
    let cases = [
        ("bytes.gguf", vec![(tokens, None)], "no vocabulary"),
        ("bytes.gguf", vec![(tokens, text("a"))], "a list belongs"),
        (
            "bytes.gguf",
            vec![(tokens, Some(Value::Array(Vec::new())))],
            "0 items",
        ),
        (
            "bytes.gguf",
            vec![(tokens, Some(Value::Array(twice)))],
            "at 7 and at 9",
        ),
        (
            "bytes.gguf",
            vec![(tokens, Some(Value::Array(cut.clone())))],
            "400",
        ),
        (
            "bytes.gguf",
            vec![
                (tokens, Some(Value::Array(cut))),
                ("tokenizer.ggml.token_type", Some(Value::Array(types))),
            ],
            "cut off",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.merges", None)],
            "no `tokenizer.ggml.merges`",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.merges", Some(Value::Array(merges)))],
            "nonsense zzzz",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.merges", Some(Value::Array(short)))],
            "list of texts",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.bos_token_id", Some(Value::U32(90_000)))],
            "90000",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.model", None)],
            "no GGUF file with a tokenizer",
        ),
        (
            "bytes.gguf",
            vec![("tokenizer.ggml.add_bos_token", text("yes"))],
            "true or false",
        ),
        (
            "bytes.gguf",
            vec![
                ("tokenizer.ggml.add_bos_token", Some(Value::Bool(true))),
                ("tokenizer.ggml.bos_token_id", None),
            ],
            "`bos`",
        ),
        (
            "pieces.gguf",
            vec![("tokenizer.ggml.scores", None)],
            "merged",
        ),
        (
            "pieces.gguf",
            vec![("tokenizer.ggml.scores", Some(Value::Array(scores)))],
            "a number",
        ),
    ];
    for (name, values, part) in cases {
        let error = refused(name, &values);
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn cut_and_changed_files_are_read_or_refused() {
    let whole = fs::read(data("bytes.gguf")).expect("a recorded file");
    let temporary = Temporary::new("changed.gguf");
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..60 {
        let mut bytes = whole.clone();
        match random(2) {
            0 => bytes.truncate(random(whole.len())),
            _ => (0..4).for_each(|_| bytes[random(whole.len())] ^= 1 << random(8)),
        }
        fs::write(&temporary.0, bytes).expect("a file can be written");
        if let Ok(tokenizer) = Tokenizer::of_gguf(&temporary.0) {
            let ids = tokenizer.encode("Hello, 世界 <|end|>", true).expect("ids");
            tokenizer.decode(&ids, false).expect("a text");
        }
    }
    let error = Tokenizer::of_gguf(data("cases.json"))
        .err()
        .expect("no GGUF file");
    assert!(error.to_string().contains("cases.json"), "{error}");
}
