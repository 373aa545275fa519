use std::time::Duration;

use bytes::Bytes;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};

use super::EndpointUrl;
use threadkeep_egress::{AGENT, PrivateAddress, PublicResolver, has_source, http_client};

/// Time limit for a delivery, including name resolution, connection and handshake.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Sends deliveries. Does not follow redirects, use proxies or read response bodies.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    client: Client,
    allow_private: bool,
}

/// The reason why a delivery failed. The owner of the endpoint sees the error text, which therefore reveals only the
/// status of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendError {
    #[error("{}", PrivateAddress)]
    Private,
    #[error("it answered {0}")]
    Status(u16),
    #[error("it answered {0}; redirects are not followed")]
    Redirect(u16),
    #[error("it did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the host was not found")]
    Name,
    #[error("the connection failed")]
    Connect,
    #[error("the connection ended before the answer")]
    Broken,
}

impl Sender {
    /// Creates a sender. Unless `allow_private` is true, the sender connects only to public addresses.
    pub(super) fn new(allow_private: bool) -> Self {
        let resolver = (!allow_private).then(PublicResolver::system);
        Self::with(allow_private, resolver, TIMEOUT)
    }

    fn with(allow_private: bool, resolver: Option<PublicResolver>, timeout: Duration) -> Self {
        let client = http_client("webhooks cannot be delivered by https", |builder| {
            let builder = builder.timeout(timeout);
            match &resolver {
                Some(resolver) => builder.dns_resolver(resolver.clone()),
                None => builder,
            }
        });
        Self {
            client,
            allow_private,
        }
    }

    /// Sends a JSON body. Returns the status of the response if it is 2xx; any other status is an error.
    pub(super) async fn send(
        &self,
        url: &EndpointUrl,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<u16, SendError> {
        // the resolver sees only names, so an IP address in the URL must be checked here
        if !self.allow_private && url.is_private() {
            return Err(SendError::Private);
        }
        let request = self
            .client
            .post(url.url().clone())
            .headers(headers)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, HeaderValue::from_static(AGENT))
            .body(body);
        let status = request.send().await.map_err(SendError::of)?.status();
        match status.as_u16() {
            code @ 200..=299 => Ok(code),
            code @ 300..=399 => Err(SendError::Redirect(code)),
            code => Err(SendError::Status(code)),
        }
    }
}

impl SendError {
    pub(super) fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) | Self::Redirect(status) => Some(status),
            Self::Private | Self::Timeout | Self::Name | Self::Connect | Self::Broken => None,
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Private => "private_address",
            Self::Status(_) => "status",
            Self::Redirect(_) => "redirect",
            Self::Timeout => "timeout",
            Self::Name => "name_resolution",
            Self::Connect => "connect",
            Self::Broken => "connection_ended",
        }
    }

    fn of(error: reqwest::Error) -> Self {
        if has_source::<PrivateAddress>(&error) {
            Self::Private
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_dns() {
            Self::Name
        } else if error.is_connect() {
            Self::Connect
        } else {
            Self::Broken
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server that always sends `answer`, or hangs if `answer` is empty. Returns its URL.
    async fn server_with(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                if answer.is_empty() {
                    std::future::pending::<()>().await;
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        format!("http://{address}/hook")
    }

    async fn send(sender: &Sender, url: &str) -> Result<(), SendError> {
        let url = url.parse().unwrap();
        let sent = sender.send(&url, HeaderMap::new(), Bytes::new()).await;
        sent.map(drop)
    }

    #[tokio::test]
    async fn only_a_status_of_2xx_is_a_success() {
        let sender = Sender::new(true);

        for (answer, result) in [
            ("HTTP/1.1 204 No Content\r\n\r\n", Ok(())),
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            // the sender does not wait for the body, which never arrives
            ("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", Ok(())),
            (
                "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
                Err(SendError::Status(410)),
            ),
            (
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
                Err(SendError::Redirect(302)),
            ),
            ("nonsense\r\n\r\n", Err(SendError::Broken)),
        ] {
            let url = server_with(answer).await;
            assert_eq!(send(&sender, &url).await, result, "{answer}");
        }
    }

    #[tokio::test]
    async fn an_unresponsive_endpoint_times_out() {
        let sender = Sender::with(true, None, Duration::from_millis(50));

        let url = server_with("").await;

        assert_eq!(send(&sender, &url).await, Err(SendError::Timeout));
        let closed = "http://127.0.0.1:1/";
        let patient = Sender::new(true);
        assert_eq!(send(&patient, closed).await, Err(SendError::Connect));
    }

    #[tokio::test]
    async fn private_addresses_are_rejected_in_every_notation() {
        let sender = Sender::new(false);
        let open = server_with("HTTP/1.1 204 No Content\r\n\r\n").await;
        let port = open.trim_end_matches("/hook").rsplit(':').next().unwrap();

        for host in [
            "127.0.0.1",
            "2130706433",
            "[::ffff:127.0.0.1]",
            "[::1]",
            "localhost",
            "0.0.0.0",
            "169.254.169.254",
        ] {
            let url = format!("http://{host}:{port}/hook");
            assert_eq!(send(&sender, &url).await, Err(SendError::Private), "{host}");
        }
        assert_eq!(send(&Sender::new(true), &open).await, Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_resolved_for_each_delivery() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let lookups = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&lookups);
        let resolver = PublicResolver::new(Arc::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(vec![([127, 0, 0, 1], 0).into()]) })
        }));
        let sender = Sender::with(false, Some(resolver), TIMEOUT);
        let open = server_with("HTTP/1.1 204 No Content\r\n\r\n").await;
        let named = open.replace("127.0.0.1", "a.example");

        for count in 1..=2 {
            assert_eq!(send(&sender, &named).await, Err(SendError::Private));
            assert_eq!(lookups.load(Ordering::Relaxed), count);
        }
    }

    #[tokio::test]
    async fn an_unknown_host_has_its_own_error() {
        let sender = Sender::with(
            false,
            Some(PublicResolver::new(Arc::new(|_| {
                Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) })
            }))),
            TIMEOUT,
        );

        let result = send(&sender, "http://nobody.example").await;

        assert_eq!(result, Err(SendError::Name));
    }
}
