use reqwest::Method;

use super::{Remote, print_all, print_line, text};
use crate::cli::error::CliError;
use crate::cli::remote_command::EndedThread;

pub(super) async fn show(remote: &Remote, ended: &EndedThread) -> Result<(), CliError> {
    let request = remote.request(Method::GET, &["archives", &ended.id], &life_query(ended));
    print_line(&text(request).await?)
}

pub(super) async fn list(remote: &Remote, since: Option<&str>) -> Result<(), CliError> {
    let since: Vec<_> = since.map(|since| ("since", since)).into_iter().collect();
    print_all(remote, &["archives"], "archives", &since).await
}

pub(super) async fn restore(remote: &Remote, ended: &EndedThread) -> Result<(), CliError> {
    let path = ["archives", &ended.id, "restore"];
    let request = remote.request(Method::POST, &path, &life_query(ended));
    print_line(&text(request).await?)
}

fn life_query(ended: &EndedThread) -> Vec<(&'static str, &str)> {
    let life = ended.life.as_deref();
    life.map(|life| ("life", life)).into_iter().collect()
}
