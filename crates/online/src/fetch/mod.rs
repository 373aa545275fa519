mod charset;
mod form;
mod html;
mod html_text;
mod private_host;
mod requests;
mod spaced;

use std::time::Duration;

pub use private_host::{PrivateHost, PrivateHostError};

pub(super) use html::text_of_html;
pub(super) use requests::{FetchError, FetchOptions, Requests, parse_url};

use charset::decode;
use form::Form;
use html::text_of_page;
use threadkeep_responses::StatelessError;
use threadkeep_service::tools::WebFetch;

const ACCEPT: &str =
    "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.8, application/xml;q=0.8";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchSettings {
    /// Hosts that models may reach even though their addresses are private.
    pub private_hosts: Vec<PrivateHost>,
    /// Maximum size of a page in bytes, both compressed and decompressed.
    pub max_bytes: usize,
    /// Time limit for a fetch, including all redirects.
    pub timeout: Duration,
}

/// Reads pages as text.
///
/// A fetch holds the page (up to `max_bytes`) and its text in memory. Decoding a page that is not in UTF-8 takes up to
/// three times the size of the page in additional memory.
#[derive(Debug)]
pub(super) struct PageReader {
    requests: Requests,
    max_bytes: usize,
    timeout: Duration,
}

impl PageReader {
    pub(super) fn new(settings: FetchSettings) -> Self {
        Self {
            requests: Requests::new(settings.private_hosts),
            max_bytes: settings.max_bytes,
            timeout: settings.timeout,
        }
    }

    pub(super) async fn read(&self, fetch: &WebFetch) -> Result<String, StatelessError> {
        let url = parse_url(&fetch.url).ok_or(StatelessError::Mistake {
            name: "url",
            wanted: "an http or https URL without user and password",
        })?;
        let options = FetchOptions {
            accept: ACCEPT,
            is_accepted: |content_type| Form::of(content_type).is_some(),
            max_bytes: self.max_bytes,
        };
        let read = async {
            let page = self.requests.get(url, &options).await?;
            let form = Form::of(&page.content_type).ok_or(FetchError::Type)?;
            let text = decode(&page.bytes, &page.content_type, form);
            Ok(match form {
                Form::Html => text_of_page(&text, false, fetch.max_chars).await,
                Form::Xhtml => text_of_page(&text, true, fetch.max_chars).await,
                Form::Xml | Form::Plain => plain(&text, fetch.max_chars),
            })
        };
        let text = tokio::time::timeout(self.timeout, read)
            .await
            .unwrap_or(Err(FetchError::Timeout(self.timeout)));
        text.map_err(|error| StatelessError::Failed(error.to_string().into()))
    }
}

/// Removes control characters except line breaks and tabs. Returns up to `max_chars` characters.
fn plain(text: &str, max_chars: usize) -> String {
    let is_kept = |char: &char| !char.is_control() || matches!(char, '\n' | '\t');
    text.chars().filter(is_kept).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted, reply};

    fn reader(server: &Scripted) -> PageReader {
        PageReader::new(FetchSettings {
            private_hosts: vec![server.address.to_string().parse().unwrap()],
            max_bytes: 4 * 1_048_576,
            timeout: Duration::from_secs(30),
        })
    }

    async fn read(pages: &PageReader, url: &str) -> Result<String, StatelessError> {
        let fetch = WebFetch {
            url: url.into(),
            max_chars: 100,
        };
        pages.read(&fetch).await
    }

    #[tokio::test]
    async fn pages_of_every_form_become_text() {
        let server = Scripted::start(|path| {
            let (content_type, body): (_, &[u8]) = match path {
                "/html" => ("text/html", b"<title>t</title><p>a</p>"),
                "/latin1" => ("text/html; charset=iso-8859-1", b"<p>\xe4</p>"),
                "/meta" => ("text/html", b"<meta charset=koi8-r><p>\xf0</p>"),
                "/xhtml" => ("application/xhtml+xml", b"<html><script/><p>a</p></html>"),
                "/json" => ("application/json", b"{\"a\": [1]}"),
                "/xml" => ("application/rss+xml", b"<rss>a</rss>"),
                _ => ("text/plain", b"a\r\n\tb<c>"),
            };
            reply(200, &format!("content-type: {content_type}\r\n"), body)
        })
        .await;
        let pages = reader(&server);

        for (path, text) in [
            ("/html", "t\na"),
            ("/latin1", "ä"),
            ("/meta", "П"),
            ("/xhtml", "a"),
            ("/json", r#"{"a": [1]}"#),
            ("/xml", "<rss>a</rss>"),
            ("/plain", "a\n\tb<c>"),
        ] {
            assert_eq!(read(&pages, &server.url(path)).await.as_deref(), Ok(text));
        }
    }

    #[tokio::test]
    async fn a_page_that_stalls_anywhere_times_out() {
        let server = Scripted::start(|path| {
            let head = "HTTP/1.1 200 X\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n";
            Reply::Stall(match path {
                "/head" => Vec::new(),
                "/headers" => head.into(),
                _ => format!("{head}\r\na").into(),
            })
        })
        .await;
        let pages = PageReader {
            timeout: Duration::from_millis(50),
            ..reader(&server)
        };

        for path in ["/head", "/headers", "/body"] {
            let error = read(&pages, &server.url(path)).await.unwrap_err();
            let text = "the page did not load within 50 ms";
            assert_eq!(error, StatelessError::Failed(text.into()), "{path}");
        }
    }

    #[tokio::test]
    async fn an_invalid_url_is_a_mistake() {
        let server = Scripted::start(|_| unreachable!()).await;
        let pages = reader(&server);

        for url in ["", "a", "file:///etc/passwd", "http://u:p@a.example"] {
            let error = read(&pages, url).await.unwrap_err();
            let text = "url must be an http or https URL without user and password";
            assert!(matches!(error, StatelessError::Mistake { .. }));
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn plain_text_is_truncated_and_has_no_control_characters() {
        assert_eq!(plain("a\0\u{1b}[1m\tä\r\nb", 100), "a[1m\tä\nb");
        assert_eq!(plain("äöü", 2), "äö");
    }
}
