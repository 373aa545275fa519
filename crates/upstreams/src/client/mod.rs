//! Sends requests to upstreams, and retries them.

mod body;
mod failure;
mod outlet;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, timeout};

use super::answer::ensure_message;
use super::codec::{Codec, EventReader};
use super::retry::wait;
use super::settings::UpstreamSettings;
use body::{read_streamed, read_whole};
use outlet::Outlet;
use threadkeep_egress::{AGENT, http_client};
use threadkeep_responses::{ModelAnswer, Piece, Question, UpstreamError};

pub(super) use failure::Failure;

/// Maximum time for name resolution, connection and handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Statuses that a server returns for an unsupported operation.
const UNSUPPORTED_STATUSES: [u16; 3] = [404, 405, 501];

/// The HTTP client for all upstreams. Does not follow redirects or use proxies. Clones share connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    first_wait: Duration,
}

pub(super) struct Endpoint {
    http: HttpClient,
    name: Box<str>,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    retries: u32,
    max_answer_bytes: u64,
}

impl HttpClient {
    #[must_use]
    pub fn new() -> Self {
        Self::with(FIRST_WAIT)
    }

    fn with(first_wait: Duration) -> Self {
        let client = http_client("upstreams cannot be reached by https", |builder| {
            builder.user_agent(AGENT).connect_timeout(CONNECT_TIMEOUT)
        });
        Self { client, first_wait }
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}

impl Endpoint {
    /// Creates the endpoint at `path` below the upstream URL. `headers` contains the credential and the API version.
    pub(super) fn new(
        http: &HttpClient,
        settings: &UpstreamSettings,
        path: &[&str],
        mut headers: HeaderMap,
    ) -> Self {
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        Self {
            http: http.clone(),
            name: settings.name.as_str().into(),
            url: settings.url.join(path),
            headers,
            timeout: settings.timeout,
            retries: settings.retries,
            max_answer_bytes: settings.max_answer_bytes,
        }
    }

    /// Sends a JSON body. Retries temporary failures while attempts and time remain. If `pieces` is given, `body` must
    /// request a stream, and each piece is sent to `pieces`.
    pub(super) async fn ask<R: EventReader>(
        &self,
        body: Bytes,
        question: &Question<'_>,
        codec: &Codec<'_, R>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let (start, left) = (Instant::now(), question.left);
        let mut outlet = Outlet::new(pieces);
        let mut attempt = 0;
        loop {
            let limit = self.timeout.min(left.saturating_sub(start.elapsed()));
            let answer = self.exchange(body.clone(), codec, pieces.is_some(), &mut outlet);
            let answer = match timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(Failure::temporary(UpstreamError::Timeout)),
            };
            let answer =
                answer.and_then(|answer| ensure_message(answer, question.follows_a_result()));
            let failure = match answer {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            outlet.void().await;
            let left = left.saturating_sub(start.elapsed());
            let next = self.wait_before_retry(failure, attempt, left).await;
            next.map_err(|failure| failure.error)?;
            attempt += 1;
        }
    }

    /// Like [`ask`](Self::ask), but without streaming, and for any type of answer. `read` returns `None` for an invalid
    /// answer.
    pub(super) async fn ask_whole<A>(
        &self,
        body: Bytes,
        left: Duration,
        read: impl Fn(&[u8]) -> Option<A>,
    ) -> Result<A, UpstreamError> {
        let answer = self.attempt_whole(body, left, read).await;
        answer.map_err(|failure| failure.error)
    }

    /// Like [`ask_whole`](Self::ask_whole), but returns `None` if the upstream does not support the operation.
    pub(super) async fn ask_if_supported<A>(
        &self,
        body: Bytes,
        left: Duration,
        read: impl Fn(&[u8]) -> Option<A>,
    ) -> Result<Option<A>, UpstreamError> {
        match self.attempt_whole(body, left, read).await {
            Ok(answer) => Ok(Some(answer)),
            Err(failure)
                if failure
                    .status
                    .is_some_and(|status| UNSUPPORTED_STATUSES.contains(&status)) =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure.error),
        }
    }

    async fn attempt_whole<A>(
        &self,
        body: Bytes,
        left: Duration,
        read: impl Fn(&[u8]) -> Option<A>,
    ) -> Result<A, Failure> {
        let start = Instant::now();
        let mut attempt = 0;
        loop {
            let limit = self.timeout.min(left.saturating_sub(start.elapsed()));
            let answer = async {
                let response = self.send(body.clone()).await?;
                read_whole(response, self.max_answer_bytes).await
            };
            let failure = match timeout(limit, answer).await {
                Ok(Ok(answer)) => match read(&answer) {
                    Some(answer) => return Ok(answer),
                    None => Failure::temporary(UpstreamError::Malformed),
                },
                Ok(Err(failure)) => failure,
                Err(_) => Failure::temporary(UpstreamError::Timeout),
            };
            let left = left.saturating_sub(start.elapsed());
            self.wait_before_retry(failure, attempt, left).await?;
            attempt += 1;
        }
    }

    async fn wait_before_retry(
        &self,
        failure: Failure,
        attempt: u32,
        left: Duration,
    ) -> Result<(), Failure> {
        let wait = wait(self.http.first_wait, attempt, failure.requested_wait);
        // a retry is useful only if there is time left after the wait
        let is_last = !failure.is_temporary || attempt >= self.retries || wait >= left;
        tracing::warn!(
            upstream = &*self.name,
            outcome = failure.label(),
            status = failure.status,
            attempt = attempt + 1,
            "upstream request failed, {}",
            if is_last { "giving up" } else { "retrying" }
        );
        if is_last {
            return Err(failure);
        }
        sleep(wait).await;
        Ok(())
    }

    async fn exchange<R: EventReader>(
        &self,
        body: Bytes,
        codec: &Codec<'_, R>,
        is_streamed: bool,
        outlet: &mut Outlet<'_>,
    ) -> Result<ModelAnswer, Failure> {
        let response = self.send(body).await?;
        if is_streamed {
            read_streamed(response, self.max_answer_bytes, codec, outlet).await
        } else {
            (codec.whole)(&read_whole(response, self.max_answer_bytes).await?)
        }
    }

    async fn send(&self, body: Bytes) -> Result<Response, Failure> {
        let request = self.http.client.post(self.url.clone());
        let request = request.headers(self.headers.clone()).body(body);
        let response = request.send().await;
        let response = response.map_err(|error| Failure::unanswered(&error))?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(Failure::of_answer(response).await),
        }
    }
}

/// Shows neither the URL nor the headers.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
