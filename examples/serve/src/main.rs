//! Serves a GGUF file with OpenAI's chat completions, to this machine alone.

use std::error::Error;
use std::future::pending;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures_util::FutureExt;
use fx_core::value::DType;
use fx_lm::engine::Model;
use fx_lm::{Engine, EngineOptions, Tokenizer};
use fx_nn::models::hf::gguf::Gguf;
use fx_serve::App;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// How long the last responses may take to be read, once all texts are written.
const GRACE: Duration = Duration::from_secs(5);

/// Serves a GGUF file with OpenAI's chat completions, to this machine alone.
#[derive(Debug, Parser)]
#[command(name = "fx-serve", version)]
struct Cli {
    /// The file, with its tokenizer and its chat template.
    model: PathBuf,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// How many texts are written at once.
    #[arg(long, default_value_t = 8)]
    slots: usize,
    /// The type of activations and caches.
    #[arg(long, default_value = "f16", value_parser = ["f32", "f16", "bf16"])]
    dtype: String,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, cli.port)))?;
    let address = listener.local_addr()?;
    let name = cli.model.file_stem().unwrap_or_default().to_string_lossy();
    let tokenizer = Arc::new(Tokenizer::of_gguf(&cli.model)?);
    let options = EngineOptions::default().tokenizer(tokenizer.clone());
    let dtype = match &*cli.dtype {
        "f32" => DType::F32,
        "bf16" => DType::BF16,
        _ => DType::F16,
    };
    let path = cli.model.clone();
    let load = move || Model::of_gguf(&Gguf::open(path)?.dtype(dtype), cli.slots);
    let app = App::new(&name, Engine::start(load, options)?, tokenizer)?;
    eprintln!("`{name}` is at http://{address}");
    Ok(runtime.block_on(serve(listener, app))?)
}

/// Serves until a signal comes, and the texts that were asked for are written.
async fn serve(listener: TcpListener, app: Arc<App>) -> std::io::Result<()> {
    let router = app.router();
    let end = async move {
        signal().await;
        eprintln!("no new requests are taken; texts are written to their ends");
        tokio::spawn(signal().map(|()| std::process::exit(1)));
        app.close().await;
        // A client that does not read, or write, to the end is not waited for.
        tokio::spawn(sleep(GRACE).map(|()| std::process::exit(0)));
    };
    axum::serve(listener, router)
        .with_graceful_shutdown(end)
        .await
}

/// Waits for Ctrl-C, or for SIGTERM.
async fn signal() {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).ok()?.recv().await
    };
    #[cfg(not(unix))]
    let terminated = pending::<Option<()>>();
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        Some(()) = terminated => {}
        else => pending().await,
    }
}
