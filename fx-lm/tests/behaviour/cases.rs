//! One case of a chat template: what transformers made of a conversation, and what we make of it.

use fx_lm::{ChatOptions, ChatTemplate};
use serde_json::Value;

/// Errors of Python that are none here: nothing is an empty list, and what a filter gives can be written.
const LENIENT: [&str; 2] = [
    "'NoneType' object is not iterable",
    "Object of type generator is not JSON serializable",
];

/// # Errors
/// Returns what differs.
pub fn compared(template: &ChatTemplate, file: &Value, case: &Value) -> Result<(), String> {
    let mut options = ChatOptions::new();
    let all = [&file["variables"], &case["options"]]
        .into_iter()
        .filter_map(Value::as_object);
    for (name, value) in all.flatten() {
        let set = match name.as_str() {
            "add_generation_prompt" => Ok(options.clone().add_generation_prompt(value == true)),
            "tools" => options.clone().tools(&file["tools"]),
            "documents" => options.clone().documents(value),
            _ => options.clone().variable(name, value),
        };
        options = set.map_err(|error| error.to_string())?;
    }
    let messages = &file["conversations"][case["label"].as_str().unwrap_or_default()];
    let ours = template.apply(messages, &options);
    let theirs = (case["text"].as_str(), case["error"].as_str());
    match (ours, theirs) {
        (Ok(ours), (Some(theirs), _)) if ours == theirs => Ok(()),
        (Ok(ours), (Some(theirs), _)) => {
            let at = ours
                .bytes()
                .zip(theirs.bytes())
                .take_while(|(one, other)| one == other)
                .count();
            let near = |text: &str| {
                let from = text.floor_char_boundary(at.saturating_sub(40));
                let to = text.floor_char_boundary(at + 40);
                text[from..to].to_string()
            };
            Err(format!(
                "at {at}: {:?} instead of {:?}",
                near(&ours),
                near(theirs)
            ))
        }
        (Ok(_), (None, None)) if LENIENT.iter().any(|error| case["undefined"] == *error) => Ok(()),
        (Ok(ours), (None, error)) => Err(format!(
            "{ours:?} instead of the error {error:?} {}",
            case["undefined"]
        )),
        (Err(error), (Some(_), _)) => Err(format!("the error {error}")),
        // The words of a template are its own; those of Jinja are not.
        (Err(error), (None, Some(theirs))) if error.to_string() != theirs => {
            Err(format!("the error {error} instead of {theirs}"))
        }
        (Err(_), _) => Ok(()),
    }
}
