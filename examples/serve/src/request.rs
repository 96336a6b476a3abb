//! `Chat`: what a body asks for. A field that is not understood is refused by its name.

use std::num::NonZeroUsize;

use axum::http::StatusCode;
use fx_lm::GenerationOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Map, Value, json};

use crate::error::ApiError;

#[derive(Deserialize)]
pub struct Chat {
    model: Option<String>,
    pub messages: Vec<Message>,
    /// Descriptions of functions, for the template.
    pub tools: Option<Vec<Value>>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    max_tokens: Option<NonZeroUsize>,
    max_completion_tokens: Option<NonZeroUsize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    seed: Option<i64>,
    stop: Option<Texts<String>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Texts<T> {
    One(String),
    Many(Vec<T>),
}

/// A message; so it goes to the template, with all that it has.
#[derive(Deserialize, Serialize)]
pub struct Message {
    role: String,
    content: Option<Texts<Part>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Part {
    Text { text: String },
}

impl Chat {
    /// # Errors
    /// Returns an error if it is no JSON, is for another model than that one, or a field is not understood.
    pub fn parse(body: &[u8], model: &str) -> Result<Self, ApiError> {
        let mut json = Deserializer::from_slice(body);
        let chat = serde_path_to_error::deserialize::<_, Chat>(&mut json);
        let mut chat = chat.map_err(|error| match error.inner().is_data() {
            true => ApiError::field(&error.path().to_string(), &error),
            false => ApiError::new(StatusCode::BAD_REQUEST, None, error.inner()),
        })?;
        let end = json.end();
        end.map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, None, error))?;
        if let Some(other) = chat.model.as_ref().filter(|other| *other != model) {
            let message = format!("there is no model `{other}`: this server has `{model}`");
            let (status, code) = (StatusCode::NOT_FOUND, Some("model_not_found"));
            return Err(ApiError::new(status, code, message));
        }
        let mut others = chat.others.iter();
        if let Some((name, value)) = others.find(|(name, value)| !changes_nothing(name, value)) {
            let message = format!("`{name}` is not supported with the value {value}");
            return Err(ApiError::field(name, message));
        }
        chat.messages.iter_mut().for_each(Message::adapt);
        let is_none = |choice: &Value| choice == "none";
        if chat.others.get("tool_choice").is_some_and(is_none) {
            chat.tools = None;
        }
        Ok(chat)
    }

    /// How the text is written; `seed` is for those that have none.
    pub fn options(&self, seed: u64) -> GenerationOptions {
        let stops = match &self.stop {
            None => Vec::new(),
            Some(Texts::One(stop)) => vec![stop.clone()],
            Some(Texts::Many(stops)) => stops.clone(),
        };
        // Without a limit, a text ends where the model ends it, or where it has no more positions.
        let limits = self
            .max_tokens
            .into_iter()
            .chain(self.max_completion_tokens);
        GenerationOptions::default()
            .max_new_tokens(limits.min().map_or(usize::MAX, NonZeroUsize::get))
            .temperature(self.temperature.unwrap_or(1.0))
            .top_p(self.top_p.unwrap_or(1.0))
            .top_k(self.top_k.unwrap_or(0))
            .min_p(self.min_p.unwrap_or(0.0))
            .repetition_penalty(self.repetition_penalty.unwrap_or(1.0))
            .seed(self.seed.map_or(seed, i64::cast_unsigned))
            .stop_strings(stops)
    }
}

impl Message {
    /// Brings it to the form that templates take: content is one text, and the arguments of calls are objects.
    fn adapt(&mut self) {
        if let Some(Texts::Many(parts)) = &self.content {
            let texts: Vec<&str> = parts.iter().map(|Part::Text { text }| &**text).collect();
            self.content = Some(Texts::One(texts.join("\n")));
        }
        // Templates have one name for both.
        if self.role == "developer" {
            self.role = "system".to_string();
        }
        let calls = self.others.get_mut("tool_calls");
        for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
            let arguments = call.pointer_mut("/function/arguments");
            if let Some(arguments) = arguments
                && let Some(text) = arguments.as_str()
                && let Ok(parsed @ Value::Object(_)) = serde_json::from_str(text)
            {
                *arguments = parsed;
            }
        }
    }
}

/// Whether a field that does nothing here has a value that asks for nothing.
fn changes_nothing(name: &str, value: &Value) -> bool {
    match name {
        _ if value.is_null() => true,
        "n" => value == 1,
        "presence_penalty" | "frequency_penalty" | "top_logprobs" => value.as_f64() == Some(0.0),
        "logprobs" => value == false,
        "logit_bias" => value.as_object().is_some_and(Map::is_empty),
        "modalities" => *value == json!(["text"]),
        "response_format" => value.get("type").is_some_and(|kind| kind == "text"),
        "tool_choice" => value == "auto" || value == "none",
        "metadata" | "parallel_tool_calls" | "prompt_cache_key" => true,
        "safety_identifier" | "service_tier" | "store" | "user" => true,
        _ => false,
    }
}
