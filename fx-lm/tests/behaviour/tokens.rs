//! Tokens and texts are those of llama.cpp, which `tokenizers.py` recorded.

use std::fs;

use candle_core::quantized::gguf_file::Value;
use fx_lm::Tokenizer;
use serde_json::Value as Json;

use super::files::{changed, data};

fn json(name: &str) -> Json {
    let file = fs::read(data(name)).expect("the file is recorded");
    serde_json::from_slice(&file).expect("the file is JSON")
}

#[test]
fn ids_are_those_of_llama_cpp() {
    let cases = json("cases.json");
    let mut families = 0;
    for case in cases.as_array().expect("cases") {
        let name = case["vocabulary"].as_str().expect("a name");
        let values = case["values"].as_object().expect("values").iter();
        let values = values.map(|(key, value)| {
            let value = match value {
                Json::Bool(truth) => Value::Bool(*truth),
                other => Value::String(other.as_str().expect("a text").to_string()),
            };
            (key.as_str(), Some(value))
        });
        let file = changed(name, &values.collect::<Vec<_>>());
        let tokenizer = Tokenizer::of_gguf(&file.0).expect("a tokenizer");
        let text = data(name).with_extension("txt");
        let text = fs::read_to_string(text).expect("a recorded text");
        let ids = fs::read(data(case["ids"].as_str().expect("a name"))).expect("recorded ids");
        let (ids, _) = ids.as_chunks();
        let theirs: Vec<u32> = ids
            .iter()
            .map(|id| u16::from_le_bytes(*id).into())
            .collect();
        let ours = match case["control"] == true {
            true => tokenizer.encode(&text, case["special"] == true),
            false => tokenizer.encode_plain(&text),
        };
        let ours = ours.expect("ids");
        let same = ours
            .iter()
            .zip(&theirs)
            .take_while(|(ours, theirs)| ours == theirs)
            .count();
        assert!(ours == theirs, "{}: they differ at {same}", case["ids"]);
        families += 1;
    }
    assert!(families > 25);
}

#[test]
fn texts_of_tokens_and_ends_are_those_of_llama_cpp() {
    for name in ["bytes", "pieces"] {
        let tokenizer = Tokenizer::of_gguf(data(&format!("{name}.gguf"))).expect("a tokenizer");
        let recorded = json(&format!("{name}.json"));
        let ends = recorded["ends"].as_array().expect("ends");
        let ends: Vec<u64> = ends.iter().filter_map(Json::as_u64).collect();
        assert_eq!(
            tokenizer
                .ends()
                .iter()
                .map(|id| u64::from(*id))
                .collect::<Vec<_>>(),
            ends
        );
        let pieces = recorded["pieces"].as_array().expect("pieces");
        assert_eq!(pieces.len(), tokenizer.vocab_size());
        for (id, piece) in pieces.iter().enumerate() {
            let piece = piece.as_str().expect("hexadecimal");
            let bytes = (0..piece.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&piece[at..at + 2], 16));
            let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().expect("hexadecimal");
            let mut stream = tokenizer.stream(false);
            let text = stream.push(id as u32).expect("a token") + &stream.finish().expect("a text");
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{name} {id}");
        }
    }
}

#[test]
fn a_text_comes_back() {
    for name in ["bytes", "pieces"] {
        let tokenizer = Tokenizer::of_gguf(data(&format!("{name}.gguf"))).expect("a tokenizer");
        let text = match name {
            // A byte that is no token is lost.
            "bytes" => fs::read_to_string(data("bytes.txt"))
                .expect("a text")
                .replace('\u{3}', ""),
            // Behind a special token, this kind adds a space.
            _ => "Hello, 世界! 👩‍👩‍👧 x  y\t1\n e\u{301}".to_string(),
        };
        let ids = tokenizer.encode_plain(&text).expect("ids");
        assert!(
            tokenizer.decode(&ids, false).expect("a text") == text,
            "{name}"
        );
        let mut stream = tokenizer.stream(false);
        let mut streamed = String::new();
        for id in ids {
            streamed += &stream.push(id).expect("a token");
        }
        streamed += &stream.finish().expect("a text");
        let space = if name == "pieces" { " " } else { "" };
        assert!(streamed == format!("{space}{text}"), "{name}");
    }
}

#[test]
fn control_tokens_in_a_text_are_read_or_not() {
    let tokenizer = Tokenizer::of_gguf(data("bytes.gguf")).expect("a tokenizer");
    let end = tokenizer.id("<|end|>").expect("a token");
    assert_eq!(tokenizer.encode("<|end|>", false).expect("ids"), [end]);
    let plain = tokenizer.encode_plain("<|end|>").expect("ids");
    assert!(plain.len() > 1 && !plain.contains(&end));
    assert_eq!(tokenizer.decode(&plain, true).expect("a text"), "<|end|>");
    assert_eq!(tokenizer.decode(&[end], true).expect("a text"), "");
    let tool = tokenizer.id("<|tool|>").expect("a token");
    assert_eq!(tokenizer.encode_plain("<|tool|>").expect("ids"), [tool]);
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos()),
        (tokenizer.id("<|begin|>"), Some(end))
    );
    assert!(tokenizer.chat_template().is_some());
}

#[test]
fn bytes_that_are_no_text_become_the_replacement_character() {
    let tokenizer = Tokenizer::of_gguf(data("pieces.gguf")).expect("a tokenizer");
    let byte = |byte: u8| tokenizer.id(&format!("<0x{byte:02X}>")).expect("a token");
    let mut stream = tokenizer.stream(true);
    let mut push = |id| stream.push(id).expect("a token");
    assert_eq!(push(byte(0xE4)), "");
    assert_eq!(push(byte(0xB8)), "");
    assert_eq!(push(byte(0x96)), "世");
    assert_eq!(push(byte(0xFF)), "\u{FFFD}");
    assert_eq!(push(byte(0xF0)), "");
    assert_eq!(push(byte(b'a')), "\u{FFFD}a");
    assert_eq!(push(byte(0xE4)), "");
    assert_eq!(stream.finish().expect("a text"), "\u{FFFD}");
    assert!(
        tokenizer
            .decode(&[1 << 20], true)
            .expect_err("no token")
            .to_string()
            .contains("1048576")
    );
}
