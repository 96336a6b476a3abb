//! Folders of Hugging Face's.

use std::fs;

use fx_lm::Tokenizer;

use super::files::Temporary;

const BYTES: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
    {"id": 256, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 257, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": {VOCAB}, "merges": []}}"#;

/// A folder with a vocabulary of bytes.
fn folder() -> Temporary {
    let temporary = Temporary::new("tokenizer.json");
    let mut letters: Vec<String> = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet()
        .into_iter()
        .map(|letter| letter.to_string())
        .collect();
    letters.sort();
    let entries = letters.iter().enumerate();
    let entries =
        entries.map(|(id, letter)| format!("{}: {id}", serde_json::Value::from(letter.as_str())));
    let vocab = entries.collect::<Vec<_>>().join(", ");
    fs::write(&temporary.0, BYTES.replace("VOCAB", &vocab)).expect("a file");
    temporary
}

#[test]
fn a_folder_has_ids_texts_ends_and_a_template() {
    let file = folder();
    let path = file.0.parent().expect("a folder");
    let config = r#"{"bos_token": "<s>", "eos_token": {"content": "</s>"},
        "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]}"#;
    fs::write(path.join("tokenizer_config.json"), config).expect("a file");
    fs::write(
        path.join("generation_config.json"),
        r#"{"eos_token_id": [257, 10]}"#,
    )
    .expect("a file");
    let tokenizer = Tokenizer::of_folder(path).expect("a tokenizer");
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (Some(256), Some(257)));
    assert_eq!(tokenizer.ends(), [10, 257]);
    assert_eq!(tokenizer.chat_template(), Some("yes"));
    let text = "né 世界 👩‍👩‍👧 </s>";
    let ids = tokenizer.encode(text, false).expect("ids");
    assert_eq!(ids.last(), Some(&257));
    assert_eq!(tokenizer.decode(&ids, false).expect("a text"), text);
    assert!(!tokenizer.encode_plain(text).expect("ids").contains(&257));
    let mut stream = tokenizer.stream(true);
    let mut texts = String::new();
    for id in &ids {
        let text = stream.push(*id).expect("a token");
        assert!(!text.contains('\u{FFFD}'));
        texts += &text;
    }
    texts += &stream.finish().expect("a text");
    assert_eq!(texts, "né 世界 👩‍👩‍👧 ");
    let mut stream = tokenizer.stream(true);
    assert_eq!(stream.push(ids[1]).expect("a token"), "");
    assert_eq!(stream.finish().expect("a text"), "\u{FFFD}");
    fs::write(path.join("chat_template.jinja"), "newer").expect("a file");
    let tokenizer = Tokenizer::of_folder(path).expect("a tokenizer");
    assert_eq!(tokenizer.chat_template(), Some("newer"));
    assert!(tokenizer.decode(&[9999], true).is_err());
}

#[test]
fn folders_that_cannot_be_read_are_refused_by_their_file() {
    let file = folder();
    let path = file.0.parent().expect("a folder");
    fs::write(path.join("tokenizer_config.json"), "{").expect("a file");
    let error = Tokenizer::of_folder(path)
        .err()
        .expect("no JSON")
        .to_string();
    assert!(error.contains("tokenizer_config.json"), "{error}");
    fs::write(&file.0, "{}").expect("a file");
    let error = Tokenizer::of_folder(path)
        .err()
        .expect("no tokenizer")
        .to_string();
    assert!(error.contains("tokenizer.json"), "{error}");
    fs::remove_file(&file.0).expect("a file");
    assert!(Tokenizer::of_folder(path).is_err());
}
