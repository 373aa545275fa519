//! The command `threadkeep demo`: an in-memory server with threads of two owners, clients that keep writing to a
//! thread, and a model that does not need an API key.

mod browser;
mod model;
mod threads;
mod writers;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::TcpListener;

use super::error::CliError;
use super::keygen;
use super::remote::Remote;
use super::serve::print_links;
use crate::app::{Application, ConsoleLinks};
use crate::config::{Layers, Settings, local_url};
use crate::telemetry::{flush_log, log_text};
use threadkeep_scripted_upstream::Upstream;

const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Runs the demo until SIGTERM or SIGINT. Settings come only from `flags`, not from a file or the environment.
pub(super) fn run(flags: BTreeMap<String, String>, opens_browser: bool) -> Result<(), CliError> {
    let ended = actix_web::rt::System::new().block_on(async {
        let model = model::start().await;
        let settings = settings(&model, flags)?;
        log_text(&settings.log.filter)?;
        let application = Application::build(settings).await?;
        let links = application.console().ok_or(CliError::NoDemo)?;
        let server = local_url(application.address());
        let remote = Remote::at(&server, links.api_key())?;
        print(&server, links.api_key())?;
        if opens_browser {
            browser::open(&format!(
                "{server}{}",
                ConsoleLinks::path(&links.tokens().borrow())
            ));
        }
        print_links(&application);
        actix_web::rt::spawn(async move {
            match threads::create(&remote).await {
                Ok(live) => writers::run(&remote, &live).await,
                Err(error) => tracing::error!(%error, "cannot create all demo threads"),
            }
        });
        Ok(application.run_until_signal().await?)
    });
    flush_log();
    ended
}

fn settings(model: &Upstream, flags: BTreeMap<String, String>) -> Result<Settings, CliError> {
    let mut values: BTreeMap<String, String> = [
        ("listen", free_address().into()),
        ("log", "error".into()),
        ("shutdown_seconds", "1".into()),
        ("signing_keys", keygen::generate(Some("demo"))?),
        // sample programs in the documentation request models of real providers
        ("models", format!("{} demo, * demo", model::NAME)),
        ("upstreams", format!("demo openai-chat {}", model.url())),
        ("upstream_keys", format!("demo:{}", model.key())),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    values.extend(flags);
    let layers = Layers {
        flags: values,
        ..Layers::default()
    };
    Ok(Settings::parse(layers.merge()?)?)
}

/// Returns the address that the documentation uses, or any free port (port 0) if that address is in use.
fn free_address() -> &'static str {
    match TcpListener::bind(DEFAULT_ADDRESS) {
        Ok(_) => DEFAULT_ADDRESS,
        Err(_) => "127.0.0.1:0",
    }
}

/// Prints example commands with the API key of this run. This is safe, because only this machine can reach the server.
fn print(server: &str, api_key: &str) -> Result<(), CliError> {
    let model = model::NAME;
    let text = format!(
        "threadkeep {version} demo: threads in memory, writers at work, and the model `{model}`, which is a script

  export THREADKEEP_URL={server} THREADKEEP_API_KEY={api_key}
  curl -H \"authorization: Bearer $THREADKEEP_API_KEY\" \"$THREADKEEP_URL/v1/threads?limit=3\"

  Clients of OpenAI use {server}/v1 and this key. Ctrl+C ends the demo, and nothing is kept.
",
        version = env!("CARGO_PKG_VERSION"),
    );
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(CliError::Output)
}
