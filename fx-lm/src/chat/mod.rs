//! `ChatTemplate`: a conversation as the text that a model was trained on, by the model's own template.
//!
//! Invariant: a template runs in bounded time and memory, and reads nothing but what it is given.

mod functions;
mod python;

use std::error::Error as _;

use fx_core::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use regex::Regex;
use serde::Serialize;
use serde_json::Value as Json;

use crate::tokenizer::Tokenizer;

/// How many steps a template may take.
const FUEL: u64 = 20_000_000;

/// The names under which messages have what a model thought.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A message of a conversation. What has more parts, such as calls of tools, goes to [`ChatTemplate::apply`] as any other
/// value that is written as such an object.
///
/// ```
/// use fx_lm::Message;
/// let message = Message::new("user", "Hello!");
/// assert_eq!(message.role, "user");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message of a role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Message {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// What a template knows beside the messages.
///
/// ```
/// use fx_lm::{ChatOptions, ChatTemplate, Message};
/// let template = ChatTemplate::new("{{ bos_token }}{{ messages[0].content }}{{ date }}")?;
/// let options = ChatOptions::new().variable("bos_token", "<s>")?.variable("date", 2026)?;
/// assert_eq!(template.apply(&[Message::new("user", "Hi ")], &options)?, "<s>Hi 2026");
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    tools: Option<Json>,
    documents: Option<Json>,
    add_generation_prompt: bool,
    variables: Vec<(String, Json)>,
}

fn json(value: impl Serialize) -> Result<Json> {
    serde_json::to_value(value).map_err(Error::other)
}

impl ChatOptions {
    /// No tools, no documents, and no start of an answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with `bos_token` and `eos_token` of a tokenizer.
    ///
    /// # Errors
    /// Returns an error if a token cannot be written.
    pub fn of(tokenizer: &Tokenizer) -> Result<Self> {
        let mut options = ChatOptions::new();
        for (name, id) in [
            ("bos_token", tokenizer.bos()),
            ("eos_token", tokenizer.eos()),
        ] {
            if let Some(token) = id.and_then(|id| tokenizer.token(id)) {
                options = options.variable(name, token)?;
            }
        }
        Ok(options)
    }

    /// Whether the text ends with what begins an answer.
    pub fn add_generation_prompt(mut self, add: bool) -> Self {
        self.add_generation_prompt = add;
        self
    }

    /// The tools that the model may call: a list of JSON schemas of functions.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    pub fn tools(mut self, tools: impl Serialize) -> Result<Self> {
        self.tools = Some(json(tools)?);
        Ok(self)
    }

    /// Documents that the model may read.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    pub fn documents(mut self, documents: impl Serialize) -> Result<Self> {
        self.documents = Some(json(documents)?);
        Ok(self)
    }

    /// A variable of the template, such as `enable_thinking`.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    pub fn variable(mut self, name: impl Into<String>, value: impl Serialize) -> Result<Self> {
        self.variables.push((name.into(), json(value)?));
        Ok(self)
    }
}

/// A chat template, in the language Jinja as transformers reads it: `trim_blocks`, `lstrip_blocks`, loop controls, values
/// that are printed as Python prints them, `raise_exception`, `strftime_now` and `{% generation %}`.
///
/// ```
/// use fx_lm::{ChatOptions, ChatTemplate, Message};
/// let template = ChatTemplate::new(
///     "{% for message in messages %}<|{{ message.role }}|>{{ message['content'] | trim }}<|end|>
/// {% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
/// )?;
/// let messages = [Message::new("system", "Be short. "), Message::new("user", "Hi")];
/// let text = template.apply(&messages, &ChatOptions::new().add_generation_prompt(true))?;
/// assert_eq!(text, "<|system|>Be short.<|end|>\n<|user|>Hi<|end|>\n<|assistant|>");
/// # Ok::<(), fx_core::Error>(())
/// ```
pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// The name of the template, which errors have.
const NAME: &str = "chat template";

impl ChatTemplate {
    /// A template by its source.
    ///
    /// # Errors
    /// Returns an error with the line if it is no template.
    pub fn new(source: &str) -> Result<Self> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(explained)?);
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(functions::method);
        functions::add_to(&mut environment);
        // What an assistant said, which training needs to know, is a scope of its own and no more.
        let generation =
            Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").map_err(Error::other)?;
        let source = generation
            .replace_all(source, "{%$1 ${2}with $3%}")
            .into_owned();
        let added = environment.add_template_owned(NAME, source);
        added.map_err(explained)?;
        Ok(ChatTemplate { environment })
    }

    /// The text of a conversation: a list of [`Message`]s, or of anything that is written as objects with a `role`.
    ///
    /// Entries that are null are left out, and what a model thought goes by each of the names that templates have for it.
    ///
    /// # Errors
    /// Returns an error in the template's own words if it refuses the messages, and an error if it fails, or runs too
    /// long.
    pub fn apply<M: Serialize + ?Sized>(
        &self,
        messages: &M,
        options: &ChatOptions,
    ) -> Result<String> {
        let Json::Array(mut messages) = json(messages)? else {
            return Err(Error::msg(
                "messages are a list of objects, each with a `role`",
            ));
        };
        for message in &mut messages {
            let Json::Object(entries) = message else {
                return Err(Error::msg(format_args!(
                    "a message is an object with a `role`, and not {message}"
                )));
            };
            entries.retain(|_, value| !value.is_null());
            let thought = REASONING
                .iter()
                .find_map(|name| entries.get(*name))
                .cloned();
            if let Some(thought) = thought {
                // It stands first, as in transformers; its own value stays.
                let mut all = serde_json::Map::new();
                all.insert("thinking".to_string(), thought.clone());
                all.extend(std::mem::take(entries));
                all.insert("reasoning_content".to_string(), thought);
                *entries = all;
            }
        }
        let own = options.variables.iter();
        let own = own.map(|(name, value)| (name.clone(), Value::from(Serde(value))));
        let own = Value::from_pairs(own);
        let known = context! {
            messages => Value::from(Serde(messages)),
            tools => Value::from(Serde(&options.tools)),
            documents => Value::from(Serde(&options.documents)),
            add_generation_prompt => options.add_generation_prompt,
            ..own
        };
        let template = self.environment.get_template(NAME).map_err(explained)?;
        template.render(known).map_err(explained)
    }
}

/// A template's error with its causes, or in the template's own words.
fn explained(error: minijinja::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(functions::Raised(message)) = error.downcast_ref() {
            return Error::msg(message);
        }
        text = format!("{text}: {error}");
        cause = error.source();
    }
    if error.kind() == minijinja::ErrorKind::OutOfFuel {
        text.push_str(": it runs too long");
    }
    Error::msg(text)
}
