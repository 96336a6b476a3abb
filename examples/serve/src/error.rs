//! `ApiError`: why a request is refused or ended, as OpenAI's API writes it.

use std::fmt::Display;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use fx_lm::engine::SubmitError;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct ApiError(StatusCode, Value);

impl ApiError {
    /// An error, and what programs know it by.
    pub fn new(status: StatusCode, code: Option<&str>, message: impl Display) -> Self {
        let kind = match status.is_server_error() {
            true => "server_error",
            false => "invalid_request_error",
        };
        let message = message.to_string();
        let error = json!({"message": message, "type": kind, "param": null, "code": code});
        ApiError(status, json!({"error": error}))
    }

    /// An error in a field.
    pub fn field(name: &str, message: impl Display) -> Self {
        let mut error = ApiError::new(StatusCode::BAD_REQUEST, None, message);
        error.1["error"]["param"] = name.into();
        error
    }

    /// An error that is no fault of the request.
    pub fn internal(error: impl Display) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, None, error)
    }

    pub fn json(&self) -> &Value {
        &self.1
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        let (status, code) = match error {
            SubmitError::Full => (StatusCode::SERVICE_UNAVAILABLE, Some("overloaded")),
            SubmitError::Closed => (StatusCode::SERVICE_UNAVAILABLE, Some("shutting_down")),
            _ => (StatusCode::BAD_REQUEST, None),
        };
        ApiError::new(status, code, error)
    }
}

/// A value as a response.
pub fn respond(status: StatusCode, value: &Value) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    match status {
        // After how many seconds a client may ask again.
        StatusCode::SERVICE_UNAVAILABLE => {
            (status, kind, [(RETRY_AFTER, "1")], value.to_string()).into_response()
        }
        _ => (status, kind, value.to_string()).into_response(),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        respond(self.0, &self.1)
    }
}
