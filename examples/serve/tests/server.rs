//! The routes over a small model of random weights.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use fx_lm::engine::{EngineStats, Model};
use fx_lm::{Engine, EngineOptions, Tokenizer};
use fx_nn::models::hf::decoder::{CausalLM, Config};
use fx_serve::App;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server of one text at once, where one more may wait.
fn app() -> Arc<App> {
    let vocabulary = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fx-lm/tests/data/bytes.gguf"
    );
    let tokenizer = Arc::new(Tokenizer::of_gguf(vocabulary).expect("a vocabulary"));
    let vocab_size = tokenizer.vocab_size();
    let load = move || {
        fx_nn::manual_seed(7);
        let config = json!({
            "model_type": "llama", "vocab_size": vocab_size, "hidden_size": 16, "intermediate_size": 32,
            "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 65536
        });
        let config = Config::from_json(&config.to_string())?;
        Model::of_decoder(&CausalLM::new(&config)?, &config, 1)
    };
    let options = EngineOptions::default()
        .max_waiting(1)
        .tokenizer(tokenizer.clone());
    let engine = Engine::start(load, options).expect("an engine");
    App::new("small", engine, tokenizer).expect("a server")
}

fn body(more: &Value) -> Value {
    let messages = json!([{"role": "user", "content": "Hello"}]);
    let mut body =
        json!({"model": "small", "messages": messages, "temperature": 0, "max_tokens": 6});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    body
}

async fn send(app: &Arc<App>, method: &str, path: &str, body: impl Into<Body>) -> Response {
    let request = Request::builder().method(method).uri(path);
    let request = request
        .header("content-type", "application/json")
        .body(body.into());
    app.router()
        .oneshot(request.expect("a request"))
        .await
        .expect("a response")
}

async fn post(app: &Arc<App>, more: Value) -> Response {
    send(app, "POST", "/v1/chat/completions", body(&more).to_string()).await
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    (status, serde_json::from_slice(&body).expect("JSON"))
}

/// The lines of a stream, without the last one.
async fn lines(response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("text");
    let all = text.strip_suffix("data: [DONE]\n\n").expect("an end");
    let all = all.split_terminator("\n\n");
    all.map(|line| serde_json::from_str(line.strip_prefix("data: ").expect("data")).expect("JSON"))
        .collect()
}

/// A stream that does not end soon, once it has begun.
async fn long(app: &Arc<App>) -> BodyDataStream {
    let response = post(app, json!({"stream": true, "max_tokens": 60000})).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body().into_data_stream()
}

