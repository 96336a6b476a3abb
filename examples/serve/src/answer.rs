//! `Answer`: a text that is being written, as a response or as the lines of a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use fx_lm::engine::{Canceller, FinishReason, Stream};
use serde_json::{Value, json};

use crate::error::ApiError;

/// The seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// It is read on a thread that may wait.
pub struct Answer {
    /// What each object of it begins with.
    head: Value,
    prompt_tokens: usize,
    completion_tokens: usize,
    stream: Stream,
}

impl Answer {
    pub fn new(model: &str, id: u64, prompt_tokens: usize, stream: Stream) -> Self {
        let id = format!("chatcmpl-{id:016x}");
        let head = json!({"id": id, "object": null, "created": now(), "model": model});
        let completion_tokens = 0;
        Answer {
            head,
            prompt_tokens,
            completion_tokens,
            stream,
        }
    }

    pub fn canceller(&self) -> Canceller {
        self.stream.canceller()
    }

    /// Gives the text, part by part, and why it ended.
    fn read(&mut self, mut part: impl FnMut(&Self, String)) -> Result<&'static str, ApiError> {
        while let Some(token) = self.stream.next() {
            self.completion_tokens += 1;
            part(self, token.map_err(ApiError::internal)?.text);
        }
        let end = self.stream.end().cloned();
        let end = end.ok_or_else(|| ApiError::internal("the text has no end"))?;
        part(self, end.text);
        match end.reason {
            FinishReason::Stop => Ok("stop"),
            FinishReason::Length => Ok("length"),
            _ => Err(ApiError::internal("the server ended the text")),
        }
    }

    fn object(&self, kind: &str, choices: Value, usage: Option<Value>) -> Value {
        let mut object = self.head.clone();
        object["object"] = kind.into();
        object["choices"] = choices;
        if let Some(usage) = usage {
            object["usage"] = usage;
        }
        object
    }

    fn usage(&self) -> Value {
        let (prompt, completion) = (self.prompt_tokens, self.completion_tokens);
        let total = prompt + completion;
        json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total})
    }

    /// The response with the whole text.
    ///
    /// # Errors
    /// Returns the error that ended it.
    pub fn whole(mut self) -> Result<Value, ApiError> {
        let mut text = String::new();
        let reason = self.read(|_, part| text += &part)?;
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
        Ok(self.object("chat.completion", json!([choice]), Some(self.usage())))
    }

    /// Gives the lines of the stream. An error is one of them.
    pub fn lines(mut self, has_usage: bool, line: impl Fn(String)) {
        const KIND: &str = "chat.completion.chunk";
        let chunk = |answer: &Self, delta: Value, reason: Option<&str>| {
            let choice =
                json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
            let usage = has_usage.then_some(Value::Null);
            line(answer.object(KIND, json!([choice]), usage).to_string());
        };
        chunk(&self, json!({"role": "assistant", "content": ""}), None);
        let reason = self.read(|answer, part| {
            if !part.is_empty() {
                chunk(answer, json!({"content": part}), None);
            }
        });
        match reason {
            Ok(reason) => chunk(&self, json!({}), Some(reason)),
            Err(error) => return line(error.json().to_string()),
        }
        if has_usage {
            line(self.object(KIND, json!([]), Some(self.usage())).to_string());
        }
        line("[DONE]".to_string());
    }
}
