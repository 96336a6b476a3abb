//! `App`: an engine behind the routes of OpenAI's API.

mod answer;
mod error;
mod request;

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::poll_fn;
use fx_lm::engine::{Canceller, Engine, SubmitError};
use fx_lm::{ChatOptions, ChatTemplate, Tokenizer};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_blocking;

use answer::{Answer, now};
use error::{ApiError, respond};
use request::Chat;

/// How many bytes a body may have.
const LONGEST_BODY: usize = 4 << 20;

/// A model that is served.
pub struct App {
    name: String,
    created: u64,
    engine: Engine,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// One more for each request that may have a text.
    texts: Arc<()>,
}

impl App {
    /// A server of one model, by its name. The engine has the same tokenizer.
    ///
    /// # Errors
    /// Returns an error if the tokenizer has no chat template, or one that is none.
    pub fn new(name: &str, engine: Engine, tokenizer: Arc<Tokenizer>) -> fx_core::Result<Arc<App>> {
        let template = tokenizer.chat_template();
        let template =
            template.ok_or_else(|| fx_core::Error::msg("the model has no chat template"))?;
        let (name, template) = (name.to_string(), ChatTemplate::new(template)?);
        Ok(Arc::new(App {
            name,
            created: now(),
            engine,
            template,
            tokenizer,
            texts: Arc::new(()),
        }))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The routes.
    pub fn router(self: &Arc<App>) -> Router {
        Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/models", get(models))
            .route("/health", get(health))
            .fallback(unknown)
            .method_not_allowed_fallback(unknown)
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(self.clone())
    }

    /// Refuses new requests from now on, and waits until the texts that were asked for are written.
    pub async fn close(&self) {
        self.engine.close();
        while Arc::strong_count(&self.texts) > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks for the text behind a conversation.
    fn submit(&self, chat: &Chat) -> Result<Answer, ApiError> {
        let mut options = ChatOptions::of(&self.tokenizer).map_err(ApiError::internal)?;
        options = options.add_generation_prompt(true);
        if let Some(tools) = &chat.tools {
            options = options.tools(tools).map_err(ApiError::internal)?;
        }
        let text = self.template.apply(&chat.messages, &options);
        let prompt = text.and_then(|text| self.tokenizer.encode(&text, false));
        let prompt = prompt.map_err(|error| ApiError::field("messages", error))?;
        // A number that nobody has drawn before.
        let random = RandomState::new().hash_one(0);
        let ends = self.tokenizer.ends().to_vec();
        let count = prompt.len();
        let options = chat.options(random).stop_ids(ends);
        let stream = self.engine.submit(prompt, options)?;
        Ok(Answer::new(&self.name, random, count, stream))
    }
}

/// Ends the text of a response that nobody reads any more.
struct Guard(Canceller);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

type Body = Result<Bytes, BytesRejection>;

async fn chat(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let body = body.map_err(|error| ApiError::new(error.status(), None, error.body_text()))?;
    let text = app.texts.clone();
    // A template or a long prompt may take a while.
    let submit =
        move || Chat::parse(&body, &app.name).and_then(|chat| Ok((app.submit(&chat)?, chat)));
    let (answer, chat) = spawn_blocking(submit).await.map_err(ApiError::internal)??;
    let guard = Guard(answer.canceller());
    if chat.stream != Some(true) {
        let whole = move || (answer.whole(), text).0;
        let whole = spawn_blocking(whole).await.map_err(ApiError::internal)??;
        return Ok(respond(StatusCode::OK, &whole));
    }
    let usage = chat.stream_options.and_then(|usage| usage.include_usage);
    // Lines wait here for a client that is slow, so that its text keeps no place from others.
    let (sender, mut lines) = unbounded_channel();
    spawn_blocking(move || {
        // Without a reader the text ends, by the guard.
        answer.lines(usage == Some(true), |line| _ = sender.send(line));
        drop(text);
    });
    let events = poll_fn(move |context| {
        let _ = &guard;
        let line = lines.poll_recv(context);
        line.map(|line| Some(Ok::<_, Infallible>(Event::default().data(line?))))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::default());
    Ok(events.into_response())
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let model =
        json!({"id": app.name, "object": "model", "created": app.created, "owned_by": "fx"});
    respond(StatusCode::OK, &json!({"object": "list", "data": [model]}))
}

async fn health(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let stats = app.engine.stats();
    if !stats.is_open {
        return Err(SubmitError::Closed.into());
    }
    let stats = json!({"status": "ok", "running": stats.running, "waiting": stats.waiting});
    Ok(respond(StatusCode::OK, &stats))
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {method} {}", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, None, message)
}
