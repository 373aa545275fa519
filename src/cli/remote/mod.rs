//! Commands that call a running server through its HTTP API. The commands work with every store.

mod archives;
mod erase;
mod event_lines;
mod events;
mod moving;
pub(super) mod threads;
mod webhooks;

use std::io::{self, Write};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::CliError;
use super::remote_command::{
    ArchivesCommand, EventsCommand, Group, RemoteCommand, ThreadsCommand, WebhooksCommand,
};
use crate::config::ClientSettings;
use moving::export::export;
use moving::import::import;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time between two chunks of a response. An event stream sends a chunk at least every 15 seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(45);

const PAGE_LIMIT: &str = "1000";

pub(super) struct Remote {
    client: Client,
    server: Url,
    api_key: HeaderValue,
}

pub(super) fn run(settings: ClientSettings, command: &RemoteCommand) -> Result<(), CliError> {
    let remote = Remote::new(settings, command.server())?;
    actix_web::rt::System::new().block_on(async {
        match command {
            RemoteCommand::Threads(Group { command, .. }) => match command {
                ThreadsCommand::List(query) => threads::list(&remote, query).await,
                ThreadsCommand::Show { id, is_json } => threads::show(&remote, id, *is_json).await,
                ThreadsCommand::Erase {
                    owner,
                    is_confirmed,
                    is_json,
                } => erase::erase(&remote, owner, *is_confirmed, *is_json).await,
                ThreadsCommand::Fork(request) => threads::fork(&remote, request).await,
                ThreadsCommand::Export(request) => export(&remote, request).await,
                ThreadsCommand::Import(request) => import(&remote, request).await,
            },
            RemoteCommand::Export {
                export: request, ..
            } => export(&remote, request).await,
            RemoteCommand::Import {
                import: request, ..
            } => import(&remote, request).await,
            RemoteCommand::Events(Group { command, .. }) => match command {
                EventsCommand::Tail { types } => events::tail(&remote, types).await,
            },
            RemoteCommand::Archives(Group { command, .. }) => match command {
                ArchivesCommand::Show(ended) => archives::show(&remote, ended).await,
                ArchivesCommand::List { since } => archives::list(&remote, since.as_deref()).await,
                ArchivesCommand::Restore(ended) => archives::restore(&remote, ended).await,
            },
            RemoteCommand::Webhooks(Group { command, .. }) => match command {
                WebhooksCommand::List => webhooks::list(&remote).await,
                WebhooksCommand::Pending { id } => webhooks::pending(&remote, id).await,
                WebhooksCommand::Failed { id } => webhooks::failed(&remote, id).await,
                WebhooksCommand::Replay { id, events } => {
                    webhooks::replay(&remote, id, events).await
                }
            },
        }
    })
}

impl Remote {
    fn new(settings: ClientSettings, server: Option<&str>) -> Result<Self, CliError> {
        let api_key = settings.api_key.ok_or(CliError::NoApiKey)?;
        Self::at(server.unwrap_or(&settings.server), &api_key)
    }

    pub(super) fn at(server: &str, api_key: &str) -> Result<Self, CliError> {
        threadkeep_tls::install_tls_provider();
        let mut api_key =
            HeaderValue::try_from(format!("Bearer {api_key}")).map_err(|_| CliError::NoApiKey)?;
        api_key.set_sensitive(true);
        let server: Url = server.parse().map_err(|_| CliError::ServerUrl)?;
        if server.cannot_be_a_base() {
            return Err(CliError::ServerUrl);
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .build()
            .map_err(CliError::Unreachable)?;
        Ok(Self {
            client,
            server,
            api_key,
        })
    }

    pub(super) fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> RequestBuilder {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client
            .request(method, url)
            .header(AUTHORIZATION, self.api_key.clone())
            .header(ACCEPT, "application/json")
    }
}

async fn send(request: RequestBuilder) -> Result<Response, CliError> {
    let response = request.send().await.map_err(CliError::Unreachable)?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_default();
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    let member_text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    Err(CliError::Refused {
        status,
        code: member_text("code"),
        detail: member_text("detail"),
    })
}

pub(super) fn json_request(
    remote: &Remote,
    method: Method,
    path: &[&str],
    query: &[(&str, &str)],
    body: &Value,
) -> RequestBuilder {
    remote
        .request(method, path, query)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string())
}

pub(super) async fn answer(request: RequestBuilder) -> Result<Value, CliError> {
    let text = text(request).await?;
    match text.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_str(&text).map_err(CliError::Answer),
    }
}

async fn print_all(
    remote: &Remote,
    path: &[&str],
    member: &str,
    query: &[(&str, &str)],
) -> Result<(), CliError> {
    let mut cursor: Option<String> = None;
    loop {
        let mut query = query.to_vec();
        query.push(("limit", PAGE_LIMIT));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = text(remote.request(Method::GET, path, &query)).await?;
        for item in items(&answer, member)? {
            print_line(&item)?;
        }
        let page: Value = serde_json::from_str(&answer).map_err(CliError::Answer)?;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(()),
        }
    }
}

async fn text(request: RequestBuilder) -> Result<String, CliError> {
    let response = send(request).await?;
    response.text().await.map_err(CliError::Unreachable)
}

/// Returns the items of the list `member` in `answer`, each as its original JSON.
fn items(answer: &str, member: &str) -> Result<Vec<String>, CliError> {
    let mut members: std::collections::HashMap<String, Box<RawValue>> =
        serde_json::from_str(answer).map_err(CliError::Answer)?;
    let list = members.remove(member).unwrap_or_default();
    let items: Vec<Box<RawValue>> = serde_json::from_str(list.get()).map_err(CliError::Answer)?;
    Ok(items.iter().map(|item| item.get().to_owned()).collect())
}

fn print_line(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(CliError::Output)
}
