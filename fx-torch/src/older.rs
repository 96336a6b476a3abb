//! What programs of older versions of torch say otherwise: bare infinities, no names of arguments.
//!
//! Invariant: what is made of it is what newer versions say of the same program.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

use crate::tree::Tree;

/// The entry with the graph in the layout before torch 2.9.
pub(crate) const GRAPH: &str = "serialized_exported_program.json";

/// What Python writes of floats that JSON does not have.
const BARE: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// The text with bare infinities in quotes, as newer versions write them.
pub(crate) fn quoted(text: &[u8]) -> Cow<'_, [u8]> {
    let mut all: Vec<u8> = Vec::new();
    // How much of the text is in `all`.
    let mut done = 0;
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = text.get(at) {
        let found = match (in_string, byte) {
            (true, b'\\') => {
                at += 2;
                continue;
            }
            (_, b'"') => {
                in_string = !in_string;
                None
            }
            (false, b'-' | b'I' | b'N') => {
                BARE.into_iter().find(|word| text[at..].starts_with(word))
            }
            _ => None,
        };
        let Some(word) = found else {
            at += 1;
            continue;
        };
        all.extend_from_slice(&text[done..at]);
        all.push(b'"');
        all.extend_from_slice(word);
        all.push(b'"');
        at += word.len();
        done = at;
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => {
            all.extend_from_slice(&text[done..]);
            Cow::Owned(all)
        }
    }
}

/// The end of a range of sizes, which is no number where there is none.
pub(crate) fn end<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum End {
        Number(i64),
        Text(String),
    }
    match Option::<End>::deserialize(deserializer)? {
        None => Ok(None),
        Some(End::Number(number)) => Ok(Some(number)),
        Some(End::Text(text)) => match text.trim_start_matches('-') {
            "Infinity" => Ok(None),
            _ => Err(serde::de::Error::custom(format_args!(
                "`{text}` is no end of a range"
            ))),
        },
    }
}

/// The name of an argument by its first leaf, which is named by the argument and the leaf's place in it: `batch_ids_0`.
pub(crate) fn argument(tree: &Tree, leaf: &str) -> Option<String> {
    let mut place = String::new();
    let mut tree = tree;
    loop {
        let (key, first) = match tree {
            Tree::Leaf => break,
            Tree::Tuple(items) | Tree::List(items) => ("0", items.first()?),
            Tree::Dict(items) => {
                let (key, item) = items.first()?;
                (&**key, item)
            }
        };
        place.push('_');
        place.push_str(key);
        tree = first;
    }
    let name = leaf.strip_suffix(&*place)?;
    (!name.is_empty()).then(|| name.to_string())
}
