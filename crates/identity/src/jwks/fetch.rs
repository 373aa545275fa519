//! The request for a JWK Set, and what an answer may cost.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{ACCEPT, USER_AGENT};
use reqwest::{Client, ClientBuilder, StatusCode, redirect};

use super::url::JwksUrl;

/// From the look-up of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The sets of large issuers have some 20 KB.
const MOST_BYTES: usize = 256 * 1_024;
const AGENT: &str = concat!("threadkeep/", env!("CARGO_PKG_VERSION"));

/// Fetches a set: follows no redirect, uses no proxy, and sends nothing of a caller.
pub(super) struct Fetcher(Client);

/// Why there was no text of a set.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it answered {0}; redirects are not followed")]
    Status(StatusCode),
    #[error("its answer is larger than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("it did not answer")]
    Link(#[source] reqwest::Error),
}

impl Fetcher {
    pub(super) fn new() -> Self {
        let builder = || {
            Client::builder()
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                // once in minutes: a connection that is kept would mostly be a broken one
                .pool_max_idle_per_host(0)
                .timeout(TIMEOUT)
        };
        let client = builder().build();
        Self(client.unwrap_or_else(|error| without_certificates(builder(), &error)))
    }

    pub(super) async fn fetch(&self, url: &JwksUrl) -> Result<Vec<u8>, FetchError> {
        let request = self
            .0
            .get(url.url().clone())
            .header(ACCEPT, "application/jwk-set+json, application/json")
            .header(USER_AGENT, AGENT);
        // the URL may hold a secret, and is in the settings
        let link = |error: reqwest::Error| FetchError::Link(error.without_url());
        let mut response = request.send().await.map_err(link)?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(link)? {
            if text.len() + chunk.len() > MOST_BYTES {
                return Err(FetchError::TooLarge);
            }
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }
}

/// A machine without certificate authorities can still ask itself by http.
fn without_certificates(builder: ClientBuilder, error: &reqwest::Error) -> Client {
    tracing::warn!(
        error = error as &dyn Error,
        "no certificate authorities: key sets cannot be fetched by https"
    );
    builder
        .tls_certs_only([])
        .build()
        .expect("a client that reads no certificates is built from constants")
}