async fn wait(app: &Arc<App>, until: impl Fn(EngineStats) -> bool) {
    for _ in 0..1000 {
        if until(app.engine().stats()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it stays at {:?}", app.engine().stats());
}

#[tokio::test]
async fn a_completion_and_its_stream_are_the_same_text() {
    let app = app();
    let (status, whole) = read(post(&app, json!({})).await).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    let usage = &whole["usage"];
    assert_eq!(usage["completion_tokens"], 6);
    assert!(usage["prompt_tokens"].as_u64() > Some(2), "{usage}");
    let text = whole["choices"][0]["message"]["content"]
        .as_str()
        .expect("a text");
    assert!(!text.is_empty());

    let more = json!({"stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 6});
    let lines = lines(post(&app, more).await).await;
    assert_eq!(lines[0]["choices"][0]["delta"]["role"], "assistant");
    let deltas = lines
        .iter()
        .filter_map(|line| line["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), text);
    let [.., end, last] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(end["choices"][0]["finish_reason"], "length");
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), usage));
    assert!(lines.iter().all(|line| line["id"] == lines[0]["id"]));

    // The same text up to a stop string.
    let stop = text.chars().last().expect("a character").to_string();
    let (_, cut) = read(post(&app, json!({"stop": [stop]})).await).await;
    assert_eq!(cut["choices"][0]["finish_reason"], "stop");
    let before = &text[..text.find(&stop).expect("the character")];
    assert_eq!(cut["choices"][0]["message"]["content"], before);
}

#[tokio::test]
async fn what_is_asked_for_is_understood_or_refused_by_its_name() {
    let app = app();
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
    for more in [
        json!({"n": 1, "presence_penalty": 0, "logit_bias": {}, "user": "me", "seed": -3, "temperature": null}),
        json!({"temperature": 1.5, "top_p": 0.5, "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1}),
        json!({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"}),
        json!({"messages": user(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))}),
        json!({"messages": user(json!("naïve 世界 🦀 \u{0} \u{1f468}\u{200d}\u{1f469}"))}),
        json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [call]}]}),
        json!({"messages": [{"role": "developer", "content": "b"}]}),
    ] {
        let (status, whole) = read(post(&app, more.clone()).await).await;
        assert_eq!(status, StatusCode::OK, "{more}: {whole}");
    }
    let image = json!([{"type": "image_url", "image_url": {"url": "http://a/b.png"}}]);
    for (more, param, said) in [
        (json!({"n": 2}), json!("n"), "`n` is not supported"),
        (
            json!({"presence_penalty": 0.5}),
            json!("presence_penalty"),
            "`presence_penalty`",
        ),
        (
            json!({"response_format": {"type": "json_object"}}),
            json!("response_format"),
            "json_object",
        ),
        (json!({"max_token": 5}), json!("max_token"), "`max_token`"),
        (json!({"max_tokens": 0}), json!("max_tokens"), "nonzero"),
        (
            json!({"temperature": "hot"}),
            json!("temperature"),
            "\"hot\"",
        ),
        (
            json!({"temperature": -1}),
            json!(null),
            "`temperature` is -1",
        ),
        (json!({"top_p": 1.5}), json!(null), "`top_p` is 1.5"),
        (json!({"stop": [1]}), json!("stop"), "a list of texts"),
        (json!({"stop": ""}), json!(null), "a stop string is empty"),
        (json!({"stream": "yes"}), json!("stream"), "boolean"),
        (json!({"messages": "Hello"}), json!("messages"), "sequence"),
        (
            json!({"messages": [{"content": "a"}]}),
            json!("messages[0]"),
            "`role`",
        ),
        (
            json!({"messages": user(image)}),
            json!("messages[0].content"),
            "a list of texts",
        ),
        (
            json!({"messages": user(json!("a ".repeat(70000)))}),
            json!(null),
            "positions",
        ),
    ] {
        let (status, error) = read(post(&app, more.clone()).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{more}: {error}");
        let error = &error["error"];
        assert_eq!(
            (&error["type"], &error["param"]),
            (&json!("invalid_request_error"), &param),
            "{error}"
        );
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains(said)),
            "{error}"
        );
    }
    wait(&app, |stats| stats.blocks_in_use == 0).await;
}

#[tokio::test]
async fn other_paths_and_bodies_are_errors() {
    let app = app();
    let path = "/v1/chat/completions";
    let deep = format!("{{\"messages\": {}", "[".repeat(100_000));
    for malformed in ["", "{\"messages\": [", "[]", "{} {}", "\u{feff}{}", &deep] {
        let (status, error) = read(send(&app, "POST", path, malformed.to_string()).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
        assert!(error["error"]["message"].is_string(), "{error}");
    }
    let (status, _) =
        read(send(&app, "POST", path, b"{\"messages\": \"\xff\"}".to_vec()).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, error) = read(send(&app, "POST", path, " ".repeat(5 << 20)).await).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{error}");
    let (status, error) = read(post(&app, json!({"model": "large"})).await).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (StatusCode::NOT_FOUND, &json!("model_not_found"))
    );
    for (method, path) in [("GET", path), ("POST", "/v1/embeddings"), ("GET", "/")] {
        let (status, error) = read(send(&app, method, path, "").await).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{error}");
    }
    let (_, models) = read(send(&app, "GET", "/v1/models", "").await).await;
    assert_eq!(models["data"][0]["id"], "small");
    let (status, health) = read(send(&app, "GET", "/health", "").await).await;
    assert_eq!((status, &health["status"]), (StatusCode::OK, &json!("ok")));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_text_alone() {
    let app = app();
    let mut running = long(&app).await;
    wait(&app, |stats| stats.blocks_in_use > 0).await;
    // One that waits for its place goes away, and one without a stream.
    let waiting = long(&app).await;
    wait(&app, |stats| stats.waiting == 1).await;
    let full = post(&app, json!({})).await;
    assert_eq!(full.headers()["retry-after"], "1");
    let (status, error) = read(full).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("overloaded"))
    );
    drop(waiting);
    wait(&app, |stats| stats.waiting == 0).await;
    let whole = tokio::time::timeout(
        Duration::from_millis(50),
        post(&app, json!({"max_tokens": 60000})),
    );
    assert!(whole.await.is_err(), "it waits");
    wait(&app, |stats| stats.waiting == 0).await;
    for _ in 0..20 {
        running
            .next()
            .await
            .expect("the other text goes on")
            .expect("a line");
    }
    assert_eq!(app.engine().stats().running, 1);
    drop(running);
    wait(&app, |stats| stats.running == 0 && stats.blocks_in_use == 0).await;
    let (status, _) = read(post(&app, json!({})).await).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_server_that_closes_writes_its_texts_to_their_ends() {
    let app = app();
    let running = post(&app, json!({"stream": true, "max_tokens": 200})).await;
    tokio::time::timeout(Duration::from_secs(60), app.close())
        .await
        .expect("it closes");
    let (status, error) = read(post(&app, json!({})).await).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("shutting_down"))
    );
    let (status, _) = read(send(&app, "GET", "/health", "").await).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let lines = lines(running).await;
    assert_eq!(
        lines.last().expect("lines")["choices"][0]["finish_reason"],
        "length"
    );
}
