//! Requests URLs from untrusted sources: blocks private addresses, follows redirects, and applies limits.

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Client, Response, Url};

use super::private_host::PrivateHost;
use crate::body::{BodyError, read_body};
use threadkeep_egress::{
    AGENT, PrivateAddress, PublicResolver, address_of, has_source, http_client, is_public,
};

const URL_BYTES_MAX: usize = 2_048;
const REDIRECTS_MAX: usize = 5;

/// Sends requests without cookies, credentials or `Referer`.
pub(crate) struct Requests {
    /// Client that reaches only public addresses.
    guarded: Client,
    open: Client,
    private_hosts: Vec<PrivateHost>,
}

pub(crate) struct FetchOptions {
    pub(crate) accept: &'static str,
    /// Checks the content type of the response.
    pub(crate) is_accepted: fn(&str) -> bool,
    /// Maximum size of a body in bytes, both compressed and decompressed.
    pub(crate) max_bytes: usize,
}

pub(crate) struct Fetched {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// The reason why a page could not be read. The messages name only the kind of failure, so that they do not reveal
/// whether a private host exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the host has no public address")]
    NotPublic,
    #[error("there is no answer from the host")]
    Connect,
    #[error("the page did not load within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the page answered {0}")]
    Status(u16),
    #[error("there are more than {REDIRECTS_MAX} redirects")]
    Redirects,
    #[error("a redirect leads to a URL that is not http or https, or has a user or password")]
    Location,
    #[error("the page is neither text nor JSON nor XML")]
    Type,
    #[error("the page has more than {0} bytes")]
    TooLong(usize),
    #[error("the page is compressed in a way that this server does not know")]
    Encoding,
    #[error("the page was cut off")]
    Broken,
}

/// Parses a URL that may be requested. The scheme must be http or https. The URL must contain a host, and must not
/// contain credentials.
pub(crate) fn parse_url(text: &str) -> Option<Url> {
    // the parser would silently remove white space and control characters
    let is_stripped = |char: char| char.is_whitespace() || char.is_control();
    if text.len() > URL_BYTES_MAX || text.contains(is_stripped) {
        return None;
    }
    Url::parse(text).ok().filter(is_allowed)
}

fn is_allowed(url: &Url) -> bool {
    ["http", "https"].contains(&url.scheme())
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
}

impl Requests {
    pub(crate) fn new(private_hosts: Vec<PrivateHost>) -> Self {
        Self::with(private_hosts, PublicResolver::system())
    }

    fn with(private_hosts: Vec<PrivateHost>, resolver: PublicResolver) -> Self {
        let consequence = "pages cannot be fetched by https";
        // does not pool connections, because the same host is rarely requested twice within a short time
        let client =
            |builder: reqwest::ClientBuilder| builder.user_agent(AGENT).pool_max_idle_per_host(0);
        Self {
            guarded: http_client(consequence, |builder| {
                client(builder).dns_resolver(resolver.clone())
            }),
            open: http_client(consequence, client),
            private_hosts,
        }
    }

    pub(crate) async fn get(
        &self,
        mut url: Url,
        options: &FetchOptions,
    ) -> Result<Fetched, FetchError> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&url, options).await?;
            if response.status().is_success() {
                return read(response, options).await;
            }
            url = match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => target(&url, &response)?,
                status => return Err(FetchError::Status(status)),
            };
        }
        Err(FetchError::Redirects)
    }

    async fn send(&self, url: &Url, options: &FetchOptions) -> Result<Response, FetchError> {
        let is_private_host = self.private_hosts.iter().any(|host| host.matches_url(url));
        // checks IP addresses in the URL here, because the resolver sees only names
        if !is_private_host && address_of(url).is_some_and(|address| !is_public(address)) {
            return Err(FetchError::NotPublic);
        }
        let client = match is_private_host {
            true => &self.open,
            false => &self.guarded,
        };
        let request = client
            .get(url.clone())
            .header(ACCEPT, options.accept)
            .header(ACCEPT_ENCODING, "gzip");
        request.send().await.map_err(|error| {
            if error.is_dns() || has_source::<PrivateAddress>(&error) {
                FetchError::NotPublic
            } else {
                FetchError::Connect
            }
        })
    }
}

fn target(url: &Url, response: &Response) -> Result<Url, FetchError> {
    let location = response.headers().get(LOCATION);
    let location = location
        .and_then(|location| location.to_str().ok())
        .filter(|location| location.len() <= URL_BYTES_MAX)
        .ok_or(FetchError::Location)?;
    let target = url.join(location).map_err(|_| FetchError::Location)?;
    match is_allowed(&target) {
        true => Ok(target),
        false => Err(FetchError::Location),
    }
}

async fn read(response: Response, options: &FetchOptions) -> Result<Fetched, FetchError> {
    let header = |name: HeaderName| response.headers().get(name)?.to_str().ok();
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
    if !(options.is_accepted)(&content_type) {
        return Err(FetchError::Type);
    }
    let bytes = read_body(response, options.max_bytes).await;
    let bytes = bytes.map_err(|error| match error {
        BodyError::TooLong => FetchError::TooLong(options.max_bytes),
        BodyError::Encoding => FetchError::Encoding,
        BodyError::Broken => FetchError::Broken,
    })?;
    Ok(Fetched {
        content_type,
        bytes,
    })
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
