use std::error::Error;
use std::time::Duration;

use reqwest::header::{ACCEPT, USER_AGENT};
use reqwest::{Client, ClientBuilder, StatusCode, redirect};

use super::url::JwksUrl;

/// Time limit for the whole request, from the DNS lookup to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a key set. The sets of large issuers take about 20 KB.
const BYTES_MAX: usize = 256 * 1_024;
const AGENT: &str = concat!("threadkeep/", env!("CARGO_PKG_VERSION"));

pub(super) struct Fetcher(Client);

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it answered {0}; redirects are not followed")]
    Status(StatusCode),
    #[error("its answer is larger than {BYTES_MAX} bytes")]
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
                // does not pool connections: fetches are minutes apart, so a pooled connection would usually be closed
                // before reuse
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
        // the URL may contain a secret
        let link = |error: reqwest::Error| FetchError::Link(error.without_url());
        let mut response = request.send().await.map_err(link)?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(link)? {
            if text.len() + chunk.len() > BYTES_MAX {
                return Err(FetchError::TooLarge);
            }
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }
}

/// Builds a client for a machine without certificate authorities. The client can fetch only over http.
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
